package sql

// query parses [WITH ...] body [ORDER BY ...] [OFFSET] [LIMIT | FETCH].
func (p *parser) query() *Query {
	p.enter()
	defer p.leave()
	q := &Query{Pos: p.pos()}
	if p.kw("WITH") {
		q.With = p.with()
	}
	q.Body = p.setOps(1)
	p.tail(q)
	// A query in parentheses with nothing around it is that query.
	if inner, ok := q.Body.(*Query); ok && q.With == nil && !q.tailed() {
		inner.Pos = q.Pos
		return inner
	}
	return q
}

func (q *Query) tailed() bool {
	return q.OrderBy != nil || q.OrderAll != nil || q.Limit != nil || q.Offset != nil
}

func (p *parser) with() *With {
	w := &With{Recursive: p.kw("RECURSIVE")}
	for {
		c := CTE{Name: p.ident()}
		if p.isOp("(") {
			c.Columns = p.identList()
		}
		p.need("AS")
		if p.is("NOT") && p.peek(1).text != "" {
			p.i++
		}
		if t := p.cur(); t.kind == tIdent && keyword(t.text) == "" && !p.isOp("(") {
			p.i++ // MATERIALIZED is a hint of other engines
		}
		p.needOp("(")
		c.Query = p.query()
		p.needOp(")")
		w.Tables = append(w.Tables, c)
		if !p.op(",") {
			return w
		}
	}
}

// tail parses what may follow a body. Trino's order is ORDER BY, OFFSET, LIMIT; LIMIT before OFFSET is taken too.
func (p *parser) tail(q *Query) {
	if p.kw("ORDER", "BY") {
		if p.is("ALL") && !p.peek(1).isOp("(") && !p.peek(1).isOp(".") {
			p.i++
			it := OrderItem{}
			p.direction(&it)
			q.OrderAll = &it
		} else {
			q.OrderBy = p.orderItems()
		}
	}
	for {
		switch {
		case p.is("OFFSET") && q.Offset == nil:
			p.i++
			q.Offset = p.count()
			if !p.kw("ROW") {
				p.kw("ROWS")
			}
		case p.is("LIMIT") && q.Limit == nil:
			p.i++
			if !p.kw("ALL") {
				q.Limit = p.count()
			}
		case p.is("FETCH") && q.Limit == nil:
			p.i++
			if !p.kw("FIRST") && !p.kw("NEXT") {
				p.expected("FIRST", "NEXT")
			}
			if p.is("ROW") || p.is("ROWS") {
				q.Limit = &Number{Pos: p.pos(), Text: "1"}
			} else {
				q.Limit = p.count()
			}
			if !p.kw("ROW") && !p.kw("ROWS") {
				p.expected("ROW", "ROWS")
			}
			if p.kw("WITH") {
				p.need("TIES")
				q.WithTies = true
			} else {
				p.need("ONLY")
			}
		default:
			return
		}
	}
}

// count parses the operand of LIMIT and OFFSET.
func (p *parser) count() Expr {
	switch {
	case p.at(tInt):
		t := p.advance()
		return &Number{Pos: Pos(t.start), Text: t.text}
	case p.at(tParam):
		return p.param()
	}
	p.expected("a number of rows", "a parameter")
	return nil
}

func (p *parser) orderItems() []OrderItem {
	var items []OrderItem
	for {
		it := OrderItem{Expr: p.expr()}
		p.direction(&it)
		items = append(items, it)
		if !p.op(",") {
			return items
		}
	}
}

func (p *parser) direction(it *OrderItem) {
	if p.kw("DESC") {
		it.Desc = true
	} else {
		p.kw("ASC")
	}
	switch {
	case p.kw("NULLS", "FIRST"):
		it.Nulls = "FIRST"
	case p.kw("NULLS", "LAST"):
		it.Nulls = "LAST"
	}
}

