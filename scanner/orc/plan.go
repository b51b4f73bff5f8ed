package orc

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// builder makes the column tree of a projection for one stripe and collects the streams that it needs.
type builder struct {
	file    *Footer
	foot    *stripeFooter
	in      *input
	acc     *account
	streams []*stream
}

// stream gives a stream of a column; one that the stripe lacks is empty.
func (b *builder) stream(n *Node, kind streamKind) *stream {
	where := b.foot.streams[streamKey{n.Column, kind}]
	s := &stream{kind: kind, codec: b.file.codec, block: b.file.blockSize, acc: b.acc, in: b.in, off: where.Offset, length: where.Length}
	b.streams = append(b.streams, s)
	return s
}

// ints gives a stream of integers in the version of run length encoding that the column's encoding says.
func (b *builder) ints(n *Node, kind streamKind, signed bool) intRuns {
	return intRuns{s: b.stream(n, kind), signed: signed, v2: b.foot.encodings[n.Column].kind >= encDirectV2}
}

func (b *builder) column(p *Projection) (*column, error) {
	c := &column{want: p.Type, node: p.Node, acc: b.acc}
	n := p.Node
	if n == nil || p.Type.Kind == vector.Null {
		c.constant = vector.NewConstant(p.Type, p.Default)
		return c, nil
	}
	if e := b.foot.encodings[n.Column].kind; e > encDictionaryV2 {
		return nil, fault.New(fault.Corrupt, "column %s has the unknown encoding %d", n.Path(), e)
	}
	if _, ok := b.foot.streams[streamKey{n.Column, streamPresent}]; ok {
		c.present = &bitRuns{runs: byteRuns{s: b.stream(n, streamPresent)}}
	}
	if n.Kind == Union {
		return c, b.unionColumn(c, p)
	}
	switch p.Type.Kind {
	case vector.Row, vector.Variant:
		return c, b.structColumn(c, p)
	case vector.Array, vector.Map:
		return c, b.listColumn(c, p)
	}
	c.kind = leafColumn
	return c, b.leafColumn(c)
}

func (b *builder) structColumn(c *column, p *Projection) error {
	n, t := p.Node, p.Type
	if n.Kind != Struct {
		return mismatch(n, t)
	}
	c.kind = structColumn
	children := p.Children
	if t.Kind == vector.Variant {
		children = nil
		for _, f := range t.Fields {
			q := &Projection{Type: f.Type, Node: n.Child(f.Name)}
			if q.Node == nil {
				return fault.New(fault.Corrupt, "variant column %s has no %s", n.Path(), f.Name)
			}
			children = append(children, q)
		}
	}
	if len(children) != len(t.Fields) {
		return fault.New(fault.Internal, "projection of %s has %d children for %d fields", n.Path(), len(children), len(t.Fields))
	}
	for _, q := range children {
		k, err := b.column(q)
		if err != nil {
			return err
		}
		c.kids = append(c.kids, k)
	}
	return nil
}

func (b *builder) listColumn(c *column, p *Projection) error {
	n, t := p.Node, p.Type
	if t.Kind == vector.Array && n.Kind != List || t.Kind == vector.Map && n.Kind != Map {
		return mismatch(n, t)
	}
	if len(p.Children) != len(t.Fields) {
		return fault.New(fault.Internal, "projection of %s has %d children for %d fields", n.Path(), len(p.Children), len(t.Fields))
	}
	c.kind = listColumn
	lengths := b.ints(n, streamLength, false)
	c.lengths = &lengths
	for i, q := range p.Children {
		if q.Node == nil {
			// Keys, values and elements have no default of their own.
			q = &Projection{Type: q.Type, Node: n.Children[i], Children: q.Children}
		}
		k, err := b.column(q)
		if err != nil {
			return err
		}
		c.kids = append(c.kids, k)
	}
	return nil
}

