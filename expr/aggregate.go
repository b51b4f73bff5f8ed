package expr

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Accumulator holds the states of an aggregate for any number of groups. It belongs to one goroutine.
type Accumulator interface {
	// Resize makes room for groups 0..n-1; new ones are empty.
	Resize(n int)
	// Add feeds the selected rows (nil: 0..n-1). groups has the group of each selected row in turn; nil means that all are of
	// group 0. args are the vectors of Aggregate.Inputs.
	Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error
	// Merge adds group g of src, an accumulator of the same aggregate, to group to[g], unless that is NoGroup. No group of src is
	// merged twice, and src is not added to again. Several may merge different groups of src at once.
	Merge(src Accumulator, to []uint32) error
	// Result gives the values of groups lo..hi-1 as a flat vector of the aggregate's type.
	Result(lo, hi int) (*vector.Vector, error)
	// Bytes is the memory held.
	Bytes() int64
}

// NoGroup marks groups that Merge leaves out.
const NoGroup = ^uint32(0)

// aggSig is an overload of an aggregate function.
type aggSig struct {
	params []pattern
	// lambdas are the parameters after params that take a lambda.
	lambdas []pattern
	ret     pattern
	result  func(args []vector.Type) (vector.Type, error)
	check   func(args []Expr) error
	make    func(a *Aggregate, ctx *Context) (Accumulator, error)
	// notNull: the result is never null (count).
	notNull bool
	// ordered: the order of the rows matters, so ORDER BY is kept.
	ordered bool
	// distinctFree: DISTINCT changes nothing (min, max).
	distinctFree bool
}

var aggregates = map[string]*AggregateFunction{}

func defAgg(names, sig, doc string, mk func(a *Aggregate, ctx *Context) (Accumulator, error), opts ...func(*aggSig)) {
	for _, name := range strings.Fields(names) {
		f := aggregates[name]
		if f == nil {
			f = &AggregateFunction{Name: name, doc: doc}
			aggregates[name] = f
		}
		s := &aggSig{make: mk}
		s.params, _, s.ret = parseSignature(sig)
		if k := slices.IndexFunc(s.params, func(p pattern) bool { return p.name == "function" }); k >= 0 {
			s.params, s.lambdas = s.params[:k:k], s.params[k:]
		}
		for _, o := range opts {
			o(s)
		}
		f.sigs = append(f.sigs, s)
	}
}

// IsAggregate reports whether name is an aggregate function.
func IsAggregate(name string) bool { return aggregates[strings.ToLower(name)] != nil }

// NewAggregate makes a typed aggregate call. count(*) is "count" without arguments.
func NewAggregate(name string, args []Expr, distinct bool, filter Expr, orderBy []SortKey) (*Aggregate, error) {
	f := aggregates[strings.ToLower(name)]
	if f == nil {
		return nil, notFound(name)
	}
	if len(args) == 1 && len(orderBy) == 1 && (f.Name == "percentile_cont" || f.Name == "percentile_disc") {
		// percentile_cont(share) WITHIN GROUP (ORDER BY x)
		share := args[0]
		if orderBy[0].Desc {
			var err error
			if share, err = NewCall("-", []Expr{&Literal{Value: 1.0, Typ: double}, share}); err != nil {
				return nil, err
			}
		}
		args, orderBy = []Expr{orderBy[0].Expr, share}, nil
	}
	as := make([]Arg, len(args))
	for i, a := range args {
		as[i] = a
	}
	var sig *aggSig
	var best *match
	for _, texts := range []bool{false, true} {
		for _, s := range f.sigs {
			if len(s.params) != len(args) {
				continue
			}
			m := matchPatterns(s.params, as, texts, false)
			if m != nil && (best == nil || m.cost < best.cost) {
				sig, best = s, m
			}
		}
		if best != nil {
			break
		}
	}
	if sig == nil {
		var got, takes []string
		for _, a := range args {
			got = append(got, a.Type().String())
		}
		for _, s := range f.sigs {
			takes = append(takes, f.Name+"("+patternList(slices.Concat(s.params, s.lambdas), false)+")")
		}
		return nil, noOverload(f.Name, got, takes)
	}
	es, err := bindArgs(f.Name, sig.params, best, as)
	if err != nil {
		return nil, err
	}
	a := &Aggregate{Fn: f, Args: es, Distinct: distinct, Null: !sig.notNull}
	if sig.result != nil {
		types := make([]vector.Type, len(es))
		for i, e := range es {
			types[i] = e.Type()
		}
		if a.Typ, err = sig.result(types); err != nil {
			return nil, err
		}
	} else {
		t, ok := best.resolve(sig.ret)
		if !ok {
			return nil, mismatch("%s: the type of the result cannot be told from its arguments", f.Name)
		}
		a.Typ = t
	}
	if sig.check != nil {
		if err := sig.check(es); err != nil {
			return nil, err
		}
	}
	if distinct && len(args) == 0 {
		return nil, fault.WithID(fault.Invalid, "SYNTAX_ERROR", "%s(DISTINCT) needs an argument", f.Name)
	}
	if distinct {
		for _, e := range es {
			if !comparableType(e.Type()) {
				return nil, mismatch("DISTINCT needs comparable values, not %s", e.Type())
			}
		}
	}
	if distinct && sig.distinctFree {
		a.Distinct = false
	}
	if filter != nil {
		if a.Filter, err = asBoolean("FILTER", filter); err != nil {
			return nil, err
		}
	}
	for _, k := range orderBy {
		if !Orderable(k.Expr.Type()) {
			return nil, mismatch("ORDER BY needs an orderable type, not %s", k.Expr.Type())
		}
	}
	if sig.ordered {
		a.OrderBy = orderBy
	}
	return a, nil
}

