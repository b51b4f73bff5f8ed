package plan

import (
	"context"
	"encoding/json"
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

// TestExplainShowsEstimates checks the rows that the optimizer expects, beside those there were, as text and as JSON.
func TestExplainShowsEstimates(t *testing.T) {
	env, _ := testEnvironment(t)
	p, err := Build(context.Background(), "explain select dept, count(*) from s.emp where id > 3 group by dept", env)
	require.NoError(t, err)
	x := p.Root.(*Explain)
	for _, line := range strings.Split(strings.TrimSpace(x.Text(nil)), "\n") {
		if strings.Contains(line, "Aggregate") || strings.Contains(line, "Scan") {
			require.Regexp(t, `\{about \d+ rows\}$`, line)
		}
	}
	scan := &profile.Operator{Name: "Scan", Scan: &profile.Scan{Table: "lake.s.emp", SnapshotID: 1}}
	scan.Scan.Files.Add(90, 5)
	scan.Scan.BytesRead.Store(2048)
	scan.Scan.Removed(profile.Removal{Level: "file", Means: "partition", Predicate: "day < 3"}, 85)
	agg := &profile.Operator{Name: "Aggregate", Children: []*profile.Operator{scan}}
	agg.RowsOut.Store(4)
	agg.SpilledBytes.Store(77)
	q := profile.New("q", "")
	q.SetRoot(&profile.Operator{Name: "Project", Children: []*profile.Operator{agg}})
	q.Phase("plan", time.Now())
	require.Regexp(t, `Aggregate by \[dept\] .*\{rows 4 \(about \d+ expected\), time 0µs, spilled 77 B\}`, x.Text(q))

	p, err = Build(context.Background(), "explain (analyze, format json) select dept, count(*) from s.emp where id > 3 group by dept", env)
	require.NoError(t, err)
	var doc struct {
		Plan   planJSON
		Phases []phaseJSON
	}
	require.NoError(t, json.Unmarshal([]byte(p.Root.(*Explain).Text(q)), &doc))
	require.Equal(t, "plan", doc.Phases[0].Name)
	require.Equal(t, "Project", doc.Plan.Operator)
	a := doc.Plan.Inputs[0]
	require.Equal(t, "Aggregate", a.Operator)
	require.EqualValues(t, 4, *a.Rows)
	require.EqualValues(t, 77, *a.SpilledBytes)
	require.Positive(t, *a.EstimatedRows)
	s := a.Inputs[0].Scan
	require.Equal(t, funnelJSON{90, 5}, s.Funnel["files"])
	require.EqualValues(t, 2048, *s.BytesRead)
	require.Equal(t, []string{"(id > 3)"}, s.Filters)
	require.Equal(t, []removedJSON{{"file", "partition", "day < 3", 85}}, s.Removed)
}
