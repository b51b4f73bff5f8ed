package parquet

import (
	"strings"

	"github.com/skua-db/skua/fault"
)

// Physical is the primitive type a column's values are stored as.
type Physical int8

// The primitive types, numbered as in parquet.thrift.
const (
	Boolean           Physical = 0
	Int32             Physical = 1
	Int64             Physical = 2
	Int96             Physical = 3
	Float             Physical = 4
	Double            Physical = 5
	ByteArray         Physical = 6
	FixedLenByteArray Physical = 7
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// String is the name parquet.thrift gives the type.
func (p Physical) String() string {
	if p >= 0 && int(p) < len(physicalNames) {
		return physicalNames[p]
	}
	return "group"
}

// Repetition tells how often a field may stand in its parent.
type Repetition int8

// The repetitions, numbered as in parquet.thrift.
const (
	Required Repetition = 0
	Optional Repetition = 1
	Repeated Repetition = 2
)

// LogicalKind is what values mean beyond their physical type. Logical and the older converted types are folded into one
// table, the logical type winning where a file has both.
type LogicalKind int8

// The logical kinds. None means that a file says nothing.
const (
	None LogicalKind = iota
	String
	Enum
	JSON
	BSON
	List
	Map         // also the outer group of the legacy MAP_KEY_VALUE
	MapKeyValue // only ever the repeated group inside a Map in old files
	Decimal
	Date
	Time
	Timestamp
	Integer
	Unknown // always null
	UUID
	Float16
	Variant
	Geometry
	Geography
	Interval
)

// Unit is the resolution of a time or timestamp.
type Unit int8

// The units.
const (
	Millis Unit = iota + 1
	Micros
	Nanos
)

// Logical is a logical type with its parameters.
type Logical struct {
	Kind             LogicalKind
	Precision, Scale int  // decimal
	Unit             Unit // time, timestamp
	UTC              bool // time, timestamp: adjusted to UTC
	Bits             int  // integer: 8, 16, 32, 64
	Signed           bool // integer
	CRS              string
	Edges            int32
}

// Node is a field of the file's schema. Nodes are immutable once the footer is parsed.
type Node struct {
	Name       string
	ID         int // Iceberg field id; -1 when the file gives none
	Repetition Repetition
	Physical   Physical // leaves only; -1 for a group
	Length     int      // bytes of FIXED_LEN_BYTE_ARRAY
	Logical    Logical
	Parent     *Node // nil for the root
	Children   []*Node
	// Leaf is the position among the leaf columns, or -1 for a group.
	Leaf int
	// MaxDef and MaxRep are the levels at this node, itself included.
	MaxDef, MaxRep int
}

// IsLeaf reports whether the node is a column with values.
func (n *Node) IsLeaf() bool { return n.Leaf >= 0 }

// Path is the dotted name from the root, for messages only: names may hold dots themselves.
func (n *Node) Path() string {
	if n.Parent == nil {
		return ""
	}
	names := []string{n.Name}
	for p := n.Parent; p != nil && p.Parent != nil; p = p.Parent {
		names = append(names, p.Name)
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, ".")
}

// Child finds the child of a name, or nil.
func (n *Node) Child(name string) *Node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// IsList reports whether the node is read as an array: a group annotated LIST, or a repeated field outside such a group
// (LogicalTypes.md, "Lists"). A node that is the element of its own list (see Element) is asked about as a field here, not as
// the element.
func (n *Node) IsList() bool {
	return n.Logical.Kind == List && n.listChild() != nil || n.Repetition == Repeated && n.Logical.Kind != List
}

// IsMap reports whether the node is read as a map: a group annotated MAP or MAP_KEY_VALUE around a repeated group of key and value.
func (n *Node) IsMap() bool {
	if n.Logical.Kind != Map && n.Logical.Kind != MapKeyValue || len(n.Children) != 1 || n.IsLeaf() {
		return false
	}
	kv := n.Children[0]
	return kv.Repetition == Repeated && (len(kv.Children) == 1 || len(kv.Children) == 2)
}

// Element is the node of an array's elements, by the rules for two-level and three-level lists of LogicalTypes.md. For a
// repeated field that no LIST surrounds it is the node itself. nil when the node is no list.
func (n *Node) Element() *Node {
	if n.Logical.Kind == List {
		rep := n.listChild()
		if rep == nil {
			return nil
		}
		if rep.IsLeaf() || len(rep.Children) != 1 || rep.Name == "array" || rep.Name == n.Name+"_tuple" {
			return rep
		}
		if only := rep.Children[0]; only.Repetition != Repeated && rep.Logical.Kind != List && rep.Logical.Kind != Map {
			return only
		}
		return rep
	}
	if n.Repetition == Repeated {
		return n
	}
	return nil
}

// KeyValue gives the key and value nodes of a map; value is nil when the file has keys only. Both are nil when the node is no map.
func (n *Node) KeyValue() (key, value *Node) {
	if !n.IsMap() {
		return nil, nil
	}
	kv := n.Children[0]
	if len(kv.Children) == 1 {
		return kv.Children[0], nil
	}
	return kv.Children[0], kv.Children[1]
}

// listChild is the repeated child of a LIST group, or nil.
func (n *Node) listChild() *Node {
	if len(n.Children) == 1 && n.Children[0].Repetition == Repeated {
		return n.Children[0]
	}
	return nil
}

// firstLeaf is a leaf below n (or n itself) that tells n's levels at the least cost: the least nested one.
func (n *Node) firstLeaf() *Node {
	if n.IsLeaf() {
		return n
	}
	var best *Node
	for _, c := range n.Children {
		if l := c.firstLeaf(); l != nil && (best == nil || l.MaxRep < best.MaxRep) {
			best = l
		}
	}
	return best
}

const (
	maxSchemaDepth = 100
	maxSchemaNodes = 1 << 20
)

// schemaElement is an entry of the flattened schema, as the footer stores it.
type schemaElement struct {
	Node
	numChildren int32
	hasType     bool
	hasRep      bool
}

// buildSchema makes the tree from its depth-first list and numbers leaves and levels.
func buildSchema(elems []schemaElement) (root *Node, leaves []*Node, err error) {
	if len(elems) == 0 {
		return nil, nil, fault.New(fault.Corrupt, "schema is empty")
	}
	nodes := make([]Node, len(elems))
	next := 0
	var build func(parent *Node, depth int) (*Node, error)
	build = func(parent *Node, depth int) (*Node, error) {
		if next >= len(elems) {
			return nil, fault.New(fault.Corrupt, "schema ends inside group %q", parent.Name)
		}
		if depth > maxSchemaDepth {
			return nil, fault.New(fault.Corrupt, "schema is nested deeper than %d", maxSchemaDepth)
		}
		e, n := &elems[next], &nodes[next]
		next++
		*n = e.Node
		n.Parent, n.Leaf = parent, -1
		if parent != nil {
			n.MaxDef, n.MaxRep = parent.MaxDef, parent.MaxRep
			if !e.hasRep {
				return nil, fault.New(fault.Corrupt, "schema field %q has no repetition", n.Name)
			}
			switch n.Repetition {
			case Required:
			case Optional:
				n.MaxDef++
			case Repeated:
				n.MaxDef++
				n.MaxRep++
			default:
				return nil, fault.New(fault.Corrupt, "schema field %q has repetition %d", n.Name, n.Repetition)
			}
		} else {
			n.Repetition = Required
		}
		if e.hasType {
			if e.numChildren > 0 || parent == nil {
				return nil, fault.New(fault.Corrupt, "schema field %q is both a group and a column", n.Name)
			}
			if n.Physical < Boolean || n.Physical > FixedLenByteArray {
				return nil, fault.New(fault.Corrupt, "schema field %q has physical type %d", n.Name, n.Physical)
			}
			if n.Physical == FixedLenByteArray && n.Length <= 0 {
				return nil, fault.New(fault.Corrupt, "schema field %q has a fixed length of %d", n.Name, n.Length)
			}
			n.Leaf = len(leaves)
			leaves = append(leaves, n)
			return n, nil
		}
		n.Physical = -1
		if e.numChildren < 0 || int(e.numChildren) > len(elems)-next {
			return nil, fault.New(fault.Corrupt, "schema group %q claims %d children, only %d elements follow", n.Name, e.numChildren, len(elems)-next)
		}
		n.Children = make([]*Node, e.numChildren)
		for i := range n.Children {
			c, err := build(n, depth+1)
			if err != nil {
				return nil, err
			}
			n.Children[i] = c
		}
		return n, nil
	}
	if root, err = build(nil, 0); err != nil {
		return nil, nil, err
	}
	if next != len(elems) {
		return nil, nil, fault.New(fault.Corrupt, "schema has %d elements, its root reaches %d", len(elems), next)
	}
	return root, leaves, nil
}
