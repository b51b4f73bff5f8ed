package sql

import "strings"

// typ parses a type name in any engine's spelling.
func (p *parser) typ() *Type {
	p.enter()
	defer p.leave()
	t := p.cur()
	if !isName(t) {
		p.expected("a type")
	}
	p.i++
	typ := &Type{Pos: Pos(t.start), Name: strings.ToLower(t.text)}
	switch typ.Name {
	case "double":
		p.kw("PRECISION")
	case "character", "char":
		if p.kw("VARYING") {
			typ.Name = "varchar"
		}
		p.typeParams(typ)
	case "time", "timestamp":
		p.typeParams(typ)
		if p.kw("WITH", "TIME", "ZONE") {
			typ.Name += " with time zone"
		} else {
			p.kw("WITHOUT", "TIME", "ZONE")
		}
	case "interval":
		switch {
		case p.kw("YEAR"):
			p.kw("TO", "MONTH")
			typ.Name = "interval year to month"
		case p.kw("MONTH"):
			typ.Name = "interval year to month"
		case p.kw("DAY"):
			p.kw("TO", "SECOND")
			typ.Name = "interval day to second"
		default:
			typ.Name = "interval day to second"
		}
	case "array", "list":
		typ.Name = "array"
		typ.Elems = p.elems(1, "element type")
	case "map":
		typ.Elems = p.elems(2, "key and value types")
	case "row", "struct":
		typ.Name = "row"
		p.fields(typ)
	default:
		p.typeParams(typ)
	}
	for {
		switch {
		case p.kw("ARRAY"):
			typ = &Type{Pos: typ.Pos, Name: "array", Elems: []*Type{typ}}
		case p.isOp("[") && p.peek(1).isOp("]"):
			p.i += 2
			typ = &Type{Pos: typ.Pos, Name: "array", Elems: []*Type{typ}}
		default:
			return typ
		}
		p.depth++
		if p.depth > MaxDepth {
			p.enter()
		}
		defer p.leave()
	}
}

// typeParams parses (n) and (n, m).
func (p *parser) typeParams(t *Type) {
	if !p.isOp("(") || p.peek(1).kind != tInt {
		return
	}
	p.i++
	for {
		t.Params = append(t.Params, p.number("a type parameter"))
		if !p.op(",") {
			break
		}
	}
	p.needOp(")")
}

// open takes "(" or "<" and gives what closes it.
func (p *parser) open() string {
	if p.op("<") {
		return ">"
	}
	if !p.isOp("(") {
		p.expected("'('", "'<'")
	}
	p.i++
	return ")"
}

// close takes the closing bracket.
func (p *parser) close(b string) {
	if b == ">" && p.isOp(">=") { // array<int>=...: split the lexeme
		t := p.cur()
		t.text, t.start = "=", t.start+1
		return
	}
	p.needOp(b)
}

func (p *parser) elems(n int, what string) []*Type {
	if !p.isOp("(") && !p.isOp("<") {
		p.expected("'(' and the " + what)
	}
	b := p.open()
	elems := []*Type{p.typ()}
	for len(elems) < n {
		p.needOp(",")
		elems = append(elems, p.typ())
	}
	p.close(b)
	return elems
}

// fields parses row(a int, b varchar), row(int, varchar) and struct<a: int>.
func (p *parser) fields(t *Type) {
	b := p.open()
	for {
		var name Ident
		if p.namedField() {
			name = p.ident()
			p.op(":")
		} else if p.at(tParam) { // "a:int" was read as a name and a parameter
			p.colon()
		}
		t.Fields = append(t.Fields, name)
		t.Elems = append(t.Elems, p.typ())
		if !p.op(",") {
			break
		}
	}
	p.close(b)
}

// namedField tells "a int" from a lone type of one or several words.
func (p *parser) namedField() bool {
	t, n := p.cur(), p.peek(1)
	if !isName(t) {
		return false
	}
	if n.isOp(":") {
		return true
	}
	if n.kind == tParam && strings.HasPrefix(p.text[n.start:], ":") {
		// struct<a:int> lexes as a, :int; make it a, :, int.
		n.kind, n.kw = tIdent, keyword(n.text)
		n.start++
		return true
	}
	if !isName(n) {
		return false
	}
	switch t.kw {
	case "DOUBLE":
		return n.kw != "PRECISION"
	case "INTERVAL":
		return n.kw != "YEAR" && n.kw != "DAY" && n.kw != "MONTH"
	}
	return n.kw != "ARRAY" || p.peek(2).isOp("(") || p.peek(2).isOp("<")
}
