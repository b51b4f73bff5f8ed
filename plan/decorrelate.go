package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// decorrelate makes joins of all applies. The common shapes give up their correlated predicates to the join (pull); what is left is
// computed for the distinct values of the outer columns at once (Neumann and Kemper, Unnesting Arbitrary Queries, 2015).
func (o *optimizer) decorrelate(r rel) (rel, error) {
	var fail error
	out := mapRel(r, func(x rel) rel {
		a, ok := x.(*applyRel)
		if !ok || fail != nil {
			return x
		}
		n, err := o.unapply(a)
		if err != nil {
			fail = err
			return x
		}
		return n
	})
	return out, fail
}

func (o *optimizer) unapply(a *applyRel) (rel, error) {
	outer := setOf(a.l.out())
	var corr []int
	for _, id := range free(a.r) {
		if outer[id] {
			corr = append(corr, id)
		}
	}
	if len(corr) == 0 {
		return &joinRel{kind: a.kind, l: a.l, r: a.r, conds: a.conds, mark: a.mark}, nil
	}
	cs := setOf(corr)
	if r, preds, ok := o.pull(a.r, cs); ok {
		return &joinRel{kind: a.kind, l: a.l, r: r, conds: slices.Concat(a.conds, preds), mark: a.mark}, nil
	}
	if r := o.scalarAggregate(a, cs); r != nil {
		return r, nil
	}
	return o.unnest(a, corr)
}

func refers(e expr.Expr, s idSet) bool { return s.hasAny(expr.Columns(e)) }

func splitConds(conds []expr.Expr, s idSet) (with, without []expr.Expr) {
	for _, c := range conds {
		if refers(c, s) {
			with = append(with, c)
		} else {
			without = append(without, c)
		}
	}
	return with, without
}

// pull takes the correlated predicates out of r. The rows of r for an outer row are then those of the result that meet them. ok is false
// when r is correlated in another way.
func (o *optimizer) pull(r rel, corr idSet) (rel, []expr.Expr, bool) {
	if !corr.hasAny(free(r)) {
		return r, nil, true
	}
	switch n := r.(type) {
	case *filterRel:
		in, preds, ok := o.pull(n.in, corr)
		if !ok {
			return nil, nil, false
		}
		mine, rest := splitConds(n.conds, corr)
		if len(rest) > 0 {
			in = &filterRel{in, rest}
		}
		return in, append(preds, mine...), true
	case *projectRel:
		for _, e := range n.list {
			if refers(e, corr) {
				return nil, nil, false
			}
		}
		in, preds, ok := o.pull(n.in, corr)
		if !ok {
			return nil, nil, false
		}
		c := &projectRel{in: in, list: slices.Clone(n.list), cols: slices.Clone(n.cols), guard: n.guard}
		for _, id := range innerColumns(preds, corr) {
			if !slices.Contains(c.cols, id) {
				c.list, c.cols = append(c.list, o.cols.ref(id)), append(c.cols, id)
			}
		}
		return c, preds, true
	case *sortRel:
		if n.limit >= 0 || n.offset > 0 {
			return nil, nil, false
		}
		return o.pull(n.in, corr)
	case *joinRel:
		l, lp, ok := o.pull(n.l, corr)
		if !ok {
			return nil, nil, false
		}
		mine, rest := splitConds(n.conds, corr)
		c := *n
		c.l, c.conds = l, rest
		if n.kind == Inner {
			r, rp, ok := o.pull(n.r, corr)
			if !ok {
				return nil, nil, false
			}
			c.r = r
			return &c, slices.Concat(lp, rp, mine), true
		}
		if n.kind == Right || n.kind == Full || len(mine) > 0 || corr.hasAny(free(n.r)) {
			return nil, nil, false
		}
		return &c, lp, true
	case *unnestRel:
		for _, e := range n.args {
			if refers(e, corr) {
				return nil, nil, false
			}
		}
		in, preds, ok := o.pull(n.in, corr)
		if !ok {
			return nil, nil, false
		}
		return n.with([]rel{in}), preds, true
	case *aggRel:
		if len(n.keys) == 0 || n.sets != nil {
			return nil, nil, false
		}
		return o.pullAggregate(n, corr)
	}
	return nil, nil, false
}

