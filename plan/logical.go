package plan

import (
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// A rel is an operator of the logical plan, in which the binder and the passes work. Columns have ids that are unique in the statement,
// and an expr.Column of the logical plan holds such an id as its Index. So joins can be reordered and predicates moved
// without renumbering; lower makes positions of ids at the very end. Rels are immutable once the binder is done: passes copy.
type rel interface {
	out() []int // ids of the output columns, in order
	kids() []rel
	with(kids []rel) rel
	// exprs calls f on every expression of the node itself.
	exprs(f func(expr.Expr))
	// rewrite copies the node with its expressions and the ids of the columns it makes replaced. ids may be nil.
	rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel
}

// columns describes all columns of a statement by id.
type columns struct{ list []Column }

func (c *columns) add(name string, t vector.Type, nullable bool) int {
	c.list = append(c.list, Column{Name: name, Type: t, Nullable: nullable})
	return len(c.list) - 1
}

func (c *columns) ref(id int) *expr.Column {
	x := c.list[id]
	return &expr.Column{Index: id, Name: x.Name, Typ: x.Type, Null: x.Nullable}
}

type scanRel struct {
	table  *catalog.Table
	snap   catalog.Snapshot
	change *catalog.Change       // of table_changes; nil else
	fields []iceberg.NestedField // of cols
	cols   []int                 // all columns that the statement names
	need   []int                 // the columns that leave the scan, in order; nil until pruning: all
	conds  []expr.Expr
	limit  int64
	rfs    []scanFilter
	sample *sampleSpec
	parts  map[int]*vector.VariantParts // by column: what is used of a variant; nil: all
}

// sampleSpec keeps a share of the rows.
type sampleSpec struct{ fraction float64 }

// scanFilter narrows a column of a scan by a join's build side.
type scanFilter struct{ id, col int }

type valuesRel struct {
	rows [][]expr.Expr
	cols []int
}

type filterRel struct {
	in    rel
	conds []expr.Expr
}

// projectRel computes exprs; cols[i] is the id of exprs[i]. A column that passes keeps its id.
type projectRel struct {
	in    rel
	list  []expr.Expr
	cols  []int
	names []string // names of the output where they differ from the columns'; nil else
	// guard keeps predicates that may fail above: they would tell of rows that an access policy hides.
	guard bool
}

type aggRel struct {
	in      rel
	keys    []expr.Expr
	keyCols []int
	sets    [][]int
	gid     int // id of the grouping column; only with sets
	aggs    []*expr.Aggregate
	aggCols []int
}

type joinRel struct {
	kind  JoinKind
	l, r  rel
	conds []expr.Expr
	mark  int // id of the Mark column
	rfs   []joinFilter
	// reduced says that the join-order pass has looked at a semi or anti join already.
	reduced bool
}

// joinFilter says that the build key right of the condition narrows scans under filter id.
type joinFilter struct {
	id   int
	cond int // index in conds
}

// applyRel joins every row of l with the rows that r gives for it; r refers to columns of l. The decorrelation pass makes joins of all
// applies.
type applyRel struct {
	kind  JoinKind // Inner, Left, Semi, Anti, Mark, Single
	l, r  rel
	conds []expr.Expr
	mark  int
}

type sortRel struct {
	in            rel
	keys          []expr.SortKey
	limit, offset int64
	ties          bool
}

type limitRel struct {
	in                    rel
	count, offset         int64
	countExpr, offsetExpr expr.Expr
}

// unionRel passes the rows of its inputs; maps[i] lists the columns of input i in the order of cols.
type unionRel struct {
	ins  []rel
	maps [][]int
	cols []int
}

type setRel struct {
	except, all  bool
	l, r         rel
	lcols, rcols []int
	cols         []int
}

type windowRel struct {
	in    rel
	part  []expr.Expr
	order []expr.SortKey
	calls []*expr.WindowCall
	cols  []int
}

type unnestRel struct {
	in         rel
	args       []expr.Expr
	outer      bool
	ordinality bool
	cols       []int // element columns, then the ordinality
}

// spool is a plan that is computed once; spoolRel is a use of it, with ids of its own.
type spool struct {
	id int
	in rel
}

type spoolRel struct {
	sp   *spool
	src  []int // columns of sp.in
	cols []int
}

// oneRowRel checks that its input has at most one row and gives nulls when it has none.
type oneRowRel struct{ in rel }

func (r *scanRel) out() []int {
	if r.need == nil {
		return r.cols
	}
	return r.need
}
func (r *valuesRel) out() []int  { return r.cols }
func (r *filterRel) out() []int  { return r.in.out() }
func (r *projectRel) out() []int { return r.cols }
func (r *aggRel) out() []int {
	o := slices.Clone(r.keyCols)
	if r.sets != nil {
		o = append(o, r.gid)
	}
	return append(o, r.aggCols...)
}

func joinOut(kind JoinKind, l, r rel, mark int) []int {
	switch kind {
	case Semi, Anti, NullAwareAnti:
		return l.out()
	case Mark:
		return append(slices.Clone(l.out()), mark)
	}
	return append(slices.Clone(l.out()), r.out()...)
}
func (r *joinRel) out() []int   { return joinOut(r.kind, r.l, r.r, r.mark) }
func (r *applyRel) out() []int  { return joinOut(r.kind, r.l, r.r, r.mark) }
func (r *sortRel) out() []int   { return r.in.out() }
func (r *limitRel) out() []int  { return r.in.out() }
func (r *unionRel) out() []int  { return r.cols }
func (r *setRel) out() []int    { return r.cols }
func (r *windowRel) out() []int { return append(slices.Clone(r.in.out()), r.cols...) }
func (r *unnestRel) out() []int { return append(slices.Clone(r.in.out()), r.cols...) }
func (r *spoolRel) out() []int  { return r.cols }
func (r *oneRowRel) out() []int { return r.in.out() }

func (r *scanRel) kids() []rel    { return nil }
func (r *valuesRel) kids() []rel  { return nil }
func (r *filterRel) kids() []rel  { return []rel{r.in} }
func (r *projectRel) kids() []rel { return []rel{r.in} }
func (r *aggRel) kids() []rel     { return []rel{r.in} }
func (r *joinRel) kids() []rel    { return []rel{r.l, r.r} }
func (r *applyRel) kids() []rel   { return []rel{r.l, r.r} }
func (r *sortRel) kids() []rel    { return []rel{r.in} }
func (r *limitRel) kids() []rel   { return []rel{r.in} }
func (r *unionRel) kids() []rel   { return r.ins }
func (r *setRel) kids() []rel     { return []rel{r.l, r.r} }
func (r *windowRel) kids() []rel  { return []rel{r.in} }
func (r *unnestRel) kids() []rel  { return []rel{r.in} }
func (r *spoolRel) kids() []rel   { return nil }
func (r *oneRowRel) kids() []rel  { return []rel{r.in} }

func (r *scanRel) with([]rel) rel     { return r }
func (r *valuesRel) with([]rel) rel   { return r }
func (r *filterRel) with(k []rel) rel { c := *r; c.in = k[0]; return &c }
func (r *projectRel) with(k []rel) rel {
	c := *r
	c.in = k[0]
	return &c
}
func (r *aggRel) with(k []rel) rel    { c := *r; c.in = k[0]; return &c }
func (r *joinRel) with(k []rel) rel   { c := *r; c.l, c.r = k[0], k[1]; return &c }
func (r *applyRel) with(k []rel) rel  { c := *r; c.l, c.r = k[0], k[1]; return &c }
func (r *sortRel) with(k []rel) rel   { c := *r; c.in = k[0]; return &c }
func (r *limitRel) with(k []rel) rel  { c := *r; c.in = k[0]; return &c }
func (r *unionRel) with(k []rel) rel  { c := *r; c.ins = k; return &c }
func (r *setRel) with(k []rel) rel    { c := *r; c.l, c.r = k[0], k[1]; return &c }
func (r *windowRel) with(k []rel) rel { c := *r; c.in = k[0]; return &c }
func (r *unnestRel) with(k []rel) rel { c := *r; c.in = k[0]; return &c }
func (r *spoolRel) with([]rel) rel    { return r }
func (r *oneRowRel) with(k []rel) rel { return &oneRowRel{k[0]} }

func each(es []expr.Expr, f func(expr.Expr)) {
	for _, e := range es {
		f(e)
	}
}

func eachKey(ks []expr.SortKey, f func(expr.Expr)) {
	for _, k := range ks {
		f(k.Expr)
	}
}

func (r *scanRel) exprs(f func(expr.Expr)) { each(r.conds, f) }
func (r *valuesRel) exprs(f func(expr.Expr)) {
	for _, row := range r.rows {
		each(row, f)
	}
}
func (r *filterRel) exprs(f func(expr.Expr))  { each(r.conds, f) }
func (r *projectRel) exprs(f func(expr.Expr)) { each(r.list, f) }
func (r *aggRel) exprs(f func(expr.Expr)) {
	each(r.keys, f)
	for _, a := range r.aggs {
		each(a.Children(), f)
	}
}
func (r *joinRel) exprs(f func(expr.Expr))  { each(r.conds, f) }
func (r *applyRel) exprs(f func(expr.Expr)) { each(r.conds, f) }
func (r *sortRel) exprs(f func(expr.Expr))  { eachKey(r.keys, f) }
func (r *limitRel) exprs(f func(expr.Expr)) {
	if r.countExpr != nil {
		f(r.countExpr)
	}
	if r.offsetExpr != nil {
		f(r.offsetExpr)
	}
}
func (r *unionRel) exprs(func(expr.Expr)) {}
func (r *setRel) exprs(func(expr.Expr))   {}
func (r *windowRel) exprs(f func(expr.Expr)) {
	each(r.part, f)
	eachKey(r.order, f)
	for _, c := range r.calls {
		if c.Agg != nil {
			each(c.Agg.Children(), f)
		} else {
			each(c.Args, f)
		}
		for _, b := range []expr.Bound{c.Frame.Start, c.Frame.End} {
			if b.Offset != nil {
				f(b.Offset)
			}
		}
	}
}
func (r *unnestRel) exprs(f func(expr.Expr)) { each(r.args, f) }
func (r *spoolRel) exprs(func(expr.Expr))    {}
func (r *oneRowRel) exprs(func(expr.Expr))   {}

func mapIDs(ids []int, f func(int) int) []int {
	if f == nil || ids == nil {
		return ids
	}
	o := make([]int, len(ids))
	for i, x := range ids {
		o[i] = f(x)
	}
	return o
}

func mapExprs(es []expr.Expr, f func(expr.Expr) expr.Expr) []expr.Expr {
	if es == nil {
		return nil
	}
	o := make([]expr.Expr, len(es))
	for i, e := range es {
		o[i] = f(e)
	}
	return o
}

func mapKeys(ks []expr.SortKey, f func(expr.Expr) expr.Expr) []expr.SortKey {
	o := slices.Clone(ks)
	for i := range o {
		o[i].Expr = f(o[i].Expr)
	}
	return o
}

func mapAgg(a *expr.Aggregate, f func(expr.Expr) expr.Expr) *expr.Aggregate {
	kids := a.Children()
	if len(kids) == 0 {
		return a
	}
	return a.With(mapExprs(kids, f))
}

func mapCall(c *expr.WindowCall, f func(expr.Expr) expr.Expr) *expr.WindowCall {
	n := *c
	if c.Agg != nil {
		n.Agg = mapAgg(c.Agg, f)
		n.Args = n.Agg.Args
	} else {
		n.Args = mapExprs(c.Args, f)
	}
	if b := &n.Frame.Start; b.Offset != nil {
		b.Offset = f(b.Offset)
	}
	if b := &n.Frame.End; b.Offset != nil {
		b.Offset = f(b.Offset)
	}
	return &n
}

func one(id int, f func(int) int) int {
	if f == nil {
		return id
	}
	return f(id)
}

func (r *scanRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.cols, c.need, c.conds = mapIDs(r.cols, ids), mapIDs(r.need, ids), mapExprs(r.conds, f)
	return &c
}

func (r *valuesRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := &valuesRel{cols: mapIDs(r.cols, ids), rows: make([][]expr.Expr, len(r.rows))}
	for i, row := range r.rows {
		c.rows[i] = mapExprs(row, f)
		if row == nil {
			c.rows[i] = []expr.Expr{}
		}
	}
	return c
}

func (r *filterRel) rewrite(_ func(int) int, f func(expr.Expr) expr.Expr) rel {
	return &filterRel{r.in, mapExprs(r.conds, f)}
}

func (r *projectRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	return &projectRel{in: r.in, list: mapExprs(r.list, f), cols: mapIDs(r.cols, ids), names: r.names, guard: r.guard}
}

func (r *aggRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.keys, c.keyCols, c.aggCols, c.gid = mapExprs(r.keys, f), mapIDs(r.keyCols, ids), mapIDs(r.aggCols, ids), one(r.gid, ids)
	c.aggs = make([]*expr.Aggregate, len(r.aggs))
	for i, a := range r.aggs {
		c.aggs[i] = mapAgg(a, f)
	}
	return &c
}

func (r *joinRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.conds, c.mark = mapExprs(r.conds, f), one(r.mark, ids)
	return &c
}

func (r *applyRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.conds, c.mark = mapExprs(r.conds, f), one(r.mark, ids)
	return &c
}

func (r *sortRel) rewrite(_ func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.keys = mapKeys(r.keys, f)
	return &c
}

func (r *limitRel) rewrite(_ func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	if c.countExpr != nil {
		c.countExpr = f(c.countExpr)
	}
	if c.offsetExpr != nil {
		c.offsetExpr = f(c.offsetExpr)
	}
	return &c
}

func (r *unionRel) rewrite(ids func(int) int, _ func(expr.Expr) expr.Expr) rel {
	c := &unionRel{ins: r.ins, cols: mapIDs(r.cols, ids), maps: make([][]int, len(r.maps))}
	for i, m := range r.maps {
		c.maps[i] = mapIDs(m, ids)
	}
	return c
}

func (r *setRel) rewrite(ids func(int) int, _ func(expr.Expr) expr.Expr) rel {
	c := *r
	c.lcols, c.rcols, c.cols = mapIDs(r.lcols, ids), mapIDs(r.rcols, ids), mapIDs(r.cols, ids)
	return &c
}

func (r *windowRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.part, c.order, c.cols = mapExprs(r.part, f), mapKeys(r.order, f), mapIDs(r.cols, ids)
	c.calls = make([]*expr.WindowCall, len(r.calls))
	for i, w := range r.calls {
		c.calls[i] = mapCall(w, f)
	}
	return &c
}

func (r *unnestRel) rewrite(ids func(int) int, f func(expr.Expr) expr.Expr) rel {
	c := *r
	c.args, c.cols = mapExprs(r.args, f), mapIDs(r.cols, ids)
	return &c
}

func (r *spoolRel) rewrite(ids func(int) int, _ func(expr.Expr) expr.Expr) rel {
	return &spoolRel{sp: r.sp, src: r.src, cols: mapIDs(r.cols, ids)}
}

func (r *oneRowRel) rewrite(func(int) int, func(expr.Expr) expr.Expr) rel { return r }

// mapRel rebuilds a tree bottom-up.
func mapRel(r rel, f func(rel) rel) rel {
	kids := r.kids()
	if len(kids) == 0 {
		return f(r)
	}
	n := make([]rel, len(kids))
	changed := false
	for i, k := range kids {
		n[i] = mapRel(k, f)
		changed = changed || n[i] != k
	}
	if changed {
		r = r.with(n)
	}
	return f(r)
}

// substitute replaces columns in all expressions of a tree.
func substitute(r rel, m map[int]expr.Expr) rel {
	if len(m) == 0 {
		return r
	}
	f := func(e expr.Expr) expr.Expr { return replaceColumns(e, m) }
	return mapRel(r, func(x rel) rel { return x.rewrite(nil, f) })
}

func replaceColumns(e expr.Expr, m map[int]expr.Expr) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok {
			if n := m[c.Index]; n != nil {
				return n
			}
		}
		return x
	})
}

