package exec

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

func (r *run) sort(x *plan.Sort, op *profile.Operator) (*stream, error) {
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	types := typesOf(x.Columns())
	if x.Limit == 0 {
		return &stream{types: types, ordered: true}, nil
	}
	s := &sortSink{keys: x.Keys, ctx: r.q.Context, types: types, r: r, mem: r.spillable(op), keep: -1, offset: x.Offset}
	if x.Limit > 0 {
		s.keep = x.Limit + x.Offset
		s.ties = x.WithTies
	}
	if _, err := s.local(); err != nil {
		return nil, err
	}
	return r.breaker(in, op, s, &solo{source: &sortSource{s: s}}, types, true), nil
}

// sortSink keeps rows with normalised keys: byte strings whose order is that of the rows. Each worker's rows are a run, sorted at its
// end; the source merges the runs. With keep >= 0 a worker drops rows that cannot be among the first keep.
type sortSink struct {
	keys   []expr.SortKey
	ctx    *expr.Context
	types  []vector.Type
	mem    *account
	keep   int64
	ties   bool
	offset int64
	r      *run

	runs   []*sortLocal
	mu     sync.Mutex
	onDisk []diskRun
}

// sortRow is a row of a run: the first sixteen bytes of its key as numbers, and its place. Few comparisons look further.
type sortRow struct {
	head, tail uint64
	row        int32
	long       bool // the key goes on
}

const rowBytes = 24

type sortLocal struct {
	s     *sortSink
	progs []*expr.Program
	cols  []*vector.Vector
	store *kernel.Store
	arena []byte
	ends  []int
	rows  []sortRow
	mem   share

	bound    []byte // key of the keep-th row so far; rows after it are dropped
	hasBound bool
	live     []uint16
	first    []uint16
	pos      int
}

func (s *sortSink) local() (sinkLocal, error) {
	l := &sortLocal{s: s, mem: share{a: s.mem}, store: kernel.NewStore(s.types)}
	for _, k := range s.keys {
		p, err := expr.Compile(k.Expr, s.ctx)
		if err != nil {
			return nil, err
		}
		l.progs = append(l.progs, p)
	}
	return l, nil
}

func (l *sortLocal) key(row int32) []byte {
	lo := 0
	if row > 0 {
		lo = l.ends[row-1]
	}
	return l.arena[lo:l.ends[row]]
}

func (l *sortLocal) push(ctx context.Context, c *vector.Chunk) error {
	var err error
	if l.cols, err = evalAll(l.progs, c, l.cols); err != nil {
		return err
	}
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	l.live = l.live[:0]
	if l.hasBound {
		rows = l.worthwhile(rows)
	}
	for _, i := range rows {
		at := len(l.arena)
		for k, v := range l.cols {
			l.arena = appendSortKey(l.arena, v, int(i), l.s.keys[k].Desc, l.s.keys[k].NullsFirst)
		}
		if l.hasBound {
			if d := bytes.Compare(l.arena[at:], l.bound); d > 0 || d == 0 && !l.s.ties {
				l.arena = l.arena[:at]
				continue
			}
		}
		l.ends = append(l.ends, len(l.arena))
		l.live = append(l.live, i)
	}
	if len(l.live) == 0 {
		return nil
	}
	l.store.Append(c.Cols, l.live, c.N)
	if k := l.s.keep; k >= 0 && int64(l.store.N) > 2*k+4*vector.Size {
		if err := l.compact(ctx); err != nil {
			return err
		}
	}
	err = l.mem.set(l.bytes() + rowBytes*int64(l.store.N))
	if refused(err) {
		return l.toDisk(ctx)
	}
	return err
}

