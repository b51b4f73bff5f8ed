package exec

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	tInt  = vector.Of(vector.Integer)
	tBig  = vector.Of(vector.BigInt)
	tDbl  = vector.Of(vector.Double)
	tStr  = vector.Of(vector.Varchar)
	tBool = vector.Of(vector.Boolean)
	tDec  = vector.DecimalOf(12, 2)
)

type row []vector.Value

// table is a table in memory and the chunks that a scan of it gives.
type table struct {
	types  []vector.Type
	rows   []row
	chunks []*vector.Chunk
}

// fakeScanner serves tables by snapshot id, a chunk a task.
type fakeScanner struct {
	tables []*table
	delay  time.Duration
}

type fakeTasks struct {
	mu   sync.Mutex
	next int
	t    *table
}

type fakeReader struct {
	c     *vector.Chunk
	delay time.Duration
}

func (f *fakeScanner) Plan(_ context.Context, r *scanner.Request) (scanner.TaskStream, error) {
	return &fakeTasks{t: f.tables[r.Snapshot.ID]}, nil
}

func (f *fakeTasks) Next(context.Context) (*scanner.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next >= len(f.t.chunks) {
		return nil, nil
	}
	f.next++
	t := &scanner.Task{}
	tasks.Store(t, f.t.chunks[f.next-1])
	return t, nil
}
func (f *fakeTasks) Close() {}

var tasks sync.Map

func (f *fakeScanner) Open(_ context.Context, t *scanner.Task, _ *memory.Pool) (scanner.ChunkReader, error) {
	c, _ := tasks.LoadAndDelete(t)
	return &fakeReader{c: c.(*vector.Chunk), delay: f.delay}, nil
}

