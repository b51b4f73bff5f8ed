package sql

import "strings"

func callOf(at Pos, name string, args ...Expr) *Call {
	return &Call{Name: []Ident{{Pos: at, Name: name}}, Args: args}
}

// keywordPrimary parses the expressions that begin with a keyword; nil when the word is just a name here.
func (p *parser) keywordPrimary(t *token) Expr {
	at := Pos(t.start)
	paren := p.peek(1).isOp("(")
	switch t.kw {
	case "TRUE", "FALSE":
		p.i++
		return &Bool{Pos: at, Value: t.kw == "TRUE"}
	case "NULL":
		p.i++
		return &Null{Pos: at}
	case "CASE":
		return p.caseExpr()
	case "CAST", "TRY_CAST":
		if !paren {
			return nil
		}
		p.i += 2
		x := &Cast{Pos: at, Try: t.kw == "TRY_CAST", X: p.expr()}
		p.need("AS")
		x.Type = p.typ()
		p.needOp(")")
		return x
	case "EXISTS":
		if !paren {
			p.i++
			p.expected("'('")
		}
		p.i += 2
		x := &Exists{Pos: at, Query: p.query()}
		p.needOp(")")
		return x
	case "INTERVAL":
		if n := p.peek(1); n.kind == tString || n.kind == tInt || n.isOp("-") && p.peek(2).kind == tString || n.isOp("+") && p.peek(2).kind == tString ||
			n.kind == tDecimal || n.kind == tParam || n.isOp("(") {
			return p.interval()
		}
	case "ARRAY":
		if p.peek(1).isOp("[") {
			p.i++
			return p.arrayLiteral(at)
		}
	case "ROW", "STRUCT":
		if !paren {
			return nil
		}
		p.i += 2
		r := &Row{Pos: at}
		if !p.isOp(")") {
			named := false
			for {
				r.Elems = append(r.Elems, p.expr())
				var name Ident
				if p.kw("AS") || isName(p.cur()) && p.cur().kw == "" {
					name = p.ident()
					named = true
				}
				r.Names = append(r.Names, name)
				if !p.op(",") {
					break
				}
			}
			if !named {
				r.Names = nil
			}
		}
		p.needOp(")")
		return r
	case "MAP":
		if p.peek(1).isOp("{") {
			return p.mapLiteral()
		}
	case "EXTRACT":
		if !paren {
			return nil
		}
		p.i += 2
		f := p.cur()
		if f.kind != tIdent && f.kind != tString {
			p.expected("a field such as YEAR")
		}
		p.i++
		p.need("FROM")
		x := &Extract{Pos: at, Field: strings.ToUpper(f.text), X: p.expr()}
		p.needOp(")")
		return x
	case "SUBSTRING":
		if !paren {
			return nil
		}
		p.i += 2
		c := callOf(at, "substring", p.expr())
		switch {
		case p.kw("FROM"):
			c.Args = append(c.Args, p.expr())
			if p.kw("FOR") {
				c.Args = append(c.Args, p.expr())
			}
		case p.kw("FOR"):
			c.Args = append(c.Args, &Number{Pos: at, Text: "1"}, p.expr())
		default:
			for p.op(",") {
				c.Args = append(c.Args, p.expr())
			}
		}
		p.needOp(")")
		return c
	case "TRIM":
		if !paren {
			return nil
		}
		p.i += 2
		return p.trim(at)
	case "POSITION":
		if !paren {
			return nil
		}
		p.i += 2
		needle := p.binary(precCompare + 1)
		if p.kw("IN") {
			c := callOf(at, "strpos", p.binary(precCompare+1), needle)
			p.needOp(")")
			return c
		}
		p.needOp(",")
		c := callOf(at, "strpos", p.expr(), needle)
		p.needOp(")")
		return c
	case "NORMALIZE":
		if !paren {
			return nil
		}
		p.i += 2
		c := callOf(at, "normalize", p.expr())
		form := "NFC"
		if p.op(",") {
			form = p.cur().kw
			switch form {
			case "NFC", "NFD", "NFKC", "NFKD":
				p.i++
			default:
				p.expected("NFC", "NFD", "NFKC", "NFKD")
			}
		}
		c.Args = append(c.Args, &Text{Pos: at, Value: form})
		p.needOp(")")
		return c
	case "CURRENT_DATE", "CURRENT_USER", "CURRENT_ROLE", "CURRENT_CATALOG", "CURRENT_SCHEMA", "CURRENT_PATH":
		p.i++
		if paren && p.peek(1).isOp(")") {
			p.i += 2
		}
		return &Current{Pos: at, Name: t.kw, Precision: -1}
	case "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP":
		p.i++
		x := &Current{Pos: at, Name: t.kw, Precision: -1}
		if p.op("(") {
			if !p.isOp(")") {
				at := p.pos()
				if x.Precision = p.number("a precision"); x.Precision > 12 {
					p.failAt(at, "precision %d is above 12", x.Precision)
				}
			}
			p.needOp(")")
		}
		return x
	case "IF", "REPLACE", "LEFT", "RIGHT", "TRUNCATE", "FORMAT", "DATE", "YEAR", "GROUPING", "LISTAGG":
		if paren {
			p.i++
			return p.call([]Ident{{Pos: at, Name: t.text}})
		}
	}
	return nil
}

