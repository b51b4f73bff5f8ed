package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/vector"
)

// wall turns a value of a temporal type into a day and the nanoseconds in it, as its clock on the wall shows.
func wall(t vector.Type, ctx *Context) func(v int64) (days, nanos int64) {
	switch t.Kind {
	case vector.Date:
		return func(v int64) (int64, int64) { return v, 0 }
	case vector.Time:
		return func(v int64) (int64, int64) { return 0, v * 1000 }
	}
	per, unit := unitsPerDay(t), 1e9/unitsPerSecond(t)
	if t.Kind == vector.TimestampTZ {
		z := zoneOf(t, ctx.Zone)
		return func(v int64) (int64, int64) {
			v += offsetAt(v, t, z)
			return floorDiv(v, per), floorMod(v, per) * unit
		}
	}
	return func(v int64) (int64, int64) { return floorDiv(v, per), floorMod(v, per) * unit }
}

// unwall is the inverse of wall for dates and timestamps.
func unwall(t vector.Type, ctx *Context) func(days, nanos int64) (int64, error) {
	if t.Kind == vector.Date {
		return func(d, _ int64) (int64, error) { return d, nil }
	}
	z := zoneOf(t, ctx.Zone)
	return func(d, n int64) (int64, error) {
		v, ok := fromClock(d, n, vector.Type{Kind: t.Kind, Precision: max(t.Precision, 6)})
		if !ok {
			return 0, overflow("timestamp out of range")
		}
		if t.Kind == vector.TimestampTZ {
			v, _ = instant(v, t, z)
		}
		return v, nil
	}
}

// weekday is 1 for Monday to 7 for Sunday.
func weekday(days int64) int64 { return floorMod(days+3, 7) + 1 }

// isoWeek gives the ISO 8601 week and its year.
func isoWeek(days int64) (year, week int64) {
	thursday := days - weekday(days) + 4
	y, _, _ := civil(thursday)
	return y, (thursday-vector.CivilDays(y, 1, 1))/7 + 1
}

func dayOfYear(days int64) int64 {
	y, _, _ := civil(days)
	return days - vector.CivilDays(y, 1, 1) + 1
}

var dateParts = map[string]struct {
	doc string
	f   func(days int64) int64
}{
	"year":              {"the year", func(d int64) int64 { y, _, _ := civil(d); return y }},
	"quarter":           {"the quarter, 1 to 4", func(d int64) int64 { _, m, _ := civil(d); return int64(m+2) / 3 }},
	"month":             {"the month, 1 to 12", func(d int64) int64 { _, m, _ := civil(d); return int64(m) }},
	"week week_of_year": {"the ISO week, 1 to 53", func(d int64) int64 { _, w := isoWeek(d); return w }},
	"day day_of_month":  {"the day of the month", func(d int64) int64 { _, _, x := civil(d); return int64(x) }},
	"day_of_week dow":   {"the day of the week, Monday 1 to Sunday 7", weekday},
	"day_of_year doy":   {"the day of the year", dayOfYear},
	"year_of_week yow":  {"the year of the ISO week", func(d int64) int64 { y, _ := isoWeek(d); return y }},
}

var clockParts = map[string]struct {
	doc string
	f   func(nanos int64) int64
}{
	"hour":        {"the hour, 0 to 23", func(n int64) int64 { return n / 3600e9 }},
	"minute":      {"the minute", func(n int64) int64 { return n / 60e9 % 60 }},
	"second":      {"the second", func(n int64) int64 { return n / 1e9 % 60 }},
	"millisecond": {"the thousandths of the second", func(n int64) int64 { return n / 1e6 % 1000 }},
}