func (r *fakeReader) Next(ctx context.Context) (*vector.Chunk, error) {
	if r.delay > 0 {
		select {
		case <-time.After(r.delay):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c := r.c
	r.c = nil
	return c, nil
}
func (r *fakeReader) Close() error { return nil }

// randomValue draws from few values, so that groups and joins have partners.
func randomValue(rng *rand.Rand, t vector.Type, span int) vector.Value {
	if rng.IntN(8) == 0 {
		return nil
	}
	k := rng.IntN(span)
	switch t.Kind {
	case vector.Integer:
		return int32(k - span/2)
	case vector.BigInt:
		return int64(k) * 1_000_003
	case vector.Double:
		switch k {
		case 0:
			return math.NaN()
		case 1:
			return math.Copysign(0, -1)
		case 2:
			return 0.0
		}
		return float64(k) / 4
	case vector.Varchar:
		if k%2 == 0 {
			return fmt.Sprint("v", k)
		}
		return fmt.Sprint("a longer value that is not inline ", k)
	case vector.Boolean:
		return k%2 == 0
	case vector.Decimal:
		return int64(k * 25)
	}
	panic("type")
}

func randomTable(rng *rand.Rand, types []vector.Type, n, span int) *table {
	t := &table{types: types}
	for left := n; left > 0; {
		k := min(left, 1+rng.IntN(600))
		var sel []uint16
		phys := k
		if rng.IntN(2) == 0 {
			phys = k * 2
			perm := rng.Perm(phys)[:k]
			slices.Sort(perm)
			for _, p := range perm {
				sel = append(sel, uint16(p))
			}
		}
		c := &vector.Chunk{N: phys, Sel: sel}
		for _, ty := range types {
			c.Cols = append(c.Cols, randomVector(rng, ty, phys, span))
		}
		for i := range phys {
			if sel == nil || slices.Contains(sel, uint16(i)) {
				var r row
				for _, v := range c.Cols {
					r = append(r, v.Get(i))
				}
				t.rows = append(t.rows, r)
			}
		}
		t.chunks = append(t.chunks, c)
		left -= k
	}
	return t
}

func randomVector(rng *rand.Rand, t vector.Type, n, span int) *vector.Vector {
	switch rng.IntN(5) {
	case 0:
		return vector.NewConstant(t, randomValue(rng, t, span))
	case 1:
		d := vector.NewBuilder(t)
		for d.Len() < 5 {
			if v := randomValue(rng, t, span); v != nil {
				d.Append(v)
			}
		}
		v := &vector.Vector{Type: t, Form: vector.Dictionary, Codes: make([]int32, n), Dict: d.Finish()}
		for i := range v.Codes {
			v.Codes[i] = int32(rng.IntN(5))
			if rng.IntN(6) == 0 {
				v.SetNull(i, n)
				v.Codes[i] = 0
			}
		}
		return v
	}
	b := vector.NewBuilder(t)
	for range n {
		b.Append(randomValue(rng, t, span))
	}
	return b.Finish()
}

func cols(types []vector.Type) []plan.Column {
	var out []plan.Column
	for i, t := range types {
		out = append(out, plan.Column{Name: fmt.Sprint("c", i), Type: t, Nullable: true})
	}
	return out
}

func scanOf(id int, t *table) *plan.Scan {
	return &plan.Scan{Snapshot: catalog.Snapshot{ID: int64(id)}, Output: len(t.types), Limit: -1, Cols: cols(t.types)}
}

func col(i int, t vector.Type) *expr.Column { return &expr.Column{Index: i, Typ: t, Null: true} }

func text(t vector.Type, v vector.Value) string {
	if f, ok := v.(float64); ok && f == 0 {
		v = 0.0
	}
	if v == nil {
		return "∅"
	}
	return expr.FormatValue(v, t)
}

func rowText(types []vector.Type, r row) string {
	var p []string
	for i, v := range r {
		p = append(p, text(types[i], v))
	}
	return strings.Join(p, "|")
}

func texts(types []vector.Type, rows []row) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, rowText(types, r))
	}
	return out
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// runPlan runs a plan and checks that all memory is returned. It runs it again with little memory, so that everything spills, and with
// chunks of another size, and checks
// that the rows are the same and no file is left.
func runPlan(t *testing.T, n plan.Node, workers int, tables ...*table) ([]row, error) {
	t.Helper()
	rows, err := runWith(t, n, workers, memory.NewPool("test", 0), nil, tables...)
	if _, limited := n.(*plan.Limit); limited {
		return rows, err
	}
	dir := t.TempDir()
	disk := spill.Open(dir, 0)
	size := []int{0, 1, 7}[len(rows)%3] // any choice that is the same each time
	again, err2 := runChunks(t, n, workers, size, memory.NewPool("test", 64<<10), disk, tables...)
	require.NoError(t, disk.Close())
	left, lerr := os.ReadDir(dir)
	require.NoError(t, lerr)
	require.Empty(t, left)
	if err != nil {
		require.Error(t, err2)
		return rows, err
	}
	require.NoError(t, err2, "with little memory")
	types := typesOf(n.Columns())
	if _, ok := n.(*plan.Window); ok && workers > 1 { // rows that are equal in the order come in any order
		require.Len(t, again, len(rows))
		return rows, err
	}
	require.Equal(t, rounded(types, rows), rounded(types, again), "with little memory")
	return rows, err
}

// rounded gives rows as sorted texts, doubles to a few digits: sums depend on their order.
func rounded(types []vector.Type, rows []row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		for _, v := range r {
			if f, ok := v.(float64); ok {
				v = fmt.Sprintf("%.9g", f+0)
			}
			out[i] += fmt.Sprint(v) + "|"
		}
	}
	return sorted(out)
}

func runWith(t *testing.T, n plan.Node, workers int, pool *memory.Pool, disk *spill.Disk, tables ...*table) ([]row, error) {
	t.Helper()
	return runChunks(t, n, workers, 0, pool, disk, tables...)
}

