package expr

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Arg is an argument of NewLambdaCall: an Expr, or a func([]vector.Type) (*Lambda, error) that binds the body of a
// lambda once the types of its parameters are known. It may be called more than once.
type Arg any

type lambdaBinder = func(paramTypes []vector.Type) (*Lambda, error)

// NewCall calls a scalar function or operator: it finds the overload, converts the arguments and gives the typed call.
// Errors are FUNCTION_NOT_FOUND, with the nearest name, and TYPE_MISMATCH.
func NewCall(name string, args []Expr) (Expr, error) {
	as := make([]Arg, len(args))
	for i, a := range args {
		as[i] = a
	}
	return NewLambdaCall(name, as)
}

// NewLambdaCall is NewCall for functions that take lambdas.
func NewLambdaCall(name string, args []Arg) (Expr, error) {
	name = strings.ToLower(name)
	if s, ok := specials[name]; ok {
		es := make([]Expr, len(args))
		for i, a := range args {
			e, ok := a.(Expr)
			if !ok {
				return nil, mismatch("%s takes no lambda", name)
			}
			es[i] = e
		}
		return s.bind(es)
	}
	fs := registry[name]
	if fs == nil {
		return nil, notFound(name)
	}
	if name == "||" || name == "concat" {
		if e, err, ok := joinedChars(name, args); ok {
			return e, err
		}
	}
	// A string constant may stand for another type, but only where no overload takes it as text.
	for _, texts := range []bool{false, true} {
		var best *Function
		var bestMatch *match
		for _, f := range fs {
			m := newMatch(f, args, texts)
			if m != nil && (best == nil || m.cost < bestMatch.cost) {
				best, bestMatch = f, m
			}
		}
		if best != nil {
			return finish(best, bestMatch, args)
		}
	}
	var types, sigs []string
	for _, a := range args {
		if e, ok := a.(Expr); ok {
			types = append(types, e.Type().String())
		} else {
			types = append(types, "lambda")
		}
	}
	for _, f := range fs {
		sigs = append(sigs, f.Name+"("+patternList(f.params, f.variadic)+")")
	}
	if len(sigs) > 4 {
		sigs = append(sigs[:4], "...")
	}
	return nil, noOverload(name, types, sigs)
}

// noOverload tells that no overload takes the arguments: FUNCTION_NOT_FOUND of a named function, TYPE_MISMATCH of an operator.
func noOverload(name string, types, sigs []string) error {
	id := "FUNCTION_NOT_FOUND"
	if c := name[0]; (c < 'a' || c > 'z') && c != '_' || name == "neg" {
		id = "TYPE_MISMATCH"
	}
	return fault.WithID(fault.Invalid, id, "%s does not take (%s); it takes %s", name, strings.Join(types, ", "), strings.Join(sigs, " or "))
}

// joinedChars binds the two cases of || that no signature tells: chars make a char with the characters of all, and text beside a
// bare NULL is a null array, as in Trino, where NULL could be an array of text.
func joinedChars(name string, args []Arg) (Expr, error, bool) {
	n, nulls, texts := 0, 0, 0
	for _, a := range args {
		e, ok := a.(Expr)
		if !ok {
			return nil, nil, false
		}
		t := e.Type()
		switch {
		case t.IsChar():
			n += t.Precision
		case t.Kind == vector.Null:
			if _, ok := e.(*Literal); ok {
				nulls++
			}
		case t.Kind == vector.Varchar:
			texts++
		}
	}
	if nulls > 0 && texts > 0 && nulls+texts == len(args) {
		return &Literal{Typ: vector.ArrayOf(varchar)}, nil, true
	}
	if n == 0 || nulls > 0 || texts > 0 {
		return nil, nil, false
	}
	whole := make([]Expr, len(args))
	for i, a := range args {
		t := a.(Expr).Type()
		if !t.IsChar() {
			return nil, nil, false
		}
		c, err := NewCall("rpad", []Expr{a.(Expr), &Literal{Value: int64(t.Precision), Typ: bigint}, &Literal{Value: " ", Typ: varchar}})
		if err != nil {
			return nil, err, true
		}
		whole[i] = c
	}
	e, err := NewCall(name, whole)
	if err != nil {
		return nil, err, true
	}
	e, err = NewCast(e, vector.CharOf(n), false)
	return e, err, true
}

