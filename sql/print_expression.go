package sql

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// printer writes a tree as text that parses to the same tree.
type printer struct{ b strings.Builder }

func (p *printer) s(parts ...string) {
	for _, x := range parts {
		p.b.WriteString(x)
	}
}

// String writes an expression as SQL.
func String(x Expr) string {
	var p printer
	p.expr(x)
	return p.b.String()
}

// Quote writes s as a quoted name.
func Quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// QuoteText writes s as a text literal.
func QuoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (p *printer) ident(id Ident) {
	if id.Quoted {
		p.s(Quote(id.Name))
	} else {
		p.s(id.Name)
	}
}

func (p *printer) name(parts []Ident) {
	for i, id := range parts {
		if i > 0 {
			p.s(".")
		}
		p.ident(id)
	}
}

func (p *printer) idents(ids []Ident) {
	p.s("(")
	for i, id := range ids {
		if i > 0 {
			p.s(", ")
		}
		p.ident(id)
	}
	p.s(")")
}

func (p *printer) list(xs []Expr) {
	for i, x := range xs {
		if i > 0 {
			p.s(", ")
		}
		p.expr(x)
	}
}

// strength is how strongly the outermost operator of x binds.
func strength(x Expr) int {
	switch x := x.(type) {
	case *Logic:
		if x.Or {
			return precOr
		}
		return precAnd
	case *Not:
		return precNot
	case *Is, *IsDistinct, *Between, *In, *Like, *Quantified:
		return precCompare
	case *Binary:
		switch x.Op {
		case "+", "-":
			return precAdd
		case "*", "/", "%":
			return precMul
		case "||":
			return precConcat
		}
		return precCompare
	case *Unary:
		return precUnary
	case *AtTimeZone:
		return precZone
	case *Subscript, *Field:
		return precPostfix
	case *Lambda, *Star:
		return 0
	}
	return precPrimary
}

// sub writes an operand that must bind at least as strongly as min.
func (p *printer) sub(x Expr, min int) {
	if strength(x) < min {
		p.s("(")
		p.expr(x)
		p.s(")")
		return
	}
	p.expr(x)
}

func not(b bool) string {
	if b {
		return " NOT"
	}
	return ""
}

