package exec

import (
	"context"
	"sync"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

func (r *run) aggregate(x *plan.Aggregate, op *profile.Operator) (*stream, error) {
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	sets := x.Sets
	if sets == nil {
		all := make([]int, len(x.GroupBy))
		for i := range all {
			all[i] = i
		}
		sets = [][]int{all}
	}
	a := &aggSink{x: x, sets: sets, ctx: r.q.Context, mem: r.account(op)}
	a.gid = len(x.Cols) > len(x.GroupBy)+len(x.Aggs)
	for _, k := range x.GroupBy {
		a.keyTypes = append(a.keyTypes, k.Type())
	}
	if _, err := a.local(); err != nil {
		return nil, err
	}
	return r.breaker(in, op, a, &aggSource{a: a}, typesOf(x.Cols), false), nil
}

// aggSink groups rows in hash tables, one for each grouping set and worker. Combine merges the workers' tables.
type aggSink struct {
	x        *plan.Aggregate
	sets     [][]int
	gid      bool
	keyTypes []vector.Type
	ctx      *expr.Context
	mem      *account
	total    *aggLocal
}

// groups is the state of one grouping set.
type groups struct {
	cols  []int      // positions in GroupBy
	keys  *hash.Keys // nil when the set is empty
	store *kernel.Store
	accs  []expr.Accumulator
	n     int
}

func (g *groups) bytes() int64 {
	b := int64(0)
	if g.keys != nil {
		b = g.keys.Bytes() + g.store.Bytes()
	}
	for _, a := range g.accs {
		b += a.Bytes()
	}
	return b
}

type aggLocal struct {
	s       *aggSink
	keys    []*expr.Program
	inputs  [][]*expr.Program
	filters []*expr.Program // nil entries: no filter
	sets    []*groups
	mem     share
	saw     bool

	keyCols, setCols []*vector.Vector
	argCols          [][]*vector.Vector
	ids              []uint32
	byRow            []uint32
	some             []uint32
	live             [][]uint16
}

func (a *aggSink) local() (sinkLocal, error) {
	l := &aggLocal{s: a, mem: share{a: a.mem}}
	var err error
	if l.keys, err = compileAll(a.x.GroupBy, a.ctx); err != nil {
		return nil, err
	}
	for _, g := range a.x.Aggs {
		in, err := compileAll(g.Inputs(), a.ctx)
		if err != nil {
			return nil, err
		}
		l.inputs = append(l.inputs, in)
		var f *expr.Program
		if g.Filter != nil {
			if f, err = expr.Compile(g.Filter, a.ctx); err != nil {
				return nil, err
			}
		}
		l.filters = append(l.filters, f)
	}
	l.argCols = make([][]*vector.Vector, len(a.x.Aggs))
	l.live = make([][]uint16, len(a.x.Aggs))
	for _, cols := range a.sets {
		g := &groups{cols: cols}
		if len(cols) > 0 {
			var ts []vector.Type
			for _, c := range cols {
				ts = append(ts, a.keyTypes[c])
			}
			g.keys, g.store = hash.NewKeys(ts), kernel.NewStore(ts)
		}
		for _, x := range a.x.Aggs {
			acc, err := expr.NewAccumulator(x, a.ctx)
			if err != nil {
				return nil, err
			}
			if len(cols) == 0 {
				acc.Resize(1)
			}
			g.accs = append(g.accs, acc)
		}
		if len(cols) == 0 {
			g.n = 1
		}
		l.sets = append(l.sets, g)
	}
	return l, nil
}

func (l *aggLocal) push(_ context.Context, c *vector.Chunk) error {
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	if len(rows) == 0 {
		return nil
	}
	l.saw = true
	var err error
	if l.keyCols, err = evalAll(l.keys, c, l.keyCols); err != nil {
		return err
	}
	for k, ps := range l.inputs {
		sub := *c
		if f := l.filters[k]; f != nil {
			if l.live[k], err = f.Filter(c, c.Sel, l.live[k]); err != nil {
				return err
			}
			sub.Sel = l.live[k]
			if len(sub.Sel) == 0 {
				continue
			}
		}
		if l.argCols[k], err = evalAll(ps, &sub, l.argCols[k]); err != nil {
			return err
		}
	}
	if cap(l.ids) < len(rows) {
		l.ids, l.some = make([]uint32, vector.Size), make([]uint32, vector.Size)
	}
	for _, g := range l.sets {
		var ids []uint32
		if g.keys != nil {
			ids = l.ids[:len(rows)]
			if fresh := g.upsert(l.pick(g.cols), rows, ids); fresh {
				for _, a := range g.accs {
					a.Resize(g.n)
				}
			}
		}
		for k, acc := range g.accs {
			gs, sel := ids, c.Sel
			if l.filters[k] != nil {
				sel = l.live[k]
				if len(sel) == 0 {
					continue
				}
				if ids != nil {
					gs = l.filtered(ids, rows, sel, c.N)
				}
			}
			if err := acc.Add(gs, l.argCols[k], sel, c.N); err != nil {
				return err
			}
		}
	}
	held := int64(0)
	for _, g := range l.sets {
		held += g.bytes()
	}
	return l.mem.set(held)
}

func (l *aggLocal) pick(cols []int) []*vector.Vector {
	l.setCols = l.setCols[:0]
	for _, c := range cols {
		l.setCols = append(l.setCols, l.keyCols[c])
	}
	return l.setCols
}

// upsert numbers rows and keeps the keys of new groups; it reports whether there are any.
func (g *groups) upsert(cols []*vector.Vector, rows []uint16, ids []uint32) bool {
	fresh := g.keys.Upsert(cols, rows, ids)
	if len(fresh) == 0 {
		return false
	}
	at := make([]uint16, len(fresh))
	for k, p := range fresh {
		at[k] = rows[p]
	}
	g.store.Append(cols, at, 0)
	g.n = g.keys.Len()
	return true
}

// filtered gives the groups of the rows of sel, a part of rows.
func (l *aggLocal) filtered(ids []uint32, rows, sel []uint16, n int) []uint32 {
	if cap(l.byRow) < n {
		l.byRow = make([]uint32, max(n, vector.Size))
	}
	for p, i := range rows {
		l.byRow[:n][i] = ids[p]
	}
	out := l.some[:len(sel)]
	for p, i := range sel {
		out[p] = l.byRow[i]
	}
	return out
}

func (a *aggSink) combine(s sinkLocal) error {
	l := s.(*aggLocal)
	if a.total == nil {
		a.total = l
		return nil
	}
	if !l.saw {
		return nil
	}
	for k, from := range l.sets {
		into := a.total.sets[k]
		to := make([]uint32, from.n)
		if from.keys != nil {
			cols := make([]*vector.Vector, len(from.store.Cols))
			for lo := 0; lo < from.n; lo += vector.Size {
				hi := min(lo+vector.Size, from.n)
				for c, v := range from.store.Cols {
					cols[c] = kernel.Slice(v, lo, hi)
				}
				into.upsert(cols, kernel.Identity(hi-lo), to[lo:hi])
			}
			for _, acc := range into.accs {
				acc.Resize(into.n)
			}
		}
		for i, acc := range into.accs {
			if err := acc.Merge(from.accs[i], to); err != nil {
				return err
			}
		}
	}
	l.sets = nil
	held := int64(0)
	for _, g := range a.total.sets {
		held += g.bytes()
	}
	if err := a.total.mem.set(held); err != nil {
		return err
	}
	return l.mem.set(0)
}

func (a *aggSink) finish(context.Context) error { return nil }

// aggSource gives the groups, a chunk a turn.
type aggSource struct {
	a    *aggSink
	mu   sync.Mutex
	set  int
	next int
}

func (s *aggSource) open(context.Context) (reader, error) { return aggReader{s}, nil }

type aggReader struct{ s *aggSource }

func (r aggReader) close() error { return nil }

func (r aggReader) next(context.Context) (*vector.Chunk, error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.set < len(s.a.total.sets) && s.next >= s.a.total.sets[s.set].n {
		s.set++
		s.next = 0
	}
	if s.set >= len(s.a.total.sets) {
		return nil, nil
	}
	g := s.a.total.sets[s.set]
	lo := s.next
	hi := min(lo+vector.Size, g.n)
	s.next = hi
	c := &vector.Chunk{N: hi - lo}
	gid := int64(0)
	for k, t := range s.a.keyTypes {
		gid <<= 1
		var col *vector.Vector
		for p, at := range g.cols {
			if at == k {
				col = kernel.Slice(g.store.Cols[p], lo, hi)
			}
		}
		if col == nil {
			gid |= 1
			col = vector.NewConstant(t, nil)
		}
		c.Cols = append(c.Cols, col)
	}
	if s.a.gid {
		c.Cols = append(c.Cols, vector.NewConstant(vector.Of(vector.BigInt), gid))
	}
	for k, acc := range g.accs {
		v, err := acc.Result(lo, hi)
		if err != nil {
			return nil, err
		}
		v.Type = s.a.x.Aggs[k].Typ
		c.Cols = append(c.Cols, v)
	}
	return c, nil
}
