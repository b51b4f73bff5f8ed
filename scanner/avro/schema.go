package avro

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Kind is an Avro type without its attributes.
type Kind uint8

// The Avro types.
const (
	Null Kind = iota
	Boolean
	Int
	Long
	Float
	Double
	Bytes
	String
	Fixed
	Enum
	Record
	Array
	Map
	Union // of more than one type beside null; it can be skipped, not read
)

var kindNames = [...]string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum", "record", "array", "map", "union"}

// String is Avro's name of k.
func (k Kind) String() string { return kindNames[k] }

// Node is a node of the writer's schema. A union with null is folded into the node of its other branch.
type Node struct {
	// Name is the field's name, "element" below arrays, "key" and "value" below maps.
	Name string
	// ID is the Iceberg field id; -1 when the schema gives none.
	ID int
	Kind
	// Logical is the logicalType attribute.
	Logical          string
	Precision, Scale int
	// Local says that a timestamp is not adjusted to UTC (the adjust-to-utc attribute of Iceberg, false).
	Local bool
	// Size is the length in bytes of a Fixed.
	Size int
	// Symbols of an Enum.
	Symbols []string
	// Children: a record's fields; an array's element; a map's key and value; a union's branches.
	Children []*Node
	// KeyValue marks a Map that is stored as an array of records of two fields.
	KeyValue bool
	// keyLast marks such records whose value stands before the key.
	keyLast bool
	// null is the branch of null in the union around this node, -1 when there is no union; branches counts the
	// union's branches.
	null, branches int
	// min is the least number of bytes a value takes.
	min int64
}

// Nullable reports whether values can be null.
func (n *Node) Nullable() bool { return n.null >= 0 || n.Kind == Null }

// HasIDs reports whether any node below n has a field id.
func (n *Node) HasIDs() bool {
	for _, c := range n.Children {
		if c.ID >= 0 || c.HasIDs() {
			return true
		}
	}
	return false
}

const (
	maxDepth = 200
	maxNodes = 200_000
)

// parseSchema reads a schema document. Named types are expanded where they are used; one that contains itself is an
// error, for no Iceberg schema does.
func parseSchema(doc []byte) (*Node, error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the schema has text after its end")
	}
	p := &schemaParser{named: map[string]namedType{}}
	n, err := p.parse(raw, "", 0)
	if err != nil {
		return nil, err
	}
	if n.Kind != Record || n.null >= 0 { // a file of bare values: a record of one field is written as the field
		n.Name = "value"
		return &Node{Kind: Record, ID: -1, null: -1, min: n.min, Children: []*Node{n}}, nil
	}
	return n, nil
}

type namedType struct {
	doc       map[string]any
	namespace string
	open      bool // being parsed: a use now would be recursive
}

type schemaParser struct {
	named map[string]namedType
	nodes int
}

func (p *schemaParser) parse(raw any, namespace string, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxDepth)
	}
	if p.nodes++; p.nodes > maxNodes {
		return nil, fmt.Errorf("the schema has more than %d nodes", maxNodes)
	}
	switch t := raw.(type) {
	case string:
		return p.byName(t, namespace, depth)
	case []any:
		return p.union(t, namespace, depth)
	case map[string]any:
		return p.object(t, namespace, depth)
	}
	return nil, fmt.Errorf("the schema holds %T where a type belongs", raw)
}

func (p *schemaParser) byName(name, namespace string, depth int) (*Node, error) {
	for k := Null; k <= String; k++ {
		if name == kindNames[k] {
			return leaf(k), nil
		}
	}
	full := fullName(name, namespace)
	t, ok := p.named[full]
	if !ok {
		full = name
		t, ok = p.named[full]
	}
	if !ok {
		return nil, fmt.Errorf("the schema uses type %q before or without defining it", name)
	}
	if t.open {
		return nil, fmt.Errorf("the schema's type %q refers to itself", name)
	}
	return p.define(t.doc, full, t.namespace, depth)
}

func leaf(k Kind) *Node {
	n := &Node{Kind: k, ID: -1, null: -1}
	switch k {
	case Null:
	case Float:
		n.min = 4
	case Double:
		n.min = 8
	default:
		n.min = 1
	}
	return n
}

func fullName(name, namespace string) string {
	for i := 0; i < len(name); i++ {
		if name[i] == '.' {
			return name
		}
	}
	if namespace == "" {
		return name
	}
	return namespace + "." + name
}

func (p *schemaParser) union(branches []any, namespace string, depth int) (*Node, error) {
	null, n := -1, (*Node)(nil)
	u := &Node{Kind: Union, ID: -1, null: -1, min: 1}
	for i, b := range branches {
		c, err := p.parse(b, namespace, depth+1)
		if err != nil {
			return nil, err
		}
		if c.null >= 0 || c.Kind == Union {
			return nil, fmt.Errorf("the schema nests a union in a union")
		}
		u.Children = append(u.Children, c)
		if c.Kind == Null && null < 0 {
			null = i
		} else {
			n = c
		}
	}
	switch {
	case len(branches) == 2 && null >= 0 && n != nil:
		n.null, n.branches, n.min = null, 2, 1
		return n, nil
	case len(branches) == 0:
		return nil, fmt.Errorf("the schema has an empty union")
	}
	return u, nil
}

