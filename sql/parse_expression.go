package sql

import "strings"

// Binding strengths, weakest first. || binds weaker than +, as in Trino.
const (
	precOr = iota + 1
	precAnd
	precNot
	precCompare
	precConcat
	precAdd
	precMul
	precUnary
	precZone
	precPostfix
	precPrimary
)

func (p *parser) expr() Expr { return p.binary(precOr) }

func (p *parser) exprs() []Expr {
	list := []Expr{p.expr()}
	for p.op(",") {
		list = append(list, p.expr())
	}
	return list
}

// binary parses operators that bind at least as strongly as min.
func (p *parser) binary(min int) Expr {
	p.enter()
	outer := p.height
	p.height = 0
	x := p.prefix(min)
	n := 0
	h := p.height
	defer func() {
		p.leave()
		p.height = max(outer, max(h, p.height)+n+1)
		if p.height > maxHeight {
			p.failAt(p.pos(), "the expression is more than %d operators deep", maxHeight)
		}
	}()
	for {
		t := p.cur()
		switch {
		case t.kind == tOp:
			prec := 0
			switch t.text {
			case "+", "-":
				prec = precAdd
			case "*", "/", "%":
				prec = precMul
			case "||":
				prec = precConcat
			case "=", "==", "<>", "<", "<=", ">", ">=":
				prec = precCompare
			}
			if prec == 0 || prec < min {
				return x
			}
			p.chain(&n)
			p.i++
			if prec == precCompare {
				x = p.comparison(x, t)
				continue
			}
			x = &Binary{Pos: Pos(t.start), Op: t.text, L: x, R: p.binary(prec + 1)}
		case t.kw == "OR" && min <= precOr:
			args := []Expr{x}
			for p.kw("OR") {
				args = append(args, p.binary(precOr+1))
			}
			x = &Logic{Or: true, Args: flatten(args, true)}
		case t.kw == "AND" && min <= precAnd:
			args := []Expr{x}
			for p.kw("AND") {
				args = append(args, p.binary(precAnd+1))
			}
			x = &Logic{Args: flatten(args, false)}
		case t.kw == "AT" && min <= precZone && p.next("TIME") && p.peek(2).kw == "ZONE":
			p.chain(&n)
			p.i += 3
			x = &AtTimeZone{Pos: Pos(t.start), X: x, Zone: p.binary(precZone + 1)}
		case t.kw != "" && min <= precCompare:
			y := p.predicate(x)
			if y == nil {
				return x
			}
			p.chain(&n)
			x = y
		default:
			return x
		}
	}
}

// flatten joins nested operands of the same connective, so that the tree stays shallow.
func flatten(args []Expr, or bool) []Expr {
	out := args[:0:0]
	for _, a := range args {
		if l, ok := a.(*Logic); ok && l.Or == or {
			out = append(out, l.Args...)
		} else {
			out = append(out, a)
		}
	}
	return out
}

// comparison parses what follows a comparison operator: an operand or a quantified subquery.
func (p *parser) comparison(l Expr, t *token) Expr {
	op := t.text
	if op == "==" {
		op = "="
	}
	if q := p.cur().kw; (q == "ALL" || q == "ANY" || q == "SOME") && p.peek(1).isOp("(") && p.queryAhead(2) {
		p.i += 2
		x := &Quantified{Pos: Pos(t.start), Op: op, X: l, All: q == "ALL", Query: p.query()}
		p.needOp(")")
		return x
	}
	return &Binary{Pos: Pos(t.start), Op: op, L: l, R: p.binary(precCompare + 1)}
}

