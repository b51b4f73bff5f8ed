package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// turn counts takers.
type turn struct{ n atomic.Int64 }

func (t *turn) take() int64 { return t.n.Add(1) - 1 }

func (r *run) limit(x *plan.Limit, op *profile.Operator) (*stream, error) {
	s, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	count, offset := x.Count, x.Offset
	if x.CountExpr != nil {
		if count, err = r.rowCount(x.CountExpr, "LIMIT"); err != nil {
			return nil, err
		}
	}
	if x.OffsetExpr != nil {
		if offset, err = r.rowCount(x.OffsetExpr, "OFFSET"); err != nil {
			return nil, err
		}
	}
	r.cut(s, op, count, offset)
	return s, nil
}

// rowCount evaluates a parameter that stands for a number of rows.
func (r *run) rowCount(e expr.Expr, clause string) (int64, error) {
	v, err := expr.EvalConst(e, r.q.Context)
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok || n < 0 {
		return 0, fault.WithID(fault.Invalid, "INVALID_ARGUMENTS", "the parameter of %s must be a number of rows, not %v", clause, v)
	}
	return n, nil
}

// cut lets count rows (negative: all) through after offset.
func (r *run) cut(s *stream, op *profile.Operator, count, offset int64) {
	if count == 0 {
		s.branches, s.prepares = nil, nil
		return
	}
	if count < 0 && offset == 0 {
		return
	}
	s.add(&countedOp{op: op, inner: &limitOp{skip: offset, left: count, endless: count < 0}})
}

// limitOp counts rows over all workers. The pipeline ends only when every row that was granted has been passed on: ending
// it earlier would cancel a worker that still holds some.
type limitOp struct {
	mu         sync.Mutex
	skip, left int64
	endless    bool
	inFlight   int
}

type limitLocal struct {
	op  *limitOp
	sel []uint16
	out vector.Chunk
}

func (o *limitOp) local() (local, error) { return &limitLocal{op: o}, nil }

func (l *limitLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	o := l.op
	n := int64(c.Rows())
	o.mu.Lock()
	skip := min(o.skip, n)
	o.skip -= skip
	keep := n - skip
	if !o.endless {
		keep = min(keep, o.left)
		o.left -= keep
	}
	if keep > 0 {
		o.inFlight++
	}
	enough := o.done()
	o.mu.Unlock()
	if keep == 0 {
		if enough {
			return errEnough
		}
		return nil
	}
	l.out = *c
	if keep < n {
		if c.Sel != nil {
			l.out.Sel = c.Sel[skip : skip+keep]
		} else {
			l.sel = l.sel[:0]
			for i := skip; i < skip+keep; i++ {
				l.sel = append(l.sel, uint16(i))
			}
			l.out.Sel = l.sel
		}
	}
	err := out(ctx, &l.out)
	o.mu.Lock()
	o.inFlight--
	enough = o.done()
	o.mu.Unlock()
	if err == nil && enough {
		return errEnough
	}
	return err
}

// done reports whether everything has been granted and passed on; mu is held.
func (o *limitOp) done() bool { return !o.endless && o.left == 0 && o.inFlight == 0 }
