package parquet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Bounds gives what the statistics of a leaf in a row group say, in type want. Statistics that cannot be trusted are left out, which
// only ever keeps more rows: of columns in lists, of types without a defined order, of the deprecated fields where their order was
// wrong (parquet.thrift, Statistics), with NaN, with the wrong width, or with the minimum above the maximum.
func (f *Footer) Bounds(rg, leaf int, want vector.Type) Bounds {
	c, n := &f.RowGroups[rg].Columns[leaf], f.Leaves[leaf]
	b := Bounds{NullCount: -1, NumValues: c.NumValues, MayHaveNaN: isFloat(n)}
	if n.MaxRep > 0 {
		return b
	}
	s := &c.stats
	if s.nullCount >= 0 && s.nullCount <= c.NumValues {
		b.NullCount = s.nullCount
	}
	if s.nanCount == 0 {
		b.MayHaveNaN = false
	}
	conv, err := newConversion(n, want)
	if err != nil || conv.op == opNull {
		return b
	}
	lo, hi := s.min, s.max
	exact := s.minExact == 1 && s.maxExact == 1 || s.minExact < 0 && s.maxExact < 0 && n.Physical != ByteArray && n.Physical != FixedLenByteArray
	if !s.ordered(n) {
		lo, hi, exact = nil, nil, false
	}
	if lo == nil && hi == nil && s.oldMin != nil && s.oldMax != nil && (signedOrder(n) || bytes.Equal(s.oldMin, s.oldMax) && orderDefined(n)) {
		lo, hi = s.oldMin, s.oldMax
	}
	b.set(n, &conv, want, lo, hi, exact)
	return b
}

// ordered reports whether min_value and max_value have a meaning for the column.
func (s *statistics) ordered(n *Node) bool {
	return s.typeOrder && orderDefined(n) || s.totalOrder && isFloat(n)
}

// orderDefined reports whether the type has an order at all (LogicalTypes.md, parquet.thrift ColumnOrder).
func orderDefined(n *Node) bool {
	switch n.Logical.Kind {
	case Interval, Geometry, Geography, Variant, Unknown:
		return false
	}
	return n.Physical != Int96
}

// signedOrder reports whether the deprecated min and max, which compared bytes and numbers as signed, are right for the type.
func signedOrder(n *Node) bool {
	switch n.Physical {
	case Int32, Int64:
		return n.Logical.Kind != Integer || n.Logical.Signed
	case Boolean, Float, Double:
		return true
	}
	return false
}

func isFloat(n *Node) bool {
	return n.Physical == Float || n.Physical == Double || n.Logical.Kind == Float16
}

// set fills in the bounds lo and hi, raw statistics of column n, where they can be used. nil means that there is none.
func (b *Bounds) set(n *Node, conv *conversion, want vector.Type, lo, hi []byte, exact bool) {
	if lo != nil {
		b.Min, b.HasMin = statValue(n, conv, want, lo)
	}
	if hi != nil {
		b.Max, b.HasMax = statValue(n, conv, want, hi)
	}
	if isFloat(n) {
		b.mendFloats()
	}
	if b.HasMin && b.HasMax && compareValues(b.Min, b.Max) > 0 {
		b.HasMin, b.HasMax = false, false
	}
	if !b.HasMin {
		b.Min = nil
	}
	if !b.HasMax {
		b.Max = nil
	}
	b.Exact = exact && b.HasMin && b.HasMax && conv.op != opFloor
}

// mendFloats drops bounds when one is NaN and widens zeros: writers order -0 and +0 either way.
func (b *Bounds) mendFloats() {
	lo, hi := asFloat(b.Min), asFloat(b.Max)
	if b.HasMin && math.IsNaN(lo) || b.HasMax && math.IsNaN(hi) {
		b.HasMin, b.HasMax = false, false
		return
	}
	negative := math.Copysign(0, -1)
	if b.HasMin && lo == 0 {
		if _, ok := b.Min.(float32); ok {
			b.Min = float32(negative)
		} else {
			b.Min = negative
		}
	}
	if b.HasMax && hi == 0 {
		if _, ok := b.Max.(float32); ok {
			b.Max = float32(0)
		} else {
			b.Max = float64(0)
		}
	}
}