func (p *printer) expr(x Expr) {
	switch x := x.(type) {
	case *Name:
		p.name(x.Parts)
	case *Number:
		p.s(x.Text)
	case *Text:
		p.s(QuoteText(x.Value))
	case *Bytes:
		p.s("X'", hex.EncodeToString([]byte(x.Value)), "'")
	case *Bool:
		p.s(strings.ToUpper(strconv.FormatBool(x.Value)))
	case *Null:
		p.s("NULL")
	case *Typed:
		p.typ(x.Type)
		p.s(" ", QuoteText(x.Value))
	case *Interval:
		p.s("INTERVAL ")
		if x.Negative {
			p.s("-")
		}
		if x.Amount != nil {
			switch x.Amount.(type) {
			case *Number, *Param:
				p.expr(x.Amount)
			default:
				p.s("(")
				p.expr(x.Amount)
				p.s(")")
			}
		} else {
			p.s(QuoteText(x.Value))
		}
		if x.From != "" {
			p.s(" ", x.From)
		}
		if x.To != "" {
			p.s(" TO ", x.To)
		}
	case *Param:
		switch x.Style {
		case Question:
			p.s("?")
		case Numbered:
			p.s("$", strconv.Itoa(x.Index+1))
		case Named:
			p.s(":", x.Name)
		}
	case *Unary:
		p.s(x.Op)
		if u, ok := x.X.(*Unary); ok && u.Op == x.Op {
			p.s(" ") // "--" would begin a comment
		}
		p.sub(x.X, precUnary)
	case *Binary:
		s := strength(x)
		p.sub(x.L, s)
		p.s(" ", x.Op, " ")
		p.sub(x.R, s+1)
	case *Logic:
		s, word := precAnd, " AND "
		if x.Or {
			s, word = precOr, " OR "
		}
		for i, a := range x.Args {
			if i > 0 {
				p.s(word)
			}
			p.sub(a, s+1)
		}
	case *Not:
		p.s("NOT ")
		p.sub(x.X, precNot)
	case *Is:
		p.sub(x.X, precCompare)
		p.s(" IS", not(x.Not), " ", x.What)
	case *IsDistinct:
		p.sub(x.L, precCompare)
		p.s(" IS", not(x.Not), " DISTINCT FROM ")
		p.sub(x.R, precCompare+1)
	case *Between:
		p.sub(x.X, precCompare)
		p.s(not(x.Not), " BETWEEN ")
		if x.Symmetric {
			p.s("SYMMETRIC ")
		}
		p.sub(x.Lo, precCompare+1)
		p.s(" AND ")
		p.sub(x.Hi, precCompare+1)
	case *In:
		p.sub(x.X, precCompare)
		p.s(not(x.Not), " IN (")
		if x.Query != nil {
			p.query(x.Query)
		} else {
			p.list(x.List)
		}
		p.s(")")
	case *Like:
		p.sub(x.X, precCompare)
		p.s(not(x.Not))
		if x.Fold {
			p.s(" ILIKE ")
		} else {
			p.s(" LIKE ")
		}
		p.sub(x.Pattern, precCompare+1)
		if x.Escape != nil {
			p.s(" ESCAPE ")
			p.sub(x.Escape, precCompare+1)
		}
	case *Exists:
		p.s("EXISTS (")
		p.query(x.Query)
		p.s(")")
	case *Quantified:
		p.sub(x.X, precCompare)
		p.s(" ", x.Op)
		if x.All {
			p.s(" ALL (")
		} else {
			p.s(" ANY (")
		}
		p.query(x.Query)
		p.s(")")
	case *Subquery:
		p.s("(")
		p.query(x.Query)
		p.s(")")
	case *Case:
		p.s("CASE")
		if x.Operand != nil {
			p.s(" ")
			p.expr(x.Operand)
		}
		for _, w := range x.Whens {
			p.s(" WHEN ")
			p.expr(w.Cond)
			p.s(" THEN ")
			p.expr(w.Then)
		}
		if x.Else != nil {
			p.s(" ELSE ")
			p.expr(x.Else)
		}
		p.s(" END")
	case *Cast:
		if x.Try {
			p.s("TRY_")
		}
		p.s("CAST(")
		p.expr(x.X)
		p.s(" AS ")
		p.typ(x.Type)
		p.s(")")
	case *Extract:
		p.s("EXTRACT(", x.Field, " FROM ")
		p.expr(x.X)
		p.s(")")
	case *AtTimeZone:
		p.sub(x.X, precZone)
		p.s(" AT TIME ZONE ")
		p.sub(x.Zone, precZone+1)
	case *Current:
		p.s(x.Name)
		if x.Precision >= 0 {
			p.s("(", strconv.Itoa(x.Precision), ")")
		}
	case *Lambda:
		p.idents(x.Params)
		p.s(" -> ")
		p.expr(x.Body)
	case *Subscript:
		p.sub(x.X, precPostfix)
		p.s("[")
		p.expr(x.Index)
		p.s("]")
	case *Field:
		switch x.X.(type) {
		case *Number, *Name, *Text, *Typed, *Current:
			p.s("(")
			p.expr(x.X)
			p.s(")")
		default:
			p.sub(x.X, precPostfix)
		}
		p.s(".")
		p.ident(x.Name)
	case *Array:
		p.s("ARRAY[")
		p.list(x.Elems)
		p.s("]")
	case *Row:
		p.s("ROW(")
		for i, e := range x.Elems {
			if i > 0 {
				p.s(", ")
			}
			p.expr(e)
			if x.Names != nil && x.Names[i].Name != "" {
				p.s(" AS ")
				p.ident(x.Names[i])
			}
		}
		p.s(")")
	case *MapLiteral:
		p.s("MAP {")
		for i, k := range x.Keys {
			if i > 0 {
				p.s(", ")
			}
			p.expr(k)
			p.s(" : ")
			p.expr(x.Values[i])
		}
		p.s("}")
	case *Star:
		p.star(x)
	case *Call:
		p.call(x)
	}
}

func (p *printer) star(x *Star) {
	if x.Qualifier != nil {
		p.name(x.Qualifier)
		p.s(".")
	}
	p.s("*")
	if x.Exclude != nil {
		p.s(" EXCLUDE ")
		p.idents(x.Exclude)
	}
	if x.Replace != nil {
		p.s(" REPLACE (")
		p.items(x.Replace)
		p.s(")")
	}
}

func (p *printer) call(c *Call) {
	name := c.Name
	if len(name) == 1 && !name[0].Quoted {
		switch strings.ToUpper(name[0].Name) {
		case "TRIM", "SUBSTRING", "NORMALIZE", "STRPOS":
			p.special(c)
			return
		}
	}
	p.name(name)
	p.s("(")
	if c.Star {
		p.s("*")
	}
	if c.Distinct {
		p.s("DISTINCT ")
	}
	object := len(name) == 1 && strings.EqualFold(name[0].Name, "json_object")
	for i, a := range c.Args {
		switch {
		case object && i%2 == 1:
			p.s(" VALUE ")
		case i > 0:
			p.s(", ")
		}
		if object && i%2 == 0 {
			p.s("KEY ")
		}
		if c.ArgNames != nil && c.ArgNames[i].Name != "" {
			p.ident(c.ArgNames[i])
			p.s(" => ")
		}
		p.expr(a)
	}
	if c.JSON != nil {
		p.json(c.JSON)
	}
	if c.OrderBy != nil && !c.WithinGroup {
		p.s(" ORDER BY ")
		p.order(c.OrderBy)
	}
	p.s(")")
	if c.WithinGroup {
		p.s(" WITHIN GROUP (ORDER BY ")
		p.order(c.OrderBy)
		p.s(")")
	}
	p.callTail(c)
}

