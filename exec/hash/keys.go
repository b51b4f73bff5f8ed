package hash

import (
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// Keys numbers distinct rows of key columns as GROUP BY sees them: nulls are equal, NaN is one value, -0.0 is 0.0. It chooses the
// table by the types: one fixed-width column, several of together at most 128 bits, or an encoding as bytes.
type Keys struct {
	types []vector.Type
	mode  mode
	ints  Ints
	pairs Pairs
	strs  Strings

	// nullID is the id of the null of a single column, which the tables do not see; -1 while there is none.
	// Ids of the tables from nullID on count one more.
	nullID int64
	n      int

	k64   []uint64
	kPair []Pair
	kByte [][]byte
	arena []byte
	rows  []uint16
	pos   []uint16
	fresh []uint16
	ids   []uint32
	found []int32

	codes []uint32 // of byCodes: combined code of each row
	byID  []uint32 // id by combined code
	first []uint16 // rows with a code not seen before in the chunk
	at    []uint16 // their positions in rows
	some  []uint32
}

type mode uint8

const (
	modeInt mode = iota
	modePair
	modeString
	modeBytes
)

// NewKeys makes a table for key columns of these types, at least one.
func NewKeys(types []vector.Type) *Keys {
	k := &Keys{types: types, nullID: -1, mode: modeBytes}
	if len(types) == 1 {
		switch {
		case fixedBits(types[0]) > 0 && fixedBits(types[0]) <= 64:
			k.mode = modeInt
		case types[0].Physical() == vector.PView && types[0].Kind != vector.JSON:
			k.mode = modeString
		}
		return k
	}
	total := 0
	for _, t := range types {
		b := fixedBits(t)
		if b == 0 {
			return k
		}
		total += b + 1
	}
	if total <= 128 {
		k.mode = modePair
	}
	return k
}

func fixedBits(t vector.Type) int {
	switch t.Physical() {
	case vector.PBool:
		return 1
	case vector.PInt32, vector.PFloat32:
		return 32
	case vector.PInt64, vector.PFloat64:
		return 64
	}
	return 0
}

// Len is the number of distinct rows.
func (k *Keys) Len() int { return k.n }

// Bytes is the memory held.
func (k *Keys) Bytes() int64 {
	return k.ints.Bytes() + k.pairs.Bytes() + k.strs.Bytes() + int64(cap(k.arena))
}

// Upsert numbers the rows (nil: 0..n-1) of cols into ids, which run parallel to rows. It gives the positions in rows of those
// seen for the first time; the slice is valid until the next call.
func (k *Keys) Upsert(cols []*vector.Vector, rows []uint16, ids []uint32) []uint16 {
	k.fresh = k.fresh[:0]
	if k.byCodes(cols, rows, ids) {
		return k.fresh
	}
	return k.upsert(cols, rows, ids)
}

func (k *Keys) upsert(cols []*vector.Vector, rows []uint16, ids []uint32) []uint16 {
	if len(cols) == 1 && k.mode != modeBytes {
		return k.upsertOne(cols[0], rows, ids)
	}
	switch k.mode {
	case modePair:
		k.packPairs(cols, rows)
		k.fresh = k.pairs.Upsert(k.kPair, ids, k.fresh)
		k.n = k.pairs.Len()
	default:
		k.encode(cols, rows)
		k.fresh = k.strs.Upsert(k.kByte, ids, k.fresh)
		k.n = k.strs.Len()
	}
	return k.fresh
}

// Grows reports whether numbering n more rows may make the table larger, which doubles it.
func (k *Keys) Grows(n int) bool {
	switch k.mode {
	case modeInt:
		return 2*(k.ints.n+n) > k.ints.capacity()
	case modePair:
		return 2*(k.pairs.n+n) > len(k.pairs.slots)
	}
	return 2*(len(k.strs.ends)+n) > len(k.strs.slots)
}

// Hashes gives a hash of each row that is equal for rows which Upsert numbers equally. It depends on the types and the process only.
func (k *Keys) Hashes(cols []*vector.Vector, rows []uint16, dst []uint64) {
	switch k.mode {
	case modePair:
		k.packPairs(cols, rows)
		for p, x := range k.kPair {
			dst[p] = Mix2(x[0], x[1])
		}
	case modeBytes:
		k.encode(cols, rows)
		for p, b := range k.kByte {
			dst[p] = Bytes(b)
		}
	default:
		v := cols[0]
		live, at := rows, []uint16(nil)
		if v.Valid != nil || v.Type.Kind == vector.Null {
			k.rows, k.pos = k.rows[:0], k.pos[:0]
			for p, i := range rows {
				if v.IsNull(int(i)) {
					dst[p] = 0
					continue
				}
				k.rows, k.pos = append(k.rows, i), append(k.pos, uint16(p))
			}
			live, at = k.rows, k.pos
		}
		if len(live) == 0 {
			return
		}
		k.k64 = grow(k.k64, len(live))
		if k.mode == modeInt {
			Fixed(v, live, k.k64)
			for p, x := range k.k64 {
				k.k64[p] = Mix(x)
			}
		} else {
			k.views(v, live)
			for p, b := range k.kByte {
				k.k64[p] = Bytes(b)
			}
		}
		for p, h := range k.k64 {
			if at != nil {
				dst[at[p]] = h
			} else {
				dst[p] = h
			}
		}
	}
}

const unseen = ^uint32(0)

// byCodes numbers rows of dictionary columns with few combinations of codes: each combination is looked up once in the chunk.
func (k *Keys) byCodes(cols []*vector.Vector, rows []uint16, ids []uint32) bool {
	combos, dicts := 1, 0
	for _, v := range cols {
		switch v.Form {
		case vector.Constant:
			continue
		case vector.Dictionary:
			dicts++
			combos *= dictLen(v.Dict) + 1
			if combos > len(rows) || combos > 1<<15 {
				return false
			}
		default:
			return false
		}
	}
	if dicts == 0 {
		return false
	}
	k.codes = grow(k.codes, len(rows))
	firstCol := true
	for _, v := range cols {
		if v.Form != vector.Dictionary {
			continue
		}
		n := uint32(dictLen(v.Dict))
		for p, i := range rows {
			code := n
			if v.Valid.Get(int(i)) {
				code = uint32(v.Codes[i])
			}
			if firstCol {
				k.codes[p] = code
			} else {
				k.codes[p] = k.codes[p]*(n+1) + code
			}
		}
		firstCol = false
	}
	k.byID = grow(k.byID, combos)
	for i := range k.byID {
		k.byID[i] = unseen
	}
	k.first, k.at = k.first[:0], k.at[:0]
	for p, c := range k.codes[:len(rows)] {
		if k.byID[c] == unseen {
			k.byID[c] = 0
			k.first = append(k.first, rows[p])
			k.at = append(k.at, uint16(p))
		}
	}
	k.some = grow(k.some, len(k.first))
	k.upsert(cols, k.first, k.some)
	for p := range k.first {
		k.byID[k.codes[k.at[p]]] = k.some[p]
	}
	for f, p := range k.fresh {
		k.fresh[f] = k.at[p]
	}
	for p, c := range k.codes[:len(rows)] {
		ids[p] = k.byID[c]
	}
	return true
}

// dictLen is the number of a dictionary's values; nested ones are taken for more than pay off.
func dictLen(v *vector.Vector) int {
	switch v.Type.Physical() {
	case vector.PNone, vector.PList, vector.PRow:
		return 1 << 20
	}
	return v.StoredLen()
}

// upsertOne handles a single column: nulls aside, and the values of a small dictionary once.
func (k *Keys) upsertOne(v *vector.Vector, rows []uint16, ids []uint32) []uint16 {
	live, pos := rows, []uint16(nil)
	if v.Valid != nil || v.Type.Kind == vector.Null {
		k.rows, k.pos = k.rows[:0], k.pos[:0]
		for p, i := range rows {
			if v.IsNull(int(i)) {
				if k.nullID < 0 {
					k.nullID = int64(k.n)
					k.n++
					k.fresh = append(k.fresh, uint16(p))
				}
				ids[p] = uint32(k.nullID)
				continue
			}
			k.rows = append(k.rows, i)
			k.pos = append(k.pos, uint16(p))
		}
		live, pos = k.rows, k.pos
	}
	if len(live) == 0 {
		return k.fresh
	}
	before := len(k.fresh)
	out := ids
	if pos != nil {
		k.ids = grow(k.ids, len(live))
		out = k.ids
	}
	if k.mode == modeInt {
		k.k64 = grow(k.k64, len(live))
		Fixed(v, live, k.k64)
		k.fresh = k.ints.Upsert(k.k64, out, k.fresh)
	} else {
		k.views(v, live)
		k.fresh = k.strs.Upsert(k.kByte, out, k.fresh)
	}
	k.n += len(k.fresh) - before
	if k.nullID >= 0 {
		null := uint32(k.nullID)
		for p, id := range out {
			if id >= null {
				out[p] = id + 1
			}
		}
	}
	if pos == nil {
		return k.fresh
	}
	for p, id := range out {
		ids[pos[p]] = id
	}
	for f := before; f < len(k.fresh); f++ {
		k.fresh[f] = pos[k.fresh[f]]
	}
	return k.fresh
}

func (k *Keys) views(v *vector.Vector, rows []uint16) {
	k.kByte = grow(k.kByte, len(rows))
	s := v.Values()
	for p, i := range rows {
		k.kByte[p] = s.Views[v.Index(int(i))].Bytes(s.Bufs)
	}
}

// Find gives the numbers of rows, -1 for rows never upserted.
func (k *Keys) Find(cols []*vector.Vector, rows []uint16, ids []int32) {
	if len(cols) == 1 && k.mode != modeBytes {
		k.findOne(cols[0], rows, ids)
		return
	}
	if k.mode == modePair {
		k.packPairs(cols, rows)
		k.pairs.Find(k.kPair, ids)
		return
	}
	k.encode(cols, rows)
	k.strs.Find(k.kByte, ids)
}

func (k *Keys) findOne(v *vector.Vector, rows []uint16, ids []int32) {
	live, pos := rows, []uint16(nil)
	if v.Valid != nil || v.Type.Kind == vector.Null {
		k.rows, k.pos = k.rows[:0], k.pos[:0]
		for p, i := range rows {
			if v.IsNull(int(i)) {
				ids[p] = int32(k.nullID)
				continue
			}
			k.rows = append(k.rows, i)
			k.pos = append(k.pos, uint16(p))
		}
		live, pos = k.rows, k.pos
	}
	if len(live) == 0 {
		return
	}
	k.found = grow(k.found, len(live))
	if k.mode == modeInt {
		k.k64 = grow(k.k64, len(live))
		Fixed(v, live, k.k64)
		k.ints.Find(k.k64, k.found)
	} else {
		k.views(v, live)
		k.strs.Find(k.kByte, k.found)
	}
	for p, id := range k.found {
		if k.nullID >= 0 && id >= int32(k.nullID) {
			id++
		}
		if pos != nil {
			ids[pos[p]] = id
		} else {
			ids[p] = id
		}
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, vector.Size))
	}
	return s[:n]
}

