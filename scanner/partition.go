package scanner

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/vector"
)

// partitionColumns finds for each field of a spec the column of a manifest's partition tuples; nil where there is none.
func (sc *scan) partitionColumns(m *manifest.Manifest, sp *spec) []*vector.Vector {
	out := make([]*vector.Vector, len(sp.fields))
	for i, f := range sp.fields {
		for k := range m.Partition {
			p := &m.Partition[k]
			if p.ID == f.FieldID || p.ID < 0 && p.Name == f.Name {
				out[i] = p.Values
				break
			}
		}
	}
	return out
}

// tupleKey encodes a partition tuple so that equal tuples have equal keys: nulls are equal, NaN is one value, zeros differ by
// sign, and integers of different widths, as manifests from before a promotion hold them, are the same.
func tupleKey(m *manifest.Manifest, columns []*vector.Vector, i int) string {
	if len(columns) == 0 {
		return ""
	}
	var b []byte
	for _, v := range columns {
		if v == nil || v.IsNull(i) {
			b = append(b, 0)
			continue
		}
		switch x := v.Get(i).(type) {
		case bool:
			b = append(b, 1, byte(b2i(x)))
		case int32:
			b = appendLong(b, int64(x))
		case int64:
			if v.Type.Kind == vector.Decimal {
				b = appendDecimal(b, decimal128.FromI64(x))
			} else {
				b = appendLong(b, x)
			}
		case vector.Int128:
			b = appendDecimal(b, x)
		case float32:
			b = appendFloat(b, float64(x))
		case float64:
			b = appendFloat(b, x)
		case string:
			b = binary.AppendUvarint(append(b, 5), uint64(len(x)))
			b = append(b, x...)
		}
	}
	return string(b)
}

func appendLong(b []byte, x int64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, 2), uint64(x))
}

func appendDecimal(b []byte, x vector.Int128) []byte {
	b = binary.LittleEndian.AppendUint64(append(b, 3), x.LowBits())
	return binary.LittleEndian.AppendUint64(b, uint64(x.HighBits()))
}

func appendFloat(b []byte, f float64) []byte {
	bits := math.Float64bits(f)
	if f != f {
		bits = 0x7ff8000000000000
	}
	return binary.LittleEndian.AppendUint64(append(b, 4), bits)
}

// promote brings a partition value from the type that the manifest stores to the wanted one. ok is false when the one
// cannot become the other.
func promote(x vector.Value, from, to vector.Type) (vector.Value, bool) {
	if x == nil {
		return nil, true
	}
	switch v := x.(type) {
	case bool:
		return v, to.Kind == vector.Boolean
	case int32:
		switch to.Kind {
		case vector.Integer, vector.Date:
			return v, true
		case vector.BigInt:
			return int64(v), true
		case vector.Timestamp:
			day := int64(86_400_000_000)
			if to.Nanos() {
				day *= 1000
			}
			t := int64(v) * day
			return t, from.Kind == vector.Date && t/day == int64(v)
		}
	case int64:
		switch to.Kind {
		case vector.BigInt, vector.Time, vector.Timestamp, vector.TimestampTZ:
			return v, from.Kind == vector.BigInt
		case vector.Decimal:
			return decimalTo(decimal128.FromI64(v), from, to)
		}
	case vector.Int128:
		return decimalTo(v, from, to)
	case float32:
		switch to.Kind {
		case vector.Real:
			return v, true
		case vector.Double:
			return float64(v), true
		}
	case float64:
		return v, to.Kind == vector.Double
	case string:
		switch to.Kind {
		case vector.Varchar:
			return v, from.Kind == vector.Varchar
		case vector.Varbinary:
			return v, from.Kind == vector.Varbinary
		case vector.Fixed:
			return v, len(v) == to.Precision
		case vector.UUID:
			return v, len(v) == 16
		}
	}
	return nil, false
}

func decimalTo(w vector.Int128, from, to vector.Type) (vector.Value, bool) {
	if from.Kind != vector.Decimal || to.Kind != vector.Decimal || from.Scale != to.Scale || !w.FitsInPrecision(int32(to.Precision)) {
		return nil, false
	}
	if to.Physical() == vector.PInt128 {
		return w, true
	}
	return int64(w.LowBits()), true
}

// constants gives the values of identity-partition columns of one data file by wanted field.
func (f *dataFile) constants(w *want) (vector.Value, bool) {
	for i, pf := range f.spec.fields {
		if _, identity := pf.Transform.(iceberg.IdentityTransform); !identity || len(pf.SourceIDs) != 1 || pf.SourceIDs[0] != w.id {
			continue
		}
		v := f.tuple[i]
		if v == nil {
			continue
		}
		x, ok := promote(v.Get(f.row), v.Type, w.typ)
		return x, ok
	}
	return nil, false
}

// partitionRow is the value of the _partition column, whose fields carry partition field ids.
func (f *dataFile) partitionRow(w *want) vector.Value {
	if len(w.kids) == 0 {
		return nil
	}
	out := make([]vector.Value, len(w.kids))
	for k, field := range w.kids {
		for i, pf := range f.spec.fields {
			if pf.FieldID == field.id && f.tuple[i] != nil {
				v := f.tuple[i]
				if x, ok := promote(v.Get(f.row), v.Type, field.typ); ok {
					out[k] = x
				}
			}
		}
	}
	return out
}
