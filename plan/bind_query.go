package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// bound is a bound query: its plan and its output columns, whose ids may repeat.
type bound struct {
	rel  rel
	cols []outCol
}

type outCol struct {
	name string
	id   int
}

func (s *bound) ids() []int {
	ids := make([]int, len(s.cols))
	for i, c := range s.cols {
		ids[i] = c.id
	}
	return ids
}

// cte is a common table expression. Its plan is bound once; each use has columns of its own. bound is nil while it is being bound
// itself.
type cte struct {
	name  string
	bound *bound
	uses  []*spoolRel
	sp    *spool
}

// query binds a query. outer is what correlated names see.
func (b *binder) query(q *sql.Query, outer *scope) (*bound, error) {
	if err := b.ctx.Err(); err != nil {
		return nil, fault.Wrap(fault.Canceled, err, "planning")
	}
	if q.With != nil {
		s, err := b.with(q.With, outer)
		if err != nil {
			return nil, err
		}
		outer = s
	}
	if s, ok := q.Body.(*sql.Select); ok {
		return b.selectQuery(s, q, outer)
	}
	s, err := b.body(q.Body, outer)
	if err != nil {
		return nil, err
	}
	return b.order(s, q, nil)
}

func (b *binder) with(w *sql.With, outer *scope) (*scope, error) {
	s := &scope{parent: outer, ctes: map[string]*cte{}}
	for i := range w.Tables {
		t := &w.Tables[i]
		key := fold(t.Name.Name)
		if s.ctes[key] != nil {
			return nil, b.errorf(t.Name.Pos, fault.Invalid, "DUPLICATE_NAMED_QUERY", "WITH defines %q twice", t.Name.Name)
		}
		// A table of WITH sees those before it: the scope grows as they are bound.
		seen := &scope{parent: outer, ctes: map[string]*cte{}}
		for k, v := range s.ctes {
			seen.ctes[k] = v
		}
		if w.Recursive {
			seen.ctes[key] = &cte{name: t.Name.Name} // of no use, but it hides tables of that name
		}
		var q *bound
		var err error
		if w.Recursive && refersTo(t.Query, key) {
			q, err = b.recursive(t, key, seen)
		} else if q, err = b.query(t.Query, seen); err == nil {
			q, err = b.rename(q, t.Columns, t.Name)
		}
		if err != nil {
			return nil, err
		}
		c := &cte{name: t.Name.Name, bound: q}
		s.ctes[key] = c
		b.ctes = append(b.ctes, c)
	}
	return s, nil
}

// refersTo reports whether a query names the table in its FROM clauses.
func refersTo(q *sql.Query, name string) bool {
	var inBody func(sql.Body) bool
	var inTable func(sql.TableRef) bool
	inTable = func(t sql.TableRef) bool {
		switch t := t.(type) {
		case *sql.TableName:
			return len(t.Parts) == 1 && fold(t.Parts[0].Name) == name
		case *sql.Derived:
			return refersTo(t.Query, name)
		case *sql.Join:
			return inTable(t.L) || inTable(t.R)
		}
		return false
	}
	inBody = func(b sql.Body) bool {
		switch b := b.(type) {
		case *sql.Query:
			return refersTo(b, name)
		case *sql.SetOp:
			return inBody(b.L) || inBody(b.R)
		case *sql.Select:
			return b.From != nil && inTable(b.From)
		case *sql.Table:
			return inTable(b.Name)
		}
		return false
	}
	return inBody(q.Body)
}

// rename gives the columns of a query the names of an alias list.
func (b *binder) rename(s *bound, names []sql.Ident, what sql.Ident) (*bound, error) {
	if names == nil {
		return s, nil
	}
	if len(names) != len(s.cols) {
		return nil, b.errorf(what.Pos, fault.Invalid, "MISMATCHED_COLUMN_ALIASES", "%q has %d column aliases for %d columns", what.Name, len(names), len(s.cols))
	}
	out := &bound{rel: s.rel}
	for i, c := range s.cols {
		out.cols = append(out.cols, outCol{names[i].Name, c.id})
	}
	return out, nil
}

func (b *binder) body(body sql.Body, outer *scope) (*bound, error) {
	switch n := body.(type) {
	case *sql.Query:
		return b.query(n, outer)
	case *sql.Select:
		return b.selectQuery(n, &sql.Query{Pos: n.Pos, Body: n}, outer)
	case *sql.Values:
		return b.values(n, outer)
	case *sql.Table:
		star := &sql.Select{Pos: n.Name.Parts[0].Pos, Items: []sql.SelectItem{{Expr: &sql.Star{Pos: n.Name.Parts[0].Pos}}}, From: n.Name}
		return b.selectQuery(star, &sql.Query{Pos: star.Pos, Body: star}, outer)
	case *sql.SetOp:
		return b.setOp(n, outer)
	}
	return nil, fault.New(fault.Internal, "query body %T is not bound", body)
}

