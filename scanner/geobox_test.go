package scanner

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/scanner/parquet"
)

func TestGeometryBounds(t *testing.T) {
	corner := func(xs ...float64) []byte {
		var b []byte
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	}
	g := geoBox{box: expr.Box{MinX: 0, MinY: 0, MaxX: 10, MaxY: 10}}
	for _, c := range []struct {
		lower, upper []byte
		want         bool
	}{
		{corner(11, 0), corner(20, 5), true}, {corner(-5, -5), corner(-1, 20), true}, {corner(0, 11), corner(5, 12), true}, {corner(0, -9), corner(5, -1), true},
		{corner(10, 10), corner(20, 20), false}, {corner(-5, -5), corner(50, 50), false}, {corner(11, 0, 7), corner(20, 5, 9), true},
		{corner(11, 0, math.NaN(), 1), corner(20, 5, math.NaN(), 2), true},
		// What is no corner, or a box turned inside out, tells nothing.
		{corner(11), corner(20), false}, {corner(math.NaN(), 0), corner(20, 5), false}, {corner(20, 0), corner(11, 5), false}, {nil, nil, false},
	} {
		require.Equal(t, c.want, g.excludes(c.lower, c.upper), "%v %v", c.lower, c.upper)
	}
	for _, c := range []struct {
		box  parquet.Box
		want bool
	}{
		{parquet.Box{XMin: 170, XMax: -170, YMin: 0, YMax: 5}, true}, // across the antimeridian
		{parquet.Box{XMin: 170, XMax: 0, YMin: 0, YMax: 5}, false},
		{parquet.Box{XMin: 10, XMax: -170, YMin: 0, YMax: 5}, false},
		{parquet.Box{XMin: 170, XMax: -170, YMin: 11, YMax: 12}, true},
		{parquet.Box{XMin: 5, XMax: 3, YMin: 0, YMax: 5}, false}, // x at least 5 or at most 3
		{parquet.Box{XMin: 0, XMax: 1, YMin: 12, YMax: 11}, false},
		{parquet.Box{XMin: math.Inf(-1), XMax: -1, YMin: 0, YMax: 5}, true},
	} {
		require.Equal(t, c.want, g.outside(&c.box), "%v", c.box)
	}
}
