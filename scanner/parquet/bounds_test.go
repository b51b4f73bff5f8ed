package parquet

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// statsOf is a file of one column and one row whose statistics are given.
func statsOf(e madeField, orders bool, stats func(w *thriftWriter)) *madeFile {
	body := make([]byte, 64)
	f := oneColumn(e, 1, madePage{kind: dataPage, values: 1, body: body})
	f.orders = orders
	f.cols[0].stats = stats
	return f
}

func footerOf(t testing.TB, f *madeFile) *Footer {
	t.Helper()
	foot, err := ReadFooter(context.Background(), &object{Bytes: f.bytes()}, "t")
	require.NoError(t, err)
	return foot
}

func TestBoundsTraps(t *testing.T) {
	f32 := func(x float64) []byte { return le32(int32(math.Float32bits(float32(x)))) }
	negZero := float32(math.Copysign(0, -1))
	newStats := func(lo, hi []byte) func(*thriftWriter) {
		return func(w *thriftWriter) { w.bytes(5, hi); w.bytes(6, lo) }
	}
	oldStats := func(lo, hi []byte) func(*thriftWriter) {
		return func(w *thriftWriter) { w.bytes(1, hi); w.bytes(2, lo) }
	}
	field := func(p Physical, length, converted int) madeField {
		return madeField{name: "c", physical: p, length: length, converted: converted}
	}
	dec := madeField{name: "c", physical: FixedLenByteArray, length: 3, converted: 5, precision: 5, scale: 2}
	for name, c := range map[string]struct {
		field  madeField
		orders bool
		stats  func(*thriftWriter)
		want   vector.Type
		lo, hi vector.Value
	}{
		"integers":                            {field(Int32, 0, -1), true, newStats(le32(-5), le32(7)), vector.Of(vector.BigInt), int64(-5), int64(7)},
		"no column order":                     {field(Int32, 0, -1), false, newStats(le32(-5), le32(7)), vector.Of(vector.BigInt), nil, nil},
		"deprecated, signed":                  {field(Int32, 0, -1), false, oldStats(le32(-5), le32(7)), vector.Of(vector.Integer), int32(-5), int32(7)},
		"deprecated, unsigned":                {field(Int32, 0, 13), false, oldStats(le32(-5), le32(7)), vector.Of(vector.BigInt), nil, nil},
		"deprecated, strings":                 {field(ByteArray, 0, 0), false, oldStats([]byte("a"), []byte("b")), vector.Of(vector.Varchar), nil, nil},
		"deprecated, one string":              {field(ByteArray, 0, 0), false, oldStats([]byte("a"), []byte("a")), vector.Of(vector.Varchar), "a", "a"},
		"strings":                             {field(ByteArray, 0, 0), true, newStats([]byte("a"), []byte("b")), vector.Of(vector.Varchar), "a", "b"},
		"empty string":                        {field(ByteArray, 0, 0), true, newStats([]byte{}, []byte("b")), vector.Of(vector.Varchar), "", "b"},
		"unsigned":                            {field(Int32, 0, 13), true, newStats(le32(1), le32(-1)), vector.Of(vector.BigInt), int64(1), int64(math.MaxUint32)},
		"wrong width":                         {field(Int32, 0, -1), true, newStats(le64(1), le32(7)), vector.Of(vector.Integer), nil, int32(7)},
		"minimum above maximum":               {field(Int32, 0, -1), true, newStats(le32(8), le32(7)), vector.Of(vector.Integer), nil, nil},
		"NaN":                                 {field(Float, 0, -1), true, newStats(f32(math.NaN()), f32(7)), vector.Of(vector.Double), nil, nil},
		"positive zero as minimum":            {field(Float, 0, -1), true, newStats(f32(0), f32(7)), vector.Of(vector.Real), negZero, float32(7)},
		"negative zero as maximum":            {field(Float, 0, -1), true, newStats(f32(-1), le32(math.MinInt32)), vector.Of(vector.Double), float64(-1), float64(0)},
		"INT96":                               {field(Int96, 0, -1), true, newStats(make([]byte, 12), make([]byte, 12)), vector.Of(vector.Timestamp), nil, nil},
		"decimal":                             {dec, true, newStats([]byte{0xff, 0xff, 0xfe}, []byte{0, 1, 0}), vector.DecimalOf(5, 2), int64(-2), int64(256)},
		"date as timestamp":                   {field(Int32, 0, 6), true, newStats(le32(-1), le32(1)), vector.Of(vector.Timestamp), int64(-microsPerDay), int64(microsPerDay)},
		"date out of the timestamp's range":   {field(Int32, 0, 6), true, newStats(le32(-1), le32(math.MaxInt32)), vector.Of(vector.Timestamp), int64(-microsPerDay), nil},
		"a type the column cannot be read as": {field(Int64, 0, -1), true, newStats(le64(1), le64(2)), vector.Of(vector.Integer), nil, nil},
		"boolean":                             {field(Boolean, 0, -1), true, newStats([]byte{0}, []byte{1}), vector.Of(vector.Boolean), false, true},
		"fixed":                               {field(FixedLenByteArray, 4, -1), true, newStats([]byte("abcd"), []byte("bcde")), vector.Type{Kind: vector.Fixed, Precision: 4}, "abcd", "bcde"},
	} {
		b := footerOf(t, statsOf(c.field, c.orders, c.stats)).Bounds(0, 0, c.want)
		require.Equal(t, c.lo, b.Min, name)
		require.Equal(t, c.hi, b.Max, name)
		require.Equal(t, c.lo != nil, b.HasMin, name)
		require.Equal(t, c.hi != nil, b.HasMax, name)
		require.EqualValues(t, -1, b.NullCount, name)
		if x, ok := c.lo.(float32); ok {
			require.Equal(t, math.Signbit(float64(x)), math.Signbit(float64(b.Min.(float32))), name)
		}
	}
	b := footerOf(t, statsOf(field(Int32, 0, -1), true, func(w *thriftWriter) { w.i64(3, 9) })).Bounds(0, 0, vector.Of(vector.Integer))
	require.EqualValues(t, -1, b.NullCount, "a null count above the number of values")
	b = footerOf(t, statsOf(field(Int32, 0, -1), true, func(w *thriftWriter) { w.i64(3, 1) })).Bounds(0, 0, vector.Of(vector.Integer))
	require.True(t, b.AllNull())
}

