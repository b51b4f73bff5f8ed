package plan

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/profile"
)

// TestFormatProfile checks the shape of EXPLAIN ANALYZE: rows and time of operators, the funnel and the removals of the scan.
func TestFormatProfile(t *testing.T) {
	env, _ := testEnvironment(t)
	p, err := Build(context.Background(), "select dept, count(*) from s.emp where id > 3 group by dept", env)
	require.NoError(t, err)
	q := profile.New("q", "")
	scan := &profile.Operator{Name: "Scan", Scan: &profile.Scan{Table: "lake.s.emp", SnapshotID: 1}}
	agg := &profile.Operator{Name: "Aggregate", Children: []*profile.Operator{scan}}
	root := &profile.Operator{Name: "Project", Children: []*profile.Operator{agg}}
	root.RowsOut.Store(4)
	agg.RowsOut.Store(4)
	agg.Nanos.Store(int64(1500 * time.Microsecond))
	agg.PeakBytes.Store(3 << 20)
	scan.RowsOut.Store(70)
	s := scan.Scan
	s.Manifests.Add(10, 3)
	s.Files.Add(90, 5)
	s.Rows.Add(1000, 70)
	s.Requests.Store(7)
	s.BytesRead.Store(2048)
	s.Removed(profile.Removal{Level: "file", Means: "partition", Predicate: "day = DATE '2024-01-01'"}, 85)
	s.Removed(profile.Removal{Level: "manifest", Means: "bounds", Predicate: "id > 3"}, 1)
	q.AddScan(s)
	q.SetRoot(root)
	out := Format(p.Root, q)
	want := []string{
		"Project [dept, _col1 := count]  {rows 4, time 0µs}",
		"└─ Aggregate by [dept] [count(*)]  {rows 4, time 1.5ms, memory 3.0 MiB}",
		"   └─ Scan lake.s.emp snapshot 1  {rows 70, time 0µs}",
		"         columns: dept",
		"         filter columns: id",
		"         filter: (id > 3)",
		"         manifests 3 of 10, files 5 of 90, rows 70 of 1000",
		"         read 2.0 KiB in 7 requests",
		"         removed 85 files by partition: day = DATE '2024-01-01'",
		"         removed 1 manifest by bounds: id > 3",
	}
	require.Equal(t, strings.Join(want, "\n")+"\n", out)
}
