package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	ihadoop "github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lake makes tables with iceberg-go and reads them with the scanner.
type lake struct {
	t     testing.TB
	cat   *ihadoop.Catalog
	pool  *memory.Pool
	scan  *scanner.Scanner
	store storage.Store

	budget *cache.Budget
}

func newLake(t testing.TB) *lake {
	cat, err := ihadoop.NewCatalog("lake", t.TempDir(), nil)
	require.NoError(t, err)
	require.NoError(t, cat.CreateNamespace(context.Background(), table.Identifier{"ns"}, nil))
	l := &lake{t: t, cat: cat, pool: memory.NewPool("process", 0), store: storage.Local{}}
	budget := cache.NewBudget(l.pool, 64<<20)
	l.budget = budget
	l.scan = scanner.New(scanner.Options{Budget: budget, Workers: 2})
	t.Cleanup(func() {
		budget.Close()
		require.Zero(t, l.pool.Used())
	})
	return l
}

func (l *lake) create(name string, schema *iceberg.Schema, opts ...icatalog.CreateTableOpt) *table.Table {
	t, err := l.cat.CreateTable(context.Background(), table.Identifier{"ns", name}, schema, opts...)
	require.NoError(l.t, err)
	return t
}

// rowsJSON makes an Arrow table of rows in JSON.
func arrowTable(t testing.TB, schema *iceberg.Schema, rows string) arrow.Table {
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	require.NoError(t, err)
	tbl, err := array.TableFromJSON(amemory.DefaultAllocator, as, []string{rows})
	require.NoError(t, err)
	return tbl
}

func (l *lake) append(t *table.Table, rows string) *table.Table {
	at := arrowTable(l.t, t.Schema(), rows)
	defer at.Release()
	out, err := t.AppendTable(context.Background(), at, 1000, nil)
	require.NoError(l.t, err)
	return out
}

func (l *lake) table(t *table.Table) *catalog.Table {
	return &catalog.Table{Catalog: "lake", Namespace: catalog.Namespace{"ns"}, Name: "t", Metadata: t.Metadata(), Store: l.store}
}

func (l *lake) request(t *table.Table) *scanner.Request {
	r := &scanner.Request{Table: l.table(t), Projection: t.Schema(), Output: len(t.Schema().Fields()), Limit: -1, Profile: &profile.Scan{},
		Snapshot: catalog.Snapshot{Schema: t.Schema()}, Context: &expr.Context{Zone: time.UTC}}
	if s := t.CurrentSnapshot(); s != nil {
		r.Snapshot.ID, r.Snapshot.Present = s.SnapshotID, true
	}
	return r
}

// rows runs a request on some workers and gives the rows as text, sorted.
func (l *lake) rows(r *scanner.Request, workers int) ([]string, error) {
	return l.rowsOf(context.Background(), r, workers)
}

func (l *lake) rowsOf(ctx context.Context, r *scanner.Request, workers int) ([]string, error) {
	q := l.pool.Child("query", 0)
	defer func() { require.Zero(l.t, q.Used()) }()
	s, err := l.scan.Plan(ctx, r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var mu sync.Mutex
	var out []string
	var first error
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				got, err := l.task(ctx, s, q)
				mu.Lock()
				out = append(out, got...)
				if err != nil && first == nil {
					first = err
				}
				mu.Unlock()
				if err != nil || got == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	sort.Strings(out)
	return out, first
}

// task reads the next task; nil at the end.
func (l *lake) task(ctx context.Context, s scanner.TaskStream, q *memory.Pool) ([]string, error) {
	t, err := s.Next(ctx)
	if t == nil || err != nil {
		return nil, err
	}
	rd, err := l.scan.Open(ctx, t, q)
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(l.t, rd.Close()) }()
	out := []string{}
	for {
		c, err := rd.Next(ctx)
		if c == nil || err != nil {
			return out, err
		}
		require.Positive(l.t, c.Rows())
		for i := range c.Rows() {
			row := i
			if c.Sel != nil {
				row = int(c.Sel[i])
			}
			var text []string
			for _, v := range c.Cols {
				text = append(text, fmt.Sprint(v.Get(row)))
			}
			out = append(out, strings.Join(text, "|"))
		}
	}
}

func (l *lake) must(r *scanner.Request) []string {
	out, err := l.rows(r, 2)
	require.NoError(l.t, err)
	return out
}

var eventSchema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "kind", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "at", Type: iceberg.PrimitiveTypes.Timestamp},
	iceberg.NestedField{ID: 4, Name: "n", Type: iceberg.PrimitiveTypes.Int32},
)

func spec(fields ...iceberg.PartitionField) *iceberg.PartitionSpec {
	for i := range fields {
		fields[i].FieldID = 1000 + i
	}
	s := iceberg.NewPartitionSpec(fields...)
	return &s
}

