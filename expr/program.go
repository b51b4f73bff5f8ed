package expr

import (
	"fmt"
	"runtime/debug"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Program is an expression made ready to run on chunks. It belongs to one goroutine.
type Program struct {
	root node
	typ  vector.Type
	b    batch
}

// batch is what nodes are evaluated on: a chunk, or the elements of lists inside a lambda.
type batch struct {
	cols []*vector.Vector
	n    int
	vars []lambdaValue
}

type lambdaValue struct {
	id int
	v  *vector.Vector
}

// node evaluates an expression on the selected rows of a batch (nil: all). The result is aligned with the rows of the batch, its
// other rows are undefined, and it is valid until the next eval of the same node.
type node interface {
	eval(b *batch, sel []uint16) (*vector.Vector, error)
}

// filterer is a node with a faster way than a boolean vector to tell the rows that are true.
type filterer interface {
	node
	// filter appends to dst[:0] the rows of sel that are true. dst has room for every row and may not overlap sel, except
	// that both may be the same slice.
	filter(b *batch, sel, dst []uint16) ([]uint16, error)
}

// Compile prepares e for a run. ctx must outlive the program; its Subqueries may be filled in later, before the first Eval.
func Compile(e Expr, ctx *Context) (*Program, error) {
	if ctx == nil {
		ctx = &Context{}
	}
	c := compiler{ctx: ctx}
	root, err := c.compile(e)
	if err != nil {
		return nil, err
	}
	return &Program{root: root, typ: e.Type()}, nil
}

// Type is the type of the result.
func (p *Program) Type() vector.Type { return p.typ }

// Eval computes the expression for the rows of c that count. The vector is aligned with c's physical rows, defined for
// selected rows only and valid until the next call; it may be a column of c itself.
func (p *Program) Eval(c *vector.Chunk) (*vector.Vector, error) {
	p.b = batch{cols: c.Cols, n: c.N}
	if c.Sel != nil && len(c.Sel) == 0 {
		return p.empty(c.N), nil
	}
	return p.root.eval(&p.b, c.Sel)
}

func (p *Program) empty(n int) *vector.Vector {
	v := vector.New(p.typ, n)
	v.Valid = vector.NewBitmap(n, false)
	return v
}

// Filter gives the rows among sel (nil: all N of the chunk; c.Sel is not looked at) for which the predicate is true, in dst,
// which must have room for them or is replaced. sel and dst may be the same slice.
func (p *Program) Filter(c *vector.Chunk, sel, dst []uint16) ([]uint16, error) {
	if cap(dst) < c.N {
		dst = make([]uint16, 0, max(c.N, vector.Size))
	}
	if sel == nil {
		sel = identity(c.N)
	}
	if len(sel) == 0 {
		return dst[:0], nil
	}
	p.b = batch{cols: c.Cols, n: c.N}
	return filterNode(p.root, &p.b, sel, dst[:cap(dst)])
}

func filterNode(x node, b *batch, sel, dst []uint16) ([]uint16, error) {
	if f, ok := x.(filterer); ok {
		return f.filter(b, sel, dst)
	}
	v, err := x.eval(b, sel)
	if err != nil {
		return nil, err
	}
	return selectTrue(v, sel, dst), nil
}

// selectTrue gives the rows of sel where the boolean v is true.
func selectTrue(v *vector.Vector, sel, dst []uint16) []uint16 {
	if v.Type.Kind == vector.Null {
		return dst[:0]
	}
	j := 0
	dst = dst[:cap(dst)]
	switch {
	case v.Form == vector.Constant:
		if v.IsNull(0) || !v.Bools[0] {
			return dst[:0]
		}
		return dst[:copy(dst, sel)]
	case v.Form == vector.Dictionary:
		for _, i := range sel {
			dst[j] = i
			if v.Valid.Get(int(i)) && v.Dict.Bools[v.Codes[i]] {
				j++
			}
		}
	case v.Valid == nil:
		bs := v.Bools
		for _, i := range sel {
			dst[j] = i
			if bs[i] {
				j++
			}
		}
	default:
		bs := v.Bools
		for _, i := range sel {
			dst[j] = i
			if bs[i] && v.Valid[i>>6]&(1<<(i&63)) != 0 {
				j++
			}
		}
	}
	return dst[:j]
}

// EvalConst evaluates an expression that needs no column.
func EvalConst(e Expr, ctx *Context) (v vector.Value, err error) {
	if l, ok := e.(*Literal); ok {
		return l.Value, nil
	}
	if ix := Columns(e); len(ix) > 0 {
		return nil, fault.WithID(fault.Invalid, "EXPRESSION_NOT_CONSTANT", "%s is not constant", e)
	}
	p, err := Compile(e, ctx)
	if err != nil {
		return nil, err
	}
	out, err := p.Eval(&vector.Chunk{N: 1})
	if err != nil {
		return nil, err
	}
	return out.Get(0), nil
}

type compiler struct{ ctx *Context }

func (c *compiler) compile(e Expr) (node, error) {
	switch x := e.(type) {
	case *Column:
		return &columnNode{x.Index}, nil
	case *Literal:
		return constant(x.Typ, x.Value), nil
	case *Param:
		if x.Index >= len(c.ctx.Params) {
			return nil, fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "parameter %d has no value", x.Index+1)
		}
		return constant(x.Typ, c.ctx.Params[x.Index]), nil
	case *Subquery:
		return &subqueryNode{ctx: c.ctx, id: x.ID, t: x.Typ}, nil
	case *LambdaVar:
		return &lambdaVarNode{x.ID}, nil
	case *Compare:
		return c.compare(x)
	case *And:
		args, err := c.all(x.Args)
		return &andNode{args: args}, err
	case *Or:
		args, err := c.all(x.Args)
		return &orNode{args: args}, err
	case *Not:
		arg, err := c.compile(x.Arg)
		return &notNode{arg: arg}, err
	case *IsNull:
		arg, err := c.compile(x.Arg)
		return &isNullNode{arg: arg, negated: x.Negated}, err
	case *In:
		return c.in(x)
	case *Like:
		return c.like(x)
	case *Cast:
		return c.cast(x)
	case *Case:
		return c.caseOf(x)
	case *Coalesce:
		args, err := c.all(x.Args)
		return &coalesceNode{args: args, t: x.Typ}, err
	case *TryExpr:
		arg, err := c.compile(x.Arg)
		return &tryNode{arg: arg, t: x.Type()}, err
	case *FieldAccess:
		arg, err := c.compile(x.Arg)
		return &fieldNode{arg: arg, index: x.Index}, err
	case *Call:
		return c.call(x)
	}
	return nil, fault.New(fault.Internal, "expression %T cannot be evaluated here", e)
}

