package plan

import (
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// lowering makes the plan that is run of the logical one: ids become positions and columns know whether they can be null.
type lowering struct {
	o      *optimizer
	spools map[*spool]*lowered
	params []vector.Type
	// estimates are the rows expected of nodes.
	estimates map[Node]float64
}

// lowered is a node with the ids of its columns by position.
type lowered struct {
	node Node
	ids  []int
}

// layout maps column ids to positions and descriptions for the expressions over one input.
type layout struct {
	pos  map[int]int
	cols []Column
}

func layoutOf(ls ...*lowered) layout {
	l := layout{pos: map[int]int{}}
	for _, x := range ls {
		base := len(l.cols)
		l.cols = append(l.cols, x.node.Columns()...)
		for i, id := range x.ids {
			l.pos[id] = base + i
		}
	}
	return l
}

// bind replaces ids by positions.
func (w *lowering) bind(e expr.Expr, l layout) expr.Expr {
	if e == nil {
		return nil
	}
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		switch n := x.(type) {
		case *expr.Column:
			i, ok := l.pos[n.Index]
			if !ok {
				panic(missing{fault.New(fault.Internal, "the plan lost column %q (%d)", n.Name, n.Index)})
			}
			return &expr.Column{Index: i, Name: n.Name, Typ: l.cols[i].Type, Null: l.cols[i].Nullable}
		case *expr.Param:
			return w.param(n)
		}
		return x
	})
}

// missing carries a fault of ours out of the recursion.
type missing struct{ err error }

// param gives every use of a parameter the one type that was inferred first; other uses cast.
func (w *lowering) param(p *expr.Param) expr.Expr {
	for len(w.params) <= p.Index {
		w.params = append(w.params, vector.Type{})
	}
	t := w.params[p.Index]
	switch {
	case t.Kind == vector.Null && p.Typ.Kind == vector.Null:
		return p
	case t.Kind == vector.Null:
		w.params[p.Index] = p.Typ
		return p
	case t.Equal(p.Typ):
		return p
	}
	first := &expr.Param{Index: p.Index, Typ: t}
	if p.Typ.Kind == vector.Null {
		return first
	}
	c, err := expr.NewCast(first, p.Typ, false)
	if err != nil {
		panic(missing{fault.WithID(fault.Invalid, "TYPE_MISMATCH", "parameter %d is used as %s and as %s", p.Index+1, t, p.Typ)})
	}
	return c
}

func (w *lowering) all(es []expr.Expr, l layout) []expr.Expr {
	return mapExprs(es, func(e expr.Expr) expr.Expr { return w.bind(e, l) })
}

func (w *lowering) column(id int, null bool) Column {
	c := w.o.cols.list[id]
	c.Nullable = null
	return c
}

func (w *lowering) exprColumn(id int, e expr.Expr) Column {
	return Column{Name: w.o.cols.list[id].Name, Type: e.Type(), Nullable: e.Nullable()}
}

// lower makes a node. It panics with missing for faults of the passes; lowerAll turns that into an error.
func (w *lowering) lower(r rel) *lowered {
	l := w.lowerAny(r)
	w.estimates[l.node] = w.o.estimate(r)
	return l
}

