package expr

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skua-db/skua/vector"
)

// regexps compiles the patterns that a program meets.
type regexps struct {
	last string
	re   *regexp.Regexp
	all  map[string]*regexp.Regexp
}

func (c *regexps) get(p string) (*regexp.Regexp, error) {
	if c.re != nil && c.last == p {
		return c.re, nil
	}
	re := c.all[p]
	if re == nil {
		var err error
		if re, err = regexp.Compile(p); err != nil {
			switch {
			case strings.Contains(p, "(?=") || strings.Contains(p, "(?!") || strings.Contains(p, "(?<=") || strings.Contains(p, "(?<!"):
				return nil, badArgument("regular expression %q: look-around is not supported (RE2 syntax)", p)
			case backReference.MatchString(p):
				return nil, badArgument("regular expression %q: back-references are not supported (RE2 syntax)", p)
			}
			return nil, badArgument("regular expression %q: %v", p, err)
		}
		if c.all == nil || len(c.all) > 100 {
			c.all = map[string]*regexp.Regexp{}
		}
		c.all[strings.Clone(p)] = re
	}
	c.last, c.re = strings.Clone(p), re
	return re, nil
}

var backReference = regexp.MustCompile(`\\[1-9]`)

// replacement turns $1 and ${name} into Go's form, in which $1x would be the group "1x".
func replacement(re *regexp.Regexp, s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i >= len(s) {
				return "", badArgument("the replacement ends with a backslash")
			}
			if s[i] == '$' {
				b.WriteByte('$')
			}
			b.WriteByte(s[i])
		case '$':
			j := i + 1
			if j < len(s) && s[j] == '{' {
				end := strings.IndexByte(s[j:], '}')
				if end < 0 {
					return "", badArgument("the replacement has a ${ without }")
				}
				name := s[j+1 : j+end]
				if re.SubexpIndex(name) < 0 {
					return "", badArgument("the pattern has no group %q", name)
				}
				b.WriteString("${" + name + "}")
				i = j + end
				break
			}
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			n, err := strconv.Atoi(s[i+1 : j])
			for err == nil && n > re.NumSubexp() && j > i+2 {
				j--
				n, err = strconv.Atoi(s[i+1 : j])
			}
			if err != nil || n > re.NumSubexp() {
				return "", badArgument("the replacement names a group that the pattern does not have")
			}
			b.WriteString("${" + strconv.Itoa(n) + "}")
			i = j - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// withRegexp makes a kernel whose second argument is a pattern.
func withRegexp(mk func(c *regexps) kernel) func(*binding) (kernel, error) {
	return func(*binding) (kernel, error) { return mk(&regexps{}), nil }
}

func init() {
	defMake("regexp_like", "(varchar, varchar) boolean", "whether the pattern matches somewhere", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) (bool, error) {
			re, err := c.get(p)
			if err != nil {
				return false, err
			}
			return re.MatchString(s), nil
		})
	}))
	defMake("regexp_count", "(varchar, varchar) bigint", "number of matches", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) (int64, error) {
			re, err := c.get(p)
			if err != nil {
				return 0, err
			}
			return int64(len(re.FindAllStringIndex(s, -1))), nil
		})
	}))
	defMake("regexp_position", "(varchar, varchar) integer", "position of the first match, -1 for none", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) (int64, error) {
			re, err := c.get(p)
			if err != nil {
				return 0, err
			}
			at := re.FindStringIndex(s)
			if at == nil || s == "" { // as Trino has it, even where the pattern matches nothing
				return -1, nil
			}
			return int64(len([]rune(s[:at[0]]))) + 1, nil
		})
	}))
	position := func(c *regexps, s, p string, start, occurrence int64) (int64, error) {
		switch {
		case start < 1:
			return 0, badArgument("regexp_position: the start must be at least 1, not %d", start)
		case occurrence < 1:
			return 0, badArgument("regexp_position: the occurrence must be at least 1, not %d", occurrence)
		}
		re, err := c.get(p)
		if err != nil {
			return 0, err
		}
		from := 0
		for range start - 1 {
			if from >= len(s) {
				return -1, nil
			}
			_, n := utf8.DecodeRuneInString(s[from:])
			from += n
		}
		for {
			lo, hi, err := matchFrom(c, re, s, p, from)
			if err != nil || lo < 0 {
				return -1, err
			}
			if occurrence--; occurrence == 0 {
				return int64(utf8.RuneCountInString(s[:lo])) + 1, nil
			}
			if from = hi; hi == lo {
				if hi == len(s) {
					return -1, nil
				}
				_, n := utf8.DecodeRuneInString(s[hi:])
				from += n
			}
		}
	}
	defMake("regexp_position", "(varchar, varchar, bigint) integer", "position of the first match from a position on, -1 for none", withRegexp(func(c *regexps) kernel {
		return fn3(func(_ *evalCall, s, p string, start int64) (int64, error) { return position(c, s, p, start, 1) })
	}))
	defMake("regexp_position", "(varchar, varchar, bigint, bigint) integer", "position of the n-th match from a position on, -1 for none", withRegexp(func(c *regexps) kernel {
		return fn4(func(_ *evalCall, s, p string, start, n int64) (int64, error) { return position(c, s, p, start, n) })
	}))
	extract := func(c *regexps, s, p string, g int64) (string, error) {
		re, err := c.get(p)
		if err != nil {
			return "", err
		}
		if g < 0 || g > int64(re.NumSubexp()) {
			return "", badArgument("the pattern has %d groups, not %d", re.NumSubexp(), g)
		}
		m := re.FindStringSubmatchIndex(s)
		if m == nil || m[2*g] < 0 {
			return "", errNull
		}
		return s[m[2*g]:m[2*g+1]], nil
	}
	defMake("regexp_extract", "(varchar, varchar) varchar", "the first match", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) (string, error) { return extract(c, s, p, 0) })
	}), mayNull)
	defMake("regexp_extract", "(varchar, varchar, bigint) varchar", "a group of the first match", withRegexp(func(c *regexps) kernel {
		return fn3(func(_ *evalCall, s, p string, g int64) (string, error) { return extract(c, s, p, g) })
	}), mayNull)
	all := func(c *regexps, s, p string, g int64) ([]vector.Value, error) {
		re, err := c.get(p)
		if err != nil {
			return nil, err
		}
		if g < 0 || g > int64(re.NumSubexp()) {
			return nil, badArgument("the pattern has %d groups, not %d", re.NumSubexp(), g)
		}
		out := []vector.Value{}
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			if m[2*g] < 0 {
				out = append(out, nil)
			} else {
				out = append(out, s[m[2*g]:m[2*g+1]])
			}
		}
		return out, nil
	}
	defMake("regexp_extract_all", "(varchar, varchar) array(varchar)", "all matches", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) ([]vector.Value, error) { return all(c, s, p, 0) })
	}))
	defMake("regexp_extract_all", "(varchar, varchar, bigint) array(varchar)", "a group of all matches", withRegexp(func(c *regexps) kernel {
		return fn3(func(_ *evalCall, s, p string, g int64) ([]vector.Value, error) { return all(c, s, p, g) })
	}))
	defMake("regexp_split", "(varchar, varchar) array(varchar)", "the parts between matches", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) ([]vector.Value, error) {
			re, err := c.get(p)
			if err != nil {
				return nil, err
			}
			var out []vector.Value
			at := 0
			for _, m := range re.FindAllStringIndex(s, -1) {
				out = append(out, s[at:m[0]])
				at = m[1]
			}
			return append(out, s[at:]), nil
		})
	}))
	replace := func(c *regexps, s, p, r string) (string, error) {
		re, err := c.get(p)
		if err != nil {
			return "", err
		}
		tmpl, err := replacement(re, r)
		if err != nil {
			return "", err
		}
		return replaceAll(re, s, tmpl), nil
	}
	defMake("regexp_replace", "(varchar, varchar) varchar", "without the matches", withRegexp(func(c *regexps) kernel {
		return fn2(func(_ *evalCall, s, p string) (string, error) { return replace(c, s, p, "") })
	}))
	defMake("regexp_replace", "(varchar, varchar, varchar) varchar", "with the matches replaced; $1 is a group", withRegexp(func(c *regexps) kernel {
		return fn3(func(_ *evalCall, s, p, r string) (string, error) { return replace(c, s, p, r) })
	}))
	def("regexp_replace", "(varchar, varchar, function(array(varchar), varchar)) varchar", "with the matches replaced by a function of their groups", regexpReplaceBy)
}

