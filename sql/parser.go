package sql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Limits of a statement. They bound the work and the stack that hostile text can cause.
const (
	MaxBytes  = 1 << 20 // length of the text
	MaxDepth  = 500     // nesting of parentheses, subqueries and calls
	maxChain  = 2000    // operators, joins or set operations in one row
	maxHeight = 5000    // of an expression: nesting and rows of operators together
	maxParams = 32767
)

// Parsed is a statement with what the binder needs of its text.
type Parsed struct {
	Text      string
	Statement Statement
	// Params is the number of parameters; ParamNames holds the names of :name parameters, else nil.
	Params     int
	ParamNames []string
}

// Parse reads one statement, with or without a closing semicolon. An error is fault.Invalid with id SYNTAX_ERROR that points
// at line and column, or fault.Unsupported for statements that write.
func Parse(text string) (*Parsed, error) {
	if len(text) > MaxBytes {
		return nil, fault.WithID(fault.Invalid, "QUERY_TEXT_TOO_LARGE", "the statement has %d bytes; at most %d are taken", len(text), MaxBytes)
	}
	toks, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, toks: toks}
	var stmt Statement
	err = p.run(func() {
		stmt = p.statement()
		for p.op(";") {
		}
		if !p.at(tEOF) {
			p.expected("end of statement")
		}
	})
	if err != nil {
		return nil, err
	}
	return &Parsed{Text: text, Statement: stmt, Params: p.params, ParamNames: p.names}, nil
}

// ParseExpr reads a lone expression, as row filters of the configuration and tests write them.
func ParseExpr(text string) (Expr, error) {
	toks, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, toks: toks}
	var x Expr
	err = p.run(func() {
		x = p.expr()
		if !p.at(tEOF) {
			p.expected("end of expression")
		}
	})
	return x, err
}

// parser is a recursive descent over the tokens. A syntax error unwinds by panic with a bailout, which run turns back into an error:
// nothing else of the package panics.
type parser struct {
	text   string
	toks   []token
	i      int
	depth  int
	height int // of the expressions parsed since it was last set to zero
	params int
	style  ParamStyle
	styled bool
	names  []string
}

type bailout struct{ err error }

func (p *parser) run(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			b, ok := r.(bailout)
			if !ok {
				panic(r)
			}
			err = b.err
		}
	}()
	f()
	return nil
}

func (p *parser) cur() *token { return &p.toks[p.i] }

// peek looks n tokens ahead; past the end it stays on EOF.
func (p *parser) peek(n int) *token { return &p.toks[min(p.i+n, len(p.toks)-1)] }

func (p *parser) at(k kind) bool { return p.toks[p.i].kind == k }

func (p *parser) pos() Pos { return Pos(p.toks[p.i].start) }

func (p *parser) advance() *token {
	t := &p.toks[p.i]
	if t.kind != tEOF {
		p.i++
	}
	return t
}

// is reports whether the current token is keyword kw; isOp the same for an operator.
func (p *parser) is(kw string) bool    { return p.toks[p.i].kw == kw }
func (p *parser) isOp(op string) bool  { return p.toks[p.i].isOp(op) }
func (t *token) isOp(op string) bool   { return t.kind == tOp && t.text == op }
func (p *parser) next(kws string) bool { return p.peek(1).kw == kws }

// previous is the token before the current one.
func (p *parser) previous() token {
	if p.i == 0 {
		return token{}
	}
	return p.toks[p.i-1]
}

