package plan

import (
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
)

// variantGet binds variant_get(v, path, 'type'): the type's name is a text literal, as Spark has it.
func (x *exprBinder) variantGet(c *sql.Call, try bool) (expr.Expr, error) {
	name, ok := c.Args[2].(*sql.Text)
	if !ok {
		return nil, x.b.errorf(c.Args[2].At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the third argument of variant_get is the name of a type, as a text literal")
	}
	parsed, err := sql.ParseExpr("CAST(NULL AS " + name.Value + ")")
	cast, ok := parsed.(*sql.Cast)
	if err != nil || !ok {
		return nil, x.b.errorf(name.Pos, fault.Invalid, "INVALID_TYPE", "%q is not the name of a type", name.Value)
	}
	t, err := x.b.typeOf(cast.Type)
	if err != nil {
		return nil, x.b.errorf(name.Pos, fault.Invalid, "INVALID_TYPE", "%q is not the name of a type", name.Value)
	}
	part := *c
	part.Args = c.Args[:2]
	v, err := x.call(&part)
	if err != nil {
		return nil, err
	}
	e, err := expr.NewCast(v, t, try)
	return e, x.b.place(c.At(), err)
}
