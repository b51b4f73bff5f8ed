package orc

import (
	"bytes"
	"context"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// rowIndex is the row index of a column in a stripe.
type rowIndex struct {
	groups []indexEntry
}

// indexEntry is a row group: where its streams begin, and its encoded statistics.
type indexEntry struct {
	positions []uint64
	stats     []byte
}

type indexKey struct {
	stripe, column int
}

// rowIndex gives the row index of a column in a stripe, read once; nil when there is none.
func (f *Footer) rowIndex(ctx context.Context, o storage.Object, stripe int, n *Node) (*rowIndex, error) {
	if err := f.readIndexes(ctx, o, stripe, n); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.indexes[indexKey{stripe, n.Column}], nil
}

// readIndexes reads the row indexes of some columns in a stripe that have not been read yet, with one list of ranges.
func (f *Footer) readIndexes(ctx context.Context, o storage.Object, stripe int, nodes ...*Node) error {
	foot, err := f.stripeFooter(ctx, o, stripe)
	if err != nil {
		return err
	}
	var missing []*Node
	var ranges []storage.Range
	var dst [][]byte
	f.mu.Lock()
	for _, n := range nodes {
		where := foot.streams[streamKey{n.Column, streamRowIndex}]
		if f.indexes[indexKey{stripe, n.Column}] == nil && where.Length > 0 {
			missing, ranges, dst = append(missing, n), append(ranges, where), append(dst, make([]byte, where.Length))
		}
	}
	f.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	if err := o.ReadRanges(ctx, ranges, dst); err != nil {
		return err
	}
	for i, n := range missing {
		b, err := f.inflate(dst[i])
		var x *rowIndex
		if err == nil {
			x, err = parseRowIndex(b)
		}
		if err != nil {
			return fault.Wrap(fault.Corrupt, err, "row index of column %s", n.Path())
		}
		held := int64(len(b))
		for _, g := range x.groups {
			held += int64(8*len(g.positions)) + 48
		}
		f.mu.Lock()
		if k := (indexKey{stripe, n.Column}); f.indexes[k] == nil {
			f.indexes[k] = x
			f.held.Add(held)
		}
		f.mu.Unlock()
	}
	return nil
}

func parseRowIndex(b []byte) (*rowIndex, error) {
	x := &rowIndex{}
	m := message{b: b}
	for m.next() {
		if m.num != 1 {
			continue
		}
		var g indexEntry
		e := message{b: m.data}
		for e.next() {
			switch e.num {
			case 1:
				g.positions = e.uints(g.positions)
			case 2:
				g.stats = e.data
			}
		}
		if e.err != nil {
			return nil, e.err
		}
		x.groups = append(x.groups, g)
	}
	return x, m.err
}

// Bounds gives what the statistics of column n in a stripe say, in type want. What cannot be trusted is left out, which only ever
// keeps more rows: columns in lists, types without an order, strings of writers that compared them wrongly, NaN, and a minimum above
// its maximum.
func (f *Footer) Bounds(stripe int, n *Node, want vector.Type) Bounds {
	s := f.Stripes[stripe]
	if s.stats == nil {
		return f.unknown(n, s.NumRows)
	}
	return f.bounds(s.stats[n.Column], n, want, s.NumRows)
}

// GroupIndex gives the rows and bounds of each row group of column n in a stripe, in type want; nil when the file has no row index for
// it.
func GroupIndex(ctx context.Context, o storage.Object, f *Footer, stripe int, n *Node, want vector.Type) ([]GroupBounds, error) {
	s := f.Stripes[stripe]
	if f.Stride <= 0 || n.Repeated {
		return nil, nil
	}
	x, err := f.rowIndex(ctx, o, stripe, n)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "ORC file %s: stripe %d", f.Path, stripe)
	}
	if x == nil || int64(len(x.groups)) != (s.NumRows+f.Stride-1)/f.Stride {
		return nil, nil
	}
	out := make([]GroupBounds, len(x.groups))
	for i, g := range x.groups {
		first := int64(i) * f.Stride
		rows := RowRange{First: first, Last: min(first+f.Stride, s.NumRows)}
		out[i] = GroupBounds{Rows: rows, Bounds: f.bounds(g.stats, n, want, rows.Len())}
	}
	return out, nil
}

