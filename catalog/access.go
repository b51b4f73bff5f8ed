package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
)

// Access is the part of a table that a principal may see.
type Access struct {
	// Columns are the names of the only columns that are there; nil for all but Hidden.
	Columns, Hidden []string
	// Filter is an SQL condition that rows must meet to be there; empty for none. It may use columns that are not there.
	Filter string
	// Masks are SQL expressions, by the name of the column whose value they stand for. They are cast to the column's type.
	Masks map[string]string
}

func (a *Access) shows(column string) bool {
	same := func(name string) bool { return strings.EqualFold(name, column) }
	return (a.Columns == nil || slices.ContainsFunc(a.Columns, same)) && !slices.ContainsFunc(a.Hidden, same)
}

// Mask is the expression that stands for a column's value.
func (a *Access) Mask(column string) (string, bool) {
	for name, mask := range a.Masks {
		if strings.EqualFold(name, column) {
			return mask, true
		}
	}
	return "", false
}

// Fields are the columns of a schema that are there for whoever loaded the table.
func (t *Table) Fields(s *iceberg.Schema) []iceberg.NestedField {
	all := s.Fields()
	if t.Access == nil {
		return all
	}
	seen := make([]iceberg.NestedField, 0, len(all))
	for _, f := range all {
		if t.Access.shows(f.Name) {
			seen = append(seen, f)
		}
	}
	return seen
}

// Hider is a catalog that may not be there for a caller.
type Hider interface {
	Visible(ctx context.Context) bool
}

// Visible reports whether a catalog is there for the caller of ctx.
func Visible(ctx context.Context, c Catalog) bool {
	h, ok := c.(Hider)
	return !ok || h.Visible(ctx)
}
