package vector

import "fmt"

// New makes a flat vector of n rows with its payload allocated and zeroed, all rows valid. A list gets n+1
// offsets and empty children, a row its children of n rows each.
func New(t Type, n int) *Vector {
	v := &Vector{Type: t}
	switch t.Physical() {
	case PBool:
		v.Bools = make([]bool, n)
	case PInt32:
		v.I32 = make([]int32, n)
	case PInt64:
		v.I64 = make([]int64, n)
	case PInt128:
		v.I128 = make([]Int128, n)
	case PFloat32:
		v.F32 = make([]float32, n)
	case PFloat64:
		v.F64 = make([]float64, n)
	case PView:
		v.Views = make([]View, n)
	case PList:
		v.Offsets = make([]int32, n+1)
		for _, f := range t.Fields {
			v.Children = append(v.Children, New(f.Type, 0))
		}
	case PRow:
		for _, f := range t.Fields {
			v.Children = append(v.Children, New(f.Type, n))
		}
	}
	return v
}

// Value is one SQL value outside a vector: nil for NULL, bool, int32, int64, Int128, float32, float64, string (text or
// raw bytes), []Value (array, or the fields of a row in order), []Pair (map).
type Value = any

// Pair is an entry of a map value.
type Pair struct{ Key, Value Value }

// NewConstant makes a constant vector of type t whose every row is x. It panics when x is not of t's layout: the
// caller has typed it.
func NewConstant(t Type, x Value) *Vector {
	b := NewBuilder(t)
	b.Append(x)
	v := b.Finish()
	v.Form = Constant
	return v
}

// Get gives row i of v as a Value. It allocates for strings and nested values: use it at the edges, not in loops.
func (v *Vector) Get(i int) Value {
	if v.IsNull(i) {
		return nil
	}
	s, j := v.Values(), v.Index(i)
	switch v.Type.Physical() {
	case PBool:
		return s.Bools[j]
	case PInt32:
		return s.I32[j]
	case PInt64:
		return s.I64[j]
	case PInt128:
		return s.I128[j]
	case PFloat32:
		return s.F32[j]
	case PFloat64:
		return s.F64[j]
	case PView:
		return string(s.Views[j].Bytes(s.Bufs))
	case PRow:
		fs := make([]Value, len(s.Children))
		for k, c := range s.Children {
			fs[k] = c.Get(j)
		}
		return fs
	case PList:
		lo, hi := int(s.Offsets[j]), int(s.Offsets[j+1])
		if v.Type.Kind == Map {
			ps := make([]Pair, 0, hi-lo)
			for k := lo; k < hi; k++ {
				ps = append(ps, Pair{s.Children[0].Get(k), s.Children[1].Get(k)})
			}
			return ps
		}
		xs := make([]Value, 0, hi-lo)
		for k := lo; k < hi; k++ {
			xs = append(xs, s.Children[0].Get(k))
		}
		return xs
	}
	panic(fmt.Sprintf("vector: no value for type %s", v.Type))
}

// Builder collects rows into a flat vector that owns all its bytes. The zero Builder is not usable.
type Builder struct {
	t    Type
	n    int
	v    *Vector
	kids []*Builder
	cur  []byte // string bytes being filled; always the last of v.Bufs
}

const builderBufBytes = 64 << 10

// NewBuilder makes a builder for vectors of type t.
func NewBuilder(t Type) *Builder {
	b := &Builder{t: t, v: &Vector{Type: t}}
	switch t.Physical() {
	case PList:
		b.v.Offsets = []int32{0}
		fallthrough
	case PRow:
		for _, f := range t.Fields {
			b.kids = append(b.kids, NewBuilder(f.Type))
		}
	}
	return b
}

// Len is the number of rows so far.
func (b *Builder) Len() int { return b.n }

// AppendNull adds a null row.
func (b *Builder) AppendNull() {
	b.grow()
	if b.t.Kind == Null {
		return
	}
	if b.t.Physical() == PRow {
		for _, k := range b.kids {
			k.AppendNull()
		}
	}
	if b.v.Valid == nil {
		b.v.Valid = NewBitmap(b.n, true)
	}
	b.v.Valid.Clear(b.n - 1)
}

