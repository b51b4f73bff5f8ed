package sql

// Print writes a statement as SQL that parses to the same tree, positions aside.
func Print(s Statement) string {
	var p printer
	p.statement(s)
	return p.b.String()
}

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *Query:
		p.query(s)
	case *Explain:
		p.s("EXPLAIN ")
		if s.Format != "" {
			p.s("(FORMAT ", s.Format)
			if s.Analyze {
				p.s(", ANALYZE")
			}
			if s.Verbose {
				p.s(", VERBOSE")
			}
			p.s(") ")
			p.statement(s.Statement)
			return
		}
		if s.Analyze {
			p.s("ANALYZE ")
		}
		if s.Verbose {
			p.s("VERBOSE ")
		}
		p.statement(s.Statement)
	case *Show:
		p.s("SHOW ", s.What)
		if s.In != nil {
			if s.What == "CREATE TABLE" {
				p.s(" ")
			} else {
				p.s(" FROM ")
			}
			p.name(s.In)
		}
		if s.Like != nil {
			p.s(" LIKE ")
			p.expr(s.Like)
		}
		if s.Escape != nil {
			p.s(" ESCAPE ")
			p.expr(s.Escape)
		}
	case *Use:
		p.s("USE ")
		p.name(s.Name)
	case *Set:
		if s.Value == nil {
			p.s("RESET SESSION ")
			p.name(s.Name)
			return
		}
		p.s("SET SESSION ")
		p.name(s.Name)
		p.s(" = ")
		p.expr(s.Value)
	}
}

func (p *printer) query(q *Query) {
	if q.With != nil {
		p.s("WITH ")
		if q.With.Recursive {
			p.s("RECURSIVE ")
		}
		for i, c := range q.With.Tables {
			if i > 0 {
				p.s(", ")
			}
			p.ident(c.Name)
			if c.Columns != nil {
				p.s(" ")
				p.idents(c.Columns)
			}
			p.s(" AS (")
			p.query(c.Query)
			p.s(")")
		}
		p.s(" ")
	}
	p.body(q.Body)
	if q.OrderAll != nil {
		p.s(" ORDER BY ")
		p.order([]OrderItem{*q.OrderAll})
	}
	if q.OrderBy != nil {
		p.s(" ORDER BY ")
		p.order(q.OrderBy)
	}
	if q.Offset != nil {
		p.s(" OFFSET ")
		p.expr(q.Offset)
		p.s(" ROWS")
	}
	if q.Limit != nil {
		if q.WithTies {
			p.s(" FETCH FIRST ")
			p.expr(q.Limit)
			p.s(" ROWS WITH TIES")
		} else {
			p.s(" LIMIT ")
			p.expr(q.Limit)
		}
	}
}

func (p *printer) body(b Body) {
	switch b := b.(type) {
	case *Query:
		p.s("(")
		p.query(b)
		p.s(")")
	case *SetOp:
		p.operand(b, b.L, false)
		p.s(" ", b.Op)
		if b.All {
			p.s(" ALL")
		}
		p.s(" ")
		p.operand(b, b.R, true)
	case *Values:
		p.s("VALUES ")
		p.list(b.Rows)
	case *Table:
		p.s("TABLE ")
		p.table(b.Name)
	case *Select:
		p.selectBody(b)
	}
}

// operand writes a side of a set operation. INTERSECT binds stronger than the others; all go from left to right. The parser keeps
// parentheses as a *Query, so a bare SetOp here always stands where it needs none.
func (p *printer) operand(_ *SetOp, b Body, _ bool) { p.body(b) }

func (p *printer) items(items []SelectItem) {
	for i, it := range items {
		if i > 0 {
			p.s(", ")
		}
		p.expr(it.Expr)
		if it.Alias.Name != "" {
			p.s(" AS ")
			p.ident(it.Alias)
		}
	}
}

