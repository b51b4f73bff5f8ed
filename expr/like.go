package expr

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// likeMatcher is a compiled LIKE pattern. The common shapes are byte searches; the rest is matched step by step.
type likeMatcher struct {
	parts  [][]byte // literal texts between runs of %
	any    []bool   // parts[i] holds _ (as the byte 0xFF, which no UTF-8 text has)
	starts bool     // the pattern begins with %
	ends   bool     // the pattern ends with %
	re     *regexp.Regexp
}

const anyChar = 0xFF

func compileLike(pattern string, escape rune, ci bool) (*likeMatcher, error) {
	m := &likeMatcher{}
	var part []byte
	hasAny, open := false, false
	var re strings.Builder
	flush := func() {
		if part != nil {
			m.parts = append(m.parts, part)
			m.any = append(m.any, hasAny)
			part, hasAny = nil, false
		}
	}
	rs := []rune(pattern)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		if escape != 0 && r == escape {
			i++
			if i >= len(rs) || rs[i] != '%' && rs[i] != '_' && rs[i] != escape {
				return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the escape character of LIKE must be followed by %%, _ or itself, in %q", pattern)
			}
			part = utf8.AppendRune(part, rs[i])
			re.WriteString(regexp.QuoteMeta(string(rs[i])))
			open = false
			continue
		}
		switch r {
		case '%':
			if i == 0 {
				m.starts = true
			}
			flush()
			re.WriteString(".*")
			open = true
		case '_':
			part = append(part, anyChar)
			hasAny, open = true, false
			re.WriteString(".")
		default:
			part = utf8.AppendRune(part, r)
			re.WriteString(regexp.QuoteMeta(string(r)))
			open = false
		}
	}
	flush()
	m.ends = open
	if ci {
		c, err := regexp.Compile("(?is)^" + re.String() + "$")
		if err != nil {
			return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "LIKE pattern %q: %v", pattern, err)
		}
		m.re = c
	}
	return m, nil
}

// matchAt matches a part with the beginning of s and gives the bytes taken, or -1.
func matchAt(s, part []byte) int {
	k := 0
	for _, c := range part {
		if k >= len(s) {
			return -1
		}
		if c == anyChar {
			_, n := utf8.DecodeRune(s[k:])
			k += n
			continue
		}
		if s[k] != c {
			return -1
		}
		k++
	}
	return k
}

func (m *likeMatcher) match(s []byte) bool {
	if m.re != nil {
		return m.re.Match(s)
	}
	parts := m.parts
	if len(parts) == 0 {
		return m.starts || len(s) == 0
	}
	first := 0
	if !m.starts {
		k := matchAt(s, parts[0])
		if k < 0 {
			return false
		}
		s = s[k:]
		first = 1
		if len(parts) == 1 {
			return m.ends || len(s) == 0
		}
	}
	last := len(parts)
	if !m.ends {
		last--
	}
	for i := first; i < last; i++ {
		if !m.any[i] {
			k := bytes.Index(s, parts[i])
			if k < 0 {
				return false
			}
			s = s[k+len(parts[i]):]
			continue
		}
		found := false
		for len(s) > 0 {
			if k := matchAt(s, parts[i]); k >= 0 {
				s = s[k:]
				found = true
				break
			}
			_, n := utf8.DecodeRune(s)
			s = s[n:]
		}
		if !found {
			return false
		}
	}
	if m.ends {
		return true
	}
	// The last part must end the text.
	part := parts[len(parts)-1]
	if !m.any[len(parts)-1] {
		return bytes.HasSuffix(s, part)
	}
	chars := 0
	for _, c := range part {
		if c == anyChar || c < utf8.RuneSelf || utf8.RuneStart(c) {
			chars++
		}
	}
	at := len(s)
	for range chars {
		if at == 0 {
			return false
		}
		_, n := utf8.DecodeLastRune(s[:at])
		at -= n
	}
	return matchAt(s[at:], part) == len(s)-at
}

