package expr

import (
	"slices"

	"github.com/skua-db/skua/vector"
)

// distinctAcc feeds each distinct argument list of a group once. It keeps the lists themselves, so that partial states can be merged.
type distinctAcc struct {
	a    *Aggregate
	acc  Accumulator
	seen map[string]struct{}
	keys []distinctKey
	held int64
	key  []byte
	live []uint16
	gs   []uint32
}

type distinctKey struct {
	group uint32
	args  []vector.Value
}

func newDistinct(a *Aggregate, acc Accumulator) Accumulator {
	return &distinctAcc{a: a, acc: acc, seen: map[string]struct{}{}}
}

func (d *distinctAcc) Resize(n int) { d.acc.Resize(n) }

func (d *distinctAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows := rowsOf(sel, n)
	d.live, d.gs = grown(d.live, len(rows)), grown(d.gs, len(rows))
	j := 0
	for k, i := range rows {
		g := uint32(0)
		if groups != nil {
			g = groups[k]
		}
		if !d.note(g, args[:len(d.a.Args)], int(i)) {
			continue
		}
		d.live[j], d.gs[j] = i, g
		j++
	}
	if j == 0 {
		return nil
	}
	return d.acc.Add(d.gs[:j], args, d.live[:j], n)
}

// note remembers a list of arguments and reports whether it is new.
func (d *distinctAcc) note(g uint32, args []*vector.Vector, i int) bool {
	d.key = append(d.key[:0], byte(g), byte(g>>8), byte(g>>16), byte(g>>24))
	for _, a := range args {
		d.key = AppendKey(d.key, a, i)
	}
	if _, ok := d.seen[string(d.key)]; ok {
		return false
	}
	d.seen[string(d.key)] = struct{}{}
	vs := make([]vector.Value, len(args))
	for k, a := range args {
		vs[k] = a.Get(i)
	}
	d.keys = append(d.keys, distinctKey{g, vs})
	d.held += int64(2*len(d.key)) + 96
	return true
}

func (d *distinctAcc) Merge(src Accumulator, to []uint32) error {
	// Arguments seen on both sides must count once: src's lists are fed again, its states are not used.
	s := src.(*distinctAcc)
	const batch = vector.Size
	for lo := 0; lo < len(s.keys); lo += batch {
		part := s.keys[lo:min(lo+batch, len(s.keys))]
		gs := make([]uint32, len(part))
		cols := make([]*vector.Vector, len(d.a.Args))
		for c := range cols {
			b := vector.NewBuilder(d.a.Args[c].Type())
			for i, k := range part {
				b.Append(k.args[c])
				gs[i] = to[k.group]
			}
			cols[c] = b.Finish()
		}
		// With DISTINCT the sort keys are arguments, as the binder has checked; any other key cannot decide.
		for _, k := range d.a.OrderBy {
			at := 0
			for c, a := range d.a.Args {
				if Equal(a, k.Expr) {
					at = c
				}
			}
			cols = append(cols, cols[at])
		}
		if err := d.Add(gs, cols, nil, len(part)); err != nil {
			return err
		}
	}
	return nil
}

func (d *distinctAcc) Result(lo, hi int) (*vector.Vector, error) { return d.acc.Result(lo, hi) }
func (d *distinctAcc) Bytes() int64                              { return d.held + d.acc.Bytes() }

// orderedAcc keeps the rows of each group until the end and feeds them in the order of the aggregate's ORDER BY.
type orderedAcc struct {
	a    *Aggregate
	acc  Accumulator
	rows [][]orderedRow
	held int64
	done bool
}

type orderedRow struct{ args, keys []vector.Value }

func newOrdered(a *Aggregate, acc Accumulator) Accumulator { return &orderedAcc{a: a, acc: acc} }

func (o *orderedAcc) Resize(n int) {
	for len(o.rows) < n {
		o.rows = append(o.rows, nil)
	}
	o.acc.Resize(n)
}

func (o *orderedAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	na := len(o.a.Args)
	for k, i := range rowsOf(sel, n) {
		g := uint32(0)
		if groups != nil {
			g = groups[k]
		}
		r := orderedRow{make([]vector.Value, na), make([]vector.Value, len(args)-na)}
		for c, a := range args {
			if c < na {
				r.args[c] = a.Get(int(i))
			} else {
				r.keys[c-na] = a.Get(int(i))
			}
		}
		o.rows[g] = append(o.rows[g], r)
		o.held += int64(64 + 48*len(args))
	}
	return nil
}

func (o *orderedAcc) Merge(src Accumulator, to []uint32) error {
	s := src.(*orderedAcc)
	for g, rs := range s.rows {
		o.rows[to[g]] = append(o.rows[to[g]], rs...)
	}
	o.held += s.held
	return nil
}

func (o *orderedAcc) Result(lo, hi int) (*vector.Vector, error) {
	if !o.done {
		o.done = true
		for g, rs := range o.rows {
			slices.SortStableFunc(rs, func(x, y orderedRow) int { return CompareKeys(o.a.OrderBy, x.keys, y.keys) })
			for from := 0; from < len(rs); from += vector.Size {
				part := rs[from:min(from+vector.Size, len(rs))]
				cols := make([]*vector.Vector, len(o.a.Args))
				for c := range cols {
					b := vector.NewBuilder(o.a.Args[c].Type())
					for _, r := range part {
						b.Append(r.args[c])
					}
					cols[c] = b.Finish()
				}
				gs := make([]uint32, len(part))
				for i := range gs {
					gs[i] = uint32(g)
				}
				if err := o.acc.Add(gs, cols, nil, len(part)); err != nil {
					return nil, err
				}
			}
		}
		o.rows = nil
	}
	return o.acc.Result(lo, hi)
}

func (o *orderedAcc) Bytes() int64 { return o.held + o.acc.Bytes() }

// CompareKeys orders two lists of sort key values.
func CompareKeys(keys []SortKey, x, y []vector.Value) int {
	for i, k := range keys {
		a, b := x[i], y[i]
		if a == nil || b == nil {
			if a == nil && b == nil {
				continue
			}
			if (a == nil) == k.NullsFirst {
				return -1
			}
			return 1
		}
		c := CompareValues(k.Expr.Type(), a, b)
		if c == 0 {
			continue
		}
		if k.Desc {
			return -c
		}
		return c
	}
	return 0
}
