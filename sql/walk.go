package sql

// Walk calls f on x and, while f returns true, on the expressions below it, parents first. It does not go into subqueries.
func Walk(x Expr, f func(Expr) bool) {
	if x == nil || !f(x) {
		return
	}
	for _, k := range Children(x) {
		Walk(k, f)
	}
}

// Children lists the direct operands of x that are expressions; queries inside it are not entered.
func Children(x Expr) []Expr {
	var out []Expr
	add := func(es ...Expr) {
		for _, e := range es {
			if e != nil {
				out = append(out, e)
			}
		}
	}
	order := func(items []OrderItem) {
		for _, it := range items {
			add(it.Expr)
		}
	}
	switch x := x.(type) {
	case *Interval:
		add(x.Amount)
	case *Unary:
		add(x.X)
	case *Binary:
		add(x.L, x.R)
	case *Logic:
		add(x.Args...)
	case *Not:
		add(x.X)
	case *Is:
		add(x.X)
	case *IsDistinct:
		add(x.L, x.R)
	case *Between:
		add(x.X, x.Lo, x.Hi)
	case *In:
		add(x.X)
		add(x.List...)
	case *Like:
		add(x.X, x.Pattern, x.Escape)
	case *Quantified:
		add(x.X)
	case *Case:
		add(x.Operand)
		for _, w := range x.Whens {
			add(w.Cond, w.Then)
		}
		add(x.Else)
	case *Cast:
		add(x.X)
	case *Extract:
		add(x.X)
	case *AtTimeZone:
		add(x.X, x.Zone)
	case *Lambda:
		add(x.Body)
	case *Subscript:
		add(x.X, x.Index)
	case *Field:
		add(x.X)
	case *Array:
		add(x.Elems...)
	case *Row:
		add(x.Elems...)
	case *MapLiteral:
		add(x.Keys...)
		add(x.Values...)
	case *Star:
		for _, r := range x.Replace {
			add(r.Expr)
		}
	case *Call:
		add(x.Args...)
		order(x.OrderBy)
		add(x.Filter)
		if w := x.Over; w != nil {
			add(w.PartitionBy...)
			order(w.OrderBy)
			if w.Frame != nil {
				add(w.Frame.Start.Offset)
				if w.Frame.End != nil {
					add(w.Frame.End.Offset)
				}
			}
		}
		if o := x.JSON; o != nil {
			add(o.EmptyDefault, o.ErrorDefault)
			for _, v := range o.Passing {
				add(v.Expr)
			}
		}
	}
	return out
}
