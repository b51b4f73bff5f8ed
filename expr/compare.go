package expr

import (
	"bytes"
	"cmp"

	"github.com/skua-db/skua/vector"
)

// col reads rows of a vector of fixed-width values whatever its form.
type col[T any] struct {
	v     []T
	codes []int32
	mask  int // -1 flat, 0 constant
}

func (c *col[T]) at(i int) T {
	if c.codes != nil {
		return c.v[c.codes[i]]
	}
	return c.v[i&c.mask]
}

// dense gives the values as a slice indexed by row, in buf unless they are one already; only the given rows count.
func (c *col[T]) dense(rows []uint16, n int, buf *[]T) []T {
	if c.codes == nil && c.mask != 0 {
		return c.v
	}
	*buf = grown(*buf, n)
	out := *buf
	if c.codes == nil {
		x := c.v[0]
		for _, i := range rows {
			out[i] = x
		}
		return out
	}
	for _, i := range rows {
		out[i] = c.v[c.codes[i]]
	}
	return out
}

func payload[T any](v *vector.Vector) []T {
	var p any
	switch any((*T)(nil)).(type) {
	case *bool:
		p = v.Bools
	case *int32:
		p = v.I32
	case *int64:
		p = v.I64
	case *vector.Int128:
		p = v.I128
	case *float32:
		p = v.F32
	case *float64:
		p = v.F64
	case *vector.View:
		p = v.Views
	}
	return p.([]T)
}

func colOf[T any](v *vector.Vector) col[T] {
	switch v.Form {
	case vector.Constant:
		return col[T]{v: payload[T](v)}
	case vector.Dictionary:
		return col[T]{v: payload[T](v.Dict), codes: v.Codes}
	}
	return col[T]{v: payload[T](v), mask: -1}
}

// notNull gives the rows of sel that are not null in v, in dst unless all are.
func notNull(v *vector.Vector, sel, dst []uint16) []uint16 {
	if v.Type.Kind == vector.Null {
		return dst[:0]
	}
	if v.Valid == nil {
		return sel
	}
	if v.Form == vector.Constant {
		if v.Valid.Get(0) {
			return sel
		}
		return dst[:0]
	}
	j := 0
	dst = dst[:cap(dst)]
	valid := v.Valid
	for _, i := range sel {
		dst[j] = i
		j += int(valid[i>>6] >> (i & 63) & 1)
	}
	return dst[:j]
}

// andValid sets out's validity to the rows valid in every argument; it reports whether any of them has nulls.
func andValid(out *vector.Vector, scratch *vector.Bitmap, n int, args ...*vector.Vector) bool {
	var bm vector.Bitmap
	for _, a := range args {
		if a == nil {
			continue
		}
		if a.Type.Kind == vector.Null || a.Form == vector.Constant && a.IsNull(0) {
			bm = resizeBitmap(scratch, n)
			clear(bm)
			out.Valid = bm
			return true
		}
		if a.Valid == nil || a.Form == vector.Constant {
			continue
		}
		if bm == nil {
			bm = resizeBitmap(scratch, n)
			copy(bm, a.Valid)
			continue
		}
		for w := range bm {
			bm[w] &= a.Valid[w]
		}
	}
	out.Valid = bm
	return bm != nil
}

// selectBitmap gives the rows of sel whose bit is set.
func selectBitmap(bm vector.Bitmap, sel, dst []uint16) []uint16 {
	j := 0
	dst = dst[:cap(dst)]
	for _, i := range sel {
		dst[j] = i
		j += int(bm[i>>6] >> (i & 63) & 1)
	}
	return dst[:j]
}

// compareNode compares two operands that are not both nested. It filters without a boolean vector; eval scatters the outcome.
type compareNode struct {
	op   CompareOp
	l, r node
	t    vector.Type
	out  result
	s1   []uint16
	s2   []uint16
	dict dictMatch
}

func (c *compiler) compare(e *Compare) (node, error) {
	l, err := c.compile(e.L)
	if err != nil {
		return nil, err
	}
	r, err := c.compile(e.R)
	if err != nil {
		return nil, err
	}
	op := e.Op
	if _, ok := l.(*constNode); ok {
		if _, ok := r.(*constNode); !ok {
			l, r, op = r, l, op.Flip()
		}
	}
	t := e.L.Type()
	if t.Kind == vector.Null {
		t = e.R.Type()
	}
	if nested(t) || t.Kind == vector.JSON {
		return &nestedCompareNode{op: op, l: l, r: r, t: t}, nil
	}
	return &compareNode{op: op, l: l, r: r, t: t}, nil
}

func (x *compareNode) operands(b *batch, sel []uint16) (l, r *vector.Vector, err error) {
	if l, err = x.l.eval(b, sel); err != nil {
		return nil, nil, err
	}
	r, err = x.r.eval(b, sel)
	return l, r, err
}

