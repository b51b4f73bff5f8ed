package query_test

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/stretchr/testify/require"
)

// shreddedType shreds a.b as a long, a.s as text, k as a long, d as a date; lists and x are left to value.
var shreddedType = extensions.NewShreddedVariantType(arrow.StructOf(
	arrow.Field{Name: "a", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "s", Type: arrow.BinaryTypes.String})},
	arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64},
	arrow.Field{Name: "d", Type: arrow.FixedWidthTypes.Date32},
))

// writeVariants writes rows of id and v; text[i] is the JSON of v in row i, "" for SQL NULL.
func writeVariants(t *testing.T, typ *extensions.VariantType, text []string, perGroup int64) string {
	b := extensions.NewVariantBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	for i, s := range text {
		ids.Append(int64(i))
		if s == "" {
			b.AppendNull()
			continue
		}
		v, err := variant.ParseJSON(s, true)
		require.NoError(t, err)
		b.Append(v)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: typ, Nullable: true}}, nil)
	cols := []arrow.Array{ids.NewArray(), b.NewArray()}
	rec := array.NewRecordBatch(schema, cols, int64(len(text)))
	defer rec.Release()
	for _, c := range cols {
		c.Release()
	}
	path := filepath.Join(t.TempDir(), "v.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(perGroup)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return path
}

// someVariants makes values in which fields are missing, null, of another type than most, or objects that are shredded in part.
func someVariants(r *rand.Rand, n int) []string {
	pick := func(of ...string) string { return of[r.Intn(len(of))] }
	out := make([]string, n)
	for i := range out {
		b := fmt.Sprint(r.Intn(1000))
		switch r.Intn(12) {
		case 0:
			out[i] = ""
		case 1:
			out[i] = pick(`null`, `7`, `"text"`, `[1,{"a":2}]`, `{}`, `{"a":5}`, `{"a":{}}`, `{"a":[{"b":1}]}`)
		default:
			a := fmt.Sprintf(`{"b":%s%s}`, pick(b, b, b, `"`+b+`"`, `null`, b+".5", `{"b":1}`, `[1]`), pick("", `,"s":"`+b+`"`, `,"s":null`, `,"s":12`, `,"other":{"b":1}`))
			out[i] = fmt.Sprintf(`{"a":%s,"k":%s%s%s}`, pick(a, a, a, a, b, `"a"`), pick(fmt.Sprint(i), fmt.Sprint(i), "null", `"k"`),
				pick("", `,"x":{"y":`+b+`}`, `,"x":[`+b+`,2]`, `,"x":"`+b+`"`), pick("", `,"list":[1,`+b+`,null]`, `,"list":["a",2]`, `,"list":[[1],{"a":1}]`, `,"list":3`))
		}
	}
	return out
}

// TestVariantPathsOfShreddedFiles: the same paths of the same values give the same rows whether the file is shredded or not.
func TestVariantPathsOfShreddedFiles(t *testing.T) {
	for seed := range int64(3) {
		text := someVariants(rand.New(rand.NewSource(seed)), 600)
		plain, cut := writeVariants(t, extensions.NewDefaultVariantType(), text, 100), writeVariants(t, shreddedType, text, 100)
		for _, sql := range []string{
			"SELECT id, v:a.b, v:a, v:k FROM %s",
			"SELECT id, try_variant_get(v, '$.a.b', 'bigint') b, try_variant_get(v, '$.k', 'varchar') k FROM %s",
			"SELECT id, v:a.b.b, v:list[1], v:x.y, v:x, v:nothing, v:list[2].a FROM %s",
			"SELECT id, json_extract(v, '$.a') a, json_extract_scalar(v, '$.a.s') s FROM %s",
			"SELECT id, variant_typeof(v:a.b) t, is_variant_null(v:a.b) n, v:a.other.b FROM %s",
			"SELECT id, variant_get(variant_get(v, '$.a'), '$.b') b FROM %s",
			"SELECT id, v:a.b, v FROM %s",
			"SELECT id, v IS NULL n, v:a.s FROM %s",
			"SELECT id FROM %s WHERE try_variant_get(v, '$.a.b', 'bigint') > 990",
			"SELECT id FROM %s WHERE TRY_CAST(v:k AS bigint) IN (5, 77, 599) OR TRY_CAST(v:a.s AS varchar) = '12'",
			"SELECT id FROM %s WHERE try_variant_get(v, '$.k', 'bigint') IS NULL",
			"SELECT id FROM %s WHERE try_variant_get(v, '$.a.b', 'double') < 10",
			"SELECT count(*) FROM %s WHERE TRY_CAST(v:k AS varchar) LIKE '1%%'",
			"SELECT t.id, u.k FROM %[1]s t JOIN (SELECT id, v:k k FROM %[1]s) u ON t.id = u.id WHERE TRY_CAST(t.v:a.b AS bigint) < 50",
			"SELECT v:k, count(*) n FROM (SELECT v FROM %[1]s UNION ALL SELECT v FROM %[1]s) GROUP BY to_json(v:k), v:k",
		} {
			want, err := run("--format", "csv", fmt.Sprintf(sql+" ORDER BY 1", "'"+plain+"'"))
			if err != nil {
				_, again := run("--format", "csv", fmt.Sprintf(sql+" ORDER BY 1", "'"+cut+"'"))
				require.Error(t, again, sql)
				t.Logf("%s: %v", sql, err)
				continue
			}
			got, err := run("--format", "csv", fmt.Sprintf(sql+" ORDER BY 1", "'"+cut+"'"))
			require.NoError(t, err, sql)
			require.Equal(t, want, got, "seed %d %s", seed, sql)
		}
	}
}
