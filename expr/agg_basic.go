package expr

import (
	"cmp"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

func init() {
	always := func(s *aggSig) { s.notNull = true }
	free := func(s *aggSig) { s.distinctFree = true }
	defAgg("count", "() bigint", "number of rows, or of values that are not null", func(*Aggregate, *Context) (Accumulator, error) { return &countAcc{}, nil }, always)
	defAgg("count", "(any) bigint", "number of values that are not null", func(*Aggregate, *Context) (Accumulator, error) { return &countAcc{}, nil }, always)
	defAgg("count_if", "(boolean) bigint", "number of true values", func(*Aggregate, *Context) (Accumulator, error) { return &countIfAcc{}, nil }, always)
	for _, k := range []string{"tinyint", "smallint", "integer"} {
		defAgg("sum", "("+k+") bigint", "sum", func(*Aggregate, *Context) (Accumulator, error) { return &sumIntAcc[int32]{}, nil })
		defAgg("avg", "("+k+") double", "arithmetic mean", func(*Aggregate, *Context) (Accumulator, error) { return &avgAcc[int32]{}, nil })
	}
	defAgg("sum", "(bigint) bigint", "sum", func(*Aggregate, *Context) (Accumulator, error) { return &sumIntAcc[int64]{}, nil })
	defAgg("avg", "(bigint) double", "arithmetic mean", func(*Aggregate, *Context) (Accumulator, error) { return &avgAcc[int64]{}, nil })
	defAgg("sum", "(real) real", "sum", func(*Aggregate, *Context) (Accumulator, error) { return &sumFloatAcc[float32]{}, nil })
	defAgg("sum", "(double) double", "sum", func(*Aggregate, *Context) (Accumulator, error) { return &sumFloatAcc[float64]{}, nil })
	defAgg("avg", "(real) real", "arithmetic mean", func(*Aggregate, *Context) (Accumulator, error) { return &avgAcc[float32]{real: true}, nil })
	defAgg("avg", "(double) double", "arithmetic mean", func(*Aggregate, *Context) (Accumulator, error) { return &avgAcc[float64]{}, nil })
	decSum := func(s *aggSig) {
		s.result = func(t []vector.Type) (vector.Type, error) { return vector.DecimalOf(maxPrecision, t[0].Scale), nil }
	}
	same := func(s *aggSig) { s.result = func(t []vector.Type) (vector.Type, error) { return t[0], nil } }
	defAgg("sum", "(decimal) decimal", "sum", func(a *Aggregate, _ *Context) (Accumulator, error) {
		return &sumDecAcc{t: a.Typ, short: a.Args[0].Type().Physical() == vector.PInt64}, nil
	}, decSum)
	defAgg("avg", "(decimal) decimal", "arithmetic mean, rounded half up", func(a *Aggregate, _ *Context) (Accumulator, error) {
		return &sumDecAcc{t: a.Typ, short: a.Args[0].Type().Physical() == vector.PInt64, avg: true}, nil
	}, same)
	sumInterval := func(*Aggregate, *Context) (Accumulator, error) { return &sumIntAcc[int64]{}, nil }
	defAgg("sum", "(interval_day) interval_day", "sum", sumInterval)
	intervalAggregates()
	order := func(s *aggSig) {
		free(s)
		s.result = func(t []vector.Type) (vector.Type, error) {
			if !Orderable(t[0]) {
				return unknown, mismatch("values of type %s have no order", t[0])
			}
			return t[0], nil
		}
	}
	defAgg("min", "(T) T", "smallest value; NaN only when there is nothing else", func(a *Aggregate, _ *Context) (Accumulator, error) { return newExtreme(a.Typ, -1), nil }, order)
	defAgg("max", "(T) T", "largest value; NaN only when there is nothing else", func(a *Aggregate, _ *Context) (Accumulator, error) { return newExtreme(a.Typ, 1), nil }, order)
	defAgg("any_value arbitrary", "(T) T", "some value that is not null", func(a *Aggregate, _ *Context) (Accumulator, error) { return newExtreme(a.Typ, 0), nil }, free)
	defAgg("bool_and every", "(boolean) boolean", "whether every value is true", func(a *Aggregate, _ *Context) (Accumulator, error) { return newExtreme(a.Typ, -1), nil }, free)
	defAgg("bool_or", "(boolean) boolean", "whether any value is true", func(a *Aggregate, _ *Context) (Accumulator, error) { return newExtreme(a.Typ, 1), nil }, free)
}

// liveRows gives the selected rows where v is not null, and their groups.
type liveRows struct {
	rows   []uint16
	groups []uint32
}

func (l *liveRows) of(v *vector.Vector, groups []uint32, sel []uint16, n int) ([]uint16, []uint32) {
	rows := rowsOf(sel, n)
	if v.Type.Kind == vector.Null {
		return nil, nil
	}
	if v.Valid == nil {
		return rows, groups
	}
	if groups == nil {
		l.rows = grown(l.rows, n)
		return notNull(v, rows, l.rows), nil
	}
	l.rows, l.groups = grown(l.rows, len(rows)), grown(l.groups, len(rows))
	j := 0
	for k, i := range rows {
		if !v.IsNull(int(i)) {
			l.rows[j], l.groups[j] = i, groups[k]
			j++
		}
	}
	return l.rows[:j], l.groups[:j]
}

func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n <= cap(s) {
		return s[:n]
	}
	t := make([]T, n, max(n, 2*cap(s), 16))
	copy(t, s)
	return t
}

