package scanner_test

import (
	"context"
	"math"
	"math/rand"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

var keySchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "kind", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "x", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 4, Name: "day", Type: iceberg.PrimitiveTypes.Date},
	iceberg.NestedField{ID: 5, Name: "u", Type: iceberg.PrimitiveTypes.UUID},
)

// keyRows makes n rows around a place of the domain of each column, so that bounds tell files apart. One in four files has nulls only in a
// column, one in four none.
func keyRows(r *rand.Rand, n int) arrow.RecordBatch {
	as, err := table.SchemaToArrowSchema(keySchema, nil, true, false)
	if err != nil {
		panic(err) // the schema is constant
	}
	b := array.NewRecordBuilder(arrowmemory.DefaultAllocator, as)
	defer b.Release()
	const places = 6
	place := int64(r.Intn(places))
	var nulls [5]int
	for i := range nulls {
		nulls[i] = []int{0, 1, 3, 100}[r.Intn(4)]
	}
	null := func(i int) bool {
		if nulls[i] > 1 && r.Intn(nulls[i]) == 0 || nulls[i] == 1 {
			b.Field(i).AppendNull()
			return true
		}
		return false
	}
	for range n {
		b.Field(0).(*array.Int64Builder).Append(place*10 + r.Int63n(12))
		if !null(1) {
			b.Field(1).(*array.StringBuilder).Append([]string{"", "a", "b", "a text of more than sixteen characters", "ä", "\U0010ffff"}[place%3*2+r.Int63n(2)])
		}
		if !null(2) {
			b.Field(2).(*array.Float64Builder).Append([]float64{math.NaN(), 0, math.Copysign(0, -1), 1, math.Inf(1), -5}[r.Int63n(2)+place%3*2])
		}
		if !null(3) {
			b.Field(3).(*array.Date32Builder).Append(arrow.Date32(place*3 - 9 + r.Int63n(4)))
		}
		if !null(4) {
			u := [16]byte{byte(place * 50), 15: byte(r.Intn(3))}
			b.Field(4).(interface{ AppendBytes([16]byte) }).AppendBytes(u)
		}
	}
	return b.NewRecordBatch()
}

// TestKeyBoundsBringNoRowBack leaves equality delete files out where their bounds show that they do not apply: over tables of random keys
// of one and of two columns, with null, texts that bounds cut and UUIDs beyond Java's sign, the rows are those of a scan that leaves none out.
func TestKeyBoundsBringNoRowBack(t *testing.T) {
	ctx := context.Background()
	keys := [][]int{{1}, {2}, {4}, {5}, {1, 4}, {4, 2}, {5, 1}}
	attached, all, rows := 0, 0, 0
	for seed := range int64(4) {
		r := rand.New(rand.NewSource(seed))
		l := newLake(t)
		tbl := l.create("t", keySchema, icatalog.WithProperties(iceberg.Properties{"format-version": "2"}))
		for range 14 {
			rec := keyRows(r, 8)
			data, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
			require.NoError(t, err)
			tbl, err = tbl.Append(ctx, data, nil)
			require.NoError(t, err)
			data.Release()
			rec.Release()
			tx := tbl.NewTransaction()
			require.NoError(t, tx.CommitEqualityDeletes(ctx, keys[r.Intn(len(keys))], func(yield func(arrow.RecordBatch, error) bool) {
				rec := keyRows(r, 1+r.Intn(2))
				defer rec.Release()
				yield(rec, nil)
			}, nil))
			tbl, err = tx.Commit(ctx)
			require.NoError(t, err)
		}
		scanners := variants(t)
		rows += l.sameRows(scanners, func() *scanner.Request { return l.request(tbl) })
		for range 5 {
			e, err := expr.NewCompare(expr.Ge, column(tbl.Schema(), "id"), lit(vector.Of(vector.BigInt), r.Int63n(70)))
			require.NoError(t, err)
			l.sameRows(scanners, func() *scanner.Request { return l.requestWith(tbl, e) })
		}
		attached += deletesOf(t, scanners["everything"], l.request(tbl))
		all += deletesOf(t, scanners["no key bounds"], l.request(tbl))
	}
	t.Logf("%d rows live; %d delete files attached rather than %d", rows, attached, all)
	require.Positive(t, rows)
	require.Less(t, attached, all*3/4)
}

// deletesOf counts the delete files that are attached to the data files of a request.
func deletesOf(t *testing.T, s *scanner.Scanner, r *scanner.Request) int {
	r.MetadataOnly = true
	stream, err := s.Plan(context.Background(), r)
	require.NoError(t, err)
	defer stream.Close()
	n := 0
	for {
		task, err := stream.Next(context.Background())
		require.NoError(t, err)
		if task == nil {
			return n
		}
		n += len(task.Deletes())
	}
}
