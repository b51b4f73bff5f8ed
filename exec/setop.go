package exec

import (
	"context"
	"sync"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// setOp counts the rows of the right side by value, then lets rows of the left side pass by those counts.
func (r *run) setOp(x *plan.SetOp, op *profile.Operator) (*stream, error) {
	left, err := r.compile(x.Left, op)
	if err != nil {
		return nil, err
	}
	right, err := r.compile(x.Right, op)
	if err != nil {
		return nil, err
	}
	s := &setState{x: x, mem: r.account(op), keys: hash.NewKeys(left.types)}
	s.own = share{a: s.mem}
	out := &stream{
		prepares: append([]func(context.Context) error{func(ctx context.Context) error {
			return r.drive(ctx, right, &countedSink{&profile.Operator{}, s})
		}}, left.prepares...),
		branches: left.branches, types: typesOf(x.Cols), ordered: left.ordered,
	}
	return out, r.apply(out, op, &setOpOp{s})
}

// setState is shared by all workers under its lock: the table is small next to the work of making the rows.
type setState struct {
	x    *plan.SetOp
	mem  *account
	own  share
	mu   sync.Mutex
	keys *hash.Keys
	// right is how often the right side has a value and has not yet been matched; given tells that it was passed on.
	right []int64
	given []bool
	ids   []uint32
}

func (s *setState) local() (sinkLocal, error)    { return s, nil }
func (s *setState) combine(sinkLocal) error      { return nil }
func (s *setState) finish(context.Context) error { return nil }

// number gives the ids of the rows; mu is held.
func (s *setState) number(c *vector.Chunk) ([]uint16, []uint32, error) {
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	if s.ids == nil {
		s.ids = make([]uint32, vector.Size)
	}
	ids := s.ids[:len(rows)]
	s.keys.Upsert(c.Cols, rows, ids)
	for len(s.right) < s.keys.Len() {
		s.right = append(s.right, 0)
		s.given = append(s.given, false)
	}
	return rows, ids, s.own.set(s.keys.Bytes() + int64(9*cap(s.right)))
}

func (s *setState) push(_ context.Context, c *vector.Chunk) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ids, err := s.number(c)
	for _, id := range ids {
		s.right[id]++
	}
	return err
}

type setOpOp struct{ s *setState }

func (o *setOpOp) local() (local, error) { return &setOpLocal{s: o.s}, nil }

type setOpLocal struct {
	s   *setState
	sel []uint16
	out vector.Chunk
}

func (l *setOpLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	s := l.s
	l.sel = l.sel[:0]
	s.mu.Lock()
	rows, ids, err := s.number(c)
	for p, id := range ids {
		pass := false
		switch {
		case s.x.All && s.x.Except:
			if pass = s.right[id] == 0; !pass {
				s.right[id]--
			}
		case s.x.All:
			if pass = s.right[id] > 0; pass {
				s.right[id]--
			}
		case !s.given[id]:
			if pass = (s.right[id] > 0) != s.x.Except; pass {
				s.given[id] = true
			}
		}
		if pass {
			l.sel = append(l.sel, rows[p])
		}
	}
	s.mu.Unlock()
	if err != nil || len(l.sel) == 0 {
		return err
	}
	l.out = vector.Chunk{Cols: c.Cols, Sel: l.sel, N: c.N}
	return out(ctx, &l.out)
}
