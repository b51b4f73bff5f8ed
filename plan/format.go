package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
)

// Format writes a plan as EXPLAIN shows it: a tree with one line an operator. With a profile each operator has its rows and time, and each scan
// its pruning funnel and what each predicate removed.
func Format(n Node, q *profile.Query) string { return format(n, q, nil) }

func format(n Node, q *profile.Query, estimates map[Node]float64) string {
	f := &formatter{spools: map[int]bool{}, estimates: estimates}
	if q != nil {
		f.scans = q.Scans()
		f.root = q.Root()
	}
	f.node(n, f.root, "", "")
	if q != nil {
		var phases []string
		for _, p := range q.Phases() {
			phases = append(phases, p.Name+" "+duration(p.Took))
		}
		if len(phases) > 0 {
			f.b.WriteString("phases: " + strings.Join(phases, ", ") + "\n")
		}
	}
	return f.b.String()
}

type formatter struct {
	b      strings.Builder
	spools map[int]bool
	scans  []*profile.Scan
	root   *profile.Operator

	estimates map[Node]float64
}

// maxDetail bounds a list of expressions in a line.
const maxDetail = 400

func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	cut := maxDetail
	for cut > 0 && s[cut]&0xc0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}

func list[T any](xs []T, f func(T) string) string {
	s := make([]string, len(xs))
	for i, x := range xs {
		s[i] = f(x)
	}
	return clip(strings.Join(s, ", "))
}

// node writes n below head, the lines of its inputs below rest.
func (f *formatter) node(n Node, op *profile.Operator, head, rest string) {
	if w, ok := n.(*WithSubqueries); ok {
		f.b.WriteString(head + "WithSubqueries" + f.counts(n, op) + "\n")
		all := len(w.Scalars) + 1 // the main plan runs under the first operator, the scalars under those after it
		for i, s := range w.Scalars {
			f.b.WriteString(rest + "├─ subquery " + strconv.Itoa(s.ID+1) + "\n")
			f.node(s.Plan, child(op, i+1, all), rest+"│  └─ ", rest+"│     ")
		}
		f.node(w.Input, child(op, 0, all), rest+"└─ ", rest+"   ")
		return
	}
	f.b.WriteString(head + f.line(n) + f.counts(n, op) + "\n")
	inputs := n.Inputs()
	if s, ok := n.(*Spool); ok {
		if f.spools[s.ID] {
			return // shown already
		}
		f.spools[s.ID] = true
	}
	inner := rest + "│  "
	if len(inputs) == 0 {
		inner = rest + "   "
	}
	switch x := n.(type) {
	case *Scan:
		for _, d := range scanDetails(x) {
			f.b.WriteString(inner + d + "\n")
		}
		f.funnel(x, op, inner)
	case *Explain:
		op = f.root
		f.node(x.Input, op, rest+"└─ ", rest+"   ")
		return
	}
	for i, in := range inputs {
		if i == len(inputs)-1 {
			f.node(in, child(op, i, len(inputs)), rest+"└─ ", rest+"   ")
		} else {
			f.node(in, child(op, i, len(inputs)), rest+"├─ ", rest+"│  ")
		}
	}
}

// child finds the operator that ran input i. The operators mirror the plan; where they do not, rows and times are left out.
func child(op *profile.Operator, i, n int) *profile.Operator {
	if op == nil || len(op.Children) != n {
		return nil
	}
	return op.Children[i]
}

func (f *formatter) counts(n Node, op *profile.Operator) string {
	expected := ""
	if e, ok := f.estimates[n]; ok {
		expected = strconv.FormatFloat(e, 'f', 0, 64)
	}
	if op == nil {
		if expected == "" {
			return ""
		}
		return "  {about " + expected + " rows}"
	}
	s := fmt.Sprintf("  {rows %d", op.RowsOut.Load())
	if expected != "" {
		s += " (about " + expected + " expected)"
	}
	s += ", time " + duration(time.Duration(op.Nanos.Load()))
	if p := op.PeakBytes.Load(); p > 0 {
		s += ", memory " + size(p)
	}
	if p := op.SpilledBytes.Load(); p > 0 {
		s += ", spilled " + size(p)
	}
	return s + "}"
}

func duration(d time.Duration) string {
	switch {
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + "s"
	case d >= time.Millisecond:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + "ms"
	}
	return strconv.FormatInt(d.Microseconds(), 10) + "µs"
}

func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1024 && u < len(units)-1 {
		x /= 1024
		u++
	}
	if u == 0 {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[u]
}

func names(cols []Column) string { return list(cols, func(c Column) string { return c.Name }) }

