package orc

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// TestBoundsHold holds the bounds of stripes and row groups against the values, for every type.
func TestBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 21))
	for _, nulls := range []float64{0, 0.5, 1} {
		types := everyType()
		w := newWriter(r, Zlib, types...)
		rows := randomRows(r, types, 950, nulls)
		w.stripe(rows)
		o, f := open(t, w.finish())
		for i, c := range types {
			n, want := f.Root.Children[i], c.natural()
			if len(c.kids) > 0 {
				continue
			}
			gs, err := GroupIndex(context.Background(), o, f, 0, n, want)
			require.NoError(t, err)
			require.Len(t, gs, 10)
			require.Equal(t, RowRange{First: 900, Last: 950}, gs[9].Rows)
			for _, g := range append(gs, GroupBounds{Rows: RowRange{Last: 950}, Bounds: f.Bounds(0, n, want)}) {
				nulls := int64(0)
				for _, row := range rows[g.Rows.First:g.Rows.Last] {
					v := row[i]
					if v == nil {
						nulls++
						continue
					}
					require.False(t, g.HasMin && greater(g.Min, v), "%s: %v below %v", c.name, v, g.Min)
					require.False(t, g.HasMax && greater(v, g.Max), "%s: %v above %v", c.name, v, g.Max)
				}
				require.Equal(t, nulls, g.NullCount)
				require.Equal(t, g.Rows.Len(), g.NumValues)
				require.Equal(t, nulls == g.Rows.Len(), g.AllNull())
				if !g.AllNull() && c.kind != Binary && c.kind != Char {
					require.True(t, g.HasMin && g.HasMax, c.name)
				}
			}
		}
		elements, err := GroupIndex(context.Background(), o, f, 0, f.Root.Child("list").Children[0], vector.Of(vector.Integer))
		require.NoError(t, err)
		require.Nil(t, elements, "elements have no rows")
		b := f.Bounds(0, f.Root.Child("list").Children[0], vector.Of(vector.Integer))
		require.False(t, b.HasMin || b.HasMax || b.NullCount >= 0)
		inner := f.Bounds(0, f.Root.Child("row").Child("a"), vector.Of(vector.BigInt))
		require.Equal(t, inner.HasMin, nulls < 1)
	}
}

