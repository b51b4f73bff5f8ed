package orc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// everyType is a column of each type, nested ones several deep.
func everyType() []*wtype {
	dec := func(name string, p, s int) *wtype { return &wtype{name: name, kind: Decimal, prec: p, scale: s} }
	dict := func(name string) *wtype { return &wtype{name: name, kind: String, dict: true} }
	return []*wtype{
		field("b", Boolean), field("t", Byte), field("s", Short), field("i", Int), field("l", Long), field("f", Float), field("d", Double),
		field("x", String), dict("y"), field("z", Binary), field("v", Varchar), field("c", Char), field("day", Date), field("ts", Timestamp),
		field("tz", TimestampInstant), dec("small", 7, 2), dec("large", 38, 10), dec("mid", 18, 18),
		field("list", List, field("", Int)),
		field("deep", List, field("", List, dict(""))),
		field("map", Map, field("", String), field("", Struct, field("p", Boolean), field("q", List, field("", Double)))),
		field("row", Struct, field("a", Int), field("n", Struct, dict("m"), dec("o", 12, 3), field("k", Byte)), field("w", Timestamp)),
		field("u", Union, field("", Int), field("", String), field("", Struct, field("a", Long), field("l", List, dict("")))),
		field("us", List, field("", Union, field("", Boolean), field("", Union, field("", Double), dec("", 7, 2)))),
	}
}

// readAll reads every column of every row in batches of up to most rows.
func readAll(t testing.TB, b []byte, types []*wtype, most int, opt Options) [][]vector.Value {
	t.Helper()
	ctx := context.Background()
	o, f := open(t, b)
	ps := projections(f, types)
	var rows [][]vector.Value
	for s := range f.Stripes {
		r, err := OpenStripe(ctx, o, f, s, ps, nil, opt)
		require.NoError(t, err)
		for {
			n, first := r.NextBatch(most)
			if n == 0 {
				break
			}
			require.EqualValues(t, len(rows), first)
			rows = append(rows, make([][]vector.Value, n)...)
			for i := range ps {
				v, err := r.Read(ctx, i)
				require.NoError(t, err)
				for j := range n {
					rows[int(first)+j] = append(rows[int(first)+j], v.Get(j))
				}
			}
		}
		r.Close()
	}
	require.EqualValues(t, f.NumRows, len(rows))
	return rows
}

// TestEveryType writes and reads each type in each encoding, with each codec, with few, many and only nulls.
func TestEveryType(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	for i, codec := range []Codec{None, Zlib, Snappy, LZ4, Zstd, None, Zlib, Snappy} {
		for _, nulls := range []float64{0, 0.2, 0.95, 1} {
			t.Run(fmt.Sprint(i, codec, nulls), func(t *testing.T) {
				types := everyType()
				w := newWriter(r, codec, types...)
				w.v1 = i == 5 || i == 6
				if i == 6 { // as Hive wrote before 0.12
					w.version, w.magic = [2]uint64{0, 11}, false
				}
				if i == 7 { // with short decimals as integers
					w.version = [2]uint64{1, unstableV2}
				}
				var want [][]vector.Value
				for range 2 {
					rows := randomRows(r, types, 1+r.IntN(600), nulls)
					w.stripe(rows)
					want = append(want, rows...)
				}
				b := w.finish()
				pool := memory.NewPool("test", 64<<20)
				require.Equal(t, want, readAll(t, b, types, 1+r.IntN(700), Options{Pool: pool, Profile: &profile.Scan{}}))
				require.Equal(t, want, readAll(t, b, types, 1+r.IntN(70), Options{Pool: pool, ReadAheadBytes: 1}), "in windows")
				require.Zero(t, pool.Used())
			})
		}
	}
}

