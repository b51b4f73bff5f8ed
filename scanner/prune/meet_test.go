package prune

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// TestMeetNeverPartsEqualValues takes random sets of doubles with null and NaN: sets that share a value, null equal to null and NaN to NaN,
// must meet, whichever of their statistics are known. Sets of ordinary values that lie apart must not.
func TestMeetNeverPartsEqualValues(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	typ := vector.Of(vector.Double)
	type set struct {
		values     []float64
		nulls, nan int64
		domain     Domain
	}
	one := func() set {
		s := set{domain: Any(typ)}
		at := float64(r.Intn(6))
		for range r.Intn(4) {
			s.values = append(s.values, []float64{at, at + 0.5, 0, math.Copysign(0, -1), math.Inf(-1)}[r.Intn(5)])
		}
		if r.Intn(3) == 0 {
			s.nulls = int64(1 + r.Intn(2))
		}
		if r.Intn(3) == 0 {
			s.nan = 1
		}
		if len(s.values) > 0 && r.Intn(4) > 0 {
			s.domain.Limit(typ, slices.Min(s.values), slices.Max(s.values), -1, -1, true)
		}
		if r.Intn(4) > 0 {
			nan := s.nan
			if r.Intn(3) == 0 {
				nan = -1 // not every writer counts NaN
			}
			s.domain.Counts(s.nulls, s.nulls+s.nan+int64(len(s.values)), nan)
		}
		return s
	}
	apart := 0
	for range 20000 {
		a, b := one(), one()
		share := a.nulls > 0 && b.nulls > 0 || a.nan > 0 && b.nan > 0 || slices.ContainsFunc(a.values, func(v float64) bool { return slices.Contains(b.values, v) })
		if Meet(&a.domain, &b.domain) {
			continue
		}
		apart++
		require.False(t, share, "%v and %v", a, b)
	}
	require.Greater(t, apart, 1000)
}
