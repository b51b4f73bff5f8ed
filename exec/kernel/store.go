// Package kernel holds the loops that copy rows: appending the rows of chunks to columns of any length and gathering rows back.
//
// It decides nothing about memory limits and knows no operator. Nothing here is safe for concurrent writes; a Store that is
// no longer appended to may be read by many goroutines.
package kernel

import (
	"github.com/skua-db/skua/vector"
)

// Store is a table in memory: columns of equal and unbounded length that own all their bytes.
type Store struct {
	Types []vector.Type
	Cols  []*vector.Vector // flat
	N     int
	text  int64 // bytes in string buffers
}

// NewStore makes an empty store.
func NewStore(types []vector.Type) *Store {
	s := &Store{Types: types}
	for _, t := range types {
		s.Cols = append(s.Cols, vector.New(t, 0))
	}
	return s
}

// Append copies rows of cols (nil: 0..n-1) to the end.
func (s *Store) Append(cols []*vector.Vector, sel []uint16, n int) {
	rows := sel
	if rows == nil {
		rows = Identity(n)
	}
	for k, c := range s.Cols {
		s.text += appendRows(c, s.N, cols[k], rows)
	}
	s.N += len(rows)
}

// AppendRow copies one row to the end.
func (s *Store) AppendRow(cols []*vector.Vector, i uint16) {
	s.Append(cols, []uint16{i}, int(i)+1)
}

// AppendStore moves all rows of t, which is not used again, to the end.
func (s *Store) AppendStore(t *Store) {
	if s.N == 0 {
		types := s.Types
		*s = *t
		s.Types = types
		return
	}
	ids := make([]int32, 0, vector.Size)
	var out Gatherer
	for lo := 0; lo < t.N; lo += vector.Size {
		ids = ids[:0]
		for i := lo; i < min(lo+vector.Size, t.N); i++ {
			ids = append(ids, int32(i))
		}
		cols := make([]*vector.Vector, len(t.Cols))
		for k, c := range t.Cols {
			cols[k] = out.Column(k, c, ids, len(ids))
		}
		s.Append(cols, nil, len(ids))
	}
}

// Reset empties the store and keeps its memory, but for the bytes of texts.
func (s *Store) Reset() {
	for _, c := range s.Cols {
		reset(c)
	}
	s.N, s.text = 0, 0
}

func reset(v *vector.Vector) {
	v.Valid, v.Bufs = nil, nil
	v.Bools, v.I32, v.I64, v.I128 = v.Bools[:0], v.I32[:0], v.I64[:0], v.I128[:0]
	v.F32, v.F64, v.Views = v.F32[:0], v.F64[:0], v.Views[:0]
	if v.Offsets != nil {
		v.Offsets = v.Offsets[:1]
	}
	for _, c := range v.Children {
		reset(c)
	}
}

// Bytes is the memory the store holds.
func (s *Store) Bytes() int64 {
	b := s.text
	for _, c := range s.Cols {
		b += fixedBytes(c)
	}
	return b
}

func fixedBytes(v *vector.Vector) int64 {
	b := int64(cap(v.Bools)) + 4*int64(cap(v.I32)) + 8*int64(cap(v.I64)) + 16*int64(cap(v.I128)) + 4*int64(cap(v.F32)) +
		8*int64(cap(v.F64)) + 16*int64(cap(v.Views)) + 4*int64(cap(v.Offsets)) + 8*int64(cap(v.Valid))
	for _, c := range v.Children {
		b += fixedBytes(c)
	}
	return b
}

var identity = func() (t [vector.Size]uint16) {
	for i := range t {
		t[i] = uint16(i)
	}
	return
}()

// Identity lists the rows 0..n-1, n at most vector.Size.
func Identity(n int) []uint16 { return identity[:n] }

// appendRows copies rows of src to the end of dst, which has n rows; it gives the string bytes added.
func appendRows(dst *vector.Vector, n int, src *vector.Vector, rows []uint16) int64 {
	total := n + len(rows)
	null := src.Type.Kind == vector.Null || src.Form == vector.Constant && src.IsNull(0)
	switch {
	case null || src.Valid != nil && src.Form != vector.Constant:
		dst.Valid = growBitmap(dst.Valid, n, total)
		for k, i := range rows {
			if null || src.IsNull(int(i)) {
				dst.Valid.Clear(n + k)
			}
		}
	case dst.Valid != nil:
		dst.Valid = growBitmap(dst.Valid, n, total)
	}
	if dst.Type.Kind == vector.Null {
		return 0
	}
	if null {
		appendZeros(dst, n, len(rows))
		return 0
	}
	switch dst.Type.Physical() {
	case vector.PBool:
		dst.Bools = appendFixed(dst.Bools, src, src.Values().Bools, rows)
	case vector.PInt32:
		dst.I32 = appendFixed(dst.I32, src, src.Values().I32, rows)
	case vector.PInt64:
		dst.I64 = appendFixed(dst.I64, src, src.Values().I64, rows)
	case vector.PInt128:
		dst.I128 = appendFixed(dst.I128, src, src.Values().I128, rows)
	case vector.PFloat32:
		dst.F32 = appendFixed(dst.F32, src, src.Values().F32, rows)
	case vector.PFloat64:
		dst.F64 = appendFixed(dst.F64, src, src.Values().F64, rows)
	case vector.PView:
		return appendViews(dst, src, rows)
	case vector.PRow:
		s := src.Values()
		text := int64(0)
		one := make([]uint16, 1)
		for k, c := range dst.Children {
			if src.Form == vector.Flat && src.Valid == nil {
				text += appendRows(c, n, s.Children[k], rows)
				continue
			}
			for r, i := range rows {
				if src.IsNull(int(i)) {
					text += appendRows(c, n+r, nullVector, one)
				} else {
					text += appendAny(c, n+r, s.Children[k], src.Index(int(i)))
				}
			}
		}
		return text
	case vector.PList:
		s := src.Values()
		text := int64(0)
		for _, i := range rows {
			at := int(dst.Offsets[len(dst.Offsets)-1])
			end := at
			if !src.IsNull(int(i)) {
				j := src.Index(int(i))
				lo, hi := int(s.Offsets[j]), int(s.Offsets[j+1])
				for e := lo; e < hi; e++ {
					for k, c := range dst.Children {
						text += appendAny(c, at+e-lo, s.Children[k], e)
					}
				}
				end = at + hi - lo
			}
			dst.Offsets = append(dst.Offsets, int32(end))
		}
		return text
	}
	return 0
}

