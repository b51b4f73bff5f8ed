package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"testing"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func TestMetadataTables(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	r := rand.New(rand.NewSource(15))
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": "merge-on-read"}),
		icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{2}, Name: "kind", Transform: iceberg.IdentityTransform{}})))
	tbl = l.append(tbl, events(r, 0, 40))
	tbl = l.append(tbl, events(r, 40, 60))
	tbl, err := tbl.Delete(ctx, iceberg.LiteralPredicate(iceberg.OpLT, iceberg.Reference("id"), iceberg.NewLiteral(int64(5))), nil)
	require.NoError(t, err)
	req := l.request(tbl)
	get := func(name string) ([]vector.Field, [][]vector.Value) {
		fields, rows, err := l.scan.MetadataTable(ctx, req.Table, req.Snapshot, name)
		require.NoError(t, err, name)
		for _, row := range rows {
			require.Len(t, row, len(fields), name)
			for i, f := range fields { // every value has its column's type
				vector.NewConstant(f.Type, row[i])
			}
		}
		return fields, rows
	}
	at := func(fields []vector.Field, row []vector.Value, name string) vector.Value {
		for i, f := range fields {
			if f.Name == name {
				return row[i]
			}
		}
		t.Fatalf("no column %s", name)
		return nil
	}
	fields, rows := get("data_files")
	records := int64(0)
	for _, row := range rows {
		records += at(fields, row, "record_count").(int64)
		require.Equal(t, "PARQUET", at(fields, row, "file_format"))
	}
	require.EqualValues(t, 60, records)
	_, all := get("files")
	_, del := get("delete_files")
	require.NotEmpty(t, del)
	require.Len(t, all, len(rows)+len(del))
	_, entries := get("entries")
	require.Len(t, entries, len(all))

	// Sizes and readable metrics of a column, in the column's own type.
	fields, rows = get("data_files")
	require.Equal(t, "readable_metrics", fields[len(fields)-1].Name)
	for _, row := range rows {
		require.NotEmpty(t, at(fields, row, "column_sizes"))
		types := fields[len(fields)-1].Type.Fields
		for k, f := range types {
			m := row[len(row)-1].([]vector.Value)[k].([]vector.Value)
			if f.Name == "id" {
				require.Positive(t, m[0])
				require.Equal(t, at(fields, row, "record_count"), m[1])
				require.IsType(t, int64(0), m[4])
				require.LessOrEqual(t, m[4], m[5])
			}
		}
	}
	fields, rows = get("position_deletes")
	require.Len(t, rows, 5)
	for _, row := range rows {
		require.NotEmpty(t, at(fields, row, "file_path"))
		require.NotNil(t, at(fields, row, "pos"))
		require.NotEmpty(t, at(fields, row, "delete_file_path"))
	}

	fields, rows = get("partitions")
	seen := map[string]int64{}
	for _, row := range rows {
		seen[fmt.Sprint(at(fields, row, "partition"))] = at(fields, row, "record_count").(int64)
	}
	sum := int64(0)
	for _, n := range seen {
		sum += n
	}
	require.EqualValues(t, 60, sum)
	require.Contains(t, seen, "[<nil>]")
	require.Contains(t, seen, "[open]")

	fields, rows = get("manifests")
	require.Len(t, rows, 3)
	require.NotNil(t, at(fields, rows[0], "partition_summaries"))
	_, rows = get("all_manifests")
	require.Len(t, rows, 1+2+3)
	_, rows = get("all_data_files")
	require.NotEmpty(t, rows)
	for _, name := range []string{"nonsense", "all_partitions", ""} {
		_, _, err := l.scan.MetadataTable(ctx, req.Table, req.Snapshot, name)
		require.ErrorIs(t, err, fault.NotFound, name)
	}
}