func (p *parser) caseExpr() Expr {
	c := &Case{Pos: p.pos()}
	p.i++
	if !p.is("WHEN") {
		c.Operand = p.expr()
	}
	for p.kw("WHEN") {
		w := When{Cond: p.expr()}
		p.need("THEN")
		w.Then = p.expr()
		c.Whens = append(c.Whens, w)
	}
	if len(c.Whens) == 0 {
		p.expected("WHEN")
	}
	if p.kw("ELSE") {
		c.Else = p.expr()
	}
	if !p.kw("END") {
		p.expected("WHEN", "ELSE", "END")
	}
	return c
}

func (p *parser) mapLiteral() Expr {
	m := &MapLiteral{Pos: p.pos()}
	p.i += 2
	for !p.isOp("}") {
		m.Keys = append(m.Keys, p.expr())
		p.colon()
		m.Values = append(m.Values, p.expr())
		if !p.op(",") {
			break
		}
	}
	p.needOp("}")
	return m
}

// trim parses the rest of TRIM([LEADING|TRAILING|BOTH] [chars] FROM x), TRIM(x) and TRIM(x, chars).
func (p *parser) trim(at Pos) Expr {
	name := "trim"
	spec := true
	switch {
	case p.kw("LEADING"):
		name = "ltrim"
	case p.kw("TRAILING"):
		name = "rtrim"
	case p.kw("BOTH"):
	default:
		spec = false
	}
	var chars, x Expr
	switch {
	case spec && p.kw("FROM"):
		x = p.expr()
	default:
		x = p.expr()
		if p.kw("FROM") {
			chars, x = x, p.expr()
		} else if p.op(",") {
			chars = p.expr()
		}
	}
	p.needOp(")")
	c := callOf(at, name, x)
	if chars != nil {
		c.Args = append(c.Args, chars)
	}
	return c
}

// call parses the arguments and the clauses of a function call; "(" stands at the parser's place.
func (p *parser) call(name []Ident) Expr {
	c := &Call{Name: name}
	p.needOp("(")
	switch {
	case p.isOp("*") && p.peek(1).isOp(")"):
		p.i++
		c.Star = true
	case p.isOp(")"):
	default:
		if p.kw("DISTINCT") {
			c.Distinct = true
		} else if p.is("ALL") && !p.peek(1).isOp(")") && !p.peek(1).isOp(",") {
			p.i++
		}
		p.args(c)
		if len(name) == 1 && strings.HasPrefix(strings.ToLower(name[0].Name), "json_") {
			p.jsonOptions(c)
		}
		if p.kw("ON", "OVERFLOW") {
			at := p.pos()
			if !p.kw("ERROR") {
				p.failAt(at, "LISTAGG knows only ON OVERFLOW ERROR")
			}
		}
		if p.kw("IGNORE", "NULLS") {
			c.Nulls = IgnoreNulls
		}
		if p.kw("ORDER", "BY") {
			c.OrderBy = p.orderItems()
		}
	}
	p.needOp(")")
	if p.kw("WITHIN", "GROUP") {
		p.needOp("(")
		p.need("ORDER", "BY")
		c.OrderBy, c.WithinGroup = p.orderItems(), true
		p.needOp(")")
	}
	if p.is("FILTER") && p.peek(1).isOp("(") {
		p.i += 2
		p.need("WHERE")
		c.Filter = p.expr()
		p.needOp(")")
	}
	switch {
	case p.kw("IGNORE", "NULLS"):
		c.Nulls = IgnoreNulls
	case p.kw("RESPECT", "NULLS"):
		c.Nulls = RespectNulls
	}
	if p.is("OVER") && (p.peek(1).isOp("(") || isName(p.peek(1))) {
		p.i++
		if p.isOp("(") {
			c.Over = p.window()
		} else {
			id := p.ident()
			c.Over = &Window{Pos: id.Pos, Ref: &id, Bare: true}
		}
	}
	return c
}

