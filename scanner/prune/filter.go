package prune

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// Column is a primitive column, perhaps within structs, that a filter speaks of.
type Column struct {
	// ID is the Iceberg field id.
	ID   int
	Type vector.Type
	// Position and Path locate it: the column of the request's projection and the fields within.
	Position int
	Path     []int
	// Names are the fields of a variant's objects that lead to the column; Type is what the value there is cast to. The
	// column may be null in any row.
	Names []string
}

// Filter is a row filter prepared for pruning.
type Filter struct {
	conjuncts []conjunct
	columns   []Column
}

type conjunct struct {
	text string
	node *node
}

// outcome is a set of truth values.
type outcome uint8

const (
	isTrue outcome = 1 << iota
	isFalse
	isNull
	anything = isTrue | isFalse | isNull
)

type nodeOp uint8

const (
	opConst nodeOp = iota // mask
	opAnd
	opOr
	opNot
	opCompare  // cmp, l, r
	opIn       // l, list
	opIsNull   // l
	opPrefix   // l starts with list[0]; whole: and nothing else is asked
	opBoolTerm // l is a boolean
)

type node struct {
	op       nodeOp
	kids     []*node
	cmp      expr.CompareOp
	l, r     *term
	list     []datum // ascending; of a UUID in unsigned order
	listNull bool
	whole    bool
	mask     outcome
}

// term is an operand: a constant, a column, or a cast of a term.
type term struct {
	constant bool
	dom      Domain // of a constant
	column   int
	arg      *term // of a cast
	from, to vector.Type
	try      bool
}

// Compile prepares a filter; what it does not understand may have any outcome, so it never fails. column resolves a position
// of the projection and the path of fields within to a primitive column; ok is false when nothing can be known of it.
func Compile(filter expr.Expr, column func(position int, path []int) (Column, bool), ctx *expr.Context) *Filter {
	return CompileVariants(filter, column, nil, ctx)
}

// CompileVariants is Compile where casts of a variant's fields are columns too: variant resolves the position of the variant, the
// names of the fields and the type of the cast.
func CompileVariants(filter expr.Expr, column func(position int, path []int) (Column, bool),
	variant func(position int, names []string, to vector.Type) (Column, bool), ctx *expr.Context) *Filter {
	c := compiler{f: &Filter{}, column: column, variant: variant, ctx: ctx}
	if filter == nil {
		return c.f
	}
	for _, e := range expr.Conjuncts(filter) {
		c.f.conjuncts = append(c.f.conjuncts, conjunct{e.String(), c.node(e)})
	}
	return c.f
}

// Columns lists the columns that the filter speaks of.
func (f *Filter) Columns() []Column { return f.columns }

// Text is conjunct i as EXPLAIN shows it.
func (f *Filter) Text(i int) string { return f.conjuncts[i].text }

// Useless reports whether no conjunct can ever prune.
func (f *Filter) Useless() bool {
	for _, c := range f.conjuncts {
		if c.node.op != opConst || c.node.mask&isTrue == 0 {
			return false
		}
	}
	return true
}

// Source tells the domains of a filter's columns in some set of rows.
type Source interface {
	// Domain gives the domain of column i of Filter.Columns. It is valid until the next call for the same column.
	Domain(i int) *Domain
}

// Excludes gives the first conjunct that is true for no row of src; -1 when rows may match.
func (f *Filter) Excludes(src Source) int {
	for i := range f.conjuncts {
		if f.conjuncts[i].node.eval(src)&isTrue == 0 {
			return i
		}
	}
	return -1
}

// Len is the number of conjuncts.
func (f *Filter) Len() int { return len(f.conjuncts) }

// Rejects reports whether conjunct i is true for no row of src.
func (f *Filter) Rejects(i int, src Source) bool { return f.conjuncts[i].node.eval(src)&isTrue == 0 }

// Single is the one column that conjunct i speaks of, as far as pruning knows; -1 for none or several.
func (f *Filter) Single(i int) int {
	only := -1
	ok := true
	f.conjuncts[i].node.walk(func(t *term) {
		for t.arg != nil {
			t = t.arg
		}
		if !t.constant {
			ok = ok && (only < 0 || only == t.column)
			only = t.column
		}
	})
	if !ok {
		return -1
	}
	return only
}

func (n *node) walk(f func(*term)) {
	for _, t := range [2]*term{n.l, n.r} {
		if t != nil {
			f(t)
		}
	}
	for _, k := range n.kids {
		k.walk(f)
	}
}

// Equality says that a row can match only where the column has one of the values.
type Equality struct {
	Column   int // in Filter.Columns
	Conjunct int
	Values   []vector.Value
}

