package plan

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// binder gives names and types to a syntax tree and makes the logical plan of it.
type binder struct {
	ctx     context.Context
	env     *Environment
	text    string
	cols    columns
	places  map[int]sql.Pos // where a column was last named, for messages
	scalars []scalar
	// estimates are the rows expected of the nodes of the finished plan, for EXPLAIN.
	estimates map[Node]float64
	hints     []vector.Type
	pinned    map[string]int64
	tables    map[string]*catalog.Table
	files     map[string]*catalog.Table // lone ones by path
	lambdas   int
	spools    int
	views     []string // those being bound, by name
	ctes      []*cte
	// wanted are the texts that the WHERE of the SELECT being bound allows for a column; information_schema reads no more.
	wanted map[string][]string
}

// scalar is an uncorrelated subquery whose value is computed once, before the statement's main plan.
type scalar struct {
	id  int
	rel rel
	col int
}

// errorf makes an error that points at p.
func (b *binder) errorf(p sql.Pos, kind fault.Kind, id, format string, args ...any) error {
	return sql.Errorf(b.text, p, kind, id, format, args...)
}

// place points an error at p, unless it points somewhere already.
func (b *binder) place(p sql.Pos, err error) error {
	var e *fault.Error
	if err == nil || !errors.As(err, &e) || e.Line > 0 || e.Kind == fault.Canceled {
		return err
	}
	line, col := p.Place(b.text)
	c := e.At(line, col)
	c.Text += "\n" + p.Excerpt(b.text)
	return c
}

func (b *binder) unsupported(p sql.Pos, format string, args ...any) error {
	return b.errorf(p, fault.Unsupported, "NOT_SUPPORTED", format, args...)
}

// exprBinder binds expressions at one place of a query.
type exprBinder struct {
	b     *binder
	scope *scope
	// rel is the plan whose rows the expression sees; correlated subqueries are joined to it. nil refuses them.
	rel *rel
	// group is set where aggregates are allowed.
	group *grouping
	// windows is set where window functions are allowed.
	windows *windows
	// aliases are the select items that GROUP BY, HAVING, QUALIFY and ORDER BY may name.
	aliases map[string]sql.Expr
	// outputs are columns that ORDER BY may name, before aliases and input columns.
	outputs map[string]outputCol
	lambda  []expr.LambdaParam
	where   string // the clause, for messages
}

// outputCol is an output column of a query by name; ambiguous when several have it.
type outputCol struct {
	e         expr.Expr
	ambiguous bool
}

// value binds an expression whose subqueries are values.
func (x *exprBinder) bind(e sql.Expr) (expr.Expr, error) {
	r, err := x.bind1(e)
	if err != nil {
		return nil, x.b.place(e.At(), err)
	}
	return r, nil
}