// TestStatisticsHoldForEveryValue checks bounds, page bounds, bloom filters and dictionaries of files that arrow-go wrote against the
// values themselves, and that values that are not there are found out.
func TestStatisticsHoldForEveryValue(t *testing.T) {
	ctx := context.Background()
	schema := flatSchema()
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		distinct := []int{15, 3000}[seed%2]
		rec := randomRecord(r, schema, 2500, float64(seed)*0.2, distinct)
		b := writeArrow(t, rec, append(alwaysDictionary(t, schema), aparquet.WithPageIndexEnabled(true), aparquet.WithBloomFilterEnabled(true), aparquet.WithDataPageSize(1000), aparquet.WithBatchSize(50),
			aparquet.WithMaxBloomFilterBytes(1<<15))...)
		o := &object{Bytes: b}
		f, err := ReadFooter(ctx, o, "t")
		require.NoError(t, err)
		bloomsOut, dictsOut := 0, 0
		for leaf, n := range f.Leaves {
			want := naturalLeaf(n)
			if n.Physical == Boolean {
				continue
			}
			values := newRead(t, b, readOptions{project: func(f *Footer) []*Projection { return []*Projection{{Type: want, Node: f.Leaves[leaf]}} }})[0]
			within := func(bounds Bounds, vs []vector.Value) {
				nulls := int64(0)
				for _, v := range vs {
					if v == nil {
						nulls++
						continue
					}
					if bounds.HasMin {
						require.LessOrEqual(t, compareValues(bounds.Min, v), 0, n.Name)
					}
					if bounds.HasMax {
						require.GreaterOrEqual(t, compareValues(bounds.Max, v), 0, n.Name)
					}
				}
				if bounds.NullCount >= 0 {
					require.Equal(t, nulls, bounds.NullCount, n.Name)
				}
				require.EqualValues(t, len(vs), bounds.NumValues)
			}
			within(f.Bounds(0, leaf, want), values)
			require.True(t, f.Bounds(0, leaf, want).HasMin, n.Name)
			pages, err := PageIndex(ctx, o, f, 0, leaf, want)
			require.NoError(t, err)
			require.Greater(t, len(pages), 1)
			for _, p := range pages {
				within(p.Bounds, values[p.Rows.First:p.Rows.Last])
			}
			for _, v := range values[:200] {
				if v == nil {
					continue
				}
				ok, err := BloomMayContain(ctx, o, f, 0, leaf, []vector.Value{v}, want)
				require.NoError(t, err)
				require.True(t, ok, "%s: bloom filter denies %v", n.Name, v)
				ok, err = DictionaryMayContain(ctx, o, f, 0, leaf, []vector.Value{nil, v}, want, Options{})
				require.NoError(t, err)
				require.True(t, ok, "%s: dictionary denies %v", n.Name, v)
			}
			absent := absentValue(want)
			ok, err := BloomMayContain(ctx, o, f, 0, leaf, []vector.Value{absent, nil}, want)
			require.NoError(t, err)
			if !ok {
				bloomsOut++
			}
			ok, err = DictionaryMayContain(ctx, o, f, 0, leaf, []vector.Value{absent}, want, Options{})
			require.NoError(t, err)
			if !ok {
				dictsOut++
			}
		}
		require.Greater(t, bloomsOut, len(f.Leaves)/2, "bloom filters that find out an absent value")
		if distinct == 15 {
			require.Greater(t, dictsOut, len(f.Leaves)/2, "dictionaries that find out an absent value")
		}
		require.Greater(t, f.HeldBytes(), f.Bytes)
	}
}

