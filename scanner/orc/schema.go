package orc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Kind is a column's type, numbered as in orc_proto's Type.Kind.
type Kind uint8

// The kinds.
const (
	Boolean Kind = iota
	Byte
	Short
	Int
	Long
	Float
	Double
	String
	Binary
	Timestamp
	List
	Map
	Struct
	Union
	Decimal
	Date
	Varchar
	Char
	TimestampInstant
)

var kindNames = [...]string{"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "timestamp", "array",
	"map", "struct", "uniontype", "decimal", "date", "varchar", "char", "timestamp with local time zone"}

// String is the name ORC's tools give the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("type %d", uint8(k))
}

// Node is a column of the file's schema. The root is the struct of all.
type Node struct {
	Name string // of a struct's field; "element", "key" and "value" below lists and maps
	ID   int    // Iceberg field id (attribute iceberg.id), -1 when absent
	Kind Kind
	// Column is its number in the file: its place in pre-order.
	Column int
	Parent *Node
	// Children: fields of a struct, element of a list, key and value of a map, members of a union.
	Children []*Node
	// Repeated is set for what stands below a list, map or union, and so has not one value a row.
	Repeated bool

	Precision, Scale int // of a decimal
	// Attributes as Iceberg writes them: iceberg.required, iceberg.long-type and others. nil when there are none.
	Attributes map[string]string
}

// maxDepth bounds nesting, since readers recurse.
const maxDepth = 500

// Path is the column's name with those of its parents, for messages.
func (n *Node) Path() string {
	if n.Parent == nil {
		return "root"
	}
	var names []string
	for ; n.Parent != nil; n = n.Parent {
		names = append(names, n.Name)
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	const most = 16 // of a path that a hostile file made deep
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ".")
}

// Child finds the field of a struct by name; nil when there is none.
func (n *Node) Child(name string) *Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// rawType is a Type message.
type rawType struct {
	kind             uint64
	subtypes         []uint64
	names            []string
	precision, scale uint64
	hasPrecision     bool
	attributes       map[string]string
}

func parseType(b []byte) (t rawType, err error) {
	m := message{b: b}
	t.kind = math.MaxUint64
	for m.next() {
		switch m.num {
		case 1:
			t.kind = m.u
		case 2:
			t.subtypes = m.uints(t.subtypes)
		case 3:
			t.names = append(t.names, string(m.data))
		case 5:
			t.precision, t.hasPrecision = m.u, true
		case 6:
			t.scale = m.u
		case 7:
			name, value := pair(m.data)
			if t.attributes == nil {
				t.attributes = map[string]string{}
			}
			t.attributes[name] = value
		}
	}
	return t, m.err
}

// parseTypes makes the tree of columns. Types come in pre-order, and each but the first is the subtype of one other.
func (f *Footer) parseTypes(encoded [][]byte) error {
	if len(encoded) == 0 {
		return fault.New(fault.Corrupt, "it has no types")
	}
	types := make([]rawType, len(encoded))
	for i, b := range encoded {
		var err error
		if types[i], err = parseType(b); err != nil {
			return err
		}
	}
	if types[0].kind != uint64(Struct) {
		return fault.New(fault.Corrupt, "its root is not a struct of columns")
	}
	root, err := f.node(types, nil, "", 0)
	if err != nil {
		return err
	}
	if len(f.Nodes) != len(types) {
		return fault.New(fault.Corrupt, "it has %d types, but only %d belong to columns", len(types), len(f.Nodes))
	}
	f.Root = root
	return nil
}

func (f *Footer) node(types []rawType, parent *Node, name string, depth int) (*Node, error) {
	at := len(f.Nodes)
	t := &types[at]
	n := &Node{Name: name, ID: -1, Column: at, Parent: parent, Attributes: t.attributes, Precision: 38, Scale: 10}
	if parent != nil {
		n.Repeated = parent.Repeated || parent.Kind == List || parent.Kind == Map || parent.Kind == Union
	}
	if t.kind >= uint64(len(kindNames)) {
		return nil, fault.New(fault.Corrupt, "type %d has an unknown kind", at)
	}
	n.Kind = Kind(t.kind)
	f.Nodes = append(f.Nodes, n)
	if depth > maxDepth {
		return nil, fault.New(fault.Corrupt, "columns are nested deeper than %d", maxDepth)
	}
	if t.hasPrecision {
		if t.precision > 38 || t.scale > t.precision {
			return nil, fault.New(fault.Corrupt, "type %d is decimal(%d,%d)", at, t.precision, t.scale)
		}
		n.Precision, n.Scale = int(t.precision), int(t.scale)
	}
	if id, ok := t.attributes["iceberg.id"]; ok {
		v, err := strconv.Atoi(id)
		if err != nil || v < 0 {
			return nil, fault.New(fault.Corrupt, "type %d has the field id %.20q", at, id)
		}
		n.ID = v
	}
	names := t.names
	want := len(t.subtypes)
	switch n.Kind {
	case Struct:
		if len(names) != len(t.subtypes) {
			return nil, fault.New(fault.Corrupt, "struct type %d has %d fields, but %d names", at, len(t.subtypes), len(names))
		}
	case List:
		names, want = []string{"element"}, 1
	case Map:
		names, want = []string{"key", "value"}, 2
	case Union:
		for i := range want {
			names = append(names, UnionField(i+1))
		}
	default:
		want = 0
	}
	if len(t.subtypes) != want {
		return nil, fault.New(fault.Corrupt, "type %d, %s, has %d subtypes", at, n.Kind, len(t.subtypes))
	}
	for i, s := range t.subtypes {
		if s != uint64(len(f.Nodes)) || s >= uint64(len(types)) {
			return nil, fault.New(fault.Corrupt, "type %d has the subtype %d, which is out of order", at, s)
		}
		c, err := f.node(types, n, names[i], depth+1)
		if err != nil {
			return nil, err
		}
		n.Children = append(n.Children, c)
	}
	return n, nil
}

// describe tells the type for messages.
func (n *Node) describe() string {
	s := "ORC " + n.Kind.String()
	if n.Kind == Decimal {
		s += fmt.Sprintf("(%d,%d)", n.Precision, n.Scale)
	}
	for _, a := range [...]string{"iceberg.long-type", "iceberg.binary-type", "iceberg.struct-type"} {
		if v := n.Attributes[a]; v != "" {
			s += fmt.Sprintf(" (%.20s)", v)
		}
	}
	return s
}

// mismatch refuses a reading that the table's schema asks for and the file does not allow.
func mismatch(n *Node, want fmt.Stringer) error {
	return fault.New(fault.Corrupt, "column %s is %s in the file, which cannot be read as %s", n.Path(), n.describe(), want)
}
