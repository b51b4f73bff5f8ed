package scanner_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// TestEveryStatisticMayBeMissing writes one file under entries that leave out each subset of the optional statistics, for a column with
// nulls and one without, and asks what each filter should find: what is not said is not taken for none.
func TestEveryStatisticMayBeMissing(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 2, Name: "b", Type: iceberg.PrimitiveTypes.Int64})
	as := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "b", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	path := filepath.Join(t.TempDir(), "f.parquet")
	size := foreign(t, path, as, `[{"a":1,"b":10},{"a":null,"b":20},{"a":3,"b":30}]`, false)
	long := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	const subsets = 1 << 5
	for subset := range subsets {
		tbl := l.create(fmt.Sprintf("t%d", subset), schema, icatalog.WithProperties(iceberg.Properties{"format-version": "2",
			"schema.name-mapping.default": `[{"field-id":1,"names":["a"]},{"field-id":2,"names":["b"]}]`}))
		b, err := iceberg.NewDataFileBuilder(tbl.Spec(), iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, 3, size)
		require.NoError(t, err)
		for i, set := range []func(){
			func() { b.ValueCounts(map[int]int64{1: 3, 2: 3}) },
			func() { b.NullValueCounts(map[int]int64{1: 1, 2: 0}) },
			func() { b.NaNValueCounts(map[int]int64{}) },
			func() { b.LowerBoundValues(map[int][]byte{1: long(1), 2: long(10)}) },
			func() { b.UpperBoundValues(map[int][]byte{1: long(3), 2: long(30)}) },
		} {
			if subset>>i&1 == 0 {
				set()
			}
		}
		tx := tbl.NewTransaction()
		require.NoError(t, tx.AddDataFiles(ctx, []iceberg.DataFile{b.Build()}, nil))
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
		is := func(name string, op expr.CompareOp, v int64) expr.Expr {
			return ex(expr.NewCompare(op, column(schema, name), lit(vector.Of(vector.BigInt), v)))
		}
		for _, c := range []struct {
			filter expr.Expr
			rows   int
		}{
			{&expr.IsNull{Arg: column(schema, "a")}, 1}, {&expr.IsNull{Arg: column(schema, "a"), Negated: true}, 2},
			{&expr.IsNull{Arg: column(schema, "b")}, 0}, {&expr.IsNull{Arg: column(schema, "b"), Negated: true}, 3},
			{is("a", expr.Eq, 3), 1}, {is("a", expr.Ne, 3), 1}, {is("a", expr.Gt, 3), 0}, {is("a", expr.Lt, 1), 0}, {is("b", expr.Ge, 10), 3}, {is("b", expr.Ne, 20), 2},
		} {
			require.Len(t, l.must(l.requestWith(tbl, c.filter)), c.rows, "without %05b: %v", subset, c.filter)
		}
	}
}

// TestDroppedPartitionSources reads a table two of whose three specs partition by columns that are gone, one of them of two fields on one
// column, with what filters on the others find.
func TestDroppedPartitionSources(t *testing.T) {
	ctx := context.Background()
	for _, version := range []string{"1", "2", "3"} {
		l := newLake(t)
		tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": version}), icatalog.WithPartitionSpec(spec(
			iceberg.PartitionField{SourceIDs: []int{2}, Name: "k", Transform: iceberg.IdentityTransform{}},
			iceberg.PartitionField{SourceIDs: []int{2}, Name: "k_b", Transform: iceberg.BucketTransform{NumBuckets: 4}})))
		rows := `[{"id":1,"kind":"a","n":2},{"id":2,"kind":null,"n":1},{"id":3,"kind":"b","n":null}]`
		tbl = l.append(tbl, rows)
		var err error
		spec := func(change func(*table.UpdateSpec)) {
			tx := tbl.NewTransaction()
			u := tx.UpdateSpec(true)
			change(u)
			require.NoError(t, u.Commit())
			tbl, err = tx.Commit(ctx)
			require.NoError(t, err)
			tbl = l.append(tbl, rows)
		}
		spec(func(u *table.UpdateSpec) {
			u.RemoveField("k").RemoveField("k_b").AddField("n", iceberg.TruncateTransform{Width: 2}, "n_t")
		})
		spec(func(u *table.UpdateSpec) {
			u.RemoveField("n_t").AddField("id", iceberg.BucketTransform{NumBuckets: 2}, "id_b")
		})
		tx := tbl.NewTransaction()
		require.NoError(t, tx.UpdateSchema(true, true).DeleteColumn([]string{"kind"}).DeleteColumn([]string{"n"}).Commit())
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
		require.Len(t, l.must(l.request(tbl)), 9, version)
		two := ex(expr.NewCompare(expr.Eq, column(tbl.Schema(), "id"), lit(vector.Of(vector.BigInt), int64(2))))
		require.Len(t, l.must(l.requestWith(tbl, two)), 3, version)
		r := l.request(tbl)
		for _, meta := range []string{"files", "partitions", "entries"} {
			_, _, err := l.scan.MetadataTable(ctx, r.Table, r.Snapshot, meta)
			require.NoError(t, err, "%s of version %s", meta, version)
		}
	}
}
