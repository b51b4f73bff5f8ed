package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// statements lists the statements of the golden files.
func statements(t testing.TB) []string {
	var out []string
	for _, path := range []string{"basic", "queries", "errors", "tpch"} {
		data, err := os.ReadFile("testdata/" + path + ".golden")
		require.NoError(t, err)
		for _, c := range strings.Split(strings.TrimSpace(string(data)), "\n===\n") {
			text, _, _ := strings.Cut(c, "\n---\n")
			out = append(out, text)
		}
	}
	return out
}

// check walks a plan: every column that an expression names exists in its input and has its type.
func check(t testing.TB, n Node) {
	for _, in := range n.Inputs() {
		check(t, in)
	}
	over := func(cols []Column, es ...expr.Expr) {
		for _, e := range es {
			expr.Walk(e, func(x expr.Expr) bool {
				if c, ok := x.(*expr.Column); ok {
					require.Less(t, c.Index, len(cols), "%T: %s", n, e)
					require.True(t, c.Typ.Equal(cols[c.Index].Type), "%T: %s is %s and the input has %s", n, c, c.Typ, cols[c.Index].Type)
					require.False(t, !c.Null && cols[c.Index].Nullable, "%T: %s promises no nulls", n, c)
				}
				return true
			})
		}
	}
	switch n := n.(type) {
	case *Filter:
		over(n.Input.Columns(), n.Cond)
	case *Project:
		over(n.Input.Columns(), n.Exprs...)
		require.Len(t, n.Cols, len(n.Exprs))
	case *Aggregate:
		over(n.Input.Columns(), n.GroupBy...)
		for _, a := range n.Aggs {
			over(n.Input.Columns(), a.Children()...)
		}
		width := len(n.GroupBy) + len(n.Aggs)
		if n.Sets != nil {
			width++
		}
		require.Len(t, n.Cols, width)
	case *Join:
		over(n.Left.Columns(), n.LeftKeys...)
		over(n.Right.Columns(), n.RightKeys...)
		over(append(append([]Column(nil), n.Left.Columns()...), n.Right.Columns()...), n.Residual)
		for i := range n.LeftKeys {
			require.True(t, n.LeftKeys[i].Type().Equal(n.RightKeys[i].Type()))
		}
	case *Sort:
		for _, k := range n.Keys {
			over(n.Input.Columns(), k.Expr)
		}
	case *Window:
		over(n.Input.Columns(), n.PartitionBy...)
		require.Len(t, n.Cols, len(n.Input.Columns())+len(n.Functions))
	case *Union:
		for _, in := range n.Nodes {
			require.Len(t, in.Columns(), len(n.Cols))
		}
	}
}

func TestPlansAreWhole(t *testing.T) {
	env, _ := testEnvironment(t)
	for _, text := range statements(t) {
		p, err := Build(context.Background(), text, env)
		if err == nil && p.Root != nil {
			check(t, p.Root)
			require.Equal(t, len(p.Columns), len(p.Root.Columns()))
		}
	}
}

// TestConcurrent builds and shows plans from many goroutines: neither environment nor plans may be written to.
func TestConcurrent(t *testing.T) {
	env, m := testEnvironment(t)
	m.quiet = true
	p, err := Build(context.Background(), statements(t)[10], env)
	require.NoError(t, err)
	want := Format(p.Root, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, text := range statements(t) {
				_, _ = Build(context.Background(), text, env)
			}
			if got := Format(p.Root, nil); got != want {
				t.Errorf("plan changed:\n%s", got)
			}
		})
	}
	wg.Wait()
}

func TestPinned(t *testing.T) {
	env, _ := testEnvironment(t)
	p, err := Build(context.Background(), "select e.id from s.emp e join s.dept for version as of 1 d on e.id = d.id", env)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"lake.s.emp": 1}, p.Pinned)
	env.Snapshots = map[string]int64{"lake.s.emp": 9}
	_, err = Build(context.Background(), "select id from s.emp", env)
	require.ErrorIs(t, err, fault.NotFound)
}

