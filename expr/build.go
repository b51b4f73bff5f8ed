package expr

import (
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func mismatch(format string, args ...any) error {
	return fault.WithID(fault.Invalid, "TYPE_MISMATCH", format, args...)
}

// NewCompare compares l and r after converting both to a common type.
func NewCompare(op CompareOp, l, r Expr) (Expr, error) {
	es, t, err := common(op.String(), l, r)
	if err != nil {
		return nil, err
	}
	switch op {
	case Eq, Ne, Distinct, NotDistinct:
		if !comparableType(t) {
			return nil, mismatch("values of type %s cannot be compared with %s", t, op)
		}
	default:
		if !Orderable(t) {
			return nil, mismatch("values of type %s have no order for %s", t, op)
		}
	}
	return &Compare{Op: op, L: es[0], R: es[1]}, nil
}

// NewIn tests arg against a list; all are converted to a common type.
func NewIn(arg Expr, list []Expr, negated bool) (Expr, error) {
	es, t, err := common("IN", append([]Expr{arg}, list...)...)
	if err != nil {
		return nil, err
	}
	if !comparableType(t) {
		return nil, mismatch("values of type %s cannot be compared with IN", t)
	}
	return &In{Arg: es[0], List: es[1:], Negated: negated}, nil
}

// NewBetween is lo <= arg AND arg <= hi.
func NewBetween(arg, lo, hi Expr, negated bool) (Expr, error) {
	if Volatile(arg) {
		es, _, err := common("BETWEEN", arg, lo, hi)
		if err != nil {
			return nil, err
		}
		arg, lo, hi = es[0], es[1], es[2]
	}
	a, err := NewCompare(Ge, arg, lo)
	if err != nil {
		return nil, err
	}
	b, err := NewCompare(Le, arg, hi)
	if err != nil {
		return nil, err
	}
	e, err := NewAnd(a, b)
	if err == nil && negated {
		return NewNot(e)
	}
	return e, err
}

// NewLike matches text with a pattern. escape, when given, must be a constant of one character.
func NewLike(arg, pattern Expr, escape Expr, negated, ci bool) (Expr, error) {
	l := &Like{Negated: negated, CaseInsensitive: ci}
	for _, s := range []struct {
		e   Expr
		out *Expr
	}{{arg, &l.Arg}, {pattern, &l.Pattern}} {
		if k := s.e.Type().Kind; k != vector.Varchar && k != vector.Null {
			return nil, mismatch("LIKE needs varchar, not %s", s.e.Type())
		}
		if s.e.Type().IsChar() {
			*s.out = s.e // its blanks count
			continue
		}
		c, err := Coerce(s.e, varchar)
		if err != nil {
			return nil, err
		}
		*s.out = c
	}
	if escape != nil {
		if escape.Type().Kind == vector.Null {
			return &Literal{Typ: boolean}, nil
		}
		v, err := EvalConst(escape, &Context{})
		if err != nil {
			return nil, err
		}
		s, ok := v.(string)
		rs := []rune(s)
		if v == nil {
			return &Literal{Typ: boolean}, nil
		}
		if !ok || len(rs) != 1 {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the escape of LIKE must be a single character, not %q", s)
		}
		l.Escape = rs[0]
	}
	if p, ok := l.Pattern.(*Literal); ok && p.Value != nil {
		if _, err := compileLike(p.Value.(string), l.Escape, ci); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// NewCase makes CASE; results are converted to a common type and conditions must be boolean.
func NewCase(whens []When, els Expr) (Expr, error) {
	var results []Expr
	for _, w := range whens {
		results = append(results, w.Then)
	}
	if els != nil {
		results = append(results, els)
	}
	results, t, err := common("CASE", results...)
	if err != nil {
		return nil, err
	}
	c := &Case{Typ: t}
	for i, w := range whens {
		cond, err := asBoolean("WHEN", w.Cond)
		if err != nil {
			return nil, err
		}
		c.Whens = append(c.Whens, When{cond, results[i]})
	}
	if els != nil {
		c.Else = results[len(results)-1]
	}
	return c, nil
}

func asBoolean(what string, e Expr) (Expr, error) {
	if k := e.Type().Kind; k != vector.Boolean && k != vector.Null {
		return nil, mismatch("%s needs a boolean, and %s is %s", what, e, e.Type())
	}
	return Coerce(e, boolean)
}

// NewCast makes an explicit CAST, or TRY_CAST. TYPE_MISMATCH when the pair of types has no cast.
func NewCast(arg Expr, to vector.Type, try bool) (Expr, error) {
	from := arg.Type()
	if p, ok := arg.(*Param); ok && from.Kind == vector.Null {
		return &Param{Index: p.Index, Typ: to}, nil
	}
	if from.Equal(to) && (to.Kind != vector.TimestampTZ || from.CRS == to.CRS) {
		return arg, nil
	}
	if why, ok := castable(from, to); !ok {
		return nil, mismatch("cannot cast %s to %s%s", from, to, why)
	}
	if to.Kind == vector.TimestampTZ && to.CRS == "" {
		switch {
		case from.Kind == vector.TimestampTZ:
			to.CRS = from.CRS
		case isTextLiteral(arg):
			to.CRS = zoneOfText(arg.(*Literal).Value.(string))
		}
	}
	c := &Cast{Arg: arg, To: to, Try: try}
	if try {
		return c, nil
	}
	return foldCast(c), nil
}

// NewAnd joins predicates; nested ANDs are flattened. One argument is returned as it is.
func NewAnd(args ...Expr) (Expr, error) {
	var out []Expr
	for _, a := range args {
		b, err := asBoolean("AND", a)
		if err != nil {
			return nil, err
		}
		if n, ok := b.(*And); ok {
			out = append(out, n.Args...)
		} else {
			out = append(out, b)
		}
	}
	switch len(out) {
	case 0:
		return &Literal{Value: true, Typ: boolean}, nil
	case 1:
		return out[0], nil
	}
	return &And{Args: out}, nil
}

// NewOr is the disjunction; see NewAnd.
func NewOr(args ...Expr) (Expr, error) {
	var out []Expr
	for _, a := range args {
		b, err := asBoolean("OR", a)
		if err != nil {
			return nil, err
		}
		if n, ok := b.(*Or); ok {
			out = append(out, n.Args...)
		} else {
			out = append(out, b)
		}
	}
	switch len(out) {
	case 0:
		return &Literal{Value: false, Typ: boolean}, nil
	case 1:
		return out[0], nil
	}
	return &Or{Args: out}, nil
}

// NewNot negates. Predicates that have an opposite of their own become it.
func NewNot(arg Expr) (Expr, error) {
	b, err := asBoolean("NOT", arg)
	if err != nil {
		return nil, err
	}
	switch x := b.(type) {
	case *Not:
		return x.Arg, nil
	case *IsNull:
		return &IsNull{Arg: x.Arg, Negated: !x.Negated}, nil
	case *In:
		return &In{Arg: x.Arg, List: x.List, Negated: !x.Negated}, nil
	case *Like:
		n := *x
		n.Negated = !x.Negated
		return &n, nil
	case *Compare:
		// The order comparisons have no opposite: NOT (NaN < 1) is true and NaN >= 1 is not.
		switch x.Op {
		case Eq:
			return &Compare{Op: Ne, L: x.L, R: x.R}, nil
		case Ne:
			return &Compare{Op: Eq, L: x.L, R: x.R}, nil
		case Distinct:
			return &Compare{Op: NotDistinct, L: x.L, R: x.R}, nil
		case NotDistinct:
			return &Compare{Op: Distinct, L: x.L, R: x.R}, nil
		}
		if k := x.L.Type().Kind; k != vector.Real && k != vector.Double && !nested(x.L.Type()) {
			return &Compare{Op: [...]CompareOp{Lt: Ge, Le: Gt, Gt: Le, Ge: Lt}[x.Op], L: x.L, R: x.R}, nil
		}
	}
	return &Not{Arg: b}, nil
}

// NewSubscript is arg[index]: an element of an array (1-based), the value of a map's key, or a field of a row.
func NewSubscript(arg, index Expr) (Expr, error) {
	t := arg.Type()
	switch t.Kind {
	case vector.Row:
		l, ok := index.(*Literal)
		if !ok || !l.Typ.Integral() || l.Value == nil {
			return nil, mismatch("the subscript of a row must be an integer constant")
		}
		i, _ := toInt64(l.Value)
		if i < 1 || int(i) > len(t.Fields) {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "subscript %d of a row with %d fields", i, len(t.Fields))
		}
		return &FieldAccess{Arg: arg, Index: int(i) - 1, Name: t.Fields[i-1].Name}, nil
	case vector.Array, vector.Map:
		return NewCall("subscript", []Expr{arg, index})
	}
	return nil, mismatch("%s cannot be subscripted", t)
}

// NewField is arg.name for a row; the name matches exactly first, then without regard to case.
func NewField(arg Expr, name string) (Expr, error) {
	t := arg.Type()
	if t.Kind != vector.Row {
		return nil, mismatch("%s is %s, which has no fields", arg, t)
	}
	for i, f := range t.Fields {
		if f.Name == name {
			return &FieldAccess{Arg: arg, Index: i, Name: f.Name}, nil
		}
	}
	for i, f := range t.Fields {
		if strings.EqualFold(f.Name, name) || f.Name == "" && strings.EqualFold(name, "field"+strconv.Itoa(i)) {
			return &FieldAccess{Arg: arg, Index: i, Name: f.Name}, nil
		}
	}
	return nil, fault.WithID(fault.NotFound, "COLUMN_NOT_FOUND", "%s has no field %q", t, name)
}

func toInt64(v vector.Value) (int64, bool) {
	switch x := v.(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}
