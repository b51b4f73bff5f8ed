package exec

import (
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// appendSortKey appends an encoding of row i whose bytewise order is the order of one sort key: nulls at their end, NaN after every
// number, -0.0 with 0.0, text by code points.
func appendSortKey(dst []byte, v *vector.Vector, i int, desc, nullsFirst bool) []byte {
	if v.IsNull(i) {
		if nullsFirst {
			return append(dst, 0)
		}
		return append(dst, 2)
	}
	dst = append(dst, 1)
	at := len(dst)
	dst = appendOrdered(dst, v, i)
	if desc {
		for k := at; k < len(dst); k++ {
			dst[k] = ^dst[k]
		}
	}
	return dst
}

func appendOrdered(dst []byte, v *vector.Vector, i int) []byte {
	s, j := v.Values(), v.Index(i)
	switch v.Type.Physical() {
	case vector.PBool:
		if s.Bools[j] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case vector.PInt32:
		return binary.BigEndian.AppendUint32(dst, uint32(s.I32[j])^1<<31)
	case vector.PInt64:
		return binary.BigEndian.AppendUint64(dst, uint64(s.I64[j])^1<<63)
	case vector.PInt128:
		dst = binary.BigEndian.AppendUint64(dst, uint64(s.I128[j].HighBits())^1<<63)
		return binary.BigEndian.AppendUint64(dst, s.I128[j].LowBits())
	case vector.PFloat32:
		return binary.BigEndian.AppendUint64(dst, orderedFloat(float64(s.F32[j])))
	case vector.PFloat64:
		return binary.BigEndian.AppendUint64(dst, orderedFloat(s.F64[j]))
	case vector.PView:
		// 0 is escaped and a terminator added, so that a prefix comes first and the next key does not run into this one.
		for _, b := range s.Views[j].Bytes(s.Bufs) {
			if b == 0 {
				dst = append(dst, 0, 0xFF)
			} else {
				dst = append(dst, b)
			}
		}
		return append(dst, 0, 0)
	case vector.PRow:
		for _, c := range s.Children {
			dst = appendSortKey(dst, c, j, false, false)
		}
		return dst
	case vector.PList:
		for e := int(s.Offsets[j]); e < int(s.Offsets[j+1]); e++ {
			dst = append(dst, 1)
			for _, c := range s.Children {
				dst = appendSortKey(dst, c, e, false, false)
			}
		}
		return append(dst, 0)
	}
	return dst
}

// orderedFloat maps doubles to integers of the same order, NaN last and one zero.
func orderedFloat(f float64) uint64 {
	if f != f {
		return math.MaxUint64
	}
	b := expr.FloatKey64(f)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}
