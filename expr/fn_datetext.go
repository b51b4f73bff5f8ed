package expr

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/vector"
)

// dateTexts registers the functions between temporal types and text: ISO 8601, MySQL's formats and a part of Java's.
func dateTexts() {
	for _, t := range []string{"date", "timestamp", "timestamptz"} {
		defMake("to_iso8601", "("+t+") varchar", "ISO 8601 text", func(b *binding) (kernel, error) {
			ty := b.args[0].Type()
			w := wall(ty, b.ctx)
			z := zoneOf(ty, b.ctx.Zone)
			return fn1(func(_ *evalCall, v int64) (string, error) {
				d, n := w(v)
				off := ""
				if ty.Kind == vector.TimestampTZ {
					off = offsetText(v, ty, z)
				}
				return isoText(d, n, ty, off), nil
			}), nil
		})
		defMake("date_format", "("+t+", varchar) varchar", "text in a MySQL format", func(b *binding) (kernel, error) {
			w := wall(b.args[0].Type(), b.ctx)
			return fn2(func(_ *evalCall, v int64, f string) (string, error) {
				d, n := wholeMillis(w(v))
				return formatMySQL(d, n, f)
			}), nil
		})
		defMake("format_datetime", "("+t+", varchar) varchar", "text in a Java format", func(b *binding) (kernel, error) {
			ty := b.args[0].Type()
			w, z := wall(ty, b.ctx), zoneOf(ty, b.ctx.Zone)
			return fn2(func(_ *evalCall, v int64, f string) (string, error) {
				d, n := wholeMillis(w(v))
				off := "Z"
				if ty.Kind == vector.TimestampTZ {
					off = offsetText(v, ty, z)
				}
				return formatJava(d, n, f, off, zoneName(z))
			}), nil
		})
	}
	ts3 := returns(func([]vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.Timestamp, Precision: 3}, nil
	})
	tz3 := returns(func([]vector.Type) (vector.Type, error) {
		return vector.Type{Kind: vector.TimestampTZ, Precision: 3}, nil
	})
	def("date_parse", "(varchar, varchar) timestamp", "a timestamp from text in a MySQL format", fn2(func(_ *evalCall, s, f string) (int64, error) { return parseMySQL(s, f) }), ts3)
	def("parse_datetime", "(varchar, varchar) timestamptz", "an instant from text in a Java format", fn2(func(x *evalCall, s, f string) (int64, error) {
		return parseJava(s, f, x.ctx.Zone)
	}), tz3)
	def("from_iso8601_timestamp", "(varchar) timestamptz", "an instant from ISO 8601 text", fn1(func(x *evalCall, s string) (int64, error) { return parseISO(s, x.ctx.Zone) }), tz3)
	def("from_iso8601_date", "(varchar) date", "a date from ISO 8601 text", fn1(func(_ *evalCall, s string) (int32, error) {
		p := &timeText{s, true}
		d := p.isoDate()
		if !p.ok || p.s != "" || d < math.MinInt32 || d > math.MaxInt32 {
			return 0, badArgument("%q is not an ISO 8601 date", s)
		}
		return int32(d), nil
	}))
}

// wholeMillis rounds a time of day to milliseconds, the finest that the formats of MySQL and Joda print.
func wholeMillis(d, n int64) (days, nanos int64) {
	n = (n + 5e5) / 1e6 * 1e6
	return d + n/86400e9, n % 86400e9
}

func parseISO(s string, session *time.Location) (int64, error) {
	bad := badArgument("%q is not an ISO 8601 timestamp", s)
	p := &timeText{s, true}
	days := p.isoDate()
	var nanos int64
	zone := session
	if p.ok && p.accept('T') {
		if p.s != "" && p.s[0] >= '0' && p.s[0] <= '9' {
			if i := strings.IndexByte(p.s, ':'); i < 0 || i > 2 {
				nanos = p.number(2, 2) * 3600e9
			} else {
				nanos, _ = p.clock()
			}
		}
		if p.s != "" {
			z, err := LoadZone(p.s)
			if err != nil {
				return 0, bad
			}
			zone, p.s = z, ""
		}
	}
	if !p.ok || p.s != "" {
		return 0, bad
	}
	t := vector.Type{Kind: vector.TimestampTZ, Precision: 3}
	v, ok := fromClock(days, nanos, t)
	if !ok {
		return 0, bad
	}
	v, _ = instant(v, t, zone)
	return v, nil
}

func hour12(h int64) int64 {
	if h %= 12; h == 0 {
		return 12
	}
	return h
}

