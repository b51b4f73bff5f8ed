package manifest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testSchema = iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "day", Type: iceberg.PrimitiveTypes.Date},
		iceberg.NestedField{ID: 3, Name: "s", Type: iceberg.PrimitiveTypes.String})
	testSpec = iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "day", Transform: iceberg.IdentityTransform{}})
)

// entry makes data file i: 100+i rows, ids from 1000*i on; odd ones have no statistics.
func entry(t testing.TB, i int, status iceberg.ManifestEntryStatus, seq *int64) iceberg.ManifestEntry {
	b, err := iceberg.NewDataFileBuilder(testSpec, iceberg.EntryContentData, fmt.Sprintf("s3://bucket/table/data/day=%d/file-%05d.parquet", i%7, i),
		iceberg.ParquetFile, map[int]any{1000: iceberg.Date(i % 7)}, map[int]string{}, map[int]int{}, int64(100+i), int64(5000+i))
	require.NoError(t, err)
	if i%2 == 0 {
		lo, hi := binary.LittleEndian.AppendUint64(nil, uint64(1000*i)), binary.LittleEndian.AppendUint64(nil, uint64(1000*i+99))
		n := int64(100 + i)
		b.LowerBoundValues(map[int][]byte{1: lo, 3: []byte(fmt.Sprintf("s%d", i))}).UpperBoundValues(map[int][]byte{1: hi, 3: []byte("t")}).
			ValueCounts(map[int]int64{1: n, 2: n, 3: n}).NullValueCounts(map[int]int64{1: 0, 2: 0, 3: int64(i)}).SplitOffsets([]int64{4})
	}
	id := int64(77)
	return iceberg.NewManifestEntry(status, &id, seq, seq, b.Build())
}

func writeManifest(t testing.TB, version, n int) []byte {
	var buf bytes.Buffer
	var entries []iceberg.ManifestEntry
	for i := range n {
		entries = append(entries, entry(t, i, iceberg.EntryStatusADDED, nil))
	}
	_, err := iceberg.WriteManifest("m.avro", &buf, version, testSpec, testSchema, 77, entries)
	require.NoError(t, err)
	return buf.Bytes()
}

func save(t testing.TB, b []byte) string {
	p := filepath.Join(t.TempDir(), "m.avro")
	require.NoError(t, os.WriteFile(p, b, 0o600))
	return p
}

func read(t testing.TB, b []byte) (*Manifest, error) {
	return Read(context.Background(), storage.Local{}, save(t, b), int64(len(b)), nil)
}

func TestDecode(t *testing.T) {
	for version := 1; version <= 3; version++ {
		m, err := read(t, writeManifest(t, version, 3000))
		require.NoError(t, err)
		require.Equal(t, 3000, m.N)
		require.True(t, m.SpecKnown)
		require.False(t, m.Unpartitioned)
		require.Len(t, m.Partition, 1)
		list := &File{Seq: 9, FirstRowID: -1}
		for i := range m.N {
			require.Equal(t, fmt.Sprintf("s3://bucket/table/data/day=%d/file-%05d.parquet", i%7, i), m.FilePath(i))
			require.Equal(t, Parquet, m.Formats[i])
			require.EqualValues(t, 100+i, m.Records.At(i))
			require.EqualValues(t, 5000+i, m.Sizes.At(i))
			require.Equal(t, int32(i%7), m.Partition[0].Values.Get(i))
			seq, err := m.Seq(i, list)
			require.NoError(t, err)
			require.EqualValues(t, 9, seq)
			require.EqualValues(t, -1, m.FirstRowID(i, list))
			st := m.Column(1)
			lo, ok := st.Lower.At(i)
			require.Equal(t, i%2 == 0, ok)
			if ok {
				require.Equal(t, uint64(1000*i), binary.LittleEndian.Uint64(lo))
				require.EqualValues(t, 100+i, st.Values.At(i))
				require.EqualValues(t, 0, st.Nulls.At(i))
				require.EqualValues(t, i, m.Column(3).Nulls.At(i))
				require.Equal(t, []int64{4}, m.SplitOffsets.At(i))
			} else {
				require.EqualValues(t, -1, st.Nulls.At(i))
				require.EqualValues(t, -1, st.Values.At(i))
				require.Empty(t, m.SplitOffsets.At(i))
			}
			require.EqualValues(t, -1, st.NaNs.At(i))
		}
		require.Nil(t, m.Column(99))
		require.Less(t, m.Bytes/int64(m.N), int64(200), "bytes an entry")
	}
}

func TestSequenceInheritance(t *testing.T) {
	var buf bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &buf, testSpec, testSchema, 77)
	require.NoError(t, err)
	three := int64(3)
	require.NoError(t, w.Existing(entry(t, 0, iceberg.EntryStatusEXISTING, &three)))
	require.NoError(t, w.Add(entry(t, 1, iceberg.EntryStatusADDED, nil)))
	require.NoError(t, w.Close())
	m, err := read(t, buf.Bytes())
	require.NoError(t, err)
	list := &File{Seq: 8}
	seq, err := m.Seq(0, list)
	require.NoError(t, err)
	require.EqualValues(t, 3, seq)
	seq, err = m.Seq(1, list)
	require.NoError(t, err)
	require.EqualValues(t, 8, seq)

	m.Status[1] = Existing // nothing to inherit
	_, err = m.Seq(1, list)
	require.ErrorIs(t, err, fault.Corrupt)
	seq, err = m.Seq(1, &File{Seq: 0}) // but in v1
	require.NoError(t, err)
	require.Zero(t, seq)
}