// events makes rows id in [from, to) as JSON; kinds, times and numbers repeat, some are null.
func events(r *rand.Rand, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		if i > from {
			b.WriteByte(',')
		}
		kind, at, n := `"`+[]string{"open", "close", "click", "a kind with a long name"}[r.Intn(4)]+`"`, "", fmt.Sprint(r.Intn(100)-50)
		at = time.Date(1969, 12, 30, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Intn(96*60)) * time.Minute).Format(`"2006-01-02 15:04:05"`)
		if r.Intn(8) == 0 {
			kind = "null"
		}
		if r.Intn(8) == 0 {
			at = "null"
		}
		if r.Intn(8) == 0 {
			n = "null"
		}
		fmt.Fprintf(&b, `{"id":%d,"kind":%s,"at":%s,"n":%s}`, i, kind, at, n)
	}
	return "[" + b.String() + "]"
}

func column(s *iceberg.Schema, name string) *expr.Column {
	for i, f := range s.Fields() {
		if f.Name == name {
			t, err := catalog.TypeOf(f.Type)
			if err != nil {
				panic(err)
			}
			return &expr.Column{Index: i, Name: name, Typ: t, Null: !f.Required}
		}
	}
	panic(name)
}

func lit(t vector.Type, v vector.Value) expr.Expr { return &expr.Literal{Typ: t, Value: v} }

func ex(e expr.Expr, err error) expr.Expr {
	if err != nil {
		panic(err)
	}
	return e
}

// predicate makes a filter in both expression languages.
func predicate(r *rand.Rand, s *iceberg.Schema) (expr.Expr, iceberg.BooleanExpression) {
	ops := []struct {
		op  expr.CompareOp
		ice func(ref string, v any) iceberg.BooleanExpression
	}{
		{expr.Eq, func(n string, v any) iceberg.BooleanExpression { return compareTo(iceberg.OpEQ, n, v) }},
		{expr.Lt, func(n string, v any) iceberg.BooleanExpression { return compareTo(iceberg.OpLT, n, v) }},
		{expr.Le, func(n string, v any) iceberg.BooleanExpression { return compareTo(iceberg.OpLTEQ, n, v) }},
		{expr.Gt, func(n string, v any) iceberg.BooleanExpression { return compareTo(iceberg.OpGT, n, v) }},
		{expr.Ge, func(n string, v any) iceberg.BooleanExpression { return compareTo(iceberg.OpGTEQ, n, v) }},
	}
	op := ops[r.Intn(len(ops))]
	switch r.Intn(6) {
	case 0:
		v := int64(r.Intn(400))
		return ex(expr.NewCompare(op.op, column(s, "id"), lit(vector.Of(vector.BigInt), v))), op.ice("id", v)
	case 1:
		v := []string{"open", "close", "click", "nothing"}[r.Intn(4)]
		return ex(expr.NewCompare(op.op, column(s, "kind"), lit(vector.Of(vector.Varchar), v))), op.ice("kind", v)
	case 2:
		v := int32(r.Intn(120) - 60)
		return ex(expr.NewCompare(op.op, column(s, "n"), lit(vector.Of(vector.Integer), v))), op.ice("n", v)
	case 3:
		v := time.Date(1969, 12, 30, r.Intn(96), 0, 0, 0, time.UTC).UnixMicro()
		return ex(expr.NewCompare(op.op, column(s, "at"), lit(vector.Of(vector.Timestamp), v))), op.ice("at", iceberg.Timestamp(v))
	case 4:
		return &expr.IsNull{Arg: column(s, "kind")}, iceberg.IsNull(iceberg.Reference("kind"))
	}
	a, b := predicate(r, s)
	c, d := predicate(r, s)
	if r.Intn(2) == 0 {
		return ex(expr.NewAnd(a, c)), iceberg.NewAnd(b, d)
	}
	return ex(expr.NewOr(a, c)), iceberg.NewOr(b, d)
}

func compareTo(op iceberg.Operation, name string, v any) iceberg.BooleanExpression {
	switch x := v.(type) {
	case int64:
		return iceberg.LiteralPredicate(op, iceberg.Reference(name), iceberg.NewLiteral(x))
	case int32:
		return iceberg.LiteralPredicate(op, iceberg.Reference(name), iceberg.NewLiteral(x))
	case string:
		return iceberg.LiteralPredicate(op, iceberg.Reference(name), iceberg.NewLiteral(x))
	case iceberg.Timestamp:
		return iceberg.LiteralPredicate(op, iceberg.Reference(name), iceberg.NewLiteral(x))
	}
	panic(fmt.Sprintf("%T", v))
}

// planned lists the files that a request plans.
func (l *lake) planned(r *scanner.Request) []string {
	s, err := l.scan.Plan(context.Background(), r)
	require.NoError(l.t, err)
	defer s.Close()
	var out []string
	for {
		t, err := s.Next(context.Background())
		require.NoError(l.t, err)
		if t == nil {
			slices.Sort(out)
			return slices.Compact(out)
		}
		out = append(out, t.Path)
	}
}

// batches gives the record batches of an Arrow table.
func batches(t arrow.Table) func(yield func(arrow.RecordBatch, error) bool) {
	return func(yield func(arrow.RecordBatch, error) bool) {
		r := array.NewTableReader(t, 1000)
		defer r.Release()
		for r.Next() {
			if !yield(r.RecordBatch(), nil) {
				return
			}
		}
	}
}

func truncate(t *testing.T, path string, n int64) {
	require.NoError(t, os.Truncate(path, n))
}

func rename(t *testing.T, from, to string) {
	require.NoError(t, os.Rename(from, to))
}
