package parquet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"
)

func flatSchema() *arrow.Schema {
	var fs []arrow.Field
	for _, t := range []arrow.DataType{
		arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
		arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 5}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedWidthTypes.Timestamp_ms, arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Timestamp_ns, &arrow.TimestampType{Unit: arrow.Microsecond},
		&arrow.Decimal128Type{Precision: 7, Scale: 2}, &arrow.Decimal128Type{Precision: 15, Scale: 2}, &arrow.Decimal128Type{Precision: 30, Scale: 4}, &arrow.Decimal128Type{Precision: 38, Scale: 0},
	} {
		for _, null := range []bool{false, true} {
			fs = append(fs, arrow.Field{Name: fmt.Sprintf("%s_%v_%d", t, null, len(fs)), Type: t, Nullable: null})
		}
	}
	return arrow.NewSchema(fs, nil)
}

func nestedSchema() *arrow.Schema {
	f := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	req := func(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }
	str, i64 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	pair := arrow.StructOf(f("a", str), req("b", i64))
	return arrow.NewSchema([]arrow.Field{
		f("plain", i64),
		f("struct", pair), req("struct_required", pair),
		f("deep", arrow.StructOf(f("s", arrow.StructOf(req("t", pair), f("u", str))), f("v", i64))),
		f("list", arrow.ListOf(i64)), req("list_required", arrow.ListOfNonNullable(str)),
		f("list_of_lists", arrow.ListOf(arrow.ListOf(str))),
		f("list_of_structs", arrow.ListOf(pair)),
		f("struct_of_lists", arrow.StructOf(f("x", arrow.ListOf(i64)), f("y", arrow.ListOf(str)), f("z", i64))),
		f("map", arrow.MapOf(str, i64)), f("map_of_lists", arrow.MapOf(i64, arrow.ListOf(str))),
		f("list_of_maps", arrow.ListOf(arrow.MapOf(str, pair))),
		f("three", arrow.ListOf(arrow.StructOf(f("l", arrow.ListOf(arrow.StructOf(f("m", arrow.ListOf(i64)), f("n", str)))), f("o", i64)))),
	}, nil)
}

// TestRoundTrips reads what arrow-go wrote, in every codec, page version and batch size, with no, some and only nulls.
func TestRoundTrips(t *testing.T) {
	codecs := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd, compress.Codecs.Lz4Raw}
	seed := uint64(0)
	for name, schema := range map[string]*arrow.Schema{"flat": flatSchema(), "nested": nestedSchema()} {
		for _, version := range []aparquet.DataPageVersion{aparquet.DataPageV1, aparquet.DataPageV2} {
			for i, nulls := range []float64{0, 0.1, 0.9, 1} {
				for _, distinct := range []int{6, 100000}[:2-i/2] {
					seed++
					codec := codecs[int(seed)%len(codecs)]
					t.Run(fmt.Sprintf("%s/v%d/nulls%d/distinct%d/%s", name, version, i, distinct, codec), func(t *testing.T) {
						r := rand.New(rand.NewPCG(seed, 1))
						rec := randomRecord(r, schema, 3000, nulls, distinct)
						props := append(alwaysDictionary(t, schema), aparquet.WithDataPageVersion(version), aparquet.WithCompression(codec), aparquet.WithDataPageSize(4000), aparquet.WithBatchSize(64),
							aparquet.WithMaxRowGroupLength(1700), aparquet.WithDictionaryPageSizeLimit(3000), aparquet.WithPageIndexEnabled(true))
						b := writeArrow(t, rec, props...)
						want := wantRows(rec)
						for _, batch := range []int{2048, 97} {
							requireSame(t, fieldNames(schema), want, newRead(t, b, readOptions{batch: batch}))
						}
						requireSame(t, fieldNames(schema), want, newRead(t, b, readOptions{batch: 500, opt: Options{ReadAheadBytes: 1}}))
						checkSkips(t, r, fieldNames(schema), b, want)
						checkRanges(t, r, fieldNames(schema), b, want)
					})
				}
			}
		}
	}
}

// checkSkips leaves out batches of single columns at random.
func checkSkips(t *testing.T, r *rand.Rand, names []string, b []byte, want [][]any) {
	t.Helper()
	seed := r.Uint64()
	skip := func(col int, row int64) bool { return (seed>>(uint(col*7+int(row/50))%61))&1 == 1 }
	var kept [][]any
	for i, c := range want {
		var k []any
		for at := 0; at < len(c); {
			// Batches end with the row group after 1700 rows.
			n := min(50, len(c)-at)
			if at < 1700 {
				n = min(n, 1700-at)
			}
			if !skip(i, int64(at)) {
				k = append(k, c[at:at+n]...)
			}
			at += n
		}
		kept = append(kept, k)
	}
	requireSame(t, names, kept, newRead(t, b, readOptions{batch: 50, skip: skip}))
}

