package exec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// repeated is a table that gives one chunk n times.
func repeated(t *table, n int) *table {
	out := &table{types: t.types}
	for range n {
		out.chunks = append(out.chunks, t.chunks[0])
	}
	return out
}

// TestAllocationsPerChunk pins what operators allocate for each further chunk of 2,048 rows, beyond what the test's own scanner does: a few headers,
// and nothing that grows with the rows.
func TestAllocationsPerChunk(t *testing.T) {
	d, day := vector.DecimalOf(15, 2), vector.Of(vector.Date)
	one := benchTable(vector.Size)
	small := benchTable(500)
	allocs := func(build func(in plan.Node) plan.Node, chunks int) float64 {
		in := repeated(one, chunks)
		n := build(scanOf(0, in))
		return testing.AllocsPerRun(3, func() {
			_, err := runWith(t, n, 1, memory.NewPool("test", 0), nil, in, small)
			require.NoError(t, err)
		})
	}
	perChunk := func(build func(in plan.Node) plan.Node) float64 {
		const few, many = 40, 140
		return (allocs(build, many) - allocs(build, few)) / (many - few)
	}
	total := func(in plan.Node, aggs ...*expr.Aggregate) plan.Node {
		return &plan.Aggregate{Input: in, Aggs: aggs, Cols: make([]plan.Column, len(aggs))}
	}
	count := func(in plan.Node) plan.Node { return total(in, aggOf("count")) }
	floor := perChunk(count)
	join := func(k plan.JoinKind, width int) func(in plan.Node) plan.Node {
		return func(in plan.Node) plan.Node {
			return count(&plan.Join{Kind: k, Left: in, Right: scanOf(1, small), LeftKeys: []expr.Expr{col(7, tBig)}, RightKeys: []expr.Expr{col(7, tBig)}, Cols: make([]plan.Column, width)})
		}
	}
	group := func(cols ...expr.Expr) func(in plan.Node) plan.Node {
		return func(in plan.Node) plan.Node {
			return count(&plan.Aggregate{Input: in, GroupBy: cols, Aggs: []*expr.Aggregate{aggOf("count"), aggOf("sum", col(3, d))}, Cols: make([]plan.Column, len(cols)+2)})
		}
	}
	for _, c := range []struct {
		name  string
		build func(in plan.Node) plan.Node
		most  float64
	}{
		{"filter", func(in plan.Node) plan.Node {
			return count(&plan.Filter{Input: in, Cond: must(expr.NewCompare(expr.Le, col(6, day), &expr.Literal{Value: int32(9000), Typ: day}))})
		}, 0},
		{"project", func(in plan.Node) plan.Node {
			return total(&plan.Project{Input: in, Exprs: []expr.Expr{fn("*", col(3, d), col(4, d))}, Cols: cols([]vector.Type{vector.DecimalOf(30, 4)})}, aggOf("max", col(0, vector.DecimalOf(30, 4))))
		}, 0},
		{"sums", func(in plan.Node) plan.Node {
			return total(in, aggOf("sum", col(3, d)), aggOf("avg", col(2, d)), aggOf("count"))
		}, 0},
		{"group by texts of a dictionary", group(col(0, tStr), col(1, tStr)), 1},
		{"group by integers", group(col(7, tBig)), 0},
		{"group by two integers", group(col(7, tBig), col(6, day)), 0},
		{"inner join", join(plan.Inner, 16), 13}, // the columns of the left side are dictionaries of their own in each of two chunks of pairs,
		{"semi join", join(plan.Semi, 8), 0},
		{"anti join", join(plan.Anti, 8), 0},
		{"top ten", func(in plan.Node) plan.Node {
			return &plan.Sort{Input: in, Keys: []expr.SortKey{{Expr: col(3, d), Desc: true}}, Limit: 10}
		}, 0},
	} {
		got := perChunk(c.build) - floor
		require.LessOrEqual(t, got, c.most+0.5, c.name)
	}
}
