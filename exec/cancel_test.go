package exec

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// chunksOf counts the chunks that the operators of a run have given.
func chunksOf(op *profile.Operator) int64 {
	if op == nil {
		return 0
	}
	n := op.Chunks.Load()
	for _, c := range op.Children {
		n += chunksOf(c)
	}
	return n
}

// TestCancelAnywhere cancels every operator at moments spread over its run, in memory and from disk. The run must be over long before a
// second has passed, having given but few more chunks, and leave nothing. The promise is 100 ms; the bound is generous because test
// machines are busy.
func TestCancelAnywhere(t *testing.T) {
	const bound, moreChunks, moments = time.Second, 64, 3
	plans, tables := largePlans()
	a := scanOf(0, tables[0])
	rows := tables[0].types
	few := &plan.Limit{Input: scanOf(1, tables[1]), Count: 300}
	plans["filter and project"] = &plan.Project{Cols: cols([]vector.Type{tBig}), Exprs: []expr.Expr{fn("+", col(0, tBig), col(0, tBig))},
		Input: &plan.Filter{Input: a, Cond: must(expr.NewCompare(expr.Gt, col(0, tBig), &expr.Literal{Value: int64(10), Typ: tBig}))}}
	plans["nested loop"] = &plan.Join{Kind: plan.Left, Left: a, Right: few, Cols: cols(append(append([]vector.Type(nil), rows...), rows...)),
		Residual: must(expr.NewCompare(expr.Lt, col(0, tBig), col(3, tBig)))}
	plans["union"] = &plan.Union{Nodes: []plan.Node{a, scanOf(1, tables[1])}, Cols: cols(rows)}
	list := vector.ArrayOf(tInt)
	plans["unnest"] = &plan.Unnest{Args: []expr.Expr{col(0, list)}, Cols: cols([]vector.Type{list, tInt}), Input: &plan.Project{Input: a, Cols: cols([]vector.Type{list}),
		Exprs: []expr.Expr{fn("repeat", col(2, tInt), &expr.Literal{Value: int64(50), Typ: tBig})}}}
	plans["one window partition"] = &plan.Window{Input: a, OrderBy: []expr.SortKey{{Expr: col(1, tStr)}},
		Functions: []*expr.WindowCall{must(expr.NewWindowCall("rank", nil, expr.Frame{}, false))}, Cols: cols([]vector.Type{tBig, tStr, tInt, tBig})}
	for name, n := range plans {
		for _, limit := range []int64{0, 4 << 20} {
			// cancelAfter runs until the moment and gives what came then; without one it gives the whole time.
			cancelAfter := func(moment time.Duration) time.Duration {
				disk := spill.Open(t.TempDir(), 0)
				pool := memory.NewPool("query", limit)
				rec := profile.New("", "")
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				start := time.Now()
				res, err := Run(ctx, n, &Query{Pool: pool, Scanner: &fakeScanner{tables: tables}, Workers: 2, Spill: disk, Profile: rec})
				require.NoError(t, err)
				var before int64
				at := make(chan time.Time, 1)
				if moment > 0 {
					timer := time.AfterFunc(moment, func() {
						when := time.Now()
						cancel()
						before = chunksOf(rec.Root()) // counted later than cancelled: a busy machine may stop this function between the two
						at <- when
					})
					defer timer.Stop()
				}
				for {
					c, err := res.Next(context.Background())
					if err != nil {
						require.ErrorIs(t, err, context.Canceled, name)
					}
					if c == nil || err != nil {
						break
					}
				}
				require.NoError(t, res.Close())
				took := time.Since(start)
				select {
				case when := <-at:
					require.Less(t, time.Since(when), bound, "%s, limit %d, cancelled after %s of its run", name, limit, moment)
					require.LessOrEqual(t, chunksOf(rec.Root())-before, int64(moreChunks), "%s, limit %d: chunks after the end", name, limit)
				default: // it was faster this time
				}
				require.Zero(t, pool.Used(), name)
				require.Zero(t, disk.Used(), name)
				require.NoError(t, disk.Close())
				return took
			}
			whole := cancelAfter(0)
			for k := range moments {
				cancelAfter(whole * time.Duration(k+1) / (moments + 1))
			}
		}
	}
}