// worthwhile drops the rows whose first key alone puts them behind the bound: integers are compared as they are.
func (l *sortLocal) worthwhile(rows []uint16) []uint16 {
	v, k := l.cols[0], l.s.keys[0]
	bound := l.bound
	if len(bound) == 0 || bound[0] != 1 || v.Form != vector.Flat || v.Valid != nil || !isIntKey(v.Type) {
		return rows
	}
	var limit int64
	if v.Type.Physical() == vector.PInt32 {
		x := binary.BigEndian.Uint32(bound[1:])
		if k.Desc {
			x = ^x
		}
		limit = int64(int32(x ^ 1<<31))
	} else {
		x := binary.BigEndian.Uint64(bound[1:])
		if k.Desc {
			x = ^x
		}
		limit = int64(x ^ 1<<63)
	}
	out := l.first[:0]
	for _, i := range rows {
		x := intAt(v, int(i))
		if x == limit || (x < limit) != k.Desc {
			out = append(out, i)
		}
	}
	l.first = out
	return out
}

func (l *sortLocal) bytes() int64 {
	return l.store.Bytes() + int64(cap(l.arena)+8*cap(l.ends)+rowBytes*cap(l.rows))
}

// order sorts the run. When ctx ends, comparisons find everything equal, so that the sort ends at once.
func (l *sortLocal) order(ctx context.Context) error {
	var ended atomic.Bool
	defer context.AfterFunc(ctx, func() { ended.Store(true) })()
	l.rows = slices.Grow(l.rows[:0], l.store.N)
	var head [16]byte
	for i := range l.store.N {
		k := l.key(int32(i))
		head = [16]byte{}
		copy(head[:], k)
		l.rows = append(l.rows, sortRow{binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint64(head[8:]), int32(i), len(k) > 16})
	}
	slices.SortFunc(l.rows, func(a, b sortRow) int {
		if ended.Load() {
			return 0
		}
		if a.head != b.head {
			if a.head < b.head {
				return -1
			}
			return 1
		}
		if a.tail != b.tail {
			if a.tail < b.tail {
				return -1
			}
			return 1
		}
		if a.long || b.long {
			if c := bytes.Compare(l.key(a.row), l.key(b.row)); c != 0 {
				return c
			}
		}
		return int(a.row) - int(b.row)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// kept is how many rows of the ordered run may be needed.
func (l *sortLocal) kept() int {
	k := l.s.keep
	if k < 0 || int64(len(l.rows)) <= k {
		return len(l.rows)
	}
	n := int(k)
	if l.s.ties && n > 0 {
		for n < len(l.rows) && bytes.Equal(l.key(l.rows[n].row), l.key(l.rows[n-1].row)) {
			n++
		}
	}
	return n
}

// compact drops all but the first rows and sets the bound.
func (l *sortLocal) compact(ctx context.Context) error {
	if err := l.order(ctx); err != nil {
		return err
	}
	n := l.kept()
	store := kernel.NewStore(l.s.types)
	var arena []byte
	var ends []int
	var g kernel.Gatherer
	ids := make([]int32, 0, vector.Size)
	for lo := 0; lo < n; lo += vector.Size {
		ids = ids[:0]
		for _, r := range l.rows[lo:min(lo+vector.Size, n)] {
			ids = append(ids, r.row)
			arena = append(arena, l.key(r.row)...)
			ends = append(ends, len(arena))
		}
		cols := make([]*vector.Vector, len(l.store.Cols))
		for k, v := range l.store.Cols {
			cols[k] = g.Column(k, v, ids, len(ids))
		}
		store.Append(cols, nil, len(ids))
	}
	if int64(n) >= l.s.keep {
		l.bound = append(l.bound[:0], l.key(l.rows[l.s.keep-1].row)...)
		l.hasBound = true
	}
	l.store, l.arena, l.ends, l.rows = store, arena, ends, l.rows[:0]
	return nil
}

func (s *sortSink) combine(x sinkLocal) error {
	l := x.(*sortLocal)
	if l.store.N > 0 {
		s.runs = append(s.runs, l)
	}
	return nil
}

func (s *sortSink) finish(ctx context.Context) error {
	err := s.each(func(l *sortLocal) error {
		if err := l.mem.set(l.bytes() + rowBytes*int64(l.store.N)); err != nil {
			return err
		}
		return l.order(ctx)
	})
	if err != nil && !refused(err) {
		return err
	}
	if err == nil && len(s.onDisk) == 0 {
		return nil
	}
	// Once a run is on disk all are, so that there is one kind to merge.
	if err := s.each(func(l *sortLocal) error { return l.toDisk(ctx) }); err != nil {
		return err
	}
	s.runs = nil
	return s.narrow(ctx)
}

// each calls f for the workers' runs side by side.
func (s *sortSink) each(f func(*sortLocal) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(s.runs))
	for i, l := range s.runs {
		wg.Go(func() { errs[i] = guarded(func() error { return f(l) }) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sortSource merges the runs in order. It serves one worker.
type sortSource struct{ s *sortSink }

type sortReader struct {
	s     *sortSink
	g     kernel.Gatherer
	out   vector.Chunk
	left  int64 // rows still wanted; negative: all
	skip  int64
	last  []byte // key of the last row that counted, for ties
	ids   []int32
	owner []*sortLocal
	merge *runMerge
}

func (s *sortSource) open(context.Context) (reader, error) {
	return &sortReader{s: s.s, left: s.s.keep, skip: s.s.offset}, nil
}

func (r *sortReader) close() error { return nil }

// head is the run with the smallest next row; nil when all are used up.
func (r *sortReader) head() *sortLocal {
	var best *sortLocal
	for _, l := range r.s.runs {
		if l.pos >= len(l.rows) {
			continue
		}
		if best == nil || r.less(l, best) {
			best = l
		}
	}
	return best
}

func (r *sortReader) less(a, b *sortLocal) bool {
	x, y := a.rows[a.pos], b.rows[b.pos]
	if x.head != y.head {
		return x.head < y.head
	}
	if x.tail != y.tail {
		return x.tail < y.tail
	}
	return bytes.Compare(a.key(x.row), b.key(y.row)) < 0
}

// take gives the next row of the result.
func (r *sortReader) take() (*sortLocal, int32, bool) {
	l := r.head()
	if l == nil {
		return nil, 0, false
	}
	row := l.rows[l.pos].row
	if r.left == 0 {
		if !r.s.ties || !bytes.Equal(l.key(row), r.last) {
			return nil, 0, false
		}
	} else if r.left > 0 {
		r.left--
		if r.left == 0 && r.s.ties {
			r.last = l.key(row)
		}
	}
	l.pos++
	return l, row, true
}

func (r *sortReader) next(ctx context.Context) (*vector.Chunk, error) {
	if len(r.s.onDisk) > 0 {
		if r.merge == nil {
			m, err := r.s.merge(r.s.onDisk)
			if err != nil {
				return nil, err
			}
			r.merge = m
		}
		return r.merge.next(ctx, r)
	}
	r.ids, r.owner = r.ids[:0], r.owner[:0]
	for len(r.ids) < vector.Size {
		l, row, ok := r.take()
		if !ok {
			break
		}
		if r.skip > 0 {
			r.skip--
			continue
		}
		r.ids = append(r.ids, row)
		r.owner = append(r.owner, l)
	}
	if len(r.ids) == 0 {
		return nil, nil
	}
	return r.chunk(), nil
}

// chunk gathers the chosen rows; with several runs each gives its part.
func (r *sortReader) chunk() *vector.Chunk {
	n := len(r.ids)
	r.out = vector.Chunk{N: n, Cols: r.out.Cols[:0]}
	if len(r.s.runs) == 1 {
		for k, v := range r.s.runs[0].store.Cols {
			r.out.Cols = append(r.out.Cols, r.g.Column(k, v, r.ids, n))
		}
		return &r.out
	}
	var g kernel.Gatherer
	tmp := kernel.NewStore(r.s.types)
	place := make([]int32, n)
	cols := make([]*vector.Vector, len(r.s.types))
	var ids []int32
	for _, l := range r.s.runs {
		ids = ids[:0]
		for i, o := range r.owner {
			if o == l {
				place[i] = int32(tmp.N + len(ids))
				ids = append(ids, r.ids[i])
			}
		}
		if len(ids) == 0 {
			continue
		}
		for k, v := range l.store.Cols {
			cols[k] = g.Column(k, v, ids, len(ids))
		}
		tmp.Append(cols, nil, len(ids))
	}
	for k, v := range tmp.Cols {
		r.out.Cols = append(r.out.Cols, r.g.Column(k, v, place, n))
	}
	return &r.out
}
