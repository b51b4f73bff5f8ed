package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// subquery binds a query that may refer to the columns around it.
func (x *exprBinder) subquery(q *sql.Query, columns int) (*bound, error) {
	s, err := x.b.query(q, x.scope)
	if err != nil {
		return nil, err
	}
	if columns > 0 && len(s.cols) != columns {
		want := "one column"
		if columns > 1 {
			want = "as many columns as the row on its left"
		}
		return nil, x.b.errorf(q.Pos, fault.Invalid, "TYPE_MISMATCH", "the subquery must give %s; it gives %d", want, len(s.cols))
	}
	if x.group == nil {
		return s, nil
	}
	// The subquery saw the columns below the groups: it may use those that are keys.
	m := map[int]expr.Expr{}
	below := setOf((*x.group.input.rel).out())
	for _, id := range free(s.rel) {
		if !below[id] {
			continue
		}
		i := slices.IndexFunc(x.group.keys, func(k expr.Expr) bool {
			c, ok := k.(*expr.Column)
			return ok && c.Index == id
		})
		if i < 0 {
			return nil, x.b.errorf(x.b.places[id], fault.Invalid, "EXPRESSION_NOT_AGGREGATE", "column %q must be in GROUP BY to be used in the subquery", x.b.cols.list[id].Name)
		}
		if x.group.keyCols[i] != id {
			m[id] = x.b.cols.ref(x.group.keyCols[i])
		}
	}
	s.rel = substitute(s.rel, m)
	return s, nil
}

// attach joins a subquery to the plan of the place where the expression stands.
func (x *exprBinder) attach(at sql.Pos, a *applyRel) error {
	if x.rel == nil || len(x.lambda) > 0 {
		return x.b.unsupported(at, "a subquery of this form is not supported in %s", x.where)
	}
	a.l = *x.rel
	*x.rel = a
	return nil
}

func (x *exprBinder) addScalar(r rel, col int) *expr.Subquery {
	id := len(x.b.scalars)
	x.b.scalars = append(x.b.scalars, scalar{id, r, col})
	return &expr.Subquery{ID: id, Typ: x.b.cols.list[col].Type}
}

func (x *exprBinder) scalarQuery(e *sql.Subquery) (expr.Expr, error) {
	s, err := x.subquery(e.Query, 1)
	if err != nil {
		return nil, err
	}
	col := s.cols[0].id
	if len(free(s.rel)) == 0 {
		return x.addScalar(s.rel, col), nil
	}
	kind := Single
	if atMostOne(s.rel) {
		kind = Left
	}
	if err := x.attach(e.Pos, &applyRel{kind: kind, r: s.rel}); err != nil {
		return nil, err
	}
	c := x.b.cols.ref(col)
	c.Null = true
	return c, nil
}

// atMostOne reports whether a plan surely gives no more than one row.
func atMostOne(r rel) bool {
	switch r := r.(type) {
	case *aggRel:
		return len(r.keys) == 0 && r.sets == nil
	case *limitRel:
		return r.count == 0 || r.count == 1 || atMostOne(r.in)
	case *sortRel:
		return r.limit >= 0 && r.limit <= 1 && !r.ties || atMostOne(r.in)
	case *projectRel:
		return atMostOne(r.in)
	case *filterRel:
		return atMostOne(r.in)
	case *valuesRel:
		return len(r.rows) <= 1
	case *oneRowRel:
		return true
	}
	return false
}

var boolType = vector.Of(vector.Boolean)

func boolLiteral(v bool) expr.Expr { return &expr.Literal{Value: v, Typ: boolType} }

// mark tells for each row whether the subquery has one that meets conds; never null.
func (x *exprBinder) mark(at sql.Pos, r rel, conds []expr.Expr) (expr.Expr, error) {
	id := x.b.cols.add("mark", boolType, true)
	if err := x.attach(at, &applyRel{kind: Mark, r: r, conds: conds, mark: id}); err != nil {
		return nil, err
	}
	return expr.NewCall("coalesce", []expr.Expr{x.b.cols.ref(id), boolLiteral(false)})
}

func (x *exprBinder) exists(e *sql.Exists) (expr.Expr, error) {
	s, err := x.subquery(e.Query, 0)
	if err != nil {
		return nil, err
	}
	r := unordered(s.rel)
	if len(free(r)) > 0 {
		return x.mark(e.Pos, r, nil)
	}
	// Whether an uncorrelated query has rows is one value: count over its first row.
	count, err := expr.NewAggregate("count", nil, false, nil, nil)
	if err != nil {
		return nil, err
	}
	id := x.b.cols.add("count", count.Typ, false)
	sub := x.addScalar(&aggRel{in: &limitRel{in: r, count: 1}, aggs: []*expr.Aggregate{count}, aggCols: []int{id}}, id)
	return expr.NewCompare(expr.Gt, sub, &expr.Literal{Value: int64(0), Typ: vector.Of(vector.BigInt)})
}