func init() {
	for names, p := range dateParts {
		for _, t := range []string{"date", "timestamp", "timestamptz"} {
			defMake(names, "("+t+") bigint", p.doc, func(b *binding) (kernel, error) {
				w := wall(b.args[0].Type(), b.ctx)
				return fn1(func(_ *evalCall, v int64) (int64, error) {
					d, _ := w(v)
					return p.f(d), nil
				}), nil
			})
		}
	}
	for name, p := range clockParts {
		for _, t := range []string{"time", "timestamp", "timestamptz"} {
			defMake(name, "("+t+") bigint", p.doc, func(b *binding) (kernel, error) {
				w := wall(b.args[0].Type(), b.ctx)
				return fn1(func(_ *evalCall, v int64) (int64, error) {
					_, n := w(v)
					return p.f(n), nil
				}), nil
			})
		}
		def(name, "(interval_day) bigint", p.doc, fn1(func(_ *evalCall, v int64) (int64, error) { return p.f(v % 86400e6 * 1000), nil }))
	}
	def("day day_of_month", "(interval_day) bigint", "the whole days", fn1(func(_ *evalCall, v int64) (int64, error) { return v / 86400e6, nil }))
	def("year", "(interval_year) bigint", "the whole years", fn1(func(_ *evalCall, v int64) (int64, error) { return v / 12, nil }))
	def("month", "(interval_year) bigint", "the months beyond whole years", fn1(func(_ *evalCall, v int64) (int64, error) { return v % 12, nil }))
	defMake("timezone_hour", "(timestamptz) bigint", "the hours of the zone's offset", zoneOffset(3600))
	defMake("timezone_minute", "(timestamptz) bigint", "the minutes of the zone's offset", zoneOffset(60))
	for _, t := range []string{"date", "timestamp", "timestamptz"} {
		defMake("last_day_of_month", "("+t+") date", "the last day of the month", func(b *binding) (kernel, error) {
			w := wall(b.args[0].Type(), b.ctx)
			return fn1(func(_ *evalCall, v int64) (int64, error) {
				d, _ := w(v)
				y, m, _ := civil(d)
				return vector.CivilDays(y, m, monthDays(y, m)), nil
			}), nil
		})
	}
	temporalArithmetic()
	truncAddDiff()
	clocks()
	zonesAndEpochs()
	dateTexts()
	def("human_readable_seconds", "(double) varchar", "a duration in words", fn1(func(_ *evalCall, s float64) (string, error) {
		if s-s != 0 {
			return "", badArgument("human_readable_seconds needs a finite number")
		}
		return humanSeconds(int64(math.Round(s))), nil
	}))
}

func zoneOffset(unit int) func(b *binding) (kernel, error) {
	return func(b *binding) (kernel, error) {
		t := b.args[0].Type()
		z := zoneOf(t, b.ctx.Zone)
		return fn1(func(_ *evalCall, v int64) (int64, error) {
			off := int(offsetAt(v, t, z) / unitsPerSecond(t))
			if unit == 3600 {
				return int64(off / 3600), nil
			}
			return int64(off / 60 % 60), nil
		}), nil
	}
}

// moved is the type of a time or timestamp moved by an interval, which counts milliseconds.
func moved(t vector.Type) vector.Type {
	if t.Kind != vector.Date {
		t.Precision = max(t.Precision, 3)
	}
	return t
}

// toMillis rounds microseconds to whole milliseconds, halves away from zero, which is what differences of timestamps count.
func toMillis(us int64) int64 {
	switch r := us % 1000; {
	case r >= 500:
		return us + 1000 - r
	case r <= -500:
		return us - 1000 - r
	default:
		return us - r
	}
}

func sameFirst(t []vector.Type) (vector.Type, error) { return t[0], nil }

