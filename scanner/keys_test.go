package scanner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/hadoop"
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
	mapping := catalog.NewLocationMapping(map[string]string{"file:/tmp/skua-lake/jenc": dir, "/tmp/skua-lake/jenc": dir})
	cat, err := hadoop.New(context.Background(), hadoop.Options{Name: "enc", Warehouse: dir, Store: storage.Local{}, Locations: mapping, Keys: ring})
	require.NoError(t, err)

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