func (w *lowering) lowerAny(r rel) *lowered {
	switch n := r.(type) {
	case *scanRel:
		return w.scan(n)
	case *valuesRel:
		v := &Values{}
		empty := layout{}
		for _, row := range n.rows {
			v.Rows = append(v.Rows, w.all(row, empty))
		}
		for i, id := range n.cols {
			null := w.o.cols.list[id].Nullable
			for _, row := range v.Rows {
				null = null || row[i].Nullable()
			}
			v.Cols = append(v.Cols, w.column(id, null))
		}
		return &lowered{v, n.cols}
	case *filterRel:
		in := w.lower(n.in)
		return &lowered{&Filter{Input: in.node, Cond: w.bind(conjunction(n.conds), layoutOf(in))}, in.ids}
	case *projectRel:
		in := w.lower(n.in)
		p := &Project{Input: in.node, Exprs: w.all(n.list, layoutOf(in))}
		if identity(p) {
			return &lowered{in.node, n.cols}
		}
		for i, id := range n.cols {
			p.Cols = append(p.Cols, w.exprColumn(id, p.Exprs[i]))
		}
		return &lowered{p, n.cols}
	case *aggRel:
		return w.aggregate(n)
	case *joinRel:
		return w.join(n)
	case *sortRel:
		in := w.lower(n.in)
		l := layoutOf(in)
		s := &Sort{Input: in.node, Limit: n.limit, Offset: n.offset, WithTies: n.ties}
		s.Keys = mapKeys(n.keys, func(e expr.Expr) expr.Expr { return w.bind(e, l) })
		return &lowered{s, in.ids}
	case *limitRel:
		in := w.lower(n.in)
		return &lowered{&Limit{Input: in.node, Count: n.count, Offset: n.offset, CountExpr: w.bind(n.countExpr, layout{}), OffsetExpr: w.bind(n.offsetExpr, layout{})}, in.ids}
	case *unionRel:
		u := &Union{}
		for i, in := range n.ins {
			x := w.arrange(w.lower(in), n.maps[i])
			u.Nodes = append(u.Nodes, x.node)
			for k, c := range x.node.Columns() {
				if i == 0 {
					c.Name = w.o.cols.list[n.cols[k]].Name
					u.Cols = append(u.Cols, c)
				} else {
					u.Cols[k].Nullable = u.Cols[k].Nullable || c.Nullable
				}
			}
		}
		return &lowered{u, n.cols}
	case *setRel:
		l, rr := w.arrange(w.lower(n.l), n.lcols), w.arrange(w.lower(n.r), n.rcols)
		s := &SetOp{Except: n.except, All: n.all, Left: l.node, Right: rr.node}
		for k, c := range l.node.Columns() {
			c.Name = w.o.cols.list[n.cols[k]].Name
			s.Cols = append(s.Cols, c)
		}
		return &lowered{s, n.cols}
	case *windowRel:
		in := w.lower(n.in)
		l := layoutOf(in)
		f := func(e expr.Expr) expr.Expr { return w.bind(e, l) }
		x := &Window{Input: in.node, PartitionBy: mapExprs(n.part, f), OrderBy: mapKeys(n.order, f), Cols: slices.Clone(in.node.Columns())}
		for i, c := range n.calls {
			x.Functions = append(x.Functions, mapCall(c, f))
			null := true
			switch c.Name {
			case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist":
				null = false
			}
			if c.Agg != nil {
				null = c.Agg.Null
			}
			x.Cols = append(x.Cols, w.column(n.cols[i], null))
		}
		return &lowered{x, slices.Concat(in.ids, n.cols)}
	case *unnestRel:
		in := w.lower(n.in)
		u := &Unnest{Input: in.node, Args: w.all(n.args, layoutOf(in)), Outer: n.outer, Ordinality: n.ordinality, Cols: slices.Clone(in.node.Columns())}
		for _, id := range n.cols {
			u.Cols = append(u.Cols, w.o.cols.list[id])
		}
		return &lowered{u, slices.Concat(in.ids, n.cols)}
	case *spoolRel:
		body := w.spools[n.sp]
		if body == nil {
			body = w.lower(n.sp.in)
			body = &lowered{&Spool{ID: n.sp.id, Input: body.node}, body.ids}
			w.spools[n.sp] = body
		}
		// Each use is a node of its own over the one input.
		s := *body.node.(*Spool)
		ids := make([]int, len(body.ids))
		for i := range ids {
			ids[i] = -1
		}
		for k, src := range n.src {
			ids[slices.Index(body.ids, src)] = n.cols[k]
		}
		return &lowered{&s, ids}
	case *oneRowRel:
		in := w.lower(n.in)
		return &lowered{&OneRow{in.node}, in.ids}
	}
	panic(missing{fault.New(fault.Internal, "%T has no physical operator", r)})
}

// identity reports whether a projection gives its input as it is.
func identity(p *Project) bool {
	if len(p.Exprs) != len(p.Input.Columns()) {
		return false
	}
	for i, e := range p.Exprs {
		if c, ok := e.(*expr.Column); !ok || c.Index != i {
			return false
		}
	}
	return true
}

// arrange gives the columns of ids, in order.
func (w *lowering) arrange(x *lowered, ids []int) *lowered {
	if slices.Equal(x.ids, ids) {
		return x
	}
	p := &Project{Input: x.node}
	l := layoutOf(x)
	for _, id := range ids {
		e := w.bind(w.o.cols.ref(id), l)
		p.Exprs, p.Cols = append(p.Exprs, e), append(p.Cols, w.exprColumn(id, e))
	}
	return &lowered{p, ids}
}

