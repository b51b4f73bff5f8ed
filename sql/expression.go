package sql

// Expr is an expression of the syntax tree.
type Expr interface {
	// At is where the expression begins.
	At() Pos
	expr()
}

// Ident is one name. Unquoted names compare without regard to case.
type Ident struct {
	Pos    Pos
	Name   string
	Quoted bool
}

// Name is a dotted name: a column with its qualifiers, perhaps followed by fields. What is what, the binder finds out.
type Name struct{ Parts []Ident }

// NumberKind tells how a number was written.
type NumberKind uint8

// The kinds of number: 1, 1.0 and 1e0.
const (
	Int NumberKind = iota
	Decimal
	Double
)

// Number is a numeric literal without sign, as written.
type Number struct {
	Pos  Pos
	Kind NumberKind
	Text string
}

// Text is a character literal.
type Text struct {
	Pos   Pos
	Value string
}

// Bytes is a binary literal, X'00ff'.
type Bytes struct {
	Pos   Pos
	Value string
}

// Bool is TRUE or FALSE.
type Bool struct {
	Pos   Pos
	Value bool
}

// Null is NULL.
type Null struct{ Pos Pos }

// Typed is a literal with a type in front: DATE '2024-01-01'.
type Typed struct {
	Pos   Pos
	Type  *Type
	Value string
}

// Interval is INTERVAL [-] 'text' from [TO to]. Units are upper case and singular. Amount is set, and Value not, for a
// bare number or an expression in parentheses.
type Interval struct {
	Pos      Pos
	Negative bool
	Value    string
	Amount   Expr
	From, To string
}

// Param is a parameter. Index counts from 0: in order of appearance for ?, the number less one for $n, and by first use
// for names.
type Param struct {
	Pos   Pos
	Index int
	Style ParamStyle
	Name  string
}

// ParamStyle tells how a parameter was written.
type ParamStyle uint8

// The styles ?, $1 and :name.
const (
	Question ParamStyle = iota
	Numbered
	Named
)

// Unary is -x or +x.
type Unary struct {
	Pos Pos
	Op  string
	X   Expr
}

// Binary is an arithmetic operator, ||, or a comparison. Pos is the operator's.
type Binary struct {
	Pos  Pos
	Op   string
	L, R Expr
}

// Logic is AND or OR over two or more operands.
type Logic struct {
	Or   bool
	Args []Expr
}

// Not is NOT x.
type Not struct {
	Pos Pos
	X   Expr
}

// Is is x IS [NOT] NULL, TRUE, FALSE or UNKNOWN.
type Is struct {
	X    Expr
	Not  bool
	What string
}

// IsDistinct is l IS [NOT] DISTINCT FROM r.
type IsDistinct struct {
	L, R Expr
	Not  bool
}

// Between is x [NOT] BETWEEN [SYMMETRIC] lo AND hi; SYMMETRIC takes the bounds in either order.
type Between struct {
	X, Lo, Hi Expr
	Not       bool
	Symmetric bool
}

// In is x [NOT] IN (list) or x [NOT] IN (query).
type In struct {
	Pos   Pos
	X     Expr
	List  []Expr
	Query *Query
	Not   bool
}

// Like is x [NOT] LIKE pattern [ESCAPE e]; Fold is ILIKE.
type Like struct {
	X, Pattern, Escape Expr
	Not, Fold          bool
}

// Exists is EXISTS (query).
type Exists struct {
	Pos   Pos
	Query *Query
}

// Quantified is x op ALL|ANY (query); SOME is ANY.
type Quantified struct {
	Pos   Pos
	Op    string
	X     Expr
	All   bool
	Query *Query
}

// Subquery is a query as a value.
type Subquery struct {
	Pos   Pos
	Query *Query
}

// When is a branch of a Case.
type When struct{ Cond, Then Expr }

// Case is CASE [operand] WHEN ... END.
type Case struct {
	Pos     Pos
	Operand Expr
	Whens   []When
	Else    Expr
}

