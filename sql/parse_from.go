package sql

import "strings"

// from parses the list after FROM; commas become cross joins.
func (p *parser) from() TableRef {
	l := p.joins()
	n := 0
	for {
		at := p.pos()
		if !p.op(",") {
			return l
		}
		p.chain(&n)
		l = &Join{Pos: at, Kind: "CROSS", Comma: true, L: l, R: p.joins()}
	}
}

// joins parses a table and the joins that follow it.
func (p *parser) joins() TableRef {
	p.enter()
	defer p.leave()
	l := p.table()
	n := 0
	for {
		j := &Join{Pos: p.pos(), L: l}
		j.Natural = p.kw("NATURAL")
		switch {
		case p.kw("CROSS"):
			j.Kind = "CROSS"
		case p.kw("INNER"):
			j.Kind = "INNER"
		case p.is("LEFT"), p.is("RIGHT"), p.is("FULL"):
			j.Kind = p.advance().kw
			p.kw("OUTER")
		case p.is("JOIN"):
			j.Kind = "INNER"
		case (p.is("SEMI") || p.is("ANTI")) && p.next("JOIN"):
			p.failAt(p.pos(), "%s JOIN is not supported; use EXISTS or NOT EXISTS", p.cur().kw)
		default:
			if j.Natural {
				p.expected("JOIN")
			}
			return l
		}
		p.chain(&n)
		p.need("JOIN")
		if j.Kind == "CROSS" || j.Natural {
			j.R = p.table()
			l = j
			continue
		}
		j.R = p.table()
		// a JOIN b JOIN c ON .. ON ..: the inner join takes the first ON.
		if p.joinAhead() {
			j.R = p.nestedJoin(j.R)
		}
		switch {
		case p.kw("ON"):
			j.On = p.expr()
		case p.is("USING"):
			p.i++
			j.Using = p.identList()
		default:
			p.expected("ON", "USING")
		}
		l = j
	}
}

func (p *parser) joinAhead() bool {
	switch p.cur().kw {
	case "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL":
		return true
	}
	return false
}

// nestedJoin parses joins whose left side is l until their ON clauses are used up.
func (p *parser) nestedJoin(l TableRef) TableRef {
	p.enter()
	defer p.leave()
	for p.joinAhead() {
		j := &Join{Pos: p.pos(), L: l}
		j.Natural = p.kw("NATURAL")
		switch {
		case p.kw("CROSS"):
			j.Kind = "CROSS"
		case p.is("LEFT"), p.is("RIGHT"), p.is("FULL"):
			j.Kind = p.advance().kw
			p.kw("OUTER")
		default:
			p.kw("INNER")
			j.Kind = "INNER"
		}
		p.need("JOIN")
		j.R = p.table()
		if j.Kind != "CROSS" && !j.Natural {
			if p.joinAhead() {
				j.R = p.nestedJoin(j.R)
			}
			switch {
			case p.kw("ON"):
				j.On = p.expr()
			case p.is("USING"):
				p.i++
				j.Using = p.identList()
			default:
				p.expected("ON", "USING")
			}
		}
		l = j
	}
	return l
}

// table parses one table reference without joins.
func (p *parser) table() TableRef {
	p.enter()
	defer p.leave()
	at := p.pos()
	switch {
	case p.kw("LATERAL"):
		if p.is("UNNEST") {
			return p.table()
		}
		p.needOp("(")
		d := &Derived{Pos: at, Lateral: true, Query: p.query()}
		p.needOp(")")
		d.Alias = p.tableAlias()
		return d
	case p.is("UNNEST"):
		p.i++
		p.needOp("(")
		u := &Unnest{Pos: at}
		if !p.isOp(")") {
			u.Args = p.exprs()
		}
		p.needOp(")")
		if p.is("WITH") && p.next("ORDINALITY") {
			p.i += 2
			u.Ordinality = true
		}
		u.Alias = p.tableAlias()
		return u
	case p.is("TABLE") && p.peek(1).isOp("("):
		p.i += 2
		name := p.qualified()
		if !p.isOp("(") {
			p.expected("'('")
		}
		c, _ := p.call(name).(*Call)
		p.needOp(")")
		return &TableCall{Call: c, Alias: p.tableAlias()}
	case p.is("VALUES"):
		v := p.bodyTerm()
		return &Derived{Pos: at, Query: &Query{Pos: at, Body: v}, Alias: p.tableAlias()}
	case p.isOp("("):
		if p.derivedAhead() {
			p.i++
			d := &Derived{Pos: at, Query: p.query()}
			p.needOp(")")
			d.Sample = p.sample()
			d.Alias = p.tableAlias()
			if d.Sample == nil {
				d.Sample = p.sample()
			}
			return d
		}
		p.i++
		t := p.from()
		p.needOp(")")
		return t
	}
	if p.at(tString) {
		f := &FileName{Pos: at, Path: p.advance().text}
		f.Sample = p.sample()
		f.Alias = p.tableAlias()
		if f.Sample == nil {
			f.Sample = p.sample()
		}
		return f
	}
	if !isName(p.cur()) {
		p.expected("a table", "'('", "UNNEST", "LATERAL")
	}
	name := p.qualified()
	if p.isOp("(") {
		c, _ := p.call(name).(*Call)
		return &TableCall{Call: c, Alias: p.tableAlias()}
	}
	t := &TableName{Parts: name}
	t.Version = p.version()
	t.Sample = p.sample()
	t.Alias = p.tableAlias()
	if t.Version == nil {
		t.Version = p.version()
	}
	if t.Sample == nil {
		t.Sample = p.sample()
	}
	return t
}

