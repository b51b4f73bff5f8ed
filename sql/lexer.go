package sql

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	tEOF     kind = iota
	tIdent        // unquoted name or keyword; text is the spelling, kw the keyword in upper case
	tQuoted       // "name" or `name`; text is the name without quotes
	tString       // 'text', U&'text'; text is decoded
	tBytes        // X'00ff'; text is the raw bytes
	tInt          // 12, 0xff, 1_000
	tDecimal      // 1.5
	tDouble       // 1.5e3
	tOp           // operator or punctuation; text is canonical
	tParam        // ?, $1, :name; text is "" , "1", "name"
)

// token is a lexeme. text points into the statement wherever it needs no decoding.
type token struct {
	kind       kind
	kw         string
	text       string
	start, end int32
}

// lex splits the whole statement. Every token costs one append; nothing is copied but names and texts with escapes in them.
func lex(text string) ([]token, error) {
	l := lexer{s: text}
	toks := make([]token, 0, len(text)/5+8)
	for {
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		toks = append(toks, t)
		if t.kind == tEOF {
			return toks, nil
		}
	}
}

type lexer struct {
	s   string
	pos int
}

func (l *lexer) fail(at int, format string, args ...any) error {
	return syntaxError(l.s, Pos(at), format, args...)
}

// skip passes white space and comments.
func (l *lexer) skip() error {
	for l.pos < len(l.s) {
		c := l.s[l.pos]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.pos++
		case c == '-' && strings.HasPrefix(l.s[l.pos:], "--"):
			n := strings.IndexByte(l.s[l.pos:], '\n')
			if n < 0 {
				l.pos = len(l.s)
				return nil
			}
			l.pos += n + 1
		case c == '/' && strings.HasPrefix(l.s[l.pos:], "/*"):
			n := strings.Index(l.s[l.pos+2:], "*/")
			if n < 0 {
				return l.fail(l.pos, "comment is not closed; expected */")
			}
			l.pos += n + 4
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(l.s[l.pos:])
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return nil
			}
			l.pos += n
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	at := l.pos
	if at >= len(l.s) {
		return token{kind: tEOF, start: int32(at), end: int32(at)}, nil
	}
	c := l.s[at]
	switch {
	case isNameStart(c):
		if at+1 < len(l.s) && l.s[at+1] == '\'' {
			if c == 'x' || c == 'X' {
				return l.hexString()
			}
		}
		if (c == 'u' || c == 'U') && at+2 < len(l.s) && l.s[at+1] == '&' && (l.s[at+2] == '\'' || l.s[at+2] == '"') {
			return l.unicodeString()
		}
		return l.name()
	case isDigit(c), c == '.' && at+1 < len(l.s) && isDigit(l.s[at+1]):
		return l.number()
	case c == '\'':
		s, err := l.quoted('\'', "text literal")
		return l.emit(tString, s, at), err
	case c == '"' || c == '`':
		s, err := l.quoted(c, "quoted name")
		if err == nil && s == "" {
			err = l.fail(at, "a quoted name must not be empty")
		}
		return l.emit(tQuoted, s, at), err
	case c == '?':
		l.pos++
		return l.emit(tParam, "", at), nil
	case c == '$' && at+1 < len(l.s) && isDigit(l.s[at+1]):
		l.pos++
		for l.pos < len(l.s) && isDigit(l.s[l.pos]) {
			l.pos++
		}
		return l.emit(tParam, l.s[at+1:l.pos], at), nil
	case c == ':' && at+1 < len(l.s) && isNameStart(l.s[at+1]):
		l.pos++
		for l.pos < len(l.s) && isNamePart(l.s[l.pos]) {
			l.pos++
		}
		return l.emit(tParam, l.s[at+1:l.pos], at), nil
	}
	for _, op := range operators {
		if strings.HasPrefix(l.s[at:], op) {
			l.pos += len(op)
			if op == "!=" {
				op = "<>"
			}
			return l.emit(tOp, op, at), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(l.s[at:])
	if r == utf8.RuneError {
		return token{}, l.fail(at, "the statement is not valid UTF-8 here")
	}
	return token{}, l.fail(at, "unexpected character %q", r)
}

var operators = []string{
	"<=", ">=", "<>", "!=", "||", "->", "=>", "::", "==",
	"(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/", "%", "[", "]", "{", "}", ":",
}

func (l *lexer) emit(k kind, text string, at int) token {
	return token{kind: k, text: text, start: int32(at), end: int32(l.pos)}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isNamePart(c byte) bool { return isNameStart(c) || isDigit(c) || c == '$' }

func (l *lexer) name() (token, error) {
	at := l.pos
	for l.pos < len(l.s) {
		c := l.s[l.pos]
		if c < utf8.RuneSelf {
			if !isNamePart(c) {
				break
			}
			l.pos++
			continue
		}
		r, n := utf8.DecodeRuneInString(l.s[l.pos:])
		if r == utf8.RuneError && n <= 1 {
			return token{}, l.fail(l.pos, "the statement is not valid UTF-8 here")
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			if l.pos == at {
				return token{}, l.fail(at, "unexpected character %q", r)
			}
			break
		}
		l.pos += n
	}
	t := l.emit(tIdent, l.s[at:l.pos], at)
	t.kw = keyword(t.text)
	return t, nil
}

func (l *lexer) number() (token, error) {
	at, k := l.pos, tInt
	s := l.s
	digits := func(ok func(byte) bool) {
		for l.pos < len(s) && (ok(s[l.pos]) || s[l.pos] == '_' && l.pos > at && ok(s[l.pos-1]) && l.pos+1 < len(s) && ok(s[l.pos+1])) {
			l.pos++
		}
	}
	radix := func(ok func(byte) bool) bool {
		if at+2 < len(s) && ok(s[at+2]) {
			l.pos += 2
			digits(ok)
			return true
		}
		return false
	}
	done := false
	if s[at] == '0' && at+1 < len(s) {
		switch s[at+1] {
		case 'x', 'X':
			done = radix(isHex)
		case 'b', 'B':
			done = radix(func(c byte) bool { return c == '0' || c == '1' })
		case 'o', 'O':
			done = radix(func(c byte) bool { return c >= '0' && c <= '7' })
		}
	}
	if !done {
		digits(isDigit)
		if l.pos < len(s) && s[l.pos] == '.' {
			k = tDecimal
			l.pos++
			digits(isDigit)
		}
		if l.pos < len(s) && (s[l.pos] == 'e' || s[l.pos] == 'E') {
			p := l.pos + 1
			if p < len(s) && (s[p] == '+' || s[p] == '-') {
				p++
			}
			if p < len(s) && isDigit(s[p]) {
				k = tDouble
				l.pos = p
				digits(isDigit)
			}
		}
	}
	if l.pos < len(s) && isNamePart(s[l.pos]) {
		return token{}, l.fail(at, "a name must not begin with a digit; quote it, or put a space after the number")
	}
	return l.emit(k, s[at:l.pos], at), nil
}

func isHex(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// quoted reads a quoted lexeme in which the doubled quote stands for itself.
func (l *lexer) quoted(q byte, what string) (string, error) {
	at := l.pos
	l.pos++
	begin, doubled := l.pos, false
	for l.pos < len(l.s) {
		if l.s[l.pos] != q {
			l.pos++
			continue
		}
		if l.pos+1 < len(l.s) && l.s[l.pos+1] == q {
			doubled = true
			l.pos += 2
			continue
		}
		s := l.s[begin:l.pos]
		l.pos++
		if doubled {
			s = strings.ReplaceAll(s, string([]byte{q, q}), string([]byte{q}))
		}
		if !utf8.ValidString(s) {
			return "", l.fail(at, "the %s is not valid UTF-8", what)
		}
		return s, nil
	}
	return "", l.fail(at, "%s is not closed; expected %c", what, q)
}

func (l *lexer) hexString() (token, error) {
	at := l.pos
	l.pos++
	s, err := l.quoted('\'', "binary literal")
	if err != nil {
		return token{}, err
	}
	b := make([]byte, 0, len(s)/2)
	half, hi := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
			continue
		}
		if !isHex(c) {
			return token{}, l.fail(at, "binary literal holds %q, which is not a hexadecimal digit", c)
		}
		v := hexValue(c)
		if half {
			b = append(b, hi<<4|v)
		}
		hi, half = v, !half
	}
	if half {
		return token{}, l.fail(at, "binary literal has an odd number of hexadecimal digits")
	}
	return l.emit(tBytes, string(b), at), nil
}

func hexValue(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

// unicodeString reads U&'...' and U&"..." with \XXXX and \+XXXXXX and an optional UESCAPE 'c'.
func (l *lexer) unicodeString() (token, error) {
	at := l.pos
	l.pos += 2
	k, q := tString, l.s[l.pos]
	if q == '"' {
		k = tQuoted
	}
	s, err := l.quoted(q, "Unicode literal")
	if err != nil {
		return token{}, err
	}
	escape, end := '\\', l.pos
	if err := l.skip(); err != nil {
		return token{}, err
	}
	const word = "UESCAPE"
	if rest := l.s[l.pos:]; len(rest) > len(word) && strings.EqualFold(rest[:len(word)], word) && !isNamePart(rest[len(word)]) {
		l.pos += len(word)
		if err := l.skip(); err != nil {
			return token{}, err
		}
		if l.pos >= len(l.s) || l.s[l.pos] != '\'' {
			return token{}, l.fail(l.pos, "expected a text literal of one character after UESCAPE")
		}
		p := l.pos
		e, err := l.quoted('\'', "text literal")
		if err != nil {
			return token{}, err
		}
		r, n := utf8.DecodeRuneInString(e)
		if n == 0 || n != len(e) || r < utf8.RuneSelf && (isHex(byte(r)) || r == '+' || r == '\'' || r == '"' || r == ' ') {
			return token{}, l.fail(p, "%q cannot be an escape character", e)
		}
		escape = r
	} else {
		l.pos = end
	}
	var b strings.Builder
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		if rs[i] != escape {
			b.WriteRune(rs[i])
			continue
		}
		if i+1 < len(rs) && rs[i+1] == escape {
			b.WriteRune(escape)
			i++
			continue
		}
		n, from := 4, i+1
		if from < len(rs) && rs[from] == '+' {
			n, from = 6, from+1
		}
		v := rune(0)
		for j := from; j < from+n; j++ {
			if j >= len(rs) || rs[j] >= utf8.RuneSelf || !isHex(byte(rs[j])) {
				return token{}, l.fail(at, "incomplete escape in Unicode literal; expected %d hexadecimal digits", n)
			}
			v = v<<4 | rune(hexValue(byte(rs[j])))
		}
		if !utf8.ValidRune(v) {
			return token{}, l.fail(at, "escape %X is not a Unicode character", v)
		}
		b.WriteRune(v)
		i = from + n - 1
	}
	if k == tQuoted && b.Len() == 0 {
		return token{}, l.fail(at, "a quoted name must not be empty")
	}
	return l.emit(k, b.String(), at), nil
}
