package parquet

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// benchFile writes one column of n rows, filled by fill.
func benchFile(b *testing.B, t arrow.DataType, nullable bool, n int, fill func(array.Builder), props ...aparquet.WriterProperty) []byte {
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: t, Nullable: nullable}}, nil)
	rb := array.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
	defer rb.Release()
	for range n {
		fill(rb.Field(0))
	}
	return writeArrow(b, rb.NewRecordBatch(), props...)
}

// scan reads all batches of a file of n rows, over and over.
func scan(b *testing.B, file []byte, n int) { scanUnder(b, file, n, nil) }

func scanUnder(b *testing.B, file []byte, n int, keys Keyring) {
	ctx := context.Background()
	o := &object{Bytes: file}
	f, err := readAnyFooter(ctx, o, keys)
	require.NoError(b, err)
	p := []*Projection{natural(f.Root.Children[0], false)}
	b.ReportAllocs()
	for b.Loop() {
		for rg := range f.RowGroups {
			r, err := OpenRowGroup(ctx, o, f, rg, p, nil, Options{})
			if err != nil {
				b.Fatal(err)
			}
			for {
				k, _ := r.NextBatch(vector.Size)
				if k == 0 {
					break
				}
				if _, err := r.Read(ctx, 0); err != nil {
					b.Fatal(err)
				}
			}
			r.Close()
		}
	}
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkScan(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	i64 := func(x array.Builder) { x.(*array.Int64Builder).Append(r.Int64()) }
	few := func(x array.Builder) { x.(*array.Int32Builder).Append(r.Int32N(1000)) }
	nullable := func(x array.Builder) {
		if r.IntN(10) == 0 {
			x.AppendNull()
			return
		}
		x.(*array.Int32Builder).Append(r.Int32N(1000))
	}
	text := func(x array.Builder) { x.(*array.StringBuilder).Append(randomText(r.Int64N(100))) }
	unique := func(x array.Builder) { x.(*array.StringBuilder).Append(randomText(40 + 41*r.Int64N(100000))) }
	sorted := int64(0)
	rising := func(x array.Builder) { sorted += r.Int64N(100); x.(*array.Int64Builder).Append(sorted) }
	f64 := func(x array.Builder) { x.(*array.Float64Builder).Append(r.Float64()) }
	list := func(x array.Builder) {
		x.(*array.ListBuilder).Append(true)
		for range r.IntN(6) {
			x.(*array.ListBuilder).ValueBuilder().(*array.Int64Builder).Append(r.Int64())
		}
	}
	plain := aparquet.WithDictionaryDefault(false)
	dict := aparquet.WithDictionaryCostFallbackFor("c", false)
	enc := aparquet.Encodings
	for _, c := range []struct {
		name     string
		t        arrow.DataType
		nullable bool
		fill     func(array.Builder)
		props    []aparquet.WriterProperty
	}{
		{"int64/plain", arrow.PrimitiveTypes.Int64, false, i64, []aparquet.WriterProperty{plain}},
		{"int64/plain/optional", arrow.PrimitiveTypes.Int64, true, i64, []aparquet.WriterProperty{plain}},
		{"int64/plain/snappy", arrow.PrimitiveTypes.Int64, false, i64, []aparquet.WriterProperty{plain, aparquet.WithCompression(compress.Codecs.Snappy)}},
		{"int64/delta", arrow.PrimitiveTypes.Int64, false, rising, []aparquet.WriterProperty{plain, aparquet.WithEncoding(enc.DeltaBinaryPacked)}},
		{"int32/dictionary", arrow.PrimitiveTypes.Int32, false, few, []aparquet.WriterProperty{dict}},
		{"int32/dictionary/nulls", arrow.PrimitiveTypes.Int32, true, nullable, []aparquet.WriterProperty{dict}},
		{"int32/plain/nulls", arrow.PrimitiveTypes.Int32, true, nullable, []aparquet.WriterProperty{plain}},
		{"float64/split", arrow.PrimitiveTypes.Float64, false, f64, []aparquet.WriterProperty{plain, aparquet.WithEncoding(enc.ByteStreamSplit)}},
		{"string/dictionary", arrow.BinaryTypes.String, false, text, nil},
		{"string/plain", arrow.BinaryTypes.String, false, unique, []aparquet.WriterProperty{plain}},
		{"string/deltalength", arrow.BinaryTypes.String, false, unique, []aparquet.WriterProperty{plain, aparquet.WithEncoding(enc.DeltaLengthByteArray)}},
		{"string/delta", arrow.BinaryTypes.String, false, unique, []aparquet.WriterProperty{plain, aparquet.WithEncoding(enc.DeltaByteArray)}},
		{"list", arrow.ListOf(arrow.PrimitiveTypes.Int64), true, list, []aparquet.WriterProperty{plain}},
	} {
		b.Run(c.name, func(b *testing.B) { scan(b, benchFile(b, c.t, c.nullable, n, c.fill, c.props...), n) })
	}
}

func BenchmarkFooter(b *testing.B) {
	var fs []arrow.Field
	for i := range 100 {
		fs = append(fs, arrow.Field{Name: randomText(int64(100 + i)), Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}
	rec := randomRecord(rand.New(rand.NewPCG(1, 1)), arrow.NewSchema(fs, nil), 1000, 0.1, 1000)
	file := writeArrow(b, rec, aparquet.WithMaxRowGroupLength(100))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadFooter(context.Background(), &object{Bytes: file}, "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookup reads one row of three columns with everything cached: the point lookup's share of this package.
func BenchmarkLookup(b *testing.B) {
	ctx := context.Background()
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "t", Type: arrow.BinaryTypes.String}, {Name: "d", Type: arrow.BinaryTypes.String}}, nil)
	rec := randomRecord(rand.New(rand.NewPCG(3, 3)), schema, 100_000, 0, 500)
	o := &object{Bytes: writeArrow(b, rec, aparquet.WithDictionaryFor("k", false), aparquet.WithDictionaryFor("t", false), aparquet.WithDataPageSize(64<<10), aparquet.WithBatchSize(500),
		aparquet.WithCompression(compress.Codecs.Zstd), aparquet.WithPageIndexEnabled(true))}
	f, err := ReadFooter(ctx, o, "bench")
	require.NoError(b, err)
	var ps []*Projection
	for _, c := range f.Root.Children {
		ps = append(ps, natural(c, false))
	}
	opt := Options{PageCache: &mapCache{}}
	b.ReportAllocs()
	row := int64(0)
	for b.Loop() {
		row = (row + 7919) % 100_000
		r, err := OpenRowGroup(ctx, o, f, 0, ps, []RowRange{{row, row + 1}}, opt)
		if err != nil {
			b.Fatal(err)
		}
		r.NextBatch(1)
		for i := range ps {
			if _, err := r.Read(ctx, i); err != nil {
				b.Fatal(err)
			}
		}
		r.Close()
	}
}
