package parquet

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// shred is a group of a shredded variant: value, typed_value or both (VariantShredding.md). It knows where they stand in the row
// vector that the ordinary reader makes of the group.
type shred struct {
	name  string // of an object's field
	value int    // child of the group's vector; -1 when the file has none
	typed int
	// leaf is set for a scalar typed_value; fields for an object; element for an array.
	leaf    *Node
	fields  []*shred
	element *shred
}

// shredded plans the reading of a variant group that has a typed_value: as a row of metadata, value and typed_value, each with the type
// it has in the file.
// Of a part only the columns that hold it are read, and value on the way to it, where objects may stand whole.
func shredded(n *Node, parts *vector.VariantParts) (*Projection, *shred, error) {
	meta := n.Child("metadata")
	if meta == nil {
		return nil, nil, fault.New(fault.Corrupt, "column %s is a variant without metadata", n.Path())
	}
	p, s, err := shreddedGroup(n, 0, parts)
	if err != nil {
		return nil, nil, err
	}
	m := &Projection{Type: vector.Of(vector.Varbinary), Node: meta}
	p.Children = append([]*Projection{m}, p.Children...)
	p.Type = vector.RowOf(append([]vector.Field{{Name: "metadata", Type: m.Type}}, p.Type.Fields...)...)
	if s.value >= 0 {
		s.value++
	}
	if s.typed >= 0 {
		s.typed++
	}
	return p, s, nil
}

func shreddedGroup(n *Node, depth int, parts *vector.VariantParts) (*Projection, *shred, error) {
	p, s := &Projection{Node: n}, &shred{name: n.Name, value: -1, typed: -1}
	var fs []vector.Field
	if v := n.Child("value"); v != nil {
		s.value = len(fs)
		fs = append(fs, vector.Field{Name: "value", Type: vector.Of(vector.Varbinary)})
		p.Children = append(p.Children, &Projection{Type: vector.Of(vector.Varbinary), Node: v})
	}
	if t := n.Child("typed_value"); t != nil && (holds(t, parts) || len(fs) == 0) {
		tp, err := s.typedValue(t, depth, parts)
		if err != nil {
			return nil, nil, err
		}
		s.typed = len(fs)
		fs = append(fs, vector.Field{Name: "typed_value", Type: tp.Type})
		p.Children = append(p.Children, tp)
	}
	if len(fs) == 0 {
		return nil, nil, fault.New(fault.Corrupt, "variant group %s has neither value nor typed_value", n.Path())
	}
	p.Type = vector.RowOf(fs...)
	return p, s, nil
}

// holds reports whether a typed_value has anything of the parts that are wanted. One that is no object has no fields, and those that it
// does not hold stand in the value beside it.
func holds(t *Node, parts *vector.VariantParts) bool {
	if !parts.Partial() {
		return true
	}
	if t.IsLeaf() || t.IsList() {
		return false
	}
	for name := range parts.Fields {
		if t.Child(name) != nil {
			return true
		}
	}
	return false
}

func (s *shred) typedValue(t *Node, depth int, parts *vector.VariantParts) (*Projection, error) {
	if depth > maxSchemaDepth {
		return nil, fault.New(fault.Corrupt, "variant %s is nested too deep", t.Path())
	}
	switch {
	case t.IsLeaf():
		s.leaf = t
		want, ok := ShreddedType(t)
		if !ok {
			return nil, fault.New(fault.Corrupt, "column %s is %s, which no variant holds", t.Path(), t.describe())
		}
		return &Projection{Type: want, Node: t}, nil
	case t.IsList():
		e := t.Element()
		if e.IsLeaf() {
			return nil, fault.New(fault.Corrupt, "column %s is an element of a shredded variant but no group", e.Path())
		}
		ep, es, err := shreddedGroup(e, depth+1, nil)
		if err != nil {
			return nil, err
		}
		s.element = es
		return &Projection{Type: vector.ArrayOf(ep.Type), Node: t, Children: []*Projection{ep}}, nil
	}
	p := &Projection{Node: t}
	s.fields = []*shred{}
	var fs []vector.Field
	for _, c := range t.Children {
		part := (*vector.VariantParts)(nil)
		if parts.Partial() {
			if part = parts.Fields[c.Name]; part == nil && holds(t, parts) {
				continue
			}
		}
		if c.IsLeaf() || c.Repetition == Repeated {
			return nil, fault.New(fault.Corrupt, "column %s is a field of a shredded variant but no group", c.Path())
		}
		cp, cs, err := shreddedGroup(c, depth+1, part)
		if err != nil {
			return nil, err
		}
		s.fields = append(s.fields, cs)
		fs = append(fs, vector.Field{Name: c.Name, Type: cp.Type})
		p.Children = append(p.Children, cp)
	}
	p.Type = vector.RowOf(fs...)
	return p, nil
}