// sig finds the overload that the arguments of a were bound to.
func (a *Aggregate) sig() *aggSig {
	as := make([]Arg, len(a.Args))
	for i, e := range a.Args {
		as[i] = e
	}
	var sig *aggSig
	var best *match
	for _, s := range a.Fn.sigs {
		if len(s.params) != len(as) {
			continue
		}
		if m := matchPatterns(s.params, as, false, false); m != nil && (best == nil || m.cost < best.cost) {
			sig, best = s, m
		}
	}
	return sig
}

// Inputs are the expressions whose values an Accumulator is fed: the arguments, then the sort keys.
func (a *Aggregate) Inputs() []Expr {
	in := append([]Expr(nil), a.Args...)
	for _, k := range a.OrderBy {
		in = append(in, k.Expr)
	}
	return in
}

// NewAccumulator makes an accumulator for a, with its DISTINCT and ORDER BY. The FILTER is the caller's.
func NewAccumulator(a *Aggregate, ctx *Context) (Accumulator, error) {
	sig := a.sig()
	if sig == nil {
		return nil, internal("no overload of %s fits its bound arguments", a.Fn.Name)
	}
	acc, err := sig.make(a, ctx)
	if err != nil {
		return nil, err
	}
	if len(a.OrderBy) > 0 {
		acc = newOrdered(a, acc)
	}
	if a.Distinct {
		acc = newDistinct(a, acc)
	}
	return acc, nil
}

// window describes a function that only makes sense over a window.
type window struct {
	args, ret, doc string
	lo, hi         int // number of arguments
}

var windows = map[string]window{
	"row_number":   {"", "bigint", "number of the row in its partition, from 1", 0, 0},
	"rank":         {"", "bigint", "rank with gaps", 0, 0},
	"dense_rank":   {"", "bigint", "rank without gaps", 0, 0},
	"percent_rank": {"", "double", "(rank - 1) / (rows - 1)", 0, 0},
	"cume_dist":    {"", "double", "share of the rows that are not after this one", 0, 0},
	"ntile":        {"bigint", "bigint", "number of the bucket, from 1", 1, 1},
	"lag":          {"T, bigint, T", "T", "value of an earlier row", 1, 3},
	"lead":         {"T, bigint, T", "T", "value of a later row", 1, 3},
	"first_value":  {"T", "T", "value of the first row of the frame", 1, 1},
	"last_value":   {"T", "T", "value of the last row of the frame", 1, 1},
	"nth_value":    {"T, bigint", "T", "value of the n-th row of the frame", 2, 2},
}

// IsWindow reports whether name can be called over a window but not as an aggregate.
func IsWindow(name string) bool {
	_, ok := windows[strings.ToLower(name)]
	return ok
}

// ReadsValues reports whether a window function reads the values of rows, nulls among them, rather than counting rows.
func ReadsValues(name string) bool {
	switch strings.ToLower(name) {
	case "lag", "lead", "first_value", "last_value", "nth_value":
		return true
	}
	return false
}

// NewWindowCall makes a typed call of a window function, or of an aggregate over a window.
func NewWindowCall(name string, args []Expr, frame Frame, ignoreNulls bool) (*WindowCall, error) {
	name = strings.ToLower(name)
	w, ok := windows[name]
	if !ok {
		a, err := NewAggregate(name, args, false, nil, nil)
		if err != nil {
			return nil, err
		}
		return &WindowCall{Agg: a, Args: a.Args, Frame: frame, Typ: a.Typ}, nil
	}
	if len(args) < w.lo || len(args) > w.hi {
		return nil, fault.WithID(fault.Invalid, "FUNCTION_NOT_FOUND", "%s takes (%s), not %d arguments", name, w.args, len(args))
	}
	c := &WindowCall{Name: name, Args: append([]Expr(nil), args...), Frame: frame, IgnoreNulls: ignoreNulls}
	switch name {
	case "percent_rank", "cume_dist":
		c.Typ = double
	case "row_number", "rank", "dense_rank", "ntile":
		c.Typ = bigint
	default:
		c.Typ = args[0].Type()
		if len(args) == 3 {
			es, t, err := common(name, args[0], args[2])
			if err != nil {
				return nil, err
			}
			c.Args[0], c.Args[2], c.Typ = es[0], es[1], t
		}
	}
	at := 1
	if name == "ntile" {
		at = 0
	}
	if len(args) > at {
		e, err := Coerce(args[at], bigint)
		if err != nil {
			return nil, err
		}
		c.Args[at] = e
	}
	return c, nil
}