// runChunks is runWith with chunks of at most size rows.
func runChunks(t *testing.T, n plan.Node, workers, size int, pool *memory.Pool, disk *spill.Disk, tables ...*table) ([]row, error) {
	t.Helper()
	res, err := Run(context.Background(), n, &Query{Pool: pool, Scanner: &fakeScanner{tables: tables}, Workers: workers, ChunkRows: size, Spill: disk})
	if err != nil {
		require.Zero(t, pool.Used())
		return nil, err
	}
	var rows []row
	for {
		var c *vector.Chunk
		if c, err = res.Next(context.Background()); c == nil || err != nil {
			break
		}
		if size > 0 {
			require.LessOrEqual(t, c.Rows(), size)
		}
		for i := range c.N {
			if c.Sel != nil && !slices.Contains(c.Sel, uint16(i)) {
				continue
			}
			var r row
			for _, v := range c.Cols {
				r = append(r, v.Get(i))
			}
			rows = append(rows, r)
		}
	}
	require.NoError(t, res.Close())
	require.NoError(t, res.Close())
	require.Zero(t, pool.Used(), "pool after close")
	return rows, err
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func fn(name string, args ...expr.Expr) expr.Expr { return must(expr.NewCall(name, args)) }

func intLit(i int) expr.Expr { return &expr.Literal{Value: int32(i), Typ: tInt} }

var mixed = []vector.Type{tInt, tBig, tDbl, tStr, tDec}

func TestFilterProject(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tab := randomTable(rng, mixed, 5000, 20)
	cond := must(expr.NewAnd(must(expr.NewCompare(expr.Gt, col(0, tInt), intLit(-5))),
		must(expr.NewIn(col(3, tStr), []expr.Expr{&expr.Literal{Value: "v2", Typ: tStr}, &expr.Literal{Value: "v4", Typ: tStr}}, true))))
	n := &plan.Project{Input: &plan.Filter{Input: scanOf(0, tab), Cond: cond}, Exprs: []expr.Expr{fn("+", col(0, tInt), intLit(1)), col(3, tStr)},
		Cols: cols([]vector.Type{tInt, tStr})}
	var want []row
	for _, r := range tab.rows {
		if r[0] != nil && r[3] != nil && r[0].(int32) > -5 && r[3] != "v2" && r[3] != "v4" {
			want = append(want, row{r[0].(int32) + 1, r[3]})
		}
	}
	for _, w := range []int{1, 3} {
		got, err := runPlan(t, n, w, tab)
		require.NoError(t, err)
		require.Equal(t, sorted(texts([]vector.Type{tInt, tStr}, want)), sorted(texts([]vector.Type{tInt, tStr}, got)))
	}
}

func TestAggregate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, keys := range [][]int{{}, {0}, {1}, {2}, {3}, {0, 1}, {0, 3}, {3, 2, 4}} {
		for _, span := range []int{4, 3000} {
			tab := randomTable(rng, mixed, 6000, span)
			var by []expr.Expr
			var types []vector.Type
			for _, k := range keys {
				by = append(by, col(k, mixed[k]))
				types = append(types, mixed[k])
			}
			filter := must(expr.NewCompare(expr.Lt, col(0, tInt), intLit(0)))
			aggs := []*expr.Aggregate{
				must(expr.NewAggregate("count", nil, false, nil, nil)),
				must(expr.NewAggregate("sum", []expr.Expr{col(1, tBig)}, false, nil, nil)),
				must(expr.NewAggregate("min", []expr.Expr{col(3, tStr)}, false, nil, nil)),
				must(expr.NewAggregate("sum", []expr.Expr{col(4, tDec)}, false, filter, nil)),
				must(expr.NewAggregate("count", []expr.Expr{col(0, tInt)}, true, nil, nil)),
				must(expr.NewAggregate("max", []expr.Expr{col(0, tInt)}, false, nil, nil)),
			}
			for _, a := range aggs {
				types = append(types, a.Typ)
			}
			n := &plan.Aggregate{Input: scanOf(0, tab), GroupBy: by, Aggs: aggs, Cols: cols(types)}
			want := naiveGroups(tab, keys)
			for _, w := range []int{1, 4} {
				got, err := runPlan(t, n, w, tab)
				require.NoError(t, err)
				require.Equal(t, sorted(texts(types, want)), sorted(texts(types, got)), "keys %v span %d", keys, span)
			}
		}
	}
}