type countAcc struct{ n []int64 }

func (c *countAcc) Resize(n int) { c.n = extend(c.n, n) }
func (c *countAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows := rowsOf(sel, n)
	if len(args) > 0 && (args[0].Valid != nil || args[0].Type.Kind == vector.Null) {
		v := args[0]
		for k, i := range rows {
			if !v.IsNull(int(i)) {
				g := uint32(0)
				if groups != nil {
					g = groups[k]
				}
				c.n[g]++
			}
		}
		return nil
	}
	if groups == nil {
		c.n[0] += int64(len(rows))
		return nil
	}
	for _, g := range groups[:len(rows)] {
		c.n[g]++
	}
	return nil
}
func (c *countAcc) Merge(src Accumulator, to []uint32) error {
	for g, n := range src.(*countAcc).n {
		if g < len(to) && to[g] != NoGroup {
			c.n[to[g]] += n
		}
	}
	return nil
}
func (c *countAcc) Result(lo, hi int) (*vector.Vector, error) {
	return &vector.Vector{Type: bigint, I64: c.n[lo:hi:hi]}, nil
}
func (c *countAcc) Bytes() int64 { return int64(8 * cap(c.n)) }

type countIfAcc struct{ countAcc }

func (c *countIfAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	b := args[0]
	for k, i := range rowsOf(sel, n) {
		if !b.IsNull(int(i)) && b.Values().Bools[b.Index(int(i))] {
			g := uint32(0)
			if groups != nil {
				g = groups[k]
			}
			c.n[g]++
		}
	}
	return nil
}
func (c *countIfAcc) Merge(src Accumulator, to []uint32) error {
	return c.countAcc.Merge(&src.(*countIfAcc).countAcc, to)
}

// validBits turns "has a value" flags of groups into a validity bitmap; nil when all have one.
func validBits(seen []bool) vector.Bitmap {
	var bm vector.Bitmap
	for i, s := range seen {
		if !s {
			if bm == nil {
				bm = vector.NewBitmap(len(seen), true)
			}
			bm.Clear(i)
		}
	}
	return bm
}

type sumIntAcc[T int32 | int64] struct {
	buf  []T
	sum  []int64
	seen []bool
	live liveRows
}

func (a *sumIntAcc[T]) Resize(n int) { a.sum, a.seen = extend(a.sum, n), extend(a.seen, n) }
func (a *sumIntAcc[T]) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	if len(rows) == 0 {
		return nil
	}
	c := colOf[T](args[0])
	vals := c.dense(rows, n, &a.buf)
	var bad int64
	if groups == nil {
		s := a.sum[0]
		for _, i := range rows {
			x := int64(vals[i])
			r := s + x
			bad |= (s ^ r) & (x ^ r)
			s = r
		}
		a.sum[0], a.seen[0] = s, true
	} else {
		for k, i := range rows {
			g, x := gs[k], int64(vals[i])
			s := a.sum[g]
			r := s + x
			bad |= (s ^ r) & (x ^ r)
			a.sum[g], a.seen[g] = r, true
		}
	}
	if bad < 0 {
		return overflow("bigint overflow in sum")
	}
	return nil
}
func (a *sumIntAcc[T]) Merge(src Accumulator, to []uint32) error {
	s := src.(*sumIntAcc[T])
	for g, x := range s.sum {
		if !s.seen[g] || to[g] == NoGroup {
			continue
		}
		t := to[g]
		r := a.sum[t] + x
		if (a.sum[t]^r)&(x^r) < 0 {
			return overflow("bigint overflow in sum")
		}
		a.sum[t], a.seen[t] = r, true
	}
	return nil
}
func (a *sumIntAcc[T]) Result(lo, hi int) (*vector.Vector, error) {
	return &vector.Vector{Type: bigint, I64: a.sum[lo:hi:hi], Valid: validBits(a.seen[lo:hi])}, nil
}
func (a *sumIntAcc[T]) Bytes() int64 { return int64(9 * cap(a.sum)) }