// TestRanges reads ranges of rows, columns now and then: what is skipped, by row index or without, does not shift what is read.
func TestRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 13))
	ctx := context.Background()
	for round := range 8 {
		types := everyType()
		w := newWriter(r, []Codec{None, Zlib, Snappy}[round%3], types...)
		w.v1, w.noIndex, w.stride = round%4 == 3, round == 5, []int{100, 77, 1000}[round%3]
		want := randomRows(r, types, 9000, []float64{0, 0.2}[round%2])
		w.stripe(want)
		o, f := open(t, w.finish())
		ps := projections(f, types)
		var ranges []RowRange
		for at := int64(r.IntN(3000)); at < 9000; {
			end := min(9000, at+1+int64(r.IntN(500)))
			ranges = append(ranges, RowRange{First: at, Last: end})
			at = end + int64(r.IntN(6000))
		}
		sr, err := OpenStripe(ctx, o, f, 0, ps, ranges, Options{Deferred: []bool{true, false, true}})
		require.NoError(t, err)
		rows := 0
		for {
			n, first := sr.NextBatch(300)
			if n == 0 {
				break
			}
			rows += n
			for i := range ps {
				if r.IntN(3) > 0 {
					require.NoError(t, sr.Skip(ctx, i))
					continue
				}
				v, err := sr.Read(ctx, i)
				require.NoError(t, err)
				for j := range n {
					require.Equal(t, want[int(first)+j][i], v.Get(j), "round %d, column %s, row %d", round, types[i].name, int(first)+j)
				}
			}
		}
		for _, x := range ranges {
			rows -= int(x.Len())
		}
		require.Zero(t, rows)
		sr.Close()
	}
}

// TestDictionaryVectors shows that dictionaries reach the engine as they are, and only once a stripe.
func TestDictionaryVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 15))
	types := []*wtype{{name: "y", kind: String, dict: true}}
	w := newWriter(r, None, types...)
	w.stripe(randomRows(r, types, 500, 0.1))
	o, f := open(t, w.finish())
	sr, err := OpenStripe(context.Background(), o, f, 0, projections(f, types), nil, Options{})
	require.NoError(t, err)
	defer sr.Close()
	var dict *vector.Vector
	for n, _ := sr.NextBatch(100); n > 0; n, _ = sr.NextBatch(100) {
		v, err := sr.Read(context.Background(), 0)
		require.NoError(t, err)
		require.Equal(t, vector.Dictionary, v.Form)
		require.True(t, dict == nil || dict == v.Dict)
		dict = v.Dict
	}
}

