package expr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func parsedVariant(t *testing.T, text string) Expr {
	e, err := NewCall("parse_json", []Expr{&Literal{Value: text, Typ: varchar}})
	require.NoError(t, err)
	return e
}

func evalOf(t *testing.T, e Expr, err error) (vector.Value, error) {
	t.Helper()
	require.NoError(t, err)
	return EvalConst(e, &Context{})
}

func textLiteral(s string) Expr { return &Literal{Value: s, Typ: varchar} }

func TestVariantPaths(t *testing.T) {
	v := parsedVariant(t, `{"a": {"b": [1, 2.5, "x", {"c d": true}]}, "n": null, "it's": 7, "a": {"b": [10, 2.5, "x", {"c d": true}]}}`)
	for path, want := range map[string]vector.Value{
		"$.a.b[0]": "10", "a.b[1]": "2.5", "$['a']['b'][2]": "x", `$["a"].b[3]['c d']`: "true", "$['it''s']": "7",
		"$.a.b[9]": nil, "$.nope.b": nil, "$.a[0]": nil, "$.n": nil, "$.a": nil,
	} {
		e, err := NewCall("json_extract_scalar", []Expr{v, textLiteral(path)})
		got, err := evalOf(t, e, err)
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
	}
	for _, path := range []string{"$.", "$[x]", "$['a", "$[-1]", "$..a", "$[*]", "$.a[", "$x"} {
		e, err := NewCall("variant_get", []Expr{v, textLiteral(path)})
		_, err = evalOf(t, e, err)
		require.ErrorIs(t, err, fault.Invalid, path)
	}
}

// TestVariantNullIsNotNull: a field that holds null is there, one that is missing is SQL NULL.
func TestVariantNullIsNotNull(t *testing.T) {
	v := parsedVariant(t, `{"n": null}`)
	for path, want := range map[string]vector.Value{"$.n": true, "$.m": nil, "$": false} {
		part, err := NewCall("variant_get", []Expr{v, textLiteral(path)})
		require.NoError(t, err)
		e, err := NewCall("is_variant_null", []Expr{part})
		got, err := evalOf(t, e, err)
		require.NoError(t, err)
		require.Equal(t, want, got, path)
	}
}

func TestVariantCasts(t *testing.T) {
	integerArray := vector.ArrayOf(integer)
	for _, c := range []struct {
		json string
		to   vector.Type
		want vector.Value
	}{
		{`1`, bigint, int64(1)}, {`1`, double, float64(1)}, {`"1"`, bigint, int64(1)}, {`1.25`, vector.DecimalOf(5, 1), int64(13)},
		{`true`, boolean, true}, {`"2024-01-02"`, vector.Of(vector.Date), int32(19724)}, {`null`, bigint, nil}, {`"q"`, varchar, "q"},
		{`{"b":1,"a":[]}`, varchar, `{"a":[],"b":1}`}, {`[1,null]`, integerArray, []vector.Value{int32(1), nil}}, {`[]`, integerArray, []vector.Value{}},
		{`{"x":1}`, vector.MapOf(varchar, integer), []vector.Pair{{Key: "x", Value: int32(1)}}},
		{`{"x":1}`, vector.RowOf(vector.Field{Name: "y", Type: integer}, vector.Field{Name: "x", Type: integer}), []vector.Value{nil, int32(1)}},
		{`1e300`, double, 1e300}, {`null`, vector.Of(vector.JSON), "null"},
	} {
		e, err := NewCast(parsedVariant(t, c.json), c.to, false)
		got, err := evalOf(t, e, err)
		require.NoError(t, err, c.json)
		require.Equal(t, c.want, got, "%s to %s", c.json, c.to)
	}
	for _, c := range []struct {
		json string
		to   vector.Type
	}{{`"q"`, bigint}, {`[1]`, bigint}, {`{}`, integerArray}, {`1`, integerArray}, {`3000000000`, integer}, {`[1]`, vector.MapOf(varchar, integer)}} {
		e, err := NewCast(parsedVariant(t, c.json), c.to, false)
		_, err = evalOf(t, e, err)
		require.ErrorIs(t, err, fault.Invalid, "%s to %s", c.json, c.to)
		e, err = NewCast(parsedVariant(t, c.json), c.to, true)
		got, err := evalOf(t, e, err)
		require.NoError(t, err)
		require.Nil(t, got)
	}
	_, err := NewCast(parsedVariant(t, `1`), vector.Of(vector.Geometry), false)
	require.ErrorIs(t, err, fault.Invalid)
}

func TestCastToVariantAndBack(t *testing.T) {
	for _, c := range []struct {
		v vector.Value
		t vector.Type
	}{
		{int32(-7), integer}, {int64(1) << 40, bigint}, {2.5, double}, {float32(0.5), vector.Of(vector.Real)}, {"text", varchar}, {"\x00\xff", vector.Of(vector.Varbinary)},
		{int64(-1250), vector.DecimalOf(10, 2)}, {int32(-1), vector.Of(vector.Date)}, {int64(-1), vector.Of(vector.Timestamp)}, {int64(5), vector.Of(vector.Time)},
		{int64(7), vector.Type{Kind: vector.TimestampTZ, Precision: 9}}, {true, boolean}, {"0123456789abcdef", vector.Of(vector.UUID)},
		{[]vector.Value{int64(1), nil}, vector.ArrayOf(bigint)},
		{[]vector.Value{int32(1), "z"}, vector.RowOf(vector.Field{Type: integer}, vector.Field{Type: varchar})},
	} {
		v, err := toVariant(c.v, c.t, &Context{})
		require.NoError(t, err, c.t)
		x, err := variantOf(v)
		require.NoError(t, err)
		if c.t.Kind == vector.Row {
			s, err := variantText(x)
			require.NoError(t, err)
			require.Equal(t, `{"field0":1,"field1":"z"}`, s)
			continue
		}
		back, err := fromVariant(x, c.t, &Context{})
		require.NoError(t, err, c.t)
		require.Equal(t, c.v, back, c.t)
	}
}

// FuzzVariant: no bytes make the readers of variants panic.
func FuzzVariant(f *testing.F) {
	v, err := toVariant(`{"a": [1, {"b": "long enough to be no short string, which takes sixty-four bytes"}], "c": 1.5}`, vector.Of(vector.JSON), &Context{})
	require.NoError(f, err)
	fs := v.([]vector.Value)
	f.Add([]byte(fs[0].(string)), []byte(fs[1].(string)), "$.a[1].b")
	f.Add([]byte{1, 0, 0}, []byte{0}, "$")
	f.Add([]byte{0xc1, 0xff, 0xff, 0xff, 0xff}, []byte{0x02, 0xff}, "['x']")
	f.Fuzz(func(t *testing.T, metadata, value []byte, path string) {
		x := vector.VariantValue{Metadata: metadata, Value: value}
		if steps, err := parseVariantPath(path); err == nil {
			_, _, _ = variantAt(x, steps)
		}
		for _, to := range []vector.Type{varchar, bigint, vector.ArrayOf(varchar), vector.MapOf(varchar, varchar), vector.Of(vector.JSON)} {
			_, _ = fromVariant(x, to, &Context{})
		}
		_, _ = x.Alone()
		_, _ = variantType(x)
	})
}
