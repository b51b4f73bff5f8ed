package seal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(id string) Key { return Key{ID: id, Secret: bytes.Repeat([]byte(id), 20)} }

func TestSealAndRotate(t *testing.T) {
	old, err := New(key("k1"))
	require.NoError(t, err)
	both, err := New(key("k2"), key("k1"))
	require.NoError(t, err)
	blob := old.Seal([]byte("SELECT 1"))
	require.NotContains(t, string(blob), "SELECT")
	for _, s := range []*Sealer{old, both} {
		plain, err := s.Open(blob)
		require.NoError(t, err)
		require.Equal(t, "SELECT 1", string(plain))
	}
	_, err = old.Open(both.Seal([]byte("x")))
	require.ErrorIs(t, err, fault.Expired)
	require.NotEqual(t, old.Seal([]byte("x")), old.Seal([]byte("x")), "nonces differ")
}

func TestAlteredBlobsAreRefused(t *testing.T) {
	s, err := Random()
	require.NoError(t, err)
	blob := s.Seal([]byte("hello"))
	for i := range blob {
		bad := bytes.Clone(blob)
		bad[i] ^= 1
		_, err := s.Open(bad)
		require.Error(t, err, "byte %d", i)
	}
	for n := range blob {
		_, err := s.Open(blob[:n])
		require.Error(t, err)
	}
	_, err = New(Key{ID: "k", Secret: []byte("short")})
	require.ErrorIs(t, err, fault.Invalid)
	_, err = New()
	require.ErrorIs(t, err, fault.Invalid)
}

func FuzzOpen(f *testing.F) {
	s, err := New(key("k1"))
	require.NoError(f, err)
	f.Add(s.Seal([]byte("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := s.Open(b); err != nil {
			var e *fault.Error
			require.ErrorAs(t, err, &e)
		}
	})
}