// derivedAhead tells (SELECT ...) from (a JOIN b): a parenthesis inside may be either.
func (p *parser) derivedAhead() bool {
	if !p.queryAhead(1) {
		return false
	}
	if !p.peek(1).isOp("(") {
		return true
	}
	depth, n := 0, 1
	for {
		t := p.peek(n)
		if t.kind == tEOF {
			return true
		}
		if t.isOp("(") {
			depth++
		} else if t.isOp(")") {
			if depth--; depth == 0 {
				break
			}
		}
		n++
	}
	t := p.peek(n + 1)
	switch t.kw {
	case "UNION", "INTERSECT", "EXCEPT", "MINUS", "ORDER", "LIMIT", "OFFSET", "FETCH":
		return true
	}
	return t.isOp(")")
}

func (p *parser) sample() *Sample {
	if !p.is("TABLESAMPLE") {
		return nil
	}
	s := &Sample{Pos: p.pos()}
	p.i++
	if !p.is("BERNOULLI") && !p.is("SYSTEM") {
		p.expected("BERNOULLI", "SYSTEM")
	}
	s.Method = p.advance().kw
	p.needOp("(")
	s.Percent = p.expr()
	p.needOp(")")
	return s
}

func (p *parser) tableAlias() *Alias {
	if p.at(tIdent) && p.peek(1).isOp("(") && strings.EqualFold(p.cur().text, "match_recognize") {
		p.unsupportedAt(p.pos(), "row pattern matching (MATCH_RECOGNIZE) is not supported; window functions with QUALIFY say most of it")
	}
	if p.versionAhead() {
		return nil
	}
	id := p.alias()
	if id.Name == "" {
		return nil
	}
	a := &Alias{Name: id}
	if p.isOp("(") && isName(p.peek(1)) {
		a.Columns = p.identList()
	}
	return a
}

// versionAhead reports whether a time travel clause begins here, so that its first word is not taken for an alias.
func (p *parser) versionAhead() bool {
	n := p.peek(1)
	switch p.cur().kw {
	case "FOR":
		return true
	case "VERSION", "TIMESTAMP":
		return n.kw == "AS" && p.peek(2).kw == "OF"
	case "AT":
		return n.isOp("(") || n.kw == "SNAPSHOT" || n.kw == "BRANCH" || n.kw == "TAG" || n.kw == "TIMESTAMP" || n.kw == "VERSION"
	}
	return false
}

// version parses the time travel clauses of all engines; nil when there is none.
func (p *parser) version() *Version {
	if !p.versionAhead() {
		return nil
	}
	v := &Version{Pos: p.pos()}
	kind := func() {
		switch p.cur().kw {
		case "VERSION", "SYSTEM_VERSION":
			v.Kind = "VERSION"
		case "TIMESTAMP", "SYSTEM_TIME":
			v.Kind = "TIMESTAMP"
		case "SNAPSHOT", "BRANCH", "TAG":
			v.Kind = p.cur().kw
		default:
			p.expected("VERSION", "TIMESTAMP")
		}
		p.i++
	}
	switch {
	case p.kw("FOR"):
		kind()
		p.need("AS", "OF")
	case p.kw("AT"):
		if p.op("(") {
			kind()
			p.needOp("=>")
			v.Expr = p.expr()
			p.needOp(")")
			return v
		}
		kind()
	default:
		kind()
		p.need("AS", "OF")
	}
	v.Expr = p.binary(precCompare + 1)
	return v
}
