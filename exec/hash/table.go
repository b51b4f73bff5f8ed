// Package hash holds the open-addressing tables that number distinct keys: integers, pairs of integers and byte strings.
//
// Ids are given in order of first appearance from 0. It knows no column types beyond the Encoder, and no operator. A table may be
// read by many goroutines while nobody writes to it.
package hash

import (
	"hash/maphash"
	"math/bits"
)

const (
	k0 = 0x9E3779B97F4A7C15
	k1 = 0xD6E8FEB86659FD93
)

// Mix hashes one integer.
func Mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^k0, k1)
	return hi ^ lo
}

// Mix2 hashes a pair.
func Mix2(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x^k0, y^k1)
	return Mix(hi ^ lo ^ x)
}

var seed = maphash.MakeSeed()

// Bytes hashes a byte string. It differs between processes.
func Bytes(p []byte) uint64 { return maphash.Bytes(seed, p) }

// Pairs numbers distinct pairs of integers.
type Pairs struct {
	slots []pairSlot
	n     int
	shift uint
}

// Pair is a key of Pairs.
type Pair [2]uint64

type pairSlot struct {
	key Pair
	id  uint32
}

// Len is the number of distinct keys.
func (t *Pairs) Len() int { return t.n }

// Bytes is the memory held.
func (t *Pairs) Bytes() int64 { return int64(24 * len(t.slots)) }

func (t *Pairs) resize(size int) {
	old := t.slots
	t.slots = make([]pairSlot, size)
	t.shift = uint(64 - bits.TrailingZeros(uint(size)))
	mask := uint64(size - 1)
	for _, s := range old {
		if s.id == 0 {
			continue
		}
		i := Mix2(s.key[0], s.key[1]) >> t.shift
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = s
	}
}

// Upsert is that of Ints.
func (t *Pairs) Upsert(keys []Pair, ids []uint32, fresh []uint16) []uint16 {
	if need := t.n + len(keys); 2*need > len(t.slots) {
		size := max(64, len(t.slots))
		for size < 2*max(need, t.n*3/2) {
			size *= 2
		}
		t.resize(size)
	}
	slots, mask, shift := t.slots, uint64(len(t.slots)-1), t.shift
	for k := range keys {
		key := keys[k]
		i := Mix2(key[0], key[1]) >> shift & mask
		for {
			s := &slots[i]
			if s.id == 0 {
				t.n++
				s.key, s.id = key, uint32(t.n)
				fresh = append(fresh, uint16(k))
				ids[k] = uint32(t.n - 1)
				break
			}
			if s.key == key {
				ids[k] = s.id - 1
				break
			}
			i = (i + 1) & mask
		}
	}
	return fresh
}

// Find is that of Ints.
func (t *Pairs) Find(keys []Pair, ids []int32) {
	if t.n == 0 {
		for k := range keys {
			ids[k] = -1
		}
		return
	}
	slots, mask, shift := t.slots, uint64(len(t.slots)-1), t.shift
	for k := range keys {
		key := keys[k]
		i := Mix2(key[0], key[1]) >> shift & mask
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

// Strings numbers distinct byte strings.
type Strings struct {
	slots []stringSlot
	ends  []int // end of each key in text
	text  []byte
	tags  []uint64 // full hashes by id
}

type stringSlot struct {
	tag uint32 // low half of the hash
	id  uint32
}

// Len is the number of distinct keys.
func (t *Strings) Len() int { return len(t.ends) }

// Bytes is the memory held.
func (t *Strings) Bytes() int64 {
	return int64(8*len(t.slots) + 8*cap(t.ends) + 8*cap(t.tags) + cap(t.text))
}

// Key gives the bytes of a key by its id.
func (t *Strings) Key(id uint32) []byte {
	lo := 0
	if id > 0 {
		lo = t.ends[id-1]
	}
	return t.text[lo:t.ends[id]]
}

func (t *Strings) resize(size int) {
	t.slots = make([]stringSlot, size)
	mask := uint64(size - 1)
	for id, h := range t.tags {
		i := h >> 32 & mask
		for t.slots[i].id != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = stringSlot{uint32(h), uint32(id + 1)}
	}
}

// Upsert is that of Ints.
func (t *Strings) Upsert(keys [][]byte, ids []uint32, fresh []uint16) []uint16 {
	if need := len(t.ends) + len(keys); 2*need > len(t.slots) {
		size := max(64, len(t.slots))
		for size < 2*max(need, len(t.ends)*3/2) {
			size *= 2
		}
		t.resize(size)
	}
	mask := uint64(len(t.slots) - 1)
	for k, key := range keys {
		h := Bytes(key)
		i := h >> 32 & mask
		for {
			s := &t.slots[i]
			if s.id == 0 {
				t.text = append(t.text, key...)
				t.ends = append(t.ends, len(t.text))
				t.tags = append(t.tags, h)
				s.tag, s.id = uint32(h), uint32(len(t.ends))
				fresh = append(fresh, uint16(k))
				ids[k] = s.id - 1
				break
			}
			if s.tag == uint32(h) && string(t.Key(s.id-1)) == string(key) {
				ids[k] = s.id - 1
				break
			}
			i = (i + 1) & mask
		}
	}
	return fresh
}

// Find is that of Ints.
func (t *Strings) Find(keys [][]byte, ids []int32) {
	if len(t.ends) == 0 {
		for k := range keys {
			ids[k] = -1
		}
		return
	}
	mask := uint64(len(t.slots) - 1)
	for k, key := range keys {
		h := Bytes(key)
		i := h >> 32 & mask
		for {
			s := &t.slots[i]
			if s.id == 0 {
				ids[k] = -1
				break
			}
			if s.tag == uint32(h) && string(t.Key(s.id-1)) == string(key) {
				ids[k] = int32(s.id - 1)
				break
			}
			i = (i + 1) & mask
		}
	}
}