// TestBoundsInWantedType converts bounds to the type of the table.
func TestBoundsInWantedType(t *testing.T) {
	f := &Footer{writerVer: 8}
	node := func(k Kind) *Node { return &Node{Kind: k} }
	ints := blob(varint(nil, 1, 2), 2, varint(varint(nil, 1, zag(-3)), 2, zag(9)))
	b := f.bounds(ints, node(Int), vector.Of(vector.BigInt), 2)
	require.Equal(t, Bounds{HasMin: true, HasMax: true, Min: int64(-3), Max: int64(9), NumValues: 2}, b)
	days := blob(varint(nil, 1, 2), 7, varint(varint(nil, 1, zag(-1)), 2, zag(1<<40)))
	b = f.bounds(days, node(Date), vector.Of(vector.Timestamp), 2)
	require.Equal(t, int64(-microsPerDay), b.Min)
	require.False(t, b.HasMax, "an overflow is no bound")
	b = f.bounds(days, node(Date), vector.Of(vector.BigInt), 2)
	require.False(t, b.HasMin)

	float := func(lo, hi float64) []byte {
		return encodeStatistics(field("", Double), []vector.Value{lo, hi})
	}
	b = f.bounds(float(0, 0), node(Float), vector.Of(vector.Real), 2)
	require.True(t, math.Signbit(float64(b.Min.(float32))), "a bound of zero is one of either zero")
	require.False(t, math.Signbit(float64(b.Max.(float32))))
	b = f.bounds(float(math.NaN(), 1), node(Double), vector.Of(vector.Double), 2)
	require.False(t, b.HasMin || b.HasMax)
	require.True(t, b.MayHaveNaN)

	words := encodeStatistics(field("", String), []vector.Value{"a", "b\xff"})
	b = f.bounds(words, node(String), vector.Of(vector.Varchar), 2)
	require.True(t, b.HasMin)
	require.False(t, b.HasMax, "an upper bound that was cut within a character is none")
	old := &Footer{}
	require.False(t, old.bounds(words, node(String), vector.Of(vector.Varchar), 2).HasMin, "Hive compared strings wrongly once")
	require.False(t, f.bounds(words, node(Char), vector.Of(vector.Varchar), 2).HasMin)

	times := encodeStatistics(field("", Timestamp), []vector.Value{int64(5e9), int64(7e9)})
	b = f.bounds(times, node(Timestamp), vector.Of(vector.Timestamp), 2)
	require.Equal(t, []vector.Value{int64(4e6), int64(8e6)}, []vector.Value{b.Min, b.Max})
	require.False(t, f.bounds(times, node(Timestamp), vector.Of(vector.TimestampTZ), 2).HasMin, "the writer's clock is no instant")
	require.False(t, old.bounds(times, node(Timestamp), vector.Of(vector.Timestamp), 2).HasMin)

	require.Equal(t, Bounds{NullCount: -1, NumValues: 5}, f.bounds(nil, node(Int), vector.Of(vector.Integer), 5))
	require.Equal(t, Bounds{NullCount: -1, NumValues: 5}, f.bounds([]byte{0xff}, node(Int), vector.Of(vector.Integer), 5))
	swapped := blob(varint(nil, 1, 2), 2, varint(varint(nil, 1, zag(9)), 2, zag(-3)))
	require.False(t, f.bounds(swapped, node(Int), vector.Of(vector.Integer), 2).HasMin)
	require.EqualValues(t, -1, f.bounds(varint(nil, 1, 7), node(Int), vector.Of(vector.Integer), 5).NullCount, "more values than rows")
}

func TestDecimalBounds(t *testing.T) {
	for _, c := range []struct {
		text string
		want vector.Value
	}{
		{"1", int64(100)}, {"-1.5", int64(-150)}, {"0.07", int64(7)}, {".5", int64(50)}, {"+2.50", int64(250)}, {"2.500", int64(250)}, {"2.505", nil},
		{"", nil}, {"-", nil}, {"1e5", nil}, {"100000", nil}, {"99999.99", nil}, {"9999.99", int64(999999)},
	} {
		v, ok := decimalBound([]byte(c.text), vector.DecimalOf(6, 2))
		require.Equal(t, c.want != nil, ok, c.text)
		if ok {
			require.Equal(t, c.want, v, c.text)
		}
	}
	v, ok := decimalBound([]byte("-12345678901234567890.5"), vector.DecimalOf(30, 1))
	require.True(t, ok)
	x, err := decimal128.FromString("-12345678901234567890.5", 30, 1)
	require.NoError(t, err)
	require.Equal(t, x, v)
}

func TestRescale(t *testing.T) {
	for _, c := range []struct{ x, d, want int64 }{{15, 1, 150}, {-15, 3, -15000}, {15, -1, 2}, {-15, -1, -2}, {14, -1, 1}, {-149, -2, -1}, {0, 99, 0}} {
		got, ok := rescale(decimal128.FromI64(c.x), c.d)
		require.True(t, ok)
		require.Equal(t, decimal128.FromI64(c.want), got, "%d by %d", c.x, c.d)
	}
	most := decimal128.GetMaxValue(38)
	_, ok := rescale(most, 1)
	require.False(t, ok)
	_, ok = rescale(decimal128.FromI64(1), 39)
	require.False(t, ok)
	got, ok := rescale(decimal128.GetScaleMultiplier(19), 18)
	require.True(t, ok)
	require.Equal(t, decimal128.GetScaleMultiplier(37), got)
}
