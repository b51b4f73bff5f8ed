package plan

import "slices"

import "github.com/skua-db/skua/expr"

// mergeProjects joins projections that stand on each other and drops those that change nothing.
func (o *optimizer) mergeProjects(r rel) (rel, error) {
	return mapRel(r, func(x rel) rel {
		p, ok := x.(*projectRel)
		if !ok {
			return x
		}
		for {
			q, ok := p.in.(*projectRel)
			if !ok {
				return p
			}
			uses := map[int]int{}
			for _, e := range p.list {
				expr.Walk(e, func(x expr.Expr) bool {
					if c, ok := x.(*expr.Column); ok {
						uses[c.Index]++
					}
					return true
				})
			}
			m := map[int]expr.Expr{}
			for i, e := range q.list {
				id := q.cols[i]
				if uses[id] > 1 && !trivial(e) || uses[id] > 0 && expr.Volatile(e) {
					return p
				}
				m[id] = e
			}
			p = &projectRel{in: q.in, list: mapExprs(p.list, func(e expr.Expr) expr.Expr { return replaceColumns(e, m) }), cols: p.cols, names: p.names, guard: p.guard || q.guard}
		}
	}), nil
}

// trivial reports whether an expression costs nothing to compute again.
func trivial(e expr.Expr) bool {
	switch e := e.(type) {
	case *expr.Column, *expr.Literal, *expr.Param, *expr.Subquery:
		return true
	case *expr.FieldAccess:
		return trivial(e.Arg)
	}
	return false
}

// pushLimits turns order and limit into top-N, and moves limits below projections and into unions and scans.
func (o *optimizer) pushLimits(r rel) (rel, error) { return o.limits(r), nil }

func (o *optimizer) limits(r rel) rel {
	if l, ok := r.(*limitRel); ok && l.countExpr == nil && l.offsetExpr == nil && l.count >= 0 {
		switch n := l.in.(type) {
		case *projectRel:
			if !slices.ContainsFunc(n.list, expr.Volatile) {
				return n.with([]rel{o.limits(l.with([]rel{n.in}))})
			}
		case *sortRel:
			if n.limit < 0 && n.offset == 0 && l.count <= maxTopN && l.offset <= maxTopN {
				c := *n
				c.limit, c.offset = l.count, l.offset
				c.in = o.limits(n.in)
				return &c
			}
		case *unionRel:
			ins := make([]rel, len(n.ins))
			for i, in := range n.ins {
				ins[i] = o.limits(&limitRel{in: in, count: satAdd(l.count, l.offset)})
			}
			return l.with([]rel{n.with(ins)})
		case *scanRel:
			c := *n
			c.limit = satAdd(l.count, l.offset)
			return l.with([]rel{&c})
		case *limitRel:
			if l.offset == 0 && n.offset == 0 && n.countExpr == nil && n.offsetExpr == nil && n.count >= 0 {
				return o.limits(&limitRel{in: n.in, count: min(l.count, n.count)})
			}
		case *joinRel:
			// A left join gives at least as many rows as its left side.
			if n.kind == Left || n.kind == Mark || n.kind == Single {
				c := *n
				c.l = o.limits(&limitRel{in: n.l, count: satAdd(l.count, l.offset)})
				c.r = o.limits(n.r)
				return l.with([]rel{&c})
			}
		}
	}
	kids := r.kids()
	if len(kids) == 0 {
		return r
	}
	next := make([]rel, len(kids))
	for i, k := range kids {
		next[i] = o.limits(k)
	}
	return r.with(next)
}

// maxTopN is the largest limit that a heap is worth; above it rows are sorted and cut.
const maxTopN = 1 << 20

func satAdd(a, b int64) int64 {
	if a+b < a {
		return 1<<63 - 1
	}
	return a + b
}
