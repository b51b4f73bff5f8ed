package plan

import (
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// foldConstants evaluates what needs no row, no parameter and no session, and takes widening casts off columns that are compared with
// constants, so that scans can use their statistics.
func (o *optimizer) foldConstants(r rel) (rel, error) {
	return mapRel(r, func(x rel) rel {
		return x.rewrite(nil, func(e expr.Expr) expr.Expr { return expr.Rewrite(expr.Fold(e, nil), unwrapCast) })
	}), nil
}

// unwrapCast turns CAST(x AS wider) op constant into x op constant when the constant is a value of x's type. The cast must keep order
// and equality, which casts to a wider number do.
func unwrapCast(e expr.Expr) expr.Expr {
	switch n := e.(type) {
	case *expr.Compare:
		if x, l, ok := underCast(n.L, n.R); ok {
			return &expr.Compare{Op: n.Op, L: x, R: l}
		}
		if x, l, ok := underCast(n.R, n.L); ok {
			return &expr.Compare{Op: n.Op, L: l, R: x}
		}
	case *expr.In:
		c, ok := n.Arg.(*expr.Cast)
		if !ok {
			return e
		}
		out := &expr.In{Arg: c.Arg, Negated: n.Negated}
		for _, v := range n.List {
			_, l, ok := underCast(n.Arg, v)
			if !ok {
				return e
			}
			out.List = append(out.List, l)
		}
		return out
	case *expr.Or:
		return orToIn(n)
	}
	return e
}

// orToIn turns x = 1 OR x = 2 into x IN (1, 2).
func orToIn(or *expr.Or) expr.Expr {
	in := &expr.In{}
	for _, a := range or.Args {
		var arg expr.Expr
		var vals []expr.Expr
		switch n := a.(type) {
		case *expr.Compare:
			if n.Op != expr.Eq {
				return or
			}
			arg, vals = n.L, []expr.Expr{n.R}
			if _, ok := arg.(*expr.Literal); ok {
				arg, vals = n.R, []expr.Expr{n.L}
			}
		case *expr.In:
			if n.Negated {
				return or
			}
			arg, vals = n.Arg, n.List
		default:
			return or
		}
		if _, ok := arg.(*expr.Column); !ok || in.Arg != nil && !expr.Equal(in.Arg, arg) {
			return or
		}
		for _, v := range vals {
			if _, ok := v.(*expr.Literal); !ok {
				return or
			}
		}
		in.Arg, in.List = arg, append(in.List, vals...)
	}
	return in
}

// underCast gives the operand under a widening cast and the constant in the operand's type.
func underCast(cast, constant expr.Expr) (expr.Expr, expr.Expr, bool) {
	c, ok := cast.(*expr.Cast)
	if !ok || c.Try {
		return nil, nil, false
	}
	l, ok := constant.(*expr.Literal)
	if !ok || l.Value == nil || !widening(c.Arg.Type(), c.To) {
		return nil, nil, false
	}
	down, err := expr.NewCast(l, c.Arg.Type(), false)
	if err != nil {
		return nil, nil, false
	}
	v, err := expr.EvalConst(down, &expr.Context{})
	if err != nil {
		return nil, nil, false
	}
	narrow := &expr.Literal{Value: v, Typ: c.Arg.Type()}
	up, err := expr.NewCast(narrow, c.To, false)
	if err != nil {
		return nil, nil, false
	}
	back, err := expr.EvalConst(up, &expr.Context{})
	if err != nil || back != l.Value {
		return nil, nil, false
	}
	return c.Arg, narrow, true
}

// widening reports whether every value of from has its own value in to, in the same order.
func widening(from, to vector.Type) bool {
	switch {
	case from.Integral() && to.Integral():
		return to.Kind >= from.Kind
	case from.Integral() && to.Kind == vector.Decimal:
		digits := map[vector.Kind]int{vector.TinyInt: 3, vector.SmallInt: 5, vector.Integer: 10, vector.BigInt: 19}[from.Kind]
		return to.Precision-to.Scale >= digits
	case from.Kind == vector.Decimal && to.Kind == vector.Decimal:
		return to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale
	case from.Kind == vector.Integer && to.Kind == vector.Double, from.Kind == vector.SmallInt && to.Kind == vector.Double, from.Kind == vector.TinyInt && to.Kind == vector.Double:
		return true
	case from.Kind == vector.Date && to.Kind == vector.Timestamp:
		return true
	}
	return false
}
