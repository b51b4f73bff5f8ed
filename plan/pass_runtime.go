package plan

import (
	"slices"

	"github.com/skua-db/skua/expr"
)

// runtimeFilters ties the keys of joins to the scans that they can narrow: when the build side is known, scans on the probe side skip files, row
// groups, pages and rows whose values no build row has.
func (o *optimizer) runtimeFilters(r rel) rel {
	type target struct {
		join *joinRel
		cond int
		scan *scanRel
		col  int
		id   int
	}
	var found []target
	var walk func(rel)
	walk = func(x rel) {
		for _, k := range x.kids() {
			walk(k)
		}
		j, ok := x.(*joinRel)
		if !ok || j.kind != Inner && j.kind != Semi && j.kind != Right {
			return
		}
		l, rr := setOf(j.l.out()), setOf(j.r.out())
		build := o.estimate(j.r)
		for i, c := range j.conds {
			eq, ok := c.(*expr.Compare)
			if !ok || eq.Op != expr.Eq {
				continue
			}
			probe, key := eq.L, eq.R
			if rr.hasAny(expr.Columns(probe)) {
				probe, key = key, probe
			}
			col, ok := probe.(*expr.Column)
			if !ok || !l[col.Index] || !rr.hasAll(expr.Columns(key)) {
				continue
			}
			s, id := origin(j.l, col.Index)
			// A build side about as large as the table would pass nearly every row.
			if s == nil || build > 0.5*o.tableRows(s) {
				continue
			}
			found = append(found, target{j, i, s, id, 0})
		}
	}
	walk(r)
	if len(found) == 0 {
		return r
	}
	joins := map[*joinRel][]joinFilter{}
	scans := map[*scanRel][]scanFilter{}
	for _, t := range found {
		o.filter++
		joins[t.join] = append(joins[t.join], joinFilter{o.filter, t.cond})
		scans[t.scan] = append(scans[t.scan], scanFilter{o.filter, t.col})
	}
	var put func(rel) rel
	put = func(x rel) rel {
		orig := x
		if kids := x.kids(); len(kids) > 0 {
			next := make([]rel, len(kids))
			for i, k := range kids {
				next[i] = put(k)
			}
			x = x.with(next)
		}
		switch n := orig.(type) {
		case *joinRel:
			if f := joins[n]; f != nil {
				c := *x.(*joinRel)
				c.rfs = f
				return &c
			}
		case *scanRel:
			if f := scans[n]; f != nil {
				c := *n
				c.rfs = f
				return &c
			}
		}
		return x
	}
	return put(r)
}

// origin finds the scan that column id comes from unchanged, through operators that dropping rows of the scan early does not disturb.
func origin(r rel, id int) (*scanRel, int) {
	switch n := r.(type) {
	case *scanRel:
		if n.limit >= 0 {
			return nil, 0
		}
		return n, id
	case *filterRel:
		return origin(n.in, id)
	case *unnestRel:
		if slices.Contains(n.in.out(), id) {
			return origin(n.in, id)
		}
	case *projectRel:
		for i, c := range n.cols {
			if k, ok := n.list[i].(*expr.Column); ok && c == id {
				return origin(n.in, k.Index)
			}
		}
	case *aggRel:
		if n.sets != nil {
			return nil, 0
		}
		for i, c := range n.keyCols {
			if k, ok := n.keys[i].(*expr.Column); ok && c == id {
				return origin(n.in, k.Index)
			}
		}
	case *sortRel:
		if n.limit < 0 && n.offset == 0 {
			return origin(n.in, id)
		}
	case *windowRel:
		for _, p := range n.part {
			if k, ok := p.(*expr.Column); ok && k.Index == id {
				return origin(n.in, id)
			}
		}
	case *joinRel:
		if slices.Contains(n.l.out(), id) {
			switch n.kind {
			case Inner, Left, Semi, Anti, NullAwareAnti, Mark, Single:
				return origin(n.l, id)
			}
			return nil, 0
		}
		if n.kind == Inner || n.kind == Right {
			return origin(n.r, id)
		}
	}
	return nil, 0
}