// one writes a file of one column and reads it as another type.
func one(t *testing.T, c *wtype, vals []vector.Value, as vector.Type, change func(*writer)) ([]vector.Value, error) {
	t.Helper()
	w := newWriter(rand.New(rand.NewPCG(1, 1)), None, c)
	if change != nil {
		change(w)
	}
	rows := make([][]vector.Value, len(vals))
	for i, v := range vals {
		rows[i] = []vector.Value{v}
	}
	w.stripe(rows)
	o, f := open(t, w.finish())
	r, err := OpenStripe(context.Background(), o, f, 0, []*Projection{{Type: as, Node: f.Root.Children[0]}}, nil, Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	n, _ := r.NextBatch(2048)
	v, err := r.Read(context.Background(), 0)
	if err != nil {
		return nil, err
	}
	var out []vector.Value
	for i := range n {
		out = append(out, v.Get(i))
	}
	return out, nil
}

// TestPromotions reads columns as the types that a table's schema may have grown to.
func TestPromotions(t *testing.T) {
	dec := func(p, s int) *wtype { return &wtype{name: "c", kind: Decimal, prec: p, scale: s} }
	long := &wtype{name: "c", kind: Long, attrs: map[string]string{"iceberg.long-type": "TIME"}}
	micros, nanos := vector.Of(vector.Timestamp), vector.Type{Kind: vector.Timestamp, Precision: 9}
	fixed := vector.Type{Kind: vector.Fixed, Precision: 3}
	uuid := string([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	for _, c := range []struct {
		name string
		from *wtype
		val  vector.Value
		to   vector.Type
		want vector.Value // nil: refused
	}{
		{"int to long", field("c", Int), int32(-5), vector.Of(vector.BigInt), int64(-5)},
		{"tinyint to long", field("c", Byte), int32(-5), vector.Of(vector.BigInt), int64(-5)},
		{"long to int", field("c", Long), int64(5), vector.Of(vector.Integer), nil},
		{"int to date", field("c", Int), int32(5), vector.Of(vector.Date), nil},
		{"float to double", field("c", Float), float32(1.5), vector.Of(vector.Double), 1.5},
		{"double to float", field("c", Double), 1.5, vector.Of(vector.Real), nil},
		{"date to timestamp", field("c", Date), int32(-1), micros, int64(-microsPerDay)},
		{"date to timestamp in nanoseconds", field("c", Date), int32(20000), nanos, int64(20000 * nanosPerDay)},
		{"date beyond timestamps", field("c", Date), int32(1 << 30), micros, nil},
		{"date to instant", field("c", Date), int32(1), vector.Of(vector.TimestampTZ), nil},
		{"instant to timestamp", field("c", TimestampInstant), int64(0), micros, nil},
		{"decimal wider", dec(7, 2), int64(-123), vector.DecimalOf(18, 2), int64(-123)},
		{"decimal wider, long", dec(7, 2), int64(-123), vector.DecimalOf(38, 2), decimal128.FromI64(-123)},
		{"decimal narrower", dec(7, 2), int64(99999), vector.DecimalOf(4, 2), nil},
		{"decimal of another scale", dec(7, 2), int64(1), vector.DecimalOf(7, 3), nil},
		{"time", long, int64(86_399_999_999), vector.Of(vector.Time), int64(86_399_999_999)},
		{"time as long", long, int64(1), vector.Of(vector.BigInt), nil},
		{"string to binary", field("c", String), "x", vector.Of(vector.Varbinary), nil},
		{"binary to string", field("c", Binary), "x", vector.Of(vector.Varchar), nil},
		{"geometry", field("c", Binary), "wkb", vector.Of(vector.Geometry), "wkb"},
		{"uuid", field("c", Binary), uuid, vector.Of(vector.UUID), uuid},
		{"uuid of another length", field("c", Binary), "short", vector.Of(vector.UUID), nil},
		{"fixed", field("c", Binary), "abc", fixed, "abc"},
		{"fixed of another length", field("c", Binary), "abcd", fixed, nil},
		{"boolean to int", field("c", Boolean), true, vector.Of(vector.Integer), nil},
		{"list to int", field("c", List, field("", Int)), []vector.Value{int32(1)}, vector.Of(vector.Integer), nil},
		{"unknown", field("c", Int), int32(1), vector.Of(vector.Null), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := one(t, c.from, []vector.Value{c.val, nil, c.val}, c.to, nil)
			if c.to.Kind == vector.Null {
				require.NoError(t, err)
				return
			}
			if c.want == nil {
				require.ErrorIs(t, err, fault.Corrupt)
				require.ErrorContains(t, err, "test.orc")
				require.ErrorContains(t, err, "column c")
				return
			}
			require.NoError(t, err)
			require.Equal(t, []vector.Value{c.want, nil, c.want}, got)
		})
	}
	_, err := one(t, field("c", Union), nil, vector.Of(vector.Integer), nil)
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "uniontype")
}

// TestUnionTagOutOfRange: a tag that names no member is damage.
func TestUnionTagOutOfRange(t *testing.T) {
	u := field("c", Union, field("", Int), field("", String))
	w := newWriter(rand.New(rand.NewPCG(1, 1)), None, u)
	w.stripe([][]vector.Value{{[]vector.Value{int32(7), nil, nil}}})
	o, f := open(t, w.finish())
	r, err := OpenStripe(context.Background(), o, f, 0, projections(f, []*wtype{u}), nil, Options{})
	require.NoError(t, err)
	defer r.Close()
	r.NextBatch(10)
	_, err = r.Read(context.Background(), 0)
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "tag is 7")
}