// Cast is CAST(x AS type), TRY_CAST and x::type.
type Cast struct {
	Pos  Pos
	X    Expr
	Type *Type
	Try  bool
}

// Extract is EXTRACT(field FROM x); the field is upper case.
type Extract struct {
	Pos   Pos
	Field string
	X     Expr
}

// AtTimeZone is x AT TIME ZONE zone.
type AtTimeZone struct {
	Pos     Pos
	X, Zone Expr
}

// Current is CURRENT_DATE and its kin, with the precision if one was given, else -1. Name is upper case.
type Current struct {
	Pos       Pos
	Name      string
	Precision int
}

// Lambda is x -> body or (x, y) -> body.
type Lambda struct {
	Pos    Pos
	Params []Ident
	Body   Expr
}

// Subscript is x[index].
type Subscript struct {
	Pos      Pos
	X, Index Expr
}

// Field is (x).name, for an x that is not itself a name.
type Field struct {
	X    Expr
	Name Ident
}

// Array is ARRAY[...].
type Array struct {
	Pos   Pos
	Elems []Expr
}

// Row is ROW(...) or (a, b, ...). Names are set where fields were named: {'a': 1}.
type Row struct {
	Pos   Pos
	Elems []Expr
	Names []Ident
}

// MapLiteral is MAP {k: v, ...}.
type MapLiteral struct {
	Pos          Pos
	Keys, Values []Expr
}

// Call is a function call. The special forms of the standard (SUBSTRING(x FROM a), TRIM, POSITION, IF, COALESCE ...) arrive as
// plain calls. Star is count(*).
type Call struct {
	Name        []Ident
	Star        bool
	Distinct    bool
	Args        []Expr
	ArgNames    []Ident // set when any argument was written name => value; empty names elsewhere
	OrderBy     []OrderItem
	WithinGroup bool // OrderBy came in WITHIN GROUP (...)
	Filter      Expr
	Nulls       NullTreatment
	Over        *Window
	JSON        *JSONOptions
}

// JSONOptions are the clauses of JSON_VALUE, JSON_QUERY, JSON_EXISTS, JSON_OBJECT and JSON_ARRAY.
type JSONOptions struct {
	Returning        *Type
	Wrapper          string // WITHOUT, WITH CONDITIONAL, WITH UNCONDITIONAL
	Quotes           string // KEEP, OMIT
	OnEmpty, OnError string // NULL, ERROR, DEFAULT, EMPTY ARRAY, EMPTY OBJECT, TRUE, FALSE, UNKNOWN
	OnNull           string // of JSON_OBJECT and JSON_ARRAY: NULL, ABSENT
	UniqueKeys       bool   // of JSON_OBJECT
	Passing          []Passed
	EmptyDefault     Expr
	ErrorDefault     Expr
}

// Passed is a value of a variable of a JSON path.
type Passed struct {
	Expr Expr
	Name Ident
}

// NullTreatment is RESPECT or IGNORE NULLS.
type NullTreatment uint8

// The null treatments.
const (
	NullsUnsaid NullTreatment = iota
	RespectNulls
	IgnoreNulls
)

// Window is the specification after OVER or in a WINDOW clause; Ref names another.
type Window struct {
	Pos         Pos
	Ref         *Ident
	Bare        bool // OVER name, without parentheses
	PartitionBy []Expr
	OrderBy     []OrderItem
	Frame       *Frame
}

// Frame is a window frame. End is nil in the short form.
type Frame struct {
	Pos     Pos
	Unit    string // ROWS, RANGE, GROUPS
	Start   FrameBound
	End     *FrameBound
	Exclude string // "", CURRENT ROW, GROUP, TIES, NO OTHERS
}

// FrameBound is an end of a frame: UNBOUNDED PRECEDING, CURRENT ROW, n FOLLOWING...
type FrameBound struct {
	Kind   string // UNBOUNDED PRECEDING, PRECEDING, CURRENT ROW, FOLLOWING, UNBOUNDED FOLLOWING
	Offset Expr
}

