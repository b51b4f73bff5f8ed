package parquet

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// twoColumns is a file of n rows: k counts up, t is text; small pages, zstd.
func twoColumns(t testing.TB, n int, props ...aparquet.WriterProperty) []byte {
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "t", Type: arrow.BinaryTypes.String}}, nil)
	rec := randomRecord(rand.New(rand.NewPCG(3, 3)), schema, n, 0, 1<<40)
	props = append([]aparquet.WriterProperty{aparquet.WithDictionaryDefault(false), aparquet.WithDataPageSize(2000), aparquet.WithBatchSize(50), aparquet.WithCompression(compress.Codecs.Zstd),
		aparquet.WithPageIndexEnabled(true)}, props...)
	return writeArrow(t, rec, props...)
}

func TestPagesOutsideRangesAreNotRead(t *testing.T) {
	ctx := context.Background()
	b := twoColumns(t, 20000)
	read := func(ranges []RowRange) (bytes, decompressed int64, scan *profile.Scan) {
		o := &object{Bytes: b}
		f, err := ReadFooter(ctx, o, "t")
		require.NoError(t, err)
		o.Read = 0
		scan = &profile.Scan{}
		cols := make([][]vector.Value, 2)
		require.NoError(t, readGroup(ctx, o, f, 0, []*Projection{natural(f.Root.Children[0], false), natural(f.Root.Children[1], false)}, readOptions{batch: 1000, ranges: ranges, opt: Options{Profile: scan}}, cols))
		return o.Read, scan.BytesDecompressed.Load(), scan
	}
	all, allRaw, _ := read(nil)
	few, fewRaw, scan := read([]RowRange{{100, 110}, {15000, 15001}})
	require.Less(t, few, all/10)
	require.Less(t, fewRaw, allRaw/10)
	require.Less(t, scan.Pages.Kept.Load(), scan.Pages.Considered.Load()/5)
	require.Positive(t, scan.BytesRead.Load())
}

func TestSkippedPagesAreNotDecompressed(t *testing.T) {
	b := twoColumns(t, 20000)
	all, some := &profile.Scan{}, &profile.Scan{}
	_, err := readFile(&object{Bytes: b}, readOptions{batch: 500, opt: Options{Profile: all}})
	require.NoError(t, err)
	got, err := readFile(&object{Bytes: b}, readOptions{batch: 500, opt: Options{Profile: some}, skip: func(col int, row int64) bool { return col == 1 && row != 10000 }})
	require.NoError(t, err)
	require.Len(t, got[1], 500)
	require.Less(t, some.BytesDecompressed.Load(), all.BytesDecompressed.Load()*2/3)
}

// requests counts calls of an object.
type requests struct {
	object
	calls [][]storage.Range
	fail  int // the call that fails, counted from 1
}

func (o *requests) ReadRanges(ctx context.Context, rs []storage.Range, dst [][]byte) error {
	o.calls = append(o.calls, append([]storage.Range(nil), rs...))
	if len(o.calls) == o.fail {
		return fault.New(fault.Unavailable, "the store does not answer")
	}
	return o.object.ReadRanges(ctx, rs, dst)
}

func TestColumnsAreFetchedTogether(t *testing.T) {
	ctx := context.Background()
	o := &requests{object: object{Bytes: twoColumns(t, 5000)}}
	f, err := ReadFooter(ctx, o, "t")
	require.NoError(t, err)
	ps := []*Projection{natural(f.Root.Children[0], false), natural(f.Root.Children[1], false)}
	for _, deferred := range []bool{false, true} {
		o.calls = nil
		r, err := OpenRowGroup(ctx, o, f, 0, ps, nil, Options{Deferred: []bool{false, deferred}})
		require.NoError(t, err)
		require.Empty(t, o.calls, "nothing is read before a column is")
		r.NextBatch(100)
		_, err = r.Read(ctx, 0)
		require.NoError(t, err)
		require.Len(t, o.calls, 1)
		require.Len(t, o.calls[0], map[bool]int{false: 2, true: 1}[deferred])
		_, err = r.Read(ctx, 1)
		require.NoError(t, err)
		require.Len(t, o.calls, map[bool]int{false: 1, true: 2}[deferred])
		r.Close()
		r.Close()
	}
}