// temporalArithmetic registers + and - of dates, times, timestamps and intervals.
func temporalArithmetic() {
	add := func(a, b int64) (int64, error) {
		r := a + b
		if (a^r)&(b^r) < 0 {
			return 0, overflow("date or interval out of range")
		}
		return r, nil
	}
	for _, op := range []string{"+", "-"} {
		sign := int64(1)
		if op == "-" {
			sign = -1
		}
		both := func(a, b string, doc string, mk func(t vector.Type, ctx *Context) func(v, iv int64) (int64, error)) {
			defMake(op, "("+a+", "+b+") "+a, doc, func(bd *binding) (kernel, error) {
				f := mk(bd.args[0].Type(), bd.ctx)
				return fn2(func(_ *evalCall, v, iv int64) (int64, error) { return f(v, iv*sign) }), nil
			}, returns(func(t []vector.Type) (vector.Type, error) {
				if b == "interval_day" {
					return moved(t[0]), nil
				}
				return t[0], nil
			}))
			if op == "+" {
				defMake(op, "("+b+", "+a+") "+a, doc, func(bd *binding) (kernel, error) {
					f := mk(bd.args[1].Type(), bd.ctx)
					return fn2(func(_ *evalCall, iv, v int64) (int64, error) { return f(v, iv) }), nil
				}, returns(func(t []vector.Type) (vector.Type, error) {
					if b == "interval_day" {
						return moved(t[1]), nil
					}
					return t[1], nil
				}))
			}
		}
		both("date", "interval_day", "the date moved", func(vector.Type, *Context) func(v, iv int64) (int64, error) {
			return func(v, iv int64) (int64, error) {
				if iv%86400e6 != 0 {
					return 0, badArgument("a date cannot be moved by a part of a day")
				}
				return v + iv/86400e6, nil
			}
		})
		both("date", "interval_year", "the date moved", func(vector.Type, *Context) func(v, iv int64) (int64, error) {
			return func(v, iv int64) (int64, error) { return addMonths(v, iv), nil }
		})
		both("time", "interval_day", "the time moved", func(vector.Type, *Context) func(v, iv int64) (int64, error) {
			return func(v, iv int64) (int64, error) { return floorMod(v+iv%86400e6, 86400e6), nil }
		})
		for _, ts := range []string{"timestamp", "timestamptz"} {
			both(ts, "interval_day", "the timestamp moved", func(t vector.Type, _ *Context) func(v, iv int64) (int64, error) {
				k := unitsPerSecond(t) / 1e6
				return func(v, iv int64) (int64, error) { return add(v, iv*k) }
			})
			both(ts, "interval_year", "the timestamp moved", func(t vector.Type, ctx *Context) func(v, iv int64) (int64, error) {
				w, u := wall(t, ctx), unwall(t, ctx)
				return func(v, iv int64) (int64, error) {
					d, n := w(v)
					return u(addMonths(d, iv), n)
				}
			})
			if op == "-" {
				def(op, "("+ts+", "+ts+") interval_day", "the time between", fn2(func(x *evalCall, a, b int64) (int64, error) {
					return toMillis((a - b) / (unitsPerSecond(x.args[0].Type) / 1e6)), nil
				}))
			}
		}
		for _, iv := range []string{"interval_day", "interval_year"} {
			def(op, "("+iv+", "+iv+") "+iv, "sum or difference of intervals", fn2(func(_ *evalCall, a, b int64) (int64, error) {
				r, err := add(a, b*sign)
				if err == nil && iv == "interval_year" && r != int64(int32(r)) {
					err = overflow("interval out of range")
				}
				return r, err
			}))
		}
	}
	def("-", "(date, date) interval_day", "the days between", fn2(func(_ *evalCall, a, b int64) (int64, error) { return (a - b) * 86400e6, nil }))
	def("-", "(time, time) interval_day", "the time between", fn2(func(_ *evalCall, a, b int64) (int64, error) { return toMillis(a - b), nil }))
	for _, iv := range []string{"interval_day", "interval_year"} {
		mul := func(a int64, f float64) (int64, error) {
			r := math.Trunc(float64(a) * f)
			if r != r || math.Abs(r) >= 1<<62 || iv == "interval_year" && math.Abs(r) > math.MaxInt32 {
				return 0, overflow("interval out of range")
			}
			return int64(r), nil
		}
		def("*", "("+iv+", bigint) "+iv, "the interval so many times", fn2(func(_ *evalCall, a, n int64) (int64, error) {
			if r := mulI64(a, n); fits64(r) && (iv == "interval_day" || int64(r.LowBits()) == int64(int32(r.LowBits()))) {
				return int64(r.LowBits()), nil
			}
			return 0, overflow("interval out of range")
		}))
		def("*", "(bigint, "+iv+") "+iv, "the interval so many times", fn2(func(_ *evalCall, n, a int64) (int64, error) {
			if r := mulI64(a, n); fits64(r) && (iv == "interval_day" || int64(r.LowBits()) == int64(int32(r.LowBits()))) {
				return int64(r.LowBits()), nil
			}
			return 0, overflow("interval out of range")
		}))
		def("*", "("+iv+", double) "+iv, "the interval so many times", fn2(func(_ *evalCall, a int64, f float64) (int64, error) { return mul(a, f) }))
		def("*", "(double, "+iv+") "+iv, "the interval so many times", fn2(func(_ *evalCall, f float64, a int64) (int64, error) { return mul(a, f) }))
		def("/", "("+iv+", double) "+iv, "a part of the interval", fn2(func(_ *evalCall, a int64, f float64) (int64, error) {
			if f == 0 {
				return 0, divisionByZero()
			}
			return mul(a, 1/f)
		}))
		def("neg", "("+iv+") "+iv, "negation", fn1(func(_ *evalCall, a int64) (int64, error) { return -a, nil }), hidden)
	}
}