// unordered drops what does not matter to whether a query has rows: order and projection.
func unordered(r rel) rel {
	for {
		switch n := r.(type) {
		case *sortRel:
			if n.limit >= 0 || n.offset > 0 {
				return r
			}
			r = n.in
		case *projectRel:
			r = n.in
		case *limitRel:
			if n.count < 1 || n.offset > 0 || n.countExpr != nil || n.offsetExpr != nil {
				return r
			}
			r = n.in
		default:
			return r
		}
	}
}

// operands gives the values on the left of IN or a quantified comparison: one, or those of a row.
func (x *exprBinder) operands(e sql.Expr) ([]expr.Expr, error) {
	es := []sql.Expr{e}
	if r, ok := e.(*sql.Row); ok {
		es = r.Elems
	}
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		v, err := x.lifted(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// compareRow compares the operands with the columns of a subquery. Row comparison other than = and <> is refused.
func (x *exprBinder) compareRow(at sql.Pos, op expr.CompareOp, ls []expr.Expr, s *bound) ([]expr.Expr, error) {
	if len(ls) > 1 && op != expr.Eq {
		return nil, x.b.unsupported(at, "rows can only be compared with = in a quantified comparison")
	}
	conds := make([]expr.Expr, len(ls))
	for i, l := range ls {
		c, err := expr.NewCompare(op, l, x.b.cols.ref(s.cols[i].id))
		if err != nil {
			return nil, x.b.place(at, err)
		}
		conds[i] = c
	}
	return conds, nil
}

func (x *exprBinder) inQuery(e *sql.In) (expr.Expr, error) {
	ls, err := x.operands(e.X)
	if err != nil {
		return nil, err
	}
	s, err := x.subquery(e.Query, len(ls))
	if err != nil {
		return nil, err
	}
	conds, err := x.compareRow(e.Pos, expr.Eq, ls, s)
	if err != nil {
		return nil, err
	}
	var m expr.Expr
	if len(conds) == 1 && len(free(s.rel)) == 0 {
		id := x.b.cols.add("mark", boolType, true)
		if err := x.attach(e.Pos, &applyRel{kind: Mark, r: s.rel, conds: conds, mark: id}); err != nil {
			return nil, err
		}
		m = x.b.cols.ref(id)
	} else if m, err = x.anyOf(e.Pos, s, conds, func() (*bound, []expr.Expr, error) {
		s, err := x.subquery(e.Query, len(ls))
		if err != nil {
			return nil, nil, err
		}
		conds, err := x.compareRow(e.Pos, expr.Eq, ls, s)
		return s, conds, err
	}); err != nil {
		return nil, err
	}
	if e.Not {
		return expr.NewNot(m)
	}
	return m, nil
}

// anyOf is the three-valued "some row of s meets conds": true if one does, else null if one might. again binds the subquery once more.
func (x *exprBinder) anyOf(at sql.Pos, s *bound, conds []expr.Expr, again func() (*bound, []expr.Expr, error)) (expr.Expr, error) {
	yes, err := x.mark(at, s.rel, conds)
	if err != nil {
		return nil, err
	}
	c, err := expr.NewAnd(conds...)
	if err != nil || !c.Nullable() {
		return yes, err
	}
	s2, conds2, err := again()
	if err != nil {
		return nil, err
	}
	if c, err = expr.NewAnd(conds2...); err != nil {
		return nil, err
	}
	maybe, err := x.mark(at, s2.rel, []expr.Expr{&expr.IsNull{Arg: c}})
	if err != nil {
		return nil, err
	}
	unknown, err := expr.NewAnd(maybe, &expr.Literal{Typ: boolType})
	if err != nil {
		return nil, err
	}
	return expr.NewOr(yes, unknown)
}

func (x *exprBinder) quantified(e *sql.Quantified) (expr.Expr, error) {
	op := compareOps[e.Op]
	if op == expr.Eq && !e.All {
		return x.inQuery(&sql.In{Pos: e.Pos, X: e.X, Query: e.Query})
	}
	if op == expr.Ne && e.All {
		return x.inQuery(&sql.In{Pos: e.Pos, X: e.X, Query: e.Query, Not: true})
	}
	ls, err := x.operands(e.X)
	if err != nil {
		return nil, err
	}
	// ALL holds when there is no row for which the comparison is not true.
	build := func() (*bound, []expr.Expr, error) {
		s, err := x.subquery(e.Query, len(ls))
		if err != nil {
			return nil, nil, err
		}
		conds, err := x.compareRow(e.Pos, op, ls, s)
		if err != nil || !e.All {
			return s, conds, err
		}
		n, err := expr.NewNot(conds[0])
		return s, []expr.Expr{n}, err
	}
	s, conds, err := build()
	if err != nil {
		return nil, err
	}
	m, err := x.anyOf(e.Pos, s, conds, build)
	if err != nil || !e.All {
		return m, err
	}
	return expr.NewNot(m)
}

// filter adds a predicate to the plan of x: subqueries at the top of the conjunction become semi and anti joins, the rest a filter.
func (x *exprBinder) filter(e sql.Expr) error {
	// Predicates without subqueries come first: they narrow what the subqueries are joined to.
	var plain, nested []sql.Expr
	for _, c := range conjuncts(e) {
		if hasSubquery(c) {
			nested = append(nested, c)
		} else {
			plain = append(plain, c)
		}
	}
	if err := x.filterEach(plain); err != nil {
		return err
	}
	return x.filterEach(nested)
}

func hasSubquery(e sql.Expr) bool {
	found := false
	sql.Walk(e, func(x sql.Expr) bool {
		switch x := x.(type) {
		case *sql.Exists, *sql.Quantified, *sql.Subquery:
			found = true
		case *sql.In:
			found = found || x.Query != nil
		}
		return !found
	})
	return found
}

func (x *exprBinder) filterEach(es []sql.Expr) error {
	var conds []expr.Expr
	for _, c := range es {
		done, err := x.semi(c)
		if err != nil {
			return err
		}
		if done {
			continue
		}
		v, err := x.condition(c)
		if err != nil {
			return err
		}
		if v, err = x.grouped(v); err != nil {
			return err
		}
		conds = append(conds, expr.Conjuncts(v)...)
	}
	if len(conds) > 0 {
		*x.rel = &filterRel{*x.rel, conds}
	}
	return nil
}

func conjuncts(e sql.Expr) []sql.Expr {
	if l, ok := e.(*sql.Logic); ok && !l.Or {
		var out []sql.Expr
		for _, a := range l.Args {
			out = append(out, conjuncts(a)...)
		}
		return out
	}
	return []sql.Expr{e}
}

// semi turns [NOT] EXISTS, [NOT] IN, = ANY and <> ALL into a join; false when e is none of these.
func (x *exprBinder) semi(e sql.Expr) (bool, error) {
	not := false
	for {
		n, ok := e.(*sql.Not)
		if !ok {
			break
		}
		e, not = n.X, !not
	}
	var in *sql.In
	switch e := e.(type) {
	case *sql.Exists:
		s, err := x.subquery(e.Query, 0)
		if err != nil {
			return false, err
		}
		kind := Semi
		if not {
			kind = Anti
		}
		return true, x.attach(e.Pos, &applyRel{kind: kind, r: unordered(s.rel)})
	case *sql.In:
		if e.Query == nil {
			return false, nil
		}
		in = &sql.In{Pos: e.Pos, X: e.X, Query: e.Query, Not: e.Not != not}
	case *sql.Quantified:
		switch {
		case e.Op == "=" && !e.All:
			in = &sql.In{Pos: e.Pos, X: e.X, Query: e.Query, Not: not}
		case e.Op == "<>" && e.All:
			in = &sql.In{Pos: e.Pos, X: e.X, Query: e.Query, Not: !not}
		default:
			return false, nil
		}
	default:
		return false, nil
	}
	ls, err := x.operands(in.X)
	if err != nil {
		return false, err
	}
	s, err := x.subquery(in.Query, len(ls))
	if err != nil {
		return false, err
	}
	conds, err := x.compareRow(in.Pos, expr.Eq, ls, s)
	if err != nil {
		return false, err
	}
	a := &applyRel{kind: Semi, r: s.rel, conds: conds}
	if in.Not {
		all, err := expr.NewAnd(conds...)
		if err != nil {
			return false, err
		}
		switch {
		case !all.Nullable():
			a.kind = Anti
		case len(conds) == 1 && len(free(s.rel)) == 0:
			a.kind = NullAwareAnti
		default:
			a.kind = Anti
			c, err := expr.NewCall("coalesce", []expr.Expr{all, boolLiteral(true)})
			if err != nil {
				return false, err
			}
			a.conds = []expr.Expr{c}
		}
	}
	return true, x.attach(in.Pos, a)
}
