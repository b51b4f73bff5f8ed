package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// TestMonthBoundaries: three months of five rows, every operator at the edge of a month.
func TestMonthBoundaries(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{3}, Name: "m", Transform: iceberg.MonthTransform{}})))
	var rows []string
	for i := range 15 {
		at := time.Date(2024, time.Month(1+i/5), 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i%5) * 24 * time.Hour)
		rows = append(rows, fmt.Sprintf(`{"id":%d,"kind":"k","at":"%s","n":1}`, i, at.Format("2006-01-02 15:04:05")))
	}
	tbl = l.append(tbl, "["+strings.Join(rows, ",")+"]")
	edge := lit(vector.Of(vector.Timestamp), time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	for op, want := range map[expr.CompareOp]int{expr.Lt: 5, expr.Le: 6, expr.Eq: 1, expr.Ne: 14, expr.Gt: 9, expr.Ge: 10} {
		e := ex(expr.NewCompare(op, column(tbl.Schema(), "at"), edge))
		require.Len(t, l.must(l.requestWith(tbl, e)), want, "%v", e)
	}
}

// TestZoneOfTheProcessDoesNotMatter: partitions of hours and days are of UTC wherever the process runs.
func TestZoneOfTheProcessDoesNotMatter(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	for _, tr := range []iceberg.Transform{iceberg.HourTransform{}, iceberg.DayTransform{}} {
		l := newLake(t)
		tbl := l.create("t", eventSchema, icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{3}, Name: "p", Transform: tr})))
		tbl = l.append(tbl, events(rand.New(rand.NewSource(31)), 0, 80))
		var want [][]string
		for _, zone := range []string{"UTC", "Asia/Kolkata", "America/Chicago"} {
			z, err := time.LoadLocation(zone)
			require.NoError(t, err)
			time.Local = z
			var got [][]string
			for h := range 96 {
				v := time.Date(1969, 12, 30, h, 0, 0, 0, time.UTC).UnixMicro()
				e := ex(expr.NewCompare([]expr.CompareOp{expr.Lt, expr.Ge}[h%2], column(tbl.Schema(), "at"), lit(vector.Of(vector.Timestamp), v)))
				got = append(got, l.must(l.requestWith(tbl, e)))
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, zone)
		}
	}
}

// TestEqualityIDsInAnyOrder: the keys of an equality delete file are those of its ids, in whatever order they stand.
func TestEqualityIDsInAnyOrder(t *testing.T) {
	ctx := context.Background()
	for _, ids := range [][]int{{4, 1}, {1, 4}} {
		l := newLake(t)
		tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": "2"}))
		tbl = l.append(tbl, `[{"id":1,"kind":"a","n":2},{"id":2,"kind":"b","n":1},{"id":3,"kind":null,"n":null}]`)
		keySchema := iceberg.NewSchema(0, tbl.Schema().Fields()[3], tbl.Schema().Fields()[0])
		keys := arrowTable(t, keySchema, `[{"n":2,"id":1},{"n":1,"id":1},{"n":null,"id":3}]`)
		tx := tbl.NewTransaction()
		files, err := tx.WriteEqualityDeletes(ctx, ids, batches(keys))
		require.NoError(t, err)
		d := tx.NewRowDelta(nil)
		d.AddDeletes(files...)
		require.NoError(t, d.Commit(ctx))
		after, err := tx.Commit(ctx)
		require.NoError(t, err)
		keys.Release()
		rows := l.must(l.request(after))
		require.Len(t, rows, 1, "%v: %v", ids, rows)
		require.Contains(t, rows[0], "2|b|")
	}
}

// TestSnapshotsKeepTheirOwnSchema: a name that was renamed, dropped and made anew means, at each snapshot, the column it was then.
func TestSnapshotsKeepTheirOwnSchema(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), `[{"id":1,"kind":"a","n":5}]`)
	first := tbl.CurrentSnapshot().SnapshotID
	tx := tbl.NewTransaction()
	u := tx.UpdateSchema(true, false)
	u.DeleteColumn([]string{"n"})
	require.NoError(t, u.Commit())
	tbl, err := tx.Commit(ctx)
	require.NoError(t, err)
	tx = tbl.NewTransaction()
	u = tx.UpdateSchema(true, false)
	u.AddColumn([]string{"n"}, iceberg.PrimitiveTypes.String, "", false, nil)
	require.NoError(t, u.Commit())
	tbl, err = tx.Commit(ctx)
	require.NoError(t, err)
	tbl = l.append(tbl, `[{"id":2,"kind":"b","n":"five"}]`)

	now := column(tbl.Schema(), "n")
	require.Len(t, l.must(l.requestWith(tbl, ex(expr.NewCompare(expr.Eq, now, lit(now.Typ, "five"))))), 1)
	require.Len(t, l.must(l.requestWith(tbl, &expr.IsNull{Arg: now})), 1)
	old := l.requestWith(tbl, nil)
	old.Snapshot.ID, old.Snapshot.Schema, old.Projection, old.Output = first, eventSchema, eventSchema, len(eventSchema.Fields())
	then := column(eventSchema, "n")
	old.Filter = ex(expr.NewCompare(expr.Eq, then, lit(then.Typ, int32(5))))
	require.Len(t, l.must(old), 1)
}
