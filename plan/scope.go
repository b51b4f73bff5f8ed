package plan

import (
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
)

// scope is what names mean at a place of a query. Inner queries see the scopes around them through parent.
type scope struct {
	parent *scope
	cols   []scopeCol
	// scans are the tables whose metadata columns can be named though they are not listed.
	scans []scopeScan
	ctes  map[string]*cte
}

// scopeCol is a column that can be named. qual is the path that may stand in front of it: an alias, or catalog, schema levels and table.
type scopeCol struct {
	qual []string
	name string
	id   int
	// merged marks the column that JOIN USING made of two; hidden ones are its origins, which only a qualified name finds.
	merged, hidden bool
	null           bool // an outer join may have padded it
}

type scopeScan struct {
	qual []string
	scan *scanRel
}

func sameName(id sql.Ident, name string, exact bool) bool {
	if exact {
		return id.Name == name
	}
	return strings.EqualFold(id.Name, name)
}

// qualifies reports whether the written qualifier is an end of the path.
func qualifies(written []sql.Ident, path []string) bool {
	// A namespace may be written as one quoted name or level by level, so the dotted forms are compared.
	w, p := dotted(written), strings.Join(path, ".")
	if len(w) > len(p) || !strings.EqualFold(w, p[len(p)-len(w):]) {
		return false
	}
	return len(w) == len(p) || p[len(p)-len(w)-1] == '.'
}

// lookup finds the columns of this scope alone that a name can mean: exact spelling first for quoted names.
func (s *scope) lookup(qual []sql.Ident, name sql.Ident) []scopeCol {
	find := func(exact bool) []scopeCol {
		var found []scopeCol
		for _, c := range s.cols {
			if len(qual) == 0 && c.hidden || !sameName(name, c.name, exact) {
				continue
			}
			if len(qual) > 0 && (c.merged || !qualifies(qual, c.qual)) {
				continue
			}
			found = append(found, c)
		}
		return found
	}
	if exact := find(true); len(exact) > 0 && (name.Quoted || len(exact) == 1) {
		return exact
	}
	return find(false)
}

// names lists the column names of the scope and those around it, for suggestions.
func (s *scope) names() []string {
	var n []string
	for ; s != nil; s = s.parent {
		for _, c := range s.cols {
			n = append(n, c.name)
		}
	}
	return n
}

// column resolves a dotted name: the longest qualifier wins, what remains after the column are fields of it.
func (x *exprBinder) column(n *sql.Name) (expr.Expr, error) {
	parts := n.Parts
	for s := x.scope; s != nil; s = s.parent {
		for q := len(parts) - 1; q >= 0; q-- {
			found := s.lookup(parts[:q], parts[q])
			if len(found) == 0 {
				c, err := x.b.metadataColumn(s, parts[:q], parts[q])
				if err != nil {
					return nil, err
				}
				if c == nil {
					continue
				}
				found = []scopeCol{*c}
			}
			if len(found) > 1 {
				return nil, x.b.errorf(parts[q].Pos, fault.Invalid, "AMBIGUOUS_NAME", "column %q is ambiguous: %s", parts[q].Name, candidates(found))
			}
			x.b.places[found[0].id] = parts[q].Pos
			ref := x.b.cols.ref(found[0].id)
			ref.Null = ref.Null || found[0].null
			var e expr.Expr = ref
			for _, f := range parts[q+1:] {
				next, err := expr.NewField(e, f.Name)
				if err != nil {
					return nil, x.b.place(f.Pos, err)
				}
				e = next
			}
			return e, nil
		}
	}
	hint := ""
	last := parts[len(parts)-1]
	if len(parts) > 1 && x.scope != nil && !x.qualifierKnown(parts[:len(parts)-1]) {
		last = parts[0]
		var quals []string
		for s := x.scope; s != nil; s = s.parent {
			for _, c := range s.cols {
				if len(c.qual) > 0 {
					quals = append(quals, c.qual[len(c.qual)-1])
				}
			}
		}
		if m := sql.Nearest(last.Name, quals); m != "" && !strings.EqualFold(m, last.Name) {
			hint = "; did you mean " + m + "?"
		}
	} else if m := sql.Nearest(last.Name, x.scope.names()); m != "" {
		hint = "; did you mean " + m + "?"
	}
	return nil, x.b.errorf(last.Pos, fault.NotFound, "COLUMN_NOT_FOUND", "column %q does not exist%s", dotted(parts), hint)
}

func (x *exprBinder) qualifierKnown(qual []sql.Ident) bool {
	for s := x.scope; s != nil; s = s.parent {
		for _, c := range s.cols {
			if qualifies(qual, c.qual) {
				return true
			}
		}
	}
	return false
}

func dotted(parts []sql.Ident) string {
	s := make([]string, len(parts))
	for i, p := range parts {
		s[i] = p.Name
	}
	return strings.Join(s, ".")
}

func candidates(cols []scopeCol) string {
	var s []string
	for _, c := range cols {
		s = append(s, strings.Join(append(append([]string(nil), c.qual...), c.name), "."))
	}
	return strings.Join(s, " or ")
}
