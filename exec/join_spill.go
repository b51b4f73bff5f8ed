package exec

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// A join whose build side does not fit writes both sides to disk, partitioned by the hash of the keys, and joins partition by
// partition once the probe side has ended. A build partition that does not fit either is split again; where splitting does not help,
// because all its rows have one key or the join has no keys, it is joined block by block: as many build rows as memory holds are joined with
// all probe rows, and so on. Which probe rows have met a partner is carried from block to block.

// joinSpill is the part of a join that is on disk.
type joinSpill struct {
	on    atomic.Bool
	mu    sync.Mutex
	build [parts][]spill.Frame
	probe [parts][]spill.Frame
	units []joinUnit
	begun bool
	// active has the state that a chunk of a spilledSource is to be joined with.
	active sync.Map // *vector.Chunk -> *joinWork
}

// joinUnit is a partition of both sides.
type joinUnit struct {
	depth        int
	build, probe []spill.Frame
	last         []*spill.File // not needed after it
	blocks       bool          // is to be joined block by block
}

// carry is which probe rows of a partition have met a partner in the blocks so far. All methods take nil, as for a partition in one block.
type carry struct {
	seen []uint64
	base int  // of the chunk at hand
	last bool // the block at hand
}

// load sets seen for rows of the chunk at hand.
func (c *carry) load(rows []uint16, seen []bool) {
	for _, i := range rows {
		seen[i] = c != nil && c.seen[(c.base+int(i))>>6]>>((c.base+int(i))&63)&1 != 0
	}
}

// store keeps seen, and reports whether it is final.
func (c *carry) store(rows []uint16, seen []bool) bool {
	if c == nil {
		return true
	}
	for _, i := range rows {
		if seen[i] {
			c.seen[(c.base+int(i))>>6] |= 1 << ((c.base + int(i)) & 63)
		}
	}
	return c.last
}

// toDisk writes build rows, columns and then keys.
func (l *buildLocal) toDisk(ctx context.Context, cols []*vector.Vector, sel []uint16, n int) error {
	if sel == nil {
		sel = kernel.Identity(n)
	}
	if len(sel) == 0 {
		return nil
	}
	j := l.j
	keys := cols[len(j.rightTypes):]
	if l.out == nil {
		var err error
		if l.out, err = j.run.scatter(j.mem, l.types, 0); err != nil {
			return err
		}
	}
	for k, c := range keys {
		if l.null || j.nullSafe(k) || c.Valid == nil && c.Type.Kind != vector.Null {
			continue
		}
		for _, i := range sel {
			if c.IsNull(int(i)) {
				l.null = true
				break
			}
		}
	}
	hashes := make([]uint64, len(sel))
	j.hasher().hashes(keys, sel, hashes)
	return l.out.add(ctx, cols, sel, hashes)
}

// keyHasher hashes keys of both sides; without keys all rows have one hash.
type keyHasher struct{ keys *hash.Keys }

func (h keyHasher) hashes(cols []*vector.Vector, rows []uint16, dst []uint64) {
	if h.keys == nil {
		clear(dst[:len(rows)])
		return
	}
	h.keys.Hashes(cols, rows, dst)
}

func (j *joinState) hasher() keyHasher {
	if len(j.x.RightKeys) == 0 {
		return keyHasher{}
	}
	types := make([]vector.Type, len(j.x.RightKeys))
	for k, e := range j.x.RightKeys {
		types[k] = e.Type()
	}
	return keyHasher{hash.NewKeys(types)}
}

// dump writes what the worker has gathered, and makes all workers write from now on.
func (l *buildLocal) dump(ctx context.Context) error {
	l.j.spill.on.Store(true)
	if l.store == nil {
		return l.mem.set(0)
	}
	for lo := 0; lo < l.store.N; lo += vector.Size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := sliced(l.store.Cols, lo, min(lo+vector.Size, l.store.N))
		if err := l.toDisk(ctx, c.Cols, nil, c.N); err != nil {
			return err
		}
	}
	l.store = kernel.NewStore(l.types)
	return l.mem.set(0)
}

// spill ends the build side on disk.
func (b *buildSink) spill(ctx context.Context) error {
	j := b.j
	j.spill.on.Store(true)
	j.keys, j.dense, j.heads, j.next, j.matched, j.store = nil, nil, nil, nil, nil, nil
	if err := b.tables.set(0); err != nil {
		return err
	}
	for _, l := range b.locals {
		if err := l.dump(ctx); err != nil {
			return err
		}
		if l.out == nil {
			continue
		}
		if err := l.out.finish(ctx); err != nil {
			return err
		}
		j.nullKey = j.nullKey || l.null
		for p, fs := range l.out.frames {
			j.any = j.any || len(fs) > 0
			j.spill.build[p] = append(j.spill.build[p], fs...)
		}
	}
	for _, f := range j.x.RuntimeFilters {
		j.run.filters[f.ID].skip()
	}
	return nil
}

