package expr

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/vector"
)

// FormatValue gives the text of a value as CAST to varchar spells it. Values without such a cast get a readable form. A timestamp
// with time zone is shown in the zone of its type, UTC when it has none.
func FormatValue(v vector.Value, t vector.Type) string { return formatValue(v, t, nil) }

func formatValue(v vector.Value, t vector.Type, zone *time.Location) string {
	if v == nil {
		return "NULL"
	}
	switch t.Kind {
	case vector.Boolean:
		return strconv.FormatBool(v.(bool))
	case vector.TinyInt, vector.SmallInt, vector.Integer:
		return strconv.Itoa(int(v.(int32)))
	case vector.BigInt:
		return strconv.FormatInt(v.(int64), 10)
	case vector.Real:
		return formatFloat(float64(v.(float32)), 32)
	case vector.Double:
		return formatFloat(v.(float64), 64)
	case vector.Decimal:
		return formatDecimal(asInt128(v), t.Scale)
	case vector.Varchar, vector.JSON:
		return v.(string)
	case vector.UUID:
		return formatUUID(v.(string))
	case vector.Date:
		return string(appendDate(nil, int64(v.(int32))))
	case vector.Time:
		return formatTime(v.(int64), t.Precision)
	case vector.Timestamp:
		return formatTimestamp(v.(int64), t)
	case vector.TimestampTZ:
		return formatTimestampTZ(v.(int64), t, zoneOf(t, zone))
	case vector.IntervalDay:
		return formatDayInterval(v.(int64))
	case vector.IntervalYear:
		m := int64(v.(int32))
		sign := ""
		if m < 0 {
			sign, m = "-", -m
		}
		return fmt.Sprintf("%s%d-%d", sign, m/12, m%12)
	case vector.Array:
		var parts []string
		for _, e := range v.([]vector.Value) {
			parts = append(parts, formatValue(e, t.Fields[0].Type, zone))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case vector.Map:
		var parts []string
		for _, p := range v.([]vector.Pair) {
			parts = append(parts, formatValue(p.Key, t.Fields[0].Type, zone)+"="+formatValue(p.Value, t.Fields[1].Type, zone))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case vector.Row, vector.Variant:
		var parts []string
		for i, e := range v.([]vector.Value) {
			s := formatValue(e, t.Fields[i].Type, zone)
			if t.Fields[i].Name != "" {
				s = t.Fields[i].Name + "=" + s
			}
			parts = append(parts, s)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if s, ok := v.(string); ok {
		return hex.EncodeToString([]byte(s))
	}
	return fmt.Sprint(v)
}

// formatFloat writes 1.0E10, -2.5E-3, 0.0E0, NaN, Infinity: one digit before the point and at least one after it.
func formatFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	s := strconv.FormatFloat(f, 'e', -1, bits)
	m, e, _ := strings.Cut(s, "e")
	if !strings.Contains(m, ".") {
		m += ".0"
	}
	n, _ := strconv.Atoi(e)
	return m + "E" + strconv.Itoa(n)
}

// javaDouble writes a double as Java's Double.toString does: plain between 10^-3 and 10^7, else with an exponent.
func javaDouble(f float64, bits int) string {
	a := math.Abs(f)
	if a != 0 && (a < 1e-3 || a >= 1e7) || a != a || math.IsInf(f, 0) {
		return formatFloat(f, bits)
	}
	s := strconv.FormatFloat(f, 'f', -1, bits)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func formatDecimal(x vector.Int128, scale int) string {
	var s string
	neg := x.Sign() < 0
	if fits64(x) && int64(x.LowBits()) != math.MinInt64 {
		v := int64(x.LowBits())
		if neg {
			v = -v
		}
		s = strconv.FormatInt(v, 10)
	} else {
		b := x.BigInt()
		s = b.Abs(b).String()
	}
	if scale > 0 {
		if len(s) <= scale {
			s = strings.Repeat("0", scale+1-len(s)) + s
		}
		s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

func formatUUID(s string) string {
	if len(s) != 16 {
		return hex.EncodeToString([]byte(s))
	}
	h := hex.EncodeToString([]byte(s))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func appendDate(b []byte, days int64) []byte {
	y, m, d := civil(days)
	switch {
	case y < 0:
		b = append(b, '-')
		y = -y
	case y > 9999:
		b = append(b, '+')
	}
	b = pad(b, y, 4)
	b = append(b, '-')
	b = pad(b, int64(m), 2)
	b = append(b, '-')
	return pad(b, int64(d), 2)
}

func pad(b []byte, x int64, width int) []byte {
	s := strconv.FormatInt(x, 10)
	for i := len(s); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, s...)
}

// appendClock writes HH:MM:SS and the fraction with so many digits; rest is in units of 10^-9 s.
func appendClock(b []byte, nanos int64, digits int) []byte {
	sec := nanos / 1e9
	b = pad(b, sec/3600, 2)
	b = append(b, ':')
	b = pad(b, sec/60%60, 2)
	b = append(b, ':')
	b = pad(b, sec%60, 2)
	if digits > 0 {
		f := pad(nil, nanos%1e9, 9)
		b = append(b, '.')
		b = append(b, f[:min(digits, 9)]...)
	}
	return b
}

func formatTime(micros int64, digits int) string {
	return string(appendClock(nil, micros*1000, digits))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// unitsPerDay gives the units of a timestamp type in a day.
func unitsPerDay(t vector.Type) int64 { return 86400 * unitsPerSecond(t) }

func unitsPerSecond(t vector.Type) int64 {
	if t.Nanos() {
		return 1e9
	}
	return 1e6
}

func formatTimestamp(v int64, t vector.Type) string {
	d := unitsPerDay(t)
	b := appendDate(nil, floorDiv(v, d))
	b = append(b, ' ')
	return string(appendClock(b, floorMod(v, d)*(1e9/unitsPerSecond(t)), t.Precision))
}

func formatTimestampTZ(v int64, t vector.Type, zone *time.Location) string {
	return formatTimestamp(v+offsetAt(v, t, zone), t) + " " + zoneName(zone)
}

func formatDayInterval(us int64) string {
	sign := ""
	if us < 0 {
		sign, us = "-", -us
	}
	return fmt.Sprintf("%s%d %02d:%02d:%02d.%03d", sign, us/86400e6, us/3600e6%24, us/60e6%60, us/1e6%60, us/1000%1000)
}