func (c *compiler) all(es []Expr) ([]node, error) {
	out := make([]node, len(es))
	for i, e := range es {
		n, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

type columnNode struct{ index int }

func (x *columnNode) eval(b *batch, _ []uint16) (*vector.Vector, error) {
	if x.index >= len(b.cols) {
		return nil, fault.New(fault.Internal, "column %d of a chunk with %d columns\n%s", x.index, len(b.cols), debug.Stack())
	}
	return b.cols[x.index], nil
}

type constNode struct{ v *vector.Vector }

func constant(t vector.Type, x vector.Value) *constNode {
	return &constNode{vector.NewConstant(t, x)}
}

func (x *constNode) eval(*batch, []uint16) (*vector.Vector, error) { return x.v, nil }

type subqueryNode struct {
	ctx *Context
	id  int
	t   vector.Type
	v   *vector.Vector
}

func (x *subqueryNode) eval(*batch, []uint16) (*vector.Vector, error) {
	if x.v == nil {
		if x.id >= len(x.ctx.Subqueries) {
			return nil, fault.New(fault.Internal, "subquery %d has not been run", x.id)
		}
		x.v = vector.NewConstant(x.t, x.ctx.Subqueries[x.id])
	}
	return x.v, nil
}

type lambdaVarNode struct{ id int }

func (x *lambdaVarNode) eval(b *batch, _ []uint16) (*vector.Vector, error) {
	for i := len(b.vars) - 1; i >= 0; i-- {
		if b.vars[i].id == x.id {
			return b.vars[i].v, nil
		}
	}
	return nil, fault.New(fault.Internal, "lambda variable %d is not bound", x.id)
}

type fieldNode struct {
	arg   node
	index int
	out   vector.Vector
	valid vector.Bitmap
}

func (x *fieldNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	v, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	s := v.Values()
	if x.index >= len(s.Children) {
		return nil, fault.New(fault.Internal, "field %d of a row with %d fields", x.index, len(s.Children))
	}
	f := s.Children[x.index]
	if v.Form == vector.Flat && v.Valid == nil {
		return f, nil
	}
	return wrapRows(v, f, b.n, sel, &x.out, &x.valid), nil
}

// wrapRows maps the values f, which belong to the values of v, onto v's rows: a row is null where v or its value is.
func wrapRows(v, f *vector.Vector, n int, sel []uint16, out *vector.Vector, valid *vector.Bitmap) *vector.Vector {
	if v.Form == vector.Constant {
		*out = *f
		if f.Form == vector.Dictionary {
			out = vector.NewConstant(f.Type, f.Get(0))
		}
		out.Form = vector.Constant
		if v.IsNull(0) || f.IsNull(0) {
			out.Valid = vector.Bitmap{0}
		} else {
			out.Valid = nil
		}
		return out
	}
	*out = *f
	if v.Form == vector.Dictionary {
		ff := f
		if f.Form != vector.Flat {
			ff = flattenAll(f, v.Dict.StoredLen())
		}
		inner := *ff
		inner.Valid = nil
		*out = vector.Vector{Type: f.Type, Form: vector.Dictionary, Codes: v.Codes, Dict: &inner}
		if f.Valid == nil {
			out.Valid = v.Valid
			return out
		}
		bm := resizeBitmap(valid, n)
		for _, i := range rowsOf(sel, n) {
			if v.Valid.Get(int(i)) && ff.Valid.Get(int(v.Codes[i])) {
				bm.Set(int(i))
			} else {
				bm.Clear(int(i))
			}
		}
		out.Valid = bm
		return out
	}
	if f.Form == vector.Constant {
		*out = *flattenAll(f, n)
	}
	bm := resizeBitmap(valid, n)
	for w := range bm {
		bm[w] = ^uint64(0)
		if v.Valid != nil {
			bm[w] &= v.Valid[w]
		}
		if out.Valid != nil && w < len(out.Valid) {
			bm[w] &= out.Valid[w]
		}
	}
	out.Valid = bm
	return out
}

// flattenAll copies the first n rows into a flat vector.
func flattenAll(v *vector.Vector, n int) *vector.Vector {
	b := vector.NewBuilder(v.Type)
	for i := range n {
		b.AppendFrom(v, i)
	}
	return b.Finish()
}

var identityRows = func() *[vector.Size]uint16 {
	var t [vector.Size]uint16
	for i := range t {
		t[i] = uint16(i)
	}
	return &t
}()

// identity lists the rows 0..n-1.
func identity(n int) []uint16 {
	if n <= vector.Size {
		return identityRows[:n]
	}
	t := make([]uint16, n)
	for i := range t {
		t[i] = uint16(i)
	}
	return t
}

func rowsOf(sel []uint16, n int) []uint16 {
	if sel == nil {
		return identity(n)
	}
	return sel
}

func resizeBitmap(b *vector.Bitmap, n int) vector.Bitmap {
	w := (n + 63) / 64
	if cap(*b) < w {
		*b = make(vector.Bitmap, w, max(w, vector.Size/64))
	}
	*b = (*b)[:w]
	return *b
}

// result is a vector that a node fills again and again.
type result struct {
	v     vector.Vector
	valid vector.Bitmap
	buf   []byte
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, vector.Size))
	}
	return s[:n]
}

