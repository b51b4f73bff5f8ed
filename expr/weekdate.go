package expr

import (
	"strings"
	"time"

	"github.com/skua-db/skua/vector"
)

// isoDate reads a date of ISO 8601: a year, a month, a day, a day of the year (2024-060), a week or a day of one (2024-W09-4).
func (p *timeText) isoDate() int64 {
	rest := p.s
	year, after, found := strings.Cut(rest, "-")
	if rest != "" && (rest[0] == '-' || rest[0] == '+') || len(year) != 4 && found {
		return p.date()
	}
	tail, _, _ := strings.Cut(after, "T")
	switch {
	case !found || strings.HasPrefix(tail, "W"), len(tail) == 2, len(tail) == 3:
	default:
		return p.date()
	}
	y := p.number(4, 4)
	if !p.accept('-') {
		return vector.CivilDays(y, 1, 1)
	}
	switch {
	case p.accept('W'):
		week, day := p.number(2, 2), int64(1)
		if p.accept('-') {
			day = p.number(1, 1)
		}
		d, ok := ofWeek(y, week, day)
		p.ok = p.ok && ok
		return d
	case len(tail) == 3:
		day := p.number(3, 3)
		first := vector.CivilDays(y, 1, 1)
		if day < 1 || first+day > vector.CivilDays(y+1, 1, 1) {
			p.ok = false
		}
		return first + day - 1
	}
	m := p.number(2, 2)
	if m < 1 || m > 12 {
		p.ok = false
		return 0
	}
	return vector.CivilDays(y, int(m), 1)
}

// ofWeek is a day of a week of ISO 8601: the first week is that of January 4th, and weeks begin on Mondays.
func ofWeek(year, week, day int64) (days int64, ok bool) {
	monday := func(y int64) int64 {
		fourth := vector.CivilDays(y, 1, 4)
		return fourth - weekday(fourth) + 1
	}
	days = monday(year) + (week-1)*7
	return days + day - 1, week >= 1 && days < monday(year+1) && day >= 1 && day <= 7
}

// dayByName reads the name of a day of the week, in full or three letters; 0 where none stands.
func dayByName(t *timeText) int64 {
	n := 0
	for n < len(t.s) && (t.s[n]|32) >= 'a' && (t.s[n]|32) <= 'z' {
		n++
	}
	word := t.s[:n]
	t.s = t.s[n:]
	for d := range int64(7) {
		if name := time.Weekday((d + 1) % 7).String(); strings.EqualFold(word, name) || strings.EqualFold(word, name[:3]) {
			return d + 1
		}
	}
	return 0
}
