package expr

import (
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"math/big"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func badCast(v any, from, to vector.Type) error {
	s, ok := v.(string)
	if ok && len(s) > 100 {
		v = s[:100] + "..."
	}
	if ok {
		return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast '%v' to %s", v, to)
	}
	return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast %s to %s", FormatValue(v, from), to)
}

// parseInteger reads an integer with surrounding spaces and a sign.
func parseInteger(s string, bits int) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, bits)
	return n, err == nil
}

func parseDouble(s string, bits int) (float64, bool) {
	s = strings.TrimSpace(s)
	switch s {
	case "NaN", "+NaN", "-NaN":
		return math.NaN(), true
	case "Infinity", "+Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	if s == "" {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
		default:
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// ParseDecimal reads a decimal number, with an exponent if need be, and gives its unscaled value, precision and scale as written.
// It is false for what is no number or needs more than 38 digits.
func ParseDecimal(s string) (v vector.Int128, precision, scale int, ok bool) {
	t := s
	neg := false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
	}
	exp := 0
	if i := strings.IndexAny(t, "eE"); i >= 0 {
		e, err := strconv.Atoi(t[i+1:])
		if err != nil || e > 100 || e < -100 {
			return v, 0, 0, false
		}
		exp, t = e, t[:i]
	}
	whole, frac, _ := strings.Cut(t, ".")
	if whole == "" && frac == "" {
		return v, 0, 0, false
	}
	digits := whole + frac
	for i := 0; i < len(digits); i++ {
		if digits[i] < '0' || digits[i] > '9' {
			return v, 0, 0, false
		}
	}
	scale = len(frac) - exp
	digits = strings.TrimLeft(digits, "0")
	if scale < 0 {
		if digits != "" {
			if len(digits)-scale > 76 {
				return v, 0, 0, false
			}
			digits += strings.Repeat("0", -scale)
		}
		scale = 0
	}
	if len(digits) > maxPrecision || scale > 200 {
		return v, 0, 0, false
	}
	if len(digits) <= 18 {
		n, _ := strconv.ParseInt("0"+digits, 10, 64)
		v = int128(n)
	} else {
		b, _ := new(big.Int).SetString(digits, 10)
		v = decimal128.FromBigInt(b)
	}
	if neg {
		v = v.Negate()
	}
	return v, max(len(digits), scale, 1), scale, true
}

func parseUUID(s string) (string, bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return "", false
	}
	b, err := hex.DecodeString(s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:])
	return string(b), err == nil
}

// scanner reads the parts of dates and times.
type timeText struct {
	s  string
	ok bool
}

func (p *timeText) number(lo, hi int) int64 {
	i := 0
	for i < len(p.s) && i < hi && p.s[i] >= '0' && p.s[i] <= '9' {
		i++
	}
	if i < lo {
		p.ok = false
		return 0
	}
	n, _ := strconv.ParseInt(p.s[:i], 10, 64)
	p.s = p.s[i:]
	return n
}

func (p *timeText) accept(c byte) bool {
	if p.s != "" && p.s[0] == c {
		p.s = p.s[1:]
		return true
	}
	return false
}

func (p *timeText) expect(c byte) {
	if !p.accept(c) {
		p.ok = false
	}
}

func (p *timeText) date() int64 {
	neg := p.accept('-')
	if !neg {
		p.accept('+')
	}
	y := p.number(1, 6)
	if neg {
		y = -y
	}
	p.expect('-')
	m := p.number(1, 2)
	p.expect('-')
	d := p.number(1, 2)
	if !p.ok || m < 1 || m > 12 || d < 1 || d > int64(monthDays(y, int(m))) {
		p.ok = false
		return 0
	}
	return vector.CivilDays(y, int(m), int(d))
}

