package plan

import (
	"context"
	"slices"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// BuildParsed binds and optimises a statement that is parsed already.
func BuildParsed(ctx context.Context, p *sql.Parsed, env *Environment) (*Prepared, error) {
	b := &binder{ctx: ctx, env: env, text: p.Text, places: map[int]sql.Pos{}, hints: env.ParamTypes, pinned: map[string]int64{}, tables: map[string]*catalog.Table{}}
	out := &Prepared{ParamNames: p.ParamNames, Pinned: b.pinned}
	var s *bound
	var err error
	var explain *sql.Explain
	stmt := p.Statement
	if x, ok := stmt.(*sql.Explain); ok {
		explain, stmt = x, x.Statement
		out.Kind = ExplainQuery
		if x.Analyze {
			out.Kind = ExplainAnalyze
		}
	}
	switch q := stmt.(type) {
	case *sql.Query:
		s, err = b.query(q, nil)
	case *sql.Show:
		if explain == nil {
			out.Kind = Show
		}
		s, err = b.show(q)
	case *sql.Use:
		out.Kind = Use
		return out, b.use(q, out)
	case *sql.Set:
		out.Kind = SetSession
		return out, b.set(q, out)
	}
	if err != nil {
		return nil, err
	}
	root, params, err := b.finish(s)
	if err != nil {
		return nil, err
	}
	out.Root, out.Columns = root, root.Columns()
	out.Params = make([]vector.Type, p.Params)
	for i := range out.Params {
		switch {
		case i < len(params) && params[i].Kind != vector.Null:
			out.Params[i] = params[i]
		case i < len(env.ParamTypes) && env.ParamTypes[i].Kind != vector.Null:
			out.Params[i] = env.ParamTypes[i]
		default:
			out.Params[i] = vector.Of(vector.Varchar)
		}
	}
	if explain != nil {
		out.Root = &Explain{Input: root, Analyze: explain.Analyze, Verbose: explain.Verbose, JSON: explain.Format == "JSON", Estimates: b.estimates}
		out.Columns = out.Root.Columns()
	}
	return out, nil
}

// finish optimises the plan of a bound query and lowers it.
func (b *binder) finish(s *bound) (root Node, params []vector.Type, err error) {
	o := &optimizer{ctx: b.ctx, env: b.env, cols: &b.cols, spools: b.spools, rows: map[string]float64{}, est: map[rel]float64{}}
	main := b.inlineCTEs(s.rel)
	if main, err = o.run(main, ""); err != nil {
		return nil, nil, err
	}
	// The trees of the statement: the main plan, the scalar subqueries, then the spools, each after its users.
	trees := []rel{main}
	for _, sc := range b.scalars {
		r, err := o.run(sc.rel, "")
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, r)
	}
	done := map[*spool]bool{}
	for changed := true; changed; {
		changed = false
		for _, sp := range spoolsOf(trees...) {
			if done[sp] {
				continue
			}
			done[sp], changed = true, true
			if sp.in, err = o.run(sp.in, ""); err != nil {
				return nil, nil, err
			}
		}
	}
	spools := spoolsOf(trees...)
	needs := map[*spool]idSet{}
	trees[0] = o.prune(trees[0], setOf(s.ids()), needs)
	for i, sc := range b.scalars {
		trees[i+1] = o.prune(trees[i+1], idSet{sc.col: true}, needs)
	}
	for i := len(spools) - 1; i >= 0; i-- {
		sp := spools[i]
		if needs[sp] == nil {
			needs[sp] = idSet{}
		}
		sp.in = o.prune(sp.in, needs[sp], needs)
	}
	all := slices.Clone(trees)
	for _, sp := range spools {
		all = append(all, sp.in)
	}
	all = o.narrowScans(all)
	for i := range all {
		all[i] = o.runtimeFilters(all[i])
	}
	for i, sp := range spools {
		sp.in = all[len(trees)+i]
	}
	defer func() {
		if r := recover(); r != nil {
			m, ok := r.(missing)
			if !ok {
				panic(r)
			}
			err = m.err
		}
	}()
	w := &lowering{o: o, spools: map[*spool]*lowered{}, estimates: map[Node]float64{}}
	b.estimates = w.estimates
	for i, t := range b.paramOrder(all) {
		if t.Kind != vector.Null {
			for len(w.params) <= i {
				w.params = append(w.params, vector.Type{})
			}
			w.params[i] = t
		}
	}
	top := w.output(w.lower(all[0]), s)
	if len(b.scalars) > 0 {
		ws := &WithSubqueries{Input: top}
		for i, sc := range b.scalars {
			x := w.arrange(w.lower(all[i+1]), []int{sc.col})
			node := x.node
			if !atMostOne(all[i+1]) {
				node = &OneRow{node}
			}
			ws.Scalars = append(ws.Scalars, ScalarSubquery{ID: sc.id, Plan: node})
		}
		top = ws
	}
	return top, w.params, nil
}