func truncAddDiff() {
	for _, t := range []string{"date", "time", "timestamp", "timestamptz"} {
		defMake("date_trunc", "(varchar, "+t+") "+t, "cut to a unit", func(b *binding) (kernel, error) {
			ty := b.args[1].Type()
			w, u := wall(ty, b.ctx), unwall(ty, b.ctx)
			return fn2(func(_ *evalCall, unit string, v int64) (int64, error) {
				d, n := w(v)
				d2, n2, err := truncate(unit, ty.Kind, d, n)
				if err != nil {
					return 0, err
				}
				if ty.Kind == vector.Time {
					return n2 / 1000, nil
				}
				return u(d2, n2)
			}), nil
		}, returns(func(ts []vector.Type) (vector.Type, error) { return ts[1], nil }))
		defMake("date_add", "(varchar, bigint, "+t+") "+t, "moved by so many units", func(b *binding) (kernel, error) {
			ty := b.args[2].Type()
			w, u := wall(ty, b.ctx), unwall(ty, b.ctx)
			return fn3(func(_ *evalCall, unit string, n, v int64) (int64, error) {
				r, err := dateAdd(unit, n, v, ty, w, u)
				if err != nil || ty.Precision > 5 || ty.Kind == vector.Date {
					return r, err
				}
				step := pow10i64[6-ty.Precision] // microseconds of the last digit
				r = floorDiv(r+step/2, step) * step
				if ty.Kind == vector.Time {
					r = floorMod(r, 86400e6)
				}
				return r, nil
			}), nil
		}, returns(func(ts []vector.Type) (vector.Type, error) { return ts[2], nil }))
		defMake("date_diff datediff", "(varchar, "+t+", "+t+") bigint", "whole units between", func(b *binding) (kernel, error) {
			ty := b.args[1].Type()
			w := wall(ty, b.ctx)
			return fn3(func(_ *evalCall, unit string, a, c int64) (int64, error) { return dateDiff(unit, a, c, ty, w) }), nil
		})
	}
}

func badUnit(unit string, k vector.Kind) error {
	return badArgument("%q is no unit of a %s", unit, vector.Of(k))
}

