package deletes

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

var keyTypes = []vector.Type{
	vector.Of(vector.Boolean), vector.Of(vector.Integer), vector.Of(vector.BigInt), vector.Of(vector.Real), vector.Of(vector.Double),
	vector.Of(vector.Varchar), vector.DecimalOf(30, 2), vector.Of(vector.Date),
}

func randomValue(r *rand.Rand, t vector.Type) vector.Value {
	if r.Intn(6) == 0 {
		return nil
	}
	k := r.Intn(5)
	switch t.Physical() {
	case vector.PBool:
		return k%2 == 0
	case vector.PInt32:
		return int32(k - 2)
	case vector.PInt64:
		return int64(k-2) << 40
	case vector.PFloat32:
		return []float32{0, float32(math.Copysign(0, -1)), float32(math.NaN()), 1.5, math.Float32frombits(0xffc00001)}[k]
	case vector.PFloat64:
		return []float64{0, math.Copysign(0, -1), math.NaN(), -1.5, math.Float64frombits(0xfff8000000000001)}[k]
	case vector.PInt128:
		return decimal128.New(int64(k-2), uint64(k))
	}
	return []string{"", "a", "long enough to stand in a buffer", "long enough to stand in another", "ab"}[k]
}

// keyText is the oracle's idea of equality: nulls and NaN are equal, zeros differ by sign.
func keyText(xs []vector.Value) string {
	s := ""
	for _, x := range xs {
		switch f := x.(type) {
		case float32:
			s += fmt.Sprintf("|%v %v", float64(f), math.Signbit(float64(f)) && f == f)
		case float64:
			s += fmt.Sprintf("|%v %v", f, math.Signbit(f) && f == f)
		default:
			s += fmt.Sprintf("|%T%v", x, x)
		}
	}
	return s
}

// columns lays rows out as vectors, some of them as dictionaries.
func columns(r *rand.Rand, types []vector.Type, rows [][]vector.Value) []*vector.Vector {
	out := make([]*vector.Vector, len(types))
	for c, t := range types {
		b := vector.NewBuilder(t)
		for _, row := range rows {
			b.Append(row[c])
		}
		v := b.Finish()
		if r.Intn(2) == 0 {
			d := vector.NewBuilder(t)
			dict := &vector.Vector{Type: t, Form: vector.Dictionary, Valid: v.Valid, Codes: make([]int32, len(rows))}
			for i, row := range rows {
				if row[c] != nil {
					dict.Codes[i] = int32(d.Len())
					d.Append(row[c])
				}
			}
			dict.Dict = d.Finish()
			v = dict
		}
		out[c] = v
	}
	return out
}

func TestKeysAgainstMap(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 300 {
		var types []vector.Type
		for range 1 + r.Intn(3) {
			types = append(types, keyTypes[r.Intn(len(keyTypes))])
		}
		pool := memory.NewPool("q", 0)
		k := NewKeys(types, pool)
		oracle := map[string]int64{}
		for range 1 + r.Intn(4) {
			seq := int64(r.Intn(6))
			var rows [][]vector.Value
			for range r.Intn(20) {
				row := make([]vector.Value, len(types))
				for c, t := range types {
					row[c] = randomValue(r, t)
				}
				rows = append(rows, row)
				oracle[keyText(row)] = max(oracle[keyText(row)], seq)
			}
			require.NoError(t, k.Add(columns(r, types, rows), len(rows), nil, seq))
		}
		var rows [][]vector.Value
		var sel, want []uint16
		seq := int64(r.Intn(6))
		for i := range 100 {
			row := make([]vector.Value, len(types))
			for c, t := range types {
				row[c] = randomValue(r, t)
			}
			rows = append(rows, row)
			if r.Intn(3) == 0 {
				continue
			}
			sel = append(sel, uint16(i))
			if oracle[keyText(row)] <= seq {
				want = append(want, uint16(i))
			}
		}
		got := k.Select(columns(r, types, rows), len(rows), sel, nil, seq, &Scratch{})
		require.Equal(t, want, append([]uint16(nil), got...))
		k.Release()
		require.Zero(t, pool.Used())
	}
}

func TestKeysObeyTheirPool(t *testing.T) {
	pool := memory.NewPool("q", 1<<20)
	k := NewKeys([]vector.Type{vector.Of(vector.BigInt)}, pool)
	v := vector.New(vector.Of(vector.BigInt), vector.Size)
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		for j := range v.I64 {
			v.I64[j] = int64(i*vector.Size + j)
		}
		err = k.Add([]*vector.Vector{v}, vector.Size, nil, 1)
	}
	require.ErrorIs(t, err, fault.Exhausted)
	k.Release()
	require.Zero(t, pool.Used())
}

func BenchmarkKeysSelect(b *testing.B) {
	k := NewKeys([]vector.Type{vector.Of(vector.BigInt)}, nil)
	v := vector.New(vector.Of(vector.BigInt), vector.Size)
	for i := range 250 {
		for j := range v.I64 {
			v.I64[j] = int64(i*vector.Size+j) * 10
		}
		_ = k.Add([]*vector.Vector{v}, vector.Size, nil, 1)
	}
	for j := range v.I64 {
		v.I64[j] = int64(j)
	}
	var s Scratch
	dst := make([]uint16, 0, vector.Size)
	b.SetBytes(vector.Size * 8)
	for b.Loop() {
		dst = k.Select([]*vector.Vector{v}, vector.Size, nil, dst, 0, &s)
	}
}
