package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// filter is a condition in three languages.
type filter struct {
	ours expr.Expr
	ice  iceberg.BooleanExpression
	json map[string]any // Iceberg's JSON of expressions
	// nan is the filter for rows whose x is NaN, by the rules of SQL.
	nan condition
	// condition is what json is, where that is a truth value.
	condition any
}

// condition is a filter for the other planner; json is a truth value where it is constant.
type condition struct {
	ice  iceberg.BooleanExpression
	json any
}

func constant(b bool) condition {
	if b {
		return condition{iceberg.AlwaysTrue{}, true}
	}
	return condition{iceberg.AlwaysFalse{}, false}
}

func (c condition) not() condition {
	if b, ok := c.json.(bool); ok {
		return constant(!b)
	}
	return condition{iceberg.NewNot(c.ice), map[string]any{"type": "not", "child": c.json}}
}

// join is c AND d, or c OR d where or.
func (c condition) join(d condition, or bool) condition {
	for range 2 {
		if b, ok := c.json.(bool); ok {
			if b == or {
				return c
			}
			return d
		}
		c, d = d, c
	}
	if or {
		return condition{iceberg.NewOr(c.ice, d.ice), map[string]any{"type": "or", "left": c.json, "right": d.json}}
	}
	return condition{iceberg.NewAnd(c.ice, d.ice), map[string]any{"type": "and", "left": c.json, "right": d.json}}
}

// value is a literal in three languages.
type value struct {
	ours vector.Value
	ice  iceberg.Literal
	json any
}

// some gives a value near those of a column's rows.
func some(r *rand.Rand, name string) value {
	const microsADay = 86_400_000_000
	switch name {
	case "id":
		v := r.Int63n(280) - 20
		return value{v, iceberg.NewLiteral(v), v}
	case "kind":
		v := append(kinds, "nothing", "cl")[r.Intn(len(kinds)+2)]
		return value{v, iceberg.NewLiteral(v), v}
	case "at":
		v := int64(firstDay+r.Intn(days))*microsADay + r.Int63n(8)*microsADay/8
		return value{v, iceberg.NewLiteral(iceberg.Timestamp(v)), time.UnixMicro(v).UTC().Format("2006-01-02T15:04:05.000000")}
	case "n":
		v := int32(r.Intn(300) - 120)
		return value{v, iceberg.NewLiteral(v), v}
	case "x":
		v := []float64{1.5, -2.25, 0, 1e9, 7, -3}[r.Intn(6)]
		return value{v, iceberg.NewLiteral(v), json.Number(strconv.FormatFloat(v, 'f', 2, 64))}
	case "day":
		v := int32(firstDay + r.Intn(days))
		return value{v, iceberg.NewLiteral(iceberg.Date(v)), time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)}
	}
	v := int64(r.Intn(22000)) - 11000
	text := decimal128.FromI64(v).ToString(2)
	return value{v, iceberg.NewLiteral(iceberg.Decimal{Val: decimal128.FromI64(v), Scale: 2}), text}
}

var comparisons = []struct {
	ours expr.CompareOp
	ice  iceberg.Operation
	json string
}{
	{expr.Eq, iceberg.OpEQ, "eq"}, {expr.Eq, iceberg.OpEQ, "eq"}, {expr.Ne, iceberg.OpNEQ, "not-eq"}, {expr.Lt, iceberg.OpLT, "lt"},
	{expr.Le, iceberg.OpLTEQ, "lt-eq"}, {expr.Gt, iceberg.OpGT, "gt"}, {expr.Ge, iceberg.OpGTEQ, "gt-eq"},
}

