package hash

import "math/bits"

// Ints numbers distinct integers: in an open-addressing table, or in an array by value while the values lie so close together that the array
// is no larger than the table would be. A processor's cache then holds four to eight times as many keys, and nothing is hashed.
type Ints struct {
	slots []intSlot
	n     int
	shift uint

	// lo and hi are the least and greatest key, as signed integers; meaningless while n is 0.
	lo, hi int64
	// byValue has the id of key base+i and 1, or 0; nil while slots are used.
	byValue []uint32
	base    uint64
	size    int // slots that a table would have, where byValue is used
}

type intSlot struct {
	key uint64
	id  uint32 // 0: empty; else the id and 1
}

func (t *Ints) init(slots int) {
	t.slots = make([]intSlot, slots)
	t.shift = uint(64 - bits.TrailingZeros(uint(slots)))
}

// Len is the number of distinct keys.
func (t *Ints) Len() int { return t.n }

// Bytes is the memory held, or in an array by value, as much as a table would hold: the next key may turn it into one.
func (t *Ints) Bytes() int64 { return int64(16 * t.capacity()) }

func (t *Ints) capacity() int {
	if t.byValue != nil {
		return t.size
	}
	return len(t.slots)
}

// Grow makes room for n keys without rehashing on the way.
func (t *Ints) Grow(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	if size > t.capacity() {
		t.resize(size)
	}
}

// fits reports whether an array by value for keys lo..hi, with as much room again, is no larger than a table of size slots.
func fits(lo, hi int64, size int) bool { return uint64(hi)-uint64(lo) < 2*uint64(size)-1 }

func (t *Ints) resize(size int) {
	if t.byValue != nil {
		t.size = size // the range of its keys is no larger for it
		return
	}
	if t.n > 0 && fits(t.lo, t.hi, size) {
		old := t.slots
		t.spread(size)
		for _, s := range old {
			if s.id != 0 {
				t.byValue[s.key-t.base] = s.id
			}
		}
		return
	}
	old := t.slots
	t.init(size)
	for _, s := range old {
		if s.id != 0 {
			t.put(s)
		}
	}
}

func (t *Ints) put(s intSlot) {
	mask := uint64(len(t.slots) - 1)
	i := Mix(s.key) >> t.shift & mask
	for t.slots[i].id != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// spread makes an empty array by value around lo..hi, with half their span free on either side so that a range that grows in steps is copied
// seldom.
func (t *Ints) spread(size int) {
	span := uint64(t.hi) - uint64(t.lo) + 1
	t.slots = nil
	t.byValue = make([]uint32, 2*span)
	t.base = uint64(t.lo) - span/2
	t.size = size
}

// widen makes room by value for keys lo..hi, as they now are, or turns the array into a table.
func (t *Ints) widen() {
	old, base := t.byValue, t.base
	if fits(t.lo, t.hi, t.size) {
		t.spread(t.size)
		// Of the old array only what lies between the old bounds is used, and those are within the new ones.
		for i, id := range old {
			if id != 0 {
				t.byValue[base+uint64(i)-t.base] = id
			}
		}
		return
	}
	t.byValue = nil
	t.init(t.size)
	for i, id := range old {
		if id != 0 {
			t.put(intSlot{base + uint64(i), id})
		}
	}
}

// Upsert numbers keys into ids; new ones get the next ids, and their positions in keys are appended to fresh.
func (t *Ints) Upsert(keys []uint64, ids []uint32, fresh []uint16) []uint16 {
	if len(keys) == 0 {
		return fresh
	}
	if need := t.n + len(keys); 2*need > t.capacity() {
		if t.n == 0 {
			t.bounds(keys)
			if size := max(64, 2*need); fits(t.lo, t.hi, size) {
				t.spread(1 << bits.Len(uint(size-1)))
			}
		}
		t.Grow(max(need, t.n*3/2))
	}
	done := 0
	for t.byValue != nil {
		if done, fresh = t.upsertByValue(keys, ids, fresh, done); done == len(keys) {
			return fresh
		}
		t.bounds(keys[done:])
		t.widen()
	}
	slots, mask, shift := t.slots, uint64(len(t.slots)-1), t.shift
	before := len(fresh)
	for k, key := range keys[done:] {
		i := Mix(key) >> shift & mask
		for {
			s := &slots[i]
			if s.id == 0 {
				t.n++
				s.key, s.id = key, uint32(t.n)
				fresh = append(fresh, uint16(done+k))
				ids[done+k] = uint32(t.n - 1)
				break
			}
			if s.key == key {
				ids[done+k] = s.id - 1
				break
			}
			i = (i + 1) & mask
		}
	}
	if t.n == len(fresh)-before && t.n > 0 { // the first keys
		t.lo, t.hi = int64(keys[fresh[before]]), int64(keys[fresh[before]])
	}
	for _, p := range fresh[before:] {
		x := int64(keys[p])
		t.lo, t.hi = min(t.lo, x), max(t.hi, x)
	}
	return fresh
}

// bounds widens lo and hi by keys.
func (t *Ints) bounds(keys []uint64) {
	if t.n == 0 {
		t.lo, t.hi = int64(keys[0]), int64(keys[0])
	}
	for _, key := range keys {
		t.lo, t.hi = min(t.lo, int64(key)), max(t.hi, int64(key))
	}
}

// upsertByValue numbers keys from the done'th until one lies outside the array; it gives how far it came.
func (t *Ints) upsertByValue(keys []uint64, ids []uint32, fresh []uint16, done int) (int, []uint16) {
	table, base := t.byValue, t.base
	ids = ids[:len(keys)]
	for k := done; k < len(keys); k++ {
		at := keys[k] - base
		if at >= uint64(len(table)) {
			return k, fresh
		}
		id := table[at]
		if id == 0 {
			t.n++
			id = uint32(t.n)
			table[at] = id
			t.lo, t.hi = min(t.lo, int64(keys[k])), max(t.hi, int64(keys[k]))
			fresh = append(fresh, uint16(k))
		}
		ids[k] = id - 1
	}
	return len(keys), fresh
}

// Find gives the ids of keys, -1 for the unknown.
func (t *Ints) Find(keys []uint64, ids []int32) {
	if t.n == 0 {
		for k := range keys {
			ids[k] = -1
		}
		return
	}
	if t.byValue != nil {
		for k, key := range keys {
			ids[k] = -1
			if at := key - t.base; at < uint64(len(t.byValue)) {
				ids[k] = int32(t.byValue[at]) - 1
			}
		}
		return
	}
	slots, mask, shift := t.slots, uint64(len(t.slots)-1), t.shift
	for k, key := range keys {
		i := Mix(key) >> shift & mask
		for {
			s := &slots[i]
			if s.id == 0 {
				ids[k] = -1
				break
			}
			if s.key == key {
				ids[k] = int32(s.id - 1)
				break
			}
			i = (i + 1) & mask
		}
	}
}
