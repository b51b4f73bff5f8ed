package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// column makes one wanted value (or part of one) out of leaves. It is a tree like the wanted type.
type column struct {
	want vector.Type
	kind columnKind
	leaf *leaf // of a leaf column; of a struct, list or map the one whose levels tell its shape
	kids []*column

	// def is the definition level from which the value is not null; present the level from which the slot exists, within rep
	// repeated ancestors.
	def, present, rep int
	// Of a list: its elements exist from definition level elementDef on.
	elementDef int

	shred *shred // of a shredded variant, whose only kid is the row of its parts
	file  string

	constant *vector.Vector // of a column that the file does not have
	out      vector.Vector
	valid    []uint64
	offsets  []int32
	codes    []int32
	masked   vector.Vector
	others   []*leaf // further leaves of a list, whose levels must agree with leaf's
}

type columnKind uint8

const (
	constantColumn columnKind = iota
	leafColumn
	structColumn
	listColumn
	mapColumn
	variantColumn
)

// builder makes column trees and collects the leaves they need.
type builder struct {
	file   string
	leaves map[*Node]*leaf
	order  []*leaf
}

// levelsOf gives the leaf whose levels tell the shape of node n: one that is read anyway, else the least nested.
func (b *builder) levelsOf(n *Node) *leaf {
	var found *leaf
	for _, l := range b.order {
		if below(l.node, n) && (found == nil || l.node.MaxRep < found.node.MaxRep) {
			found = l
		}
	}
	if found == nil {
		if f := n.firstLeaf(); f != nil {
			found = &leaf{node: f, want: vector.Of(vector.Null), minDef: repeatedDefs(f)}
			found.dec.conv = conversion{op: opNull, layout: vector.PNone}
			b.leaves[f] = found
			b.order = append(b.order, found)
		}
	}
	if found != nil {
		found.structure = true
	}
	return found
}

func below(n, ancestor *Node) bool {
	for ; n != nil; n = n.Parent {
		if n == ancestor {
			return true
		}
	}
	return false
}

// column plans p, whose slots exist from definition level present on within rep repeated ancestors.
func (b *builder) column(p *Projection, rep, present int) (*column, error) {
	c := &column{want: p.Type, rep: rep, present: present}
	n := p.Node
	if n == nil || p.Type.Kind == vector.Null {
		c.constant = vector.NewConstant(p.Type, p.Default)
		return c, nil
	}
	if n.MaxRep > rep && !n.IsList() && !n.IsMap() {
		return nil, mismatch(n, p.Type)
	}
	c.def = n.MaxDef
	switch p.Type.Kind {
	case vector.Row, vector.Variant:
		return b.structColumn(c, p)
	case vector.Array:
		return b.listColumn(c, p)
	case vector.Map:
		return b.mapColumn(c, p)
	}
	if !n.IsLeaf() || n.MaxRep > rep {
		return nil, mismatch(n, p.Type)
	}
	conv, err := newConversion(n, p.Type)
	if err != nil {
		return nil, err
	}
	if conv.op == opNull {
		c.constant = nullVector(p.Type)
		return c, nil
	}
	c.kind = leafColumn
	l := b.leaves[n]
	if l != nil && l.want.Kind != vector.Null {
		// The same column wanted twice is read twice.
		l = nil
	}
	if l == nil {
		l = &leaf{node: n, minDef: repeatedDefs(n)}
		b.leaves[n] = l
		b.order = append(b.order, l)
	}
	l.want, l.dec.conv = p.Type, conv
	c.leaf = l
	return c, nil
}