// predicate parses IS, BETWEEN, IN and LIKE after x; nil when none stands here.
func (p *parser) predicate(x Expr) Expr {
	at := p.pos()
	if p.kw("IS") {
		not := p.kw("NOT")
		switch {
		case p.kw("NULL"):
			return &Is{X: x, Not: not, What: "NULL"}
		case p.kw("TRUE"):
			return &Is{X: x, Not: not, What: "TRUE"}
		case p.kw("FALSE"):
			return &Is{X: x, Not: not, What: "FALSE"}
		case p.kw("UNKNOWN"):
			return &Is{X: x, Not: not, What: "UNKNOWN"}
		case p.kw("DISTINCT", "FROM"):
			return &IsDistinct{L: x, R: p.binary(precCompare + 1), Not: not}
		}
		p.expected("NULL", "TRUE", "FALSE", "UNKNOWN", "DISTINCT FROM")
	}
	not := false
	if p.is("NOT") {
		switch p.peek(1).kw {
		case "BETWEEN", "IN", "LIKE", "ILIKE":
			not = true
			p.i++
		default:
			return nil
		}
	}
	switch {
	case p.kw("BETWEEN"):
		symmetric := false
		if p.peek(1).kw != "AND" {
			symmetric = p.word("symmetric")
			_ = symmetric || p.word("asymmetric")
		}
		lo := p.binary(precCompare + 1)
		p.need("AND")
		return &Between{X: x, Lo: lo, Hi: p.binary(precCompare + 1), Not: not, Symmetric: symmetric}
	case p.kw("IN"):
		if !p.isOp("(") {
			if p.at(tParam) || p.isName2() {
				p.failAt(p.pos(), "IN takes a list in parentheses; use contains(array, x) to look into an array")
			}
		}
		in := &In{Pos: at, X: x, Not: not}
		if p.queryAheadParen() {
			p.i++
			in.Query = p.query()
		} else {
			p.needOp("(")
			in.List = p.exprs()
		}
		p.needOp(")")
		return in
	case p.is("LIKE"), p.is("ILIKE"):
		l := &Like{X: x, Not: not, Fold: p.advance().kw == "ILIKE"}
		l.Pattern = p.binary(precCompare + 1)
		if p.kw("ESCAPE") {
			l.Escape = p.binary(precCompare + 1)
		}
		return l
	}
	return nil
}

func (p *parser) isName2() bool { return isName(p.cur()) }

// queryAhead reports whether the tokens from n on begin a query, looking through parentheses.
func (p *parser) queryAhead(n int) bool {
	for p.peek(n).isOp("(") {
		n++
		if n > MaxDepth {
			return false
		}
	}
	t := p.peek(n)
	switch t.kw {
	case "SELECT", "WITH", "VALUES":
		return true
	case "TABLE":
		return isName(p.peek(n + 1))
	case "FROM":
		return true
	}
	return false
}

// queryAheadParen reports whether "(" and a query stand here. "((select 1) + 2)" also looks like one from the front, so
// nested parentheses are told apart by what follows the matching one.
func (p *parser) queryAheadParen() bool {
	if !p.isOp("(") || !p.queryAhead(1) {
		return false
	}
	if !p.peek(1).isOp("(") {
		return true
	}
	// The inner parenthesis holds a query. It is the body of ours when a set operation, order or the end follows.
	depth, n := 0, 1
	for {
		t := p.peek(n)
		if t.kind == tEOF {
			return false
		}
		if t.isOp("(") {
			depth++
		} else if t.isOp(")") {
			depth--
			if depth == 0 {
				break
			}
		}
		n++
	}
	t := p.peek(n + 1)
	switch t.kw {
	case "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH":
		return true
	}
	return t.isOp(")")
}

// prefix parses an operand with the operators in front of it.
func (p *parser) prefix(min int) Expr {
	t := p.cur()
	switch {
	case t.kw == "NOT" && min <= precNot:
		p.i++
		return &Not{Pos: Pos(t.start), X: p.binary(precNot)}
	case t.isOp("-"), t.isOp("+"):
		p.i++
		return &Unary{Pos: Pos(t.start), Op: t.text, X: p.binary(precUnary)}
	}
	return p.postfix(p.primary())
}