// values binds rows of expressions; the types of a column are unified.
func (b *binder) values(v *sql.Values, outer *scope) (*bound, error) {
	x := &exprBinder{b: b, scope: outer, where: "VALUES"}
	var rows [][]expr.Expr
	for i, r := range v.Rows {
		es := []sql.Expr{r}
		if row, ok := r.(*sql.Row); ok {
			es = row.Elems
		}
		row, err := x.all(es)
		if err != nil {
			return nil, err
		}
		if i > 0 && len(row) != len(rows[0]) {
			return nil, b.errorf(r.At(), fault.Invalid, "TYPE_MISMATCH", "row %d of VALUES has %d columns and the first has %d", i+1, len(row), len(rows[0]))
		}
		rows = append(rows, row)
	}
	out := &bound{}
	vals := &valuesRel{rows: rows}
	for c := range rows[0] {
		t := vector.Of(vector.Null)
		null := false
		for i, row := range rows {
			u, ok := unify(t, row[c])
			if !ok {
				return nil, b.errorf(v.Rows[i].At(), fault.Invalid, "TYPE_MISMATCH", "column %d of VALUES mixes %s and %s", c+1, t, row[c].Type())
			}
			t = u
			null = null || row[c].Nullable()
		}
		for i := range rows {
			e, err := expr.Coerce(rows[i][c], t)
			if err != nil {
				return nil, b.place(v.Rows[i].At(), err)
			}
			rows[i][c] = e
		}
		name := "_col" + strconv.Itoa(c)
		id := b.cols.add(name, t, null)
		vals.cols = append(vals.cols, id)
		out.cols = append(out.cols, outCol{name, id})
	}
	out.rel = vals
	if f := free(vals); len(f) > 0 {
		// VALUES that use outer columns are projections over a single row each.
		u := &unionRel{cols: vals.cols}
		for _, row := range vals.rows {
			p := &projectRel{in: oneRow(), list: row}
			for c := range row {
				x := b.cols.list[vals.cols[c]]
				p.cols = append(p.cols, b.cols.add(x.Name, x.Type, x.Nullable))
			}
			u.ins, u.maps = append(u.ins, p), append(u.maps, p.cols)
		}
		out.rel = u
		if len(u.ins) == 1 {
			out.rel = u.ins[0]
			for c := range out.cols {
				out.cols[c].id = u.maps[0][c]
			}
		}
	}
	return out, nil
}

// unify widens t to hold e too.
func unify(t vector.Type, e expr.Expr) (vector.Type, bool) {
	return expr.CommonType(t, e.Type())
}

// oneRow is a plan of one row without columns.
func oneRow() *valuesRel { return &valuesRel{rows: [][]expr.Expr{{}}} }

func (b *binder) setOp(n *sql.SetOp, outer *scope) (*bound, error) {
	// UNION ALL chains lean left: take them apart in a loop, so that they become one wide union.
	var sides []sql.Body
	var walk func(sql.Body)
	walk = func(x sql.Body) {
		if s, ok := x.(*sql.SetOp); ok && s.Op == "UNION" && s.All {
			walk(s.L)
			walk(s.R)
			return
		}
		sides = append(sides, x)
	}
	if n.Op == "UNION" && n.All {
		walk(n)
	} else {
		sides = []sql.Body{n.L, n.R}
	}
	var ins []*bound
	for _, s := range sides {
		q, err := b.body(s, outer)
		if err != nil {
			return nil, err
		}
		if len(ins) > 0 && len(q.cols) != len(ins[0].cols) {
			return nil, b.errorf(n.Pos, fault.Invalid, "TYPE_MISMATCH", "%s has %d columns on one side and %d on the other", n.Op, len(ins[0].cols), len(q.cols))
		}
		ins = append(ins, q)
	}
	types := make([]vector.Type, len(ins[0].cols))
	nulls := make([]bool, len(types))
	for i, c := range ins[0].cols {
		types[i] = b.cols.list[c.id].Type
		nulls[i] = b.cols.list[c.id].Nullable
		for _, q := range ins[1:] {
			o := b.cols.list[q.cols[i].id]
			t, ok := expr.CommonType(types[i], o.Type)
			if !ok {
				return nil, b.errorf(n.Pos, fault.Invalid, "TYPE_MISMATCH", "column %d of %s is %s on one side and %s on the other", i+1, n.Op, types[i], o.Type)
			}
			types[i] = t
			nulls[i] = nulls[i] || o.Nullable
		}
	}
	out := &bound{}
	var ids []int
	for i, c := range ins[0].cols {
		id := b.cols.add(c.name, types[i], nulls[i])
		ids = append(ids, id)
		out.cols = append(out.cols, outCol{c.name, id})
	}
	for _, q := range ins {
		if err := b.coerceTo(q, types); err != nil {
			return nil, b.place(n.Pos, err)
		}
	}
	switch n.Op {
	case "UNION":
		u := &unionRel{cols: ids}
		for _, q := range ins {
			u.ins = append(u.ins, q.rel)
			u.maps = append(u.maps, q.ids())
		}
		out.rel = u
		if !n.All {
			b.distinct(out)
		}
	default:
		out.rel = &setRel{except: n.Op == "EXCEPT", all: n.All, l: ins[0].rel, r: ins[1].rel, lcols: ins[0].ids(), rcols: ins[1].ids(), cols: ids}
	}
	return out, nil
}