// kw takes the keywords if they stand here, all or none.
func (p *parser) kw(words ...string) bool {
	for n, w := range words {
		if p.peek(n).kw != w {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) op(op string) bool {
	if p.isOp(op) {
		p.i++
		return true
	}
	return false
}

func (p *parser) need(words ...string) {
	for _, w := range words {
		if !p.kw(w) {
			p.expected(w)
		}
	}
}

func (p *parser) needOp(op string) {
	if !p.op(op) {
		p.expected("'" + op + "'")
	}
}

func (p *parser) failAt(at Pos, format string, args ...any) {
	panic(bailout{syntaxError(p.text, at, format, args...)})
}

func (p *parser) unsupportedAt(at Pos, message string) {
	panic(bailout{Errorf(p.text, at, fault.Unsupported, "NOT_SUPPORTED", "%s", message)})
}

// expected fails at the current token: what stands there, what should, and what may have been meant.
func (p *parser) expected(what ...string) {
	t := p.cur()
	found := "end of statement"
	if t.kind != tEOF {
		s := p.text[t.start:t.end]
		if len(s) > 40 {
			s = s[:strings.LastIndexFunc(s[:40], func(rune) bool { return true })] + "..."
		}
		found = "'" + s + "'"
	}
	hint := ""
	if prev := p.previous(); what[0] == "end of statement" && prev.kind == tIdent && prev.kw == "" {
		// A misspelt clause word was taken for an alias.
		if n := Nearest(prev.text, keywordHints(nil)); n != "" {
			hint = fmt.Sprintf("; did you mean %s instead of '%s'?", n, prev.text)
		}
	} else if t.kind == tIdent && t.kw == "" {
		if n := Nearest(t.text, keywordHints(what)); n != "" {
			hint = fmt.Sprintf("; did you mean %s?", n)
		}
	} else if isReserved(t.kw) && (what[0] == "a name" || what[0] == "a table") {
		hint = fmt.Sprintf("; %s is a reserved word, quote it to use it as a name", t.kw)
	}
	p.failAt(p.pos(), "unexpected %s; expected %s%s", found, join(what), hint)
}

// keywordHints are the keywords to compare a misspelt word with: the expected ones and those that go on with any clause.
func keywordHints(what []string) []string {
	c := []string{"SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "JOIN", "ON", "USING", "BETWEEN", "LIKE", "WINDOW", "QUALIFY", "VALUES", "EXPLAIN", "DESCRIBE", "FETCH"}
	for _, w := range what {
		if keyword(w) != "" {
			c = append(c, w)
		}
	}
	return c
}

func join(what []string) string {
	if len(what) == 1 {
		return what[0]
	}
	return strings.Join(what[:len(what)-1], ", ") + " or " + what[len(what)-1]
}

// enter counts a level of nesting; the caller defers leave.
func (p *parser) enter() {
	p.depth++
	if p.depth > MaxDepth {
		p.failAt(p.pos(), "the statement is nested more than %d levels deep", MaxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// chain counts elements of a row of operators that makes the tree deep without nesting.
func (p *parser) chain(n *int) {
	*n++
	if *n > maxChain {
		p.failAt(p.pos(), "more than %d operators in a row", maxChain)
	}
}

// isName reports whether t can be a name; the reserved words cannot.
func isName(t *token) bool {
	return t.kind == tQuoted || t.kind == tIdent && !isReserved(t.kw)
}

func (p *parser) ident() Ident {
	t := p.cur()
	if !isName(t) {
		p.expected("a name")
	}
	p.i++
	return Ident{Pos: Pos(t.start), Name: t.text, Quoted: t.kind == tQuoted}
}

// anyIdent also takes reserved words: after a dot or AS they cannot mean anything else.
func (p *parser) anyIdent() Ident {
	t := p.cur()
	if t.kind != tQuoted && t.kind != tIdent {
		p.expected("a name")
	}
	p.i++
	return Ident{Pos: Pos(t.start), Name: t.text, Quoted: t.kind == tQuoted}
}

func (p *parser) qualified() []Ident {
	parts := []Ident{p.ident()}
	for p.isOp(".") {
		p.i++
		parts = append(parts, p.anyIdent())
		if len(parts) > 64 {
			p.failAt(p.pos(), "the name has more than 64 parts")
		}
	}
	return parts
}

func (p *parser) identList() []Ident {
	p.needOp("(")
	var ids []Ident
	for {
		ids = append(ids, p.ident())
		if !p.op(",") {
			break
		}
	}
	p.needOp(")")
	return ids
}

func (p *parser) number(what string) int {
	if !p.at(tInt) {
		p.expected(what)
	}
	n, err := strconv.Atoi(strings.ReplaceAll(p.cur().text, "_", ""))
	if err != nil {
		p.failAt(p.pos(), "%s is out of range for %s", p.cur().text, what)
	}
	p.i++
	return n
}

func (p *parser) param() Expr {
	t := p.advance()
	style := Question
	switch {
	case t.text == "":
	case isDigit(t.text[0]):
		style = Numbered
	default:
		style = Named
	}
	if p.styled && style != p.style {
		p.failAt(Pos(t.start), "?, $n and :name parameters cannot be mixed in one statement")
	}
	p.style, p.styled = style, true
	x := &Param{Pos: Pos(t.start), Style: style}
	switch style {
	case Question:
		x.Index = p.params
		p.params++
	case Numbered:
		n, err := strconv.Atoi(t.text)
		if err != nil || n < 1 || n > maxParams {
			p.failAt(Pos(t.start), "parameter number %s is not between 1 and %d", t.text, maxParams)
		}
		x.Index = n - 1
		p.params = max(p.params, n)
	case Named:
		x.Name = t.text
		x.Index = -1
		for i, n := range p.names {
			if strings.EqualFold(n, t.text) {
				x.Index = i
			}
		}
		if x.Index < 0 {
			x.Index = len(p.names)
			p.names = append(p.names, t.text)
			p.params = len(p.names)
		}
	}
	if p.params > maxParams {
		p.failAt(Pos(t.start), "more than %d parameters", maxParams)
	}
	return x
}