func formatMySQL(d, n int64, f string) (string, error) {
	var b strings.Builder
	y, m, day := civil(d)
	h, mi, s := n/3600e9, n/60e9%60, n/1e9%60
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		i++
		if i >= len(f) {
			b.WriteByte('%')
			break
		}
		switch f[i] {
		case 'a':
			b.WriteString(time.Weekday(weekday(d) % 7).String()[:3])
		case 'b':
			b.WriteString(time.Month(m).String()[:3])
		case 'c':
			fmt.Fprint(&b, m)
		case 'd':
			fmt.Fprintf(&b, "%02d", day)
		case 'e':
			fmt.Fprint(&b, day)
		case 'f':
			fmt.Fprintf(&b, "%06d", n/1000%1e6)
		case 'H':
			fmt.Fprintf(&b, "%02d", h)
		case 'h', 'I':
			fmt.Fprintf(&b, "%02d", hour12(h))
		case 'i':
			fmt.Fprintf(&b, "%02d", mi)
		case 'j':
			fmt.Fprintf(&b, "%03d", dayOfYear(d))
		case 'k':
			fmt.Fprint(&b, h)
		case 'l':
			fmt.Fprint(&b, hour12(h))
		case 'M':
			b.WriteString(time.Month(m).String())
		case 'm':
			fmt.Fprintf(&b, "%02d", m)
		case 'p':
			b.WriteString([]string{"AM", "PM"}[h/12])
		case 'r':
			fmt.Fprintf(&b, "%02d:%02d:%02d %s", hour12(h), mi, s, []string{"AM", "PM"}[h/12])
		case 'S', 's':
			fmt.Fprintf(&b, "%02d", s)
		case 'T':
			fmt.Fprintf(&b, "%02d:%02d:%02d", h, mi, s)
		case 'v':
			_, w := isoWeek(d)
			fmt.Fprintf(&b, "%02d", w)
		case 'W':
			b.WriteString(time.Weekday(weekday(d) % 7).String())
		case 'x':
			wy, _ := isoWeek(d)
			fmt.Fprintf(&b, "%04d", wy)
		case 'Y':
			fmt.Fprintf(&b, "%04d", y)
		case 'y':
			fmt.Fprintf(&b, "%02d", floorMod(y, 100))
		case '%':
			b.WriteByte('%')
		case 'D', 'U', 'u', 'V', 'w', 'X':
			return "", badArgument("date_format does not support %%%c", f[i])
		default:
			b.WriteByte(f[i])
		}
	}
	return b.String(), nil
}

func monthByName(s string) (month int64, n int) {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if len(s) >= len(name) && strings.EqualFold(s[:len(name)], name) {
			return int64(m), len(name)
		}
	}
	for m := time.January; m <= time.December; m++ {
		if len(s) >= 3 && strings.EqualFold(s[:3], m.String()[:3]) {
			return int64(m), 3
		}
	}
	return 0, 0
}

// parsed collects the parts of a date text.
type parsed struct {
	y, m, d, h, mi, s, nanos int64
	doy                      int64
	weekYear, week, weekday  int64 // of ISO 8601, where a week is given
	half                     int   // 1 AM, 2 PM
	zone                     *time.Location
}

func (p *parsed) value(what string) (days, nanos int64, err error) {
	h := p.h
	if p.half > 0 {
		if h < 1 || h > 12 {
			return 0, 0, badArgument("%s: hour out of range", what)
		}
		h = h%12 + int64(p.half-1)*12
	}
	if p.m < 1 || p.m > 12 || p.d < 1 || p.d > int64(monthDays(p.y, int(p.m))) || h > 23 || p.mi > 59 || p.s > 59 {
		return 0, 0, badArgument("%s: a part of the date is out of range", what)
	}
	days = vector.CivilDays(p.y, int(p.m), int(p.d))
	inRange := true
	switch {
	case p.week > 0:
		days, inRange = ofWeek(cmp.Or(p.weekYear, p.y), p.week, cmp.Or(p.weekday, 1))
	case p.doy > 0:
		days = vector.CivilDays(p.y, 1, 1) + p.doy - 1
		inRange = days < vector.CivilDays(p.y+1, 1, 1)
	}
	if !inRange {
		return 0, 0, badArgument("%s: a part of the date is out of range", what)
	}
	return days, (h*3600+p.mi*60+p.s)*1e9 + p.nanos, nil
}