// leafColumn decides how a primitive column gives values of the wanted type (Iceberg spec, appendix A "ORC", and schema evolution).
// What is not a legal reading is fault.Corrupt: the table's metadata and the file contradict each other.
func (b *builder) leafColumn(c *column) error {
	n, t := c.node, c.want
	integral := n.Kind == Byte || n.Kind == Short || n.Kind == Int || n.Kind == Long
	isTime := n.Attributes["iceberg.long-type"] == "TIME"
	switch t.Kind {
	case vector.Boolean:
		if n.Kind == Boolean {
			c.leaf = &boolLeaf{bitRuns: bitRuns{runs: byteRuns{s: b.stream(n, streamData)}}, c: c}
			return nil
		}
	case vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt:
		if integral && !isTime && (n.Kind != Long || t.Kind == vector.BigInt) {
			c.leaf = b.intLeaf(c, 1, 0)
			return nil
		}
	case vector.Date:
		if n.Kind == Date {
			c.leaf = b.intLeaf(c, 1, 0)
			return nil
		}
	case vector.Time:
		if n.Kind == Long {
			c.leaf = b.intLeaf(c, 1, 0)
			return nil
		}
	case vector.Timestamp, vector.TimestampTZ:
		return b.timestamp(c)
	case vector.Real, vector.Double:
		if n.Kind == Float || n.Kind == Double && t.Kind == vector.Double {
			l := &floatLeaf{s: b.stream(n, streamData), c: c, stored: 8, layout: t.Physical()}
			if n.Kind == Float {
				l.stored = 4
			}
			c.leaf = l
			return nil
		}
	case vector.Decimal:
		return b.decimal(c)
	case vector.Varchar, vector.JSON:
		if n.Kind == String || n.Kind == Varchar || n.Kind == Char {
			b.text(c, -1)
			return nil
		}
	case vector.Varbinary, vector.Geometry, vector.Geography:
		if n.Kind == Binary {
			b.text(c, -1)
			return nil
		}
	case vector.Fixed, vector.UUID:
		if n.Kind == Binary {
			size := t.Precision
			if t.Kind == vector.UUID {
				size = 16
			}
			b.text(c, int64(size))
			return nil
		}
	}
	return mismatch(n, t)
}

// intLeaf reads a column of integers; factor scales them, most bounds decimals.
func (b *builder) intLeaf(c *column, factor, most int64) *intLeaf {
	l := &intLeaf{c: c, layout: c.want.Physical(), factor: factor, most: most}
	if c.node.Kind == Byte {
		l.integers = &byteIntegers{byteRuns: byteRuns{s: b.stream(c.node, streamData)}}
	} else {
		r := b.ints(c.node, streamData, true)
		l.integers = &r
	}
	return l
}

func (b *builder) timestamp(c *column) error {
	n, t := c.node, c.want
	switch {
	case n.Kind == Date && t.Kind == vector.Timestamp:
		c.leaf = b.intLeaf(c, perDay(t), 0)
		return nil
	case n.Kind == Timestamp, n.Kind == TimestampInstant && t.Kind == vector.TimestampTZ:
	default:
		return mismatch(n, t)
	}
	l := &timeLeaf{c: c, zone: utcZone, instant: t.Kind == vector.TimestampTZ, ns: t.Nanos()}
	if n.Kind == Timestamp {
		var err error
		if l.zone, err = newZone(b.foot.zone, b.file.writer == writerJava); err != nil {
			return fault.Wrap(fault.Unsupported, err, "column %s", n.Path())
		}
	}
	l.secs, l.nanos = b.ints(n, streamData, true), b.ints(n, streamSecondary, false)
	c.leaf = l
	return nil
}

func (b *builder) decimal(c *column) error {
	n, t := c.node, c.want
	if n.Kind != Decimal {
		return mismatch(n, t)
	}
	if n.Scale != t.Scale {
		return fault.New(fault.Corrupt, "column %s has decimals of scale %d, the table wants %s", n.Path(), n.Scale, t)
	}
	if b.file.version[0] == 1 && n.Precision <= vector.MaxShortDecimal {
		most := int64(math.MaxInt64)
		if t.Precision <= vector.MaxShortDecimal {
			most = int64(decimal128.GetScaleMultiplier(t.Precision).LowBits()) - 1
		}
		l := b.intLeaf(c, 1, most)
		l.integers.(*intRuns).v2 = true
		c.leaf = l
		return nil
	}
	c.leaf = &decimalLeaf{s: b.stream(n, streamData), scales: b.ints(n, streamSecondary, true), c: c, layout: t.Physical(), scale: int64(t.Scale),
		limit: decimal128.GetScaleMultiplier(t.Precision)}
	return nil
}

// text reads strings or bytes; fixed is the length of every value, -1 for any.
func (b *builder) text(c *column, fixed int64) {
	n := c.node
	e := b.foot.encodings[n.Column]
	if e.kind == encDictionary || e.kind == encDictionaryV2 {
		c.leaf = &dictLeaf{data: b.ints(n, streamData, false), lengths: b.ints(n, streamLength, false), bytes: b.stream(n, streamDictionary), size: e.dictSize, c: c}
		return
	}
	c.leaf = &textLeaf{s: b.stream(n, streamData), lengths: b.ints(n, streamLength, false), c: c, fixed: fixed}
}
