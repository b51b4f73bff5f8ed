package exec

import (
	"bytes"
	"context"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// window sorts its input by partition and order, then computes every function partition by partition.
func (r *run) window(x *plan.Window, op *profile.Operator) (*stream, error) {
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	keys := make([]expr.SortKey, 0, len(x.PartitionBy)+len(x.OrderBy))
	for _, p := range x.PartitionBy {
		keys = append(keys, expr.SortKey{Expr: p})
	}
	keys = append(keys, x.OrderBy...)
	s := &sortSink{keys: keys, ctx: r.q.Context, types: in.types, r: r, mem: r.spillable(op), keep: -1}
	if _, err := s.local(); err != nil {
		return nil, err
	}
	w := &windowSource{x: x, sorted: s, ctx: r.q.Context, mem: s.mem, types: in.types}
	if _, err := w.programs(); err != nil {
		return nil, err
	}
	return r.breaker(in, op, s, &solo{source: w}, typesOf(x.Cols), true), nil
}

type windowSource struct {
	x      *plan.Window
	sorted *sortSink
	ctx    *expr.Context
	mem    *account
	types  []vector.Type
}

// windowProgs are the compiled parts of the functions. What they are evaluated from is computed once for each row, as the columns of
// exprs, and found by number.
type windowProgs struct {
	partition, order []*expr.Program
	exprs            []expr.Expr
	derived          []*expr.Program
	first            int // of the first order key; -1 for none
	calls            []windowCols
}

// windowCols are the derived columns of a function; -1 for none.
type windowCols struct {
	args    []int
	filter  int
	offsets [2]int
}

// column numbers an expression.
func (p *windowProgs) column(e expr.Expr) int {
	if e == nil {
		return -1
	}
	for k, x := range p.exprs {
		if expr.Equal(x, e) && !expr.Volatile(e) {
			return k
		}
	}
	p.exprs = append(p.exprs, e)
	return len(p.exprs) - 1
}

func (w *windowSource) programs() (*windowProgs, error) {
	p := &windowProgs{first: -1}
	var err error
	if p.partition, err = compileAll(w.x.PartitionBy, w.ctx); err != nil {
		return nil, err
	}
	for k, o := range w.x.OrderBy {
		q, err := expr.Compile(o.Expr, w.ctx)
		if err != nil {
			return nil, err
		}
		p.order = append(p.order, q)
		if k == 0 {
			p.first = p.column(o.Expr)
		}
	}
	for _, f := range w.x.Functions {
		in, c := f.Args, windowCols{filter: -1}
		if f.Agg != nil {
			in = f.Agg.Inputs()
			if f.Agg.Filter != nil {
				c.filter = p.column(f.Agg.Filter)
			}
			if _, err := expr.NewAccumulator(f.Agg, w.ctx); err != nil {
				return nil, err
			}
		}
		for _, e := range in {
			c.args = append(c.args, p.column(e))
		}
		c.offsets = [2]int{p.column(f.Frame.Start.Offset), p.column(f.Frame.End.Offset)}
		p.calls = append(p.calls, c)
	}
	p.derived, err = compileAll(p.exprs, w.ctx)
	return p, err
}

func (w *windowSource) open(context.Context) (reader, error) {
	p, err := w.programs()
	if err != nil {
		return nil, err
	}
	r := &windowReader{w: w, p: p, in: &sortReader{s: w.sorted, left: -1}, mem: share{a: w.mem}, states: share{a: w.mem}}
	var types []vector.Type
	for _, e := range p.exprs {
		types = append(types, e.Type())
	}
	big := vector.Of(vector.BigInt)
	// Each function reads at the row, at both ends of its frame and at a row of its own.
	keep := 3 + 3*len(w.x.Functions)
	r.rows = newPages(w.types, 1)
	r.part.derived = newPages(append(types, big), keep)
	r.part.starts = newPages([]vector.Type{big}, keep)
	r.part.order = p.first
	if len(w.x.OrderBy) > 0 {
		r.part.key = w.x.OrderBy[0]
	}
	return r, nil
}

// windowReader gathers a partition at a time from the sorted rows and gives it with the functions' columns. A partition that memory does not hold
// is kept on disk, where the functions read what they need of it.
type windowReader struct {
	w      *windowSource
	p      *windowProgs
	in     *sortReader
	mem    share
	states share // of accumulators

	pending  *vector.Chunk // sorted chunk not used up
	at       int
	keys     rowKeys // of the partition, of each row of pending
	peers    rowKeys // of the order
	derived  []*vector.Vector
	rows     *pages
	part     partition
	evals    []*windowEval
	next_    int
	finished bool
}

func (r *windowReader) close() error { return nil }

func (r *windowReader) next(ctx context.Context) (*vector.Chunk, error) {
	for r.next_ >= r.rows.n {
		ok, err := r.load(ctx)
		if err != nil || !ok {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := &vector.Chunk{}
	lo := r.next_
	for k := range r.w.types {
		var v *vector.Vector
		v, _, c.N = r.rows.blockOf(k, lo)
		c.Cols = append(c.Cols, v)
	}
	if len(r.w.types) == 0 {
		c.N = min(vector.Size, r.rows.n-lo)
	}
	r.next_ += c.N
	held := int64(0)
	for _, e := range r.evals {
		v, err := e.rows(ctx, lo, r.next_)
		if err != nil {
			return nil, err
		}
		c.Cols = append(c.Cols, v)
		held += e.bytes()
	}
	for _, t := range []*pages{r.rows, r.part.derived, r.part.starts} {
		if t.err != nil {
			return nil, t.err
		}
	}
	r.states.lenient = held < frozenGrowth
	return c, r.states.set(held)
}

// load reads the next partition.
func (r *windowReader) load(ctx context.Context) (bool, error) {
	p := &r.part
	r.rows.reset()
	p.derived.reset()
	p.starts.reset()
	r.next_ = 0
	var key, peer []byte
	started := false
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if r.pending == nil || r.at >= r.pending.N {
			if r.finished {
				break
			}
			if err := r.advance(ctx); err != nil {
				return false, err
			}
			if r.finished {
				break
			}
		}
		lo := r.at
		if !started {
			key = append(key[:0], r.keys.key(lo)...)
			started = true
		}
		for r.at < r.pending.N && bytes.Equal(r.keys.key(r.at), key) {
			r.at++
		}
		if r.at > lo {
			var err error
			if peer, err = r.take(lo, r.at, peer); err != nil {
				return false, err
			}
		}
		if r.at < r.pending.N {
			break
		}
	}
	if !started {
		return false, nil
	}
	for _, t := range []*pages{r.rows, p.derived, p.starts} {
		if err := t.finish(r.w.mem); err != nil {
			return false, err
		}
	}
	p.n = r.rows.n
	r.evals = r.evals[:0]
	for k, f := range r.w.x.Functions {
		r.evals = append(r.evals, newWindowEval(p, f, r.p.calls[k], r.w.ctx))
	}
	return true, nil
}

// advance takes the next sorted chunk and what is computed from its rows.
func (r *windowReader) advance(ctx context.Context) error {
	c, err := r.in.next(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		r.finished = true
		return nil
	}
	r.pending, r.at = c, 0
	if err := r.keys.fill(r.p.partition, c); err != nil {
		return err
	}
	if err := r.peers.fill(r.p.order, c); err != nil {
		return err
	}
	r.derived, err = evalAll(r.p.derived, c, r.derived)
	return err
}

// take adds rows lo..hi-1 of the pending chunk to the partition; peer is the order key of the row before, and that of the last row is given.
func (r *windowReader) take(lo, hi int, peer []byte) ([]byte, error) {
	p, c := &r.part, r.pending
	n := r.rows.n
	group := vector.New(vector.Of(vector.BigInt), hi)
	starts := vector.New(vector.Of(vector.BigInt), 0)
	g := p.starts.n - 1
	for i := lo; i < hi; i++ {
		if k := r.peers.key(i); n+i-lo == 0 || !bytes.Equal(k, peer) {
			g++
			starts.I64 = append(starts.I64, int64(n+i-lo))
			peer = append(peer[:0], k...)
		}
		group.I64[i] = int64(g)
	}
	rows := kernel.Identity(hi)[lo:]
	run := r.w.sorted.r
	if err := r.rows.append(r.w.mem, c.Cols, rows, c.N); err != nil {
		return nil, err
	}
	if err := p.derived.append(r.w.mem, append(r.derived[:len(r.derived):len(r.derived)], group), rows, c.N); err != nil {
		return nil, err
	}
	if err := p.starts.append(r.w.mem, []*vector.Vector{starts}, kernel.Identity(len(starts.I64)), len(starts.I64)); err != nil {
		return nil, err
	}
	held := r.rows.bytes() + p.derived.bytes() + p.starts.bytes()
	r.mem.lenient = r.rows.file != nil // it holds pages only
	err := r.mem.set(held)
	if !refused(err) {
		return peer, err
	}
	for _, t := range []*pages{r.rows, p.derived, p.starts} {
		if err := t.toDisk(run, r.w.mem); err != nil {
			return nil, err
		}
	}
	r.mem.force(r.rows.bytes() + p.derived.bytes() + p.starts.bytes())
	return peer, nil
}

// rowKeys are encodings of expressions over the rows of a chunk.
type rowKeys struct {
	cols  []*vector.Vector
	arena []byte
	ends  []int
}

// fill encodes the rows of a chunk without a selection.
func (k *rowKeys) fill(ps []*expr.Program, c *vector.Chunk) (err error) {
	if k.cols, err = evalAll(ps, c, k.cols); err != nil {
		return err
	}
	k.arena, k.ends = k.arena[:0], k.ends[:0]
	for i := range c.N {
		for _, v := range k.cols {
			k.arena = expr.AppendKey(k.arena, v, i)
		}
		k.ends = append(k.ends, len(k.arena))
	}
	return nil
}

func (k *rowKeys) key(i int) []byte {
	lo := 0
	if i > 0 {
		lo = k.ends[i-1]
	}
	return k.arena[lo:k.ends[i]]
}