var nullVector = &vector.Vector{Type: vector.Of(vector.Null)}

// appendAny appends row i of src, which may lie beyond 65,535.
func appendAny(dst *vector.Vector, n int, src *vector.Vector, i int) int64 {
	if i <= 0xFFFF {
		return appendRows(dst, n, src, []uint16{uint16(i)})
	}
	b := vector.NewBuilder(src.Type)
	b.AppendFrom(src, i)
	return appendRows(dst, n, b.Finish(), []uint16{0})
}

func growBitmap(b vector.Bitmap, n, total int) vector.Bitmap {
	if b == nil {
		b = vector.NewBitmap(max(n, 1), true)
	}
	for len(b) < (total+63)/64 {
		b = append(b, ^uint64(0))
	}
	for i := n; i < total; i++ {
		b.Set(i)
	}
	return b
}

func appendZeros(dst *vector.Vector, n, k int) {
	switch dst.Type.Physical() {
	case vector.PBool:
		dst.Bools = append(dst.Bools, make([]bool, k)...)
	case vector.PInt32:
		dst.I32 = append(dst.I32, make([]int32, k)...)
	case vector.PInt64:
		dst.I64 = append(dst.I64, make([]int64, k)...)
	case vector.PInt128:
		dst.I128 = append(dst.I128, make([]vector.Int128, k)...)
	case vector.PFloat32:
		dst.F32 = append(dst.F32, make([]float32, k)...)
	case vector.PFloat64:
		dst.F64 = append(dst.F64, make([]float64, k)...)
	case vector.PView:
		dst.Views = append(dst.Views, make([]vector.View, k)...)
	case vector.PList:
		last := dst.Offsets[len(dst.Offsets)-1]
		for range k {
			dst.Offsets = append(dst.Offsets, last)
		}
	case vector.PRow:
		rows := make([]uint16, k)
		for _, c := range dst.Children {
			appendRows(c, n, nullVector, rows)
		}
	}
}

func appendFixed[T any](dst []T, src *vector.Vector, vals []T, rows []uint16) []T {
	n := len(dst)
	if n+len(rows) > cap(dst) {
		t := make([]T, n, max(2*cap(dst), n+len(rows), 64))
		copy(t, dst)
		dst = t
	}
	dst = dst[:n+len(rows)]
	out := dst[n:]
	switch src.Form {
	case vector.Constant:
		for k := range out {
			out[k] = vals[0]
		}
	case vector.Dictionary:
		if src.Valid == nil {
			for k, i := range rows {
				out[k] = vals[src.Codes[i]]
			}
			break
		}
		var zero T
		for k, i := range rows {
			if src.Valid.Get(int(i)) {
				out[k] = vals[src.Codes[i]]
			} else {
				out[k] = zero
			}
		}
	default:
		for k, i := range rows {
			out[k] = vals[i]
		}
	}
	return dst
}

const bufBytes = 256 << 10

func appendViews(dst, src *vector.Vector, rows []uint16) int64 {
	s := src.Values()
	n := len(dst.Views)
	if n+len(rows) > cap(dst.Views) {
		t := make([]vector.View, n, max(2*cap(dst.Views), n+len(rows), 64))
		copy(t, dst.Views)
		dst.Views = t
	}
	dst.Views = dst.Views[:n+len(rows)]
	text := int64(0)
	for k, i := range rows {
		if src.IsNull(int(i)) {
			dst.Views[n+k] = vector.View{}
			continue
		}
		v := &s.Views[src.Index(int(i))]
		if v.Inline() {
			dst.Views[n+k] = *v
			continue
		}
		p := v.Bytes(s.Bufs)
		last := len(dst.Bufs) - 1
		if last < 0 || cap(dst.Bufs[last])-len(dst.Bufs[last]) < len(p) {
			dst.Bufs = append(dst.Bufs, make([]byte, 0, max(min(bufBytes, 1024<<min(last+1, 8)), len(p))))
			last++
			text += int64(cap(dst.Bufs[last]))
		}
		off := len(dst.Bufs[last])
		dst.Bufs[last] = append(dst.Bufs[last], p...)
		dst.Views[n+k] = vector.MakeView(dst.Bufs, last, off, len(p))
	}
	return text
}
