package deletes

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// Keys is a set of key tuples that equality delete files of one scope delete, each with the newest sequence number that
// deletes it: a row is dead when its key is there with a number above its data file's. Null equals null; NaN equals NaN;
// -0.0 and +0.0 differ; strings and bytes are compared as they are.
//
// Add is for one goroutine; afterwards Select may be called by many, each with its own Scratch.
type Keys struct {
	types []vector.Type
	pool  *memory.Pool
	held  int64

	// Open addressing with linear probing; seq 0 marks a free slot. A single column of at most 64 bits needs no tuple: its
	// hash is a bijection. Other tuples stand encoded in arena at ref.
	slots  []slot
	refs   []uint64
	arena  []byte
	n      int
	single bool
	// nullSeq is the number of the null key of a single column.
	nullSeq int64
	maxSeq  int64
	scratch Scratch
}

// slot is a key's hash and newest sequence number side by side, for one cache miss a lookup.
type slot struct {
	hash uint64
	seq  int64
}

// Scratch is working space for Select.
type Scratch struct {
	hashes []uint64
	tuple  []byte
}

// NewKeys makes an empty set of tuples of the given types, which must not be nested. pool, unless nil, accounts for it.
func NewKeys(types []vector.Type, pool *memory.Pool) *Keys {
	k := &Keys{types: types, pool: pool}
	if len(types) == 1 {
		switch types[0].Physical() {
		case vector.PBool, vector.PInt32, vector.PInt64, vector.PFloat32, vector.PFloat64:
			k.single = true
		}
	}
	return k
}

// Len is the number of distinct keys.
func (k *Keys) Len() int { return k.n }

// Bytes is about how much memory the set takes.
func (k *Keys) Bytes() int64 { return k.held + 200 }

// MaxSeq is the largest sequence number of any key; a data file of that number or a newer one loses no row.
func (k *Keys) MaxSeq() int64 { return k.maxSeq }

// Release gives the set's bytes back to its pool. The set stays usable; who keeps it accounts for it elsewhere.
func (k *Keys) Release() {
	if k.pool != nil {
		k.pool.Release(k.held)
	}
	k.pool = nil
}

// Add takes the rows of sel (nil: 0..n-1) of a delete file with sequence number seq. cols stand in the order of the
// set's types. It fails with fault.Exhausted when the pool has no room.
func (k *Keys) Add(cols []*vector.Vector, n int, sel []uint16, seq int64) error {
	if seq <= 0 {
		return nil // older than or as old as every data file
	}
	k.maxSeq = max(k.maxSeq, seq)
	rows := n
	if sel != nil {
		rows = len(sel)
	}
	if err := k.reserve(rows); err != nil {
		return err
	}
	hs := k.hash(cols, n, &k.scratch)
	for i := range rows {
		r := i
		if sel != nil {
			r = int(sel[i])
		}
		if k.single && cols[0].IsNull(r) {
			k.nullSeq = max(k.nullSeq, seq)
			continue
		}
		if err := k.insert(cols, r, hs[r], seq); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keys) account(n int64) error {
	if k.pool != nil {
		if err := k.pool.Reserve(n); err != nil {
			return err
		}
	}
	k.held += n
	return nil
}

// reserve makes room for more keys at a load of at most one half.
func (k *Keys) reserve(more int) error {
	want := 1024
	for want < 2*(k.n+more) {
		want *= 2
	}
	if want <= len(k.slots) {
		return nil
	}
	width := int64(16)
	if !k.single {
		width = 24
	}
	if err := k.account(int64(want) * width); err != nil {
		return err
	}
	slots, refs := k.slots, k.refs
	k.slots = make([]slot, want)
	if !k.single {
		k.refs = make([]uint64, want)
	}
	mask := uint64(want - 1)
	for i, s := range slots {
		if s.seq == 0 {
			continue
		}
		at := s.hash & mask
		for k.slots[at].seq != 0 {
			at = (at + 1) & mask
		}
		k.slots[at] = s
		if !k.single {
			k.refs[at] = refs[i]
		}
	}
	old := int64(len(slots)) * width
	if k.pool != nil {
		k.pool.Release(old)
	}
	k.held -= old
	return nil
}

func (k *Keys) insert(cols []*vector.Vector, r int, h uint64, seq int64) error {
	mask := uint64(len(k.slots) - 1)
	at := h & mask
	for ; k.slots[at].seq != 0; at = (at + 1) & mask {
		if k.slots[at].hash == h && (k.single || k.equal(at, cols, r, &k.scratch)) {
			k.slots[at].seq = max(k.slots[at].seq, seq)
			return nil
		}
	}
	if !k.single {
		k.scratch.tuple = k.encode(k.scratch.tuple[:0], cols, r)
		t := k.scratch.tuple
		if need := len(t) + binary.MaxVarintLen64; cap(k.arena)-len(k.arena) < need {
			size := max(2*cap(k.arena), need, 64<<10)
			if err := k.account(int64(size)); err != nil {
				return err
			}
			old := k.arena
			k.arena = append(make([]byte, 0, size), old...)
			if k.pool != nil {
				k.pool.Release(int64(cap(old)))
			}
			k.held -= int64(cap(old))
		}
		k.refs[at] = uint64(len(k.arena))
		k.arena = binary.AppendUvarint(k.arena, uint64(len(t)))
		k.arena = append(k.arena, t...)
	}
	k.slots[at] = slot{h, seq}
	k.n++
	return nil
}

func (k *Keys) equal(at uint64, cols []*vector.Vector, r int, s *Scratch) bool {
	s.tuple = k.encode(s.tuple[:0], cols, r)
	n, w := binary.Uvarint(k.arena[k.refs[at]:])
	from := k.refs[at] + uint64(w)
	return bytes.Equal(k.arena[from:from+n], s.tuple)
}

// Select keeps the rows of sel (nil: 0..n-1) that no key newer than seq, the data file's sequence number, deletes. It
// writes into dst.
func (k *Keys) Select(cols []*vector.Vector, n int, sel, dst []uint16, seq int64, s *Scratch) []uint16 {
	dst = dst[:0]
	rows := n
	if sel != nil {
		rows = len(sel)
	}
	if len(k.slots) == 0 && k.nullSeq <= seq || k.maxSeq <= seq {
		for i := range rows {
			if sel != nil {
				dst = append(dst, sel[i])
			} else {
				dst = append(dst, uint16(i))
			}
		}
		return dst
	}
	hs := k.hash(cols, n, s)
	mask := uint64(len(k.slots) - 1)
	nullable := k.single && (cols[0].Valid != nil || cols[0].Type.Kind == vector.Null)
	for i := range rows {
		r := i
		if sel != nil {
			r = int(sel[i])
		}
		if nullable && cols[0].IsNull(r) {
			if k.nullSeq <= seq {
				dst = append(dst, uint16(r))
			}
			continue
		}
		h := hs[r]
		dead := false
		if len(k.slots) > 0 {
			for at := h & mask; ; at = (at + 1) & mask {
				found := k.slots[at]
				if found.seq == 0 {
					break
				}
				if found.hash == h && (k.single || k.equal(at, cols, r, s)) {
					dead = found.seq > seq
					break
				}
			}
		}
		if !dead {
			dst = append(dst, uint16(r))
		}
	}
	return dst
}

// encode writes row r of cols so that equal tuples have equal bytes.
func (k *Keys) encode(dst []byte, cols []*vector.Vector, r int) []byte {
	for c, v := range cols {
		if v.IsNull(r) {
			dst = append(dst, 0)
			continue
		}
		dst = append(dst, 1)
		s, j := v.Values(), v.Index(r)
		switch k.types[c].Physical() {
		case vector.PBool:
			b := byte(0)
			if s.Bools[j] {
				b = 1
			}
			dst = append(dst, b)
		case vector.PInt32:
			dst = binary.LittleEndian.AppendUint32(dst, uint32(s.I32[j]))
		case vector.PInt64:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(s.I64[j]))
		case vector.PInt128:
			dst = binary.LittleEndian.AppendUint64(dst, s.I128[j].LowBits())
			dst = binary.LittleEndian.AppendUint64(dst, uint64(s.I128[j].HighBits()))
		case vector.PFloat32:
			dst = binary.LittleEndian.AppendUint64(dst, floatBits(float64(s.F32[j])))
		case vector.PFloat64:
			dst = binary.LittleEndian.AppendUint64(dst, floatBits(s.F64[j]))
		case vector.PView:
			b := s.Views[j].Bytes(s.Bufs)
			dst = binary.AppendUvarint(dst, uint64(len(b)))
			dst = append(dst, b...)
		}
	}
	return dst
}

