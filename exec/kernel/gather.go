package kernel

import "github.com/skua-db/skua/vector"

// Gatherer makes chunks of rows picked from stores; its vectors are reused from call to call.
type Gatherer struct {
	cols []vector.Vector
	bits []vector.Bitmap
}

func (g *Gatherer) slot(k int) *vector.Vector {
	for len(g.cols) <= k {
		g.cols = append(g.cols, vector.Vector{})
		g.bits = append(g.bits, nil)
	}
	return &g.cols[k]
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, vector.Size))
	}
	return s[:n]
}

// Column fills output column k with rows ids of src: row i of the result is row ids[i] of src; a negative id is null. src is flat, of
// any length. String bytes are shared with src.
func (g *Gatherer) Column(k int, src *vector.Vector, ids []int32, n int) *vector.Vector {
	return g.fill(k, src, ids, nil, n)
}

// ColumnAt is Column for the rows of sel only: ids runs parallel to sel, and row sel[j] of the result, which has n rows, is
// row ids[j] of src.
func (g *Gatherer) ColumnAt(k int, src *vector.Vector, ids []int32, sel []uint16, n int) *vector.Vector {
	return g.fill(k, src, ids, sel, n)
}

func (g *Gatherer) fill(k int, src *vector.Vector, ids []int32, sel []uint16, n int) *vector.Vector {
	v := g.slot(k)
	v.Type, v.Form, v.Valid, v.Bufs = src.Type, vector.Flat, nil, src.Bufs
	negative := false
	for _, id := range ids {
		if id < 0 {
			negative = true
			break
		}
	}
	if negative || src.Valid != nil {
		w := (n + 63) / 64
		bm := vector.Bitmap(grown([]uint64(g.bits[k]), w))
		g.bits[k] = bm
		for i := range bm {
			bm[i] = ^uint64(0)
		}
		for j, id := range ids {
			i := j
			if sel != nil {
				i = int(sel[j])
			}
			if id < 0 || !src.Valid.Get(int(id)) {
				bm.Clear(i)
			}
		}
		v.Valid = bm
	}
	switch src.Type.Physical() {
	case vector.PBool:
		v.Bools = pick(v.Bools, src.Bools, ids, sel, n)
	case vector.PInt32:
		v.I32 = pick(v.I32, src.I32, ids, sel, n)
	case vector.PInt64:
		v.I64 = pick(v.I64, src.I64, ids, sel, n)
	case vector.PInt128:
		v.I128 = pick(v.I128, src.I128, ids, sel, n)
	case vector.PFloat32:
		v.F32 = pick(v.F32, src.F32, ids, sel, n)
	case vector.PFloat64:
		v.F64 = pick(v.F64, src.F64, ids, sel, n)
	case vector.PView:
		v.Views = pick(v.Views, src.Views, ids, sel, n)
	case vector.PList, vector.PRow:
		b := vector.NewBuilder(src.Type)
		for j, id := range ids {
			if sel != nil {
				for b.Len() < int(sel[j]) {
					b.AppendNull()
				}
			}
			if id < 0 {
				b.AppendNull()
			} else {
				b.AppendFrom(src, int(id))
			}
		}
		for b.Len() < n {
			b.AppendNull()
		}
		*v = *b.Finish()
	}
	return v
}

func pick[T any](dst, src []T, ids []int32, sel []uint16, n int) []T {
	dst = grown(dst, n)
	if len(src) == 0 {
		return dst
	}
	if sel == nil {
		for i, id := range ids {
			dst[i] = src[max(id, 0)]
		}
		return dst
	}
	for j, id := range ids {
		dst[sel[j]] = src[max(id, 0)]
	}
	return dst
}

// Rows copies picked rows of a vector of any form (a chunk's column, at most 65,536 rows) into output column k.
func (g *Gatherer) Rows(k int, src *vector.Vector, rows []uint16) *vector.Vector {
	v := g.slot(k)
	if src.Form == vector.Constant || src.Type.Kind == vector.Null {
		*v = *src
		return v
	}
	codes := v.Codes
	bits := g.bits[k]
	*v = vector.Vector{Type: src.Type, Form: vector.Dictionary, Dict: src.Dict}
	codes = grown(codes, len(rows))
	if src.Form == vector.Dictionary {
		for i, r := range rows {
			codes[i] = src.Codes[r]
		}
	} else {
		d := *src
		d.Valid = nil
		v.Dict = &d
		for i, r := range rows {
			codes[i] = int32(r)
		}
	}
	v.Codes = codes
	if src.Valid != nil {
		bits = vector.Bitmap(grown([]uint64(bits), (len(rows)+63)/64))
		for i := range bits {
			bits[i] = ^uint64(0)
		}
		for i, r := range rows {
			if !src.Valid.Get(int(r)) {
				bits.Clear(i)
			}
		}
		g.bits[k] = bits
		v.Valid = bits
	}
	return v
}

// Slice views rows lo..hi-1 of a store's column without copying; lo must be a multiple of 64.
func Slice(src *vector.Vector, lo, hi int) *vector.Vector {
	v := &vector.Vector{Type: src.Type, Bufs: src.Bufs}
	if src.Valid != nil {
		v.Valid = src.Valid[lo/64:]
	}
	switch src.Type.Physical() {
	case vector.PBool:
		v.Bools = src.Bools[lo:hi:hi]
	case vector.PInt32:
		v.I32 = src.I32[lo:hi:hi]
	case vector.PInt64:
		v.I64 = src.I64[lo:hi:hi]
	case vector.PInt128:
		v.I128 = src.I128[lo:hi:hi]
	case vector.PFloat32:
		v.F32 = src.F32[lo:hi:hi]
	case vector.PFloat64:
		v.F64 = src.F64[lo:hi:hi]
	case vector.PView:
		v.Views = src.Views[lo:hi:hi]
	case vector.PList:
		v.Offsets = src.Offsets[lo : hi+1 : hi+1]
		v.Children = src.Children
	case vector.PRow:
		for _, c := range src.Children {
			v.Children = append(v.Children, Slice(c, lo, hi))
		}
	}
	return v
}
