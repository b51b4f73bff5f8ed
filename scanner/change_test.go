package scanner_test

import (
	"context"
	"math/rand"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// minus gives the elements of sorted a that sorted b lacks, each as often as it is missing.
func minus(a, b []string) []string {
	out := []string{}
	for _, x := range a {
		if i, ok := slices.BinarySearch(b, x); ok {
			b = slices.Delete(slices.Clone(b), i, i+1)
			continue
		}
		out = append(out, x)
	}
	return out
}

// TestChangesOfEverySnapshot makes tables by random appends, deletes of all kinds and rewrites, and holds the change that each
// snapshot made against the states before and after it: what was there, less what it removed, with what it added, is what is there.
func TestChangesOfEverySnapshot(t *testing.T) {
	ctx := context.Background()
	for seed := range int64(8) {
		l := newLake(t)
		r := rand.New(rand.NewSource(seed))
		version := []string{"2", "3"}[seed%2]
		opts := []icatalog.CreateTableOpt{icatalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"})}
		if seed >= 4 {
			opts = append(opts, icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{4}, Name: "n_bucket", Transform: iceberg.BucketTransform{NumBuckets: 2}})))
		}
		tbl := l.create("t", eventSchema, opts...)
		tbl = l.append(tbl, events(r, 0, 40))
		kinds := map[string]bool{}
		for step := range 9 {
			before := tbl.CurrentSnapshot()
			old := l.must(l.request(tbl))
			from := int64(r.Intn(60))
			var err error
			what := []string{"append", "positions", "equality", "positions", "copy"}[r.Intn(5)]
			switch {
			case what == "append":
				tbl = l.append(tbl, events(r, 40+step*10, 45+step*10))
			case what == "equality" && seed < 4: // the writer wants the partition's columns among the keys
				tx := tbl.NewTransaction()
				at := arrowTable(t, iceberg.NewSchema(0, eventSchema.Fields()[1]), `[{"kind":"open"},{"kind":null}]`)
				if r.Intn(2) == 0 {
					at.Release()
					at = arrowTable(t, iceberg.NewSchema(0, eventSchema.Fields()[3]), `[{"n":3},{"n":-7},{"n":null}]`)
					require.NoError(t, tx.CommitEqualityDeletes(ctx, []int{4}, batches(at), nil))
				} else {
					require.NoError(t, tx.CommitEqualityDeletes(ctx, []int{2}, batches(at), nil))
				}
				at.Release()
				tbl, err = tx.Commit(ctx)
				require.NoError(t, err)
			case what == "copy":
				tx := tbl.NewTransaction()
				require.NoError(t, tx.SetProperties(iceberg.Properties{"write.delete.mode": "copy-on-write"}))
				tbl, err = tx.Commit(ctx)
				require.NoError(t, err)
				tbl, err = tbl.Delete(ctx, between(from, from+4), nil)
				if err == nil {
					tx = tbl.NewTransaction()
					require.NoError(t, tx.SetProperties(iceberg.Properties{"write.delete.mode": "merge-on-read"}))
					tbl, err = tx.Commit(ctx)
				}
				require.NoError(t, err)
			default:
				tbl, err = tbl.Delete(ctx, between(from, from+10), nil)
				require.NoError(t, err)
			}
			now := tbl.CurrentSnapshot()
			if now.SnapshotID == before.SnapshotID {
				continue
			}
			kinds[what] = true
			new := l.must(l.request(tbl))
			added, removed := l.request(tbl), l.request(tbl)
			added.Change = &catalog.Change{Other: before.SnapshotID, HasOther: true}
			removed.Change = &catalog.Change{Removed: true, Other: now.SnapshotID, HasOther: true}
			removed.Snapshot.ID = before.SnapshotID
			gone, come := l.must(removed), l.must(added)
			require.Equal(t, minus(old, new), minus(gone, come), "seed %d step %d %s", seed, step, what)
			require.Equal(t, minus(new, old), minus(come, gone), "seed %d step %d %s", seed, step, what)
			if what == "positions" || what == "equality" {
				require.Empty(t, come, "a delete file adds no row")
			}
			// A filter and a limit count the rows of the change.
			few := l.request(tbl)
			few.Change, few.Snapshot.ID = removed.Change, before.SnapshotID
			few.Filter = ex(expr.NewCompare(expr.Lt, column(eventSchema, "id"), lit(vector.Of(vector.BigInt), from+5)))
			few.Projection = eventSchema
			filtered := l.must(few)
			for _, row := range filtered {
				require.Contains(t, gone, row)
			}
		}
		require.True(t, kinds["positions"], "seed %d", seed)
	}
}

func between(from, to int64) iceberg.BooleanExpression {
	id := iceberg.Reference("id")
	return iceberg.NewAnd(iceberg.GreaterThanEqual(id, from), iceberg.LessThan(id, to))
}

// TestFirstSnapshotIsAllAdded: without a snapshot before, every live row was added.
func TestFirstSnapshotIsAllAdded(t *testing.T) {
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), events(rand.New(rand.NewSource(1)), 0, 7))
	r := l.request(tbl)
	r.Change = &catalog.Change{}
	require.Len(t, l.must(r), 7)
	r.Projection, r.Output = iceberg.NewSchema(0), 0
	require.Len(t, l.must(r), 7)
}

// TestChangeReadsSharedManifestsOnce: files of a manifest that both snapshots list are not looked at while the deletes are the same.
func TestChangeReadsSharedManifestsOnce(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"commit.manifest-merge.enabled": "false"}))
	var last *table.Snapshot
	for i := range 5 {
		last = tbl.CurrentSnapshot()
		tbl = l.append(tbl, events(rand.New(rand.NewSource(1)), i, i+1))
	}
	r := l.request(tbl)
	r.Change = &catalog.Change{Other: last.SnapshotID, HasOther: true}
	require.Len(t, l.must(r), 1)
	require.EqualValues(t, 1, r.Profile.Files.Considered.Load())
}