func (f *Footer) unknown(n *Node, rows int64) Bounds {
	return Bounds{NullCount: -1, NumValues: rows, MayHaveNaN: n.Kind == Float || n.Kind == Double}
}

// statistics is a ColumnStatistics message.
type statistics struct {
	values             uint64
	hasValues          bool
	hasNull            int8 // -1 not said
	intMin, intMax     *int64
	floatMin, floatMax *float64
	textMin, textMax   []byte
	hasMin, hasMax     bool // of text
	decMin, decMax     []byte
	trues              *uint64
	utcMin, utcMax     *int64
}

func parseStatistics(b []byte) (s statistics, ok bool) {
	s.hasNull = -1
	m := message{b: b}
	for m.next() {
		p := message{b: m.data}
		switch m.num {
		case 1:
			s.values, s.hasValues = m.u, true
		case 10:
			s.hasNull = int8(m.u & 1)
		case 2, 7: // integers and dates
			for p.next() {
				switch p.num {
				case 1:
					x := zigzag(p.u)
					s.intMin = &x
				case 2:
					x := zigzag(p.u)
					s.intMax = &x
				}
			}
		case 3:
			for p.next() {
				switch p.num {
				case 1:
					x := math.Float64frombits(p.u)
					s.floatMin = &x
				case 2:
					x := math.Float64frombits(p.u)
					s.floatMax = &x
				}
			}
		case 4:
			for p.next() {
				switch p.num {
				case 1, 4: // minimum, or a lower bound where that is long
					s.textMin, s.hasMin = p.data, true
				case 2, 5:
					s.textMax, s.hasMax = p.data, true
				}
			}
		case 5:
			for p.next() {
				if p.num == 1 {
					if us := p.uints(nil); len(us) > 0 {
						s.trues = &us[0]
					}
				}
			}
		case 6:
			for p.next() {
				switch p.num {
				case 1:
					s.decMin = p.data
				case 2:
					s.decMax = p.data
				}
			}
		case 9:
			for p.next() {
				switch p.num {
				case 3:
					x := zigzag(p.u)
					s.utcMin = &x
				case 4:
					x := zigzag(p.u)
					s.utcMax = &x
				}
			}
		}
		if p.err != nil && m.wire == wireBytes {
			return s, false
		}
	}
	return s, m.err == nil
}

// The writers, and versions of them, whose statistics are known to be wrong.
const (
	writerJava = 0
	// hive8732 is the version from which the statistics of strings are those of their bytes.
	hive8732 = 1
	// orc135 is the version from which timestamps have statistics in UTC.
	orc135 = 6
)

func (f *Footer) bounds(encoded []byte, n *Node, want vector.Type, rows int64) Bounds {
	b := f.unknown(n, rows)
	if n.Repeated || len(encoded) == 0 || want.Kind == vector.Null {
		return b
	}
	s, ok := parseStatistics(encoded)
	if !ok {
		return b
	}
	if s.hasValues && s.values <= uint64(rows) && (s.hasNull != 0 || s.values > 0) {
		b.NullCount = rows - int64(s.values)
	}
	switch n.Kind {
	case Byte, Short, Int, Long, Date:
		b.Min, b.HasMin = intBound(s.intMin, n, want)
		b.Max, b.HasMax = intBound(s.intMax, n, want)
	case Boolean:
		if want.Kind == vector.Boolean && s.trues != nil && s.hasValues && s.values > 0 && *s.trues <= s.values {
			b.Min, b.HasMin = *s.trues == s.values, true
			b.Max, b.HasMax = *s.trues > 0, true
		}
	case Float, Double:
		b.Min, b.HasMin = floatBound(s.floatMin, n, want, -1)
		b.Max, b.HasMax = floatBound(s.floatMax, n, want, 1)
		if !b.HasMin || !b.HasMax { // one is NaN or missing, and says nothing of the other
			b.HasMin, b.HasMax = false, false
		}
	case String, Varchar:
		if want.Physical() == vector.PView && (f.writer != writerJava || f.writerVer >= hive8732) {
			if s.hasMin {
				b.Min, b.HasMin = string(s.textMin), true
			}
			if s.hasMax && utf8.Valid(s.textMax) {
				b.Max, b.HasMax = string(s.textMax), true
			}
		}
	case Decimal:
		if want.Kind == vector.Decimal {
			b.Min, b.HasMin = decimalBound(s.decMin, want)
			b.Max, b.HasMax = decimalBound(s.decMax, want)
		}
	case Timestamp, TimestampInstant:
		if f.writerVer >= orc135 && (n.Kind == Timestamp) == (want.Kind == vector.Timestamp) {
			b.Min, b.HasMin = timeBound(s.utcMin, want, -1)
			b.Max, b.HasMax = timeBound(s.utcMax, want, 1)
		}
	}
	if b.HasMin && b.HasMax && greater(b.Min, b.Max) {
		b.HasMin, b.HasMax = false, false
	}
	if !b.HasMin {
		b.Min = nil
	}
	if !b.HasMax {
		b.Max = nil
	}
	return b
}

