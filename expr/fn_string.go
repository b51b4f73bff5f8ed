package expr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func badArgument(format string, args ...any) error {
	return fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", format, args...)
}

// maxResult bounds texts and arrays that a function makes from small arguments.
const maxResult = 1 << 26

func init() {
	def("length char_length character_length len", "(varchar) bigint", "number of code points", fn1(func(_ *evalCall, s []byte) (int64, error) {
		return int64(utf8.RuneCount(s)), nil
	}))
	def("length octet_length", "(varbinary) bigint", "number of bytes", fn1(func(_ *evalCall, s []byte) (int64, error) { return int64(len(s)), nil }))
	def("octet_length", "(varchar) bigint", "number of bytes", fn1(func(_ *evalCall, s []byte) (int64, error) { return int64(len(s)), nil }))
	def("lower lcase", "(varchar) varchar", "in lower case", fn1(func(_ *evalCall, s string) (string, error) { return mapRunes(s, lowerRune), nil }))
	def("upper ucase", "(varchar) varchar", "in upper case", fn1(func(_ *evalCall, s string) (string, error) { return mapRunes(s, unicode.ToUpper), nil }))
	def("reverse", "(varchar) varchar", "code points in reverse order", fn1(func(_ *evalCall, s string) (string, error) {
		r := []rune(s)
		slices.Reverse(r)
		return string(r), nil
	}))
	def("reverse", "(varbinary) varbinary", "bytes in reverse order", fn1(func(_ *evalCall, s string) (string, error) {
		b := []byte(s)
		slices.Reverse(b)
		return string(b), nil
	}))
	def("substr substring", "(varchar, bigint) varchar", "from a position, counted from 1 or from the end", fn2(func(_ *evalCall, s string, from int64) (string, error) {
		return substr(s, from, maxLength), nil
	}))
	def("substr substring", "(varchar, bigint, bigint) varchar", "so many code points from a position", fn3(func(_ *evalCall, s string, from, n int64) (string, error) {
		return substr(s, from, n), nil
	}))
	def("substr substring", "(varbinary, bigint) varbinary", "from a position, counted from 1 or from the end", fn2(func(_ *evalCall, s string, from int64) (string, error) {
		return subbytes(s, from, maxLength), nil
	}))
	def("substr substring", "(varbinary, bigint, bigint) varbinary", "so many bytes from a position", fn3(func(_ *evalCall, s string, from, n int64) (string, error) {
		return subbytes(s, from, n), nil
	}))
	def("left", "(varchar, bigint) varchar", "the first code points", fn2(func(_ *evalCall, s string, n int64) (string, error) { return substr(s, 1, n), nil }))
	def("right", "(varchar, bigint) varchar", "the last code points", fn2(func(_ *evalCall, s string, n int64) (string, error) {
		if n <= 0 {
			return "", nil
		}
		if n >= int64(utf8.RuneCountInString(s)) {
			return s, nil
		}
		return substr(s, -n, n), nil
	}))
	space := func(r rune) bool { return unicode.IsSpace(r) }
	def("trim", "(varchar) varchar", "without white space at both ends", fn1(func(_ *evalCall, s string) (string, error) { return strings.TrimFunc(s, space), nil }))
	def("ltrim", "(varchar) varchar", "without white space at the beginning", fn1(func(_ *evalCall, s string) (string, error) { return strings.TrimLeftFunc(s, space), nil }))
	def("rtrim", "(varchar) varchar", "without white space at the end", fn1(func(_ *evalCall, s string) (string, error) { return strings.TrimRightFunc(s, space), nil }))
	def("trim btrim", "(varchar, varchar) varchar", "without any of the characters at both ends", fn2(func(_ *evalCall, s, c string) (string, error) { return strings.Trim(s, c), nil }))
	def("ltrim", "(varchar, varchar) varchar", "without any of the characters at the beginning", fn2(func(_ *evalCall, s, c string) (string, error) { return strings.TrimLeft(s, c), nil }))
	def("rtrim", "(varchar, varchar) varchar", "without any of the characters at the end", fn2(func(_ *evalCall, s, c string) (string, error) { return strings.TrimRight(s, c), nil }))
	for _, bin := range []bool{false, true} {
		sig, def1 := "(varchar, bigint, varchar) varchar", "to a length with a filling"
		if bin {
			sig = "(varbinary, bigint, varbinary) varbinary"
		}
		def("lpad", sig, def1+" on the left", fn3(func(_ *evalCall, s string, n int64, fill string) (string, error) {
			return padText(s, n, fill, true, bin)
		}))
		def("rpad", sig, def1+" on the right", fn3(func(_ *evalCall, s string, n int64, fill string) (string, error) {
			return padText(s, n, fill, false, bin)
		}))
	}
	def("||", "(varchar, varchar) varchar", "concatenation", fn2(func(_ *evalCall, a, b string) (string, error) { return a + b, nil }))
	def("||", "(varbinary, varbinary) varbinary", "concatenation", fn2(func(_ *evalCall, a, b string) (string, error) { return a + b, nil }))
	join := fnN(func(_ *evalCall, args []vector.Value) (vector.Value, error) {
		var b strings.Builder
		for _, a := range args {
			b.WriteString(a.(string))
		}
		if b.Len() > maxResult {
			return nil, badArgument("concat: the result would be longer than %d bytes", maxResult)
		}
		return b.String(), nil
	})
	def("concat", "(varchar...) varchar", "concatenation", join)
	def("concat", "(varbinary...) varbinary", "concatenation", join)
	def("concat_ws", "(varchar, varchar...) varchar", "concatenation with a separator, without nulls", fnN(func(_ *evalCall, args []vector.Value) (vector.Value, error) {
		if args[0] == nil {
			return nil, nil
		}
		var parts []string
		for _, a := range args[1:] {
			if a != nil {
				parts = append(parts, a.(string))
			}
		}
		return strings.Join(parts, args[0].(string)), nil
	}), onNull)
	def("strpos position instr", "(varchar, varchar) bigint", "position of the first occurrence, 0 for none", fn2(func(_ *evalCall, s, sub string) (int64, error) {
		i := strings.Index(s, sub)
		if i < 0 {
			return 0, nil
		}
		return int64(utf8.RuneCountInString(s[:i])) + 1, nil
	}))
	def("strpos", "(varchar, varchar, bigint) bigint", "position of the n-th occurrence, from the end where n is negative", fn3(nthPosition))
	def("replace", "(varchar, varchar) varchar", "without a text", fn2(func(_ *evalCall, s, a string) (string, error) { return strings.ReplaceAll(s, a, ""), nil }))
	def("replace", "(varchar, varchar, varchar) varchar", "with a text in place of another", fn3(func(_ *evalCall, s, a, b string) (string, error) {
		if n := strings.Count(s, a); n*len(b) > maxResult {
			return "", badArgument("replace: the result would be longer than %d bytes", maxResult)
		}
		return strings.ReplaceAll(s, a, b), nil
	}))
	def("starts_with", "(varchar, varchar) boolean", "whether it begins with a text", fn2(func(_ *evalCall, s, p string) (bool, error) { return strings.HasPrefix(s, p), nil }))
	def("ends_with", "(varchar, varchar) boolean", "whether it ends with a text", fn2(func(_ *evalCall, s, p string) (bool, error) { return strings.HasSuffix(s, p), nil }))
	def("contains", "(varchar, varchar) boolean", "whether it holds a text", fn2(func(_ *evalCall, s, p string) (bool, error) { return strings.Contains(s, p), nil }))
	def("split", "(varchar, varchar) array(varchar)", "parts between separators", fn2(func(_ *evalCall, s, sep string) ([]vector.Value, error) { return split(s, sep, -1) }))
	def("split", "(varchar, varchar, bigint) array(varchar)", "at most so many parts", fn3(func(_ *evalCall, s, sep string, n int64) ([]vector.Value, error) {
		if n < 1 {
			return nil, badArgument("split: the limit must be positive, not %d", n)
		}
		return split(s, sep, int(min(n, maxResult)))
	}))
	def("split_part", "(varchar, varchar, bigint) varchar", "the n-th part between separators; null out of range", fn3(func(_ *evalCall, s, sep string, n int64) (string, error) {
		if n < 1 {
			return "", badArgument("split_part: the index must be positive, not %d", n)
		}
		if sep == "" {
			r := []rune(s)
			if n > int64(len(r)) {
				return "", errNull
			}
			return string(r[n-1]), nil
		}
		for ; n > 1; n-- {
			_, rest, ok := strings.Cut(s, sep)
			if !ok {
				return "", errNull
			}
			s = rest
		}
		first, _, _ := strings.Cut(s, sep)
		return first, nil
	}), mayNull)
	def("split_to_map", "(varchar, varchar, varchar) map(varchar, varchar)", "entries and their keys and values by separators", fn3(splitToMap))
	def("chr", "(bigint) varchar", "the character of a code point", fn1(func(_ *evalCall, c int64) (string, error) {
		if c < 0 || c > unicode.MaxRune || !utf8.ValidRune(rune(c)) {
			return "", badArgument("%d is not a code point", c)
		}
		return string(rune(c)), nil
	}))
	def("codepoint ascii", "(varchar) integer", "the code point of a character", fn1(func(_ *evalCall, s string) (int32, error) {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 || n != len(s) {
			return 0, badArgument("codepoint needs a single character")
		}
		return r, nil
	}))
	def("levenshtein_distance", "(varchar, varchar) bigint", "edit distance", fn2(func(_ *evalCall, a, b string) (int64, error) {
		x, y := []rune(a), []rune(b)
		if len(x)*len(y) > 1_000_000 {
			return 0, badArgument("levenshtein_distance: the arguments are too long")
		}
		return int64(levenshtein(x, y)), nil
	}))
	def("hamming_distance", "(varchar, varchar) bigint", "number of positions that differ", fn2(func(_ *evalCall, a, b string) (int64, error) {
		x, y := []rune(a), []rune(b)
		if len(x) != len(y) {
			return 0, badArgument("hamming_distance needs texts of equal length")
		}
		d := int64(0)
		for i := range x {
			if x[i] != y[i] {
				d++
			}
		}
		return d, nil
	}))
	def("translate", "(varchar, varchar, varchar) varchar", "characters replaced one by one", fn3(func(_ *evalCall, s, from, to string) (string, error) {
		f, t := []rune(from), []rune(to)
		return strings.Map(func(r rune) rune {
			i := slices.Index(f, r)
			switch {
			case i < 0:
				return r
			case i < len(t):
				return t[i]
			}
			return -1
		}, s), nil
	}))
	def("normalize", "(varchar) varchar", "Unicode normal form NFC", fn1(func(_ *evalCall, s string) (string, error) { return norm.NFC.String(s), nil }))
	def("normalize", "(varchar, varchar) varchar", "a Unicode normal form: NFC, NFD, NFKC, NFKD", fn2(func(_ *evalCall, s, f string) (string, error) {
		switch strings.ToUpper(f) {
		case "NFC":
			return norm.NFC.String(s), nil
		case "NFD":
			return norm.NFD.String(s), nil
		case "NFKC":
			return norm.NFKC.String(s), nil
		case "NFKD":
			return norm.NFKD.String(s), nil
		}
		return "", badArgument("%q is not a normal form", f)
	}))
	def("soundex", "(varchar) varchar", "Soundex code", fn1(func(_ *evalCall, s string) (string, error) { return soundex(s), nil }))
	def("repeat", "(T, bigint) array(T)", "an array of copies", fn2(func(_ *evalCall, v vector.Value, n int64) ([]vector.Value, error) {
		if n > 10000 {
			return nil, badArgument("repeat: more than 10000 copies")
		}
		out := make([]vector.Value, max(n, 0))
		for i := range out {
			out[i] = v
		}
		return out, nil
	}))
	def("initcap", "(varchar) varchar", "the first letter of each word in upper case", fn1(func(_ *evalCall, s string) (string, error) {
		prev := ' '
		return strings.Map(func(r rune) rune {
			p := prev
			prev = r
			if unicode.IsLetter(p) || unicode.IsDigit(p) {
				return unicode.ToLower(r)
			}
			return unicode.ToUpper(r)
		}, s), nil
	}))
}

