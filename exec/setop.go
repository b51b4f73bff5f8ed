package exec

import (
	"context"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// setOp groups the rows of both sides by all their columns, with the number of rows on each side, and gives each group as often as the
// operation says. So it is parallel and spills as grouping does.
func (r *run) setOp(x *plan.SetOp, op *profile.Operator) (*stream, error) {
	in := &stream{}
	big := vector.Of(vector.BigInt)
	for k, side := range []plan.Node{x.Left, x.Right} {
		s, err := r.compile(side, op)
		if err != nil {
			return nil, err
		}
		counts := []expr.Expr{&expr.Literal{Value: int64(1 - k), Typ: big}, &expr.Literal{Value: int64(k), Typ: big}}
		s.add(&projectOp{exprs: append(columnsOf(s.types), counts...), ctx: r.q.Context})
		in.prepares = append(in.prepares, s.prepares...)
		in.branches = append(in.branches, s.branches...)
		in.types = append(s.types[:len(s.types):len(s.types)], big, big)
	}
	width := len(in.types) - 2
	group := &plan.Aggregate{GroupBy: columnsOf(in.types[:width]), Cols: make([]plan.Column, width+2)}
	for k := range 2 {
		a, err := expr.NewAggregate("sum", []expr.Expr{&expr.Column{Index: width + k, Typ: big}}, false, nil, nil)
		if err != nil {
			return nil, err
		}
		group.Aggs = append(group.Aggs, a)
	}
	out, err := r.group(group, in, op, &profile.Operator{})
	if err != nil {
		return nil, err
	}
	out.types = typesOf(x.Cols)
	return out, r.apply(out, op, &setOpOp{x: x, width: width})
}

// columnsOf refers to all columns of an input.
func columnsOf(types []vector.Type) []expr.Expr {
	es := make([]expr.Expr, len(types))
	for k, t := range types {
		es[k] = &expr.Column{Index: k, Typ: t, Null: true}
	}
	return es
}

// setOpOp gives groups, whose last two columns are the numbers of rows on the left and on the right, as often as they belong to the
// result.
type setOpOp struct {
	x     *plan.SetOp
	width int
}

func (o *setOpOp) local() (local, error) { return &setOpLocal{o: o}, nil }

type setOpLocal struct {
	o    *setOpOp
	sel  []uint16
	rows []uint16
	g    kernel.Gatherer
	out  vector.Chunk
}

// times is how often a row with l copies on the left and r on the right is in the result.
func (o *setOpOp) times(l, r int64) int64 {
	switch {
	case o.x.Except && o.x.All:
		return max(l-r, 0)
	case o.x.All:
		return min(l, r)
	case l > 0 && (r > 0) != o.x.Except:
		return 1
	}
	return 0
}

func (l *setOpLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	left, right := c.Cols[l.o.width], c.Cols[l.o.width+1]
	l.sel = l.sel[:0]
	l.rows = l.rows[:0]
	for i := range c.N {
		n := l.o.times(left.I64[i], right.I64[i])
		if n > 0 {
			l.sel = append(l.sel, uint16(i))
		}
		for ; n > 1; n-- {
			l.rows = append(l.rows, uint16(i))
			if len(l.rows) == vector.Size {
				if err := l.copies(ctx, c, out); err != nil {
					return err
				}
			}
		}
	}
	if err := l.copies(ctx, c, out); err != nil {
		return err
	}
	if len(l.sel) == 0 {
		return nil
	}
	l.out = vector.Chunk{Cols: c.Cols[:l.o.width:l.o.width], Sel: l.sel, N: c.N}
	return out(ctx, &l.out)
}

// copies gives the further copies of rows.
func (l *setOpLocal) copies(ctx context.Context, c *vector.Chunk, out emit) error {
	if len(l.rows) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x := &vector.Chunk{N: len(l.rows)}
	for k, v := range c.Cols[:l.o.width] {
		x.Cols = append(x.Cols, l.g.Rows(k, v, l.rows))
	}
	l.rows = l.rows[:0]
	return out(ctx, x)
}
