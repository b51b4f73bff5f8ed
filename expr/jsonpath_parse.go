package expr

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
)

// pathNode is a node of a path of SQL/JSON with more than steps: filters, arithmetic, literals, variables. op is
// '$' the input, 'v' a variable, '@' the filtered item, 'l' a literal, 'L' last; 's' a step from a, 'i' elements of a, '?' a filter of
// a by the predicate b; '+', '-', '*', '/', '%', and 'm' and 'p' for the signs. Predicates are '=', '!', '<', '>', '{' (<=), '}' (>=),
// '&', '|', 'n' not, 'e' exists, 'w' starts with, 'r' like_regex and 'u' is unknown.
type pathNode struct {
	op    byte
	a, b  *pathNode
	step  pathStep
	value any
	name  string
	index [][2]*pathNode // of 'i': elements from the first to the second, which may be nil
	re    *regexp.Regexp
}

// maxPathDepth bounds the nesting of a path, maxPathWork what it takes to read one: parentheses in filters are read in two ways.
const (
	maxPathDepth = 100
	maxPathWork  = 10_000
)

// pathParser reads a path of the SQL standard (part 2, 9.39 of 2016).
type pathParser struct {
	s           string
	i           int
	depth, work int
	err         error
}

// parseSQLPath reads a path of SQL/JSON; what is none is taken in Hive's spelling before it is refused.
func parseSQLPath(s string) (*jsonPath, error) {
	p := &pathParser{s: s}
	out := &jsonPath{}
	if p.word("strict") {
		out.strict = true
	} else {
		p.word("lax")
	}
	out.expr = p.sum()
	if p.space(); p.err == nil && p.i < len(s) {
		p.fail("the end")
	}
	if p.err == nil {
		out.expr.variables(func(name string) { out.names = append(out.names, name) })
		return out, nil
	}
	if hive, err := parseJSONPath(s); err == nil {
		return hive, nil
	}
	return nil, p.err
}

func (p *pathParser) fail(want string) *pathNode {
	if p.err == nil {
		p.err = fault.WithID(fault.Invalid, "INVALID_PATH", "%q is not a JSON path: it needs %s at character %d", p.s, want, len([]rune(p.s[:p.i]))+1)
	}
	p.i = len(p.s)
	return &pathNode{op: 'l'}
}

func (p *pathParser) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

// take moves over a sign if it comes next.
func (p *pathParser) take(sign string) bool {
	p.space()
	if strings.HasPrefix(p.s[p.i:], sign) {
		p.i += len(sign)
		return true
	}
	return false
}

