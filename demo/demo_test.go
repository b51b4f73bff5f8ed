package demo

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	ctx := context.Background()
	made, err := Make(ctx, dir, 0.001)
	require.NoError(t, err)
	require.True(t, made)
	made, err = Make(ctx, dir, 0.001)
	require.NoError(t, err)
	require.False(t, made, "a second start finds the data")

	cat, err := hadoop.NewCatalog("demo", dir, iceberg.Properties{})
	require.NoError(t, err)
	// Rows that iceberg-go's own reader finds, deletes applied.
	for name, want := range map[string]int64{
		"tpch.lineitem": 6000, "tpch.orders": 1500, "tpch.nation": 25, "samples.position_deletes": 8000,
		"samples.deletion_vectors": 8000, "samples.evolved": 2000, "samples.events": 6000, "samples.released": 250, "samples.nested": 1000,
	} {
		ns, tab := filepath.Ext(name)[1:], name[:len(name)-len(filepath.Ext(name))]
		tbl, err := cat.LoadTable(ctx, table.Identifier{tab, ns})
		require.NoError(t, err, name)
		_, batches, err := tbl.Scan().ToArrowRecords(ctx)
		require.NoError(t, err, name)
		var n int64
		for b, err := range batches {
			require.NoError(t, err, name)
			n += b.NumRows()
			b.Release()
		}
		require.Equal(t, want, n, name)
	}
}

func TestMakeLeavesOtherFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "precious"), nil, 0o644))
	_, err := Make(context.Background(), dir, 0.001)
	require.ErrorIs(t, err, fault.Invalid)
	require.FileExists(t, filepath.Join(dir, "precious"))
}

func TestUnfinishedDemoIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, marker), []byte("unfinished"), 0o644))
	made, err := Make(context.Background(), dir, 0.001)
	require.NoError(t, err)
	require.True(t, made)
}
