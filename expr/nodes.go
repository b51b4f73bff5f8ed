package expr

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/skua-db/skua/vector"
)

// String spells the operator as SQL does.
func (o CompareOp) String() string {
	return [...]string{"=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}[o]
}

// Flip gives the operator that holds with the operands exchanged.
func (o CompareOp) Flip() CompareOp {
	switch o {
	case Lt:
		return Gt
	case Le:
		return Ge
	case Gt:
		return Lt
	case Ge:
		return Le
	}
	return o
}

var boolean = vector.Of(vector.Boolean)

func anyNullable(es []Expr) bool {
	for _, e := range es {
		if e.Nullable() {
			return true
		}
	}
	return false
}

func join(es []Expr, sep string) string {
	var b strings.Builder
	for i, e := range es {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(e.String())
	}
	return b.String()
}

func (e *Column) Type() vector.Type { return e.Typ }
func (e *Column) Nullable() bool    { return e.Null }
func (e *Column) Children() []Expr  { return nil }
func (e *Column) With([]Expr) Expr  { return e }
func (e *Column) String() string {
	if e.Name != "" {
		return e.Name
	}
	return "#" + strconv.Itoa(e.Index)
}

func (e *Literal) Type() vector.Type { return e.Typ }
func (e *Literal) Nullable() bool    { return e.Value == nil }
func (e *Literal) Children() []Expr  { return nil }
func (e *Literal) With([]Expr) Expr  { return e }
func (e *Literal) String() string    { return literalText(e.Value, e.Typ) }

// literalText spells a constant so that SQL reads it back with the same type where SQL has a literal for it.
func literalText(v vector.Value, t vector.Type) string {
	if v == nil {
		return "NULL"
	}
	switch t.Kind {
	case vector.Boolean, vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt:
		return fmt.Sprint(v)
	case vector.Double:
		if f := v.(float64); math.IsNaN(f) || math.IsInf(f, 0) {
			return "DOUBLE '" + FormatValue(v, t) + "'"
		}
		return FormatValue(v, t)
	case vector.Decimal:
		return FormatValue(v, t)
	case vector.Varchar:
		return "'" + strings.ReplaceAll(v.(string), "'", "''") + "'"
	case vector.Varbinary, vector.Fixed, vector.Geometry, vector.Geography:
		return "X'" + hex.EncodeToString([]byte(v.(string))) + "'"
	case vector.Date:
		return "DATE '" + FormatValue(v, t) + "'"
	case vector.Time:
		return "TIME '" + FormatValue(v, t) + "'"
	case vector.Timestamp, vector.TimestampTZ:
		return "TIMESTAMP '" + FormatValue(v, t) + "'"
	case vector.IntervalDay, vector.IntervalYear:
		return "INTERVAL '" + FormatValue(v, t) + "'"
	case vector.Real:
		return "REAL '" + FormatValue(v, t) + "'"
	case vector.UUID:
		return "UUID '" + FormatValue(v, t) + "'"
	}
	return FormatValue(v, t)
}

func (e *Param) Type() vector.Type { return e.Typ }
func (e *Param) Nullable() bool    { return true }
func (e *Param) Children() []Expr  { return nil }
func (e *Param) With([]Expr) Expr  { return e }
func (e *Param) String() string    { return "$" + strconv.Itoa(e.Index+1) }

func (e *Compare) Type() vector.Type { return boolean }
func (e *Compare) Nullable() bool {
	if e.Op == Distinct || e.Op == NotDistinct {
		return false
	}
	return e.L.Nullable() || e.R.Nullable() || nested(e.L.Type())
}
func (e *Compare) Children() []Expr   { return []Expr{e.L, e.R} }
func (e *Compare) With(c []Expr) Expr { return &Compare{Op: e.Op, L: c[0], R: c[1]} }
func (e *Compare) String() string {
	return "(" + e.L.String() + " " + e.Op.String() + " " + e.R.String() + ")"
}

func (e *And) Type() vector.Type  { return boolean }
func (e *And) Nullable() bool     { return anyNullable(e.Args) }
func (e *And) Children() []Expr   { return e.Args }
func (e *And) With(c []Expr) Expr { return &And{Args: c} }
func (e *And) String() string     { return "(" + join(e.Args, " AND ") + ")" }

func (e *Or) Type() vector.Type  { return boolean }
func (e *Or) Nullable() bool     { return anyNullable(e.Args) }
func (e *Or) Children() []Expr   { return e.Args }
func (e *Or) With(c []Expr) Expr { return &Or{Args: c} }
func (e *Or) String() string     { return "(" + join(e.Args, " OR ") + ")" }

func (e *Not) Type() vector.Type  { return boolean }
func (e *Not) Nullable() bool     { return e.Arg.Nullable() }
func (e *Not) Children() []Expr   { return []Expr{e.Arg} }
func (e *Not) With(c []Expr) Expr { return &Not{Arg: c[0]} }
func (e *Not) String() string     { return "(NOT " + e.Arg.String() + ")" }

func (e *IsNull) Type() vector.Type  { return boolean }
func (e *IsNull) Nullable() bool     { return false }
func (e *IsNull) Children() []Expr   { return []Expr{e.Arg} }
func (e *IsNull) With(c []Expr) Expr { return &IsNull{Arg: c[0], Negated: e.Negated} }
func (e *IsNull) String() string {
	if e.Negated {
		return "(" + e.Arg.String() + " IS NOT NULL)"
	}
	return "(" + e.Arg.String() + " IS NULL)"
}

func (e *In) Type() vector.Type { return boolean }
func (e *In) Nullable() bool {
	return e.Arg.Nullable() || anyNullable(e.List) || nested(e.Arg.Type())
}
func (e *In) Children() []Expr { return append([]Expr{e.Arg}, e.List...) }
func (e *In) With(c []Expr) Expr {
	return &In{Arg: c[0], List: c[1:len(c):len(c)], Negated: e.Negated}
}
func (e *In) String() string {
	op := " IN ("
	if e.Negated {
		op = " NOT IN ("
	}
	return "(" + e.Arg.String() + op + join(e.List, ", ") + "))"
}

func (e *Like) Type() vector.Type { return boolean }
func (e *Like) Nullable() bool    { return e.Arg.Nullable() || e.Pattern.Nullable() }
func (e *Like) Children() []Expr  { return []Expr{e.Arg, e.Pattern} }
func (e *Like) With(c []Expr) Expr {
	n := *e
	n.Arg, n.Pattern = c[0], c[1]
	return &n
}
func (e *Like) String() string {
	op := " LIKE "
	if e.CaseInsensitive {
		op = " ILIKE "
	}
	if e.Negated {
		op = " NOT" + op
	}
	s := "(" + e.Arg.String() + op + e.Pattern.String()
	if e.Escape != 0 {
		s += " ESCAPE '" + string(e.Escape) + "'"
	}
	return s + ")"
}

func (e *Cast) Type() vector.Type  { return e.To }
func (e *Cast) Nullable() bool     { return e.Try || e.Arg.Nullable() || e.Arg.Type().Kind == vector.JSON }
func (e *Cast) Children() []Expr   { return []Expr{e.Arg} }
func (e *Cast) With(c []Expr) Expr { return &Cast{Arg: c[0], To: e.To, Try: e.Try} }
func (e *Cast) String() string {
	f := "CAST("
	if e.Try {
		f = "TRY_CAST("
	}
	return f + e.Arg.String() + " AS " + e.To.String() + ")"
}

func (e *Case) Type() vector.Type { return e.Typ }
func (e *Case) Nullable() bool {
	if e.Else == nil || e.Else.Nullable() {
		return true
	}
	for _, w := range e.Whens {
		if w.Then.Nullable() {
			return true
		}
	}
	return false
}

// Children of a Case are condition and result of each branch in turn, then Else where there is one.
func (e *Case) Children() []Expr {
	var c []Expr
	for _, w := range e.Whens {
		c = append(c, w.Cond, w.Then)
	}
	if e.Else != nil {
		c = append(c, e.Else)
	}
	return c
}
func (e *Case) With(c []Expr) Expr {
	n := &Case{Typ: e.Typ}
	for i := range e.Whens {
		n.Whens = append(n.Whens, When{c[2*i], c[2*i+1]})
	}
	if e.Else != nil {
		n.Else = c[len(c)-1]
	}
	return n
}
func (e *Case) String() string {
	var b strings.Builder
	b.WriteString("CASE")
	for _, w := range e.Whens {
		b.WriteString(" WHEN " + w.Cond.String() + " THEN " + w.Then.String())
	}
	if e.Else != nil {
		b.WriteString(" ELSE " + e.Else.String())
	}
	return b.String() + " END"
}

func (e *Coalesce) Type() vector.Type { return e.Typ }
func (e *Coalesce) Nullable() bool {
	for _, a := range e.Args {
		if !a.Nullable() {
			return false
		}
	}
	return true
}
func (e *Coalesce) Children() []Expr   { return e.Args }
func (e *Coalesce) With(c []Expr) Expr { return &Coalesce{Args: c, Typ: e.Typ} }
func (e *Coalesce) String() string     { return "coalesce(" + join(e.Args, ", ") + ")" }

func (e *TryExpr) Type() vector.Type  { return e.Arg.Type() }
func (e *TryExpr) Nullable() bool     { return true }
func (e *TryExpr) Children() []Expr   { return []Expr{e.Arg} }
func (e *TryExpr) With(c []Expr) Expr { return &TryExpr{Arg: c[0]} }
func (e *TryExpr) String() string     { return "try(" + e.Arg.String() + ")" }

func (e *FieldAccess) Type() vector.Type { return e.Arg.Type().Fields[e.Index].Type }
func (e *FieldAccess) Nullable() bool    { return true }
func (e *FieldAccess) Children() []Expr  { return []Expr{e.Arg} }
func (e *FieldAccess) With(c []Expr) Expr {
	return &FieldAccess{Arg: c[0], Index: e.Index, Name: e.Name}
}
func (e *FieldAccess) String() string {
	if e.Name == "" {
		return e.Arg.String() + "[" + strconv.Itoa(e.Index+1) + "]"
	}
	return e.Arg.String() + "." + e.Name
}

func (e *Call) Type() vector.Type { return e.Typ }
func (e *Call) Nullable() bool    { return e.Null }
func (e *Call) Children() []Expr  { return e.Args }
func (e *Call) With(c []Expr) Expr {
	n := *e
	n.Args = c
	return &n
}
func (e *Call) String() string {
	switch e.Fn.Name {
	case "+", "-", "*", "/", "%", "||":
		if len(e.Args) == 2 {
			return "(" + e.Args[0].String() + " " + e.Fn.Name + " " + e.Args[1].String() + ")"
		}
	case "neg":
		return "(-" + e.Args[0].String() + ")"
	case "subscript":
		return e.Args[0].String() + "[" + e.Args[1].String() + "]"
	}
	return e.Fn.Name + "(" + join(e.Args, ", ") + ")"
}

func (e *Lambda) Type() vector.Type  { return e.Body.Type() }
func (e *Lambda) Nullable() bool     { return e.Body.Nullable() }
func (e *Lambda) Children() []Expr   { return []Expr{e.Body} }
func (e *Lambda) With(c []Expr) Expr { return &Lambda{Params: e.Params, Body: c[0]} }
func (e *Lambda) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, p := range e.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
	}
	return b.String() + ") -> " + e.Body.String()
}