// postfix parses subscripts, field accesses and :: casts.
func (p *parser) postfix(x Expr) Expr {
	n := 0
	for {
		t := p.cur()
		switch {
		case t.isOp("["):
			p.chain(&n)
			p.i++
			i := p.expr()
			p.needOp("]")
			x = &Subscript{Pos: Pos(t.start), X: x, Index: i}
		case t.isOp("::"):
			p.chain(&n)
			p.i++
			x = &Cast{Pos: Pos(t.start), X: x, Type: p.typ()}
		case t.isOp("."):
			if p.peek(1).isOp("*") {
				return x
			}
			p.chain(&n)
			p.i++
			x = &Field{X: x, Name: p.anyIdent()}
		case (t.kind == tParam || t.isOp(":")) && p.pathAhead(x):
			p.chain(&n)
			x = p.variantPath(x)
		default:
			return x
		}
	}
}

func (p *parser) primary() Expr {
	t := p.cur()
	at := Pos(t.start)
	switch t.kind {
	case tInt, tDecimal, tDouble:
		p.i++
		return &Number{Pos: at, Kind: NumberKind(t.kind - tInt), Text: t.text}
	case tString:
		p.i++
		return &Text{Pos: at, Value: t.text}
	case tBytes:
		p.i++
		return &Bytes{Pos: at, Value: t.text}
	case tParam:
		return p.param()
	case tOp:
		switch t.text {
		case "(":
			return p.paren()
		case "[":
			return p.arrayLiteral(at)
		case "{":
			return p.structLiteral()
		case "*":
			p.failAt(at, "* stands for all columns and is allowed only in the SELECT list and in count(*)")
		}
		p.expected("an expression")
	case tQuoted:
		return p.nameOrCall()
	case tEOF:
		p.expected("an expression")
	}
	if t.kw != "" {
		if x := p.keywordPrimary(t); x != nil {
			return x
		}
		if isReserved(t.kw) {
			p.expected("an expression")
		}
	}
	// A type in front of a text literal: DATE '...', and any type name at all.
	if x := p.typedLiteral(); x != nil {
		return x
	}
	return p.nameOrCall()
}

// paren parses what begins with "(": a subquery, a row, a lambda or a grouped expression.
func (p *parser) paren() Expr {
	at := p.pos()
	if p.lambdaAhead() {
		l := &Lambda{Pos: at}
		p.i++
		for !p.isOp(")") {
			l.Params = append(l.Params, p.ident())
			if !p.op(",") {
				break
			}
		}
		p.needOp(")")
		p.needOp("->")
		l.Body = p.expr()
		return l
	}
	if p.queryAheadParen() {
		p.i++
		q := p.query()
		p.needOp(")")
		return &Subquery{Pos: at, Query: q}
	}
	p.i++
	first := p.expr()
	if p.op(",") {
		row := &Row{Pos: at, Elems: append([]Expr{first}, p.exprs()...)}
		p.needOp(")")
		return row
	}
	p.needOp(")")
	return first
}

// lambdaAhead reports whether "(a, b) ->" or "() ->" stands here.
func (p *parser) lambdaAhead() bool {
	n := 1
	if p.peek(n).isOp(")") {
		return p.peek(n + 1).isOp("->")
	}
	for {
		if !isName(p.peek(n)) {
			return false
		}
		if p.peek(n + 1).isOp(")") {
			return p.peek(n + 2).isOp("->")
		}
		if !p.peek(n + 1).isOp(",") {
			return false
		}
		n += 2
	}
}

func (p *parser) arrayLiteral(at Pos) Expr {
	p.needOp("[")
	a := &Array{Pos: at}
	if !p.isOp("]") {
		a.Elems = p.exprs()
	}
	p.needOp("]")
	return a
}

// structLiteral parses DuckDB's {'a': 1, b: 2}.
func (p *parser) structLiteral() Expr {
	r := &Row{Pos: p.pos()}
	p.needOp("{")
	for {
		t := p.cur()
		if t.kind == tString {
			if t.text == "" {
				p.failAt(Pos(t.start), "a field name must not be empty")
			}
			p.i++
			r.Names = append(r.Names, Ident{Pos: Pos(t.start), Name: t.text, Quoted: true})
		} else {
			r.Names = append(r.Names, p.ident())
		}
		p.colon()
		r.Elems = append(r.Elems, p.expr())
		if !p.op(",") {
			break
		}
	}
	p.needOp("}")
	return r
}

