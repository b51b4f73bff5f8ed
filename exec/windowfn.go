package exec

import (
	"context"
	"sort"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// partition is one partition of a window, its rows in order.
type partition struct {
	n       int
	derived *pages // what functions are computed from; the last column is the number of the row's group of peers
	starts  *pages // first row of each group of peers
	order   int    // derived column of the first order key; -1 for none
	key     expr.SortKey
}

// group is the number of the group of peers that row i is in.
func (p *partition) group(i int) int {
	v, k := p.derived.at(len(p.derived.types)-1, i)
	return int(v.I64[k])
}

func (p *partition) start(g int) int {
	v, k := p.starts.at(0, g)
	return int(v.I64[k])
}

func (p *partition) groupEnd(g int) int {
	if g+1 < p.starts.n {
		return p.start(g + 1)
	}
	return p.n
}

// windowEval computes one function over a partition, from its first row to its last.
type windowEval struct {
	*partition
	f    *expr.WindowCall
	cols windowCols
	ctx  *expr.Context

	ends [2]rangeEnd
	// acc has the rows lo..hi-1, whose value is value.
	acc    expr.Accumulator
	value  *vector.Vector
	lo, hi int
}

// rangeEnd is the row found last for an end of a RANGE frame, and the group that it is for.
type rangeEnd struct {
	group, at int
	known     bool
}

func newWindowEval(p *partition, f *expr.WindowCall, cols windowCols, ctx *expr.Context) *windowEval {
	return &windowEval{partition: p, f: f, cols: cols, ctx: ctx, lo: -1, hi: -1}
}

// bytes is the memory of the state.
func (e *windowEval) bytes() int64 {
	if e.acc == nil {
		return 0
	}
	return e.acc.Bytes()
}

// arg gives a vector that has argument k of row i, and its place there.
func (e *windowEval) arg(k, i int) (*vector.Vector, int) { return e.derived.at(e.cols.args[k], i) }

func (e *windowEval) argNull(k, i int) bool {
	v, at := e.arg(k, i)
	return v.IsNull(at)
}

// rows gives the function's values for rows lo..hi-1.
func (e *windowEval) rows(ctx context.Context, lo, hi int) (*vector.Vector, error) {
	f := e.f
	if f.Agg != nil {
		return e.aggregate(ctx, lo, hi)
	}
	out := vector.New(f.Typ, 0)
	switch f.Name {
	case "row_number", "rank", "dense_rank", "ntile":
		out.I64 = make([]int64, hi-lo)
		for i := lo; i < hi; i++ {
			switch f.Name {
			case "row_number":
				out.I64[i-lo] = int64(i) + 1
			case "rank":
				out.I64[i-lo] = int64(e.start(e.group(i))) + 1
			case "dense_rank":
				out.I64[i-lo] = int64(e.group(i)) + 1
			default:
				v, at := e.arg(0, i)
				if v.IsNull(at) {
					out.SetNull(i-lo, hi-lo)
					continue
				}
				b := v.I64[at]
				if b < 1 {
					return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "ntile needs a positive number of buckets, not %d", b)
				}
				out.I64[i-lo] = bucket(int64(i), int64(e.n), b)
			}
		}
		return out, nil
	case "percent_rank", "cume_dist":
		out.F64 = make([]float64, hi-lo)
		for i := lo; i < hi; i++ {
			if f.Name == "cume_dist" {
				out.F64[i-lo] = float64(e.groupEnd(e.group(i))) / float64(e.n)
			} else if e.n > 1 {
				out.F64[i-lo] = float64(e.start(e.group(i))) / float64(e.n-1)
			}
		}
		return out, nil
	}
	b := vector.NewBuilder(f.Typ)
	for i := lo; i < hi; i++ {
		if i&63 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var at int
		var err error
		switch f.Name {
		case "lag", "lead":
			at, err = e.shifted(i)
		default:
			at, err = e.inFrame(i)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case at >= 0:
			v, k := e.arg(0, at)
			b.AppendFrom(v, k)
		case at == useDefault && len(e.cols.args) == 3:
			v, k := e.arg(2, i)
			b.AppendFrom(v, k)
		default:
			b.AppendNull()
		}
	}
	return b.Finish(), nil
}

// bucket spreads n rows over b buckets, the first ones larger by a row.
func bucket(i, n, b int64) int64 {
	if n <= b {
		return i + 1
	}
	size, more := n/b, n%b
	if i < more*(size+1) {
		return i/(size+1) + 1
	}
	return (i-more*(size+1))/size + more + 1
}

const (
	noRow      = -1
	useDefault = -2
)

func (e *windowEval) shifted(i int) (int, error) {
	f := e.f
	off := int64(1)
	if len(e.cols.args) > 1 {
		v, at := e.arg(1, i)
		if v.IsNull(at) {
			return noRow, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the offset of %s must not be null", f.Name)
		}
		off = v.I64[at]
	}
	if off < 0 {
		return noRow, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the offset of %s must not be negative: %d", f.Name, off)
	}
	step := 1
	if f.Name == "lag" {
		step = -1
	}
	if !f.IgnoreNulls {
		if off > int64(e.n) {
			return useDefault, nil
		}
		if at := i + step*int(off); at >= 0 && at < e.n {
			return at, nil
		}
		return useDefault, nil
	}
	if off == 0 {
		return i, nil
	}
	for at := i + step; at >= 0 && at < e.n; at += step {
		if !e.argNull(0, at) {
			if off--; off == 0 {
				return at, nil
			}
		}
	}
	return useDefault, nil
}