func (p *parser) args(c *Call) {
	named := false
	var names []Ident
	object := len(c.Name) == 1 && strings.EqualFold(c.Name[0].Name, "json_object")
	for {
		var n Ident
		if isName(p.cur()) && p.peek(1).isOp("=>") {
			n = p.ident()
			p.i++
			named = true
		}
		names = append(names, n)
		if object {
			p.jsonMember(c)
		} else {
			c.Args = append(c.Args, p.jsonFormat(p.expr()))
		}
		if !p.op(",") {
			break
		}
	}
	if named {
		c.ArgNames = names
	}
}

// word takes an unquoted word that is no keyword of the grammar.
func (p *parser) word(w string) bool {
	if p.at(tIdent) && strings.EqualFold(p.cur().text, w) {
		p.i++
		return true
	}
	return false
}

// jsonMember parses [KEY] k VALUE v and k : v of JSON_OBJECT; key and value become two arguments.
func (p *parser) jsonMember(c *Call) {
	if t := p.peek(1); p.at(tIdent) && strings.EqualFold(p.cur().text, "key") && !t.isOp(":") && !t.isOp(",") && !strings.EqualFold(t.text, "value") {
		p.i++
	}
	c.Args = append(c.Args, p.expr())
	if !p.word("value") && !p.op(",") {
		p.colon()
	}
	c.Args = append(c.Args, p.jsonFormat(p.expr()))
}

// jsonFormat turns x FORMAT JSON into json_parse(x).
func (p *parser) jsonFormat(x Expr) Expr {
	if p.is("FORMAT") && strings.EqualFold(p.peek(1).text, "json") {
		p.i += 2
		return callOf(x.At(), "json_parse", x)
	}
	return x
}

// passing parses the values of a path's variables, after PASSING.
func (p *parser) passing() []Passed {
	var out []Passed
	for {
		v := Passed{Expr: p.jsonFormat(p.expr())}
		p.need("AS")
		if !isName(p.cur()) {
			p.expected("the name of a variable of the path")
		}
		v.Name = p.ident()
		if out = append(out, v); !p.op(",") {
			return out
		}
	}
}