// setOps parses UNION and EXCEPT (level 1) over INTERSECT (level 2), left to right.
func (p *parser) setOps(level int) Body {
	var l Body
	if level == 1 {
		l = p.setOps(2)
	} else {
		l = p.bodyTerm()
	}
	n := 0
	for {
		t := p.cur()
		op := t.kw
		if op == "MINUS" {
			op = "EXCEPT"
		}
		if level == 1 && op != "UNION" && op != "EXCEPT" || level == 2 && op != "INTERSECT" {
			return l
		}
		p.chain(&n)
		p.i++
		s := &SetOp{Pos: Pos(t.start), Op: op, L: l}
		if p.kw("ALL") {
			s.All = true
		} else {
			p.kw("DISTINCT")
		}
		if level == 1 {
			s.R = p.setOps(2)
		} else {
			s.R = p.bodyTerm()
		}
		l = s
	}
}

func (p *parser) bodyTerm() Body {
	p.enter()
	defer p.leave()
	switch {
	case p.is("SELECT"), p.is("FROM"):
		return p.selectBody()
	case p.is("VALUES"):
		v := &Values{Pos: p.pos()}
		p.i++
		for {
			v.Rows = append(v.Rows, p.expr())
			if !p.op(",") {
				return v
			}
		}
	case p.is("TABLE"):
		p.i++
		t := &TableName{Parts: p.qualified()}
		t.Version = p.version()
		return &Table{Name: t}
	case p.isOp("("):
		p.i++
		q := p.query()
		p.needOp(")")
		return q
	}
	if w := p.cur().kw; writes[w] {
		p.readOnly(w)
	}
	p.expected("SELECT", "VALUES", "TABLE", "WITH", "'('")
	return nil
}

// selectBody parses a SELECT, also with FROM in front.
func (p *parser) selectBody() *Select {
	s := &Select{Pos: p.pos()}
	if p.kw("FROM") {
		s.From = p.from()
		if !p.is("SELECT") {
			s.Items = []SelectItem{{Expr: &Star{Pos: s.Pos}}}
		}
	}
	if p.kw("SELECT") {
		if p.kw("DISTINCT") {
			if p.is("ON") && p.peek(1).isOp("(") {
				p.failAt(p.pos(), "DISTINCT ON is not supported; use row_number() with QUALIFY")
			}
			s.Distinct = true
		} else if p.is("ALL") && !p.peek(1).isOp(",") {
			p.i++
		}
		s.Items = p.selectItems()
	}
	if s.From == nil && p.kw("FROM") {
		s.From = p.from()
	}
	if p.kw("WHERE") {
		s.Where = p.expr()
	}
	if p.is("GROUP") {
		s.GroupBy = p.groupBy()
	}
	if p.kw("HAVING") {
		s.Having = p.expr()
	}
	for {
		switch {
		case p.is("WINDOW") && s.Windows == nil:
			p.i++
			for {
				w := NamedWindow{Name: p.ident()}
				p.need("AS")
				w.Window = p.window()
				s.Windows = append(s.Windows, w)
				if !p.op(",") {
					break
				}
			}
		case p.is("QUALIFY") && s.Qualify == nil:
			p.i++
			s.Qualify = p.expr()
		default:
			return s
		}
	}
}

func (p *parser) selectItems() []SelectItem {
	var items []SelectItem
	for {
		items = append(items, p.selectItem())
		if !p.op(",") {
			return items
		}
		if p.is("FROM") { // a trailing comma is a common slip
			p.failAt(p.pos(), "unexpected FROM after ','; expected an expression")
		}
	}
}

func (p *parser) selectItem() SelectItem {
	if p.isOp("*") {
		s := &Star{Pos: p.pos()}
		p.i++
		p.starOptions(s)
		return SelectItem{Expr: s}
	}
	if isName(p.cur()) {
		n := 1
		for p.peek(n).isOp(".") && (p.peek(n+1).kind == tIdent || p.peek(n+1).kind == tQuoted) {
			n += 2
		}
		if p.peek(n).isOp(".") && p.peek(n+1).isOp("*") {
			s := &Star{Pos: p.pos(), Qualifier: []Ident{p.ident()}}
			for p.op(".") {
				if p.op("*") {
					break
				}
				s.Qualifier = append(s.Qualifier, p.anyIdent())
			}
			p.starOptions(s)
			return SelectItem{Expr: s}
		}
	}
	it := SelectItem{Expr: p.expr()}
	it.Alias = p.alias()
	return it
}

