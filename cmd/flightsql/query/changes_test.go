package query_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	ihadoop "github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// history makes lake.s.t: two appends, then a DELETE that rewrites a file.
func history(t *testing.T) (dir string, ids []int64) {
	ctx := context.Background()
	dir = t.TempDir()
	cat, err := ihadoop.NewCatalog("lake", dir, nil)
	require.NoError(t, err)
	require.NoError(t, cat.CreateNamespace(ctx, table.Identifier{"s"}, nil))
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	tbl, err := cat.CreateTable(ctx, table.Identifier{"s", "t"}, schema)
	require.NoError(t, err)
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	for _, rows := range []string{`[{"id": 1}, {"id": 2}]`, `[{"id": 3}]`} {
		data, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{rows})
		require.NoError(t, err)
		tbl, err = tbl.AppendTable(ctx, data, 100, nil)
		require.NoError(t, err)
		data.Release()
		ids = append(ids, tbl.CurrentSnapshot().SnapshotID)
	}
	tbl, err = tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(2)), nil)
	require.NoError(t, err)
	return dir, append(ids, tbl.CurrentSnapshot().SnapshotID)
}

func TestTableChanges(t *testing.T) {
	dir, ids := history(t)
	sql := func(text string, args ...any) (string, error) {
		return run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf(text, args...))
	}
	out, err := sql("SELECT id, _change_type, _change_ordinal, _change_version_id = %d last FROM TABLE(system.table_changes('s', 't', %d)) ORDER BY 3, 2, 1", ids[2], ids[0])
	require.NoError(t, err)
	require.Equal(t, "id,_change_type,_change_ordinal,last\n3,insert,0,false\n1,delete,1,true\n2,delete,1,true\n1,insert,1,true\n", out)

	// The net change of an id is what a reader of the two states sees.
	out, err = sql(`SELECT id, sum(IF(_change_type = 'insert', 1, -1)) net FROM TABLE(lake.system.table_changes(schema_name => 's', table_name => 't',
		start_snapshot_id => %d, end_snapshot_id => %d)) GROUP BY id HAVING sum(IF(_change_type = 'insert', 1, -1)) <> 0 ORDER BY 1`, ids[0], ids[2])
	require.NoError(t, err)
	require.Equal(t, "id,net\n2,-1\n3,1\n", out)

	out, err = sql("SELECT count(*) FROM TABLE(system.table_changes(table_name => 's.t'))")
	require.NoError(t, err)
	require.Contains(t, out, "\n6\n")
	out, err = sql("SELECT count(*) FROM TABLE(system.table_changes('s', 't', %d, %d))", ids[1], ids[1])
	require.NoError(t, err)
	require.Contains(t, out, "\n0\n")
	out, err = sql("SELECT id FROM TABLE(system.table_changes('s', 't')) WHERE id = 3 AND _change_type = 'insert'")
	require.NoError(t, err)
	require.Equal(t, "id\n3\n", out)
}