// paramOrder finds the type of each parameter: that of its first use that has one.
func (b *binder) paramOrder(trees []rel) []vector.Type {
	var types []vector.Type
	var walk func(rel)
	walk = func(r rel) {
		for _, k := range r.kids() {
			walk(k)
		}
		r.exprs(func(e expr.Expr) {
			expr.Walk(e, func(x expr.Expr) bool {
				if p, ok := x.(*expr.Param); ok {
					for len(types) <= p.Index {
						types = append(types, vector.Type{})
					}
					if types[p.Index].Kind == vector.Null {
						types[p.Index] = p.Typ
					}
				}
				return true
			})
		})
	}
	for _, t := range trees {
		walk(t)
	}
	for i := range types {
		if types[i].Kind == vector.Null {
			types[i] = vector.Of(vector.Varchar)
			if i < len(b.hints) && b.hints[i].Kind != vector.Null {
				types[i] = b.hints[i]
			}
		}
	}
	return types
}

// output puts the columns of a statement in order, under their names.
func (w *lowering) output(x *lowered, s *bound) Node {
	names := make([]string, len(s.cols))
	same := len(x.ids) == len(s.cols)
	for i, c := range s.cols {
		names[i] = c.name
		same = same && x.ids[i] == c.id && x.node.Columns()[i].Name == c.name
	}
	if same {
		return x.node
	}
	if p, ok := x.node.(*Project); ok {
		q := &Project{Input: p.Input}
		for i, c := range s.cols {
			k := slices.Index(x.ids, c.id)
			if k < 0 {
				panic(missing{fault.New(fault.Internal, "the plan lost output column %q", c.name)})
			}
			col := p.Cols[k]
			col.Name = names[i]
			q.Exprs, q.Cols = append(q.Exprs, p.Exprs[k]), append(q.Cols, col)
		}
		return q
	}
	y := w.arrange(x, s.ids())
	p, ok := y.node.(*Project)
	if !ok || y == x {
		p = &Project{Input: y.node}
		for i, c := range y.node.Columns() {
			p.Exprs, p.Cols = append(p.Exprs, &expr.Column{Index: i, Name: c.Name, Typ: c.Type, Null: c.Nullable}), append(p.Cols, c)
		}
	}
	for i := range p.Cols {
		p.Cols[i].Name = names[i]
	}
	return p
}

// use resolves USE [catalog.]schema.
func (b *binder) use(u *sql.Use, out *Prepared) error {
	if len(u.Name) == 1 {
		if c, ok := b.catalog(u.Name[0]); ok && b.env.Catalog == "" {
			out.Setting = &Setting{Name: "catalog", Value: c.Name(), Catalog: c.Name()}
			return nil
		}
	}
	cat, ns, err := b.schema(u.Name)
	if err != nil {
		if len(u.Name) == 1 {
			if c, ok := b.catalog(u.Name[0]); ok {
				out.Setting = &Setting{Name: "catalog", Value: c.Name(), Catalog: c.Name()}
				return nil
			}
		}
		return err
	}
	out.Setting = &Setting{Name: "schema", Value: ns.String(), Catalog: cat.Name(), Schema: ns.String()}
	return nil
}

// set evaluates SET SESSION name = value.
func (b *binder) set(s *sql.Set, out *Prepared) error {
	out.Setting = &Setting{Name: fold(dotted(s.Name)), Reset: s.Value == nil}
	if s.Value == nil {
		return nil
	}
	x := &exprBinder{b: b, where: "SET"}
	e, err := x.bind(s.Value)
	if err != nil {
		return err
	}
	if e, err = expr.NewCast(e, vector.Of(vector.Varchar), false); err != nil {
		return b.place(s.Value.At(), err)
	}
	v, err := expr.EvalConst(e, b.env.context())
	if err != nil {
		return b.place(s.Value.At(), err)
	}
	if t, ok := v.(string); ok {
		out.Setting.Value = t
	}
	return nil
}
