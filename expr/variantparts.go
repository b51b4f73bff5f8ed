package expr

import "github.com/skua-db/skua/vector"

// VariantPart takes a call apart that gives a part of a variant at a constant path: the variant, the names of the fields that lead to the
// part, and whether they lead all the way there. An index into an array, and what follows it, is not told.
func VariantPart(c *Call) (variant Expr, names []string, exact, ok bool) {
	if c.Fn == nil || len(c.Args) != 2 || c.Args[0].Type().Kind != vector.Variant {
		return nil, nil, false, false
	}
	switch c.Fn.Name {
	case "variant_get", "try_variant_get", "json_extract", "json_extract_scalar":
	default:
		return nil, nil, false, false
	}
	l, isLit := c.Args[1].(*Literal)
	if !isLit {
		return nil, nil, false, false
	}
	text, isText := l.Value.(string)
	if !isText {
		return nil, nil, false, false
	}
	steps, err := parseVariantPath(text)
	if err != nil {
		return nil, nil, false, false // evaluation tells
	}
	for _, s := range steps {
		if s.index >= 0 {
			return c.Args[0], names, false, true
		}
		names = append(names, s.name)
	}
	return c.Args[0], names, true, true
}
