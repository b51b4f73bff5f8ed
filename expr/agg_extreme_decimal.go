package expr

import "github.com/skua-db/skua/vector"

// extremeDecAcc is min (-1), max (1) or any value (0) of long decimals, without a value on the heap for each row.
type extremeDecAcc struct {
	t    vector.Type
	want int
	best []vector.Int128
	seen []bool
	live liveRows
}

func (a *extremeDecAcc) Resize(n int) { a.best, a.seen = extend(a.best, n), extend(a.seen, n) }

func (a *extremeDecAcc) offer(g uint32, x vector.Int128) {
	if !a.seen[g] || a.want != 0 && x.Cmp(a.best[g])*a.want > 0 {
		a.best[g], a.seen[g] = x, true
	}
}

func (a *extremeDecAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	if len(rows) == 0 {
		return nil
	}
	c := colOf[vector.Int128](args[0])
	for k, i := range rows {
		g := uint32(0)
		if groups != nil {
			g = gs[k]
		}
		a.offer(g, c.at(int(i)))
	}
	return nil
}

func (a *extremeDecAcc) Merge(src Accumulator, to []uint32) error {
	s := src.(*extremeDecAcc)
	for g, x := range s.best {
		if t := to[g]; s.seen[g] && t != NoGroup {
			a.offer(t, x)
		}
	}
	return nil
}

func (a *extremeDecAcc) Result(lo, hi int) (*vector.Vector, error) {
	return &vector.Vector{Type: a.t, Valid: validBits(a.seen[lo:hi]), I128: a.best[lo:hi:hi]}, nil
}

func (a *extremeDecAcc) Bytes() int64 { return int64(17 * cap(a.best)) }
