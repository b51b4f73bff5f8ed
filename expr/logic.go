package expr

import "github.com/skua-db/skua/vector"

// andNode evaluates its arguments left to right, each on the rows that no earlier one made false.
type andNode struct {
	args []node
	out  result
	rows []uint16
}

func (x *andNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	var err error
	for _, a := range x.args {
		if sel, err = filterNode(a, b, sel, dst); err != nil || len(sel) == 0 {
			return dst[:0], err
		}
	}
	return sel, nil
}

func (x *andNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	return kleene(x.args, b, sel, false, &x.out, &x.rows)
}

// kleene evaluates a chain of AND (decisive false) or OR (decisive true).
func kleene(args []node, b *batch, sel []uint16, decisive bool, out *result, scratch *[]uint16) (*vector.Vector, error) {
	rows := rowsOf(sel, b.n)
	v := out.reset(boolean, b.n)
	bm := resizeBitmap(&out.valid, b.n)
	for w := range bm {
		bm[w] = ^uint64(0)
	}
	for _, i := range rows {
		v.Bools[i] = !decisive
	}
	*scratch = grown(*scratch, b.n)
	left := (*scratch)[:copy(*scratch, rows)]
	anyNull := false
	for _, a := range args {
		if len(left) == 0 {
			break
		}
		r, err := a.eval(b, left)
		if err != nil {
			return nil, err
		}
		j := 0
		for _, i := range left {
			if r.IsNull(int(i)) {
				bm.Clear(int(i))
				anyNull = true
			} else if r.Values().Bools[r.Index(int(i))] == decisive {
				v.Bools[i] = decisive
				bm.Set(int(i))
				continue
			}
			left[j] = i
			j++
		}
		left = left[:j]
	}
	if anyNull {
		v.Valid = bm
	}
	return v, nil
}

// orNode evaluates its arguments left to right, each on the rows that no earlier one made true.
type orNode struct {
	args []node
	out  result
	rows []uint16
	left []uint16
	mark []bool
}

func (x *orNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	x.mark = grown(x.mark, b.n)
	x.left = grown(x.left, b.n)
	x.rows = grown(x.rows, b.n)
	left := x.left[:copy(x.left, sel)]
	for _, i := range sel {
		x.mark[i] = false
	}
	for _, a := range x.args {
		hits, err := filterNode(a, b, left, x.rows)
		if err != nil {
			return nil, err
		}
		if len(hits) == 0 {
			continue
		}
		for _, i := range hits {
			x.mark[i] = true
		}
		j := 0
		for _, i := range left {
			left[j] = i
			if !x.mark[i] {
				j++
			}
		}
		if left = left[:j]; j == 0 {
			break
		}
	}
	return keepMarked(sel, x.mark, dst), nil
}

// keepMarked writes the rows of sel that are marked into dst. It has no branch on the mark, which no predictor would guess.
func keepMarked(sel []uint16, mark []bool, dst []uint16) []uint16 {
	j := 0
	dst = dst[:cap(dst)]
	for _, i := range sel {
		dst[j] = i
		if mark[i] {
			j++
		}
	}
	return dst[:j]
}

func (x *orNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	return kleene(x.args, b, sel, true, &x.out, &x.rows)
}

type notNode struct {
	arg node
	out result
}

func (x *notNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	a, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	v := x.out.reset(boolean, b.n)
	if !andValid(v, &x.out.valid, b.n, a) && a.Form == vector.Flat {
		for _, i := range rowsOf(sel, b.n) {
			v.Bools[i] = !a.Bools[i]
		}
		return v, nil
	}
	for _, i := range rowsOf(sel, b.n) {
		if v.Valid.Get(int(i)) {
			v.Bools[i] = !a.Values().Bools[a.Index(int(i))]
		}
	}
	return v, nil
}

type isNullNode struct {
	arg     node
	negated bool
	out     result
}

func (x *isNullNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	a, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	v := x.out.reset(boolean, b.n)
	for _, i := range rowsOf(sel, b.n) {
		v.Bools[i] = a.IsNull(int(i)) != x.negated
	}
	return v, nil
}

func (x *isNullNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	a, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	if a.Valid == nil && a.Type.Kind != vector.Null {
		if x.negated {
			dst = dst[:cap(dst)]
			return dst[:copy(dst, sel)], nil
		}
		return dst[:0], nil
	}
	j := 0
	dst = dst[:cap(dst)]
	for _, i := range sel {
		dst[j] = i
		if a.IsNull(int(i)) != x.negated {
			j++
		}
	}
	return dst[:j], nil
}

// inNode tests membership in a list of constants.
type inNode struct {
	arg     node
	t       vector.Type
	negated bool
	hasNull bool
	set     func(v *vector.Vector, sel, dst []uint16) []uint16 // rows, not null, that are in the set
	dict    dictMatch
	s1, s2  []uint16
	mark    []bool
	out     result
}