type sumFloatAcc[T float32 | float64] struct {
	sum  []float64
	seen []bool
	live liveRows
}

func (a *sumFloatAcc[T]) Resize(n int) { a.sum, a.seen = extend(a.sum, n), extend(a.seen, n) }
func (a *sumFloatAcc[T]) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	if len(rows) == 0 {
		return nil
	}
	c := colOf[T](args[0])
	if groups == nil {
		// Four sums break the chain of dependent additions.
		var s0, s1, s2, s3 float64
		k := 0
		for ; k+4 <= len(rows); k += 4 {
			s0 += float64(c.at(int(rows[k])))
			s1 += float64(c.at(int(rows[k+1])))
			s2 += float64(c.at(int(rows[k+2])))
			s3 += float64(c.at(int(rows[k+3])))
		}
		for ; k < len(rows); k++ {
			s0 += float64(c.at(int(rows[k])))
		}
		a.sum[0] += (s0 + s1) + (s2 + s3)
		a.seen[0] = true
		return nil
	}
	for k, i := range rows {
		a.sum[gs[k]] += float64(c.at(int(i)))
		a.seen[gs[k]] = true
	}
	return nil
}
func (a *sumFloatAcc[T]) Merge(src Accumulator, to []uint32) error {
	s := src.(*sumFloatAcc[T])
	for g, x := range s.sum {
		if s.seen[g] && to[g] != NoGroup {
			a.sum[to[g]] += x
			a.seen[to[g]] = true
		}
	}
	return nil
}
func (a *sumFloatAcc[T]) Result(lo, hi int) (*vector.Vector, error) {
	var zero T
	if _, ok := any(zero).(float32); ok {
		v := vector.New(real32, hi-lo)
		for i, s := range a.sum[lo:hi] {
			v.F32[i] = float32(s)
		}
		v.Valid = validBits(a.seen[lo:hi])
		return v, nil
	}
	return &vector.Vector{Type: double, F64: a.sum[lo:hi:hi], Valid: validBits(a.seen[lo:hi])}, nil
}
func (a *sumFloatAcc[T]) Bytes() int64 { return int64(9 * cap(a.sum)) }

// avgAcc averages in double.
type avgAcc[T int32 | int64 | float32 | float64] struct {
	real bool
	sum  []float64
	n    []int64
	live liveRows
}

func (a *avgAcc[T]) Resize(n int) { a.sum, a.n = extend(a.sum, n), extend(a.n, n) }
func (a *avgAcc[T]) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	c := colOf[T](args[0])
	if groups == nil {
		s := 0.0
		for _, i := range rows {
			s += float64(c.at(int(i)))
		}
		a.sum[0] += s
		a.n[0] += int64(len(rows))
		return nil
	}
	for k, i := range rows {
		a.sum[gs[k]] += float64(c.at(int(i)))
		a.n[gs[k]]++
	}
	return nil
}
func (a *avgAcc[T]) Merge(src Accumulator, to []uint32) error {
	s := src.(*avgAcc[T])
	for g, n := range s.n {
		if n > 0 && to[g] != NoGroup {
			a.sum[to[g]] += s.sum[g]
			a.n[to[g]] += n
		}
	}
	return nil
}
func (a *avgAcc[T]) Result(lo, hi int) (*vector.Vector, error) {
	t := double
	if a.real {
		t = real32
	}
	v := vector.New(t, hi-lo)
	for i := range hi - lo {
		switch {
		case a.n[lo+i] == 0:
			v.SetNull(i, hi-lo)
		case a.real:
			v.F32[i] = float32(a.sum[lo+i] / float64(a.n[lo+i]))
		default:
			v.F64[i] = a.sum[lo+i] / float64(a.n[lo+i])
		}
	}
	return v, nil
}
func (a *avgAcc[T]) Bytes() int64 { return int64(16 * cap(a.sum)) }