func notFound(name string) error {
	names := make([]string, 0, len(registry))
	for n := range registry {
		names = append(names, n)
	}
	for n := range specials {
		names = append(names, n)
	}
	for n := range aggregates {
		names = append(names, n)
	}
	slices.Sort(names)
	hint := ""
	if n := nearest(name, names); n != "" {
		hint = "; did you mean " + n + "?"
	}
	return fault.WithID(fault.NotFound, "FUNCTION_NOT_FOUND", "no function is named %q%s", name, hint)
}

// nearest finds the name at the smallest edit distance, at most a third of the name's length.
func nearest(name string, names []string) string {
	best, dist := "", len(name)/3+1
	for _, n := range names {
		if d := levenshtein([]rune(name), []rune(n)); d < dist {
			best, dist = n, d
		}
	}
	return best
}

// charFunctions see the blanks at the end of char; the others get varchar, without them.
var charFunctions = map[string]bool{"length": true, "char_length": true, "character_length": true, "upper": true, "lower": true, "reverse": true,
	"substr": true, "substring": true, "lpad": true, "rpad": true, "to_utf8": true, "format": true, "codepoint": true}

// keepsChar are the functions that give char for char.
var keepsChar = map[string]bool{"upper": true, "lower": true, "reverse": true}

// match is the outcome of matching arguments with a list of patterns.
type match struct {
	cost  int
	vars  map[string]vector.Type
	types []vector.Type // wanted type of each argument; zero kind for lambdas
	// padded: values of char keep their blanks as an argument of varchar.
	padded bool
}

func (f *Function) pattern(i int) pattern {
	if f.variadic && i >= len(f.params)-1 {
		return f.params[len(f.params)-1]
	}
	return f.params[i]
}

func newMatch(f *Function, args []Arg, texts bool) *match {
	lo := len(f.params)
	if f.variadic && f.optional {
		lo--
	}
	if len(args) < lo || len(args) > len(f.params) && !f.variadic {
		return nil
	}
	ps := make([]pattern, len(args))
	for i := range args {
		ps[i] = f.pattern(i)
	}
	return matchPatterns(ps, args, texts, charFunctions[f.Name])
}

func matchPatterns(ps []pattern, args []Arg, texts, padded bool) *match {
	m := &match{padded: padded, vars: map[string]vector.Type{}, types: make([]vector.Type, len(args))}
	for pass := range 2 {
		for i, a := range args {
			e, ok := a.(Expr)
			p := ps[i]
			if !ok {
				if p.name != "function" {
					return nil
				}
				continue
			}
			if p.name == "function" {
				return nil
			}
			// Text constants bind a type variable last, to what the others say.
			late := texts && isTextLiteral(e)
			if late != (pass == 1) {
				continue
			}
			t, c := m.one(p, e.Type(), late)
			if c < 0 {
				return nil
			}
			m.cost += c
			m.types[i] = t
		}
	}
	for i, a := range args {
		if _, ok := a.(Expr); ok {
			if t, ok := m.subst(ps[i]); ok {
				m.types[i] = t
			}
		}
	}
	return m
}

