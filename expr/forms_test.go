package expr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// formTypes are the types whose expressions are checked over all forms of vectors.
var formTypes = []vector.Type{integer, bigint, double, varchar, vector.DecimalOf(12, 2), boolean, dateType, vector.ArrayOf(integer)}

func randomOf(rng *rand.Rand, t vector.Type) vector.Value {
	if rng.IntN(6) == 0 {
		return nil
	}
	k := rng.IntN(12)
	switch t.Kind {
	case vector.Integer, vector.Date:
		return int32(k - 4)
	case vector.BigInt, vector.Decimal:
		return int64(k*50 - 100)
	case vector.Double:
		return float64(k) / 2
	case vector.Varchar:
		return []string{"", "a", "ab", "b%", "a longer text than twelve", "zürich", "ABBA"}[k%7]
	case vector.Boolean:
		return k%2 == 0
	case vector.Array:
		var a []vector.Value
		for range k % 4 {
			a = append(a, randomOf(rng, integer))
		}
		if a == nil {
			a = []vector.Value{}
		}
		return a
	}
	panic("type")
}

// inForm makes a vector in one of the three forms.
func inForm(rng *rand.Rand, t vector.Type, n int, form vector.Form) *vector.Vector {
	switch form {
	case vector.Constant:
		return vector.NewConstant(t, randomOf(rng, t))
	case vector.Dictionary:
		d := vector.NewBuilder(t)
		for d.Len() < 6 {
			if x := randomOf(rng, t); x != nil {
				d.Append(x)
			}
		}
		v := &vector.Vector{Type: t, Form: vector.Dictionary, Codes: make([]int32, n), Dict: d.Finish()}
		for i := range v.Codes {
			v.Codes[i] = int32(rng.IntN(6))
			if rng.IntN(5) == 0 {
				v.SetNull(i, n)
			}
		}
		return v
	}
	b := vector.NewBuilder(t)
	for range n {
		b.Append(randomOf(rng, t))
	}
	return b.Finish()
}

func column(i int) Expr {
	return &Column{Index: i, Name: fmt.Sprint("c", i), Typ: formTypes[i%len(formTypes)], Null: true}
}

func ok(e Expr, err error) Expr {
	if err != nil {
		panic(err)
	}
	return e
}

func formExprs() []Expr {
	c := column
	n := len(formTypes)
	b := func(i int) Expr { return c(i + n) } // a second column of the same type
	f := func(name string, args ...Expr) Expr { return ok(NewCall(name, args)) }
	cmp := func(op CompareOp, l, r Expr) Expr { return ok(NewCompare(op, l, r)) }
	x := &LambdaVar{ID: 1, Name: "x", Typ: integer}
	lambda := func(body func() Expr) lambdaBinder {
		return func([]vector.Type) (*Lambda, error) {
			return &Lambda{Params: []LambdaParam{{ID: 1, Name: "x", Typ: integer}}, Body: body()}, nil
		}
	}
	es := []Expr{
		f("+", c(0), b(0)), f("*", c(1), lit(3)), f("-", c(2), b(2)), f("+", c(4), b(4)), f("*", c(4), b(4)), f("/", c(4), lit(4)),
		f("||", c(3), b(3)), f("upper", c(3)), f("substr", c(3), lit(2), lit(3)), f("length", c(3)), f("year", c(6)), f("abs", c(1)),
		f("coalesce", c(0), b(0), lit(7)), f("if", cmp(Gt, c(0), lit(1)), c(3), b(3)), f("nullif", c(0), b(0)), f("greatest", c(2), b(2)),
		cmp(Eq, c(0), b(0)), cmp(Lt, c(3), b(3)), cmp(Ne, c(3), lit("ab")), cmp(Ge, c(2), lit(2.5)), cmp(NotDistinct, c(1), b(1)), cmp(Distinct, c(3), b(3)),
		cmp(Le, c(4), dec("1.50")), cmp(Eq, c(5), b(5)), cmp(Gt, c(6), &Literal{Value: int32(2), Typ: dateType}), cmp(Eq, c(7), b(7)),
		ok(NewIn(c(0), []Expr{lit(1), lit(2), lit(nil)}, false)), ok(NewIn(c(3), []Expr{lit("a"), lit("ab")}, true)), ok(NewIn(c(0), []Expr{b(0), lit(3)}, false)),
		ok(NewLike(c(3), lit("a%"), nil, false, false)), ok(NewLike(c(3), lit("%b_"), nil, true, false)), ok(NewLike(c(3), b(3), nil, false, false)),
		ok(NewLike(c(3), lit("%BB%"), nil, false, true)),
		ok(NewAnd(cmp(Gt, c(0), lit(0)), c(5))), ok(NewOr(cmp(Gt, c(0), lit(5)), b(5), &IsNull{Arg: c(3)})), ok(NewNot(c(5))), &IsNull{Arg: c(7), Negated: true},
		ok(NewCast(c(0), bigint, false)), ok(NewCast(c(4), double, false)), ok(NewCast(c(2), varchar, false)), ok(NewCast(c(3), integer, true)), ok(NewCast(c(1), vector.DecimalOf(38, 4), false)),
		f("cardinality", c(7)), f("element_at", c(7), lit(1)), f("array_sort", c(7)), f("contains", c(7), c(0)),
		ok(NewLambdaCall("transform", []Arg{c(7), lambda(func() Expr { return f("+", x, c(0)) })})),
		ok(NewLambdaCall("filter", []Arg{c(7), lambda(func() Expr { return cmp(Gt, x, b(0)) })})),
		ok(NewLambdaCall("any_match", []Arg{c(7), lambda(func() Expr { return cmp(Gt, x, lit(2)) })})),
		f("try", f("/", lit(10), c(0))),
	}
	return es
}

