package sql

import (
	"strings"

	"github.com/skua-db/skua/fault"
)

// writes are the first words of statements that change something.
var writes = map[string]bool{
	"INSERT": true, "UPDATE": true, "DELETE": true, "MERGE": true, "CREATE": true, "DROP": true, "ALTER": true, "TRUNCATE": true, "GRANT": true, "REVOKE": true,
	"CALL": true, "COMMENT": true, "RENAME": true, "REFRESH": true, "COPY": true, "ANALYZE": true, "OPTIMIZE": true, "VACUUM": true, "LOAD": true, "DENY": true,
	"REPLACE": true,
}

// unserved are the first words of statements that Skua has no use for.
var unserved = map[string]string{
	"COMMIT": "transactions", "ROLLBACK": "transactions", "START": "transactions", "BEGIN": "transactions",
	"EXECUTE": "PREPARE and EXECUTE; prepare through the driver", "PREPARE": "PREPARE and EXECUTE; prepare through the driver",
	"DEALLOCATE": "PREPARE and EXECUTE; prepare through the driver", "ATTACH": "ATTACH; catalogs are configured in the server",
	"DETACH": "DETACH; catalogs are configured in the server", "INSTALL": "extensions", "PRAGMA": "PRAGMA",
}

func (p *parser) statement() Statement {
	p.enter()
	defer p.leave()
	t := p.cur()
	at := Pos(t.start)
	if p.at(tEOF) {
		p.failAt(at, "the statement is empty")
	}
	switch t.kw {
	case "SELECT", "WITH", "VALUES", "TABLE", "FROM":
		q := p.query()
		if w := p.cur().kw; q.With != nil && writes[w] {
			p.readOnly(w)
		}
		return q
	case "EXPLAIN":
		return p.explain()
	case "SHOW":
		return p.show()
	case "DESCRIBE", "DESC":
		p.i++
		if p.queryAhead(0) && !p.is("TABLE") {
			return &Explain{Pos: at, Statement: p.query()}
		}
		p.kw("TABLE")
		return &Show{Pos: at, What: "COLUMNS", In: p.qualified()}
	case "USE":
		p.i++
		return &Use{Pos: at, Name: p.qualified()}
	case "SET":
		p.i++
		if p.is("TIME") && p.next("ZONE") {
			n := []Ident{{Pos: p.pos(), Name: "timezone"}}
			p.i += 2
			return &Set{Pos: at, Name: n, Value: p.setting()}
		}
		if p.is("SESSION") && !p.peek(1).isOp("=") {
			p.i++
		}
		s := &Set{Pos: at, Name: p.qualified()}
		if !p.op("=") && !p.kw("TO") {
			p.expected("'='")
		}
		s.Value = p.setting()
		return s
	case "RESET":
		p.i++
		if p.is("SESSION") && p.peek(1).kind != tEOF {
			p.i++
		}
		return &Set{Pos: at, Name: p.qualified()}
	}
	if t.isOp("(") {
		return p.query()
	}
	if writes[t.kw] {
		p.readOnly(t.kw)
	}
	if what := unserved[t.kw]; what != "" {
		panic(bailout{Errorf(p.text, at, fault.Unsupported, "NOT_SUPPORTED", "Skua does not support %s", what)})
	}
	p.expected("SELECT", "VALUES", "WITH", "TABLE", "EXPLAIN", "SHOW", "DESCRIBE", "USE", "SET")
	return nil
}

func (p *parser) readOnly(what string) {
	panic(bailout{Errorf(p.text, p.pos(), fault.Unsupported, "NOT_SUPPORTED", "%s is not supported: Skua is read-only", what)})
}

// setting parses the value of a SET: an expression, or a bare word such as ON.
func (p *parser) setting() Expr {
	t := p.cur()
	if t.kind == tIdent && (p.peek(1).kind == tEOF || p.peek(1).isOp(";")) && t.kw != "TRUE" && t.kw != "FALSE" && t.kw != "NULL" {
		p.i++
		return &Text{Pos: Pos(t.start), Value: t.text}
	}
	return p.expr()
}

func (p *parser) explain() Statement {
	x := &Explain{Pos: p.pos()}
	p.i++
	x.Analyze = p.kw("ANALYZE") || p.kw("ANALYSE")
	x.Verbose = p.kw("VERBOSE")
	if p.isOp("(") && !p.queryAhead(0) {
		p.i++
		for {
			switch t := p.advance(); t.kw {
			case "ANALYZE", "ANALYSE":
				x.Analyze = !p.kw("FALSE")
				p.kw("TRUE")
			case "VERBOSE":
				x.Verbose = !p.kw("FALSE")
				p.kw("TRUE")
			case "FORMAT":
				v := p.cur()
				if x.Format = strings.ToUpper(v.text); v.kind != tIdent || x.Format != "TEXT" && x.Format != "JSON" {
					p.expected("TEXT", "JSON")
				}
				p.i++
			case "TYPE":
				v := p.cur()
				if v.kind != tIdent {
					p.expected("a name")
				}
				p.i++
			default:
				p.i--
				p.expected("ANALYZE", "VERBOSE", "TYPE", "FORMAT")
			}
			if !p.op(",") {
				break
			}
		}
		p.needOp(")")
	}
	x.Statement = p.statement()
	switch x.Statement.(type) {
	case *Explain, *Use, *Set:
		p.failAt(x.Statement.At(), "EXPLAIN takes a query")
	}
	return x
}

func (p *parser) show() Statement {
	s := &Show{Pos: p.pos()}
	p.i++
	in := func(required bool) {
		if p.kw("FROM") || p.kw("IN") {
			s.In = p.qualified()
		} else if required {
			p.expected("FROM", "IN")
		}
	}
	switch {
	case p.kw("CATALOGS"):
		s.What = "CATALOGS"
	case p.kw("SCHEMAS"), p.kw("DATABASES"):
		s.What = "SCHEMAS"
		in(false)
	case p.kw("TABLES"), p.kw("VIEWS"):
		s.What = "TABLES"
		in(false)
	case p.kw("COLUMNS"):
		s.What = "COLUMNS"
		in(true)
	case p.kw("FUNCTIONS"):
		s.What = "FUNCTIONS"
	case p.kw("SESSION"):
		s.What = "SESSION"
	case p.kw("CREATE", "TABLE"), p.kw("CREATE", "VIEW"):
		s.What = "CREATE TABLE"
		s.In = p.qualified()
		return s
	default:
		p.expected("CATALOGS", "SCHEMAS", "TABLES", "COLUMNS", "FUNCTIONS", "SESSION", "CREATE TABLE")
	}
	if p.kw("LIKE") {
		if !p.at(tString) && !p.at(tParam) {
			p.expected("a text literal")
		}
		s.Like = p.primary()
		if p.kw("ESCAPE") {
			s.Escape = p.primary()
		}
	}
	return s
}
