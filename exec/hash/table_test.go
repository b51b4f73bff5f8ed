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

// TestIntsNumberAnyRange compares with a map: ranges that stay narrow, that widen step by step in one or both directions, that turn wide and
// that end at the least and greatest integers.
func TestIntsNumberAnyRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for name, next := range map[string]func(i int) int64{
		"narrow":      func(int) int64 { return rng.Int64N(500) - 250 },
		"ascending":   func(i int) int64 { return int64(i) * 4 },
		"descending":  func(i int) int64 { return -int64(i) },
		"both ways":   func(i int) int64 { return int64(i/2) * int64(1-i%2*2) },
		"outliers":    func(i int) int64 { return map[bool]int64{true: int64(i) << 40, false: int64(i)}[i%5000 == 4999] },
		"wide":        func(int) int64 { return int64(rng.Uint64()) },
		"wide, dense": func(int) int64 { return rng.Int64N(20_000) },
		"ends": func(i int) int64 {
			return map[bool]int64{true: math.MinInt64 + int64(i), false: math.MaxInt64 - int64(i)}[i%9000 < 4500]
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ints Ints
			seen := map[uint64]uint32{}
			i := 0
			for range 60 {
				keys := make([]uint64, 1+rng.IntN(700))
				for k := range keys {
					keys[k] = uint64(next(i))
					i++
				}
				ids := make([]uint32, len(keys))
				fresh := ints.Upsert(keys, ids, nil)
				f := 0
				for k, key := range keys {
					id, ok := seen[key]
					if !ok {
						id = uint32(len(seen))
						seen[key] = id
						require.Equal(t, uint16(k), fresh[f])
						f++
					}
					require.Equal(t, id, ids[k])
				}
				require.Len(t, fresh, f)
				require.Equal(t, len(seen), ints.Len())
				require.LessOrEqual(t, int64(4*len(ints.byValue)), ints.Bytes())
				require.LessOrEqual(t, ints.Bytes(), int64(16*8*(len(seen)+700)))
			}
			for key, id := range seen {
				found := make([]int32, 3)
				ints.Find([]uint64{key, key + 1, key - 1}, found)
				require.EqualValues(t, id, found[0])
				for d, near := range []uint64{key, key + 1, key - 1} {
					if id, ok := seen[near]; ok {
						require.EqualValues(t, id, found[d])
					} else {
						require.EqualValues(t, -1, found[d])
					}
				}
			}
		})
	}
}
