package server

import (
	"strconv"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
)

// What passes for a lookup: small tables, the first rows of any, and searches for equal values, which the statistics of files narrow
// in the tables that people search. What reads more than lookupBytes after all is demoted.
const (
	smallTableBytes = 8 << 20
	lookupBytes     = 32 << 20
	// lookupsAtOnce is how many rows of parameters a lookup may have.
	lookupsAtOnce = 100
)

// isLookup tells whether a planned statement is of the class that does not wait. Operators over
// a lookup are fine, joins only of small tables.
func isLookup(n plan.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *plan.Scan:
		return n.Table.Files == nil && (isSmall(n) || n.Filter != nil && searches(n.Filter) || n.Filter == nil && n.Limit >= 0 && n.Limit <= smallValues)
	case *plan.Explain:
		return !n.Analyze || isLookup(n.Input)
	case *plan.Unnest, *plan.Spool, *plan.WithSubqueries:
		return false
	case *plan.Values:
		return len(n.Rows) <= smallValues
	case *plan.Join:
		return onlySmall(n)
	}
	for _, in := range n.Inputs() {
		if !isLookup(in) {
			return false
		}
	}
	return true
}

// onlySmall tells whether the tables below n are so few and small that even a join of them without a condition is no work to speak of.
func onlySmall(n plan.Node) bool {
	rows := 1.0
	var visit func(n plan.Node) bool
	visit = func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Scan:
			total, ok := summary(n, "total-records")
			rows *= max(1, float64(total))
			return ok && isSmall(n)
		case *plan.Join, *plan.Project, *plan.Filter, *plan.Aggregate, *plan.Sort, *plan.Limit:
		default:
			return false
		}
		for _, in := range n.Inputs() {
			if !visit(in) {
				return false
			}
		}
		return true
	}
	return visit(n) && rows <= 1e6
}

func isSmall(n *plan.Scan) bool {
	if !n.Snapshot.Present {
		return true
	}
	size, ok := summary(n, "total-files-size")
	deletes, _ := summary(n, "total-delete-files")
	return ok && size <= smallTableBytes && deletes < 100
}

// summary reads a number from the summary of a scan's snapshot.
func summary(n *plan.Scan, key string) (int64, bool) {
	if n.Table == nil || n.Table.Metadata == nil {
		return 0, false
	}
	snap := n.Table.Metadata.SnapshotByID(n.Snapshot.ID)
	if snap == nil || snap.Summary == nil {
		return 0, false
	}
	v, err := strconv.ParseInt(snap.Summary.Properties[key], 10, 64)
	return v, err == nil && v >= 0
}

// searches tells whether a filter asks a column for one value, or for a few.
func searches(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.And:
		for _, a := range e.Args {
			if searches(a) {
				return true
			}
		}
	case *expr.Compare:
		return e.Op == expr.Eq && (isColumn(e.L) && isConstant(e.R) || isColumn(e.R) && isConstant(e.L))
	case *expr.In:
		if e.Negated || !isColumn(e.Arg) || len(e.List) > 100 {
			return false
		}
		for _, v := range e.List {
			if !isConstant(v) {
				return false
			}
		}
		return true
	}
	return false
}

func isColumn(e expr.Expr) bool {
	_, ok := e.(*expr.Column)
	return ok
}

func isConstant(e expr.Expr) bool {
	switch e.(type) {
	case *expr.Literal, *expr.Param:
		return true
	}
	return false
}

// records counts the rows of the tables below n, as their snapshots tell.
func records(n plan.Node) int64 {
	if n == nil {
		return 0
	}
	if scan, ok := n.(*plan.Scan); ok {
		total, _ := summary(scan, "total-records")
		return total
	}
	sum := int64(0)
	for _, in := range n.Inputs() {
		sum += records(in)
	}
	return sum
}
