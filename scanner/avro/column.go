package avro

import "github.com/skua-db/skua/vector"

// column collects the values of a wanted type.
type column struct {
	typ  vector.Type
	v    *vector.Vector
	n    int
	kids []*column
	fill *vector.Vector // a constant for a field that the file lacks
}

func newColumn(t vector.Type) *column {
	c := &column{typ: t, v: &vector.Vector{Type: t}}
	if t.Physical() == vector.PList {
		c.v.Offsets = []int32{0}
	}
	return c
}

// bufs lists the blocks that the views of a batch refer to, and an arena for values that no block holds.
type bufs struct {
	list  [][]byte
	block int // index in list of the current block
	arena int // index in list of the arena, -1
}

func (b *bufs) add(data []byte) {
	b.block = len(b.list)
	b.list = append(b.list, data)
}

// store copies p into the arena.
func (b *bufs) store(p []byte) vector.View {
	if len(p) <= vector.InlineLen {
		return vector.InlineView(p)
	}
	const arenaBytes = 64 << 10
	if b.arena < 0 || cap(b.list[b.arena])-len(b.list[b.arena]) < len(p) {
		b.arena = len(b.list)
		b.list = append(b.list, make([]byte, 0, max(arenaBytes, len(p))))
	}
	a := b.list[b.arena]
	off := len(a)
	b.list[b.arena] = append(a, p...)
	return vector.MakeView(b.list, b.arena, off, len(p))
}

// ok counts a row whose value has been appended.
func (c *column) ok() {
	i := c.n
	c.n++
	if c.v.Valid != nil {
		if i>>6 >= len(c.v.Valid) {
			c.v.Valid = append(c.v.Valid, 0)
		}
		c.v.Valid.Set(i)
	}
}

func (c *column) appendNull() {
	if c.typ.Kind == vector.Null {
		c.n++
		return
	}
	v := c.v
	switch c.typ.Physical() {
	case vector.PBool:
		v.Bools = append(v.Bools, false)
	case vector.PInt32:
		v.I32 = append(v.I32, 0)
	case vector.PInt64:
		v.I64 = append(v.I64, 0)
	case vector.PInt128:
		v.I128 = append(v.I128, vector.Int128{})
	case vector.PFloat32:
		v.F32 = append(v.F32, 0)
	case vector.PFloat64:
		v.F64 = append(v.F64, 0)
	case vector.PView:
		v.Views = append(v.Views, vector.View{})
	case vector.PList:
		v.Offsets = append(v.Offsets, v.Offsets[c.n])
	case vector.PRow:
		for _, k := range c.kids {
			k.appendNull()
		}
	}
	c.ok()
	if v.Valid == nil {
		v.Valid = vector.NewBitmap(c.n, true)
	}
	v.Valid.Clear(c.n - 1)
}

// appendFrom adds row i of src, a vector of c's type.
func (c *column) appendFrom(src *vector.Vector, i int, b *bufs) {
	if src.IsNull(i) {
		c.appendNull()
		return
	}
	s, j, v := src.Values(), src.Index(i), c.v
	switch c.typ.Physical() {
	case vector.PBool:
		v.Bools = append(v.Bools, s.Bools[j])
	case vector.PInt32:
		v.I32 = append(v.I32, s.I32[j])
	case vector.PInt64:
		v.I64 = append(v.I64, s.I64[j])
	case vector.PInt128:
		v.I128 = append(v.I128, s.I128[j])
	case vector.PFloat32:
		v.F32 = append(v.F32, s.F32[j])
	case vector.PFloat64:
		v.F64 = append(v.F64, s.F64[j])
	case vector.PView:
		v.Views = append(v.Views, b.store(s.Views[j].Bytes(s.Bufs)))
	case vector.PList:
		for e := int(s.Offsets[j]); e < int(s.Offsets[j+1]); e++ {
			for k, kid := range c.kids {
				kid.appendFrom(s.Children[k], e, b)
			}
		}
		v.Offsets = append(v.Offsets, int32(c.kids[0].n))
	case vector.PRow:
		for k, kid := range c.kids {
			kid.appendFrom(s.Children[k], j, b)
		}
	}
	c.ok()
}

func (c *column) reset() {
	v := c.v
	c.n = 0
	v.Valid = nil
	v.Bools, v.I32, v.I64, v.I128 = v.Bools[:0], v.I32[:0], v.I64[:0], v.I128[:0]
	v.F32, v.F64, v.Views, v.Bufs = v.F32[:0], v.F64[:0], v.Views[:0], nil
	if v.Offsets != nil {
		v.Offsets = v.Offsets[:1]
	}
	for _, k := range c.kids {
		k.reset()
	}
}

func (c *column) finish(list [][]byte) *vector.Vector {
	c.v.Bufs = list
	c.v.Children = c.v.Children[:0]
	for _, k := range c.kids {
		c.v.Children = append(c.v.Children, k.finish(list))
	}
	return c.v
}
