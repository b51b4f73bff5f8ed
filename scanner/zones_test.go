package scanner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// keyFileRows is the size of the file of TestLookupsLearnZones, two row groups without a page index.
const keyFileRows = 80_000

// keyFile has a rising key, one of another order with nulls, a text, a day, and a list that no zone is learned of.
func keyFileOf(t *testing.T, props ...parquet.WriterProperty) string {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "shuffled", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(amemory.DefaultAllocator, schema)
	defer b.Release()
	for i := range keyFileRows {
		b.Field(0).(*array.Int64Builder).Append(int64(3 * i))
		if i%11 == 0 {
			b.Field(1).AppendNull()
			b.Field(2).AppendNull()
			b.Field(3).AppendNull()
			b.Field(4).AppendNull()
			continue
		}
		b.Field(1).(*array.Int32Builder).Append(int32(i * 7919 % keyFileRows))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name %06d", i/2))
		b.Field(3).(*array.Date32Builder).Append(arrow.Date32(i / 1000))
		b.Field(4).(*array.ListBuilder).Append(true)
		b.Field(4).(*array.ListBuilder).ValueBuilder().(*array.Int64Builder).Append(int64(i))
	}
	path := filepath.Join(t.TempDir(), "keys.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(append([]parquet.WriterProperty{parquet.WithMaxRowGroupLength(50_000), parquet.WithDataPageSize(64 << 10), parquet.WithPageIndexEnabled(false)}, props...)...), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(b.NewRecordBatch()))
	require.NoError(t, w.Close())
	return path
}

// TestLookupsLearnZones asks for single values again and again: the rows never change, and from the second time on few are decoded.
func TestLookupsLearnZones(t *testing.T) {
	for name, props := range map[string][]parquet.WriterProperty{
		"plain":      {parquet.WithDictionaryDefault(false)},
		"dictionary": {parquet.WithCompression(compress.Codecs.Snappy)},
		"v2":         {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		"delta":      {parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked)},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "delta" { // which texts cannot have
				props = []parquet.WriterProperty{parquet.WithDictionaryFor("id", false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked)}
			}
			path := keyFileOf(t, props...)
			l := newLake(t)
			scanners := variants(t)
			open := func() *catalog.Table {
				tab, err := l.scan.OpenFiles(context.Background(), path)
				require.NoError(t, err)
				return tab
			}
			tab := open()
			for round := range 4 {
				for _, c := range []struct {
					column string
					typ    vector.Type
					value  vector.Value
					rows   int
				}{
					{"id", vector.Of(vector.BigInt), int64(3 * 61_234), 1}, {"id", vector.Of(vector.BigInt), int64(7), 0}, {"id", vector.Of(vector.BigInt), int64(0), 1},
					{"id", vector.Of(vector.BigInt), int64(3*keyFileRows - 3), 1}, {"shuffled", vector.Of(vector.Integer), int32(7919), 1},
					{"name", vector.Of(vector.Varchar), "name 030001", 2}, {"name", vector.Of(vector.Varchar), "nobody", 0}, {"day", vector.Of(vector.Date), int32(33), 909},
				} {
					got := l.sameRows(scanners, func() *scanner.Request {
						r := loneRequest(tab)
						r.Filter = ex(expr.NewCompare(expr.Eq, column(tab.Schema, c.column), lit(c.typ, c.value)))
						return r
					})
					require.Equal(t, c.rows, got, "%s = %v", c.column, c.value)
				}
				l.scan = scanners["everything"]
				r := loneRequest(tab)
				r.Filter = ex(expr.NewCompare(expr.Eq, column(tab.Schema, "id"), lit(vector.Of(vector.BigInt), int64(3*(1000+round)))))
				require.Len(t, l.must(r), 1)
				require.LessOrEqual(t, r.Profile.Rows.Considered.Load(), int64(2*vector.Size), "rows decoded for one key")
			}
		})
	}
}
