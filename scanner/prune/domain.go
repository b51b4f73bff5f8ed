// Package prune decides from what is known about a set of rows — a manifest, a file, a row group, a page — whether a
// filter can be true for any of them.
//
// What is known is a Domain a column: outer bounds, and whether nulls, NaN or values may occur. A filter is evaluated over
// domains to the set of outcomes that SQL's three-valued logic allows; rows are left out only when true is not among them. It
// never reads a row. A Filter is immutable and safe for concurrent use.
package prune

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

// class is how the values of a type are held and compared.
type class uint8

const (
	cNone  class = iota // nothing is known but nulls
	cInt                // datum.i
	cFloat              // datum.f
	cWide               // datum.w
	cBytes              // datum.s, unsigned bytewise
	cUUID               // datum.s; bounds may follow either of two orders
)

func classOf(t vector.Type) class {
	switch t.Kind {
	case vector.UUID:
		return cUUID
	case vector.JSON, vector.Geometry, vector.Geography, vector.Variant:
		return cNone
	}
	switch t.Physical() {
	case vector.PBool, vector.PInt32, vector.PInt64:
		return cInt
	case vector.PInt128:
		return cWide
	case vector.PFloat32, vector.PFloat64:
		return cFloat
	case vector.PView:
		return cBytes
	}
	return cNone
}

// datum is a value without its type, free of allocation. Booleans are 0 and 1.
type datum struct {
	i int64
	f float64
	w vector.Int128
	s []byte
}

// datumOf unpacks a non-null value of type t.
func datumOf(t vector.Type, x vector.Value) (datum, bool) {
	switch v := x.(type) {
	case bool:
		if v {
			return datum{i: 1}, true
		}
		return datum{}, true
	case int32:
		return datum{i: int64(v)}, true
	case int64:
		return datum{i: v}, true
	case vector.Int128:
		return datum{w: v}, true
	case float32:
		return datum{f: float64(v)}, true
	case float64:
		return datum{f: v}, true
	case string:
		return datum{s: []byte(v)}, true
	}
	return datum{}, false
}

// value packs d as a value of type t.
func (d datum) value(t vector.Type) vector.Value {
	switch t.Physical() {
	case vector.PBool:
		return d.i != 0
	case vector.PInt32:
		return int32(d.i)
	case vector.PInt64:
		return d.i
	case vector.PInt128:
		return d.w
	case vector.PFloat32:
		return float32(d.f)
	case vector.PFloat64:
		return d.f
	}
	return string(d.s)
}

// compare orders two data of a class; NaN does not occur. signed orders UUIDs as two signed 64-bit halves, as Java does.
func compare(c class, a, b *datum, signed bool) int {
	switch c {
	case cInt:
		switch {
		case a.i < b.i:
			return -1
		case a.i > b.i:
			return 1
		}
		return 0
	case cFloat: // -0.0 equals +0.0
		switch {
		case a.f < b.f:
			return -1
		case a.f > b.f:
			return 1
		}
		return 0
	case cWide:
		return a.w.Cmp(b.w)
	case cUUID:
		if signed && len(a.s) == 16 && len(b.s) == 16 {
			for k := 0; k < 16; k += 8 {
				x, y := int64(binary.BigEndian.Uint64(a.s[k:])), int64(binary.BigEndian.Uint64(b.s[k:]))
				if x != y {
					if x < y {
						return -1
					}
					return 1
				}
			}
			return 0
		}
	}
	return bytes.Compare(a.s, b.s)
}

// Domain is what is known about the values of a column in a set of rows. Bounds are outer bounds: no value but NaN lies
// outside, and they need not occur. The zero Domain allows nothing; Any allows everything.
type Domain struct {
	class          class
	hasMin, hasMax bool
	mayNull        bool
	mayValue       bool
	mayNaN         bool
	min, max       datum
	buckets        []bucket
	hashAs         hashForm
}

// hashForm says how a cInt is hashed into buckets.
type hashForm uint8