func fraction(t *timeText, max int) int64 {
	rest := t.s
	n := 0
	for n < len(rest) && n < max && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 0 {
		t.ok = false
		return 0
	}
	f, _ := strconv.ParseInt((rest[:n] + "000000000")[:9], 10, 64)
	t.s = rest[n:]
	return f
}

func twoDigitYear(y int64) int64 {
	if y < 70 {
		return y + 2000
	}
	return y + 1900
}

// clock reads hours, minutes and seconds.
func clock(t *timeText, p *parsed) {
	p.h = t.number(1, 2)
	t.expect(':')
	p.mi = t.number(1, 2)
	t.expect(':')
	p.s = t.number(1, 2)
}

// halfDay reads AM or PM.
func halfDay(t *timeText, p *parsed) {
	switch {
	case len(t.s) >= 2 && strings.EqualFold(t.s[:2], "AM"):
		p.half = 1
	case len(t.s) >= 2 && strings.EqualFold(t.s[:2], "PM"):
		p.half = 2
	default:
		t.ok = false
		return
	}
	t.s = t.s[2:]
}

func parseMySQL(s, f string) (int64, error) {
	t := &timeText{s, true}
	p := parsed{y: 1970, m: 1, d: 1}
	for i := 0; i < len(f) && t.ok; i++ {
		if f[i] != '%' {
			t.expect(f[i])
			continue
		}
		i++
		if i >= len(f) {
			break
		}
		switch f[i] {
		case 'Y':
			p.y = t.number(1, 4)
		case 'y':
			p.y = twoDigitYear(t.number(2, 2))
		case 'm', 'c':
			p.m = t.number(1, 2)
		case 'd', 'e':
			p.d = t.number(1, 2)
		case 'H', 'k':
			p.h = t.number(1, 2)
		case 'h', 'I', 'l':
			p.h = t.number(1, 2)
			if p.half == 0 {
				p.half = 1
			}
		case 'i':
			p.mi = t.number(1, 2)
		case 'S', 's':
			p.s = t.number(1, 2)
		case 'f':
			p.nanos = fraction(t, 9)
		case 'T':
			clock(t, &p)
		case 'j':
			p.doy = t.number(1, 3)
		case 'p':
			halfDay(t, &p)
		case 'b', 'M':
			m, n := monthByName(t.s)
			if n == 0 {
				t.ok = false
				break
			}
			p.m, t.s = m, t.s[n:]
		case 'a', 'W':
			p.weekday = dayByName(t)
		case 'x':
			p.weekYear = t.number(1, 4)
		case 'v':
			p.week = t.number(1, 2)
		case 'r':
			clock(t, &p)
			t.expect(' ')
			halfDay(t, &p)
		case '%':
			t.expect('%')
		default:
			return 0, badArgument("date_parse does not support %%%c", f[i])
		}
	}
	if !t.ok || t.s != "" {
		return 0, badArgument("%q does not have the format %q", s, f)
	}
	d, n, err := p.value("date_parse")
	if err != nil {
		return 0, err
	}
	v, _ := fromClock(d, n, vector.Type{Kind: vector.Timestamp, Precision: 3})
	return v, nil
}

// javaFields splits a Java date format into runs of a letter and literal texts.
func javaFields(f string) (fields []string, literal []bool, err error) {
	for i := 0; i < len(f); {
		c := f[i]
		switch {
		case c == '\'':
			j := strings.IndexByte(f[i+1:], '\'')
			if j < 0 {
				return nil, nil, badArgument("%q has a quote that does not end", f)
			}
			text := f[i+1 : i+1+j]
			if j == 0 {
				text = "'"
			}
			fields, literal = append(fields, text), append(literal, true)
			i += j + 2
		case c|32 >= 'a' && c|32 <= 'z':
			j := i
			for j < len(f) && f[j] == c {
				j++
			}
			fields, literal = append(fields, f[i:j]), append(literal, false)
			i = j
		default:
			fields, literal = append(fields, f[i:i+1]), append(literal, true)
			i++
		}
	}
	return fields, literal, nil
}

