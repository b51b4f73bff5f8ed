package vector

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sampleTypes has one type of every layout and wire form.
var sampleTypes = []Type{
	Of(Boolean), Of(TinyInt), Of(SmallInt), Of(Integer), Of(BigInt), Of(Real), Of(Double), DecimalOf(10, 2), DecimalOf(38, 5),
	Of(Varchar), Of(Varbinary), {Kind: Fixed, Precision: 3}, Of(UUID), Of(Date), Of(Time), Of(Timestamp), {Kind: TimestampTZ, Precision: 9},
	Of(IntervalYear), Of(IntervalDay), Of(JSON), {Kind: Geometry, CRS: "OGC:CRS84"},
	ArrayOf(Of(Integer)), ArrayOf(ArrayOf(Of(Varchar))), MapOf(Of(Varchar), Of(BigInt)),
	RowOf(Field{Name: "a", Type: Of(Integer), Nullable: true}, Field{Name: "b", Type: ArrayOf(Of(Varchar)), Nullable: true}),
	ArrayOf(RowOf(Field{Name: "x", Type: Of(Boolean), Nullable: true})),
}

// randomValue makes a value of type t, null one time in five where it may be.
func randomValue(r *rand.Rand, t Type, nullable bool) Value {
	if nullable && r.IntN(5) == 0 {
		return nil
	}
	text := func(n int) string { return strings.Repeat(string(rune('a'+r.IntN(26))), n) }
	switch t.Physical() {
	case PBool:
		return r.IntN(2) == 0
	case PInt32:
		if t.Kind == TinyInt {
			return int32(int8(r.Uint32()))
		}
		if t.Kind == SmallInt {
			return int32(int16(r.Uint32()))
		}
		return int32(r.Uint32())
	case PInt64:
		return int64(r.Uint64() >> 8)
	case PInt128:
		return decimal128.New(int64(r.Uint64()>>4)-1<<58, r.Uint64())
	case PFloat32:
		return float32(r.NormFloat64())
	case PFloat64:
		return r.NormFloat64()
	case PView:
		switch t.Kind {
		case UUID:
			return text(16)
		case Fixed:
			return text(t.Precision)
		}
		return text(r.IntN(40))
	case PRow:
		out := make([]Value, len(t.Fields))
		for i, f := range t.Fields {
			out[i] = randomValue(r, f.Type, true)
		}
		return out
	}
	n := r.IntN(4)
	if t.Kind == Map {
		out := make([]Pair, 0, n)
		for i := range n {
			out = append(out, Pair{fmt.Sprint("key", i), randomValue(r, t.Fields[1].Type, true)})
		}
		return out
	}
	out := make([]Value, 0, n)
	for range n {
		out = append(out, randomValue(r, t.Fields[0].Type, true))
	}
	return out
}

// formsOf gives vectors of every form that hold the values of rows.
func formsOf(r *rand.Rand, t Type, rows []Value) *Vector {
	b := NewBuilder(t)
	for _, x := range rows {
		b.Append(x)
	}
	flat := b.Finish()
	if r.IntN(2) == 0 {
		return flat
	}
	// The same rows as a dictionary over the values that are not null.
	v := &Vector{Type: t, Form: Dictionary, Codes: make([]int32, len(rows))}
	for i, x := range rows {
		if x == nil {
			v.SetNull(i, len(rows))
			continue
		}
		b.Append(x)
		v.Codes[i] = int32(b.Len() - 1)
	}
	if b.Len() == 0 {
		return flat
	}
	v.Dict = b.Finish()
	return v
}

func TestBuilderGivesBackItsValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, typ := range sampleTypes {
		rows := make([]Value, 200)
		for i := range rows {
			rows[i] = randomValue(r, typ, true)
		}
		for range 4 {
			v := formsOf(r, typ, rows)
			again := NewBuilder(typ)
			for i, want := range rows {
				require.Equal(t, want, v.Get(i), "%s row %d", typ, i)
				again.AppendFrom(v, i)
			}
			w := again.Finish()
			for i, want := range rows {
				require.Equal(t, want, w.Get(i), "%s copied row %d", typ, i)
			}
		}
		c := NewConstant(typ, rows[0])
		require.Equal(t, rows[0], c.Get(123))
	}
}

