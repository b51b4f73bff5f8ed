package vector

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/google/uuid"

	"github.com/skua-db/skua/fault"
)

// maxVariantDepth bounds the nesting of a variant value.
const maxVariantDepth = 500

// AppendVariantJSON renders a variant (Parquet's Variant Encoding, version 1) as JSON text. What JSON cannot say becomes a
// string: dates and times in ISO form, binaries in hex, UUIDs, NaN and the infinities. A variant null is the text null, which
// is not a SQL NULL. A malformed value is fault.Corrupt.
func AppendVariantJSON(dst, metadata, value []byte) ([]byte, error) {
	v := variantReader{left: len(value) + 1}
	if err := v.dictionary(metadata); err != nil {
		return dst, err
	}
	return v.value(dst, value, 0)
}

// variantReader holds the dictionary of field names.
type variantReader struct {
	names   []byte
	offsets []uint32
	// left is how many values may still be read: each takes a byte of its own, so that parts that overlap are damage.
	left int
}

func badVariant(what string) error { return fault.New(fault.Corrupt, "variant value: %s", what) }

// little reads an unsigned little-endian number of size bytes, at most 4.
func little(b []byte, at, size int) (uint32, bool) {
	if at < 0 || at+size > len(b) {
		return 0, false
	}
	var n uint32
	for i := size - 1; i >= 0; i-- {
		n = n<<8 | uint32(b[at+i])
	}
	return n, true
}

func (v *variantReader) dictionary(m []byte) error {
	if len(m) < 1 || m[0]&0x0f != 1 {
		return badVariant("metadata is not of version 1")
	}
	size := int(m[0]>>6) + 1
	n, ok := little(m, 1, size)
	start := 1 + size + (int(n)+1)*size
	if !ok || int64(n) > int64(len(m)) || start > len(m) {
		return badVariant("dictionary reaches past the metadata")
	}
	v.names = m[start:]
	v.offsets = make([]uint32, n+1)
	for i := range v.offsets {
		v.offsets[i], _ = little(m, 1+size+i*size, size)
		if int64(v.offsets[i]) > int64(len(v.names)) || i > 0 && v.offsets[i] < v.offsets[i-1] {
			return badVariant("dictionary offsets are out of order")
		}
	}
	return nil
}

// The basic types of the encoding, the low two bits of a value's first byte.
const (
	variantPrimitive = iota
	variantShortString
	variantObject
	variantArray
)

func (v *variantReader) value(dst, b []byte, depth int) ([]byte, error) {
	if len(b) == 0 || depth > maxVariantDepth {
		return dst, badVariant("empty or nested too deep")
	}
	if v.left--; v.left < 0 {
		return dst, badVariant("its parts overlap")
	}
	head := b[0] >> 2
	switch b[0] & 3 {
	case variantPrimitive:
		return variantScalar(dst, head, b[1:])
	case variantShortString:
		if int(head) > len(b)-1 {
			return dst, badVariant("string reaches past the value")
		}
		return appendJSONString(dst, b[1:1+head])
	case variantObject:
		return v.object(dst, b, head, depth)
	}
	return v.array(dst, b, head, depth)
}

// count reads the number of elements: one byte, or four in a large object or array.
func count(b []byte, large bool) (n, next int, ok bool) {
	size := 1
	if large {
		size = 4
	}
	c, ok := little(b, 1, size)
	return int(c), 1 + size, ok && int64(c) <= int64(len(b))
}

