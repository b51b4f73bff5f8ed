package vector

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

const microsPerDay = 86_400_000_000

// ArrowValue gives row i of an array as a value of the type that FromArrow gives for the array's type.
func ArrowValue(a arrow.Array, i int) Value {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int32(a.Value(i))
	case *array.Int16:
		return int32(a.Value(i))
	case *array.Uint8:
		return int32(a.Value(i))
	case *array.Int32:
		return a.Value(i)
	case *array.Uint16:
		return int32(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		return decimal128.FromU64(a.Value(i))
	case *array.Float32:
		return a.Value(i)
	case *array.Float16:
		return a.Value(i).Float32()
	case *array.Float64:
		return a.Value(i)
	case *array.Decimal128:
		return decimalValue(a.Value(i), int(a.DataType().(*arrow.Decimal128Type).Precision))
	case *array.Decimal32:
		return int64(a.Value(i))
	case *array.Decimal64:
		return int64(a.Value(i))
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Date64:
		return int32(floorDiv(int64(a.Value(i)), 86_400_000))
	case *array.Time32:
		return int64(a.Value(i)) * (microsPerDay / 86_400 / unitsPerSecond(a.DataType().(*arrow.Time32Type).Unit))
	case *array.Time64:
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			return int64(a.Value(i)) / 1000
		}
		return int64(a.Value(i))
	case *array.Timestamp:
		return scaleToMicros(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).Unit)
	case *array.Duration:
		v := scaleToMicros(int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit)
		if a.DataType().(*arrow.DurationType).Unit == arrow.Nanosecond {
			v = floorDiv(v, 1000)
		}
		return v
	case *array.MonthInterval:
		return int32(a.Value(i))
	case array.ExtensionArray:
		return ArrowValue(a.Storage(), i)
	case *array.Dictionary:
		return ArrowValue(a.Dictionary(), a.GetValueIndex(i))
	case *array.Map:
		lo, hi := a.ValueOffsets(i)
		out := make([]Pair, 0, hi-lo)
		for k := lo; k < hi; k++ {
			out = append(out, Pair{ArrowValue(a.Keys(), int(k)), ArrowValue(a.Items(), int(k))})
		}
		return out
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		out := make([]Value, 0, hi-lo)
		for k := lo; k < hi; k++ {
			out = append(out, ArrowValue(a.ListValues(), int(k)))
		}
		return out
	case *array.Struct:
		out := make([]Value, a.NumField())
		for k := range out {
			out[k] = ArrowValue(a.Field(k), i)
		}
		return out
	case interface{ Value(int) string }:
		return a.Value(i)
	case interface{ Value(int) []byte }:
		return string(a.Value(i))
	}
	return nil
}

func decimalValue(n Int128, precision int) Value {
	if precision <= MaxShortDecimal {
		return int64(n.LowBits())
	}
	return n
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func unitsPerSecond(u arrow.TimeUnit) int64 {
	switch u {
	case arrow.Second:
		return 1
	case arrow.Millisecond:
		return 1000
	}
	return 1_000_000
}

// scaleToMicros brings seconds and milliseconds to microseconds and leaves finer units as they are.
func scaleToMicros(v int64, u arrow.TimeUnit) int64 {
	if u == arrow.Nanosecond {
		return v
	}
	return v * (1_000_000 / unitsPerSecond(u))
}
