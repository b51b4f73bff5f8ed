package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// pushFilters moves every predicate as far down as it may go: into scans, below joins, groups, unions and windows. On the way cross joins
// become equi joins, outer joins whose padded rows a filter drops become inner ones, ORs give up their common factors, and
// equalities carry constants to the other side.
func (o *optimizer) pushFilters(r rel) (rel, error) { return o.push(r, nil), nil }

// above keeps predicates that cannot go deeper.
func above(r rel, conds []expr.Expr) rel {
	if len(conds) == 0 {
		return r
	}
	return &filterRel{r, conds}
}

// split sorts predicates by whether they use only the given columns and give the same value each time.
func split(conds []expr.Expr, cols idSet) (inside, outside []expr.Expr) {
	for _, c := range conds {
		if cols.hasAll(expr.Columns(c)) && !expr.Volatile(c) {
			inside = append(inside, c)
		} else {
			outside = append(outside, c)
		}
	}
	return inside, outside
}

// manyConds is the number of predicates from which they are no longer compared with each other: the statement was made by a machine, and
// finding duplicates in it costs more than they do.
const manyConds = 256

func addCond(conds []expr.Expr, c expr.Expr) []expr.Expr {
	if len(conds) > manyConds {
		return append(conds, c)
	}
	for _, d := range conds {
		if expr.Equal(c, d) && !expr.Volatile(c) {
			return conds
		}
	}
	return append(conds, c)
}

func (o *optimizer) push(r rel, conds []expr.Expr) rel {
	for _, c := range conds {
		if l, ok := c.(*expr.Literal); ok && l.Value != true { // no row passes
			return &valuesRel{cols: r.out()}
		}
	}
	switch n := r.(type) {
	case *filterRel:
		for _, c := range n.conds {
			for _, f := range factor(c) {
				if l, ok := f.(*expr.Literal); ok && l.Value == true {
					continue
				}
				conds = addCond(conds, f)
			}
		}
		return o.push(n.in, conds)
	case *projectRel:
		m := map[int]expr.Expr{}
		for i, e := range n.list {
			m[n.cols[i]] = e
		}
		var down, stay []expr.Expr
		for _, c := range conds {
			s := replaceColumns(c, m)
			if expr.Volatile(s) || len(expr.Columns(c)) == 0 && expr.Volatile(c) || n.guard && !neverFails(c) {
				stay = append(stay, c)
			} else {
				down = append(down, s)
			}
		}
		return above(n.with([]rel{o.push(n.in, down)}), stay)
	case *scanRel:
		var mine, stay []expr.Expr
		for _, c := range conds {
			if expr.Volatile(c) {
				stay = append(stay, c)
			} else {
				mine = append(mine, c)
			}
		}
		if len(mine) > 0 {
			c := *n
			c.conds = slices.Clone(n.conds)
			for _, m := range mine {
				c.conds = addCond(c.conds, m)
			}
			return above(&c, stay)
		}
		return above(n, stay)
	case *joinRel:
		return o.pushJoin(n, conds)
	case *aggRel:
		keys := idSet{}
		m := map[int]expr.Expr{}
		for i, id := range n.keyCols {
			all := true
			for _, s := range n.sets {
				all = all && slices.Contains(s, i)
			}
			if all && !expr.Volatile(n.keys[i]) {
				keys[id] = true
				m[id] = n.keys[i]
			}
		}
		var down, stay []expr.Expr
		for _, c := range conds {
			if ids := expr.Columns(c); len(ids) > 0 && keys.hasAll(ids) && !expr.Volatile(c) {
				down = append(down, replaceColumns(c, m))
			} else {
				stay = append(stay, c)
			}
		}
		return above(n.with([]rel{o.push(n.in, down)}), stay)
	case *windowRel:
		part := idSet{}
		for _, e := range n.part {
			if c, ok := e.(*expr.Column); ok {
				part[c.Index] = true
			}
		}
		down, stay := split(conds, part)
		return above(n.with([]rel{o.push(n.in, down)}), stay)
	case *unionRel:
		var down, stay []expr.Expr
		for _, c := range conds {
			if expr.Volatile(c) {
				stay = append(stay, c)
			} else {
				down = append(down, c)
			}
		}
		ins := make([]rel, len(n.ins))
		for i, in := range n.ins {
			m := map[int]expr.Expr{}
			for k, id := range n.cols {
				m[id] = o.cols.ref(n.maps[i][k])
			}
			var mapped []expr.Expr
			for _, c := range down {
				mapped = append(mapped, replaceColumns(c, m))
			}
			ins[i] = o.push(in, mapped)
		}
		return above(n.with(ins), stay)
	case *setRel:
		lm, rm := map[int]expr.Expr{}, map[int]expr.Expr{}
		for k, id := range n.cols {
			lm[id], rm[id] = o.cols.ref(n.lcols[k]), o.cols.ref(n.rcols[k])
		}
		var l, rr, stay []expr.Expr
		for _, c := range conds {
			if expr.Volatile(c) {
				stay = append(stay, c)
				continue
			}
			l, rr = append(l, replaceColumns(c, lm)), append(rr, replaceColumns(c, rm))
		}
		return above(n.with([]rel{o.push(n.l, l), o.push(n.r, rr)}), stay)
	case *sortRel:
		if n.limit < 0 && n.offset == 0 {
			return n.with([]rel{o.push(n.in, conds)})
		}
	case *unnestRel:
		down, stay := split(conds, setOf(n.in.out()))
		return above(n.with([]rel{o.push(n.in, down)}), stay)
	}
	kids := r.kids()
	if len(kids) > 0 {
		next := make([]rel, len(kids))
		for i, k := range kids {
			next[i] = o.push(k, nil)
		}
		r = r.with(next)
	}
	return above(r, conds)
}