func naiveGroups(tab *table, keys []int) []row {
	type state struct {
		key      row
		n, sum   int64
		decSum   int64
		hasSum   bool
		hasDec   bool
		min, max vector.Value
		seen     map[int32]bool
	}
	groups := map[string]*state{}
	if len(keys) == 0 {
		groups[""] = &state{seen: map[int32]bool{}}
	}
	for _, r := range tab.rows {
		var key row
		var id []string
		for _, k := range keys {
			key = append(key, r[k])
			id = append(id, text(mixed[k], r[k]))
		}
		s := groups[strings.Join(id, "|")]
		if s == nil {
			s = &state{key: key, seen: map[int32]bool{}}
			groups[strings.Join(id, "|")] = s
		}
		s.n++
		if r[1] != nil {
			s.sum += r[1].(int64)
			s.hasSum = true
		}
		if r[3] != nil && (s.min == nil || r[3].(string) < s.min.(string)) {
			s.min = r[3]
		}
		if r[0] != nil {
			x := r[0].(int32)
			s.seen[x] = true
			if s.max == nil || x > s.max.(int32) {
				s.max = x
			}
			if x < 0 && r[4] != nil {
				s.decSum += r[4].(int64)
				s.hasDec = true
			}
		}
	}
	var out []row
	for _, s := range groups {
		r := append(row(nil), s.key...)
		r = append(r, s.n)
		if s.hasSum {
			r = append(r, s.sum)
		} else {
			r = append(r, nil)
		}
		r = append(r, s.min)
		if s.hasDec {
			r = append(r, must(castDec(s.decSum)))
		} else {
			r = append(r, nil)
		}
		out = append(out, append(r, int64(len(s.seen)), s.max))
	}
	return out
}

func castDec(x int64) (vector.Value, error) {
	e, err := expr.NewCast(&expr.Literal{Value: x, Typ: vector.DecimalOf(18, 2)}, vector.DecimalOf(38, 2), false)
	if err != nil {
		return nil, err
	}
	return expr.EvalConst(e, nil)
}

func TestGroupingSets(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(5, 6)), []vector.Type{tInt, tStr}, 1000, 3)
	n := &plan.Aggregate{Input: scanOf(0, tab), GroupBy: []expr.Expr{col(0, tInt), col(1, tStr)}, Sets: [][]int{{0, 1}, {0}, {}},
		Aggs: []*expr.Aggregate{must(expr.NewAggregate("count", nil, false, nil, nil))}, Cols: cols([]vector.Type{tInt, tStr, tBig, tBig})}
	got, err := runPlan(t, n, 2, tab)
	require.NoError(t, err)
	sums := map[int64]int64{}
	for _, r := range got {
		sums[r[2].(int64)] += r[3].(int64)
	}
	require.Equal(t, map[int64]int64{0: 1000, 1: 1000, 3: 1000}, sums)
}

func joinMatch(l, r row, keys []int, nullSafe bool) bool {
	for _, k := range keys {
		a, b := l[k], r[k]
		if a == nil || b == nil {
			if nullSafe && a == nil && b == nil {
				continue
			}
			return false
		}
		f, isF := a.(float64)
		if isF && f != f && !nullSafe {
			return false
		}
		if expr.CompareValues(mixed[k], a, b) != 0 {
			return false
		}
	}
	return true
}

