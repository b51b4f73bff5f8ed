package vector

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skua-db/skua/fault"
)

// Batcher gathers chunks into Arrow record batches at the edge of the engine. It keeps its buffers from batch to
// batch, so a batch is valid only until the next Append. It is not safe for concurrent use.
type Batcher struct {
	schema *arrow.Schema
	cols   []*arrowColumn
	rows   int
}

// NewBatcher makes a batcher for columns in the form that any client reads.
func NewBatcher(columns []Field) *Batcher { return Wire{}.NewBatcher(columns) }

// NewBatcher makes a batcher for columns.
func (w Wire) NewBatcher(columns []Field) *Batcher {
	b := &Batcher{schema: w.Schema(columns)}
	for _, c := range columns {
		b.cols = append(b.cols, w.newColumn(c.Type))
	}
	return b
}

// Schema is the schema of the batches.
func (b *Batcher) Schema() *arrow.Schema { return b.schema }

// Rows is the number of rows gathered.
func (b *Batcher) Rows() int { return b.rows }

// Bytes is the size of what is gathered.
func (b *Batcher) Bytes() int {
	n := 0
	for _, c := range b.cols {
		n += c.bytes()
	}
	return n
}

// Append copies the selected rows from (inclusive) to (exclusive) of the chunk, counted among the rows that count.
func (b *Batcher) Append(c *Chunk, from, to int) error {
	for i, col := range b.cols {
		if err := col.appendVector(c.Cols[i], c.Sel, from, to); err != nil {
			return fault.Wrap(fault.Corrupt, err, "column %s", b.schema.Field(i).Name)
		}
	}
	b.rows += to - from
	return nil
}

// Batch gives what is gathered as a record batch and starts afresh. The batch shares the batcher's buffers.
func (b *Batcher) Batch() arrow.RecordBatch {
	arrays := make([]arrow.Array, len(b.cols))
	for i, c := range b.cols {
		d := c.data(b.schema.Field(i).Type)
		arrays[i] = array.MakeFromData(d)
		d.Release()
	}
	rec := array.NewRecordBatch(b.schema, arrays, int64(b.rows))
	for _, a := range arrays {
		a.Release()
	}
	b.rows = 0
	for _, c := range b.cols {
		c.spent = true
	}
	return rec
}

// arrowColumn gathers one column in Arrow's layout.
type arrowColumn struct {
	t     Type
	text  bool // a variant goes as JSON text
	n     int
	nulls int
	spent bool // handed out: the next append starts over
	valid []byte
	fixed []byte // values of fixed width, or the bytes of strings
	offs  []int32
	kids  []*arrowColumn
}

func (w Wire) newColumn(t Type) *arrowColumn {
	c := &arrowColumn{t: t, text: t.Kind == Variant && !w.Variants}
	if c.text || t.Kind == Null {
		return c
	}
	for _, f := range t.Fields {
		c.kids = append(c.kids, w.newColumn(f.Type))
	}
	return c
}

func (c *arrowColumn) reset() {
	c.n, c.nulls, c.spent = 0, 0, false
	c.valid, c.fixed, c.offs = c.valid[:0], c.fixed[:0], c.offs[:0]
	for _, k := range c.kids {
		k.reset()
	}
}

func (c *arrowColumn) bytes() int {
	if c.spent {
		return 0
	}
	n := len(c.valid) + len(c.fixed) + 4*len(c.offs)
	for _, k := range c.kids {
		n += k.bytes()
	}
	return n
}

func (c *arrowColumn) strings() bool {
	switch c.t.Kind {
	case Null, Varchar, JSON, Varbinary, Geometry, Geography:
		return true
	}
	return c.text
}

// markValid adds the validity of one row.
func (c *arrowColumn) markValid(ok bool) {
	if c.n&7 == 0 {
		c.valid = append(c.valid, 0)
	}
	if ok {
		c.valid[c.n>>3] |= 1 << (c.n & 7)
	} else {
		c.nulls++
	}
	c.n++
}

