package scanner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// writeParquet writes rows of JSON to a file without field ids.
func writeParquet(t *testing.T, path string, rows string, fields ...arrow.Field) {
	tbl, err := array.TableFromJSON(amemory.DefaultAllocator, arrow.NewSchema(fields, nil), []string{rows})
	require.NoError(t, err)
	defer tbl.Release()
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, pqarrow.WriteTable(tbl, f, 100, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(2)), pqarrow.DefaultWriterProps()))
}

func writeAvro(t *testing.T, path, schema string, values ...any) {
	s, err := avro.Parse(schema)
	require.NoError(t, err)
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := ocf.NewWriter(f, s)
	require.NoError(t, err)
	for _, v := range values {
		require.NoError(t, w.Encode(v))
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// lone reads all columns of lone files.
func (l *lake) lone(pattern string) ([]string, error) {
	t, err := l.scan.OpenFiles(context.Background(), pattern)
	if err != nil {
		return nil, err
	}
	return l.rows(loneRequest(t), 2)
}

func loneRequest(t *catalog.Table) *scanner.Request {
	return &scanner.Request{Table: t, Snapshot: catalog.Snapshot{Present: true, Schema: t.Schema}, Projection: t.Schema,
		Output: len(t.Schema.Fields()), Limit: -1, Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}}
}

func TestLoneParquetFile(t *testing.T) {
	l, dir := newLake(t), t.TempDir()
	path := filepath.Join(dir, "a.parquet")
	writeParquet(t, path, `[{"id": 1, "s": {"x": 1, "y": ["a", null]}}, {"id": 2, "s": null}, {"id": 3, "s": {"x": 3, "y": []}}]`,
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
			arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true})})
	got, err := l.lone(path)
	require.NoError(t, err)
	require.Equal(t, []string{"1|[1 [a <nil>]]", "2|<nil>", "3|[3 []]"}, got)

	// A filter prunes row groups as it does in a table.
	tab, err := l.scan.OpenFiles(context.Background(), path)
	require.NoError(t, err)
	r := loneRequest(tab)
	r.Filter = ex(expr.NewCompare(expr.Eq, column(tab.Schema, "id"), lit(vector.Of(vector.BigInt), int64(3))))
	require.Equal(t, []string{"3|[3 []]"}, l.must(r))
	require.EqualValues(t, 1, r.Profile.RowGroups.Kept.Load())
}

func TestLoneFilesByPattern(t *testing.T) {
	l, dir := newLake(t), t.TempDir()
	id, name := arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}
	writeParquet(t, filepath.Join(dir, "a.parquet"), `[{"id": 1, "name": "x"}]`, id, name)
	// Columns in another order, an older file without one, and one in Avro.
	writeParquet(t, filepath.Join(dir, "b.parquet"), `[{"name": "y", "id": 2}]`, name, id)
	writeParquet(t, filepath.Join(dir, "c.parquet"), `[{"id": 3}]`, id)
	writeAvro(t, filepath.Join(dir, "d.avro"), `{"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}`,
		map[string]any{"id": int64(4), "name": "z"})
	got, err := l.lone(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{"1|x", "2|y", "3|<nil>", "4|z"}, got)
	_, err = l.lone(filepath.Join(dir, "*.orc"))
	require.ErrorIs(t, err, fault.NotFound)
}

func TestLoneAvroFile(t *testing.T) {
	l, dir := newLake(t), t.TempDir()
	path := filepath.Join(dir, "a.avro")
	writeAvro(t, path, `{"type": "record", "name": "r", "fields": [
		{"name": "e", "type": {"type": "enum", "name": "color", "symbols": ["RED", "BLUE"]}},
		{"name": "m", "type": {"type": "map", "values": ["null", "int"]}},
		{"name": "d", "type": {"type": "int", "logicalType": "date"}}]}`,
		map[string]any{"e": "BLUE", "m": map[string]any{"k": int32(1)}, "d": int32(1)})
	got, err := l.lone(path)
	require.NoError(t, err)
	require.Equal(t, []string{"BLUE|[{k 1}]|1"}, got)

	// A union of several types is a variant.
	union := filepath.Join(dir, "union.avro")
	writeAvro(t, union, `{"type": "record", "name": "r", "fields": [{"name": "u", "type": ["null", "long", "string", {"type": "array", "items": ["null", "double"]},
		{"type": "record", "name": "p", "fields": [{"name": "y", "type": {"type": "map", "values": "int"}}, {"name": "d", "type": {"type": "int", "logicalType": "date"}}]}]}]}`,
		map[string]any{"u": nil}, map[string]any{"u": int64(7)}, map[string]any{"u": "text"}, map[string]any{"u": []any{1.5, nil}},
		map[string]any{"u": map[string]any{"y": map[string]any{"k": int32(1)}, "d": int32(1)}})
	tab, err := l.scan.OpenFiles(context.Background(), union)
	require.NoError(t, err)
	got, err = l.rows(loneRequest(tab), 1)
	require.NoError(t, err)
	require.Len(t, got, 5)
	require.Contains(t, got, "<nil>")

	// A file of bare values has one column.
	bare := filepath.Join(dir, "bare.avro")
	writeAvro(t, bare, `["null", "long"]`, nil, int64(7))
	got, err = l.lone(bare)
	require.NoError(t, err)
	require.Equal(t, []string{"7", "<nil>"}, got)
}

func TestLoneFileFaults(t *testing.T) {
	l, dir := newLake(t), t.TempDir()
	for name, content := range map[string]string{"none.txt": "hello world", "cut.parquet": "PAR1\x00\x00\x00\x00PAR", "empty.avro": "", "short.avro": "Obj\x01\x02"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		_, err := l.lone(path)
		require.ErrorIs(t, err, fault.Corrupt, name)
		require.ErrorContains(t, err, name)
	}
	_, err := l.lone(filepath.Join(dir, "missing.parquet"))
	require.ErrorIs(t, err, fault.NotFound)
	require.ErrorContains(t, err, "missing.parquet")
	_, err = l.lone("s3://bucket/a.parquet")
	require.ErrorIs(t, err, fault.Unsupported)
}
