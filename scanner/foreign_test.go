package scanner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// foreign writes rows in JSON as a Parquet file without field ids, in the way of engines that know nothing of Iceberg, and gives its length.
func foreign(t *testing.T, path string, schema *arrow.Schema, rows string, int96 bool) int64 {
	tbl, err := array.TableFromJSON(amemory.DefaultAllocator, schema, []string{rows})
	require.NoError(t, err)
	defer tbl.Release()
	var b bytes.Buffer
	props := pqarrow.NewArrowWriterProperties(pqarrow.WithDeprecatedInt96Timestamps(int96))
	require.NoError(t, pqarrow.WriteTable(tbl, &b, 2, parquet.NewWriterProperties(), props))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return int64(b.Len())
}

// TestPartitionColumnsThatFilesLack: files of a Hive table hold their partition's columns in the path only. Their values are those of the
// partition, null among them, and filters on them choose the files and the rows.
func TestPartitionColumnsThatFilesLack(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "p", Type: iceberg.PrimitiveTypes.Int32}, iceberg.NestedField{ID: 3, Name: "q", Type: iceberg.PrimitiveTypes.String})
	const p, q = 1000, 1001
	sp := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: p, Name: "p", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{3}, FieldID: q, Name: "q", Transform: iceberg.IdentityTransform{}})
	tbl := l.create("t", schema, icatalog.WithPartitionSpec(&sp), icatalog.WithProperties(iceberg.Properties{"format-version": "2",
		"schema.name-mapping.default": `[{"field-id":1,"names":["id"]},{"field-id":2,"names":["p"]},{"field-id":3,"names":["q"]}]`}))
	dir := t.TempDir()
	fileSchema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	var files []iceberg.DataFile
	for i, part := range []map[int]any{{p: int32(0), q: "a b%c"}, {p: int32(1), q: nil}, {p: nil, q: "plain"}} {
		path := filepath.Join(dir, string(rune('a'+i)), "part.parquet")
		size := foreign(t, path, fileSchema, `[{"id":1},{"id":2},{"id":null}]`, false)
		b, err := iceberg.NewDataFileBuilder(sp, iceberg.EntryContentData, path, iceberg.ParquetFile, part, nil, nil, 3, size)
		require.NoError(t, err)
		files = append(files, b.Build())
	}
	tx := tbl.NewTransaction()
	require.NoError(t, tx.AddDataFiles(ctx, files, nil))
	tbl, err := tx.Commit(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"1|0|a b%c", "1|1|<nil>", "1|<nil>|plain", "2|0|a b%c", "2|1|<nil>", "2|<nil>|plain", "<nil>|0|a b%c", "<nil>|1|<nil>", "<nil>|<nil>|plain"}, l.must(l.request(tbl)))
	zero := lit(vector.Of(vector.Integer), int32(0))
	for _, c := range []struct {
		filter expr.Expr
		want   []string
		files  int
	}{
		{ex(expr.NewCompare(expr.Eq, column(schema, "p"), zero)), []string{"1|0|a b%c", "2|0|a b%c", "<nil>|0|a b%c"}, 1},
		{ex(expr.NewCompare(expr.Ne, column(schema, "p"), zero)), []string{"1|1|<nil>", "2|1|<nil>", "<nil>|1|<nil>"}, 1},
		{&expr.IsNull{Arg: column(schema, "q")}, []string{"1|1|<nil>", "2|1|<nil>", "<nil>|1|<nil>"}, 1},
		{&expr.IsNull{Arg: column(schema, "p"), Negated: true}, []string{"1|0|a b%c", "1|1|<nil>", "2|0|a b%c", "2|1|<nil>", "<nil>|0|a b%c", "<nil>|1|<nil>"}, 2},
	} {
		require.Equal(t, c.want, l.must(l.requestWith(tbl, c.filter)), "%v", c.filter)
		require.Len(t, l.planned(l.requestWith(tbl, c.filter)), c.files, "%v", c.filter)
	}
}

// TestForeignFilesByNameMapping: a file without ids whose flat columns stand behind nested ones, with INT96 times beyond what nanoseconds of
// 64 bits hold and integers narrower than any of Iceberg's. Filters on them ask the right leaf's statistics.
func TestForeignFilesByNameMapping(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	field := func(id int, name string, t iceberg.Type) iceberg.NestedField {
		return iceberg.NestedField{ID: id, Name: name, Type: t}
	}
	schema := iceberg.NewSchema(0,
		field(1, "s", &iceberg.StructType{FieldList: []iceberg.NestedField{field(7, "a", iceberg.PrimitiveTypes.Int64), field(8, "b", iceberg.PrimitiveTypes.String)}}),
		field(2, "l", &iceberg.ListType{ElementID: 9, Element: iceberg.PrimitiveTypes.Int64}),
		field(3, "m", &iceberg.MapType{KeyID: 10, KeyType: iceberg.PrimitiveTypes.String, ValueID: 11, ValueType: iceberg.PrimitiveTypes.Int64}),
		field(4, "id", iceberg.PrimitiveTypes.Int64), field(5, "at", iceberg.PrimitiveTypes.Timestamp), field(6, "n", iceberg.PrimitiveTypes.Int32))
	tbl := l.create("t", schema, icatalog.WithProperties(iceberg.Properties{"format-version": "2"}))
	schema = tbl.Schema() // with ids of its own
	mapping, err := json.Marshal(schema.NameMapping())
	require.NoError(t, err)
	as := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}), Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true},
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int8, Nullable: true}}, nil)
	path := filepath.Join(t.TempDir(), "part.parquet")
	size := foreign(t, path, as, `[
		{"s":{"a":100,"b":"x"},"l":[1000,1001],"m":[{"key":"k","value":5000}],"id":1,"at":"0001-01-01 00:00:00","n":-128},
		{"s":null,"l":[],"m":[],"id":2,"at":"3332-12-14 11:33:10.965","n":127},
		{"s":{"a":300,"b":null},"l":null,"m":null,"id":3,"at":null,"n":null}]`, true)
	b, err := iceberg.NewDataFileBuilder(tbl.Spec(), iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, 3, size)
	require.NoError(t, err)
	tx := tbl.NewTransaction()
	require.NoError(t, tx.SetProperties(iceberg.Properties{"schema.name-mapping.default": string(mapping)}))
	require.NoError(t, tx.AddDataFiles(ctx, []iceberg.DataFile{b.Build()}, nil))
	tbl, err = tx.Commit(ctx)
	require.NoError(t, err)
	far := time.Date(3332, 12, 14, 11, 33, 10, 965e6, time.UTC).UnixMicro()
	is := func(name string, typ vector.Type, v vector.Value) expr.Expr {
		return ex(expr.NewCompare(expr.Eq, column(schema, name), lit(typ, v)))
	}
	all := l.must(l.request(tbl))
	require.Len(t, all, 3)
	for _, c := range []struct {
		filter expr.Expr
		rows   int
	}{
		{is("id", vector.Of(vector.BigInt), int64(2)), 1}, {is("id", vector.Of(vector.BigInt), int64(1000)), 0},
		{is("at", vector.Of(vector.Timestamp), far), 1}, {is("n", vector.Of(vector.Integer), int32(-128)), 1},
		{&expr.IsNull{Arg: column(schema, "at")}, 1}, {&expr.IsNull{Arg: column(schema, "s")}, 1},
	} {
		require.Len(t, l.must(l.requestWith(tbl, c.filter)), c.rows, "%v", c.filter)
	}
	require.Contains(t, all[0]+all[1]+all[2], "5000")
}
