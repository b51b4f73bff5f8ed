package sql

// Statement is a whole statement.
type Statement interface {
	// At is where the statement begins.
	At() Pos
	statement()
}

// Query is a body with what surrounds it: WITH in front; order and limit behind.
type Query struct {
	Pos     Pos
	With    *With
	Body    Body
	OrderBy []OrderItem
	// OrderAll is ORDER BY ALL; its Expr is nil.
	OrderAll *OrderItem
	Limit    Expr // nil: none or ALL
	Offset   Expr
	WithTies bool
}

// With is a list of common table expressions.
type With struct {
	Recursive bool
	Tables    []CTE
}

// CTE is name [(columns)] AS (query).
type CTE struct {
	Name    Ident
	Columns []Ident
	Query   *Query
}

// Body is what a query is made of: *Select, *SetOp, *Values, *Table or a *Query in parentheses.
type Body interface{ body() }

// Select is a SELECT. From is nil without FROM.
type Select struct {
	Pos      Pos
	Distinct bool
	Items    []SelectItem
	From     TableRef
	Where    Expr
	GroupBy  *GroupBy
	Having   Expr
	Windows  []NamedWindow
	Qualify  Expr
}

// SelectItem is an expression with a name of its own or none (then Alias.Name is empty).
type SelectItem struct {
	Expr  Expr
	Alias Ident
}

// GroupBy is GROUP BY: elements that multiply with each other. All is GROUP BY ALL.
type GroupBy struct {
	Pos      Pos
	Distinct bool
	All      bool
	Elements []Grouping
}

// Grouping is an element of GROUP BY. A plain expression is Kind "" with Sets of one expression.
type Grouping struct {
	Pos  Pos
	Kind string // "", ROLLUP, CUBE, SETS
	Sets [][]Expr
	// Nested are the ROLLUPs and CUBEs inside GROUPING SETS, by position; nil where Sets holds the set.
	Nested []*Grouping
}

// NamedWindow is an entry of the WINDOW clause.
type NamedWindow struct {
	Name   Ident
	Window *Window
}

// SetOp is UNION, INTERSECT or EXCEPT.
type SetOp struct {
	Pos  Pos
	Op   string // UNION, INTERSECT, EXCEPT
	All  bool
	L, R Body
}

// Values is VALUES row, row...; a row of one column is the bare expression.
type Values struct {
	Pos  Pos
	Rows []Expr
}

// Table is TABLE t.
type Table struct{ Name *TableName }

func (*Select) body() {}
func (*SetOp) body()  {}
func (*Values) body() {}
func (*Table) body()  {}
func (*Query) body()  {}

// OrderItem is a key of ORDER BY. Nulls is "", FIRST or LAST.
type OrderItem struct {
	Expr  Expr
	Desc  bool
	Nulls string
}

// TableRef is something in FROM.
type TableRef interface{ tableRef() }

// Alias is [AS] name [(columns)].
type Alias struct {
	Name    Ident
	Columns []Ident
}

// TableName is a table of a catalog or of WITH, perhaps at a version.
type TableName struct {
	Parts   []Ident
	Version *Version
	Sample  *Sample
	Alias   *Alias
}

// FileName is a file, or several by a pattern, named by a text literal where a table belongs.
type FileName struct {
	Pos    Pos
	Path   string
	Sample *Sample
	Alias  *Alias
}

// Version is a point in a table's history.
type Version struct {
	Pos  Pos
	Kind string // VERSION, TIMESTAMP, SNAPSHOT, BRANCH, TAG
	Expr Expr
}

// Sample is TABLESAMPLE method (percent).
type Sample struct {
	Pos     Pos
	Method  string // BERNOULLI, SYSTEM
	Percent Expr
}

// Derived is a query in FROM.
type Derived struct {
	Pos     Pos
	Lateral bool
	Query   *Query
	Sample  *Sample
	Alias   *Alias
}

// Unnest is UNNEST(arrays) [WITH ORDINALITY].
type Unnest struct {
	Pos        Pos
	Args       []Expr
	Ordinality bool
	Alias      *Alias
}

// TableCall is a function in FROM, with or without TABLE(...).
type TableCall struct {
	Call  *Call
	Alias *Alias
}

// Join is a join. Kind is INNER, LEFT, RIGHT, FULL, CROSS; a comma is a CROSS join with Comma set.
type Join struct {
	Pos     Pos
	Kind    string
	Natural bool
	Comma   bool
	L, R    TableRef
	On      Expr
	Using   []Ident
}

func (*TableName) tableRef() {}
func (*FileName) tableRef()  {}
func (*Derived) tableRef()   {}
func (*Unnest) tableRef()    {}
func (*TableCall) tableRef() {}
func (*Join) tableRef()      {}

// Explain is EXPLAIN [ANALYZE] [VERBOSE] statement, or with options in parentheses. Format is TEXT or JSON; empty when it is not given.
type Explain struct {
	Pos              Pos
	Analyze, Verbose bool
	Format           string
	Statement        Statement
}

// Show is a SHOW statement. What is CATALOGS, SCHEMAS, TABLES, COLUMNS, FUNCTIONS, SESSION or CREATE TABLE; In is the name after FROM or IN.
type Show struct {
	Pos    Pos
	What   string
	In     []Ident
	Like   Expr
	Escape Expr
}

// Use is USE [catalog.]schema.
type Use struct {
	Pos  Pos
	Name []Ident
}

// Set is SET [SESSION] name = value; Value nil is RESET.
type Set struct {
	Pos   Pos
	Name  []Ident
	Value Expr
}

func (*Query) statement()   {}
func (*Explain) statement() {}
func (*Show) statement()    {}
func (*Use) statement()     {}
func (*Set) statement()     {}

// At is where the query begins.
func (q *Query) At() Pos   { return q.Pos }
func (s *Explain) At() Pos { return s.Pos }
func (s *Show) At() Pos    { return s.Pos }
func (s *Use) At() Pos     { return s.Pos }
func (s *Set) At() Pos     { return s.Pos }
