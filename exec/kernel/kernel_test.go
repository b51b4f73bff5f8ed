package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var types = []vector.Type{vector.Of(vector.Boolean), vector.Of(vector.Integer), vector.Of(vector.BigInt), vector.DecimalOf(38, 2), vector.Of(vector.Real),
	vector.Of(vector.Double), vector.Of(vector.Varchar), vector.ArrayOf(vector.Of(vector.Varchar)), vector.MapOf(vector.Of(vector.Integer), vector.Of(vector.BigInt)),
	vector.RowOf(vector.Field{Name: "a", Type: vector.Of(vector.Integer)}, vector.Field{Name: "b", Type: vector.ArrayOf(vector.Of(vector.Integer))}), vector.Of(vector.Null)}

func random(rng *rand.Rand, t vector.Type) vector.Value {
	if t.Kind == vector.Null || rng.IntN(5) == 0 {
		return nil
	}
	k := rng.IntN(50)
	switch t.Physical() {
	case vector.PBool:
		return k%2 == 0
	case vector.PInt32:
		return int32(k)
	case vector.PInt64:
		return int64(k)
	case vector.PInt128:
		return vector.Int128{}
	case vector.PFloat32:
		return float32(k)
	case vector.PFloat64:
		return float64(k)
	case vector.PView:
		return fmt.Sprintf("%0*d", k, k)
	case vector.PRow:
		var r []vector.Value
		for _, f := range t.Fields {
			r = append(r, random(rng, f.Type))
		}
		return r
	}
	if t.Kind == vector.Map {
		ps := []vector.Pair{}
		for i := range k % 4 {
			ps = append(ps, vector.Pair{Key: int32(i), Value: random(rng, t.Fields[1].Type)})
		}
		return ps
	}
	vs := []vector.Value{}
	for range k % 4 {
		vs = append(vs, random(rng, t.Fields[0].Type))
	}
	return vs
}

func column(rng *rand.Rand, t vector.Type, n int) *vector.Vector {
	b := vector.NewBuilder(t)
	switch {
	case rng.IntN(4) == 0:
		return vector.NewConstant(t, random(rng, t))
	case rng.IntN(3) == 0 && t.Kind != vector.Null:
		for b.Len() < 3 {
			if x := random(rng, t); x != nil {
				b.Append(x)
			}
		}
		v := &vector.Vector{Type: t, Form: vector.Dictionary, Dict: b.Finish(), Codes: make([]int32, n)}
		for i := range v.Codes {
			v.Codes[i] = int32(rng.IntN(3))
			if rng.IntN(4) == 0 {
				v.SetNull(i, n)
			}
		}
		return v
	}
	for range n {
		b.Append(random(rng, t))
	}
	return b.Finish()
}

// TestStoreKeepsRows appends random chunks and reads the rows back in every way.
func TestStoreKeepsRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := NewStore(types)
	var want [][]vector.Value
	var parts []*Store
	for range 4 {
		p := NewStore(types)
		for range 10 {
			n := 1 + rng.IntN(200)
			cols := make([]*vector.Vector, len(types))
			for k, ty := range types {
				cols[k] = column(rng, ty, n)
			}
			var sel []uint16
			if rng.IntN(2) == 0 {
				for i := range n {
					if rng.IntN(3) > 0 {
						sel = append(sel, uint16(i))
					}
				}
				if sel == nil {
					continue
				}
			}
			rows := sel
			if rows == nil {
				rows = Identity(n)
			}
			for _, i := range rows {
				var r []vector.Value
				for _, c := range cols {
					r = append(r, c.Get(int(i)))
				}
				want = append(want, r)
			}
			p.Append(cols, sel, n)
		}
		parts = append(parts, p)
	}
	for _, p := range parts {
		s.AppendStore(p)
	}
	require.Equal(t, len(want), s.N)
	require.Positive(t, s.Bytes())
	ids := make([]int32, 500)
	for i := range ids {
		ids[i] = int32(rng.IntN(s.N+1)) - 1
	}
	var g Gatherer
	for k, c := range s.Cols {
		for i := range s.N {
			require.Equal(t, want[i][k], c.Get(i), "%s row %d", types[k], i)
		}
		v := g.Column(k, c, ids, len(ids))
		for i, id := range ids {
			if id < 0 {
				require.True(t, v.IsNull(i))
			} else {
				require.Equal(t, want[id][k], v.Get(i))
			}
		}
		lo := 128
		part := Slice(c, lo, min(lo+700, s.N))
		for i := range min(700, s.N-lo) {
			require.Equal(t, want[lo+i][k], part.Get(i))
		}
	}
}

func TestGathererPicksRowsOfAnyForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var g Gatherer
	for range 200 {
		ty := types[rng.IntN(len(types))]
		src := column(rng, ty, 100)
		rows := make([]uint16, 300)
		for i := range rows {
			rows[i] = uint16(rng.IntN(100))
		}
		v := g.Rows(0, src, rows)
		for i, r := range rows {
			require.Equal(t, src.Get(int(r)), v.Get(i), ty)
		}
	}
}