func asFloat(v vector.Value) float64 {
	switch x := v.(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	}
	return 0
}

// statValue decodes a plain-encoded statistic; byte arrays come without their length.
func statValue(n *Node, conv *conversion, want vector.Type, raw []byte) (vector.Value, bool) {
	switch n.Physical {
	case Boolean:
		if len(raw) != 1 {
			return nil, false
		}
		return raw[0] != 0, true
	case ByteArray:
		switch conv.op {
		case opBytes:
			return string(raw), true
		case opBytesLength:
			return string(raw), len(raw) == conv.length
		}
		p := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(raw)), uint32(len(raw)))
		raw = append(p, raw...)
	case FixedLenByteArray:
		if conv.op == opBytes {
			// A writer may cut the bounds of long values short.
			return string(raw), len(raw) <= n.Length
		}
		fallthrough
	default:
		if len(raw) != fixedWidth(n.Physical, n.Length) {
			return nil, false
		}
	}
	if conv.op == opSame {
		switch n.Physical {
		case Int32:
			return int32(binary.LittleEndian.Uint32(raw)), true
		case Int64:
			if conv.digits == 0 {
				return int64(binary.LittleEndian.Uint64(raw)), true
			}
		case Float:
			return math.Float32frombits(binary.LittleEndian.Uint32(raw)), true
		case Double:
			return math.Float64frombits(binary.LittleEndian.Uint64(raw)), true
		}
	}
	d := decoder{conv: *conv}
	if d.vals.reset(Plain, n, raw, 1, -1) != nil {
		return nil, false
	}
	v, err := d.all(want, 1)
	if err != nil {
		return nil, false
	}
	return v.Get(0), true
}

// compareValues orders two values of one type; values of types without an order here are equal.
func compareValues(a, b vector.Value) int {
	switch x := a.(type) {
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case float32:
		return cmp.Compare(x, b.(float32))
	case float64:
		return cmp.Compare(x, b.(float64))
	case vector.Int128:
		return x.Cmp(b.(vector.Int128))
	case string:
		return cmp.Compare(x, b.(string))
	}
	return 0
}

// PageIndex gives the rows and bounds of each data page of a leaf in a row group, in type want; nil when the file has no page index
// for it. Pages of columns in lists have rows but no bounds. A page index that contradicts itself is fault.Corrupt.
func PageIndex(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, want vector.Type) ([]PageBounds, error) {
	ps, err := f.offsetIndex(ctx, o, rg, leaf)
	if err != nil || len(ps) == 0 {
		return nil, err
	}
	x, err := f.columnIndexOf(ctx, o, rg, leaf)
	if err != nil || x == nil {
		return nil, err
	}
	if len(x.nullPages) != len(ps) {
		return nil, f.indexFail(fault.New(fault.Corrupt, "it has %d pages, the offset index %d", len(x.nullPages), len(ps)), "column index", rg, leaf)
	}
	n, s := f.Leaves[leaf], &f.RowGroups[rg].Columns[leaf].stats
	conv, convErr := newConversion(n, want)
	usable := n.MaxRep == 0 && convErr == nil && conv.op != opNull && s.ordered(n)
	out := make([]PageBounds, len(ps))
	for i := range out {
		b := &out[i]
		b.Rows = RowRange{ps[i].firstRow, f.RowGroups[rg].NumRows}
		if i+1 < len(ps) {
			b.Rows.Last = ps[i+1].firstRow
		}
		b.NullCount, b.NumValues, b.MayHaveNaN = -1, -1, isFloat(n)
		if n.MaxRep > 0 {
			continue
		}
		b.NumValues = b.Rows.Len()
		if x.nullCounts != nil && x.nullCounts[i] >= 0 && x.nullCounts[i] <= b.NumValues {
			b.NullCount = x.nullCounts[i]
		}
		if x.nanCounts != nil && x.nanCounts[i] == 0 {
			b.MayHaveNaN = false
		}
		if x.nullPages[i] {
			b.NullCount, b.MayHaveNaN = b.NumValues, false
			continue
		}
		if usable {
			b.set(n, &conv, want, x.mins[i], x.maxs[i], false)
		}
	}
	return out, nil
}