func (x *exprBinder) all(es []sql.Expr) ([]expr.Expr, error) {
	out := make([]expr.Expr, len(es))
	for i, e := range es {
		r, err := x.bind(e)
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// condition binds a predicate.
func (x *exprBinder) condition(e sql.Expr) (expr.Expr, error) {
	c, err := x.bind(e)
	if err != nil {
		return nil, err
	}
	if k := c.Type().Kind; k != vector.Boolean && k != vector.Null {
		return nil, x.b.errorf(e.At(), fault.Invalid, "TYPE_MISMATCH", "%s must be a boolean; it is %s", x.where, c.Type())
	}
	c, err = expr.Coerce(c, vector.Of(vector.Boolean))
	return c, x.b.place(e.At(), err)
}

var compareOps = map[string]expr.CompareOp{"=": expr.Eq, "<>": expr.Ne, "<": expr.Lt, "<=": expr.Le, ">": expr.Gt, ">=": expr.Ge}

func (x *exprBinder) bind1(e sql.Expr) (expr.Expr, error) {
	b := x.b
	switch e := e.(type) {
	case *sql.Name:
		return x.name(e)
	case *sql.Number:
		return numberLiteral(e.Kind, e.Text)
	case *sql.Text:
		l := text(e.Value)
		l.Typ.Precision = utf8.RuneCountInString(e.Value)
		return l, nil
	case *sql.Bytes:
		return &expr.Literal{Value: e.Value, Typ: vector.Of(vector.Varbinary)}, nil
	case *sql.Bool:
		return &expr.Literal{Value: e.Value, Typ: vector.Of(vector.Boolean)}, nil
	case *sql.Null:
		return &expr.Literal{Typ: vector.Of(vector.Null)}, nil
	case *sql.Typed:
		return b.typedLiteral(e)
	case *sql.Interval:
		return x.interval(e)
	case *sql.Param:
		p := &expr.Param{Index: e.Index}
		if e.Index < len(b.hints) && b.hints[e.Index].Kind != vector.Varchar {
			p.Typ = b.hints[e.Index]
		}
		return p, nil
	case *sql.Unary:
		if n, ok := e.X.(*sql.Number); ok && e.Op == "-" {
			return numberLiteral(n.Kind, "-"+n.Text)
		}
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		if e.Op == "+" {
			if !v.Type().Numeric() && v.Type().Kind != vector.Null {
				return nil, b.errorf(e.Pos, fault.Invalid, "TYPE_MISMATCH", "+ does not take %s", v.Type())
			}
			return v, nil
		}
		return expr.NewCall("neg", []expr.Expr{v})
	case *sql.Binary:
		l, err := x.bind(e.L)
		if err != nil {
			return nil, err
		}
		r, err := x.bind(e.R)
		if err != nil {
			return nil, err
		}
		var out expr.Expr
		if op, ok := compareOps[e.Op]; ok {
			out, err = expr.NewCompare(op, l, r)
		} else {
			if untyped(l) && untyped(r) && e.Op != "||" { // ? + ? says nothing about its type
				l, r = &expr.Param{Index: l.(*expr.Param).Index, Typ: bigint}, &expr.Param{Index: r.(*expr.Param).Index, Typ: bigint}
			}
			out, err = expr.NewCall(e.Op, []expr.Expr{l, r})
		}
		return out, b.place(e.Pos, err)
	case *sql.Logic:
		args := make([]expr.Expr, len(e.Args))
		for i, a := range e.Args {
			y := *x
			y.where = "an operand of AND or OR"
			v, err := y.condition(a)
			if err != nil {
				return nil, err
			}
			args[i] = v
		}
		if e.Or {
			return expr.NewOr(args...)
		}
		return expr.NewAnd(args...)
	case *sql.Not:
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		return expr.NewNot(v)
	case *sql.Is:
		return x.is(e)
	case *sql.IsDistinct:
		l, err := x.bind(e.L)
		if err != nil {
			return nil, err
		}
		r, err := x.bind(e.R)
		if err != nil {
			return nil, err
		}
		op := expr.Distinct
		if e.Not {
			op = expr.NotDistinct
		}
		return expr.NewCompare(op, l, r)
	case *sql.Between:
		vs, err := x.all([]sql.Expr{e.X, e.Lo, e.Hi})
		if err != nil {
			return nil, err
		}
		in, err := expr.NewBetween(vs[0], vs[1], vs[2], e.Not && !e.Symmetric)
		if err != nil || !e.Symmetric {
			return in, err
		}
		turned, err := expr.NewBetween(vs[0], vs[2], vs[1], false)
		if err != nil {
			return nil, err
		}
		if in, err = expr.NewOr(in, turned); err == nil && e.Not {
			return expr.NewNot(in)
		}
		return in, err
	case *sql.In:
		if e.Query != nil {
			return x.inQuery(e)
		}
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		list, err := x.all(e.List)
		if err != nil {
			return nil, err
		}
		return expr.NewIn(v, list, e.Not)
	case *sql.Like:
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		p, err := x.bind(e.Pattern)
		if err != nil {
			return nil, err
		}
		var esc expr.Expr
		if e.Escape != nil {
			if esc, err = x.bind(e.Escape); err != nil {
				return nil, err
			}
		}
		return expr.NewLike(v, p, esc, e.Not, e.Fold)
	case *sql.Exists:
		return x.exists(e)
	case *sql.Quantified:
		return x.quantified(e)
	case *sql.Subquery:
		return x.scalarQuery(e)
	case *sql.Case:
		return x.caseExpr(e)
	case *sql.Cast:
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		t, err := b.typeOf(e.Type)
		if err != nil {
			var f *fault.Error
			if errors.As(err, &f) && f.ID == "TYPE_NOT_FOUND" { // Trino's id for casts
				f.ID = "TYPE_MISMATCH"
			}
			return nil, err
		}
		return expr.NewCast(v, t, e.Try)
	case *sql.Extract:
		return x.extract(e)
	case *sql.AtTimeZone:
		vs, err := x.all([]sql.Expr{e.X, e.Zone})
		if err != nil {
			return nil, err
		}
		return expr.NewCall("at_timezone", vs)
	case *sql.Current:
		return currentValue(e)
	case *sql.Subscript:
		vs, err := x.all([]sql.Expr{e.X, e.Index})
		if err != nil {
			return nil, err
		}
		return expr.NewSubscript(vs[0], vs[1])
	case *sql.Field:
		v, err := x.bind(e.X)
		if err != nil {
			return nil, err
		}
		f, err := expr.NewField(v, e.Name.Name)
		return f, b.place(e.Name.Pos, err)
	case *sql.Array:
		vs, err := x.all(e.Elems)
		if err != nil {
			return nil, err
		}
		return expr.NewCall("array", vs)
	case *sql.Row:
		return x.row(e)
	case *sql.MapLiteral:
		ks, err := x.all(e.Keys)
		if err != nil {
			return nil, err
		}
		vs, err := x.all(e.Values)
		if err != nil {
			return nil, err
		}
		k, err := expr.NewCall("array", ks)
		if err != nil {
			return nil, err
		}
		v, err := expr.NewCall("array", vs)
		if err != nil {
			return nil, err
		}
		return expr.NewCall("map", []expr.Expr{k, v})
	case *sql.Call:
		return x.call(e)
	case *sql.Lambda:
		return nil, b.errorf(e.Pos, fault.Invalid, "TYPE_MISMATCH", "a lambda can only be an argument of a function that takes one")
	case *sql.Star:
		return nil, b.errorf(e.Pos, fault.Invalid, "SYNTAX_ERROR", "* is allowed only in the SELECT list and in count(*)")
	}
	return nil, b.unsupported(e.At(), "this expression is not supported")
}

// name resolves a name: lambda parameters, output columns where ORDER BY looks at them first, columns, aliases.
func (x *exprBinder) name(n *sql.Name) (expr.Expr, error) {
	if len(x.lambda) > 0 {
		for i := len(x.lambda) - 1; i >= 0; i-- {
			p := x.lambda[i]
			if sameName(n.Parts[0], p.Name, false) {
				var e expr.Expr = &expr.LambdaVar{ID: p.ID, Name: p.Name, Typ: p.Typ}
				for _, f := range n.Parts[1:] {
					next, err := expr.NewField(e, f.Name)
					if err != nil {
						return nil, x.b.place(f.Pos, err)
					}
					e = next
				}
				return e, nil
			}
		}
	}
	if len(n.Parts) == 1 && x.outputs != nil {
		if o, ok := x.outputs[fold(n.Parts[0].Name)]; ok {
			if o.ambiguous {
				return nil, x.b.errorf(n.At(), fault.Invalid, "AMBIGUOUS_NAME", "column %q is ambiguous: several output columns have the name", n.Parts[0].Name)
			}
			return o.e, nil
		}
	}
	e, err := x.column(n)
	if err != nil && len(n.Parts) == 1 && x.aliases != nil && isNotFound(err) {
		if a, ok := x.aliases[fold(n.Parts[0].Name)]; ok && a != nil {
			y := *x
			y.aliases = nil // an alias cannot name another alias
			return y.bind(a)
		}
	}
	return e, err
}

func isNotFound(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.ID == "COLUMN_NOT_FOUND"
}

// untyped reports whether e is a parameter whose type is still to be found.
func untyped(e expr.Expr) bool {
	p, ok := e.(*expr.Param)
	return ok && p.Typ.Kind == vector.Null
}

func text(s string) *expr.Literal { return &expr.Literal{Value: s, Typ: vector.Of(vector.Varchar)} }

func (x *exprBinder) is(e *sql.Is) (expr.Expr, error) {
	v, err := x.bind(e.X)
	if err != nil {
		return nil, err
	}
	if e.What == "NULL" {
		return &expr.IsNull{Arg: v, Negated: e.Not}, nil
	}
	y := *x
	y.where = "the operand of IS " + e.What
	c, err := expr.Coerce(v, vector.Of(vector.Boolean))
	if err != nil {
		return nil, err
	}
	if e.What == "UNKNOWN" {
		return &expr.IsNull{Arg: c, Negated: e.Not}, nil
	}
	op := expr.NotDistinct
	if e.Not {
		op = expr.Distinct
	}
	return expr.NewCompare(op, c, &expr.Literal{Value: e.What == "TRUE", Typ: vector.Of(vector.Boolean)})
}

func (x *exprBinder) caseExpr(e *sql.Case) (expr.Expr, error) {
	var operand expr.Expr
	var err error
	if e.Operand != nil {
		if operand, err = x.bind(e.Operand); err != nil {
			return nil, err
		}
	}
	var whens []expr.When
	for _, w := range e.Whens {
		c, err := x.bind(w.Cond)
		if err != nil {
			return nil, err
		}
		if operand != nil {
			if c, err = expr.NewCompare(expr.Eq, operand, c); err != nil {
				return nil, x.b.place(w.Cond.At(), err)
			}
		}
		t, err := x.bind(w.Then)
		if err != nil {
			return nil, err
		}
		whens = append(whens, expr.When{Cond: c, Then: t})
	}
	var els expr.Expr
	if e.Else != nil {
		if els, err = x.bind(e.Else); err != nil {
			return nil, err
		}
	}
	return expr.NewCase(whens, els)
}

func (x *exprBinder) row(e *sql.Row) (expr.Expr, error) {
	vs, err := x.all(e.Elems)
	if err != nil {
		return nil, err
	}
	r, err := expr.NewCall("row", vs)
	if err != nil || e.Names == nil {
		return r, err
	}
	t := vector.Type{Kind: vector.Row}
	for i, f := range r.Type().Fields {
		f.Name = e.Names[i].Name
		t.Fields = append(t.Fields, f)
	}
	return expr.NewCast(r, t, false)
}

// extractFunctions maps the fields of EXTRACT to the functions that give them.
var extractFunctions = map[string]string{
	"YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "week", "DAY": "day", "DAY_OF_MONTH": "day", "DAY_OF_WEEK": "day_of_week", "DOW": "day_of_week",
	"DAY_OF_YEAR": "day_of_year", "DOY": "day_of_year", "YEAR_OF_WEEK": "year_of_week", "YOW": "year_of_week", "HOUR": "hour", "MINUTE": "minute",
	"SECOND": "second", "MILLISECOND": "millisecond", "TIMEZONE_HOUR": "timezone_hour", "TIMEZONE_MINUTE": "timezone_minute", "EPOCH": "to_unixtime",
}

func (x *exprBinder) extract(e *sql.Extract) (expr.Expr, error) {
	fn := extractFunctions[e.Field]
	if fn == "" {
		var names []string
		for n := range extractFunctions {
			names = append(names, n)
		}
		hint := ""
		if n := sql.Nearest(e.Field, names); n != "" {
			hint = "; did you mean " + n + "?"
		}
		return nil, x.b.errorf(e.Pos, fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "EXTRACT knows no field %s%s", e.Field, hint)
	}
	v, err := x.bind(e.X)
	if err != nil {
		return nil, err
	}
	switch fn {
	case "hour", "minute", "second", "millisecond":
		if v.Type().Kind == vector.Date {
			return nil, x.b.errorf(e.X.At(), fault.Invalid, "TYPE_MISMATCH", "a date has no %s", fn)
		}
	}
	return expr.NewCall(fn, []expr.Expr{v})
}

func currentValue(e *sql.Current) (expr.Expr, error) {
	var args []expr.Expr
	if e.Precision >= 0 {
		args = []expr.Expr{&expr.Literal{Value: int32(e.Precision), Typ: vector.Of(vector.Integer)}}
	}
	if e.Name == "CURRENT_ROLE" || e.Name == "CURRENT_PATH" {
		return &expr.Literal{Typ: vector.Of(vector.Varchar)}, nil
	}
	return expr.NewCall(fold(e.Name), args)
}