// reset gives an all-valid flat vector of n rows with undefined contents. Nested types get an empty vector: they are built.
func (r *result) reset(t vector.Type, n int) *vector.Vector {
	v := &r.v
	v.Type, v.Form, v.Valid = t, vector.Flat, nil
	switch t.Physical() {
	case vector.PBool:
		v.Bools = grown(v.Bools, n)
	case vector.PInt32:
		v.I32 = grown(v.I32, n)
	case vector.PInt64:
		v.I64 = grown(v.I64, n)
	case vector.PInt128:
		v.I128 = grown(v.I128, n)
	case vector.PFloat32:
		v.F32 = grown(v.F32, n)
	case vector.PFloat64:
		v.F64 = grown(v.F64, n)
	case vector.PView:
		v.Views = grown(v.Views, n)
		v.Bufs = v.Bufs[:0]
		if r.buf != nil {
			v.Bufs = append(v.Bufs, r.buf[:0])
		}
	}
	return v
}

// keep remembers the string buffer for the next use.
func (r *result) keep() {
	if len(r.v.Bufs) == 1 {
		r.buf = r.v.Bufs[0]
		if cap(r.buf) > 1<<20 {
			r.buf = nil
		}
	}
}

// putBytes stores p as row i of v, whose last buffer is v's own to grow.
func putBytes(v *vector.Vector, i int, p []byte) {
	if len(p) <= vector.InlineLen {
		v.Views[i] = vector.InlineView(p)
		return
	}
	if len(v.Bufs) == 0 {
		v.Bufs = append(v.Bufs, make([]byte, 0, max(4096, len(p))))
	}
	k := len(v.Bufs) - 1
	off := len(v.Bufs[k])
	v.Bufs[k] = append(v.Bufs[k], p...)
	v.Views[i] = vector.MakeView(v.Bufs, k, off, len(p))
}

func internal(format string, args ...any) error {
	return fault.New(fault.Internal, "%s", fmt.Sprintf(format, args...))
}
