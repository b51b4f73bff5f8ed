package expr

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lit(v any) Expr {
	switch x := v.(type) {
	case int:
		return &Literal{Value: int32(x), Typ: integer}
	case int64:
		return &Literal{Value: x, Typ: bigint}
	case float64:
		return &Literal{Value: x, Typ: double}
	case string:
		return &Literal{Value: x, Typ: varchar}
	case bool:
		return &Literal{Value: x, Typ: boolean}
	case nil:
		return &Literal{Typ: unknown}
	case Expr:
		return x
	}
	panic("lit")
}

func dec(s string) Expr {
	v, p, sc, ok := ParseDecimal(s)
	if !ok {
		panic(s)
	}
	t := vector.DecimalOf(p, sc)
	return &Literal{Value: asDecimalValue(v, t), Typ: t}
}

func call(t *testing.T, name string, args ...any) Expr {
	t.Helper()
	es := make([]Expr, len(args))
	for i, a := range args {
		es[i] = lit(a)
	}
	e, err := NewCall(name, es)
	require.NoError(t, err)
	return e
}

// text evaluates an expression to the text of its value, or to the id of its error.
func text(e Expr, err error) string {
	if err == nil {
		var v vector.Value
		if v, err = EvalConst(e, &Context{}); err == nil {
			return FormatValue(v, e.Type())
		}
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return f.ID
	}
	return err.Error()
}

func TestArithmetic(t *testing.T) {
	for _, c := range []struct {
		op   string
		a, b any
		want string
		typ  string
	}{
		{"+", 1, 2, "3", "integer"},
		{"+", 2147483647, 1, "NUMERIC_VALUE_OUT_OF_RANGE", "integer"},
		{"*", int64(1 << 62), int64(2), "NUMERIC_VALUE_OUT_OF_RANGE", "bigint"},
		{"/", -7, 2, "-3", "integer"},
		{"%", -7, 2, "-1", "integer"},
		{"/", 1, 0, "DIVISION_BY_ZERO", "integer"},
		{"/", 1.0, 0.0, "Infinity", "double"},
		{"+", dec("0.01"), dec("1.5"), "1.51", "decimal(4,2)"},
		{"*", dec("0.01"), dec("1.5"), "0.015", "decimal(4,3)"},
		{"/", dec("1.5"), dec("1.5"), "1.000000", "decimal(8,6)"},
		{"/", dec("1.0"), dec("3.0"), "0.333333", "decimal(8,6)"},
		{"%", dec("-2.345"), dec("1.5"), "-0.845", "decimal(4,3)"},
		{"+", dec("1.5"), 1.0, "2.5E0", "double"},
		{"+", dec("1.5"), 1, "2.5", "decimal(12,1)"},
		{"/", dec("0.1"), 0, "DIVISION_BY_ZERO", "decimal(12,12)"},
	} {
		e := call(t, c.op, c.a, c.b)
		require.Equal(t, c.want, text(e, nil), e)
		require.Equal(t, c.typ, e.Type().String(), e)
	}
}

func TestCastTexts(t *testing.T) {
	for _, c := range []struct {
		from any
		to   vector.Type
		want string
	}{
		{" 12 ", integer, "12"}, {"1.5", integer, "INVALID_CAST_ARGUMENT"}, {"inf", double, "INVALID_CAST_ARGUMENT"},
		{"2.5", double, "2.5E0"}, {-1e20, varchar, "-1.0E20"}, {2.5, integer, "3"}, {2.5, vector.DecimalOf(38, 0), "3"},
		{dec("99.95"), vector.DecimalOf(3, 1), "NUMERIC_VALUE_OUT_OF_RANGE"}, {dec("-0.05"), varchar, "-0.05"},
		{"2024-02-29", dateType, "2024-02-29"}, {"2023-02-29", dateType, "INVALID_CAST_ARGUMENT"},
		{"2024-02-29 12:34:56.789", vector.Type{Kind: vector.Timestamp, Precision: 3}, "2024-02-29 12:34:56.789"},
		{"2024-03-10 06:59:59 UTC", vector.Type{Kind: vector.TimestampTZ, CRS: "America/New_York"}, "2024-03-10 01:59:59 America/New_York"},
		{"12151fd2-7586-11e9-8f9e-2a86e4085a59", vector.Of(vector.UUID), "12151fd2-7586-11e9-8f9e-2a86e4085a59"},
		{true, dateType, "TYPE_MISMATCH"}, {"true", boolean, "true"}, {2.5, jsonType, "2.5"},
	} {
		e, err := NewCast(lit(c.from), c.to, false)
		require.Equal(t, c.want, text(e, err), "%v to %s", c.from, c.to)
	}
}

func TestLike(t *testing.T) {
	for _, c := range []struct {
		s, p string
		want bool
	}{
		{"", "%", true}, {"", "", true}, {"", "_", false}, {"aXbXc", "a%b%c", true}, {"漢字", "_字", true}, {"aab", "%ab", true},
		{"mississippi", "m%iss%ip%i", true}, {"abc", "a.c", false}, {"100%", "100%", true}, {"abab", "ab", false}, {"xaby", "%a_y", true},
		{"xaby", "%a_", false}, {"aa", "a%a%a", false}, {"äbc", "%_bc", true}, {"bc", "%_bc", false},
	} {
		e, err := NewLike(lit(c.s), lit(c.p), nil, false, false)
		require.NoError(t, err)
		v, err := EvalConst(e, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, v, "%q like %q", c.s, c.p)
	}
	_, err := NewLike(lit("ab"), lit("%%"), lit("%"), false, false)
	require.NoError(t, err)
}

func TestTextOfAChunkIsBounded(t *testing.T) {
	p, err := Compile(call(t, "lpad", &Column{Index: 0, Typ: varchar}, int64(8<<20), "x"), nil)
	require.NoError(t, err)
	b := vector.NewBuilder(varchar)
	for range 100 {
		b.AppendBytes(nil)
	}
	_, err = p.Eval(&vector.Chunk{N: 100, Cols: []*vector.Vector{b.Finish()}})
	require.ErrorIs(t, err, fault.Exhausted)
}
