package scanner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
)

var longsSchema = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})

// longs makes batches of the one column id with the values from (inclusive) to (exclusive), by step.
func longs(from, to, step int64) func(yield func(arrow.RecordBatch, error) bool) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": "1"})}}, nil)
	const most = 1 << 17
	return func(yield func(arrow.RecordBatch, error) bool) {
		b := array.NewRecordBuilder(amemory.DefaultAllocator, schema)
		defer b.Release()
		for from < to {
			col := b.Field(0).(*array.Int64Builder)
			for n := 0; n < most && from < to; n, from = n+1, from+step {
				col.Append(from)
			}
			rec := b.NewRecordBatch()
			ok := yield(rec, nil)
			rec.Release()
			if !ok {
				return
			}
		}
	}
}

// appendLongs commits one data file of the given values.
func appendLongs(t testing.TB, tbl *table.Table, from, to int64) *table.Table {
	t.Helper()
	var records []arrow.RecordBatch
	for rec, err := range longs(from, to, 1) {
		require.NoError(t, err)
		rec.Retain()
		records = append(records, rec)
	}
	schema, err := table.SchemaToArrowSchema(longsSchema, nil, true, false)
	require.NoError(t, err)
	for i, r := range records {
		records[i] = array.NewRecordBatch(schema, r.Columns(), r.NumRows())
		r.Release()
	}
	r, err := array.NewRecordReader(schema, records)
	require.NoError(t, err)
	defer r.Release()
	out, err := tbl.Append(context.Background(), r, nil)
	require.NoError(t, err)
	for _, rec := range records {
		rec.Release()
	}
	return out
}

func deleteLongs(t testing.TB, tbl *table.Table, from, to, step int64) *table.Table {
	t.Helper()
	tx := tbl.NewTransaction()
	require.NoError(t, tx.CommitEqualityDeletes(context.Background(), []int{1}, longs(from, to, step), nil))
	out, err := tx.Commit(context.Background())
	require.NoError(t, err)
	return out
}

// TestAlmostEveryRowDeleted deletes 49,995 of 50,000 rows by equality.
func TestAlmostEveryRowDeleted(t *testing.T) {
	l := newLake(t)
	tbl := appendLongs(t, l.create("t", longsSchema), 0, 50_000)
	tbl = deleteLongs(t, tbl, 0, 49_995, 1)
	require.Len(t, l.must(l.request(tbl)), 5)
}

// manyByMany makes files data files of perFile rows and as many delete files, each with every tenth row of one data file, and
// gives the table with the number of rows left.
func manyByMany(t testing.TB, l *lake, files, perFile int64) (*table.Table, int64) {
	tbl := l.create(fmt.Sprintf("t%d", files), longsSchema)
	for i := range files {
		tbl = appendLongs(t, tbl, i*perFile, (i+1)*perFile)
	}
	for i := range files {
		tbl = deleteLongs(t, tbl, i*perFile, (i+1)*perFile, 10)
	}
	return tbl, files * perFile * 9 / 10
}

// TestManyDataFilesByManyDeleteFiles has every delete file apply to every data file.
func TestManyDataFilesByManyDeleteFiles(t *testing.T) {
	l := newLake(t)
	tbl, left := manyByMany(t, l, 40, 100)
	require.Len(t, l.must(l.request(tbl)), int(left))
}

// BenchmarkEqualityDeletes reads tables of n data files by n delete files; the time a row must not grow with n.
func BenchmarkEqualityDeletes(b *testing.B) {
	for _, files := range []int64{50, 200, 500} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			l := newLake(b)
			tbl, left := manyByMany(b, l, files, 1000)
			b.ResetTimer()
			for b.Loop() {
				n, err := l.count(l.request(tbl))
				require.NoError(b, err)
				require.Equal(b, left, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(files*1000), "ns/row")
		})
	}
}

// TestTenMillionKeysUnderABudget reads a table with ten million equality keys under 256 MiB: it gives the right rows or
// refuses by name, and never takes more than the budget.
func TestTenMillionKeysUnderABudget(t *testing.T) {
	const keys, budget = 10_000_000, 256 << 20
	l := newLake(t)
	tbl := appendLongs(t, l.create("t", longsSchema), 0, 2000)
	tbl = appendLongs(t, tbl, keys, keys+7)
	tbl = deleteLongs(t, tbl, 0, keys, 1)
	start := time.Now()
	n, peak, err := l.countUnder(l.request(tbl), budget)
	t.Logf("%v, peak %d MiB, %v", time.Since(start).Round(time.Millisecond), peak>>20, err)
	require.LessOrEqual(t, peak, int64(budget))
	if err != nil {
		require.ErrorIs(t, err, fault.Exhausted)
		require.ErrorContains(t, err, "query")
		return
	}
	require.EqualValues(t, 7, n)
}

// count runs a request on one worker and counts the rows.
func (l *lake) count(r *scanner.Request) (int64, error) {
	n, _, err := l.countUnder(r, 0)
	return n, err
}

func (l *lake) countUnder(r *scanner.Request, limitBytes int64) (rows, peakBytes int64, err error) {
	ctx := context.Background()
	q := l.pool.Child("query", limitBytes)
	defer func() {
		peakBytes = q.Peak()
		if q.Used() != 0 {
			err = errors.Join(err, fmt.Errorf("%d bytes are left reserved", q.Used()))
		}
	}()
	s, err := l.scan.Plan(ctx, r)
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	for {
		task, err := s.Next(ctx)
		if err != nil || task == nil {
			return rows, 0, err
		}
		rd, err := l.scan.Open(ctx, task, q)
		if err != nil {
			return rows, 0, err
		}
		for {
			c, err := rd.Next(ctx)
			if err != nil {
				return rows, 0, errors.Join(err, rd.Close())
			}
			if c == nil {
				break
			}
			rows += int64(c.Rows())
		}
		if err := rd.Close(); err != nil {
			return rows, 0, err
		}
	}
}
