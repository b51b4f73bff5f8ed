package sql

import "strings"

// Split cuts a script at its semicolons, those in texts, names and comments aside. statements are complete; rest is what
// follows the last semicolon, empty when only white space and comments do.
func Split(script string) (statements []string, rest string, err error) {
	toks, err := lex(script)
	if err != nil {
		return nil, "", err
	}
	from, begun := 0, false
	for _, t := range toks {
		switch {
		case t.kind == tEOF:
			if begun {
				rest = strings.TrimSpace(script[from:])
			}
		case t.kind == tOp && t.text == ";":
			if begun {
				statements = append(statements, strings.TrimSpace(script[from:t.start]))
			}
			from, begun = int(t.end), false
		default:
			begun = true
		}
	}
	return statements, rest, nil
}
