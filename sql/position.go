package sql

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/skua-db/skua/fault"
)

// Pos is a byte offset into the statement.
type Pos int32

// Place gives the line and the column of p in text, both from 1, the column in characters.
func (p Pos) Place(text string) (line, col int) {
	at := min(max(int(p), 0), len(text))
	head := text[:at]
	line = strings.Count(head, "\n") + 1
	if n := strings.LastIndexByte(head, '\n'); n >= 0 {
		head = head[n+1:]
	}
	return line, utf8.RuneCountInString(head) + 1
}

// excerptRunes bounds how much of a long line is shown before and after the caret.
const excerptRunes = 60

// Excerpt shows the line of p and a caret under it, each on a line of its own, indented by two spaces.
func (p Pos) Excerpt(text string) string {
	at := min(max(int(p), 0), len(text))
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		to = at + n
	}
	clean := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if r < ' ' || r == utf8.RuneError {
				return ' '
			}
			return r
		}, s))
	}
	head, tail := clean(text[from:at]), clean(strings.TrimRight(text[at:to], "\r"))
	if len(head) > excerptRunes {
		head = append([]rune("..."), head[len(head)-excerptRunes:]...)
	}
	if len(tail) > excerptRunes {
		tail = append(tail[:excerptRunes:excerptRunes], []rune("...")...)
	}
	return "  " + string(head) + string(tail) + "\n  " + strings.Repeat(" ", cells(head)) + "^"
}

// cells is how much room a terminal takes for the runes: two columns for wide ones, none for those that are drawn over the one before.
func cells(runes []rune) int {
	n := 0
	for _, r := range runes {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// Errorf makes an error about the place p of text: its message, then the line and a caret.
func Errorf(text string, p Pos, kind fault.Kind, id, format string, args ...any) *fault.Error {
	line, col := p.Place(text)
	e := fault.WithID(kind, id, "%s\n%s", fmt.Sprintf(format, args...), p.Excerpt(text))
	return e.At(line, col)
}

func syntaxError(text string, p Pos, format string, args ...any) error {
	return Errorf(text, p, fault.Invalid, "SYNTAX_ERROR", format, args...)
}
