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
	if inner, outer := twice(x); inner != nil {
		if in, err = r.group(inner, in, op, &profile.Operator{}); err != nil {
			return nil, err
		}
		x = outer
	} else if apart := distinctSets(x); apart != nil {
		return r.mixed(x, apart, in, op)
	}
	return r.group(x, in, op, op)
}

// group makes the breaker of an aggregation of in. Memory and disk are counted for op, rows and time for counts.
func (r *run) group(x *plan.Aggregate, in *stream, op, counts *profile.Operator) (*stream, error) {
	a, err := r.aggSink(x, op)
	if err != nil {
		return nil, err
	}
	return r.breaker(in, counts, a, &aggSource{a: a}, typesOf(x.Cols), false), nil
}

// aggSink makes the sink of an aggregation.
func (r *run) aggSink(x *plan.Aggregate, op *profile.Operator) (*aggSink, error) {
	sets := x.Sets
	if sets == nil {
		all := make([]int, len(x.GroupBy))
		for i := range all {
			all[i] = i
		}
		sets = [][]int{all}
	}
	a := &aggSink{r: r, x: x, sets: sets, ctx: r.q.Context, mem: r.spillable(op)}
	a.gid = len(x.Cols) > len(x.GroupBy)+len(x.Aggs)
	for _, k := range x.GroupBy {
		a.keyTypes = append(a.keyTypes, k.Type())
	}
	_, err := a.local()
	return a, err
}

// aggSink groups rows in hash tables, one for each grouping set and worker. Few groups are merged when the input ends, many as they are
// read, partition by partition.
type aggSink struct {
	r        *run
	x        *plan.Aggregate
	sets     [][]int
	gid      bool
	keyTypes []vector.Type
	ctx      *expr.Context
	mem      *account
	total    *aggLocal

	locals []*aggLocal
	orders [][]aggOrder // by local and set, when partitioned
	parts  int
	mu     sync.Mutex
	units  []aggUnit
}

// groups is the state of one grouping set.
type groups struct {
	cols  []int      // positions in GroupBy
	keys  *hash.Keys // nil when the set is empty
	store *kernel.Store
	accs  []expr.Accumulator
	n     int
	out   *scatter // rows of groups that are not here
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
	depth   int
	frozen  bool  // no new groups
	floor   int64 // reserved for growth that has begun
	froze   int64 // bytes when frozen

	found        []int32
	hashes       []uint64
	hits, misses []uint16
	within       []bool
	shared       []uint16

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

func (l *aggLocal) push(ctx context.Context, c *vector.Chunk) error {
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
	if err := l.makeRoom(len(rows)); err != nil {
		return err
	}
	for k, g := range l.sets {
		if err := l.feed(ctx, k, l.pick(g.cols), rows, c.Sel, c.N); err != nil {
			return err
		}
	}
	return l.settle()
}

// feed adds rows to set k; sel is rows, or nil when these are all.
func (l *aggLocal) feed(ctx context.Context, k int, cols []*vector.Vector, rows, sel []uint16, n int) error {
	g := l.sets[k]
	var ids []uint32
	switch {
	case g.keys == nil:
	case l.frozen:
		var err error
		if rows, ids, err = l.divert(ctx, k, cols, rows, n); err != nil || len(rows) == 0 {
			return err
		}
		sel = rows
	default:
		ids = l.ids[:len(rows)]
		if fresh := g.upsert(cols, rows, ids); fresh {
			for _, a := range g.accs {
				a.Resize(g.n)
			}
		}
	}
	for a, acc := range g.accs {
		gs, live := ids, sel
		if l.filters[a] != nil {
			live = l.live[a]
			if l.frozen && ids != nil {
				live = l.both(live, rows, n)
			}
			if len(live) == 0 {
				continue
			}
			if ids != nil {
				gs = l.filtered(ids, rows, live, n)
			}
		}
		if err := acc.Add(gs, l.argCols[a], live, n); err != nil {
			return err
		}
	}
	return nil
}

// both gives the rows of live that are in rows.
func (l *aggLocal) both(live, rows []uint16, n int) []uint16 {
	if cap(l.within) < n {
		l.within = make([]bool, max(n, vector.Size))
	}
	clear(l.within[:n])
	for _, i := range rows {
		l.within[i] = true
	}
	l.shared = l.shared[:0]
	for _, i := range live {
		if l.within[i] {
			l.shared = append(l.shared, i)
		}
	}
	return l.shared
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
	a.locals = append(a.locals, s.(*aggLocal))
	return nil
}

func (a *aggSink) finish(ctx context.Context) error { return a.plan(ctx) }

// merge adds a worker's groups to those of total.
func (a *aggSink) merge(l *aggLocal) error {
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
	a.total.mem.force(held) // it was there in two parts
	return l.mem.set(0)
}

// aggSource gives the groups, a chunk a turn.
type aggSource struct {
	a    *aggSink
	mu   sync.Mutex
	set  int
	next int
}

func (s *aggSource) open(context.Context) (reader, error) {
	return &aggReader{s: s, parts: partReader{a: s.a}}, nil
}

type aggReader struct {
	s     *aggSource
	parts partReader
}

func (r *aggReader) close() error { return nil }

func (r *aggReader) next(ctx context.Context) (*vector.Chunk, error) {
	s := r.s
	if s.a.total == nil {
		return r.parts.chunk(ctx)
	}
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
	s.next = min(lo+vector.Size, g.n)
	return s.a.emit(g, lo, s.next)
}

// emit gives groups lo..hi-1 of a set.
func (a *aggSink) emit(g *groups, lo, hi int) (*vector.Chunk, error) {
	c := &vector.Chunk{N: hi - lo}
	gid := int64(0)
	for k, t := range a.keyTypes {
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
	if a.gid {
		c.Cols = append(c.Cols, vector.NewConstant(vector.Of(vector.BigInt), gid))
	}
	for k, acc := range g.accs {
		v, err := acc.Result(lo, hi)
		if err != nil {
			return nil, err
		}
		v.Type = a.x.Aggs[k].Typ
		c.Cols = append(c.Cols, v)
	}
	return c, nil
}