const maxLength = 1<<63 - 1

func lowerRune(r rune) rune {
	if r == 'İ' {
		return 'i'
	}
	return unicode.ToLower(r)
}

// mapRunes leaves a text that does not change as it is.
func mapRunes(s string, f func(rune) rune) string { return strings.Map(f, s) }

func substr(s string, from, n int64) string {
	if from == 0 || n <= 0 {
		return ""
	}
	if from < 0 {
		from += int64(utf8.RuneCountInString(s)) + 1
		if from < 1 {
			return ""
		}
	}
	lo := skipRunes(s, from-1)
	s = s[lo:]
	return s[:skipRunes(s, n)]
}

// skipRunes gives the byte offset after n code points.
func skipRunes(s string, n int64) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	return i
}

func subbytes(s string, from, n int64) string {
	l := int64(len(s))
	if from < 0 {
		from += l + 1
	}
	if from < 1 || from > l || n <= 0 {
		return ""
	}
	return s[from-1 : min(l, from-1+min(n, l))]
}

func padText(s string, n int64, fill string, left, bin bool) (string, error) {
	if n < 0 || n > 1<<24 {
		return "", badArgument("the length of a padding must be between 0 and 16777216, not %d", n)
	}
	if fill == "" {
		return "", badArgument("the filling of a padding must not be empty")
	}
	have := int64(utf8.RuneCountInString(s))
	if bin {
		have = int64(len(s))
	}
	if have >= n {
		if bin {
			return s[:n], nil
		}
		return s[:skipRunes(s, n)], nil
	}
	need := n - have
	var b strings.Builder
	size := int64(utf8.RuneCountInString(fill))
	if bin {
		size = int64(len(fill))
	}
	for ; need >= size; need -= size {
		b.WriteString(fill)
	}
	if bin {
		b.WriteString(fill[:need])
	} else {
		b.WriteString(fill[:skipRunes(fill, need)])
	}
	if left {
		return b.String() + s, nil
	}
	return s + b.String(), nil
}

