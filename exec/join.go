package exec

import (
	"context"
	"sync/atomic"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

func (r *run) join(x *plan.Join, op *profile.Operator) (*stream, error) {
	for _, f := range x.RuntimeFilters {
		r.filters[f.ID] = newJoinFilter()
	}
	// The profile lists the left input first, the right one is compiled first: its filters must exist before the scans of the left.
	holder := &profile.Operator{}
	right, err := r.compile(x.Right, holder)
	if err != nil {
		return nil, err
	}
	left, err := r.compile(x.Left, op)
	if err != nil {
		return nil, err
	}
	op.Children = append(op.Children, holder.Children...)
	j := &joinState{x: x, ctx: r.q.Context, mem: r.spillable(op), leftTypes: left.types, rightTypes: right.types, run: r}
	build := &buildSink{j: j, tables: share{a: j.mem}}
	if _, err := build.local(); err != nil {
		return nil, err
	}
	prepares := []func(context.Context) error{func(ctx context.Context) error {
		return r.drive(ctx, right, &countedSink{&profile.Operator{}, build})
	}}
	out := &stream{prepares: append(prepares, left.prepares...), branches: left.branches, ordered: left.ordered, types: typesOf(x.Cols)}
	var probe operator = &probeOp{j: j}
	if len(x.LeftKeys) == 0 {
		probe = &loopOp{j: j}
	}
	if err := r.apply(out, op, probe); err != nil {
		return nil, err
	}
	out.branches = append(out.branches, branch{src: &spilledSource{j: j}, ops: []operator{&countedOp{op: op, inner: &spilledOp{j: j}}}})
	if x.Kind == plan.Right || x.Kind == plan.Full {
		out.branches = append(out.branches, branch{src: &countedSource{op, &unmatchedSource{j: j}}})
		out.ordered = false
	}
	return out, nil
}

// joinState is what the build side leaves for the probe side. It is read-only once built, but for matched.
type joinState struct {
	x                     *plan.Join
	ctx                   *expr.Context
	mem                   *account
	run                   *run
	leftTypes, rightTypes []vector.Type

	store *kernel.Store
	// heads[id] is the first row with the id'th distinct key, next[row] the next one with the same key; -1 ends a chain.
	heads   []int32
	next    []int32
	unique  bool
	keys    *hash.Keys
	base    int64   // of dense
	dense   []int32 // first row by key - base; nil when the keys are not one dense integer
	nullKey bool    // a build row has a null key
	any     bool    // there is a build row
	matched []uint32

	spill joinSpill
}

// buildSink collects the right side.
type buildSink struct {
	j      *joinState
	locals []*buildLocal
	tables share
}

type buildLocal struct {
	j     *joinState
	progs []*expr.Program
	cols  []*vector.Vector
	store *kernel.Store // right columns, then keys
	types []vector.Type
	mem   share
	out   *scatter
	null  bool // of rows on disk: a key is null
}

func (b *buildSink) local() (sinkLocal, error) {
	progs, err := compileAll(b.j.x.RightKeys, b.j.ctx)
	if err != nil {
		return nil, err
	}
	types := append([]vector.Type(nil), b.j.rightTypes...)
	for _, k := range b.j.x.RightKeys {
		types = append(types, k.Type())
	}
	return &buildLocal{j: b.j, progs: progs, store: kernel.NewStore(types), types: types, mem: share{a: b.j.mem}}, nil
}

func (l *buildLocal) push(ctx context.Context, c *vector.Chunk) error {
	keys, err := evalAll(l.progs, c, l.cols)
	if err != nil {
		return err
	}
	l.cols = keys
	cols := append(append(make([]*vector.Vector, 0, len(c.Cols)+len(keys)), c.Cols[:len(l.j.rightTypes)]...), keys...)
	if l.j.spill.on.Load() {
		return l.toDisk(ctx, cols, c.Sel, c.N)
	}
	l.store.Append(cols, c.Sel, c.N)
	err = l.mem.set(l.store.Bytes())
	if refused(err) {
		return l.dump(ctx)
	}
	return err
}

func (b *buildSink) combine(s sinkLocal) error {
	b.locals = append(b.locals, s.(*buildLocal))
	return nil
}

func (b *buildSink) finish(ctx context.Context) error {
	j := b.j
	if !j.spill.on.Load() {
		err := b.assemble(ctx)
		if !refused(err) {
			return err
		}
	}
	return b.spill(ctx)
}

// assemble makes one table of the workers' rows.
func (b *buildSink) assemble(ctx context.Context) error {
	j := b.j
	first := b.locals[0]
	for _, l := range b.locals[1:] {
		if err := moveStore(ctx, first.store, l.store); err != nil {
			return err
		}
		l.store = nil
		if err := first.mem.set(first.store.Bytes()); err != nil {
			return err
		}
		if err := l.mem.set(0); err != nil {
			return err
		}
	}
	if err := j.index(ctx, first.store, &b.tables); err != nil {
		return err
	}
	if len(j.x.RightKeys) == 0 {
		return nil
	}
	for _, f := range j.x.RuntimeFilters {
		if err := j.mem.add(j.run.filters[f.ID].fill(j.x, first.store.Cols[len(j.rightTypes)+f.Column], first.store.N)); err != nil {
			return err
		}
	}
	return nil
}

// moveStore moves all rows of from, which is not used again, to the end of to.
func moveStore(ctx context.Context, to, from *kernel.Store) error {
	if to.N == 0 {
		to.AppendStore(from)
		return nil
	}
	for lo := 0; lo < from.N; lo += vector.Size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c := sliced(from.Cols, lo, min(lo+vector.Size, from.N))
		to.Append(c.Cols, nil, c.N)
	}
	return nil
}

