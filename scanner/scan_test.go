package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Planning keeps no file that iceberg-go's planner leaves out, and the filtered rows are those of an unfiltered scan that pass
// the filter, for every partitioning.
func TestFiltersAgainstIceberg(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	l := newLake(t)
	for name, s := range map[string]*iceberg.PartitionSpec{
		"plain":    iceberg.UnpartitionedSpec,
		"identity": spec(iceberg.PartitionField{SourceIDs: []int{2}, Name: "kind", Transform: iceberg.IdentityTransform{}}),
		"day":      spec(iceberg.PartitionField{SourceIDs: []int{3}, Name: "day", Transform: iceberg.DayTransform{}}),
		"bucket": spec(iceberg.PartitionField{SourceIDs: []int{1}, Name: "b", Transform: iceberg.BucketTransform{NumBuckets: 3}},
			iceberg.PartitionField{SourceIDs: []int{4}, Name: "t", Transform: iceberg.TruncateTransform{Width: 25}}),
	} {
		tbl := l.create(name, eventSchema, icatalog.WithPartitionSpec(s))
		for i := range 4 {
			tbl = l.append(tbl, events(r, i*100, (i+1)*100))
		}
		everything := l.must(l.request(tbl))
		require.Len(t, everything, 400, name)
		for range 60 {
			e, ice := predicate(r, tbl.Schema())
			req := l.request(tbl)
			req.Filter = e
			got := l.must(req)
			require.Equal(t, l.bruteForce(tbl, e), got, "%s: %s", name, e)

			tasks, err := tbl.Scan(table.WithRowFilter(ice)).PlanFiles(context.Background())
			require.NoError(t, err)
			theirs := map[string]bool{}
			for _, task := range tasks {
				theirs[task.File.FilePath()] = true
			}
			for _, path := range l.planned(l.requestWith(tbl, e)) {
				require.True(t, theirs[path], "%s: %s keeps %s", name, e, path)
			}
		}
	}
}

func (l *lake) requestWith(t *table.Table, e expr.Expr) (r *scanner.Request) {
	r = l.request(t)
	r.Filter = e
	return r
}

// bruteForce filters an unfiltered scan by the boolean value of e as one more conjunct that pruning cannot see through.
func (l *lake) bruteForce(t *table.Table, e expr.Expr) []string {
	opaque := &expr.Case{Whens: []expr.When{{Cond: e, Then: lit(vector.Of(vector.Boolean), true)}}, Else: lit(vector.Of(vector.Boolean), false), Typ: vector.Of(vector.Boolean)}
	return l.must(l.requestWith(t, opaque))
}

func TestProjectionAndCount(t *testing.T) {
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), `[{"id":1,"kind":"a","n":5},{"id":2,"kind":"b","n":null},{"id":3,"kind":null,"n":7}]`)
	req := l.request(tbl)
	var err error
	req.Projection, err = tbl.Schema().Select(true, "n", "kind")
	require.NoError(t, err)
	req.Output = 1
	f := column(req.Projection, "n")
	req.Filter = &expr.IsNull{Arg: f, Negated: true}
	name := req.Projection.Fields()[0].Name
	require.Equal(t, map[string][]string{"n": {"5", "7"}, "kind": {"<nil>", "a"}}[name], l.must(req))

	req = l.request(tbl)
	req.Projection, req.Output = iceberg.NewSchema(0), 0
	require.Equal(t, []string{"", "", ""}, l.must(req))
	require.Zero(t, req.Profile.RowGroups.Considered.Load(), "a count needs no footer")
}

func TestEmptyTable(t *testing.T) {
	l := newLake(t)
	require.Empty(t, l.must(l.request(l.create("t", eventSchema))))
}

func TestLimitStopsEarly(t *testing.T) {
	r := rand.New(rand.NewSource(9))
	l := newLake(t)
	tbl := l.create("t", eventSchema)
	for i := range 5 {
		tbl = l.append(tbl, events(r, i*10, i*10+10))
	}
	req := l.request(tbl)
	req.Limit = 12
	out, err := l.rows(req, 1)
	require.NoError(t, err)
	require.Len(t, out, 20, "whole files until the limit is met")
}