func TestJoins(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	names := map[plan.JoinKind]string{plan.Inner: "inner", plan.Left: "left", plan.Right: "right", plan.Full: "full", plan.Semi: "semi",
		plan.Anti: "anti", plan.Mark: "mark", plan.NullAwareAnti: "null-aware anti"}
	for kind, name := range names {
		for _, keys := range [][]int{{0}, {1}, {2}, {3}, {0, 3}, {}} {
			for _, span := range []int{6, 400} {
				for _, residual := range []bool{false, true} {
					nullSafe := len(keys) == 2
					if kind == plan.NullAwareAnti && (len(keys) != 1 || residual) || kind == plan.Mark && (len(keys) != 1 || residual) {
						continue
					}
					nl, nr := 300, 150
					if len(keys) == 0 {
						nl, nr = 120, 60 // 7,200 pairs, a few chunks of them
					}
					left, right := randomTable(rng, mixed, nl, span), randomTable(rng, mixed, nr, span)
					j := &plan.Join{Kind: kind, Left: scanOf(0, left), Right: scanOf(1, right)}
					for _, k := range keys {
						j.LeftKeys = append(j.LeftKeys, col(k, mixed[k]))
						j.RightKeys = append(j.RightKeys, col(k, mixed[k]))
						if nullSafe {
							j.NullSafe = append(j.NullSafe, true)
						}
					}
					if residual {
						j.Residual = must(expr.NewCompare(expr.Lt, col(1, tBig), col(6, tBig)))
					}
					types := slices.Clone(mixed)
					switch kind {
					case plan.Semi, plan.Anti, plan.NullAwareAnti:
					case plan.Mark:
						types = append(types, tBool)
					default:
						types = append(types, mixed...)
					}
					j.Cols = cols(types)
					want := naiveJoin(kind, left.rows, right.rows, func(l, r row) bool {
						return joinMatch(l, r, keys, nullSafe) && (!residual || l[1] != nil && r[1] != nil && l[1].(int64) < r[1].(int64))
					}, keys)
					got, err := runPlan(t, j, 1+rng.IntN(3), left, right)
					require.NoError(t, err)
					require.Equal(t, sorted(texts(types, want)), sorted(texts(types, got)), "%s keys %v span %d residual %v", name, keys, span, residual)
				}
			}
		}
	}
}

func naiveJoin(kind plan.JoinKind, left, right []row, match func(l, r row) bool, keys []int) []row {
	nulls := make(row, len(mixed))
	used := make([]bool, len(right))
	var out []row
	rightNull := false
	for _, r := range right {
		for _, k := range keys {
			rightNull = rightNull || r[k] == nil
		}
	}
	for _, l := range left {
		hit := false
		for i, r := range right {
			if !match(l, r) {
				continue
			}
			hit, used[i] = true, true
			switch kind {
			case plan.Inner, plan.Left, plan.Right, plan.Full:
				out = append(out, append(slices.Clone(l), r...))
			}
		}
		switch kind {
		case plan.Left, plan.Full:
			if !hit {
				out = append(out, append(slices.Clone(l), nulls...))
			}
		case plan.Semi:
			if hit {
				out = append(out, l)
			}
		case plan.Anti:
			if !hit {
				out = append(out, l)
			}
		case plan.NullAwareAnti:
			if !hit && (len(right) == 0 || !rightNull && l[keys[0]] != nil) {
				out = append(out, l)
			}
		case plan.Mark:
			var m vector.Value = hit
			if !hit && len(right) > 0 && (rightNull || l[keys[0]] == nil) {
				m = nil
			}
			out = append(out, append(slices.Clone(l), m))
		}
	}
	if kind == plan.Right || kind == plan.Full {
		for i, r := range right {
			if !used[i] {
				out = append(out, append(slices.Clone(nulls), r...))
			}
		}
	}
	return out
}

