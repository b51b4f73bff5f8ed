package server_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/server"
)

// down is a catalog whose service does not answer.
type down struct{}

var errDown = fault.New(fault.Unavailable, "the catalog does not answer")

func (down) Name() string { return "down" }
func (down) Close() error { return nil }
func (down) Namespaces(context.Context, catalog.Namespace) ([]catalog.Namespace, error) {
	return nil, errDown
}
func (down) Tables(context.Context, catalog.Namespace) ([]string, error) { return nil, errDown }
func (down) Load(context.Context, catalog.Namespace, string) (*catalog.Table, error) {
	return nil, errDown
}

// listed asks for tables and gives them as catalog.schema.table with the number of columns, and checks schemas on the way.
func listed(t *testing.T, cl *flightsql.Client, opts *flightsql.GetTablesOpts) map[string]int {
	t.Helper()
	ctx := context.Background()
	info, err := cl.GetTables(ctx, opts)
	require.NoError(t, err)
	want := schema_ref.Tables
	if opts.IncludeSchema {
		want = schema_ref.TablesWithIncludedSchema
	}
	planned, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
	require.NoError(t, err)
	require.True(t, planned.Equal(want), planned.String())
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Schema().Equal(want), r.Schema().String())
	out := map[string]int{}
	for r.Next() {
		rec := r.RecordBatch()
		text := func(col, i int) string { return rec.Column(col).(*array.String).Value(i) }
		for i := range int(rec.NumRows()) {
			require.Equal(t, "TABLE", text(3, i))
			columns := -1
			if opts.IncludeSchema {
				s, err := flight.DeserializeSchema(rec.Column(4).(*array.Binary).Value(i), memory.DefaultAllocator)
				require.NoError(t, err)
				columns = s.NumFields()
			}
			out[fmt.Sprintf("%s.%s.%s", text(0, i), text(1, i), text(2, i))] = columns
		}
	}
	require.NoError(t, r.Err())
	return out
}

// TestListingsSurvive: a catalog that is down and a table that is damaged hide nothing else.
func TestListingsSurvive(t *testing.T) {
	dir := lake(t)
	broken, err := filepath.Glob(dir + "/tpch/nation/metadata/*.metadata.json")
	require.NoError(t, err)
	for _, f := range broken {
		require.NoError(t, os.WriteFile(f, []byte(`{"format-version": 2,`), 0o600))
	}
	st := startWith(t, dir, server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.Catalogs = append(o.Catalogs, down{}) })
	cl := connect(t, st)
	ctx := context.Background()
	n, err := drainInfo(ctx, cl, cl.GetCatalogs)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	tables := listed(t, cl, &flightsql.GetTablesOpts{IncludeSchema: true})
	require.Equal(t, 0, tables["demo.tpch.nation"], "listed without columns")
	require.Equal(t, 16, tables["demo.tpch.lineitem"])
	_, err = count(ctx, cl, "SELECT * FROM tpch.nation")
	require.ErrorContains(t, err, "CORRUPT")
	_, err = count(ctx, cl, "SELECT * FROM down.a.b")
	require.ErrorContains(t, err, "does not answer")
	n, err = count(ctx, cl, "SELECT * FROM tpch.region")
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
}

func drainInfo(ctx context.Context, cl *flightsql.Client, ask func(context.Context, ...grpc.CallOption) (*flight.FlightInfo, error)) (int64, error) {
	info, err := ask(ctx)
	if err != nil {
		return 0, err
	}
	return drain(ctx, cl, info.Endpoint[0].Ticket)
}

