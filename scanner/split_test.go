package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// numbers makes rows whose id ascends, so that pages and row groups can be told apart by it, and whose n does not.
func numbers(r *rand.Rand, rows int) string {
	var b strings.Builder
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"kind":"%c","n":%d}`, i, 'a'+r.Intn(5), r.Intn(1000))
	}
	return "[" + b.String() + "]"
}

// Deleted positions stay absolute when row groups and pages are left out, and a file that several workers share gives every
// row once: whatever the filter, the number of workers, the size of a share and the state of the caches.
func TestLargeFileWithDeletes(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewSource(13))
	const rows = 20_000
	for _, version := range []string{"2", "3"} {
		l := newLake(t)
		tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read",
			"write.parquet.row-group-limit": "6000", "write.parquet.page-row-limit": "500"}))
		tbl = l.append(tbl, numbers(r, rows))
		n := iceberg.Reference("n")
		tbl, err := tbl.Delete(ctx, iceberg.NewOr(iceberg.LiteralPredicate(iceberg.OpLT, n, iceberg.NewLiteral(int32(300))),
			iceberg.LiteralPredicate(iceberg.OpEQ, n, iceberg.NewLiteral(int32(555)))), nil)
		require.NoError(t, err)
		all := l.must(l.request(tbl))
		require.Less(t, len(all), rows)
		for _, row := range all {
			var id, n int
			_, err := fmt.Sscanf(strings.ReplaceAll(row, "|", " "), "%d %s %s %d", &id, new(string), new(string), &n)
			require.NoError(t, err, row)
			require.True(t, n >= 300 && n != 555, row)
		}
		id := column(tbl.Schema(), "id")
		small := scanner.New(scanner.Options{Budget: l.budget, SplitBytes: 1})
		pruned := false
		for range 25 {
			lo := int64(r.Intn(rows))
			hi := lo + int64(r.Intn(3000))
			e := ex(expr.NewAnd(ex(expr.NewCompare(expr.Ge, id, lit(vector.Of(vector.BigInt), lo))), ex(expr.NewCompare(expr.Lt, id, lit(vector.Of(vector.BigInt), hi)))))
			if r.Intn(3) == 0 {
				e = ex(expr.NewCompare(expr.Eq, id, lit(vector.Of(vector.BigInt), lo)))
			}
			want := l.bruteForce(tbl, e)
			for _, s := range []*scanner.Scanner{l.scan, small} {
				split := *l
				split.scan = s
				for _, workers := range []int{1, 3} {
					req := l.requestWith(tbl, e)
					got, err := split.rows(req, workers)
					require.NoError(t, err)
					require.Equal(t, want, got, e)
					pruned = pruned || req.Profile.RowGroups.Considered.Load() > req.Profile.RowGroups.Kept.Load()
				}
			}
		}
		require.True(t, pruned, "no row group was ever left out")
		split := *l
		split.scan = small
		got, err := split.rows(l.request(tbl), 4)
		require.NoError(t, err)
		require.Equal(t, all, got)
		require.Len(t, l.planned(l.request(tbl)), 1)
		s, err := small.Plan(ctx, l.request(tbl))
		require.NoError(t, err)
		tasks := 0
		for {
			task, err := s.Next(ctx)
			require.NoError(t, err)
			if task == nil {
				break
			}
			tasks++
		}
		s.Close()
		require.Equal(t, 4, tasks, "one a row group")
	}
}

// A file that another program wrote, with a page index, bloom filters and no field ids, comes in by name mapping.
func TestAddedFileWithPageIndex(t *testing.T) {
	ctx := context.Background()
	l := newLake(t)
	r := rand.New(rand.NewSource(14))
	tbl := l.create("t", eventSchema)
	plain := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "kind", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	at, err := array.TableFromJSON(memory.DefaultAllocator, plain, []string{numbers(r, 9000)})
	require.NoError(t, err)
	defer at.Release()
	path := filepath.Join(t.TempDir(), "added.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(plain, f, parquet.NewWriterProperties(parquet.WithPageIndexEnabled(true),
		parquet.WithDataPageSize(2000), parquet.WithBatchSize(250), parquet.WithMaxRowGroupLength(4000), parquet.WithDictionaryDefault(false),
		parquet.WithBloomFilterEnabledFor("n", true)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.WriteTable(at, 4000))
	require.NoError(t, w.Close())
	tx := tbl.NewTransaction()
	require.NoError(t, tx.AddFiles(ctx, []string{path}, nil, false))
	tbl, err = tx.Commit(ctx)
	require.NoError(t, err)
	require.Len(t, l.must(l.request(tbl)), 9000)

	id, n := column(tbl.Schema(), "id"), column(tbl.Schema(), "n")
	dropped := int64(0)
	for range 30 {
		lo := int64(r.Intn(9000))
		for _, e := range []expr.Expr{
			ex(expr.NewCompare(expr.Eq, id, lit(vector.Of(vector.BigInt), lo))),
			ex(expr.NewBetween(id, lit(vector.Of(vector.BigInt), lo), lit(vector.Of(vector.BigInt), lo+700), false)),
			ex(expr.NewCompare(expr.Eq, n, lit(vector.Of(vector.Integer), int32(lo%1100)))),
		} {
			want := l.bruteForce(tbl, e)
			for range 2 { // the second time from cached pages
				req := l.requestWith(tbl, e)
				require.Equal(t, want, l.must(req), e)
				dropped += req.Profile.Pages.Considered.Load() - req.Profile.Pages.Kept.Load()
			}
		}
	}
	require.Greater(t, dropped, int64(200), "pages left out")

	// Without the mapping nobody knows which column is which.
	tx = tbl.NewTransaction()
	require.NoError(t, tx.RemoveProperties([]string{"schema.name-mapping.default"}))
	tbl, err = tx.Commit(ctx)
	require.NoError(t, err)
	_, err = l.rows(l.request(tbl), 1)
	require.ErrorIs(t, err, fault.Unsupported)
	require.Contains(t, err.Error(), "schema.name-mapping.default")
	require.Contains(t, err.Error(), "files_without_ids")
	byPosition := *l
	byPosition.scan = scanner.New(scanner.Options{Budget: l.budget, FilesWithoutIDs: "position"})
	got, err := byPosition.rows(l.request(tbl), 1)
	require.NoError(t, err)
	require.Len(t, got, 9000)
}

// TestLimitOverSharedFiles: a file whose row groups are shared out counts towards a limit by the shares that were handed out.
func TestLimitOverSharedFiles(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"write.parquet.row-group-limit": "16"}))
	tbl = l.append(tbl, events(rand.New(rand.NewSource(20)), 0, 160))
	l.scan = scanner.New(scanner.Options{Budget: l.budget, Workers: 2, SplitBytes: 1})
	for _, limit := range []int64{1, 16, 17, 100, 159, 160, 161} {
		req := l.request(tbl)
		req.Limit = limit
		require.GreaterOrEqual(t, len(l.must(req)), int(min(limit, 160)), "limit %d", limit)
		require.Less(t, len(l.must(req)), int(limit)+16, "limit %d reads on", limit)
	}
}