// ShreddedType is the type that a scalar typed_value is read as; false when no variant holds its type.
func ShreddedType(n *Node) (vector.Type, bool) {
	l := n.Logical
	switch {
	case l.Kind == Decimal:
		return vector.DecimalOf(l.Precision, l.Scale), l.Precision > 0 && l.Precision <= 38 && l.Scale >= 0 && l.Scale <= 38
	case l.Kind == Time && l.Unit == Micros:
		return vector.Of(vector.Time), true
	case l.Kind == Timestamp && l.Unit != Millis:
		t := vector.Of(vector.Timestamp)
		if l.UTC {
			t.Kind = vector.TimestampTZ
		}
		if l.Unit == Nanos {
			t.Precision = 9
		}
		return t, true
	case l.Kind == Date:
		return vector.Of(vector.Date), true
	case l.Kind == UUID:
		return vector.Of(vector.UUID), true
	case l.Kind == String:
		return vector.Of(vector.Varchar), true
	case l.Kind == Integer && !l.Signed, l.Kind != None && l.Kind != Integer:
		return vector.Type{}, false
	}
	kind, ok := map[Physical]vector.Kind{Boolean: vector.Boolean, Int32: vector.Integer, Int64: vector.BigInt, Float: vector.Real, Double: vector.Double, ByteArray: vector.Varbinary}[n.Physical]
	return vector.Of(kind), ok
}

// variantField is a field of an object being put together.
type variantField struct {
	name  string
	id    int
	value []byte
}

// assembleVariant puts the values of a shredded variant together again.
func (c *column) assembleVariant(slots int) (*vector.Vector, int, error) {
	row, n, err := c.kids[0].assemble(slots)
	if err != nil {
		return nil, 0, err
	}
	value := &vector.Vector{Type: vector.Of(vector.Varbinary)}
	var arena []byte
	value.Views = make([]vector.View, n)
	ends := make([]int, n+1)
	var names variantNames
	for i := range n {
		if !row.IsNull(i) {
			if row.Children[0].IsNull(i) {
				return nil, 0, fault.New(fault.Corrupt, "Parquet file %s: a variant without metadata in row %d of a batch", c.file, i)
			}
			if err = names.parse(row.Children[0].Bytes(i)); err == nil {
				var present bool
				if arena, present, err = c.shred.append(arena, row, i, &names); err == nil && !present {
					arena = append(arena, 0) // missing altogether is Variant null
				}
			}
			if err != nil {
				return nil, 0, fault.Wrap(fault.Corrupt, err, "Parquet file %s: shredded variant", c.file)
			}
		}
		ends[i+1] = len(arena)
		if len(arena) > maxArenaBytes {
			return nil, 0, fault.New(fault.Exhausted, "Parquet file %s: a batch of variants of more than %d bytes", c.file, maxArenaBytes)
		}
	}
	value.Bufs = [][]byte{arena}
	for i := range n {
		value.Views[i] = vector.LoadView(arena, 0, ends[i], ends[i+1]-ends[i])
	}
	value.Valid = row.Valid
	c.out = vector.Vector{Type: c.want, Valid: row.Valid, Children: []*vector.Vector{row.Children[0], value}}
	return &c.out, n, nil
}

// append writes row i of a group. present is false when the group holds nothing.
func (s *shred) append(dst []byte, group *vector.Vector, i int, names *variantNames) (_ []byte, present bool, err error) {
	var value []byte
	if s.value >= 0 && !group.Children[s.value].IsNull(i) {
		value = group.Children[s.value].Bytes(i)
		if size, ok := variantSize(value, 0); !ok || size != len(value) {
			return dst, false, fault.New(fault.Corrupt, "value of %d bytes is no variant", len(value))
		}
	}
	if s.typed < 0 || group.Children[s.typed].IsNull(i) {
		return append(dst, value...), value != nil, nil
	}
	typed := group.Children[s.typed]
	if s.fields == nil && value != nil {
		return dst, false, fault.New(fault.Corrupt, "both value and typed_value are set")
	}
	switch {
	case s.leaf != nil:
		dst, err = appendScalar(dst, s.leaf, typed, i)
	case s.element != nil:
		dst, err = s.appendArray(dst, typed, i, names)
	default:
		dst, err = s.appendObject(dst, typed, i, value, names)
	}
	return dst, true, err
}

func (s *shred) appendArray(dst []byte, list *vector.Vector, i int, names *variantNames) ([]byte, error) {
	v, at := list.Values(), list.Index(i)
	lo, hi := int(v.Offsets[at]), int(v.Offsets[at+1])
	var body []byte
	offsets := make([]int, 1, hi-lo+1)
	for k := lo; k < hi; k++ {
		var present bool
		var err error
		if body, present, err = s.element.append(body, v.Children[0], k, names); err != nil {
			return dst, err
		}
		if !present {
			body = append(body, 0)
		}
		offsets = append(offsets, len(body))
	}
	width := byteWidth(len(body))
	head, large := byte(3|(width-1)<<2), hi-lo > math.MaxUint8
	if large {
		head |= 1 << 4
	}
	dst = appendCount(append(dst, head), hi-lo, large)
	for _, o := range offsets {
		dst = appendUint(dst, o, width)
	}
	return append(dst, body...), nil
}

