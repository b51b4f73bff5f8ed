package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

// byteUnits are the powers of 1,024 of each unit that parse_data_size knows.
var byteUnits = map[string]uint{"B": 0, "kB": 1, "MB": 2, "GB": 3, "TB": 4, "PB": 5, "EB": 6, "ZB": 7, "YB": 8}

// durationUnits are the units of parse_duration in milliseconds.
var durationUnits = map[string]float64{"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3, "m": 60e3, "h": 3600e3, "d": 86400e3}

func init() {
	def("parse_data_size parse_presto_data_size", "(varchar) decimal", "the bytes of a size with a unit, as 2.3MB; a kB has 1,024 bytes", fn1(func(_ *evalCall, s string) (vector.Int128, error) {
		return parseDataSize(s)
	}), returns(func([]vector.Type) (vector.Type, error) { return vector.DecimalOf(38, 0), nil }))
	def("parse_duration", "(varchar) interval_day", "the interval of a number with a unit of ns, us, ms, s, m, h or d, to the millisecond", fn1(func(_ *evalCall, s string) (int64, error) {
		return parseDuration(s)
	}))
	def("from_iso8601_timestamp_nanos", "(varchar) timestamptz", "an instant from ISO 8601 text, to the nanosecond", fn1(func(x *evalCall, s string) (int64, error) {
		return parseISONanos(s, x.ctx.Zone)
	}), returns(func([]vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.TimestampTZ, Precision: 9}, nil
	}))
	def("luhn_check", "(varchar) boolean", "whether the last digit of a number is right by Luhn's rule", fn1(func(_ *evalCall, s string) (bool, error) {
		sum, double := 0, false
		for i := len(s) - 1; i >= 0; i-- {
			d := int(s[i]) - '0'
			if d < 0 || d > 9 {
				return false, badArgument("luhn_check: %q has a character that is no digit", s)
			}
			if double {
				if d *= 2; d > 9 {
					d -= 9
				}
			}
			sum, double = sum+d, !double
		}
		return s != "" && sum%10 == 0, nil
	}))
	def("title_case", "(varchar) varchar", "the first letter of each word in title case, the others in lower case", fn1(func(_ *evalCall, s string) (string, error) {
		first := true
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				first = true
				return r
			}
			if first {
				first = false
				return unicode.ToTitle(r)
			}
			return unicode.ToLower(r)
		}, s), nil
	}))
	def("split_to_multimap", "(varchar, varchar, varchar) map(varchar, array(varchar))", "entries and their keys and values by separators; a key may come again", fn3(func(_ *evalCall, s, entry, kv string) ([]vector.Pair, error) {
		switch {
		case entry == "" || kv == "":
			return nil, badArgument("split_to_multimap: a separator is empty")
		case entry == kv:
			return nil, badArgument("split_to_multimap needs two different separators")
		}
		out := []vector.Pair{}
		at := map[string]int{}
		for s != "" {
			e, rest, _ := strings.Cut(s, entry)
			s = rest
			k, v, ok := strings.Cut(e, kv)
			if !ok || strings.Contains(v, kv) {
				return nil, badArgument("split_to_multimap: an entry must have one %q: %q", kv, e)
			}
			i, ok := at[k]
			if !ok {
				i, k = len(out), strings.Clone(k)
				at[k] = i
				out = append(out, vector.Pair{Key: k, Value: []vector.Value{}})
			}
			out[i].Value = append(out[i].Value.([]vector.Value), strings.Clone(v))
		}
		return out, nil
	}))
}

func parseDataSize(s string) (vector.Int128, error) {
	i := 0
	for i < len(s) && (s[i] == '.' || s[i] >= '0' && s[i] <= '9') {
		i++
	}
	power, known := byteUnits[s[i:]]
	// A number with more digits than a decimal(38) and its fraction can use is not worth the arithmetic.
	if !known || i == 0 || i > 200 {
		return vector.Int128{}, badArgument("parse_data_size: %q is not a size", s)
	}
	v, ok := new(big.Rat).SetString(s[:i])
	if !ok {
		return vector.Int128{}, badArgument("parse_data_size: %q is not a size", s)
	}
	v.Mul(v, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 10*power)))
	n := new(big.Int).Quo(v.Num(), v.Denom())
	if n.BitLen() > 127 {
		return vector.Int128{}, overflow("parse_data_size: %q does not fit a decimal(38,0)", s)
	}
	r := decimal128.FromBigInt(n)
	if !inDecimal(r, maxPrecision) {
		return r, overflow("parse_data_size: %q does not fit a decimal(38,0)", s)
	}
	return r, nil
}

// parseDuration gives microseconds, rounded to whole milliseconds.
func parseDuration(s string) (int64, error) {
	bad := badArgument("parse_duration: %q is not a number with a unit", s)
	t := strings.TrimSpace(s)
	i := 0
	for i < len(t) && (t[i] == '.' || t[i] >= '0' && t[i] <= '9') {
		i++
	}
	number, unit := t[:i], strings.TrimSpace(t[i:])
	if number == "" || number[0] == '.' || number[i-1] == '.' || unit == "" {
		return 0, bad
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, bad
	}
	ms, ok := durationUnits[unit]
	if !ok {
		return 0, badArgument("parse_duration: %q is no unit of time; the units are ns, us, ms, s, m, h and d", unit)
	}
	v := math.Floor(n*ms + 0.5)
	if v >= math.MaxInt64/1000 {
		return 0, badArgument("parse_duration: %q is too long for an interval", s)
	}
	return int64(v) * 1000, nil
}

// parseISONanos reads a date, a time with up to nine digits of a second and an optional zone.
func parseISONanos(s string, session *time.Location) (int64, error) {
	if session == nil {
		session = time.UTC
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04"} {
		t, err := time.ParseInLocation(layout, s, session)
		if err != nil {
			continue
		}
		if y := t.Year(); y < 1678 || y > 2261 {
			return 0, badArgument("%q is outside the range of a timestamp in nanoseconds", s)
		}
		return t.UnixNano(), nil
	}
	return 0, badArgument("%q is not an ISO 8601 timestamp", s)
}
