package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
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
		s = &spool{in: in, op: op, types: in.types, rows: &storeSink{r: r, types: in.types, mem: r.spillable(op)}}
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

// storeSink collects rows into one store; what memory does not hold goes to disk.
type storeSink struct {
	r      *run
	types  []vector.Type
	mem    *account
	store  *kernel.Store
	own    share
	frames []spill.Frame // of rows that came before those of store
}

type storeLocal struct {
	s      *storeSink
	store  *kernel.Store
	mem    share
	file   *spill.File
	frames []spill.Frame
}

func (s *storeSink) local() (sinkLocal, error) {
	return &storeLocal{s: s, store: kernel.NewStore(s.types), mem: share{a: s.mem}}, nil
}

func (l *storeLocal) push(ctx context.Context, c *vector.Chunk) error {
	l.store.Append(c.Cols, c.Sel, c.N)
	err := l.mem.set(l.store.Bytes())
	if refused(err) {
		return l.toDisk(ctx)
	}
	return err
}

// spoolFrameBytes is about what a frame of a spool takes in memory.
const spoolFrameBytes = 512 << 10

// toDisk writes the rows so far.
func (l *storeLocal) toDisk(ctx context.Context) error {
	if l.file == nil {
		var err error
		if l.file, err = l.s.r.area.File(); err != nil {
			return err
		}
	}
	tmp := kernel.NewStore(l.s.types)
	for lo := 0; lo < l.store.N; lo += vector.Size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := sliced(l.store.Cols, lo, min(lo+vector.Size, l.store.N))
		tmp.Append(c.Cols, nil, c.N)
		if tmp.Bytes() < spoolFrameBytes && lo+vector.Size < l.store.N {
			continue
		}
		f, err := l.file.Append(tmp)
		if err != nil {
			return err
		}
		l.s.mem.op.SpilledBytes.Add(f.Size())
		l.frames = append(l.frames, f)
		tmp.Reset()
	}
	l.store = kernel.NewStore(l.s.types)
	return l.mem.set(0)
}

func (s *storeSink) combine(x sinkLocal) error {
	l := x.(*storeLocal)
	s.frames = append(s.frames, l.frames...)
	if s.store == nil {
		s.store, s.own = l.store, l.mem
	} else {
		err := s.own.set(s.store.Bytes() + l.store.Bytes())
		if refused(err) {
			at := len(l.frames)
			if err := l.toDisk(context.Background()); err != nil {
				return err
			}
			s.frames = append(s.frames, l.frames[at:]...)
		} else if err != nil {
			return err
		} else {
			s.store.AppendStore(l.store)
			s.own.force(s.store.Bytes()) // what was asked for, but for the room that columns grow by
		}
		if err := l.mem.set(0); err != nil {
			return err
		}
	}
	if l.file != nil {
		return l.file.Finish()
	}
	return nil
}

func (s *storeSink) finish(context.Context) error { return nil }

// storeSource reads collected rows: frames, then the store a chunk a turn.
type storeSource struct {
	s     *storeSink
	frame atomic.Int64
	next  atomic.Int64
}

func (s *storeSource) open(context.Context) (reader, error) { return &storeReader{storeSource: s}, nil }

type storeReader struct {
	*storeSource
	rd   spill.Reader
	cols []*vector.Vector
	n    int
	at   int
}

func (r *storeReader) close() error { return nil }

func (r *storeReader) next(context.Context) (*vector.Chunk, error) {
	for r.at >= r.n {
		k := int(r.frame.Add(1)) - 1
		if k >= len(r.s.frames) {
			r.cols = nil
			return r.rest()
		}
		var err error
		if r.cols, err = r.rd.Read(r.s.frames[k], r.s.types); err != nil {
			return nil, err
		}
		r.n, r.at = r.s.frames[k].Rows, 0
	}
	lo := r.at
	r.at = min(lo+vector.Size, r.n)
	return sliced(r.cols, lo, r.at), nil
}

// rest gives what is in memory.
func (r *storeReader) rest() (*vector.Chunk, error) {
	lo := int(r.storeSource.next.Add(vector.Size)) - vector.Size
	st := r.s.store
	if st == nil || lo >= st.N {
		return nil, nil
	}
	return sliced(st.Cols, lo, min(lo+vector.Size, st.N)), nil
}
