package plan

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/skua-db/skua/expr"
)

// maxExact is the number of relations up to which all join orders are tried; above it the order is greedy.
const maxExact = 10

// orderJoins reorders trees of inner joins by estimated rows and puts the smaller side of each join on the right, which is built.
func (o *optimizer) orderJoins(r rel) (rel, error) { return o.joins(r), nil }

func (o *optimizer) joins(r rel) rel {
	if f, ok := r.(*filterRel); ok { // a filter above a join tree stays there
		return f.with([]rel{o.joins(f.in)})
	}
	j, ok := r.(*joinRel)
	if ok && (j.kind == Semi || j.kind == Anti) {
		if n, ok := o.sink(j); ok {
			return o.joins(n)
		}
	}
	if !ok || j.kind != Inner {
		kids := r.kids()
		if len(kids) == 0 {
			return r
		}
		next := make([]rel, len(kids))
		for i, k := range kids {
			next[i] = o.joins(k)
		}
		r = r.with(next)
		if j, ok := r.(*joinRel); ok {
			return o.reduce(o.sides(j))
		}
		return r
	}
	var leaves []rel
	var conds []expr.Expr
	var flatten func(rel)
	flatten = func(r rel) {
		if j, ok := r.(*joinRel); ok && j.kind == Inner {
			flatten(j.l)
			flatten(j.r)
			conds = append(conds, j.conds...)
			return
		}
		leaves = append(leaves, o.joins(r))
	}
	flatten(j)
	g := o.graph(leaves, conds)
	if len(leaves) <= maxExact && len(conds) <= manyConds {
		return g.exact()
	}
	return g.greedy()
}

// sink moves a semi or anti join below inner joins to the one relation that it asks about, when that is smaller than the joined rows.
func (o *optimizer) sink(j *joinRel) (rel, bool) {
	l, ok := j.l.(*joinRel)
	if !ok || l.kind != Inner {
		return nil, false
	}
	var used []int
	outer := setOf(l.out())
	for _, c := range j.conds {
		for _, id := range expr.Columns(c) {
			if outer[id] {
				used = append(used, id)
			}
		}
	}
	if len(used) == 0 {
		return nil, false
	}
	joined := o.estimate(o.joins(l))
	sunk := false
	var down func(rel) rel
	down = func(r rel) rel {
		if n, ok := r.(*joinRel); ok && n.kind == Inner {
			switch {
			case setOf(n.l.out()).hasAll(used):
				return n.with([]rel{down(n.l), n.r})
			case setOf(n.r.out()).hasAll(used):
				return n.with([]rel{n.l, down(n.r)})
			}
			return r
		}
		if o.estimate(r) >= joined {
			return r
		}
		sunk = true
		c := *j
		c.l = r
		return &c
	}
	out := down(l)
	return out, sunk
}

// sides swaps a left join whose right side is much the larger to a right join, so that the smaller side is built.
func (o *optimizer) sides(j *joinRel) *joinRel {
	if j.kind != Left && j.kind != Full && j.kind != Right {
		return j
	}
	l, r := o.estimate(j.l), o.estimate(j.r)
	if l*2 < r {
		c := *j
		c.l, c.r = j.r, j.l
		c.kind = map[JoinKind]JoinKind{Left: Right, Right: Left, Full: Full}[j.kind]
		return &c
	}
	return j
}

// reduceFactor and reduceRows say when the right side of a semi or anti join is worth reducing first.
const (
	reduceFactor = 4
	reduceRows   = 100_000
)

