package reload

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValue(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	read := func() (string, error) {
		x, err := os.ReadFile(a)
		y, err2 := os.ReadFile(b)
		if string(x) == "bad" {
			return "", errors.New("bad")
		}
		return string(x) + string(y), errors.Join(err, err2)
	}
	_, err := Open(zap.NewNop(), read, a, b)
	require.Error(t, err, "there is nothing yet")
	write(a, "1")
	write(b, "2")
	v, err := Open(zap.NewNop(), read, a, b)
	require.NoError(t, err)
	is := func(want string, version uint64) {
		t.Helper()
		v.Look()
		got, n := v.Get()
		require.Equal(t, want, got)
		require.Equal(t, version, n)
	}
	is("12", 1)
	is("12", 1)
	write(b, "three")
	is("1three", 2)
	write(a, "bad")
	is("1three", 2)
	require.NoError(t, os.Remove(a))
	is("1three", 2)
	write(a, "once more")
	is("once morethree", 3)
}