func (x *compareNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	rows := rowsOf(sel, b.n)
	l, r, err := x.operands(b, rows)
	if err != nil {
		return nil, err
	}
	x.s1 = grown(x.s1, b.n)
	hits := x.hits(l, r, b.n, rows, x.s1)
	v := x.out.reset(boolean, b.n)
	for _, i := range rows {
		v.Bools[i] = false
	}
	for _, i := range hits {
		v.Bools[i] = true
	}
	if x.op < Distinct {
		andValid(v, &x.out.valid, b.n, l, r)
	}
	return v, nil
}

func (x *compareNode) filter(b *batch, sel, dst []uint16) ([]uint16, error) {
	l, r, err := x.operands(b, sel)
	if err != nil {
		return nil, err
	}
	return x.hits(l, r, b.n, sel, dst), nil
}

// hits gives the rows for which the comparison is true.
func (x *compareNode) hits(l, r *vector.Vector, n int, sel, dst []uint16) []uint16 {
	if x.op >= Distinct {
		return x.distinct(l, r, n, sel, dst)
	}
	if r.Form == vector.Constant && l.Form == vector.Dictionary && !r.IsNull(0) && r.Type.Kind != vector.Null {
		if d := l.Dict.StoredLen(); d <= len(sel) {
			return x.dict.filter(l, d, sel, dst, func(v *vector.Vector, sel, dst []uint16) []uint16 {
				return comparePhysical(x.op, v, r, sel, dst)
			})
		}
	}
	x.s2 = grown(x.s2, n)
	sel = notNull(l, sel, x.s2)
	sel = notNull(r, sel, x.s2)
	if len(sel) == 0 {
		return dst[:0]
	}
	return comparePhysical(x.op, l, r, sel, dst)
}

// dictMatch evaluates a predicate once for each value of a dictionary.
type dictMatch struct {
	table []bool
	rows  []uint16
}

func (m *dictMatch) filter(v *vector.Vector, d int, sel, dst []uint16, f func(v *vector.Vector, sel, dst []uint16) []uint16) []uint16 {
	m.table = grown(m.table, d)
	clear(m.table)
	m.rows = grown(m.rows, d)
	for _, i := range f(v.Dict, identity(d), m.rows) {
		m.table[i] = true
	}
	return selectCodes(v, m.table, sel, dst)
}

func selectCodes(v *vector.Vector, table []bool, sel, dst []uint16) []uint16 {
	j := 0
	dst = dst[:cap(dst)]
	codes := v.Codes
	if v.Valid == nil {
		for _, i := range sel {
			dst[j] = i
			if table[codes[i]] {
				j++
			}
		}
		return dst[:j]
	}
	for _, i := range sel {
		if v.Valid[i>>6]&(1<<(i&63)) != 0 && table[codes[i]] {
			dst[j] = i
			j++
		}
	}
	return dst[:j]
}

// distinct handles IS [NOT] DISTINCT FROM, where nulls equal each other and NaN equals NaN.
func (x *compareNode) distinct(l, r *vector.Vector, n int, sel, dst []uint16) []uint16 {
	j := 0
	dst = dst[:cap(dst)]
	eq := rowEqual(x.t, l, r)
	for _, i := range sel {
		a, b := l.IsNull(int(i)), r.IsNull(int(i))
		same := a && b || !a && !b && eq(int(i))
		dst[j] = i
		if same == (x.op == NotDistinct) {
			j++
		}
	}
	return dst[:j]
}

func rowEqual(t vector.Type, l, r *vector.Vector) func(i int) bool {
	switch t.Physical() {
	case vector.PBool:
		return equalRows[bool](l, r)
	case vector.PInt32:
		return equalRows[int32](l, r)
	case vector.PInt64:
		return equalRows[int64](l, r)
	case vector.PInt128:
		return equalRows[vector.Int128](l, r)
	case vector.PFloat32:
		return equalRows[float32](l, r)
	case vector.PFloat64:
		return equalRows[float64](l, r)
	case vector.PView:
		return func(i int) bool { return bytes.Equal(l.Bytes(i), r.Bytes(i)) }
	}
	return func(i int) bool { return true }
}

func equalRows[T comparable](l, r *vector.Vector) func(i int) bool {
	if l.Type.Kind == vector.Null || r.Type.Kind == vector.Null {
		return func(int) bool { return false }
	}
	a, b := colOf[T](l), colOf[T](r)
	return func(i int) bool {
		x, y := a.at(i), b.at(i)
		return x == y || x != x && y != y
	}
}

// comparePhysical compares rows that are not null in either operand.
func comparePhysical(op CompareOp, l, r *vector.Vector, sel, dst []uint16) []uint16 {
	dst = dst[:cap(dst)]
	switch l.Type.Physical() {
	case vector.PBool:
		return compareBools(op, colOf[bool](l), colOf[bool](r), sel, dst)
	case vector.PInt32:
		return compareOrdered[int32](op, l, r, sel, dst)
	case vector.PInt64:
		return compareOrdered[int64](op, l, r, sel, dst)
	case vector.PFloat32:
		return compareOrdered[float32](op, l, r, sel, dst)
	case vector.PFloat64:
		return compareOrdered[float64](op, l, r, sel, dst)
	case vector.PInt128:
		a, b := colOf[vector.Int128](l), colOf[vector.Int128](r)
		return compareBy(op, sel, dst, func(i int) int { return a.at(i).Cmp(b.at(i)) })
	case vector.PView:
		return compareViews(op, l, r, sel, dst)
	}
	return dst[:0]
}

