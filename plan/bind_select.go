package plan

import (
	"slices"
	"strconv"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// holeRel stands for the groups of a SELECT until all aggregates above it are known.
type holeRel struct{ valuesRel }

// selectQuery binds a SELECT with the order and limit of the query around it.
func (b *binder) selectQuery(s *sql.Select, q *sql.Query, outer *scope) (*bound, error) {
	in := rel(oneRow())
	sc := &scope{parent: outer}
	if s.From != nil {
		old := b.wanted
		b.wanted = equalities(s.Where)
		r, from, err := b.from(s.From, outer, nil)
		b.wanted = old
		if err != nil {
			return nil, err
		}
		in = r
		sc = &scope{parent: outer, cols: from.cols, scans: from.scans}
	}
	items, err := b.expandStars(s.Items, sc)
	if err != nil {
		return nil, err
	}
	input := &exprBinder{b: b, scope: sc, rel: &in, where: "WHERE"}
	if s.Where != nil {
		if err := input.filter(s.Where); err != nil {
			return nil, err
		}
	}
	aliases := map[string]sql.Expr{}
	for _, it := range items {
		if it.Alias.Name != "" && it.col == nil {
			if _, twice := aliases[fold(it.Alias.Name)]; twice {
				aliases[fold(it.Alias.Name)] = nil
			} else {
				aliases[fold(it.Alias.Name)] = it.Expr
			}
		}
	}
	x := &exprBinder{b: b, scope: sc, rel: &in, aliases: aliases, windows: &windows{named: s.Windows}}
	hole := &holeRel{}
	post := rel(hole)
	if b.isGrouped(s, q, items) {
		input.where, input.aliases = "GROUP BY", aliases
		g := &grouping{input: input}
		if err := b.groupKeys(g, s.GroupBy, items); err != nil {
			return nil, err
		}
		input.aliases = nil
		x.group, x.rel = g, &post
	}
	if s.Having != nil {
		h := *x
		h.where, h.windows = "HAVING", nil
		if err := h.filter(s.Having); err != nil {
			return nil, err
		}
	}
	// The select list.
	list := &projectRel{}
	out := &bound{}
	x.where = "SELECT"
	plain := *x
	plain.aliases = nil
	for i, it := range items {
		var e expr.Expr
		if it.col != nil {
			ref := b.cols.ref(it.col.id)
			ref.Null = ref.Null || it.col.null
			b.places[it.col.id] = it.at
			e, err = x.grouped(ref)
		} else if e, err = plain.lifted(it.Expr); err != nil {
			err = b.place(it.Expr.At(), err)
		}
		if err != nil {
			return nil, err
		}
		name := outputName(it, i)
		id := b.cols.add(name, e.Type(), e.Nullable())
		list.list, list.cols = append(list.list, e), append(list.cols, id)
		out.cols = append(out.cols, outCol{name, id})
	}
	// QUALIFY and ORDER BY may use window functions of their own.
	var qualify []expr.Expr
	if s.Qualify != nil {
		y := *x
		y.where = "QUALIFY"
		for _, c := range conjuncts(s.Qualify) {
			v, err := y.condition(c)
			if err != nil {
				return nil, err
			}
			if v, err = y.grouped(v); err != nil {
				return nil, err
			}
			qualify = append(qualify, expr.Conjuncts(v)...)
		}
	}
	byPlace := map[int]expr.Expr{}
	for i, id := range list.cols {
		byPlace[id] = list.list[i]
	}
	outputs := b.outputs(out)
	var extra []int
	hidden := func(e sql.Expr) (expr.Expr, error) {
		y := *x
		y.where = "ORDER BY"
		if _, ok := e.(*sql.Name); ok {
			y.outputs = outputs
		}
		y.aliases = aliases
		v, err := y.bind(e)
		if err != nil {
			// Output columns may also be named inside an expression.
			y.outputs = outputs
			if w, err2 := y.bind(e); err2 == nil {
				v, err = w, nil
			}
		}
		if err != nil {
			return nil, err
		}
		if c, ok := v.(*expr.Column); ok && byPlace[c.Index] != nil {
			return v, nil
		}
		// Output columns inside the expression are computed from what they stand for.
		v = replaceColumns(v, byPlace)
		if v, err = x.grouped(v); err != nil {
			return nil, err
		}
		for i, l := range list.list {
			if expr.Equal(l, v) && !expr.Volatile(v) {
				return b.cols.ref(list.cols[i]), nil
			}
		}
		if len(expr.Columns(v)) == 0 {
			return &expr.Literal{Typ: v.Type()}, nil
		}
		if s.Distinct {
			return nil, b.errorf(e.At(), fault.Invalid, "EXPRESSION_NOT_IN_DISTINCT", "with SELECT DISTINCT, ORDER BY can only name what is selected")
		}
		id := b.cols.add(sql.String(e), v.Type(), v.Nullable())
		list.list, list.cols = append(list.list, v), append(list.cols, id)
		extra = append(extra, id)
		return b.cols.ref(id), nil
	}
	// Bind the order against a stand-in, as the plan below is not whole yet.
	top := &projectTop{}
	ordered, err := b.order(&bound{rel: top, cols: out.cols}, q, hidden)
	if err != nil {
		return nil, err
	}
	// Now all aggregates and windows are known: put the plan together.
	if x.group != nil {
		g := x.group
		var agg rel = &aggRel{in: in, keys: g.keys, keyCols: g.keyCols, sets: g.sets, gid: g.gid, aggs: g.aggs, aggCols: g.aggCols}
		in = fill(post, hole, agg)
	}
	for _, w := range x.windows.specs {
		w.in = in
		in = w
	}
	if len(qualify) > 0 {
		in = &filterRel{in, qualify}
	}
	list.in = in
	res := &bound{rel: list, cols: out.cols}
	if s.Distinct {
		b.distinct(res)
	}
	ordered.rel = mapRel(ordered.rel, func(r rel) rel {
		if r == rel(top) {
			return res.rel
		}
		return r
	})
	if len(extra) > 0 {
		keep := &projectRel{in: ordered.rel}
		for _, c := range out.cols {
			keep.list, keep.cols = append(keep.list, b.cols.ref(c.id)), append(keep.cols, c.id)
		}
		ordered.rel = keep
	}
	return ordered, nil
}

// projectTop stands for the select list while the order is bound.
type projectTop struct{ valuesRel }

func (r *projectTop) with([]rel) rel { return r }
func (r *holeRel) with([]rel) rel    { return r }

func (r *projectTop) rewrite(func(int) int, func(expr.Expr) expr.Expr) rel { return r }
func (r *holeRel) rewrite(func(int) int, func(expr.Expr) expr.Expr) rel    { return r }

// fill puts the groups where the hole was.
func fill(r rel, hole *holeRel, agg rel) rel {
	return mapRel(r, func(x rel) rel {
		if x == rel(hole) {
			return agg
		}
		return x
	})
}

// item is a select item after * was expanded: an expression, or a column that * named.
type item struct {
	sql.SelectItem
	col *scopeCol
	at  sql.Pos
}

// outputName is the name of an output column: its alias, the column's or field's own, or _col with its position.
func outputName(it item, i int) string {
	if it.Alias.Name != "" {
		return it.Alias.Name
	}
	if it.col != nil {
		return it.col.name
	}
	switch n := it.Expr.(type) {
	case *sql.Name: // as the statement spells it, like Trino; only a star keeps the table's spelling
		return n.Parts[len(n.Parts)-1].Name
	case *sql.Field:
		return n.Name.Name
	}
	return "_col" + strconv.Itoa(i)
}

func (b *binder) expandStars(items []sql.SelectItem, sc *scope) ([]item, error) {
	var out []item
	for _, it := range items {
		star, ok := it.Expr.(*sql.Star)
		if !ok {
			out = append(out, item{SelectItem: it, at: it.Expr.At()})
			continue
		}
		excluded := map[string]bool{}
		replaced := map[string]*sql.SelectItem{}
		for _, e := range star.Exclude {
			excluded[fold(e.Name)] = false
		}
		for i := range star.Replace {
			replaced[fold(star.Replace[i].Alias.Name)] = &star.Replace[i]
		}
		var names []string
		n := 0
		for i := range sc.cols {
			c := sc.cols[i]
			if star.Qualifier == nil && c.hidden || star.Qualifier != nil && (c.merged || !qualifies(star.Qualifier, c.qual)) {
				continue
			}
			n++
			names = append(names, c.name)
			key := fold(c.name)
			if _, ok := excluded[key]; ok {
				excluded[key] = true
				continue
			}
			if r := replaced[key]; r != nil {
				out = append(out, item{SelectItem: sql.SelectItem{Expr: r.Expr, Alias: sql.Ident{Name: c.name}}, at: star.Pos})
				r.Alias.Pos = -1
				continue
			}
			out = append(out, item{col: &c, at: star.Pos})
		}
		if n == 0 {
			if star.Qualifier != nil {
				return nil, b.errorf(star.Pos, fault.NotFound, "TABLE_NOT_FOUND", "no table of FROM is named %q", dotted(star.Qualifier))
			}
			return nil, b.errorf(star.Pos, fault.Invalid, "COLUMN_NOT_FOUND", "SELECT * needs a FROM with columns")
		}
		for _, e := range star.Exclude {
			if !excluded[fold(e.Name)] {
				hint := ""
				if m := sql.Nearest(e.Name, names); m != "" {
					hint = "; did you mean " + m + "?"
				}
				return nil, b.errorf(e.Pos, fault.NotFound, "COLUMN_NOT_FOUND", "column %q of EXCLUDE does not exist%s", e.Name, hint)
			}
		}
		for _, r := range star.Replace {
			if !slices.ContainsFunc(names, func(n string) bool { return fold(n) == fold(r.Alias.Name) }) {
				return nil, b.errorf(r.Expr.At(), fault.NotFound, "COLUMN_NOT_FOUND", "column %q of REPLACE does not exist", r.Alias.Name)
			}
		}
	}
	return out, nil
}

// isGrouped reports whether a SELECT has groups: by GROUP BY, HAVING or an aggregate anywhere above the rows.
func (b *binder) isGrouped(s *sql.Select, q *sql.Query, items []item) bool {
	if s.GroupBy != nil || s.Having != nil {
		return true
	}
	for _, it := range items {
		if it.Expr != nil && hasAggregate(it.Expr) {
			return true
		}
	}
	for _, o := range q.OrderBy {
		if hasAggregate(o.Expr) {
			return true
		}
	}
	return s.Qualify != nil && hasAggregate(s.Qualify)
}

func hasAggregate(e sql.Expr) bool {
	found := false
	sql.Walk(e, func(x sql.Expr) bool {
		if c, ok := x.(*sql.Call); ok && c.Over == nil && len(c.Name) == 1 && expr.IsAggregate(c.Name[0].Name) {
			found = true
		}
		return !found
	})
	return found
}

// maxGroupingSets bounds what CUBE and products of sets can ask for.
const maxGroupingSets = 2048

// groupKeys binds GROUP BY: keys, and the sets over them when there is more than the one of all.
func (b *binder) groupKeys(g *grouping, by *sql.GroupBy, items []item) error {
	if by == nil {
		return nil
	}
	add := func(e sql.Expr) (int, error) {
		var v expr.Expr
		var err error
		var it *item
		if n, ok := e.(*sql.Number); ok && n.Kind == sql.Int {
			i, err := strconv.Atoi(n.Text)
			if err != nil || i < 1 || i > len(items) {
				return 0, b.errorf(n.Pos, fault.Invalid, "INVALID_COLUMN_REFERENCE", "position %s is not between 1 and %d, the number of output columns", n.Text, len(items))
			}
			it = &items[i-1]
		}
		switch {
		case it != nil && it.col != nil:
			v = b.cols.ref(it.col.id)
		case it != nil:
			if hasAggregate(it.Expr) {
				return 0, b.errorf(e.At(), fault.Invalid, "EXPRESSION_NOT_SCALAR", "GROUP BY cannot contain an aggregate")
			}
			y := *g.input
			y.aliases = nil
			v, err = y.bind(it.Expr)
		default:
			v, err = g.input.bind(e)
		}
		if err != nil {
			return 0, err
		}
		if t := v.Type(); !groupable(t) {
			return 0, b.errorf(e.At(), fault.Invalid, "TYPE_MISMATCH", "values of type %s cannot be grouped", t)
		}
		for i, k := range g.keys {
			if expr.Equal(k, v) {
				return i, nil
			}
		}
		g.keys = append(g.keys, v)
		return len(g.keys) - 1, nil
	}
	var sets [][]int
	if by.All || isAuto(by) && !known(g.input.scope, "auto") {
		for _, it := range items {
			if it.col != nil {
				it.Expr = &sql.Name{Parts: []sql.Ident{{Name: it.col.name, Quoted: true}}}
				v := b.cols.ref(it.col.id)
				if !slices.ContainsFunc(g.keys, func(k expr.Expr) bool { return expr.Equal(k, v) }) {
					g.keys = append(g.keys, v)
				}
				continue
			}
			if hasAggregate(it.Expr) {
				continue
			}
			if _, err := add(it.Expr); err != nil {
				return err
			}
		}
	} else {
		sets = [][]int{nil}
		for i := range by.Elements {
			s, err := b.groupingSets(&by.Elements[i], add)
			if err != nil {
				return err
			}
			var product [][]int
			for _, l := range sets {
				for _, r := range s {
					product = append(product, append(slices.Clone(l), r...))
					if len(product) > maxGroupingSets {
						return b.errorf(by.Pos, fault.Invalid, "TOO_MANY_GROUPING_SETS", "GROUP BY has more than %d grouping sets", maxGroupingSets)
					}
				}
			}
			sets = product
		}
		for i := range sets {
			slices.Sort(sets[i])
			sets[i] = slices.Compact(sets[i])
		}
		if by.Distinct {
			slices.SortFunc(sets, slices.Compare[[]int])
			sets = slices.CompactFunc(sets, func(a, b []int) bool { return slices.Equal(a, b) })
		}
		if len(sets) == 1 && len(sets[0]) == len(g.keys) {
			sets = nil
		}
	}
	g.sets = sets
	for _, k := range g.keys {
		if c, ok := k.(*expr.Column); ok && sets == nil {
			g.keyCols = append(g.keyCols, c.Index)
			continue
		}
		name := ""
		if c, ok := k.(*expr.Column); ok {
			name = c.Name
		}
		id := b.cols.add(name, k.Type(), k.Nullable() || sets != nil)
		g.keyCols = append(g.keyCols, id)
	}
	if sets != nil {
		g.gid = b.cols.add("grouping", bigint, false)
	}
	return nil
}

// isAuto reports whether a GROUP BY is Trino's AUTO, another spelling of ALL.
func isAuto(by *sql.GroupBy) bool {
	if len(by.Elements) != 1 || by.Elements[0].Kind != "" {
		return false
	}
	n, ok := by.Elements[0].Sets[0][0].(*sql.Name)
	return ok && len(n.Parts) == 1 && !n.Parts[0].Quoted && fold(n.Parts[0].Name) == "auto"
}

// known reports whether a scope has a column of the name.
func known(s *scope, name string) bool {
	return len(s.lookup(nil, sql.Ident{Name: name})) > 0
}

// groupingSets expands an element of GROUP BY to its sets of key positions.
func (b *binder) groupingSets(e *sql.Grouping, add func(sql.Expr) (int, error)) ([][]int, error) {
	var parts [][]int
	var out [][]int
	for i, s := range e.Sets {
		if e.Nested != nil && e.Nested[i] != nil {
			n, err := b.groupingSets(e.Nested[i], add)
			if err != nil {
				return nil, err
			}
			out = append(out, n...)
			continue
		}
		var keys []int
		for _, x := range s {
			k, err := add(x)
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		}
		parts = append(parts, keys)
	}
	switch e.Kind {
	case "ROLLUP":
		for n := len(parts); n >= 0; n-- {
			out = append(out, slices.Concat(parts[:n]...))
		}
		return out, nil
	case "CUBE":
		if len(parts) > 11 {
			return nil, b.errorf(e.Pos, fault.Invalid, "TOO_MANY_GROUPING_SETS", "CUBE of %d elements has more than %d grouping sets", len(parts), maxGroupingSets)
		}
		for mask := 1<<len(parts) - 1; mask >= 0; mask-- {
			var set []int
			for i, p := range parts {
				if mask&(1<<(len(parts)-1-i)) != 0 {
					set = append(set, p...)
				}
			}
			out = append(out, set)
		}
		return out, nil
	}
	return append(parts, out...), nil
}

// groupable reports whether equal values of a type can be put in one group.
func groupable(t vector.Type) bool {
	switch t.Kind {
	case vector.Variant, vector.Geometry, vector.Geography:
		return false
	}
	for _, f := range t.Fields {
		if !groupable(f.Type) {
			return false
		}
	}
	return true
}
