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
// because all its rows have one key, an inner or right join goes through it block by block.

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
	j.hasher().Hashes(keys, sel, hashes)
	return l.out.add(ctx, cols, sel, hashes)
}

// hasher hashes keys of both sides.
func (j *joinState) hasher() *hash.Keys {
	types := make([]vector.Type, len(j.x.RightKeys))
	for k, e := range j.x.RightKeys {
		types[k] = e.Type()
	}
	return hash.NewKeys(types)
}

// dump writes what the worker has gathered, and makes all workers write from now on.
func (l *buildLocal) dump(ctx context.Context) error {
	l.j.spill.on.Store(true)
	if l.store == nil {
		return nil
	}
	for lo := 0; lo < l.store.N; lo += vector.Size {
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

// toDisk writes probe rows, whose keys are in l.cols. Rows that can neither match nor pass unmatched are dropped.
func (l *probeLocal) toDisk(ctx context.Context, c *vector.Chunk, rows []uint16) error {
	j := l.j
	if l.disk == nil {
		var err error
		if l.disk, err = j.run.scatter(j.mem, j.probeTypes(), 0); err != nil {
			return err
		}
		l.keys, l.hashes = j.hasher(), make([]uint64, vector.Size)
		l.rows = make([]uint16, 0, vector.Size)
	}
	switch j.x.Kind {
	case plan.Inner, plan.Semi, plan.Right:
		rows = j.usable(l.cols, rows, l.rows[:0], false)
	}
	if len(rows) == 0 {
		return nil
	}
	l.keys.Hashes(l.cols, rows, l.hashes)
	cols := append(append(make([]*vector.Vector, 0, len(c.Cols)+len(l.cols)), c.Cols[:len(j.leftTypes)]...), l.cols...)
	return l.disk.add(ctx, cols, rows, l.hashes[:len(rows)])
}

// flush hands over what the worker has written.
func (l *probeLocal) flush(ctx context.Context, _ emit) error {
	if l.disk == nil {
		return nil
	}
	if err := l.disk.finish(ctx); err != nil {
		return err
	}
	sp := &l.j.spill
	sp.mu.Lock()
	defer sp.mu.Unlock()
	for p, fs := range l.disk.frames {
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
	probe   *probeLocal
	through bool // the chunk is a result already
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
				sp.units = append(sp.units, joinUnit{build: sp.build[p], probe: sp.probe[p]})
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
		if err := r.end(); err != nil {
			return nil, err
		}
	}
}

// end frees the partition.
func (r *spilledReader) end() error {
	r.work, r.unseen, r.cols = nil, nil, nil
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
			return &r.out, nil
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
	sub := &joinState{x: j.x, ctx: j.ctx, mem: j.mem, run: j.run, leftTypes: j.leftTypes, rightTypes: j.rightTypes, nullKey: j.nullKey, any: j.any}
	types := append([]vector.Type(nil), j.rightTypes...)
	for _, k := range j.x.RightKeys {
		types = append(types, k.Type())
	}
	need, rows := int64(0), 0
	for _, f := range u.build {
		need += f.Memory
		rows += f.Rows
	}
	r.mem.lenient = need < smallPart
	r.tables.lenient = r.mem.lenient
	err := r.mem.set(need + int64(40*rows))
	if err == nil {
		store := kernel.NewStore(types)
		err = frameRows(ctx, u.build, types, func(c *vector.Chunk) error {
			store.Append(c.Cols, nil, c.N)
			return r.mem.set(store.Bytes() + int64(20*rows))
		})
		if err == nil {
			err = r.mem.set(store.Bytes())
		}
		if err == nil {
			err = sub.index(ctx, store, &r.tables)
		}
	}
	if refused(err) {
		if e := r.tables.set(0); e != nil {
			return e
		}
		if e := r.mem.set(0); e != nil {
			return e
		}
		return r.split(ctx, u, types, err)
	}
	if err != nil {
		return err
	}
	probe, err := (&probeOp{j: sub}).local()
	if err != nil {
		return err
	}
	r.work = &joinWork{j: sub, probe: probe.(*probeLocal)}
	r.unit, r.frame, r.at, r.cols, r.unseen = u, 0, 0, nil, nil
	j.spill.active.Store(&r.out, r.work)
	return nil
}

// split makes smaller units of one whose build rows were refused.
func (r *spilledReader) split(ctx context.Context, u joinUnit, types []vector.Type, why error) error {
	j := r.j
	if u.depth < maxDepth {
		b, err := r.rescatter(ctx, u.build, types, len(j.rightTypes), u.depth+1)
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
	if j.x.Kind != plan.Inner && j.x.Kind != plan.Right || len(u.build) < 2 {
		return why
	}
	for k, f := range u.build {
		n := joinUnit{depth: maxDepth, build: []spill.Frame{f}, probe: u.probe}
		if k == 0 {
			n.last = u.last
		}
		r.own = append(r.own, n)
	}
	return nil
}

func (r *spilledReader) rescatter(ctx context.Context, frames []spill.Frame, types []vector.Type, width, depth int) (*scatter, error) {
	out, err := r.j.run.scatter(r.j.mem, types, depth)
	if err != nil {
		return nil, err
	}
	keys, hashes := r.j.hasher(), make([]uint64, vector.Size)
	err = frameRows(ctx, frames, types, func(c *vector.Chunk) error {
		keys.Hashes(c.Cols[width:], kernel.Identity(c.N), hashes)
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
	w.probe.cols = append(w.probe.cols[:0], c.Cols[n:]...)
	return w.probe.match(ctx, &vector.Chunk{Cols: c.Cols[:n:n], N: c.N}, kernel.Identity(c.N), out)
}
