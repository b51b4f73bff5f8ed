package exec

import (
	"slices"
	"sync"

	"github.com/skua-db/skua/exec/hash"
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
	ints   *hash.Ints
	strs   *hash.Strings
}

const (
	maxListed = 1000
	maxHashed = 1 << 20
)

func newJoinFilter() *joinFilter { return &joinFilter{ready: make(chan struct{})} }

func (f *joinFilter) Ready() <-chan struct{} { return f.ready }

// fill is called once, before the probe side starts.
func (f *joinFilter) fill(x *plan.Join, keys *vector.Vector, n int) {
	defer f.once.Do(func() { close(f.ready) })
	switch x.Kind {
	case plan.Inner, plan.Semi, plan.Right:
	default:
		return
	}
	if len(x.NullSafe) > 0 || !expr.Orderable(keys.Type) || len(keys.Type.Fields) > 0 {
		return
	}
	f.t, f.filled, f.empty = keys.Type, true, true
	p := keys.Type.Physical()
	hashed := n <= maxHashed && (p == vector.PInt32 || p == vector.PInt64 || p == vector.PView)
	if hashed {
		if p == vector.PView {
			f.strs = &hash.Strings{}
		} else {
			f.ints = &hash.Ints{}
			f.ints.Grow(n)
		}
	}
	var k64 [1]uint64
	var kb [1][]byte
	var id [1]uint32
	for i := range n {
		if keys.IsNull(i) {
			continue
		}
		fresh := 1
		switch {
		case f.ints != nil:
			k64[0] = uint64(intAt(keys, i))
			fresh = len(f.ints.Upsert(k64[:], id[:], nil))
		case f.strs != nil:
			kb[0] = keys.Bytes(i)
			fresh = len(f.strs.Upsert(kb[:], id[:], nil))
		}
		if fresh == 0 {
			continue
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
	if len(f.sorted) > maxListed {
		f.sorted = nil
		return
	}
	slices.SortFunc(f.sorted, func(a, b vector.Value) int { return expr.CompareValues(f.t, a, b) })
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
	keep := func(i uint16) { dst = append(dst, i) }
	each := func(ok func(i int) bool) {
		if sel == nil {
			for i := range n {
				if ok(i) {
					keep(uint16(i))
				}
			}
			return
		}
		for _, i := range sel {
			if ok(int(i)) {
				keep(i)
			}
		}
	}
	switch {
	case !f.filled || v.Type.Physical() != f.t.Physical() || f.ints == nil && f.strs == nil:
		each(func(int) bool { return true })
	case f.empty:
	case f.ints != nil:
		s := v.Values()
		lo, hi := asInt(f.lo), asInt(f.hi)
		var k [1]uint64
		var id [1]int32
		each(func(i int) bool {
			if v.IsNull(i) {
				return false
			}
			x := intAt(s, v.Index(i))
			if x < lo || x > hi {
				return false
			}
			k[0] = uint64(x)
			f.ints.Find(k[:], id[:])
			return id[0] >= 0
		})
	default:
		var k [1][]byte
		var id [1]int32
		each(func(i int) bool {
			if v.IsNull(i) {
				return false
			}
			k[0] = v.Bytes(i)
			f.strs.Find(k[:], id[:])
			return id[0] >= 0
		})
	}
	return dst
}

func asInt(v vector.Value) int64 {
	switch x := v.(type) {
	case int32:
		return int64(x)
	case int64:
		return x
	}
	return 0
}