// appendVector adds rows sel[from:to] of v, or rows from..to when sel is nil.
func (c *arrowColumn) appendVector(v *Vector, sel []uint16, from, to int) error {
	if c.spent {
		c.reset()
	}
	c.appendValidity(v, sel, from, to)
	rowAt := func(k int) int {
		if sel != nil {
			return int(sel[k])
		}
		return k
	}
	s := v.Values()
	dense := sel == nil && v.Form == Flat
	switch {
	case c.strings():
		return c.appendStrings(v, sel, from, to)
	case c.t.Physical() == PBool:
		return c.appendBools(v, rowAt, from, to)
	case c.t.Physical() == PRow:
		return c.appendRows(v, rowAt, from, to)
	case c.t.Physical() == PList:
		return c.appendLists(v, rowAt, from, to)
	case c.t.Kind == TinyInt:
		for k := from; k < to; k++ {
			c.fixed = append(c.fixed, byte(s.I32[v.Index(rowAt(k))]))
		}
	case c.t.Kind == SmallInt:
		for k := from; k < to; k++ {
			x := s.I32[v.Index(rowAt(k))]
			c.fixed = append(c.fixed, byte(x), byte(x>>8))
		}
	case c.t.Kind == Decimal && c.t.Physical() == PInt64:
		for k := from; k < to; k++ {
			x := s.I64[v.Index(rowAt(k))]
			c.fixed = appendRaw(c.fixed, []int64{x, x >> 63})
		}
	case c.t.Kind == Fixed || c.t.Kind == UUID:
		width := 16
		if c.t.Kind == Fixed {
			width = c.t.Precision
		}
		for k := from; k < to; k++ {
			i := rowAt(k)
			at := len(c.fixed)
			c.fixed = append(c.fixed, make([]byte, width)...)
			if !v.IsNull(i) {
				copy(c.fixed[at:], v.Bytes(i))
			}
		}
	case c.t.Physical() == PInt32:
		c.fixed = gather(c.fixed, s.I32, v, sel, from, to, dense)
	case c.t.Physical() == PInt64:
		c.fixed = gather(c.fixed, s.I64, v, sel, from, to, dense)
	case c.t.Physical() == PInt128:
		c.fixed = gather(c.fixed, s.I128, v, sel, from, to, dense)
	case c.t.Physical() == PFloat32:
		c.fixed = gather(c.fixed, s.F32, v, sel, from, to, dense)
	case c.t.Physical() == PFloat64:
		c.fixed = gather(c.fixed, s.F64, v, sel, from, to, dense)
	}
	return nil
}

func (c *arrowColumn) appendValidity(v *Vector, sel []uint16, from, to int) {
	count := to - from
	if v.Valid == nil && v.Type.Kind != Null && c.n&7 == 0 {
		full := count >> 3
		for range full {
			c.valid = append(c.valid, 0xff)
		}
		c.n += full << 3
		for range count & 7 {
			c.markValid(true)
		}
		return
	}
	for k := from; k < to; k++ {
		i := k
		if sel != nil {
			i = int(sel[k])
		}
		c.markValid(!v.IsNull(i))
	}
}

// appendRaw adds the bytes of xs as they lie in memory (little-endian on every platform Arrow's format is native to).
func appendRaw[T any](dst []byte, xs []T) []byte {
	if len(xs) == 0 {
		return dst
	}
	return append(dst, unsafe.Slice((*byte)(unsafe.Pointer(&xs[0])), len(xs)*int(unsafe.Sizeof(xs[0])))...)
}

func gather[T any](dst []byte, vals []T, v *Vector, sel []uint16, from, to int, dense bool) []byte {
	if dense {
		return appendRaw(dst, vals[from:to])
	}
	var block [256]T
	n := 0
	for k := from; k < to; k++ {
		i := k
		if sel != nil {
			i = int(sel[k])
		}
		block[n] = vals[v.Index(i)]
		if n++; n == len(block) {
			dst = appendRaw(dst, block[:])
			n = 0
		}
	}
	return appendRaw(dst, block[:n])
}

func (c *arrowColumn) appendBools(v *Vector, rowAt func(int) int, from, to int) error {
	s := v.Values()
	at := c.n - (to - from)
	for k := from; k < to; k++ {
		if at&7 == 0 {
			c.fixed = append(c.fixed, 0)
		}
		if s.Bools[v.Index(rowAt(k))] {
			c.fixed[at>>3] |= 1 << (at & 7)
		}
		at++
	}
	return nil
}

func (c *arrowColumn) appendStrings(v *Vector, sel []uint16, from, to int) error {
	if len(c.offs) == 0 {
		c.offs = append(c.offs, 0)
	}
	s := v.Values()
	for k := from; k < to; k++ {
		i := k
		if sel != nil {
			i = int(sel[k])
		}
		if !v.IsNull(i) {
			if c.text {
				var err error
				j := v.Index(i)
				if c.fixed, err = AppendVariantJSON(c.fixed, s.Children[0].Bytes(j), s.Children[1].Bytes(j)); err != nil {
					return err
				}
			} else {
				c.fixed = append(c.fixed, s.Views[v.Index(i)].Bytes(s.Bufs)...)
			}
		}
		c.offs = append(c.offs, int32(len(c.fixed)))
	}
	return nil
}

