package parquet

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// as projects the only column of a file to a type.
func as(t vector.Type) func(*Footer) []*Projection {
	return func(f *Footer) []*Projection { return []*Projection{{Type: t, Node: f.Root.Children[0]}} }
}

// logicalTime writes a TimeType or TimestampType member.
func logicalTime(member int16, unit int16, utc bool) func(*thriftWriter) {
	return func(w *thriftWriter) {
		w.structure(member, func() {
			w.bool(1, utc)
			w.structure(2, func() { w.structure(unit, func() {}) })
		})
	}
}

func TestConversions(t *testing.T) {
	i32 := func(conv int) madeField { return madeField{name: "c", physical: Int32, converted: conv} }
	i64 := func(conv int) madeField { return madeField{name: "c", physical: Int64, converted: conv} }
	dec := func(p Physical, length, precision, scale int) madeField {
		return madeField{name: "c", physical: p, length: length, converted: 5, precision: precision, scale: scale}
	}
	stamp := func(unit int16) madeField {
		return madeField{name: "c", physical: Int64, converted: -1, logical: logicalTime(8, unit, false)}
	}
	nanos := vector.Type{Kind: vector.Timestamp, Precision: 9}
	int128 := func(x int64) vector.Value { return decimal128.FromI64(x) }
	for i, c := range []struct {
		field madeField
		body  []byte
		want  vector.Type
		value vector.Value // nil: the file is refused
	}{
		{i32(-1), le32(-5), vector.Of(vector.BigInt), int64(-5)},
		{i32(15), le32(-5), vector.Of(vector.Integer), int32(-5)},
		{i32(11), le32(200), vector.Of(vector.Integer), int32(200)},
		{i32(13), le32(-1), vector.Of(vector.BigInt), int64(math.MaxUint32)},
		{i32(13), le32(-1), vector.Of(vector.Integer), nil},
		{i64(14), le64(-1), vector.Of(vector.BigInt), nil},
		{i64(14), le64(77), vector.Of(vector.BigInt), int64(77)},
		{i64(-1), le64(77), vector.Of(vector.Integer), nil},
		{i32(6), le32(-1), vector.Of(vector.Date), int32(-1)},
		{i32(6), le32(-1), vector.Of(vector.Timestamp), int64(-86_400_000_000)},
		{i32(6), le32(2), nanos, int64(2 * 86_400_000_000_000)},
		{i32(6), le32(math.MaxInt32), nanos, nil},
		{i32(6), le32(math.MaxInt32), vector.Of(vector.Timestamp), nil},
		{i32(6), le32(5), vector.Of(vector.TimestampTZ), nil},
		{i32(6), le32(5), vector.Of(vector.Integer), nil},
		{i32(7), le32(1234), vector.Of(vector.Time), int64(1_234_000)},
		{i64(8), le64(1234), vector.Of(vector.Time), int64(1234)},
		{madeField{name: "c", physical: Int64, converted: -1, logical: logicalTime(7, 3, false)}, le64(1999), vector.Of(vector.Time), int64(1)},
		{i64(9), le64(-3), vector.Of(vector.TimestampTZ), int64(-3000)},
		{i64(9), le64(math.MaxInt64 / 10), vector.Of(vector.TimestampTZ), nil},
		{i64(9), le64(-3), vector.Of(vector.Timestamp), int64(-3000)},
		{i64(10), le64(-3), vector.Of(vector.Timestamp), int64(-3)},
		{i64(10), le64(-3), nanos, int64(-3000)},
		{stamp(1), le64(7), nanos, int64(7_000_000)},
		{stamp(3), le64(-1), vector.Of(vector.Timestamp), int64(-1)},
		{stamp(3), le64(-1), nanos, int64(-1)},
		{i64(-1), le64(7), vector.Of(vector.Timestamp), int64(7)},
		{i64(-1), le64(7), nanos, int64(7)},
		{i64(-1), le64(7), vector.Of(vector.Time), int64(7)},
		{i64(18), le64(7), vector.Of(vector.Time), nil},
		{dec(Int32, 0, 9, 2), le32(-123), vector.DecimalOf(9, 2), int64(-123)},
		{dec(Int32, 0, 9, 2), le32(-123), vector.DecimalOf(38, 2), int128(-123)},
		{dec(Int64, 0, 18, 2), le64(-123), vector.DecimalOf(18, 2), int64(-123)},
		{dec(Int64, 0, 18, 2), le64(-123), vector.DecimalOf(20, 2), int128(-123)},
		{dec(Int64, 0, 18, 2), le64(12345), vector.DecimalOf(4, 2), nil},
		{dec(Int32, 0, 9, 2), le32(5), vector.DecimalOf(9, 3), nil},
		{dec(FixedLenByteArray, 3, 5, 2), []byte{0xff, 0xff, 0xfe}, vector.DecimalOf(5, 2), int64(-2)},
		{dec(FixedLenByteArray, 3, 5, 2), []byte{0xff, 0xff, 0xfe}, vector.DecimalOf(25, 2), int128(-2)},
		{dec(FixedLenByteArray, 16, 38, 0), append(make([]byte, 15), 9), vector.DecimalOf(38, 0), int128(9)},
		{dec(FixedLenByteArray, 20, 38, 0), append(make([]byte, 19), 9), vector.DecimalOf(38, 0), int128(9)},
		{dec(FixedLenByteArray, 20, 38, 0), append([]byte{1}, make([]byte, 19)...), vector.DecimalOf(38, 0), nil},
		{dec(FixedLenByteArray, 16, 38, 0), append([]byte{0x7f}, make([]byte, 15)...), vector.DecimalOf(38, 0), nil},
		{dec(FixedLenByteArray, 16, 18, 0), append([]byte{1}, make([]byte, 15)...), vector.DecimalOf(18, 0), nil},
		{dec(ByteArray, 0, 10, 1), lengthPrefixed("\x80"), vector.DecimalOf(10, 1), int64(-128)},
		{dec(ByteArray, 0, 10, 1), lengthPrefixed("\x01\x00"), vector.DecimalOf(30, 1), int128(256)},
		{dec(ByteArray, 0, 10, 1), lengthPrefixed(""), vector.DecimalOf(10, 1), nil},
		{madeField{name: "c", physical: Float, converted: -1}, le32(int32(math.Float32bits(1.5))), vector.Of(vector.Double), 1.5},
		{madeField{name: "c", physical: Double, converted: -1}, le64(int64(math.Float64bits(1.5))), vector.Of(vector.Real), nil},
		{madeField{name: "c", physical: FixedLenByteArray, length: 2, converted: -1, logical: func(w *thriftWriter) { w.structure(15, func() {}) }}, []byte{0, 0xc0}, vector.Of(vector.Real), float32(-2)},
		{madeField{name: "c", physical: FixedLenByteArray, length: 2, converted: -1, logical: func(w *thriftWriter) { w.structure(15, func() {}) }}, []byte{1, 0}, vector.Of(vector.Double), math.Ldexp(1, -24)},
		{madeField{name: "c", physical: ByteArray, converted: -1}, lengthPrefixed("abc"), vector.Of(vector.Varchar), "abc"},
		{madeField{name: "c", physical: ByteArray, converted: 4}, lengthPrefixed("abc"), vector.Of(vector.Varchar), "abc"},
		{madeField{name: "c", physical: ByteArray, converted: 19}, lengthPrefixed("{}"), vector.Of(vector.Varchar), "{}"},
		{madeField{name: "c", physical: ByteArray, converted: -1}, lengthPrefixed("0123456789abcdef"), vector.Of(vector.UUID), "0123456789abcdef"},
		{madeField{name: "c", physical: ByteArray, converted: -1}, lengthPrefixed("short"), vector.Of(vector.UUID), nil},
		{madeField{name: "c", physical: FixedLenByteArray, length: 4, converted: -1}, []byte("abcd"), vector.Type{Kind: vector.Fixed, Precision: 4}, "abcd"},
		{madeField{name: "c", physical: FixedLenByteArray, length: 4, converted: -1}, []byte("abcd"), vector.Type{Kind: vector.Fixed, Precision: 5}, nil},
		{madeField{name: "c", physical: FixedLenByteArray, length: 4, converted: -1}, []byte("abcd"), vector.Of(vector.Varbinary), "abcd"},
		{i32(-1), le32(5), vector.Of(vector.Varchar), nil},
		{i32(-1), le32(5), vector.Of(vector.Boolean), nil},
		{i32(-1), le32(5), vector.RowOf(), nil},
		{i32(-1), le32(5), vector.ArrayOf(vector.Of(vector.Integer)), nil},
	} {
		t.Run(fmt.Sprintf("%d/%s/%s", i, c.field.physical, c.want), func(t *testing.T) {
			plain := oneColumn(c.field, 1, madePage{kind: dataPage, values: 1, body: c.body})
			dict := oneColumn(c.field, 1, madePage{kind: dictionaryPage, values: 1, body: c.body}, madePage{kind: dataPage, values: 1, enc: RLEDictionary, body: []byte{0, 2}})
			for name, f := range map[string]*madeFile{"plain": plain, "dictionary": dict} {
				p := as(c.want)
				if c.want.Kind == vector.Array {
					p = func(f *Footer) []*Projection {
						return []*Projection{{Type: c.want, Node: f.Root.Children[0], Children: []*Projection{{Type: c.want.Fields[0].Type}}}}
					}
				}
				if c.value != nil {
					require.Equal(t, [][]vector.Value{{c.value}}, newRead(t, f.bytes(), readOptions{project: p}), name)
					continue
				}
				_, err := readFile(&object{Bytes: f.bytes()}, readOptions{project: p})
				require.ErrorIs(t, err, fault.Corrupt, name)
				require.ErrorContains(t, err, "column c")
			}
			null := newRead(t, plain.bytes(), readOptions{project: as(vector.Of(vector.Null))})
			require.Equal(t, [][]vector.Value{{nil}}, null)
		})
	}
}

