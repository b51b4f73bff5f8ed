package goclient

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// The clients of this folder, by the names of their results' files.
const (
	arrowClient = "goclient"
	databaseSQL = "databasesql"
)

var clientNames = map[string]string{arrowClient: "Go (arrow-go flightsql.Client)", databaseSQL: "Go (database/sql, arrow-go's driver)"}

// results are how the cases of the common list went, by client and case.
var results = map[string]map[string]string{arrowClient: {}, databaseSQL: {}}

// noted notes at its end how the test of a case went.
func noted(t *testing.T, client, name string) {
	t.Cleanup(func() {
		results[client][name] = "yes"
		if t.Failed() {
			results[client][name] = "no"
		}
	})
}

// writeResults writes them where the run of all clients wants them.
func writeResults() error {
	dir := os.Getenv("SKUA_RESULTS")
	if dir == "" {
		return nil
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/apache/arrow-go/v18").Output()
	if err != nil {
		return err
	}
	version := strings.TrimSpace(string(out))
	for client, cases := range results {
		b, err := json.MarshalIndent(map[string]any{"client": clientNames[client], "version": version, "cases": cases}, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, client+".json"), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// doingNames gives the names of the cases that are no statement, by what is done.
func doingNames(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../cases.json")
	require.NoError(t, err)
	var all []testCase
	require.NoError(t, json.Unmarshal(raw, &all))
	out := map[string]string{}
	for _, c := range all {
		if c.Do != "" {
			out[c.Do] = c.Name
		}
	}
	return out
}

const endless = "SELECT a.l_comment FROM tpch.lineitem a, tpch.lineitem b, tpch.lineitem c"

func connected(t *testing.T) *flightsql.Client {
	t.Helper()
	cl, err := flightsql.NewClientCtx(t.Context(), address, nil, nil, options()...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cl.Close()) })
	return cl
}

func rowsOf(ctx context.Context, t *testing.T, cl *flightsql.Client, ticket *flight.Ticket) int64 {
	t.Helper()
	r, err := cl.DoGet(ctx, ticket)
	require.NoError(t, err)
	defer r.Release()
	n := int64(0)
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	return n
}

// keys are one column of int64.
func keys(v ...int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(v, nil)
	return b.NewRecordBatch()
}

func TestDoings(t *testing.T) {
	ctx := t.Context()
	cl := connected(t)
	const byKey = "SELECT n_name FROM tpch.nation WHERE n_nationkey = ?"
	does := map[string]func(t *testing.T){
		"login": func(t *testing.T) {
			stranger, err := flightsql.NewClientCtx(ctx, address, nil, nil, grpc.WithTransportCredentials(secure))
			require.NoError(t, err)
			defer func() { require.NoError(t, stranger.Close()) }()
			_, err = stranger.Execute(ctx, "SELECT 1")
			require.ErrorContains(t, err, "UNAUTHENTICATED")
			_, err = stranger.Client.AuthenticateBasicToken(ctx, "ada", "a wrong one")
			require.ErrorContains(t, err, "wrong")
		},
		"tables": func(t *testing.T) {
			schema, table := "tpch", "nation"
			info, err := cl.GetTables(ctx, &flightsql.GetTablesOpts{DbSchemaFilterPattern: &schema, TableNameFilterPattern: &table, IncludeSchema: true})
			require.NoError(t, err)
			r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
			require.NoError(t, err)
			defer r.Release()
			require.True(t, r.Next())
			s, err := flight.DeserializeSchema(r.RecordBatch().Column(4).(*array.Binary).Value(0), memory.DefaultAllocator)
			require.NoError(t, err)
			require.Equal(t, 4, s.NumFields())
		},
		"prepare": func(t *testing.T) {
			p, err := cl.Prepare(ctx, byKey)
			require.NoError(t, err)
			for k := range int64(3) {
				p.SetParameters(keys(k))
				info, err := p.Execute(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 1, rowsOf(ctx, t, cl, info.Endpoint[0].Ticket))
			}
			require.NoError(t, p.Close(ctx))
		},
		"bind": func(t *testing.T) {
			p, err := cl.Prepare(ctx, byKey)
			require.NoError(t, err)
			p.SetParameters(keys(0, 2, 24))
			info, err := p.Execute(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 3, rowsOf(ctx, t, cl, info.Endpoint[0].Ticket))
			require.NoError(t, p.Close(ctx))
		},
		"session": func(t *testing.T) { TestSessionsAndMetadata(t) },
		"large": func(t *testing.T) {
			info, err := cl.Execute(ctx, "SELECT * FROM tpch.lineitem")
			require.NoError(t, err)
			_, want, err := runArrow(ctx, cl, &testCase{SQL: "SELECT count(*) FROM tpch.lineitem"})
			require.NoError(t, err)
			require.Equal(t, want[0][0], array.NewInt64Data(keys(rowsOf(ctx, t, cl, info.Endpoint[0].Ticket)).Column(0).Data()).ValueStr(0))
		},
		"leave": func(t *testing.T) {
			info, err := cl.Execute(ctx, endless)
			require.NoError(t, err)
			for range 20 {
				some, leave := context.WithCancel(ctx)
				r, err := cl.DoGet(some, info.Endpoint[0].Ticket)
				require.NoError(t, err)
				require.True(t, r.Next())
				leave()
				r.Release()
			}
		},
		"cancel": func(t *testing.T) { TestCancelFlightInfo(t) },
		"ticket": func(t *testing.T) {
			info, err := cl.Execute(ctx, "SELECT * FROM tpch.nation")
			require.NoError(t, err)
			require.EqualValues(t, 25, rowsOf(ctx, t, connected(t), info.Endpoint[0].Ticket))
		},
		"upload": func(t *testing.T) {
			_, err := cl.ExecuteUpdate(ctx, "DELETE FROM tpch.nation")
			require.ErrorContains(t, err, "read-only")
		},
	}
	for do, name := range doingNames(t) {
		t.Run(name, func(t *testing.T) {
			noted(t, arrowClient, name)
			require.Contains(t, does, do)
			does[do](t)
		})
	}
}

func TestDoingsOfDatabaseSQL(t *testing.T) {
	ctx := t.Context()
	db, err := sql.Open("flightsql", dsn("a password of the tests"))
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	const byKey = "SELECT n_name FROM tpch.nation WHERE n_nationkey = ?"
	does := map[string]func(t *testing.T){
		"login": func(t *testing.T) {
			stranger, err := sql.Open("flightsql", dsn("a wrong one"))
			require.NoError(t, err)
			defer func() { require.NoError(t, stranger.Close()) }()
			var n int
			require.ErrorContains(t, stranger.QueryRowContext(ctx, "SELECT 1").Scan(&n), "wrong")
		},
		"prepare": func(t *testing.T) {
			p, err := db.PrepareContext(ctx, byKey)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			for k, want := range []string{"ALGERIA", "ARGENTINA", "BRAZIL"} {
				var got string
				require.NoError(t, p.QueryRowContext(ctx, int64(k)).Scan(&got))
				require.Equal(t, want, got)
			}
		},
		"large": func(t *testing.T) {
			var want, have int64
			require.NoError(t, db.QueryRowContext(ctx, "SELECT count(*) FROM tpch.lineitem").Scan(&want))
			rows, err := db.QueryContext(ctx, "SELECT l_orderkey FROM tpch.lineitem")
			require.NoError(t, err)
			defer func() { require.NoError(t, rows.Close()) }()
			for rows.Next() {
				have++
			}
			require.NoError(t, rows.Err())
			require.Equal(t, want, have)
		},
		"leave": func(t *testing.T) {
			for range 5 {
				rows, err := db.QueryContext(ctx, endless)
				require.NoError(t, err)
				require.True(t, rows.Next())
				require.NoError(t, rows.Close())
			}
		},
		"cancel": func(t *testing.T) {
			some, stop := context.WithTimeout(ctx, 500*time.Millisecond)
			defer stop()
			rows, err := db.QueryContext(some, endless)
			require.NoError(t, err)
			defer func() { _ = rows.Close() }()
			for rows.Next() {
			}
			require.ErrorIs(t, some.Err(), context.DeadlineExceeded, "the rows end with the context; the driver itself tells no error")
		},
		"upload": func(t *testing.T) {
			_, err := db.ExecContext(ctx, "DELETE FROM tpch.nation")
			require.ErrorContains(t, err, "read-only")
		},
	}
	for do, name := range doingNames(t) {
		f, ok := does[do]
		if !ok {
			results[databaseSQL][name] = "no call"
			continue
		}
		t.Run(name, func(t *testing.T) {
			noted(t, databaseSQL, name)
			f(t)
		})
	}
}
