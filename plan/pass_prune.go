package plan

import (
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// prune drops the columns that nothing uses, from the top down to the scans. needs of spools are collected from all their uses.
func (o *optimizer) prune(r rel, need idSet, spools map[*spool]idSet) rel {
	using := func(es ...expr.Expr) idSet {
		s := idSet{}
		for id := range need {
			s[id] = true
		}
		for _, e := range es {
			for _, id := range expr.Columns(e) {
				s[id] = true
			}
		}
		return s
	}
	var all []expr.Expr
	r.exprs(func(e expr.Expr) { all = append(all, e) })
	switch n := r.(type) {
	case *scanRel:
		c := *n
		c.need = []int{}
		for _, id := range n.cols {
			if need[id] {
				c.need = append(c.need, id)
			}
		}
		return &c
	case *valuesRel:
		c := &valuesRel{rows: make([][]expr.Expr, len(n.rows))}
		for i := range c.rows {
			c.rows[i] = []expr.Expr{}
		}
		for k, id := range n.cols {
			if !need[id] {
				continue
			}
			c.cols = append(c.cols, id)
			for i, row := range n.rows {
				c.rows[i] = append(c.rows[i], row[k])
			}
		}
		return c
	case *projectRel:
		c := &projectRel{guard: n.guard}
		for i, id := range n.cols {
			if need[id] {
				c.list, c.cols = append(c.list, n.list[i]), append(c.cols, id)
			}
		}
		need = idSet{}
		c.in = o.prune(n.in, using(c.list...), spools)
		return c
	case *aggRel:
		c := *n
		c.aggs, c.aggCols = nil, nil
		for i, id := range n.aggCols {
			if need[id] {
				c.aggs, c.aggCols = append(c.aggs, n.aggs[i]), append(c.aggCols, id)
			}
		}
		need = idSet{}
		var es []expr.Expr
		c.exprs(func(e expr.Expr) { es = append(es, e) })
		c.in = o.prune(n.in, using(es...), spools)
		return &c
	case *joinRel:
		s := using(all...)
		return n.with([]rel{o.prune(n.l, s, spools), o.prune(n.r, s, spools)})
	case *unionRel:
		c := &unionRel{maps: make([][]int, len(n.ins))}
		for k, id := range n.cols {
			if !need[id] {
				continue
			}
			c.cols = append(c.cols, id)
			for i := range n.ins {
				c.maps[i] = append(c.maps[i], n.maps[i][k])
			}
		}
		for i, in := range n.ins {
			c.ins = append(c.ins, o.prune(in, setOf(c.maps[i]), spools))
		}
		return c
	case *setRel:
		return n.with([]rel{o.prune(n.l, setOf(n.lcols), spools), o.prune(n.r, setOf(n.rcols), spools)})
	case *windowRel:
		c := *n
		c.calls, c.cols = nil, nil
		for i, id := range n.cols {
			if need[id] {
				c.calls, c.cols = append(c.calls, n.calls[i]), append(c.cols, id)
			}
		}
		if len(c.calls) == 0 {
			return o.prune(n.in, need, spools)
		}
		var es []expr.Expr
		c.exprs(func(e expr.Expr) { es = append(es, e) })
		c.in = o.prune(n.in, using(es...), spools)
		return &c
	case *spoolRel:
		c := &spoolRel{sp: n.sp}
		if spools[n.sp] == nil {
			spools[n.sp] = idSet{}
		}
		for i, id := range n.cols {
			if need[id] {
				c.src, c.cols = append(c.src, n.src[i]), append(c.cols, id)
				spools[n.sp][n.src[i]] = true
			}
		}
		return c
	}
	kids := r.kids()
	if len(kids) == 0 {
		return r
	}
	s := using(all...)
	next := make([]rel, len(kids))
	for i, k := range kids {
		next[i] = o.prune(k, s, spools)
	}
	return r.with(next)
}

// path is the part of a nested column that a statement uses: whole, or some fields.
type path struct {
	whole  bool
	fields map[int]*path // by position in the row type
	// parts are the fields of a variant that are used, as far as they are named by constant paths.
	parts *vector.VariantParts
}

func (p *path) field(i int) *path {
	if p.fields == nil {
		p.fields = map[int]*path{}
	}
	if p.fields[i] == nil {
		p.fields[i] = &path{}
	}
	return p.fields[i]
}

// use says that all of p is used.
func (p *path) use() {
	if p == nil {
		return
	}
	p.whole = true
	if p.parts != nil {
		p.parts.Whole = true
	}
}

// usedPaths finds which fields of row columns are used, over all trees of the statement.
func usedPaths(trees []rel) map[int]*path {
	used := map[int]*path{}
	at := func(id int) *path {
		if used[id] == nil {
			used[id] = &path{}
		}
		return used[id]
	}
	var visit func(e expr.Expr) *path
	// part gives the part of a variant column that e is, all of it or at a path; nil when e is neither.
	var part func(e expr.Expr) *vector.VariantParts
	part = func(e expr.Expr) *vector.VariantParts {
		switch n := e.(type) {
		case *expr.Column:
			if n.Typ.Kind != vector.Variant {
				return nil
			}
			p := at(n.Index)
			if p.parts == nil {
				p.parts = &vector.VariantParts{}
			}
			return p.parts
		case *expr.Call:
			v, names, exact, ok := expr.VariantPart(n)
			if !ok {
				return nil
			}
			p := part(v)
			if p == nil {
				return nil
			}
			for _, name := range names {
				p = p.Field(name)
			}
			if !exact || n.Typ.Kind != vector.Variant {
				p.Whole = true
			}
			return p
		}
		return nil
	}
	visit = func(e expr.Expr) *path {
		switch n := e.(type) {
		case *expr.Call:
			if p := part(n); p != nil {
				return &path{parts: p}
			}
		case *expr.Column:
			return at(n.Index)
		case *expr.FieldAccess:
			if p := visit(n.Arg); p != nil {
				return p.field(n.Index)
			}
			return nil
		}
		for _, c := range e.Children() {
			visit(c).use()
		}
		return nil
	}
	whole := func(ids []int) {
		for _, id := range ids {
			at(id).whole = true
		}
	}
	var walk func(rel)
	walk = func(r rel) {
		for _, k := range r.kids() {
			walk(k)
		}
		r.exprs(func(e expr.Expr) {
			visit(e).use()
		})
		switch n := r.(type) {
		case *unionRel:
			for _, m := range n.maps {
				whole(m)
			}
		case *setRel:
			whole(n.lcols)
			whole(n.rcols)
		case *spoolRel:
			whole(n.src)
			whole(n.cols)
		}
	}
	for _, t := range trees {
		walk(t)
		whole(t.out())
	}
	return used
}

// narrowed is what becomes of a row column that is read in part: its new type and, by old position, the new one.
type narrowed struct {
	typ    vector.Type
	field  iceberg.NestedField
	index  map[int]int
	fields map[int]*narrowed
}

// narrow cuts a row type and its Iceberg field down to the used part; nil when all of it is used.
func narrow(t vector.Type, f iceberg.NestedField, p *path) *narrowed {
	st, ok := f.Type.(*iceberg.StructType)
	if !ok || p == nil || p.whole || t.Kind != vector.Row || len(st.FieldList) != len(t.Fields) || len(p.fields) == 0 {
		return nil
	}
	var keep []int
	for i := range p.fields {
		keep = append(keep, i)
	}
	slices.Sort(keep)
	n := &narrowed{typ: vector.Type{Kind: vector.Row}, field: f, index: map[int]int{}, fields: map[int]*narrowed{}}
	cut := &iceberg.StructType{}
	changed := len(keep) < len(t.Fields)
	for k, i := range keep {
		n.index[i] = k
		vf, nf := t.Fields[i], st.FieldList[i]
		if sub := narrow(vf.Type, nf, p.fields[i]); sub != nil {
			n.fields[i] = sub
			vf.Type, nf = sub.typ, sub.field
			changed = true
		}
		n.typ.Fields = append(n.typ.Fields, vf)
		cut.FieldList = append(cut.FieldList, nf)
	}
	if !changed {
		return nil
	}
	n.field.Type = cut
	n.field.InitialDefault, n.field.WriteDefault = f.InitialDefault, f.WriteDefault
	return n
}

// narrowScans reads of row columns only the fields that are used. It gives the trees with field positions adjusted.
func (o *optimizer) narrowScans(trees []rel) []rel {
	used := usedPaths(trees)
	cut := map[int]*narrowed{}
	var walk func(rel)
	walk = func(r rel) {
		for _, k := range r.kids() {
			walk(k)
		}
		if s, ok := r.(*scanRel); ok {
			for i, id := range s.cols {
				if n := narrow(o.cols.list[id].Type, s.fields[i], used[id]); n != nil {
					cut[id] = n
				}
			}
		}
	}
	for _, t := range trees {
		walk(t)
	}
	parts := false
	for id, p := range used {
		if p.parts != nil && p.whole {
			p.parts.Whole = true
		}
		parts = parts || p.parts.Partial() && o.cols.list[id].Type.Kind == vector.Variant
	}
	if len(cut) == 0 && !parts {
		return trees
	}
	var fix func(e expr.Expr) (expr.Expr, *narrowed)
	fix = func(e expr.Expr) (expr.Expr, *narrowed) {
		switch n := e.(type) {
		case *expr.Column:
			if k := cut[n.Index]; k != nil {
				c := *n
				c.Typ = k.typ
				return &c, k
			}
			return e, nil
		case *expr.FieldAccess:
			arg, k := fix(n.Arg)
			if k == nil {
				if arg == n.Arg {
					return e, nil
				}
				return n.With([]expr.Expr{arg}), nil
			}
			return &expr.FieldAccess{Arg: arg, Index: k.index[n.Index], Name: n.Name}, k.fields[n.Index]
		}
		kids := e.Children()
		var next []expr.Expr
		for i, c := range kids {
			x, _ := fix(c)
			if x != c && next == nil {
				next = slices.Clone(kids)
			}
			if next != nil {
				next[i] = x
			}
		}
		if next != nil {
			return e.With(next), nil
		}
		return e, nil
	}
	out := make([]rel, len(trees))
	for i, t := range trees {
		out[i] = mapRel(t, func(x rel) rel {
			x = x.rewrite(nil, func(e expr.Expr) expr.Expr { y, _ := fix(e); return y })
			if s, ok := x.(*scanRel); ok {
				s.fields = slices.Clone(s.fields)
				for i, id := range s.cols {
					if n := cut[id]; n != nil {
						s.fields[i] = n.field
					}
					if p := used[id]; p != nil && p.parts.Partial() {
						if s.parts == nil {
							s.parts = map[int]*vector.VariantParts{}
						}
						s.parts[id] = p.parts
					}
				}
			}
			return x
		})
	}
	for id, n := range cut {
		o.cols.list[id].Type = n.typ
	}
	return out
}
