package scanner_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/hadoop"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
	"github.com/skua-db/skua/vector"
)

// forger is a store in which one object has other bytes. It remembers which objects were opened.
type forger struct {
	storage.Store

	mu     sync.Mutex
	opened map[string]bool
	path   string
	bytes  []byte
}

func (s *forger) forge(path string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.path, s.bytes, s.opened = path, b, map[string]bool{}
}

func (s *forger) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[path] = true
	if path == s.path {
		return storagetest.Bytes(s.bytes), nil
	}
	return s.Store.Open(ctx, path, size)
}

// forgery is what was done to an object.
type forgery struct {
	name  string
	bytes []byte
	// lo and hi bound what differs, where that is a part of the object.
	lo, hi int
}

// spared reports whether a full scan needs nothing of what a forgery changed: Parquet's page index and bloom filters, which stand
// behind the pages, or the one part of a Parquet file that no key covers and no reader needs, the key metadata that parquet's own
// key tools would use.
func spared(original []byte, pagesEnd int, f forgery) bool {
	lo, hi := uncovered(original)
	return pagesEnd > 0 && pagesEnd <= f.lo && f.hi <= lo || lo <= f.lo && f.hi <= hi && f.hi > 0
}

// pagesEnd gives, for each encrypted Parquet file of a table, where its pages end.
func (l *lake) pagesEnd(tab *catalog.Table, snap catalog.Snapshot) map[string]int {
	ctx := context.Background()
	out := map[string]int{}
	key, err := tab.Keys.ManifestList(ctx, tab.Extra.SnapshotKeyIDs[snap.ID])
	require.NoError(l.t, err)
	list, err := manifest.ReadList(ctx, opened{l.store, key}, tab.Locations.Map(tab.Metadata.SnapshotByID(snap.ID).ManifestList), -1)
	require.NoError(l.t, err)
	for _, f := range list {
		key, err := encryption.ParseKeyMetadata(f.KeyMetadata)
		require.NoError(l.t, err)
		entries, err := manifest.Read(ctx, opened{l.store, key}, tab.Locations.Map(f.Path), f.Length, nil)
		require.NoError(l.t, err)
		for i := range entries.N {
			if path := tab.Locations.Map(entries.FilePath(i)); strings.HasSuffix(path, ".parquet") {
				sealed, _ := entries.KeyMetadata.At(i)
				out[path] = l.pagesEndOf(path, sealed)
			}
		}
	}
	return out
}

// opened decrypts streams under one key.
type opened struct {
	storage.Store
	key encryption.KeyMetadata
}

func (s opened) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	o, err := s.Store.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	return encryption.OpenStream(ctx, o, s.key, size)
}

func (l *lake) pagesEndOf(path string, sealed []byte) int {
	ctx := context.Background()
	m, err := encryption.ParseKeyMetadata(sealed)
	require.NoError(l.t, err)
	o, err := l.store.Open(ctx, path, -1)
	require.NoError(l.t, err)
	f, err := parquet.ReadEncryptedFooter(ctx, o, path, func(c parquet.FileCrypto) (parquet.Modules, error) { return m.Parquet(encryption.ParquetAlgorithm(c)) })
	require.NoError(l.t, err)
	require.NoError(l.t, o.Close())
	end := o.Size()
	for _, g := range f.RowGroups {
		for _, c := range g.Columns {
			for _, x := range []int64{c.ColumnIndex.Offset, c.OffsetIndex.Offset, c.BloomOffset} {
				if x > 0 {
					end = min(end, x)
				}
			}
		}
	}
	return int(end)
}

// encryptedLake unpacks the encrypted tables that Iceberg Java wrote.
func encryptedLake(t *testing.T) string {
	dir := t.TempDir()
	unpack(t, "jenc", dir)
	return filepath.Join(dir, "skua-lake/jenc")
}