// TestDefaults projects fields that the file lacks: a field of a struct is null where its struct is, and its default elsewhere.
func TestDefaults(t *testing.T) {
	types := []*wtype{field("row", Struct, field("a", Int)), field("rows", List, field("", Struct, field("a", Int)))}
	w := newWriter(rand.New(rand.NewPCG(1, 1)), Zlib, types...)
	list := []vector.Value{[]vector.Value{int32(7)}, nil}
	w.stripe([][]vector.Value{{[]vector.Value{int32(1)}, list}, {nil, nil}, {[]vector.Value{nil}, []vector.Value{}}})
	o, f := open(t, w.finish())
	row := vector.RowOf(vector.Field{Name: "a", Type: vector.Of(vector.BigInt)}, vector.Field{Name: "b", Type: vector.Of(vector.Varchar)})
	rowOf := func(n *Node) *Projection {
		return &Projection{Type: row, Node: n, Children: []*Projection{{Type: row.Fields[0].Type, Node: n.Children[0]}, {Type: row.Fields[1].Type, Default: "none"}}}
	}
	only := &Projection{Type: vector.RowOf(row.Fields[1]), Node: f.Root.Children[0], Children: []*Projection{{Type: row.Fields[1].Type, Default: "none"}}}
	cols := []*Projection{
		rowOf(f.Root.Children[0]),
		{Type: vector.ArrayOf(row), Node: f.Root.Children[1], Children: []*Projection{rowOf(f.Root.Children[1].Children[0])}},
		{Type: vector.Of(vector.Integer), Default: int32(9)},
		only,
	}
	r, err := OpenStripe(context.Background(), o, f, 0, cols, nil, Options{})
	require.NoError(t, err)
	defer r.Close()
	n, _ := r.NextBatch(10)
	require.Equal(t, 3, n)
	want := [][]vector.Value{
		{[]vector.Value{int64(1), "none"}, nil, []vector.Value{nil, "none"}},
		{[]vector.Value{[]vector.Value{int64(7), "none"}, nil}, nil, []vector.Value{}},
		{int32(9), int32(9), int32(9)},
		{[]vector.Value{"none"}, nil, []vector.Value{"none"}},
	}
	for c, col := range want {
		v, err := r.Read(context.Background(), c)
		require.NoError(t, err)
		for i, x := range col {
			require.Equal(t, x, v.Get(i), "column %d row %d", c, i)
		}
		if c == 0 {
			require.True(t, v.Children[1].IsNull(1), "a field of a null struct is null")
		}
	}
}

func TestVariant(t *testing.T) {
	c := field("v", Struct, field("value", Binary), field("metadata", Binary))
	got, err := one(t, c, []vector.Value{[]vector.Value{"val", "meta"}, nil}, vector.Of(vector.Variant), nil)
	require.NoError(t, err)
	require.Equal(t, []vector.Value{[]vector.Value{"meta", "val"}, nil}, got)
	_, err = one(t, field("v", Struct, field("value", Binary)), nil, vector.Of(vector.Variant), nil)
	require.ErrorContains(t, err, "variant column v has no metadata")
}

func TestAttributes(t *testing.T) {
	c := &wtype{name: "c", kind: Struct, attrs: map[string]string{"iceberg.id": "3"}, kids: []*wtype{{name: "k", kind: Long, attrs: map[string]string{"iceberg.id": "12"}}}}
	w := newWriter(rand.New(rand.NewPCG(1, 1)), Snappy, c, field("none", Int))
	w.stripe(nil)
	_, f := open(t, w.finish())
	require.Equal(t, 3, f.Root.Children[0].ID)
	require.Equal(t, 12, f.Root.Child("c").Child("k").ID)
	require.Equal(t, -1, f.Root.Child("none").ID)
	require.Equal(t, "c.k", f.Root.Child("c").Child("k").Path())
	require.Equal(t, map[string]string{"written.by": "test"}, f.KeyValue)
	require.Positive(t, f.HeldBytes())
}

// TestFetchParts reads one row group of twenty and fetches little more than its bytes.
func TestFetchParts(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 17))
	ctx := context.Background()
	for _, codec := range []Codec{None, Zlib} {
		types := []*wtype{field("l", Long), field("x", String), {name: "y", kind: String, dict: true}, {name: "d", kind: Decimal, prec: 12, scale: 2},
			field("ts", Timestamp), field("list", List, field("", Double)), field("b", Boolean)}
		w := newWriter(r, codec, types...)
		w.stride = 1000
		want := randomRows(r, types, 20000, 0.1)
		w.stripe(want)
		b := w.finish()
		o, f := open(t, b)
		ps := projections(f, types)
		read := func(ranges []RowRange) {
			p := &profile.Scan{}
			sr, err := OpenStripe(ctx, o, f, 0, ps, ranges, Options{Profile: p})
			require.NoError(t, err)
			defer sr.Close()
			for n, first := sr.NextBatch(1000); n > 0; n, first = sr.NextBatch(1000) {
				for i := range ps {
					v, err := sr.Read(ctx, i)
					require.NoError(t, err)
					for j := range n {
						require.Equal(t, want[int(first)+j][i], v.Get(j))
					}
				}
			}
			require.Less(t, p.BytesRead.Load(), int64(len(b)/3), "of a file of %d bytes", len(b))
		}
		read([]RowRange{{First: 7000, Last: 8000}})
		read([]RowRange{{First: 0, Last: 10}, {First: 900, Last: 1100}, {First: 19990, Last: 20000}})
	}
}