// Row ids are given to live entries without one, in order; deleted entries take none (spec: First Row ID Assignment).
func TestFirstRowIDs(t *testing.T) {
	b := &builder{m: &Manifest{byID: map[int]*Stats{}}, splitEnds: []uint32{0}, eqEnds: []uint32{0}, stats: map[int]*statsBuilder{}, partition: -1}
	type row struct {
		status  int32
		records int64
		first   vector.Value
	}
	rows := []row{{1, 10, nil}, {2, 20, nil}, {0, 5, int64(1000)}, {0, 7, nil}, {1, 1, nil}}
	status, file := vector.NewBuilder(vector.Of(vector.Integer)), vector.NewBuilder(vector.RowOf(fileFields...))
	null := vector.NewBuilder(vector.Of(vector.BigInt))
	for i, r := range rows {
		status.Append(r.status)
		null.AppendNull()
		f := make([]vector.Value, len(fileFields))
		f[0], f[1], f[2], f[3], f[4], f[14] = int32(0), fmt.Sprint("/f", i), "PARQUET", r.records, int64(9), r.first
		file.Append(f)
	}
	n := null.Finish()
	require.NoError(t, b.batch(len(rows), []*vector.Vector{status.Finish(), n, n, n, file.Finish()}))
	m := b.finish()
	var got []int64
	for i := range rows {
		got = append(got, m.FirstRowID(i, &File{FirstRowID: 100}))
	}
	require.Equal(t, []int64{100, 110, 1000, 110, 117}, got)
	require.EqualValues(t, -1, m.FirstRowID(2, &File{FirstRowID: -1}), "a list without ids hides those of entries")
}

func TestList(t *testing.T) {
	var buf bytes.Buffer
	seq := int64(5)
	no, yes := false, true
	lo := []byte{1, 0, 0, 0}
	f := iceberg.NewManifestFile(2, "/m1.avro", 123, 4, 77).SequenceNum(5, 2).AddedFiles(1).ExistingFiles(2).DeletedFiles(3).AddedRows(10).ExistingRows(20).DeletedRows(30).
		Partitions([]iceberg.FieldSummary{{ContainsNull: true, ContainsNaN: &no, LowerBound: &lo, UpperBound: &lo}, {ContainsNaN: &yes}, {}}).Build()
	d := iceberg.NewManifestFile(2, "/m2.avro", 5, 0, 77).SequenceNum(5, 5).Content(iceberg.ManifestContentDeletes).Build()
	require.NoError(t, iceberg.WriteManifestList(2, &buf, 77, nil, &seq, 0, []iceberg.ManifestFile{f, d}))
	got, err := ReadList(context.Background(), storage.Local{}, save(t, buf.Bytes()), -1)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, File{Path: "/m1.avro", Length: 123, SpecID: 4, Seq: 5, MinSeq: 2, SnapshotID: 77, AddedFiles: 1, ExistingFiles: 2, DeletedFiles: 3,
		AddedRows: 10, ExistingRows: 20, DeletedRows: 30, FirstRowID: -1, Partitions: []Summary{
			{ContainsNull: true, NaNKnown: true, Lower: lo, Upper: lo}, {NaNKnown: true, ContainsNaN: true}, {}}}, got[0])
	require.Equal(t, Deletes, got[1].Content)
}

func TestLengthMustAgree(t *testing.T) {
	b := writeManifest(t, 2, 3)
	p := save(t, b)
	_, err := Read(context.Background(), storage.Local{}, p, int64(len(b))+1, nil)
	require.ErrorIs(t, err, fault.Corrupt)
	require.Contains(t, err.Error(), p)
	_, err = Read(context.Background(), storage.Local{}, p, -1, nil)
	require.NoError(t, err)
	_, err = ReadList(context.Background(), storage.Local{}, p, -1) // a manifest is no list
	require.ErrorIs(t, err, fault.Corrupt)
}

func FuzzDecode(f *testing.F) {
	for v := 1; v <= 3; v++ {
		f.Add(writeManifest(f, v, 3))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(context.Background(), storagetest.Bytes(b), "m", nil)
		if err != nil {
			return
		}
		for i := range m.N {
			m.FilePath(i)
			for _, s := range m.Stats {
				s.Lower.At(i)
				s.Upper.At(i)
				s.Nulls.At(i)
			}
			for _, p := range m.Partition {
				p.Values.Get(i)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw := writeManifest(b, 2, 20_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := decode(context.Background(), storagetest.Bytes(raw), "m", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestBytesColumn(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, distinct := range []int{1, 3, 100, 1000} {
		for _, fixed := range []bool{true, false} {
			const n = 5000
			var b bytesBuilder
			want := make([][]byte, n)
			for i := range n {
				if r.Intn(10) == 0 && distinct != 3 {
					b.pad(i)
					b.add(nil, false)
					continue
				}
				k := r.Intn(distinct)
				v := []byte(fmt.Sprintf("%04d", k))
				if !fixed {
					v = bytes.Repeat([]byte("x"), k%40)
				}
				want[i] = v
				b.pad(i)
				b.add(v, true)
			}
			c := b.finish(n)
			for i := range n {
				v, ok := c.At(i)
				require.Equal(t, want[i] != nil, ok)
				if ok {
					require.True(t, bytes.Equal(want[i], v))
				}
			}
		}
	}
}

func FuzzList(f *testing.F) {
	var buf bytes.Buffer
	seq := int64(5)
	lo := []byte{1, 0, 0, 0}
	m := iceberg.NewManifestFile(2, "/m1.avro", 123, 4, 77).SequenceNum(5, 2).Partitions([]iceberg.FieldSummary{{ContainsNull: true, LowerBound: &lo}}).Build()
	require.NoError(f, iceberg.WriteManifestList(2, &buf, 77, nil, &seq, 0, []iceberg.ManifestFile{m, m}))
	f.Add(buf.Bytes())
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = decodeList(context.Background(), storagetest.Bytes(b))
	})
}