func (p *schemaParser) object(o map[string]any, namespace string, depth int) (*Node, error) {
	switch t := o["type"].(type) {
	case string:
		switch t {
		case "record", "error", "fixed", "enum":
			name, _ := o["name"].(string)
			ns := namespace
			if s, ok := o["namespace"].(string); ok {
				ns = s
			}
			full := fullName(name, ns)
			for i := len(full) - 1; i >= 0; i-- {
				if full[i] == '.' {
					ns = full[:i]
					break
				}
			}
			return p.define(o, full, ns, depth)
		case "array":
			return p.array(o, namespace, depth)
		case "map":
			v, err := p.parse(o["values"], namespace, depth+1)
			if err != nil {
				return nil, err
			}
			k := leaf(String)
			k.Name, v.Name = "key", "value"
			k.ID, v.ID = idOf(o, "key-id"), idOf(o, "value-id")
			return &Node{Kind: Map, ID: -1, null: -1, min: 1, Children: []*Node{k, v}}, nil
		}
		n, err := p.byName(t, namespace, depth)
		if err != nil {
			return nil, err
		}
		return n, n.attributes(o)
	case nil:
		return nil, fmt.Errorf("the schema has a type without \"type\"")
	default:
		n, err := p.parse(t, namespace, depth+1)
		if err != nil {
			return nil, err
		}
		return n, n.attributes(o)
	}
}

// define makes a node of a record, fixed or enum and remembers its name.
func (p *schemaParser) define(o map[string]any, full, namespace string, depth int) (*Node, error) {
	if full == "" {
		return nil, fmt.Errorf("the schema has a named type without a name")
	}
	p.named[full] = namedType{doc: o, namespace: namespace, open: true}
	defer func() { p.named[full] = namedType{doc: o, namespace: namespace} }()
	n := &Node{ID: -1, null: -1}
	switch o["type"] {
	case "fixed":
		size, ok := intOf(o["size"])
		if !ok || size < 0 || size > 1<<30 {
			return nil, fmt.Errorf("the schema's fixed %q has no valid size", full)
		}
		n.Kind, n.Size, n.min = Fixed, size, int64(size)
	case "enum":
		n.Kind, n.min = Enum, 1
		symbols, _ := o["symbols"].([]any)
		for _, s := range symbols {
			text, _ := s.(string)
			n.Symbols = append(n.Symbols, text)
		}
	default:
		n.Kind = Record
		fields, ok := o["fields"].([]any)
		if !ok {
			return nil, fmt.Errorf("the schema's record %q has no list of fields", full)
		}
		for _, f := range fields {
			fo, ok := f.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("the schema's record %q has a field that is no object", full)
			}
			c, err := p.parse(fo["type"], namespace, depth+1)
			if err != nil {
				return nil, err
			}
			c.Name, _ = fo["name"].(string)
			c.ID = idOf(fo, "field-id")
			n.Children = append(n.Children, c)
			n.min = min(n.min+c.min, 1<<40)
		}
	}
	return n, n.attributes(o)
}

func (p *schemaParser) array(o map[string]any, namespace string, depth int) (*Node, error) {
	e, err := p.parse(o["items"], namespace, depth+1)
	if err != nil {
		return nil, err
	}
	n := &Node{Kind: Array, ID: -1, null: -1, min: 1}
	if o["logicalType"] == "map" && e.Kind == Record && len(e.Children) == 2 && e.null < 0 {
		n.Kind, n.KeyValue, n.Children = Map, true, e.Children
		if e.Children[0].Name == "value" && e.Children[1].Name == "key" {
			n.keyLast = true
			n.Children = []*Node{e.Children[1], e.Children[0]}
		}
		return n, nil
	}
	e.Name, e.ID = "element", idOf(o, "element-id")
	n.Children = []*Node{e}
	return n, nil
}

// attributes takes what stands beside "type".
func (n *Node) attributes(o map[string]any) error {
	if s, ok := o["logicalType"].(string); ok {
		n.Logical = s
	}
	if utc, ok := o["adjust-to-utc"].(bool); ok {
		n.Local = !utc
	}
	if n.Logical == "decimal" {
		var okP, okS bool
		n.Precision, okP = intOf(o["precision"])
		if n.Scale, okS = intOf(o["scale"]); o["scale"] == nil {
			okS = true
		}
		if !okP || !okS {
			return fmt.Errorf("the schema has a decimal without a valid precision or scale")
		}
	}
	return nil
}

func idOf(o map[string]any, key string) int {
	if id, ok := intOf(o[key]); ok {
		return id
	}
	return -1
}

func intOf(x any) (int, bool) {
	n, ok := x.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	if err != nil || i < -1<<31 || i >= 1<<31 {
		return 0, false
	}
	return int(i), true
}