func (v *variantReader) object(dst, b []byte, head byte, depth int) ([]byte, error) {
	offsetSize, idSize := int(head&3)+1, int(head>>2&3)+1
	n, ids, ok := count(b, head>>4&1 == 1)
	offsets := ids + n*idSize
	data := offsets + (n+1)*offsetSize
	if !ok || data > len(b) {
		return dst, badVariant("object reaches past the value")
	}
	dst = append(dst, '{')
	for i := range n {
		id, _ := little(b, ids+i*idSize, idSize)
		off, _ := little(b, offsets+i*offsetSize, offsetSize)
		if int64(id) >= int64(len(v.offsets)-1) || int64(off) > int64(len(b)-data) {
			return dst, badVariant("object field is out of range")
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendJSONString(dst, v.names[v.offsets[id]:v.offsets[id+1]]); err != nil {
			return dst, err
		}
		dst = append(dst, ':')
		if dst, err = v.value(dst, b[data+int(off):], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func (v *variantReader) array(dst, b []byte, head byte, depth int) ([]byte, error) {
	offsetSize := int(head&3) + 1
	n, offsets, ok := count(b, head>>2&1 == 1)
	data := offsets + (n+1)*offsetSize
	if !ok || data > len(b) {
		return dst, badVariant("array reaches past the value")
	}
	dst = append(dst, '[')
	for i := range n {
		off, _ := little(b, offsets+i*offsetSize, offsetSize)
		if int64(off) > int64(len(b)-data) {
			return dst, badVariant("array element is out of range")
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = v.value(dst, b[data+int(off):], depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// variantWidths are the bytes of each primitive type; -1 is a length in front.
var variantWidths = [...]int{0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, -1, -1, 8, 8, 8, 16}

func variantScalar(dst []byte, kind byte, b []byte) ([]byte, error) {
	if int(kind) >= len(variantWidths) {
		return dst, badVariant("primitive type " + strconv.Itoa(int(kind)) + " is unknown")
	}
	if w := variantWidths[kind]; w >= 0 {
		if len(b) < w {
			return dst, badVariant("primitive reaches past the value")
		}
		b = b[:w]
	} else {
		n, ok := little(b, 0, 4)
		if !ok || int64(n) > int64(len(b)-4) {
			return dst, badVariant("string reaches past the value")
		}
		b = b[4 : 4+n]
	}
	switch kind {
	case 0:
		return append(dst, "null"...), nil
	case 1:
		return append(dst, "true"...), nil
	case 2:
		return append(dst, "false"...), nil
	case 3:
		return strconv.AppendInt(dst, int64(int8(b[0])), 10), nil
	case 4:
		return strconv.AppendInt(dst, int64(int16(binary.LittleEndian.Uint16(b))), 10), nil
	case 5:
		return strconv.AppendInt(dst, int64(int32(binary.LittleEndian.Uint32(b))), 10), nil
	case 6:
		return strconv.AppendInt(dst, int64(binary.LittleEndian.Uint64(b)), 10), nil
	case 7:
		return appendJSONFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(b))), nil
	case 8:
		return variantDecimal(dst, b[0], decimal128.FromI64(int64(int32(binary.LittleEndian.Uint32(b[1:])))))
	case 9:
		return variantDecimal(dst, b[0], decimal128.FromI64(int64(binary.LittleEndian.Uint64(b[1:]))))
	case 10:
		return variantDecimal(dst, b[0], decimal128.New(int64(binary.LittleEndian.Uint64(b[9:])), binary.LittleEndian.Uint64(b[1:])))
	case 11:
		days := int64(int32(binary.LittleEndian.Uint32(b)))
		return appendJSONTime(dst, time.Unix(days*86400, 0), "2006-01-02"), nil
	case 12, 13:
		return appendJSONTime(dst, time.UnixMicro(int64(binary.LittleEndian.Uint64(b))), "2006-01-02T15:04:05.000000"+zoneOf(kind == 12)), nil
	case 14:
		return appendJSONFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), nil
	case 15:
		return append(hex.AppendEncode(append(dst, '"'), b), '"'), nil
	case 16:
		return appendJSONString(dst, b)
	case 17:
		return appendJSONTime(dst, time.UnixMicro(int64(binary.LittleEndian.Uint64(b))), "15:04:05.000000"), nil
	case 18, 19:
		return appendJSONTime(dst, time.Unix(0, int64(binary.LittleEndian.Uint64(b))), "2006-01-02T15:04:05.000000000"+zoneOf(kind == 18)), nil
	}
	id, err := uuid.FromBytes(b)
	if err != nil {
		return dst, badVariant(err.Error())
	}
	return strconv.AppendQuote(dst, id.String()), nil
}

func zoneOf(utc bool) string {
	if utc {
		return "Z"
	}
	return ""
}

func variantDecimal(dst []byte, scale byte, n Int128) ([]byte, error) {
	if scale > 38 {
		return dst, badVariant("decimal scale is above 38")
	}
	return append(dst, n.ToString(int32(scale))...), nil
}

func appendJSONTime(dst []byte, t time.Time, layout string) []byte {
	return append(t.UTC().AppendFormat(append(dst, '"'), layout), '"')
}

// appendJSONFloat writes a number that reads back as exactly f: JSON has no single precision, so a float32 gets the digits of
// its value as a double.
func appendJSONFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendJSONString(dst, s []byte) ([]byte, error) {
	if !utf8.Valid(s) {
		return dst, badVariant("string is not UTF-8")
	}
	text, err := json.Marshal(string(s))
	if err != nil {
		return dst, badVariant(err.Error())
	}
	return append(dst, text...), nil
}