// reduce cuts the right side of a semi or anti join, which is built, down to the rows whose keys the much smaller left side has: the left side is
// computed once and used twice, and its keys narrow the scans of the right.
func (o *optimizer) reduce(j *joinRel) rel {
	if j.kind != Semi && j.kind != Anti || j.reduced {
		return j
	}
	l, r := o.estimate(j.l), o.estimate(j.r)
	if r < reduceRows || r < reduceFactor*l || volatileTree(j.l) {
		return j
	}
	ls, rs := setOf(j.l.out()), setOf(j.r.out())
	o.spools++
	sp := &spool{o.spools, j.l}
	keys := &spoolRel{sp: sp}
	m := map[int]expr.Expr{}
	var conds []expr.Expr
	for _, c := range j.conds {
		a, b, ok := columnPair(c)
		if !ok {
			continue
		}
		if rs[a] {
			a, b = b, a
		}
		if !ls[a] || !rs[b] {
			continue
		}
		if m[a] == nil {
			x := o.cols.list[a]
			id := o.cols.add(x.Name, x.Type, x.Nullable)
			keys.src, keys.cols = append(keys.src, a), append(keys.cols, id)
			m[a] = o.cols.ref(id)
		}
		conds = append(conds, &expr.Compare{Op: expr.Eq, L: o.cols.ref(b), R: m[a]})
	}
	if len(conds) == 0 {
		return j
	}
	c := *j
	c.reduced = true
	ids := j.l.out()
	c.l = &spoolRel{sp: sp, src: ids, cols: ids}
	c.r = &joinRel{kind: Semi, l: j.r, r: keys, conds: conds, reduced: true}
	return &c
}

func volatileTree(r rel) bool {
	found := false
	r.exprs(func(e expr.Expr) { found = found || expr.Volatile(e) })
	for _, k := range r.kids() {
		found = found || volatileTree(k)
	}
	return found
}

// graph is a set of relations and the predicates between them.
type graph struct {
	o      *optimizer
	leaves []rel
	rows   []float64
	conds  []edge
}

// edge is a predicate with the relations it needs. Equalities between two of them have a selectivity from the sizes of the tables.
type edge struct {
	cond  expr.Expr
	needs uint64
	eq    bool
	sel   float64
	class int // of columns that are equal through all equalities; -1 for other predicates
}

// plan is a join order for a set of relations.
type order struct {
	set  uint64
	l, r *order
	leaf int
	rows float64
	cost float64
}

// maxClass bounds the columns of a class whose equalities are all spelled out.
const maxClass = 16

func (o *optimizer) graph(leaves []rel, conds []expr.Expr) *graph {
	g := &graph{o: o, leaves: leaves}
	owner := map[int]int{}
	for i, l := range leaves {
		g.rows = append(g.rows, max(o.estimate(l), 1))
		for _, id := range l.out() {
			owner[id] = i
		}
	}
	classes := newClasses(conds)
	members := classes.members()
	type pair struct{ a, b int }
	seen := map[pair]bool{}
	// Columns that are all equal draw on one domain, which is no larger than the smallest table among them: customers and suppliers
	// of one nation meet by 25 nations, not by the number of suppliers.
	domains := map[int]*keyDomain{}
	for root, m := range members {
		for _, id := range m {
			if i, ok := owner[id]; ok {
				if domains[root] == nil {
					domains[root] = &keyDomain{}
				}
				o.widen(domains[root], leaves[i], id)
			}
		}
	}
	add := func(c expr.Expr) {
		e := edge{cond: c, sel: 0.3, class: -1}
		for _, id := range expr.Columns(c) {
			if i, ok := owner[id]; ok {
				e.needs |= 1 << (i & 63)
			}
		}
		if eq, ok := c.(*expr.Compare); ok && (eq.Op == expr.Eq || eq.Op == expr.NotDistinct) && bits.OnesCount64(e.needs) == 2 {
			e.eq = true
			e.sel = 1 / max(1, o.distinct(eq.L, eq.R, leaves, owner))
			if a, b, ok := columnPair(c); ok && len(members[classes.find(a)]) <= maxClass {
				e.class = classes.find(a)
				if d, ok := domains[e.class]; ok {
					e.sel = 1 / max(1, d.size())
				}
				seen[pair{a, b}], seen[pair{b, a}] = true, true
			}
		}
		g.conds = append(g.conds, e)
	}
	for _, c := range conds {
		add(c)
	}
	// What follows from the equalities may join relations that no predicate names together. Two columns of one relation are compared in
	// it: build relies on the columns of a class being equal on either side of a join.
	for _, root := range slices.Sorted(maps.Keys(members)) { // in a fixed order, so that plans are the same each time
		m := members[root]
		if len(m) > maxClass {
			continue
		}
		for i, a := range m {
			for _, b := range m[i+1:] {
				if _, ok := owner[a]; !ok || seen[pair{a, b}] {
					continue
				}
				if _, ok := owner[b]; !ok {
					continue
				}
				add(&expr.Compare{Op: expr.Eq, L: o.cols.ref(a), R: o.cols.ref(b)})
			}
		}
	}
	return g
}

