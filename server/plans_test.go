package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
)

// TestLargePlansAreFew: plans that hold many rows do not gather.
func TestLargePlansAreFew(t *testing.T) {
	p, err := newPlans()
	require.NoError(t, err)
	large := &plan.Prepared{Root: &plan.Limit{Input: &plan.Values{Rows: make([][]expr.Expr, smallValues+1), Cols: make([]plan.Column, 1)}}}
	small := &plan.Prepared{Root: &plan.Values{Rows: make([][]expr.Expr, 3), Cols: make([]plan.Column, 1)}}
	for i := range 100 {
		p.add("large "+string(rune('a'+i)), large)
		p.add("small "+string(rune('a'+i)), small)
	}
	require.Equal(t, largePlans, p.large.Len())
	require.Equal(t, 100, p.small.Len())
	last := "large " + string(rune('a'+99))
	got, ok := p.get(last)
	require.True(t, ok)
	require.Same(t, large, got)
	_, ok = p.get(last)
	require.False(t, ok, "fetched once")
	_, ok = p.get("small a")
	require.True(t, ok)
	_, ok = p.get("small a")
	require.True(t, ok)
	p.add("setting", &plan.Prepared{})
	p.add(string(make([]byte, maxRememberedBytes+1)), small)
	require.Equal(t, largePlans, p.large.Len())
}