func (s *shred) appendObject(dst []byte, typed *vector.Vector, i int, rest []byte, names *variantNames) ([]byte, error) {
	fields := make([]variantField, 0, len(s.fields))
	taken := make(map[string]bool, len(s.fields))
	v, at := typed.Values(), typed.Index(i)
	for k, f := range s.fields {
		taken[f.name] = true
		b, present, err := f.append(nil, v.Children[k], at, names)
		if err != nil {
			return dst, err
		}
		if !present {
			continue
		}
		id, ok := names.id(f.name)
		if !ok {
			return dst, fault.New(fault.Corrupt, "field %q is not in the metadata", f.name)
		}
		fields = append(fields, variantField{f.name, id, b})
	}
	if rest != nil {
		more, ok := objectFields(rest, names)
		if !ok {
			return dst, fault.New(fault.Corrupt, "value beside a shredded object is no object")
		}
		for _, f := range more {
			// Shredded fields win over those that should not be there.
			if !taken[f.name] {
				fields = append(fields, f)
			}
		}
	}
	slices.SortFunc(fields, func(a, b variantField) int { return cmp.Compare(a.name, b.name) })
	size, top := 0, 0
	for _, f := range fields {
		size += len(f.value)
		top = max(top, f.id)
	}
	width, idWidth := byteWidth(size), byteWidth(top)
	head, large := byte(2|(width-1)<<2|(idWidth-1)<<4), len(fields) > math.MaxUint8
	if large {
		head |= 1 << 6
	}
	dst = appendCount(append(dst, head), len(fields), large)
	for _, f := range fields {
		dst = appendUint(dst, f.id, idWidth)
	}
	dst = appendUint(dst, 0, width)
	end := 0
	for _, f := range fields {
		end += len(f.value)
		dst = appendUint(dst, end, width)
	}
	for _, f := range fields {
		dst = append(dst, f.value...)
	}
	return dst, nil
}

// appendScalar writes a typed value in the variant type of its Parquet type (VariantShredding.md, "Shredded Value Types").
func appendScalar(dst []byte, n *Node, v *vector.Vector, i int) ([]byte, error) {
	s, at := v.Values(), v.Index(i)
	primitive := func(id byte) []byte { return append(dst, id<<2) }
	le := binary.LittleEndian
	switch v.Type.Kind {
	case vector.Boolean:
		if s.Bools[at] {
			return primitive(1), nil
		}
		return primitive(2), nil
	case vector.Integer:
		switch {
		case n.Logical.Kind == Integer && n.Logical.Bits == 8:
			return append(primitive(3), byte(s.I32[at])), nil
		case n.Logical.Kind == Integer && n.Logical.Bits == 16:
			return le.AppendUint16(primitive(4), uint16(s.I32[at])), nil
		}
		return le.AppendUint32(primitive(5), uint32(s.I32[at])), nil
	case vector.Date:
		return le.AppendUint32(primitive(11), uint32(s.I32[at])), nil
	case vector.BigInt:
		return le.AppendUint64(primitive(6), uint64(s.I64[at])), nil
	case vector.Double:
		return le.AppendUint64(primitive(7), math.Float64bits(s.F64[at])), nil
	case vector.Real:
		return le.AppendUint32(primitive(14), math.Float32bits(s.F32[at])), nil
	case vector.Time:
		return le.AppendUint64(primitive(17), uint64(s.I64[at])), nil
	case vector.Timestamp, vector.TimestampTZ:
		id := byte(13)
		if v.Type.Kind == vector.TimestampTZ {
			id = 12
		}
		if v.Type.Nanos() {
			id += 6
		}
		return le.AppendUint64(primitive(id), uint64(s.I64[at])), nil
	case vector.Decimal:
		var x vector.Int128
		if s.I128 != nil {
			x = s.I128[at]
		} else {
			x = decimal128.FromI64(s.I64[at])
		}
		scale := byte(v.Type.Scale)
		switch n.Physical {
		case Int32:
			return le.AppendUint32(append(primitive(8), scale), uint32(x.LowBits())), nil
		case Int64:
			return le.AppendUint64(append(primitive(9), scale), x.LowBits()), nil
		}
		return le.AppendUint64(le.AppendUint64(append(primitive(10), scale), x.LowBits()), uint64(x.HighBits())), nil
	case vector.UUID:
		return append(primitive(20), v.Bytes(i)...), nil
	case vector.Varchar:
		b := v.Bytes(i)
		if len(b) < 64 {
			return append(append(dst, byte(len(b))<<2|1), b...), nil
		}
		return append(le.AppendUint32(primitive(16), uint32(len(b))), b...), nil
	case vector.Varbinary:
		b := v.Bytes(i)
		return append(le.AppendUint32(primitive(15), uint32(len(b))), b...), nil
	}
	return dst, fault.New(fault.Corrupt, "no variant holds %s", v.Type)
}