const (
	hashLong hashForm = iota
	hashNanos
	hashDecimal
)

func hashFormOf(t vector.Type) hashForm {
	switch {
	case t.Nanos():
		return hashNanos
	case t.Kind == vector.Decimal:
		return hashDecimal
	}
	return hashLong
}

// bucket says that all values hash to one bucket of n.
type bucket struct{ n, value int32 }

// Any makes the domain of t that allows everything.
func Any(t vector.Type) Domain {
	c := classOf(t)
	return Domain{class: c, mayNull: true, mayValue: true, mayNaN: c == cFloat, hashAs: hashFormOf(t)}
}

// point makes the domain of one value; nil is null.
func point(t vector.Type, x vector.Value) Domain {
	d := Domain{class: classOf(t)}
	if x == nil {
		d.mayNull = true
		return d
	}
	v, ok := datumOf(t, x)
	if !ok {
		return Any(t)
	}
	d.mayValue = true
	d.setPoint(v)
	return d
}

func (d *Domain) setPoint(v datum) {
	if d.class == cFloat && v.f != v.f {
		d.onlyNaN()
		return
	}
	d.min, d.max, d.hasMin, d.hasMax, d.mayNaN = v, v, true, true, false
}

// onlyNaN leaves no value but NaN: nothing lies between the bounds, and NaN is not held against them.
func (d *Domain) onlyNaN() {
	d.mayNaN = true
	d.min, d.max, d.hasMin, d.hasMax = datum{f: math.Inf(1)}, datum{f: math.Inf(-1)}, true, true
}

// atLeast and atMost narrow d.
func (d *Domain) atLeast(v datum) {
	if d.class == cFloat && v.f != v.f {
		return
	}
	if d.class == cUUID && d.hasMin { // two bounds of unknown order do not combine
		return
	}
	if !d.hasMin || compare(d.class, &v, &d.min, false) > 0 {
		d.min, d.hasMin = v, true
	}
}

func (d *Domain) atMost(v datum) {
	if d.class == cFloat && v.f != v.f {
		return
	}
	if d.class == cUUID && d.hasMax {
		return
	}
	if !d.hasMax || compare(d.class, &v, &d.max, false) < 0 {
		d.max, d.hasMax = v, true
	}
}

// isPoint reports whether every value that is not NaN is the same.
func (d *Domain) isPoint() bool {
	return d.hasMin && d.hasMax && compare(d.class, &d.min, &d.max, false) == 0
}

// Bounds gives the bounds as values of type t; nil for none. A domain that allows NaN has no bounds.
func (d *Domain) Bounds(t vector.Type) (lo, hi vector.Value) {
	if d.class == cNone || d.mayNaN || d.class == cUUID {
		return nil, nil
	}
	if d.hasMin {
		lo = d.min.value(t)
	}
	if d.hasMax {
		hi = d.max.value(t)
	}
	return lo, hi
}

// MayBeNull reports whether a null may occur.
func (d *Domain) MayBeNull() bool { return d.mayNull }

// MayHaveValues reports whether anything but null may occur.
func (d *Domain) MayHaveValues() bool { return d.mayValue }

// Limit narrows d, of type t, to bounds and null count from a file format's statistics. A count below 0 is unknown.
func (d *Domain) Limit(t vector.Type, lo, hi vector.Value, nulls, values int64, mayNaN bool) {
	if lo != nil {
		if v, ok := datumOf(t, lo); ok {
			d.atLeast(v)
		}
	}
	if hi != nil {
		if v, ok := datumOf(t, hi); ok {
			d.atMost(v)
		}
	}
	d.Counts(nulls, values, -1)
	if !mayNaN {
		d.mayNaN = false
	}
}

// Counts narrows d to the counts of nulls, of values (nulls and NaN included) and of NaN; below 0 is unknown.
func (d *Domain) Counts(nulls, values, nans int64) {
	if nulls == 0 {
		d.mayNull = false
	}
	if nulls >= 0 && values >= 0 && nulls == values {
		d.mayValue = false
	}
	switch {
	case nans == 0:
		d.mayNaN = false
	case nans > 0 && nulls >= 0 && values-nulls == nans && d.class == cFloat:
		d.onlyNaN()
	}
}

