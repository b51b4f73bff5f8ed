package query_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	ihadoop "github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// TestDeletedRowsOnRequest: naming _deleted shows the rows that deletes of every kind took; without it they are gone.
func TestDeletedRowsOnRequest(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		dir := warehouse(t, version, numbers, []string{ids(0, 6)}, 2, 4)
		out, err := run("--catalog", "lake="+dir, "--format", "csv",
			"SELECT id, _deleted FROM s.t WHERE id > 1 ORDER BY 1; SELECT id FROM s.t WHERE _deleted ORDER BY 1; SELECT count(*) FROM s.t; SELECT * FROM s.t LIMIT 0")
		require.NoError(t, err)
		require.Equal(t, "id,_deleted\n2,true\n3,false\n4,true\n5,false\nid\n2\n4\n_col0\n4\nid,x,s\n", out)
	}
}

func TestEqualityDeletesAreMarkedBeforeFilters(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	cat, err := ihadoop.NewCatalog("lake", dir, nil)
	require.NoError(t, err)
	require.NoError(t, cat.CreateNamespace(ctx, table.Identifier{"s"}, nil))
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	tbl, err := cat.CreateTable(ctx, table.Identifier{"s", "t"}, schema, icatalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	require.NoError(t, err)
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	data, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{`[{"id": 1}, {"id": 2}, {"id": 3}]`})
	require.NoError(t, err)
	defer data.Release()
	tbl, err = tbl.AppendTable(ctx, data, 10, nil)
	require.NoError(t, err)
	keys, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{`[{"id": 2}]`})
	require.NoError(t, err)
	defer keys.Release()
	tx := tbl.NewTransaction()
	reader := array.NewTableReader(keys, 10)
	defer reader.Release()
	require.NoError(t, tx.CommitEqualityDeletes(ctx, []int{1}, array.IterFromReader(reader), nil))
	_, err = tx.Commit(ctx)
	require.NoError(t, err)
	out, err := run("--catalog", "lake="+dir, "--format", "csv", "SELECT id FROM s.t WHERE _deleted; SELECT id FROM s.t WHERE NOT _deleted ORDER BY 1")
	require.NoError(t, err)
	require.Equal(t, "id\n2\nid\n1\n3\n", out)
}

func TestPartitionColumn(t *testing.T) {
	dir := partitioned(t)
	out, err := run("--catalog", "lake="+dir, "--format", "csv", `SELECT id, _partition.b, _spec_id FROM s.t WHERE _partition.b = 10 ORDER BY 1; SELECT _partition FROM s.t WHERE id = 7`)
	require.NoError(t, err)
	require.Equal(t, "id,b,_spec_id\n10,10,0\n19,10,0\n_partition\n\"{\"\"b\"\":0}\"\n", out)
	dir = warehouse(t, "2", numbers, []string{ids(0, 1)})
	out, err = run("--catalog", "lake="+dir, "--format", "csv", "SELECT id, _partition FROM s.t")
	require.NoError(t, err)
	require.Equal(t, "id,_partition\n0,\n", out)
}

// partitioned makes lake.s.t partitioned by truncate(10, id), named b.
func partitioned(t *testing.T) string {
	ctx := context.Background()
	dir := t.TempDir()
	cat, err := ihadoop.NewCatalog("lake", dir, nil)
	require.NoError(t, err)
	require.NoError(t, cat.CreateNamespace(ctx, table.Identifier{"s"}, nil))
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "b", Transform: iceberg.TruncateTransform{Width: 10}})
	tbl, err := cat.CreateTable(ctx, table.Identifier{"s", "t"}, schema, icatalog.WithPartitionSpec(&spec))
	require.NoError(t, err)
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	data, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{`[{"id": 7}, {"id": 10}, {"id": 19}, {"id": 20}]`})
	require.NoError(t, err)
	defer data.Release()
	_, err = tbl.AppendTable(ctx, data, 10, nil)
	require.NoError(t, err)
	return dir
}