func (p *printer) callTail(c *Call) {
	if c.Filter != nil {
		p.s(" FILTER (WHERE ")
		p.expr(c.Filter)
		p.s(")")
	}
	switch c.Nulls {
	case IgnoreNulls:
		p.s(" IGNORE NULLS")
	case RespectNulls:
		p.s(" RESPECT NULLS")
	}
	if c.Over != nil {
		p.s(" OVER ")
		if c.Over.Bare {
			p.ident(*c.Over.Ref)
		} else {
			p.window(c.Over)
		}
	}
}

// special writes the calls whose name has a syntax of its own.
func (p *printer) special(c *Call) {
	if strings.EqualFold(c.Name[0].Name, "normalize") && len(c.Args) == 2 {
		if f, ok := c.Args[1].(*Text); ok {
			p.name(c.Name)
			p.s("(")
			p.expr(c.Args[0])
			p.s(", ", f.Value, ")")
			return
		}
	}
	p.name(c.Name)
	p.s("(")
	p.list(c.Args)
	p.s(")")
	p.callTail(c)
}

func (p *printer) passing(vs []Passed) {
	for i, v := range vs {
		if i == 0 {
			p.s(" PASSING ")
		} else {
			p.s(", ")
		}
		p.expr(v.Expr)
		p.s(" AS ")
		p.ident(v.Name)
	}
}

func (p *printer) json(o *JSONOptions) {
	p.passing(o.Passing)
	if o.UniqueKeys {
		p.s(" WITH UNIQUE KEYS")
	}
	if o.Returning != nil {
		p.s(" RETURNING ")
		p.typ(o.Returning)
	}
	if o.Wrapper != "" {
		p.s(" ", o.Wrapper, " ARRAY WRAPPER")
	}
	if o.Quotes != "" {
		p.s(" ", o.Quotes, " QUOTES")
	}
	behave := func(what string, def Expr, when string) {
		if what == "" {
			return
		}
		p.s(" ", what)
		if def != nil {
			p.s(" ")
			p.sub(def, precCompare+1)
		}
		p.s(" ON ", when)
	}
	behave(o.OnNull, nil, "NULL")
	behave(o.OnEmpty, o.EmptyDefault, "EMPTY")
	behave(o.OnError, o.ErrorDefault, "ERROR")
}

func (p *printer) window(w *Window) {
	p.s("(")
	sep := ""
	if w.Ref != nil {
		p.ident(*w.Ref)
		sep = " "
	}
	if w.PartitionBy != nil {
		p.s(sep, "PARTITION BY ")
		p.list(w.PartitionBy)
		sep = " "
	}
	if w.OrderBy != nil {
		p.s(sep, "ORDER BY ")
		p.order(w.OrderBy)
		sep = " "
	}
	if f := w.Frame; f != nil {
		p.s(sep, f.Unit, " ")
		if f.End != nil {
			p.s("BETWEEN ")
		}
		p.bound(f.Start)
		if f.End != nil {
			p.s(" AND ")
			p.bound(*f.End)
		}
		if f.Exclude != "" {
			p.s(" EXCLUDE ", f.Exclude)
		}
	}
	p.s(")")
}

func (p *printer) bound(b FrameBound) {
	if b.Offset != nil {
		p.sub(b.Offset, precCompare+1)
		p.s(" ")
	}
	p.s(b.Kind)
}

func (p *printer) order(items []OrderItem) {
	for i, it := range items {
		if i > 0 {
			p.s(", ")
		}
		if it.Expr == nil {
			p.s("ALL")
		} else {
			p.expr(it.Expr)
		}
		if it.Desc {
			p.s(" DESC")
		}
		if it.Nulls != "" {
			p.s(" NULLS ", it.Nulls)
		}
	}
}

// String writes the type as SQL spells it.
func (t *Type) String() string {
	var p printer
	p.typ(t)
	return p.b.String()
}

func (p *printer) typ(t *Type) {
	name, zone := strings.CutSuffix(t.Name, " with time zone")
	if keyword(name) == "" && !plainWord(name) {
		name = Quote(name)
	}
	p.s(name)
	if len(t.Params) > 0 {
		p.s("(")
		for i, n := range t.Params {
			if i > 0 {
				p.s(", ")
			}
			p.s(strconv.Itoa(n))
		}
		p.s(")")
	}
	if len(t.Elems) > 0 {
		p.s("(")
		for i, e := range t.Elems {
			if i > 0 {
				p.s(", ")
			}
			if t.Fields != nil && t.Fields[i].Name != "" {
				p.ident(t.Fields[i])
				p.s(" ")
			}
			p.typ(e)
		}
		p.s(")")
	}
	if zone {
		p.s(" with time zone")
	}
}

// plainWord reports whether a type name needs no quotes; those of several words ("interval year to month") count as plain.
func plainWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isNamePart(s[i]) && s[i] != ' ' || i == 0 && !isNameStart(s[i]) {
			return false
		}
	}
	return true
}
