// Package vector is the currency between scanner, expr and exec: typed columns of at most a few thousand rows.
//
// It is not for whole results: nothing here is larger than a chunk, and Arrow is made only at the edge. A vector
// is written by one goroutine until it is handed on, and read-only from then on. Whoever emits a chunk may reuse its
// buffers once the consumer's call returns, so a consumer that keeps values copies them (Builder, Copy).
package vector

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Size is the number of rows a chunk holds at most.
const Size = 2048

// Int128 is a signed 128-bit integer, the unscaled value of a long decimal.
type Int128 = decimal128.Num

// Form says how the rows of a Vector map to its values.
type Form uint8

// The forms of a vector.
const (
	Flat       Form = iota // row i is value i
	Constant               // every row is value 0
	Dictionary             // row i is value Codes[i] of Dict
)

// Vector is one column of a chunk. Exactly the payload of its type's Physical layout is set.
type Vector struct {
	Type Type
	Form Form
	// Valid holds a bit per row, set when the row is not null; nil when no row is null. In a Constant vector only
	// bit 0 counts. In a Dictionary vector it speaks of rows; the dictionary's own values are never null.
	Valid Bitmap

	Bools []bool
	I32   []int32
	I64   []int64
	I128  []Int128
	F32   []float32
	F64   []float64
	// Views refer to bytes inline or in Bufs.
	Views []View
	Bufs  [][]byte
	// Offsets of an array or map: row i is [Offsets[i], Offsets[i+1]) of the children. Lists of a flat vector are
	// in ascending order without gaps only where Offsets says so; null rows are empty.
	Offsets  []int32
	Children []*Vector

	Codes []int32
	Dict  *Vector
}

// Chunk is up to Size rows of some columns.
type Chunk struct {
	Cols []*Vector
	// Sel lists the rows that count, ascending; nil means rows 0..N-1. Vectors are N long whatever Sel says.
	Sel []uint16
	N   int
}

// Rows is the number of rows that count.
func (c *Chunk) Rows() int {
	if c.Sel != nil {
		return len(c.Sel)
	}
	return c.N
}

// Bitmap is a set of row numbers, 64 a word.
type Bitmap []uint64

// NewBitmap makes a bitmap of n bits, all set or all clear.
func NewBitmap(n int, set bool) Bitmap {
	b := make(Bitmap, (n+63)/64)
	if set {
		for i := range b {
			b[i] = ^uint64(0)
		}
	}
	return b
}

// Get reports bit i; a nil bitmap has every bit set.
func (b Bitmap) Get(i int) bool { return b == nil || b[i>>6]&(1<<(uint(i)&63)) != 0 }

// Set sets bit i.
func (b Bitmap) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear clears bit i.
func (b Bitmap) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// Count is the number of set bits among the first n.
func (b Bitmap) Count(n int) int {
	if b == nil {
		return n
	}
	c := 0
	for i := 0; i < n>>6; i++ {
		c += bits.OnesCount64(b[i])
	}
	if r := uint(n) & 63; r != 0 {
		c += bits.OnesCount64(b[n>>6] & (1<<r - 1))
	}
	return c
}

// IsNull reports whether row i is null.
func (v *Vector) IsNull(i int) bool {
	if v.Type.Kind == Null {
		return true
	}
	if v.Form == Constant {
		i = 0
	}
	return !v.Valid.Get(i)
}

// Index maps row i to the position of its value: in v for flat and constant vectors, in v.Dict for dictionaries.
func (v *Vector) Index(i int) int {
	switch v.Form {
	case Constant:
		return 0
	case Dictionary:
		return int(v.Codes[i])
	}
	return i
}

// Values gives the vector that holds the values that Index points into.
func (v *Vector) Values() *Vector {
	if v.Form == Dictionary {
		return v.Dict
	}
	return v
}

// SetNull marks row i null. n is the vector's length.
func (v *Vector) SetNull(i, n int) {
	if v.Valid == nil {
		v.Valid = NewBitmap(n, true)
	}
	v.Valid.Clear(i)
}

// Bytes gives the bytes of row i of a string or binary vector. They are the vector's own; do not write to them.
func (v *Vector) Bytes(i int) []byte {
	s := v.Values()
	return s.Views[v.Index(i)].Bytes(s.Bufs)
}

// StoredLen is the number of values that v itself holds, whatever its rows make of them: of a dictionary's values, how many there are.
// For a type without values it is 0.
func (v *Vector) StoredLen() int {
	if v.Form == Dictionary {
		return len(v.Codes)
	}
	switch v.Type.Physical() {
	case PBool:
		return len(v.Bools)
	case PInt32:
		return len(v.I32)
	case PInt64:
		return len(v.I64)
	case PInt128:
		return len(v.I128)
	case PFloat32:
		return len(v.F32)
	case PFloat64:
		return len(v.F64)
	case PView:
		return len(v.Views)
	case PList:
		return len(v.Offsets) - 1
	case PRow:
		if len(v.Children) > 0 {
			return v.Children[0].StoredLen()
		}
	}
	return 0
}
