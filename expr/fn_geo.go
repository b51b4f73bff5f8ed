package expr

import (
	"math"
	"strings"

	"github.com/peterstace/simplefeatures/geom"

	"github.com/skua-db/skua/fault"
)

// earthRadius is the mean radius in metres, by which distances on a sphere are measured.
const earthRadius = 6371008.8

// shapes decodes the WKB of one argument and keeps what it met last: nearly always one side is a constant.
type shapes struct {
	last string
	g    geom.Geometry
	ok   bool
}

func (s *shapes) get(wkb string) (geom.Geometry, error) {
	if s.ok && s.last == wkb {
		return s.g, nil
	}
	b := []byte(wkb)
	if err := checkWKB(b); err != nil {
		return geom.Geometry{}, err
	}
	g, err := geom.UnmarshalWKB(b, geom.NoValidate{})
	if err != nil {
		return g, fault.New(fault.Corrupt, "geometry value: %v", err)
	}
	s.last, s.g, s.ok = strings.Clone(wkb), g, true
	return g, nil
}

// guarded turns a panic of the geometry library into an error: it is given coordinates that nobody has checked.
func guarded[R any](f func() (R, error)) (out R, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "geometry is not valid: %v", r)
		}
	}()
	return f()
}

// shapeFn registers a function of one geometry or geography.
func shapeFn[R any](names, ret, doc string, f func(g geom.Geometry) (R, error), opts ...option) {
	for _, t := range []string{"geometry", "geography"} {
		defMake(names, "("+t+") "+ret, doc, func(*binding) (kernel, error) {
			var s shapes
			return fn1(func(_ *evalCall, wkb string) (R, error) {
				return guarded(func() (R, error) {
					g, err := s.get(wkb)
					if err != nil {
						var none R
						return none, err
					}
					return f(g)
				})
			}), nil
		}, opts...)
	}
}

// pairFn registers a function of two geometries in the plane.
func pairFn[R any](names, ret, doc string, f func(a, b geom.Geometry) (R, error), opts ...option) {
	defMake(names, "(geometry, geometry) "+ret, doc, func(*binding) (kernel, error) {
		var l, r shapes
		return fn2(func(_ *evalCall, a, b string) (R, error) {
			return guarded(func() (R, error) {
				var none R
				x, err := l.get(a)
				if err != nil {
					return none, err
				}
				y, err := r.get(b)
				if err != nil {
					return none, err
				}
				return f(x, y)
			})
		}), nil
	}, opts...)
}

// relation is a predicate of which the boxes of both sides decide most rows.
func relation(names, doc string, inside bool, f func(a, b geom.Geometry) (bool, error)) {
	pairFn(names, "boolean", doc, func(a, b geom.Geometry) (bool, error) {
		x, y := a.Envelope(), b.Envelope()
		if !x.Intersects(y) || inside && !y.Covers(x) {
			return false, nil
		}
		ok, err := f(a, b)
		if err != nil {
			return false, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%v", err)
		}
		return ok, nil
	})
}

// xy gives the coordinates of a point that is not empty.
func pointOf(g geom.Geometry) (geom.Coordinates, error) {
	p, ok := g.AsPoint()
	if !ok {
		return geom.Coordinates{}, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the argument is a %s, not a POINT", strings.ToUpper(g.Type().String()))
	}
	c, ok := p.Coordinates()
	if !ok {
		return c, errNull
	}
	return c, nil
}

func ordinate(names, doc string, pick func(c geom.Coordinates) (float64, bool)) {
	shapeFn(names, "double", doc, func(g geom.Geometry) (float64, error) {
		c, err := pointOf(g)
		if err != nil {
			return 0, err
		}
		x, ok := pick(c)
		if !ok {
			return 0, errNull
		}
		return x, nil
	}, mayNull)
}

func bound(names, doc string, pick func(e geom.Envelope) (geom.XY, bool), of func(geom.XY) float64) {
	shapeFn(names, "double", doc, func(g geom.Geometry) (float64, error) {
		p, ok := pick(g.Envelope())
		if !ok {
			return 0, errNull
		}
		return of(p), nil
	}, mayNull)
}

func x(p geom.XY) float64 { return p.X }
func y(p geom.XY) float64 { return p.Y }

func lowest(e geom.Envelope) (geom.XY, bool)  { return e.Min().XY() }
func highest(e geom.Envelope) (geom.XY, bool) { return e.Max().XY() }

// greatCircle is the distance of two points on a sphere, in metres (haversine formula).
func greatCircle(a, b geom.XY) float64 {
	rad := func(d float64) float64 { return d * math.Pi / 180 }
	s1, s2 := math.Sin(rad(b.Y-a.Y)/2), math.Sin(rad(b.X-a.X)/2)
	h := s1*s1 + math.Cos(rad(a.Y))*math.Cos(rad(b.Y))*s2*s2
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

func box(x1, y1, x2, y2 float64) (geom.Geometry, error) {
	for _, c := range []float64{x1, y1, x2, y2} {
		if math.IsNaN(c) || math.IsInf(c, 0) {
			return geom.Geometry{}, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "a coordinate of the box is not finite")
		}
	}
	return geom.NewEnvelope(geom.XY{X: x1, Y: y1}, geom.XY{X: x2, Y: y2}).AsGeometry(), nil
}

