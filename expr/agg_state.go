package expr

import (
	"github.com/skua-db/skua/vector"
)

// stateAcc is an accumulator with a state of type S for each group, fed row by row. It serves the aggregates that are not worth loops
// of their own.
type stateAcc[S any] struct {
	t      vector.Type
	states []S
	bytes  int64
	// takesNull: rows are fed whose first argument is null.
	takesNull bool
	add       func(s *S, args []*vector.Vector, i int) (grown int64, err error)
	merge     func(into, from *S) error
	// result gives nil for NULL.
	result func(s *S) (vector.Value, error)
	size   int64
}

func (a *stateAcc[S]) Resize(n int) { a.states = extend(a.states, n) }

func (a *stateAcc[S]) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	for k, i := range rowsOf(sel, n) {
		if !a.takesNull && args[0].IsNull(int(i)) {
			continue
		}
		g := uint32(0)
		if groups != nil {
			g = groups[k]
		}
		b, err := a.add(&a.states[g], args, int(i))
		if err != nil {
			return err
		}
		a.bytes += b
	}
	return nil
}

func (a *stateAcc[S]) Merge(src Accumulator, to []uint32) error {
	s := src.(*stateAcc[S])
	n := min(len(to), len(s.states))
	merged := 0
	for g := range s.states[:n] {
		if to[g] == NoGroup {
			continue
		}
		merged++
		if err := a.merge(&a.states[to[g]], &s.states[g]); err != nil {
			return err
		}
	}
	if n > 0 {
		a.bytes += int64(float64(s.bytes) * float64(merged) / float64(n))
	}
	return nil
}

func (a *stateAcc[S]) Result(lo, hi int) (*vector.Vector, error) {
	b := vector.NewBuilder(a.t)
	for g := lo; g < hi; g++ {
		v, err := a.result(&a.states[g])
		if err != nil {
			return nil, err
		}
		b.Append(v)
	}
	return b.Finish(), nil
}

func (a *stateAcc[S]) Bytes() int64 { return a.bytes + int64(cap(a.states))*max(a.size, 16) }

// number reads row i of a numeric vector as a double.
func number(v *vector.Vector, i int) float64 {
	s, j := v.Values(), v.Index(i)
	switch v.Type.Physical() {
	case vector.PFloat64:
		return s.F64[j]
	case vector.PFloat32:
		return float64(s.F32[j])
	case vector.PInt32:
		return float64(s.I32[j])
	case vector.PInt64:
		return float64(s.I64[j])
	}
	return 0
}

// valueBytes estimates the memory of a value kept outside a vector.
func valueBytes(v vector.Value) int64 {
	switch x := v.(type) {
	case nil:
		return 16
	case string:
		return 32 + int64(len(x))
	case []vector.Value:
		n := int64(40)
		for _, e := range x {
			n += valueBytes(e)
		}
		return n
	case []vector.Pair:
		n := int64(40)
		for _, p := range x {
			n += valueBytes(p.Key) + valueBytes(p.Value)
		}
		return n
	}
	return 32
}
