package exec

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// benchTable has n rows of lineitem's kind: two flags of few values (dictionaries), quantity, price, discount and tax (decimals), a day,
// and a key of many values.
func benchTable(n int) *table {
	rng := rand.New(rand.NewPCG(1, 2))
	d := vector.DecimalOf(15, 2)
	t := &table{types: []vector.Type{tStr, tStr, d, d, d, d, vector.Of(vector.Date), tBig}}
	dict := func(words ...string) *vector.Vector {
		b := vector.NewBuilder(tStr)
		for _, w := range words {
			b.Append(w)
		}
		return b.Finish()
	}
	flags, status := dict("A", "N", "R"), dict("F", "O")
	for lo := 0; lo < n; lo += vector.Size {
		k := min(vector.Size, n-lo)
		c := &vector.Chunk{N: k}
		for _, dv := range []*vector.Vector{flags, status} {
			v := &vector.Vector{Type: tStr, Form: vector.Dictionary, Codes: make([]int32, k), Dict: dv}
			for i := range v.Codes {
				v.Codes[i] = int32(rng.IntN(len(dv.Views)))
			}
			c.Cols = append(c.Cols, v)
		}
		for _, span := range []int64{5000, 10_000_000, 11, 9} {
			v := vector.New(d, k)
			for i := range v.I64 {
				v.I64[i] = rng.Int64N(span)
			}
			c.Cols = append(c.Cols, v)
		}
		day, key := vector.New(vector.Of(vector.Date), k), vector.New(tBig, k)
		for i := range k {
			day.I32[i] = int32(8000 + rng.IntN(2500))
			key.I64[i] = rng.Int64N(int64(n/4 + 1))
		}
		c.Cols = append(c.Cols, day, key)
		t.chunks = append(t.chunks, c)
	}
	return t
}

func drain(b *testing.B, n plan.Node, tables ...*table) {
	b.Helper()
	pool := memory.NewPool("bench", 0)
	res, err := Run(context.Background(), n, &Query{Pool: pool, Scanner: &fakeScanner{tables: tables}, Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	for {
		c, err := res.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if c == nil {
			break
		}
	}
	if err := res.Close(); err != nil {
		b.Fatal(err)
	}
}

const benchRows = 1 << 20

func run1(b *testing.B, n plan.Node, tables ...*table) {
	b.ReportAllocs()
	for b.Loop() {
		drain(b, n, tables...)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func aggOf(name string, args ...expr.Expr) *expr.Aggregate {
	return must(expr.NewAggregate(name, args, false, nil, nil))
}

func decLit(x int64) expr.Expr { return &expr.Literal{Value: x, Typ: vector.DecimalOf(15, 2)} }

// BenchmarkPricingSummary is TPC-H query 1: filter, two dictionary keys, eight aggregates over decimals.
func BenchmarkPricingSummary(b *testing.B) {
	t := benchTable(benchRows)
	d := vector.DecimalOf(15, 2)
	one := &expr.Literal{Value: int64(1), Typ: vector.DecimalOf(1, 0)}
	disc := fn("*", col(3, d), fn("-", one, col(4, d)))
	charge := fn("*", disc, fn("+", one, col(5, d)))
	f := &plan.Filter{Input: scanOf(0, t), Cond: must(expr.NewCompare(expr.Le, col(6, vector.Of(vector.Date)), &expr.Literal{Value: int32(10400), Typ: vector.Of(vector.Date)}))}
	n := &plan.Aggregate{Input: f, GroupBy: []expr.Expr{col(0, tStr), col(1, tStr)}, Aggs: []*expr.Aggregate{
		aggOf("sum", col(2, d)), aggOf("sum", col(3, d)), aggOf("sum", disc), aggOf("sum", charge), aggOf("avg", col(2, d)), aggOf("avg", col(3, d)),
		aggOf("avg", col(4, d)), aggOf("count")}}
	n.Cols = make([]plan.Column, 10)
	run1(b, n, t)
}

// BenchmarkForecast is TPC-H query 6: five comparisons and a sum of products.
func BenchmarkForecast(b *testing.B) {
	t := benchTable(benchRows)
	d, day := vector.DecimalOf(15, 2), vector.Of(vector.Date)
	cond := must(expr.NewAnd(
		must(expr.NewCompare(expr.Ge, col(6, day), &expr.Literal{Value: int32(8766), Typ: day})),
		must(expr.NewCompare(expr.Lt, col(6, day), &expr.Literal{Value: int32(9131), Typ: day})),
		must(expr.NewCompare(expr.Ge, col(4, d), decLit(5))), must(expr.NewCompare(expr.Le, col(4, d), decLit(7))),
		must(expr.NewCompare(expr.Lt, col(2, d), decLit(2400)))))
	n := &plan.Aggregate{Input: &plan.Filter{Input: scanOf(0, t), Cond: cond}, Aggs: []*expr.Aggregate{aggOf("sum", fn("*", col(3, d), col(4, d)))}, Cols: make([]plan.Column, 1)}
	run1(b, n, t)
}

func BenchmarkGroupManyKeys(b *testing.B) {
	t := benchTable(benchRows)
	n := &plan.Aggregate{Input: scanOf(0, t), GroupBy: []expr.Expr{col(7, tBig)}, Aggs: []*expr.Aggregate{aggOf("count"), aggOf("sum", col(2, vector.DecimalOf(15, 2)))}, Cols: make([]plan.Column, 3)}
	run1(b, n, t)
}

func BenchmarkJoin(b *testing.B) {
	t, small := benchTable(benchRows), benchTable(100_000)
	j := &plan.Join{Kind: plan.Inner, Left: scanOf(0, t), Right: scanOf(1, small), LeftKeys: []expr.Expr{col(7, tBig)}, RightKeys: []expr.Expr{col(7, tBig)}, Cols: make([]plan.Column, 16)}
	n := &plan.Aggregate{Input: j, Aggs: []*expr.Aggregate{aggOf("count"), aggOf("sum", col(7, tBig))}, Cols: make([]plan.Column, 2)}
	run1(b, n, t, small)
}

func BenchmarkTopN(b *testing.B) {
	t := benchTable(benchRows)
	run1(b, &plan.Sort{Input: scanOf(0, t), Keys: []expr.SortKey{{Expr: col(3, vector.DecimalOf(15, 2)), Desc: true}}, Limit: 10}, t)
}

func BenchmarkSort(b *testing.B) {
	t := benchTable(benchRows)
	run1(b, &plan.Sort{Input: scanOf(0, t), Keys: []expr.SortKey{{Expr: col(7, tBig)}, {Expr: col(6, vector.Of(vector.Date))}}, Limit: -1}, t)
}