// rawTypes are the columns of a probe row on disk: the left columns, then the keys.
func (j *joinState) probeTypes() []vector.Type {
	ts := append([]vector.Type(nil), j.leftTypes...)
	for _, k := range j.x.LeftKeys {
		ts = append(ts, k.Type())
	}
	return ts
}

// probeSpill writes the probe rows of one worker to disk.
type probeSpill struct {
	out    *scatter
	keys   keyHasher
	hashes []uint64
	rows   []uint16
}

// add writes rows of c with their keys. Rows that can neither match nor pass unmatched are dropped.
func (d *probeSpill) add(ctx context.Context, j *joinState, c *vector.Chunk, keys []*vector.Vector, rows []uint16) error {
	if d.out == nil {
		var err error
		if d.out, err = j.run.scatter(j.mem, j.probeTypes(), 0); err != nil {
			return err
		}
		d.keys, d.hashes = j.hasher(), make([]uint64, vector.Size)
		d.rows = make([]uint16, 0, vector.Size)
	}
	switch j.x.Kind {
	case plan.Inner, plan.Semi, plan.Right:
		rows = j.usable(keys, rows, d.rows[:0], false)
	}
	if len(rows) == 0 {
		return nil
	}
	d.keys.hashes(keys, rows, d.hashes)
	cols := append(append(make([]*vector.Vector, 0, len(c.Cols)+len(keys)), c.Cols[:len(j.leftTypes)]...), keys...)
	return d.out.add(ctx, cols, rows, d.hashes[:len(rows)])
}

// end hands over what was written.
func (d *probeSpill) end(ctx context.Context, j *joinState) error {
	if d.out == nil {
		return nil
	}
	if err := d.out.finish(ctx); err != nil {
		return err
	}
	sp := &j.spill
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for p, fs := range d.out.frames {
		sp.probe[p] = append(sp.probe[p], fs...)
	}
	return nil
}

// spilledSource gives the probe rows of partitions, each worker those of a partition of its own, and after them what an outer join gives of
// the build side. It is read after the probe side has ended; without anything on disk it is empty.
type spilledSource struct{ j *joinState }

func (s *spilledSource) open(context.Context) (reader, error) {
	return &spilledReader{j: s.j, mem: share{a: s.j.mem}, tables: share{a: s.j.mem}}, nil
}

// smallPart is the size in bytes of a partition that is worked on whatever the limits say: splitting it would win nothing.
const smallPart = 256 << 10

// joinWork is a partition being joined.
type joinWork struct {
	j       *joinState
	probe   *probeLocal // nil: loop joins
	loop    *loopLocal
	through bool // the chunk is a result already
}

// block sets what is carried between blocks, nil for none.
func (w *joinWork) block(c *carry) {
	if w.probe != nil {
		w.probe.carry = c
	} else {
		w.loop.carry = c
	}
}

type spilledReader struct {
	j      *joinState
	own    []joinUnit
	mem    share // rows
	tables share

	work   *joinWork
	unit   joinUnit
	out    vector.Chunk
	rd     spill.Reader
	frame  int
	cols   []*vector.Vector
	at     int
	unseen *unmatchedReader

	carry *carry // of a partition that is joined block by block
	built int    // frames of the build side in this block and those before
	base  int    // first row of cols in the partition's probe rows
}

func (r *spilledReader) close() error {
	r.j.spill.active.Delete(&r.out)
	return nil
}

func (r *spilledReader) take() (joinUnit, bool) {
	if n := len(r.own); n > 0 {
		u := r.own[n-1]
		r.own = r.own[:n-1]
		return u, true
	}
	sp := &r.j.spill
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if !sp.begun {
		sp.begun = true
		for p := range parts {
			if len(sp.build[p])+len(sp.probe[p]) > 0 {
				sp.units = append(sp.units, joinUnit{build: sp.build[p], probe: sp.probe[p], blocks: len(r.j.x.LeftKeys) == 0})
			}
		}
	}
	if len(sp.units) == 0 {
		return joinUnit{}, false
	}
	u := sp.units[len(sp.units)-1]
	sp.units = sp.units[:len(sp.units)-1]
	return u, true
}