func TestSingleJoinRefusesSeveral(t *testing.T) {
	one := &table{types: []vector.Type{tInt}, rows: []row{{int32(1)}}, chunks: []*vector.Chunk{{N: 1, Cols: []*vector.Vector{vector.NewConstant(tInt, int32(1))}}}}
	two := &table{types: []vector.Type{tInt}, chunks: []*vector.Chunk{{N: 2, Cols: []*vector.Vector{vector.NewConstant(tInt, int32(1))}}}}
	j := &plan.Join{Kind: plan.Single, Left: scanOf(0, one), Right: scanOf(1, two), LeftKeys: []expr.Expr{col(0, tInt)}, RightKeys: []expr.Expr{col(0, tInt)},
		Cols: cols([]vector.Type{tInt, tInt})}
	_, err := runPlan(t, j, 1, one, two)
	require.ErrorContains(t, err, "SUBQUERY_MULTIPLE_ROWS")
	j.Right = scanOf(0, one)
	got, err := runPlan(t, j, 1, one, two)
	require.NoError(t, err)
	require.Len(t, got, 1)
}

func TestSortAndTopN(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, span := range []int{5, 100000} {
		tab := randomTable(rng, mixed, 20000, span)
		keys := []expr.SortKey{{Expr: col(2, tDbl), Desc: true}, {Expr: col(3, tStr), NullsFirst: true}, {Expr: col(0, tInt)}, {Expr: col(1, tBig)}, {Expr: col(4, tDec)}}
		want := slices.Clone(tab.rows)
		slices.SortStableFunc(want, func(a, b row) int {
			return expr.CompareKeys(keys, row{a[2], a[3], a[0], a[1], a[4]}, row{b[2], b[3], b[0], b[1], b[4]})
		})
		for _, limit := range []int64{-1, 7, 3000} {
			for _, w := range []int{1, 3} {
				n := &plan.Sort{Input: scanOf(0, tab), Keys: keys, Limit: limit}
				exp := want
				if limit >= 0 {
					n.Offset = 3
					exp = want[3 : 3+limit]
				}
				got, err := runPlan(t, n, w, tab)
				require.NoError(t, err)
				require.Equal(t, texts(mixed, exp), texts(mixed, got))
			}
		}
		ties := &plan.Sort{Input: scanOf(0, tab), Keys: keys[:1], Limit: 1, WithTies: true}
		got, err := runPlan(t, ties, 2, tab)
		require.NoError(t, err)
		n := 0
		for _, r := range tab.rows {
			if text(tDbl, r[2]) == text(tDbl, want[0][2]) {
				n++
			}
		}
		require.Len(t, got, n)
	}
}

func TestLimitStopsTheScan(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(11, 12)), []vector.Type{tInt}, 50000, 50)
	for _, w := range []int{1, 4} {
		for _, c := range [][2]int64{{10, 0}, {0, 0}, {5000, 100}, {-1, 49990}, {100, 60000}} {
			got, err := runPlan(t, &plan.Limit{Input: scanOf(0, tab), Count: c[0], Offset: c[1]}, w, tab)
			require.NoError(t, err)
			want := 50000 - min(c[1], 50000)
			if c[0] >= 0 {
				want = min(want, c[0])
			}
			require.EqualValues(t, want, len(got))
		}
	}
}

func TestSetOps(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	types := []vector.Type{tInt, tDbl}
	left, right := randomTable(rng, types, 400, 6), randomTable(rng, types, 100, 4)
	count := func(t *table) map[string]int {
		m := map[string]int{}
		for _, r := range t.rows {
			m[rowText(types, r)]++
		}
		return m
	}
	l, r := count(left), count(right)
	for _, c := range []struct{ except, all bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		want := []string{}
		for k, n := range l {
			m := r[k]
			switch {
			case c.except && c.all:
				n = max(0, n-m)
			case c.except:
				n = 0
				if m == 0 {
					n = 1
				}
			case c.all:
				n = min(n, m)
			default:
				n = min(1, m)
			}
			for range n {
				want = append(want, k)
			}
		}
		got, err := runPlan(t, &plan.SetOp{Except: c.except, All: c.all, Left: scanOf(0, left), Right: scanOf(1, right), Cols: cols(types)}, 2, left, right)
		require.NoError(t, err)
		require.Equal(t, sorted(want), sorted(texts(types, got)))
	}
	got, err := runPlan(t, &plan.Union{Nodes: []plan.Node{scanOf(0, left), scanOf(1, right)}, Cols: cols(types)}, 2, left, right)
	require.NoError(t, err)
	require.Equal(t, sorted(texts(types, append(slices.Clone(left.rows), right.rows...))), sorted(texts(types, got)))
}