func TestParameterHints(t *testing.T) {
	env, _ := testEnvironment(t)
	env.ParamTypes = []vector.Type{vector.Of(vector.Double), vector.Of(vector.Varchar)}
	p, err := Build(context.Background(), "select ? from s.emp where hired_at = ?", env)
	require.Error(t, err)
	require.Nil(t, p)
	p, err = Build(context.Background(), "select ? from s.sales where day = ?", env)
	require.NoError(t, err)
	require.Equal(t, "double date", p.Params[0].String()+" "+p.Params[1].String())
}

// TestInformationSchemaLoads checks that names in the filter keep other tables from being loaded.
func TestInformationSchemaLoads(t *testing.T) {
	env, m := testEnvironment(t)
	_, err := Build(context.Background(), "select column_name from information_schema.columns where table_schema = 's' and table_name = 'dept'", env)
	require.NoError(t, err)
	require.Equal(t, []string{"s.dept"}, m.loads)
}

func TestCanceled(t *testing.T) {
	env, _ := testEnvironment(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Build(ctx, "select 1", env)
	require.ErrorIs(t, err, fault.Canceled)
}

// FuzzBuild checks that no statement panics binder and passes, that plans are whole, and that every refusal has a kind.
func FuzzBuild(f *testing.F) {
	for _, s := range statements(f) {
		f.Add(s)
	}
	env, m := testEnvironment(f)
	m.quiet = true
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Build(context.Background(), text, env)
		if err != nil {
			if errors.Is(err, fault.Internal) {
				t.Fatalf("%v", err)
			}
			return
		}
		if p.Root != nil {
			check(t, p.Root)
			Format(p.Root, nil)
		}
	})
}

// TestHuge checks that what the parser lets through costs the planner neither its stack nor more than a few seconds.
func TestHuge(t *testing.T) {
	env, _ := testEnvironment(t)
	nested := "1"
	for range 20 {
		nested = "(" + nested + strings.Repeat("+1", 200) + ")"
	}
	many := strings.Repeat("a.id = b.id or a.name = b.name and a.dept > 1 or ", 5000) + "false"
	for name, text := range map[string]string{
		"deep":     "select " + nested,
		"or":       "select 1 from s.emp a, s.dept b where " + many,
		"and":      "select 1 from s.emp a, s.dept b where " + strings.Repeat("a.id + b.id <> 7 and ", 5000) + "true",
		"in":       "select 1 from s.emp where id in (" + strings.Repeat("1,", 20000) + "2)",
		"joins":    "select 1 from s.emp" + strings.Repeat(", s.emp", 40),
		"union":    "select id from s.emp" + strings.Repeat(" union all select id from s.emp", 1000),
		"items":    "select 1" + strings.Repeat(", id", 2000) + " from s.emp",
		"nest":     strings.Repeat("select * from (", 100) + "select id from s.emp" + strings.Repeat(") t", 100),
		"exists":   "select 1 from s.emp e where " + strings.Repeat("exists (select 1 from s.dept d where d.id = e.id) and ", 100) + "true",
		"with":     "with a0 as (select id from s.emp)" + doubling(12) + " select * from a12",
		"grouping": "select count(*) from s.emp group by cube (id, name, dept, mgr, salary)",
	} {
		start := time.Now()
		_, err := Build(context.Background(), text, env)
		if name != "deep" || err == nil {
			require.NoError(t, err, name)
		}
		t.Log(name, time.Since(start).Round(time.Millisecond))
		require.Less(t, time.Since(start), 20*time.Second, name)
	}
}

// doubling makes tables of WITH each of which joins the one before it with itself.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ", a%d as (select x.id from a%d x join a%d y on x.id = y.id)", i+1, i, i)
	}
	return b.String()
}

func BenchmarkBuildPoint(b *testing.B) {
	env, m := testEnvironment(b)
	m.quiet = true
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(context.Background(), "select o_orderkey, o_totalprice from orders where o_orderkey = ?", env); err != nil {
			b.Fatal(err)
		}
	}
}