func (r *spilledReader) next(ctx context.Context) (*vector.Chunk, error) {
	if !r.j.spill.on.Load() {
		return nil, nil
	}
	for {
		if r.work == nil {
			u, ok := r.take()
			if !ok {
				return nil, nil
			}
			if err := r.load(ctx, u); err != nil {
				return nil, err
			}
			continue
		}
		c, err := r.chunk(ctx)
		if err != nil {
			return nil, err
		}
		if c != nil {
			return c, nil
		}
		if r.carry != nil && r.built < len(r.unit.build) {
			if err := r.nextBlock(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if err := r.end(); err != nil {
			return nil, err
		}
	}
}

// end frees the partition.
func (r *spilledReader) end() error {
	r.work, r.unseen, r.cols = nil, nil, nil
	if r.carry != nil {
		r.j.mem.force(-int64(8 * len(r.carry.seen)))
		r.carry = nil
	}
	for _, f := range r.unit.last {
		f.Remove()
	}
	r.unit = joinUnit{}
	if err := r.mem.set(0); err != nil {
		return err
	}
	return r.tables.set(0)
}

// chunk gives the next chunk of the partition.
func (r *spilledReader) chunk(ctx context.Context) (*vector.Chunk, error) {
	for r.unseen == nil {
		if r.cols != nil && r.at < r.unit.probe[r.frame-1].Rows {
			lo := r.at
			r.at = min(lo+vector.Size, r.unit.probe[r.frame-1].Rows)
			r.out = *sliced(r.cols, lo, r.at)
			if r.carry != nil {
				r.carry.base = r.base + lo
			}
			return &r.out, nil
		}
		if r.frame > 0 {
			r.base += r.unit.probe[r.frame-1].Rows
		}
		if r.frame == len(r.unit.probe) {
			if r.work.j.matched == nil {
				return nil, nil
			}
			r.unseen = &unmatchedReader{u: &unmatchedSource{j: r.work.j}}
			r.work.through = true
			break
		}
		var err error
		if r.cols, err = r.rd.Read(r.unit.probe[r.frame], r.j.probeTypes()); err != nil {
			return nil, err
		}
		r.frame++
		r.at = 0
	}
	c, err := r.unseen.next(ctx)
	if c == nil || err != nil {
		return nil, err
	}
	r.out = *c
	return &r.out, nil
}

// load makes the build rows of a partition ready, or splits it.
func (r *spilledReader) load(ctx context.Context, u joinUnit) error {
	j := r.j
	kind := j.x.Kind
	if len(u.build) == 0 && (kind == plan.Inner || kind == plan.Semi || kind == plan.Right) || len(u.probe) == 0 && kind != plan.Right && kind != plan.Full {
		r.unit = u
		return r.end()
	}
	if u.blocks {
		rows := 0
		for _, f := range u.probe {
			rows += f.Rows
		}
		r.unit, r.built = u, 0
		r.carry = &carry{seen: make([]uint64, (rows+63)/64)}
		j.mem.force(int64(8 * len(r.carry.seen)))
		return r.nextBlock(ctx)
	}
	need, rows := int64(0), 0
	for _, f := range u.build {
		need += f.Memory
		rows += f.Rows
	}
	r.mem.lenient = need < smallPart
	r.tables.lenient = r.mem.lenient
	err := r.mem.set(need + int64(40*rows))
	var sub *joinState
	if err == nil {
		sub, err = r.build(ctx, u.build, rows)
	}
	if refused(err) {
		if e := r.tables.set(0); e != nil {
			return e
		}
		if e := r.mem.set(0); e != nil {
			return e
		}
		return r.split(ctx, u)
	}
	if err != nil {
		return err
	}
	r.unit = u
	return r.begin(sub)
}

// buildTypes are the columns of a build row on disk: the right columns, then the keys.
func (j *joinState) buildTypes() []vector.Type {
	types := append([]vector.Type(nil), j.rightTypes...)
	for _, k := range j.x.RightKeys {
		types = append(types, k.Type())
	}
	return types
}

// build makes a table of the rows of frames.
func (r *spilledReader) build(ctx context.Context, frames []spill.Frame, rows int) (*joinState, error) {
	j := r.j
	sub := &joinState{x: j.x, ctx: j.ctx, mem: j.mem, run: j.run, leftTypes: j.leftTypes, rightTypes: j.rightTypes, nullKey: j.nullKey, any: j.any}
	types := j.buildTypes()
	store := kernel.NewStore(types)
	if err := frameRows(ctx, frames, types, func(c *vector.Chunk) error {
		store.Append(c.Cols, nil, c.N)
		return r.mem.set(store.Bytes() + int64(20*rows))
	}); err != nil {
		return nil, err
	}
	if err := r.mem.set(store.Bytes()); err != nil {
		return nil, err
	}
	return sub, sub.index(ctx, store, &r.tables)
}

// begin lets the unit's probe rows meet a table.
func (r *spilledReader) begin(sub *joinState) error {
	r.work = &joinWork{j: sub}
	if len(sub.x.LeftKeys) == 0 {
		l, err := (&loopOp{j: sub}).local()
		if err != nil {
			return err
		}
		r.work.loop = l.(*loopLocal)
	} else {
		l, err := (&probeOp{j: sub}).local()
		if err != nil {
			return err
		}
		r.work.probe = l.(*probeLocal)
	}
	r.work.block(r.carry)
	r.frame, r.at, r.base, r.cols, r.unseen = 0, 0, 0, nil, nil
	r.j.spill.active.Store(&r.out, r.work)
	return nil
}

// nextBlock makes a table of as many of the partition's next build frames as memory holds, at least one.
func (r *spilledReader) nextBlock(ctx context.Context) error {
	r.work, r.cols, r.unseen = nil, nil, nil
	if err := r.tables.set(0); err != nil {
		return err
	}
	if err := r.mem.set(0); err != nil {
		return err
	}
	from := r.built
	need, rows := int64(0), 0
	for r.built < len(r.unit.build) {
		f := r.unit.build[r.built]
		r.mem.lenient = r.built == from
		// The rows, and twice while they are put together; tables on top of them.
		err := r.mem.set(need + 2*f.Memory + int64(40*(rows+f.Rows)))
		if refused(err) {
			break
		}
		if err != nil {
			return err
		}
		need += f.Memory + f.Memory/2
		rows += f.Rows
		r.built++
	}
	r.mem.lenient, r.tables.lenient = true, true // what it takes was there a moment ago
	sub, err := r.build(ctx, r.unit.build[from:r.built], rows)
	if err != nil {
		return err
	}
	r.carry.last = r.built == len(r.unit.build)
	return r.begin(sub)
}

// split makes smaller units of one whose build rows were refused.
func (r *spilledReader) split(ctx context.Context, u joinUnit) error {
	j := r.j
	if u.depth < maxDepth {
		b, err := r.rescatter(ctx, u.build, j.buildTypes(), len(j.rightTypes), u.depth+1)
		if err != nil {
			return err
		}
		p, err := r.rescatter(ctx, u.probe, j.probeTypes(), len(j.leftTypes), u.depth+1)
		if err != nil {
			return err
		}
		for _, f := range u.last {
			f.Remove()
		}
		total := 0
		for _, f := range u.build {
			total += f.Rows
		}
		base := len(r.own)
		for k := range parts {
			if len(b.frames[k])+len(p.frames[k]) == 0 {
				continue
			}
			n := joinUnit{depth: u.depth + 1, build: b.frames[k], probe: p.frames[k]}
			rows := 0
			for _, f := range n.build {
				rows += f.Rows
			}
			if rows > total-total/16 {
				n.depth = maxDepth // nearly all have one key
			}
			r.own = append(r.own, n)
		}
		if len(r.own) > base {
			r.own[base].last = []*spill.File{b.file, p.file} // the stack's lowest is finished last
		}
		return nil
	}
	u.blocks = true
	r.own = append(r.own, u)
	return nil
}

func (r *spilledReader) rescatter(ctx context.Context, frames []spill.Frame, types []vector.Type, width, depth int) (*scatter, error) {
	out, err := r.j.run.scatter(r.j.mem, types, depth)
	if err != nil {
		return nil, err
	}
	keys, hashes := r.j.hasher(), make([]uint64, vector.Size)
	err = frameRows(ctx, frames, types, func(c *vector.Chunk) error {
		keys.hashes(c.Cols[width:], kernel.Identity(c.N), hashes)
		return out.add(ctx, c.Cols, kernel.Identity(c.N), hashes[:c.N])
	})
	if err == nil {
		err = out.finish(ctx)
	}
	return out, err
}

// spilledOp joins the chunks of a spilledSource.
type spilledOp struct{ j *joinState }

func (o *spilledOp) local() (local, error) { return spilledLocal{o.j}, nil }

type spilledLocal struct{ j *joinState }

func (l spilledLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	x, _ := l.j.spill.active.Load(c)
	w := x.(*joinWork)
	if w.through {
		return out(ctx, c)
	}
	n := len(l.j.leftTypes)
	if w.probe == nil {
		return w.loop.match(ctx, &vector.Chunk{Cols: c.Cols[:n:n], N: c.N}, kernel.Identity(c.N), out)
	}
	w.probe.cols = append(w.probe.cols[:0], c.Cols[n:]...)
	return w.probe.match(ctx, &vector.Chunk{Cols: c.Cols[:n:n], N: c.N}, kernel.Identity(c.N), out)
}
