package prune

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/twmb/murmur3"

	"github.com/skua-db/skua/vector"
)

// Partition narrows the columns of a filter by the partition fields of one spec.
type Partition struct {
	fields []partitionField
}

type partitionField struct {
	position int // in the spec
	column   int // in Filter.Columns
	typ      vector.Type
	kind     transformKind
	n        int64 // buckets or width
}

type transformKind uint8

const (
	identity transformKind = iota
	bucketed
	truncated
	years
	months
	days
	hours
)

// NewPartition finds the partition fields of spec that tell something about f's columns. Void and unknown transforms, and
// those of several columns, tell nothing.
func (f *Filter) NewPartition(spec iceberg.PartitionSpec) *Partition {
	p := &Partition{}
	for i, pf := range spec.Fields() {
		if len(pf.SourceIDs) != 1 {
			continue
		}
		for c, col := range f.columns {
			if col.ID != pf.SourceIDs[0] {
				continue
			}
			field := partitionField{position: i, column: c, typ: col.Type}
			switch t := pf.Transform.(type) {
			case iceberg.IdentityTransform:
				field.kind = identity
			case iceberg.BucketTransform:
				field.kind, field.n = bucketed, int64(t.NumBuckets)
			case iceberg.TruncateTransform:
				field.kind, field.n = truncated, int64(t.Width)
			case iceberg.YearTransform:
				field.kind = years
			case iceberg.MonthTransform:
				field.kind = months
			case iceberg.DayTransform:
				field.kind = days
			case iceberg.HourTransform:
				field.kind = hours
			default:
				continue
			}
			if (field.kind == bucketed || field.kind == truncated) && field.n <= 0 {
				continue
			}
			p.fields = append(p.fields, field)
		}
	}
	return p
}

// Useless reports whether the spec tells nothing about the filter's columns.
func (p *Partition) Useless() bool { return len(p.fields) == 0 }

// Tuple narrows domains, by column of the filter, to the files of one partition. value gives the partition value at a
// position of the spec: a vector of the stored type and the row; nil when the tuple lacks the field.
func (p *Partition) Tuple(domains []Domain, value func(position int) (*vector.Vector, int)) {
	for i := range p.fields {
		f := &p.fields[i]
		v, row := value(f.position)
		if v == nil {
			continue
		}
		d := &domains[f.column]
		if v.IsNull(row) { // all these transforms give null for null only
			d.mayValue, d.mayNaN = false, false
			continue
		}
		d.mayNull = false
		x, t, ok := stored(v, row)
		if !ok {
			continue
		}
		f.narrow(d, &x, &x, t, true)
	}
}

// Summary is what the files of a manifest have in common in one partition field; nil bounds are unknown.
type Summary struct {
	ContainsNull bool
	Lower, Upper []byte
}

// Summaries narrows domains to what a manifest list says about the partition fields of a manifest; summary gives that of a
// position of the spec.
func (p *Partition) Summaries(domains []Domain, summary func(position int) (Summary, bool)) {
	for i := range p.fields {
		f := &p.fields[i]
		s, ok := summary(f.position)
		if !ok {
			continue
		}
		d := &domains[f.column]
		if !s.ContainsNull {
			d.mayNull = false
		}
		t := f.resultType()
		var lo, hi *datum
		if s.Lower != nil {
			if x, ok := datumOfBytes(t, s.Lower); ok && x.f == x.f {
				lo = &x
			}
		}
		if s.Upper != nil && (t.Kind != vector.Varchar || utf8.Valid(s.Upper)) {
			if x, ok := datumOfBytes(t, s.Upper); ok && x.f == x.f {
				hi = &x
			}
		}
		f.narrow(d, lo, hi, t, false)
	}
}

// resultType is the type of the partition values, in the current type of the source.
func (f *partitionField) resultType() vector.Type {
	switch f.kind {
	case identity, truncated:
		return f.typ
	}
	return vector.Of(vector.Integer)
}