func compareOrdered[T cmp.Ordered](op CompareOp, l, r *vector.Vector, sel, dst []uint16) []uint16 {
	if l.Form == vector.Flat && r.Form == vector.Constant {
		return compareConst(op, payload[T](l), payload[T](r)[0], sel, dst)
	}
	a, b := colOf[T](l), colOf[T](r)
	j := 0
	switch op {
	case Eq:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) == b.at(int(i)) {
				j++
			}
		}
	case Ne:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) != b.at(int(i)) {
				j++
			}
		}
	case Lt:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) < b.at(int(i)) {
				j++
			}
		}
	case Le:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) <= b.at(int(i)) {
				j++
			}
		}
	case Gt:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) > b.at(int(i)) {
				j++
			}
		}
	case Ge:
		for _, i := range sel {
			dst[j] = i
			if a.at(int(i)) >= b.at(int(i)) {
				j++
			}
		}
	}
	return dst[:j]
}

// compareConst is the scan's hottest loop: a flat column against a constant, without branches on the outcome.
func compareConst[T cmp.Ordered](op CompareOp, v []T, k T, sel, dst []uint16) []uint16 {
	if len(sel) == 0 {
		return dst[:0]
	}
	v = v[:int(sel[len(sel)-1])+1]
	j := 0
	switch op {
	case Eq:
		for _, i := range sel {
			dst[j] = i
			if v[i] == k {
				j++
			}
		}
	case Ne:
		for _, i := range sel {
			dst[j] = i
			if v[i] != k {
				j++
			}
		}
	case Lt:
		for _, i := range sel {
			dst[j] = i
			if v[i] < k {
				j++
			}
		}
	case Le:
		for _, i := range sel {
			dst[j] = i
			if v[i] <= k {
				j++
			}
		}
	case Gt:
		for _, i := range sel {
			dst[j] = i
			if v[i] > k {
				j++
			}
		}
	case Ge:
		for _, i := range sel {
			dst[j] = i
			if v[i] >= k {
				j++
			}
		}
	}
	return dst[:j]
}

func compareBools(op CompareOp, a, b col[bool], sel, dst []uint16) []uint16 {
	return compareBy(op, sel, dst, func(i int) int {
		x, y := a.at(i), b.at(i)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	})
}

func compareBy(op CompareOp, sel, dst []uint16, f func(i int) int) []uint16 {
	j := 0
	for _, i := range sel {
		dst[j] = i
		if opHolds(op, f(int(i))) {
			j++
		}
	}
	return dst[:j]
}

func opHolds(op CompareOp, c int) bool {
	switch op {
	case Eq:
		return c == 0
	case Ne:
		return c != 0
	case Lt:
		return c < 0
	case Le:
		return c <= 0
	case Gt:
		return c > 0
	case Ge:
		return c >= 0
	}
	return false
}

func compareViews(op CompareOp, l, r *vector.Vector, sel, dst []uint16) []uint16 {
	a, b := colOf[vector.View](l), colOf[vector.View](r)
	ab, bb := l.Values().Bufs, r.Values().Bufs
	j := 0
	if op == Eq || op == Ne {
		for _, i := range sel {
			x, y := a.ptr(int(i)), b.ptr(int(i))
			dst[j] = i
			if vector.EqualViews(x, ab, y, bb) == (op == Eq) {
				j++
			}
		}
		return dst[:j]
	}
	for _, i := range sel {
		dst[j] = i
		if opHolds(op, vector.CompareViews(a.ptr(int(i)), ab, b.ptr(int(i)), bb)) {
			j++
		}
	}
	return dst[:j]
}

func (c *col[T]) ptr(i int) *T {
	if c.codes != nil {
		return &c.v[c.codes[i]]
	}
	return &c.v[i&c.mask]
}

// nestedCompareNode compares arrays, maps, rows and JSON value by value; a null inside makes = null unless a difference decides.
type nestedCompareNode struct {
	op   CompareOp
	l, r node
	t    vector.Type
	out  result
}

func (x *nestedCompareNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	l, err := x.l.eval(b, sel)
	if err != nil {
		return nil, err
	}
	r, err := x.r.eval(b, sel)
	if err != nil {
		return nil, err
	}
	v := x.out.reset(boolean, b.n)
	for _, i := range rowsOf(sel, b.n) {
		res, null := compareValues3(x.op, x.t, l.Get(int(i)), r.Get(int(i)))
		v.Bools[i] = res
		if null {
			v.SetNull(int(i), b.n)
		}
	}
	return v, nil
}