// newFilter makes a filter of up to depth levels of AND, OR and NOT.
func newFilter(r *rand.Rand, depth int) (*filter, error) {
	if depth > 0 {
		switch r.Intn(7) {
		case 0, 1, 2:
			return pair(r, depth)
		case 3:
			f, err := newFilter(r, depth-1)
			if err != nil {
				return nil, err
			}
			ours, err := expr.NewNot(f.ours)
			return &filter{ours, iceberg.NewNot(f.ice), map[string]any{"type": "not", "child": f.json}, f.nan.not(), nil}, err
		}
	}
	f, err := leaf(r)
	if err != nil {
		return nil, err
	}
	f.nan = condition{f.ice, f.json}
	if slices.Contains(expr.Columns(f.ours), floats) {
		switch f.json["type"] {
		case "not-null", "not-eq", "not-in":
			f.nan = constant(true)
		default:
			f.nan = constant(false)
		}
	}
	return f, nil
}

// leaf makes a condition on one column.
func leaf(r *rand.Rand) (*filter, error) {
	i := r.Intn(schema.NumFields())
	f := schema.Field(i)
	t, err := catalog.TypeOf(f.Type)
	if err != nil {
		return nil, err
	}
	col, ref := &expr.Column{Index: i, Name: f.Name, Typ: t, Null: !f.Required}, iceberg.Reference(f.Name)
	is := func(v value) expr.Expr { return &expr.Literal{Typ: t, Value: v.ours} }
	negated := r.Intn(3) == 0
	name := func(plain string) string {
		if negated {
			return "not-" + plain
		}
		return plain
	}
	switch k := r.Intn(10); {
	case k == 0:
		out := &filter{ours: &expr.IsNull{Arg: col, Negated: negated}, ice: iceberg.IsNull(ref), json: map[string]any{"type": "is-null", "term": f.Name}}
		if negated {
			out.ice, out.json["type"] = iceberg.NotNull(ref), "not-null"
		}
		return out, nil
	case k < 3:
		var list []expr.Expr
		var lits []iceberg.Literal
		var values []any
		for range 2 + r.Intn(2) {
			v := some(r, f.Name)
			list, lits, values = append(list, is(v)), append(lits, v.ice), append(values, v.json)
		}
		op := iceberg.OpIn
		if negated {
			op = iceberg.OpNotIn
		}
		ours, err := expr.NewIn(col, list, negated)
		return &filter{ours: ours, ice: iceberg.SetPredicate(op, ref, lits), json: map[string]any{"type": name("in"), "term": f.Name, "values": values}}, err
	case k < 5 && f.Name == "kind":
		prefix := []string{"o", "cl", "a kind", "zz", "ö"}[r.Intn(5)]
		op := iceberg.OpStartsWith
		if negated {
			op = iceberg.OpNotStartsWith
		}
		ours, err := expr.NewLike(col, &expr.Literal{Typ: t, Value: prefix + "%"}, nil, negated, false)
		return &filter{ours: ours, ice: iceberg.LiteralPredicate(op, ref, iceberg.NewLiteral(prefix)),
			json: map[string]any{"type": strings.ReplaceAll(name("starts-with"), "_", "-"), "term": f.Name, "value": prefix}}, err
	}
	c := comparisons[r.Intn(len(comparisons))]
	v := some(r, f.Name)
	ours, err := expr.NewCompare(c.ours, col, is(v))
	return &filter{ours: ours, ice: iceberg.LiteralPredicate(c.ice, ref, v.ice), json: map[string]any{"type": c.json, "term": f.Name, "value": v.json}}, err
}

func pair(r *rand.Rand, depth int) (*filter, error) {
	a, err := newFilter(r, depth-1)
	if err != nil {
		return nil, err
	}
	b, err := newFilter(r, depth-1)
	if err != nil {
		return nil, err
	}
	if r.Intn(2) == 0 {
		ours, err := expr.NewAnd(a.ours, b.ours)
		return &filter{ours, iceberg.NewAnd(a.ice, b.ice), map[string]any{"type": "and", "left": a.json, "right": b.json}, a.nan.join(b.nan, false), nil}, err
	}
	ours, err := expr.NewOr(a.ours, b.ours)
	return &filter{ours, iceberg.NewOr(a.ice, b.ice), map[string]any{"type": "or", "left": a.json, "right": b.json}, a.nan.join(b.nan, true), nil}, err
}

func (f *filter) String() string { return fmt.Sprint(f.ours) }