// line describes an operator without its inputs.
func (f *formatter) line(n Node) string {
	switch n := n.(type) {
	case *Scan:
		s := "Scan " + n.Table.FullName()
		if n.Table.Files != nil {
			return s
		}
		if n.Snapshot.Present {
			s += " snapshot " + strconv.FormatInt(n.Snapshot.ID, 10)
			switch c := n.Change; {
			case c != nil && c.Removed:
				s += " (rows that snapshot " + strconv.FormatInt(c.Other, 10) + " removed)"
			case c != nil:
				s += " (rows that it added)"
			}
		} else {
			s += " (empty: no snapshot)"
		}
		return s
	case *Values:
		return fmt.Sprintf("Values %d rows [%s]", len(n.Rows), names(n.Cols))
	case *Filter:
		return "Filter " + clip(n.Cond.String())
	case *Project:
		in := n.Input.Columns()
		s := make([]string, len(n.Exprs))
		for i, e := range n.Exprs {
			s[i] = e.String()
			if c, ok := e.(*expr.Column); !ok || c.Index < len(in) && in[c.Index].Name != n.Cols[i].Name {
				s[i] = n.Cols[i].Name + " := " + s[i]
			}
		}
		return "Project [" + clip(strings.Join(s, ", ")) + "]"
	case *Aggregate:
		s := "Aggregate"
		if len(n.GroupBy) > 0 {
			s += " by [" + list(n.GroupBy, expr.Expr.String) + "]"
		}
		if n.Sets != nil {
			s += " sets [" + list(n.Sets, func(set []int) string {
				return "(" + list(set, func(i int) string { return n.GroupBy[i].String() }) + ")"
			}) + "]"
		}
		if len(n.Aggs) > 0 {
			s += " [" + list(n.Aggs, (*expr.Aggregate).String) + "]"
		}
		return s
	case *Join:
		return joinLine(n)
	case *Sort:
		s := "Sort"
		if n.Limit >= 0 {
			s = "TopN " + strconv.FormatInt(n.Limit, 10)
			if n.WithTies {
				s += " with ties"
			}
			if n.Offset > 0 {
				s += " offset " + strconv.FormatInt(n.Offset, 10)
			}
		}
		return s + " by [" + sortText(n.Keys) + "]"
	case *Limit:
		s := "Limit"
		switch {
		case n.CountExpr != nil:
			s += " " + n.CountExpr.String()
		case n.Count >= 0:
			s += " " + strconv.FormatInt(n.Count, 10)
		}
		switch {
		case n.OffsetExpr != nil:
			s += " offset " + n.OffsetExpr.String()
		case n.Offset > 0:
			s += " offset " + strconv.FormatInt(n.Offset, 10)
		}
		return s
	case *Union:
		return "Union"
	case *SetOp:
		s := "Intersect"
		if n.Except {
			s = "Except"
		}
		if n.All {
			s += " all"
		}
		return s
	case *Window:
		s := "Window"
		if len(n.PartitionBy) > 0 {
			s += " partition by [" + list(n.PartitionBy, expr.Expr.String) + "]"
		}
		if len(n.OrderBy) > 0 {
			s += " order by [" + sortText(n.OrderBy) + "]"
		}
		return s + " [" + list(n.Functions, windowText) + "]"
	case *Unnest:
		s := "Unnest"
		if n.Outer {
			s += " outer"
		}
		if n.Ordinality {
			s += " with ordinality"
		}
		return s + " [" + list(n.Args, expr.Expr.String) + "]"
	case *Spool:
		if f.spools[n.ID] {
			return "Spool " + strconv.Itoa(n.ID) + " (shown above)"
		}
		return "Spool " + strconv.Itoa(n.ID)
	case *OneRow:
		return "OneRow"
	case *Explain:
		if n.Analyze {
			return "Explain analyze"
		}
		return "Explain"
	}
	return fmt.Sprintf("%T", n)
}

var joinNames = [...]string{Inner: "inner", Left: "left", Right: "right", Full: "full", Semi: "semi", Anti: "anti", NullAwareAnti: "null-aware anti", Mark: "mark", Single: "single"}

func joinLine(n *Join) string {
	s := "Join " + joinNames[n.Kind]
	if len(n.LeftKeys) > 0 {
		keys := make([]string, len(n.LeftKeys))
		for i := range keys {
			op := " = "
			if n.NullSafe != nil && n.NullSafe[i] {
				op = " is not distinct from "
			}
			keys[i] = n.LeftKeys[i].String() + op + n.RightKeys[i].String()
			for _, f := range n.RuntimeFilters {
				if f.Column == i {
					keys[i] += " -> filter " + strconv.Itoa(f.ID)
				}
			}
		}
		s += " on [" + clip(strings.Join(keys, ", ")) + "]"
	} else if n.Residual == nil {
		s += " cross"
	}
	if n.Residual != nil {
		s += " where " + clip(n.Residual.String())
	}
	return s
}

func sortText(keys []expr.SortKey) string {
	return list(keys, func(k expr.SortKey) string {
		s := k.Expr.String()
		if k.Desc {
			s += " desc"
		}
		if k.NullsFirst {
			s += " nulls first"
		}
		return s
	})
}

