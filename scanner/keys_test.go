package scanner_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// counted is a key management service that counts how often it is asked.
type counted struct {
	encryption.KMS
	calls atomic.Int32
}

func (c *counted) Unwrap(ctx context.Context, id string, wrapped []byte) (encryption.Key, error) {
	c.calls.Add(1)
	return c.KMS.Unwrap(ctx, id, wrapped)
}

// TestPrincipalsWithoutKeys reads encrypted tables as one who may, with everything kept in the caches, and as one who may not.
func TestPrincipalsWithoutKeys(t *testing.T) {
	dir := encryptedLake(t)
	file, err := encryption.ReadKeyFile(keyFile(t))
	require.NoError(t, err)
	kms := &counted{KMS: file}
	ring := encryption.NewKeyring(encryption.KeyringOptions{Service: func(_ context.Context, principal string) (encryption.KMS, error) {
		if principal != "alice" {
			return nil, fault.New(fault.Denied, "principal %q may not", principal)
		}
		return kms, nil
	}})
	t.Cleanup(ring.Close)
	pool := memory.NewPool("process", 0)
	budget := cache.NewBudget(pool, 64<<20)
	t.Cleanup(func() { budget.Close(); require.Zero(t, pool.Used()) })
	l := &lake{t: t, pool: pool, store: storage.Local{}, scan: scanner.New(scanner.Options{Budget: budget, Workers: 2})}
	cat := encryptedCatalog(t, dir, storage.Local{}, ring)

	for table, calls := range map[string]int32{"avro_128": 1, "parquet_256": 1, "pos_parquet": 1, "two_keks": 1} {
		tab, err := cat.Load(context.Background(), catalog.Namespace{"x"}, table)
		require.NoError(t, err)
		snap, err := tab.Resolve(catalog.Version{})
		require.NoError(t, err)
		three, err := expr.NewCompare(expr.Eq, column(snap.Schema, "id"), lit(vector.Of(vector.BigInt), int64(3)))
		require.NoError(t, err)
		as := func(principal string, filter expr.Expr) ([]string, error) {
			return l.rowsOf(credentials.WithPrincipal(context.Background(), principal), &scanner.Request{Table: tab, Snapshot: snap, Projection: snap.Schema,
				Output: len(snap.Schema.Fields()), Limit: -1, Filter: filter, Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}}, 2)
		}
		kms.calls.Store(0)
		for range 3 {
			for _, filter := range []expr.Expr{nil, three} {
				rows, err := as("alice", filter)
				require.NoError(t, err)
				require.NotEmpty(t, rows)
			}
		}
		require.Equal(t, calls, kms.calls.Load(), "%s: one call for the key encryption key of the snapshot", table)
		for _, principal := range []string{"bob", ""} {
			for _, filter := range []expr.Expr{nil, three} {
				_, err := as(principal, filter)
				require.ErrorIs(t, err, fault.Denied, table)
			}
		}
		_, rows, err := l.scan.MetadataTable(credentials.WithPrincipal(context.Background(), "alice"), tab, snap, "files")
		require.NoError(t, err)
		for _, row := range rows {
			for _, v := range row {
				text, _ := v.(string)
				_, err := encryption.ParseKeyMetadata([]byte(text))
				require.Error(t, err, "the files table gives a key away")
			}
		}
		_, _, err = l.scan.MetadataTable(credentials.WithPrincipal(context.Background(), "bob"), tab, snap, "files")
		require.ErrorIs(t, err, fault.Denied)
	}
}

// TestEncryptedVector reads a deletion vector that Iceberg Java encrypted. The table at hand has one bit of it flipped, found by trying
// all: only the right one makes the tag match.
func TestEncryptedVector(t *testing.T) {
	dir := encryptedLake(t)
	kms, err := encryption.ReadKeyFile(keyFile(t))
	require.NoError(t, err)
	pool := memory.NewPool("process", 0)
	budget := cache.NewBudget(pool, 1) // nothing is remembered
	t.Cleanup(func() { budget.Close(); require.Zero(t, pool.Used()) })
	store := &forger{Store: storage.Local{}, opened: map[string]bool{}}
	l := &lake{t: t, pool: pool, store: store, scan: scanner.New(scanner.Options{Budget: budget, Workers: 1})}
	cat := encryptedCatalog(t, dir, store, keyring(t, kms))
	tab, err := cat.Load(context.Background(), catalog.Namespace{"x"}, "bad_dv_tampered")
	require.NoError(t, err)
	snap, err := tab.Resolve(catalog.Version{})
	require.NoError(t, err)
	read := func() ([]string, error) {
		return l.rows(&scanner.Request{Table: tab, Snapshot: snap, Projection: snap.Schema, Output: len(snap.Schema.Fields()), Limit: -1,
			Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}}, 1)
	}
	puffin, err := filepath.Glob(filepath.Join(dir, "x/bad_dv_tampered/data/*.puffin"))
	require.NoError(t, err)
	require.Len(t, puffin, 1)
	b, err := os.ReadFile(puffin[0])
	require.NoError(t, err)
	_, err = read()
	require.ErrorIs(t, err, fault.Corrupt)
	b[60] ^= 1
	store.forge(puffin[0], b)
	rows, err := read()
	require.NoError(t, err)
	require.Equal(t, []string{"0|secret-0|A", "3|secret-3|B", "4|secret-4|A", "5|secret-5|B", "6|secret-6|A", "7|secret-7|B", "8|secret-8|A", "9|secret-9|B"}, rows)
}