func formatJava(d, n int64, f, offset, zone string) (string, error) {
	fields, literal, err := javaFields(f)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	y, m, day := civil(d)
	h := n / 3600e9
	num := func(x int64, width int) {
		if x < 0 {
			width++ // the sign is no digit
		}
		fmt.Fprintf(&b, "%0*d", width, x)
	}
	for i, x := range fields {
		if literal[i] {
			b.WriteString(x)
			continue
		}
		w := len(x)
		switch x[0] {
		case 'y', 'Y':
			if w == 2 {
				num(floorMod(y, 100), 2)
			} else {
				num(y, w)
			}
		case 'x':
			wy, _ := isoWeek(d)
			num(wy, w)
		case 'w':
			_, wk := isoWeek(d)
			num(wk, w)
		case 'M':
			switch {
			case w >= 4:
				b.WriteString(time.Month(m).String())
			case w == 3:
				b.WriteString(time.Month(m).String()[:3])
			default:
				num(int64(m), w)
			}
		case 'd':
			num(int64(day), w)
		case 'D':
			num(dayOfYear(d), w)
		case 'E':
			s := time.Weekday(weekday(d) % 7).String()
			if w < 4 {
				s = s[:3]
			}
			b.WriteString(s)
		case 'e':
			num(weekday(d), w)
		case 'H':
			num(h, w)
		case 'k':
			if h == 0 {
				num(24, w)
			} else {
				num(h, w)
			}
		case 'h':
			num(hour12(h), w)
		case 'K':
			num(h%12, w)
		case 'm':
			num(n/60e9%60, w)
		case 's':
			num(n/1e9%60, w)
		case 'S':
			s := fmt.Sprintf("%09d", n%1e9)
			for len(s) < w {
				s += "0"
			}
			b.WriteString(s[:w])
		case 'a':
			b.WriteString([]string{"AM", "PM"}[h/12])
		case 'G':
			era := "AD"
			if y < 1 {
				era = "BC"
			}
			b.WriteString(era)
		case 'Z':
			o := offset
			if o == "Z" {
				o = "+00:00"
			}
			if w == 1 {
				o = strings.Replace(o, ":", "", 1)
			} else if w > 2 {
				o = zone
			}
			b.WriteString(o)
		case 'z':
			b.WriteString(zone)
		default:
			return "", badArgument("format_datetime does not support %q", x)
		}
	}
	return b.String(), nil
}

func parseJava(s, f string, session *time.Location) (int64, error) {
	fields, literal, err := javaFields(f)
	if err != nil {
		return 0, err
	}
	t := &timeText{s, true}
	p := parsed{y: 1970, m: 1, d: 1, zone: session}
	for i, x := range fields {
		if literal[i] {
			for k := 0; k < len(x); k++ {
				t.expect(x[k])
			}
			continue
		}
		w := len(x)
		switch x[0] {
		case 'y', 'Y':
			if w == 2 {
				p.y = twoDigitYear(t.number(2, 2))
			} else {
				p.y = t.number(1, max(4, w))
			}
		case 'M':
			if w >= 3 {
				m, n := monthByName(t.s)
				if n == 0 {
					t.ok = false
				}
				p.m, t.s = m, t.s[n:]
			} else {
				p.m = t.number(1, 2)
			}
		case 'd':
			p.d = t.number(1, 2)
		case 'D':
			p.doy = t.number(1, 3)
		case 'x':
			p.weekYear = t.number(1, max(4, w))
		case 'w':
			p.week = t.number(1, 2)
		case 'e':
			p.weekday = t.number(1, 1)
		case 'E':
			if p.weekday = dayByName(t); p.weekday == 0 {
				t.ok = false
			}
		case 'H':
			p.h = t.number(1, 2)
		case 'h':
			p.h = t.number(1, 2)
			if p.half == 0 {
				p.half = 1
			}
		case 'm':
			p.mi = t.number(1, 2)
		case 's':
			p.s = t.number(1, 2)
		case 'S':
			p.nanos = fraction(t, max(w, 3))
		case 'a':
			if len(t.s) < 2 {
				t.ok = false
				break
			}
			p.half = 1
			if strings.EqualFold(t.s[:2], "PM") {
				p.half = 2
			}
			t.s = t.s[2:]
		case 'Z', 'z':
			n := 0
			for n < len(t.s) && t.s[n] != ' ' {
				n++
			}
			z, zerr := LoadZone(t.s[:n])
			if zerr != nil {
				t.ok = false
				break
			}
			p.zone, t.s = z, t.s[n:]
		default:
			return 0, badArgument("parse_datetime does not support %q", x)
		}
	}
	if !t.ok || t.s != "" {
		return 0, badArgument("%q does not have the format %q", s, f)
	}
	d, n, err := p.value("parse_datetime")
	if err != nil {
		return 0, err
	}
	ty := vector.Type{Kind: vector.TimestampTZ, Precision: 3}
	v, _ := fromClock(d, n, ty)
	v, _ = instant(v, ty, p.zone)
	return v, nil
}
