package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/hadoop"
	"github.com/skua-db/skua/demo"
	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/server"
	"github.com/skua-db/skua/storage"
)

// clientAddress makes this test binary a client that reads one batch of an endless answer and waits to be killed.
const clientAddress = "SKUA_TEST_CLIENT_ADDRESS"

const endless = "SELECT a.l_comment, b.l_comment FROM tpch.lineitem a, tpch.lineitem b, tpch.lineitem c"

func TestMain(m *testing.M) {
	if address := os.Getenv(clientAddress); address != "" {
		hang(address)
	}
	goleak.VerifyTestMain(m)
}

func hang(address string) {
	ctx := context.Background()
	cl, err := flightsql.NewClientCtx(ctx, address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		var info *flight.FlightInfo
		if info, err = cl.Execute(ctx, endless); err == nil {
			var r *flight.Reader
			if r, err = cl.DoGet(ctx, info.Endpoint[0].Ticket); err == nil && r.Next() {
				fmt.Println("reading")
				select {}
			}
		}
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

// settleTime bounds the wait for a query to notice that its client is gone; it is never reached when all is well.
const settleTime = 30 * time.Second

// stack is a running server over a small demo lakehouse.
type stack struct {
	server  *server.Server
	pool    *memory.Pool
	caches  *cache.Budget
	address string
}

func lake(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/lake"
	_, err := demo.Make(context.Background(), dir, 0.001)
	require.NoError(t, err)
	return dir
}

func start(t *testing.T, auth server.AuthOptions) *stack {
	t.Helper()
	return startOn(t, lake(t), auth, nil)
}

func startOn(t *testing.T, dir string, auth server.AuthOptions, sealer *seal.Sealer) *stack {
	t.Helper()
	return startWith(t, dir, auth, sealer, func(*server.Options) {})
}

func startWith(t *testing.T, dir string, auth server.AuthOptions, sealer *seal.Sealer, change func(*server.Options)) *stack {
	t.Helper()
	if sealer == nil {
		var err error
		sealer, err = seal.Random()
		require.NoError(t, err)
	}
	cat, err := hadoop.New(context.Background(), hadoop.Options{Name: "demo", Warehouse: dir, Store: storage.Local{}})
	require.NoError(t, err)
	pool := memory.NewPool("process", 1<<30)
	budget := cache.NewBudget(pool, 64<<20)
	a, err := server.NewAuthenticator(auth)
	require.NoError(t, err)
	opt := server.Options{
		Catalogs: []catalog.Catalog{cat}, Scanner: scanner.New(scanner.Options{Budget: budget, Workers: 2}), Pool: pool, Budget: budget, Workers: 2,
		Auth: a, Sealer: sealer, Version: "test",
	}
	change(&opt)
	s, err := server.New(opt)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		a.Close()
		require.NoError(t, <-done)
		budget.Close()
		require.Zero(t, pool.Used(), "bytes are left reserved")
	})
	return &stack{s, pool, budget, l.Addr().String()}
}

func connect(t *testing.T, st *stack) *flightsql.Client {
	t.Helper()
	cl, err := flightsql.NewClientCtx(context.Background(), st.address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cl.Close() })
	return cl
}

func count(ctx context.Context, cl *flightsql.Client, sql string) (int64, error) {
	info, err := cl.Execute(ctx, sql)
	if err != nil {
		return 0, err
	}
	return drain(ctx, cl, info.Endpoint[0].Ticket)
}

func drain(ctx context.Context, cl *flightsql.Client, ticket *flight.Ticket) (int64, error) {
	r, err := cl.DoGet(ctx, ticket)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	var n int64
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}

// TestKilledClientLeavesNothing kills a client with SIGKILL in the middle of a large answer.
func TestKilledClientLeavesNothing(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	_, err := count(context.Background(), cl, "SELECT * FROM tpch.lineitem")
	require.NoError(t, err)
	require.NoError(t, cl.Close())
	settled := func() (int, int64) {
		runtime.GC()
		return runtime.NumGoroutine(), st.pool.Used() - st.caches.Used()
	}
	goroutines, bytes := settled()

	self, err := os.Executable()
	require.NoError(t, err)
	client := exec.Command(self)
	client.Env = append(os.Environ(), clientAddress+"="+st.address)
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "reading\n", line)
	_, during := settled()
	require.Greater(t, during, bytes, "a running query has memory reserved")
	require.NoError(t, client.Process.Kill())
	_ = client.Wait()

	deadline := time.Now().Add(settleTime)
	for {
		g, b := settled()
		if g <= goroutines && b <= bytes {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d bytes before the client, %d and %d after it is gone\n%s", goroutines, bytes, g, b, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestErrorsHaveTheirCodes(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	for _, c := range []struct {
		sql  string
		code codes.Code
		text string
	}{
		{"SELEC 1", codes.InvalidArgument, "SYNTAX_ERROR: line 1:1"},
		{"SELECT *\nFROM tpch.nope", codes.NotFound, "TABLE_NOT_FOUND"},
		{"SELECT n_nam FROM tpch.nation", codes.NotFound, "n_name"},
		{"SELECT 1/0", codes.InvalidArgument, "DIVISION_BY_ZERO"},
		{"SELECT * FROM '/etc/passwd'", codes.PermissionDenied, "a server does not read files by name"},
		{"DROP TABLE tpch.nation", codes.Unimplemented, "read-only"},
		{"SELECT " + strings.Repeat("x", 5000) + " FROM tpch.nation", codes.NotFound, "COLUMN_NOT_FOUND"},
	} {
		_, err := count(context.Background(), cl, c.sql)
		require.Equal(t, c.code, status.Code(err), "%s: %v", c.sql, err)
		require.Contains(t, status.Convert(err).Message(), c.text)
		require.LessOrEqual(t, len(status.Convert(err).Message()), 1000)
	}
}

