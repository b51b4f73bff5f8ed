package scanner

import (
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
)

// geoBox is a conjunct that is true only for geometries which meet a box.
type geoBox struct {
	id   int
	box  expr.Box
	text string
}

// geoBoxes finds them among the conjuncts of the filter.
func (sc *scan) geoBoxes() []geoBox {
	if sc.r.Filter == nil || sc.s.opt.Without.Bounds {
		return nil
	}
	ctx := sc.r.Context
	if ctx == nil {
		ctx = &expr.Context{}
	}
	var out []geoBox
	for _, e := range expr.Conjuncts(sc.r.Filter) {
		if c, b, ok := expr.BoxOf(e, ctx); ok && c.Index < len(sc.wants) && sc.metas[c.Index] == 0 {
			out = append(out, geoBox{sc.wants[c.Index].id, b, e.String()})
		}
	}
	return out
}

// excludes reports whether no geometry between the bounds meets the box. Bounds are the corners of all geometries of a file:
// two to four little-endian doubles, x and y first (spec: Bounds for Geometry and Geography). What is no such corner
// excludes nothing.
func (g *geoBox) excludes(lower, upper []byte) bool {
	x1, y1, ok1 := corner(lower)
	x2, y2, ok2 := corner(upper)
	if !ok1 || !ok2 || x1 > x2 || y1 > y2 {
		return false
	}
	return x2 < g.box.MinX || x1 > g.box.MaxX || y2 < g.box.MinY || y1 > g.box.MaxY
}

func corner(b []byte) (x, y float64, ok bool) {
	const double = 8
	if n := len(b); n != 2*double && n != 3*double && n != 4*double {
		return 0, 0, false
	}
	x, y = math.Float64frombits(binary.LittleEndian.Uint64(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[double:]))
	return x, y, !math.IsNaN(x) && !math.IsNaN(y)
}

// boxesKeep reports whether entry i may hold geometries that meet every box.
func (p *planner) boxesKeep(i int) bool {
	for k := range p.sc.boxes {
		g := &p.sc.boxes[k]
		st := p.m.Column(g.id)
		if st == nil {
			continue
		}
		lower, ok1 := st.Lower.At(i)
		upper, ok2 := st.Upper.At(i)
		if ok1 && ok2 && g.excludes(lower, upper) {
			p.sc.r.Profile.Removed(profile.Removal{Level: "file", Means: "bounding box", Predicate: g.text}, 1)
			return false
		}
	}
	return true
}
