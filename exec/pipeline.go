package exec

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// stream is a part of a plan made ready: what must have run before, and branches that give its chunks one after the other.
type stream struct {
	prepares []func(ctx context.Context) error
	branches []branch
	// ordered streams are run by one worker, which keeps the order of the rows.
	ordered bool
	types   []vector.Type
}

type branch struct {
	src source
	ops []operator
}

// source hands out chunks to workers.
type source interface {
	// open makes one worker's reader. It is called on that worker's goroutine.
	open(ctx context.Context) (reader, error)
}

// reader gives chunks that are valid until the next call; nil at the end.
type reader interface {
	next(ctx context.Context) (*vector.Chunk, error)
	close() error
}

// solo makes a source that keeps an order readable by whichever worker comes first, even where later operators have made the stream
// unordered.
type solo struct {
	source
	turn turn
}

func (s *solo) open(ctx context.Context) (reader, error) {
	if s.turn.take() > 0 {
		return noReader{}, nil
	}
	return s.source.open(ctx)
}

type noReader struct{}

func (noReader) next(context.Context) (*vector.Chunk, error) { return nil, nil }
func (noReader) close() error                                { return nil }

// emit passes a chunk on; it is valid until the call returns.
type emit func(ctx context.Context, c *vector.Chunk) error

// operator transforms chunks on the way.
type operator interface {
	local() (local, error)
}

type local interface {
	push(ctx context.Context, c *vector.Chunk, out emit) error
}

// flusher is a local that has more to give when its worker's branch ends.
type flusher interface {
	flush(ctx context.Context, out emit) error
}

// sink ends a pipeline.
type sink interface {
	local() (sinkLocal, error)
	// combine takes a worker's part. Calls are serialised.
	combine(sinkLocal) error
	finish(ctx context.Context) error
}

type sinkLocal interface {
	push(ctx context.Context, c *vector.Chunk) error
}

// errEnough ends a pipeline early without an error: a limit is met.
var errEnough = errors.New("enough rows")

// add appends an operator to every branch.
func (s *stream) add(op operator) {
	for i := range s.branches {
		s.branches[i].ops = append(s.branches[i].ops[:len(s.branches[i].ops):len(s.branches[i].ops)], op)
	}
}

