package expr

import (
	"testing"

	"github.com/peterstace/simplefeatures/geom"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func shape(t *testing.T, wkt string) Expr {
	g, err := geom.UnmarshalWKT(wkt, geom.NoValidate{})
	require.NoError(t, err, wkt)
	return &Literal{Value: string(g.AsBinary()), Typ: vector.Type{Kind: vector.Geometry, CRS: "EPSG:3857"}}
}

func TestGeometryOfOne(t *testing.T) {
	for _, c := range []struct {
		f, wkt string
		want   vector.Value
	}{
		{"st_astext", "POINT (1.5 -2)", "POINT(1.5 -2)"}, {"st_x", "POINT (1.5 -2)", 1.5}, {"st_y", "POINT ZM (1.5 -2 3 4)", -2.0},
		{"st_z", "POINT ZM (1.5 -2 3 4)", 3.0}, {"st_z", "POINT (1 2)", nil}, {"st_m", "POINT ZM (1.5 -2 3 4)", 4.0}, {"st_x", "POINT EMPTY", nil},
		{"st_xmin", "LINESTRING (3 1, 0 5)", 0.0}, {"st_ymax", "LINESTRING (3 1, 0 5)", 5.0}, {"st_xmax", "POINT EMPTY", nil},
		{"st_area", "POLYGON ((0 0, 4 0, 4 3, 0 3, 0 0))", 12.0}, {"st_length", "LINESTRING (0 0, 3 4)", 5.0}, {"st_isempty", "POLYGON EMPTY", true},
		{"st_geometrytype", "MULTIPOINT (1 1)", "ST_MultiPoint"},
	} {
		e, err := NewCall(c.f, []Expr{shape(t, c.wkt)})
		got, err := evalOf(t, e, err)
		require.NoError(t, err, c.wkt)
		require.Equal(t, c.want, got, "%s(%s)", c.f, c.wkt)
	}
	e, err := NewCall("st_x", []Expr{shape(t, "LINESTRING (0 0, 1 1)")})
	_, err = evalOf(t, e, err)
	require.ErrorIs(t, err, fault.Invalid)
	e, err = NewCall("st_astext", []Expr{&Literal{Value: "\x01\x01", Typ: vector.Of(vector.Geometry)}})
	_, err = evalOf(t, e, err)
	require.ErrorIs(t, err, fault.Corrupt)
}

func TestGeometryOfTwo(t *testing.T) {
	square := "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
	for _, c := range []struct {
		f, a, b string
		want    vector.Value
	}{
		{"st_intersects", "POINT (1 1)", square, true}, {"st_intersects", "POINT (4 4)", square, true}, {"st_intersects", "POINT (5 5)", square, false},
		{"st_intersects", "LINESTRING (-1 2, 9 2)", square, true}, {"st_within", "POINT (1 1)", square, true}, {"st_within", "POINT (4 4)", square, false},
		{"st_coveredby", "POINT (4 4)", square, true}, {"st_contains", square, "POINT (1 1)", true}, {"st_contains", "POINT (1 1)", square, false},
		{"st_distance", "POINT (7 8)", square, 5.0}, {"st_distance", "POINT EMPTY", square, nil}, {"st_disjoint", "POINT (9 9)", square, true},
		{"st_equals", square, "POLYGON ((4 4, 0 4, 0 0, 4 0, 4 4))", true},
		// The boxes meet, the shapes do not.
		{"st_intersects", "LINESTRING (0 3, 3 6)", "POLYGON ((0 0, 4 0, 4 4, 0 0))", false},
	} {
		e, err := NewCall(c.f, []Expr{shape(t, c.a), shape(t, c.b)})
		got, err := evalOf(t, e, err)
		require.NoError(t, err, c.f)
		require.Equal(t, c.want, got, "%s(%s, %s)", c.f, c.a, c.b)
	}
}

func TestGeographyIsNotPlanar(t *testing.T) {
	at := func(wkt string) Expr {
		e, err := NewCall("st_geogfromtext", []Expr{textLiteral(wkt)})
		require.NoError(t, err)
		return e
	}
	e, err := NewCall("st_distance", []Expr{at("POINT (8.55 47.37)"), at("POINT (13.40 52.52)")})
	got, err := evalOf(t, e, err)
	require.NoError(t, err)
	require.InDelta(t, 668e3, got, 5e3)
	_, err = NewCall("st_intersects", []Expr{at("POINT (0 0)"), at("POINT (0 0)")})
	require.ErrorIs(t, err, fault.Invalid)
}

func TestGeometryLiterals(t *testing.T) {
	e, err := NewCall("st_geomfromtext", []Expr{textLiteral("POINT (1 2")})
	_, err = evalOf(t, e, err)
	require.ErrorIs(t, err, fault.Invalid)
	one := &Literal{Value: 1.0, Typ: double}
	box, err := NewCall("st_makeenvelope", []Expr{one, one, &Literal{Value: 3.0, Typ: double}, &Literal{Value: 2.0, Typ: double}})
	require.NoError(t, err)
	e, err = NewCall("st_astext", []Expr{box})
	got, err := evalOf(t, e, err)
	require.NoError(t, err)
	require.Equal(t, "POLYGON((1 1,1 2,3 2,3 1,1 1))", got)
}

// FuzzGeometry: no bytes and no text make the functions panic.
func FuzzGeometry(f *testing.F) {
	for _, wkt := range []string{"POINT (1 2)", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (0 0, 1 1))"} {
		g, err := geom.UnmarshalWKT(wkt)
		require.NoError(f, err)
		f.Add(g.AsBinary(), wkt)
	}
	f.Fuzz(func(t *testing.T, wkb []byte, wkt string) {
		g := &Literal{Value: string(wkb), Typ: vector.Of(vector.Geometry)}
		for _, name := range []string{"st_astext", "st_x", "st_xmin", "st_area", "st_envelope"} {
			e, err := NewCall(name, []Expr{g})
			require.NoError(t, err)
			_, _ = EvalConst(e, &Context{})
		}
		other, err := NewCall("st_geomfromtext", []Expr{textLiteral(wkt)})
		require.NoError(t, err)
		for _, name := range []string{"st_intersects", "st_within", "st_distance"} {
			e, err := NewCall(name, []Expr{g, other})
			require.NoError(t, err)
			_, _ = EvalConst(e, &Context{})
		}
	})
}
