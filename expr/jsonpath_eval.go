package expr

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// pathDecimal is an exact number with digits after its point: a literal of a path, or what arithmetic made of one. Those of JSON values
// are doubles.
type pathDecimal string

// maxPathItems bounds a sequence inside a path; longer ones are an error of the path.
const maxPathItems = 1 << 20

// pathRun evaluates the nodes of one path. ok false is an error of the path.
type pathRun struct {
	p       *jsonPath
	root    any
	vars    jsonObject
	current any
	last    int // the index of the last element, inside brackets
}

// findWith gives the items that the path names, with the values of its variables.
func (p *jsonPath) findWith(v any, vars jsonObject) (items []any, ok bool) {
	if p.expr == nil {
		return p.find(v)
	}
	r := &pathRun{p: p, root: v, vars: vars, last: -1}
	return r.eval(p.expr)
}

// variables lists those that the path uses, for a check before it runs.
func (n *pathNode) variables(each func(name string)) {
	if n == nil {
		return
	}
	if n.op == 'v' {
		each(n.name)
	}
	n.a.variables(each)
	n.b.variables(each)
	for _, r := range n.index {
		r[0].variables(each)
		r[1].variables(each)
	}
}

func (r *pathRun) eval(n *pathNode) ([]any, bool) {
	switch n.op {
	case '$':
		return []any{r.root}, true
	case '@':
		return []any{r.current}, true
	case 'l':
		return []any{n.value}, true
	case 'v':
		v, ok := r.vars.get(n.name)
		return []any{v}, ok
	case 'L':
		return []any{json.Number(strconv.Itoa(r.last))}, r.last >= 0
	}
	in, ok := r.eval(n.a)
	if !ok {
		return nil, false
	}
	switch n.op {
	case 's':
		var out []any
		for _, v := range in {
			if d, ok := v.(pathDecimal); ok && n.step.kind == 'f' {
				v = json.Number(d)
			}
			found, ok := r.p.step(n.step, v)
			if !ok || len(out)+len(found) > maxPathItems {
				return nil, false
			}
			out = append(out, found...)
		}
		return out, true
	case 'i':
		return r.elements(n, in)
	case '?':
		return r.filter(n.b, r.unwrap(in))
	case 'm', 'p':
		in = r.unwrap(in)
		out := make([]any, 0, len(in))
		for _, v := range in {
			if !isPathNumber(v) {
				return nil, false
			}
			if n.op == 'm' {
				x, ok := pathArithmetic('-', json.Number("0"), v)
				if !ok {
					return nil, false
				}
				v = x
			}
			out = append(out, v)
		}
		return out, true
	}
	right, ok := r.eval(n.b)
	in, right = r.unwrap(in), r.unwrap(right)
	if !ok || len(in) != 1 || len(right) != 1 {
		return nil, false
	}
	v, ok := pathArithmetic(n.op, in[0], right[0])
	return []any{v}, ok
}

// unwrap puts the elements of arrays in their place, in lax mode.
func (r *pathRun) unwrap(in []any) []any {
	if r.p.strict {
		return in
	}
	var out []any
	for i, v := range in {
		a, ok := v.([]any)
		if ok && out == nil {
			out = append([]any{}, in[:i]...)
		}
		switch {
		case ok:
			out = append(out, a...)
		case out != nil:
			out = append(out, v)
		}
	}
	if out == nil {
		return in
	}
	return out
}

func (r *pathRun) elements(n *pathNode, in []any) ([]any, bool) {
	outer := r.last
	defer func() { r.last = outer }()
	var out []any
	for _, v := range in {
		a, ok := v.([]any)
		if !ok {
			if r.p.strict {
				return nil, false
			}
			a = []any{v}
		}
		r.last = len(a) - 1
		for _, s := range n.index {
			lo, ok := r.index(s[0])
			if !ok {
				return nil, false
			}
			hi := lo
			if s[1] != nil {
				if hi, ok = r.index(s[1]); !ok {
					return nil, false
				}
			}
			if r.p.strict && (lo < 0 || hi >= len(a) || lo > hi) {
				return nil, false
			}
			if lo, hi = max(lo, 0), min(hi, len(a)-1); lo <= hi {
				if len(out)+hi-lo >= maxPathItems {
					return nil, false
				}
				out = append(out, a[lo:hi+1]...)
			}
		}
	}
	return out, true
}

