package server_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/access"
	"github.com/skua-db/skua/server"
)

// answer runs a statement and gives its rows as text.
func answer(ctx context.Context, cl *flightsql.Client, sql string) ([]string, error) {
	info, err := cl.Execute(ctx, sql)
	if err != nil {
		return nil, err
	}
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			row := ""
			for c := range int(b.NumCols()) {
				row += b.Column(c).ValueStr(i) + "|"
			}
			out = append(out, row)
		}
	}
	return out, r.Err()
}

// TestAccess asks as one who sees all, one who sees a part and one who sees nothing.
func TestAccess(t *testing.T) {
	policy := t.TempDir() + "/policy.yaml"
	write := func(text string) {
		require.NoError(t, os.WriteFile(policy, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(policy, time.Now(), time.Now()))
	}
	rules := `
rules:
  - {principals: [owner]}
  - principals: [part]
    namespace: tpch
    table: customer
    hide: [c_acctbal, c_comment]
    filter: "c_nationkey < 5 AND c_acctbal > 0"
    masks: {c_phone: "substr(c_phone, 1, 3) || '***'", c_name: "CASE WHEN c_custkey % 2 = 0 THEN c_name END"}
  - {principals: [part], namespace: tpch, table: nation}
`
	write(rules)
	source, err := access.Open(policy, zap.NewNop())
	require.NoError(t, err)
	st := startWith(t, lake(t), server.AuthOptions{Tokens: map[string]string{"the owner's own token": "owner", "a token for a part of it": "part", "a token for nothing": "none"}}, nil,
		func(o *server.Options) {
			for i := range o.Catalogs {
				o.Catalogs[i] = access.Guard(o.Catalogs[i], source)
			}
			o.Policy = source
		})
	cl := connect(t, st)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
	}
	owner, part, none := as("the owner's own token"), as("a token for a part of it"), as("a token for nothing")
	rowsOf := func(ctx context.Context, sql string) []string {
		rows, err := answer(ctx, cl, sql)
		require.NoError(t, err, sql)
		return rows
	}
	refusedWith := func(ctx context.Context, code codes.Code, text, sql string) {
		_, err := answer(ctx, cl, sql)
		require.Equal(t, code, status.Code(err), "%s: %v", sql, err)
		require.ErrorContains(t, err, text, sql)
	}

	t.Run("rows", func(t *testing.T) {
		want := rowsOf(owner, "SELECT c_custkey, CASE WHEN c_custkey % 2 = 0 THEN c_name END, c_nationkey, substr(c_phone, 1, 3) || '***' FROM tpch.customer WHERE c_nationkey < 5 AND c_acctbal > 0 ORDER BY 1")
		require.NotEmpty(t, want)
		require.Equal(t, want, rowsOf(part, "SELECT c_custkey, c_name, c_nationkey, c_phone FROM tpch.customer ORDER BY 1"))
		require.Equal(t, []string{fmt.Sprintf("%d|", len(want))}, rowsOf(part, "SELECT count(*) FROM tpch.customer"))
		require.Equal(t, []string{"4|"}, rowsOf(part, "SELECT max(c_nationkey) FROM tpch.customer"))
		require.Empty(t, rowsOf(part, "SELECT * FROM tpch.customer WHERE c_nationkey = 20"))
		require.Empty(t, rowsOf(part, "SELECT * FROM tpch.customer WHERE c_phone LIKE '%-%-%-%'"), "predicates see the mask")
		require.Equal(t, len(want), len(rowsOf(part, "SELECT c_custkey FROM tpch.customer WHERE 1 / (c_nationkey - 20) < 1")), "no error tells of hidden rows")
		require.Equal(t, len(want), len(rowsOf(part, "SELECT c.c_custkey FROM tpch.customer c JOIN tpch.nation n ON n_nationkey = c_nationkey AND CAST(10 / (c_nationkey - 24) AS bigint) < 100")))
		require.Equal(t, want, rowsOf(part, "SELECT c_custkey, c_name, c_nationkey, c_phone FROM (SELECT * FROM tpch.customer TABLESAMPLE BERNOULLI (100)) x ORDER BY 1"))
	})
	t.Run("columns and tables that are not there", func(t *testing.T) {
		refusedWith(part, codes.NotFound, "c_acctbal", "SELECT c_acctbal FROM tpch.customer")
		refusedWith(part, codes.NotFound, "c_acctbal", "SELECT 1 FROM tpch.customer c WHERE c.c_acctbal > 0")
		refusedWith(part, codes.NotFound, "_file", `SELECT "_file" FROM tpch.customer`)
		refusedWith(part, codes.PermissionDenied, "may not see", `SELECT * FROM tpch."customer$files"`)
		refusedWith(part, codes.PermissionDenied, "may not see", `SELECT * FROM TABLE(system.table_changes('tpch', 'customer'))`)
		_, ghost := answer(part, cl, "SELECT * FROM tpch.lineitex")
		_, hidden := answer(part, cl, "SELECT * FROM tpch.lineitem")
		require.Equal(t, status.Code(ghost), status.Code(hidden))
		require.NotContains(t, ghost.Error(), "lineitem", "no suggestion names what is hidden")
		refusedWith(none, codes.NotFound, "not exist", "SELECT * FROM demo.tpch.nation")
	})
	t.Run("listings", func(t *testing.T) {
		require.Equal(t, []string{"customer|", "nation|"}, rowsOf(part, "SHOW TABLES FROM tpch"))
		require.Equal(t, []string{"customer|", "nation|"}, rowsOf(part, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'tpch' ORDER BY 1"))
		require.NotContains(t, fmt.Sprint(rowsOf(part, "SELECT column_name FROM information_schema.columns")), "c_acctbal")
		require.NotContains(t, fmt.Sprint(rowsOf(part, "DESCRIBE tpch.customer")), "c_acctbal")
		require.NotContains(t, fmt.Sprint(rowsOf(part, "SHOW CREATE TABLE tpch.customer")), "c_acctbal")
		require.Equal(t, []string{"tpch|"}, rowsOf(part, "SELECT schema_name FROM information_schema.schemata WHERE schema_name <> 'information_schema'"))
		require.Empty(t, rowsOf(none, "SHOW CATALOGS"))
		info, err := cl.GetTables(part, &flightsql.GetTablesOpts{IncludeSchema: true})
		require.NoError(t, err)
		n, err := drain(part, cl, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		for _, list := range []func() (int64, error){
			func() (int64, error) {
				i, err := cl.GetCatalogs(none)
				require.NoError(t, err)
				return drain(none, cl, i.Endpoint[0].Ticket)
			},
			func() (int64, error) {
				i, err := cl.GetDBSchemas(none, &flightsql.GetDBSchemasOpts{})
				require.NoError(t, err)
				return drain(none, cl, i.Endpoint[0].Ticket)
			},
		} {
			n, err := list()
			require.NoError(t, err)
			require.Zero(t, n)
		}
	})
	t.Run("schemas agree", func(t *testing.T) {
		schema, err := cl.GetExecuteSchema(part, "SELECT * FROM tpch.customer")
		require.NoError(t, err)
		require.NotNil(t, schema)
		info, err := cl.Execute(part, "SELECT * FROM tpch.customer")
		require.NoError(t, err)
		r, err := cl.DoGet(part, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		defer r.Release()
		require.Equal(t, 6, r.Schema().NumFields())
		require.True(t, arrow.TypeEqual(arrow.BinaryTypes.String, r.Schema().Field(1).Type))
	})
	t.Run("a ticket is checked again", func(t *testing.T) {
		info, err := cl.Execute(part, "SELECT * FROM tpch.nation")
		require.NoError(t, err)
		write(rules[:len(rules)-len("  - {principals: [part], namespace: tpch, table: nation}\n")])
		require.Eventually(t, func() bool {
			_, err := drain(part, cl, info.Endpoint[0].Ticket)
			return status.Code(err) == codes.NotFound
		}, settleTime, 50*time.Millisecond)
		n, err := drain(owner, cl, info.Endpoint[0].Ticket)
		require.Error(t, err, "another's ticket: %d rows", n)
	})
}