// coerceTo casts the columns of a query to types. All columns get to be distinct ones.
func (b *binder) coerceTo(q *bound, types []vector.Type) error {
	p := &projectRel{in: q.rel}
	change := false
	seen := idSet{}
	for i, c := range q.cols {
		ref := b.cols.ref(c.id)
		if ref.Typ.Equal(types[i]) && !seen[c.id] {
			seen[c.id] = true
			p.list, p.cols = append(p.list, ref), append(p.cols, c.id)
			continue
		}
		change = true
		e, err := expr.Coerce(ref, types[i])
		if err != nil {
			return err
		}
		id := b.cols.add(c.name, types[i], ref.Null)
		p.list, p.cols = append(p.list, e), append(p.cols, id)
		q.cols[i].id = id
	}
	if change {
		q.rel = p
	}
	return nil
}

// distinct removes duplicate rows.
func (b *binder) distinct(s *bound) {
	a := &aggRel{in: s.rel}
	seen := idSet{}
	for _, c := range s.cols {
		if !seen[c.id] {
			seen[c.id] = true
			a.keys, a.keyCols = append(a.keys, b.cols.ref(c.id)), append(a.keyCols, c.id)
		}
	}
	s.rel = a
}

// order adds ORDER BY, OFFSET and LIMIT. hidden binds order keys that are not output columns; nil where only outputs may be named.
func (b *binder) order(s *bound, q *sql.Query, hidden func(sql.Expr) (expr.Expr, error)) (*bound, error) {
	items := q.OrderBy
	var keys []expr.SortKey
	if q.OrderAll != nil {
		seen := idSet{}
		for _, c := range s.cols {
			if seen[c.id] {
				continue
			}
			seen[c.id] = true
			ref := b.cols.ref(c.id)
			if err := b.orderable(q.Pos, ref); err != nil {
				return nil, err
			}
			keys = append(keys, expr.SortKey{Expr: ref, Desc: q.OrderAll.Desc, NullsFirst: q.OrderAll.Nulls == "FIRST"})
		}
	}
	outputs := b.outputs(s)
	for _, it := range items {
		var e expr.Expr
		var err error
		if n, ok := it.Expr.(*sql.Number); ok && n.Kind == sql.Int {
			c, err := b.ordinal(n, s)
			if err != nil {
				return nil, err
			}
			e = b.cols.ref(c.id)
		} else if hidden != nil {
			e, err = hidden(it.Expr)
		} else {
			sc := &scope{}
			for _, c := range s.cols {
				sc.cols = append(sc.cols, scopeCol{name: c.name, id: c.id})
			}
			rel := s.rel
			x := &exprBinder{b: b, scope: sc, where: "ORDER BY", outputs: outputs, rel: &rel}
			e, err = x.bind(it.Expr)
			s.rel = rel
		}
		if err != nil {
			return nil, err
		}
		if err := b.orderable(it.Expr.At(), e); err != nil {
			return nil, err
		}
		if _, ok := e.(*expr.Literal); ok {
			continue
		}
		keys = append(keys, expr.SortKey{Expr: e, Desc: it.Desc, NullsFirst: it.Nulls == "FIRST"})
	}
	if len(keys) > 0 {
		s.rel = &sortRel{in: s.rel, keys: keys, limit: -1}
	}
	if q.WithTies && len(keys) == 0 {
		return nil, b.errorf(q.Limit.At(), fault.Invalid, "MISSING_ORDER_BY", "FETCH FIRST WITH TIES needs an ORDER BY")
	}
	if q.Limit == nil && q.Offset == nil {
		return s, nil
	}
	l := &limitRel{count: -1}
	var err error
	if q.Limit != nil {
		if l.count, l.countExpr, err = b.rowCount(q.Limit); err != nil {
			return nil, err
		}
	}
	if q.Offset != nil {
		if l.offset, l.offsetExpr, err = b.rowCount(q.Offset); err != nil {
			return nil, err
		}
		l.offset = max(l.offset, 0)
	}
	if q.WithTies {
		if l.countExpr != nil || l.offsetExpr != nil {
			return nil, b.unsupported(q.Limit.At(), "a parameter as row count does not go with WITH TIES")
		}
		s.rel.(*sortRel).limit, s.rel.(*sortRel).offset, s.rel.(*sortRel).ties = l.count, l.offset, true
		return s, nil
	}
	l.in = s.rel
	s.rel = l
	return s, nil
}

