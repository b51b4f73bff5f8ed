package scanner_test

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/hadoop"
	"github.com/skua-db/skua/demo"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// variants are scanners that each do without something; the first does without everything and is the oracle.
func variants(t *testing.T) map[string]*scanner.Scanner {
	const splitBytes = 1 << 10
	pool := memory.NewPool("variants", 0)
	t.Cleanup(func() { require.Zero(t, pool.Used()) }) // after the budgets are closed
	out := map[string]*scanner.Scanner{}
	add := func(name string, w scanner.Without, cacheBytes int64) {
		budget := cache.NewBudget(pool, cacheBytes)
		t.Cleanup(budget.Close)
		out[name] = scanner.New(scanner.Options{Budget: budget, Workers: 2, SplitBytes: splitBytes, Without: w})
	}
	add("nothing", scanner.Everything, 1)
	add("everything", scanner.Without{}, 64<<20)
	add("no partitions", scanner.Without{Partitions: true}, 64<<20)
	add("no bounds", scanner.Without{Bounds: true}, 64<<20)
	add("no indexes", scanner.Without{Indexes: true}, 64<<20)
	add("no counts", scanner.Without{Counts: true}, 64<<20)
	add("no key bounds", scanner.Without{KeyBounds: true}, 64<<20)
	add("no page skipping", scanner.Without{PageSkipping: true}, 64<<20)
	add("no late materialization", scanner.Without{LateMaterialization: true}, 64<<20)
	add("no caches", scanner.Without{}, 1)
	return out
}

// sameRows reads a request with every scanner and compares.
func (l *lake) sameRows(scanners map[string]*scanner.Scanner, request func() *scanner.Request) int {
	l.t.Helper()
	l.scan = scanners["nothing"]
	want, wantErr := l.rows(request(), 1)
	for name, s := range scanners {
		if name == "nothing" {
			continue
		}
		runs := 1
		if name == "everything" {
			runs = 2 // the second asks the caches
		}
		for range runs {
			l.scan = s
			got, err := l.rows(request(), 2)
			require.Equal(l.t, wantErr == nil, err == nil, "%s: %v, %v", name, wantErr, err)
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(l.t, want, got, "%s: %v", name, request().Filter)
		}
	}
	return len(want)
}

func TestPruningAndCachesChangeNoRow(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewSource(77))
	part := func(source int, name string, tr iceberg.Transform) icatalog.CreateTableOpt {
		return icatalog.WithPartitionSpec(spec(iceberg.PartitionField{SourceIDs: []int{source}, Name: name, Transform: tr}))
	}
	props := func(version string) icatalog.CreateTableOpt {
		return icatalog.WithProperties(iceberg.Properties{"format-version": version, "write.delete.mode": "merge-on-read",
			"write.parquet.row-group-limit": "16", "write.parquet.page-row-limit": "5"})
	}
	for name, opts := range map[string][]icatalog.CreateTableOpt{
		"plain":    {props("2")},
		"v3":       {props("3"), part(2, "kind", iceberg.IdentityTransform{})},
		"bucket":   {props("2"), part(1, "b", iceberg.BucketTransform{NumBuckets: 3})},
		"hour":     {props("2"), part(3, "h", iceberg.HourTransform{})},
		"day":      {props("2"), part(3, "d", iceberg.DayTransform{})},
		"truncate": {props("2"), part(4, "n_t", iceberg.TruncateTransform{Width: 10})},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			tbl := l.create("t", eventSchema, opts...)
			for i := range 3 {
				tbl = l.append(tbl, events(r, i*60, i*60+60))
			}
			for _, id := range []int64{3, 70, 130} {
				var err error
				tbl, err = tbl.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), id), nil)
				require.NoError(t, err)
			}
			scanners := variants(t)
			require.Equal(t, 177, l.sameRows(scanners, func() *scanner.Request { return l.request(tbl) }))
			found := 0
			for range 10 {
				e, _ := predicate(r, tbl.Schema())
				found += l.sameRows(scanners, func() *scanner.Request { return l.requestWith(tbl, e) })
			}
			require.Positive(t, found)
		})
	}
}

// TestPruningChangesNoRowOfTheDemo runs filters with values of each column over the tables of the demo lakehouse.
func TestPruningChangesNoRowOfTheDemo(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	_, err := demo.Make(ctx, dir, 0.001)
	require.NoError(t, err)
	cat, err := hadoop.New(ctx, hadoop.Options{Name: "demo", Warehouse: dir, Store: storage.Local{}})
	require.NoError(t, err)
	scanners := variants(t)
	l := &lake{t: t, pool: memory.NewPool("process", 0), store: storage.Local{}}
	r := rand.New(rand.NewSource(78))
	namespaces, err := cat.Namespaces(ctx, nil)
	require.NoError(t, err)
	tables, filtered := 0, 0
	for _, ns := range namespaces {
		names, err := cat.Tables(ctx, ns)
		require.NoError(t, err)
		for _, name := range names {
			tab, err := cat.Load(ctx, ns, name)
			require.NoError(t, err)
			tables++
			filtered += demoFilters(l, scanners, tab, r)
		}
	}
	require.Greater(t, tables, 8)
	require.Positive(t, filtered)
}

// demoFilters compares scans of a table with and without filters; it gives the rows that filters kept.
func demoFilters(l *lake, scanners map[string]*scanner.Scanner, tab *catalog.Table, r *rand.Rand) int {
	snap, err := tab.Resolve(catalog.Version{})
	require.NoError(l.t, err)
	request := func(e expr.Expr) func() *scanner.Request {
		return func() *scanner.Request {
			return &scanner.Request{Table: tab, Snapshot: snap, Projection: snap.Schema, Output: len(snap.Schema.Fields()), Limit: -1,
				Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}, Filter: e}
		}
	}
	l.sameRows(scanners, request(nil))
	kept := 0
	for i, f := range snap.Schema.Fields() {
		typ, err := catalog.TypeOf(f.Type)
		require.NoError(l.t, err)
		if !expr.Orderable(typ) || len(typ.Fields) > 0 || typ.Kind == vector.Null {
			continue
		}
		c := &expr.Column{Index: i, Name: f.Name, Typ: typ, Null: !f.Required}
		values := sample(l, scanners["nothing"], request(nil)(), i, r)
		for k, v := range values {
			op := []expr.CompareOp{expr.Eq, expr.Lt, expr.Ge}[(k+i)%3]
			kept += l.sameRows(scanners, request(ex(expr.NewCompare(op, c, lit(typ, v)))))
		}
		l.sameRows(scanners, request(&expr.IsNull{Arg: c}))
	}
	return kept
}

// sample gives up to two values of a column.
func sample(l *lake, s *scanner.Scanner, req *scanner.Request, col int, r *rand.Rand) []vector.Value {
	ctx := context.Background()
	stream, err := s.Plan(ctx, req)
	require.NoError(l.t, err)
	defer stream.Close()
	var out []vector.Value
	for len(out) < 2 {
		task, err := stream.Next(ctx)
		require.NoError(l.t, err)
		if task == nil {
			break
		}
		rd, err := s.Open(ctx, task, l.pool)
		require.NoError(l.t, err)
		for {
			c, err := rd.Next(ctx)
			require.NoError(l.t, err)
			if c == nil {
				break
			}
			i := r.Intn(c.N)
			if c.Sel != nil {
				i = int(c.Sel[r.Intn(len(c.Sel))])
			}
			if v := c.Cols[col].Get(i); v != nil && len(out) < 2 {
				if text, ok := v.(string); ok {
					v = strings.Clone(text)
				}
				out = append(out, v)
			}
		}
		require.NoError(l.t, rd.Close())
	}
	return out
}
