package avro

import (
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Projection tells how a wanted column is made from the file's fields. It is a tree like the wanted type.
type Projection struct {
	// Type is the wanted type.
	Type vector.Type
	// Node is the file's field. nil when the file has none: every row is Default (nil: null).
	Node    *Node
	Default vector.Value
	// Children: of a row one a wanted field; of an array the element; of a map key and value. Those of a Variant are
	// found by name.
	Children []*Projection
}

// Resolve finds the wanted fields among the children of a record, by field id or, for nodes that have none, by
// name. A field that is not there gets its zero Projection: null. Types that cannot be read are told by NewReader.
func Resolve(record *Node, want []vector.Field) []*Projection {
	out := make([]*Projection, len(want))
	for i, f := range want {
		var n *Node
		for _, c := range record.Children {
			if c.ID >= 0 && c.ID == f.ID || c.ID < 0 && c.Name == f.Name {
				n = c
				break
			}
		}
		out[i] = resolve(n, f.Type)
	}
	return out
}

func resolve(n *Node, t vector.Type) *Projection {
	p := &Projection{Type: t, Node: n}
	if n == nil {
		return p
	}
	switch {
	case t.Kind == vector.Row && n.Kind == Record:
		p.Children = Resolve(n, t.Fields)
	case t.Kind == vector.Array && n.Kind == Array, t.Kind == vector.Map && n.Kind == Map:
		for i, f := range t.Fields {
			p.Children = append(p.Children, resolve(n.Children[i], f.Type))
		}
	}
	return p
}

// Natural is the type of a primitive as the file itself describes it, for partition values: false for others.
func (n *Node) Natural() (vector.Type, bool) {
	switch n.Kind {
	case Null:
		return vector.Of(vector.Null), true
	case Boolean:
		return vector.Of(vector.Boolean), true
	case Int:
		if n.Logical == "date" {
			return vector.Of(vector.Date), true
		}
		return vector.Of(vector.Integer), true
	case Long:
		return vector.Of(vector.BigInt), true
	case Float:
		return vector.Of(vector.Real), true
	case Double:
		return vector.Of(vector.Double), true
	case String:
		return vector.Of(vector.Varchar), true
	case Bytes, Fixed:
		if n.Logical == "decimal" && n.Precision > 0 && n.Precision <= 38 {
			return vector.DecimalOf(n.Precision, n.Scale), true
		}
		return vector.Of(vector.Varbinary), true
	}
	return vector.Type{}, false
}

// opcode says how one written value becomes a wanted one.
type opcode uint8

const (
	opSkip opcode = iota
	opNull        // the node is Avro's null: nothing is written
	opBool
	opInt32
	opInt64
	opIntToInt64
	opFloat
	opDouble
	opFloatToDouble
	opScaleUp   // long times op.scale, overflow is an error
	opScaleDown // long divided by op.scale, towards minus infinity
	opIntScaleUp
	opDecimal
	opString
	opFixed
	opEnum
	opUUIDText
	opRow
	opArray
	opMap
	opUnion // of several types, into a variant
)

// op reads one node of the writer's schema into a column.
type op struct {
	code  opcode
	node  *Node
	col   *column
	scale int64
	// again marks a root field that the op before it has read already, for another column.
	again bool
	// kids: of opRow one a writer's field, in its order; of opArray the element; of opMap key and value in written order.
	kids []*op
	// absent: of opRow the wanted fields that the file lacks.
	absent []*column
}

// compiler makes ops for a file.
type compiler struct{ f *File }

func (c *compiler) refuse(name string, n *Node, t vector.Type) error {
	what := n.Kind.String()
	if n.Logical != "" {
		what += " (" + n.Logical + ")"
	}
	return c.f.corrupt("column %s is stored as Avro %s and cannot be read as %s", name, what, t)
}

// compile makes the op and column of a projection.
func (c *compiler) compile(p *Projection, name string) (*op, *column, error) {
	col := newColumn(p.Type)
	o := &op{node: p.Node, col: col}
	n, t := p.Node, p.Type
	if n.Kind == Null {
		o.code = opNull
		return o, col, c.nullKids(col)
	}
	if t.Kind == vector.Null {
		o.code = opSkip
		return o, col, nil
	}
	if t.Kind == vector.Variant && n.Kind == Union {
		compileUnion(o)
		return o, col, nil
	}
	switch t.Physical() {
	case vector.PRow:
		return o, col, c.compileRow(o, p, name)
	case vector.PList:
		return o, col, c.compileList(o, p, name)
	}
	o.code, o.scale = primitive(n, t)
	if o.code == opSkip {
		return nil, nil, c.refuse(name, n, t)
	}
	return o, col, nil
}

// nullKids gives a nested column that is always null the children that its type has.
func (c *compiler) nullKids(col *column) error {
	for _, f := range col.typ.Fields {
		k := newColumn(f.Type)
		if err := c.nullKids(k); err != nil {
			return err
		}
		col.kids = append(col.kids, k)
	}
	return nil
}

func (c *compiler) compileRow(o *op, p *Projection, name string) error {
	n, t := p.Node, p.Type
	if n.Kind != Record {
		return c.refuse(name, n, t)
	}
	o.code = opRow
	children := p.Children
	if t.Kind == vector.Variant {
		children = nil
		for _, f := range t.Fields {
			q := &Projection{Type: f.Type}
			for _, w := range n.Children {
				if w.Name == f.Name {
					q.Node = w
				}
			}
			if q.Node == nil {
				return c.f.corrupt("variant column %s has no %s", name, f.Name)
			}
			children = append(children, q)
		}
	}
	if len(children) != len(t.Fields) {
		return fault.New(fault.Internal, "projection of %s has %d children for %d fields", name, len(children), len(t.Fields))
	}
	byNode := map[*Node]*op{}
	for i, q := range children {
		f := t.Fields[i]
		if q.Node == nil {
			k := newColumn(f.Type)
			k.fill = vector.NewConstant(f.Type, q.Default)
			if err := c.nullKids(k); err != nil {
				return err
			}
			o.col.kids = append(o.col.kids, k)
			o.absent = append(o.absent, k)
			continue
		}
		ko, kc, err := c.compile(q, name+"."+f.Name)
		if err != nil {
			return err
		}
		o.col.kids = append(o.col.kids, kc)
		if byNode[q.Node] != nil {
			return fault.New(fault.Internal, "field %s is read twice", name+"."+f.Name)
		}
		byNode[q.Node] = ko
	}
	for _, w := range n.Children {
		if k := byNode[w]; k != nil {
			o.kids = append(o.kids, k)
		} else {
			o.kids = append(o.kids, &op{code: opSkip, node: w})
		}
	}
	return nil
}

func (c *compiler) compileList(o *op, p *Projection, name string) error {
	n, t := p.Node, p.Type
	o.code = opArray
	if t.Kind == vector.Map {
		o.code = opMap
	}
	if (o.code == opArray) != (n.Kind == Array) || (o.code == opMap) != (n.Kind == Map) {
		return c.refuse(name, n, t)
	}
	if len(p.Children) != len(t.Fields) {
		return fault.New(fault.Internal, "projection of %s has %d children for %d fields", name, len(p.Children), len(t.Fields))
	}
	for i, q := range p.Children {
		if q.Node == nil {
			// Keys, values and elements have no default of their own: a projection without a node asks for one only when its
			// type is the null type.
			q = &Projection{Type: q.Type, Node: n.Children[i], Children: q.Children}
		}
		ko, kc, err := c.compile(q, name+"."+t.Fields[i].Name)
		if err != nil {
			return err
		}
		o.kids = append(o.kids, ko)
		o.col.kids = append(o.col.kids, kc)
	}
	if n.keyLast {
		o.kids[0], o.kids[1] = o.kids[1], o.kids[0]
	}
	return nil
}

// primitive chooses the conversion of a written primitive to a wanted one; opSkip when there is none.
func primitive(n *Node, t vector.Type) (opcode, int64) {
	switch t.Kind {
	case vector.Boolean:
		if n.Kind == Boolean {
			return opBool, 0
		}
	case vector.TinyInt, vector.SmallInt, vector.Integer, vector.Date:
		if n.Kind == Int {
			return opInt32, 0
		}
	case vector.BigInt:
		switch n.Kind {
		case Int:
			return opIntToInt64, 0
		case Long:
			return opInt64, 0
		}
	case vector.Time:
		switch {
		case n.Kind == Int && n.Logical == "time-millis":
			return opIntScaleUp, 1000
		case n.Kind == Long:
			return opInt64, 0
		}
	case vector.Timestamp, vector.TimestampTZ:
		return timestamp(n, t)
	case vector.Real:
		if n.Kind == Float {
			return opFloat, 0
		}
	case vector.Double:
		switch n.Kind {
		case Float:
			return opFloatToDouble, 0
		case Double:
			return opDouble, 0
		}
	case vector.Decimal:
		if (n.Kind == Fixed || n.Kind == Bytes) && n.Logical == "decimal" && n.Scale == t.Scale {
			return opDecimal, 0
		}
	case vector.Varchar, vector.JSON:
		switch n.Kind {
		case String:
			return opString, 0
		case Enum:
			return opEnum, 0
		}
	case vector.Varbinary, vector.Geometry, vector.Geography:
		switch n.Kind {
		case Bytes:
			return opString, 0
		case Fixed:
			return opFixed, 0
		}
	case vector.Fixed:
		if n.Kind == Fixed && n.Size == t.Precision {
			return opFixed, 0
		}
	case vector.UUID:
		switch {
		case n.Kind == Fixed && n.Size == 16:
			return opFixed, 0
		case n.Kind == String && n.Logical == "uuid":
			return opUUIDText, 0
		}
	}
	return opSkip, 0
}

// timestamp chooses among the units that files write; the table's type alone says whether there is a zone.
func timestamp(n *Node, t vector.Type) (opcode, int64) {
	const microsADay = 86_400_000_000
	unit := int64(1) // wanted units a microsecond
	if t.Nanos() {
		unit = 1000
	}
	if n.Kind == Int && n.Logical == "date" && t.Kind == vector.Timestamp {
		return opIntScaleUp, microsADay * unit
	}
	if n.Kind != Long {
		return opSkip, 0
	}
	switch n.Logical {
	case "timestamp-millis", "local-timestamp-millis":
		return opScaleUp, 1000 * unit
	case "timestamp-nanos", "local-timestamp-nanos":
		if unit == 1 {
			return opScaleDown, 1000
		}
		return opInt64, 0
	case "timestamp-micros", "local-timestamp-micros":
		if unit == 1000 {
			return opScaleUp, 1000
		}
	}
	return opInt64, 0
}
