package query_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	ihadoop "github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// warehouse makes lake.s.t with rows and deletes of some ids by position files (version 2) or deletion vectors (3).
func warehouse(t *testing.T, version string, schema *iceberg.Schema, commits []string, dead ...int64) string {
	ctx := context.Background()
	dir := t.TempDir()
	cat, err := ihadoop.NewCatalog("lake", dir, nil)
	require.NoError(t, err)
	require.NoError(t, cat.CreateNamespace(ctx, table.Identifier{"s"}, nil))
	tbl, err := cat.CreateTable(ctx, table.Identifier{"s", "t"}, schema, icatalog.WithProperties(iceberg.Properties{
		"format-version": version, "write.delete.mode": "merge-on-read", "write.parquet.row-group-limit": "50"}))
	require.NoError(t, err)
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	for _, rows := range commits {
		data, err := array.TableFromJSON(memory.DefaultAllocator, as, []string{rows})
		require.NoError(t, err)
		tbl, err = tbl.AppendTable(ctx, data, 1000, nil)
		require.NoError(t, err)
		data.Release()
	}
	for _, id := range dead {
		tbl, err = tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), id), nil)
		require.NoError(t, err)
	}
	return dir
}

var numbers = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "x", Type: iceberg.PrimitiveTypes.Float64}, iceberg.NestedField{ID: 3, Name: "s", Type: iceberg.PrimitiveTypes.String})

func ids(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `,{"id":%d,"x":%d.5,"s":"a text that is longer than a bound %03d"}`, i, i, i)
	}
	return "[" + b.String()[1:] + "]"
}

// TestTwoScansOfOneTable: scans of one snapshot with different filters stay two.
func TestTwoScansOfOneTable(t *testing.T) {
	dir := warehouse(t, "2", numbers, []string{ids(0, 10)})
	out, err := run("--catalog", "lake="+dir, "--format", "csv",
		"SELECT id FROM s.t WHERE id < 2 UNION ALL SELECT id FROM s.t WHERE id > 7 ORDER BY 1; SELECT a.id, b.id FROM s.t a JOIN s.t b ON a.id = b.id - 5 WHERE a.id < 2 AND b.id > 5")
	require.NoError(t, err)
	require.Equal(t, "id\n0\n1\n8\n9\nid,id\n1,6\n", out)
}

// TestLimitAndCountsSeeDeletes: LIMIT counts live rows that match; count, min and max are those of the live rows, not of statistics.
func TestLimitAndCountsSeeDeletes(t *testing.T) {
	for _, version := range []string{"2", "3"} {
		dir := warehouse(t, version, numbers, []string{ids(0, 120), ids(120, 150)}, 0, 49, 50, 149)
		for _, n := range []int{1, 48, 49, 50, 51, 99, 100, 146} {
			out, err := run("--catalog", "lake="+dir, "--format", "csv", fmt.Sprintf("SELECT id FROM s.t WHERE id >= 0 LIMIT %d", n))
			require.NoError(t, err)
			require.Equal(t, n+1, strings.Count(out, "\n"), "version %s, LIMIT %d", version, n)
		}
		out, err := run("--catalog", "lake="+dir, "--format", "csv", "SELECT count(*), min(id), max(id), min(s), max(s), max(x) FROM s.t")
		require.NoError(t, err)
		require.Contains(t, out, "146,1,148,a text that is longer than a bound 001,a text that is longer than a bound 148,148.5")
	}
}

// TestNullParents: a required field of a struct that is null is null, and a filter says so, whatever statistics count.
func TestNullParents(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "p", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 3, Name: "n", Type: iceberg.PrimitiveTypes.Int32, Required: true}, {ID: 4, Name: "x", Type: iceberg.PrimitiveTypes.Float64, Required: true}}}})
	dir := warehouse(t, "2", schema, []string{`[{"id":1,"p":{"n":1,"x":1.5}},{"id":2,"p":null},{"id":3,"p":{"n":3,"x":-1}}]`, `[{"id":4,"p":{"n":4,"x":2}}]`, `[{"id":5,"p":null}]`})
	for condition, want := range map[string]string{
		"p.n IS NULL": "2 5", "p.x IS NULL": "2 5", "p IS NULL": "2 5", "p.n IS NOT NULL": "1 3 4", "p.x <> 2": "1 3", "NOT (p.n = 3)": "1 4", "coalesce(p.n, 0) = 0": "2 5",
	} {
		out, err := run("--catalog", "lake="+dir, "--format", "csv", "SELECT id FROM s.t WHERE "+condition+" ORDER BY 1")
		require.NoError(t, err, condition)
		require.Equal(t, "id "+want, strings.Join(strings.Fields(out), " "), condition)
	}
}

// TestNamesThatDifferInCase: columns Id and id stand side by side, also within a struct; quotes choose one, a name that fits both is refused,
// and one that fits a single column is found in any case.
func TestNamesThatDifferInCase(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 2, Name: "Id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 3, Name: "Only One", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 4, Name: "S", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 5, Name: "Über", Type: iceberg.PrimitiveTypes.Int64}}}})
	dir := warehouse(t, "2", schema, []string{`[{"id":1,"Id":10,"Only One":"x","S":{"Über":7}},{"id":2,"Id":20,"Only One":"y","S":{"Über":8}}]`})
	for query, want := range map[string]string{
		`SELECT "id" FROM s.t WHERE "Id" = 20`:        "2",
		`SELECT "Id" FROM s.t WHERE "id" = 1`:         "10",
		`SELECT "id" FROM s.t WHERE "ONLY ONE" = 'y'`: "2",
		`SELECT "id" FROM s.t WHERE s."über" = 8`:     "2",
		`SELECT count(*) FROM S.T`:                    "2",
	} {
		out, err := run("--catalog", "lake="+dir, "--format", "csv", query)
		require.NoError(t, err, query)
		require.Equal(t, want, strings.Fields(out)[len(strings.Fields(out))-1], query)
	}
	_, err := run("--catalog", "lake="+dir, "SELECT 1 FROM s.t WHERE ID = 1")
	require.ErrorContains(t, err, "ambiguous")
}