func (p *printer) selectBody(s *Select) {
	p.s("SELECT ")
	if s.Distinct {
		p.s("DISTINCT ")
	}
	p.items(s.Items)
	if s.From != nil {
		p.s(" FROM ")
		p.tableRef(s.From, false)
	}
	if s.Where != nil {
		p.s(" WHERE ")
		p.expr(s.Where)
	}
	if g := s.GroupBy; g != nil {
		p.s(" GROUP BY ")
		if g.All {
			p.s("ALL")
		}
		if g.Distinct {
			p.s("DISTINCT ")
		}
		for i := range g.Elements {
			if i > 0 {
				p.s(", ")
			}
			p.grouping(&g.Elements[i])
		}
	}
	if s.Having != nil {
		p.s(" HAVING ")
		p.expr(s.Having)
	}
	for i, w := range s.Windows {
		if i == 0 {
			p.s(" WINDOW ")
		} else {
			p.s(", ")
		}
		p.ident(w.Name)
		p.s(" AS ")
		p.window(w.Window)
	}
	if s.Qualify != nil {
		p.s(" QUALIFY ")
		p.expr(s.Qualify)
	}
}

func (p *printer) grouping(g *Grouping) {
	switch g.Kind {
	case "":
		p.list(g.Sets[0])
		return
	case "SETS":
		p.s("GROUPING SETS (")
	default:
		p.s(g.Kind, " (")
	}
	for i, set := range g.Sets {
		if i > 0 {
			p.s(", ")
		}
		if g.Nested != nil && g.Nested[i] != nil {
			p.grouping(g.Nested[i])
			continue
		}
		p.s("(")
		p.list(set)
		p.s(")")
	}
	p.s(")")
}

func (p *printer) alias(a *Alias) {
	if a == nil {
		return
	}
	p.s(" AS ")
	p.ident(a.Name)
	if a.Columns != nil {
		p.s(" ")
		p.idents(a.Columns)
	}
}

func (p *printer) sample(s *Sample) {
	if s != nil {
		p.s(" TABLESAMPLE ", s.Method, " (")
		p.expr(s.Percent)
		p.s(")")
	}
}

func (p *printer) table(t *TableName) {
	p.name(t.Parts)
	if v := t.Version; v != nil {
		switch v.Kind {
		case "VERSION", "TIMESTAMP":
			p.s(" FOR ", v.Kind, " AS OF ")
			p.sub(v.Expr, precCompare+1)
		default:
			p.s(" AT ", v.Kind, " ")
			p.sub(v.Expr, precCompare+1)
		}
	}
	p.sample(t.Sample)
	p.alias(t.Alias)
}

// tableRef writes a table; a join on the right side of another needs parentheses.
func (p *printer) tableRef(t TableRef, right bool) {
	switch t := t.(type) {
	case *TableName:
		p.table(t)
	case *FileName:
		p.s(QuoteText(t.Path))
		p.sample(t.Sample)
		p.alias(t.Alias)
	case *Derived:
		if t.Lateral {
			p.s("LATERAL ")
		}
		p.s("(")
		p.query(t.Query)
		p.s(")")
		p.sample(t.Sample)
		p.alias(t.Alias)
	case *Unnest:
		p.s("UNNEST(")
		p.list(t.Args)
		p.s(")")
		if t.Ordinality {
			p.s(" WITH ORDINALITY")
		}
		p.alias(t.Alias)
	case *TableCall:
		p.s("TABLE(")
		p.call(t.Call)
		p.s(")")
		p.alias(t.Alias)
	case *Join:
		if right {
			p.s("(")
			defer p.s(")")
		}
		// A comma binds weaker than JOIN, so a comma list on the left of a JOIN stands in parentheses.
		l, isJoin := t.L.(*Join)
		p.tableRef(t.L, isJoin && l.Comma && !t.Comma)
		if t.Comma {
			p.s(", ")
			r, isJoin := t.R.(*Join)
			p.tableRef(t.R, isJoin && r.Comma)
			return
		}
		if t.Natural {
			p.s(" NATURAL")
		}
		p.s(" ", t.Kind, " JOIN ")
		_, isJoin = t.R.(*Join)
		p.tableRef(t.R, isJoin)
		if t.On != nil {
			p.s(" ON ")
			p.expr(t.On)
		}
		if t.Using != nil {
			p.s(" USING ")
			p.idents(t.Using)
		}
	}
}