func (e *LambdaVar) Type() vector.Type { return e.Typ }
func (e *LambdaVar) Nullable() bool    { return true }
func (e *LambdaVar) Children() []Expr  { return nil }
func (e *LambdaVar) With([]Expr) Expr  { return e }
func (e *LambdaVar) String() string    { return e.Name }

func (e *Subquery) Type() vector.Type { return e.Typ }
func (e *Subquery) Nullable() bool    { return true }
func (e *Subquery) Children() []Expr  { return nil }
func (e *Subquery) With([]Expr) Expr  { return e }
func (e *Subquery) String() string    { return "subquery$" + strconv.Itoa(e.ID) }

func (k SortKey) String() string {
	s := k.Expr.String()
	if k.Desc {
		s += " DESC"
	}
	if k.NullsFirst {
		s += " NULLS FIRST"
	}
	return s
}

// Type is the type of the aggregate's result.
func (a *Aggregate) Type() vector.Type { return a.Typ }

// Nullable reports whether the result can be null.
func (a *Aggregate) Nullable() bool { return a.Null }

// Children are the arguments, then the filter where there is one, then the sort keys.
func (a *Aggregate) Children() []Expr {
	c := append([]Expr(nil), a.Args...)
	if a.Filter != nil {
		c = append(c, a.Filter)
	}
	for _, k := range a.OrderBy {
		c = append(c, k.Expr)
	}
	return c
}