// distinct guesses the number of distinct values of a join key.
func (o *optimizer) distinct(l, r expr.Expr, leaves []rel, owner map[int]int) float64 {
	var d keyDomain
	for _, e := range []expr.Expr{l, r} {
		for _, id := range expr.Columns(e) {
			if i, ok := owner[id]; ok {
				o.widen(&d, leaves[i], id)
			}
		}
	}
	if d.least == 0 {
		return 10
	}
	return d.size()
}

// base is the number of rows of the table that column id comes from, before any filter.
func (o *optimizer) base(r rel, id int) float64 {
	switch n := r.(type) {
	case *scanRel:
		return o.tableRows(n)
	case *projectRel:
		for i, c := range n.cols {
			if c == id {
				if ids := expr.Columns(n.list[i]); len(ids) == 1 {
					return o.base(n.in, ids[0])
				}
			}
		}
	case *aggRel:
		for i, c := range n.keyCols {
			if c == id {
				if ids := expr.Columns(n.keys[i]); len(ids) == 1 {
					return min(o.base(n.in, ids[0]), o.estimate(n))
				}
			}
		}
	case *joinRel:
		if slices.Contains(n.l.out(), id) {
			return o.base(n.l, id)
		}
		return o.base(n.r, id)
	case *filterRel, *sortRel, *limitRel, *windowRel, *unnestRel:
		return o.base(r.kids()[0], id)
	}
	return o.estimate(r)
}

// between gives the selectivity of the predicates that a join of two sets can apply, and whether one is an equality. Columns of one class
// count once; several keys between the same two tables are one composite key, of which the strongest counts.
func (g *graph) between(a, b uint64) (float64, bool) {
	sel, eq := 1.0, false
	byClass := map[int]edge{}
	byTables := map[uint64]float64{}
	for _, e := range g.conds {
		if e.needs&^(a|b) != 0 || e.needs&a == 0 || e.needs&b == 0 {
			continue
		}
		switch {
		case !e.eq:
			sel *= e.sel
		case e.class < 0:
			eq = true
			byTables[e.needs] = min(e.sel, orOne(byTables[e.needs]))
		default:
			eq = true
			if old, ok := byClass[e.class]; !ok || e.sel < old.sel {
				byClass[e.class] = e
			}
		}
	}
	for _, c := range slices.Sorted(maps.Keys(byClass)) {
		e := byClass[c]
		byTables[e.needs] = min(e.sel, orOne(byTables[e.needs]))
	}
	for _, t := range slices.Sorted(maps.Keys(byTables)) {
		sel *= byTables[t]
	}
	return sel, eq
}

