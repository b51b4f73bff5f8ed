// Package expr holds typed expressions: the nodes that the binder makes, their vectorised evaluation and the
// function library.
//
// It knows nothing of SQL text, tables or names: a column is a position in the chunk. Expressions are immutable once
// built and may be shared by any number of goroutines; a Program, which carries scratch space, belongs to one.
package expr

import "github.com/skua-db/skua/vector"

// Expr is a typed expression over the columns of a chunk.
type Expr interface {
	// Type is the type of the result.
	Type() vector.Type
	// Nullable reports whether the result can be null; false is a promise.
	Nullable() bool
	// Children are the direct operands in order.
	Children() []Expr
	// With returns a copy with other operands, as many as Children gave.
	With(children []Expr) Expr
	// String renders the expression as EXPLAIN shows it.
	String() string
}

// Column is a column of the input chunk.
type Column struct {
	Index int
	Name  string // for messages and EXPLAIN
	Typ   vector.Type
	Null  bool
}

// Literal is a constant. Value is nil for a typed NULL.
type Literal struct {
	Value vector.Value
	Typ   vector.Type
}

// Param is a bound parameter (? or $n), 0-based. Its value comes with the run, its type from inference.
type Param struct {
	Index int
	Typ   vector.Type
}

// CompareOp is a comparison operator.
type CompareOp uint8

// The comparison operators. Distinct is IS DISTINCT FROM: it never gives null.
const (
	Eq CompareOp = iota
	Ne
	Lt
	Le
	Gt
	Ge
	Distinct
	NotDistinct
)

// Compare compares two operands of one type (the binder has cast them). Comparisons with NaN are IEEE's.
type Compare struct {
	Op   CompareOp
	L, R Expr
}

// And and Or are Kleene's connectives over two or more operands, evaluated left to right on the rows that still matter.
type And struct{ Args []Expr }

// Or is the Kleene disjunction; see And.
type Or struct{ Args []Expr }

// Not negates a boolean.
type Not struct{ Arg Expr }

// IsNull tests for NULL; Negated is IS NOT NULL.
type IsNull struct {
	Arg     Expr
	Negated bool
}

// In tests membership in a list with SQL's three-valued rule; the binder has cast all to one type.
type In struct {
	Arg     Expr
	List    []Expr
	Negated bool
}

// Like matches a pattern with % and _; Escape is 0 when there is none. A constant pattern is compiled once.
type Like struct {
	Arg, Pattern Expr
	Escape       rune
	Negated      bool
	// CaseInsensitive is ILIKE.
	CaseInsensitive bool
}

// Cast converts; Try gives NULL where a plain cast is an error.
type Cast struct {
	Arg Expr
	To  vector.Type
	Try bool
}

// When is a branch of a Case.
type When struct{ Cond, Then Expr }

// Case is CASE WHEN (a simple CASE is bound to comparisons). Only the branch taken is evaluated for a row. Else may be nil.
type Case struct {
	Whens []When
	Else  Expr
	Typ   vector.Type
}

// Coalesce gives the first operand that is not null, evaluating no more than needed.
type Coalesce struct {
	Args []Expr
	Typ  vector.Type
}

// TryExpr gives NULL for rows whose operand fails with an error of the data (TRY(x)).
type TryExpr struct{ Arg Expr }

// FieldAccess takes a field of a row by position.
type FieldAccess struct {
	Arg   Expr
	Index int
	Name  string
}

// Call calls a scalar function or arithmetic operator of the registry.
type Call struct {
	Fn   *Function
	Args []Expr
	Typ  vector.Type
	Null bool
}

// Lambda is an anonymous function argument, x -> body. In Body, Column refers to the enclosing chunk and LambdaVar to the
// parameters.
type Lambda struct {
	Params []LambdaParam
	Body   Expr
}

// LambdaParam is a parameter of a Lambda.
type LambdaParam struct {
	ID   int // unique in the statement
	Name string
	Typ  vector.Type
}

// LambdaVar is a use of a lambda's parameter.
type LambdaVar struct {
	ID   int
	Name string
	Typ  vector.Type
}

// Subquery is the value of an uncorrelated scalar subquery, computed once per run before the operator that uses it:
// exec fills slot ID of the run's Context.
type Subquery struct {
	ID  int
	Typ vector.Type
}

// SortKey is one key of an order.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// Aggregate is a call of an aggregate function.
type Aggregate struct {
	Fn       *AggregateFunction
	Args     []Expr
	Lambdas  []*Lambda // of reduce_agg; they refer to their parameters only
	Distinct bool
	Filter   Expr // nil: all rows
	OrderBy  []SortKey
	Typ      vector.Type
	Null     bool
}

// WindowCall is a call of a window function or of an aggregate over a window.
type WindowCall struct {
	Name  string // of a ranking or value function; empty when Agg is set
	Agg   *Aggregate
	Args  []Expr
	Frame Frame
	// IgnoreNulls skips nulls in lead, lag, first_value, last_value and nth_value.
	IgnoreNulls bool
	Typ         vector.Type
}

// Frame is a window frame.
type Frame struct {
	Unit       FrameUnit
	Start, End Bound
	Exclude    Exclusion
}

// FrameUnit is ROWS, RANGE or GROUPS.
type FrameUnit uint8

// The frame units.
const (
	Rows FrameUnit = iota
	Range
	Groups
)

// Bound is an end of a frame. Offset is nil for CURRENT ROW and the unbounded ends.
type Bound struct {
	Kind   BoundKind
	Offset Expr
}

// BoundKind says where a frame begins or ends.
type BoundKind uint8

// The kinds of bound.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Exclusion leaves rows out of a frame.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNoOthers Exclusion = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)