// jsonOptions parses the clauses that JSON_VALUE and its kin take after the path.
func (p *parser) jsonOptions(c *Call) {
	o := &JSONOptions{}
	set := false
	for {
		switch {
		case p.kw("RETURNING"):
			o.Returning = p.typ()
		case !set && p.word("passing"):
			o.Passing = p.passing()
		case p.is("WITH") || p.is("WITHOUT"):
			o.Wrapper = strings.ToUpper(p.advance().text)
			if p.word("unique") {
				p.word("keys")
				o.UniqueKeys, o.Wrapper = o.Wrapper == "WITH", ""
				break
			}
			if o.Wrapper == "WITH" {
				mode := " UNCONDITIONAL"
				if t := strings.ToUpper(p.cur().text); p.at(tIdent) && (t == "CONDITIONAL" || t == "UNCONDITIONAL") {
					mode = " " + t
					p.i++
				}
				o.Wrapper += mode
			}
			if t := p.cur(); p.at(tIdent) && strings.EqualFold(t.text, "array") {
				p.i++
			}
			if t := p.cur(); !p.at(tIdent) || !strings.EqualFold(t.text, "wrapper") {
				p.expected("WRAPPER")
			}
			p.i++
		case p.at(tIdent) && (strings.EqualFold(p.cur().text, "keep") || strings.EqualFold(p.cur().text, "omit")):
			o.Quotes = strings.ToUpper(p.advance().text)
			if !strings.EqualFold(p.cur().text, "quotes") {
				p.expected("QUOTES")
			}
			p.i++
			if p.kw("ON") {
				if !p.word("scalar") || !p.word("string") {
					p.expected("SCALAR STRING")
				}
			}
		case p.is("NULL"), p.is("ERROR"), p.is("EMPTY"), p.is("TRUE"), p.is("FALSE"), p.is("UNKNOWN"), p.at(tIdent) && strings.EqualFold(p.cur().text, "default"),
			p.at(tIdent) && strings.EqualFold(p.cur().text, "absent"):
			what := strings.ToUpper(p.advance().text)
			var def Expr
			switch what {
			case "DEFAULT":
				def = p.binary(precCompare + 1)
			case "EMPTY":
				if p.at(tIdent) && (strings.EqualFold(p.cur().text, "array") || strings.EqualFold(p.cur().text, "object")) {
					what += " " + strings.ToUpper(p.advance().text)
				}
			}
			p.need("ON")
			if p.kw("NULL") {
				o.OnNull = what
			} else if p.kw("EMPTY") {
				o.OnEmpty, o.EmptyDefault = what, def
			} else {
				p.need("ERROR")
				o.OnError, o.ErrorDefault = what, def
			}
		default:
			if set {
				c.JSON = o
			}
			return
		}
		set = true
	}
}

// window parses "(...)" after OVER or in the WINDOW clause.
func (p *parser) window() *Window {
	w := &Window{Pos: p.pos()}
	p.needOp("(")
	if isName(p.cur()) && !p.is("PARTITION") && !((p.is("ROWS") || p.is("RANGE") || p.is("GROUPS")) && !p.peek(1).isOp(")")) {
		id := p.ident()
		w.Ref = &id
	}
	if p.kw("PARTITION", "BY") {
		w.PartitionBy = p.exprs()
	}
	if p.kw("ORDER", "BY") {
		w.OrderBy = p.orderItems()
	}
	if p.is("ROWS") || p.is("RANGE") || p.is("GROUPS") {
		f := &Frame{Pos: p.pos(), Unit: p.cur().kw}
		p.i++
		if p.kw("BETWEEN") {
			f.Start = p.bound()
			p.need("AND")
			end := p.bound()
			f.End = &end
		} else {
			f.Start = p.bound()
		}
		if p.kw("EXCLUDE") {
			switch {
			case p.kw("CURRENT", "ROW"):
				f.Exclude = "CURRENT ROW"
			case p.kw("GROUP"):
				f.Exclude = "GROUP"
			case p.kw("TIES"):
				f.Exclude = "TIES"
			case p.kw("NO", "OTHERS"):
				f.Exclude = "NO OTHERS"
			default:
				p.expected("CURRENT ROW", "GROUP", "TIES", "NO OTHERS")
			}
		}
		w.Frame = f
	}
	p.needOp(")")
	return w
}

func (p *parser) bound() FrameBound {
	switch {
	case p.kw("UNBOUNDED", "PRECEDING"):
		return FrameBound{Kind: "UNBOUNDED PRECEDING"}
	case p.kw("UNBOUNDED", "FOLLOWING"):
		return FrameBound{Kind: "UNBOUNDED FOLLOWING"}
	case p.kw("CURRENT", "ROW"):
		return FrameBound{Kind: "CURRENT ROW"}
	}
	b := FrameBound{Offset: p.binary(precCompare + 1)}
	switch {
	case p.kw("PRECEDING"):
		b.Kind = "PRECEDING"
	case p.kw("FOLLOWING"):
		b.Kind = "FOLLOWING"
	default:
		p.expected("PRECEDING", "FOLLOWING")
	}
	return b
}