// one matches a type with a pattern; it gives the wanted type where the pattern has no variable, and the cost.
func (m *match) one(p pattern, t vector.Type, text bool) (vector.Type, int) {
	switch {
	case p.name == "any":
		return t, 1
	case p.name != "":
		old, ok := m.vars[p.name]
		if !ok {
			m.vars[p.name] = t
			return t, 2
		}
		if text && old.Kind != vector.Null {
			return old, 3
		}
		c, ok := CommonType(old, t)
		if !ok {
			return t, -1
		}
		m.vars[p.name] = c
		if c.Equal(old) && c.Equal(t) {
			return c, 2
		}
		return c, 4
	}
	if t.Kind == vector.Null {
		for _, s := range p.subs {
			m.one(s, unknown, false)
		}
		if p.kind == vector.Decimal {
			return vector.DecimalOf(1, 0), 30
		}
		return vector.Of(p.kind), 1
	}
	if t.IsChar() && p.kind == vector.Varchar && !m.padded {
		return varchar, 1
	}
	if t.Kind == p.kind {
		c := 0
		for i, s := range p.subs {
			if i >= len(t.Fields) {
				return t, -1
			}
			_, d := m.one(s, t.Fields[i].Type, false)
			if d < 0 {
				return t, -1
			}
			c += d
		}
		return t, c
	}
	if p.subs != nil {
		return t, -1
	}
	if t.Kind == vector.Fixed && p.kind == vector.Varbinary {
		return varbinary, 1
	}
	if p.kind == vector.Decimal {
		if t.Integral() {
			return asDecimal(t), 1 + numericRank(p.kind) - numericRank(t.Kind)
		}
		return t, -1
	}
	want := vector.Of(p.kind)
	if want.Kind == vector.Timestamp || want.Kind == vector.TimestampTZ {
		want.Precision = max(want.Precision, t.Precision)
		if t.Kind == vector.Date {
			want.Precision = 6
		}
	}
	if text {
		switch want.Kind {
		case vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ, vector.UUID, vector.JSON:
			return want, 10
		}
		return t, -1
	}
	if c := coercionCost(t, want); c >= 0 {
		return want, c
	}
	return t, -1
}

// subst gives the type that a pattern stands for once its variables are bound; false when it has none of them.
func (m *match) subst(p pattern) (vector.Type, bool) {
	if p.name == "any" || p.name == "function" {
		return unknown, false
	}
	if p.name != "" {
		t, ok := m.vars[p.name]
		return t, ok
	}
	if p.subs == nil {
		return unknown, false
	}
	fs := make([]vector.Field, len(p.subs))
	for i, s := range p.subs {
		t, ok := m.resolve(s)
		if !ok {
			return unknown, false
		}
		fs[i].Type = t
	}
	switch p.kind {
	case vector.Array:
		return vector.ArrayOf(fs[0].Type), true
	case vector.Map:
		return vector.MapOf(fs[0].Type, fs[1].Type), true
	}
	return vector.Type{Kind: p.kind, Fields: fs}, true
}

// resolve is subst for patterns without variables too.
func (m *match) resolve(p pattern) (vector.Type, bool) {
	if p.name == "" && p.subs == nil {
		if p.kind == vector.Decimal {
			return unknown, false
		}
		return vector.Of(p.kind), true
	}
	return m.subst(p)
}

func finish(f *Function, m *match, args []Arg) (Expr, error) {
	ps := make([]pattern, len(args))
	for i := range args {
		ps[i] = f.pattern(i)
	}
	es, err := bindArgs(f.Name, ps, m, args)
	if err != nil {
		return nil, err
	}
	types := make([]vector.Type, len(es))
	for i, e := range es {
		types[i] = e.Type()
	}
	c := &Call{Fn: f, Args: es, Null: f.mayNull}
	if f.result != nil {
		if c.Typ, err = f.result(types); err != nil {
			return nil, err
		}
	} else {
		t, ok := m.resolve(f.ret)
		if !ok {
			return nil, mismatch("%s: the type of the result cannot be told from its arguments", f.Name)
		}
		c.Typ = t
	}
	if len(types) > 0 && types[0].IsChar() && c.Typ.Kind == vector.Varchar && keepsChar[f.Name] {
		c.Typ = types[0]
	}
	zonedResult(c)
	if f.check != nil {
		if err := f.check(es); err != nil {
			return nil, err
		}
	}
	if !f.onNull {
		for _, e := range es {
			if _, ok := e.(*Lambda); !ok && e.Nullable() {
				c.Null = true
			}
		}
	}
	return c, nil
}

