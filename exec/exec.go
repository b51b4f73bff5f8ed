// Package exec runs plans: physical operators joined into push pipelines, and the scheduler that drives them.
//
// A pipeline has a source of chunks, streaming operators and a sink. Each of its workers owns one local state of every part, so
// chunks are pushed by plain calls, without channels or locks per row; locals meet in a sink's combine. Sorting,
// grouping and the build side of a join end a pipeline; what they hold is the source of the next. It knows no SQL text, no
// protocol and no file format. A Result belongs to one goroutine; everything behind it is the package's own.
package exec

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// Scanner is what exec needs of scanner.Scanner.
type Scanner interface {
	Plan(ctx context.Context, r *scanner.Request) (scanner.TaskStream, error)
	Open(ctx context.Context, t *scanner.Task, pool *memory.Pool) (scanner.ChunkReader, error)
}

// Query is what a run needs besides its plan.
type Query struct {
	// Context is shared by all expressions of the run; exec fills its Subqueries.
	Context *expr.Context
	// Pool is the query's; all that exec holds is reserved in children of it and back at zero after Close.
	Pool    *memory.Pool
	Scanner Scanner
	// Profile receives operators and scans; nil for none.
	Profile *profile.Query
	// Workers is the number of goroutines of a pipeline; 0 means GOMAXPROCS.
	Workers int
	// ChunkRows is the greatest number of rows that sources and operators hand on at once; 0 means vector.Size, which is also the most.
	// Fewer only cost time: tests run with them.
	ChunkRows int
	// Spill is where operators put what memory does not hold; nil is the system's directory for temporary files, without a quota.
	Spill *spill.Disk
}

// Result is a running query. Its methods are called from one goroutine.
type Result struct {
	columns []plan.Column
	cancel  context.CancelCauseFunc
	out     chan handover
	ack     chan struct{} // to the worker whose chunk the caller holds
	done    chan struct{} // closed when the run has ended and err is set
	err     error
	close   sync.Once
	run     *run
}

// handover lends a chunk to the consumer until ack is signalled.
type handover struct {
	c   *vector.Chunk
	ack chan struct{}
}

var errClosed = errors.New("result closed")

// Run starts a plan. Planning errors of operators come from here, errors of the data from Next.
func Run(ctx context.Context, root plan.Node, q *Query) (*Result, error) {
	cp := *q
	if cp.Workers <= 0 {
		cp.Workers = runtime.GOMAXPROCS(0)
	}
	if cp.ChunkRows <= 0 || cp.ChunkRows > vector.Size {
		cp.ChunkRows = vector.Size
	}
	if cp.Context == nil {
		cp.Context = &expr.Context{}
	}
	c := *cp.Context
	c.Subqueries = slices.Clone(c.Subqueries)
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Now.IsZero() {
		c.Now = time.Now()
	}
	cp.Context = &c
	if cp.Pool == nil {
		cp.Pool = memory.NewPool("query", 0)
	}
	if cp.Profile == nil {
		cp.Profile = profile.New("", "")
	}
	r := &run{q: &cp, spools: map[int]*spool{}, filters: map[int]*joinFilter{}}
	disk := cp.Spill
	if disk == nil {
		disk = spill.Open("", 0)
		r.atEnd(func() { _ = disk.Close() })
	}
	r.area = disk.Area()
	r.atEnd(r.area.Close)
	top := &profile.Operator{Name: "Output"}
	s, err := r.compile(root, top)
	if err != nil {
		r.release()
		return nil, err
	}
	if x, ok := root.(*plan.Explain); ok && x.Analyze {
		// The record shows the plan that was analysed, not the explanation of it.
		top = top.Children[0]
	}
	if len(top.Children) > 0 {
		cp.Profile.SetRoot(top.Children[0])
	}
	rctx, cancel := context.WithCancelCause(ctx)
	res := &Result{columns: root.Columns(), cancel: cancel, out: make(chan handover), done: make(chan struct{}), run: r}
	go func() {
		defer close(res.done)
		res.err = guarded(func() error { return r.drive(rctx, s, &edge{out: res.out}) })
	}()
	return res, nil
}

// Columns describes the chunks of Next.
func (r *Result) Columns() []plan.Column { return r.columns }