func TestGetTablesFilters(t *testing.T) {
	cl := connect(t, start(t, server.AuthOptions{Anonymous: true}))
	s := func(v string) *string { return &v }
	for _, c := range []struct {
		name string
		opts *flightsql.GetTablesOpts
		want []string
	}{
		{"exact", &flightsql.GetTablesOpts{TableNameFilterPattern: s("nation")}, []string{"demo.tpch.nation"}},
		{"one character", &flightsql.GetTablesOpts{TableNameFilterPattern: s("n_tion")}, []string{"demo.tpch.nation"}},
		{"an escaped one", &flightsql.GetTablesOpts{TableNameFilterPattern: s(`n\_tion`)}, nil},
		{"any", &flightsql.GetTablesOpts{DbSchemaFilterPattern: s("t%"), TableNameFilterPattern: s("%n")}, []string{"demo.tpch.nation", "demo.tpch.region"}},
		{"case matters", &flightsql.GetTablesOpts{TableNameFilterPattern: s("NATION")}, nil},
		{"no catalog", &flightsql.GetTablesOpts{Catalog: s("")}, nil},
		{"another catalog", &flightsql.GetTablesOpts{Catalog: s("nope")}, nil},
		{"a pattern that is no pattern", &flightsql.GetTablesOpts{TableNameFilterPattern: s(`na(tion[`)}, nil},
		{"a lone escape", &flightsql.GetTablesOpts{TableNameFilterPattern: s(`nation\`)}, nil},
		{"views", &flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}}, nil},
		{"tables", &flightsql.GetTablesOpts{TableTypes: []string{"VIEW", "TABLE"}, TableNameFilterPattern: s("nation")}, []string{"demo.tpch.nation"}},
		{"empty pattern", &flightsql.GetTablesOpts{TableNameFilterPattern: s("")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, include := range []bool{false, true} {
				c.opts.IncludeSchema = include
				var names []string
				for name := range listed(t, cl, c.opts) {
					names = append(names, name)
				}
				require.ElementsMatch(t, c.want, names)
			}
		})
	}
}

// TestOneSchema: Prepare, GetSchema, GetFlightInfo and DoGet tell the same schema to the bit, whatever the statement is.
func TestOneSchema(t *testing.T) {
	cl := connect(t, start(t, server.AuthOptions{Anonymous: true}))
	ctx := context.Background()
	for _, sql := range []string{
		"SELECT * FROM tpch.lineitem LIMIT 3", "SELECT n_nationkey + 1, n_name || 'x', n_regionkey IS NULL FROM tpch.nation",
		"SELECT count(*), sum(l_quantity), avg(l_quantity), max(l_comment) FROM tpch.lineitem", "SELECT NULL, 1, 1.5, 'x', true, ARRAY[1], MAP(ARRAY['a'], ARRAY[1]), ROW(1, 'x')",
		"SELECT n.n_name, r.r_name FROM tpch.nation n LEFT JOIN tpch.region r ON n.n_regionkey = r.r_regionkey + 100",
		"EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT * FROM tpch.nation", "SHOW CATALOGS", "SHOW SCHEMAS FROM demo", "SHOW TABLES FROM tpch", "DESCRIBE tpch.nation",
		"SHOW CREATE TABLE tpch.nation", "SHOW FUNCTIONS", "SHOW SESSION", "SELECT * FROM information_schema.columns LIMIT 3",
		`SELECT * FROM tpch."nation$snapshots"`, `SELECT * FROM tpch."nation$files"`, `SELECT * FROM tpch."nation$partitions"`, `SELECT * FROM tpch."nation$refs"`,
		"USE tpch", "SET SESSION dialect = 'trino'", "SELECT DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', TIMESTAMP '2020-01-01 00:00:00 UTC', TIME '01:00:00'",
		"SELECT CASE WHEN n_nationkey > 1 THEN 1 END, coalesce(n_comment, 'x'), n_name FROM tpch.nation UNION ALL SELECT 1, 'x', 'y'", "SELECT * FROM samples.nested",
		"VALUES (1, 'a'), (NULL, 'b')", "SELECT * FROM (VALUES (1)) t(x) WHERE false", "SELECT row_number() OVER (ORDER BY n_name), lag(n_name) OVER (ORDER BY n_name) FROM tpch.nation",
		"SELECT UUID '12345678-1234-1234-1234-123456789012', INTERVAL '1' DAY, X'00'",
	} {
		t.Run(sql, func(t *testing.T) {
			info, err := cl.Execute(ctx, sql)
			require.NoError(t, err)
			p, err := cl.Prepare(ctx, sql)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close(ctx)) }()
			got, err := cl.GetExecuteSchema(ctx, sql)
			require.NoError(t, err)
			require.True(t, bytes.Equal(info.Schema, got.Schema), "GetSchema differs from GetFlightInfo")
			planned, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
			require.NoError(t, err)
			require.NotZero(t, planned.NumFields(), "JDBC takes an answer without columns for an update")
			same(t, planned, p.DatasetSchema())
			again, err := p.GetSchema(ctx)
			require.NoError(t, err)
			require.True(t, bytes.Equal(info.Schema, again.Schema), "the prepared statement's GetSchema differs")
			r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
			require.NoError(t, err)
			defer r.Release()
			same(t, planned, r.Schema())
			for r.Next() {
				for i, c := range r.RecordBatch().Columns() {
					require.True(t, arrow.TypeEqual(planned.Field(i).Type, c.DataType()))
					require.True(t, planned.Field(i).Nullable || c.NullN() == 0, "column %s is not nullable and has nulls", planned.Field(i).Name)
				}
			}
			require.NoError(t, r.Err())
		})
	}
}

func same(t *testing.T, want, got *arrow.Schema) {
	t.Helper()
	a, b := flight.SerializeSchema(want, memory.DefaultAllocator), flight.SerializeSchema(got, memory.DefaultAllocator)
	require.True(t, bytes.Equal(a, b), "want %s\ngot %s", want, got)
}
