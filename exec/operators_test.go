package exec

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// TestWindow compares running and ranking functions with a plain evaluation, over partitions longer than a chunk too.
func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	types := []vector.Type{tInt, tBig, tInt}
	for _, span := range []int{3, 200} {
		tab := randomTable(rng, types, 7000, span)
		whole := expr.Frame{Unit: expr.Range, Start: expr.Bound{Kind: expr.UnboundedPreceding}, End: expr.Bound{Kind: expr.CurrentRow}}
		rows := expr.Frame{Unit: expr.Rows, Start: expr.Bound{Kind: expr.Preceding, Offset: intLit(2)}, End: expr.Bound{Kind: expr.Following, Offset: intLit(1)}}
		call := func(f expr.Frame, name string, args ...expr.Expr) *expr.WindowCall {
			return must(expr.NewWindowCall(name, args, f, false))
		}
		fs := []*expr.WindowCall{call(whole, "row_number"), call(whole, "rank"), call(whole, "dense_rank"), call(whole, "sum", col(2, tInt)),
			call(rows, "count", col(2, tInt)), call(whole, "lag", col(2, tInt)), call(rows, "last_value", col(1, tBig))}
		out := slices.Clone(types)
		for _, f := range fs {
			out = append(out, f.Typ)
		}
		n := &plan.Window{Input: scanOf(0, tab), PartitionBy: []expr.Expr{col(0, tInt)}, OrderBy: []expr.SortKey{{Expr: col(1, tBig), Desc: true}}, Functions: fs, Cols: cols(out)}
		got, err := runPlan(t, n, 2, tab)
		require.NoError(t, err)
		require.Len(t, got, len(tab.rows))
		for lo := 0; lo < len(got); {
			hi := lo
			for hi < len(got) && got[hi][0] == got[lo][0] {
				hi++
			}
			checkPartition(t, got[lo:hi])
			lo = hi
		}
	}
}

// checkPartition recomputes the functions of TestWindow for one partition as it came out.
func checkPartition(t *testing.T, p []row) {
	t.Helper()
	dense := int64(0)
	for i, r := range p {
		if i > 0 {
			require.LessOrEqual(t, expr.CompareKeys([]expr.SortKey{{Expr: col(1, tBig), Desc: true}}, p[i-1][1:2], r[1:2]), 0)
		}
		first := i
		for first > 0 && p[first-1][1] == r[1] {
			first--
		}
		last := i
		for last+1 < len(p) && p[last+1][1] == r[1] {
			last++
		}
		if first == i {
			dense++
		}
		var sum vector.Value
		for _, q := range p[:last+1] {
			if q[2] != nil {
				s, _ := sum.(int64)
				sum = s + int64(q[2].(int32))
			}
		}
		count := int64(0)
		end := min(i+1, len(p)-1)
		for _, q := range p[max(i-2, 0) : end+1] {
			if q[2] != nil {
				count++
			}
		}
		var lag vector.Value
		if i > 0 {
			lag = p[i-1][2]
		}
		want := row{int64(i) + 1, int64(first) + 1, dense, sum, count, lag, p[end][1]}
		require.Equal(t, want, r[3:])
	}
}

func TestUnnest(t *testing.T) {
	arr := vector.ArrayOf(tInt)
	b, ids := vector.NewBuilder(arr), vector.NewBuilder(tInt)
	for i, v := range []vector.Value{[]vector.Value{int32(1), nil}, nil, []vector.Value{}, []vector.Value{int32(5)}} {
		b.Append(v)
		ids.Append(int32(i))
	}
	tab := &table{types: []vector.Type{tInt, arr}, chunks: []*vector.Chunk{{N: 4, Cols: []*vector.Vector{ids.Finish(), b.Finish()}}}}
	out := []vector.Type{tInt, arr, tInt, tBig}
	for _, outer := range []bool{false, true} {
		n := &plan.Unnest{Input: scanOf(0, tab), Args: []expr.Expr{col(1, arr)}, Outer: outer, Ordinality: true, Cols: cols(out)}
		got, err := runPlan(t, n, 1, tab)
		require.NoError(t, err)
		var short []row
		for _, r := range got {
			short = append(short, row{r[0], r[2], r[3]})
		}
		want := []row{{int32(0), int32(1), int64(1)}, {int32(0), nil, int64(2)}}
		if outer {
			want = append(want, row{int32(1), nil, nil}, row{int32(2), nil, nil})
		}
		require.Equal(t, append(want, row{int32(3), int32(5), int64(1)}), short)
	}
}