// unpack writes the tables of a group of conformance cases below dir.
func unpack(t *testing.T, group, dir string) {
	t.Helper()
	f, err := os.Open("../integration/conformance/" + group + ".tar.gz")
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, filepath.Clean("/"+h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
}

// TestTampering changes each object of encrypted tables in every way that a writer to the store could: each change is an error
// that names the file, and never a wrong row.
func TestTampering(t *testing.T) {
	ctx := context.Background()
	dir := encryptedLake(t)
	kms, err := encryption.ReadKeyFile(keyFile(t))
	require.NoError(t, err)
	pool := memory.NewPool("process", 0)
	budget := cache.NewBudget(pool, 1) // nothing is remembered
	t.Cleanup(func() { budget.Close(); require.Zero(t, pool.Used()) })
	store := &forger{Store: storage.Local{}, opened: map[string]bool{}}
	l := &lake{t: t, pool: pool, store: store, scan: scanner.New(scanner.Options{Budget: budget, Workers: 1})}
	cat := encryptedCatalog(t, dir, store, keyring(t, kms))
	plain := plainData(t)

	forgeries, refused := 0, 0
	for _, name := range []string{"avro_128", "parquet_256", "pos_parquet", "eq_avro", "blocks_ok", "pages_v2", "two_keks"} {
		tab, err := cat.Load(ctx, catalog.Namespace{"x"}, name)
		require.NoError(t, err)
		snap, err := tab.Resolve(catalog.Version{})
		require.NoError(t, err)
		rows := func(filter expr.Expr) ([]string, error) {
			return l.rows(&scanner.Request{Table: tab, Snapshot: snap, Projection: snap.Schema, Output: len(snap.Schema.Fields()), Limit: -1,
				Filter: filter, Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}}, 1)
		}
		store.forge("", nil)
		want, err := rows(nil)
		require.NoError(t, err)
		require.NotEmpty(t, want)
		three, err := expr.NewCompare(expr.Eq, column(snap.Schema, "id"), lit(vector.Of(vector.BigInt), int64(3)))
		require.NoError(t, err)
		wantThree, err := rows(three)
		require.NoError(t, err)
		ends := l.pagesEnd(tab, snap)
		objects := map[string][]byte{}
		for path := range store.opened {
			objects[path], err = os.ReadFile(path)
			require.NoError(t, err)
		}
		require.GreaterOrEqual(t, len(objects), 3, "list, manifest and data")
		for _, path := range slices.Sorted(maps.Keys(objects)) {
			original := objects[path]
			for _, f := range forgeriesOf(path, original, objects, plain) {
				if bytes.Equal(f.bytes, original) {
					continue
				}
				forgeries++
				store.forge(path, f.bytes)
				what := fmt.Sprintf("%s, %s: %s", name, filepath.Base(path), f.name)
				told := func(filter expr.Expr, want []string) bool {
					got, err := rows(filter)
					if err == nil {
						require.Equal(t, want, got, what)
						return false
					}
					require.True(t, errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported), "%s: %v", what, err)
					require.ErrorContains(t, err, filepath.Base(path), what)
					return true
				}
				switch {
				case told(nil, want):
					refused++
				case !spared(original, ends[path], f):
					t.Errorf("%s: nobody noticed", what)
				case told(three, wantThree): // by the page index or a bloom filter
					refused++
				}
			}
		}
		store.forge("", nil)
	}
	t.Logf("%d forgeries, %d refused", forgeries, refused)
	require.Greater(t, refused, forgeries*9/10)
}

const blockBytes = 12 + 1<<20 + 16 // of a stream: nonce, text, tag

// forgeriesOf changes an object in every way.
func forgeriesOf(path string, b []byte, objects map[string][]byte, plain []byte) (out []forgery) {
	whole := func(name string, b []byte) { out = append(out, forgery{name: name, bytes: b}) }
	places := map[int]bool{}
	for i := range 200 {
		places[i*len(b)/200] = true
	}
	for i := range min(16, len(b)) {
		places[i], places[len(b)-1-i] = true, true
	}
	for _, i := range slices.Sorted(maps.Keys(places)) {
		c := slices.Clone(b)
		c[i] ^= 1 << (i % 8)
		out = append(out, forgery{fmt.Sprintf("bit %d of byte %d flipped", i%8, i), c, i, i + 1})
	}
	for _, n := range []int{0, 4, 8, 20, 36, len(b) / 2, len(b) - 16, len(b) - 1} {
		if n >= 0 && n < len(b) {
			whole(fmt.Sprintf("cut to %d bytes", n), b[:n])
		}
	}
	whole("a byte more", append(slices.Clone(b), 0))
	whole("replaced by a plain file", plain)
	for other, c := range objects {
		if other != path {
			whole("replaced by "+filepath.Base(other), c)
		}
	}
	var parts [][2]int // what is sealed by itself
	if bytes.HasPrefix(b, []byte("AGS1")) {
		for i := 8; i < len(b); i += blockBytes {
			whole(fmt.Sprintf("cut before the block at %d", i), b[:i])
			parts = append(parts, [2]int{i, min(i+blockBytes, len(b))})
		}
	} else {
		parts = modules(b)
	}
	for i := range parts {
		for j := i + 1; j < len(parts) && j < i+12; j++ {
			out = append(out, forgery{fmt.Sprintf("parts %d and %d exchanged", i, j), exchange(b, parts[i], parts[j]), parts[i][0], parts[j][1]})
		}
		without := slices.Concat(b[:parts[i][0]], b[parts[i][1]:])
		whole(fmt.Sprintf("part %d missing", i), without)
	}
	return out
}