// pushJoin distributes predicates from above and the join's own over its sides.
func (o *optimizer) pushJoin(n *joinRel, conds []expr.Expr) rel {
	l, r := setOf(n.l.out()), setOf(n.r.out())
	kind := n.kind
	// A filter that no padded row passes makes the padding needless.
	for _, c := range conds {
		switch kind {
		case Left:
			if rejectsNulls(c, r) {
				kind = Inner
			}
		case Right:
			if rejectsNulls(c, l) {
				kind = Inner
			}
		case Full:
			rl, rr := rejectsNulls(c, l), rejectsNulls(c, r)
			switch {
			case rl && rr:
				kind = Inner
			case rl:
				kind = Left
			case rr:
				kind = Right
			}
		}
	}
	j := *n
	j.kind = kind
	var own []expr.Expr
	for _, c := range n.conds {
		for _, f := range factor(c) {
			own = addCond(own, f)
		}
	}
	var toL, toR, keep, stay []expr.Expr
	switch kind {
	case Inner:
		all := own
		for _, c := range conds {
			all = addCond(all, c)
		}
		all = o.transitive(all, nil)
		for _, c := range all {
			ids := expr.Columns(c)
			switch {
			case expr.Volatile(c):
				stay = append(stay, c)
			case l.hasAll(ids):
				toL = append(toL, c)
			case r.hasAll(ids):
				toR = append(toR, c)
			default:
				keep = append(keep, c)
				toL, toR = implied(c, l, toL), implied(c, r, toR)
			}
		}
	case Left, Single, Semi, Anti, Mark, NullAwareAnti:
		toL, stay = split(conds, l)
		// Constants that the left side is known to have hold on the right through the join's equalities.
		derived := own
		if kind != NullAwareAnti && (kind != Mark || len(own) > 1) || kind == Semi {
			derived = o.transitive(own, toL)
		}
		for _, c := range derived {
			ids := expr.Columns(c)
			switch {
			case len(ids) > 0 && r.hasAll(ids) && !expr.Volatile(c) && kind != NullAwareAnti:
				toR = append(toR, c)
			case len(ids) > 0 && l.hasAll(ids) && !expr.Volatile(c) && kind == Semi:
				toL = append(toL, c)
			default:
				keep = append(keep, c)
				if kind != NullAwareAnti {
					toR = implied(c, r, toR)
				}
				if kind == Semi {
					toL = implied(c, l, toL)
				}
			}
		}
	case Right:
		toR, stay = split(conds, r)
		for _, c := range o.transitive(own, toR) {
			ids := expr.Columns(c)
			if len(ids) > 0 && l.hasAll(ids) && !expr.Volatile(c) {
				toL = append(toL, c)
			} else {
				keep = append(keep, c)
				toL = implied(c, l, toL)
			}
		}
	case Full:
		keep, stay = own, conds
	}
	j.conds = keep
	j.l, j.r = o.push(n.l, toL), o.push(n.r, toR)
	return above(&j, stay)
}

// transitive adds what follows from equalities of columns: a predicate on one column alone holds for every column equal to it. known are
// predicates that hold but are not part of the result.
func (o *optimizer) transitive(conds, known []expr.Expr) []expr.Expr {
	cl := newClasses(conds)
	if len(cl) == 0 || len(conds) > manyConds {
		return conds
	}
	members := cl.members()
	out := slices.Clone(conds)
	for _, c := range slices.Concat(conds, known) {
		ids := expr.Columns(c)
		if len(ids) != 1 || expr.Volatile(c) || !constantTest(c) {
			continue
		}
		for _, other := range members[cl.find(ids[0])] {
			if other == ids[0] {
				continue
			}
			d := replaceColumns(c, map[int]expr.Expr{ids[0]: o.cols.ref(other)})
			out = addCond(out, d)
		}
	}
	return out
}

// constantTest reports whether c compares a bare column with constants, and so is worth repeating for equal columns.
func constantTest(c expr.Expr) bool {
	constant := func(e expr.Expr) bool { return len(expr.Columns(e)) == 0 }
	switch c := c.(type) {
	case *expr.Compare:
		_, l := c.L.(*expr.Column)
		_, r := c.R.(*expr.Column)
		return c.Op < expr.Distinct && (l && constant(c.R) || r && constant(c.L))
	case *expr.In:
		_, ok := c.Arg.(*expr.Column)
		return ok && !c.Negated && !slices.ContainsFunc(c.List, func(e expr.Expr) bool { return !constant(e) })
	case *expr.And:
		return !slices.ContainsFunc(c.Args, func(e expr.Expr) bool { return !constantTest(e) })
	case *expr.Or:
		return !slices.ContainsFunc(c.Args, func(e expr.Expr) bool { return !constantTest(e) })
	case *expr.Like:
		_, ok := c.Arg.(*expr.Column)
		return ok && constant(c.Pattern)
	}
	return false
}

