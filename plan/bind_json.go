package plan

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

func isJSONFunction(name string) bool {
	switch name {
	case "json_value", "json_query", "json_exists", "json_object", "json_array":
		return true
	}
	return false
}

// jsonCall binds a function of SQL/JSON. Its clauses become a CASE over the state of the path: what is found, nothing, or an error.
func (x *exprBinder) jsonCall(name string, c *sql.Call) (expr.Expr, error) {
	o := c.JSON
	if o == nil {
		o = &sql.JSONOptions{}
	}
	args := slices.Clone(c.Args)
	if name == "json_object" || name == "json_array" {
		for i, a := range args {
			// What another JSON function made is JSON, not text.
			if f, ok := a.(*sql.Call); ok && len(f.Name) == 1 && (name == "json_array" || i%2 == 1) {
				switch fold(f.Name[0].Name) {
				case "json_object", "json_array", "json_query":
					args[i] = &sql.Call{Name: []sql.Ident{{Pos: f.At(), Name: "json_parse"}}, Args: []sql.Expr{f}}
				}
			}
		}
	}
	bound, err := x.all(args)
	if err != nil {
		return nil, err
	}
	if o.Passing != nil {
		if name == "json_object" || name == "json_array" {
			return nil, x.b.errorf(c.At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%s takes no PASSING", name)
		}
		vars, err := x.passing(o.Passing)
		if err != nil {
			return nil, err
		}
		bound = append(bound, vars)
	}
	call := func(fn string, args ...expr.Expr) (expr.Expr, error) {
		e, err := expr.NewCall(fn, args)
		return e, x.b.place(c.At(), err)
	}
	t := vector.Of(vector.Varchar)
	if o.Returning != nil {
		if t, err = x.b.typeOf(o.Returning); err != nil {
			return nil, err
		}
	}
	refuse := func(what string) (expr.Expr, error) {
		return nil, x.b.errorf(c.At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%s takes no %s", name, what)
	}
	text := t.Kind == vector.Varchar
	switch name {
	case "json_object", "json_array":
		fn := name
		if o.OnNull == "NULL" && name == "json_array" {
			fn = "json_array_nulls"
		}
		if o.OnNull == "ABSENT" && name == "json_object" {
			fn = "json_object_absent"
		}
		if o.UniqueKeys && name == "json_object" {
			fn += "_unique"
		}
		if o.Wrapper != "" || o.Quotes != "" || o.OnEmpty != "" || o.OnError != "" {
			return refuse("clauses of a path")
		}
		v, err := call(fn, bound...)
		if err != nil {
			return nil, err
		}
		return x.returned(v, t)
	case "json_exists":
		if o.Wrapper != "" || o.Quotes != "" || o.OnEmpty != "" || o.OnNull != "" || o.Returning != nil {
			return refuse("clauses but ON ERROR")
		}
		v, err := call(name, bound...)
		if err != nil || o.OnError == "" || o.OnError == "FALSE" {
			return v, err
		}
		boolean := vector.Of(vector.Boolean)
		var bad expr.Expr
		switch o.OnError {
		case "TRUE":
			bad = &expr.Literal{Value: true, Typ: boolean}
		case "UNKNOWN":
			bad = &expr.Literal{Typ: boolean}
		case "ERROR":
		default:
			return refuse(o.OnError + " ON ERROR")
		}
		return x.jsonStates(c, "json_query_state", bound, v, nil, v, bad)
	}
	if o.OnNull != "" || o.UniqueKeys {
		return refuse("clauses of the constructors")
	}
	if name == "json_value" {
		if o.Wrapper != "" || o.Quotes != "" {
			return refuse("WRAPPER and QUOTES")
		}
		fn := name
		if t.Kind == vector.Boolean || t.Numeric() {
			fn = "json_value_item" // numbers are converted as such, not as their text
		}
		v, err := call(fn, bound...)
		if err != nil || c.JSON == nil {
			return v, err
		}
		r, err := expr.NewCast(v, t, true)
		if err != nil {
			return nil, x.b.place(c.At(), err)
		}
		empty, err := x.jsonDefault(c, o.OnEmpty, o.EmptyDefault, t)
		if err != nil {
			return nil, err
		}
		bad, err := x.jsonDefault(c, o.OnError, o.ErrorDefault, t)
		if err != nil {
			return nil, err
		}
		return x.jsonStates(c, "json_value_state", bound, v, empty, r, bad)
	}
	fn := name
	switch o.Wrapper {
	case "WITH UNCONDITIONAL":
		fn = "json_query_wrapped"
	case "WITH CONDITIONAL":
		fn = "json_query_conditional"
	}
	if o.Quotes == "OMIT" && fn != name {
		return refuse("OMIT QUOTES beside WITH WRAPPER")
	}
	if !text && t.Kind != vector.Varbinary {
		return refuse("RETURNING " + t.String())
	}
	v, err := call(fn, bound...)
	if err == nil && o.Quotes == "OMIT" {
		v, err = call("json_unquote", v)
	}
	if err != nil || c.JSON == nil {
		return v, err
	}
	r, err := x.returned(v, t)
	if err != nil {
		return nil, err
	}
	empty, err := x.jsonDefault(c, o.OnEmpty, nil, t)
	if err != nil {
		return nil, err
	}
	bad, err := x.jsonDefault(c, o.OnError, nil, t)
	if err != nil {
		return nil, err
	}
	return x.jsonStates(c, "json_query_state", bound, v, empty, r, bad)
}

// passing makes one JSON object of the values of a path's variables. A name without quotes is in capitals, as the standard has it.
func (x *exprBinder) passing(vs []sql.Passed) (expr.Expr, error) {
	var members []expr.Expr
	for _, v := range vs {
		e, err := x.bind(v.Expr)
		if err != nil {
			return nil, err
		}
		name := v.Name.Name
		if !v.Name.Quoted {
			name = strings.ToUpper(name)
		}
		members = append(members, text(name), e)
	}
	e, err := expr.NewCall("json_object", members)
	if err == nil {
		e, err = expr.NewCall("json_parse", []expr.Expr{e})
	}
	return e, x.b.place(vs[0].Expr.At(), err)
}

// returned converts the text of a JSON function to the type that RETURNING names.
func (x *exprBinder) returned(v expr.Expr, t vector.Type) (expr.Expr, error) {
	if t.Kind == vector.Varbinary {
		return expr.NewCall("to_utf8", []expr.Expr{v})
	}
	return expr.NewCast(v, t, false)
}

// jsonDefault is what a clause ON EMPTY or ON ERROR puts in the place of the value; nil for ERROR.
func (x *exprBinder) jsonDefault(c *sql.Call, what string, def sql.Expr, t vector.Type) (expr.Expr, error) {
	switch what {
	case "", "NULL":
		return &expr.Literal{Typ: t}, nil
	case "ERROR":
		return nil, nil
	case "EMPTY", "EMPTY ARRAY":
		return x.returned(text("[]"), t)
	case "EMPTY OBJECT":
		return x.returned(text("{}"), t)
	case "DEFAULT":
		if def == nil {
			break
		}
		v, err := x.bind(def)
		if err != nil {
			return nil, err
		}
		return expr.NewCast(v, t, true)
	}
	return nil, x.b.errorf(c.At(), fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "%s is no behaviour of this function", what)
}

// jsonStates chooses between the result, what stands for nothing, and what stands for an error; nil stands for the error itself. raw is
// the value before its conversion: one that could not be converted is an error too.
func (x *exprBinder) jsonStates(c *sql.Call, fn string, args []expr.Expr, raw, empty, result, bad expr.Expr) (expr.Expr, error) {
	name := fold(c.Name[0].Name)
	state, err := expr.NewCall(fn, args)
	if err != nil {
		return nil, x.b.place(c.At(), err)
	}
	number := func(n int64) expr.Expr { return &expr.Literal{Value: n, Typ: vector.Of(vector.BigInt)} }
	t := result.Type()
	fail := func(state expr.Expr) (expr.Expr, error) {
		e, err := expr.NewCall("json_fail", []expr.Expr{state, text(name)})
		if err != nil {
			return nil, err
		}
		return expr.NewCast(e, t, false)
	}
	orFail := func(e, state expr.Expr) (expr.Expr, error) {
		if e != nil {
			return e, nil
		}
		return fail(state)
	}
	var whens []expr.When
	add := func(op expr.CompareOp, n int64, then expr.Expr) error {
		cond, err := expr.NewCompare(op, state, number(n))
		whens = append(whens, expr.When{Cond: cond, Then: then})
		return err
	}
	if name != "json_exists" {
		then, err := orFail(empty, state)
		if err == nil {
			err = add(expr.Eq, 2, then)
		}
		if err != nil {
			return nil, err
		}
	}
	least := int64(3)
	if name == "json_exists" || name == "json_query" && c.JSON.Wrapper != "" && c.JSON.Wrapper != "WITHOUT" {
		least = 5 // several items are fine
	}
	then, err := orFail(bad, state)
	if err == nil {
		err = add(expr.Ge, least, then)
	}
	if err != nil {
		return nil, err
	}
	if name == "json_value" {
		lost, err := orFail(bad, number(7))
		if err != nil {
			return nil, err
		}
		cond, err := expr.NewAnd(&expr.IsNull{Arg: raw, Negated: true}, &expr.IsNull{Arg: result})
		if err != nil {
			return nil, err
		}
		whens = append(whens, expr.When{Cond: cond, Then: lost})
	}
	return expr.NewCase(whens, result)
}