// clone copies a tree with fresh ids for every column it makes. It gives the map from old ids to new ones.
func (c *columns) clone(r rel) (rel, map[int]int) {
	m := map[int]int{}
	var made func(rel)
	made = func(x rel) {
		for _, k := range x.kids() {
			made(k)
		}
		for _, id := range x.out() {
			if _, ok := m[id]; !ok {
				x := c.list[id]
				m[id] = c.add(x.Name, x.Type, x.Nullable)
			}
		}
		if s, ok := x.(*scanRel); ok {
			for _, id := range s.cols {
				if _, ok := m[id]; !ok {
					x := c.list[id]
					m[id] = c.add(x.Name, x.Type, x.Nullable)
				}
			}
		}
	}
	made(r)
	id := func(i int) int {
		if n, ok := m[i]; ok {
			return n
		}
		return i
	}
	f := func(e expr.Expr) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if k, ok := x.(*expr.Column); ok {
				if n, ok := m[k.Index]; ok {
					d := *k
					d.Index = n
					return &d
				}
			}
			return x
		})
	}
	return mapRel(r, func(x rel) rel { return x.rewrite(id, f) }), m
}

// idSet is a set of column ids.
type idSet map[int]bool

func setOf(ids []int) idSet {
	s := make(idSet, len(ids))
	for _, id := range ids {
		s[id] = true
	}
	return s
}

func (s idSet) hasAll(ids []int) bool {
	for _, id := range ids {
		if !s[id] {
			return false
		}
	}
	return true
}

func (s idSet) hasAny(ids []int) bool {
	for _, id := range ids {
		if s[id] {
			return true
		}
	}
	return false
}

// free lists the columns that a tree uses and does not make: its correlation.
func free(r rel) []int {
	made, used := idSet{}, idSet{}
	var walk func(rel)
	walk = func(x rel) {
		for _, k := range x.kids() {
			walk(k)
		}
		for _, id := range x.out() {
			made[id] = true
		}
		if s, ok := x.(*scanRel); ok {
			for _, id := range s.cols {
				made[id] = true
			}
		}
		x.exprs(func(e expr.Expr) {
			for _, id := range expr.Columns(e) {
				used[id] = true
			}
		})
	}
	walk(r)
	var ids []int
	for id := range used {
		if !made[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