// factor splits a predicate into conjuncts, those that all branches of an OR have in common too (TPC-H 19).
func factor(c expr.Expr) []expr.Expr {
	switch n := c.(type) {
	case *expr.And:
		var out []expr.Expr
		for _, a := range n.Args {
			out = append(out, factor(a)...)
		}
		return out
	case *expr.Or:
		if len(n.Args) > manyConds {
			return []expr.Expr{c}
		}
		var branches [][]expr.Expr
		for _, a := range n.Args {
			branches = append(branches, factor(a))
		}
		var common []expr.Expr
		for _, x := range branches[0] {
			if expr.Volatile(x) {
				continue
			}
			all := true
			for _, b := range branches[1:] {
				all = all && slices.ContainsFunc(b, func(y expr.Expr) bool { return expr.Equal(x, y) })
			}
			if all {
				common = append(common, x)
			}
		}
		if len(common) == 0 {
			return []expr.Expr{c}
		}
		var rest []expr.Expr
		for _, b := range branches {
			var left []expr.Expr
			for _, x := range b {
				if !slices.ContainsFunc(common, func(y expr.Expr) bool { return expr.Equal(x, y) }) {
					left = append(left, x)
				}
			}
			if len(left) == 0 {
				return common // a branch that asks no more than what is common: the rest is always true
			}
			rest = append(rest, conjunction(left))
		}
		return append(common, &expr.Or{Args: rest})
	}
	return []expr.Expr{c}
}

func conjunction(conds []expr.Expr) expr.Expr {
	switch len(conds) {
	case 0:
		return boolLiteral(true)
	case 1:
		return conds[0]
	}
	return &expr.And{Args: conds}
}

// implied adds to conds what an OR over both sides says about one side: when every branch has a conjunct on that side alone, their OR holds
// (TPC-H 7).
func implied(c expr.Expr, side idSet, conds []expr.Expr) []expr.Expr {
	or, ok := c.(*expr.Or)
	if !ok || len(or.Args) > manyConds {
		return conds
	}
	var out []expr.Expr
	for _, b := range or.Args {
		var mine []expr.Expr
		for _, x := range factor(b) {
			if ids := expr.Columns(x); len(ids) > 0 && side.hasAll(ids) && !expr.Volatile(x) {
				mine = append(mine, x)
			}
		}
		if len(mine) == 0 {
			return conds
		}
		m := conjunction(mine)
		if !slices.ContainsFunc(out, func(y expr.Expr) bool { return expr.Equal(m, y) }) {
			out = append(out, m)
		}
	}
	if len(out) == 1 {
		return addCond(conds, out[0])
	}
	return addCond(conds, &expr.Or{Args: out})
}

// rejectsNulls reports whether c is surely not true when all the given columns are null.
func rejectsNulls(c expr.Expr, cols idSet) bool {
	switch n := c.(type) {
	case *expr.And:
		return slices.ContainsFunc(n.Args, func(e expr.Expr) bool { return rejectsNulls(e, cols) })
	case *expr.Or:
		return !slices.ContainsFunc(n.Args, func(e expr.Expr) bool { return !rejectsNulls(e, cols) })
	case *expr.Compare:
		return n.Op < expr.Distinct && (nullWith(n.L, cols) || nullWith(n.R, cols))
	case *expr.IsNull:
		return n.Negated && nullWith(n.Arg, cols)
	case *expr.In:
		return nullWith(n.Arg, cols)
	case *expr.Like:
		return nullWith(n.Arg, cols)
	case *expr.Not:
		return nullWith(n.Arg, cols)
	case *expr.Column:
		return cols[n.Index]
	case *expr.Literal:
		return n.Value != true && n.Typ.Kind == vector.Boolean
	}
	return false
}

// nullWith reports whether e is surely null when all the given columns are.
func nullWith(e expr.Expr, cols idSet) bool {
	switch n := e.(type) {
	case *expr.Column:
		return cols[n.Index]
	case *expr.Cast:
		return nullWith(n.Arg, cols)
	case *expr.FieldAccess:
		return nullWith(n.Arg, cols)
	case *expr.Compare:
		return n.Op < expr.Distinct && (nullWith(n.L, cols) || nullWith(n.R, cols))
	case *expr.Not:
		return nullWith(n.Arg, cols)
	case *expr.Call:
		switch n.Fn.Name {
		case "+", "-", "*", "/", "%", "neg", "||", "abs", "year", "month", "day", "substring", "substr", "lower", "upper", "length", "round", "floor", "ceil":
			return slices.ContainsFunc(n.Args, func(a expr.Expr) bool { return nullWith(a, cols) })
		}
	}
	return false
}