func (b *builder) structColumn(c *column, p *Projection) (*column, error) {
	n := p.Node
	if n.IsLeaf() || n.MaxRep > c.rep {
		return nil, mismatch(n, p.Type)
	}
	c.kind = structColumn
	kids := p.Children
	if p.Type.Kind == vector.Variant && kids == nil {
		if n.Child("typed_value") != nil {
			parts, s, err := shredded(n, p.Parts)
			if err != nil {
				return nil, err
			}
			kid, err := b.column(parts, c.rep, c.present)
			if err != nil {
				return nil, err
			}
			c.kind, c.shred, c.file, c.kids = variantColumn, s, b.file, []*column{kid}
			return c, nil
		}
		for _, f := range p.Type.Fields {
			child := n.Child(f.Name)
			if child == nil {
				return nil, fault.New(fault.Corrupt, "column %s is a variant without %s", n.Path(), f.Name)
			}
			kids = append(kids, &Projection{Type: f.Type, Node: child})
		}
	}
	if len(kids) != len(p.Type.Fields) {
		return nil, fault.New(fault.Internal, "projection of %s has %d children, its type %d fields", n.Path(), len(kids), len(p.Type.Fields))
	}
	for _, k := range kids {
		if k.Node != nil && !below(k.Node, n) {
			return nil, fault.New(fault.Internal, "projection takes %s out of %s", k.Node.Path(), n.Path())
		}
		kid, err := b.column(k, c.rep, c.present)
		if err != nil {
			return nil, err
		}
		c.kids = append(c.kids, kid)
	}
	if n.MaxDef > c.present || c.needsCount() {
		if c.leaf = b.levelsOf(n); c.leaf == nil {
			return nil, fault.New(fault.Corrupt, "group %s has no columns", n.Path())
		}
	}
	return c, nil
}

// needsCount reports that no child tells how many slots there are.
func (c *column) needsCount() bool {
	if c.rep == 0 {
		return false
	}
	for _, k := range c.kids {
		if k.kind != constantColumn {
			return false
		}
	}
	return true
}

func (b *builder) listColumn(c *column, p *Projection) (*column, error) {
	n := p.Node
	if len(p.Children) != 1 {
		return nil, fault.New(fault.Internal, "projection of %s has %d children, an array has one", n.Path(), len(p.Children))
	}
	c.kind = listColumn
	var repeated *Node
	switch {
	case n.Repetition == Repeated && n.MaxRep == c.rep+1:
		// A repeated field by itself: never null but with its parent.
		repeated = n
		c.def = n.MaxDef - 1
	case n.MaxRep == c.rep && n.listChild() != nil && (n.Logical.Kind == List || n.Logical.Kind == Map || n.Logical.Kind == MapKeyValue):
		repeated = n.listChild()
	case n.MaxRep == c.rep && n.listChild() != nil && n.Logical.Kind == None:
		repeated = n.listChild()
	default:
		return nil, mismatch(n, p.Type)
	}
	c.elementDef = repeated.MaxDef
	if e := p.Children[0]; e.Node != nil && !below(e.Node, repeated) {
		return nil, fault.New(fault.Internal, "projection takes %s out of %s", e.Node.Path(), n.Path())
	}
	return c, b.elements(c, repeated, p.Children)
}

func (b *builder) mapColumn(c *column, p *Projection) (*column, error) {
	n := p.Node
	if len(p.Children) != 2 {
		return nil, fault.New(fault.Internal, "projection of %s has %d children, a map has two", n.Path(), len(p.Children))
	}
	if n.MaxRep != c.rep || n.listChild() == nil || n.listChild().IsLeaf() {
		return nil, mismatch(n, p.Type)
	}
	c.kind = mapColumn
	c.elementDef = n.listChild().MaxDef
	return c, b.elements(c, n.listChild(), p.Children)
}

// elements plans what stands in a list or map.
func (b *builder) elements(c *column, repeated *Node, kids []*Projection) error {
	before := len(b.order)
	for _, k := range kids {
		kid, err := b.column(k, repeated.MaxRep, repeated.MaxDef)
		if err != nil {
			return err
		}
		c.kids = append(c.kids, kid)
	}
	if c.leaf = b.levelsOf(repeated); c.leaf == nil {
		return fault.New(fault.Corrupt, "group %s has no columns", repeated.Path())
	}
	for _, l := range b.order[before:] {
		if l != c.leaf {
			l.structure = true
			c.others = append(c.others, l)
		}
	}
	return nil
}

// read makes the vector for rows [first, first+n) of the row group out of leaves that have read them.
func (c *column) read(ctx context.Context, first int64, n int) (*vector.Vector, error) {
	if err := c.readLeaves(ctx, first, n); err != nil {
		return nil, err
	}
	v, _, err := c.assemble(n)
	return v, err
}

// readLeaves reads every leaf below c once.
func (c *column) readLeaves(ctx context.Context, first int64, n int) error {
	for _, k := range c.kids {
		if err := k.readLeaves(ctx, first, n); err != nil {
			return err
		}
	}
	if c.leaf == nil || c.leaf.readAt == first+1 {
		return nil
	}
	c.leaf.readAt = first + 1
	_, err := c.leaf.read(ctx, first, n)
	return err
}