// Next gives the next chunk, nil at the end. It is valid until the next call of Next or Close. ctx bounds the wait only: when it ends, the
// run goes on until Close.
func (r *Result) Next(ctx context.Context) (*vector.Chunk, error) {
	if r.ack != nil {
		close(r.ack)
		r.ack = nil
	}
	select {
	case h := <-r.out:
		r.ack = h.ack
		return h.c, nil
	case <-r.done:
		return nil, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close stops the workers, waits for them and returns all memory. It may be called more than once.
func (r *Result) Close() error {
	r.close.Do(func() {
		r.cancel(errClosed)
		if r.ack != nil {
			close(r.ack)
			r.ack = nil
		}
		for {
			select {
			case h := <-r.out:
				close(h.ack)
				continue
			case <-r.done:
			}
			break
		}
		r.run.release()
	})
	return nil
}

// edge is the sink that lends chunks to the consumer. A worker waits until its chunk has been used, so nothing is copied.
type edge struct{ out chan handover }

func (e *edge) local() (sinkLocal, error)    { return e, nil }
func (e *edge) combine(sinkLocal) error      { return nil }
func (e *edge) finish(context.Context) error { return nil }
func (e *edge) push(ctx context.Context, c *vector.Chunk) error {
	if c.Rows() == 0 {
		return nil
	}
	h := handover{c, make(chan struct{})}
	select {
	case e.out <- h:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-h.ack
	return nil
}

// run is the state of one execution.
type run struct {
	q       *Query
	spools  map[int]*spool
	filters map[int]*joinFilter
	area    *spill.Area
	// spilling is the parent of the pools of operators that spill.
	spilling *memory.Pool

	mu      sync.Mutex
	cleanup []func()
}

// atEnd registers what release does.
func (r *run) atEnd(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanup = append(r.cleanup, f)
}

func (r *run) release() {
	r.mu.Lock()
	fs := r.cleanup
	r.cleanup = nil
	r.mu.Unlock()
	for i := len(fs) - 1; i >= 0; i-- {
		fs[i]()
	}
}

// account keeps a reservation equal to what an operator holds.
type account struct {
	pool *memory.Pool
	op   *profile.Operator
	mu   sync.Mutex
	held int64
}

// scanBytes is what operators that spill leave to scans and to what cannot spill: at least a quarter of the query's memory, at most half.
const scanBytes = 48 << 20

// spillable is the account of an operator that can spill. All of them together leave room for scans, and none may have all of what they
// share.
func (r *run) spillable(op *profile.Operator) *account {
	if r.spilling == nil {
		limit := r.q.Pool.Limit()
		r.spilling = r.q.Pool.Child("operators", limit-max(limit/4, min(limit/2, scanBytes)))
	}
	a := &account{pool: r.spilling.Child(op.Name, r.spilling.Limit()/4*3), op: op}
	r.atEnd(a.free)
	return a
}

// force adds n bytes even where a limit is met: the buffers that spilling itself needs.
func (a *account) force(n int64) {
	if n < 0 {
		a.pool.Release(-n)
	} else {
		a.pool.Force(n)
	}
	a.mu.Lock()
	a.held += n
	held := a.held
	a.mu.Unlock()
	a.peak(held)
}

// peak keeps the profile's greatest number.
func (a *account) peak(held int64) {
	for p := a.op.PeakBytes.Load(); held > p && !a.op.PeakBytes.CompareAndSwap(p, held); p = a.op.PeakBytes.Load() {
	}
}

// refused reports whether err says that memory is full, which spilling can help.
func refused(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.ID == "EXCEEDED_MEMORY_LIMIT"
}

// add changes what is held by n bytes. A refusal names the operator.
func (a *account) add(n int64) error {
	if n == 0 {
		return nil
	}
	if n < 0 {
		a.pool.Release(-n)
	} else if err := a.pool.Reserve(n); err != nil {
		return fault.Wrap(fault.Exhausted, err, "operator %s wanted %d bytes: raise limits.query.memory, or limits.memory where that is full", a.op.Name, n)
	}
	a.mu.Lock()
	a.held += n
	held := a.held
	a.mu.Unlock()
	a.peak(held)
	return nil
}

// free returns everything.
func (a *account) free() {
	a.mu.Lock()
	n := a.held
	a.held = 0
	a.mu.Unlock()
	if n > 0 {
		a.pool.Release(n)
	}
}

// share is one worker's part of an account: it reserves the growth of a size in steps.
type share struct {
	a       *account
	held    int64
	lenient bool // what is refused is taken all the same: it is too little to do without
}

const reserveStep = 256 << 10

// set tells that the part now has n bytes.
func (s *share) set(n int64) error {
	if n > 0 && n <= s.held && s.held-n < 4*reserveStep {
		return nil
	}
	want := int64(0)
	if n > reserveStep {
		want = (n + reserveStep - 1) / reserveStep * reserveStep
	} else if n > 0 {
		for want = 4 << 10; want < n; want *= 2 {
		}
	}
	if err := s.a.add(want - s.held); err != nil {
		if !s.lenient || !refused(err) {
			return err
		}
		s.a.force(want - s.held)
	}
	s.held = want
	return nil
}

// force is set without regard to limits.
func (s *share) force(n int64) {
	s.a.force(n - s.held)
	s.held = n
}

// guarded turns a panic of f into an internal error with an id that the log can be searched for.
func guarded(f func() error) error { return fault.Guard(f) }
