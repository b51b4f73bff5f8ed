package storage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func localFixture(root string, s storage.Store) storagetest.Fixture {
	return storagetest.Fixture{Store: s, Root: root, Put: func(t *testing.T, name string, content []byte) {
		p := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
		require.NoError(t, os.WriteFile(p, content, 0o644))
	}}
}

func TestStores(t *testing.T) {
	stacks := map[string]func(root string) storage.Store{
		"local":     func(string) storage.Store { return storage.Local{} },
		"confined":  func(root string) storage.Store { return storage.Confine(storage.Local{}, "file://"+root) },
		"coalesced": func(string) storage.Store { return storage.Coalesce(storage.Local{}, 64<<10, 80<<10) },
		"counted":   func(string) storage.Store { return storage.Count(storage.Local{}, &storage.Counter{}) },
		"unbroken":  func(string) storage.Store { return storage.Break(storage.Local{}, &storage.Breakage{}) },
	}
	for name, stack := range stacks {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storagetest.Fixture {
				root := t.TempDir()
				return localFixture(root, stack(root))
			})
		})
	}
}

func TestLocalPath(t *testing.T) {
	for in, want := range map[string]string{
		"/a/b": "/a/b", "file:/a/b": "/a/b", "file:///a/b": "/a/b", "FILE:///a/b": "/a/b",
		"file://localhost/a": "/a", "/a/x:y": "/a/x:y", "file:///a%20b": "/a b",
	} {
		got, err := storage.LocalPath(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	_, err := storage.LocalPath("s3://bucket/x")
	require.ErrorIs(t, err, fault.Unsupported)
	_, err = storage.LocalPath("file://elsewhere/x")
	require.ErrorIs(t, err, fault.Invalid)
	_, err = storage.LocalPath("a/b")
	require.ErrorIs(t, err, fault.Invalid)
}

func TestConfine(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "wh-other"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "wh"), 0o755))
	for _, p := range []string{"wh/x", "wh-other/x"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, p), []byte("x"), 0o644))
	}
	s := storage.Confine(storage.Local{}, root+"/wh/")
	for _, ok := range []string{root + "/wh/x", "file:" + root + "/wh/x", "file://" + root + "/wh/x", root + "//wh//x"} {
		o, err := s.Open(context.Background(), ok, -1)
		require.NoError(t, err, ok)
		require.NoError(t, o.Close())
	}
	for _, bad := range []string{root + "/wh-other/x", root + "/wh/../wh-other/x", "/etc/passwd", "file:///etc/passwd", "s3://b/x", "jar:file:" + root + "/wh/x!/y", "relative/x", "", root + `/wh\..\x`} {
		_, err := s.Open(context.Background(), bad, -1)
		require.Error(t, err, bad)
		_, err = s.Stat(context.Background(), bad)
		require.Error(t, err, bad)
		_, err = s.List(context.Background(), bad)
		require.Error(t, err, bad)
	}
	_, err := s.Open(context.Background(), "/etc/passwd", -1)
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "/etc/passwd")
}

func TestCoalesceJoinsRequests(t *testing.T) {
	root := t.TempDir()
	f := localFixture(root, nil)
	f.Put(t, "x", make([]byte, 10_000))
	var c storage.Counter
	s := storage.Coalesce(storage.Count(storage.Local{}, &c), 100, 5_000)
	o, err := s.Open(context.Background(), root+"/x", 10_000)
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	ranges := []storage.Range{{Offset: 0, Length: 50}, {Offset: 60, Length: 50}, {Offset: 9_000, Length: 10}, {Offset: 200, Length: 4_900}}
	dst := make([][]byte, len(ranges))
	for i, r := range ranges {
		dst[i] = make([]byte, r.Length)
	}
	require.NoError(t, o.ReadRanges(context.Background(), ranges, dst))
	require.EqualValues(t, 3, c.Requests.Load(), "the first two join, the fourth would be too long")
	require.EqualValues(t, 110+10+4_900, c.Bytes.Load())
}

func TestBreakage(t *testing.T) {
	root := t.TempDir()
	localFixture(root, nil).Put(t, "x", []byte{1, 2, 3, 4})
	read := func(b *storage.Breakage, ctx context.Context) ([]byte, error) {
		o, err := storage.Break(storage.Local{}, b).Open(context.Background(), root+"/x", 4)
		require.NoError(t, err)
		defer func() { require.NoError(t, o.Close()) }()
		dst := [][]byte{make([]byte, 4)}
		err = o.ReadRanges(ctx, []storage.Range{{Length: 4}}, dst)
		return dst[0], err
	}
	_, err := read(&storage.Breakage{FailRead: 1}, context.Background())
	require.ErrorIs(t, err, fault.Unavailable)
	_, err = read(&storage.Breakage{Truncate: 1}, context.Background())
	require.ErrorIs(t, err, fault.Corrupt)
	b, err := read(&storage.Breakage{FlipAt: 2}, context.Background())
	require.NoError(t, err)
	require.Equal(t, []byte{1, 0xfd, 3, 4}, b)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = read(&storage.Breakage{Delay: time.Hour}, ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = read(&storage.Breakage{Match: "other", FailRead: 1}, context.Background())
	require.NoError(t, err)
}