// TestBatcher takes random chunks of every type, form and selection through Arrow and back.
func TestBatcher(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 30 {
		fields := make([]Field, len(sampleTypes))
		for i, typ := range sampleTypes {
			fields[i] = Field{Name: fmt.Sprint("c", i), Type: typ, Nullable: true}
		}
		b := NewBatcher(fields)
		var want [][]Value
		for range 1 + r.IntN(3) {
			n := 1 + r.IntN(100)
			c := &Chunk{N: n}
			rows := make([][]Value, len(fields))
			for i, f := range fields {
				rows[i] = make([]Value, n)
				for k := range rows[i] {
					rows[i][k] = randomValue(r, f.Type, round%2 == 0)
				}
				c.Cols = append(c.Cols, formsOf(r, f.Type, rows[i]))
			}
			if r.IntN(2) == 0 {
				c.Sel = []uint16{}
				for i := range n {
					if r.IntN(3) > 0 {
						c.Sel = append(c.Sel, uint16(i))
					}
				}
			}
			from := r.IntN(c.Rows() + 1)
			require.NoError(t, b.Append(c, from, c.Rows()))
			for k := from; k < c.Rows(); k++ {
				i := k
				if c.Sel != nil {
					i = int(c.Sel[k])
				}
				row := make([]Value, len(fields))
				for j := range row {
					row[j] = rows[j][i]
				}
				want = append(want, row)
			}
		}
		require.Equal(t, len(want), b.Rows())
		rec := b.Batch()
		require.EqualValues(t, len(want), rec.NumRows())
		for j, f := range fields {
			back, ok := FromArrow(rec.Column(j).DataType())
			require.True(t, ok, f.Type.String())
			for i := range want {
				got := ArrowValue(rec.Column(j), i)
				if f.Type.Kind == DecimalOf(1, 0).Kind {
					require.Equal(t, f.Type.Precision, back.Precision)
				}
				require.Equal(t, want[i][j], got, "%s row %d", f.Type, i)
			}
		}
		rec.Release()
		require.Zero(t, b.Bytes())
	}
}

func TestViews(t *testing.T) {
	bufs := [][]byte{[]byte("short"), []byte("a long string indeed"), []byte("a long string inside")}
	v := []View{MakeView(bufs, 0, 0, 5), MakeView(bufs, 1, 0, 20), MakeView(bufs, 2, 0, 20), InlineView(nil), InlineView([]byte("twelve bytes"))}
	for i, want := range []string{"short", "a long string indeed", "a long string inside", "", "twelve bytes"} {
		require.Equal(t, want, string(v[i].Bytes(bufs)))
	}
	for i := range v {
		for j := range v {
			a, b := string(v[i].Bytes(bufs)), string(v[j].Bytes(bufs))
			require.Equal(t, a == b, EqualViews(&v[i], bufs, &v[j], bufs))
			require.Equal(t, strings.Compare(a, b), CompareViews(&v[i], bufs, &v[j], bufs), "%q %q", a, b)
		}
	}
	require.Equal(t, 2, new(v[1].Rebase(1)).Buf())
}

func TestTypeNames(t *testing.T) {
	for want, typ := range map[string]Type{
		"decimal(10,2)": DecimalOf(10, 2), "timestamp(6) with time zone": Of(TimestampTZ), "array(bigint)": ArrayOf(Of(BigInt)),
		"map(varchar, double)":       MapOf(Of(Varchar), Of(Double)),
		`row(a integer, "B c" date)`: RowOf(Field{Name: "a", Type: Of(Integer)}, Field{Name: "B c", Type: Of(Date)}),
	} {
		require.Equal(t, want, typ.String())
	}
}