// With returns a copy with other operands, as many as Children gave.
func (a *Aggregate) With(c []Expr) *Aggregate {
	n := *a
	n.Args, c = c[:len(a.Args):len(a.Args)], c[len(a.Args):]
	if a.Filter != nil {
		n.Filter, c = c[0], c[1:]
	}
	n.OrderBy = nil
	for i, k := range a.OrderBy {
		k.Expr = c[i]
		n.OrderBy = append(n.OrderBy, k)
	}
	return &n
}

// String renders the call as EXPLAIN shows it.
func (a *Aggregate) String() string {
	var b strings.Builder
	b.WriteString(a.Fn.Name + "(")
	if a.Distinct {
		b.WriteString("DISTINCT ")
	}
	if len(a.Args) == 0 && a.Fn.Name == "count" {
		b.WriteByte('*')
	}
	b.WriteString(join(a.Args, ", "))
	for _, l := range a.Lambdas {
		b.WriteString(", " + l.String())
	}
	for i, k := range a.OrderBy {
		if i == 0 {
			b.WriteString(" ORDER BY ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(k.String())
	}
	b.WriteByte(')')
	if a.Filter != nil {
		b.WriteString(" FILTER (WHERE " + a.Filter.String() + ")")
	}
	return b.String()
}

// Type is the type of the window function's result.
func (w *WindowCall) Type() vector.Type { return w.Typ }

// Children are the operands: of the aggregate where there is one, else the arguments; then the frame's offsets.
func (w *WindowCall) Children() []Expr {
	var c []Expr
	if w.Agg != nil {
		c = w.Agg.Children()
	} else {
		c = append(c, w.Args...)
	}
	if w.Frame.Start.Offset != nil {
		c = append(c, w.Frame.Start.Offset)
	}
	if w.Frame.End.Offset != nil {
		c = append(c, w.Frame.End.Offset)
	}
	return c
}

// With returns a copy with other operands, as many as Children gave.
func (w *WindowCall) With(c []Expr) *WindowCall {
	n := *w
	if w.Agg != nil {
		k := len(w.Agg.Children())
		n.Agg, c = w.Agg.With(c[:k]), c[k:]
		n.Args = n.Agg.Args
	} else {
		n.Args, c = c[:len(w.Args):len(w.Args)], c[len(w.Args):]
	}
	if w.Frame.Start.Offset != nil {
		n.Frame.Start.Offset, c = c[0], c[1:]
	}
	if w.Frame.End.Offset != nil {
		n.Frame.End.Offset = c[0]
	}
	return &n
}

// String renders the call as EXPLAIN shows it.
func (w *WindowCall) String() string {
	if w.Agg != nil {
		return w.Agg.String()
	}
	return w.Name + "(" + join(w.Args, ", ") + ")"
}

func nested(t vector.Type) bool { return t.Physical() == vector.PList || t.Physical() == vector.PRow }
