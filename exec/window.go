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

// windowProgs are the compiled parts of the functions.
type windowProgs struct {
	partition, order []*expr.Program
	args             [][]*expr.Program
	filters          []*expr.Program
	bounds           [][2]*expr.Program
}

func (w *windowSource) programs() (*windowProgs, error) {
	p := &windowProgs{}
	var err error
	if p.partition, err = compileAll(w.x.PartitionBy, w.ctx); err != nil {
		return nil, err
	}
	for _, k := range w.x.OrderBy {
		q, err := expr.Compile(k.Expr, w.ctx)
		if err != nil {
			return nil, err
		}
		p.order = append(p.order, q)
	}
	for _, f := range w.x.Functions {
		in := f.Args
		var filter *expr.Program
		if f.Agg != nil {
			in = f.Agg.Inputs()
			if f.Agg.Filter != nil {
				if filter, err = expr.Compile(f.Agg.Filter, w.ctx); err != nil {
					return nil, err
				}
			}
			if _, err := expr.NewAccumulator(f.Agg, w.ctx); err != nil {
				return nil, err
			}
		}
		args, err := compileAll(in, w.ctx)
		if err != nil {
			return nil, err
		}
		var b [2]*expr.Program
		for k, e := range []expr.Expr{f.Frame.Start.Offset, f.Frame.End.Offset} {
			if e != nil {
				if b[k], err = expr.Compile(e, w.ctx); err != nil {
					return nil, err
				}
			}
		}
		p.args = append(p.args, args)
		p.filters = append(p.filters, filter)
		p.bounds = append(p.bounds, b)
	}
	return p, nil
}

func (w *windowSource) open(context.Context) (reader, error) {
	p, err := w.programs()
	if err != nil {
		return nil, err
	}
	return &windowReader{w: w, p: p, in: &sortReader{s: w.sorted, left: -1}, mem: share{a: w.mem}}, nil
}

// windowReader gathers a partition at a time from the sorted rows and gives it with the functions' columns.
type windowReader struct {
	w   *windowSource
	p   *windowProgs
	in  *sortReader
	mem share

	pending  *vector.Chunk // sorted chunk not used up
	at       int
	keys     [][]byte // partition key of each row of pending
	part     *kernel.Store
	results  []*vector.Vector
	next_    int
	finished bool
}

func (r *windowReader) close() error { return nil }

func (r *windowReader) next(ctx context.Context) (*vector.Chunk, error) {
	for r.part == nil || r.next_ >= r.part.N {
		ok, err := r.load(ctx)
		if err != nil || !ok {
			return nil, err
		}
	}
	lo := r.next_
	hi := min(lo+vector.Size, r.part.N)
	r.next_ = hi
	c := &vector.Chunk{N: hi - lo}
	for _, v := range r.part.Cols {
		c.Cols = append(c.Cols, kernel.Slice(v, lo, hi))
	}
	for _, v := range r.results {
		c.Cols = append(c.Cols, kernel.Slice(v, lo, hi))
	}
	return c, nil
}

// load reads the next partition and computes its functions.
func (r *windowReader) load(ctx context.Context) (bool, error) {
	r.part, r.next_ = kernel.NewStore(r.w.types), 0
	var key []byte
	started := false
	for {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if r.pending == nil || r.at >= r.pending.N {
			if r.finished {
				break
			}
			c, err := r.in.next(ctx)
			if err != nil {
				return false, err
			}
			if c == nil {
				r.finished = true
				break
			}
			r.pending, r.at = c, 0
			if r.keys, err = rowKeys(r.p.partition, c); err != nil {
				return false, err
			}
		}
		lo := r.at
		if !started {
			key = append(key[:0], r.keys[lo]...)
			started = true
		}
		for r.at < r.pending.N && bytes.Equal(r.keys[r.at], key) {
			r.at++
		}
		if r.at > lo {
			r.part.Append(r.pending.Cols, kernel.Identity(r.at)[lo:], r.pending.N)
			if err := r.mem.set(r.part.Bytes()); err != nil {
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
	return true, r.compute(ctx)
}

// rowKeys encodes expressions over the rows of a chunk without a selection.
func rowKeys(ps []*expr.Program, c *vector.Chunk) ([][]byte, error) {
	cols, err := evalAll(ps, c, nil)
	if err != nil {
		return nil, err
	}
	keys := make([][]byte, c.N)
	for i := range keys {
		var k []byte
		for _, v := range cols {
			k = expr.AppendKey(k, v, i)
		}
		keys[i] = k
	}
	return keys, nil
}

// chunks gives the partition's rows in pieces.
func (r *windowReader) chunks(f func(lo int, c *vector.Chunk) error) error {
	for lo := 0; lo < r.part.N; lo += vector.Size {
		hi := min(lo+vector.Size, r.part.N)
		c := &vector.Chunk{N: hi - lo}
		for _, v := range r.part.Cols {
			c.Cols = append(c.Cols, kernel.Slice(v, lo, hi))
		}
		if err := f(lo, c); err != nil {
			return err
		}
	}
	return nil
}

// column evaluates a program over the whole partition.
func (r *windowReader) column(p *expr.Program) (*vector.Vector, error) {
	s := kernel.NewStore([]vector.Type{p.Type()})
	err := r.chunks(func(_ int, c *vector.Chunk) error {
		v, err := p.Eval(c)
		if err != nil {
			return err
		}
		s.Append([]*vector.Vector{v}, nil, c.N)
		return nil
	})
	return s.Cols[0], err
}

func (r *windowReader) compute(ctx context.Context) error {
	n := r.part.N
	pt := &partition{n: n, ctx: ctx}
	// peer[i] is the number of the group of rows equal in the order; first and last row of each.
	pt.group = make([]int, n)
	var prev []byte
	err := r.chunks(func(lo int, c *vector.Chunk) error {
		keys, err := rowKeys(r.p.order, c)
		if err != nil {
			return err
		}
		for i, k := range keys {
			if lo+i == 0 || !bytes.Equal(k, prev) {
				pt.starts = append(pt.starts, lo+i)
			}
			prev = k
			pt.group[lo+i] = len(pt.starts) - 1
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(r.p.order) > 0 {
		if pt.order, err = r.column(r.p.order[0]); err != nil {
			return err
		}
		pt.key = r.w.x.OrderBy[0]
	}
	r.results = r.results[:0]
	for k, f := range r.w.x.Functions {
		var args []*vector.Vector
		for _, p := range r.p.args[k] {
			v, err := r.column(p)
			if err != nil {
				return err
			}
			args = append(args, v)
		}
		var keep *vector.Vector
		if r.p.filters[k] != nil {
			if keep, err = r.column(r.p.filters[k]); err != nil {
				return err
			}
		}
		pt.offsets = [2]*vector.Vector{}
		for e, p := range r.p.bounds[k] {
			if p != nil {
				if pt.offsets[e], err = r.column(p); err != nil {
					return err
				}
			}
		}
		v, err := pt.evaluate(f, args, keep, r.w.ctx)
		if err != nil {
			return err
		}
		r.results = append(r.results, v)
	}
	return nil
}
