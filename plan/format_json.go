package plan

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
)

// planJSON is an operator of EXPLAIN (FORMAT JSON). What was measured is there when the statement was run.
type planJSON struct {
	Operator      string      `json:"operator"`
	Detail        string      `json:"detail"`
	EstimatedRows *float64    `json:"estimated_rows,omitempty"`
	Rows          *int64      `json:"rows,omitempty"`
	TimeMS        *float64    `json:"time_ms,omitempty"` // of all workers together
	MemoryBytes   *int64      `json:"memory_bytes,omitempty"`
	SpilledBytes  *int64      `json:"spilled_bytes,omitempty"`
	Scan          *scanJSON   `json:"scan,omitempty"`
	Inputs        []*planJSON `json:"inputs,omitempty"`
	Subqueries    []*planJSON `json:"subqueries,omitempty"`
}

type scanJSON struct {
	Table             string                `json:"table"`
	SnapshotID        int64                 `json:"snapshot_id,omitempty"`
	Columns           []string              `json:"columns"`
	FilterColumns     []string              `json:"filter_columns,omitempty"`
	Filters           []string              `json:"filters,omitempty"`
	RuntimeFilters    []int                 `json:"runtime_filters,omitempty"`
	Limit             *int64                `json:"limit,omitempty"`
	Funnel            map[string]funnelJSON `json:"funnel,omitempty"`
	RowsDeleted       *int64                `json:"rows_deleted,omitempty"`
	BytesRead         *int64                `json:"bytes_read,omitempty"`
	Requests          *int64                `json:"requests,omitempty"`
	BytesDecompressed *int64                `json:"bytes_decompressed,omitempty"`
	CacheHits         *int64                `json:"cache_hits,omitempty"`
	CacheMisses       *int64                `json:"cache_misses,omitempty"`
	Removed           []removedJSON         `json:"removed,omitempty"`
}

type funnelJSON struct {
	Considered int64 `json:"considered"`
	Kept       int64 `json:"kept"`
}

type removedJSON struct {
	Level     string `json:"level"`
	Means     string `json:"means"`
	Predicate string `json:"predicate,omitempty"`
	Count     int64  `json:"count"`
}

type phaseJSON struct {
	Name   string  `json:"name"`
	TimeMS float64 `json:"time_ms"`
}

// formatJSON is format as a JSON document.
func formatJSON(n Node, q *profile.Query, estimates map[Node]float64) string {
	f := &formatter{spools: map[int]bool{}, estimates: estimates}
	doc := struct {
		Plan   *planJSON   `json:"plan"`
		Phases []phaseJSON `json:"phases,omitempty"`
	}{}
	if q != nil {
		f.root = q.Root()
		for _, p := range q.Phases() {
			doc.Phases = append(doc.Phases, phaseJSON{p.Name, float64(p.Took) / 1e6})
		}
	}
	doc.Plan = f.json(n, f.root)
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return "null" // there is nothing in the document that cannot be written
	}
	return b.String()
}

func (f *formatter) json(n Node, op *profile.Operator) *planJSON {
	out := &planJSON{}
	if e, ok := f.estimates[n]; ok {
		e = math.Round(e)
		out.EstimatedRows = &e
	}
	if op != nil {
		rows, ms := op.RowsOut.Load(), float64(op.Nanos.Load())/1e6
		peak, spilled := op.PeakBytes.Load(), op.SpilledBytes.Load()
		out.Rows, out.TimeMS, out.MemoryBytes, out.SpilledBytes = &rows, &ms, &peak, &spilled
	}
	if w, ok := n.(*WithSubqueries); ok {
		out.Operator, out.Detail = "WithSubqueries", "WithSubqueries"
		for i, s := range w.Scalars {
			out.Subqueries = append(out.Subqueries, f.json(s.Plan, child(op, i+1, len(w.Scalars)+1)))
		}
		out.Inputs = []*planJSON{f.json(w.Input, child(op, 0, len(w.Scalars)+1))}
		return out
	}
	out.Detail = f.line(n)
	out.Operator, _, _ = strings.Cut(out.Detail, " ")
	if s, ok := n.(*Spool); ok {
		if f.spools[s.ID] {
			return out // shown already
		}
		f.spools[s.ID] = true
	}
	if s, ok := n.(*Scan); ok {
		out.Scan = scanOf(s, op)
	}
	inputs := n.Inputs()
	for i, in := range inputs {
		out.Inputs = append(out.Inputs, f.json(in, child(op, i, len(inputs))))
	}
	return out
}

func scanOf(n *Scan, op *profile.Operator) *scanJSON {
	out := &scanJSON{Table: n.Table.FullName(), SnapshotID: n.Snapshot.ID, Columns: []string{}}
	for i, c := range n.Projection.Fields() {
		if i < n.Output {
			out.Columns = append(out.Columns, fieldText(c))
		} else {
			out.FilterColumns = append(out.FilterColumns, fieldText(c))
		}
	}
	if n.Filter != nil {
		for _, c := range expr.Conjuncts(n.Filter) {
			out.Filters = append(out.Filters, c.String())
		}
	}
	for _, r := range n.RuntimeFilters {
		out.RuntimeFilters = append(out.RuntimeFilters, r.ID)
	}
	if n.Limit >= 0 {
		out.Limit = &n.Limit
	}
	if op == nil || op.Scan == nil {
		return out
	}
	s := op.Scan
	out.Funnel = map[string]funnelJSON{}
	for name, l := range map[string]*profile.Funnel{"manifests": &s.Manifests, "delete_manifests": &s.DeleteManifests, "files": &s.Files, "delete_files": &s.DeleteFiles,
		"row_groups": &s.RowGroups, "pages": &s.Pages, "rows": &s.Rows} {
		out.Funnel[name] = funnelJSON{l.Considered.Load(), l.Kept.Load()}
	}
	number := func(n int64) *int64 { return &n }
	out.RowsDeleted, out.BytesRead, out.Requests = number(s.RowsDeleted.Load()), number(s.BytesRead.Load()), number(s.Requests.Load())
	out.BytesDecompressed, out.CacheHits, out.CacheMisses = number(s.BytesDecompressed.Load()), number(s.CacheHits.Load()), number(s.CacheMisses.Load())
	removals, counts := s.Removals()
	for i, r := range removals {
		out.Removed = append(out.Removed, removedJSON{r.Level, r.Means, r.Predicate, counts[i]})
	}
	return out
}
