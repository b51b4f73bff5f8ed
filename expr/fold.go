package expr

import "github.com/skua-db/skua/vector"

// Fold replaces the parts of e that need no row, parameter, clock or subquery by their values. What fails to evaluate stays as it
// is and fails for the rows that reach it. With a nil ctx nothing that depends on the session is folded.
func Fold(e Expr, ctx *Context) Expr {
	run := ctx != nil
	if !run {
		ctx = &Context{}
	}
	return Rewrite(e, func(x Expr) Expr {
		switch n := x.(type) {
		case *Literal, *Column, *Param, *LambdaVar, *Subquery, *Lambda:
			return x
		case *And:
			return foldAnd(n)
		case *Or:
			return foldOr(n)
		case *Case:
			return foldCase(n)
		case *Coalesce:
			for len(n.Args) > 0 {
				l, ok := n.Args[0].(*Literal)
				if !ok {
					return n
				}
				if l.Value != nil || len(n.Args) == 1 {
					return l
				}
				n = &Coalesce{Args: n.Args[1:], Typ: n.Typ}
			}
			return n
		case *Cast:
			if !run && needsContext(n.Arg.Type(), n.To) {
				return n
			}
		case *Call:
			if n.Fn.volatile || n.Fn.session && !run {
				return x
			}
			if !run {
				for _, a := range n.Args {
					if k := a.Type(); k.Kind == vector.TimestampTZ && k.CRS == "" {
						return x
					}
				}
			}
		}
		for _, c := range x.Children() {
			switch l := c.(type) {
			case *Literal:
			case *Lambda:
				if !closed(l) {
					return x
				}
			default:
				return x
			}
		}
		if nested(x.Type()) {
			return x
		}
		v, err := EvalConst(x, ctx)
		if err != nil {
			return x
		}
		return &Literal{Value: v, Typ: x.Type()}
	})
}

// closed reports whether a lambda refers to nothing outside itself and gives the same each time.
func closed(l *Lambda) bool {
	return selfContained(l, func(e Expr) bool {
		switch x := e.(type) {
		case *Param:
			return false
		case *Call:
			return !x.Fn.volatile && !x.Fn.session
		}
		return true
	})
}

func boolLiteral(e Expr) (val, isNull, ok bool) {
	l, is := e.(*Literal)
	if !is {
		return false, false, false
	}
	if l.Value == nil {
		return false, true, true
	}
	b, is := l.Value.(bool)
	return b, false, is
}

func foldAnd(n *And) Expr {
	var keep []Expr
	for _, a := range n.Args {
		if v, null, ok := boolLiteral(a); ok && !null {
			if v {
				continue
			}
			if len(keep) == 0 {
				return a
			}
			keep = append(keep, a)
			break
		}
		keep = append(keep, a)
	}
	switch len(keep) {
	case 0:
		return &Literal{Value: true, Typ: boolean}
	case 1:
		return keep[0]
	case len(n.Args):
		return n
	}
	return &And{Args: keep}
}

func foldOr(n *Or) Expr {
	var keep []Expr
	for _, a := range n.Args {
		if v, null, ok := boolLiteral(a); ok && !null {
			if !v {
				continue
			}
			if len(keep) == 0 {
				return a
			}
			keep = append(keep, a)
			break
		}
		keep = append(keep, a)
	}
	switch len(keep) {
	case 0:
		return &Literal{Value: false, Typ: boolean}
	case 1:
		return keep[0]
	case len(n.Args):
		return n
	}
	return &Or{Args: keep}
}

func foldCase(n *Case) Expr {
	var whens []When
	for i, w := range n.Whens {
		v, null, ok := boolLiteral(w.Cond)
		if ok && (null || !v) {
			continue
		}
		if ok {
			if len(whens) == 0 {
				return w.Then
			}
			return &Case{Whens: whens, Else: w.Then, Typ: n.Typ}
		}
		whens = append(whens, n.Whens[i])
	}
	if len(whens) == 0 {
		if n.Else == nil {
			return &Literal{Typ: n.Typ}
		}
		return n.Else
	}
	if len(whens) == len(n.Whens) {
		return n
	}
	return &Case{Whens: whens, Else: n.Else, Typ: n.Typ}
}
