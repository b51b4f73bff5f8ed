package exec

import (
	"context"
	"slices"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// twice splits an aggregation whose functions all have DISTINCT with the same arguments: the distinct arguments of each group are grouped
// first, which all workers do and which can spill, and then aggregated without DISTINCT.
func twice(x *plan.Aggregate) (inner, outer *plan.Aggregate) {
	if len(x.Aggs) == 0 || x.Sets != nil {
		return nil, nil
	}
	for _, a := range x.Aggs {
		if !a.Distinct || a.Filter != nil || len(a.OrderBy) > 0 || !slices.EqualFunc(a.Args, x.Aggs[0].Args, expr.Equal) {
			return nil, nil
		}
	}
	inner = &plan.Aggregate{GroupBy: append(slices.Clone(x.GroupBy), x.Aggs[0].Args...)}
	var types []vector.Type
	for _, e := range inner.GroupBy {
		types = append(types, e.Type())
	}
	inner.Cols = make([]plan.Column, len(types))
	for k, t := range types {
		inner.Cols[k].Type = t
	}
	refs := columnsOf(types)
	outer = &plan.Aggregate{GroupBy: refs[:len(x.GroupBy):len(x.GroupBy)], Cols: x.Cols}
	for _, a := range x.Aggs {
		c := *a
		c.Distinct, c.Args = false, refs[len(x.GroupBy):]
		outer.Aggs = append(outer.Aggs, &c)
	}
	return inner, outer
}

// distinctSets numbers the functions of an aggregation by the arguments that they have DISTINCT: from 0, -1 for those without. It is nil when
// none can be taken apart.
func distinctSets(x *plan.Aggregate) []int {
	if x.Sets != nil {
		return nil
	}
	var sets [][]expr.Expr
	of := make([]int, len(x.Aggs))
	for k, a := range x.Aggs {
		of[k] = -1
		// With a filter a group may have no rows at all on this side, and its value would be lost.
		if !a.Distinct || a.Filter != nil || len(a.OrderBy) > 0 {
			continue
		}
		of[k] = slices.IndexFunc(sets, func(args []expr.Expr) bool { return slices.EqualFunc(args, a.Args, expr.Equal) })
		if of[k] < 0 {
			of[k] = len(sets)
			sets = append(sets, a.Args)
		}
	}
	if len(sets) == 0 {
		return nil
	}
	return of
}

// mixed aggregates where only some functions have DISTINCT, or not all with the same arguments. Each set of distinct arguments is grouped with the
// keys, the other functions are computed beside them from the same rows, and what comes of each is put together by the keys. So all of it
// spills as grouping does.
func (r *run) mixed(x *plan.Aggregate, apart []int, in *stream, op *profile.Operator) (*stream, error) {
	keys := len(x.GroupBy)
	keyTypes := make([]vector.Type, keys)
	for k, e := range x.GroupBy {
		keyTypes[k] = e.Type()
	}
	var tee teeSink
	out := &stream{}
	add := func(side *plan.Aggregate, which int) error {
		var own []*expr.Aggregate
		for k, a := range x.Aggs {
			if apart[k] == which {
				own = append(own, a)
			}
		}
		side.GroupBy, side.Aggs = x.GroupBy, own
		side.Cols = make([]plan.Column, keys+len(own))
		first, second := side, (*plan.Aggregate)(nil)
		if which >= 0 {
			first, second = twice(side)
		}
		sink, err := r.aggSink(first, op)
		if err != nil {
			return err
		}
		tee = append(tee, sink)
		s := &stream{branches: []branch{{src: &aggSource{a: sink}}}, types: typesOf(first.Cols)}
		if second != nil {
			if s, err = r.group(second, s, op, &profile.Operator{}); err != nil {
				return err
			}
		}
		// The columns of all sides, null where they are of another.
		exprs := columnsOf(keyTypes)
		at := keys
		for k, a := range x.Aggs {
			if apart[k] == which {
				exprs = append(exprs, &expr.Column{Index: at, Typ: a.Typ, Null: true})
				at++
			} else {
				exprs = append(exprs, &expr.Literal{Typ: a.Typ})
			}
		}
		s.add(&projectOp{exprs: exprs, ctx: r.q.Context})
		out.prepares = append(out.prepares, s.prepares...)
		out.branches = append(out.branches, s.branches...)
		return nil
	}
	for which := -1; which <= slices.Max(apart); which++ {
		if which < 0 && !slices.Contains(apart, -1) {
			continue
		}
		if err := add(&plan.Aggregate{}, which); err != nil {
			return nil, err
		}
	}
	if _, err := tee.local(); err != nil {
		return nil, err
	}
	out.prepares = append([]func(context.Context) error{func(ctx context.Context) error {
		return r.drive(ctx, in, &countedSink{op, tee})
	}}, out.prepares...)
	together := &plan.Aggregate{GroupBy: columnsOf(keyTypes), Cols: x.Cols}
	out.types = slices.Clone(keyTypes)
	for k, a := range x.Aggs {
		any, err := expr.NewAggregate("any_value", []expr.Expr{&expr.Column{Index: keys + k, Typ: a.Typ, Null: true}}, false, nil, nil)
		if err != nil {
			return nil, err
		}
		out.types = append(out.types, a.Typ)
		together.Aggs = append(together.Aggs, any)
	}
	s, err := r.group(together, out, op, &profile.Operator{})
	if err != nil {
		return nil, err
	}
	s.branches[0].src = &countedSource{op, s.branches[0].src}
	return s, nil
}

// teeSink gives all rows to several sinks.
type teeSink []sink

type teeLocal []sinkLocal

func (t teeSink) local() (sinkLocal, error) {
	var out teeLocal
	for _, s := range t {
		l, err := s.local()
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

func (t teeLocal) push(ctx context.Context, c *vector.Chunk) error {
	for _, l := range t {
		if err := l.push(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (t teeSink) combine(l sinkLocal) error {
	for k, x := range l.(teeLocal) {
		if err := t[k].combine(x); err != nil {
			return err
		}
	}
	return nil
}

func (t teeSink) finish(ctx context.Context) error {
	for _, s := range t {
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	return nil
}