// Equalities lists the conjuncts that compare a bare column with constants by = or IN, for bloom filters and dictionaries.
func (f *Filter) Equalities() []Equality {
	var out []Equality
	for i, c := range f.conjuncts {
		n := c.node
		var t *term
		var list []datum
		switch {
		case n.op == opIn && !n.listNull:
			t, list = n.l, n.list
		case n.op == opCompare && n.cmp == expr.Eq && n.r.constant && n.r.dom.isPoint():
			t, list = n.l, []datum{n.r.dom.min}
		case n.op == opCompare && n.cmp == expr.Eq && n.l.constant && n.l.dom.isPoint():
			t, list = n.r, []datum{n.l.dom.min}
		}
		if t == nil {
			continue
		}
		for t.arg != nil && integerLike(t.from) && integerLike(t.to) {
			t = t.arg
		}
		if t.arg != nil || t.constant {
			continue
		}
		typ := f.columns[t.column].Type
		e := Equality{Column: t.column, Conjunct: i}
		for _, d := range list {
			if typ.Physical() == vector.PInt32 && d.i != int64(int32(d.i)) {
				continue // no value of the column equals it
			}
			e.Values = append(e.Values, d.value(typ))
		}
		out = append(out, e)
	}
	return out
}

type compiler struct {
	f      *Filter
	column func(position int, path []int) (Column, bool)
	// variant is nil where variants are not looked into.
	variant func(position int, names []string, to vector.Type) (Column, bool)
	ctx     *expr.Context
}

var unknown = &node{op: opConst, mask: anything}

func (c *compiler) kids(es []expr.Expr) []*node {
	out := make([]*node, len(es))
	for i, e := range es {
		out[i] = c.node(e)
	}
	return out
}

func (c *compiler) node(e expr.Expr) *node {
	switch e := e.(type) {
	case *expr.And:
		return &node{op: opAnd, kids: c.kids(e.Args)}
	case *expr.Or:
		return &node{op: opOr, kids: c.kids(e.Args)}
	case *expr.Not:
		return negate(c.node(e.Arg))
	case *expr.Compare:
		return c.compare(e)
	case *expr.IsNull:
		t := c.term(e.Arg)
		if t == nil {
			return unknown
		}
		n := &node{op: opIsNull, l: t}
		if e.Negated {
			return negate(n)
		}
		return n
	case *expr.In:
		return c.in(e)
	case *expr.Like:
		return c.like(e)
	case *expr.Call:
		return c.call(e)
	}
	if e.Type().Kind == vector.Boolean {
		if t := c.term(e); t != nil {
			return &node{op: opBoolTerm, l: t}
		}
	}
	return unknown
}

func negate(n *node) *node {
	if n == unknown {
		return n
	}
	return &node{op: opNot, kids: []*node{n}}
}

func (c *compiler) compare(e *expr.Compare) *node {
	l, r := c.term(e.L), c.term(e.R)
	if l == nil || r == nil || !comparable(e.L.Type(), e.R.Type()) {
		return unknown
	}
	return &node{op: opCompare, cmp: e.Op, l: l, r: r}
}

// comparable reports whether data of two types compare as they are held.
func comparable(a, b vector.Type) bool {
	if a.Kind == vector.Null || b.Kind == vector.Null {
		return true
	}
	if classOf(a) != classOf(b) || classOf(a) == cNone {
		return false
	}
	switch {
	case a.Kind == vector.Decimal || b.Kind == vector.Decimal:
		return a.Kind == b.Kind && a.Scale == b.Scale
	case a.Kind == vector.Timestamp || a.Kind == vector.TimestampTZ:
		return a.Kind == b.Kind && a.Nanos() == b.Nanos()
	case a.Integral():
		return b.Integral()
	case floatLike(a):
		return floatLike(b)
	}
	return a.Kind == b.Kind
}

func (c *compiler) in(e *expr.In) *node {
	t := c.term(e.Arg)
	if t == nil || classOf(e.Arg.Type()) == cNone {
		return unknown
	}
	n := &node{op: opIn, l: t}
	for _, x := range e.List {
		v, ok := c.constant(x)
		if !ok || !comparable(e.Arg.Type(), x.Type()) {
			return unknown
		}
		if v == nil {
			n.listNull = true
			continue
		}
		d, ok := datumOf(x.Type(), v)
		if !ok {
			return unknown
		}
		if d.f == d.f { // nothing equals NaN
			n.list = append(n.list, d)
		}
	}
	cl := classOf(e.Arg.Type())
	slices.SortFunc(n.list, func(a, b datum) int { return compare(cl, &a, &b, false) })
	if e.Negated {
		return negate(n)
	}
	return n
}