func (p *pathParser) need(sign string) {
	if !p.take(sign) {
		p.fail("'" + sign + "'")
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// word moves over a whole word if it comes next.
func (p *pathParser) word(w string) bool {
	p.space()
	end := p.i + len(w)
	if !strings.HasPrefix(p.s[p.i:], w) || end < len(p.s) && wordByte(p.s[end]) {
		return false
	}
	p.i = end
	return true
}

func (p *pathParser) name() string {
	from := p.i
	for p.i < len(p.s) && wordByte(p.s[p.i]) {
		p.i++
	}
	return p.s[from:p.i]
}

// text reads a string in double quotes.
func (p *pathParser) text() string {
	p.space()
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		p.fail("a text in double quotes")
		return ""
	}
	s, rest, ok := quotedName(p.s[p.i:])
	if !ok {
		p.fail(`a closing "`)
		return ""
	}
	p.i = len(p.s) - len(rest)
	return s
}

func (p *pathParser) enter() bool {
	p.work++
	if p.depth++; p.depth > maxPathDepth || p.work > maxPathWork {
		p.fail("less nesting, not")
		return false
	}
	return true
}

func (p *pathParser) sum() *pathNode {
	if !p.enter() {
		return &pathNode{op: 'l'}
	}
	defer func() { p.depth-- }()
	l := p.product()
	for n := 0; p.err == nil; n++ {
		op := byte('+')
		if p.take("-") {
			op = '-'
		} else if !p.take("+") {
			break
		}
		if n == maxPathDepth {
			return p.fail("fewer operators, not one")
		}
		l = &pathNode{op: op, a: l, b: p.product()}
	}
	return l
}

func (p *pathParser) product() *pathNode {
	l := p.signed()
	for n := 0; p.err == nil; n++ {
		op := byte('*')
		if p.take("/") {
			op = '/'
		} else if p.take("%") {
			op = '%'
		} else if !p.take("*") {
			break
		}
		if n == maxPathDepth {
			return p.fail("fewer operators, not one")
		}
		l = &pathNode{op: op, a: l, b: p.signed()}
	}
	return l
}

func (p *pathParser) signed() *pathNode {
	op := byte('m')
	if p.take("+") {
		op = 'p'
	} else if !p.take("-") {
		return p.accessor()
	}
	if !p.enter() {
		return &pathNode{op: 'l'}
	}
	defer func() { p.depth-- }()
	return &pathNode{op: op, a: p.signed()}
}

func (p *pathParser) primary() *pathNode {
	p.space()
	if p.i >= len(p.s) {
		return p.fail("a value")
	}
	switch c := p.s[p.i]; {
	case c == '$':
		p.i++
		if p.i < len(p.s) && p.s[p.i] == '"' {
			return &pathNode{op: 'v', name: p.text()}
		}
		if name := p.name(); name != "" {
			return &pathNode{op: 'v', name: name}
		}
		return &pathNode{op: '$'}
	case c == '@':
		p.i++
		return &pathNode{op: '@'}
	case c == '"':
		return &pathNode{op: 'l', value: p.text()}
	case c == '(':
		p.i++
		n := p.sum()
		p.need(")")
		return n
	case c >= '0' && c <= '9' || c == '.':
		return p.number()
	case p.word("true"):
		return &pathNode{op: 'l', value: true}
	case p.word("false"):
		return &pathNode{op: 'l', value: false}
	case p.word("null"):
		return &pathNode{op: 'l'}
	case p.word("last"):
		return &pathNode{op: 'L'}
	}
	return p.fail("a value")
}

func (p *pathParser) number() *pathNode {
	from := p.i
	digits := func() {
		for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
			p.i++
		}
	}
	digits()
	exact := true
	if p.i+1 < len(p.s) && p.s[p.i] == '.' && p.s[p.i+1] >= '0' && p.s[p.i+1] <= '9' {
		p.i++
		digits()
	}
	if p.i < len(p.s) && (p.s[p.i] == 'e' || p.s[p.i] == 'E') {
		exact = false
		if p.i++; p.i < len(p.s) && (p.s[p.i] == '+' || p.s[p.i] == '-') {
			p.i++
		}
		digits()
	}
	s := p.s[from:p.i]
	if _, ok := parseDouble(s, 64); !ok || p.i < len(p.s) && wordByte(p.s[p.i]) {
		return p.fail("a number")
	}
	if exact && strings.Contains(s, ".") {
		return &pathNode{op: 'l', value: pathDecimal(s)}
	}
	return &pathNode{op: 'l', value: json.Number(s)}
}

func (p *pathParser) accessor() *pathNode {
	n := p.primary()
	for steps := 0; p.err == nil; steps++ {
		s := pathStep{kind: 'm'}
		switch {
		case p.take(".."):
			s.kind = 'd'
			if s.name = p.member(); s.name == "" {
				return p.fail("a member's name")
			}
		case p.take("."):
			if p.take("*") {
				s.kind = 'M'
				break
			}
			quoted := p.i < len(p.s) && p.s[p.i] == '"'
			if s.name = p.member(); s.name == "" && !quoted {
				return p.fail("a member's name")
			}
			if !quoted && p.take("(") {
				p.need(")")
				if !pathMethods[s.name] {
					return p.fail("a method that there is (" + s.name + "() is none)")
				}
				s.kind = 'f'
			}
		case p.take("["):
			n = p.elements(n)
			continue
		case p.take("?"):
			p.need("(")
			n = &pathNode{op: '?', a: n, b: p.either()}
			p.need(")")
			continue
		default:
			return n
		}
		if steps == 10*maxPathDepth {
			return p.fail("fewer steps, not one")
		}
		n = &pathNode{op: 's', a: n, step: s}
	}
	return n
}

var pathMethods = map[string]bool{"size": true, "type": true, "double": true, "number": true, "ceiling": true, "floor": true, "abs": true, "keyvalue": true}

