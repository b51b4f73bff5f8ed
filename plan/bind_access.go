package plan

import (
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// partialScan binds a table of which an access policy shows a part: its filter and masks see all columns, the statement sees what
// they leave. The columns that tell of files are not there.
func (b *binder) partialScan(at sql.Pos, tab *catalog.Table, snap catalog.Snapshot, sample *sql.Sample, alias *sql.Alias, qual []string) (rel, *scope, error) {
	whole := *tab
	whole.Access = nil
	in, sc, err := b.scan(at, &whole, snap, nil, nil, []string{tab.Name})
	if err != nil {
		return nil, nil, err
	}
	wrong := func(err error) error { // its position is one in the policy's text
		return b.place(at, outside(fault.Wrap(fault.Invalid, err, "access policy of table %s", tab.FullName())))
	}
	bind := func(text string, to vector.Type) (expr.Expr, error) {
		e, err := sql.ParseExpr(text)
		if err != nil {
			return nil, err
		}
		x := &exprBinder{b: b, scope: sc, where: "an access policy"}
		bound, err := x.bind(e)
		if err != nil {
			return nil, err
		}
		if bound.Type().Equal(to) {
			return bound, nil
		}
		return expr.NewCast(bound, to, false)
	}
	if f := tab.Access.Filter; f != "" {
		cond, err := bind(f, boolType)
		if err != nil {
			return nil, nil, wrong(err)
		}
		in = &filterRel{in, expr.Conjuncts(cond)}
	}
	p := &projectRel{in: in, guard: true}
	s := &bound{rel: p}
	for _, f := range tab.Fields(snap.Schema) {
		e, err := b.columnOf(sc, f.Name)
		if err != nil {
			return nil, nil, b.place(at, err)
		}
		nullable := !f.Required
		if mask, ok := tab.Access.Mask(f.Name); ok {
			if e, err = bind(mask, e.Type()); err != nil {
				return nil, nil, wrong(err)
			}
			nullable = true
		}
		id := b.cols.add(f.Name, e.Type(), nullable)
		p.list, p.cols = append(p.list, e), append(p.cols, id)
		s.cols = append(s.cols, outCol{f.Name, id})
	}
	out, err := b.sampleRows(p, sample)
	if err != nil {
		return nil, nil, err
	}
	outer, err := b.tableAlias(s, alias, qual)
	return out, outer, err
}

// columnOf is a column of a scope by its exact name.
func (b *binder) columnOf(sc *scope, name string) (expr.Expr, error) {
	x := &exprBinder{b: b, scope: sc, where: "an access policy"}
	return x.bind(&sql.Name{Parts: []sql.Ident{{Name: name, Quoted: true}}})
}

// neverFails reports whether a predicate ends without an error whatever the values are.
func neverFails(e expr.Expr) bool {
	fine := true
	expr.Walk(e, func(x expr.Expr) bool {
		switch x.(type) {
		case *expr.Column, *expr.Literal, *expr.Param, *expr.Compare, *expr.And, *expr.Or, *expr.Not, *expr.IsNull, *expr.In, *expr.Like, *expr.Coalesce:
		default:
			fine = false
		}
		return fine
	})
	return fine
}