// innerColumns lists the columns of preds that are not outer ones.
func innerColumns(preds []expr.Expr, corr idSet) []int {
	var ids []int
	for _, p := range preds {
		for _, id := range expr.Columns(p) {
			if !corr[id] && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// pullAggregate takes correlated equalities out from under groups: their inner sides become keys.
func (o *optimizer) pullAggregate(n *aggRel, corr idSet) (rel, []expr.Expr, bool) {
	bad := false
	n.exprs(func(e expr.Expr) { bad = bad || refers(e, corr) })
	if bad {
		return nil, nil, false
	}
	in, preds, ok := o.pull(n.in, corr)
	if !ok {
		return nil, nil, false
	}
	c := *n
	c.in, c.keys, c.keyCols = in, slices.Clone(n.keys), slices.Clone(n.keyCols)
	made := setOf(in.out())
	var out []expr.Expr
	for _, p := range preds {
		eq, ok := p.(*expr.Compare)
		if !ok || eq.Op != expr.Eq {
			return nil, nil, false
		}
		outer, inner := eq.L, eq.R
		if refers(inner, corr) {
			outer, inner = inner, outer
		}
		if refers(inner, corr) || !made.hasAll(expr.Columns(inner)) || made.hasAny(expr.Columns(outer)) {
			return nil, nil, false
		}
		id := -1
		for i, k := range c.keys {
			if expr.Equal(k, inner) {
				id = c.keyCols[i]
			}
		}
		if id < 0 {
			id = o.cols.add("", inner.Type(), inner.Nullable())
			if k, ok := inner.(*expr.Column); ok {
				o.cols.list[id].Name = k.Name
			}
			c.keys, c.keyCols = append(c.keys, inner), append(c.keyCols, id)
		}
		out = append(out, &expr.Compare{Op: expr.Eq, L: outer, R: o.cols.ref(id)})
	}
	return &c, out, true
}

// scalarAggregate joins a correlated aggregate without keys: grouped by the inner sides of its equalities, left-joined, and with what an
// empty group counts to put in place of NULL. nil when the shape is another.
func (o *optimizer) scalarAggregate(a *applyRel, corr idSet) rel {
	if a.kind != Left && a.kind != Single && a.kind != Inner || len(a.conds) > 0 {
		return nil
	}
	top, _ := a.r.(*projectRel)
	agg, _ := a.r.(*aggRel)
	if top != nil {
		agg, _ = top.in.(*aggRel)
	}
	if agg == nil || len(agg.keys) > 0 || agg.sets != nil {
		return nil
	}
	grouped, preds, ok := o.pullAggregate(agg, corr)
	if !ok {
		return nil
	}
	empty := map[int]expr.Expr{}
	p := &projectRel{}
	g := *grouped.(*aggRel)
	g.aggCols = slices.Clone(g.aggCols)
	for i, x := range agg.aggs {
		id := agg.aggCols[i]
		e, fresh := o.emptyGroup(x, id)
		if fresh != id {
			g.aggCols[i] = fresh
			empty[id] = e
		}
	}
	join := &joinRel{kind: Left, l: a.l, r: &g, conds: preds}
	for _, id := range a.l.out() {
		p.list, p.cols = append(p.list, o.cols.ref(id)), append(p.cols, id)
	}
	p.in = join
	nullable := func(e expr.Expr) expr.Expr { // unmatched rows have nulls in the aggregates
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if c, ok := x.(*expr.Column); ok {
				if e := empty[c.Index]; e != nil {
					return e
				}
				if slices.Contains(agg.aggCols, c.Index) {
					d := *c
					d.Null = true
					return &d
				}
			}
			return x
		})
	}
	if top != nil {
		for i, e := range top.list {
			p.list, p.cols = append(p.list, nullable(e)), append(p.cols, top.cols[i])
		}
		return p
	}
	for _, id := range agg.aggCols {
		p.list, p.cols = append(p.list, nullable(o.cols.ref(id))), append(p.cols, id)
	}
	return p
}

// emptyGroup gives for an aggregate that is not null over no rows (count and its kin) a fresh column and the expression that puts its empty
// value in place of NULL; other aggregates keep their column.
func (o *optimizer) emptyGroup(x *expr.Aggregate, id int) (expr.Expr, int) {
	if x.Null || x.Typ.Kind != vector.BigInt {
		return nil, id
	}
	fresh := o.cols.add(o.cols.list[id].Name, x.Typ, true)
	return &expr.Coalesce{Args: []expr.Expr{o.cols.ref(fresh), &expr.Literal{Value: int64(0), Typ: x.Typ}}, Typ: x.Typ}, fresh
}

// domain is the set of distinct values of the outer columns for which a subquery is computed.
type domain struct {
	o    *optimizer
	sp   *spool
	corr []int
}

// use gives the domain with columns of its own.
func (d *domain) use() (rel, []int) {
	s := &spoolRel{sp: d.sp, src: d.corr}
	a := &aggRel{in: s}
	for _, id := range d.corr {
		c := d.o.cols.list[id]
		n := d.o.cols.add(c.Name, c.Type, c.Nullable)
		s.cols = append(s.cols, n)
		a.keys, a.keyCols = append(a.keys, d.o.cols.ref(n)), append(a.keyCols, n)
	}
	return a, a.keyCols
}

// unnest is the general way: l is kept, the subquery computed for the distinct values of its correlated columns and joined back.
func (o *optimizer) unnest(a *applyRel, corr []int) (rel, error) {
	o.spools++
	d := &domain{o: o, sp: &spool{o.spools, a.l}, corr: corr}
	ids := a.l.out()
	l := &spoolRel{sp: d.sp, src: ids, cols: ids}
	r, cols, err := d.push(a.r)
	if err != nil {
		return nil, err
	}
	j := &joinRel{kind: a.kind, l: l, r: r, mark: a.mark}
	j.conds = append(j.conds, o.sameValues(corr, cols)...)
	j.conds = append(j.conds, a.conds...)
	if a.kind == Inner && len(a.conds) == 0 {
		j.kind = Inner
	}
	return j, nil
}

// sameValues compares columns pairwise, nulls being equal.
func (o *optimizer) sameValues(l, r []int) []expr.Expr {
	var out []expr.Expr
	for i := range l {
		a, b := o.cols.ref(l[i]), o.cols.ref(r[i])
		op := expr.NotDistinct
		if !a.Null && !b.Null {
			op = expr.Eq
		}
		out = append(out, &expr.Compare{Op: op, L: a, R: b})
	}
	return out
}

// push computes r for all values of the domain: its output gets columns with the values, which are returned.
func (d *domain) push(r rel) (rel, []int, error) {
	o := d.o
	if !setOf(d.corr).hasAny(free(r)) {
		u, cols := d.use()
		return &joinRel{kind: Inner, l: r, r: u}, cols, nil
	}
	put := func(cols []int) func(expr.Expr) expr.Expr {
		m := map[int]expr.Expr{}
		for i, id := range d.corr {
			m[id] = o.cols.ref(cols[i])
		}
		return func(e expr.Expr) expr.Expr { return replaceColumns(e, m) }
	}
	simple := func(n rel, in rel) (rel, []int, error) {
		k, cols, err := d.push(in)
		if err != nil {
			return nil, nil, err
		}
		return n.with([]rel{k}).rewrite(nil, put(cols)), cols, nil
	}
	switch n := r.(type) {
	case *filterRel:
		return simple(n, n.in)
	case *unnestRel:
		return simple(n, n.in)
	case *projectRel:
		x, cols, err := simple(n, n.in)
		if err != nil {
			return nil, nil, err
		}
		p := x.(*projectRel)
		p.list, p.cols = slices.Clone(p.list), slices.Clone(p.cols)
		for _, id := range cols {
			p.list, p.cols = append(p.list, o.cols.ref(id)), append(p.cols, id)
		}
		return p, cols, nil
	case *windowRel:
		x, cols, err := simple(n, n.in)
		if err != nil {
			return nil, nil, err
		}
		w := x.(*windowRel)
		w.part = slices.Clone(w.part)
		for _, id := range cols {
			w.part = append(w.part, o.cols.ref(id))
		}
		return w, cols, nil
	case *aggRel:
		return d.pushAggregate(n)
	case *sortRel:
		if n.limit < 0 && n.offset == 0 {
			return simple(n, n.in)
		}
		if n.ties {
			break
		}
		return d.pushLimit(n.in, n.keys, n.limit, n.offset, put)
	case *limitRel:
		if n.countExpr != nil || n.offsetExpr != nil {
			break
		}
		in := n.in
		var keys []expr.SortKey
		if s, ok := in.(*sortRel); ok && s.limit < 0 {
			in, keys = s.in, s.keys
		}
		return d.pushLimit(in, keys, n.count, n.offset, put)
	case *unionRel:
		u := &unionRel{cols: slices.Clone(n.cols)}
		var cols []int
		for _, id := range d.corr {
			c := o.cols.list[id]
			cols = append(cols, o.cols.add(c.Name, c.Type, c.Nullable))
		}
		u.cols = append(u.cols, cols...)
		for i, in := range n.ins {
			k, kc, err := d.push(in)
			if err != nil {
				return nil, nil, err
			}
			u.ins, u.maps = append(u.ins, k), append(u.maps, slices.Concat(n.maps[i], kc))
		}
		return u, cols, nil
	case *setRel:
		l, lc, err := d.push(n.l)
		if err != nil {
			return nil, nil, err
		}
		r, rc, err := d.push(n.r)
		if err != nil {
			return nil, nil, err
		}
		c := *n
		var cols []int
		for _, id := range d.corr {
			x := o.cols.list[id]
			cols = append(cols, o.cols.add(x.Name, x.Type, x.Nullable))
		}
		c.l, c.r, c.lcols, c.rcols, c.cols = l, r, slices.Concat(n.lcols, lc), slices.Concat(n.rcols, rc), slices.Concat(n.cols, cols)
		return &c, cols, nil
	case *joinRel:
		return d.pushJoin(n, put)
	}
	return nil, nil, fault.New(fault.Unsupported, "a correlated subquery of this form is not supported; write it as a join")
}

func (d *domain) pushJoin(n *joinRel, put func([]int) func(expr.Expr) expr.Expr) (rel, []int, error) {
	if n.kind == Right || n.kind == Full {
		return nil, nil, fault.New(fault.Unsupported, "a RIGHT or FULL JOIN inside a correlated subquery is not supported")
	}
	l, lc, err := d.push(n.l)
	if err != nil {
		return nil, nil, err
	}
	f := put(lc)
	c := *n
	c.l, c.conds = l, mapExprs(n.conds, f)
	if !setOf(d.corr).hasAny(free(n.r)) {
		return &c, lc, nil
	}
	r, rc, err := d.push(n.r)
	if err != nil {
		return nil, nil, err
	}
	c.r = r
	if n.kind == NullAwareAnti {
		return nil, nil, fault.New(fault.Unsupported, "NOT IN inside a correlated subquery is not supported; use NOT EXISTS")
	}
	c.conds = append(slices.Clone(c.conds), d.o.sameValues(lc, rc)...)
	return &c, lc, nil
}

func (d *domain) pushAggregate(n *aggRel) (rel, []int, error) {
	o := d.o
	if n.sets != nil {
		return nil, nil, fault.New(fault.Unsupported, "grouping sets inside a correlated subquery are not supported")
	}
	in, cols, err := d.push(n.in)
	if err != nil {
		return nil, nil, err
	}
	m := map[int]expr.Expr{}
	for i, id := range d.corr {
		m[id] = o.cols.ref(cols[i])
	}
	a := n.with([]rel{in}).rewrite(nil, func(e expr.Expr) expr.Expr { return replaceColumns(e, m) }).(*aggRel)
	a.keys, a.keyCols = slices.Clone(a.keys), slices.Clone(a.keyCols)
	for _, id := range cols {
		a.keys, a.keyCols = append(a.keys, o.cols.ref(id)), append(a.keyCols, id)
	}
	if len(n.keys) > 0 {
		return a, cols, nil
	}
	// Without keys there is a row for every value, even if it has no rows.
	u, ucols := d.use()
	p := &projectRel{}
	a.aggCols = slices.Clone(a.aggCols)
	for i, x := range n.aggs {
		e, fresh := o.emptyGroup(x, n.aggCols[i])
		if e == nil {
			ref := o.cols.ref(fresh)
			ref.Null = true
			e = ref
		}
		a.aggCols[i] = fresh
		p.list, p.cols = append(p.list, e), append(p.cols, n.aggCols[i])
	}
	for _, id := range ucols {
		p.list, p.cols = append(p.list, o.cols.ref(id)), append(p.cols, id)
	}
	p.in = &joinRel{kind: Left, l: u, r: a, conds: o.sameValues(ucols, cols)}
	return p, ucols, nil
}

// pushLimit keeps the first rows for each value of the domain, by number in the order.
func (d *domain) pushLimit(in rel, keys []expr.SortKey, count, offset int64, put func([]int) func(expr.Expr) expr.Expr) (rel, []int, error) {
	o := d.o
	k, cols, err := d.push(in)
	if err != nil {
		return nil, nil, err
	}
	call, err := expr.NewWindowCall("row_number", nil, expr.Frame{End: expr.Bound{Kind: expr.UnboundedFollowing}}, false)
	if err != nil {
		return nil, nil, err
	}
	id := o.cols.add("row_number", bigint, false)
	w := &windowRel{in: k, order: mapKeys(keys, put(cols)), calls: []*expr.WindowCall{call}, cols: []int{id}}
	for _, c := range cols {
		w.part = append(w.part, o.cols.ref(c))
	}
	var conds []expr.Expr
	if count >= 0 {
		conds = append(conds, &expr.Compare{Op: expr.Le, L: o.cols.ref(id), R: &expr.Literal{Value: count + offset, Typ: bigint}})
	}
	if offset > 0 {
		conds = append(conds, &expr.Compare{Op: expr.Gt, L: o.cols.ref(id), R: &expr.Literal{Value: offset, Typ: bigint}})
	}
	return &filterRel{w, conds}, cols, nil
}
