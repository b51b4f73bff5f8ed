package spill

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var types = []vector.Type{vector.Of(vector.Boolean), vector.Of(vector.Integer), vector.Of(vector.BigInt), vector.DecimalOf(38, 2), vector.Of(vector.Real),
	vector.Of(vector.Double), vector.Of(vector.Varchar), vector.ArrayOf(vector.Of(vector.Varchar)), vector.MapOf(vector.Of(vector.Integer), vector.Of(vector.BigInt)),
	vector.RowOf(vector.Field{Name: "a", Type: vector.Of(vector.Integer)}, vector.Field{Name: "b", Type: vector.ArrayOf(vector.Of(vector.Integer))}), vector.Of(vector.Null)}

func value(rng *rand.Rand, t vector.Type) vector.Value {
	if t.Kind == vector.Null || rng.IntN(5) == 0 {
		return nil
	}
	k := rng.IntN(50)
	switch t.Physical() {
	case vector.PBool:
		return k%2 == 0
	case vector.PInt32:
		return int32(-k)
	case vector.PInt64:
		return int64(-k)
	case vector.PInt128:
		return vector.Int128{}
	case vector.PFloat32:
		return float32(k)
	case vector.PFloat64:
		return float64(k)
	case vector.PView:
		return fmt.Sprintf("%0*d", k, k)
	case vector.PRow:
		return []vector.Value{value(rng, t.Fields[0].Type), value(rng, t.Fields[1].Type)}
	}
	if t.Kind == vector.Map {
		ps := []vector.Pair{}
		for i := range k % 4 {
			ps = append(ps, vector.Pair{Key: int32(i), Value: value(rng, t.Fields[1].Type)})
		}
		return ps
	}
	vs := []vector.Value{}
	for range k % 4 {
		vs = append(vs, value(rng, t.Fields[0].Type))
	}
	return vs
}

func store(rng *rand.Rand, n int) *kernel.Store {
	s := kernel.NewStore(types)
	cols := make([]*vector.Vector, len(types))
	for k, t := range types {
		b := vector.NewBuilder(t)
		for range n {
			b.Append(value(rng, t))
		}
		cols[k] = b.Finish()
	}
	s.Append(cols, nil, n)
	return s
}

// TestFramesComeBack writes stores of every type and reads them back in another order.
func TestFramesComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := Open(t.TempDir(), 0)
	a := d.Area()
	f, err := a.File()
	require.NoError(t, err)
	var stores []*kernel.Store
	var frames []Frame
	for i := range 40 {
		s := store(rng, 1+i*37%900)
		fr, err := f.Append(s)
		require.NoError(t, err)
		stores, frames = append(stores, s), append(frames, fr)
	}
	require.NoError(t, f.Finish())
	require.Equal(t, f.Bytes(), d.Used())
	var rd Reader
	for _, i := range rng.Perm(len(frames)) {
		cols, err := rd.Read(frames[i], types)
		require.NoError(t, err)
		for k, c := range cols {
			for r := range stores[i].N {
				require.Equal(t, stores[i].Cols[k].Get(r), c.Get(r), "%s row %d", types[k], r)
			}
		}
	}
	f.Remove()
	require.Zero(t, d.Used())
	a.Close()
	require.NoError(t, d.Close())
}

func TestDamageIsAnError(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	raw := []byte{}
	s := store(rng, 50)
	for _, c := range s.Cols {
		raw = encode(raw, c, s.N)
	}
	for range 5000 {
		b := append([]byte(nil), raw[:rng.IntN(len(raw)+1)]...)
		for range rng.IntN(4) {
			if len(b) > 0 {
				b[rng.IntN(len(b))] ^= byte(1 << rng.IntN(8))
			}
		}
		d := decoder{b}
		for _, ty := range types {
			if _, err := d.vector(ty, s.N); err != nil {
				require.ErrorIs(t, err, fault.Corrupt)
				break
			}
		}
	}
}

func TestLeftoversOfTheDeadAreRemoved(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, prefix+"1-x")
	require.NoError(t, os.MkdirAll(filepath.Join(dead, "query-1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600))
	other := filepath.Join(dir, "other")
	require.NoError(t, os.Mkdir(other, 0o700))

	alive := Open(dir, 0)
	require.NoDirExists(t, dead)
	require.DirExists(t, other)
	a := alive.Area()
	_, err := a.File()
	require.NoError(t, err)
	Open(dir, 0)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the folder of a living process stays")
	a.Close()
	require.NoError(t, alive.Close())
	entries, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestQuotaAndFullDisk(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	d := Open(t.TempDir(), 1000)
	a := d.Area()
	f, err := a.File()
	require.NoError(t, err)
	_, err = f.Append(store(rng, 500))
	require.NoError(t, err, "it is gathered first")
	err = f.Finish()
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "limits.spill.max is 1000")
	a.Close()
	require.Zero(t, d.Used())

	for errno, kind := range map[error]error{syscall.ENOSPC: fault.Exhausted, errors.New("broken disk"): fault.Unavailable} {
		d := Open(t.TempDir(), 0)
		d.BeforeWrite = func(int) error { return errno }
		a := d.Area()
		f, err := a.File()
		require.NoError(t, err)
		_, err = f.Append(store(rng, 500))
		require.NoError(t, err)
		require.ErrorIs(t, f.Finish(), kind)
		a.Close()
		require.Zero(t, d.Used())
		require.NoError(t, d.Close())
	}
}