func TestMetadataColumns(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{4}, Name: "n_t", Transform: iceberg.TruncateTransform{Width: 10}})))
	tbl = l.append(tbl, `[{"id":1,"kind":"a","n":15},{"id":2,"kind":"b","n":17}]`)
	req := l.request(tbl)
	req.Projection = iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2147483645, Name: "_pos", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2147483644, Name: "_deleted", Type: iceberg.PrimitiveTypes.Bool},
		iceberg.NestedField{ID: 2147483643, Name: "_spec_id", Type: iceberg.PrimitiveTypes.Int32},
		iceberg.NestedField{ID: 2147483642, Name: "_partition", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 1000, Name: "n_t", Type: iceberg.PrimitiveTypes.Int32}, {ID: 1001, Name: "later", Type: iceberg.PrimitiveTypes.Int32}}}},
		iceberg.NestedField{ID: 2147483540, Name: "_row_id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2147483646, Name: "_file", Type: iceberg.PrimitiveTypes.String},
	)
	req.Output = 7
	out := l.must(req)
	require.Len(t, out, 2)
	for i, row := range out {
		p := strings.Split(row, "|")
		require.Equal(t, []string{fmt.Sprint(i + 1), fmt.Sprint(i), "false", "0", "[10 <nil>]", "<nil>"}, p[:6])
		require.Contains(t, p[6], ".parquet")
	}
}

func TestEvolution(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": "3"}))
	tbl = l.append(tbl, `[{"id":1,"kind":"a","n":5}]`)
	evolve := func(f func(u *table.UpdateSchema)) {
		tx := tbl.NewTransaction()
		u := tx.UpdateSchema(true, false)
		f(u)
		require.NoError(t, u.Commit())
		var err error
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
	}
	evolve(func(u *table.UpdateSchema) {
		u.RenameColumn([]string{"kind"}, "sort")
		u.UpdateColumn([]string{"n"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Val: iceberg.PrimitiveTypes.Int64, Valid: true}})
		u.DeleteColumn([]string{"at"})
	})
	evolve(func(u *table.UpdateSchema) {
		u.AddColumn([]string{"at"}, iceberg.PrimitiveTypes.String, "", false, nil)
		u.AddColumn([]string{"size"}, iceberg.PrimitiveTypes.Int32, "", false, iceberg.Int32Literal(9))
	})
	tbl = l.append(tbl, `[{"id":2,"sort":"b","n":5000000000,"at":"now","size":null}]`)
	require.Equal(t, []string{"1|a|5|<nil>|9", "2|b|5000000000|now|<nil>"}, l.must(l.request(tbl)))
	size := column(tbl.Schema(), "size")
	for _, c := range []struct {
		e    expr.Expr
		want []string
	}{
		{ex(expr.NewCompare(expr.Eq, size, lit(size.Typ, int32(9)))), []string{"1|a|5|<nil>|9"}},
		{ex(expr.NewCompare(expr.Eq, size, lit(size.Typ, int32(8)))), nil},
		{&expr.IsNull{Arg: size}, []string{"2|b|5000000000|now|<nil>"}},
		{ex(expr.NewCompare(expr.Gt, column(tbl.Schema(), "n"), lit(vector.Of(vector.BigInt), int64(1)<<31))), []string{"2|b|5000000000|now|<nil>"}},
	} {
		require.Equal(t, c.want, l.must(l.requestWith(tbl, c.e)), c.e)
	}
}