func (p *pathParser) member() string {
	if p.space(); p.i < len(p.s) && p.s[p.i] == '"' {
		return p.text()
	}
	return p.name()
}

func (p *pathParser) elements(of *pathNode) *pathNode {
	if p.take("*") {
		p.need("]")
		return &pathNode{op: 's', a: of, step: pathStep{kind: 'I'}}
	}
	if p.space(); p.i < len(p.s) && (p.s[p.i] == '"' || p.s[p.i] == '\'') {
		// Hive's spelling of a member.
		name, rest, ok := quotedName(p.s[p.i:])
		if !ok {
			return p.fail("a closing quote")
		}
		p.i = len(p.s) - len(rest)
		p.need("]")
		return &pathNode{op: 's', a: of, step: pathStep{kind: 'm', name: name}}
	}
	n := &pathNode{op: 'i', a: of}
	for {
		r := [2]*pathNode{p.sum()}
		if p.word("to") {
			r[1] = p.sum()
		}
		if n.index = append(n.index, r); !p.take(",") {
			break
		}
	}
	p.need("]")
	return n
}

func (p *pathParser) either() *pathNode {
	if !p.enter() {
		return &pathNode{op: 'l'}
	}
	defer func() { p.depth-- }()
	l := p.both()
	for p.err == nil && p.take("||") {
		l = &pathNode{op: '|', a: l, b: p.both()}
	}
	return l
}

func (p *pathParser) both() *pathNode {
	l := p.predicate()
	for p.err == nil && p.take("&&") {
		l = &pathNode{op: '&', a: l, b: p.predicate()}
	}
	return l
}

func (p *pathParser) predicate() *pathNode {
	switch {
	case p.word("exists"):
		p.need("(")
		n := &pathNode{op: 'e', a: p.sum()}
		p.need(")")
		return n
	case p.take("!"):
		p.space()
		if p.i >= len(p.s) || p.s[p.i] != '(' && !strings.HasPrefix(p.s[p.i:], "exists") {
			return p.fail("'('")
		}
		if !p.enter() {
			return &pathNode{op: 'l'}
		}
		defer func() { p.depth-- }()
		return &pathNode{op: 'n', a: p.predicate()}
	}
	if p.space(); p.i < len(p.s) && p.s[p.i] == '(' {
		// A predicate in parentheses, or a value that is compared: the first that can be read.
		before, depth := p.i, p.depth
		p.i++
		n := p.either()
		p.need(")")
		if p.err == nil {
			if p.word("is") {
				if !p.word("unknown") {
					return p.fail("unknown")
				}
				n = &pathNode{op: 'u', a: n}
			}
			return n
		}
		if p.depth > maxPathDepth || p.work > maxPathWork {
			return n
		}
		p.i, p.depth, p.err = before, depth, nil
	}
	l := p.sum()
	for _, c := range [...]struct {
		sign string
		op   byte
	}{{"==", '='}, {"!=", '!'}, {"<>", '!'}, {"<=", '{'}, {">=", '}'}, {"<", '<'}, {">", '>'}} {
		if p.take(c.sign) {
			return &pathNode{op: c.op, a: l, b: p.sum()}
		}
	}
	switch {
	case p.word("starts"):
		if !p.word("with") {
			return p.fail("with")
		}
		return &pathNode{op: 'w', a: l, b: p.accessor()}
	case p.word("like_regex"):
		pattern, flags := p.text(), ""
		if p.word("flag") {
			flags = p.text()
		}
		return p.regexp(l, pattern, flags)
	}
	return p.fail("a comparison")
}

func (p *pathParser) regexp(of *pathNode, pattern, flags string) *pathNode {
	if p.err != nil {
		return of
	}
	if strings.Trim(flags, "imsq") != "" {
		return p.fail("flags of i, m, s and q, not " + strconv.Quote(flags))
	}
	if strings.Contains(flags, "q") {
		pattern, flags = regexp.QuoteMeta(pattern), strings.ReplaceAll(flags, "q", "")
	}
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return p.fail("a regular expression that can be read (" + err.Error() + ")")
	}
	return &pathNode{op: 'r', a: of, re: re}
}