// TestForms checks that an expression gives a row the same value whatever the form of its columns and the selection: each row alone, in
// constant vectors, is the measure.
func TestForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, e := range formExprs() {
		p, err := Compile(e, &Context{})
		require.NoError(t, err)
		for range 30 {
			n := 1 + rng.IntN(90)
			c := &vector.Chunk{N: n}
			for i := range 2 * len(formTypes) {
				c.Cols = append(c.Cols, inForm(rng, formTypes[i%len(formTypes)], n, vector.Form(rng.IntN(3))))
			}
			if rng.IntN(2) == 0 {
				for i := range n {
					if rng.IntN(3) > 0 {
						c.Sel = append(c.Sel, uint16(i))
					}
				}
				if c.Sel == nil {
					c.Sel = []uint16{}
				}
			}
			rows := c.Sel
			if rows == nil {
				rows = identity(n)
			}
			want := make([]vector.Value, len(rows))
			for k, i := range rows {
				one := &vector.Chunk{N: 1}
				for _, v := range c.Cols {
					one.Cols = append(one.Cols, vector.NewConstant(v.Type, v.Get(int(i))))
				}
				q, err := Compile(e, &Context{})
				require.NoError(t, err)
				v, err := q.Eval(one)
				require.NoError(t, err)
				want[k] = v.Get(0)
			}
			v, err := p.Eval(c)
			require.NoError(t, err)
			for k, i := range rows {
				require.Equal(t, FormatValue(want[k], e.Type()), FormatValue(v.Get(int(i)), e.Type()), "%s row %d", e, i)
			}
			if e.Type().Kind == vector.Boolean {
				var keep []uint16
				for k, i := range rows {
					if want[k] == true {
						keep = append(keep, i)
					}
				}
				got, err := p.Filter(c, c.Sel, nil)
				require.NoError(t, err)
				require.True(t, slices.Equal(keep, got), "%s: %v, not %v", e, got, keep)
			}
		}
	}
}

func TestErrorsOnlyForRowsThatCount(t *testing.T) {
	b := vector.NewBuilder(integer)
	for _, x := range []int32{0, 5, 2} {
		b.Append(x)
	}
	c := &vector.Chunk{N: 3, Cols: []*vector.Vector{b.Finish()}, Sel: []uint16{1, 2}}
	div := ok(NewCall("/", []Expr{lit(10), column(0)}))
	p, err := Compile(div, nil)
	require.NoError(t, err)
	v, err := p.Eval(c)
	require.NoError(t, err)
	require.Equal(t, int32(2), v.Get(1))
	c.Sel = nil
	_, err = p.Eval(c)
	require.ErrorContains(t, err, "DIVISION_BY_ZERO")
	guarded := ok(NewAnd(ok(NewCompare(Ne, column(0), lit(0))), ok(NewCompare(Gt, div, lit(3)))))
	p, err = Compile(guarded, nil)
	require.NoError(t, err)
	got, err := p.Filter(c, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []uint16{2}, got)
}

func TestFunctionsListed(t *testing.T) {
	fs := Functions()
	require.Greater(t, len(fs), 400)
	for _, f := range fs {
		require.NotEmpty(t, f.Description, f.Name)
	}
	_, err := NewCall("lengthh", []Expr{lit("x")})
	require.ErrorContains(t, err, "did you mean length?")
}
