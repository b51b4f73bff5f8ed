package sql

import "strings"

// pathAhead reports whether a path into a variant follows x: a colon and a name right behind it, as in v:a.b, which the lexer
// has read as a parameter.
func (p *parser) pathAhead(x Expr) bool {
	switch x.(type) {
	case *Name, *Call, *Field, *Subscript:
	default:
		return false
	}
	t := p.cur()
	if t.isOp(":") && p.peek(1).kind != tQuoted {
		return false
	}
	return p.i > 0 && p.text[t.start] == ':' && p.toks[p.i-1].end == t.start
}

// variantPath parses the path behind x into a call of variant_get. Names keep their case, as those of fields do.
func (p *parser) variantPath(x Expr) Expr {
	t := p.cur()
	at := Pos(t.start)
	var path strings.Builder
	path.WriteString("$")
	name := func(s string) {
		path.WriteString("['" + strings.ReplaceAll(s, "'", "''") + "']")
	}
	if p.isOp(":") {
		p.i++
	}
	name(p.advance().text)
	for {
		switch {
		case p.isOp(".") && !p.peek(1).isOp("*"):
			p.i++
			name(p.anyIdent().Name)
			continue
		case p.isOp("[") && p.peek(1).kind == tInt && p.peek(2).isOp("]"):
			path.WriteString("[" + p.peek(1).text + "]")
			p.i += 3
			continue
		case p.isOp("[") && p.peek(1).kind == tString && p.peek(2).isOp("]"):
			name(p.peek(1).text)
			p.i += 3
			continue
		}
		return &Call{Name: []Ident{{Pos: at, Name: "variant_get"}}, Args: []Expr{x, &Text{Pos: at, Value: path.String()}}}
	}
}