// Constant sets d, of type t, to one value in every row.
func (d *Domain) Constant(t vector.Type, x vector.Value) { *d = point(t, x) }

// AllowNull lets nulls occur whatever counts say: for fields within optional structs, where writers count differently.
func (d *Domain) AllowNull() { d.mayNull = true }

// Lower narrows d, of type t, from below by a bound in Iceberg's binary form. A bound that cannot be one of t is passed over.
func (d *Domain) Lower(t vector.Type, b []byte) {
	if v, ok := datumOfBytes(t, b); ok {
		d.atLeast(v)
	}
}

// Upper narrows d from above; see Lower. A text that is not UTF-8 was cut within a character and bounds nothing.
func (d *Domain) Upper(t vector.Type, b []byte) {
	if t.Kind == vector.Varchar && !utf8.Valid(b) {
		return
	}
	if v, ok := datumOfBytes(t, b); ok {
		d.atMost(v)
	}
}

const microsADay = 86_400_000_000

// datumOfBytes decodes a single value in Iceberg's binary form (spec: Binary single-value serialization). Narrower forms from
// before a type promotion are widened.
func datumOfBytes(t vector.Type, b []byte) (datum, bool) {
	switch t.Kind {
	case vector.Boolean:
		if len(b) == 1 {
			d := datum{}
			if b[0] != 0 {
				d.i = 1
			}
			return d, true
		}
	case vector.Integer, vector.Date, vector.TinyInt, vector.SmallInt:
		if len(b) == 4 {
			return datum{i: int64(int32(binary.LittleEndian.Uint32(b)))}, true
		}
	case vector.BigInt, vector.Time:
		switch len(b) {
		case 4:
			return datum{i: int64(int32(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return datum{i: int64(binary.LittleEndian.Uint64(b))}, true
		}
	case vector.Timestamp, vector.TimestampTZ:
		switch len(b) {
		case 4: // days, from when the column was a date
			return scaled(int64(int32(binary.LittleEndian.Uint32(b))), unitsADay(t))
		case 8:
			return datum{i: int64(binary.LittleEndian.Uint64(b))}, true
		}
	case vector.Real, vector.Double:
		switch len(b) {
		case 4:
			return datum{f: float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))}, true
		case 8:
			return datum{f: math.Float64frombits(binary.LittleEndian.Uint64(b))}, true
		}
	case vector.Decimal:
		if len(b) == 0 || len(b) > 16 {
			return datum{}, false
		}
		w := bigEndian(b)
		if t.Physical() == vector.PInt128 {
			return datum{w: w}, true
		}
		i, ok := narrow(w)
		return datum{i: i}, ok
	case vector.Varchar, vector.Varbinary:
		return datum{s: b}, true
	case vector.Fixed:
		return datum{s: b}, true // may be cut short
	case vector.UUID:
		return datum{s: b}, len(b) == 16
	}
	return datum{}, false
}

func unitsADay(t vector.Type) int64 {
	if t.Nanos() {
		return microsADay * 1000
	}
	return microsADay
}

// scaled multiplies, refusing overflow.
func scaled(x, by int64) (datum, bool) {
	y := x * by
	return datum{i: y}, y/by == x
}

func bigEndian(b []byte) vector.Int128 {
	hi, lo := int64(0), uint64(0)
	if b[0]&0x80 != 0 {
		hi, lo = -1, math.MaxUint64
	}
	for _, x := range b {
		hi = hi<<8 | int64(lo>>56)
		lo = lo<<8 | uint64(x)
	}
	return decimal128.New(hi, lo)
}

func narrow(w vector.Int128) (int64, bool) {
	return int64(w.LowBits()), w.HighBits() == int64(w.LowBits())>>63
}

func widen(i int64) vector.Int128 { return decimal128.FromI64(i) }