// index is the one number, rounded, that a subscript must be.
func (r *pathRun) index(n *pathNode) (int, bool) {
	if n.op == 'L' && r.last < 0 {
		return -1, true // of an empty array
	}
	v, ok := r.eval(n)
	if !ok || len(v) != 1 || !isPathNumber(v[0]) {
		return 0, false
	}
	f := math.Floor(pathFloat(v[0]) + 0.5)
	return int(f), math.Abs(f) <= math.MaxInt32
}

func (r *pathRun) filter(cond *pathNode, in []any) ([]any, bool) {
	outer := r.current
	defer func() { r.current = outer }()
	var out []any
	for _, v := range in {
		r.current = v
		if r.test(cond) == pathTrue {
			out = append(out, v)
		}
	}
	return out, true
}

// pathTruth is a value of three-valued logic.
type pathTruth int8

const (
	pathFalse pathTruth = iota
	pathUnknown
	pathTrue
)

func truth(b bool) pathTruth {
	if b {
		return pathTrue
	}
	return pathFalse
}

// test evaluates a predicate; an error of its operands is unknown.
func (r *pathRun) test(n *pathNode) pathTruth {
	switch n.op {
	case '&':
		if a := r.test(n.a); a != pathTrue {
			if a == pathUnknown && r.test(n.b) == pathFalse {
				return pathFalse
			}
			return a
		}
		return r.test(n.b)
	case '|':
		if a := r.test(n.a); a != pathFalse {
			if a == pathUnknown && r.test(n.b) == pathTrue {
				return pathTrue
			}
			return a
		}
		return r.test(n.b)
	case 'n':
		return pathTrue - r.test(n.a)
	case 'u':
		return truth(r.test(n.a) == pathUnknown)
	}
	l, ok := r.eval(n.a)
	if !ok {
		return pathUnknown
	}
	if n.op == 'e' {
		return truth(len(l) > 0)
	}
	l = r.unwrap(l)
	right := []any{nil}
	if n.b != nil {
		if right, ok = r.eval(n.b); !ok {
			return pathUnknown
		}
		right = r.unwrap(right)
	}
	found := pathFalse
	for _, a := range l {
		for _, b := range right {
			t := pathPair(n, a, b)
			if t != pathFalse && !r.p.strict {
				return t
			}
			if t == pathUnknown {
				return t
			}
			found = max(found, t)
		}
	}
	return found
}

// pathPair compares two items.
func pathPair(n *pathNode, a, b any) pathTruth {
	if n.op == 'r' || n.op == 'w' {
		s, ok := a.(string)
		switch {
		case !ok:
			return pathUnknown
		case n.op == 'r':
			return truth(n.re.MatchString(s))
		}
		start, ok := b.(string)
		if !ok {
			return pathUnknown
		}
		return truth(strings.HasPrefix(s, start))
	}
	c := 0
	switch x := a.(type) {
	case jsonObject, []any:
		return pathUnknown
	case nil:
		switch b.(type) {
		case nil:
		case jsonObject, []any:
			return pathUnknown
		default:
			return truth(n.op == '!')
		}
	case string:
		y, ok := b.(string)
		if !ok {
			return truthOfOther(n.op, b)
		}
		c = strings.Compare(x, y)
	case bool:
		y, ok := b.(bool)
		if !ok {
			return truthOfOther(n.op, b)
		}
		c = cmp.Compare(truth(x), truth(y))
	default:
		if !isPathNumber(b) {
			return truthOfOther(n.op, b)
		}
		var ordered bool
		if c, ordered = compareNumbers(a, b); !ordered {
			return pathUnknown
		}
	}
	switch n.op {
	case '=':
		return truth(c == 0)
	case '!':
		return truth(c != 0)
	case '<':
		return truth(c < 0)
	case '>':
		return truth(c > 0)
	case '{':
		return truth(c <= 0)
	}
	return truth(c >= 0)
}