func TestLogins(t *testing.T) {
	users := t.TempDir() + "/users"
	require.NoError(t, os.WriteFile(users, []byte("# people\nann:"+bcryptHash(t, "secret word")+"\n"), 0o600))
	st := start(t, server.AuthOptions{UsersFile: users, Tokens: map[string]string{"a-static-bearer-token": "etl"}})
	cl := connect(t, st)
	ctx := context.Background()

	_, err := count(ctx, cl, "SELECT 1")
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	_, err = cl.Client.AuthenticateBasicToken(ctx, "ann", "wrong")
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	_, err = cl.Client.AuthenticateBasicToken(ctx, "nobody", "secret word")
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	ann, err := cl.Client.AuthenticateBasicToken(ctx, "ann", "secret word")
	require.NoError(t, err)
	_, err = count(ann, cl, "SELECT 1")
	require.NoError(t, err)
	etl := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer a-static-bearer-token")
	_, err = count(etl, cl, "SELECT 1")
	require.NoError(t, err)
	tool := metadata.AppendToOutgoingContext(ctx, "authorization", "Basic dG9rZW46YS1zdGF0aWMtYmVhcmVyLXRva2Vu")
	_, err = count(tool, cl, "SELECT 1")
	require.NoError(t, err, "user name token, password the token")
	forged := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer AAAAAAAA")
	_, err = count(forged, cl, "SELECT 1")
	require.Equal(t, codes.Unauthenticated, status.Code(err))

	info, err := cl.Execute(ann, "SELECT 1")
	require.NoError(t, err)
	_, err = drain(etl, cl, info.Endpoint[0].Ticket)
	require.Equal(t, codes.PermissionDenied, status.Code(err), "another user's ticket")
}

// TestAnyNodeAnswers plans on one server and reads from another that has the same keys.
func TestAnyNodeAnswers(t *testing.T) {
	keys, err := seal.New(seal.Key{ID: "k", Secret: []byte("0123456789abcdef0123456789abcdef")})
	require.NoError(t, err)
	dir := lake(t)
	open := server.AuthOptions{Anonymous: true}
	one, other := connect(t, startOn(t, dir, open, keys)), connect(t, startOn(t, dir, open, keys))
	info, err := one.Execute(context.Background(), "SELECT n_name FROM tpch.nation")
	require.NoError(t, err)
	n, err := drain(context.Background(), other, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
	stranger := connect(t, start(t, open))
	_, err = drain(context.Background(), stranger, info.Endpoint[0].Ticket)
	require.Error(t, err)
	require.ErrorContains(t, err, "plan again")
}

// TestExplainAnalyzeShowsPruning pins that a filter on a partitioned table reads fewer files than there are, and says why.
func TestExplainAnalyzeShowsPruning(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	lines, err := texts(context.Background(), cl, "EXPLAIN ANALYZE SELECT count(*) FROM samples.events WHERE event_time < TIMESTAMP '2026-01-04 00:00:00'")
	require.NoError(t, err)
	text := strings.Join(lines, "\n")
	found := regexp.MustCompile(`files (\d+) of (\d+)`).FindStringSubmatch(text)
	require.NotNil(t, found, text)
	read, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	exist, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.Equal(t, 3, read, text)
	require.Greater(t, exist, 40, text)
	require.Regexp(t, `removed \d+ files by partition: \(event_time < TIMESTAMP`, text)
	require.Regexp(t, `Scan .*\{rows \d+ \(about \d+ expected\), time`, text)

	lines, err = texts(context.Background(), cl, "EXPLAIN (ANALYZE, FORMAT JSON) SELECT count(*) FROM samples.events WHERE event_time < TIMESTAMP '2026-01-04 00:00:00'")
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(strings.Join(lines, "\n"))))
	require.Contains(t, strings.Join(lines, "\n"), `"kept": 3`)
}

func texts(ctx context.Context, cl *flightsql.Client, sql string) ([]string, error) {
	info, err := cl.Execute(ctx, sql)
	if err != nil {
		return nil, err
	}
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return firstColumn(r)
}

// firstColumn reads all rows and gives what stands in the first column as text.
func firstColumn(r *flight.Reader) ([]string, error) {
	var out []string
	for r.Next() {
		for i := range int(r.RecordBatch().NumRows()) {
			out = append(out, strings.Clone(r.RecordBatch().Column(0).ValueStr(i)))
		}
	}
	return out, r.Err()
}

// TestSqlInfoIsComplete checks that every code of the protocol is told, in the branch of the union that its number wants.
func TestSqlInfoIsComplete(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	info, err := cl.GetSqlInfo(ctx, nil)
	require.NoError(t, err)
	told, err := drain(ctx, cl, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, len(pb.SqlInfo_name)-2, told, "all but the two that old drivers do not know")
	info, err = cl.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerName, 999_999})
	require.NoError(t, err)
	told, err = drain(ctx, cl, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 1, told, "an unknown code is left out")
}