// colon takes ":". The lexer reads ":name" as a parameter, so a colon before a name must be followed by a space.
func (p *parser) colon() {
	if p.at(tParam) && strings.HasPrefix(p.text[p.cur().start:], ":") {
		p.failAt(p.pos(), "put a space after ':'; ':%s' is a parameter", p.cur().text)
	}
	p.needOp(":")
}

func (p *parser) nameOrCall() Expr {
	t := p.cur()
	if p.peek(1).isOp("->") && isName(t) {
		id := p.ident()
		p.i++
		return &Lambda{Pos: id.Pos, Params: []Ident{id}, Body: p.expr()}
	}
	parts := []Ident{p.ident()}
	for p.isOp(".") && !p.peek(1).isOp("*") {
		p.i++
		parts = append(parts, p.anyIdent())
		if len(parts) > 64 {
			p.failAt(p.pos(), "the name has more than 64 parts")
		}
	}
	if p.isOp("(") {
		return p.call(parts)
	}
	return &Name{Parts: parts}
}

// typedLiteral parses TYPE 'text'. A type is tried only when a text literal can follow it, so that names stay cheap.
func (p *parser) typedLiteral() Expr {
	t := p.cur()
	if t.kind != tIdent {
		return nil
	}
	n := 1
	switch t.kw {
	case "TIME", "TIMESTAMP", "DECIMAL":
		if p.peek(1).isOp("(") {
			for n = 2; p.peek(n).kind == tInt || p.peek(n).isOp(","); n++ {
			}
			n++
		}
		if (p.peek(n).kw == "WITH" || p.peek(n).kw == "WITHOUT") && p.peek(n+1).kw == "TIME" && p.peek(n+2).kw == "ZONE" {
			n += 3
		}
	case "DOUBLE":
		if p.next("PRECISION") {
			n = 2
		}
	}
	if p.peek(n).kind != tString {
		return nil
	}
	typ := p.typ()
	if !p.at(tString) {
		p.expected("a text literal")
	}
	return &Typed{Pos: Pos(t.start), Type: typ, Value: p.advance().text}
}

var intervalUnits = map[string]string{
	"YEAR": "YEAR", "YEARS": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "MONTHS": "MONTH", "WEEK": "WEEK", "WEEKS": "WEEK",
	"DAY": "DAY", "DAYS": "DAY", "HOUR": "HOUR", "HOURS": "HOUR", "MINUTE": "MINUTE", "MINUTES": "MINUTE", "SECOND": "SECOND", "SECONDS": "SECOND",
	"MILLISECOND": "MILLISECOND", "MILLISECONDS": "MILLISECOND", "MICROSECOND": "MICROSECOND", "MICROSECONDS": "MICROSECOND",
}

func (p *parser) interval() Expr {
	t := p.cur()
	x := &Interval{Pos: Pos(t.start)}
	p.i++
	if p.op("-") {
		x.Negative = true
	} else {
		p.op("+")
	}
	switch {
	case p.at(tString):
		x.Value = p.advance().text
	case p.at(tInt), p.at(tDecimal), p.at(tParam):
		x.Amount = p.primary()
	case p.isOp("("):
		p.i++
		x.Amount = p.expr()
		p.needOp(")")
	default:
		p.expected("a text literal or a number")
	}
	unit := func() string {
		u := intervalUnits[p.cur().kw]
		if u == "" {
			p.expected("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
		}
		p.i++
		return u
	}
	if x.Amount == nil && intervalUnits[p.cur().kw] == "" {
		return x // INTERVAL '1 day': the text has the units
	}
	x.From = unit()
	if p.kw("TO") {
		x.To = unit()
	}
	return x
}