func (c *compiler) in(e *In) (node, error) {
	arg, err := c.compile(e.Arg)
	if err != nil {
		return nil, err
	}
	t := e.Arg.Type()
	var values []vector.Value
	hasNull := false
	allConst := !nested(t) && t.Kind != vector.JSON && t.Kind != vector.Null
	for _, l := range e.List {
		n, err := c.compile(l)
		if err != nil {
			return nil, err
		}
		k, ok := n.(*constNode)
		if !ok {
			allConst = false
			break
		}
		if v := k.v.Get(0); v == nil {
			hasNull = true
		} else {
			values = append(values, v)
		}
	}
	if allConst {
		return &inNode{arg: arg, t: t, negated: e.Negated, hasNull: hasNull, set: memberOf(t, values)}, nil
	}
	or := &Or{}
	for _, l := range e.List {
		or.Args = append(or.Args, &Compare{Op: Eq, L: e.Arg, R: l})
	}
	var x Expr = or
	if len(or.Args) == 1 {
		x = or.Args[0]
	}
	if e.Negated {
		x = &Not{Arg: x}
	}
	return c.compile(x)
}

const linearSet = 6

func memberOf(t vector.Type, values []vector.Value) func(v *vector.Vector, sel, dst []uint16) []uint16 {
	switch t.Physical() {
	case vector.PBool:
		return memberSet[bool](values)
	case vector.PInt32:
		return memberSet[int32](values)
	case vector.PInt64:
		return memberSet[int64](values)
	case vector.PFloat32:
		return memberSet[float32](values)
	case vector.PFloat64:
		return memberSet[float64](values)
	case vector.PInt128:
		return memberSet[vector.Int128](values)
	}
	set := make(map[string]struct{}, len(values))
	maxLen := 0
	for _, v := range values {
		set[v.(string)] = struct{}{}
		maxLen = max(maxLen, len(v.(string)))
	}
	return func(v *vector.Vector, sel, dst []uint16) []uint16 {
		c, bufs := colOf[vector.View](v), v.Values().Bufs
		j := 0
		for _, i := range sel {
			p := c.ptr(int(i))
			dst[j] = i
			if int(p.Len) <= maxLen {
				if _, ok := set[string(p.Bytes(bufs))]; ok {
					j++
				}
			}
		}
		return dst[:j]
	}
}

func memberSet[T comparable](values []vector.Value) func(v *vector.Vector, sel, dst []uint16) []uint16 {
	list := make([]T, len(values))
	set := make(map[T]struct{}, len(values))
	for i, v := range values {
		list[i] = v.(T)
		set[list[i]] = struct{}{}
	}
	if len(list) <= linearSet {
		return func(v *vector.Vector, sel, dst []uint16) []uint16 {
			c := colOf[T](v)
			j := 0
			for _, i := range sel {
				x := c.at(int(i))
				dst[j] = i
				for _, y := range list {
					if x == y {
						j++
						break
					}
				}
			}
			return dst[:j]
		}
	}
	return func(v *vector.Vector, sel, dst []uint16) []uint16 {
		c := colOf[T](v)
		j := 0
		for _, i := range sel {
			dst[j] = i
			if _, ok := set[c.at(int(i))]; ok {
				j++
			}
		}
		return dst[:j]
	}
}

// members gives the rows of sel whose value is not null and in the list.
func (x *inNode) members(v *vector.Vector, n int, sel, dst []uint16) []uint16 {
	dst = dst[:cap(dst)]
	if v.Form == vector.Dictionary {
		if d := v.Dict.StoredLen(); d <= len(sel) {
			return x.dict.filter(v, d, sel, dst, x.set)
		}
	}
	x.s2 = grown(x.s2, n)
	return x.set(v, notNull(v, sel, x.s2), dst)
}

func (x *inNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	v, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	if !x.negated {
		return x.members(v, b.n, sel, dst), nil
	}
	if x.hasNull {
		return dst[:0], nil
	}
	x.s1 = grown(x.s1, b.n)
	x.mark = grown(x.mark, b.n)
	for _, i := range sel {
		x.mark[i] = !v.IsNull(int(i))
	}
	for _, i := range x.members(v, b.n, sel, x.s1) {
		x.mark[i] = false
	}
	return keepMarked(sel, x.mark, dst), nil
}

func (x *inNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	a, err := x.arg.eval(b, sel)
	if err != nil {
		return nil, err
	}
	rows := rowsOf(sel, b.n)
	x.s1 = grown(x.s1, b.n)
	hits := x.members(a, b.n, rows, x.s1)
	v := x.out.reset(boolean, b.n)
	for _, i := range rows {
		v.Bools[i] = x.negated
	}
	andValid(v, &x.out.valid, b.n, a)
	if x.hasNull {
		bm := resizeBitmap(&x.out.valid, b.n)
		clear(bm)
		v.Valid = bm
		for _, i := range hits {
			bm.Set(int(i))
		}
	}
	for _, i := range hits {
		v.Bools[i] = !x.negated
	}
	return v, nil
}
