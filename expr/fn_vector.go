package expr

import (
	"math"
	"sort"

	"github.com/skua-db/skua/vector"
)

// maxCombinations caps the elements of all combinations of one call.
const maxCombinations = 100_000

func init() {
	// A null element counts as 0 here, as the oracle has it; cosine_similarity gives null instead.
	pairwise := func(name, doc string, add func(sum, x, y float64) float64, last func(sum float64) float64) {
		def(name, "(array(double), array(double)) double", doc, fn2(func(_ *evalCall, a, b []vector.Value) (float64, error) {
			if len(a) != len(b) {
				return 0, badArgument("%s: the vectors have %d and %d elements", name, len(a), len(b))
			}
			sum := 0.0
			for i := range a {
				x, _ := a[i].(float64)
				y, _ := b[i].(float64)
				sum = add(sum, x, y)
			}
			return last(sum), nil
		}))
	}
	pairwise("dot_product", "the sum of the products of the elements", func(s, x, y float64) float64 { return s + x*y }, func(s float64) float64 { return s })
	pairwise("euclidean_distance", "the distance of two points", func(s, x, y float64) float64 { return s + (x-y)*(x-y) }, math.Sqrt)
	def("cosine_similarity", "(map(varchar, double), map(varchar, double)) double", "the cosine of the angle of sparse vectors", fn2(func(_ *evalCall, a, b []vector.Pair) (float64, error) {
		return sparseCosine(a, b)
	}), mayNull)
	def("cosine_distance", "(map(varchar, double), map(varchar, double)) double", "1 minus the cosine of the angle of sparse vectors", fn2(func(_ *evalCall, a, b []vector.Pair) (float64, error) {
		s, err := sparseCosine(a, b)
		return 1 - s, err
	}), mayNull)
	def("combinations", "(array(T), integer) array(array(T))", "the subsets of so many elements, at most 5", fn2(func(_ *evalCall, a []vector.Value, k int64) ([]vector.Value, error) {
		return combinations(a, k)
	}))
	def("width_bucket", "(double, array(double)) bigint", "number of the last bound that is not above the value, 0 when all are", fn2(func(_ *evalCall, x float64, bins []vector.Value) (int64, error) {
		switch {
		case len(bins) == 0:
			return 0, badArgument("width_bucket: there are no bounds")
		case x != x:
			return 0, badArgument("width_bucket: the value is not a number")
		}
		last := math.Inf(-1)
		for _, b := range bins {
			f, ok := b.(float64)
			if !ok || f-f != 0 || f < last {
				return 0, badArgument("width_bucket: the bounds must be finite numbers in ascending order")
			}
			last = f
		}
		return int64(sort.Search(len(bins), func(i int) bool { return bins[i].(float64) > x })), nil
	}))
	def("zip", "(array(A), array(B), array(C), array(D)) array(row(A, B, C, D))", "elements of four arrays side by side", fnN(zip))
	def("zip", "(array(A), array(B), array(C), array(D), array(E)) array(row(A, B, C, D, E))", "elements of five arrays side by side", fnN(zip))
}

func sparseCosine(a, b []vector.Pair) (float64, error) {
	at := make(map[vector.Value]float64, len(a))
	var dot, x2, y2 float64
	for _, p := range a {
		x, ok := p.Value.(float64)
		if !ok {
			return 0, errNull
		}
		at[p.Key] = x
		x2 += x * x
	}
	for _, p := range b {
		y, ok := p.Value.(float64)
		if !ok {
			return 0, errNull
		}
		dot += at[p.Key] * y
		y2 += y * y
	}
	return dot / (math.Sqrt(x2) * math.Sqrt(y2)), nil
}

// combinations lists subsets in colexicographic order of positions.
func combinations(a []vector.Value, k int64) ([]vector.Value, error) {
	switch {
	case k < 0:
		return nil, badArgument("combinations: the size must not be negative, it is %d", k)
	case k > 5:
		return nil, badArgument("combinations: the size must not exceed 5, it is %d", k)
	case k > int64(len(a)):
		return []vector.Value{}, nil
	}
	count := 1.0
	for i := range k {
		count = count * float64(int64(len(a))-i) / float64(i+1)
	}
	if count*float64(k) > maxCombinations {
		return nil, badArgument("combinations: all of them would have more than %d elements", maxCombinations)
	}
	at := make([]int, k)
	for i := range at {
		at[i] = i
	}
	out := []vector.Value{}
	for {
		set := make([]vector.Value, k)
		for i, p := range at {
			set[i] = a[p]
		}
		out = append(out, set)
		// Move the first position that has room before the next one, and bring those below it back to the start.
		i := 0
		for i < len(at) && (i+1 < len(at) && at[i]+1 == at[i+1] || i+1 == len(at) && at[i]+1 == len(a)) {
			i++
		}
		if i == len(at) {
			return out, nil
		}
		at[i]++
		for j := range i {
			at[j] = j
		}
	}
}