// Fixed reads rows of a fixed-width column of at most 64 bits, none null, as integers that are equal for equal values.
func Fixed(v *vector.Vector, rows []uint16, dst []uint64) {
	switch v.Type.Physical() {
	case vector.PBool:
		fixed(v, v.Values().Bools, rows, dst, func(b bool) uint64 {
			if b {
				return 1
			}
			return 0
		})
	case vector.PInt32:
		s := v.Values().I32
		if v.Form == vector.Flat {
			for p, i := range rows {
				dst[p] = uint64(s[i])
			}
			return
		}
		fixed(v, s, rows, dst, func(x int32) uint64 { return uint64(x) })
	case vector.PInt64:
		s := v.Values().I64
		if v.Form == vector.Flat {
			for p, i := range rows {
				dst[p] = uint64(s[i])
			}
			return
		}
		fixed(v, s, rows, dst, func(x int64) uint64 { return uint64(x) })
	case vector.PFloat32:
		fixed(v, v.Values().F32, rows, dst, func(x float32) uint64 { return uint64(expr.FloatKey32(x)) })
	case vector.PFloat64:
		fixed(v, v.Values().F64, rows, dst, expr.FloatKey64)
	}
}

func fixed[T any](v *vector.Vector, s []T, rows []uint16, dst []uint64, f func(T) uint64) {
	for p, i := range rows {
		dst[p] = f(s[v.Index(int(i))])
	}
}

