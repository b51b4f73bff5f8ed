package expr

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// NewLambdaAggregate is NewAggregate for calls whose arguments may be lambdas. A lambda of an aggregate sees its parameters
// only: rows of other partitions have no columns to lend it.
func NewLambdaAggregate(name string, args []Arg, distinct bool, filter Expr) (*Aggregate, error) {
	f := aggregates[strings.ToLower(name)]
	if f == nil {
		return nil, notFound(name)
	}
	var sig *aggSig
	var ps []pattern
	var m *match
	for _, s := range f.sigs {
		ps = slices.Concat(s.params, s.lambdas)
		if len(s.lambdas) == 0 || len(ps) != len(args) {
			continue
		}
		if m = matchPatterns(ps, args, true, false); m != nil {
			sig = s
			break
		}
	}
	if sig == nil {
		var takes []string
		for _, s := range f.sigs {
			takes = append(takes, f.Name+"("+patternList(slices.Concat(s.params, s.lambdas), false)+")")
		}
		return nil, mismatch("%s does not take these arguments; it takes %s", f.Name, strings.Join(takes, " or "))
	}
	if distinct {
		return nil, mismatch("DISTINCT does not go with %s", f.Name)
	}
	// Binding a lambda may widen the type of the state, and then those bound before it are bound again.
	es, err := bindArgs(f.Name, ps, m, args)
	if err == nil {
		es, err = bindArgs(f.Name, ps, m, args)
	}
	if err != nil {
		return nil, err
	}
	k := len(sig.params)
	a := &Aggregate{Fn: f, Args: es[:k:k], Null: true}
	for _, e := range es[k:] {
		l := e.(*Lambda)
		if !selfContained(l, nil) {
			return nil, fault.WithID(fault.Unsupported, "NOT_SUPPORTED", "%s: a lambda of an aggregate can use its parameters only, no columns or subqueries", f.Name)
		}
		a.Lambdas = append(a.Lambdas, l)
	}
	t, ok := m.resolve(sig.ret)
	if !ok {
		return nil, mismatch("%s: the type of the result cannot be told from its arguments", f.Name)
	}
	a.Typ = t
	if filter != nil {
		if a.Filter, err = asBoolean("FILTER", filter); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// selfContained reports whether a lambda has no column, subquery or parameter of a lambda around it, and nothing that too
// refuses; nil refuses nothing.
func selfContained(l *Lambda, too func(Expr) bool) bool {
	own := map[int]bool{}
	ok := true
	Walk(l, func(e Expr) bool {
		switch x := e.(type) {
		case *Lambda:
			for _, p := range x.Params {
				own[p.ID] = true
			}
		case *LambdaVar:
			ok = ok && own[x.ID]
		case *Column, *Subquery:
			ok = false
		}
		ok = ok && (too == nil || too(e))
		return ok
	})
	return ok
}

func init() {
	defAgg("reduce_agg", "(T, S, function(S, T, S), function(S, S, S)) S",
		"the values folded into a state that begins with the second argument; the last lambda joins the states of parts", newReduceAcc, func(s *aggSig) {
			s.check = func([]Expr) error { return mismatch("reduce_agg takes two values and two lambdas") }
		})
}

// reduceAcc folds the values of each group with lambdas.
type reduceAcc struct {
	t           vector.Type
	fold, join  *lambdaProgram
	states      []vector.Value
	some        []bool
	bytes       int64
	rows, round []groupRow
}

// groupRow is a row and its group.
type groupRow struct {
	g   uint32
	row int32
}

func newReduceAcc(a *Aggregate, ctx *Context) (Accumulator, error) {
	if ctx == nil {
		ctx = &Context{}
	}
	if len(a.Lambdas) != 2 {
		return nil, internal("%s has %d lambdas", a.Fn.Name, len(a.Lambdas))
	}
	c := compiler{ctx: ctx}
	var ls [2]*lambdaProgram
	for i, l := range a.Lambdas {
		body, err := c.compile(l.Body)
		if err != nil {
			return nil, err
		}
		ls[i] = &lambdaProgram{body: body, t: l.Body.Type()}
		for _, p := range l.Params {
			ls[i].ids = append(ls[i].ids, p.ID)
		}
	}
	return &reduceAcc{t: a.Typ, fold: ls[0], join: ls[1]}, nil
}

func (a *reduceAcc) Resize(n int) { a.states, a.some = extend(a.states, n), extend(a.some, n) }

// Add takes the k-th row of every group in round k, so that the lambda runs on as many groups at once as there are.
func (a *reduceAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	a.rows = a.rows[:0]
	for k, i := range rowsOf(sel, n) {
		if args[0].IsNull(int(i)) {
			continue
		}
		r := groupRow{row: int32(i)}
		if groups != nil {
			r.g = groups[k]
		}
		a.rows = append(a.rows, r)
	}
	if groups != nil {
		slices.SortStableFunc(a.rows, func(x, y groupRow) int { return int(int64(x.g) - int64(y.g)) })
	}
	var starts []int
	for k := range a.rows {
		if k == 0 || a.rows[k].g != a.rows[k-1].g {
			starts = append(starts, k)
		}
	}
	var at []int32
	for len(starts) > 0 {
		at, a.round = at[:0], a.round[:0]
		states := vector.NewBuilder(a.t)
		next := starts[:0]
		for _, k := range starts {
			r := a.rows[k]
			if a.some[r.g] {
				states.Append(a.states[r.g])
			} else {
				states.Append(args[1].Get(int(r.row)))
			}
			at, a.round = append(at, r.row), append(a.round, r)
			if k+1 < len(a.rows) && a.rows[k+1].g == r.g {
				next = append(next, k+1)
			}
		}
		v, err := a.fold.eval(&batch{}, at, []*vector.Vector{states.Finish(), spread(args[0], at)}, len(at))
		if err != nil {
			return err
		}
		for k, r := range a.round {
			a.set(r.g, v.Get(k))
		}
		starts = next
	}
	return nil
}

func (a *reduceAcc) set(g uint32, v vector.Value) {
	if a.some[g] {
		a.bytes -= valueBytes(a.states[g])
	}
	a.states[g], a.some[g] = v, true
	a.bytes += valueBytes(v)
}

func (a *reduceAcc) Merge(src Accumulator, to []uint32) error {
	s := src.(*reduceAcc)
	mine, others := vector.NewBuilder(a.t), vector.NewBuilder(a.t)
	var rows []int32
	targets := map[uint32]bool{}
	a.round = a.round[:0]
	flush := func() error {
		if len(a.round) == 0 {
			return nil
		}
		v, err := a.join.eval(&batch{}, rows, []*vector.Vector{mine.Finish(), others.Finish()}, len(rows))
		if err != nil {
			return err
		}
		for k, r := range a.round {
			a.set(r.g, v.Get(k))
		}
		mine, others = vector.NewBuilder(a.t), vector.NewBuilder(a.t)
		rows, a.round = rows[:0], a.round[:0]
		clear(targets)
		return nil
	}
	for g := range s.states[:min(len(to), len(s.states))] {
		t := to[g]
		if t == NoGroup || !s.some[g] {
			continue
		}
		if !a.some[t] {
			a.set(t, s.states[g])
			continue
		}
		if targets[t] || len(rows) == vector.Size {
			if err := flush(); err != nil {
				return err
			}
		}
		targets[t] = true
		mine.Append(a.states[t])
		others.Append(s.states[g])
		rows, a.round = append(rows, int32(len(rows))), append(a.round, groupRow{g: t})
	}
	return flush()
}

func (a *reduceAcc) Result(lo, hi int) (*vector.Vector, error) {
	b := vector.NewBuilder(a.t)
	for g := lo; g < hi; g++ {
		b.Append(a.states[g])
	}
	return b.Finish(), nil
}

func (a *reduceAcc) Bytes() int64 { return a.bytes + int64(cap(a.states))*17 }