// checkRanges reads row ranges of each row group, with pages outside left unread.
func checkRanges(t *testing.T, r *rand.Rand, names []string, b []byte, want [][]any) {
	t.Helper()
	var ranges []RowRange
	for at := int64(0); at < 1200; {
		first := at + r.Int64N(200)
		last := min(first+1+r.Int64N(100), 1300)
		if first >= last {
			break
		}
		ranges = append(ranges, RowRange{first, last})
		at = last
	}
	var kept [][]any
	for _, c := range want {
		var k []any
		for _, group := range []int64{0, 1700} {
			for _, x := range ranges {
				k = append(k, c[group+x.First:group+x.Last]...)
			}
		}
		kept = append(kept, k)
	}
	for _, batch := range []int{2048, 33} {
		requireSame(t, names, kept, newRead(t, b, readOptions{batch: batch, ranges: ranges}))
	}
	requireSame(t, names, kept, newRead(t, b, readOptions{ranges: ranges, opt: Options{PageCache: &mapCache{}}}))
}

// TestEncodings reads every value encoding that arrow-go writes.
func TestEncodings(t *testing.T) {
	enc := aparquet.Encodings
	for name, c := range map[string]struct {
		t    []arrow.DataType
		encs []aparquet.Encoding
	}{
		"ints":   {[]arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64, arrow.FixedWidthTypes.Timestamp_us}, []aparquet.Encoding{enc.Plain, enc.DeltaBinaryPacked, enc.ByteStreamSplit}},
		"floats": {[]arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64}, []aparquet.Encoding{enc.Plain, enc.ByteStreamSplit}},
		"bytes":  {[]arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary}, []aparquet.Encoding{enc.Plain, enc.DeltaLengthByteArray, enc.DeltaByteArray}},
		"fixed":  {[]arrow.DataType{&arrow.FixedSizeBinaryType{ByteWidth: 5}, &arrow.FixedSizeBinaryType{ByteWidth: 20}, &arrow.Decimal128Type{Precision: 30, Scale: 2}}, []aparquet.Encoding{enc.Plain, enc.ByteStreamSplit}},
		"bools":  {[]arrow.DataType{arrow.FixedWidthTypes.Boolean}, []aparquet.Encoding{enc.Plain, enc.RLE}},
	} {
		for _, e := range c.encs {
			for _, nulls := range []float64{0, 0.3} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, e, nulls), func(t *testing.T) {
					var fs []arrow.Field
					for i, dt := range c.t {
						fs = append(fs, arrow.Field{Name: fmt.Sprint("c", i), Type: dt, Nullable: true}, arrow.Field{Name: fmt.Sprint("l", i), Type: arrow.ListOf(dt), Nullable: true})
					}
					schema := arrow.NewSchema(fs, nil)
					r := rand.New(rand.NewPCG(uint64(e), 3))
					rec := randomRecord(r, schema, 3000, nulls, 50000)
					b := writeArrow(t, rec, aparquet.WithDictionaryDefault(false), aparquet.WithEncoding(e), aparquet.WithDataPageSize(3000), aparquet.WithBatchSize(100), aparquet.WithMaxRowGroupLength(1700),
						aparquet.WithPageIndexEnabled(true), aparquet.WithDataPageVersion(aparquet.DataPageV2))
					want := wantRows(rec)
					for _, batch := range []int{2048, 61} {
						requireSame(t, fieldNames(schema), want, newRead(t, b, readOptions{batch: batch}))
					}
					checkSkips(t, r, fieldNames(schema), b, want)
					checkRanges(t, r, fieldNames(schema), b, want)
				})
			}
		}
	}
}

// mapCache keeps every page.
type mapCache struct {
	pages map[PageKey]*Page
	hits  int
}

func (c *mapCache) Get(k PageKey) (*Page, bool) {
	p, ok := c.pages[k]
	if ok {
		c.hits++
	}
	return p, ok
}

func (c *mapCache) Put(k PageKey, p *Page) {
	if c.pages == nil {
		c.pages = map[PageKey]*Page{}
	}
	c.pages[k] = p
}

func TestCachedPagesAreNotReadAgain(t *testing.T) {
	rec := randomRecord(rand.New(rand.NewPCG(1, 1)), flatSchema(), 2000, 0.2, 1000)
	b := writeArrow(t, rec, aparquet.WithDataPageSize(2000), aparquet.WithCompression(compress.Codecs.Zstd))
	cache := &mapCache{}
	want := wantRows(rec)
	for range 3 {
		requireSame(t, fieldNames(rec.Schema()), want, newRead(t, b, readOptions{opt: Options{PageCache: cache}}))
	}
	o := &object{Bytes: b}
	_, err := readFile(o, readOptions{opt: Options{PageCache: cache}})
	require.NoError(t, err)
	require.LessOrEqual(t, o.Read, int64(footerGuess), "only the footer is read once all pages are cached")
	require.Positive(t, cache.hits)
}