// index makes rows, right columns and then keys, ready for probing.
func (j *joinState) index(ctx context.Context, rows *kernel.Store, tables *share) error {
	n := rows.N
	keyCols := rows.Cols[len(j.rightTypes):]
	j.any = j.any || n > 0
	j.unique = true
	if err := tables.set(int64(12 * n)); err != nil {
		return err
	}
	if j.x.Kind == plan.Right || j.x.Kind == plan.Full {
		j.matched = make([]uint32, n)
	}
	if len(keyCols) > 0 {
		j.next = make([]int32, n)
		if err := j.fill(ctx, keyCols, n, tables); err != nil {
			return err
		}
	}
	j.store = &kernel.Store{Types: j.rightTypes, Cols: rows.Cols[:len(j.rightTypes)], N: n}
	return nil
}

// nullSafe reports whether key k matches nulls and NaN.
func (j *joinState) nullSafe(k int) bool { return k < len(j.x.NullSafe) && j.x.NullSafe[k] }

// fill chains the build rows by key: by an array when the one key is an integer of a small range, else by a hash table.
func (j *joinState) fill(ctx context.Context, keyCols []*vector.Vector, n int, mem *share) error {
	types := make([]vector.Type, len(keyCols))
	for k, c := range keyCols {
		types[k] = c.Type
	}
	if len(keyCols) == 1 && !j.nullSafe(0) && j.fillDense(keyCols[0], n) {
		return mem.set(int64(4*len(j.matched) + 4*n + 4*len(j.dense)))
	}
	j.keys = hash.NewKeys(types)
	ids := make([]uint32, vector.Size)
	cols := make([]*vector.Vector, len(keyCols))
	buf := make([]uint16, 0, vector.Size)
	for lo := 0; lo < n; lo += vector.Size {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hi := min(lo+vector.Size, n)
		for k, c := range keyCols {
			cols[k] = kernel.Slice(c, lo, hi)
		}
		rows := j.usable(cols, kernel.Identity(hi-lo), buf, true)
		if j.keys.Grows(len(rows)) {
			// It doubles, with the old table beside the new one for a while.
			if err := mem.set(int64(4*len(j.matched)+4*n+4*cap(j.heads)) + 3*j.keys.Bytes()); err != nil {
				return err
			}
		}
		j.keys.Upsert(cols, rows, ids[:len(rows)])
		for len(j.heads) < j.keys.Len() {
			j.heads = append(j.heads, -1)
		}
		for p, i := range rows {
			row := int32(lo) + int32(i)
			id := ids[p]
			if j.heads[id] >= 0 {
				j.unique = false
			}
			j.next[row] = j.heads[id]
			j.heads[id] = row
		}
		if err := mem.set(int64(4*len(j.matched)+4*n+4*cap(j.heads)) + j.keys.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// usable gives the rows whose keys can match: not null, and no NaN, unless null-safe. They are rows itself or in dst, which has room.
func (j *joinState) usable(cols []*vector.Vector, rows, dst []uint16, build bool) []uint16 {
	plain := true
	for k, c := range cols {
		if !j.nullSafe(k) && (c.Valid != nil || c.Type.Kind == vector.Null || isFloat(c.Type)) {
			plain = false
		}
	}
	if plain {
		return rows
	}
	for _, i := range rows {
		ok := true
		for k, c := range cols {
			if j.nullSafe(k) {
				continue
			}
			if c.IsNull(int(i)) {
				ok = false
				if build {
					j.nullKey = true
				}
				break
			}
			if isFloat(c.Type) && isNaN(c, int(i)) {
				ok = false
				break
			}
		}
		if ok {
			dst = append(dst, i)
		}
	}
	return dst
}

func isFloat(t vector.Type) bool { return t.Kind == vector.Double || t.Kind == vector.Real }

func isNaN(v *vector.Vector, i int) bool {
	s, k := v.Values(), v.Index(i)
	if v.Type.Kind == vector.Double {
		return s.F64[k] != s.F64[k]
	}
	return s.F32[k] != s.F32[k]
}

func isIntKey(t vector.Type) bool {
	p := t.Physical()
	return p == vector.PInt32 || p == vector.PInt64
}

func intAt(v *vector.Vector, i int) int64 {
	if v.I32 != nil {
		return int64(v.I32[i])
	}
	return v.I64[i]
}

func (j *joinState) fillDense(c *vector.Vector, n int) bool {
	if !isIntKey(c.Type) || n == 0 {
		return false
	}
	lo, hi := int64(0), int64(0)
	seen := false
	for i := range n {
		if c.IsNull(i) {
			continue
		}
		x := intAt(c, i)
		if !seen || x < lo {
			lo = x
		}
		if !seen || x > hi {
			hi = x
		}
		seen = true
	}
	span := uint64(hi) - uint64(lo)
	if !seen || span >= uint64(4*n+1024) {
		return false
	}
	j.base = lo
	j.dense = make([]int32, span+1)
	for i := range j.dense {
		j.dense[i] = -1
	}
	for i := range n {
		if c.IsNull(i) {
			j.nullKey = true
			continue
		}
		at := intAt(c, i) - lo
		if j.dense[at] >= 0 {
			j.unique = false
		}
		j.next[i] = j.dense[at]
		j.dense[at] = int32(i)
	}
	return true
}

// probe finds the first build row for each of rows: -1 for none. first runs parallel to rows.
func (j *joinState) probe(cols []*vector.Vector, rows []uint16, first []int32) {
	if j.dense != nil {
		c := cols[0]
		for p, i := range rows {
			k := c.Index(int(i))
			var x int64
			if s := c.Values(); s.I32 != nil {
				x = int64(s.I32[k])
			} else {
				x = s.I64[k]
			}
			if at := uint64(x) - uint64(j.base); at < uint64(len(j.dense)) {
				first[p] = j.dense[at]
			} else {
				first[p] = -1
			}
		}
		return
	}
}

type probeOp struct{ j *joinState }

type probeLocal struct {
	j     *joinState
	progs []*expr.Program
	resid *expr.Program

	keys   *hash.Keys // shares the tables of j.keys, with scratch of its own
	cols   []*vector.Vector
	rows   []uint16
	first  []int32
	hit    []uint16 // probe rows with a match
	hitRow []int32
	out    vector.Chunk
	both   []*vector.Vector // columns of pairs
	pairs  vector.Chunk
	g      kernel.Gatherer
	gl     kernel.Gatherer
	seen   []bool
	pairL  []uint16
	pairR  []int32
	resSel []uint16
	sel    []uint16

	disk  probeSpill
	carry *carry // of a partition that is joined block by block
}

func (p *probeOp) local() (local, error) {
	l := &probeLocal{j: p.j}
	var err error
	if l.progs, err = compileAll(p.j.x.LeftKeys, p.j.ctx); err != nil {
		return nil, err
	}
	if p.j.x.Residual != nil {
		if l.resid, err = expr.Compile(p.j.x.Residual, p.j.ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *probeLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	j := l.j
	var err error
	if l.cols, err = evalAll(l.progs, c, l.cols); err != nil {
		return err
	}
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	if j.spill.on.Load() {
		return l.disk.add(ctx, j, c, l.cols, rows)
	}
	return l.match(ctx, c, rows, out)
}

// flush hands over what the worker has written to disk.
func (l *probeLocal) flush(ctx context.Context, _ emit) error { return l.disk.end(ctx, l.j) }

// match joins rows of c, whose keys are in l.cols.
func (l *probeLocal) match(ctx context.Context, c *vector.Chunk, rows []uint16, out emit) error {
	j := l.j
	if l.first == nil {
		l.first = make([]int32, vector.Size)
		l.rows = make([]uint16, 0, vector.Size)
		l.hitRow = make([]int32, vector.Size)
	}
	live := j.usable(l.cols, rows, l.rows[:0], false)
	if j.dense != nil {
		j.probe(l.cols, live, l.first)
	} else {
		if l.keys == nil {
			l.keys = j.keys.Reader()
		}
		l.keys.Find(l.cols, live, l.first)
		for p := range live {
			if id := l.first[p]; id >= 0 {
				l.first[p] = j.heads[id]
			}
		}
	}
	l.hit = l.hit[:0]
	for p, i := range live {
		if l.first[p] >= 0 {
			l.hitRow[len(l.hit)] = l.first[p]
			l.hit = append(l.hit, i)
		}
	}
	switch j.x.Kind {
	case plan.Semi, plan.Anti, plan.NullAwareAnti, plan.Mark:
		return l.existence(ctx, c, rows, out)
	}
	return l.matches(ctx, c, rows, out)
}

// existence handles the kinds that ask only whether a row matches.
func (l *probeLocal) existence(ctx context.Context, c *vector.Chunk, rows []uint16, out emit) error {
	j := l.j
	if cap(l.seen) < c.N {
		l.seen = make([]bool, max(c.N, vector.Size))
	}
	seen := l.seen[:c.N]
	l.carry.load(rows, seen)
	if l.resid == nil {
		for _, i := range l.hit {
			seen[i] = true
		}
	} else if err := l.expand(ctx, c, func(pairs *vector.Chunk, left []uint16, _ []int32) error {
		for _, p := range pairs.Sel {
			seen[left[p]] = true
		}
		return nil
	}); err != nil {
		return err
	}
	if !l.carry.store(rows, seen) {
		return nil
	}
	if j.x.Kind == plan.Mark {
		return l.mark(ctx, c, rows, seen, out)
	}
	want := j.x.Kind == plan.Semi
	l.sel = l.sel[:0]
	for _, i := range rows {
		if seen[i] != want {
			continue
		}
		if j.x.Kind == plan.NullAwareAnti && j.any && (j.nullKey || l.cols[0].IsNull(int(i))) {
			continue
		}
		l.sel = append(l.sel, i)
	}
	if len(l.sel) == 0 {
		return nil
	}
	l.out = vector.Chunk{Cols: c.Cols, Sel: l.sel, N: c.N}
	return out(ctx, &l.out)
}

func (l *probeLocal) mark(ctx context.Context, c *vector.Chunk, rows []uint16, seen []bool, out emit) error {
	j := l.j
	v := vector.New(vector.Of(vector.Boolean), c.N)
	for _, i := range rows {
		v.Bools[i] = seen[i]
		if seen[i] || !j.any {
			continue
		}
		null := j.nullKey
		for k, col := range l.cols {
			null = null || !j.nullSafe(k) && col.IsNull(int(i))
		}
		if null {
			v.SetNull(int(i), c.N)
		}
	}
	l.out = vector.Chunk{Cols: append(append([]*vector.Vector(nil), c.Cols...), v), Sel: c.Sel, N: c.N}
	return out(ctx, &l.out)
}

// matches handles the kinds that give matching pairs, and for the outer ones the rows without a match.
func (l *probeLocal) matches(ctx context.Context, c *vector.Chunk, rows []uint16, out emit) error {
	j := l.j
	kind := j.x.Kind
	outer := kind == plan.Left || kind == plan.Full || kind == plan.Single
	if cap(l.seen) < c.N {
		l.seen = make([]bool, max(c.N, vector.Size))
	}
	seen := l.seen[:c.N]
	if outer {
		l.carry.load(rows, seen)
	}
	if err := l.expand(ctx, c, func(pairs *vector.Chunk, left []uint16, right []int32) error {
		if outer {
			for _, p := range pairs.Sel {
				i := left[p]
				if kind == plan.Single && seen[i] {
					return multipleRows()
				}
				seen[i] = true
			}
		}
		if j.matched != nil {
			for _, p := range pairs.Sel {
				if m := &j.matched[right[p]]; atomic.LoadUint32(m) == 0 {
					atomic.StoreUint32(m, 1)
				}
			}
		}
		if len(pairs.Sel) == 0 {
			return nil
		}
		return out(ctx, pairs)
	}); err != nil {
		return err
	}
	if !outer || !l.carry.store(rows, seen) {
		return nil
	}
	l.sel = l.sel[:0]
	for _, i := range rows {
		if !seen[i] {
			l.sel = append(l.sel, i)
		}
	}
	if len(l.sel) == 0 {
		return nil
	}
	cols := append([]*vector.Vector(nil), c.Cols[:len(j.leftTypes)]...)
	for _, t := range j.rightTypes {
		cols = append(cols, vector.NewConstant(t, nil))
	}
	l.out = vector.Chunk{Cols: cols, Sel: l.sel, N: c.N}
	return out(ctx, &l.out)
}

// expand calls f with chunks of matching pairs that pass the residual: left columns then right ones. left and right tell for each
// physical row of the chunk the rows that made it; for unique keys the chunk keeps the physical rows of c.
func (l *probeLocal) expand(ctx context.Context, c *vector.Chunk, f func(pairs *vector.Chunk, left []uint16, right []int32) error) error {
	j := l.j
	if len(l.hit) == 0 {
		return nil
	}
	nl := len(j.leftTypes)
	if j.unique {
		l.both = append(l.both[:0], c.Cols[:nl]...)
		for k, v := range j.store.Cols {
			l.both = append(l.both, l.g.ColumnAt(k, v, l.hitRow[:len(l.hit)], l.hit, c.N))
		}
		l.pairs = vector.Chunk{Cols: l.both, Sel: l.hit, N: c.N}
		if cap(l.pairR) < c.N {
			l.pairR = make([]int32, max(c.N, vector.Size))
		}
		right := l.pairR[:c.N]
		for p, i := range l.hit {
			right[i] = l.hitRow[p]
		}
		return l.residual(&l.pairs, kernel.Identity(c.N), right, f)
	}
	l.pairL, l.pairR = l.pairL[:0], l.pairR[:0]
	flush := func() error {
		if len(l.pairL) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := len(l.pairL)
		l.both = l.both[:0]
		for k, v := range c.Cols[:nl] {
			l.both = append(l.both, l.gl.Rows(k, v, l.pairL))
		}
		for k, v := range j.store.Cols {
			l.both = append(l.both, l.g.Column(k, v, l.pairR, n))
		}
		l.pairs = vector.Chunk{Cols: l.both, Sel: kernel.Identity(n), N: n}
		err := l.residual(&l.pairs, l.pairL, l.pairR, f)
		l.pairL, l.pairR = l.pairL[:0], l.pairR[:0]
		return err
	}
	for p, i := range l.hit {
		for row := l.hitRow[p]; row >= 0; row = j.next[row] {
			l.pairL = append(l.pairL, i)
			l.pairR = append(l.pairR, row)
			if len(l.pairL) == vector.Size {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

func (l *probeLocal) residual(pairs *vector.Chunk, left []uint16, right []int32, f func(*vector.Chunk, []uint16, []int32) error) error {
	if l.resid != nil {
		sel, err := l.resid.Filter(pairs, pairs.Sel, l.resSel)
		if err != nil {
			return err
		}
		l.resSel = sel
		pairs.Sel = sel
	}
	return f(pairs, left, right)
}

// unmatchedSource gives the build rows that no probe row matched, with nulls on the left. It is read after all probing.
type unmatchedSource struct {
	j    *joinState
	next atomic.Int64
}

func (u *unmatchedSource) open(context.Context) (reader, error) { return &unmatchedReader{u: u}, nil }

type unmatchedReader struct {
	u *unmatchedSource
	g kernel.Gatherer
}

func (r *unmatchedReader) close() error { return nil }

func (r *unmatchedReader) next(context.Context) (*vector.Chunk, error) {
	j := r.u.j
	for {
		lo := int(r.u.next.Add(vector.Size)) - vector.Size
		if j.store == nil || lo >= j.store.N {
			return nil, nil
		}
		var ids []int32
		for i := lo; i < min(lo+vector.Size, j.store.N); i++ {
			if j.matched[i] == 0 {
				ids = append(ids, int32(i))
			}
		}
		if len(ids) == 0 {
			continue
		}
		c := &vector.Chunk{N: len(ids)}
		for _, t := range j.leftTypes {
			c.Cols = append(c.Cols, vector.NewConstant(t, nil))
		}
		for k, v := range j.store.Cols {
			c.Cols = append(c.Cols, r.g.Column(k, v, ids, len(ids)))
		}
		return c, nil
	}
}