// stored reads a partition value in the type that the manifest stores.
func stored(v *vector.Vector, row int) (datum, vector.Type, bool) {
	x, ok := datumOf(v.Type, v.Get(row))
	return x, v.Type, ok
}

// promote brings a stored partition value of type t to the source's current type.
func (f *partitionField) promote(x *datum, t vector.Type) (datum, bool) {
	to := f.typ
	switch {
	case t.Kind == to.Kind && t.Kind != vector.Decimal:
		return *x, true
	case to.Kind == vector.Decimal && t.Kind == vector.Decimal && t.Scale == to.Scale:
		w := wideOf(t, *x)
		if to.Physical() == vector.PInt128 {
			return datum{w: w}, true
		}
		i, ok := narrow(w)
		return datum{i: i}, ok
	case to.Kind == vector.Date && t.Kind == vector.Integer, to.Integral() && t.Integral(),
		(to.Kind == vector.Time || to.Kind == vector.Timestamp || to.Kind == vector.TimestampTZ) && t.Kind == vector.BigInt,
		floatLike(to) && floatLike(t), (to.Kind == vector.Fixed || to.Kind == vector.UUID) && t.Kind == vector.Varbinary:
		return *x, true
	case to.Kind == vector.Timestamp && t.Kind == vector.Date:
		return scaled(x.i, unitsADay(to))
	}
	return datum{}, false
}

// narrow limits d to source values whose partition value lies between lo and hi (nil: open), of type t. exact says that lo
// and hi are the value of every row.
func (f *partitionField) narrow(d *Domain, lo, hi *datum, t vector.Type, exact bool) {
	switch f.kind {
	case identity:
		f.identity(d, lo, hi, t, exact)
	case bucketed:
		if lo != nil && hi != nil && lo.i == hi.i && t.Physical() == vector.PInt32 {
			d.buckets = append(d.buckets[:len(d.buckets):len(d.buckets)], bucket{int32(f.n), int32(lo.i)})
		}
	case truncated:
		f.truncated(d, lo, hi, t, exact)
	default:
		if p := t.Physical(); p == vector.PInt32 || p == vector.PInt64 {
			f.timed(d, lo, hi)
		}
	}
}

func (f *partitionField) identity(d *Domain, lo, hi *datum, t vector.Type, exact bool) {
	if lo != nil {
		if x, ok := f.promote(lo, t); ok {
			switch {
			case exact && x.f != x.f && d.mayNaN:
				d.onlyNaN()
				return
			case exact:
				d.mayNaN = false
			}
			d.atLeast(x)
		}
	}
	if hi != nil {
		if x, ok := f.promote(hi, t); ok {
			d.atMost(x)
		}
	}
}

func (f *partitionField) truncated(d *Domain, lo, hi *datum, t vector.Type, exact bool) {
	var l, h datum
	okL, okH := false, false
	if lo != nil {
		l, okL = f.promote(lo, t)
	}
	if hi != nil {
		h, okH = f.promote(hi, t)
	}
	switch d.class {
	case cInt:
		w := f.n
		limit := int64(math.MaxInt64)
		if f.typ.Physical() == vector.PInt32 {
			limit = math.MaxInt32
		}
		// A value near the least of its type wraps around to one that is near the greatest.
		wrapped := func(x int64) bool { return x > limit-w }
		if exact {
			if !okL || l.i%w != 0 {
				return
			}
		} else if okH && wrapped(h.i) || !okH {
			okL = false
		}
		if okL {
			d.atLeast(l)
		}
		if okH {
			if top := h.i + w - 1; top > h.i || w == 1 {
				d.atMost(datum{i: top})
			}
		}
	case cWide:
		if okL {
			d.atLeast(l)
		}
		if okH {
			top := h.w.Add(decimal128.FromI64(f.n - 1))
			if top.Cmp(h.w) >= 0 {
				d.atMost(datum{w: top})
			}
		}
	case cBytes:
		if okL {
			d.atLeast(l)
		}
		if okH {
			if length(f.typ, h.s) < f.n {
				d.atMost(h)
			} else if next, ok := successor(h.s); ok {
				d.atMost(datum{s: next})
			}
		}
	}
}