func truncate(unit string, k vector.Kind, d, n int64) (int64, int64, error) {
	unit = strings.ToLower(unit)
	if k != vector.Date {
		switch unit {
		case "microsecond":
			return d, n / 1e3 * 1e3, nil
		case "millisecond":
			return d, n / 1e6 * 1e6, nil
		case "second":
			return d, n / 1e9 * 1e9, nil
		case "minute":
			return d, n / 60e9 * 60e9, nil
		case "hour":
			return d, n / 3600e9 * 3600e9, nil
		}
	}
	if k == vector.Time {
		return 0, 0, badUnit(unit, k)
	}
	y, m, _ := civil(d)
	switch unit {
	case "day":
		return d, 0, nil
	case "week":
		return d - weekday(d) + 1, 0, nil
	case "month":
		return vector.CivilDays(y, m, 1), 0, nil
	case "quarter":
		return vector.CivilDays(y, (m-1)/3*3+1, 1), 0, nil
	case "year":
		return vector.CivilDays(y, 1, 1), 0, nil
	case "decade":
		return vector.CivilDays(floorDiv(y, 10)*10, 1, 1), 0, nil
	case "century":
		return vector.CivilDays(floorDiv(y-1, 100)*100+1, 1, 1), 0, nil
	}
	return 0, 0, badUnit(unit, k)
}

// clockUnit gives the microseconds of a unit of the clock.
func clockUnit(unit string) (int64, bool) {
	switch strings.ToLower(unit) {
	case "microsecond":
		return 1, true
	case "millisecond":
		return 1000, true
	case "second":
		return 1e6, true
	case "minute":
		return 60e6, true
	case "hour":
		return 3600e6, true
	}
	return 0, false
}

// calendarUnit gives the days or the months of a unit of the calendar.
func calendarUnit(unit string) (days, months int64, ok bool) {
	switch strings.ToLower(unit) {
	case "day":
		return 1, 0, true
	case "week":
		return 7, 0, true
	case "month":
		return 0, 1, true
	case "quarter":
		return 0, 3, true
	case "year":
		return 0, 12, true
	}
	return 0, 0, false
}

func dateAdd(unit string, n, v int64, t vector.Type, w func(int64) (int64, int64), u func(d, n int64) (int64, error)) (int64, error) {
	const far = 1 << 53
	if n > far || n < -far {
		return 0, overflow("date_add: %d is too many", n)
	}
	if us, ok := clockUnit(unit); ok && t.Kind != vector.Date {
		if t.Kind == vector.Time {
			return floorMod(v+n%86400e6*us%86400e6, 86400e6), nil
		}
		p := mulI64(n, us*(unitsPerSecond(t)/1e6))
		r, ok := add128(p, int128(v))
		if !ok || !fits64(r) {
			return 0, overflow("timestamp out of range")
		}
		return int64(r.LowBits()), nil
	}
	days, months, ok := calendarUnit(unit)
	if !ok || t.Kind == vector.Time {
		return 0, badUnit(unit, t.Kind)
	}
	if n > 1<<36 || n < -1<<36 {
		return 0, overflow("date_add: %d is too many", n)
	}
	d, nanos := w(v)
	if months != 0 {
		d = addMonths(d, n*months)
	} else {
		d += n * days
	}
	if t.Kind == vector.Date && d != int64(int32(d)) {
		return 0, overflow("date out of range")
	}
	return u(d, nanos)
}

func dateDiff(unit string, a, b int64, t vector.Type, w func(int64) (int64, int64)) (int64, error) {
	if us, ok := clockUnit(unit); ok && t.Kind != vector.Date {
		k := int64(1)
		if t.Kind != vector.Time {
			k = unitsPerSecond(t) / 1e6
		}
		return (b - a) / (us * k), nil
	}
	days, months, ok := calendarUnit(unit)
	if !ok || t.Kind == vector.Time {
		return 0, badUnit(unit, t.Kind)
	}
	d1, n1 := w(a)
	d2, n2 := w(b)
	if months == 0 {
		diff := d2 - d1
		if diff > 0 && n2 < n1 {
			diff--
		} else if diff < 0 && n2 > n1 {
			diff++
		}
		return diff / days, nil
	}
	if d2 < d1 || d2 == d1 && n2 < n1 {
		return -wholeMonths(d2, n2, d1, n1) / months, nil
	}
	return wholeMonths(d1, n1, d2, n2) / months, nil
}

