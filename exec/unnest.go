package exec

import (
	"context"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// unnestOp repeats each row for the elements of its lists, side by side.
type unnestOp struct {
	n   *plan.Unnest
	ctx *expr.Context
}

type unnestLocal struct {
	op    *unnestOp
	progs []*expr.Program
	cols  []*vector.Vector
	g     kernel.Gatherer
	rows  []uint16
	elem  []int32 // position of the element in its list
	out   vector.Chunk
}

func (o *unnestOp) local() (local, error) {
	ps, err := compileAll(o.n.Args, o.ctx)
	return &unnestLocal{op: o, progs: ps}, err
}

func (l *unnestLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	var err error
	if l.cols, err = evalAll(l.progs, c, l.cols); err != nil {
		return err
	}
	rows := c.Sel
	if rows == nil {
		rows = kernel.Identity(c.N)
	}
	l.rows, l.elem = l.rows[:0], l.elem[:0]
	flush := func() error {
		if len(l.rows) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := out(ctx, l.chunk(c))
		l.rows, l.elem = l.rows[:0], l.elem[:0]
		return err
	}
	for _, i := range rows {
		longest := 0
		for _, v := range l.cols {
			lo, hi := listRange(v, int(i))
			longest = max(longest, hi-lo)
		}
		if longest == 0 {
			if !l.op.n.Outer {
				continue
			}
			l.rows, l.elem = append(l.rows, i), append(l.elem, -1)
		}
		for e := range longest {
			l.rows, l.elem = append(l.rows, i), append(l.elem, int32(e))
			if len(l.rows) == vector.Size {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if len(l.rows) == vector.Size {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// listRange gives the elements of row i; none for a null.
func listRange(v *vector.Vector, i int) (lo, hi int) {
	if v.IsNull(i) {
		return 0, 0
	}
	s, j := v.Values(), v.Index(i)
	return int(s.Offsets[j]), int(s.Offsets[j+1])
}

func (l *unnestLocal) chunk(c *vector.Chunk) *vector.Chunk {
	n := len(l.rows)
	l.out = vector.Chunk{N: n, Cols: l.out.Cols[:0]}
	for k, v := range c.Cols {
		l.out.Cols = append(l.out.Cols, l.g.Rows(k, v, l.rows))
	}
	for a, v := range l.cols {
		s := v.Values()
		for part := range v.Type.Fields {
			// An array of rows gives a column for each field where the plan says so.
			l.out.Cols = append(l.out.Cols, l.elements(l.op.n.Args[a].Type(), v, s, part)...)
		}
	}
	if l.op.n.Ordinality {
		o := vector.New(vector.Of(vector.BigInt), n)
		for p, e := range l.elem {
			if e < 0 {
				o.SetNull(p, n)
			} else {
				o.I64[p] = int64(e) + 1
			}
		}
		l.out.Cols = append(l.out.Cols, o)
	}
	return &l.out
}

// elements gives the output columns of child part of a list.
func (l *unnestLocal) elements(t vector.Type, v, s *vector.Vector, part int) []*vector.Vector {
	et := t.Fields[part].Type
	split := t.Kind == vector.Array && et.Kind == vector.Row && l.splitsRows()
	pick := func(ct vector.Type, get func(b *vector.Builder, at int)) *vector.Vector {
		b := vector.NewBuilder(ct)
		for p, i := range l.rows {
			lo, hi := listRange(v, int(i))
			if e := int(l.elem[p]); e < 0 || lo+e >= hi {
				b.AppendNull()
			} else {
				get(b, lo+e)
			}
		}
		return b.Finish()
	}
	if s.Type.Kind == vector.Null {
		return []*vector.Vector{vector.NewConstant(et, nil)}
	}
	child := s.Children[part]
	if !split {
		return []*vector.Vector{pick(et, func(b *vector.Builder, at int) { b.AppendFrom(child, at) })}
	}
	var out []*vector.Vector
	for f, field := range et.Fields {
		out = append(out, pick(field.Type, func(b *vector.Builder, at int) {
			if child.IsNull(at) {
				b.AppendNull()
			} else {
				b.AppendFrom(child.Values().Children[f], child.Index(at))
			}
		}))
	}
	return out
}

// splitsRows reports whether the plan's columns leave room for the fields of rows as columns of their own.
func (l *unnestLocal) splitsRows() bool {
	n := l.op.n
	plain, split := len(n.Input.Columns()), len(n.Input.Columns())
	for _, a := range n.Args {
		t := a.Type()
		plain += len(t.Fields)
		if t.Kind == vector.Array && t.Fields[0].Type.Kind == vector.Row {
			split += len(t.Fields[0].Type.Fields)
		} else {
			split += len(t.Fields)
		}
	}
	if n.Ordinality {
		plain++
		split++
	}
	return len(n.Cols) == split && split != plain || split == plain
}
