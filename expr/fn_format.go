package expr

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/skua-db/skua/vector"
)

func init() {
	defMake("format", "(varchar, any...) varchar", "text in the manner of printf", func(b *binding) (kernel, error) {
		types := argTypes(b)
		return fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
			if args[0] == nil {
				return nil, nil
			}
			return formatText(args[0].(string), args[1:], types[1:], x.ctx)
		}), nil
	}, onNull, optionally)
}

// formatText is Java's Formatter for the conversions that SQL uses: d, f, e, s, x, o, c, b, % with flags, width and precision.
func formatText(f string, args []vector.Value, types []vector.Type, ctx *Context) (vector.Value, error) {
	var b strings.Builder
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		start := i
		i++
		flags, width, prec, at := "", 0, -1, -1
		num := func() int {
			j := i
			for j < len(f) && f[j] >= '0' && f[j] <= '9' {
				j++
			}
			n, _ := strconv.Atoi(f[i:j])
			i = j
			return n
		}
		if i < len(f) && f[i] >= '1' && f[i] <= '9' {
			save := i
			n := num()
			if i < len(f) && f[i] == '$' {
				at = n - 1
				i++
			} else {
				i = save
			}
		}
		for i < len(f) && strings.IndexByte("-#+ 0,(", f[i]) >= 0 {
			flags += f[i : i+1]
			i++
		}
		width = num()
		if i < len(f) && f[i] == '.' {
			i++
			prec = num()
		}
		if i >= len(f) || width > 10000 || prec > 1000 {
			return nil, badArgument("format: %q ends badly", f[start:])
		}
		c := f[i]
		if c == '%' || c == 'n' {
			b.WriteString(map[byte]string{'%': "%", 'n': "\n"}[c])
			continue
		}
		if at < 0 {
			at = next
			next++
		}
		if at >= len(args) {
			return nil, badArgument("format: %q has no argument", f[start:i+1])
		}
		s, err := formatOne(c, flags, prec, args[at], types[at], ctx)
		if err != nil {
			return nil, err
		}
		n := width - len([]rune(s))
		switch {
		case n <= 0:
		case strings.Contains(flags, "-"):
			s += strings.Repeat(" ", n)
		case strings.Contains(flags, "0") && c != 's':
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			s = sign + strings.Repeat("0", n) + s
		default:
			s = strings.Repeat(" ", n) + s
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func formatOne(c byte, flags string, prec int, v vector.Value, t vector.Type, ctx *Context) (string, error) {
	if v == nil {
		if c == 'b' {
			return "false", nil
		}
		return "null", nil
	}
	bad := badArgument("format: %%%c does not go with %s", c, t)
	s := ""
	switch c {
	case 's', 'S':
		switch t.Kind {
		case vector.Double:
			s = javaDouble(v.(float64), 64)
		case vector.Real:
			s = javaDouble(float64(v.(float32)), 32)
		case vector.Timestamp:
			s = javaDateTime(formatValue(v, t, ctx.Zone))
		default:
			s = formatValue(v, t, ctx.Zone)
		}
		if prec >= 0 && len([]rune(s)) > prec {
			s = string([]rune(s)[:prec])
		}
		if c == 'S' {
			s = strings.ToUpper(s)
		}
		return s, nil
	case 'b':
		return formatValue(v, t, ctx.Zone), nil
	case 'd':
		if !t.Integral() {
			return "", bad
		}
		n, _ := toInt64(v)
		s = strconv.FormatInt(n, 10)
	case 'x', 'X', 'o':
		n, ok := toInt64(v)
		if !ok || !t.Integral() {
			return "", bad
		}
		u := uint64(n)
		if n < 0 && t.Kind == vector.Integer {
			u = uint64(uint32(n))
		}
		s = strconv.FormatUint(u, map[byte]int{'x': 16, 'X': 16, 'o': 8}[c])
		if c == 'X' {
			s = strings.ToUpper(s)
		}
		return s, nil
	case 'c':
		n, ok := toInt64(v)
		if !ok {
			return "", bad
		}
		return string(rune(n)), nil
	case 'f':
		if prec < 0 {
			prec = 6
		}
		switch t.Kind {
		case vector.Decimal:
			x, from := asInt128(v), t.Scale
			if prec > 38 {
				return "", bad
			}
			r := new(big.Int).Mul(x.BigInt(), pow10i128[prec].BigInt())
			s = formatDecimal(bigDivRound(r, pow10i128[from].BigInt()), prec)
		case vector.Double:
			s = halfUp(v.(float64), 64, prec)
		case vector.Real:
			s = halfUp(float64(v.(float32)), 32, prec)
		default:
			return "", bad
		}
	case 'e', 'E', 'g', 'G':
		f, err := toFloat(v, t, double)
		if err != nil || !t.Numeric() {
			return "", bad
		}
		if prec < 0 {
			prec = 6
		}
		if c == 'g' || c == 'G' {
			s = general(f, max(prec, 1))
			if c == 'G' {
				s = strings.ToUpper(s)
			}
			return s, nil
		}
		return fmt.Sprintf("%."+strconv.Itoa(prec)+string(c), f), nil
	default:
		return "", badArgument("format: unknown conversion %%%c", c)
	}
	if strings.Contains(flags, ",") {
		s = thousands(s)
	}
	if s[0] != '-' {
		if strings.Contains(flags, "+") {
			s = "+" + s
		} else if strings.Contains(flags, " ") {
			s = " " + s
		}
	} else if strings.Contains(flags, "(") {
		s = "(" + s[1:] + ")"
	}
	return s, nil
}

// halfUp writes a number with so many digits after the point; halves of its shortest text are rounded away from zero, as Java does.
func halfUp(f float64, bits, prec int) string {
	short := strconv.FormatFloat(f, 'f', -1, bits)
	r, ok := new(big.Rat).SetString(short)
	if !ok { // NaN and infinity
		return formatFloat(f, bits)
	}
	_, frac, _ := strings.Cut(short, ".")
	if len(frac) <= prec {
		return strconv.FormatFloat(f, 'f', prec, bits)
	}
	s := r.FloatString(prec) // rounds halves away from zero
	if r.Sign() < 0 && s[0] != '-' {
		s = "-" + s
	}
	return s
}

// general is Java's %g: so many significant digits, with an exponent for what is very small or large.
func general(f float64, prec int) string {
	if f == 0 {
		return strconv.FormatFloat(f, 'f', prec-1, 64)
	}
	s := strconv.FormatFloat(f, 'e', prec-1, 64)
	_, e, ok := strings.Cut(s, "e")
	if exp, err := strconv.Atoi(e); ok && err == nil && exp >= -4 && exp < prec {
		return strconv.FormatFloat(f, 'f', prec-1-exp, 64)
	}
	return s
}

// javaDateTime writes a timestamp as Java's LocalDateTime does: no seconds where they are zero, and their fraction in threes of digits.
func javaDateTime(s string) string {
	day, clock, _ := strings.Cut(s, " ")
	hm, frac, _ := strings.Cut(clock, ".")
	frac = strings.TrimRight(frac, "0")
	if frac == "" {
		return day + "T" + strings.TrimSuffix(hm, ":00")
	}
	return day + "T" + hm + "." + frac + strings.Repeat("0", (3-len(frac)%3)%3)
}

func thousands(s string) string {
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	whole, frac, point := strings.Cut(s, ".")
	var b strings.Builder
	for i := range len(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(whole[i])
	}
	if point {
		b.WriteString("." + frac)
	}
	return sign + b.String()
}