// inFrame finds the row of first_value, last_value and nth_value.
func (e *windowEval) inFrame(i int) (int, error) {
	f := e.f
	lo, hi, err := e.frame(i)
	if err != nil {
		return noRow, err
	}
	nth := int64(1)
	if f.Name == "nth_value" {
		v, at := e.arg(1, i)
		if v.IsNull(at) {
			return noRow, nil
		}
		if nth = v.I64[at]; nth < 1 {
			return noRow, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the offset of nth_value must be at least 1: %d", nth)
		}
	}
	counts := func(at int) bool {
		return !e.excluded(f.Frame.Exclude, i, at) && !(f.IgnoreNulls && e.argNull(0, at))
	}
	if f.Name == "last_value" {
		for at := hi - 1; at >= lo; at-- {
			if counts(at) {
				return at, nil
			}
		}
		return noRow, nil
	}
	if f.Frame.Exclude == expr.ExcludeNoOthers && !f.IgnoreNulls {
		if at := int64(lo) + nth - 1; nth <= int64(e.n) && at < int64(hi) {
			return int(at), nil
		}
		return noRow, nil
	}
	for at := lo; at < hi; at++ {
		if counts(at) {
			if nth--; nth == 0 {
				return at, nil
			}
		}
	}
	return noRow, nil
}

func (p *partition) excluded(x expr.Exclusion, i, at int) bool {
	switch x {
	case expr.ExcludeCurrentRow:
		return at == i
	case expr.ExcludeGroup:
		return p.group(at) == p.group(i)
	case expr.ExcludeTies:
		return at != i && p.group(at) == p.group(i)
	}
	return false
}

// frame gives the rows lo..hi-1 of row i's frame, before exclusion.
func (e *windowEval) frame(i int) (lo, hi int, err error) {
	f := &e.f.Frame
	if lo, err = e.end(f, f.Start, 0, i); err != nil {
		return 0, 0, err
	}
	if hi, err = e.end(f, f.End, 1, i); err != nil {
		return 0, 0, err
	}
	lo, hi = max(lo, 0), min(hi, e.n)
	if hi < lo {
		hi = lo
	}
	return lo, hi, nil
}

// end finds one end of a frame: the first row for which 0, the row after the last for which 1.
func (e *windowEval) end(f *expr.Frame, b expr.Bound, which, i int) (int, error) {
	switch b.Kind {
	case expr.UnboundedPreceding:
		return 0, nil
	case expr.UnboundedFollowing:
		return e.n, nil
	case expr.CurrentRow:
		switch {
		case f.Unit == expr.Rows:
			return i + which, nil
		case which == 0:
			return e.start(e.group(i)), nil
		}
		return e.groupEnd(e.group(i)), nil
	}
	if e.cols.offsets[which] < 0 {
		return 0, frameOffset("must not be null")
	}
	off, at := e.derived.at(e.cols.offsets[which], i)
	if off.IsNull(at) {
		return 0, frameOffset("must not be null")
	}
	if f.Unit == expr.Range {
		return e.rangeEnd(b, off.Get(at), off.Type, which, i)
	}
	k, ok := integerAt(off, at)
	if !ok || k < 0 {
		return 0, frameOffset("must be an integer that is not negative")
	}
	if k > int64(e.n) {
		k = int64(e.n)
	}
	step := int(k)
	if b.Kind == expr.Preceding {
		step = -step
	}
	if f.Unit == expr.Rows {
		return i + step + which, nil
	}
	g := e.group(i) + step
	switch {
	case which == 0 && g < 0:
		return 0, nil
	case which == 0 && g >= e.starts.n, which == 1 && g >= e.starts.n:
		return e.n, nil
	case which == 0:
		return e.start(g), nil
	case g < 0:
		return 0, nil
	}
	return e.groupEnd(g), nil
}

func frameOffset(why string) error {
	return fault.WithID(fault.Invalid, "INVALID_WINDOW_FRAME", "the offset of a window frame %s", why)
}

func integerAt(v *vector.Vector, i int) (int64, bool) {
	switch x := v.Get(i).(type) {
	case int32:
		return int64(x), true
	case int64:
		return x, true
	}
	return 0, false
}

