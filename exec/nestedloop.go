package exec

import (
	"context"
	"sync/atomic"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// loopOp joins without keys: every pair is tried. Rows of the smaller of chunk and build side are taken one by one as constants.
type loopOp struct{ j *joinState }

type loopLocal struct {
	j     *joinState
	resid *expr.Program
	seen  []bool
	sel   []uint16
	rsel  []uint16
	out   vector.Chunk

	disk  probeSpill
	carry *carry
}

func (o *loopOp) local() (local, error) {
	l := &loopLocal{j: o.j}
	if o.j.x.Kind == plan.NullAwareAnti {
		return nil, fault.New(fault.Internal, "a null-aware anti join without keys")
	}
	if o.j.x.Residual != nil {
		p, err := expr.Compile(o.j.x.Residual, o.j.ctx)
		if err != nil {
			return nil, err
		}
		l.resid = p
	}
	return l, nil
}

func (l *loopLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	if l.j.spill.on.Load() {
		return l.disk.add(ctx, l.j, c, nil, rows)
	}
	return l.match(ctx, c, rows, out)
}

// flush hands over what the worker has written to disk.
func (l *loopLocal) flush(ctx context.Context, _ emit) error { return l.disk.end(ctx, l.j) }

// match joins rows of c with the build rows.
func (l *loopLocal) match(ctx context.Context, c *vector.Chunk, rows []uint16, out emit) error {
	j := l.j
	kind := j.x.Kind
	if cap(l.seen) < c.N {
		l.seen = make([]bool, max(c.N, vector.Size))
	}
	seen := l.seen[:c.N]
	l.carry.load(rows, seen)
	exists := kind == plan.Semi || kind == plan.Anti || kind == plan.Mark
	note := func(i uint16) error {
		if seen[i] && kind == plan.Single {
			return multipleRows()
		}
		seen[i] = true
		return nil
	}
	nl := len(j.leftTypes)
	if j.store.N <= len(rows) {
		for row := range j.store.N {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			cols := append(make([]*vector.Vector, 0, nl+len(j.rightTypes)), c.Cols[:nl]...)
			for _, v := range j.store.Cols {
				cols = append(cols, constantRow(v, row))
			}
			pairs := &vector.Chunk{Cols: cols, Sel: rows, N: c.N}
			if l.resid != nil {
				sel, err := l.resid.Filter(pairs, rows, l.rsel)
				if err != nil {
					return err
				}
				l.rsel, pairs.Sel = sel, sel
			}
			if len(pairs.Sel) == 0 {
				continue
			}
			for _, i := range pairs.Sel {
				if err := note(i); err != nil {
					return err
				}
			}
			if j.matched != nil {
				atomic.StoreUint32(&j.matched[row], 1)
			}
			if !exists {
				if err := out(ctx, pairs); err != nil {
					return err
				}
			}
		}
	} else {
		for _, i := range rows {
			left := make([]*vector.Vector, nl, nl+len(j.rightTypes))
			for k := range left {
				left[k] = constantRow(c.Cols[k], int(i))
			}
			for lo := 0; lo < j.store.N; lo += vector.Size {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				hi := min(lo+vector.Size, j.store.N)
				cols := left
				for _, v := range j.store.Cols {
					cols = append(cols, kernel.Slice(v, lo, hi))
				}
				pairs := &vector.Chunk{Cols: cols, N: hi - lo, Sel: kernel.Identity(hi - lo)}
				if l.resid != nil {
					sel, err := l.resid.Filter(pairs, nil, l.rsel)
					if err != nil {
						return err
					}
					l.rsel, pairs.Sel = sel, sel
				}
				if len(pairs.Sel) == 0 {
					continue
				}
				if kind == plan.Single && len(pairs.Sel) > 1 {
					return multipleRows()
				}
				if err := note(i); err != nil {
					return err
				}
				if j.matched != nil {
					for _, p := range pairs.Sel {
						atomic.StoreUint32(&j.matched[lo+int(p)], 1)
					}
				}
				if exists {
					break
				}
				if err := out(ctx, pairs); err != nil {
					return err
				}
			}
		}
	}
	if !l.carry.store(rows, seen) {
		return nil
	}
	return l.rest(ctx, c, rows, seen, out)
}

// rest gives what follows from which rows matched.
func (l *loopLocal) rest(ctx context.Context, c *vector.Chunk, rows []uint16, seen []bool, out emit) error {
	j := l.j
	cols := c.Cols[:len(j.leftTypes):len(j.leftTypes)]
	want := false
	switch j.x.Kind {
	case plan.Mark:
		v := vector.New(vector.Of(vector.Boolean), c.N)
		for _, i := range rows {
			v.Bools[i] = seen[i]
		}
		l.out = vector.Chunk{Cols: append(cols, v), Sel: c.Sel, N: c.N}
		return out(ctx, &l.out)
	case plan.Semi:
		want = true
	case plan.Anti:
	case plan.Left, plan.Full, plan.Single:
		for _, t := range j.rightTypes {
			cols = append(cols, vector.NewConstant(t, nil))
		}
	default:
		return nil
	}
	l.sel = l.sel[:0]
	for _, i := range rows {
		if seen[i] == want {
			l.sel = append(l.sel, i)
		}
	}
	if len(l.sel) == 0 {
		return nil
	}
	l.out = vector.Chunk{Cols: cols, Sel: l.sel, N: c.N}
	return out(ctx, &l.out)
}

func constantRow(v *vector.Vector, i int) *vector.Vector {
	b := vector.NewBuilder(v.Type)
	b.AppendFrom(v, i)
	out := b.Finish()
	out.Form = vector.Constant
	return out
}