// floatBits makes all NaN one.
func floatBits(f float64) uint64 {
	if f != f {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

// mix is a bijection of 64 bits (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

const nullHash = 0x9e3779b97f4a7c15

// hash computes the hashes of rows 0..n-1, column by column.
func (k *Keys) hash(cols []*vector.Vector, n int, s *Scratch) []uint64 {
	if cap(s.hashes) < n {
		s.hashes = make([]uint64, max(n, vector.Size))
	}
	hs := s.hashes[:n]
	clear(hs)
	for c, v := range cols {
		hashColumn(hs, v, k.types[c])
	}
	return hs
}

func hashColumn(hs []uint64, v *vector.Vector, t vector.Type) {
	if v.Type.Kind == vector.Null {
		for i := range hs {
			hs[i] = mix(hs[i] + nullHash)
		}
		return
	}
	switch s := v.Values(); t.Physical() {
	case vector.PBool:
		hashRows(hs, v, func(j int) uint64 {
			if s.Bools[j] {
				return 1
			}
			return 0
		})
	case vector.PInt32:
		hashNumbers(hs, v, s.I32)
	case vector.PInt64:
		hashNumbers(hs, v, s.I64)
	case vector.PInt128:
		hashRows(hs, v, func(j int) uint64 { return s.I128[j].LowBits() ^ mix(uint64(s.I128[j].HighBits())) })
	case vector.PFloat32:
		hashRows(hs, v, func(j int) uint64 { return floatBits(float64(s.F32[j])) })
	case vector.PFloat64:
		hashRows(hs, v, func(j int) uint64 { return floatBits(s.F64[j]) })
	case vector.PView:
		hashRows(hs, v, func(j int) uint64 { return xxhash.Sum64(s.Views[j].Bytes(s.Bufs)) })
	}
}

func hashNumbers[T int32 | int64](hs []uint64, v *vector.Vector, xs []T) {
	if v.Form == vector.Flat && v.Valid == nil {
		for i, x := range xs[:len(hs)] {
			hs[i] = mix(hs[i] + uint64(int64(x)))
		}
		return
	}
	hashRows(hs, v, func(j int) uint64 { return uint64(int64(xs[j])) })
}

func hashRows(hs []uint64, v *vector.Vector, value func(int) uint64) {
	for i := range hs {
		x := uint64(nullHash)
		if !v.IsNull(i) {
			x = value(v.Index(i))
		}
		hs[i] = mix(hs[i] + x)
	}
}
