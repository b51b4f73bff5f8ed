package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// DefaultRecursion is how many times the step of a recursive query is applied where the session option max_recursion_depth says
// nothing; a query that has rows left after that fails. Each application is a part of the plan, so MaxRecursion bounds the option.
const (
	DefaultRecursion = 10
	MaxRecursion     = 1000
)

// recursive binds a table of WITH RECURSIVE that refers to itself: a base, UNION [ALL], and a step that names the table once in its
// FROM. The step is bound once for every application, each over the rows of the one before, as Trino plans it; the last must give
// no rows.
func (b *binder) recursive(t *sql.CTE, key string, seen *scope) (*bound, error) {
	refuse := func(at sql.Pos, id, format string, args ...any) (*bound, error) {
		return nil, b.errorf(at, fault.Invalid, id, format, args...)
	}
	q, at := t.Query, t.Name.Pos
	if t.Columns == nil {
		return refuse(at, "MISSING_COLUMN_ALIASES", "the recursive query %q needs names for its columns: %s (a, b) AS ...", t.Name.Name, t.Name.Name)
	}
	switch {
	case q.With != nil:
		return nil, b.unsupported(at, "WITH directly inside a recursive query is not supported")
	case q.OrderBy != nil || q.OrderAll != nil:
		return nil, b.unsupported(at, "ORDER BY directly inside a recursive query is not supported")
	case q.Limit != nil || q.Offset != nil:
		return refuse(at, "INVALID_LIMIT_CLAUSE", "LIMIT and OFFSET cannot stand directly inside a recursive query")
	}
	n, ok := q.Body.(*sql.SetOp)
	if !ok || n.Op != "UNION" {
		return refuse(at, "INVALID_RECURSIVE_REFERENCE", "the recursive query %q must be a UNION of a base and a step", t.Name.Name)
	}
	part := func(x sql.Body) *sql.Query { return &sql.Query{Pos: n.Pos, Body: x} }
	if refersTo(part(n.L), key) {
		return refuse(n.Pos, "INVALID_RECURSIVE_REFERENCE", "the base of the recursive query %q, before UNION, cannot refer to it", t.Name.Name)
	}
	if onPaddedSide(n.R, key) {
		return refuse(n.Pos, "INVALID_RECURSIVE_REFERENCE", "%q cannot be on a side of an outer join that is filled up with nulls", t.Name.Name)
	}
	base, err := b.query(part(n.L), seen)
	if err != nil {
		return nil, err
	}
	if base, err = b.rename(base, t.Columns, t.Name); err != nil {
		return nil, err
	}
	types := make([]vector.Type, len(base.cols))
	for i, c := range base.cols {
		types[i] = b.cols.list[c.id].Type
		if types[i].Kind == vector.Varchar {
			types[i] = vector.Of(vector.Varchar) // a step may make texts longer
		}
	}
	u := &unionRel{}
	out := &bound{rel: u}
	nulls := make([]bool, len(types))
	add := func(r rel, ids []int) {
		u.ins, u.maps = append(u.ins, r), append(u.maps, ids)
		for i, id := range ids {
			nulls[i] = nulls[i] || b.cols.list[id].Nullable
		}
	}
	if err := b.coerceTo(base, types); err != nil {
		return nil, b.place(at, err)
	}
	most := b.env.recursion()
	rows := base
	for depth := 0; ; depth++ {
		c := &cte{name: t.Name.Name, bound: rows}
		b.ctes = append(b.ctes, c)
		r, sc, err := b.useCTE(c, &sql.TableName{Parts: []sql.Ident{t.Name}})
		if err != nil {
			return nil, err
		}
		ids := make([]int, len(sc.cols))
		for i, col := range sc.cols {
			ids[i] = col.id
		}
		add(r, ids)
		before := &scope{parent: seen, ctes: map[string]*cte{key: c}}
		used := len(c.uses)
		if rows, err = b.body(n.R, before); err != nil {
			return nil, err
		}
		if len(c.uses) > used+1 {
			return refuse(n.Pos, "INVALID_RECURSIVE_REFERENCE", "the step of the recursive query %q refers to it more than once", t.Name.Name)
		}
		if err := b.stepTypes(rows, types, n.Pos); err != nil {
			return nil, err
		}
		if rows, err = b.rename(rows, t.Columns, t.Name); err != nil {
			return nil, err
		}
		if depth == most {
			break
		}
	}
	over, err := expr.NewCall("recursion_limit", []expr.Expr{&expr.Literal{Value: int64(most), Typ: vector.Of(vector.BigInt)}})
	if err != nil {
		return nil, err
	}
	// The limit keeps filters of the query around from going below the check: what they leave out could still have led to rows.
	add(&limitRel{in: &filterRel{in: rows.rel, conds: []expr.Expr{over}}, count: 1}, rows.ids())
	for i, c := range base.cols {
		id := b.cols.add(c.name, types[i], nulls[i])
		u.cols = append(u.cols, id)
		out.cols = append(out.cols, outCol{c.name, id})
	}
	if !n.All {
		b.distinct(out)
	}
	return out, nil
}

// stepTypes converts the columns of a step to those of the base.
func (b *binder) stepTypes(step *bound, types []vector.Type, at sql.Pos) error {
	if len(step.cols) != len(types) {
		return b.errorf(at, fault.Invalid, "TYPE_MISMATCH", "the base of the recursive query has %d columns and its step %d", len(types), len(step.cols))
	}
	for i, c := range step.cols {
		have := b.cols.list[c.id].Type
		if t, ok := expr.CommonType(types[i], have); !ok || !t.Equal(types[i]) {
			return b.errorf(at, fault.Invalid, "TYPE_MISMATCH", "column %d of the step of the recursive query is %s and does not fit the base's %s; CAST one of them", i+1, have, types[i])
		}
	}
	step.cols = slices.Clone(step.cols)
	return b.place(at, b.coerceTo(step, types))
}

// onPaddedSide reports whether a body names the table on a side of an outer join whose rows may be all nulls.
func onPaddedSide(body sql.Body, key string) bool {
	var inTable func(t sql.TableRef) bool
	within := func(t sql.TableRef) bool {
		return refersTo(&sql.Query{Body: &sql.Select{From: t}}, key)
	}
	inTable = func(t sql.TableRef) bool {
		switch t := t.(type) {
		case *sql.Join:
			switch t.Kind {
			case "LEFT":
				if within(t.R) {
					return true
				}
			case "RIGHT":
				if within(t.L) {
					return true
				}
			case "FULL":
				if within(t) {
					return true
				}
			}
			return inTable(t.L) || inTable(t.R)
		case *sql.Derived:
			return onPaddedSide(t.Query.Body, key)
		}
		return false
	}
	switch x := body.(type) {
	case *sql.Query:
		return onPaddedSide(x.Body, key)
	case *sql.SetOp:
		return onPaddedSide(x.L, key) || onPaddedSide(x.R, key)
	case *sql.Select:
		return x.From != nil && inTable(x.From)
	}
	return false
}