// sumDecAcc sums unscaled values in 128 bits; avg divides the sum by the count, half up.
type sumDecAcc struct {
	t     vector.Type
	short bool
	avg   bool
	sum   []vector.Int128
	n     []int64
	live  liveRows

	short64 []int64
	long128 []vector.Int128
}

func (a *sumDecAcc) Resize(n int) { a.sum, a.n = extend(a.sum, n), extend(a.n, n) }
func (a *sumDecAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	if len(rows) == 0 {
		return nil
	}
	ok := true
	if a.short {
		c := colOf[int64](args[0])
		if groups == nil {
			// 2,048 values below 10^18 fit a 64-bit sum of their halves: split high and low to stay exact.
			var hi, lo int64
			vals := c.dense(rows, n, &a.short64)
			for _, i := range rows {
				x := vals[i]
				hi += x >> 32
				lo += x & 0xFFFFFFFF
			}
			s, _ := add128(mulI64(hi, 1<<32), int128(lo))
			a.sum[0], ok = add128(a.sum[0], s)
			a.n[0] += int64(len(rows))
		} else {
			vals := c.dense(rows, n, &a.short64)
			for k, i := range rows {
				g, x := gs[k], vals[i]
				// Adding a sign-extended 64-bit number to fewer than 2^63 of its kind cannot overflow 128 bits.
				s := &a.sum[g]
				lo, carry := bits.Add64(s.LowBits(), uint64(x), 0)
				hi, _ := bits.Add64(uint64(s.HighBits()), uint64(x>>63), carry)
				*s = decimal128.New(int64(hi), lo)
				a.n[g]++
			}
		}
	} else {
		c := colOf[vector.Int128](args[0])
		vals := c.dense(rows, n, &a.long128)
		for k, i := range rows {
			g := uint32(0)
			if gs != nil {
				g = gs[k]
			}
			r, fine := add128(a.sum[g], vals[i])
			ok = ok && fine
			a.sum[g] = r
			a.n[g]++
		}
	}
	if !ok {
		return overflow("decimal overflow in sum")
	}
	return nil
}
func (a *sumDecAcc) Merge(src Accumulator, to []uint32) error {
	s := src.(*sumDecAcc)
	for g, x := range s.sum {
		if s.n[g] == 0 || to[g] == NoGroup {
			continue
		}
		r, ok := add128(a.sum[to[g]], x)
		if !ok {
			return overflow("decimal overflow in sum")
		}
		a.sum[to[g]] = r
		a.n[to[g]] += s.n[g]
	}
	return nil
}
func (a *sumDecAcc) Result(lo, hi int) (*vector.Vector, error) {
	v := vector.New(a.t, hi-lo)
	for i := range hi - lo {
		x := a.sum[lo+i]
		if a.n[lo+i] == 0 {
			v.SetNull(i, hi-lo)
			continue
		}
		if a.avg {
			x = divRound128(x, int128(a.n[lo+i]))
		}
		if !inDecimal(x, a.t.Precision) {
			return nil, overflow("decimal overflow in sum")
		}
		if a.t.Physical() == vector.PInt64 {
			v.I64[i] = int64(x.LowBits())
		} else {
			v.I128[i] = x
		}
	}
	return v, nil
}
func (a *sumDecAcc) Bytes() int64 { return int64(24 * cap(a.sum)) }

// newExtreme makes min (-1), max (1) or any value (0) for a type.
func newExtreme(t vector.Type, want int) Accumulator {
	switch t.Physical() {
	case vector.PInt32:
		return &extremeAcc[int32]{t: t, want: want}
	case vector.PInt64:
		return &extremeAcc[int64]{t: t, want: want}
	case vector.PFloat32:
		return &extremeAcc[float32]{t: t, want: want}
	case vector.PFloat64:
		return &extremeAcc[float64]{t: t, want: want}
	case vector.PInt128:
		return &extremeDecAcc{t: t, want: want}
	}
	return &extremeValueAcc{t: t, want: want}
}

type extremeAcc[T cmp.Ordered] struct {
	t    vector.Type
	want int
	best []T
	seen []bool
	live liveRows
}