// truthOfOther compares with an item of another type: null is different, all else cannot be compared.
func truthOfOther(op byte, b any) pathTruth {
	if b == nil {
		return truth(op == '!')
	}
	return pathUnknown
}

func isPathNumber(v any) bool {
	switch v.(type) {
	case json.Number, pathDecimal:
		return true
	}
	return false
}

func pathFloat(v any) float64 {
	f, _ := parseDouble(numberText(v), 64)
	return f
}

func numberText(v any) string {
	switch x := v.(type) {
	case json.Number:
		return x.String()
	case pathDecimal:
		return string(x)
	}
	return ""
}

// pathRat is a number as a fraction; ok is false where its exponent would make it too long.
func pathRat(v any) (*big.Rat, bool) {
	s := numberText(v)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e > 400 || e < -400 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(s)
}

func compareNumbers(a, b any) (int, bool) {
	x, ok1 := pathRat(a)
	y, ok2 := pathRat(b)
	if ok1 && ok2 {
		return x.Cmp(y), true
	}
	f, g := pathFloat(a), pathFloat(b)
	return cmp.Compare(f, g), f == f && g == g
}

// pathArithmetic computes as SQL does: integers of 64 bits, decimals of 38 digits, and doubles, which the numbers with a fraction in JSON
// are. ok is false for what is no number, for overflow and for division by zero.
func pathArithmetic(op byte, a, b any) (v any, ok bool) {
	if !isPathNumber(a) || !isPathNumber(b) {
		return nil, false
	}
	kind := func(v any) int {
		if _, ok := v.(pathDecimal); ok {
			return 1
		}
		if strings.ContainsAny(numberText(v), ".eE") {
			return 2
		}
		return 0
	}
	if max(kind(a), kind(b)) == 2 {
		f, g := pathFloat(a), pathFloat(b)
		switch op {
		case '+':
			f += g
		case '-':
			f -= g
		case '*':
			f *= g
		case '/':
			f /= g
		default:
			f = math.Mod(f, g)
		}
		return json.Number(javaDouble(f, 64)), !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	exact := func(v any) (*big.Int, int) {
		whole, frac, _ := strings.Cut(numberText(v), ".")
		x, ok := new(big.Int).SetString(whole+frac, 10)
		if !ok {
			return nil, 0
		}
		return x, len(frac)
	}
	x, s := exact(a)
	y, t := exact(b)
	if x == nil || y == nil || s > maxPrecision || t > maxPrecision || len(numberText(a)) > 2*maxPrecision || len(numberText(b)) > 2*maxPrecision {
		return nil, false
	}
	scale := max(s, t)
	ten := func(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
	if op == '*' {
		x.Mul(x, y)
		scale = s + t
	} else {
		x.Mul(x, ten(scale-s))
		y.Mul(y, ten(scale-t))
		switch op {
		case '+':
			x.Add(x, y)
		case '-':
			x.Sub(x, y)
		default:
			if y.Sign() == 0 {
				return nil, false
			}
			if op == '%' {
				x.Rem(x, y)
				break
			}
			x.Mul(x, ten(scale))
			sign := x.Sign() * y.Sign()
			rest := new(big.Int)
			x.QuoRem(x, y, rest)
			if scale > 0 && rest.Abs(rest).Lsh(rest, 1).CmpAbs(y) >= 0 {
				x.Add(x, big.NewInt(int64(sign)))
			}
		}
	}
	if kind(a) == 0 && kind(b) == 0 {
		return json.Number(x.String()), x.IsInt64()
	}
	digits := new(big.Int).Abs(x).String()
	if len(digits) > maxPrecision {
		return nil, false
	}
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if x.Sign() < 0 {
		digits = "-" + digits
	}
	return pathDecimal(digits), true
}
