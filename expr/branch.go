package expr

import (
	"errors"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

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