// rangeEnd finds the end of a RANGE frame with an offset: by the value of the order key, moved by the offset.
func (e *windowEval) rangeEnd(b expr.Bound, o vector.Value, ot vector.Type, which, i int) (int, error) {
	g := e.group(i)
	order, row := e.derived.at(e.order, i)
	if order.IsNull(row) {
		// A null has no distance to anything but its peers.
		if which == 0 {
			return e.start(g), nil
		}
		return e.groupEnd(g), nil
	}
	last := &e.ends[which]
	_, constant := b.Offset.(*expr.Literal)
	if last.known && last.group == g && constant {
		return last.at, nil
	}
	t := order.Type
	if negative(o) {
		return 0, frameOffset("must not be negative")
	}
	op := "+"
	if (b.Kind == expr.Preceding) != e.key.Desc {
		op = "-"
	}
	moved, err := expr.NewCall(op, []expr.Expr{&expr.Literal{Value: order.Get(row), Typ: t}, &expr.Literal{Value: o, Typ: ot}})
	if err != nil {
		return 0, err
	}
	if moved, err = expr.NewCast(moved, t, false); err != nil {
		return 0, err
	}
	limit, err := expr.EvalConst(moved, &expr.Context{})
	if err != nil {
		return 0, err
	}
	before := func(at int) bool { // row at comes before the limit
		v, k := e.derived.at(e.order, at)
		if v.IsNull(k) {
			return e.key.NullsFirst
		}
		c := expr.CompareValues(t, v.Get(k), limit)
		if e.key.Desc {
			c = -c
		}
		return c < 0 || which == 1 && c == 0
	}
	at := searchNear(e.n, last.at, before)
	if which == 0 && e.key.NullsFirst {
		for at < e.n {
			if v, k := e.derived.at(e.order, at); !v.IsNull(k) {
				break
			}
			at++
		}
	}
	*last = rangeEnd{g, at, true}
	return at, nil
}

// searchNear finds the first of 0..n-1 for which before is false, n if there is none; before is true for all rows up to some row. It begins
// at near and takes steps that double, so that ends which move little are found by reading little.
func searchNear(n, near int, before func(int) bool) int {
	near = min(max(near, 0), n)
	lo, hi := 0, n // the answer is in lo..hi
	if near < n && before(near) {
		lo = near + 1
		for step := 1; lo < n; step *= 2 {
			at := min(near+step, n-1)
			if !before(at) {
				hi = at
				break
			}
			lo = at + 1
		}
	} else {
		hi = near
		for step := 1; hi > 0; step *= 2 {
			at := max(near-step, 0)
			if before(at) {
				lo = at + 1
				break
			}
			hi = at
		}
	}
	return lo + sort.Search(hi-lo, func(k int) bool { return !before(lo + k) })
}

func negative(v vector.Value) bool {
	switch x := v.(type) {
	case int32:
		return x < 0
	case int64:
		return x < 0
	case float32:
		return x < 0
	case float64:
		return x < 0
	case vector.Int128:
		return x.Sign() < 0
	}
	return false
}

// aggregate computes an aggregate over each row's frame. A frame that grows at its end is added to; another one is started anew.
func (e *windowEval) aggregate(ctx context.Context, from, to int) (*vector.Vector, error) {
	f := e.f
	out := kernel.NewStore([]vector.Type{f.Typ})
	plain := f.Frame.Exclude == expr.ExcludeNoOthers && len(f.Agg.OrderBy) == 0
	if plain && f.Frame.Start.Kind == expr.UnboundedPreceding && f.Frame.End.Kind == expr.UnboundedFollowing && e.value != nil {
		v := *e.value // of the whole partition
		v.Form = vector.Constant
		return &v, nil
	}
	for i := from; i < to; i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a, b, err := e.frame(i)
		if err != nil {
			return nil, err
		}
		if !plain || e.acc == nil || a != e.lo || b < e.hi {
			if e.acc, err = expr.NewAccumulator(f.Agg, e.ctx); err != nil {
				return nil, err
			}
			e.acc.Resize(1)
			e.lo, e.hi, e.value = a, a, nil
		}
		if b > e.hi || e.value == nil {
			if err := e.add(ctx, i, e.hi, b); err != nil {
				return nil, err
			}
			e.hi = b
			if e.value, err = e.acc.Result(0, 1); err != nil {
				return nil, err
			}
			e.value.Type = f.Typ
		}
		out.Append([]*vector.Vector{e.value}, nil, 1)
	}
	return out.Cols[0], nil
}

// add adds rows at..b-1 to the accumulator for row i's frame.
func (e *windowEval) add(ctx context.Context, i, at, b int) error {
	cols := make([]*vector.Vector, len(e.cols.args))
	sel := make([]uint16, 0, vector.Size)
	for at < b {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		size := e.derived.block()
		base := at &^ (size - 1)
		n := min(size, e.n-base)
		for k, c := range e.cols.args {
			cols[k], _, _ = e.derived.blockOf(c, at)
		}
		sel = sel[:0]
		for end := min(b, base+n); at < end; at++ {
			if e.cols.filter >= 0 {
				if v, k := e.derived.at(e.cols.filter, at); v.IsNull(k) || !v.Bools[k] {
					continue
				}
			}
			if e.f.Frame.Exclude != expr.ExcludeNoOthers && e.excluded(e.f.Frame.Exclude, i, at) {
				continue
			}
			sel = append(sel, uint16(at-base))
		}
		if len(sel) > 0 {
			if err := e.acc.Add(nil, cols, sel, n); err != nil {
				return err
			}
		}
	}
	return nil
}
