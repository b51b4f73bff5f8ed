package expr

import (
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// maxPrecision is the largest precision of a decimal.
const maxPrecision = 38

var (
	bigint    = vector.Of(vector.BigInt)
	integer   = vector.Of(vector.Integer)
	double    = vector.Of(vector.Double)
	real32    = vector.Of(vector.Real)
	varchar   = vector.Of(vector.Varchar)
	varbinary = vector.Of(vector.Varbinary)
	dateType  = vector.Of(vector.Date)
	jsonType  = vector.Of(vector.JSON)
	unknown   = vector.Of(vector.Null)
)

// integerDigits are the decimal digits that hold any value of an integer type.
func integerDigits(k vector.Kind) int {
	switch k {
	case vector.TinyInt:
		return 3
	case vector.SmallInt:
		return 5
	case vector.Integer:
		return 10
	}
	return 19
}

// asDecimal gives the decimal type that holds every value of an integer or decimal type.
func asDecimal(t vector.Type) vector.Type {
	if t.Kind == vector.Decimal {
		return t
	}
	return vector.DecimalOf(integerDigits(t.Kind), 0)
}

// CommonType finds the type that values of a and b can both be converted to without asking: integers widen, an integer
// beside a decimal becomes one, a decimal beside a floating-point number becomes that, a date becomes a timestamp.
func CommonType(a, b vector.Type) (vector.Type, bool) {
	switch {
	case a.Kind == vector.Null:
		return b, true
	case b.Kind == vector.Null:
		return a, true
	}
	if a.Numeric() && b.Numeric() {
		return commonNumeric(a, b), true
	}
	if a.Kind == b.Kind {
		switch a.Kind {
		case vector.Varchar:
			if a.IsChar() && b.IsChar() {
				return vector.CharOf(max(a.Precision, b.Precision)), true
			}
			a.CRS = "" // beside varchar, char gives up its blanks
			if a.Precision == 0 || b.Precision == 0 {
				return varchar, true
			}
			a.Precision = max(a.Precision, b.Precision)
			return a, true
		case vector.Fixed:
			if a.Precision != b.Precision {
				return varbinary, true
			}
			return a, true
		case vector.Time, vector.Timestamp, vector.TimestampTZ:
			if a.CRS != b.CRS {
				a.CRS = ""
			}
			a.Precision = max(a.Precision, b.Precision)
			return a, true
		case vector.Array, vector.Map, vector.Row:
			return commonNested(a, b)
		}
		return a, a.Equal(b)
	}
	x, y := a, b
	if x.Kind > y.Kind {
		x, y = y, x
	}
	switch {
	case x.Kind == vector.Date && y.Kind == vector.Timestamp, x.Kind == vector.Date && y.Kind == vector.TimestampTZ:
		return y, true
	case x.Kind == vector.Timestamp && y.Kind == vector.TimestampTZ:
		y.Precision = max(x.Precision, y.Precision)
		return y, true
	case x.Kind == vector.Time && y.Kind == vector.Timestamp:
		return unknown, false
	case x.Kind == vector.Varbinary && y.Kind == vector.Fixed:
		return varbinary, true
	}
	return unknown, false
}

func commonNumeric(a, b vector.Type) vector.Type {
	switch {
	case a.Kind == vector.Double || b.Kind == vector.Double:
		return double
	case a.Kind == vector.Real || b.Kind == vector.Real:
		return real32
	case a.Kind == vector.Decimal || b.Kind == vector.Decimal:
		x, y := asDecimal(a), asDecimal(b)
		s := max(x.Scale, y.Scale)
		p := max(x.Precision-x.Scale, y.Precision-y.Scale) + s
		return vector.DecimalOf(min(p, maxPrecision), s)
	case a.Kind > b.Kind:
		return a
	}
	return b
}

func commonNested(a, b vector.Type) (vector.Type, bool) {
	if len(a.Fields) != len(b.Fields) {
		return unknown, false
	}
	out := vector.Type{Kind: a.Kind, Fields: make([]vector.Field, len(a.Fields))}
	for i := range a.Fields {
		t, ok := CommonType(a.Fields[i].Type, b.Fields[i].Type)
		if !ok {
			return unknown, false
		}
		f := a.Fields[i]
		f.Type = t
		f.Nullable = f.Nullable || b.Fields[i].Nullable
		if f.Name != b.Fields[i].Name {
			f.Name = ""
			if a.Fields[i].Name == "" {
				f.Name = b.Fields[i].Name
			} else if b.Fields[i].Name == "" {
				f.Name = a.Fields[i].Name
			}
		}
		f.ID = 0
		out.Fields[i] = f
	}
	return out, true
}

// coercionCost grades the implicit conversion from one type to another: 0 for none needed, larger for farther,
// negative when there is none.
func coercionCost(from, to vector.Type) int {
	if from.Equal(to) {
		return 0
	}
	if from.Kind == vector.Null {
		return 1
	}
	if from.IsChar() || to.IsChar() {
		if c, ok := CommonType(from, to); !ok || !c.Equal(to) {
			return -1
		}
		return 1
	}
	if from.Kind == vector.Varchar && to.Kind == vector.Varchar {
		if to.Precision == 0 || from.Precision > 0 && from.Precision <= to.Precision {
			return 0
		}
		return -1
	}
	c, ok := CommonType(from, to)
	if !ok || !c.Equal(to) {
		return -1
	}
	if from.Kind == to.Kind {
		return 1
	}
	if from.Numeric() {
		return 1 + numericRank(to.Kind) - numericRank(from.Kind)
	}
	return 3
}

// numericRank orders the numeric types by how far a value is from home: integers, decimals, floating point.
func numericRank(k vector.Kind) int {
	switch k {
	case vector.Decimal:
		return 5
	case vector.Real:
		return 6
	case vector.Double:
		return 7
	}
	return int(k - vector.TinyInt)
}

// isTextLiteral reports whether e is a string constant as written, which takes the type of what it stands beside.
func isTextLiteral(e Expr) bool {
	l, ok := e.(*Literal)
	return ok && l.Typ.Kind == vector.Varchar && !l.Typ.IsChar() && l.Value != nil
}

// Coerce converts e to a type implicitly. A text literal and a parameter without a type take the wanted type;
// everything else must have an implicit conversion, or the error is TYPE_MISMATCH.
func Coerce(e Expr, to vector.Type) (Expr, error) {
	from := e.Type()
	if from.Equal(to) {
		return e, nil
	}
	switch x := e.(type) {
	case *Param:
		if x.Typ.Kind == vector.Null {
			return &Param{Index: x.Index, Typ: to}, nil
		}
	case *Literal:
		if x.Value == nil && coercionCost(from, to) >= 0 {
			return &Literal{Typ: to}, nil
		}
		if isTextLiteral(e) && to.Kind != vector.Varchar && to.Kind != vector.Varbinary {
			if _, ok := castable(from, to); !ok {
				break
			}
			c := &Cast{Arg: e, To: to}
			v, err := EvalConst(c, &Context{})
			if err != nil {
				return nil, err
			}
			return &Literal{Value: v, Typ: to}, nil
		}
	}
	if coercionCost(from, to) < 0 {
		hint := ""
		if from.Kind == vector.Varchar || to.Kind == vector.Varchar {
			hint = "; use CAST"
		}
		return nil, fault.WithID(fault.Invalid, "TYPE_MISMATCH", "%s is %s where %s is needed%s", e, from, to, hint)
	}
	return foldCast(&Cast{Arg: e, To: to}), nil
}

// foldCast evaluates a cast of a constant at once, so that filters on columns stay comparisons with literals.
func foldCast(c *Cast) Expr {
	if l, ok := c.Arg.(*Literal); ok {
		if l.Value == nil {
			return &Literal{Typ: c.To}
		}
		if needsContext(l.Typ, c.To) {
			return c
		}
		if v, err := EvalConst(c, &Context{}); err == nil {
			return &Literal{Value: v, Typ: c.To}
		}
	}
	return c
}

// needsContext reports whether a cast depends on the session's zone or clock.
func needsContext(from, to vector.Type) bool {
	zoned := func(t vector.Type) bool { return t.Kind == vector.TimestampTZ && t.CRS == "" }
	if zoned(from) != zoned(to) && from.Kind != vector.Null {
		return true
	}
	return from.Kind == vector.Time && to.Kind == vector.Timestamp || nested(from) && nested(to)
}

// common coerces expressions to the type they share. Text literals do not take part in the choice unless all are text.
func common(what string, es ...Expr) ([]Expr, vector.Type, error) {
	t := unknown
	var texts []Expr
	for _, e := range es {
		if isTextLiteral(e) {
			texts = append(texts, e)
			continue
		}
		u, ok := CommonType(t, e.Type())
		if !ok {
			return nil, t, fault.WithID(fault.Invalid, "TYPE_MISMATCH", "%s: %s and %s have no common type%s", what, t, e.Type(), castHint(t, e.Type()))
		}
		t = u
	}
	for _, e := range texts {
		switch t.Kind {
		case vector.Boolean, vector.Time, vector.IntervalDay, vector.IntervalYear, vector.Varbinary:
			return nil, t, fault.WithID(fault.Invalid, "TYPE_MISMATCH", "%s: the text %s has no common type with %s; use CAST", what, e, t)
		case vector.Null, vector.Varchar:
			t, _ = CommonType(t, e.Type())
		}
	}
	out := make([]Expr, len(es))
	for i, e := range es {
		c, err := Coerce(e, t)
		if err != nil && isTextLiteral(e) && len(es) == 2 {
			// A text that does not read as the exact type of the other side may read as a wider one: an integer column
			// beside '1.5', a date beside '2024-01-01 10:00:00'.
			for _, w := range wider(t) {
				if c, werr := Coerce(e, w); werr == nil {
					if o, oerr := Coerce(es[1-i], w); oerr == nil {
						out[i], out[1-i] = c, o
						return out, w, nil
					}
				}
			}
		}
		if err != nil {
			return nil, t, err
		}
		out[i] = c
	}
	return out, t, nil
}

func wider(t vector.Type) []vector.Type {
	switch {
	case t.Integral():
		return []vector.Type{vector.DecimalOf(maxPrecision, 10), double}
	case t.Kind == vector.Date:
		return []vector.Type{vector.Of(vector.Timestamp)}
	}
	return nil
}

func castHint(a, b vector.Type) string {
	if a.Kind == vector.Varchar || b.Kind == vector.Varchar {
		return "; use CAST"
	}
	return ""
}

// comparable reports whether = is defined for t, and orderable whether < is.
func comparableType(t vector.Type) bool {
	switch t.Kind {
	case vector.Geometry, vector.Geography, vector.Variant:
		return false
	}
	for _, f := range t.Fields {
		if !comparableType(f.Type) {
			return false
		}
	}
	return true
}

// Orderable reports whether values of t have an order.
func Orderable(t vector.Type) bool {
	switch t.Kind {
	case vector.Geometry, vector.Geography, vector.Variant, vector.Map, vector.JSON:
		return false
	}
	for _, f := range t.Fields {
		if !Orderable(f.Type) {
			return false
		}
	}
	return true
}