func (c *arrowColumn) appendRows(v *Vector, rowAt func(int) int, from, to int) error {
	s := v.Values()
	for j, kid := range c.kids {
		if v.Form == Flat {
			// The children of a flat row are as long as it is, so one pass over each serves.
			if err := kid.appendMasked(s.Children[j], v, rowAt, from, to); err != nil {
				return err
			}
			continue
		}
		for k := from; k < to; k++ {
			i := rowAt(k)
			if v.IsNull(i) {
				kid.appendNull()
			} else if err := kid.appendVector(s.Children[j], nil, v.Index(i), v.Index(i)+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendMasked adds rows of a child whose parent may be null: the child is null there whatever it holds, also
// where its field is required.
func (c *arrowColumn) appendMasked(v, parent *Vector, rowAt func(int) int, from, to int) error {
	for k := from; k < to; {
		i := rowAt(k)
		if parent.IsNull(i) {
			c.appendNull()
			k++
			continue
		}
		end := k + 1
		for end < to && rowAt(end) == i+end-k && !parent.IsNull(rowAt(end)) {
			end++
		}
		if err := c.appendVector(v, nil, i, i+end-k); err != nil {
			return err
		}
		k = end
	}
	return nil
}

func (c *arrowColumn) appendNull() {
	if c.spent {
		c.reset()
	}
	c.markValid(false)
	switch {
	case c.strings():
		if len(c.offs) == 0 {
			c.offs = append(c.offs, 0)
		}
		c.offs = append(c.offs, int32(len(c.fixed)))
	case c.t.Physical() == PBool:
		if (c.n-1)&7 == 0 {
			c.fixed = append(c.fixed, 0)
		}
	case c.t.Physical() == PList:
		if len(c.offs) == 0 {
			c.offs = append(c.offs, 0)
		}
		c.offs = append(c.offs, c.offs[len(c.offs)-1])
	case c.t.Physical() == PRow:
		for _, k := range c.kids {
			k.appendNull()
		}
	default:
		c.fixed = append(c.fixed, make([]byte, c.width())...)
	}
}

func (c *arrowColumn) width() int {
	switch c.t.Kind {
	case TinyInt:
		return 1
	case SmallInt:
		return 2
	case Decimal, UUID:
		return 16
	case Fixed:
		return c.t.Precision
	}
	switch c.t.Physical() {
	case PInt32, PFloat32:
		return 4
	}
	return 8
}

func (c *arrowColumn) appendLists(v *Vector, rowAt func(int) int, from, to int) error {
	if len(c.offs) == 0 {
		c.offs = append(c.offs, 0)
	}
	s := v.Values()
	at := c.offs[len(c.offs)-1]
	for k := from; k < to; k++ {
		i := rowAt(k)
		if !v.IsNull(i) {
			j := v.Index(i)
			lo, hi := int(s.Offsets[j]), int(s.Offsets[j+1])
			for e, kid := range c.kids {
				if err := kid.appendVector(s.Children[e], nil, lo, hi); err != nil {
					return err
				}
			}
			at += int32(hi - lo)
		}
		c.offs = append(c.offs, at)
	}
	return nil
}

// data gives the column as Arrow array data over its own buffers.
func (c *arrowColumn) data(dt arrow.DataType) arrow.ArrayData {
	if c.spent {
		c.reset()
	}
	var valid *memory.Buffer
	if c.nulls > 0 {
		valid = memory.NewBufferBytes(c.valid)
	}
	if ext, ok := dt.(arrow.ExtensionType); ok {
		d := c.data(ext.StorageType())
		defer d.Release()
		return array.NewData(dt, d.Len(), d.Buffers(), d.Children(), d.NullN(), 0)
	}
	offsets := func() *memory.Buffer {
		if len(c.offs) == 0 {
			c.offs = append(c.offs, 0)
		}
		return memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(&c.offs[0])), 4*len(c.offs)))
	}
	switch {
	case c.strings():
		return array.NewData(dt, c.n, []*memory.Buffer{valid, offsets(), memory.NewBufferBytes(c.fixed)}, nil, c.nulls, 0)
	case c.t.Physical() == PList:
		var child arrow.ArrayData
		if m, ok := dt.(*arrow.MapType); ok {
			k, v := c.kids[0].data(m.KeyType()), c.kids[1].data(m.ItemType())
			child = array.NewData(m.Elem(), c.kids[0].n, []*memory.Buffer{nil}, []arrow.ArrayData{k, v}, 0, 0)
			k.Release()
			v.Release()
		} else {
			child = c.kids[0].data(dt.(*arrow.ListType).Elem())
		}
		defer child.Release()
		return array.NewData(dt, c.n, []*memory.Buffer{valid, offsets()}, []arrow.ArrayData{child}, c.nulls, 0)
	case c.t.Physical() == PRow:
		kids := make([]arrow.ArrayData, len(c.kids))
		for i, k := range c.kids {
			kids[i] = k.data(dt.(*arrow.StructType).Field(i).Type)
			defer kids[i].Release()
		}
		return array.NewData(dt, c.n, []*memory.Buffer{valid}, kids, c.nulls, 0)
	}
	return array.NewData(dt, c.n, []*memory.Buffer{valid, memory.NewBufferBytes(c.fixed)}, nil, c.nulls, 0)
}
