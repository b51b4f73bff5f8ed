package expr

import (
	"math"

	"github.com/peterstace/simplefeatures/geom"

	"github.com/skua-db/skua/vector"
)

// Box is the extent of a geometry in the plane.
type Box struct{ MinX, MinY, MaxX, MaxY float64 }

// boxed are the functions that are true only where the boxes of both arguments meet.
var boxed = map[string]bool{
	"st_intersects": true, "st_within": true, "st_coveredby": true, "st_contains": true, "st_covers": true, "st_touches": true,
	"st_crosses": true, "st_overlaps": true,
}

// BoxOf reports whether e is true only for rows whose geometry column meets a box that is known before the run. A
// constant that has no box, an empty one, is left to the rows.
func BoxOf(e Expr, ctx *Context) (c *Column, b Box, ok bool) {
	call, isCall := e.(*Call)
	if !isCall || !boxed[call.Fn.Name] || len(call.Args) != 2 {
		return nil, b, false
	}
	for i, a := range call.Args {
		col, isColumn := a.(*Column)
		other := call.Args[1-i]
		if !isColumn || col.Typ.Kind != vector.Geometry || len(Columns(other)) > 0 || Volatile(other) {
			continue
		}
		v, err := EvalConst(other, ctx)
		wkb, isText := v.(string)
		if err != nil || !isText {
			return nil, b, false
		}
		g, err := (&shapes{}).get(wkb)
		if err != nil {
			return nil, b, false
		}
		if b, ok = boxOf(g); ok {
			return col, b, true
		}
	}
	return nil, b, false
}

func boxOf(g geom.Geometry) (b Box, ok bool) {
	lo, ok1 := g.Envelope().Min().XY()
	hi, ok2 := g.Envelope().Max().XY()
	b = Box{lo.X, lo.Y, hi.X, hi.Y}
	for _, x := range []float64{b.MinX, b.MinY, b.MaxX, b.MaxY} {
		ok1 = ok1 && !math.IsNaN(x)
	}
	return b, ok1 && ok2
}