// clock reads H:M[:S[.fraction]] as nanoseconds; more than nine digits of a fraction round. digits tells how many were written.
func (p *timeText) clock() (nanos int64, digits int) {
	h := p.number(1, 2)
	p.expect(':')
	m := p.number(1, 2)
	var s, f int64
	if p.accept(':') {
		s = p.number(1, 2)
		if p.accept('.') {
			rest := p.s
			for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
				digits++
			}
			if digits == 0 || digits > 12 {
				p.ok = false
			}
			for i := range 9 {
				f *= 10
				if i < digits {
					f += int64(rest[i] - '0')
				}
			}
			if digits > 9 && rest[9] >= '5' {
				f++
			}
			p.s = rest[digits:]
		}
	}
	if h > 23 || m > 59 || s > 59 {
		p.ok = false
	}
	return (h*3600+m*60+s)*1e9 + f, digits
}

func parseDate(s string) (int32, bool) {
	p := &timeText{strings.TrimSpace(s), true}
	d := p.date()
	return int32(d), p.ok && p.s == "" && d >= math.MinInt32 && d <= math.MaxInt32
}

// parseTimestamp reads a timestamp with an optional zone. The clock is in nanoseconds of the day.
func parseTimestamp(s string) (days, nanos int64, digits int, zone string, ok bool) {
	p := &timeText{strings.TrimSpace(s), true}
	days = p.date()
	if p.ok && p.s != "" {
		p.expect(' ')
		p.s = strings.TrimLeft(p.s, " ")
		if p.ok && p.s != "" && p.s[0] >= '0' && p.s[0] <= '9' {
			nanos, digits = p.clock()
			// "12:00:00+02:00" and "12:00:00 Europe/Berlin" are both in use; a zone name needs the space.
			if p.s != "" && p.s[0] != ' ' && p.s[0] != '+' && p.s[0] != '-' && p.s[0] != 'Z' {
				return 0, 0, 0, "", false
			}
		}
		zone = strings.TrimSpace(p.s)
	}
	return days, nanos, digits, zone, p.ok
}

func zoneOfText(s string) string {
	_, _, _, zone, ok := parseTimestamp(s)
	if !ok || zone == "" {
		return ""
	}
	z, err := LoadZone(zone)
	if err != nil {
		return ""
	}
	return z.String()
}

// fromClock makes a timestamp's value of a day and the nanoseconds in it, rounded half up to the type's precision; false out of range.
func fromClock(days, nanos int64, t vector.Type) (int64, bool) {
	nanos = roundNanos(nanos, t.Precision)
	per := unitsPerSecond(t)
	// In 128 bits, because the first and last days of the nanosecond range fit only together with their time of day.
	hi, lo := bits.Mul64(uint64(max(days, -days)), uint64(86400*per))
	sum := decimal128.New(int64(hi), lo)
	if days < 0 {
		sum = sum.Negate()
	}
	sum = sum.Add(decimal128.FromI64(nanos / (1e9 / per)))
	x := int64(sum.LowBits())
	return x, sum == decimal128.FromI64(x)
}

// roundNanos rounds to so many fractional digits of a second.
func roundNanos(nanos int64, digits int) int64 {
	if digits >= 9 {
		return nanos
	}
	step := pow10i64[9-digits]
	return floorDiv(nanos+step/2, step) * step
}

// NewTimestampLiteral reads the text of TIMESTAMP '...': with a zone it is a timestamp with time zone. The precision is that of the
// fraction as written.
func NewTimestampLiteral(text string) (Expr, error) {
	days, nanos, digits, zone, ok := parseTimestamp(text)
	bad := fault.WithID(fault.Invalid, "INVALID_LITERAL", "'%s' is not a timestamp", text)
	if !ok {
		return nil, bad
	}
	t := vector.Type{Kind: vector.Timestamp, Precision: min(digits, 9)}
	v, ok := fromClock(days, nanos, t)
	if !ok {
		return nil, bad
	}
	if zone == "" {
		return &Literal{Value: v, Typ: t}, nil
	}
	z, err := LoadZone(zone)
	if err != nil {
		return nil, err
	}
	if v, ok = instant(v, t, z); !ok {
		return nil, fault.WithID(fault.Invalid, "INVALID_LITERAL", "'%s' does not exist: the clock skips it", text)
	}
	t.Kind, t.CRS = vector.TimestampTZ, z.String()
	return &Literal{Value: v, Typ: t}, nil
}