func TestSubqueriesSpoolsAndOneRow(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(23, 24)), []vector.Type{tInt}, 3000, 30)
	count := &plan.Aggregate{Input: scanOf(0, tab), Aggs: []*expr.Aggregate{must(expr.NewAggregate("count", nil, false, nil, nil))}, Cols: cols([]vector.Type{tBig})}
	spool := &plan.Spool{ID: 1, Input: scanOf(0, tab)}
	both := &plan.Union{Nodes: []plan.Node{spool, spool}, Cols: cols([]vector.Type{tInt})}
	n := &plan.WithSubqueries{Input: &plan.Project{Input: both, Exprs: []expr.Expr{&expr.Subquery{ID: 0, Typ: tBig}}, Cols: cols([]vector.Type{tBig})},
		Scalars: []plan.ScalarSubquery{{ID: 0, Plan: count}}}
	got, err := runPlan(t, n, 2, tab)
	require.NoError(t, err)
	require.Len(t, got, 6000)
	require.Equal(t, row{int64(3000)}, got[17])

	got, err = runPlan(t, &plan.OneRow{Input: &plan.Limit{Input: scanOf(0, tab), Count: 0}}, 2, tab)
	require.NoError(t, err)
	require.Equal(t, []row{{nil}}, got)
	_, err = runPlan(t, &plan.OneRow{Input: scanOf(0, tab)}, 2, tab)
	require.ErrorContains(t, err, "SUBQUERY_MULTIPLE_ROWS")
}

// filterScanner notes the runtime filters that scans are given.
type filterScanner struct {
	fakeScanner
	filters []scanner.RuntimeFilter
}

func (f *filterScanner) Plan(ctx context.Context, r *scanner.Request) (scanner.TaskStream, error) {
	f.filters = append(f.filters, r.Runtime...)
	return f.fakeScanner.Plan(ctx, r)
}

func TestRuntimeFilter(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 26))
	for _, ty := range []vector.Type{tInt, tStr} {
		left, right := randomTable(rng, []vector.Type{ty}, 2000, 1000), randomTable(rng, []vector.Type{ty}, 20, 1000)
		ls := scanOf(0, left)
		ls.RuntimeFilters = []plan.RuntimeFilter{{ID: 7, Column: 0}}
		j := &plan.Join{Kind: plan.Inner, Left: ls, Right: scanOf(1, right), LeftKeys: []expr.Expr{col(0, ty)}, RightKeys: []expr.Expr{col(0, ty)},
			RuntimeFilters: []plan.RuntimeFilter{{ID: 7, Column: 0}}, Cols: cols([]vector.Type{ty, ty})}
		fs := &filterScanner{fakeScanner: fakeScanner{tables: []*table{left, right}}}
		q := profile.New("q", "")
		pool := memory.NewPool("test", 0)
		res, err := Run(context.Background(), j, &Query{Pool: pool, Scanner: fs, Workers: 2, Profile: q})
		require.NoError(t, err)
		for {
			c, err := res.Next(context.Background())
			require.NoError(t, err)
			if c == nil {
				break
			}
		}
		require.Len(t, fs.filters, 1)
		f := fs.filters[0]
		<-f.Ready()
		have := map[vector.Value]bool{}
		for _, r := range right.rows {
			have[r[0]] = r[0] != nil
		}
		for _, c := range left.chunks {
			sel := f.Select(c.Cols[0], c.N, c.Sel, nil)
			for i := range c.N {
				if c.Sel == nil || slices.Contains(c.Sel, uint16(i)) {
					require.Equal(t, have[c.Cols[0].Get(i)], slices.Contains(sel, uint16(i)))
				}
			}
		}
		for v := range have {
			if v != nil {
				require.True(t, f.MayContain(v, v))
			}
		}
		if ty.Kind == vector.Integer {
			require.False(t, f.MayContain(int32(5000), int32(6000)))
			require.True(t, f.MayContain(nil, nil))
		}
		require.Equal(t, "Join", q.Root().Name)
		require.Len(t, q.Root().Children, 2)
		require.EqualValues(t, len(left.rows), q.Root().RowsIn.Load())
		require.NoError(t, res.Close())
		require.Zero(t, pool.Used())
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	bad := &table{types: []vector.Type{tInt}, chunks: []*vector.Chunk{{N: 3, Cols: []*vector.Vector{{Type: tInt}}}}}
	n := &plan.Sort{Input: scanOf(0, bad), Keys: []expr.SortKey{{Expr: col(0, tInt)}}, Limit: -1}
	_, err := runPlan(t, n, 2, bad)
	require.ErrorContains(t, err, "INTERNAL: panic")
}
