package expr

import (
	"slices"

	"github.com/skua-db/skua/vector"
)

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
	per := int64(64 + 48*len(o.a.Inputs()))
	for g, rs := range s.rows {
		if to[g] == NoGroup {
			continue
		}
		o.rows[to[g]] = append(o.rows[to[g]], rs...)
		o.held += int64(len(rs)) * per
	}
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
