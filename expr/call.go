package expr

import (
	"errors"
	"unsafe"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// callNode runs a registry function. Rows with a null argument are null without a call, unless the function asks for them;
// a function of one dictionary column runs once for each value of the dictionary.
type callNode struct {
	name    string
	k       kernel
	args    []node // nil at the place of a lambda
	t       vector.Type
	onNull  bool
	dictOK  bool
	x       evalCall
	out     result
	live    []uint16
	wrapped vector.Vector
	bits    vector.Bitmap
}

func (c *compiler) call(e *Call) (node, error) {
	n := &callNode{name: e.Fn.Name, t: e.Typ, onNull: e.Fn.onNull, dictOK: !e.Fn.onNull && !e.Fn.volatile}
	n.x.ctx = c.ctx
	bound := &binding{args: e.Args, ret: e.Typ, ctx: c.ctx}
	for _, a := range e.Args {
		if l, ok := a.(*Lambda); ok {
			body, err := c.compile(l.Body)
			if err != nil {
				return nil, err
			}
			p := &lambdaProgram{body: body, cols: Columns(l.Body), t: l.Body.Type()}
			for _, v := range l.Params {
				p.ids = append(p.ids, v.ID)
			}
			n.args = append(n.args, nil)
			n.x.lambdas = append(n.x.lambdas, p)
			n.dictOK = false
			continue
		}
		x, err := c.compile(a)
		if err != nil {
			return nil, err
		}
		n.args = append(n.args, x)
		n.x.lambdas = append(n.x.lambdas, nil)
	}
	n.x.args = make([]*vector.Vector, len(n.args))
	k, err := e.Fn.make(bound)
	if err != nil {
		return nil, err
	}
	n.k = k
	return n, nil
}

func (x *callNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	c := &x.x
	// Two calls of one program may nest (a lambda inside the lambda of the same node never does), so c is free here.
	for i, a := range x.args {
		if a == nil {
			continue
		}
		v, err := a.eval(b, sel)
		if err != nil {
			return nil, err
		}
		c.args[i] = v
	}
	c.sel, c.n, c.b = sel, b.n, b
	if x.dictOK {
		if v, ok := x.onDictionary(sel, b.n); ok {
			return v, nil
		}
	}
	out := x.out.reset(x.t, b.n)
	if !x.onNull && andValid(out, &x.out.valid, b.n, c.args...) {
		x.live = grown(x.live, b.n)
		c.sel = selectBitmap(out.Valid, rowsOf(sel, b.n), x.live)
		if len(c.sel) == 0 && nested(x.t) {
			return nullVector(x.t, b.n), nil
		}
	}
	if err := x.k(c, out); err != nil {
		return nil, err
	}
	x.out.keep()
	return out, nil
}

func nullVector(t vector.Type, n int) *vector.Vector {
	v := vector.New(t, n)
	v.Valid = vector.NewBitmap(n, false)
	return v
}

// onDictionary evaluates once per dictionary value when the only argument that varies is a dictionary no larger than the rows.
// A value may fail that no row has, so a failure falls back to the rows.
func (x *callNode) onDictionary(sel []uint16, n int) (*vector.Vector, bool) {
	c := &x.x
	var dict *vector.Vector
	at := 0
	for i, a := range c.args {
		switch {
		case a.Form == vector.Constant:
			if a.IsNull(0) {
				return nil, false
			}
		case a.Form == vector.Dictionary && dict == nil:
			dict, at = a, i
		default:
			return nil, false
		}
	}
	if dict == nil {
		return nil, false
	}
	d := dict.Dict.StoredLen()
	if d == 0 || d > len(rowsOf(sel, n)) {
		return nil, false
	}
	c.args[at], c.sel, c.n = dict.Dict, nil, d
	out := x.out.reset(x.t, d)
	err := x.k(c, out)
	c.args[at], c.sel, c.n = dict, sel, n
	if err != nil {
		return nil, false
	}
	x.out.keep()
	return overCodes(dict, out, n, sel, &x.wrapped, &x.bits), true
}

// overCodes makes the dictionary vector that has dict's codes and the values out.
func overCodes(dict, out *vector.Vector, n int, sel []uint16, wrapped *vector.Vector, bits *vector.Bitmap) *vector.Vector {
	values := *out
	values.Valid = nil
	*wrapped = vector.Vector{Type: out.Type, Form: vector.Dictionary, Codes: dict.Codes, Dict: &values, Valid: dict.Valid}
	if out.Valid == nil {
		return wrapped
	}
	bm := resizeBitmap(bits, n)
	clear(bm)
	for _, i := range rowsOf(sel, n) {
		if dict.Valid.Get(int(i)) && out.Valid.Get(int(dict.Codes[i])) {
			bm.Set(int(i))
		}
	}
	wrapped.Valid = bm
	return wrapped
}

// lambdaProgram is the body of a lambda, evaluated on batches of elements.
type lambdaProgram struct {
	ids  []int
	body node
	cols []int
	t    vector.Type
}

// eval runs the body on n elements; element i belongs to row rowOf[i] of the outer batch and params[k] holds the k-th
// parameter of each element.
func (l *lambdaProgram) eval(outer *batch, rowOf []int32, params []*vector.Vector, n int) (*vector.Vector, error) {
	b := &batch{n: n}
	if len(l.cols) > 0 {
		b.cols = make([]*vector.Vector, len(outer.cols))
		for _, i := range l.cols {
			b.cols[i] = spread(outer.cols[i], rowOf[:n])
		}
	}
	for _, v := range outer.vars {
		b.vars = append(b.vars, lambdaValue{v.id, spread(v.v, rowOf[:n])})
	}
	for k, id := range l.ids {
		b.vars = append(b.vars, lambdaValue{id, params[k]})
	}
	return l.body.eval(b, nil)
}

// spread repeats rows of v: row i of the result is row rows[i].
func spread(v *vector.Vector, rows []int32) *vector.Vector {
	if v.Form == vector.Constant || v.Type.Kind == vector.Null {
		return v
	}
	out := &vector.Vector{Type: v.Type, Form: vector.Dictionary, Codes: make([]int32, len(rows))}
	if v.Form == vector.Dictionary {
		out.Dict = v.Dict
		for i, r := range rows {
			out.Codes[i] = v.Codes[r]
		}
	} else {
		d := *v
		d.Valid = nil
		out.Dict = &d
		copy(out.Codes, rows)
	}
	if v.Valid != nil {
		out.Valid = vector.NewBitmap(len(rows), true)
		for i, r := range rows {
			if !v.Valid.Get(int(r)) {
				out.Valid.Clear(i)
			}
		}
	}
	return out
}

// denseOf gives argument k as a slice indexed by row, whatever its form; only selected rows count.
func denseOf[T any](x *evalCall, k int) []T {
	v := x.args[k]
	if v.Form == vector.Flat {
		return payload[T](v)
	}
	out := payload[T](x.buf[k].reset(v.Type, x.n))
	c := colOf[T](v)
	for _, i := range rowsOf(x.sel, x.n) {
		out[i] = c.at(int(i))
	}
	return out
}

// denseInt128 is denseOf for decimals of either width.
func denseInt128(x *evalCall, k int) []vector.Int128 {
	if x.args[k].Type.Physical() == vector.PInt128 {
		return denseOf[vector.Int128](x, k)
	}
	short := denseOf[int64](x, k)
	x.wide[k] = grown(x.wide[k], x.n)
	for _, i := range rowsOf(x.sel, x.n) {
		x.wide[k][i] = int128(short[i])
	}
	return x.wide[k]
}

// errNull makes a row function give NULL.
var errNull = errors.New("null")

// getter reads rows as Go values: text as a string that shares the vector's bytes.
func getter[T any](v *vector.Vector) func(i int) T {
	var f any
	switch any((*T)(nil)).(type) {
	case *bool:
		c := colOf[bool](v)
		f = c.at
	case *int32:
		c := colOf[int32](v)
		f = c.at
	case *int64:
		if v.Type.Physical() == vector.PInt32 {
			c := colOf[int32](v)
			f = func(i int) int64 { return int64(c.at(i)) }
			break
		}
		c := colOf[int64](v)
		f = c.at
	case *vector.Int128:
		if v.Type.Physical() == vector.PInt64 {
			c := colOf[int64](v)
			f = func(i int) vector.Int128 { return int128(c.at(i)) }
			break
		}
		c := colOf[vector.Int128](v)
		f = c.at
	case *float32:
		c := colOf[float32](v)
		f = c.at
	case *float64:
		c := colOf[float64](v)
		f = c.at
	case *string:
		f = func(i int) string {
			p := v.Bytes(i)
			return unsafe.String(unsafe.SliceData(p), len(p))
		}
	case *[]byte:
		f = v.Bytes
	case *[]vector.Value:
		f = func(i int) []vector.Value { return v.Get(i).([]vector.Value) }
	case *[]vector.Pair:
		f = func(i int) []vector.Pair { return v.Get(i).([]vector.Pair) }
	default:
		f = v.Get
	}
	return f.(func(i int) T)
}

// sink stores row results. finish must be called at the end.
type sink[R any] struct {
	put    func(i int, x R)
	null   func(i int)
	finish func()
}

func sinkOf[R any](x *evalCall, out *vector.Vector) sink[R] {
	s := sink[R]{null: func(i int) { out.SetNull(i, x.n) }, finish: func() {}}
	var f any
	switch any((*R)(nil)).(type) {
	case *bool:
		f = func(i int, y bool) { out.Bools[i] = y }
	case *int32:
		f = func(i int, y int32) { out.I32[i] = y }
	case *int64:
		if out.Type.Physical() == vector.PInt32 {
			f = func(i int, y int64) { out.I32[i] = int32(y) }
			break
		}
		f = func(i int, y int64) { out.I64[i] = y }
	case *vector.Int128:
		if out.Type.Physical() == vector.PInt64 {
			f = func(i int, y vector.Int128) { out.I64[i] = int64(y.LowBits()) }
			break
		}
		f = func(i int, y vector.Int128) { out.I128[i] = y }
	case *float32:
		f = func(i int, y float32) { out.F32[i] = y }
	case *float64:
		f = func(i int, y float64) { out.F64[i] = y }
	case *string:
		f = func(i int, y string) { putBytes(out, i, unsafe.Slice(unsafe.StringData(y), len(y))) }
	case *[]byte:
		f = func(i int, y []byte) { putBytes(out, i, y) }
	default:
		// Nested values are appended row after row; rows outside the selection become nulls.
		b := vector.NewBuilder(out.Type)
		upTo := func(i int) {
			for b.Len() < i {
				b.AppendNull()
			}
		}
		s.put = func(i int, y R) { upTo(i); b.Append(any(y)) }
		s.null = func(i int) { upTo(i); b.AppendNull() }
		s.finish = func() { upTo(x.n); *out = *b.Finish() }
		return s
	}
	s.put = f.(func(i int, x R))
	return s
}

// maxChunkText bounds the text that one call makes for a chunk: lpad can ask for megabytes a row.
const maxChunkText = 256 << 20

func forRows[R any](x *evalCall, out *vector.Vector, f func(i int) (R, error)) error {
	s := sinkOf[R](x, out)
	row := func(i int) error {
		r, err := f(i)
		switch {
		case err == nil:
			s.put(i, r)
			if k := len(out.Bufs); k > 0 && len(out.Bufs[k-1]) > maxChunkText {
				return fault.WithID(fault.Exhausted, "EXCEEDED_MEMORY_LIMIT", "a function makes more than %d bytes of text for one chunk of rows", maxChunkText)
			}
		case errors.Is(err, errNull):
			s.null(i)
		default:
			return err
		}
		return nil
	}
	if x.sel == nil {
		for i := range x.n {
			if err := row(i); err != nil {
				return err
			}
		}
	} else {
		for _, i := range x.sel {
			if err := row(int(i)); err != nil {
				return err
			}
		}
	}
	s.finish()
	return nil
}

// fn0 to fn4 make kernels of row functions; errNull gives NULL.
func fn0[R any](f func(x *evalCall) (R, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		return forRows(x, out, func(int) (R, error) { return f(x) })
	}
}

func fn1[A, R any](f func(x *evalCall, a A) (R, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a := getter[A](x.args[0])
		return forRows(x, out, func(i int) (R, error) { return f(x, a(i)) })
	}
}

func fn2[A, B, R any](f func(x *evalCall, a A, b B) (R, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b := getter[A](x.args[0]), getter[B](x.args[1])
		return forRows(x, out, func(i int) (R, error) { return f(x, a(i), b(i)) })
	}
}

func fn3[A, B, C, R any](f func(x *evalCall, a A, b B, c C) (R, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b, c := getter[A](x.args[0]), getter[B](x.args[1]), getter[C](x.args[2])
		return forRows(x, out, func(i int) (R, error) { return f(x, a(i), b(i), c(i)) })
	}
}

func fn4[A, B, C, D, R any](f func(x *evalCall, a A, b B, c C, d D) (R, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b, c, d := getter[A](x.args[0]), getter[B](x.args[1]), getter[C](x.args[2]), getter[D](x.args[3])
		return forRows(x, out, func(i int) (R, error) { return f(x, a(i), b(i), c(i), d(i)) })
	}
}

// fnN makes a kernel of a function of all arguments; args is reused from row to row.
func fnN(f func(x *evalCall, args []vector.Value) (vector.Value, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		args := make([]vector.Value, len(x.args))
		return forRows(x, out, func(i int) (vector.Value, error) {
			for k, a := range x.args {
				if a != nil {
					args[k] = a.Get(i)
				}
			}
			v, err := f(x, args)
			if err == nil && v == nil {
				err = errNull
			}
			return v, err
		})
	}
}

// bytesString views bytes as a string; it lives as long as they do.
func bytesString(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }
