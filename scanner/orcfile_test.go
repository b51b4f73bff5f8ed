package scanner_test

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// eventsORC is written by a test of scanner/orc: 1,800 rows in three stripes, id ascending.
var eventsORC = filepath.Join("orc", "testdata", "events.orc")

func openEvents(t *testing.T, l *lake) *catalog.Table {
	tab, err := l.scan.OpenFiles(context.Background(), eventsORC)
	require.NoError(t, err)
	return tab
}

func TestLoneORCFile(t *testing.T) {
	l := newLake(t)
	tab := openEvents(t, l)
	require.Equal(t, "table {\n\t1: id: required long\n\t2: kind: optional string\n\t3: n: optional int\n\t4: place: optional struct<5: x: optional double, 6: at: optional timestamp>\n"+
		"\t7: tags: optional list<string>\n\t9: t: optional time\n}", tab.Schema.String())
	rows := l.must(loneRequest(tab))
	require.Len(t, rows, 1800)
	require.Equal(t, "0|kind a|960|<nil>|[]|0", rows[0])
}

// TestORCPruning keeps the stripes and row groups that a filter asks for, and those only.
func TestORCPruning(t *testing.T) {
	l := newLake(t)
	tab := openEvents(t, l)
	between := ex(expr.NewBetween(column(tab.Schema, "id"), lit(vector.Of(vector.BigInt), int64(750)), lit(vector.Of(vector.BigInt), int64(829)), false))
	r := loneRequest(tab)
	r.Filter = between
	require.Len(t, l.must(r), 80)
	p := r.Profile
	require.EqualValues(t, []int64{3, 1}, []int64{p.RowGroups.Considered.Load(), p.RowGroups.Kept.Load()})
	// Each of the two bounds is held against the six row groups of the stripe.
	require.EqualValues(t, []int64{12, 8}, []int64{p.Pages.Considered.Load(), p.Pages.Kept.Load()})
	require.EqualValues(t, 200, p.Rows.Considered.Load())

	r = loneRequest(tab)
	r.Filter = ex(expr.NewCompare(expr.Eq, column(tab.Schema, "id"), lit(vector.Of(vector.BigInt), int64(-1))))
	require.Empty(t, l.must(r))
	require.Zero(t, r.Profile.RowGroups.Kept.Load())
}

// TestORCFilters holds filters, workers and shares against each other.
func TestORCFilters(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	big := newLake(t)
	small := newLake(t)
	small.scan = scanner.New(scanner.Options{SplitBytes: 1, Workers: 3})
	tab := openEvents(t, big)
	all := big.must(loneRequest(tab))
	require.Equal(t, all, small.must(loneRequest(openEvents(t, small))))
	for range 40 {
		lo, n := int64(r.Intn(2000)-100), int32(r.Intn(1000))
		filter := ex(expr.NewAnd(
			ex(expr.NewCompare([]expr.CompareOp{expr.Lt, expr.Ge, expr.Eq, expr.Ne}[r.Intn(4)], column(tab.Schema, "id"), lit(vector.Of(vector.BigInt), lo))),
			ex(expr.NewCompare([]expr.CompareOp{expr.Lt, expr.Ge}[r.Intn(2)], column(tab.Schema, "n"), lit(vector.Of(vector.Integer), n)))))
		var got [][]string
		for _, l := range []*lake{big, small} {
			req := loneRequest(openEvents(t, l))
			req.Filter = filter
			got = append(got, l.must(req))
		}
		hidden := loneRequest(tab)
		hidden.Filter = ex(expr.NewCase([]expr.When{{Cond: filter, Then: lit(vector.Of(vector.Boolean), true)}}, lit(vector.Of(vector.Boolean), false)))
		want := big.must(hidden)
		require.Equal(t, want, got[0])
		require.Equal(t, want, got[1])
	}
}

func TestORCFaults(t *testing.T) {
	l, dir := newLake(t), t.TempDir()
	b, err := os.ReadFile(eventsORC)
	require.NoError(t, err)
	for name, content := range map[string][]byte{"cut.orc": b[:len(b)/2], "empty.orc": nil, "head.orc": b[:100]} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_, err := l.lone(path)
		require.ErrorIs(t, err, fault.Corrupt, name)
		require.ErrorContains(t, err, name)
	}
}
