package scanner_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

var planSchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
	iceberg.NestedField{ID: 2, Name: "day", Type: iceberg.PrimitiveTypes.Date},
	iceberg.NestedField{ID: 3, Name: "a", Type: iceberg.PrimitiveTypes.Int64},
	iceberg.NestedField{ID: 4, Name: "b", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 5, Name: "c", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 6, Name: "s", Type: iceberg.PrimitiveTypes.String})

var planSpec = iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "day", Transform: iceberg.IdentityTransform{}})

// planTable makes the metadata of a table of manifests x files data files that do not exist; manifest d holds day d.
func planTable(tb testing.TB, manifests, files int) *catalog.Table {
	dir := tb.TempDir()
	var list []iceberg.ManifestFile
	long := func(x int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(x)) }
	for d := range manifests {
		var buf bytes.Buffer
		w, err := iceberg.NewManifestWriter(2, &buf, planSpec, planSchema, 1)
		require.NoError(tb, err)
		for i := range files {
			n := int64(d*files + i)
			b, err := iceberg.NewDataFileBuilder(planSpec, iceberg.EntryContentData, fmt.Sprintf("%s/data/day=%d/00000-%d-5f0c6c9e.parquet", dir, d, n),
				iceberg.ParquetFile, map[int]any{1000: iceberg.Date(d)}, map[int]string{}, map[int]int{}, 1000, 100_000+n)
			require.NoError(tb, err)
			lo, hi := map[int][]byte{}, map[int][]byte{}
			counts, nulls := map[int]int64{}, map[int]int64{}
			for id := 1; id <= 6; id++ {
				counts[id], nulls[id] = 1000, 0
				switch id {
				case 1, 3, 4:
					lo[id], hi[id] = long(n*1000), long(n*1000+999)
				case 2:
					lo[id], hi[id] = long(int64(d))[:4], long(int64(d))[:4]
				case 5:
					lo[id], hi[id] = long(0)[:4], long(99)[:4]
				case 6:
					lo[id], hi[id] = []byte("aaaaaaaaaaaaaaaa"), []byte("zzzzzzzzzzzzzzz{")
				}
			}
			b.LowerBoundValues(lo).UpperBoundValues(hi).ValueCounts(counts).NullValueCounts(nulls)
			snap := int64(1)
			require.NoError(tb, w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snap, nil, nil, b.Build())))
		}
		require.NoError(tb, w.Close())
		path := filepath.Join(dir, fmt.Sprintf("m%d.avro", d))
		require.NoError(tb, os.WriteFile(path, buf.Bytes(), 0o600))
		f, err := w.ToManifestFile(path, int64(buf.Len()))
		require.NoError(tb, err)
		list = append(list, f)
	}
	var buf bytes.Buffer
	seq := int64(1)
	require.NoError(tb, iceberg.WriteManifestList(2, &buf, 1, nil, &seq, 0, list))
	path := filepath.Join(dir, "snap.avro")
	require.NoError(tb, os.WriteFile(path, buf.Bytes(), 0o600))
	schema, err := planSchema.MarshalJSON()
	require.NoError(tb, err)
	m, err := table.ParseMetadataString(fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"%s",
 "last-sequence-number":1,"last-updated-ms":1,"last-column-id":6,"current-schema-id":0,"schemas":[%s],"default-spec-id":0,
 "partition-specs":[{"spec-id":0,"fields":[{"name":"day","transform":"identity","source-id":2,"field-id":1000}]}],"last-partition-id":1000,
 "default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"current-snapshot-id":1,
 "snapshots":[{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1,"manifest-list":"%s","summary":{"operation":"append"}}]}`, dir, schema, path))
	require.NoError(tb, err)
	return &catalog.Table{Catalog: "c", Namespace: catalog.Namespace{"n"}, Name: "t", Metadata: m, Store: storage.Local{}}
}

func planRequest(t *catalog.Table, e expr.Expr) *scanner.Request {
	return &scanner.Request{Table: t, Snapshot: catalog.Snapshot{ID: 1, Present: true, Schema: planSchema}, Projection: planSchema, Output: 6, Filter: e,
		Limit: -1, Profile: &profile.Scan{}, Context: &expr.Context{}, MetadataOnly: true}
}

func countTasks(tb testing.TB, s *scanner.Scanner, r *scanner.Request) int {
	st, err := s.Plan(context.Background(), r)
	require.NoError(tb, err)
	defer st.Close()
	n := 0
	for {
		t, err := st.Next(context.Background())
		require.NoError(tb, err)
		if t == nil {
			return n
		}
		n++
	}
}

func planFilters() map[string]expr.Expr {
	day := &expr.Column{Index: 1, Name: "day", Typ: vector.Of(vector.Date), Null: true}
	id := &expr.Column{Index: 0, Name: "id", Typ: vector.Of(vector.BigInt), Null: true}
	return map[string]expr.Expr{
		"all": nil,
		"day": ex(expr.NewCompare(expr.Eq, day, lit(day.Typ, int32(3)))),
		"id":  ex(expr.NewCompare(expr.Eq, id, lit(id.Typ, int64(4321)))),
	}
}

func TestPlanByHand(t *testing.T) {
	tbl := planTable(t, 5, 20)
	s := scanner.New(scanner.Options{})
	want := map[string]int{"all": 100, "day": 20, "id": 1}
	for name, e := range planFilters() {
		r := planRequest(tbl, e)
		require.Equal(t, want[name], countTasks(t, s, r), name)
		if name == "day" {
			require.EqualValues(t, 5, r.Profile.Manifests.Considered.Load())
			require.EqualValues(t, 1, r.Profile.Manifests.Kept.Load())
			what, n := r.Profile.Removals()
			require.Equal(t, []profile.Removal{{Level: "manifest", Means: "partition", Predicate: e.String()}}, what)
			require.Equal(t, []int64{4}, n)
		}
	}
}

// BenchmarkPlan plans 100,000 files: cold reads and decodes all manifests, warm has them cached.
func BenchmarkPlan(b *testing.B) {
	tbl := planTable(b, 20, 5000)
	for _, name := range []string{"all", "day", "id"} {
		e := planFilters()[name]
		b.Run("cold/"+name, func(b *testing.B) {
			for b.Loop() {
				countTasks(b, scanner.New(scanner.Options{}), planRequest(tbl, e))
			}
		})
		b.Run("warm/"+name, func(b *testing.B) {
			s := scanner.New(scanner.Options{})
			countTasks(b, s, planRequest(tbl, e))
			b.ReportAllocs()
			for b.Loop() {
				countTasks(b, s, planRequest(tbl, e))
			}
		})
	}
}

// withoutList gives a table's metadata with the manifest list taken out of its snapshot.
func withoutList(t *catalog.Table) (table.Metadata, error) {
	doc, err := json.Marshal(t.Metadata)
	if err != nil {
		return nil, err
	}
	list := t.Metadata.CurrentSnapshot().ManifestList
	return table.ParseMetadataString(strings.Replace(string(doc), fmt.Sprintf(`"manifest-list":%q`, list), `"manifests":["x"]`, 1))
}