// scan makes the projection of a scan: output columns first, then those that only the filter needs.
func (w *lowering) scan(n *scanRel) *lowered {
	s := &Scan{Table: n.table, Snapshot: n.snap, Change: n.change, Limit: n.limit}
	ids := slices.Clone(n.out())
	s.Output = len(ids)
	for _, c := range n.conds {
		for _, id := range expr.Columns(c) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, f := range n.rfs {
		if !slices.Contains(ids, f.col) {
			ids = append(ids, f.col)
		}
	}
	var fields []iceberg.NestedField
	l := layout{pos: map[int]int{}}
	for i, id := range ids {
		f := n.fields[slices.Index(n.cols, id)]
		fields = append(fields, f)
		s.Variants = append(s.Variants, n.parts[id])
		l.pos[id] = i
		l.cols = append(l.cols, Column{Name: f.Name, Type: w.o.cols.list[id].Type, Nullable: !f.Required})
	}
	s.Projection = iceberg.NewSchema(n.snap.Schema.ID, fields...)
	s.Cols = l.cols[:s.Output:s.Output]
	if len(n.conds) > 0 {
		s.Filter = w.bind(conjunction(n.conds), l)
	}
	for _, f := range n.rfs {
		s.RuntimeFilters = append(s.RuntimeFilters, RuntimeFilter{ID: f.id, Column: l.pos[f.col]})
	}
	return &lowered{s, ids[:s.Output:s.Output]}
}

func (w *lowering) aggregate(n *aggRel) *lowered {
	in := w.lower(n.in)
	l := layoutOf(in)
	f := func(e expr.Expr) expr.Expr { return w.bind(e, l) }
	a := &Aggregate{Input: in.node, GroupBy: mapExprs(n.keys, f), Sets: n.sets}
	for i, id := range n.keyCols {
		c := w.exprColumn(id, a.GroupBy[i])
		for _, s := range n.sets {
			c.Nullable = c.Nullable || !slices.Contains(s, i)
		}
		a.Cols = append(a.Cols, c)
	}
	if n.sets != nil {
		a.Cols = append(a.Cols, w.column(n.gid, false))
	}
	for i, x := range n.aggs {
		a.Aggs = append(a.Aggs, mapAgg(x, f))
		a.Cols = append(a.Cols, w.column(n.aggCols[i], x.Null))
	}
	return &lowered{a, n.out()}
}

// join splits the predicates of a join into pairs of keys and a residual.
func (w *lowering) join(n *joinRel) *lowered {
	l, r := w.lower(n.l), w.lower(n.r)
	ll, rl, both := layoutOf(l), layoutOf(r), layoutOf(l, r)
	ls, rs := setOf(l.ids), setOf(r.ids)
	j := &Join{Kind: n.kind, Left: l.node, Right: r.node}
	var residual []expr.Expr
	safe := false
	for i, c := range n.conds {
		eq, ok := c.(*expr.Compare)
		if !ok || eq.Op != expr.Eq && eq.Op != expr.NotDistinct {
			residual = append(residual, w.bind(c, both))
			continue
		}
		a, b := eq.L, eq.R
		ca, cb := expr.Columns(a), expr.Columns(b)
		if rs.hasAny(ca) || ls.hasAny(cb) {
			a, b, ca, cb = b, a, cb, ca
		}
		if len(ca) == 0 || len(cb) == 0 || !ls.hasAll(ca) || !rs.hasAll(cb) || expr.Volatile(c) {
			residual = append(residual, w.bind(c, both))
			continue
		}
		for _, f := range n.rfs {
			if f.cond == i {
				j.RuntimeFilters = append(j.RuntimeFilters, RuntimeFilter{ID: f.id, Column: len(j.RightKeys)})
			}
		}
		j.LeftKeys, j.RightKeys = append(j.LeftKeys, w.bind(a, ll)), append(j.RightKeys, w.bind(b, rl))
		j.NullSafe = append(j.NullSafe, eq.Op == expr.NotDistinct)
		safe = safe || eq.Op == expr.NotDistinct
	}
	if !safe {
		j.NullSafe = nil
	}
	if len(residual) > 0 {
		j.Residual = conjunction(residual)
	}
	lc, rc := slices.Clone(l.node.Columns()), slices.Clone(r.node.Columns())
	pad := func(cs []Column) {
		for i := range cs {
			cs[i].Nullable = true
		}
	}
	switch n.kind {
	case Left, Single:
		pad(rc)
	case Right:
		pad(lc)
	case Full:
		pad(lc)
		pad(rc)
	}
	switch n.kind {
	case Semi, Anti, NullAwareAnti:
		j.Cols = lc
		return &lowered{j, l.ids}
	case Mark:
		j.Cols = append(lc, w.column(n.mark, true))
		return &lowered{j, append(slices.Clone(l.ids), n.mark)}
	}
	j.Cols = append(lc, rc...)
	return &lowered{j, slices.Concat(l.ids, r.ids)}
}