type likeNode struct {
	arg, pattern node
	e            *Like
	m            *likeMatcher // of a constant pattern
	isNull       bool         // the constant pattern is null
	dict         dictMatch
	s1, s2       []uint16
	mark         []bool
	out          result
	cache        map[string]*likeMatcher
}

func (c *compiler) like(e *Like) (node, error) {
	arg, err := c.compile(e.Arg)
	if err != nil {
		return nil, err
	}
	pattern, err := c.compile(e.Pattern)
	if err != nil {
		return nil, err
	}
	n := &likeNode{arg: arg, pattern: pattern, e: e}
	if k, ok := pattern.(*constNode); ok {
		v := k.v.Get(0)
		if v == nil {
			n.isNull = true
		} else if n.m, err = compileLike(v.(string), e.Escape, e.CaseInsensitive); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// matches gives the rows, not null in either operand, that match (before negation).
func (x *likeNode) matches(a, p *vector.Vector, n int, sel, dst []uint16) ([]uint16, error) {
	dst = dst[:cap(dst)]
	if x.m != nil && a.Form == vector.Dictionary {
		if d := a.Dict.StoredLen(); d <= len(sel) {
			return x.dict.filter(a, d, sel, dst, x.constant), nil
		}
	}
	x.s2 = grown(x.s2, n)
	sel = notNull(a, sel, x.s2)
	if x.m != nil {
		return x.constant(a, sel, dst), nil
	}
	sel = notNull(p, sel, x.s2)
	if x.cache == nil {
		x.cache = map[string]*likeMatcher{}
	}
	j := 0
	for _, i := range sel {
		pat := p.Bytes(int(i))
		m := x.cache[string(pat)]
		if m == nil {
			var err error
			if m, err = compileLike(string(pat), x.e.Escape, x.e.CaseInsensitive); err != nil {
				return nil, err
			}
			if len(x.cache) > 1000 {
				clear(x.cache)
			}
			x.cache[string(pat)] = m
		}
		dst[j] = i
		if m.match(a.Bytes(int(i))) {
			j++
		}
	}
	return dst[:j], nil
}

func (x *likeNode) constant(v *vector.Vector, sel, dst []uint16) []uint16 {
	c, bufs := colOf[vector.View](v), v.Values().Bufs
	j := 0
	for _, i := range sel {
		dst[j] = i
		if x.m.match(c.ptr(int(i)).Bytes(bufs)) {
			j++
		}
	}
	return dst[:j]
}

func (x *likeNode) operands(b *batch, sel []uint16) (a, p *vector.Vector, err error) {
	if a, err = x.arg.eval(b, sel); err != nil {
		return
	}
	p, err = x.pattern.eval(b, sel)
	return
}

func (x *likeNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	if x.isNull {
		return dst[:0], nil
	}
	a, p, err := x.operands(b, sel)
	if err != nil {
		return nil, err
	}
	if !x.e.Negated {
		return x.matches(a, p, b.n, sel, dst)
	}
	x.s1, x.mark = grown(x.s1, b.n), grown(x.mark, b.n)
	for _, i := range sel {
		x.mark[i] = !a.IsNull(int(i)) && !p.IsNull(int(i))
	}
	hits, err := x.matches(a, p, b.n, sel, x.s1)
	if err != nil {
		return nil, err
	}
	for _, i := range hits {
		x.mark[i] = false
	}
	return keepMarked(sel, x.mark, dst), nil
}

func (x *likeNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	rows := rowsOf(sel, b.n)
	v := x.out.reset(boolean, b.n)
	a, p, err := x.operands(b, rows)
	if err != nil {
		return nil, err
	}
	andValid(v, &x.out.valid, b.n, a, p)
	for _, i := range rows {
		v.Bools[i] = x.e.Negated
	}
	if x.isNull {
		return v, nil
	}
	x.s1 = grown(x.s1, b.n)
	hits, err := x.matches(a, p, b.n, rows, x.s1)
	if err != nil {
		return nil, err
	}
	for _, i := range hits {
		v.Bools[i] = !x.e.Negated
	}
	return v, nil
}