// drive prepares and runs a stream into a sink.
func (r *run) drive(ctx context.Context, s *stream, into sink) error {
	for _, p := range s.prepares {
		if err := p(ctx); err != nil {
			return err
		}
	}
	workers := r.q.Workers
	if s.ordered {
		workers = 1
	}
	locals := make([]sinkLocal, workers)
	for w := range locals {
		l, err := into.local()
		if err != nil {
			return err
		}
		locals[w] = l
	}
	for _, b := range s.branches {
		if err := r.runBranch(ctx, b, locals); err != nil {
			if errors.Is(err, errEnough) {
				continue // a limit further on meets the next branch too
			}
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return guarded(func() error {
		for _, l := range locals {
			if err := into.combine(l); err != nil {
				return err
			}
		}
		return into.finish(ctx)
	})
}

// runBranch runs one branch on as many workers as there are sink locals. The first error stops the others.
func (r *run) runBranch(ctx context.Context, b branch, locals []sinkLocal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if len(locals) == 1 {
		return guarded(func() error { return r.work(ctx, b, locals[0]) })
	}
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for _, l := range locals {
		wg.Go(func() {
			if err := guarded(func() error { return r.work(ctx, b, l) }); err != nil {
				once.Do(func() {
					first = err
					cancel(err)
				})
			}
		})
	}
	wg.Wait()
	return first
}

// work is a worker's loop: read, push through the operators, into the sink.
func (r *run) work(ctx context.Context, b branch, into sinkLocal) (err error) {
	rd, err := b.src.open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rd.close(); err == nil {
			err = cerr
		}
	}()
	out := cut(r.q.ChunkRows, into.push)
	var flushes []func() error
	for i := len(b.ops) - 1; i >= 0; i-- {
		l, err := b.ops[i].local()
		if err != nil {
			return err
		}
		next := out
		out = func(ctx context.Context, c *vector.Chunk) error { return l.push(ctx, c, next) }
		if _, marked := b.src.(*spilledSource); i > 0 || !marked { // which knows the chunks that it gave
			out = cut(r.q.ChunkRows, out)
		}
		if f, ok := l.(flusher); ok {
			flushes = append(flushes, func() error { return f.flush(ctx, next) })
		}
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, err := rd.next(ctx)
		if err != nil {
			return err
		}
		if c == nil {
			break
		}
		if err := out(ctx, c); err != nil {
			return err
		}
	}
	for i := len(flushes) - 1; i >= 0; i-- {
		if err := flushes[i](); err != nil {
			return err
		}
	}
	return nil
}

// counted is an operator's place in the profile. Time is taken around the operator itself, without what follows it.
type counted struct {
	op    *profile.Operator
	inner local
	// While a chunk is pushed: where to, and the time that this has taken. give is a method value made once.
	out  emit
	away time.Duration
	give emit
}

type countedOp struct {
	op    *profile.Operator
	inner operator
}

func (c *countedOp) local() (local, error) {
	l, err := c.inner.local()
	if err != nil {
		return nil, err
	}
	x := &counted{op: c.op, inner: l}
	x.give = x.handOn
	if f, ok := l.(flusher); ok {
		return &countedFlusher{x, f}, nil
	}
	return x, nil
}

func (c *counted) push(ctx context.Context, chunk *vector.Chunk, out emit) error {
	c.op.RowsIn.Add(int64(chunk.Rows()))
	start := time.Now()
	c.out, c.away = out, 0
	err := c.inner.push(ctx, chunk, c.give)
	c.op.Nanos.Add(int64(time.Since(start) - c.away))
	return err
}

func (c *counted) handOn(ctx context.Context, o *vector.Chunk) error {
	c.op.RowsOut.Add(int64(o.Rows()))
	c.op.Chunks.Add(1)
	left := time.Now()
	err := c.out(ctx, o)
	c.away += time.Since(left)
	return err
}

type countedFlusher struct {
	*counted
	f flusher
}

func (c *countedFlusher) flush(ctx context.Context, out emit) error {
	return c.f.flush(ctx, func(ctx context.Context, o *vector.Chunk) error {
		c.op.RowsOut.Add(int64(o.Rows()))
		return out(ctx, o)
	})
}

// countedSink counts what goes into a sink and the time it takes there.
type countedSink struct {
	op *profile.Operator
	sink
}

func (c *countedSink) local() (sinkLocal, error) {
	l, err := c.sink.local()
	if err != nil {
		return nil, err
	}
	return &countedSinkLocal{c.op, l}, nil
}

func (c *countedSink) combine(l sinkLocal) error {
	start := time.Now()
	defer func() { c.op.Nanos.Add(int64(time.Since(start))) }()
	return c.sink.combine(l.(*countedSinkLocal).inner)
}

func (c *countedSink) finish(ctx context.Context) error {
	start := time.Now()
	defer func() { c.op.Nanos.Add(int64(time.Since(start))) }()
	return c.sink.finish(ctx)
}

type countedSinkLocal struct {
	op    *profile.Operator
	inner sinkLocal
}

func (c *countedSinkLocal) push(ctx context.Context, chunk *vector.Chunk) error {
	c.op.RowsIn.Add(int64(chunk.Rows()))
	start := time.Now()
	err := c.inner.push(ctx, chunk)
	c.op.Nanos.Add(int64(time.Since(start)))
	return err
}

// countedSource counts what a source gives.
type countedSource struct {
	op *profile.Operator
	source
}

func (c *countedSource) open(ctx context.Context) (reader, error) {
	rd, err := c.source.open(ctx)
	if err != nil {
		return nil, err
	}
	return &countedReader{c.op, rd}, nil
}

type countedReader struct {
	op *profile.Operator
	reader
}

func (c *countedReader) next(ctx context.Context) (*vector.Chunk, error) {
	start := time.Now()
	chunk, err := c.reader.next(ctx)
	c.op.Nanos.Add(int64(time.Since(start)))
	if chunk != nil {
		c.op.RowsOut.Add(int64(chunk.Rows()))
		c.op.Chunks.Add(1)
	}
	return chunk, err
}

func typesOf(cols []plan.Column) []vector.Type {
	ts := make([]vector.Type, len(cols))
	for i, c := range cols {
		ts[i] = c.Type
	}
	return ts
}