// alias parses [AS] name. Without AS, words that begin a clause are no alias.
func (p *parser) alias() Ident {
	if p.kw("AS") {
		return p.anyIdentAlias()
	}
	t := p.cur()
	if t.kind == tQuoted || t.kind == tIdent && (t.kw == "" || keywords[t.kw].class == classOther) {
		return p.ident()
	}
	return Ident{}
}

func (p *parser) anyIdentAlias() Ident {
	if t := p.cur(); t.kind == tIdent && isReserved(t.kw) {
		p.expected("a name")
	}
	return p.anyIdent()
}

func (p *parser) starOptions(s *Star) {
	for range 2 { // in either order
		p.starOption(s)
	}
}

func (p *parser) starOption(s *Star) {
	if s.Exclude == nil && (p.is("EXCLUDE") || p.is("EXCEPT")) && (p.peek(1).isOp("(") && !p.queryAhead(1) || p.is("EXCLUDE") && isName(p.peek(1))) {
		p.i++
		if p.isOp("(") {
			s.Exclude = p.identList()
		} else {
			s.Exclude = []Ident{p.ident()}
		}
	}
	if s.Replace == nil && p.is("REPLACE") && p.peek(1).isOp("(") {
		p.i += 2
		for {
			it := SelectItem{Expr: p.expr()}
			p.need("AS")
			it.Alias = p.ident()
			s.Replace = append(s.Replace, it)
			if !p.op(",") {
				break
			}
		}
		p.needOp(")")
	}
}

func (p *parser) groupBy() *GroupBy {
	g := &GroupBy{Pos: p.pos()}
	p.need("GROUP", "BY")
	if p.is("ALL") && !p.peek(1).isOp(".") && !p.peek(1).isOp("(") {
		t := p.peek(1)
		if t.kind == tEOF || t.isOp(")") || t.isOp(";") || t.kw != "" && t.kw != "CASE" && t.kw != "GROUPING" && t.kw != "ROLLUP" && t.kw != "CUBE" {
			p.i++
			g.All = true
			return g
		}
	}
	if p.kw("DISTINCT") {
		g.Distinct = true
	} else {
		p.kw("ALL")
	}
	for {
		g.Elements = append(g.Elements, p.grouping())
		if !p.op(",") {
			return g
		}
	}
}

func (p *parser) grouping() Grouping {
	p.enter()
	defer p.leave()
	g := Grouping{Pos: p.pos()}
	switch {
	case p.kw("ROLLUP"):
		g.Kind = "ROLLUP"
	case p.kw("CUBE"):
		g.Kind = "CUBE"
	case p.kw("GROUPING", "SETS"):
		g.Kind = "SETS"
	default:
		if p.isOp("(") && p.peek(1).isOp(")") {
			p.i += 2
			g.Kind, g.Sets = "SETS", [][]Expr{nil}
			return g
		}
		x := p.expr()
		if r, ok := x.(*Row); ok && r.Names == nil && r.Pos == g.Pos && p.text[r.Pos] == '(' {
			g.Kind, g.Sets = "SETS", [][]Expr{r.Elems}
			return g
		}
		g.Sets = [][]Expr{{x}}
		return g
	}
	p.needOp("(")
	if p.op(")") {
		return g
	}
	for {
		if g.Kind == "SETS" && (p.is("ROLLUP") || p.is("CUBE") || p.is("GROUPING")) {
			n := p.grouping()
			for len(g.Nested) < len(g.Sets) {
				g.Nested = append(g.Nested, nil)
			}
			g.Nested = append(g.Nested, &n)
			g.Sets = append(g.Sets, nil)
		} else {
			g.Sets = append(g.Sets, p.groupingSet())
			if g.Nested != nil {
				g.Nested = append(g.Nested, nil)
			}
		}
		if !p.op(",") {
			break
		}
	}
	p.needOp(")")
	return g
}

func (p *parser) groupingSet() []Expr {
	if p.isOp("(") && p.peek(1).isOp(")") {
		p.i += 2
		return nil
	}
	at := p.pos()
	x := p.expr()
	if r, ok := x.(*Row); ok && r.Names == nil && r.Pos == at && p.text[at] == '(' {
		return r.Elems
	}
	return []Expr{x}
}