func windowText(c *expr.WindowCall) string {
	if c.Agg != nil {
		return c.Agg.String() + frameText(c.Frame)
	}
	s := c.Name + "(" + list(c.Args, expr.Expr.String) + ")"
	if c.IgnoreNulls {
		s += " ignore nulls"
	}
	switch c.Name {
	case "first_value", "last_value", "nth_value":
		s += frameText(c.Frame)
	}
	return s
}

func frameText(f expr.Frame) string {
	bound := func(b expr.Bound) string {
		switch b.Kind {
		case expr.UnboundedPreceding:
			return "unbounded preceding"
		case expr.Preceding:
			return b.Offset.String() + " preceding"
		case expr.Following:
			return b.Offset.String() + " following"
		case expr.UnboundedFollowing:
			return "unbounded following"
		}
		return "current row"
	}
	s := " " + [...]string{expr.Rows: "rows", expr.Range: "range", expr.Groups: "groups"}[f.Unit] + " " + bound(f.Start) + " to " + bound(f.End)
	return s + [...]string{expr.ExcludeNoOthers: "", expr.ExcludeCurrentRow: " exclude current row", expr.ExcludeGroup: " exclude group", expr.ExcludeTies: " exclude ties"}[f.Exclude]
}

// scanDetails are the lines under a scan: what it reads, by what it filters and what narrows it while it runs.
func scanDetails(n *Scan) []string {
	fields := n.Projection.Fields()
	var out []string
	if n.Output > 0 {
		out = append(out, "columns: "+list(fields[:n.Output], fieldText))
	}
	if n.Output < len(fields) {
		out = append(out, "filter columns: "+list(fields[n.Output:], fieldText))
	}
	if n.Filter != nil {
		for _, c := range expr.Conjuncts(n.Filter) {
			out = append(out, "filter: "+clip(c.String()))
		}
	}
	if n.Limit >= 0 {
		out = append(out, "limit: "+strconv.FormatInt(n.Limit, 10))
	}
	for _, f := range n.RuntimeFilters {
		out = append(out, "runtime filter "+strconv.Itoa(f.ID)+": "+fields[f.Column].Name)
	}
	return out
}

// fieldText names a column, with the fields that are read of a row that is read in part.
func fieldText(f iceberg.NestedField) string {
	st, ok := f.Type.(*iceberg.StructType)
	if !ok {
		return f.Name
	}
	return f.Name + "{" + list(st.FieldList, fieldText) + "}"
}

// funnel writes what a scan considered and kept at each level, and what each predicate removed.
func (f *formatter) funnel(n *Scan, op *profile.Operator, indent string) {
	var s *profile.Scan
	if op != nil && op.Scan != nil {
		s = op.Scan
		for i, x := range f.scans {
			if x == s {
				f.scans = append(f.scans[:i:i], f.scans[i+1:]...)
				break
			}
		}
	} else {
		for i, x := range f.scans {
			if x.Table == n.Table.FullName() && (!n.Snapshot.Present || x.SnapshotID == n.Snapshot.ID) {
				s = x
				f.scans = append(f.scans[:i:i], f.scans[i+1:]...)
				break
			}
		}
	}
	if s == nil {
		return
	}
	var levels []string
	for _, l := range []struct {
		name string
		f    *profile.Funnel
	}{{"manifests", &s.Manifests}, {"delete manifests", &s.DeleteManifests}, {"files", &s.Files}, {"delete files", &s.DeleteFiles}, {"row groups", &s.RowGroups}, {"pages", &s.Pages}, {"rows", &s.Rows}} {
		if c := l.f.Considered.Load(); c > 0 {
			levels = append(levels, fmt.Sprintf("%s %d of %d", l.name, l.f.Kept.Load(), c))
		}
	}
	if len(levels) > 0 {
		f.b.WriteString(indent + strings.Join(levels, ", ") + "\n")
	}
	var io []string
	if d := s.RowsDeleted.Load(); d > 0 {
		io = append(io, fmt.Sprintf("%d rows deleted", d))
	}
	if r := s.Requests.Load(); r > 0 {
		io = append(io, fmt.Sprintf("read %s in %d requests", size(s.BytesRead.Load()), r))
	}
	if h, m := s.CacheHits.Load(), s.CacheMisses.Load(); h+m > 0 {
		io = append(io, fmt.Sprintf("cache hits %d of %d", h, h+m))
	}
	if len(io) > 0 {
		f.b.WriteString(indent + strings.Join(io, ", ") + "\n")
	}
	removals, counts := s.Removals()
	for i, r := range removals {
		level := r.Level + "s"
		if counts[i] == 1 {
			level = r.Level
		}
		line := fmt.Sprintf("removed %d %s by %s", counts[i], level, r.Means)
		if r.Predicate != "" {
			line += ": " + r.Predicate
		}
		f.b.WriteString(indent + clip(line) + "\n")
	}
}
