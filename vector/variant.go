package vector

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// VariantValue is a part of a variant: the bytes of a value and the dictionary that its objects refer to. Nothing is copied.
type VariantValue struct {
	Metadata, Value []byte
}

// VariantKind is the general type of a variant value.
type VariantKind uint8

// The general types.
const (
	VariantNull VariantKind = iota
	VariantScalar
	VariantObject
	VariantArray
)

// Kind tells the general type of v; a value without bytes is malformed, which the readers of it report.
func (v VariantValue) Kind() VariantKind {
	if len(v.Value) == 0 {
		return VariantScalar
	}
	switch v.Value[0] & 3 {
	case variantObject:
		return VariantObject
	case variantArray:
		return VariantArray
	}
	if v.Value[0] == 0 {
		return VariantNull
	}
	return VariantScalar
}

// Field finds the field of an object. ok is false when v is no object or has no such field. A malformed value is
// fault.Corrupt.
func (v VariantValue) Field(name string) (f VariantValue, ok bool, err error) {
	if v.Kind() != VariantObject {
		return f, false, nil
	}
	err = v.fields(func(key []byte, value VariantValue) bool {
		if string(key) == name {
			f, ok = value, true
		}
		return !ok
	})
	return f, ok, err
}

// Fields visits the fields of an object in the order of their names until visit returns false. A malformed value is
// fault.Corrupt.
func (v VariantValue) Fields(visit func(name string, value VariantValue) bool) error {
	return v.fields(func(key []byte, value VariantValue) bool { return visit(string(key), value) })
}

func (v VariantValue) fields(visit func(key []byte, value VariantValue) bool) error {
	b, m := v.Value, v.Metadata
	if len(m) < 1 || m[0]&0x0f != 1 {
		return badVariant("metadata is not of version 1")
	}
	width := int(m[0]>>6) + 1
	names, ok := little(m, 1, width)
	start := 1 + width + (int(names)+1)*width
	if !ok || int64(names) > int64(len(m)) || start > len(m) {
		return badVariant("dictionary reaches past the metadata")
	}
	text := m[start:]
	head := b[0] >> 2
	offsetSize, idSize := int(head&3)+1, int(head>>2&3)+1
	n, ids, ok := count(b, head>>4&1 == 1)
	offsets := ids + n*idSize
	data := offsets + (n+1)*offsetSize
	if !ok || data > len(b) {
		return badVariant("object reaches past the value")
	}
	for i := range n {
		id, _ := little(b, ids+i*idSize, idSize)
		off, _ := little(b, offsets+i*offsetSize, offsetSize)
		if id >= names || int64(off) >= int64(len(b)-data) {
			return badVariant("object field is out of range")
		}
		lo, _ := little(m, 1+width+int(id)*width, width)
		hi, _ := little(m, 1+width+(int(id)+1)*width, width)
		if lo > hi || int64(hi) > int64(len(text)) {
			return badVariant("dictionary offsets are out of order")
		}
		if !visit(text[lo:hi], VariantValue{m, b[data+int(off):]}) {
			return nil
		}
	}
	return nil
}

// Len is the number of elements of an array; -1 when v is none.
func (v VariantValue) Len() (int, error) {
	if v.Kind() != VariantArray {
		return -1, nil
	}
	n, _, _, err := v.array()
	return n, err
}

func (v VariantValue) array() (n, offsets, width int, err error) {
	head := v.Value[0] >> 2
	width = int(head&3) + 1
	n, offsets, ok := count(v.Value, head>>2&1 == 1)
	if !ok || offsets+(n+1)*width > len(v.Value) {
		return 0, 0, 0, badVariant("array reaches past the value")
	}
	return n, offsets, width, nil
}

// Element gives element i of an array, counted from 0. ok is false when v is no array or is shorter. A malformed value is
// fault.Corrupt.
func (v VariantValue) Element(i int) (e VariantValue, ok bool, err error) {
	if v.Kind() != VariantArray {
		return e, false, nil
	}
	n, offsets, width, err := v.array()
	if err != nil || i < 0 || i >= n {
		return e, false, err
	}
	off, _ := little(v.Value, offsets+i*width, width)
	data := offsets + (n+1)*width
	if int64(off) >= int64(len(v.Value)-data) {
		return e, false, badVariant("array element is out of range")
	}
	return VariantValue{v.Metadata, v.Value[data+int(off):]}, true, nil
}