func orOne(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

func (g *graph) join(a, b *order) *order {
	sel, eq := g.between(a.set, b.set)
	rows := max(a.rows*b.rows*sel, 1)
	if b.rows > a.rows {
		a, b = b, a
	}
	cost := a.cost + b.cost + rows + a.rows + 2*b.rows // probe, build, output
	if !eq {
		cost += a.rows * b.rows // nested loop
	}
	return &order{set: a.set | b.set, l: a, r: b, leaf: -1, rows: rows, cost: cost}
}

func (g *graph) leafOrders() []*order {
	out := make([]*order, len(g.leaves))
	for i := range g.leaves {
		out[i] = &order{set: 1 << i, leaf: i, rows: g.rows[i]}
	}
	return out
}

// exact tries all trees over subsets (DPsub).
func (g *graph) exact() rel {
	n := len(g.leaves)
	best := make([]*order, 1<<n)
	for i, l := range g.leafOrders() {
		best[1<<i] = l
	}
	for set := uint64(1); set < 1<<n; set++ {
		if bits.OnesCount64(set) < 2 {
			continue
		}
		low := set & -set
		for part := (set - 1) & set; part > 0; part = (part - 1) & set {
			if part&low == 0 { // each pair once
				continue
			}
			c := g.join(best[part], best[set&^part])
			if best[set] == nil || c.cost < best[set].cost {
				best[set] = c
			}
		}
	}
	return g.build(best[1<<n-1])
}

// greedy joins the pair with the cheapest result again and again. With more relations than bits in a word it keeps the written order.
func (g *graph) greedy() rel {
	if len(g.leaves) > 63 {
		r := g.leaves[0]
		for _, l := range g.leaves[1:] {
			r = &joinRel{kind: Inner, l: r, r: l}
		}
		var conds []expr.Expr
		for _, e := range g.conds {
			conds = append(conds, e.cond)
		}
		return g.o.push(above(r, conds), nil)
	}
	parts := g.leafOrders()
	for len(parts) > 1 {
		var best *order
		var x, y int
		for i := range parts {
			for k := i + 1; k < len(parts); k++ {
				c := g.join(parts[i], parts[k])
				if best == nil || c.cost-parts[i].cost-parts[k].cost < best.cost-parts[x].cost-parts[y].cost {
					best, x, y = c, i, k
				}
			}
		}
		parts[x] = best
		parts = slices.Delete(parts, y, y+1)
	}
	return g.build(parts[0])
}

// build makes the joins of an order; each predicate goes to the lowest join that has its columns.
func (g *graph) build(p *order) rel {
	if p.leaf >= 0 {
		var conds []expr.Expr
		for _, e := range g.conds {
			if e.needs != 0 && e.needs&^p.set == 0 {
				conds = append(conds, e.cond)
			}
		}
		return above(g.leaves[p.leaf], conds)
	}
	j := &joinRel{kind: Inner, l: g.build(p.l), r: g.build(p.r)}
	used := map[int]bool{}
	for _, e := range g.conds {
		if e.class >= 0 && used[e.class] {
			continue // follows from the one that is used and those below
		}
		if e.needs&^p.set == 0 && e.needs&^p.l.set != 0 && e.needs&^p.r.set != 0 || e.needs == 0 && bits.OnesCount64(p.set) == len(g.leaves) {
			j.conds = append(j.conds, e.cond)
			if e.class >= 0 {
				used[e.class] = true
			}
		}
	}
	return j
}

// defaultRows is assumed of tables without statistics.
const defaultRows = 10000

// tableRows is the number of rows of a scan before its filter.
func (o *optimizer) tableRows(s *scanRel) float64 {
	key := s.table.FullName() + "@" + strconv.FormatInt(s.snap.ID, 10)
	if n, ok := o.rows[key]; ok {
		return n
	}
	n := float64(defaultRows)
	switch {
	case !s.snap.Present:
		n = 0
	case o.env.Stats != nil:
		if rows, ok := o.env.Stats(o.ctx, &Scan{Table: s.table, Snapshot: s.snap, Limit: -1}); ok {
			n = float64(rows)
			break
		}
		fallthrough
	default:
		if m := s.table.Metadata.SnapshotByID(s.snap.ID); m != nil && m.Summary != nil {
			if rows, err := strconv.ParseFloat(m.Summary.Properties["total-records"], 64); err == nil {
				n = rows
			}
		}
	}
	o.rows[key] = n
	return n
}

// estimate guesses the rows that a tree gives.
func (o *optimizer) estimate(r rel) float64 {
	n, ok := o.est[r]
	if !ok {
		n = o.guess(r)
		o.est[r] = n
	}
	return n
}

func (o *optimizer) guess(r rel) float64 {
	switch n := r.(type) {
	case *scanRel:
		rows := o.tableRows(n)
		sel := selectivity(n.conds)
		for _, c := range n.conds {
			eq, ok := c.(*expr.Compare)
			if !ok || eq.Op != expr.Eq {
				continue
			}
			if known, ok := o.equalityShare(n, eq); ok {
				sel *= known / equalShare
			} else if rows < smallTable {
				sel *= 1 / max(rows, 1) / equalShare // in a small table values are nearly unique
			}
		}
		return max(rows*sel, 1)
	case *valuesRel:
		return float64(len(n.rows))
	case *filterRel:
		return max(o.estimate(n.in)*selectivity(n.conds), 1)
	case *aggRel:
		if len(n.keys) == 0 {
			return 1
		}
		in := o.estimate(n.in)
		groups := 1.0
		for _, k := range n.keys {
			d := 100.0
			if ids := expr.Columns(k); len(ids) == 1 {
				if _, ok := k.(*expr.Column); ok {
					d = o.base(n.in, ids[0])
					if known, _, ok := o.values(n.in, ids[0]); ok {
						d = known
					}
				}
			}
			groups *= d
		}
		return max(min(groups, in*0.5), 1)
	case *joinRel:
		l, rr := o.estimate(n.l), o.estimate(n.r)
		switch n.kind {
		case Semi, Anti, NullAwareAnti:
			return max(l*0.5, 1)
		case Mark, Single:
			return l
		}
		g := o.graph([]rel{n.l, n.r}, n.conds)
		sel, _ := g.between(1, 2)
		rows := max(l*rr*sel, 1)
		switch n.kind {
		case Left:
			rows = max(rows, l)
		case Right:
			rows = max(rows, rr)
		case Full:
			rows = max(rows, l, rr)
		}
		return rows
	case *limitRel:
		if n.count >= 0 {
			return min(float64(n.count), o.estimate(n.in))
		}
		return o.estimate(n.in)
	case *sortRel:
		if n.limit >= 0 {
			return min(float64(n.limit), o.estimate(n.in))
		}
		return o.estimate(n.in)
	case *unionRel:
		sum := 0.0
		for _, k := range n.ins {
			sum += o.estimate(k)
		}
		return sum
	case *unnestRel:
		return o.estimate(n.in) * 5
	case *spoolRel:
		return o.estimate(n.sp.in)
	case *oneRowRel:
		return 1
	}
	if kids := r.kids(); len(kids) > 0 {
		return o.estimate(kids[0])
	}
	return 1
}

const (
	equalShare = 0.1  // of the rows meet an equality with a constant
	smallTable = 1000 // rows
)

// selectivity guesses the share of rows that pass; several predicates on the same table are not fully independent.
func selectivity(conds []expr.Expr) float64 {
	s := 1.0
	for _, c := range conds {
		s *= share(c)
	}
	return s
}

func share(c expr.Expr) float64 {
	switch n := c.(type) {
	case *expr.Compare:
		switch n.Op {
		case expr.Eq, expr.NotDistinct:
			return equalShare
		case expr.Ne, expr.Distinct:
			return 0.9
		}
		return 0.4
	case *expr.In:
		s := min(0.05*float64(len(n.List)), 0.5)
		if n.Negated {
			return 1 - s
		}
		return s
	case *expr.Like:
		if n.Negated {
			return 0.9
		}
		return 0.1
	case *expr.IsNull:
		if n.Negated {
			return 0.95
		}
		return 0.05
	case *expr.And:
		return selectivity(n.Args)
	case *expr.Or:
		s := 0.0
		for _, a := range n.Args {
			s += share(a)
		}
		return min(s, 0.9)
	case *expr.Not:
		return max(1-share(n.Arg), 0.1)
	}
	return 0.3
}
