package prune

import (
	"math"

	"github.com/skua-db/skua/vector"
)

// castDomain gives the domain of a cast of values in d. Only casts that never turn the order of two values around are
// known; ok is false for others. Bounds stay outer bounds where the cast rounds or depends on the zone.
func castDomain(d Domain, from, to vector.Type) (Domain, bool) {
	out := Domain{class: classOf(to), mayNull: d.mayNull, mayValue: d.mayValue}
	var lo, hi func(datum) (datum, bool) // of the lower and of the upper bound
	one := func(f func(datum) (datum, bool)) bool { lo, hi = f, f; return true }
	known := false
	switch {
	case integerLike(from) && integerLike(to):
		known = one(func(x datum) (datum, bool) { return x, true })
	case integerLike(from) && to.Kind == vector.Decimal:
		known = one(func(x datum) (datum, bool) { return rescale(widen(x.i), to.Scale, to) })
	case (from.Kind == vector.Decimal) && to.Kind == vector.Decimal && to.Scale >= from.Scale:
		known = one(func(x datum) (datum, bool) { return rescale(wideOf(from, x), to.Scale-from.Scale, to) })
	case integerLike(from) && floatLike(to):
		known = one(func(x datum) (datum, bool) { return roundFloat(float64(x.i), to), true })
	case from.Kind == vector.Decimal && floatLike(to):
		known = true
		lo = func(x datum) (datum, bool) {
			return roundFloat(below(wideOf(from, x).ToFloat64(int32(from.Scale))), to), true
		}
		hi = func(x datum) (datum, bool) {
			return roundFloat(above(wideOf(from, x).ToFloat64(int32(from.Scale))), to), true
		}
	case floatLike(from) && floatLike(to):
		out.mayNaN = d.mayNaN
		known = one(func(x datum) (datum, bool) { return roundFloat(x.f, to), true })
	case from.Kind == vector.Varchar && to.Kind == vector.Varchar && to.Precision == 0:
		known = one(func(x datum) (datum, bool) { return x, true })
	case temporal(from) && temporal(to):
		lo, hi, known = castTime(from, to)
	}
	if !known {
		return Domain{}, false
	}
	if integerLike(from) && integerLike(to) {
		out.buckets, out.hashAs = d.buckets, d.hashAs
	}
	if d.hasMin {
		if v, ok := lo(d.min); ok {
			out.atLeast(v)
		}
	}
	if d.hasMax {
		if v, ok := hi(d.max); ok {
			out.atMost(v)
		}
	}
	return out, true
}

func integerLike(t vector.Type) bool { return t.Integral() }

func floatLike(t vector.Type) bool { return t.Kind == vector.Real || t.Kind == vector.Double }

func temporal(t vector.Type) bool {
	return t.Kind == vector.Date || t.Kind == vector.Timestamp || t.Kind == vector.TimestampTZ
}

// below and above step over the error of a conversion that may be off by a unit in the last place.
func below(f float64) float64 { return math.Nextafter(math.Nextafter(f, math.Inf(-1)), math.Inf(-1)) }
func above(f float64) float64 { return math.Nextafter(math.Nextafter(f, math.Inf(1)), math.Inf(1)) }

func roundFloat(f float64, to vector.Type) datum {
	if to.Kind == vector.Real {
		f = float64(float32(f))
	}
	return datum{f: f}
}

func wideOf(t vector.Type, x datum) vector.Int128 {
	if t.Physical() == vector.PInt128 {
		return x.w
	}
	return widen(x.i)
}

// rescale multiplies an unscaled decimal by 10^digits; ok is false when that does not fit the type.
func rescale(w vector.Int128, digits int, to vector.Type) (datum, bool) {
	if digits < 0 || digits > 38 || !w.FitsInPrecision(int32(38-digits)) {
		return datum{}, false
	}
	w = w.IncreaseScaleBy(int32(digits))
	if to.Physical() == vector.PInt128 {
		return datum{w: w}, true
	}
	i, ok := narrow(w)
	return datum{i: i}, ok
}

// castTime handles dates and timestamps. A change between zoned and not moves a value by less than a day, and a cast to fewer
// digits by less than a unit of the coarser type.
func castTime(from, to vector.Type) (lo, hi func(datum) (datum, bool), ok bool) {
	zoned := (from.Kind == vector.TimestampTZ) != (to.Kind == vector.TimestampTZ)
	slack := int64(0) // in nanoseconds
	if zoned {
		slack = microsADay * 1000
	}
	if to.Kind != vector.Date && from.Kind != vector.Date && to.Precision < from.Precision {
		unit := int64(1)
		for range 9 - to.Precision {
			unit *= 10
		}
		slack += unit
	}
	shift := func(sign int64) func(datum) (datum, bool) {
		return func(x datum) (datum, bool) {
			// Nanoseconds in 128 bits do not overflow.
			w := widen(x.i).Mul(widen(nanos(from))).Add(widen(sign * slack))
			q, r := w.Div(widen(nanos(to)))
			if r.Sign() < 0 {
				q = q.Sub(widen(1))
			}
			if sign > 0 && slack > 0 {
				q = q.Add(widen(1))
			}
			i, ok := narrow(q)
			if ok && to.Kind == vector.Date && i != int64(int32(i)) {
				ok = false
			}
			return datum{i: i}, ok
		}
	}
	return shift(-1), shift(1), true
}

// nanos is the length of a type's unit.
func nanos(t vector.Type) int64 {
	switch {
	case t.Kind == vector.Date:
		return microsADay * 1000
	case t.Nanos():
		return 1
	}
	return 1000
}