func init() {
	shapeFn("st_astext", "varchar", "the well-known text of a geometry", func(g geom.Geometry) (string, error) { return g.AsText(), nil })
	shapeFn("st_geometrytype", "varchar", "the type of a geometry, as in ST_Point", func(g geom.Geometry) (string, error) { return "ST_" + g.Type().String(), nil })
	shapeFn("st_isempty", "boolean", "whether a geometry has no points", func(g geom.Geometry) (bool, error) { return g.IsEmpty(), nil })
	for _, t := range []string{"geometry", "geography"} {
		def("st_asbinary", "("+t+") varbinary", "the well-known binary of a geometry", fn1(func(_ *evalCall, wkb []byte) ([]byte, error) { return wkb, nil }))
	}
	ordinate("st_x", "the x coordinate of a point", func(c geom.Coordinates) (float64, bool) { return c.X, true })
	ordinate("st_y", "the y coordinate of a point", func(c geom.Coordinates) (float64, bool) { return c.Y, true })
	ordinate("st_z", "the z coordinate of a point", func(c geom.Coordinates) (float64, bool) { return c.Z, c.Type.Is3D() })
	ordinate("st_m", "the measure of a point", func(c geom.Coordinates) (float64, bool) { return c.M, c.Type.IsMeasured() })
	bound("st_xmin", "the least x of a geometry", lowest, x)
	bound("st_ymin", "the least y of a geometry", lowest, y)
	bound("st_xmax", "the greatest x of a geometry", highest, x)
	bound("st_ymax", "the greatest y of a geometry", highest, y)

	wkt := fn1(func(_ *evalCall, text string) ([]byte, error) {
		g, err := geom.UnmarshalWKT(text)
		if err != nil {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "well-known text: %v", err)
		}
		return g.AsBinary(), nil
	})
	def("st_geometryfromtext st_geomfromtext", "(varchar) geometry", "the geometry of a well-known text", wkt)
	def("st_geogfromtext", "(varchar) geography", "the geography of a well-known text", wkt)
	wkb := fn1(func(_ *evalCall, b []byte) ([]byte, error) {
		if err := checkWKB(b); err != nil {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "well-known binary: %v", err)
		}
		return b, nil
	})
	def("st_geomfrombinary st_geomfromwkb", "(varbinary) geometry", "the geometry of a well-known binary", wkb)
	def("st_geogfromwkb", "(varbinary) geography", "the geography of a well-known binary", wkb)
	def("st_point st_makepoint", "(double, double) geometry", "a point of x and y", fn2(func(_ *evalCall, x, y float64) ([]byte, error) {
		if math.IsNaN(x) || math.IsNaN(y) || math.IsInf(x, 0) || math.IsInf(y, 0) {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "a coordinate of the point is not finite")
		}
		return geom.XY{X: x, Y: y}.AsPoint().AsBinary(), nil
	}))
	def("st_makeenvelope st_makebox2d", "(double, double, double, double) geometry", "the box from x and y to x and y", fn4(func(_ *evalCall, x1, y1, x2, y2 float64) ([]byte, error) {
		g, err := box(x1, y1, x2, y2)
		return g.AsBinary(), err
	}))
	shapeFn("st_envelope", "geometry", "the least box around a geometry", func(g geom.Geometry) ([]byte, error) { return g.Envelope().AsGeometry().AsBinary(), nil })
	planar := func(names, doc string, f func(g geom.Geometry) float64) {
		defMake(names, "(geometry) double", doc, func(*binding) (kernel, error) {
			var s shapes
			return fn1(func(_ *evalCall, wkb string) (float64, error) {
				return guarded(func() (float64, error) {
					g, err := s.get(wkb)
					if err != nil {
						return 0, err
					}
					return f(g), nil
				})
			}), nil
		})
	}
	planar("st_area", "the area of a geometry in the plane", func(g geom.Geometry) float64 { return g.Area() })
	planar("st_length", "the length of the lines of a geometry in the plane", func(g geom.Geometry) float64 { return g.Length() })

	relation("st_intersects", "whether two geometries have a point in common", false, func(a, b geom.Geometry) (bool, error) { return geom.Intersects(a, b), nil })
	relation("st_within", "whether the first geometry lies in the second", true, geom.Within)
	relation("st_coveredby", "whether no point of the first geometry lies outside the second", true, geom.CoveredBy)
	flip := func(f func(a, b geom.Geometry) (bool, error)) func(a, b geom.Geometry) (bool, error) {
		return func(a, b geom.Geometry) (bool, error) {
			if !a.Envelope().Covers(b.Envelope()) {
				return false, nil
			}
			return f(a, b)
		}
	}
	relation("st_contains", "whether the second geometry lies in the first", false, flip(geom.Contains))
	relation("st_covers", "whether no point of the second geometry lies outside the first", false, flip(geom.Covers))
	relation("st_touches", "whether two geometries have boundaries in common only", false, geom.Touches)
	relation("st_crosses", "whether two geometries cross", false, geom.Crosses)
	relation("st_overlaps", "whether two geometries of one dimension share a part of it", false, geom.Overlaps)
	pairFn("st_equals", "boolean", "whether two geometries are the same set of points", geom.Equals)
	pairFn("st_disjoint", "boolean", "whether two geometries have no point in common", func(a, b geom.Geometry) (bool, error) { return !geom.Intersects(a, b), nil })
	pairFn("st_distance", "double", "the least distance of two geometries in the plane", func(a, b geom.Geometry) (float64, error) {
		d, ok := geom.Distance(a, b)
		if !ok {
			return 0, errNull
		}
		return d, nil
	}, mayNull)
	defMake("st_distance", "(geography, geography) double", "the distance of two points on a sphere, in metres", func(*binding) (kernel, error) {
		var l, r shapes
		return fn2(func(_ *evalCall, a, b string) (float64, error) {
			var at [2]geom.XY
			for i, s := range []*shapes{&l, &r} {
				g, err := s.get([]string{a, b}[i])
				if err != nil {
					return 0, err
				}
				c, err := pointOf(g)
				if err != nil {
					return 0, err
				}
				at[i] = c.XY
			}
			return greatCircle(at[0], at[1]), nil
		}), nil
	}, mayNull)
}
