package scanner_test

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	amemory "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// shreddedFile writes row groups of 1,000 rows of {"a": {"b": i, "s": text}, "k": i}, in which all three are shredded; in the last
// group every tenth a.b is a text, which stands in value.
func shreddedFile(t *testing.T) string {
	typ := extensions.NewShreddedVariantType(arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String})},
		arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}))
	b := extensions.NewVariantBuilder(amemory.DefaultAllocator, typ)
	defer b.Release()
	r := rand.New(rand.NewSource(1))
	long := make([]byte, 300)
	for i := range 3000 {
		for k := range long {
			long[k] = 'a' + byte(r.Intn(26))
		}
		n := fmt.Sprint(i)
		if i >= 2000 && i%10 == 0 {
			n = `"` + n + `"`
		}
		v, err := variant.ParseJSON(fmt.Sprintf(`{"a":{"b":%s,"s":"%s"},"k":%d}`, n, long, i), true)
		require.NoError(t, err)
		b.Append(v)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: typ, Nullable: true}}, nil)
	col := b.NewArray()
	defer col.Release()
	rec := array.NewRecordBatch(schema, []arrow.Array{col}, 3000)
	defer rec.Release()
	path := filepath.Join(t.TempDir(), "v.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(1000), parquet.WithDictionaryDefault(false),
		parquet.WithDataPageSize(1<<10), parquet.WithBatchSize(100), parquet.WithPageIndexEnabled(true)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return path
}

// TestVariantPathsReadTheirColumns: a path reads the columns that it leads to; statistics of typed_value leave row groups and pages out
// in which nothing stands beside it. Rows are the same without.
func TestVariantPathsReadTheirColumns(t *testing.T) {
	l := newLake(t)
	path := shreddedFile(t)
	size, err := os.Stat(path)
	require.NoError(t, err)
	tab, err := l.scan.OpenFiles(context.Background(), path)
	require.NoError(t, err)
	everything := l.scan
	budget := cache.NewBudget(l.pool, 1)
	t.Cleanup(budget.Close)
	nothing := scanner.New(scanner.Options{Budget: budget, Workers: 1, Without: scanner.Everything})

	bigint := vector.Of(vector.BigInt)
	v := &expr.Column{Index: 0, Name: "v", Typ: vector.Of(vector.Variant), Null: true}
	at := func(path string) expr.Expr {
		part := ex(expr.NewCall("variant_get", []expr.Expr{v, lit(vector.Of(vector.Varchar), path)}))
		return ex(expr.NewCast(part, bigint, true))
	}
	for _, c := range []struct {
		path      string
		names     []string
		op        expr.CompareOp
		value     int64
		rows      int
		groups    int64
		mostBytes int64
	}{
		{"$.a.b", []string{"a", "b"}, expr.Ge, 0, 3000, 3, size.Size() / 10},
		{"$.a.b", []string{"a", "b"}, expr.Eq, 1500, 1, 2, size.Size() / 10}, // the last group may hold it as a text
		{"$.a.b", []string{"a", "b"}, expr.Eq, 2500, 1, 1, size.Size() / 10},
		{"$['a']['b']", []string{"a", "b"}, expr.Lt, 100, 100, 2, size.Size() / 10},
		{"$.k", []string{"k"}, expr.Ge, 2999, 1, 1, size.Size() / 10},
		{"$.nothing", []string{"nothing"}, expr.Ge, 0, 0, 3, size.Size() / 10},
	} {
		part := &vector.VariantParts{}
		p := part
		for _, n := range c.names {
			p = p.Field(n)
		}
		p.Whole = true
		read := func(s *scanner.Scanner) (int, *profile.Scan) {
			r := loneRequest(tab)
			r.Output = 0
			r.Variants = []*vector.VariantParts{part}
			r.Filter = ex(expr.NewCompare(c.op, at(c.path), lit(bigint, c.value)))
			l.scan = s
			return len(l.must(r)), r.Profile
		}
		rows, with := read(everything)
		again, without := read(nothing)
		require.Equal(t, c.rows, rows, c.path)
		require.Equal(t, c.rows, again, c.path)
		require.Equal(t, c.groups, with.RowGroups.Kept.Load(), "%s %v %d", c.path, c.op, c.value)
		require.Less(t, with.BytesRead.Load(), c.mostBytes, c.path)
		require.Greater(t, without.BytesRead.Load(), size.Size()*9/10, c.path)
		if c.rows == 1 && c.value != 2500 { // texts stand beside that one
			require.Less(t, with.Pages.Kept.Load(), with.Pages.Considered.Load(), c.path)
		}
	}
	l.scan = everything
}
