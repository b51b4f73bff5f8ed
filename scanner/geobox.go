package scanner

import (
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/parquet"
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
	return ok1 && ok2 && g.outside(&parquet.Box{XMin: x1, XMax: x2, YMin: y1, YMax: y2})
}

// outside reports whether the box meets nothing within b. A b whose x bounds cross the antimeridian holds x from XMin up and to XMax
// down; one whose y bounds are inside out says nothing.
func (g *geoBox) outside(b *parquet.Box) bool {
	if b.YMin > b.YMax {
		return false
	}
	x := b.XMax < g.box.MinX || b.XMin > g.box.MaxX
	if b.XMin > b.XMax {
		x = b.XMax < g.box.MinX && b.XMin > g.box.MaxX
	}
	return x || b.YMax < g.box.MinY || b.YMin > g.box.MaxY
}

// boxesExclude asks the bounding boxes of row group g.
func (f *dataFile) boxesExclude(ft grouped, g int) bool {
	for i := range f.sc.boxes {
		b := &f.sc.boxes[i]
		n := ft.root().find(b.id)
		if n == nil || !n.onceARow() {
			continue
		}
		if box := ft.box(g, n); box != nil && b.outside(box) {
			f.sc.r.Profile.Removed(profile.Removal{Level: "row group", Means: "bounding box", Predicate: b.text}, 1)
			return true
		}
	}
	return false
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