// rowCount reads the operand of LIMIT or OFFSET; a parameter comes as an expression, and count is -1 then.
func (b *binder) rowCount(e sql.Expr) (int64, expr.Expr, error) {
	if n, ok := e.(*sql.Number); ok {
		v, err := strconv.ParseInt(strings.ReplaceAll(n.Text, "_", ""), 0, 64)
		if err != nil {
			return 0, nil, b.errorf(n.Pos, fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", "%s is out of range for a number of rows", n.Text)
		}
		return v, nil, nil
	}
	p := e.(*sql.Param)
	return -1, &expr.Param{Index: p.Index, Typ: vector.Of(vector.BigInt)}, nil
}

func (b *binder) ordinal(n *sql.Number, s *bound) (outCol, error) {
	i, err := strconv.Atoi(n.Text)
	if err != nil || i < 1 || i > len(s.cols) {
		return outCol{}, b.errorf(n.Pos, fault.Invalid, "INVALID_COLUMN_REFERENCE", "position %s is not between 1 and %d, the number of output columns", n.Text, len(s.cols))
	}
	return s.cols[i-1], nil
}

// outputs maps the names of output columns to them.
func (b *binder) outputs(s *bound) map[string]outputCol {
	m := map[string]outputCol{}
	for _, c := range s.cols {
		key := fold(c.name)
		if old, ok := m[key]; ok {
			if r, isCol := old.e.(*expr.Column); !isCol || r.Index != c.id {
				old.ambiguous = true
				m[key] = old
			}
			continue
		}
		m[key] = outputCol{e: b.cols.ref(c.id)}
	}
	return m
}

// inlineCTEs replaces uses of common table expressions: one use takes the plan itself, cheap or correlated ones are copied, the others
// share a spool.
func (b *binder) inlineCTEs(r rel) rel {
	replace := map[*spoolRel]rel{}
	for i := len(b.ctes) - 1; i >= 0; i-- {
		c := b.ctes[i]
		if len(c.uses) == 0 {
			continue
		}
		if len(c.uses) > 1 && !cheap(c.bound.rel) && len(free(c.bound.rel)) == 0 {
			continue
		}
		for n, u := range c.uses {
			in, m := c.bound.rel, map[int]int(nil)
			if n > 0 {
				in, m = b.cols.clone(in)
			}
			p := &projectRel{in: in, cols: u.cols}
			for _, id := range u.src {
				if k, ok := m[id]; ok {
					id = k
				}
				p.list = append(p.list, b.cols.ref(id))
			}
			replace[u] = p
		}
	}
	var put func(rel) rel
	put = func(r rel) rel {
		return mapRel(r, func(x rel) rel {
			s, ok := x.(*spoolRel)
			if !ok {
				return x
			}
			if p, ok := replace[s]; ok {
				return mapRel(p, func(y rel) rel {
					if y == rel(s) {
						return y
					}
					if _, ok := y.(*spoolRel); ok {
						return put(y)
					}
					return y
				})
			}
			return x
		})
	}
	for i := range b.scalars {
		b.scalars[i].rel = put(b.scalars[i].rel)
	}
	for _, c := range b.ctes {
		if c.sp != nil {
			c.sp.in = put(c.sp.in)
		}
	}
	return put(r)
}

// cheap reports whether computing a plan twice costs less than keeping its rows: scans, filters and projections.
func cheap(r rel) bool {
	switch r.(type) {
	case *scanRel, *valuesRel, *filterRel, *projectRel, *spoolRel:
	default:
		return false
	}
	return !slices.ContainsFunc(r.kids(), func(k rel) bool { return !cheap(k) })
}
