package exec

import (
	"context"
	"sync"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// When memory is full, a worker's tables take no more groups: rows of groups they have are still added, rows of others go to disk as
// they are, partitioned by the hash of their group. Once the input has ended, partitions are finished one by one: the workers' groups
// of a partition are merged into a fresh table, its rows from disk are added, and the groups are given out. A table that fills again splits its
// partition further. Many groups are merged in the same way when nothing is on disk, so that all workers take part.

// mergeParts is the number of partitions without anything on disk, serialGroups the number of groups below which one worker merges all.
const (
	mergeParts   = 16
	serialGroups = 16 << 10
)

// rawTypes are the columns of a row on disk: the keys of the set, then for each aggregate its inputs and, with a filter, whether the row
// passes it.
func (a *aggSink) rawTypes(set int) []vector.Type {
	var ts []vector.Type
	for _, c := range a.sets[set] {
		ts = append(ts, a.keyTypes[c])
	}
	for _, x := range a.x.Aggs {
		for _, e := range x.Inputs() {
			ts = append(ts, e.Type())
		}
		if x.Filter != nil {
			ts = append(ts, vector.Of(vector.Boolean))
		}
	}
	return ts
}

// makeRoom reserves what numbering n more rows may take. When that is refused the tables are frozen.
func (l *aggLocal) makeRoom(n int) error {
	if l.frozen || l.depth >= maxDepth {
		return nil
	}
	extra := int64(0)
	for _, g := range l.sets {
		if g.keys != nil && g.keys.Grows(n) {
			extra += g.bytes()
		}
	}
	if extra == 0 {
		return nil
	}
	l.floor = l.bytes() + extra
	l.mem.lenient = l.depth > 0 && l.floor < smallPart
	err := l.mem.set(l.floor)
	if err == nil && l.depth == 0 && l.mem.a.pool.Limit() > 0 && l.mem.a.pool.Used() > l.mem.a.pool.Limit()/8*5 && l.floor > smallPart {
		// Partitions will need room beside the first tables.
		l.frozen, l.floor, l.froze = true, 0, l.bytes()
		return l.mem.set(l.bytes())
	}
	if refused(err) {
		l.frozen, l.floor, l.froze = true, 0, l.bytes()
		return nil
	}
	return err
}

func (l *aggLocal) bytes() int64 {
	b := int64(0)
	for _, g := range l.sets {
		b += g.bytes()
	}
	return b
}

// settle makes the reservation what is held.
func (l *aggLocal) settle() error {
	n := l.bytes()
	l.mem.lenient = l.depth > 0 && n < smallPart
	err := l.mem.set(max(n, l.floor))
	switch {
	case !refused(err):
		return err
	case !l.frozen && l.depth < maxDepth:
		// What is there stays; it takes no more groups.
		l.frozen, l.floor, l.froze = true, 0, n
	case !l.frozen || n > l.froze+frozenGrowth:
		return err
	}
	l.mem.force(n)
	return nil
}

// frozenGrowth is how much the states of frozen groups may grow beyond the limit, in bytes.
const frozenGrowth = 1 << 20

// divert finds the rows of frozen groups and writes the others to disk. It gives the rows that were found and their groups.
func (l *aggLocal) divert(ctx context.Context, k int, cols []*vector.Vector, rows []uint16, n int) ([]uint16, []uint32, error) {
	g := l.sets[k]
	if l.found == nil {
		l.found, l.hashes = make([]int32, vector.Size), make([]uint64, vector.Size)
	}
	found := l.found[:len(rows)]
	if g.keys.Len() > 0 {
		g.keys.Find(cols, rows, found)
	} else {
		for i := range found {
			found[i] = -1
		}
	}
	l.hits, l.misses = l.hits[:0], l.misses[:0]
	ids := l.ids[:0]
	for p, i := range rows {
		if found[p] >= 0 {
			l.hits = append(l.hits, i)
			ids = append(ids, uint32(found[p]))
		} else {
			l.misses = append(l.misses, i)
		}
	}
	if len(l.misses) == 0 {
		return l.hits, ids, nil
	}
	if g.out == nil {
		var err error
		if g.out, err = l.s.r.scatter(l.s.mem, l.s.rawTypes(k), l.depth); err != nil {
			return nil, nil, err
		}
	}
	hashes := l.hashes[:len(l.misses)]
	g.keys.Hashes(cols, l.misses, hashes)
	raw := append([]*vector.Vector(nil), cols...)
	for a, x := range l.s.x.Aggs {
		filtered := x.Filter != nil
		var pass *vector.Vector
		if filtered {
			pass = vector.New(vector.Of(vector.Boolean), n)
			for _, i := range l.live[a] {
				pass.Bools[i] = true
			}
		}
		for c, e := range x.Inputs() {
			switch {
			case filtered && len(l.live[a]) == 0:
				raw = append(raw, vector.NewConstant(e.Type(), nil))
			case filtered:
				raw = append(raw, masked(l.argCols[a][c], pass, n))
			default:
				raw = append(raw, l.argCols[a][c])
			}
		}
		if filtered {
			raw = append(raw, pass)
		}
	}
	return l.hits, ids, g.out.add(ctx, raw, l.misses, hashes)
}

// masked is v with null where pass is false: the values there are not defined.
func masked(v, pass *vector.Vector, n int) *vector.Vector {
	if v.Form == vector.Constant || v.Type.Kind == vector.Null {
		return v
	}
	m := *v
	m.Valid = vector.NewBitmap(n, false)
	for i, ok := range pass.Bools[:n] {
		if ok && v.Valid.Get(i) {
			m.Valid.Set(i)
		}
	}
	return &m
}

// replay adds a chunk of rows from disk to set k.
func (l *aggLocal) replay(ctx context.Context, k int, c *vector.Chunk) error {
	at := len(l.s.sets[k])
	for a, x := range l.s.x.Aggs {
		in := len(x.Inputs())
		l.argCols[a] = append(l.argCols[a][:0], c.Cols[at:at+in]...)
		at += in
		if x.Filter != nil {
			l.live[a] = l.live[a][:0]
			for i, ok := range c.Cols[at].Bools[:c.N] {
				if ok {
					l.live[a] = append(l.live[a], uint16(i))
				}
			}
			at++
		}
	}
	if err := l.makeRoom(c.N); err != nil {
		return err
	}
	if err := l.feed(ctx, k, c.Cols[:len(l.s.sets[k])], kernel.Identity(c.N), nil, c.N); err != nil {
		return err
	}
	return l.settle()
}

// aggUnit is a partition of a set that is still to be finished.
type aggUnit struct {
	set, part, depth int
	frames           []spill.Frame
	resident         bool // the workers' groups belong to it
	last             *spill.File
}

// order lists a set's groups by partition.
type aggOrder struct {
	groups []uint32
	ends   []int
}

// partitionGroups sorts the groups of g by partition.
func partitionGroups(ctx context.Context, g *groups, n int) aggOrder {
	part := make([]uint8, g.n)
	counts := make([]int, n)
	hashes := make([]uint64, vector.Size)
	for lo := 0; lo < g.n; lo += vector.Size {
		if ctx.Err() != nil {
			return aggOrder{ends: make([]int, n)} // plan reports it
		}
		c := sliced(g.store.Cols, lo, min(lo+vector.Size, g.n))
		g.keys.Hashes(c.Cols, kernel.Identity(c.N), hashes)
		for i, h := range hashes[:c.N] {
			p := partOf(h, 0) * n / parts
			part[lo+i] = uint8(p)
			counts[p]++
		}
	}
	o := aggOrder{groups: make([]uint32, g.n), ends: make([]int, n)}
	at := 0
	for p, c := range counts {
		o.ends[p] = at
		at += c
	}
	for i, p := range part {
		o.groups[o.ends[p]] = uint32(i)
		o.ends[p]++
	}
	return o
}

// plan decides how the workers' tables become one result.
func (a *aggSink) plan(ctx context.Context) error {
	var with []*aggLocal
	most, spilled := 0, false
	for _, l := range a.locals {
		if !l.saw {
			continue
		}
		with = append(with, l)
		for _, g := range l.sets {
			if g.keys != nil {
				most = max(most, g.n)
			}
			if g.out != nil {
				spilled = true
				if err := g.out.finish(ctx); err != nil {
					return err
				}
			}
		}
	}
	if len(with) == 0 {
		a.total = a.locals[0]
		a.locals = nil
		return nil
	}
	if !spilled && (len(with) == 1 || most < serialGroups) {
		a.total = with[0]
		for _, l := range with[1:] {
			if err := a.merge(l); err != nil {
				return err
			}
		}
		a.locals = nil
		return nil
	}
	a.locals = with
	a.parts = mergeParts
	if spilled {
		a.parts = parts
	}
	order := int64(0)
	a.orders = make([][]aggOrder, len(with))
	for w, l := range with {
		a.orders[w] = make([]aggOrder, len(a.sets))
		for _, g := range l.sets {
			if g.keys == nil {
				continue
			}
			order += int64(5 * g.n)
		}
	}
	a.mem.force(order)
	var wg sync.WaitGroup
	for w, l := range with {
		wg.Go(func() {
			for k, g := range l.sets {
				if g.keys != nil {
					a.orders[w][k] = partitionGroups(ctx, g, a.parts)
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Units are taken from the end.
	for k := len(a.sets) - 1; k >= 0; k-- {
		if len(a.sets[k]) == 0 {
			a.units = append(a.units, aggUnit{set: k, resident: true, part: -1})
			continue
		}
		for p := a.parts - 1; p >= 0; p-- {
			u := aggUnit{set: k, part: p, resident: true}
			for _, l := range with {
				if g := l.sets[k]; g.out != nil {
					u.frames = append(u.frames, g.out.frames[p]...)
				}
			}
			a.units = append(a.units, u)
		}
	}
	return nil
}

// take gives the next unit; false when all are taken.
func (a *aggSink) take() (aggUnit, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.units) == 0 {
		return aggUnit{}, false
	}
	u := a.units[len(a.units)-1]
	a.units = a.units[:len(a.units)-1]
	return u, true
}

// partReader finishes partitions and gives their groups.
type partReader struct {
	a    *aggSink
	cur  *aggLocal
	unit aggUnit
	next int
	own  []aggUnit // of a partition that was split, in front of the shared ones
	to   [][]uint32
	g    kernel.Gatherer
}

func (r *partReader) chunk(ctx context.Context) (*vector.Chunk, error) {
	for {
		if r.cur != nil {
			if g := r.cur.sets[r.unit.set]; r.next < g.n {
				lo := r.next
				r.next = min(lo+vector.Size, g.n)
				return r.a.emit(g, lo, r.next)
			}
			if err := r.close(ctx); err != nil {
				return nil, err
			}
		}
		var u aggUnit
		if n := len(r.own); n > 0 {
			u, r.own = r.own[n-1], r.own[:n-1]
		} else {
			var ok bool
			if u, ok = r.a.take(); !ok {
				return nil, nil
			}
		}
		if err := r.load(ctx, u); err != nil {
			return nil, err
		}
	}
}

// close ends the current partition; what it sent to disk comes next.
func (r *partReader) close(ctx context.Context) error {
	c := r.cur
	r.cur = nil
	if out := c.sets[r.unit.set].out; out != nil {
		if err := out.finish(ctx); err != nil {
			return err
		}
		base := len(r.own)
		for p, fs := range out.frames {
			if len(fs) > 0 {
				r.own = append(r.own, aggUnit{set: r.unit.set, part: p, depth: c.depth, frames: fs})
			}
		}
		if len(r.own) > base {
			r.own[base].last = out.file // the stack's lowest is finished last
		}
	}
	c.sets = nil
	c.floor = 0
	if r.unit.last != nil {
		r.unit.last.Remove()
	}
	return c.mem.set(0)
}

func (r *partReader) load(ctx context.Context, u aggUnit) error {
	x, err := r.a.local()
	if err != nil {
		return err
	}
	c := x.(*aggLocal)
	c.depth = u.depth + 1
	c.ids, c.some = make([]uint32, vector.Size), make([]uint32, vector.Size)
	r.cur, r.unit, r.next = c, u, 0
	into := c.sets[u.set]
	if u.resident {
		for w, l := range r.a.locals {
			if err := r.mergePart(into, l.sets[u.set], w, u); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		// The groups were in memory already, so this is little; rows from disk are what may be refused.
		if b := c.bytes(); b > c.mem.held {
			c.mem.force(b)
		}
	}
	return frameRows(ctx, u.frames, r.a.rawTypes(u.set), func(chunk *vector.Chunk) error { return c.replay(ctx, u.set, chunk) })
}

// mergePart merges the groups of worker w that belong to the unit.
func (r *partReader) mergePart(into, from *groups, w int, u aggUnit) error {
	var to []uint32
	if u.part < 0 {
		to = []uint32{0}
	} else {
		o := r.a.orders[w][u.set]
		lo := 0
		if u.part > 0 {
			lo = o.ends[u.part-1]
		}
		mine := o.groups[lo:o.ends[u.part]]
		if len(mine) == 0 {
			return nil
		}
		for len(r.to) <= w {
			r.to = append(r.to, nil)
		}
		if len(r.to[w]) < from.n {
			r.to[w] = make([]uint32, from.n)
			for i := range r.to[w] {
				r.to[w][i] = expr.NoGroup
			}
		}
		to = r.to[w][:from.n]
		cols := make([]*vector.Vector, len(from.store.Cols))
		at := make([]int32, 0, vector.Size)
		ids := make([]uint32, vector.Size)
		for lo := 0; lo < len(mine); lo += vector.Size {
			part := mine[lo:min(lo+vector.Size, len(mine))]
			at = at[:0]
			for _, g := range part {
				at = append(at, int32(g))
			}
			for k, v := range from.store.Cols {
				cols[k] = r.g.Column(k, v, at, len(at))
			}
			into.upsert(cols, kernel.Identity(len(at)), ids[:len(at)])
			for i, g := range part {
				to[g] = ids[i]
			}
		}
		defer func() {
			for _, g := range mine {
				to[g] = expr.NoGroup
			}
		}()
		for _, acc := range into.accs {
			acc.Resize(into.n)
		}
	}
	for i, acc := range into.accs {
		if err := acc.Merge(from.accs[i], to); err != nil {
			return err
		}
	}
	return nil
}