func exchange(b []byte, x, y [2]int) []byte {
	return slices.Concat(b[:x[0]], b[y[0]:y[1]], b[x[1]:y[0]], b[x[0]:x[1]], b[y[1]:])
}

// modules walks the sealed parts of an encrypted Parquet file up to its footer: each begins with its length.
func modules(b []byte) (out [][2]int) {
	end, _ := uncovered(b)
	for i := 4; i+4 <= end; {
		n := int(binary.LittleEndian.Uint32(b[i:])) + 4
		if n < 4+12+16 || i+n > end {
			break
		}
		out = append(out, [2]int{i, i + n})
		i += n
	}
	return out
}

// uncovered is where the plain part of an encrypted Parquet file's footer stands: what comes before the sealed footer.
func uncovered(b []byte) (lo, hi int) {
	if !bytes.HasSuffix(b, []byte("PARE")) {
		return 0, 0
	}
	end := len(b) - 8
	start := end - int(binary.LittleEndian.Uint32(b[end:]))
	for i := start; i+4 < end; i++ {
		if i+4+int(binary.LittleEndian.Uint32(b[i:])) == end {
			return start, i
		}
	}
	return 0, 0
}

// plainData is a Parquet file without encryption, of the columns that the tables have.
func plainData(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "plain.parquet")
	id := func(n string) arrow.Metadata { return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{n}) }
	writeParquet(t, path, `[{"id": 1, "v": "forged", "p": "A"}]`,
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: id("1")},
		arrow.Field{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id("2")},
		arrow.Field{Name: "p", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id("3")})
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// encryptedCatalog opens the warehouse that encryptedLake made; its tables' metadata names another place.
func encryptedCatalog(t *testing.T, dir string, store storage.Store, keys *encryption.Keyring) *hadoop.Catalog {
	t.Helper()
	mapping := catalog.NewLocationMapping(map[string]string{"file:/tmp/skua-lake/jenc": dir, "/tmp/skua-lake/jenc": dir})
	c, err := hadoop.New(context.Background(), hadoop.Options{Name: "enc", Warehouse: dir, Store: store, Locations: mapping, Keys: keys})
	require.NoError(t, err)
	return c
}

func keyring(t *testing.T, kms encryption.KMS) *encryption.Keyring {
	r := encryption.KeyringOf(kms)
	t.Cleanup(r.Close)
	return r
}

// keyFile copies the tables' master keys, for a key file must be its owner's alone.
func keyFile(t *testing.T) string {
	b, err := os.ReadFile("../integration/conformance/encryption.keys")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// TestDroppedKeys takes each wrapped key out of a table's metadata.
func TestDroppedKeys(t *testing.T) {
	ctx := context.Background()
	dir := encryptedLake(t)
	kms, err := encryption.ReadKeyFile(keyFile(t))
	require.NoError(t, err)
	cat := encryptedCatalog(t, dir, storage.Local{}, keyring(t, kms))
	tab, err := cat.Load(ctx, catalog.Namespace{"x"}, "two_keks")
	require.NoError(t, err)
	used := map[string]bool{}
	for _, s := range tab.Extra.SnapshotKeyIDs {
		used[s] = true
	}
	require.NotEmpty(t, used)
	for i, k := range tab.Extra.EncryptionKeys {
		chain := encryption.NewChain(keyring(t, kms), "t", tab.Metadata.Properties()["encryption.key-id"], slices.Delete(slices.Clone(tab.Extra.EncryptionKeys), i, i+1))
		failed := 0
		for id := range used {
			if _, err := chain.ManifestList(ctx, id); err != nil {
				require.ErrorIs(t, err, fault.Corrupt)
				require.True(t, strings.Contains(err.Error(), id) || strings.Contains(err.Error(), k.ID), "%v", err)
				failed++
			}
		}
		require.Positive(t, failed, "key %s is used by nothing", k.ID)
	}
}
