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
	ctx     context.Context
	starts  []int // first row of each group of peers
	group   []int // group of each row
	order   *vector.Vector
	key     expr.SortKey
	offsets [2]*vector.Vector // frame offsets of the function at hand

	ends [2]map[int]int // row found by a RANGE offset, by group; for constant offsets
}

func (p *partition) groupEnd(g int) int {
	if g+1 < len(p.starts) {
		return p.starts[g+1]
	}
	return p.n
}

func (p *partition) evaluate(f *expr.WindowCall, args []*vector.Vector, keep *vector.Vector, ctx *expr.Context) (*vector.Vector, error) {
	p.ends = [2]map[int]int{{}, {}}
	if f.Agg != nil {
		return p.aggregate(f, args, keep, ctx)
	}
	out := vector.New(f.Typ, 0)
	switch f.Name {
	case "row_number", "rank", "dense_rank", "ntile":
		out.I64 = make([]int64, p.n)
		for i := range p.n {
			switch f.Name {
			case "row_number":
				out.I64[i] = int64(i) + 1
			case "rank":
				out.I64[i] = int64(p.starts[p.group[i]]) + 1
			case "dense_rank":
				out.I64[i] = int64(p.group[i]) + 1
			default:
				if args[0].IsNull(i) {
					out.SetNull(i, p.n)
					continue
				}
				b := args[0].I64[i]
				if b < 1 {
					return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "ntile needs a positive number of buckets, not %d", b)
				}
				out.I64[i] = bucket(int64(i), int64(p.n), b)
			}
		}
		return out, nil
	case "percent_rank", "cume_dist":
		out.F64 = make([]float64, p.n)
		for i := range p.n {
			if f.Name == "cume_dist" {
				out.F64[i] = float64(p.groupEnd(p.group[i])) / float64(p.n)
			} else if p.n > 1 {
				out.F64[i] = float64(p.starts[p.group[i]]) / float64(p.n-1)
			}
		}
		return out, nil
	}
	b := vector.NewBuilder(f.Typ)
	for i := range p.n {
		if i&1023 == 0 && p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		var at int
		var err error
		switch f.Name {
		case "lag", "lead":
			at, err = p.shifted(f, args, i)
		default:
			at, err = p.inFrame(f, args, i)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case at >= 0:
			b.AppendFrom(args[0], at)
		case at == useDefault && len(args) == 3:
			b.AppendFrom(args[2], i)
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

func (p *partition) shifted(f *expr.WindowCall, args []*vector.Vector, i int) (int, error) {
	off := int64(1)
	if len(args) > 1 {
		if args[1].IsNull(i) {
			return noRow, nil
		}
		off = args[1].I64[i]
	}
	if off < 0 {
		return noRow, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the offset of %s must not be negative: %d", f.Name, off)
	}
	step := 1
	if f.Name == "lag" {
		step = -1
	}
	if !f.IgnoreNulls {
		if off > int64(p.n) {
			return useDefault, nil
		}
		if at := i + step*int(off); at >= 0 && at < p.n {
			return at, nil
		}
		return useDefault, nil
	}
	if off == 0 {
		return i, nil
	}
	for at := i + step; at >= 0 && at < p.n; at += step {
		if !args[0].IsNull(at) {
			if off--; off == 0 {
				return at, nil
			}
		}
	}
	return useDefault, nil
}

// inFrame finds the row of first_value, last_value and nth_value.
func (p *partition) inFrame(f *expr.WindowCall, args []*vector.Vector, i int) (int, error) {
	lo, hi, err := p.frame(f.Frame, i)
	if err != nil {
		return noRow, err
	}
	nth := int64(1)
	if f.Name == "nth_value" {
		if args[1].IsNull(i) {
			return noRow, nil
		}
		if nth = args[1].I64[i]; nth < 1 {
			return noRow, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "the offset of nth_value must be at least 1: %d", nth)
		}
	}
	counts := func(at int) bool {
		return !p.excluded(f.Frame.Exclude, i, at) && !(f.IgnoreNulls && args[0].IsNull(at))
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
		if at := int64(lo) + nth - 1; nth <= int64(p.n) && at < int64(hi) {
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
		return p.group[at] == p.group[i]
	case expr.ExcludeTies:
		return at != i && p.group[at] == p.group[i]
	}
	return false
}

// frame gives the rows lo..hi-1 of row i's frame, before exclusion.
func (p *partition) frame(f expr.Frame, i int) (lo, hi int, err error) {
	if lo, err = p.end(f, f.Start, 0, i); err != nil {
		return 0, 0, err
	}
	if hi, err = p.end(f, f.End, 1, i); err != nil {
		return 0, 0, err
	}
	lo, hi = max(lo, 0), min(hi, p.n)
	if hi < lo {
		hi = lo
	}
	return lo, hi, nil
}

// end finds one end of a frame: the first row for which 0, the row after the last for which 1.
func (p *partition) end(f expr.Frame, b expr.Bound, which, i int) (int, error) {
	switch b.Kind {
	case expr.UnboundedPreceding:
		return 0, nil
	case expr.UnboundedFollowing:
		return p.n, nil
	case expr.CurrentRow:
		switch {
		case f.Unit == expr.Rows:
			return i + which, nil
		case which == 0:
			return p.starts[p.group[i]], nil
		}
		return p.groupEnd(p.group[i]), nil
	}
	off := p.offsets[which]
	if off == nil || off.IsNull(i) {
		return 0, frameOffset("must not be null")
	}
	if f.Unit == expr.Range {
		return p.rangeEnd(b, off, which, i)
	}
	k, ok := integerAt(off, i)
	if !ok || k < 0 {
		return 0, frameOffset("must be an integer that is not negative")
	}
	if k > int64(p.n) {
		k = int64(p.n)
	}
	step := int(k)
	if b.Kind == expr.Preceding {
		step = -step
	}
	if f.Unit == expr.Rows {
		return i + step + which, nil
	}
	g := p.group[i] + step
	switch {
	case which == 0 && g < 0:
		return 0, nil
	case which == 0 && g >= len(p.starts), which == 1 && g >= len(p.starts):
		return p.n, nil
	case which == 0:
		return p.starts[g], nil
	case g < 0:
		return 0, nil
	}
	return p.groupEnd(g), nil
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
func (p *partition) rangeEnd(b expr.Bound, off *vector.Vector, which, i int) (int, error) {
	g := p.group[i]
	if p.order.IsNull(i) {
		// A null has no distance to anything but its peers.
		if which == 0 {
			return p.starts[g], nil
		}
		return p.groupEnd(g), nil
	}
	_, constant := b.Offset.(*expr.Literal)
	if at, ok := p.ends[which][g]; ok && constant {
		return at, nil
	}
	t := p.order.Type
	o := off.Get(i)
	if negative(o) {
		return 0, frameOffset("must not be negative")
	}
	op := "+"
	if (b.Kind == expr.Preceding) != p.key.Desc {
		op = "-"
	}
	moved, err := expr.NewCall(op, []expr.Expr{&expr.Literal{Value: p.order.Get(i), Typ: t}, &expr.Literal{Value: o, Typ: off.Type}})
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
		if p.order.IsNull(at) {
			return p.key.NullsFirst
		}
		c := expr.CompareValues(t, p.order.Get(at), limit)
		if p.key.Desc {
			c = -c
		}
		return c < 0 || which == 1 && c == 0
	}
	at := sort.Search(p.n, func(k int) bool { return !before(k) })
	if which == 0 && p.key.NullsFirst {
		for at < p.n && p.order.IsNull(at) {
			at++
		}
	}
	p.ends[which][g] = at
	return at, nil
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
func (p *partition) aggregate(f *expr.WindowCall, args []*vector.Vector, keep *vector.Vector, ctx *expr.Context) (*vector.Vector, error) {
	out := kernel.NewStore([]vector.Type{f.Typ})
	var acc expr.Accumulator
	var value *vector.Vector
	plain := f.Frame.Exclude == expr.ExcludeNoOthers && len(f.Agg.OrderBy) == 0
	lo, hi := -1, -1
	for i := range p.n {
		if p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		a, b, err := p.frame(f.Frame, i)
		if err != nil {
			return nil, err
		}
		if !plain || acc == nil || a != lo || b < hi {
			if acc, err = expr.NewAccumulator(f.Agg, ctx); err != nil {
				return nil, err
			}
			acc.Resize(1)
			lo, hi, value = a, a, nil
		}
		if b > hi || value == nil {
			for at := hi; at < b; {
				base := at / vector.Size * vector.Size
				end := min(b, base+vector.Size)
				cols := make([]*vector.Vector, len(args))
				for k, v := range args {
					cols[k] = kernel.Slice(v, base, min(base+vector.Size, p.n))
				}
				var sel []uint16
				for k := at; k < end; k++ {
					if keep != nil && (keep.IsNull(k) || !keep.Bools[k]) || p.excluded(f.Frame.Exclude, i, k) {
						continue
					}
					sel = append(sel, uint16(k-base))
				}
				if len(sel) > 0 {
					if err := acc.Add(nil, cols, sel, min(base+vector.Size, p.n)-base); err != nil {
						return nil, err
					}
				}
				at = end
			}
			hi = b
			if value, err = acc.Result(0, 1); err != nil {
				return nil, err
			}
			value.Type = f.Typ
		}
		out.Append([]*vector.Vector{value}, nil, 1)
	}
	return out.Cols[0], nil
}