func intBound(x *int64, n *Node, want vector.Type) (vector.Value, bool) {
	if x == nil {
		return nil, false
	}
	switch want.Kind {
	case vector.BigInt, vector.Time:
		return *x, n.Kind != Date
	case vector.TinyInt, vector.SmallInt, vector.Integer:
		return int32(*x), n.Kind != Date && *x == int64(int32(*x))
	case vector.Date:
		return int32(*x), n.Kind == Date && *x == int64(int32(*x))
	case vector.Timestamp:
		y := *x * perDay(want)
		return y, n.Kind == Date && y/perDay(want) == *x
	}
	return nil, false
}

// floatBound gives a bound in the wanted type. Zeros are widened, since writers order -0 and +0 either way.
func floatBound(x *float64, n *Node, want vector.Type, side float64) (vector.Value, bool) {
	if x == nil || math.IsNaN(*x) {
		return nil, false
	}
	v := *x
	if v == 0 {
		v = math.Copysign(0, side)
	}
	switch want.Kind {
	case vector.Double:
		return v, true
	case vector.Real:
		f := float32(v)
		return f, n.Kind == Float && float64(f) == v
	}
	return nil, false
}

// timeBound gives a bound of milliseconds in the wanted unit, a second wider than it says: fractions are not in it, and writers have
// rounded the seconds of timestamps before 1970 either way.
func timeBound(x *int64, want vector.Type, side int64) (vector.Value, bool) {
	if x == nil {
		return nil, false
	}
	unit := int64(1000)
	if want.Nanos() {
		unit = 1_000_000
	}
	const second = 1000
	if *x > math.MaxInt64/unit-second || *x < -(math.MaxInt64/unit-second) {
		return nil, false
	}
	return (*x + side*second) * unit, true
}

// decimalBound reads a decimal as text; nil when it is not one of at most the wanted scale.
func decimalBound(text []byte, want vector.Type) (vector.Value, bool) {
	neg := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		neg, text = text[0] == '-', text[1:]
	}
	whole, fraction, _ := bytes.Cut(text, []byte("."))
	if len(whole)+len(fraction) == 0 || len(whole)+len(fraction) > 60 {
		return nil, false
	}
	var x vector.Int128
	ten := decimal128.FromI64(10)
	limit := decimal128.GetScaleMultiplier(want.Precision)
	for i := range len(whole) + want.Scale {
		d := byte('0')
		switch {
		case i < len(whole):
			d = whole[i]
		case i-len(whole) < len(fraction):
			d = fraction[i-len(whole)]
		}
		if d < '0' || d > '9' {
			return nil, false
		}
		if x = x.Mul(ten).Add(decimal128.FromI64(int64(d - '0'))); x.Cmp(limit) >= 0 {
			return nil, false
		}
	}
	for _, d := range fraction[min(want.Scale, len(fraction)):] {
		if d != '0' {
			return nil, false
		}
	}
	if neg {
		x = x.Negate()
	}
	if want.Physical() == vector.PInt64 {
		return int64(x.LowBits()), true
	}
	return x, true
}

// greater reports whether a bound lies above another of its type.
func greater(a, b vector.Value) bool {
	switch x := a.(type) {
	case bool:
		return x && !b.(bool)
	case int32:
		return x > b.(int32)
	case int64:
		return x > b.(int64)
	case float32:
		return x > b.(float32)
	case float64:
		return x > b.(float64)
	case vector.Int128:
		return x.Cmp(b.(vector.Int128)) > 0
	case string:
		return x > b.(string)
	}
	return false
}
