package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// WithJSON gives a statement whose columns at some positions are JSON text instead of the nested values that they are. A value
// that JSON cannot hold is an error.
func (p *Prepared) WithJSON(columns []int) (*Prepared, error) {
	top := &Project{Input: p.Root}
	for i, c := range p.Columns {
		var e expr.Expr = &expr.Column{Index: i, Name: c.Name, Typ: c.Type, Null: c.Nullable}
		if slices.Contains(columns, i) {
			var err error
			if e, err = expr.NewCast(e, vector.Of(vector.JSON), false); err != nil {
				return nil, err
			}
			c.Type = e.Type()
		}
		top.Exprs, top.Cols = append(top.Exprs, e), append(top.Cols, c)
	}
	out := *p
	out.Root, out.Columns = top, top.Cols
	return &out, nil
}