func TestDeletesOfAllKinds(t *testing.T) {
	ctx := context.Background()
	for _, version := range []string{"2", "3"} {
		l := newLake(t)
		tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read"}))
		r := rand.New(rand.NewSource(10))
		tbl = l.append(tbl, events(r, 0, 50))
		tbl = l.append(tbl, events(r, 50, 100))
		tbl, err := tbl.Delete(ctx, iceberg.LiteralPredicate(iceberg.OpLT, iceberg.Reference("id"), iceberg.NewLiteral(int64(10))), nil)
		require.NoError(t, err)
		require.Len(t, l.must(l.request(tbl)), 90, "version %s", version)

		tx := tbl.NewTransaction()
		keys := iceberg.NewSchema(0, eventSchema.Fields()[0])
		at := arrowTable(t, keys, `[{"id":12},{"id":60},{"id":1000}]`)
		defer at.Release()
		require.NoError(t, tx.CommitEqualityDeletes(ctx, []int{1}, batches(at), nil))
		tbl, err = tx.Commit(ctx)
		require.NoError(t, err)
		tbl = l.append(tbl, `[{"id":60,"kind":"again"}]`)
		rows := l.must(l.request(tbl))
		require.Len(t, rows, 89)
		require.Contains(t, rows, "60|again|<nil>|<nil>")

		// Neither filter nor projection nor row counts bring a row back.
		for _, id := range []int64{3, 12, 15} {
			req := l.requestWith(tbl, ex(expr.NewCompare(expr.Eq, column(tbl.Schema(), "id"), lit(vector.Of(vector.BigInt), id))))
			require.Equal(t, id == 15, len(l.must(req)) == 1)
		}
		req := l.request(tbl)
		req.Projection, req.Output = iceberg.NewSchema(0), 0
		require.Len(t, l.must(req), 89)
		req = l.request(tbl)
		req.Projection = iceberg.NewSchema(0, iceberg.NestedField{ID: 2147483644, Name: "_deleted", Type: iceberg.PrimitiveTypes.Bool})
		req.Output = 1
		marks := l.must(req)
		require.Len(t, marks, 101)
		require.Equal(t, "false", marks[88])
		require.Equal(t, "true", marks[89])
	}
}

// Whatever read fails, rows are right or the scan fails.
func TestFaultyStore(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": "merge-on-read"}))
	tbl = l.append(tbl, events(rand.New(rand.NewSource(11)), 0, 50))
	tbl, err := tbl.Delete(ctx, iceberg.LiteralPredicate(iceberg.OpLT, iceberg.Reference("id"), iceberg.NewLiteral(int64(10))), nil)
	require.NoError(t, err)
	failed := 0
	for n := int64(1); ; n++ {
		l := &lake{t: t, cat: l.cat, pool: l.pool, scan: newLake(t).scan, store: storage.Break(storage.Local{}, &storage.Breakage{FailRead: n})}
		rows, err := l.rows(l.request(tbl), 1)
		if err == nil {
			require.Len(t, rows, 40)
			break
		}
		require.ErrorIs(t, err, fault.Unavailable)
		failed++
	}
	require.Greater(t, failed, 4)
}

// TestParquetFileOfAnotherLength: a manifest that overstates a file's length does not make it unreadable, as long as the file has
// the rows that the manifest counts; one that understates it does.
func TestParquetFileOfAnotherLength(t *testing.T) {
	l := newLake(t)
	write := func(name string, rows string) (*table.Table, string) {
		tbl := l.append(l.create(name, eventSchema), rows)
		return tbl, strings.TrimPrefix(l.planned(l.request(tbl))[0], "file://")
	}
	long := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = fmt.Sprintf(`{"id":%d,"kind":"%0400d"}`, i, i*7919)
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	small, smallPath := write("small", events(rand.New(rand.NewSource(12)), 0, 5))
	bytes, err := os.ReadFile(smallPath)
	require.NoError(t, err)
	want := l.must(l.request(small))

	same, path := write("same", long(5))
	require.NoError(t, os.WriteFile(path, bytes, 0o600))
	require.Equal(t, want, l.must(l.request(same)))

	other, path := write("other", long(9))
	require.NoError(t, os.WriteFile(path, bytes, 0o600))
	_, err = l.rows(l.request(other), 1)
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "5 rows, but the manifest says")

	large, err := os.ReadFile(func() string { _, p := write("large", long(5)); return p }())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(smallPath, large, 0o600))
	l.scan = scanner.New(scanner.Options{Budget: l.budget})
	_, err = l.rows(l.request(small), 1)
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "but the manifest says")
}

func TestFileShorterThanTheManifestSays(t *testing.T) {
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), events(rand.New(rand.NewSource(12)), 0, 5))
	paths := l.planned(l.request(tbl))
	require.Len(t, paths, 1)
	truncate(t, strings.TrimPrefix(paths[0], "file://"), 100)
	_, err := l.rows(l.request(tbl), 1)
	require.ErrorIs(t, err, fault.Corrupt)
	require.Contains(t, err.Error(), paths[0])
	require.Equal(t, 1, strings.Count(err.Error(), paths[0]))
}
