package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// spool holds the rows of a common part of the plan for its uses.
type spool struct {
	in    *stream
	rows  *storeSink
	once  sync.Once
	err   error
	op    *profile.Operator
	types []vector.Type
}

func (r *run) spool(x *plan.Spool, op *profile.Operator) (*stream, error) {
	s := r.spools[x.ID]
	if s == nil {
		in, err := r.compile(x.Input, op)
		if err != nil {
			return nil, err
		}
		s = &spool{in: in, op: op, types: in.types, rows: &storeSink{types: in.types, mem: r.account(op)}}
		r.spools[x.ID] = s
	}
	src := &storeSource{s: s.rows}
	return &stream{
		prepares: []func(context.Context) error{func(ctx context.Context) error {
			s.once.Do(func() { s.err = r.drive(ctx, s.in, &countedSink{s.op, s.rows}) })
			return s.err
		}},
		branches: []branch{{src: &countedSource{op, src}}},
		types:    s.types,
		ordered:  s.in.ordered,
	}, nil
}

// storeSink collects rows into one store.
type storeSink struct {
	types []vector.Type
	mem   *account
	store *kernel.Store
	own   share
}

type storeLocal struct {
	store *kernel.Store
	mem   share
}

func (s *storeSink) local() (sinkLocal, error) {
	return &storeLocal{store: kernel.NewStore(s.types), mem: share{a: s.mem}}, nil
}

func (l *storeLocal) push(_ context.Context, c *vector.Chunk) error {
	l.store.Append(c.Cols, c.Sel, c.N)
	return l.mem.set(l.store.Bytes())
}

func (s *storeSink) combine(x sinkLocal) error {
	l := x.(*storeLocal)
	if s.store == nil {
		s.store, s.own = l.store, l.mem
		return nil
	}
	s.store.AppendStore(l.store)
	if err := s.own.set(s.store.Bytes()); err != nil {
		return err
	}
	return l.mem.set(0)
}

func (s *storeSink) finish(context.Context) error { return nil }

// storeSource reads a collected store, a chunk a turn.
type storeSource struct {
	s    *storeSink
	next atomic.Int64
}

func (s *storeSource) open(context.Context) (reader, error) { return storeReader{s}, nil }

type storeReader struct{ *storeSource }

func (r storeReader) close() error { return nil }

func (r storeReader) next(context.Context) (*vector.Chunk, error) {
	lo := int(r.storeSource.next.Add(vector.Size)) - vector.Size
	st := r.s.store
	if st == nil || lo >= st.N {
		return nil, nil
	}
	hi := min(lo+vector.Size, st.N)
	c := &vector.Chunk{N: hi - lo}
	for _, v := range st.Cols {
		c.Cols = append(c.Cols, kernel.Slice(v, lo, hi))
	}
	return c, nil
}
