package scanner

import (
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/vector"
)

// fileNode is a field of a data file's schema with lists and maps in one shape, whatever the format. The root has the
// file's columns as kids.
type fileNode struct {
	id   int // Iceberg field id; -1 when there is none
	name string
	kind vector.Kind // Row, Array or Map; Null for a leaf
	// kids: of a row its fields, of an array the element, of a map key and value.
	kids []*fileNode
	pq   *parquet.Node
	av   *avro.Node
	orc  *orc.Node
}

// onceARow reports whether f is a leaf with one value a row, so that a file's statistics of it bound the rows.
func (f *fileNode) onceARow() bool {
	switch {
	case f.kind != vector.Null:
		return false
	case f.orc != nil:
		return !f.orc.Repeated && f.orc.Kind != orc.Union
	}
	return f.pq.IsLeaf() && f.pq.MaxRep == 0
}

func parquetTree(root *parquet.Node) *fileNode {
	r := &fileNode{id: -1, kind: vector.Row, pq: root}
	for _, c := range root.Children {
		r.kids = append(r.kids, parquetNode(c, false))
	}
	return r
}

// parquetNode makes the tree of n. asElement marks a repeated node that has been taken for the element of its own list.
func parquetNode(n *parquet.Node, asElement bool) *fileNode {
	f := &fileNode{id: n.ID, name: n.Name, pq: n}
	if !asElement && n.IsList() {
		e := n.Element()
		f.kind = vector.Array
		f.kids = []*fileNode{parquetNode(e, e.Repetition == parquet.Repeated)}
		return f
	}
	if n.IsMap() {
		f.kind = vector.Map
		k, v := n.KeyValue()
		f.kids = []*fileNode{parquetNode(k, false)}
		if v != nil {
			f.kids = append(f.kids, parquetNode(v, false))
		}
		return f
	}
	if !n.IsLeaf() {
		f.kind = vector.Row
		for _, c := range n.Children {
			f.kids = append(f.kids, parquetNode(c, false))
		}
	}
	return f
}

func avroTree(n *avro.Node) *fileNode {
	f := &fileNode{id: n.ID, name: n.Name, av: n}
	switch n.Kind {
	case avro.Record:
		f.kind = vector.Row
	case avro.Array:
		f.kind = vector.Array
	case avro.Map:
		f.kind = vector.Map
	default:
		return f
	}
	for _, c := range n.Children {
		f.kids = append(f.kids, avroTree(c))
	}
	return f
}

func (f *fileNode) hasIDs() bool {
	for _, k := range f.kids {
		if k.id >= 0 || k.hasIDs() {
			return true
		}
	}
	return false
}

// find gives the kid with a field id.
func (f *fileNode) find(id int) *fileNode {
	for _, k := range f.kids {
		if k.id == id {
			return k
		}
	}
	return nil
}

// mapped gives a copy of the tree with ids by a name mapping (spec: Column Projection; all or nothing for a file).
func (f *fileNode) mapped(names []iceberg.MappedField) *fileNode {
	out := *f
	out.kids = make([]*fileNode, len(f.kids))
	for i, k := range f.kids {
		name := k.name
		switch f.kind { // elements, keys and values go by fixed names
		case vector.Array:
			name = "element"
		case vector.Map:
			name = [...]string{"key", "value"}[i]
		}
		id, sub := -1, []iceberg.MappedField(nil)
		for j := range names {
			if slices.Contains(names[j].Names, name) {
				id, sub = names[j].ID(), names[j].Fields
				break
			}
		}
		m := k.mapped(sub)
		m.id = id
		out.kids[i] = m
	}
	return &out
}

// numbered gives a copy of the root whose columns have ids 1..n.
func (f *fileNode) numbered() *fileNode {
	out := *f
	out.kids = make([]*fileNode, len(f.kids))
	for i, k := range f.kids {
		c := *k
		c.id = i + 1
		out.kids[i] = &c
	}
	return &out
}

// projected is how a wanted field is made from a file: node is nil when the file does not have it and every row is value.
type projected struct {
	typ   vector.Type
	node  *fileNode
	value vector.Value
	kids  []*projected
	parts *vector.VariantParts // of a variant
}

// project resolves a wanted field among the kids of a node. constant gives the values of identity-partition columns by
// field id; it is asked only for what the file lacks.
func project(w *want, parent *fileNode, constant func(w *want) (vector.Value, bool)) (*projected, error) {
	p := &projected{typ: w.typ}
	n := parent.find(w.id)
	if n == nil {
		if v, ok := constant(w); ok {
			p.value = v
			return p, nil
		}
		var err error
		p.value, err = w.absent()
		p.spread(w, constant)
		return p, err
	}
	return p, p.bind(w, n, constant)
}

// spread lets identity-partition columns within a struct that the file lacks appear in its default.
func (p *projected) spread(w *want, constant func(w *want) (vector.Value, bool)) {
	row, ok := p.value.([]vector.Value)
	if !ok {
		return
	}
	row = slices.Clone(row)
	for i, k := range w.kids {
		if v, ok := constant(k); ok {
			row[i] = v
		}
	}
	p.value = row
}

func (p *projected) bind(w *want, n *fileNode, constant func(w *want) (vector.Value, bool)) error {
	p.node, p.parts = n, w.parts
	switch w.typ.Kind {
	case vector.Row, vector.Array, vector.Map:
		if n.kind != w.typ.Kind && !(n.av != nil && n.av.Kind == avro.Null) {
			return fault.New(fault.Corrupt, "column %s is stored as %s and cannot be read as %s", w.name, n.describe(), w.typ)
		}
	case vector.Variant, vector.Null:
		return nil
	default:
		if n.kind != vector.Null {
			return fault.New(fault.Corrupt, "column %s is stored as %s and cannot be read as %s", w.name, n.describe(), w.typ)
		}
		return nil
	}
	if w.typ.Kind == vector.Row {
		for _, k := range w.kids {
			kp, err := project(k, n, constant)
			if err != nil {
				return err
			}
			p.kids = append(p.kids, kp)
		}
		return nil
	}
	for i, k := range w.kids {
		kp := &projected{typ: k.typ}
		p.kids = append(p.kids, kp)
		if i < len(n.kids) {
			if err := kp.bind(k, n.kids[i], constant); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fileNode) describe() string {
	switch f.kind {
	case vector.Row:
		return "a group"
	case vector.Array:
		return "a list"
	case vector.Map:
		return "a map"
	}
	if f.av != nil {
		return "Avro " + f.av.Kind.String()
	}
	if f.orc != nil {
		return "ORC " + f.orc.Kind.String()
	}
	return f.pq.Physical.String()
}

func (p *projected) parquet() *parquet.Projection {
	out := &parquet.Projection{Type: p.typ, Default: p.value, Parts: p.parts}
	if p.node != nil {
		out.Node = p.node.pq
	}
	for _, k := range p.kids {
		out.Children = append(out.Children, k.parquet())
	}
	return out
}

func (p *projected) avro() *avro.Projection {
	out := &avro.Projection{Type: p.typ, Default: p.value}
	if p.node != nil {
		out.Node = p.node.av
	}
	for _, k := range p.kids {
		out.Children = append(out.Children, k.avro())
	}
	return out
}