func TestCancelAndMemory(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(15, 16)), mixed, 150000, 100000)
	pool := memory.NewPool("test", 0)
	ctx, cancel := context.WithCancel(context.Background())
	n := &plan.Sort{Input: scanOf(0, tab), Keys: []expr.SortKey{{Expr: col(0, tInt)}}, Limit: -1}
	res, err := Run(ctx, n, &Query{Pool: pool, Scanner: &fakeScanner{tables: []*table{tab}, delay: 10 * time.Millisecond}, Workers: 2})
	require.NoError(t, err)
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = res.Next(context.Background())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, res.Close())
	require.Zero(t, pool.Used())

	small := memory.NewPool("query", 100<<10)
	set := &plan.Aggregate{Input: scanOf(0, tab), Aggs: []*expr.Aggregate{aggOf("array_agg", col(3, tStr))}, Cols: cols([]vector.Type{vector.ArrayOf(tStr)})}
	res, err = Run(context.Background(), set, &Query{Pool: small, Scanner: &fakeScanner{tables: []*table{tab}}, Workers: 2})
	require.NoError(t, err)
	_, err = res.Next(context.Background())
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "operator Aggregate wanted")
	require.ErrorContains(t, err, "raise limits.query.memory")
	require.NoError(t, res.Close())
	require.Zero(t, small.Used())
}

// TestLiteralRowsAreCounted holds rows that came with the plan to the query's limit.
func TestLiteralRowsAreCounted(t *testing.T) {
	v := &plan.Values{Cols: cols([]vector.Type{tStr})}
	for range 1000 {
		v.Rows = append(v.Rows, []expr.Expr{&expr.Literal{Value: strings.Repeat("x", 1000), Typ: tStr}})
	}
	pool := memory.NewPool("query", 1<<20)
	_, err := Run(context.Background(), v, &Query{Pool: pool})
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "operator Values wanted 1112000 bytes: raise limits.query.memory")
	require.Zero(t, pool.Used())
	rows, err := runWith(t, v, 2, memory.NewPool("query", 2<<20), nil)
	require.NoError(t, err)
	require.Len(t, rows, 1000)
}

func TestErrorsOfTheDataStopTheRun(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(17, 18)), []vector.Type{tInt}, 5000, 50)
	n := &plan.Project{Input: scanOf(0, tab), Exprs: []expr.Expr{fn("/", intLit(1), fn("-", col(0, tInt), col(0, tInt)))}, Cols: cols([]vector.Type{tInt})}
	for _, w := range []int{1, 3} {
		_, err := runPlan(t, n, w, tab)
		require.ErrorContains(t, err, "DIVISION_BY_ZERO")
	}
}

func TestCloseEarly(t *testing.T) {
	tab := randomTable(rand.New(rand.NewPCG(19, 20)), mixed, 20000, 50)
	pool := memory.NewPool("test", 0)
	res, err := Run(context.Background(), scanOf(0, tab), &Query{Pool: pool, Scanner: &fakeScanner{tables: []*table{tab}}, Workers: 3})
	require.NoError(t, err)
	_, err = res.Next(context.Background())
	require.NoError(t, err)
	require.NoError(t, res.Close())
	require.Zero(t, pool.Used())
}