func TestAbsentColumnsGiveTheirDefault(t *testing.T) {
	f := oneColumn(opt32("c"), 3, madePage{kind: dataPage, values: 3, body: append(rle([]byte{6, 1}), le32(7, 8, 9)...)})
	got := newRead(t, f.bytes(), readOptions{project: func(f *Footer) []*Projection {
		return []*Projection{
			{Type: vector.Of(vector.Varchar), Default: "a default that is not inline"}, {Type: vector.Of(vector.BigInt)},
			{Type: vector.Of(vector.BigInt), Node: f.Root.Children[0], Default: int64(1)},
		}
	}})
	require.Equal(t, "a default that is not inline", got[0][2])
	require.Nil(t, got[1][0])
	require.Equal(t, []vector.Value{int64(7), int64(8), int64(9)}, got[2])
}

func TestFixedDecimalsOfEveryWidth(t *testing.T) {
	for width := 1; width <= 16; width++ {
		const n = 20
		b := make([]byte, n*width)
		for i := range b {
			b[i] = byte(i*i*37 + i*11)
		}
		long := make([]vector.Int128, n)
		want := make([]vector.Int128, n)
		for i := range want {
			var ok bool
			want[i], ok = bigEndian128(b[i*width : i*width+width])
			require.True(t, ok)
		}
		if width > 8 {
			fixedInt128(b, width, long)
			require.Equal(t, want, long, "width %d", width)
			continue
		}
		short := make([]int64, n)
		fixedInt64(b, width, short)
		for i := range short {
			require.Equal(t, int64(want[i].LowBits()), short[i], "width %d", width)
		}
	}
}
