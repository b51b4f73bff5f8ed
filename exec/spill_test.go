package exec

import (
	"context"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// largePlans are plans over about 20 MB of rows, one for each operator that spills.
func largePlans() (map[string]plan.Node, []*table) {
	rng := rand.New(rand.NewPCG(31, 32))
	big := []vector.Type{tBig, tStr, tInt}
	make1 := func(n, keys int) *table {
		t := &table{types: big}
		for lo := 0; lo < n; lo += vector.Size {
			k := min(vector.Size, n-lo)
			key, num, text := vector.New(tBig, k), vector.New(tInt, k), vector.NewBuilder(tStr)
			for i := range k {
				key.I64[i] = rng.Int64N(int64(keys)) * 1_000_003
				num.I32[i] = int32(rng.IntN(1000))
				text.Append("a text that is not inline " + string(rune('a'+rng.IntN(26))) + string(rune('a'+rng.IntN(26))))
			}
			t.chunks = append(t.chunks, &vector.Chunk{N: k, Cols: []*vector.Vector{key, text.Finish(), num}})
		}
		return t
	}
	a, b := make1(150_000, 120_000), make1(120_000, 120_000)
	sum := func(n plan.Node) plan.Node { // so that the results are small and can be compared
		return &plan.Aggregate{Input: n, Aggs: []*expr.Aggregate{aggOf("count"), aggOf("sum", col(0, tBig)), aggOf("count", col(1, tStr))}, Cols: cols([]vector.Type{tBig, tBig, tBig})}
	}
	filter := must(expr.NewCompare(expr.Lt, col(2, tInt), intLit(500)))
	filtered := must(expr.NewAggregate("count", nil, false, filter, nil))
	join := func(k plan.JoinKind) plan.Node {
		ts := append(append([]vector.Type(nil), big...), big...)
		if k == plan.Semi || k == plan.Anti {
			ts = big
		}
		return sum(&plan.Join{Kind: k, Left: scanOf(0, a), Right: scanOf(1, b), LeftKeys: []expr.Expr{col(0, tBig)}, RightKeys: []expr.Expr{col(0, tBig)}, Cols: cols(ts)})
	}
	group := &plan.Aggregate{Input: scanOf(0, a), GroupBy: []expr.Expr{col(0, tBig), col(1, tStr)},
		Aggs: []*expr.Aggregate{aggOf("count"), aggOf("max", col(1, tStr)), filtered}, Cols: cols([]vector.Type{tBig, tStr, tBig, tStr, tBig})}
	sets := &plan.Aggregate{Input: scanOf(0, a), GroupBy: []expr.Expr{col(0, tBig), col(1, tStr)}, Sets: [][]int{{0, 1}, {0}, {}},
		Aggs: []*expr.Aggregate{aggOf("count"), filtered}, Cols: cols([]vector.Type{tBig, tStr, tBig, tBig, tBig})}
	distinct := &plan.Aggregate{Input: scanOf(0, a), GroupBy: []expr.Expr{col(0, tBig), col(1, tStr), col(2, tInt)}, Cols: cols(big)}
	sort := &plan.Sort{Input: scanOf(0, a), Keys: []expr.SortKey{{Expr: col(1, tStr), Desc: true}, {Expr: col(0, tBig)}}, Limit: -1}
	sp := &plan.Spool{ID: 1, Input: scanOf(0, a)}
	return map[string]plan.Node{
		"group": sum(group), "sets": sum(sets), "distinct": sum(distinct), "sort": sort,
		"top": &plan.Sort{Input: scanOf(0, a), Keys: []expr.SortKey{{Expr: col(1, tStr)}, {Expr: col(0, tBig)}}, Limit: 60_000, Offset: 1000},
		"window": sum(&plan.Window{Input: scanOf(0, a), PartitionBy: []expr.Expr{col(0, tBig)}, OrderBy: []expr.SortKey{{Expr: col(2, tInt)}},
			Functions: []*expr.WindowCall{must(expr.NewWindowCall("rank", nil, expr.Frame{}, false))}, Cols: cols([]vector.Type{tBig, tStr, tInt, tBig})}),
		"count distinct": &plan.Aggregate{Input: scanOf(0, a), Aggs: []*expr.Aggregate{must(expr.NewAggregate("count", []expr.Expr{col(0, tBig)}, true, nil, nil))}, Cols: cols([]vector.Type{tBig})},
		"mixed distinct": &plan.Aggregate{Input: scanOf(0, a), Aggs: []*expr.Aggregate{
			must(expr.NewAggregate("count", []expr.Expr{col(0, tBig)}, true, nil, nil)), aggOf("sum", col(2, tInt)), must(expr.NewAggregate("sum", []expr.Expr{col(2, tInt)}, true, nil, nil)),
			aggOf("count"), must(expr.NewAggregate("count", []expr.Expr{col(1, tStr)}, true, filter, nil)),
		}, Cols: cols([]vector.Type{tBig, tBig, tBig, tBig, tBig})},
		"mixed distinct by group": &plan.Aggregate{Aggs: []*expr.Aggregate{aggOf("count"), aggOf("sum", col(1, tBig)), aggOf("sum", col(2, tBig))}, Cols: cols([]vector.Type{tBig, tBig, tBig}), Input: &plan.Aggregate{Input: scanOf(0, a), GroupBy: []expr.Expr{col(1, tStr)}, Aggs: []*expr.Aggregate{
			must(expr.NewAggregate("count", []expr.Expr{col(0, tBig)}, true, nil, nil)), filtered,
		}, Cols: cols([]vector.Type{tStr, tBig, tBig})}},
		"intersect": sum(&plan.SetOp{All: true, Left: scanOf(0, a), Right: scanOf(0, a), Cols: cols(big)}),
		"except":    sum(&plan.SetOp{Except: true, Left: scanOf(0, a), Right: scanOf(1, b), Cols: cols(big)}),
		"spool":     sum(&plan.Union{Nodes: []plan.Node{sp, sp}, Cols: cols(big)}),
		"inner":     join(plan.Inner), "left": join(plan.Left), "right": join(plan.Right), "full": join(plan.Full), "semi": join(plan.Semi), "anti": join(plan.Anti),
	}, []*table{a, b}
}

// TestSpillGivesTheSameRows runs each operator in memory and in 4 MiB.
func TestSpillGivesTheSameRows(t *testing.T) {
	plans, tables := largePlans()
	for name, n := range plans {
		t.Run(name, func(t *testing.T) {
			want, err := runWith(t, n, 2, memory.NewPool("test", 0), nil, tables...)
			require.NoError(t, err)
			disk := spill.Open(t.TempDir(), 0)
			rec := profile.New("", "")
			res, err := Run(context.Background(), n, &Query{Pool: memory.NewPool("query", 4<<20), Scanner: &fakeScanner{tables: tables}, Workers: 2, Spill: disk, Profile: rec})
			require.NoError(t, err)
			got := []row{}
			for {
				c, err := res.Next(context.Background())
				require.NoError(t, err)
				if c == nil {
					break
				}
				for i := range c.N {
					var r row
					for _, v := range c.Cols {
						r = append(r, v.Get(i))
					}
					got = append(got, r)
				}
			}
			require.Positive(t, disk.Used(), "nothing was spilled")
			require.NoError(t, res.Close())
			require.Zero(t, disk.Used())
			require.NoError(t, disk.Close())
			types := typesOf(n.Columns())
			require.Equal(t, rounded(types, want), rounded(types, got))
		})
	}
}

// TestFullDisk makes the k-th write fail, and the quota small: the error is clear, no file and no memory is left.
func TestFullDisk(t *testing.T) {
	plans, tables := largePlans()
	for name, n := range plans {
		for _, k := range []int64{1, 2} {
			dir := t.TempDir()
			disk := spill.Open(dir, 0)
			var writes atomic.Int64
			disk.BeforeWrite = func(int) error {
				if writes.Add(1) >= k {
					return syscall.ENOSPC
				}
				return nil
			}
			_, err := runWith(t, n, 2, memory.NewPool("query", 4<<20), disk, tables...)
			require.ErrorIs(t, err, fault.Exhausted, name)
			require.ErrorContains(t, err, "SPILL_DISK_FULL")
			require.Zero(t, disk.Used(), name)
			require.NoError(t, disk.Close())
			left, _ := os.ReadDir(dir)
			require.Empty(t, left)
		}
		disk := spill.Open(t.TempDir(), 100<<10)
		_, err := runWith(t, n, 2, memory.NewPool("query", 4<<20), disk, tables...)
		require.ErrorIs(t, err, fault.Exhausted, name)
		require.ErrorContains(t, err, "limits.spill.max is 102400")
		require.NoError(t, disk.Close())
	}
}

// TestCancelWhileSpilling cancels at some write; the run ends within a few chunks, and nothing is left.
func TestCancelWhileSpilling(t *testing.T) {
	plans, tables := largePlans()
	for name, n := range plans {
		dir := t.TempDir()
		disk := spill.Open(dir, 0)
		ctx, cancel := context.WithCancel(context.Background())
		var writes, after atomic.Int64
		disk.BeforeWrite = func(int) error {
			if writes.Add(1) >= 3 {
				cancel()
				after.Add(1)
			}
			return nil
		}
		pool := memory.NewPool("query", 4<<20)
		res, err := Run(ctx, n, &Query{Pool: pool, Scanner: &fakeScanner{tables: tables}, Workers: 2, Spill: disk})
		require.NoError(t, err)
		for {
			c, err := res.Next(context.Background())
			if err != nil {
				require.ErrorIs(t, err, context.Canceled, name)
				break
			}
			if c == nil { // the last write was the one that cancelled
				break
			}
		}
		require.NoError(t, res.Close())
		require.Zero(t, pool.Used(), name)
		require.LessOrEqual(t, after.Load(), int64(4), name)
		require.NoError(t, disk.Close())
		left, _ := os.ReadDir(dir)
		require.Empty(t, left)
		cancel()
	}
}