func nthPosition(_ *evalCall, s, sub string, n int64) (int64, error) {
	if n == 0 {
		return 0, badArgument("strpos: the instance must not be 0")
	}
	at := -1
	if n > 0 {
		from := 0
		for ; n > 0; n-- {
			i := strings.Index(s[from:], sub)
			if i < 0 {
				return 0, nil
			}
			at = from + i
			from = at + max(1, len(sub))
			if from > len(s) {
				from = len(s)
				if n > 1 {
					return 0, nil
				}
			}
		}
	} else {
		end := len(s)
		for ; n < 0; n++ {
			at = strings.LastIndex(s[:end], sub)
			if at < 0 {
				return 0, nil
			}
			end = at
		}
	}
	return int64(utf8.RuneCountInString(s[:at])) + 1, nil
}

func split(s, sep string, n int) ([]vector.Value, error) {
	if sep == "" {
		return nil, badArgument("split: the separator must not be empty")
	}
	var out []vector.Value
	for _, p := range strings.SplitN(s, sep, n) {
		out = append(out, p)
	}
	return out, nil
}

func splitToMap(_ *evalCall, s, entry, kv string) ([]vector.Pair, error) {
	if entry == "" || kv == "" || entry == kv {
		return nil, badArgument("split_to_map needs two different separators")
	}
	out := []vector.Pair{}
	if s == "" {
		return out, nil
	}
	for s != "" {
		e, rest, _ := strings.Cut(s, entry)
		s = rest
		k, v, ok := strings.Cut(e, kv)
		if !ok || strings.Contains(v, kv) {
			return nil, badArgument("split_to_map: an entry has no %q: %q", kv, e)
		}
		for _, p := range out {
			if p.Key == k {
				return nil, badArgument("split_to_map: duplicate key %q", k)
			}
		}
		out = append(out, vector.Pair{Key: strings.Clone(k), Value: strings.Clone(v)})
	}
	return out, nil
}

func soundex(s string) string {
	codes := "01230120022455012623010202"
	var out []byte
	last := byte('0')
	for _, c := range strings.ToUpper(s) {
		if c < 'A' || c > 'Z' {
			continue
		}
		d := codes[c-'A']
		if len(out) == 0 {
			out = append(out, byte(c))
		} else if d != '0' && d != last {
			out = append(out, d)
			if len(out) == 4 {
				break
			}
		}
		if c != 'H' && c != 'W' {
			last = d
		}
	}
	if len(out) == 0 {
		return ""
	}
	for len(out) < 4 {
		out = append(out, '0')
	}
	return string(out)
}

func levenshtein(a, b []rune) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diag := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diag
			if x != y {
				cost = min(diag, row[j], row[j+1]) + 1
			}
			diag, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