// Star is * or t.*, with EXCLUDE (EXCEPT) and REPLACE.
type Star struct {
	Pos       Pos
	Qualifier []Ident
	Exclude   []Ident
	Replace   []SelectItem
}

// At of a name is the place of its first part.
func (x *Name) At() Pos       { return x.Parts[0].Pos }
func (x *Number) At() Pos     { return x.Pos }
func (x *Text) At() Pos       { return x.Pos }
func (x *Bytes) At() Pos      { return x.Pos }
func (x *Bool) At() Pos       { return x.Pos }
func (x *Null) At() Pos       { return x.Pos }
func (x *Typed) At() Pos      { return x.Pos }
func (x *Interval) At() Pos   { return x.Pos }
func (x *Param) At() Pos      { return x.Pos }
func (x *Unary) At() Pos      { return x.Pos }
func (x *Binary) At() Pos     { return x.L.At() }
func (x *Logic) At() Pos      { return x.Args[0].At() }
func (x *Not) At() Pos        { return x.Pos }
func (x *Is) At() Pos         { return x.X.At() }
func (x *IsDistinct) At() Pos { return x.L.At() }
func (x *Between) At() Pos    { return x.X.At() }
func (x *In) At() Pos         { return x.X.At() }
func (x *Like) At() Pos       { return x.X.At() }
func (x *Exists) At() Pos     { return x.Pos }
func (x *Quantified) At() Pos { return x.X.At() }
func (x *Subquery) At() Pos   { return x.Pos }
func (x *Case) At() Pos       { return x.Pos }
func (x *Cast) At() Pos       { return x.Pos }
func (x *Extract) At() Pos    { return x.Pos }
func (x *AtTimeZone) At() Pos { return x.X.At() }
func (x *Current) At() Pos    { return x.Pos }
func (x *Lambda) At() Pos     { return x.Pos }
func (x *Subscript) At() Pos  { return x.X.At() }
func (x *Field) At() Pos      { return x.X.At() }
func (x *Array) At() Pos      { return x.Pos }
func (x *Row) At() Pos        { return x.Pos }
func (x *MapLiteral) At() Pos { return x.Pos }
func (x *Call) At() Pos       { return x.Name[0].Pos }
func (x *Star) At() Pos       { return x.Pos }

func (*Name) expr()       {}
func (*Number) expr()     {}
func (*Text) expr()       {}
func (*Bytes) expr()      {}
func (*Bool) expr()       {}
func (*Null) expr()       {}
func (*Typed) expr()      {}
func (*Interval) expr()   {}
func (*Param) expr()      {}
func (*Unary) expr()      {}
func (*Binary) expr()     {}
func (*Logic) expr()      {}
func (*Not) expr()        {}
func (*Is) expr()         {}
func (*IsDistinct) expr() {}
func (*Between) expr()    {}
func (*In) expr()         {}
func (*Like) expr()       {}
func (*Exists) expr()     {}
func (*Quantified) expr() {}
func (*Subquery) expr()   {}
func (*Case) expr()       {}
func (*Cast) expr()       {}
func (*Extract) expr()    {}
func (*AtTimeZone) expr() {}
func (*Current) expr()    {}
func (*Lambda) expr()     {}
func (*Subscript) expr()  {}
func (*Field) expr()      {}
func (*Array) expr()      {}
func (*Row) expr()        {}
func (*MapLiteral) expr() {}
func (*Call) expr()       {}
func (*Star) expr()       {}

// Type is a type as written: bare name in lower case with its parameters. Names of Trino, Spark and DuckDB are kept as
// they are; the binder knows what they mean.
type Type struct {
	Pos    Pos
	Name   string // "timestamp with time zone", "double", "array", "row", ...
	Params []int  // decimal(10,2), varchar(5), timestamp(6)
	// Elems are the element types of array and map, and the field types of row.
	Elems []*Type
	// Fields are the names of a row's fields, as many as Elems; an empty name is an anonymous field.
	Fields []Ident
}
