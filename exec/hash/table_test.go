package hash

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func identity(n int) []uint16 {
	r := make([]uint16, n)
	for i := range r {
		r[i] = uint16(i)
	}
	return r
}

// TestKeysNumberRowsAsAMapDoes compares each mode with a Go map over the keys' encoding.
func TestKeysNumberRowsAsAMapDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	i32, i64, f64, str := vector.Of(vector.Integer), vector.Of(vector.BigInt), vector.Of(vector.Double), vector.Of(vector.Varchar)
	for _, types := range [][]vector.Type{{i32}, {i64}, {f64}, {str}, {i32, i64}, {i64, f64}, {str, i32}, {vector.Of(vector.Boolean), i32, i32}} {
		k := NewKeys(types)
		seen := map[string]uint32{}
		for range 20 {
			n := 1 + rng.IntN(300)
			var cols []*vector.Vector
			for _, ty := range types {
				cols = append(cols, randomColumn(rng, ty, n))
			}
			ids := make([]uint32, n)
			fresh := map[uint16]bool{}
			for _, p := range k.Upsert(cols, identity(n), ids) {
				fresh[p] = true
			}
			for i := range n {
				var key []byte
				for _, c := range cols {
					key = expr.AppendKey(key, c, i)
				}
				want, ok := seen[string(key)]
				require.Equal(t, !ok, fresh[uint16(i)], "%v row %d", types, i)
				if !ok {
					want = ids[i]
					seen[string(key)] = want
				}
				require.Equal(t, want, ids[i])
			}
			require.Equal(t, len(seen), k.Len())
			found := make([]int32, n)
			k.Reader().Find(cols, identity(n), found)
			for i := range n {
				require.EqualValues(t, ids[i], found[i])
			}
		}
		require.Positive(t, k.Bytes())
	}
}

func randomColumn(rng *rand.Rand, t vector.Type, n int) *vector.Vector {
	b := vector.NewBuilder(t)
	value := func() vector.Value {
		k := rng.IntN(9)
		switch t.Kind {
		case vector.Boolean:
			return k%2 == 0
		case vector.Integer:
			return int32(k - 4)
		case vector.BigInt:
			return int64(k-4) << 40
		case vector.Double:
			return []float64{math.NaN(), 0, math.Copysign(0, -1), 1.5, -2}[k%5]
		}
		return fmt.Sprint("key of some length ", k)
	}
	if rng.IntN(2) == 0 {
		for range 4 {
			b.Append(value())
		}
		v := &vector.Vector{Type: t, Form: vector.Dictionary, Dict: b.Finish(), Codes: make([]int32, n)}
		for i := range v.Codes {
			v.Codes[i] = int32(rng.IntN(4))
			if rng.IntN(7) == 0 {
				v.SetNull(i, n)
			}
		}
		return v
	}
	for range n {
		if rng.IntN(7) == 0 {
			b.AppendNull()
		} else {
			b.Append(value())
		}
	}
	return b.Finish()
}

func BenchmarkInts(b *testing.B) {
	keys, ids := make([]uint64, vector.Size), make([]uint32, vector.Size)
	rng := rand.New(rand.NewPCG(3, 4))
	for _, distinct := range []uint64{7, 10_000, 2_000_000} {
		b.Run(fmt.Sprint(distinct), func(b *testing.B) {
			var t Ints
			var fresh []uint16
			for b.Loop() {
				for i := range keys {
					keys[i] = rng.Uint64N(distinct)
				}
				fresh = t.Upsert(keys, ids, fresh[:0])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/vector.Size, "ns/key")
		})
	}
}