// replaceAll replaces every match as Java does: unlike in Go an empty match right after another match counts. All matches are
// taken from the whole text, so anchors and word boundaries see what stands before them.
func replaceAll(re *regexp.Regexp, s, tmpl string) string {
	var out []byte
	at := 0
	ms := re.FindAllStringSubmatchIndex(s, -1)
	for k, m := range ms {
		out = append(out, s[at:m[0]]...)
		out = re.ExpandString(out, tmpl, s, m)
		at = m[1]
		end := len(s)
		if k+1 < len(ms) {
			end = ms[k+1][0]
		}
		if m[1] > m[0] && (m[1] < end || m[1] == len(s) && end == len(s)) {
			if e := re.FindStringSubmatchIndex(s[m[1]:]); e != nil && e[0] == 0 && e[1] == 0 && m[1] == len(s) {
				out = re.ExpandString(out, tmpl, "", make([]int, len(e)))
			}
		}
	}
	return string(append(out, s[at:]...))
}

func regexpReplaceBy(x *evalCall, out *vector.Vector) error {
	var c regexps
	t := []vector.Type{vector.ArrayOf(varchar)}
	return forRows(x, out, func(i int) (string, error) {
		s, p := string(x.args[0].Bytes(i)), string(x.args[1].Bytes(i))
		re, err := c.get(p)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		at := 0
		for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
			b.WriteString(s[at:m[0]])
			groups := []vector.Value{}
			for g := 1; g <= re.NumSubexp(); g++ {
				if m[2*g] < 0 {
					groups = append(groups, nil)
				} else {
					groups = append(groups, s[m[2*g]:m[2*g+1]])
				}
			}
			r, err := one(x, x.lambdas[2], i, t, groups)
			if err != nil {
				return "", err
			}
			text, ok := r.(string)
			if !ok {
				return "", errNull
			}
			b.WriteString(text)
			at = m[1]
		}
		b.WriteString(s[at:])
		return b.String(), nil
	})
}

// matchFrom finds the first match that begins at byte from or later; lo is -1 for none. What ^ and \b ask about the character
// before from is answered by a second pattern that begins with that character.
func matchFrom(c *regexps, re *regexp.Regexp, s, p string, from int) (lo, hi int, err error) {
	for {
		at := re.FindStringIndex(s[from:])
		if at == nil {
			return -1, -1, nil
		}
		if at[0] > 0 || from == 0 || !strings.ContainsAny(p, `^\`) {
			return from + at[0], from + at[1], nil
		}
		after, err := c.get(`\A(?s:.)(?:` + p + `)`)
		if err != nil {
			return -1, -1, err
		}
		_, n := utf8.DecodeLastRuneInString(s[:from])
		if m := after.FindStringIndex(s[from-n:]); m != nil {
			return from, from - n + m[1], nil
		}
		if from == len(s) {
			return -1, -1, nil
		}
		_, n = utf8.DecodeRuneInString(s[from:])
		from += n
	}
}