// Scalar gives a scalar with the type that it has in the variant; a variant null is nil of type Null. Objects and arrays have
// no scalar: their type is Variant. A malformed value is fault.Corrupt.
func (v VariantValue) Scalar() (Value, Type, error) {
	b := v.Value
	if len(b) == 0 {
		return nil, Type{}, badVariant("empty")
	}
	head := b[0] >> 2
	switch b[0] & 3 {
	case variantShortString:
		if int(head) > len(b)-1 {
			return nil, Type{}, badVariant("string reaches past the value")
		}
		return string(b[1 : 1+head]), Of(Varchar), nil
	case variantObject, variantArray:
		return nil, Of(Variant), nil
	}
	if int(head) >= len(variantWidths) {
		return nil, Type{}, badVariant("primitive type " + strconv.Itoa(int(head)) + " is unknown")
	}
	b = b[1:]
	if w := variantWidths[head]; w >= 0 {
		if len(b) < w {
			return nil, Type{}, badVariant("primitive reaches past the value")
		}
	} else {
		n, ok := little(b, 0, 4)
		if !ok || int64(n) > int64(len(b)-4) {
			return nil, Type{}, badVariant("string reaches past the value")
		}
		b = b[4 : 4+n]
	}
	long := func(at int) int64 { return int64(binary.LittleEndian.Uint64(b[at:])) }
	nanos := func(k Kind) Type { return Type{Kind: k, Precision: 9} }
	switch head {
	case 0:
		return nil, Of(Null), nil
	case 1, 2:
		return head == 1, Of(Boolean), nil
	case 3:
		return int64(int8(b[0])), Of(BigInt), nil
	case 4:
		return int64(int16(binary.LittleEndian.Uint16(b))), Of(BigInt), nil
	case 5:
		return int64(int32(binary.LittleEndian.Uint32(b))), Of(BigInt), nil
	case 6:
		return long(0), Of(BigInt), nil
	case 7:
		return math.Float64frombits(uint64(long(0))), Of(Double), nil
	case 8:
		return variantNumber(b[0], decimal128.FromI64(int64(int32(binary.LittleEndian.Uint32(b[1:])))))
	case 9:
		return variantNumber(b[0], decimal128.FromI64(long(1)))
	case 10:
		return variantNumber(b[0], decimal128.New(long(9), uint64(long(1))))
	case 11:
		return int32(binary.LittleEndian.Uint32(b)), Of(Date), nil
	case 12:
		return long(0), Of(TimestampTZ), nil
	case 13:
		return long(0), Of(Timestamp), nil
	case 14:
		return math.Float32frombits(binary.LittleEndian.Uint32(b)), Of(Real), nil
	case 15:
		return string(b), Of(Varbinary), nil
	case 16:
		return string(b), Of(Varchar), nil
	case 17:
		return long(0), Of(Time), nil
	case 18:
		return long(0), nanos(TimestampTZ), nil
	case 19:
		return long(0), nanos(Timestamp), nil
	}
	return string(b[:16]), Of(UUID), nil
}

func variantNumber(scale byte, n Int128) (Value, Type, error) {
	if scale > 38 {
		return nil, Type{}, badVariant("decimal scale is above 38")
	}
	// Decimals of 38 digits hold every value; the caller casts.
	return n, DecimalOf(38, int(scale)), nil
}

// size is the number of bytes that the value at the start of b takes; b must have been walked before.
func variantExtent(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, badVariant("empty")
	}
	head := b[0] >> 2
	last := func(offsets, n, width int) (int, error) {
		if offsets+(n+1)*width > len(b) {
			return 0, badVariant("container reaches past the value")
		}
		size, _ := little(b, offsets+n*width, width)
		end := offsets + (n+1)*width + int(size)
		if int64(size) > int64(len(b)) || end > len(b) {
			return 0, badVariant("container reaches past the value")
		}
		return end, nil
	}
	switch b[0] & 3 {
	case variantShortString:
		if 1+int(head) > len(b) {
			return 0, badVariant("string reaches past the value")
		}
		return 1 + int(head), nil
	case variantObject:
		n, ids, ok := count(b, head>>4&1 == 1)
		if !ok {
			return 0, badVariant("object reaches past the value")
		}
		return last(ids+n*(int(head>>2&3)+1), n, int(head&3)+1)
	case variantArray:
		n, offsets, ok := count(b, head>>2&1 == 1)
		if !ok {
			return 0, badVariant("array reaches past the value")
		}
		return last(offsets, n, int(head&3)+1)
	}
	if int(head) >= len(variantWidths) {
		return 0, badVariant("primitive type " + strconv.Itoa(int(head)) + " is unknown")
	}
	w := variantWidths[head]
	if w < 0 {
		n, ok := little(b, 1, 4)
		if !ok {
			return 0, badVariant("string reaches past the value")
		}
		w = 4 + int(n)
	}
	if 1+w > len(b) {
		return 0, badVariant("primitive reaches past the value")
	}
	return 1 + w, nil
}

// Alone gives v as an engine value of type Variant, its bytes cut to its own end.
func (v VariantValue) Alone() (Value, error) {
	n, err := variantExtent(v.Value)
	if err != nil {
		return nil, err
	}
	return []Value{string(v.Metadata), string(v.Value[:n])}, nil
}