// packPairs lays the columns side by side in 128 bits, each with a bit for null.
func (k *Keys) packPairs(cols []*vector.Vector, rows []uint16) {
	k.kPair = grow(k.kPair, len(rows))
	clear(k.kPair)
	k.k64 = grow(k.k64, len(rows))
	at := uint(0)
	for c, v := range cols {
		width := uint(fixedBits(k.types[c]))
		hasNull := v.Valid != nil || v.Type.Kind == vector.Null
		if hasNull {
			for p, i := range rows {
				if v.IsNull(int(i)) {
					k.k64[p] = 0
					put(&k.kPair[p], 1, at+width)
				} else {
					one := [1]uint16{i}
					Fixed(v, one[:], k.k64[p:p+1])
				}
			}
		} else {
			Fixed(v, rows, k.k64)
		}
		for p, x := range k.k64 {
			if width == 32 {
				x = uint64(uint32(x))
			}
			put(&k.kPair[p], x, at)
		}
		at += width + 1
	}
}

func put(p *Pair, x uint64, at uint) {
	if at >= 64 {
		p[1] |= x << (at - 64)
		return
	}
	p[0] |= x << at
	if at > 0 {
		p[1] |= x >> (64 - at)
	}
}

// encode writes the rows as byte strings into the arena.
func (k *Keys) encode(cols []*vector.Vector, rows []uint16) {
	k.kByte = grow(k.kByte, len(rows))
	k.arena = k.arena[:0]
	ends := grow(k.ids, len(rows))
	k.ids = ends
	for p, i := range rows {
		for _, v := range cols {
			k.arena = expr.AppendKey(k.arena, v, int(i))
		}
		ends[p] = uint32(len(k.arena))
	}
	lo := uint32(0)
	for p, hi := range ends {
		k.kByte[p] = k.arena[lo:hi:hi]
		lo = hi
	}
}

// Reader gives a view of the same tables with scratch space of its own, for Find on another goroutine. k must not be written to
// afterwards.
func (k *Keys) Reader() *Keys {
	return &Keys{types: k.types, mode: k.mode, ints: k.ints, pairs: k.pairs, strs: k.strs, nullID: k.nullID, n: k.n}
}
