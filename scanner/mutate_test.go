package scanner_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/hadoop"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
)

// mutated is a store in which one object has other bytes, and which knows the length that they have.
type mutated struct {
	storage.Local
	path  string
	bytes []byte
}

func (m *mutated) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	if path == m.path {
		return storagetest.Bytes(m.bytes), nil
	}
	return m.Local.Open(ctx, path, size)
}

func (m *mutated) Stat(ctx context.Context, path string) (storage.Info, error) {
	info, err := m.Local.Stat(ctx, path)
	if path == m.path {
		info.Size = int64(len(m.bytes))
	}
	return info, err
}

// mutate makes something else of an object's bytes. Most of what decides how a file is read stands at its ends.
func mutate(r *rand.Rand, b []byte) (string, []byte) {
	out := slices.Clone(b)
	if len(out) < 16 {
		return "emptied", nil
	}
	at := r.Intn(len(out) - 8)
	const end = 256
	switch r.Intn(4) {
	case 0:
		at = r.Intn(min(end, len(out)-8))
	case 1:
		at = len(out) - 8 - r.Intn(min(end, len(out)-8))
	}
	switch r.Intn(9) {
	case 0:
		out[at] ^= 1 << r.Intn(8)
		return fmt.Sprintf("a bit flipped at %d", at), out
	case 1:
		return fmt.Sprintf("cut at %d", at), out[:at]
	case 2:
		return fmt.Sprintf("%d bytes cut out at %d", 4, at), slices.Delete(out, at, at+4)
	case 3:
		binary.LittleEndian.PutUint32(out[at:], math.MaxInt32-uint32(r.Intn(8)))
		return fmt.Sprintf("a length at %d", at), out
	case 4:
		binary.LittleEndian.PutUint64(out[at:], math.MaxInt64>>r.Intn(24))
		return fmt.Sprintf("a long length at %d", at), out
	case 5: // a variable-length number of many bytes, as Avro, Thrift and Protocol Buffers write them
		copy(out[at:], "\xff\xff\xff\xff\xff\xff\x7f")
		return fmt.Sprintf("a long number at %d", at), out
	case 6:
		clear(out[at : at+8])
		return fmt.Sprintf("zeroes at %d", at), out
	case 7:
		return fmt.Sprintf("8 bytes twice at %d", at), slices.Insert(out, at, out[at:at+8]...)
	}
	out[at] = byte(r.Intn(256))
	return fmt.Sprintf("another byte at %d", at), out
}

// TestMutatedTables reads tables of every kind of file, each file damaged in turn in many ways: metadata, manifest lists, manifests, data
// files, delete files and vectors. What comes are rows or an error that names the file, soon, and without memory out of proportion.
func TestMutatedTables(t *testing.T) {
	const (
		perFile    = 25
		deadline   = 20 * time.Second
		poolBytes  = 64 << 20
		mostBytes  = 96 << 20 // that one read may allocate altogether; the tables have kilobytes
		leastTried = 2000
	)
	ctx := context.Background()
	dir := t.TempDir()
	tried, failed := 0, 0
	for group, names := range map[string][]string{
		"jdv":           {"pos_parquet_parquet", "pos_avro_avro", "pos_orc_orc", "multi_blob_avro", "lineage"},
		"jeqdel":        {"global_parquet_parquet", "global_avro_avro", "global_orc_orc", "nested_key"},
		"jvargeo":       {"shred_decimal4", "geometry_avro"},
		"jhostile":      {"legal_60_levels", "page_v2_levels_negative", "avro_recursive_schema", "pq_footer_list_huge", "orc_empty"},
		"spark_formats": {"orc_v3"},
		"spark_types":   {"nested"},
	} {
		unpack(t, group, dir)
		warehouse := filepath.Join(dir, "skua-lake", group)
		root := func(from string) map[string]string {
			return map[string]string{"file:" + from: warehouse, from: warehouse}
		}
		mapping := catalog.NewLocationMapping(root("/tmp/skua-lake/" + group))
		spaces, err := os.ReadDir(warehouse)
		require.NoError(t, err)
		require.Len(t, spaces, 1)
		for _, name := range names {
			r := rand.New(rand.NewSource(int64(len(name))))
			for _, path := range filesBelow(t, filepath.Join(warehouse, spaces[0].Name(), name)) {
				original, err := os.ReadFile(path)
				require.NoError(t, err)
				for range perFile {
					how, b := mutate(r, original)
					store := &mutated{path: path, bytes: b}
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					start := time.Now()
					within, cancel := context.WithTimeout(ctx, deadline)
					used, err := readAll(within, store, warehouse, mapping, catalog.Namespace{spaces[0].Name()}, name, poolBytes)
					cancel()
					runtime.ReadMemStats(&after)
					what := fmt.Sprintf("%s/%s: %s with %s: %v", group, name, path, how, err)
					require.Zero(t, used, what)
					require.Less(t, time.Since(start), deadline, what)
					require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostBytes), what)
					tried++
					if err == nil {
						continue
					}
					failed++
					require.NotErrorIs(t, err, fault.Internal, what)
					require.NotErrorIs(t, err, context.DeadlineExceeded, what)
					require.Contains(t, err.Error(), "/", "%s: no file is named", what)
					if strings.Contains(path, "/data/") {
						require.Contains(t, err.Error(), filepath.Base(path), what)
					}
				}
			}
		}
	}
	t.Logf("%d mutations, %d refused", tried, failed)
	require.Greater(t, tried, leastTried)
	require.Greater(t, failed, tried/3)
}

// filesBelow lists the files of a table that are read.
func filesBelow(t *testing.T, dir string) (out []string) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, ".crc") && !strings.HasSuffix(path, "version-hint.text") {
			out = append(out, path)
		}
		return err
	}))
	require.NotEmpty(t, out)
	return out
}

// readAll loads a table and reads all of it; it gives the bytes that stay reserved.
func readAll(ctx context.Context, store storage.Store, warehouse string, mapping catalog.LocationMapping, ns catalog.Namespace, name string, limit int64) (left int64, err error) {
	pool := memory.NewPool("mutated", limit)
	budget := cache.NewBudget(pool, 1<<20)
	err = fault.Guard(func() error {
		cat, err := hadoop.New(ctx, hadoop.Options{Name: "lake", Warehouse: warehouse, Store: store, Locations: mapping})
		if err != nil {
			return err
		}
		tab, err := cat.Load(ctx, ns, name)
		if err != nil {
			return err
		}
		snap, err := tab.Resolve(catalog.Version{})
		if err != nil {
			return err
		}
		s := scanner.New(scanner.Options{Budget: budget, Workers: 1})
		stream, err := s.Plan(ctx, &scanner.Request{Table: tab, Snapshot: snap, Projection: snap.Schema, Output: len(snap.Schema.Fields()), Limit: -1,
			Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}})
		if err != nil {
			return err
		}
		defer stream.Close()
		for {
			task, err := stream.Next(ctx)
			if task == nil || err != nil {
				return err
			}
			rd, err := s.Open(ctx, task, pool)
			if err != nil {
				return err
			}
			for {
				c, err := rd.Next(ctx)
				if c == nil || err != nil {
					if err = errors.Join(err, rd.Close()); err != nil {
						return err
					}
					break
				}
				for _, v := range c.Cols { // every value can be taken
					for i := range c.N {
						v.Get(i)
					}
				}
			}
		}
	})
	budget.Close()
	return pool.Used(), err
}
