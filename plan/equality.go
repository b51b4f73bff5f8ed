package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
)

// classes are sets of columns that equalities make equal, as a union-find over ids. Only columns that stand in an equality are in it.
type classes map[int]int

// columnPair gives the two columns of an equality of columns of one type.
func columnPair(c expr.Expr) (a, b int, ok bool) {
	eq, ok := c.(*expr.Compare)
	if !ok || eq.Op != expr.Eq {
		return 0, 0, false
	}
	l, ok1 := eq.L.(*expr.Column)
	r, ok2 := eq.R.(*expr.Column)
	if !ok1 || !ok2 || !l.Typ.Equal(r.Typ) {
		return 0, 0, false
	}
	return l.Index, r.Index, true
}

func newClasses(conds []expr.Expr) classes {
	cl := classes{}
	for _, c := range conds {
		if a, b, ok := columnPair(c); ok {
			root := cl.find(b)
			cl[cl.find(a)] = root
			cl[root] = root
		}
	}
	return cl
}

// find gives the representative of a column's class; a column in no equality is its own.
func (cl classes) find(id int) int {
	for {
		p, ok := cl[id]
		if !ok || p == id {
			return id
		}
		id = p
	}
}

// members lists the columns of each class, ascending, by representative.
func (cl classes) members() map[int][]int {
	m := map[int][]int{}
	for id := range cl {
		r := cl.find(id)
		m[r] = append(m[r], id)
	}
	for _, ids := range m {
		slices.Sort(ids)
	}
	return m
}
