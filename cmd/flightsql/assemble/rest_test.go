package assemble_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/demo"
	"github.com/skua-db/skua/internal/lakeserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server on a configuration and gives a client of it.
func serve(t *testing.T, text string) *flightsql.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "skua.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c, err := config.Load(file, nil)
	require.NoError(t, err)
	require.NoError(t, c.Check())
	stack, err := assemble.Build(context.Background(), &c.Config, zap.NewNop())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- stack.Server.Serve(l) }()
	cl, err := flightsql.NewClientCtx(context.Background(), l.Addr().String(), nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cl.Close())
		stack.Close()
		require.NoError(t, <-done)
		require.Zero(t, stack.Pool.Used(), "bytes are left reserved")
	})
	return cl
}

// rows runs a statement and renders its rows.
func rows(t *testing.T, cl *flightsql.Client, sql string) ([]string, error) {
	t.Helper()
	ctx := context.Background()
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
			var line []string
			for _, col := range b.Columns() {
				line = append(line, text(col, i))
			}
			out = append(out, strings.Join(line, "|"))
		}
	}
	return out, r.Err()
}

func text(a arrow.Array, i int) string { return a.ValueStr(i) }

// vendingLake serves the demo lakehouse from a store whose keys a REST catalog vends, each for one table's folder.
func vendingLake(t *testing.T) (dir string, srv *lakeserver.Catalog, store *lakeserver.S3) {
	t.Helper()
	dir = t.TempDir() + "/lake"
	_, err := demo.Make(context.Background(), dir, 0.001)
	require.NoError(t, err)
	store = lakeserver.NewS3(t)
	store.Serve("lake", dir)
	srv = lakeserver.NewCatalog(t, store)
	hints, err := filepath.Glob(dir + "/*/*/metadata/version-hint.text")
	require.NoError(t, err)
	require.NotEmpty(t, hints)
	for _, hint := range hints {
		version, err := os.ReadFile(hint)
		require.NoError(t, err)
		file := filepath.Join(filepath.Dir(hint), "v"+strings.TrimSpace(string(version))+".metadata.json")
		document, err := os.ReadFile(file)
		require.NoError(t, err)
		folder, err := filepath.Rel(dir, filepath.Dir(filepath.Dir(hint)))
		require.NoError(t, err)
		srv.Put(strings.ReplaceAll(folder, "/", "."), lakeserver.Table{MetadataLocation: file, Metadata: document, Locations: []string{"s3://lake/" + folder}})
	}
	return dir, srv, store
}

func configuration(dir string, srv *lakeserver.Catalog) string {
	return fmt.Sprintf(`
auth: {anonymous: true}
catalogs:
  here: {properties: {warehouse: %[1]s}}
  lake:
    type: rest
    properties: {uri: %[2]s, credential: "skua:skua-secret", s3.retry.min-wait-ms: 1}
    location_mapping: {%[1]s: "s3://lake"}
`, dir, srv.URL)
}

// TestKeysExpireUnderAScan reads a table through the whole engine while its keys live a second and the scan takes several.
func TestKeysExpireUnderAScan(t *testing.T) {
	dir, srv, store := vendingLake(t)
	const life = time.Second
	srv.Change(func(k *lakeserver.Knobs) { k.KeyLife = life })
	cl := serve(t, configuration(dir, srv))
	const q = "SELECT * FROM %s.tpch.lineitem ORDER BY l_orderkey, l_linenumber, l_comment"
	want, err := rows(t, cl, fmt.Sprintf(q, "here"))
	require.NoError(t, err)
	require.Greater(t, len(want), 1000)
	// Each answer comes late and breaks off, so that the scan goes on by resuming.
	store.SetFault(func(int, *http.Request) *lakeserver.Fault {
		return &lakeserver.Fault{Delay: 150 * time.Millisecond, Truncate: 10_000}
	})
	began := time.Now()
	got, err := rows(t, cl, fmt.Sprintf(q, "lake"))
	took := time.Since(began)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Greater(t, took, 2*life, "the scan outlives its first keys")

	renewals, loads := 0, 0
	for _, call := range srv.Log() {
		switch {
		case strings.HasSuffix(call.Path, "/credentials"):
			renewals++
		case strings.HasSuffix(call.Path, "/lineitem"):
			loads++
		}
	}
	used, refused := map[string]bool{}, 0
	for _, r := range store.Log() {
		used[r.KeyID] = true
		if r.Note != "" {
			refused++
		}
	}
	t.Logf("%v, %d loads, %d renewals, %d keys used, %d requests refused", took, loads, renewals, len(used), refused)
	require.GreaterOrEqual(t, renewals, 1)
	require.LessOrEqual(t, renewals, int(took/(life*4/5))+1, "one renewal for each key")
	require.LessOrEqual(t, refused, 1, "a dead key is used at most by who discovers it")
}

// TestVendedLakehouse reads every table of the demo both ways.
func TestVendedLakehouse(t *testing.T) {
	dir, srv, _ := vendingLake(t)
	cl := serve(t, configuration(dir, srv))
	tables, err := rows(t, cl, "SELECT table_schema, table_name FROM lake.information_schema.tables WHERE table_schema IN ('tpch', 'samples') ORDER BY 1, 2")
	require.NoError(t, err)
	require.Greater(t, len(tables), 8)
	for _, name := range tables {
		name = strings.ReplaceAll(name, "|", ".")
		var both [2][]string
		for i, cat := range []string{"here", "lake"} {
			both[i], err = rows(t, cl, "SELECT count(*) FROM "+cat+"."+name)
			require.NoError(t, err, name)
		}
		require.Equal(t, both[0], both[1], name)
	}
}

// TestCatalogThatIsDown stops nothing else, and says what is wrong.
func TestCatalogThatIsDown(t *testing.T) {
	dir, srv, _ := vendingLake(t)
	cl := serve(t, strings.Replace(configuration(dir, srv), srv.URL, "http://127.0.0.1:1", 1))
	_, err := rows(t, cl, "SELECT count(*) FROM here.tpch.nation")
	require.NoError(t, err)
	_, err = rows(t, cl, "SELECT count(*) FROM lake.tpch.nation")
	require.ErrorContains(t, err, "catalog lake: the server at 127.0.0.1:1 does not answer")
}

func TestProveConnects(t *testing.T) {
	dir, srv, _ := vendingLake(t)
	for credential, want := range map[string]string{"skua:skua-secret": "", "skua:wrong": "catalog lake: the token server at"} {
		file := filepath.Join(t.TempDir(), "skua.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(configuration(dir, srv), "skua:skua-secret", credential, 1)), 0o600))
		c, err := config.Load(file, nil)
		require.NoError(t, err)
		require.NoError(t, assemble.Prove(context.Background(), &c.Config, false))
		err = assemble.Prove(context.Background(), &c.Config, true)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "wrong")
	}
}