func TestVectorsLiveUntilTheNextBatch(t *testing.T) {
	ctx := context.Background()
	o := &object{Bytes: twoColumns(t, 5000)}
	want := newRead(t, o.Bytes, readOptions{})
	f, err := ReadFooter(ctx, o, "t")
	require.NoError(t, err)
	ps := []*Projection{natural(f.Root.Children[0], false), natural(f.Root.Children[1], false)}
	r, err := OpenRowGroup(ctx, o, f, 0, ps, nil, Options{ReadAheadBytes: 1})
	require.NoError(t, err)
	defer r.Close()
	for {
		n, first := r.NextBatch(333)
		if n == 0 {
			break
		}
		var vs [2]*vector.Vector
		for i := range vs {
			vs[i], err = r.Read(ctx, i)
			require.NoError(t, err)
		}
		again, err := r.Read(ctx, 0)
		require.NoError(t, err)
		for k := range n {
			require.Equal(t, want[0][first+int64(k)], vs[0].Get(k))
			require.Equal(t, want[0][first+int64(k)], again.Get(k))
			require.Equal(t, want[1][first+int64(k)], vs[1].Get(k))
		}
	}
}

func TestNoMemoryIsLeftWhenReadsOrReservationsFail(t *testing.T) {
	ctx := context.Background()
	b := twoColumns(t, 5000, aparquet.WithEncodingFor("t", aparquet.Encodings.DeltaByteArray))
	f, err := ReadFooter(ctx, &object{Bytes: b}, "t")
	require.NoError(t, err)
	ps := []*Projection{natural(f.Root.Children[0], false), natural(f.Root.Children[1], false)}
	for limit := int64(4 << 10); limit < 1<<20; limit += 12 << 10 {
		pool := memory.NewPool("small", limit)
		err := readGroup(ctx, &object{Bytes: b}, f, 0, ps, readOptions{opt: Options{Pool: pool}}, make([][]vector.Value, 2))
		if err != nil {
			require.ErrorIs(t, err, fault.Exhausted)
		}
		require.Zero(t, pool.Used())
	}
	for fail := 1; fail < 12; fail++ {
		pool := memory.NewPool("p", 0)
		o := &requests{object: object{Bytes: b}, fail: fail}
		err := readGroup(ctx, o, f, 0, ps, readOptions{opt: Options{Pool: pool, ReadAheadBytes: 1}}, make([][]vector.Value, 2))
		if len(o.calls) >= fail {
			require.ErrorIs(t, err, fault.Unavailable)
			require.ErrorContains(t, err, "Parquet file t")
		}
		require.Zero(t, pool.Used())
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	err = readGroup(canceled, &object{Bytes: b}, f, 0, ps, readOptions{}, make([][]vector.Value, 2))
	require.Equal(t, fault.Canceled, fault.KindOf(err))
}

func TestRangesAreChecked(t *testing.T) {
	ctx := context.Background()
	o := &object{Bytes: twoColumns(t, 100)}
	f, err := ReadFooter(ctx, o, "t")
	require.NoError(t, err)
	for _, bad := range [][]RowRange{{{0, 101}}, {{5, 4}}, {{0, 10}, {9, 12}}, {{-1, 3}}} {
		_, err := OpenRowGroup(ctx, o, f, 0, nil, bad, Options{})
		require.Error(t, err)
	}
	_, err = OpenRowGroup(ctx, o, f, 7, nil, nil, Options{})
	require.Error(t, err)
	r, err := OpenRowGroup(ctx, o, f, 0, nil, []RowRange{}, Options{})
	require.NoError(t, err)
	n, _ := r.NextBatch(10)
	require.Zero(t, n)
	r.Close()
}

// TestFooterLongerThanTheGuess takes a second read.
func TestFooterLongerThanTheGuess(t *testing.T) {
	var fs []arrow.Field
	for i := range 1500 {
		fs = append(fs, arrow.Field{Name: randomText(int64(81*i+40)) + string(rune('a'+i%26)), Type: arrow.PrimitiveTypes.Int32})
	}
	rec := randomRecord(rand.New(rand.NewPCG(1, 1)), arrow.NewSchema(fs, nil), 3, 0, 9)
	o := &requests{object: object{Bytes: writeArrow(t, rec)}}
	f, err := ReadFooter(context.Background(), o, "wide")
	require.NoError(t, err)
	require.Len(t, f.Leaves, 1500)
	require.Len(t, o.calls, 2)
}
