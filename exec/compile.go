package exec

import (
	"context"
	"fmt"
	"strings"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// compile turns a plan node into a stream and hangs its operator into the profile below parent.
func (r *run) compile(n plan.Node, parent *profile.Operator) (*stream, error) {
	op := &profile.Operator{Name: strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan.")}
	parent.Children = append(parent.Children, op)
	switch x := n.(type) {
	case *plan.Scan:
		return r.scan(x, op)
	case *plan.Values:
		return r.values(x, op)
	case *plan.Filter:
		s, err := r.compile(x.Input, op)
		if err != nil {
			return nil, err
		}
		return s, r.apply(s, op, &filterOp{cond: x.Cond, ctx: r.q.Context})
	case *plan.Project:
		s, err := r.compile(x.Input, op)
		if err != nil {
			return nil, err
		}
		s.types = typesOf(x.Cols)
		return s, r.apply(s, op, &projectOp{exprs: x.Exprs, ctx: r.q.Context})
	case *plan.Limit:
		return r.limit(x, op)
	case *plan.Aggregate:
		return r.aggregate(x, op)
	case *plan.Sort:
		return r.sort(x, op)
	case *plan.Join:
		return r.join(x, op)
	case *plan.Union:
		return r.union(x, op)
	case *plan.SetOp:
		return r.setOp(x, op)
	case *plan.Window:
		return r.window(x, op)
	case *plan.Unnest:
		s, err := r.compile(x.Input, op)
		if err != nil {
			return nil, err
		}
		s.types = typesOf(x.Cols)
		return s, r.apply(s, op, &unnestOp{n: x, ctx: r.q.Context})
	case *plan.Spool:
		return r.spool(x, op)
	case *plan.OneRow:
		return r.oneRow(x, op)
	case *plan.WithSubqueries:
		return r.withSubqueries(x, op)
	case *plan.Explain:
		return r.explain(x, op)
	}
	return nil, fault.New(fault.Internal, "plan node %T cannot be run", n)
}

// apply adds an operator after trying it once, so that its expressions fail to compile here and not in a worker.
func (r *run) apply(s *stream, op *profile.Operator, o operator) error {
	if _, err := o.local(); err != nil {
		return err
	}
	s.add(&countedOp{op: op, inner: o})
	return nil
}

// breaker ends the stream in with a sink whose result is read from src.
func (r *run) breaker(in *stream, op *profile.Operator, into sink, src source, types []vector.Type, ordered bool) *stream {
	return &stream{
		prepares: []func(context.Context) error{func(ctx context.Context) error {
			return r.drive(ctx, in, &countedSink{op, into})
		}},
		branches: []branch{{src: &countedSource{op, src}}},
		types:    types,
		ordered:  ordered,
	}
}

func compileAll(es []expr.Expr, ctx *expr.Context) ([]*expr.Program, error) {
	ps := make([]*expr.Program, len(es))
	for i, e := range es {
		p, err := expr.Compile(e, ctx)
		if err != nil {
			return nil, err
		}
		ps[i] = p
	}
	return ps, nil
}

func evalAll(ps []*expr.Program, c *vector.Chunk, dst []*vector.Vector) ([]*vector.Vector, error) {
	dst = dst[:0]
	for _, p := range ps {
		v, err := p.Eval(c)
		if err != nil {
			return nil, err
		}
		dst = append(dst, v)
	}
	return dst, nil
}

type filterOp struct {
	cond expr.Expr
	ctx  *expr.Context
}

type filterLocal struct {
	p   *expr.Program
	sel []uint16
	out vector.Chunk
}

func (f *filterOp) local() (local, error) {
	p, err := expr.Compile(f.cond, f.ctx)
	return &filterLocal{p: p, sel: make([]uint16, 0, vector.Size)}, err
}

func (f *filterLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	sel, err := f.p.Filter(c, c.Sel, f.sel)
	if err != nil {
		return err
	}
	if len(sel) == 0 {
		return nil
	}
	f.out = vector.Chunk{Cols: c.Cols, Sel: sel, N: c.N}
	if len(sel) == c.N {
		f.out.Sel = nil
	}
	return out(ctx, &f.out)
}

type projectOp struct {
	exprs []expr.Expr
	ctx   *expr.Context
}

type projectLocal struct {
	ps   []*expr.Program
	cols []*vector.Vector
	out  vector.Chunk
}

func (p *projectOp) local() (local, error) {
	ps, err := compileAll(p.exprs, p.ctx)
	return &projectLocal{ps: ps}, err
}

func (p *projectLocal) push(ctx context.Context, c *vector.Chunk, out emit) error {
	cols, err := evalAll(p.ps, c, p.cols)
	if err != nil {
		return err
	}
	p.cols = cols
	p.out = vector.Chunk{Cols: cols, Sel: c.Sel, N: c.N}
	return out(ctx, &p.out)
}

// values gives literal rows; they are evaluated when the stream is read.
func (r *run) values(x *plan.Values, op *profile.Operator) (*stream, error) {
	// SHOW and information_schema make rows while the statement is planned: they count from here on.
	if n := literalBytes(x); n >= countedLiterals {
		held := &account{pool: r.q.Pool.Child(op.Name, 0), op: op}
		r.atEnd(held.free)
		if err := held.add(n); err != nil {
			return nil, err
		}
	}
	src := &solo{source: &valuesSource{x: x, ctx: r.q.Context}}
	return &stream{branches: []branch{{src: &countedSource{op, src}}}, types: typesOf(x.Cols), ordered: true}, nil
}

// countedLiterals is the size of literal rows from which they are worth a reservation.
const countedLiterals = 64 << 10

// literalBytes is about what literal rows hold: an expression, a value and its text for each column.
func literalBytes(x *plan.Values) int64 {
	const cell = 112 // *expr.Literal, the interface to it, the boxed value
	n := int64(0)
	for _, row := range x.Rows {
		n += cell * int64(len(row))
		for _, e := range row {
			if l, ok := e.(*expr.Literal); ok {
				if s, ok := l.Value.(string); ok {
					n += int64(len(s))
				}
			}
		}
	}
	return n
}

type valuesSource struct {
	x   *plan.Values
	ctx *expr.Context
}

func (v *valuesSource) open(context.Context) (reader, error) {
	return &valuesReader{x: v.x, ctx: v.ctx}, nil
}

type valuesReader struct {
	x   *plan.Values
	ctx *expr.Context
	at  int
}

func (v *valuesReader) next(context.Context) (*vector.Chunk, error) {
	rows := v.x.Rows[v.at:min(v.at+vector.Size, len(v.x.Rows))]
	if len(rows) == 0 {
		return nil, nil
	}
	v.at += len(rows)
	c := &vector.Chunk{N: len(rows)}
	for k, col := range v.x.Cols {
		b := vector.NewBuilder(col.Type)
		for _, row := range rows {
			y, err := expr.EvalConst(row[k], v.ctx)
			if err != nil {
				return nil, err
			}
			b.Append(y)
		}
		c.Cols = append(c.Cols, b.Finish())
	}
	return c, nil
}

func (v *valuesReader) close() error { return nil }

func (r *run) union(x *plan.Union, op *profile.Operator) (*stream, error) {
	out := &stream{types: typesOf(x.Cols), ordered: len(x.Nodes) > 0}
	for _, n := range x.Nodes {
		s, err := r.compile(n, op)
		if err != nil {
			return nil, err
		}
		out.prepares = append(out.prepares, s.prepares...)
		out.branches = append(out.branches, s.branches...)
		out.ordered = out.ordered && s.ordered
	}
	out.add(&countedOp{op: op, inner: passOp{}})
	return out, nil
}

// passOp does nothing; it gives a union its place in the profile.
type passOp struct{}

func (passOp) local() (local, error) { return passOp{}, nil }
func (passOp) push(ctx context.Context, c *vector.Chunk, out emit) error {
	return out(ctx, c)
}

func (r *run) withSubqueries(x *plan.WithSubqueries, op *profile.Operator) (*stream, error) {
	ctx := r.q.Context
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	var prepares []func(context.Context) error
	for _, q := range x.Scalars {
		for len(ctx.Subqueries) <= q.ID {
			ctx.Subqueries = append(ctx.Subqueries, nil)
		}
		s, err := r.compile(q.Plan, op)
		if err != nil {
			return nil, err
		}
		prepares = append(prepares, func(c context.Context) error {
			one := &oneRowSink{types: s.types[:1]}
			if err := r.drive(c, s, one); err != nil {
				return err
			}
			ctx.Subqueries[q.ID] = one.row()[0]
			return nil
		})
	}
	in.prepares = append(prepares, in.prepares...)
	return in, r.apply(in, op, passOp{})
}

// oneRowSink keeps a single row; a second one is an error.
type oneRowSink struct {
	types []vector.Type
	vals  []vector.Value
	rows  int64
}

type oneRowLocal struct {
	s    *oneRowSink
	vals []vector.Value
	rows int64
}

func (o *oneRowSink) local() (sinkLocal, error) { return &oneRowLocal{s: o}, nil }

func (o *oneRowLocal) push(_ context.Context, c *vector.Chunk) error {
	n := c.Rows()
	if n == 0 {
		return nil
	}
	if o.rows += int64(n); o.rows > 1 {
		return multipleRows()
	}
	i := 0
	if c.Sel != nil {
		i = int(c.Sel[0])
	}
	for k := range o.s.types {
		o.vals = append(o.vals, c.Cols[k].Get(i))
	}
	return nil
}

func multipleRows() error {
	return fault.WithID(fault.Invalid, "SUBQUERY_MULTIPLE_ROWS", "a scalar subquery has returned more than one row")
}

func (o *oneRowSink) combine(l sinkLocal) error {
	x := l.(*oneRowLocal)
	if x.rows == 0 {
		return nil
	}
	if o.rows += x.rows; o.rows > 1 {
		return multipleRows()
	}
	o.vals = x.vals
	return nil
}

func (o *oneRowSink) finish(context.Context) error { return nil }

func (o *oneRowSink) row() []vector.Value {
	if o.rows == 0 {
		return make([]vector.Value, len(o.types))
	}
	return o.vals
}

func (r *run) oneRow(x *plan.OneRow, op *profile.Operator) (*stream, error) {
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	s := &oneRowSink{types: in.types}
	src := &onceSource{f: func(context.Context) (*vector.Chunk, error) {
		c := &vector.Chunk{N: 1}
		for k, v := range s.row() {
			c.Cols = append(c.Cols, vector.NewConstant(s.types[k], v))
		}
		return c, nil
	}}
	return r.breaker(in, op, s, src, in.types, true), nil
}

// onceSource gives one chunk, to whichever worker asks first.
type onceSource struct {
	f    func(ctx context.Context) (*vector.Chunk, error)
	turn turn
}

func (o *onceSource) open(context.Context) (reader, error) { return onceReader{o}, nil }

type onceReader struct{ *onceSource }

func (o onceReader) next(ctx context.Context) (*vector.Chunk, error) {
	if o.turn.take() > 0 {
		return nil, nil
	}
	return o.f(ctx)
}

func (o onceReader) close() error { return nil }

func (r *run) explain(x *plan.Explain, op *profile.Operator) (*stream, error) {
	text := func() string {
		if x.Analyze {
			return x.Text(r.q.Profile)
		}
		return x.Text(nil)
	}
	src := &onceSource{f: func(context.Context) (*vector.Chunk, error) {
		b := vector.NewBuilder(vector.Of(vector.Varchar))
		lines := strings.Split(strings.TrimRight(text(), "\n"), "\n")
		for _, l := range lines {
			b.Append(l)
		}
		return &vector.Chunk{N: len(lines), Cols: []*vector.Vector{b.Finish()}}, nil
	}}
	types := []vector.Type{vector.Of(vector.Varchar)}
	if !x.Analyze {
		return &stream{branches: []branch{{src: src}}, types: types, ordered: true}, nil
	}
	in, err := r.compile(x.Input, op)
	if err != nil {
		return nil, err
	}
	return r.breaker(in, op, discard{}, src, types, true), nil
}

// discard is a sink that throws rows away.
type discard struct{}

func (discard) local() (sinkLocal, error)                 { return discard{}, nil }
func (discard) push(context.Context, *vector.Chunk) error { return nil }
func (discard) combine(sinkLocal) error                   { return nil }
func (discard) finish(context.Context) error              { return nil }