// like prunes by what stands before the first wildcard of a constant pattern.
func (c *compiler) like(e *expr.Like) *node {
	t := c.term(e.Arg)
	v, ok := c.constant(e.Pattern)
	pattern, isText := v.(string)
	if t == nil || !ok || !isText || e.CaseInsensitive || e.Arg.Type().Kind != vector.Varchar {
		return unknown
	}
	var prefix []byte
	rest, escaped := "", false
	for i, r := range pattern {
		if escaped {
			prefix, escaped = append(prefix, string(r)...), false
			continue
		}
		if e.Escape != 0 && r == e.Escape {
			escaped = true
			continue
		}
		if r == '%' || r == '_' {
			rest = pattern[i:]
			break
		}
		prefix = append(prefix, string(r)...)
	}
	n := &node{op: opPrefix, l: t, list: []datum{{s: prefix}}, whole: rest == "%"}
	if rest == "" {
		n = &node{op: opIn, l: t, list: n.list}
	}
	if e.Negated {
		return negate(n)
	}
	return n
}

func (c *compiler) call(e *expr.Call) *node {
	if e.Fn != nil && e.Fn.Name == "starts_with" && len(e.Args) == 2 {
		t := c.term(e.Args[0])
		v, ok := c.constant(e.Args[1])
		if s, isText := v.(string); t != nil && ok && isText && e.Args[0].Type().Kind == vector.Varchar {
			return &node{op: opPrefix, l: t, list: []datum{{s: []byte(s)}}, whole: true}
		}
	}
	return unknown
}

// constant gives the value of an expression without columns; ok is false when it has none.
func (c *compiler) constant(e expr.Expr) (vector.Value, bool) {
	if l, ok := e.(*expr.Literal); ok {
		return l.Value, true
	}
	if len(expr.Columns(e)) > 0 || expr.Volatile(e) || c.ctx == nil || hasLambdaVar(e) {
		return nil, false
	}
	v, err := expr.EvalConst(e, c.ctx)
	return v, err == nil
}

func hasLambdaVar(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if _, ok := x.(*expr.LambdaVar); ok {
			found = true
		}
		return !found
	})
	return found
}

// term resolves an operand; nil when nothing can be known of it.
func (c *compiler) term(e expr.Expr) *term {
	switch e := e.(type) {
	case *expr.Column, *expr.FieldAccess:
		return c.leaf(e)
	case *expr.Cast:
		if v, ok := c.constant(e); ok {
			return &term{constant: true, dom: point(e.To, v)}
		}
		if t := c.variantLeaf(e); t != nil {
			return t
		}
		arg := c.term(e.Arg)
		if arg == nil {
			return nil
		}
		if _, ok := castDomain(Any(e.Arg.Type()), e.Arg.Type(), e.To); !ok {
			return nil
		}
		return &term{arg: arg, from: e.Arg.Type(), to: e.To, try: e.Try}
	}
	if v, ok := c.constant(e); ok {
		return &term{constant: true, dom: point(e.Type(), v)}
	}
	return nil
}

// variantLeaf resolves the cast of a field of a variant column.
func (c *compiler) variantLeaf(e *expr.Cast) *term {
	var names []string
	x := e.Arg
	for {
		call, ok := x.(*expr.Call)
		if !ok {
			break
		}
		v, more, exact, ok := expr.VariantPart(call)
		if !ok || !exact || call.Typ.Kind != vector.Variant {
			return nil
		}
		x, names = v, append(more, names...)
	}
	col, ok := x.(*expr.Column)
	if !ok || c.variant == nil || col.Typ.Kind != vector.Variant {
		return nil
	}
	found, ok := c.variant(col.Index, names, e.To)
	if !ok {
		return nil
	}
	found.Names = names
	c.f.columns = append(c.f.columns, found)
	return &term{column: len(c.f.columns) - 1}
}

func (c *compiler) leaf(e expr.Expr) *term {
	var path []int
	for {
		switch x := e.(type) {
		case *expr.FieldAccess:
			path = append(path, x.Index)
			e = x.Arg
			continue
		case *expr.Column:
			slices.Reverse(path)
			col, ok := c.column(x.Index, path)
			if !ok {
				return nil
			}
			for i, have := range c.f.columns {
				if have.ID == col.ID {
					return &term{column: i}
				}
			}
			c.f.columns = append(c.f.columns, col)
			return &term{column: len(c.f.columns) - 1}
		}
		return nil
	}
}

func (t *term) domain(src Source) Domain {
	if t.constant {
		return t.dom
	}
	if t.arg == nil {
		return *src.Domain(t.column)
	}
	d, ok := castDomain(t.arg.domain(src), t.from, t.to)
	if !ok {
		return Any(t.to)
	}
	if t.try && d.mayValue {
		d.mayNull = true
	}
	return d
}