// bindArgs coerces the plain arguments and binds the lambdas, whose bodies may bind further variables.
func bindArgs(name string, ps []pattern, m *match, args []Arg) ([]Expr, error) {
	es := make([]Expr, len(args))
	for i, a := range args {
		lb, ok := a.(lambdaBinder)
		if !ok {
			continue
		}
		p := ps[i]
		bodyP := p.subs[len(p.subs)-1]
		for try := range 2 {
			params := make([]vector.Type, len(p.subs)-1)
			for k := range params {
				t, ok := m.resolve(p.subs[k])
				if !ok {
					return nil, mismatch("%s: the type of a lambda's parameter is not known", name)
				}
				params[k] = t
			}
			l, err := lb(params)
			if err != nil {
				return nil, err
			}
			if len(l.Params) != len(params) {
				return nil, mismatch("%s: the lambda takes %d parameters, not %d", name, len(params), len(l.Params))
			}
			bt := l.Body.Type()
			if want, ok := m.resolve(bodyP); ok {
				if bodyP.name != "" && coercionCost(bt, want) < 0 && try == 0 {
					// The body is wider than the state it makes (reduce from an integer 0 over bigints): widen the state.
					if c, ok := CommonType(bt, want); ok {
						m.vars[bodyP.name] = c
						continue
					}
				}
				body, err := Coerce(l.Body, want)
				if err != nil {
					return nil, err
				}
				l = &Lambda{Params: l.Params, Body: body}
			} else if bodyP.name != "" {
				m.vars[bodyP.name] = bt
			}
			es[i] = l
			break
		}
	}
	for i, a := range args {
		e, ok := a.(Expr)
		if !ok {
			continue
		}
		want := m.types[i]
		if t, ok := m.subst(ps[i]); ok {
			want = t
		}
		c, err := Coerce(e, want)
		if err != nil {
			return nil, err
		}
		es[i] = c
	}
	return es, nil
}

// specials are the forms that are nodes of their own or need more than a signature.
type special struct {
	args, doc string
	bind      func(args []Expr) (Expr, error)
}

var specials map[string]special

func init() {
	specials = map[string]special{
		"coalesce": {"T...", "the first argument that is not null", bindCoalesce},
		"nullif":   {"T, T", "null when the arguments are equal, else the first", bindNullif},
		"if":       {"boolean, T, T", "the second argument when the first is true, else the third or null", bindIf},
		"try":      {"T", "null where the evaluation of the argument fails", bindTry},
	}
}

func bindCoalesce(args []Expr) (Expr, error) {
	if len(args) == 0 {
		return nil, mismatch("coalesce needs an argument")
	}
	es, t, err := common("coalesce", args...)
	if err != nil {
		return nil, err
	}
	if len(es) == 1 {
		return es[0], nil
	}
	return &Coalesce{Args: es, Typ: t}, nil
}

func bindNullif(args []Expr) (Expr, error) {
	if len(args) != 2 {
		return nil, mismatch("nullif takes two arguments, not %d", len(args))
	}
	eq, err := NewCompare(Eq, args[0], args[1])
	if err != nil {
		return nil, err
	}
	return &Case{Whens: []When{{eq, &Literal{Typ: args[0].Type()}}}, Else: args[0], Typ: args[0].Type()}, nil
}

func bindIf(args []Expr) (Expr, error) {
	switch len(args) {
	case 2:
		return NewCase([]When{{args[0], args[1]}}, nil)
	case 3:
		return NewCase([]When{{args[0], args[1]}}, args[2])
	}
	return nil, mismatch("if takes two or three arguments, not %d", len(args))
}

func bindTry(args []Expr) (Expr, error) {
	if len(args) != 1 {
		return nil, mismatch("try takes one argument, not %d", len(args))
	}
	return &TryExpr{Arg: args[0]}, nil
}
