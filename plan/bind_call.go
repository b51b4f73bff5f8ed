package plan

import (
	"errors"
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// grouping is the state of a SELECT with groups: expressions above it see keys and aggregates only.
type grouping struct {
	input   *exprBinder // binds keys and arguments, below the groups
	keys    []expr.Expr
	keyCols []int
	sets    [][]int
	gid     int
	aggs    []*expr.Aggregate
	aggCols []int
}

// call binds a function call: aggregate, window function, GROUPING or scalar function.
func (x *exprBinder) call(c *sql.Call) (expr.Expr, error) {
	at := c.At()
	if len(c.Name) > 1 {
		return nil, x.b.errorf(at, fault.NotFound, "FUNCTION_NOT_FOUND", "there is no function %q", dotted(c.Name))
	}
	name := fold(c.Name[0].Name)
	switch {
	case c.Over != nil:
		return x.windowCall(name, c)
	case name == "grouping":
		return x.groupingCall(c)
	case expr.IsAggregate(name):
		return x.aggregate(name, c)
	case expr.IsWindow(name):
		return nil, x.b.errorf(at, fault.Invalid, "MISSING_OVER", "%s is a window function and needs OVER (...)", name)
	case c.Star:
		return nil, x.b.errorf(at, fault.Invalid, "FUNCTION_NOT_FOUND", "%s(*) is not a function; * goes with count", name)
	case c.Distinct, c.Filter != nil, c.OrderBy != nil:
		if _, err := expr.NewCall(name, nil); err != nil && isFunctionNotFound(err) {
			return nil, x.b.place(at, err)
		}
		return nil, x.b.errorf(at, fault.Invalid, "FUNCTION_NOT_AGGREGATE", "%s is no aggregate function: DISTINCT, FILTER and ORDER BY do not go with it", name)
	case isJSONFunction(name):
		return x.jsonCall(name, c)
	case (name == "variant_get" || name == "try_variant_get") && len(c.Args) == 3 && c.ArgNames == nil:
		return x.variantGet(c, name == "try_variant_get")
	}
	if c.ArgNames != nil {
		return nil, x.b.errorf(at, fault.Invalid, "NOT_SUPPORTED", "arguments by name are not supported in calls of scalar functions")
	}
	args, err := x.lambdaArgs(c)
	if err != nil {
		return nil, err
	}
	e, err := expr.NewLambdaCall(name, args)
	return e, x.b.place(at, err)
}

func isFunctionNotFound(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Kind == fault.NotFound && e.ID == "FUNCTION_NOT_FOUND"
}

// lambdaArg defers the binding of a lambda's body until the types of its parameters are known.
func (x *exprBinder) lambdaArg(l *sql.Lambda) func([]vector.Type) (*expr.Lambda, error) {
	return func(types []vector.Type) (*expr.Lambda, error) {
		if len(types) != len(l.Params) {
			return nil, x.b.errorf(l.Pos, fault.Invalid, "INVALID_PARAMETER_USAGE", "the function takes a lambda of %d parameters, not %d", len(types), len(l.Params))
		}
		y := *x
		y.lambda = slices.Clone(x.lambda)
		out := &expr.Lambda{}
		for i, p := range l.Params {
			x.b.lambdas++
			lp := expr.LambdaParam{ID: x.b.lambdas, Name: p.Name, Typ: types[i]}
			out.Params = append(out.Params, lp)
			y.lambda = append(y.lambda, lp)
		}
		body, err := y.bind(l.Body)
		if err != nil {
			return nil, err
		}
		out.Body = body
		return out, nil
	}
}

// aggregate binds a call of an aggregate function and gives the column of its result.
func (x *exprBinder) aggregate(name string, c *sql.Call) (expr.Expr, error) {
	if x.group == nil {
		id := "EXPRESSION_NOT_SCALAR"
		if x.where == nestedAggregate {
			id = "NESTED_AGGREGATION"
		}
		return nil, x.b.errorf(c.At(), fault.Invalid, id, "%s cannot contain the aggregate %s", x.where, name)
	}
	in := *x.group.input
	in.where = nestedAggregate
	in.lambda = nil
	a, err := in.newAggregate(name, c)
	if err != nil {
		return nil, x.b.place(c.At(), err)
	}
	for i, old := range x.group.aggs {
		if sameAggregate(old, a) {
			return x.b.cols.ref(x.group.aggCols[i]), nil
		}
	}
	id := x.b.cols.add(name, a.Typ, a.Null)
	x.b.places[id] = c.At()
	x.group.aggs = append(x.group.aggs, a)
	x.group.aggCols = append(x.group.aggCols, id)
	return x.b.cols.ref(id), nil
}

const nestedAggregate = "the argument of an aggregate"

// newAggregate binds arguments, filter and order of an aggregate in x.
func (x *exprBinder) newAggregate(name string, c *sql.Call) (*expr.Aggregate, error) {
	if c.Star && name != "count" {
		return nil, x.b.errorf(c.At(), fault.Invalid, "FUNCTION_NOT_FOUND", "%s(*) is not a function; * goes with count", name)
	}
	if slices.ContainsFunc(c.Args, func(a sql.Expr) bool { _, ok := a.(*sql.Lambda); return ok }) {
		return x.lambdaAggregate(name, c)
	}
	args, err := x.all(c.Args)
	if err != nil {
		return nil, err
	}
	filter, err := x.filterOf(c)
	if err != nil {
		return nil, err
	}
	keys, err := x.sortKeys(c.OrderBy)
	if err != nil {
		return nil, err
	}
	return expr.NewAggregate(name, args, c.Distinct, filter, keys)
}

// filterOf binds the FILTER of an aggregate; nil when it has none.
func (x *exprBinder) filterOf(c *sql.Call) (expr.Expr, error) {
	if c.Filter == nil {
		return nil, nil
	}
	y := *x
	y.where = "FILTER"
	return y.condition(c.Filter)
}

// lambdaArgs binds the arguments of a call among which lambdas may be.
func (x *exprBinder) lambdaArgs(c *sql.Call) ([]expr.Arg, error) {
	args := make([]expr.Arg, len(c.Args))
	for i, a := range c.Args {
		if l, ok := a.(*sql.Lambda); ok {
			args[i] = x.lambdaArg(l)
			continue
		}
		v, err := x.bind(a)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	return args, nil
}

// lambdaAggregate binds an aggregate some of whose arguments are lambdas.
func (x *exprBinder) lambdaAggregate(name string, c *sql.Call) (*expr.Aggregate, error) {
	if c.OrderBy != nil {
		return nil, x.b.unsupported(c.At(), "%s with ORDER BY is not supported", name)
	}
	args, err := x.lambdaArgs(c)
	if err != nil {
		return nil, err
	}
	filter, err := x.filterOf(c)
	if err != nil {
		return nil, err
	}
	return expr.NewLambdaAggregate(name, args, c.Distinct, filter)
}

func sameAggregate(a, b *expr.Aggregate) bool {
	if a.Fn != b.Fn || a.Distinct != b.Distinct || !slices.EqualFunc(a.Lambdas, b.Lambdas, func(x, y *expr.Lambda) bool { return expr.Equal(x, y) }) || len(a.OrderBy) != len(b.OrderBy) || (a.Filter == nil) != (b.Filter == nil) {
		return false
	}
	ka, kb := a.Children(), b.Children()
	if len(ka) != len(kb) {
		return false
	}
	for i := range ka {
		if !expr.Equal(ka[i], kb[i]) || expr.Volatile(ka[i]) {
			return false
		}
	}
	for i := range a.OrderBy {
		if a.OrderBy[i].Desc != b.OrderBy[i].Desc || a.OrderBy[i].NullsFirst != b.OrderBy[i].NullsFirst {
			return false
		}
	}
	return true
}

// sortKeys binds an order; NULLS LAST is the default both ways.
func (x *exprBinder) sortKeys(items []sql.OrderItem) ([]expr.SortKey, error) {
	var keys []expr.SortKey
	for _, it := range items {
		e, err := x.bind(it.Expr)
		if err != nil {
			return nil, err
		}
		if err := x.b.orderable(it.Expr.At(), e); err != nil {
			return nil, err
		}
		keys = append(keys, expr.SortKey{Expr: e, Desc: it.Desc, NullsFirst: it.Nulls == "FIRST"})
	}
	return keys, nil
}

func (b *binder) orderable(at sql.Pos, e expr.Expr) error {
	if t := e.Type(); t.Kind != vector.Null && !expr.Orderable(t) {
		return b.errorf(at, fault.Invalid, "TYPE_MISMATCH", "values of type %s cannot be ordered", t)
	}
	return nil
}

// groupingCall binds GROUPING(a, b): bit by bit, whether the key is left out of the row's grouping set.
func (x *exprBinder) groupingCall(c *sql.Call) (expr.Expr, error) {
	g := x.group
	if g == nil || len(g.keys) == 0 {
		return nil, x.b.errorf(c.At(), fault.Invalid, "MISSING_GROUP_BY", "GROUPING needs a GROUP BY")
	}
	if len(c.Args) == 0 || len(c.Args) > 31 {
		return nil, x.b.errorf(c.At(), fault.Invalid, "INVALID_ARGUMENTS", "GROUPING takes 1 to 31 keys of the GROUP BY")
	}
	integer := vector.Of(vector.Integer)
	big := func(n int64) expr.Expr { return &expr.Literal{Value: n, Typ: vector.Of(vector.BigInt)} }
	sum := big(0)
	for j, a := range c.Args {
		v, err := g.input.bind(a)
		if err != nil {
			return nil, err
		}
		key := slices.IndexFunc(g.keys, func(k expr.Expr) bool { return expr.Equal(k, v) })
		if key < 0 {
			return nil, x.b.errorf(a.At(), fault.Invalid, "EXPRESSION_NOT_AGGREGATE", "the argument of GROUPING must be a key of the GROUP BY")
		}
		if g.sets == nil {
			continue
		}
		bit := expr.Expr(x.b.cols.ref(g.gid))
		for _, op := range []struct {
			name string
			n    int64
		}{{"/", 1 << (len(g.keys) - 1 - key)}, {"%", 2}, {"*", 1 << (len(c.Args) - 1 - j)}} {
			if op.n == 1 {
				continue
			}
			if bit, err = expr.NewCall(op.name, []expr.Expr{bit, big(op.n)}); err != nil {
				return nil, err
			}
		}
		if sum, err = expr.NewCall("+", []expr.Expr{sum, bit}); err != nil {
			return nil, err
		}
	}
	if g.sets == nil {
		return &expr.Literal{Value: int32(0), Typ: integer}, nil
	}
	return expr.NewCast(sum, integer, false)
}

// grouped lifts an expression over the input of the groups to one over keys and aggregates. A column that is neither is
// EXPRESSION_NOT_AGGREGATE.
func (x *exprBinder) grouped(e expr.Expr) (expr.Expr, error) {
	if x.group == nil {
		return e, nil
	}
	in := setOf((*x.group.input.rel).out())
	own := idSet{}
	for i, k := range x.group.keys {
		if c, ok := k.(*expr.Column); ok && c.Index == x.group.keyCols[i] {
			own[c.Index] = true
		}
	}
	var fail error
	var lift func(expr.Expr) expr.Expr
	lift = func(e expr.Expr) expr.Expr {
		if _, ok := e.(*expr.Literal); !ok {
			for i, k := range x.group.keys {
				if expr.Equal(e, k) {
					return x.b.cols.ref(x.group.keyCols[i])
				}
			}
		}
		if c, ok := e.(*expr.Column); ok {
			if in[c.Index] && !own[c.Index] && fail == nil {
				fail = x.b.errorf(x.b.places[c.Index], fault.Invalid, "EXPRESSION_NOT_AGGREGATE",
					"column %q must be in GROUP BY or inside an aggregate", x.b.cols.list[c.Index].Name)
			}
			return e
		}
		kids := e.Children()
		if len(kids) == 0 {
			return e
		}
		n := mapExprs(kids, lift)
		for i := range n {
			if n[i] != kids[i] {
				return e.With(n)
			}
		}
		return e
	}
	if l, ok := e.(*expr.Literal); ok && x.group.sets != nil {
		// A constant that is a key is null where the grouping set leaves it out.
		for i, k := range x.group.keys {
			if expr.Equal(l, k) {
				return x.b.cols.ref(x.group.keyCols[i]), nil
			}
		}
	}
	out := lift(e)
	return out, fail
}

// lifted binds e and lifts it over the groups.
func (x *exprBinder) lifted(e sql.Expr) (expr.Expr, error) {
	v, err := x.bind(e)
	if err != nil {
		return nil, err
	}
	return x.grouped(v)
}

// windows collects the window functions of a SELECT, by specification.
type windows struct {
	named []sql.NamedWindow
	specs []*windowRel // without input
}

var frameUnits = map[string]expr.FrameUnit{"ROWS": expr.Rows, "RANGE": expr.Range, "GROUPS": expr.Groups}
var frameBounds = map[string]expr.BoundKind{"UNBOUNDED PRECEDING": expr.UnboundedPreceding, "PRECEDING": expr.Preceding, "CURRENT ROW": expr.CurrentRow, "FOLLOWING": expr.Following, "UNBOUNDED FOLLOWING": expr.UnboundedFollowing}
var frameExclusions = map[string]expr.Exclusion{"": expr.ExcludeNoOthers, "NO OTHERS": expr.ExcludeNoOthers, "CURRENT ROW": expr.ExcludeCurrentRow, "GROUP": expr.ExcludeGroup, "TIES": expr.ExcludeTies}

// windowSpec resolves references to named windows.
func (x *exprBinder) windowSpec(w *sql.Window, depth int) (*sql.Window, error) {
	if w.Ref == nil {
		return w, nil
	}
	for _, n := range x.windows.named {
		if !sameName(*w.Ref, n.Name.Name, false) {
			continue
		}
		if depth > len(x.windows.named) {
			return nil, x.b.errorf(w.Ref.Pos, fault.Invalid, "INVALID_WINDOW_REFERENCE", "window %q refers to itself", n.Name.Name)
		}
		base, err := x.windowSpec(n.Window, depth+1)
		if err != nil || w.Bare {
			return base, err
		}
		out := *w
		out.Ref = nil
		bad := func(what string) error {
			return x.b.errorf(w.Pos, fault.Invalid, "INVALID_WINDOW_REFERENCE", "window %q %s", n.Name.Name, what)
		}
		if base.Frame != nil {
			return nil, bad("has a frame and cannot be refined")
		}
		if w.PartitionBy != nil {
			return nil, bad("cannot be given another PARTITION BY")
		}
		out.PartitionBy = base.PartitionBy
		if base.OrderBy != nil {
			if w.OrderBy != nil {
				return nil, bad("has an ORDER BY already")
			}
			out.OrderBy = base.OrderBy
		}
		return &out, nil
	}
	return nil, x.b.errorf(w.Ref.Pos, fault.Invalid, "INVALID_WINDOW_REFERENCE", "there is no window %q", w.Ref.Name)
}

func (x *exprBinder) windowCall(name string, c *sql.Call) (expr.Expr, error) {
	b := x.b
	if x.windows == nil {
		id := "EXPRESSION_NOT_SCALAR"
		if x.where == nestedWindow {
			id = "NESTED_WINDOW"
		}
		return nil, b.errorf(c.At(), fault.Invalid, id, "%s cannot contain the window function %s", x.where, name)
	}
	if !expr.IsAggregate(name) && !expr.IsWindow(name) {
		if _, err := expr.NewCall(name, nil); err != nil && isFunctionNotFound(err) {
			return nil, b.place(c.At(), err)
		}
		return nil, b.errorf(c.At(), fault.Invalid, "FUNCTION_NOT_WINDOW", "%s is neither an aggregate nor a window function", name)
	}
	w, err := x.windowSpec(c.Over, 0)
	if err != nil {
		return nil, err
	}
	y := *x
	y.windows, y.where, y.outputs = nil, nestedWindow, nil
	lift := func(es []expr.Expr) error {
		for i := range es {
			var err error
			if es[i], err = y.grouped(es[i]); err != nil {
				return err
			}
		}
		return nil
	}
	part, err := y.all(w.PartitionBy)
	if err == nil {
		err = lift(part)
	}
	if err != nil {
		return nil, err
	}
	order, err := y.sortKeys(w.OrderBy)
	if err != nil {
		return nil, err
	}
	for i := range order {
		if order[i].Expr, err = y.grouped(order[i].Expr); err != nil {
			return nil, err
		}
	}
	frame, err := y.frame(w, order)
	if err != nil {
		return nil, err
	}
	var call *expr.WindowCall
	if expr.IsWindow(name) {
		if c.Nulls != sql.NullsUnsaid && !expr.ReadsValues(name) {
			return nil, b.errorf(c.At(), fault.Invalid, "NULL_TREATMENT_NOT_ALLOWED", "%s reads no values: IGNORE NULLS and RESPECT NULLS do not go with it", name)
		}
		if c.Distinct || c.Filter != nil || c.Star || c.OrderBy != nil && !c.WithinGroup {
			return nil, b.errorf(c.At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%s takes no DISTINCT, FILTER or ORDER BY", name)
		}
		args, err := y.all(c.Args)
		if err == nil {
			err = lift(args)
		}
		if err != nil {
			return nil, err
		}
		if call, err = expr.NewWindowCall(name, args, frame, c.Nulls == sql.IgnoreNulls); err != nil {
			return nil, b.place(c.At(), err)
		}
	} else {
		if c.Nulls != sql.NullsUnsaid {
			return nil, b.errorf(c.At(), fault.Invalid, "NULL_TREATMENT_NOT_ALLOWED", "IGNORE NULLS and RESPECT NULLS do not go with the aggregate %s; use FILTER", name)
		}
		a, err := y.newAggregate(name, c)
		if err != nil {
			return nil, b.place(c.At(), err)
		}
		var fail error
		a = mapAgg(a, func(e expr.Expr) expr.Expr {
			l, err := y.grouped(e)
			if err != nil && fail == nil {
				fail = err
				return e
			}
			return l
		})
		if fail != nil {
			return nil, fail
		}
		call = &expr.WindowCall{Agg: a, Args: a.Args, Frame: frame, Typ: a.Typ}
	}
	spec := x.windows.spec(part, order)
	for i, old := range spec.calls {
		if sameCall(old, call) {
			return b.cols.ref(spec.cols[i]), nil
		}
	}
	id := b.cols.add(name, call.Typ, true)
	b.places[id] = c.At()
	spec.calls = append(spec.calls, call)
	spec.cols = append(spec.cols, id)
	return b.cols.ref(id), nil
}

// sameCall reports whether two calls over the same partitions and order give the same values.
func sameCall(a, b *expr.WindowCall) bool {
	bound := func(x, y expr.Bound) bool {
		return x.Kind == y.Kind && (x.Offset == nil) == (y.Offset == nil) && (x.Offset == nil || expr.Equal(x.Offset, y.Offset))
	}
	if a.Name != b.Name || a.IgnoreNulls != b.IgnoreNulls || (a.Agg == nil) != (b.Agg == nil) || a.Frame.Unit != b.Frame.Unit || a.Frame.Exclude != b.Frame.Exclude ||
		!bound(a.Frame.Start, b.Frame.Start) || !bound(a.Frame.End, b.Frame.End) {
		return false
	}
	if a.Agg != nil {
		return sameAggregate(a.Agg, b.Agg)
	}
	return slices.EqualFunc(a.Args, b.Args, expr.Equal)
}

const nestedWindow = "a window function"

// spec finds the window with this partitioning and order, or adds it.
func (w *windows) spec(part []expr.Expr, order []expr.SortKey) *windowRel {
	for _, s := range w.specs {
		if slices.EqualFunc(s.part, part, expr.Equal) && slices.EqualFunc(s.order, order, func(a, b expr.SortKey) bool {
			return a.Desc == b.Desc && a.NullsFirst == b.NullsFirst && expr.Equal(a.Expr, b.Expr)
		}) {
			return s
		}
	}
	s := &windowRel{part: part, order: order}
	w.specs = append(w.specs, s)
	return s
}

// frame binds a window frame. Without one it is the rows up to the current one's peers, or all rows when there is no order.
func (x *exprBinder) frame(w *sql.Window, order []expr.SortKey) (expr.Frame, error) {
	f := w.Frame
	if f == nil {
		if len(order) == 0 {
			return expr.Frame{Unit: expr.Rows, Start: expr.Bound{Kind: expr.UnboundedPreceding}, End: expr.Bound{Kind: expr.UnboundedFollowing}}, nil
		}
		return expr.Frame{Unit: expr.Range, Start: expr.Bound{Kind: expr.UnboundedPreceding}, End: expr.Bound{Kind: expr.CurrentRow}}, nil
	}
	out := expr.Frame{Unit: frameUnits[f.Unit], Exclude: frameExclusions[f.Exclude]}
	bad := func(format string, args ...any) (expr.Frame, error) {
		return out, x.b.errorf(f.Pos, fault.Invalid, "INVALID_WINDOW_FRAME", format, args...)
	}
	bound := func(s sql.FrameBound) (expr.Bound, error) {
		o := expr.Bound{Kind: frameBounds[s.Kind]}
		if s.Offset == nil {
			return o, nil
		}
		e, err := x.lifted(s.Offset)
		if err != nil {
			return o, err
		}
		if out.Unit == expr.Range {
			if len(order) != 1 {
				_, err := bad("RANGE with an offset needs exactly one ORDER BY key")
				return o, err
			}
			if t := order[0].Expr.Type(); t.Numeric() {
				if c, err := expr.Coerce(e, t); err == nil {
					e = c
				}
			}
			if _, err := expr.NewCall("+", []expr.Expr{order[0].Expr, e}); err != nil {
				return o, x.b.errorf(s.Offset.At(), fault.Invalid, "TYPE_MISMATCH", "an offset of type %s cannot be added to an ORDER BY key of type %s", e.Type(), order[0].Expr.Type())
			}
		} else {
			if !e.Type().Integral() && (e.Type().Kind != vector.Null || !untyped(e)) {
				return o, x.b.errorf(s.Offset.At(), fault.Invalid, "TYPE_MISMATCH", "the offset of a %s frame must be an integer, not %s", f.Unit, e.Type())
			}
			if e, err = expr.Coerce(e, vector.Of(vector.BigInt)); err != nil {
				return o, err
			}
			if l, ok := e.(*expr.Literal); ok {
				if n, ok := l.Value.(int64); !ok || n < 0 {
					return o, x.b.errorf(s.Offset.At(), fault.Invalid, "INVALID_WINDOW_FRAME", "the offset of a frame must not be negative or null")
				}
			}
		}
		o.Offset = e
		return o, nil
	}
	var err error
	if out.Start, err = bound(f.Start); err != nil {
		return out, err
	}
	out.End = expr.Bound{Kind: expr.CurrentRow}
	if f.End != nil {
		if out.End, err = bound(*f.End); err != nil {
			return out, err
		}
	}
	switch {
	case out.Start.Kind == expr.UnboundedFollowing:
		return bad("a frame cannot start at UNBOUNDED FOLLOWING")
	case out.End.Kind == expr.UnboundedPreceding:
		return bad("a frame cannot end at UNBOUNDED PRECEDING")
	case out.Start.Kind > out.End.Kind:
		return bad("the frame ends before it starts")
	case out.Unit == expr.Groups && len(order) == 0:
		return bad("a GROUPS frame needs an ORDER BY")
	}
	return out, nil
}