// wholeMonths counts the months from the first moment to the second, which is not before it. The last day of a month completes a month.
func wholeMonths(d1, n1, d2, n2 int64) int64 {
	y1, m1, _ := civil(d1)
	y2, m2, _ := civil(d2)
	k := (y2-y1)*12 + int64(m2-m1)
	if e := addMonths(d1, k); e > d2 || e == d2 && n1 > n2 {
		k--
	}
	return k
}

func clocks() {
	tz := func(digits int) option {
		return returns(func([]vector.Type) (vector.Type, error) {
			return vector.Type{Kind: vector.TimestampTZ, Precision: digits}, nil
		})
	}
	ts := func(digits int) option {
		return returns(func([]vector.Type) (vector.Type, error) {
			return vector.Type{Kind: vector.Timestamp, Precision: digits}, nil
		})
	}
	digits := func(x *evalCall) int64 {
		if len(x.args) > 0 {
			return x.args[0].I64[0]
		}
		return 3
	}
	nowMicros := func(x *evalCall) int64 {
		return roundNanos(floorMod(x.ctx.Now.UnixNano(), 1e9), int(min(max(digits(x), 0), 6)))/1000 + x.ctx.Now.Unix()*1e6
	}
	now := fn0(func(x *evalCall) (int64, error) { return nowMicros(x), nil })
	local := fn0(func(x *evalCall) (int64, error) {
		v := nowMicros(x)
		return v + offsetAt(v, vector.Of(vector.TimestampTZ), x.ctx.Zone), nil
	})
	def("now current_timestamp", "() timestamptz", "when the statement began", now, tz(3), session)
	def("current_timestamp", "(bigint) timestamptz", "when the statement began, with so many digits", now, tz(6), session)
	def("localtimestamp", "() timestamp", "when the statement began, by the session's clock", local, ts(3), session)
	def("localtimestamp", "(bigint) timestamp", "when the statement began, by the session's clock", local, ts(6), session)
	def("localtime current_time", "() time", "the session's time of day", fn0(func(x *evalCall) (int64, error) {
		v := nowMicros(x)
		return floorMod(v+offsetAt(v, vector.Of(vector.TimestampTZ), x.ctx.Zone), 86400e6), nil
	}), session, returns(func([]vector.Type) (vector.Type, error) { return vector.Type{Kind: vector.Time, Precision: 3}, nil }))
	def("current_date today", "() date", "the session's date", fn0(func(x *evalCall) (int64, error) {
		v := x.ctx.Now.Unix() * 1e6
		return floorDiv(v+offsetAt(v, vector.Of(vector.TimestampTZ), x.ctx.Zone), 86400e6), nil
	}), session)
	def("current_timezone", "() varchar", "the session's time zone", fn0(func(x *evalCall) (string, error) { return zoneName(x.ctx.Zone), nil }), session)
}

