package scanner

import (
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/scanner/prune"
	"github.com/skua-db/skua/vector"
)

// variantColumnIDs are below all field ids: no manifest and no partition knows a variant's fields by these.
const variantColumnIDs = -1000

// variantLeaf makes a column of the filter of the fields of a variant, as cast to a type.
func (sc *scan) variantLeaf(position int, names []string, to vector.Type) (prune.Column, bool) {
	if position >= len(sc.wants) || sc.metas[position] != 0 || sc.wants[position].typ.Kind != vector.Variant || len(names) == 0 {
		return prune.Column{}, false
	}
	sc.variantColumns++
	return prune.Column{ID: variantColumnIDs - sc.variantColumns, Type: to, Position: position}, true
}

// shreddedLeaf finds the typed_value at the names of a shredded variant, and the values on the way to it. What the statistics of
// typed_value say bounds the rows only where all those are null (VariantShredding.md, "Statistics").
func shreddedLeaf(n *fileNode, names []string, to vector.Type) leafOf {
	var l leafOf
	if n.pq == nil {
		return l
	}
	for i := range len(names) + 1 {
		if n.kind != vector.Row {
			return leafOf{}
		}
		if v := n.named1("value"); v != nil {
			if !v.onceARow() {
				return leafOf{}
			}
			l.values = append(l.values, v)
		}
		if n = n.named1("typed_value"); n == nil {
			return leafOf{}
		}
		if i == len(names) {
			break
		}
		if n.kind != vector.Row {
			return leafOf{}
		}
		if n = n.named1(names[i]); n == nil {
			return leafOf{}
		}
	}
	if !n.onceARow() || !castKeepsOrder(n.pq, to) {
		return leafOf{}
	}
	l.typed = n
	return l
}

// named1 gives the one kid of a name; nil when there is none or several.
func (f *fileNode) named1(name string) *fileNode {
	var out *fileNode
	for _, k := range f.kids {
		if k.name == name {
			if out != nil {
				return nil
			}
			out = k
		}
	}
	return out
}

// castKeepsOrder reports whether every value of a typed_value can be cast to a type, and so that bounds stay bounds.
func castKeepsOrder(n *parquet.Node, to vector.Type) bool {
	have, ok := parquet.ShreddedType(n)
	switch {
	case !ok:
		return false
	case have.Kind == vector.Integer:
		return to.Kind == vector.Integer || to.Kind == vector.BigInt
	case have.Kind == vector.Decimal:
		return to.Kind == vector.Decimal && to.Scale == have.Scale && to.Precision >= have.Precision
	}
	return have.Equal(to)
}

// enter points the leaves of variants at their typed_value where the statistics of row group g say that nothing stands beside it.
func (src *groupSource) enter(ft grouped, g int) {
	for i := range src.leaves {
		l := &src.leaves[i]
		if l.typed == nil {
			continue
		}
		l.node = l.typed
		for _, v := range l.values {
			if !ft.statistics(g, v, vector.Of(vector.Varbinary)).AllNull() {
				l.node = nil
			}
		}
	}
}