// grow adds one zero row, valid.
func (b *Builder) grow() {
	v := b.v
	switch b.t.Physical() {
	case PBool:
		v.Bools = append(v.Bools, false)
	case PInt32:
		v.I32 = append(v.I32, 0)
	case PInt64:
		v.I64 = append(v.I64, 0)
	case PInt128:
		v.I128 = append(v.I128, Int128{})
	case PFloat32:
		v.F32 = append(v.F32, 0)
	case PFloat64:
		v.F64 = append(v.F64, 0)
	case PView:
		v.Views = append(v.Views, View{})
	case PList:
		v.Offsets = append(v.Offsets, v.Offsets[b.n])
	}
	b.n++
	if v.Valid != nil {
		if (b.n+63)/64 > len(v.Valid) {
			v.Valid = append(v.Valid, 0)
		}
		v.Valid.Set(b.n - 1)
	}
}

// AppendBytes adds a string or binary row; p is copied.
func (b *Builder) AppendBytes(p []byte) {
	b.grow()
	b.v.Views[b.n-1] = b.store(p)
}

func (b *Builder) store(p []byte) View {
	if len(p) <= InlineLen {
		return InlineView(p)
	}
	if cap(b.cur)-len(b.cur) < len(p) {
		b.cur = make([]byte, 0, max(builderBufBytes, len(p)))
		b.v.Bufs = append(b.v.Bufs, b.cur)
	}
	off := len(b.cur)
	b.cur = append(b.cur, p...)
	last := len(b.v.Bufs) - 1
	b.v.Bufs[last] = b.cur
	return MakeView(b.v.Bufs, last, off, len(p))
}

// Append adds x, which is nil or of the Go type that Value names for the builder's type.
func (b *Builder) Append(x Value) {
	if x == nil || b.t.Kind == Null {
		b.AppendNull()
		return
	}
	if s, ok := x.(string); ok {
		b.AppendBytes([]byte(s))
		return
	}
	b.grow()
	i, v := b.n-1, b.v
	switch b.t.Physical() {
	case PBool:
		v.Bools[i] = x.(bool)
	case PInt32:
		v.I32[i] = x.(int32)
	case PInt64:
		v.I64[i] = x.(int64)
	case PInt128:
		v.I128[i] = x.(Int128)
	case PFloat32:
		v.F32[i] = x.(float32)
	case PFloat64:
		v.F64[i] = x.(float64)
	case PRow:
		for k, f := range x.([]Value) {
			b.kids[k].Append(f)
		}
	case PList:
		switch xs := x.(type) {
		case []Pair:
			for _, p := range xs {
				b.kids[0].Append(p.Key)
				b.kids[1].Append(p.Value)
			}
		case []Value:
			for _, e := range xs {
				b.kids[0].Append(e)
			}
		}
		v.Offsets[i+1] = int32(b.kids[0].n)
	default:
		panic(fmt.Sprintf("vector: %T appended to %s", x, b.t))
	}
}

// AppendFrom adds row i of src, whose type has the builder's layout.
func (b *Builder) AppendFrom(src *Vector, i int) {
	if src.IsNull(i) {
		b.AppendNull()
		return
	}
	s, j := src.Values(), src.Index(i)
	b.grow()
	at, v := b.n-1, b.v
	switch b.t.Physical() {
	case PBool:
		v.Bools[at] = s.Bools[j]
	case PInt32:
		v.I32[at] = s.I32[j]
	case PInt64:
		v.I64[at] = s.I64[j]
	case PInt128:
		v.I128[at] = s.I128[j]
	case PFloat32:
		v.F32[at] = s.F32[j]
	case PFloat64:
		v.F64[at] = s.F64[j]
	case PView:
		v.Views[at] = b.store(s.Views[j].Bytes(s.Bufs))
	case PRow:
		for k := range b.kids {
			b.kids[k].AppendFrom(s.Children[k], j)
		}
	case PList:
		for e := int(s.Offsets[j]); e < int(s.Offsets[j+1]); e++ {
			for k := range b.kids {
				b.kids[k].AppendFrom(s.Children[k], e)
			}
		}
		v.Offsets[at+1] = int32(b.kids[0].n)
	}
}

// Finish gives the vector and leaves the builder empty, ready for the next.
func (b *Builder) Finish() *Vector {
	v := b.v
	for _, k := range b.kids {
		v.Children = append(v.Children, k.Finish())
	}
	if b.t.Physical() == PView && v.Views == nil {
		v.Views = []View{}
	}
	*b = *NewBuilder(b.t)
	return v
}