// length counts what a truncate transform counts: code points of text, bytes of binary.
func length(t vector.Type, s []byte) int64 {
	if t.Kind == vector.Varchar {
		return int64(utf8.RuneCount(s))
	}
	return int64(len(s))
}

// successor is the least byte string above all that start with s.
func successor(s []byte) ([]byte, bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] != 0xff {
			next := append([]byte(nil), s[:i+1]...)
			next[i]++
			return next, true
		}
	}
	return nil, false
}

// timed narrows by a year, month, day or hour, which count from 1970. Old writers rounded negative values towards zero, so
// that a value of zero or less may stand for the one before it; days of dates never had that fault.
func (f *partitionField) timed(d *Domain, lo, hi *datum) {
	if lo != nil {
		p := lo.i
		if p <= 0 && (f.kind != days || f.typ.Kind != vector.Date) {
			p--
		}
		if x, ok := f.start(p); ok {
			d.atLeast(x)
		}
	}
	if hi != nil && hi.i < math.MaxInt32 {
		if x, ok := f.start(hi.i + 1); ok {
			x.i--
			d.atMost(x)
		}
	}
}

// start is the first source value of a period.
func (f *partitionField) start(p int64) (datum, bool) {
	var day int64
	switch f.kind {
	case years:
		day = vector.CivilDays(1970+p, 1, 1)
	case months:
		y, m := p/12, p%12
		if m < 0 {
			y, m = y-1, m+12
		}
		day = vector.CivilDays(1970+y, int(m)+1, 1)
	case days:
		day = p
	case hours:
		switch f.typ.Kind {
		case vector.Timestamp, vector.TimestampTZ:
			return scaled(p, unitsADay(f.typ)/24)
		}
		return datum{}, false
	}
	switch f.typ.Kind {
	case vector.Date:
		return datum{i: day}, true
	case vector.Timestamp, vector.TimestampTZ:
		return scaled(day, unitsADay(f.typ))
	}
	return datum{}, false
}

// inBuckets reports whether v can be in the buckets that d is limited to.
func (d *Domain) inBuckets(v *datum) bool {
	for _, b := range d.buckets {
		h, ok := d.hash(v)
		if ok && int32(h&math.MaxInt32)%b.n != b.value {
			return false
		}
	}
	return true
}

// hash is the bucket transform's hash (spec: Appendix B, 32-bit Hash Requirements).
func (d *Domain) hash(v *datum) (uint32, bool) {
	var b [16]byte
	switch d.class {
	case cInt:
		x := v.i
		switch d.hashAs {
		case hashNanos:
			if x%1000 < 0 {
				x -= 1000
			}
			x /= 1000
		case hashDecimal:
			return hashWide(widen(x)), true
		}
		binary.LittleEndian.PutUint64(b[:], uint64(x))
		return murmur3.Sum32(b[:8]), true
	case cWide:
		return hashWide(v.w), true
	case cBytes, cUUID:
		return murmur3.Sum32(v.s), true
	case cFloat:
		f := v.f
		if f == 0 {
			f = 0
		}
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(f))
		return murmur3.Sum32(b[:8]), true
	}
	return 0, false
}

// hashWide hashes the fewest big-endian bytes that hold an unscaled decimal.
func hashWide(w vector.Int128) uint32 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(w.HighBits()))
	binary.BigEndian.PutUint64(b[8:], w.LowBits())
	i := 0
	for i < 15 && (b[i] == 0 && b[i+1] < 0x80 || b[i] == 0xff && b[i+1] >= 0x80) {
		i++
	}
	return murmur3.Sum32(b[i:])
}