// TestChangesByDeleteFiles: rows that position and equality deletes and deletion vectors take are deletes, once each; a compaction that
// carries them out is passed over.
func TestChangesByDeleteFiles(t *testing.T) {
	ctx := context.Background()
	for _, version := range []string{"2", "3"} {
		dir := t.TempDir()
		cat, err := ihadoop.NewCatalog("lake", dir, nil)
		require.NoError(t, err)
		require.NoError(t, cat.CreateNamespace(ctx, table.Identifier{"s"}, nil))
		schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
			iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String})
		tbl, err := cat.CreateTable(ctx, table.Identifier{"s", "t"}, schema, icatalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read"}))
		require.NoError(t, err)
		rows := func(schema *iceberg.Schema, json string) arrow.Table {
			as, err := table.SchemaToArrowSchema(schema, nil, true, false)
			require.NoError(t, err)
			data, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{json})
			require.NoError(t, err)
			return data
		}
		data := rows(schema, `[{"id":1,"s":"a"},{"id":2,"s":"b"},{"id":3,"s":"c"},{"id":4,"s":null},{"id":5,"s":"e"}]`)
		defer data.Release()
		tbl, err = tbl.AppendTable(ctx, data, 100, nil)
		require.NoError(t, err)
		start := tbl.CurrentSnapshot().SnapshotID
		for _, id := range []int64{2, 4} { // the second vector takes the place of the first
			tbl, err = tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), id), nil)
			require.NoError(t, err)
		}
		keys := rows(iceberg.NewSchema(0, schema.Field(1)), `[{"s":"b"},{"s":"c"}]`)
		defer keys.Release()
		tx := tbl.NewTransaction()
		reader := array.NewTableReader(keys, 100)
		defer reader.Release()
		require.NoError(t, tx.CommitEqualityDeletes(ctx, []int{2}, func(yield func(arrow.RecordBatch, error) bool) {
			for reader.Next() && yield(reader.RecordBatch(), nil) {
			}
		}, nil))
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
		deleted := tbl.CurrentSnapshot().SnapshotID
		more := rows(schema, `[{"id":6,"s":"b"}]`)
		defer more.Release()
		tbl, err = tbl.AppendTable(ctx, more, 100, nil)
		require.NoError(t, err)

		out, err := run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf("SELECT id, s, _change_type, _change_ordinal FROM TABLE(system.table_changes('s', 't', %d)) ORDER BY 4, 1", start))
		require.NoError(t, err)
		require.Equal(t, "id,s,_change_type,_change_ordinal\n2,b,delete,0\n4,,delete,1\n3,c,delete,2\n6,b,insert,3\n", out, version)
		out, err = run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf("SELECT count(*) FROM TABLE(system.table_changes('s', 't', %d, %d)) WHERE s = 'c'", start, deleted))
		require.NoError(t, err)
		require.Equal(t, "_col0\n1\n", out)

		tx = tbl.NewTransaction()
		_, err = tx.RewriteManifests(ctx)
		require.NoError(t, err)
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
		require.Equal(t, table.OpReplace, tbl.CurrentSnapshot().Summary.Operation)
		_, err = tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
		require.NoError(t, err)
		out, err = run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf("SELECT id, _change_type FROM TABLE(system.table_changes('s', 't', %d))", deleted))
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"id,_change_type", "6,insert", "5,delete"}, strings.Split(strings.TrimSpace(out), "\n"))
	}
}

func TestTableAppends(t *testing.T) {
	dir, ids := history(t)
	out, err := run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf("SELECT id, _change_ordinal FROM TABLE(system.table_appends('s', 't', NULL, %d)) ORDER BY 1", ids[1]))
	require.NoError(t, err)
	require.Equal(t, "id,_change_ordinal\n1,0\n2,0\n3,1\n", out)
}

func TestChangesThatCannotBeTold(t *testing.T) {
	dir, ids := history(t)
	for _, c := range []struct{ sql, want string }{
		{"SELECT * FROM TABLE(system.table_appends('s', 't'))", "not an append"},
		{fmt.Sprintf("SELECT * FROM TABLE(system.table_changes('s', 't', %d, %d))", ids[2], ids[0]), "no ancestor"},
		{"SELECT * FROM TABLE(system.table_changes('s', 't', 17))", "no ancestor"},
		{"SELECT * FROM TABLE(system.table_changes('s', 't', end_snapshot_id => 17))", "no snapshot 17"},
		{"SELECT * FROM TABLE(system.table_changes('s'))", "needs table_name"},
		{"SELECT * FROM TABLE(system.table_changes('s', 't', from_id => 1))", `no argument "from_id"`},
		{"SELECT * FROM TABLE(system.table_changes('s', 'nope'))", "does not exist"},
	} {
		_, err := run("--catalog", "lake="+dir, c.sql)
		require.ErrorContains(t, err, c.want, c.sql)
	}
}
