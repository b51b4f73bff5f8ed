package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// TestLinksOutOfTheWarehouse: a symbolic link is followed within what a table may read and nowhere else.
func TestLinksOutOfTheWarehouse(t *testing.T) {
	ctx := context.Background()
	base := t.TempDir()
	dir := func(name string) string {
		d := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(d, 0o700))
		return d
	}
	real, outside, more := dir("disk/lake"), dir("secret"), dir("more")
	for _, d := range []string{real, outside, more} {
		require.NoError(t, os.WriteFile(filepath.Join(d, "file"), []byte("x"), 0o600))
	}
	lake := filepath.Join(base, "lake")
	require.NoError(t, os.Symlink(real, lake)) // a warehouse may itself be a link
	for name, to := range map[string]string{
		"inside": filepath.Join(real, "file"), "out": filepath.Join(outside, "file"), "folder": outside, "passwd": "/etc/passwd",
		"relative": "../../secret/file", "chain": filepath.Join(real, "out"), "more": more, "nowhere": filepath.Join(base, "none"), "self": filepath.Join(real, "self"),
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(real, name)))
	}
	s := storage.Confine(storage.Local{}, "file://"+lake, more)
	for _, path := range []string{"file", "inside", "more/file"} {
		o, err := s.Open(ctx, lake+"/"+path, -1)
		require.NoError(t, err, path)
		require.EqualValues(t, 1, o.Size())
		require.NoError(t, o.Close())
	}
	for _, path := range []string{"out", "folder/file", "passwd", "relative", "chain"} {
		_, err := s.Open(ctx, "file://"+lake+"/"+path, -1)
		require.ErrorIs(t, err, fault.Denied, path)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "secret", "where a link leads is not for whoever reads the table")
		_, err = s.Stat(ctx, lake+"/"+path)
		require.ErrorIs(t, err, fault.Denied, path)
	}
	_, err := s.List(ctx, lake+"/folder")
	require.ErrorIs(t, err, fault.Denied)
	_, err = s.Open(ctx, lake+"/nowhere", -1)
	require.ErrorIs(t, err, fault.NotFound)
	_, err = s.Open(ctx, lake+"/self", -1)
	require.Error(t, err)
}
