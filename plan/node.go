// Package plan turns a syntax tree into a bound, typed and optimised plan, and a plan into EXPLAIN text.
//
// It runs nothing and reads no data file. Plans are immutable and may be run by many goroutines at once.
package plan

import (
	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// Column describes an output column of a node.
type Column struct {
	Name     string
	Type     vector.Type
	Nullable bool
}

// Node is an operator of a bound plan. Expressions of a node refer to the columns of its input by position; for a Join the
// left columns come first. Nodes are immutable once the optimizer is done.
type Node interface {
	Columns() []Column
	Inputs() []Node
	// WithInputs returns a copy with other inputs, as many as Inputs gave.
	WithInputs(inputs []Node) Node
}

// Scan reads a snapshot of a table.
type Scan struct {
	Table    *catalog.Table
	Snapshot catalog.Snapshot
	Change   *catalog.Change // only what a snapshot added or removed; nil: all
	// Variants says, by position of Projection, which parts of a variant are used; nil: all.
	Variants []*vector.VariantParts
	// Projection is the part of the snapshot's schema that is read, nested fields pruned, in output order, with
	// the table's field ids. Reserved ids name metadata columns (_file, _pos, ...).
	Projection *iceberg.Schema
	// Output is the number of leading columns of Projection that the node returns; the rest serve Filter only.
	Output int
	// Filter speaks of Projection's columns by position; rows it does not make true are dropped. nil keeps all.
	Filter expr.Expr
	// Limit ends the scan after so many rows; negative for none.
	Limit int64
	Cols  []Column // of the Output columns
	// RuntimeFilters are the joins whose build side narrows this scan.
	RuntimeFilters []RuntimeFilter
}

// RuntimeFilter ties a key of a join's build side to a column of a scan on its probe side.
type RuntimeFilter struct {
	ID     int // equal to Join.RuntimeFilters[i].ID
	Column int // position in the Scan's Projection, or in the join's build keys
}

// Values gives literal rows.
type Values struct {
	Rows [][]expr.Expr
	Cols []Column
}

// Filter keeps the rows for which Cond is true.
type Filter struct {
	Input Node
	Cond  expr.Expr
}

// Project computes expressions.
type Project struct {
	Input Node
	Exprs []expr.Expr
	Cols  []Column
}

// Aggregate groups by the values of GroupBy. Output: the group columns, then for several Sets the
// grouping id (bigint, bit i from the left set when GroupBy[i] is not in the set), then the aggregates.
type Aggregate struct {
	Input   Node
	GroupBy []expr.Expr
	// Sets lists grouping sets as positions in GroupBy; nil is the one set of all.
	Sets [][]int
	Aggs []*expr.Aggregate
	Cols []Column
}

// JoinKind says which rows a Join gives.
type JoinKind uint8

// The kinds of join. Columns are left then right, but Semi and Anti give the left ones only and Mark the left ones and a
// boolean: whether the row has a match, null where SQL's IN is null.
const (
	Inner JoinKind = iota
	Left
	Right
	Full
	Semi
	Anti
	// NullAwareAnti is NOT IN: no row passes when the right side has a null key, and a null left key passes only
	// an empty right side. It has exactly one pair of keys.
	NullAwareAnti
	Mark
	// Single is a left join that fails with SUBQUERY_MULTIPLE_ROWS when a left row has several matches.
	Single
)

// Join matches rows. Keys of Left and Right are compared pairwise by =, null never matching; Residual speaks of left then
// right columns. Without keys it is a nested loop. The right side is built, the left side streams.
type Join struct {
	Kind                JoinKind
	Left, Right         Node
	LeftKeys, RightKeys []expr.Expr
	// NullSafe[i] compares pair i by IS NOT DISTINCT FROM; nil for none.
	NullSafe       []bool
	Residual       expr.Expr
	RuntimeFilters []RuntimeFilter // Column is the position in RightKeys
	Cols           []Column
}

// Sort orders; with Limit >= 0 it is a top-N of Offset+Limit rows that drops the first Offset. WithTies keeps
// rows equal to the last one by the keys.
type Sort struct {
	Input         Node
	Keys          []expr.SortKey
	Limit, Offset int64 // Limit negative: none
	WithTies      bool
}

// Limit passes Count rows after Offset; Count negative passes all. CountExpr and OffsetExpr, when set, are bigint expressions without columns
// (parameters) that are evaluated when the run starts and stand for Count and Offset; a negative or null value is INVALID_ARGUMENTS.
type Limit struct {
	Input                 Node
	Count, Offset         int64
	CountExpr, OffsetExpr expr.Expr
}

// Union passes the rows of all inputs, which have the same column types.
type Union struct {
	Nodes []Node
	Cols  []Column
}

// SetOp is INTERSECT or EXCEPT with SQL's null-safe row comparison; All keeps multiplicities.
type SetOp struct {
	Except      bool
	All         bool
	Left, Right Node
	Cols        []Column
}

// Window adds a column per function to the input's columns. All Functions share one partitioning and order.
type Window struct {
	Input       Node
	PartitionBy []expr.Expr
	OrderBy     []expr.SortKey
	Functions   []*expr.WindowCall
	Cols        []Column
}

// Unnest joins each input row with the elements of its arrays (or entries of its maps) side by side; shorter ones are filled
// with nulls. Outer keeps rows without elements. Output: input columns, then element columns, then with Ordinality a bigint.
type Unnest struct {
	Input      Node
	Args       []expr.Expr
	Outer      bool
	Ordinality bool
	Cols       []Column
}

// Spool computes its input once and gives it to each of its uses, which share ID.
type Spool struct {
	ID    int
	Input Node
}

// OneRow passes its input's single row; none gives a row of nulls, several are an error (SUBQUERY_MULTIPLE_ROWS).
type OneRow struct{ Input Node }

// WithSubqueries runs each plan of Scalars once and puts the value of its only column and row (null when there is none)
// in the slot named by its ID, before Input starts.
type WithSubqueries struct {
	Input   Node
	Scalars []ScalarSubquery
}

// ScalarSubquery is an uncorrelated subquery used as a value.
type ScalarSubquery struct {
	ID   int // of expr.Subquery
	Plan Node
}
