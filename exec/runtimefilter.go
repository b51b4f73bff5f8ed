package exec

import (
	"slices"
	"sync"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// joinFilter is what the build side of a join tells the scan of its probe side: least and greatest key, and the keys themselves as
// long as they are few enough to be worth it. A filter that was never filled lets everything pass.
type joinFilter struct {
	ready  chan struct{}
	once   sync.Once
	t      vector.Type
	filled bool
	empty  bool
	lo, hi vector.Value
	sorted []vector.Value // when at most maxListed
	// bits has a bit for each integer of a small range, first..first+span.
	bits  []uint64
	first int64
	span  uint64
	ints  *hash.Ints
	strs  *hash.Strings
}

const (
	maxListed = 1000
	maxHashed = 1 << 20
	// A bitmap is used while it is no larger than a table of the keys would be, and never above 8 MiB.
	minBits    = 1 << 16
	maxBits    = 1 << 26
	bitsPerKey = 256
)

func newJoinFilter() *joinFilter { return &joinFilter{ready: make(chan struct{})} }

func (f *joinFilter) Ready() <-chan struct{} { return f.ready }

// skip leaves the filter as one that lets everything pass.
func (f *joinFilter) skip() { f.once.Do(func() { close(f.ready) }) }

// fill is called once, before the probe side starts. It gives the bytes that the filter holds.
func (f *joinFilter) fill(x *plan.Join, keys *vector.Vector, n int) int64 {
	defer f.once.Do(func() { close(f.ready) })
	switch x.Kind {
	case plan.Inner, plan.Semi, plan.Right:
	default:
		return 0
	}
	if len(x.NullSafe) > 0 || !expr.Orderable(keys.Type) || len(keys.Type.Fields) > 0 {
		return 0
	}
	f.t, f.filled, f.empty = keys.Type, true, true
	switch keys.Type.Physical() {
	case vector.PInt32:
		fillInts(f, keys, keys.I32, n)
	case vector.PInt64:
		fillInts(f, keys, keys.I64, n)
	default:
		f.fillValues(keys, n)
	}
	if len(f.sorted) > maxListed {
		f.sorted = nil
	}
	slices.SortFunc(f.sorted, func(a, b vector.Value) int { return expr.CompareValues(f.t, a, b) })
	bytes := int64(8 * len(f.bits))
	if f.ints != nil {
		bytes += f.ints.Bytes()
	}
	if f.strs != nil {
		bytes += f.strs.Bytes()
	}
	return bytes
}

// fillInts keeps integers as a bitmap of their range where that is small, else in a table.
func fillInts[T int32 | int64](f *joinFilter, keys *vector.Vector, vals []T, n int) {
	var lo, hi T
	for i, x := range vals[:n] {
		if !keys.Valid.Get(i) {
			continue
		}
		if f.empty {
			lo, hi, f.empty = x, x, false
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	if f.empty {
		return
	}
	f.lo, f.hi, f.first = lo, hi, int64(lo)
	seen := func(x T) bool { return false }
	if span := uint64(int64(hi)) - uint64(int64(lo)); span < maxBits && span < max(minBits, uint64(n)*bitsPerKey) {
		f.bits = make([]uint64, span/64+1)
		f.span = span
		seen = func(x T) bool {
			at := uint64(int64(x)) - uint64(int64(lo))
			was := f.bits[at>>6]&(1<<(at&63)) != 0
			f.bits[at>>6] |= 1 << (at & 63)
			return was
		}
	} else if n <= maxHashed {
		f.ints = &hash.Ints{}
		f.ints.Grow(n)
		var k [1]uint64
		var id [1]uint32
		seen = func(x T) bool {
			k[0] = uint64(int64(x))
			return len(f.ints.Upsert(k[:], id[:], nil)) == 0
		}
	}
	for i, x := range vals[:n] {
		if keys.Valid.Get(i) && !seen(x) && len(f.sorted) <= maxListed {
			f.sorted = append(f.sorted, x)
		}
	}
}

func (f *joinFilter) fillValues(keys *vector.Vector, n int) {
	if keys.Type.Physical() == vector.PView && n <= maxHashed {
		f.strs = &hash.Strings{}
	}
	var k [1][]byte
	var id [1]uint32
	for i := range n {
		if keys.IsNull(i) {
			continue
		}
		if f.strs != nil {
			k[0] = keys.Bytes(i)
			if len(f.strs.Upsert(k[:], id[:], nil)) == 0 {
				continue
			}
		}
		v := keys.Get(i)
		if f.empty || expr.CompareValues(f.t, v, f.lo) < 0 {
			f.lo = v
		}
		if f.empty || expr.CompareValues(f.t, v, f.hi) > 0 {
			f.hi = v
		}
		f.empty = false
		if len(f.sorted) <= maxListed {
			f.sorted = append(f.sorted, v)
		}
	}
}

// comparable reports whether v can be compared with the filter's values.
func (f *joinFilter) comparable(v vector.Value) bool {
	switch v.(type) {
	case int32:
		return f.t.Physical() == vector.PInt32
	case int64:
		return f.t.Physical() == vector.PInt64
	case vector.Int128:
		return f.t.Physical() == vector.PInt128
	case string:
		return f.t.Physical() == vector.PView
	case bool:
		return f.t.Physical() == vector.PBool
	}
	return false // floating point: NaN has no place among bounds
}

func (f *joinFilter) MayContain(lo, hi vector.Value) bool {
	if !f.filled {
		return true
	}
	if f.empty {
		return false
	}
	if lo != nil && !f.comparable(lo) || hi != nil && !f.comparable(hi) {
		return true
	}
	if lo != nil && expr.CompareValues(f.t, f.hi, lo) < 0 || hi != nil && expr.CompareValues(f.t, f.lo, hi) > 0 {
		return false
	}
	if f.sorted == nil || lo == nil || hi == nil {
		return true
	}
	i, ok := slices.BinarySearchFunc(f.sorted, lo, func(a, b vector.Value) int { return expr.CompareValues(f.t, a, b) })
	return ok || i < len(f.sorted) && expr.CompareValues(f.t, f.sorted[i], hi) <= 0
}

func (f *joinFilter) Select(v *vector.Vector, n int, sel, dst []uint16) []uint16 {
	dst = dst[:0]
	if sel == nil {
		sel = kernel.Identity(n)
	}
	switch {
	case !f.filled || v.Type.Physical() != f.t.Physical():
		return append(dst, sel...)
	case f.empty || v.Type.Kind == vector.Null || v.Form == vector.Constant && v.IsNull(0):
		return dst
	case f.bits != nil && v.Form == vector.Flat && v.I32 != nil:
		return selectBits(f, v.I32, v.Valid, sel, dst)
	case f.bits != nil && v.Form == vector.Flat:
		return selectBits(f, v.I64, v.Valid, sel, dst)
	case f.bits == nil && f.ints == nil && f.strs == nil:
		return append(dst, sel...)
	}
	if v.Valid != nil && v.Form != vector.Constant {
		for _, i := range sel {
			if v.Valid.Get(int(i)) {
				dst = append(dst, i)
			}
		}
		sel, dst = dst, dst[:0]
	}
	found := make([]int32, len(sel))
	switch {
	case f.strs != nil:
		keys := make([][]byte, len(sel))
		s := v.Values()
		for p, i := range sel {
			keys[p] = s.Views[v.Index(int(i))].Bytes(s.Bufs)
		}
		f.strs.Find(keys, found)
	default:
		keys := make([]uint64, len(sel))
		hash.Fixed(v, sel, keys)
		if f.bits == nil {
			f.ints.Find(keys, found)
			break
		}
		for p, k := range keys {
			found[p] = -1
			if at := k - uint64(f.first); at <= f.span && f.bits[at>>6]&(1<<(at&63)) != 0 {
				found[p] = 0
			}
		}
	}
	for p, i := range sel {
		if found[p] >= 0 {
			dst = append(dst, i)
		}
	}
	return dst
}

// selectBits appends the rows whose value's bit is set.
func selectBits[T int32 | int64](f *joinFilter, vals []T, valid vector.Bitmap, sel, dst []uint16) []uint16 {
	if cap(dst) < len(sel) {
		dst = make([]uint16, len(sel))
	}
	dst = dst[:len(sel)]
	j := 0
	for _, i := range sel {
		at := min(uint64(int64(vals[i]))-uint64(f.first), f.span+1)
		dst[j] = i
		if at <= f.span && f.bits[at>>6]>>(at&63)&1 != 0 && valid.Get(int(i)) {
			j++
		}
	}
	return dst[:j]
}