func zonesAndEpochs() {
	zone := func(args []Expr) (string, bool) {
		l, ok := args[1].(*Literal)
		if !ok || l.Value == nil {
			return "", false
		}
		s, ok := l.Value.(string)
		return s, ok
	}
	// The zone is a part of the type, so it must be known when the call is bound.
	check := func(f *Function) {
		f.check = func(args []Expr) error {
			if s, ok := zone(args); ok {
				_, err := LoadZone(s)
				return err
			}
			if l, ok := args[1].(*Literal); ok && l.Value == nil {
				return nil
			}
			return badArgument("the time zone must be a constant, not %s", args[1])
		}
	}
	def("at_timezone", "(timestamptz, varchar) timestamptz", "the instant in a zone", fn2(func(_ *evalCall, v int64, _ string) (int64, error) { return v, nil }), check,
		returns(sameFirst))
	defMake("with_timezone", "(timestamp, varchar) timestamptz", "the clock read in a zone", func(b *binding) (kernel, error) {
		t := b.args[0].Type()
		return fn2(func(_ *evalCall, v int64, name string) (int64, error) {
			z, err := LoadZone(name)
			if err != nil {
				return 0, err
			}
			v, _ = instant(v, t, z)
			return v, nil
		}), nil
	}, check, returns(func(t []vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.TimestampTZ, Precision: t[0].Precision}, nil
	}))
	tz3 := returns(func([]vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.TimestampTZ, Precision: 3}, nil
	})
	epoch := func(s float64) (int64, error) {
		v := math.Floor(s*1000 + 0.5)
		if v != v || math.Abs(v) > 1<<52 {
			return 0, badArgument("%v seconds are out of range", s)
		}
		return int64(v) * 1000, nil
	}
	def("from_unixtime", "(double) timestamptz", "the instant so many seconds after 1970", fn1(func(_ *evalCall, s float64) (int64, error) { return epoch(s) }), tz3)
	def("from_unixtime", "(double, varchar) timestamptz", "the instant so many seconds after 1970, in a zone", fn2(func(_ *evalCall, s float64, _ string) (int64, error) { return epoch(s) }), check, tz3)
	def("from_unixtime_nanos", "(bigint) timestamptz", "the instant so many nanoseconds after 1970", fn1(func(_ *evalCall, n int64) (int64, error) { return n, nil }),
		returns(func([]vector.Type) (vector.Type, error) {
			return vector.Type{Kind: vector.TimestampTZ, Precision: 9}, nil
		}))
	def("from_unixtime", "(double, bigint, bigint) timestamptz", "the instant so many seconds after 1970; hours and minutes of an offset from UTC must be possible",
		fn3(func(_ *evalCall, s float64, hours, minutes int64) (int64, error) {
			if hours < -14 || hours > 14 || minutes < -59 || minutes > 59 {
				return 0, badArgument("%d hours and %d minutes are no offset from UTC", hours, minutes)
			}
			return epoch(s)
		}), tz3, func(f *Function) {
			f.check = func(args []Expr) error {
				if _, ok := offsetOf(args[1:]); !ok {
					return badArgument("the offset from UTC must be constants that make one, not %s and %s", args[1], args[2])
				}
				return nil
			}
		})
	def("from_unixtime_nanos", "(decimal) timestamptz", "the instant so many nanoseconds after 1970", fn1(func(x *evalCall, n vector.Int128) (int64, error) {
		v := n
		if s := x.args[0].Type.Scale; s > 0 {
			v = divRound128(n, pow10i128[s])
		}
		if !fits64(v) {
			return 0, overflow("from_unixtime_nanos: the number does not fit a bigint")
		}
		return int64(v.LowBits()), nil
	}), returns(func([]vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.TimestampTZ, Precision: 9}, nil
	}))
	for _, t := range []string{"timestamp", "timestamptz"} {
		def("to_unixtime", "("+t+") double", "seconds since 1970", fn1(func(x *evalCall, v int64) (float64, error) {
			return float64(v) / float64(unitsPerSecond(x.args[0].Type)), nil
		}))
		def("to_milliseconds epoch_ms", "("+t+") bigint", "milliseconds since 1970", fn1(func(x *evalCall, v int64) (int64, error) {
			return floorDiv(v, unitsPerSecond(x.args[0].Type)/1000), nil
		}))
	}
	def("to_milliseconds", "(interval_day) bigint", "the interval in milliseconds", fn1(func(_ *evalCall, v int64) (int64, error) { return v / 1000, nil }))
	defMake("timezone", "(timestamptz) varchar", "the zone", func(b *binding) (kernel, error) {
		z := zoneName(zoneOf(b.args[0].Type(), b.ctx.Zone))
		return fn1(func(_ *evalCall, _ int64) (string, error) { return z, nil }), nil
	})
	for _, t := range []string{"varchar", "timestamp", "timestamptz", "date"} {
		defMake("date", "("+t+") date", "the date", func(b *binding) (kernel, error) {
			from := b.args[0].Type()
			return fn1(func(x *evalCall, v vector.Value) (int32, error) {
				d, err := castValue(v, from, dateType, x.ctx)
				if err != nil {
					return 0, err
				}
				return d.(int32), nil
			}), nil
		})
	}
	def("make_date", "(bigint, bigint, bigint) date", "a date of its parts", fn3(func(_ *evalCall, y, m, d int64) (int64, error) {
		if m < 1 || m > 12 || y < -999999 || y > 999999 || d < 1 || d > int64(monthDays(y, int(m))) {
			return 0, badArgument("%d-%d-%d is not a date", y, m, d)
		}
		return vector.CivilDays(y, int(m), int(d)), nil
	}))
}