func (a *extremeAcc[T]) Resize(n int) { a.best, a.seen = extend(a.best, n), extend(a.seen, n) }

// better reports whether x replaces y; NaN never replaces a number and always gives way to one.
func (a *extremeAcc[T]) better(x, y T) bool {
	if a.want < 0 {
		return x < y || y != y
	}
	return x > y || y != y
}

func (a *extremeAcc[T]) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows, gs := a.live.of(args[0], groups, sel, n)
	if len(rows) == 0 {
		return nil
	}
	c := colOf[T](args[0])
	if groups == nil {
		b := c.at(int(rows[0]))
		if a.seen[0] {
			b = a.best[0]
		}
		switch a.want {
		case -1:
			for _, i := range rows {
				if x := c.at(int(i)); x < b || b != b {
					b = x
				}
			}
		case 1:
			for _, i := range rows {
				if x := c.at(int(i)); x > b || b != b {
					b = x
				}
			}
		}
		a.best[0], a.seen[0] = b, true
		return nil
	}
	for k, i := range rows {
		g, x := gs[k], c.at(int(i))
		if !a.seen[g] || a.want != 0 && a.better(x, a.best[g]) {
			a.best[g], a.seen[g] = x, true
		}
	}
	return nil
}
func (a *extremeAcc[T]) Merge(src Accumulator, to []uint32) error {
	s := src.(*extremeAcc[T])
	for g, x := range s.best {
		if t := to[g]; s.seen[g] && t != NoGroup && (!a.seen[t] || a.want != 0 && a.better(x, a.best[t])) {
			a.best[t], a.seen[t] = x, true
		}
	}
	return nil
}
func (a *extremeAcc[T]) Result(lo, hi int) (*vector.Vector, error) {
	v := &vector.Vector{Type: a.t, Valid: validBits(a.seen[lo:hi])}
	setPayload(v, a.best[lo:hi:hi])
	return v, nil
}
func (a *extremeAcc[T]) Bytes() int64 { return int64(9 * cap(a.best)) }

func setPayload[T any](v *vector.Vector, s []T) {
	switch x := any(s).(type) {
	case []int32:
		v.I32 = x
	case []int64:
		v.I64 = x
	case []float32:
		v.F32 = x
	case []float64:
		v.F64 = x
	}
}

// extremeValueAcc is min, max or any value for text, booleans and nested types.
type extremeValueAcc struct {
	t    vector.Type
	want int
	best []vector.Value
	held int64
}

func (a *extremeValueAcc) Resize(n int) { a.best = extend(a.best, n) }
func (a *extremeValueAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	v := args[0]
	text := a.t.Physical() == vector.PView
	for k, i := range rowsOf(sel, n) {
		if v.IsNull(int(i)) {
			continue
		}
		g := uint32(0)
		if groups != nil {
			g = groups[k]
		}
		if a.best[g] != nil {
			if a.want == 0 {
				continue
			}
			if text {
				// Compare before the bytes are copied.
				c := cmp.Compare(bytesString(v.Bytes(int(i))), a.best[g].(string))
				if c*a.want <= 0 {
					continue
				}
			}
		}
		a.offer(g, v.Get(int(i)))
	}
	return nil
}
func (a *extremeValueAcc) offer(g uint32, x vector.Value) {
	if x == nil {
		return
	}
	old := a.best[g]
	if old == nil || a.want != 0 && CompareValues(a.t, x, old)*a.want > 0 {
		a.best[g] = x
		if s, ok := x.(string); ok {
			a.held += int64(len(s))
		} else {
			a.held += 32
		}
	}
}
func (a *extremeValueAcc) Merge(src Accumulator, to []uint32) error {
	for g, x := range src.(*extremeValueAcc).best {
		if to[g] != NoGroup {
			a.offer(to[g], x)
		}
	}
	return nil
}
func (a *extremeValueAcc) Result(lo, hi int) (*vector.Vector, error) {
	return valuesVector(a.t, a.best[lo:hi]), nil
}
func (a *extremeValueAcc) Bytes() int64 { return int64(16*cap(a.best)) + a.held }

// valuesVector makes a flat vector of values.
func valuesVector(t vector.Type, vs []vector.Value) *vector.Vector {
	b := vector.NewBuilder(t)
	for _, v := range vs {
		b.Append(v)
	}
	return b.Finish()
}
