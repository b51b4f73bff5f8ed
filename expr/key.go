package expr

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/skua-db/skua/vector"
)

// AppendKey appends an encoding of row i that is equal for equal values of one type and only for those, as GROUP BY sees them: nulls
// are equal, NaN is one value, -0.0 is 0.0, maps do not depend on their order.
func AppendKey(dst []byte, v *vector.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	s, j := v.Values(), v.Index(i)
	switch v.Type.Physical() {
	case vector.PBool:
		if s.Bools[j] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case vector.PInt32:
		return binary.LittleEndian.AppendUint32(dst, uint32(s.I32[j]))
	case vector.PInt64:
		return binary.LittleEndian.AppendUint64(dst, uint64(s.I64[j]))
	case vector.PInt128:
		dst = binary.LittleEndian.AppendUint64(dst, s.I128[j].LowBits())
		return binary.LittleEndian.AppendUint64(dst, uint64(s.I128[j].HighBits()))
	case vector.PFloat32:
		return binary.LittleEndian.AppendUint32(dst, FloatKey32(s.F32[j]))
	case vector.PFloat64:
		return binary.LittleEndian.AppendUint64(dst, FloatKey64(s.F64[j]))
	case vector.PView:
		p := s.Views[j].Bytes(s.Bufs)
		if v.Type.Kind == vector.JSON {
			p = []byte(canonicalJSON(string(p)))
		}
		dst = binary.AppendUvarint(dst, uint64(len(p)))
		return append(dst, p...)
	case vector.PRow:
		for _, c := range s.Children {
			dst = AppendKey(dst, c, j)
		}
		return dst
	case vector.PList:
		lo, hi := int(s.Offsets[j]), int(s.Offsets[j+1])
		dst = binary.AppendUvarint(dst, uint64(hi-lo))
		if v.Type.Kind == vector.Map {
			entries := make([]string, 0, hi-lo)
			for k := lo; k < hi; k++ {
				entries = append(entries, string(AppendKey(AppendKey(nil, s.Children[0], k), s.Children[1], k)))
			}
			slices.Sort(entries)
			for _, e := range entries {
				dst = append(dst, e...)
			}
			return dst
		}
		for k := lo; k < hi; k++ {
			dst = AppendKey(dst, s.Children[0], k)
		}
		return dst
	}
	return dst
}

// FloatKey64 gives the bits of a double with one NaN and one zero.
func FloatKey64(f float64) uint64 {
	if f != f {
		return 0x7FF8000000000001
	}
	if f == 0 {
		return 0
	}
	return math.Float64bits(f)
}

// FloatKey32 is FloatKey64 for a real.
func FloatKey32(f float32) uint32 {
	if f != f {
		return 0x7FC00001
	}
	if f == 0 {
		return 0
	}
	return math.Float32bits(f)
}