func absentValue(t vector.Type) vector.Value {
	switch t.Physical() {
	case vector.PInt32:
		return int32(-77777)
	case vector.PInt64:
		return int64(-777_000)
	case vector.PInt128:
		return decimal128.FromI64(987654321)
	case vector.PFloat32:
		return float32(-1e9)
	case vector.PFloat64:
		return -1e9
	}
	return fmt.Sprintf("%*s", max(t.Precision, 5), "zzz")
}

func TestBloomFilterOfTheFormat(t *testing.T) {
	// An empty block denies everything, a full one nothing.
	empty, full := bloomFilter{make([]byte, 64)}, bloomFilter{make([]byte, 64)}
	for i := range full.blocks {
		full.blocks[i] = 0xff
	}
	for range 100 {
		h := rand.Uint64()
		require.False(t, empty.contains(h))
		require.True(t, full.contains(h))
	}
	// Insertion as BloomFilter.md writes it, with the block chosen by the upper half.
	h := uint64(0x123456789abcdef0)
	b := bloomFilter{make([]byte, 32*4)}
	block := (h >> 32) * 4 >> 32
	for i, salt := range bloomSalt {
		at := block*32 + uint64(i)*4
		w := binary.LittleEndian.Uint32(b.blocks[at:])
		binary.LittleEndian.PutUint32(b.blocks[at:], w|1<<(uint32(h)*salt>>27))
	}
	require.True(t, b.contains(h))
	require.False(t, b.contains(h+1))
}

func TestPageIndexThatContradictsItself(t *testing.T) {
	ctx := context.Background()
	rec := randomRecord(rand.New(rand.NewPCG(1, 5)), arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int64}}, nil), 2500, 0, 1000)
	b := writeArrow(t, rec, aparquet.WithPageIndexEnabled(true), aparquet.WithDataPageSize(1000), aparquet.WithBatchSize(50), aparquet.WithDictionaryDefault(false))
	f, err := ReadFooter(ctx, &object{Bytes: b}, "t")
	require.NoError(t, err)
	at := f.RowGroups[0].Columns[0].OffsetIndex
	spoiled := append([]byte(nil), b...)
	for i := at.Offset + at.Length/2; i < at.End()-8; i++ {
		spoiled[i] = 0
	}
	_, err = PageIndex(ctx, &object{Bytes: spoiled}, f, 0, 0, vector.Of(vector.BigInt))
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "column c")
}

// TestGeospatialBox: the box of a column chunk is kept when its four sides are numbers; x may cross the antimeridian.
func TestGeospatialBox(t *testing.T) {
	geo := func(sides ...float64) *Box {
		f := statsOf(madeField{name: "g", physical: ByteArray, converted: -1}, true, nil)
		f.cols[0].geo = func(w *thriftWriter) {
			w.structure(1, func() {
				for i, x := range sides {
					w.double(int16(i+1), x)
				}
			})
			w.list(2, 5, 1)
			w.b = append(w.b, 2)
		}
		return footerOf(t, f).RowGroups[0].Columns[0].Box
	}
	require.Equal(t, &Box{1, 2, 3, 4}, geo(1, 2, 3, 4))
	require.Equal(t, &Box{170, -170, 3, 4}, geo(170, -170, 3, 4, 0, 9, 1, 2))
	require.Nil(t, geo(1, 2, 3))
	require.Nil(t, geo(1, 2, 4, 3))
	require.Nil(t, geo(1, math.NaN(), 3, 4))
	require.Nil(t, footerOf(t, statsOf(madeField{name: "g", physical: ByteArray, converted: -1}, true, nil)).RowGroups[0].Columns[0].Box)
}
