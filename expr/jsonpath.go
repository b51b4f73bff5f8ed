package expr

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// jsonPath is a path into a JSON value: steps in Hive's spelling, or an expression of SQL/JSON.
type jsonPath struct {
	strict bool
	steps  []pathStep
	expr   *pathNode // instead of steps, for paths of SQL/JSON
	names  []string  // the variables of expr
}

type pathStep struct {
	kind   byte // 'm' member, 'M' all members, 'i' elements lo..hi, 'I' all elements, 'f' method, 'd' descendants
	name   string
	lo, hi int // negative: counted from the end, -1 is the last
}

// parseJSONPath reads a path in Hive's spelling, which may begin with lax or strict.
func parseJSONPath(s string) (*jsonPath, error) {
	bad := badArgument("%q is not a JSON path", s)
	p := &jsonPath{}
	t := strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(t, "lax "); ok {
		t = strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(t, "strict "); ok {
		t, p.strict = strings.TrimSpace(rest), true
	}
	if !strings.HasPrefix(t, "$") {
		return nil, bad
	}
	t = t[1:]
	for t != "" {
		switch {
		case strings.HasPrefix(t, ".."):
			name, rest := pathName(t[2:])
			if name == "" {
				return nil, bad
			}
			p.steps = append(p.steps, pathStep{kind: 'd', name: name})
			t = rest
		case t[0] == '.':
			t = strings.TrimLeft(t[1:], " ")
			if strings.HasPrefix(t, "*") {
				p.steps = append(p.steps, pathStep{kind: 'M'})
				t = t[1:]
				break
			}
			var name string
			if strings.HasPrefix(t, `"`) {
				var ok bool
				if name, t, ok = quotedName(t); !ok {
					return nil, bad
				}
			} else if name, t = pathName(t); name == "" {
				return nil, bad
			}
			if rest, ok := strings.CutPrefix(t, "()"); ok {
				p.steps = append(p.steps, pathStep{kind: 'f', name: name})
				t = rest
				break
			}
			p.steps = append(p.steps, pathStep{kind: 'm', name: name})
		case t[0] == '[':
			end := strings.IndexByte(t, ']')
			in := strings.TrimLeft(t[1:], " ")
			if strings.HasPrefix(in, `"`) || strings.HasPrefix(in, "'") {
				name, rest, ok := quotedName(in)
				rest = strings.TrimLeft(rest, " ")
				if !ok || !strings.HasPrefix(rest, "]") {
					return nil, bad
				}
				p.steps = append(p.steps, pathStep{kind: 'm', name: name})
				t = rest[1:]
				break
			}
			if end < 0 {
				return nil, bad
			}
			in = strings.TrimSpace(t[1:end])
			t = t[end+1:]
			if in == "*" {
				p.steps = append(p.steps, pathStep{kind: 'I'})
				break
			}
			from, to, ranged := strings.Cut(in, " to ")
			lo, ok1 := pathIndex(from)
			hi := lo
			ok2 := true
			if ranged {
				hi, ok2 = pathIndex(to)
			}
			if !ok1 || !ok2 {
				// A bare word in brackets is a member in Hive's spelling.
				if name, rest := pathName(in); name != "" && rest == "" {
					p.steps = append(p.steps, pathStep{kind: 'm', name: name})
					break
				}
				return nil, bad
			}
			p.steps = append(p.steps, pathStep{kind: 'i', lo: lo, hi: hi})
		case t[0] == ' ':
			t = strings.TrimLeft(t, " ")
		default:
			return nil, bad
		}
	}
	return p, nil
}

func pathIndex(s string) (int, bool) {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "last"); ok {
		rest = strings.ReplaceAll(rest, " ", "")
		if rest == "" {
			return -1, true
		}
		n, err := strconv.Atoi(rest)
		return n - 1, err == nil && n < 0
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

func pathName(s string) (name, rest string) {
	for i, r := range s {
		if r != '_' && r != '-' && r != '$' && r != '@' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func quotedName(s string) (name, rest string, ok bool) {
	q := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i >= len(s) {
				return "", "", false
			}
			b.WriteByte(s[i])
		case q:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// find gives the items that the path names. In lax mode arrays are unwrapped for members and items wrapped for elements, and what is
// missing is nothing; in strict mode it is an error, reported by ok.
func (p *jsonPath) find(v any) (items []any, ok bool) {
	items = []any{v}
	for _, s := range p.steps {
		var next []any
		for _, it := range items {
			found, fine := p.step(s, it)
			if !fine {
				return nil, false
			}
			next = append(next, found...)
		}
		items = next
	}
	return items, true
}

func (p *jsonPath) step(s pathStep, v any) ([]any, bool) {
	switch s.kind {
	case 'm', 'M':
		if a, ok := v.([]any); ok && !p.strict {
			var out []any
			for _, e := range a {
				if o, ok := e.(jsonObject); ok {
					f, _ := p.step(s, o)
					out = append(out, f...)
				}
			}
			return out, true
		}
		o, ok := v.(jsonObject)
		if !ok {
			return nil, !p.strict
		}
		if s.kind == 'M' {
			var out []any
			for _, m := range o {
				out = append(out, m.value)
			}
			return out, true
		}
		if x, ok := o.get(s.name); ok {
			return []any{x}, true
		}
		return nil, !p.strict
	case 'i', 'I':
		a, ok := v.([]any)
		if !ok {
			if p.strict {
				return nil, false
			}
			a = []any{v}
		}
		if s.kind == 'I' {
			return a, true
		}
		lo, hi := s.lo, s.hi
		if lo < 0 {
			lo += len(a)
		}
		if hi < 0 {
			hi += len(a)
		}
		if p.strict && (lo < 0 || hi >= len(a) || lo > hi) {
			return nil, false
		}
		lo, hi = max(lo, 0), min(hi, len(a)-1)
		if lo > hi {
			return nil, true
		}
		return a[lo : hi+1], true
	case 'd':
		return descend(v, s.name, 0), true
	}
	return p.method(s.name, v)
}

func descend(v any, name string, depth int) []any {
	var out []any
	if depth > maxJSONDepth {
		return nil
	}
	switch x := v.(type) {
	case jsonObject:
		for _, m := range x {
			if m.key == name {
				out = append(out, m.value)
			}
			out = append(out, descend(m.value, name, depth+1)...)
		}
	case []any:
		for _, e := range x {
			out = append(out, descend(e, name, depth+1)...)
		}
	}
	return out
}

func (p *jsonPath) method(name string, v any) ([]any, bool) {
	num := func(n int) []any { return []any{json.Number(strconv.Itoa(n))} }
	switch name {
	case "size":
		if a, ok := v.([]any); ok {
			return num(len(a)), true
		}
		return num(1), !p.strict
	case "type":
		switch v.(type) {
		case nil:
			return []any{"null"}, true
		case bool:
			return []any{"boolean"}, true
		case json.Number:
			return []any{"number"}, true
		case string:
			return []any{"string"}, true
		case []any:
			return []any{"array"}, true
		}
		return []any{"object"}, true
	case "double", "number":
		s := ""
		switch x := v.(type) {
		case json.Number:
			s = x.String()
		case string:
			s = x
		}
		f, ok := parseDouble(s, 64)
		if !ok {
			return nil, false
		}
		return []any{json.Number(javaDouble(f, 64))}, true
	case "ceiling", "floor", "abs":
		n, ok := v.(json.Number)
		if !ok {
			return nil, false
		}
		d, pr, sc, ok := ParseDecimal(n.String())
		if !ok || pr > maxPrecision {
			return nil, false
		}
		switch name {
		case "abs":
			return []any{json.Number(formatDecimal(d.Abs(), sc))}, true
		case "ceiling":
			return []any{json.Number(formatDecimal(roundDecimal(d, sc, 1), 0))}, true
		}
		return []any{json.Number(formatDecimal(roundDecimal(d, sc, -1), 0))}, true
	case "keyvalue":
		o, ok := v.(jsonObject)
		if !ok {
			return nil, !p.strict
		}
		var out []any
		for _, m := range o {
			out = append(out, jsonObject{{"name", m.key}, {"value", m.value}, {"id", json.Number("0")}})
		}
		return out, true
	}
	return nil, false
}
