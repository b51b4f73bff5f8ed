package expr

import (
	"errors"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// andNode evaluates its arguments left to right, each on the rows that no earlier one made false.
type andNode struct {
	args []node
	out  result
	rows []uint16
	keep []uint16
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
	j := 0
	dst = dst[:cap(dst)]
	for _, i := range sel {
		dst[j] = i
		if x.mark[i] {
			j++
		}
	}
	return dst[:j], nil
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
		if d := dictLen(v.Dict); d <= len(sel) {
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
	j := 0
	dst = dst[:cap(dst)]
	for _, i := range sel {
		dst[j] = i
		if x.mark[i] {
			j++
		}
	}
	return dst[:j], nil
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

// mixer puts a result together from several vectors, each giving some of the rows.
type mixer struct {
	t      vector.Type
	out    result
	n      int
	srcs   []*vector.Vector
	which  []int16 // nested types only
	nulls  bool
	nested bool
}

func (m *mixer) begin(t vector.Type, n int) {
	m.t, m.n, m.nulls, m.nested = t, n, false, nested(t)
	m.srcs = m.srcs[:0]
	if m.nested {
		m.which = grown(m.which, n)
		for i := range m.which {
			m.which[i] = -1
		}
		return
	}
	v := m.out.reset(t, n)
	v.Bufs = nil
	bm := resizeBitmap(&m.out.valid, n)
	for w := range bm {
		bm[w] = ^uint64(0)
	}
}

// put takes rows from src.
func (m *mixer) put(src *vector.Vector, rows []uint16) {
	if m.nested {
		m.srcs = append(m.srcs, src)
		for _, i := range rows {
			m.which[i] = int16(len(m.srcs) - 1)
		}
		return
	}
	if src.Type.Kind == vector.Null {
		m.null(rows)
		return
	}
	if src.Valid != nil {
		for _, i := range rows {
			if src.IsNull(int(i)) {
				m.out.valid.Clear(int(i))
				m.nulls = true
			}
		}
	}
	v := &m.out.v
	switch m.t.Physical() {
	case vector.PBool:
		scatter(v.Bools, src, rows)
	case vector.PInt32:
		scatter(v.I32, src, rows)
	case vector.PInt64:
		scatter(v.I64, src, rows)
	case vector.PInt128:
		scatter(v.I128, src, rows)
	case vector.PFloat32:
		scatter(v.F32, src, rows)
	case vector.PFloat64:
		scatter(v.F64, src, rows)
	case vector.PView:
		base := len(v.Bufs)
		v.Bufs = append(v.Bufs, src.Values().Bufs...)
		if base == 0 {
			scatter(v.Views, src, rows)
			break
		}
		c := colOf[vector.View](src)
		for _, i := range rows {
			if !src.IsNull(int(i)) {
				v.Views[i] = c.at(int(i)).Rebase(base)
			}
		}
	}
}

func scatter[T any](dst []T, src *vector.Vector, rows []uint16) {
	c := colOf[T](src)
	if src.Valid == nil {
		for _, i := range rows {
			dst[i] = c.at(int(i))
		}
		return
	}
	var zero T
	for _, i := range rows {
		if src.IsNull(int(i)) {
			dst[i] = zero
		} else {
			dst[i] = c.at(int(i))
		}
	}
}

// null makes rows null.
func (m *mixer) null(rows []uint16) {
	if m.nested || len(rows) == 0 {
		return
	}
	m.nulls = true
	for _, i := range rows {
		m.out.valid.Clear(int(i))
	}
}

func (m *mixer) end() *vector.Vector {
	if m.nested {
		b := vector.NewBuilder(m.t)
		for i := range m.n {
			if w := m.which[i]; w < 0 {
				b.AppendNull()
			} else {
				b.AppendFrom(m.srcs[w], i)
			}
		}
		return b.Finish()
	}
	if m.nulls {
		m.out.v.Valid = m.out.valid
	}
	return &m.out.v
}

type caseNode struct {
	conds, thens []node
	els          node
	t            vector.Type
	mix          mixer
	left, hits   []uint16
	mark         []bool
}

func (c *compiler) caseOf(e *Case) (node, error) {
	x := &caseNode{t: e.Typ}
	for _, w := range e.Whens {
		cond, err := c.compile(w.Cond)
		if err != nil {
			return nil, err
		}
		then, err := c.compile(w.Then)
		if err != nil {
			return nil, err
		}
		x.conds = append(x.conds, cond)
		x.thens = append(x.thens, then)
	}
	if e.Else != nil {
		els, err := c.compile(e.Else)
		if err != nil {
			return nil, err
		}
		x.els = els
	}
	return x, nil
}

func (x *caseNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	rows := rowsOf(sel, b.n)
	x.left, x.hits, x.mark = grown(x.left, b.n), grown(x.hits, b.n), grown(x.mark, b.n)
	left := x.left[:copy(x.left, rows)]
	x.mix.begin(x.t, b.n)
	for k, cond := range x.conds {
		hits, err := filterNode(cond, b, left, x.hits)
		if err != nil {
			return nil, err
		}
		if len(hits) == 0 {
			continue
		}
		v, err := x.thens[k].eval(b, hits)
		if err != nil {
			return nil, err
		}
		if len(hits) == len(rows) {
			return v, nil
		}
		x.mix.put(v, hits)
		left = subtract(left, hits, x.mark)
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		if x.els == nil {
			x.mix.null(left)
		} else {
			v, err := x.els.eval(b, left)
			if err != nil {
				return nil, err
			}
			if len(left) == len(rows) {
				return v, nil
			}
			x.mix.put(v, left)
		}
	}
	return x.mix.end(), nil
}

// subtract removes the ascending rows hits from the ascending rows left, in place.
func subtract(left, hits []uint16, _ []bool) []uint16 {
	j, h := 0, 0
	for _, i := range left {
		if h < len(hits) && hits[h] == i {
			h++
			continue
		}
		left[j] = i
		j++
	}
	return left[:j]
}

type coalesceNode struct {
	args []node
	t    vector.Type
	mix  mixer
	left []uint16
	some []uint16
}

func (x *coalesceNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	rows := rowsOf(sel, b.n)
	x.left, x.some = grown(x.left, b.n), grown(x.some, b.n)
	left := x.left[:copy(x.left, rows)]
	x.mix.begin(x.t, b.n)
	for _, a := range x.args {
		v, err := a.eval(b, left)
		if err != nil {
			return nil, err
		}
		some := notNull(v, left, x.some)
		if len(some) == len(rows) {
			return v, nil
		}
		if len(some) == 0 {
			continue
		}
		x.mix.put(v, some)
		if len(some) == len(left) {
			left = left[:0]
			break
		}
		left = subtract(left, some, nil)
	}
	x.mix.null(left)
	return x.mix.end(), nil
}

// tryNode turns errors of the data into nulls: when a chunk fails it goes on row by row.
type tryNode struct {
	arg node
	t   vector.Type
}

func (x *tryNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	v, err := x.arg.eval(b, sel)
	if err == nil || !dataError(err) {
		return v, err
	}
	out := vector.NewBuilder(x.t)
	one := make([]uint16, 1)
	next := 0
	rows := rowsOf(sel, b.n)
	for i := range b.n {
		if next >= len(rows) || int(rows[next]) != i {
			out.AppendNull()
			continue
		}
		next++
		one[0] = uint16(i)
		v, err := x.arg.eval(b, one)
		switch {
		case err == nil:
			out.AppendFrom(v, i)
		case dataError(err):
			out.AppendNull()
		default:
			return nil, err
		}
	}
	return out.Finish(), nil
}

// dataError reports whether TRY may swallow err.
func dataError(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	switch f.ID {
	case "DIVISION_BY_ZERO", "NUMERIC_VALUE_OUT_OF_RANGE", "INVALID_CAST_ARGUMENT", "INVALID_FUNCTION_ARGUMENT", "INVALID_LITERAL":
		return true
	}
	return false
}