// offsetOf gives the zone of constant hours and minutes from UTC; null ones have none.
func offsetOf(args []Expr) (zone string, ok bool) {
	var n [2]int64
	for i, a := range args {
		l, ok := a.(*Literal)
		if !ok {
			return "", false
		}
		if l.Value == nil {
			return "", true
		}
		n[i] = l.Value.(int64)
	}
	if n[0] < -14 || n[0] > 14 || n[1] < -59 || n[1] > 59 {
		return "", false
	}
	m, sign := n[0]*60+n[1], '+'
	if m < 0 {
		m, sign = -m, '-'
	}
	return fmt.Sprintf("%c%02d:%02d", sign, m/60, m%60), m <= 14*60
}

func humanSeconds(s int64) string {
	sign := ""
	if s < 0 {
		sign, s = "-", -s
	}
	var parts []string
	for _, u := range []struct {
		n    int64
		name string
	}{{604800, "week"}, {86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		k := s / u.n
		s %= u.n
		if k == 0 && (u.n > 1 || len(parts) > 0) {
			continue
		}
		p := strconv.FormatInt(k, 10) + " " + u.name
		if k != 1 {
			p += "s"
		}
		parts = append(parts, p)
	}
	return sign + strings.Join(parts, ", ")
}

// zonedResult puts the constant zone of at_timezone and its kin into the type of their result.
func zonedResult(c *Call) {
	switch c.Fn.Name {
	case "at_timezone", "with_timezone", "from_unixtime":
		if len(c.Args) == 3 {
			if name, ok := offsetOf(c.Args[1:]); ok && name != "" {
				if z, err := LoadZone(name); err == nil {
					c.Typ.CRS = z.String()
				}
			}
		}
		if len(c.Args) == 2 {
			if l, ok := c.Args[1].(*Literal); ok && l.Value != nil {
				if z, err := LoadZone(l.Value.(string)); err == nil {
					c.Typ.CRS = z.String()
				}
			}
		}
	}
}

func isoText(days, nanos int64, t vector.Type, offset string) string {
	b := appendDate(nil, days)
	if t.Kind != vector.Date {
		b = append(b, 'T')
		b = appendClock(b, nanos, t.Precision)
	}
	return string(b) + offset
}

func offsetText(v int64, t vector.Type, z *time.Location) string {
	off := offsetAt(v, t, z) / unitsPerSecond(t)
	if off == 0 {
		return "Z"
	}
	sign := '+'
	if off < 0 {
		sign, off = '-', -off
	}
	return fmt.Sprintf("%c%02d:%02d", sign, off/3600, off/60%60)
}
