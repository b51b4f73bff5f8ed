package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/access"
	"github.com/skua-db/skua/server"
)

// as gives a context whose calls carry a token.
func as(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

const aliceToken, bobToken = "the token of alice, long enough", "the token of bob, long enough too"

func twoPeople() server.AuthOptions {
	return server.AuthOptions{Tokens: map[string]string{aliceToken: "alice", bobToken: "bob"}}
}

// TestTicketsOfAttackers tries tickets and handles that are forged, cut, changed, another's, another server's or too old, at every call that
// takes one.
func TestTicketsOfAttackers(t *testing.T) {
	st := startWith(t, lake(t), twoPeople(), nil, func(o *server.Options) { o.HandleLife = 3 * time.Second })
	cl, rpc := connect(t, st), raw(t, st.address)
	alice, bob := as(t, aliceToken), as(t, bobToken)
	info, err := cl.Execute(alice, "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	ticket := info.Endpoint[0].Ticket.Ticket
	prepared, err := cl.Prepare(alice, "SELECT n_name FROM tpch.nation WHERE n_nationkey = ?")
	require.NoError(t, err)
	made := time.Now()
	get := func(ctx context.Context, ticket []byte) error {
		_, err := drain(ctx, cl, &flight.Ticket{Ticket: ticket})
		return err
	}
	refused := func(err error, what string, args ...any) {
		t.Helper()
		require.Error(t, err, what, args)
		require.Contains(t, []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented}, status.Code(err), "%s: %v", fmt.Sprintf(what, args...), err)
		require.NotContains(t, err.Error(), "ALGERIA")
	}
	require.NoError(t, get(alice, ticket))
	require.NoError(t, get(alice, ticket), "its owner may ask again")
	require.Equal(t, codes.PermissionDenied, status.Code(get(bob, ticket)), "another's ticket")
	require.Equal(t, codes.Unauthenticated, status.Code(get(t.Context(), ticket)))
	theirs := flightsql.NewPreparedStatement(cl, prepared.Handle())
	theirs.SetParameters(keyRows(1))
	_, err = theirs.Execute(bob)
	require.Equal(t, codes.PermissionDenied, status.Code(err), "another's handle: %v", err)
	_, err = cl.CancelFlightInfo(bob, &flight.CancelFlightInfoRequest{Info: info})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = cl.RenewFlightEndpoint(bob, &flight.RenewFlightEndpointRequest{Endpoint: info.Endpoint[0]})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = rpc.PollFlightInfo(bob, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: ticket})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	// Every byte changed, every length cut: whatever is left of the envelope, nothing inside it can be altered.
	for i := range ticket {
		forged := bytes.Clone(ticket)
		forged[i] ^= 0x41
		if err := get(alice, forged); err != nil {
			refused(err, "byte %d", i)
		}
		if i%7 == 0 {
			refused(get(alice, ticket[:i]), "cut at %d", i)
		}
	}
	random := make([]byte, 500)
	for range 50 {
		_, _ = rand.Read(random)
		refused(get(alice, random), "random bytes")
	}
	stranger := startOn(t, lake(t), twoPeople(), nil)
	foreign, err := connect(t, stranger).Execute(alice, "SELECT 1")
	require.NoError(t, err)
	err = get(alice, foreign.Endpoint[0].Ticket.Ticket)
	refused(err, "another server's ticket")
	require.ErrorContains(t, err, "another server")
	time.Sleep(time.Until(made.Add(4500 * time.Millisecond)))
	err = get(alice, ticket)
	refused(err, "an old ticket")
	require.ErrorContains(t, err, "plan again")
	theirs.SetParameters(keyRows(1))
	_, err = theirs.Execute(alice)
	require.ErrorContains(t, err, "plan again")
}

// TestHiddenTablesStayHidden asks for tables that a policy hides in every way that SQL and the protocol have.
func TestHiddenTablesStayHidden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	require.NoError(t, os.WriteFile(file, []byte("rules:\n  - {principals: [bob], namespace: tpch, table: nation}\n"), 0o600))
	policy, err := access.Open(file, zap.NewNop())
	require.NoError(t, err)
	st := startWith(t, lake(t), twoPeople(), nil, func(o *server.Options) {
		o.Policy = policy
		for i := range o.Catalogs {
			o.Catalogs[i] = access.Guard(o.Catalogs[i], policy)
		}
	})
	cl, bob := connect(t, st), as(t, bobToken)
	n, err := count(bob, cl, "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
	for _, sql := range []string{
		"SELECT * FROM tpch.region", `SELECT * FROM demo."tpch"."REGION"`, `SELECT * FROM tpch."region$files"`, "SELECT * FROM tpch.region.snapshots",
		"SELECT (SELECT count(*) FROM tpch.region)", "SELECT * FROM tpch.nation WHERE EXISTS (SELECT 1 FROM tpch.region)",
		"WITH r AS (SELECT * FROM tpch.region) SELECT * FROM r", "EXPLAIN SELECT * FROM tpch.region", "EXPLAIN ANALYZE SELECT * FROM tpch.region", "DESCRIBE tpch.region",
		"SHOW COLUMNS FROM tpch.region", "SELECT * FROM TABLE(system.table_changes('tpch', 'region'))", "SELECT * FROM tpch.nation JOIN tpch.region ON true",
		"SELECT * FROM '/etc/passwd'", "SELECT * FROM tpch.region FOR VERSION AS OF 1", "SELECT * FROM samples.events",
	} {
		_, err := count(bob, cl, sql)
		require.Error(t, err, sql)
		require.NotContains(t, err.Error(), "MIDDLE EAST", sql)
		require.Contains(t, []codes.Code{codes.NotFound, codes.InvalidArgument, codes.Unimplemented, codes.PermissionDenied}, status.Code(err), "%s: %v", sql, err)
	}
	for _, sql := range []string{"SHOW TABLES FROM tpch", "SELECT table_name FROM information_schema.tables", "SELECT column_name FROM information_schema.columns"} {
		lines, err := texts(bob, cl, sql)
		require.NoError(t, err, sql)
		require.NotContains(t, strings.Join(lines, " "), "region ", sql)
		require.NotContains(t, strings.Join(lines, " "), "r_name", sql)
	}
}

// TestFloods sends headers and messages that are too large, connections that say nothing or very little, and thousands of idle ones. Those
// who are connected go on, and the memory that all of it takes is bounded.
func TestFloods(t *testing.T) {
	const most = 2000
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.Connections = most })
	cl := connect(t, st)
	look := func() {
		t.Helper()
		n, err := count(t.Context(), cl, "SELECT * FROM tpch.nation WHERE n_nationkey = 7")
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}
	look()
	// Headers: one that is too large, and many of a fair size.
	for _, pairs := range [][]string{{"x-flood", strings.Repeat("a", 1<<20)}, many("x-flood", strings.Repeat("b", 1000), 500)} {
		_, err := count(metadata.AppendToOutgoingContext(t.Context(), pairs...), connect(t, st), "SELECT 1")
		require.Error(t, err)
	}
	// Messages: a statement of 40 MB.
	_, err := count(t.Context(), connect(t, st), "SELECT '"+strings.Repeat("x", 40<<20)+"'")
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	_, err = count(metadata.AppendToOutgoingContext(t.Context(), "x-skua-expected-schema", base64.StdEncoding.EncodeToString(make([]byte, 20_000))), cl, "SELECT 1")
	require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	look()

	// Slow lorises: some say nothing, some a byte, some the beginning of a call.
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	before := heap()
	const all = 10_000
	begin := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for i := range all {
		c, err := net.DialTimeout("tcp", st.address, 10*time.Second)
		if err != nil {
			break // the machine has no more; what is open is enough
		}
		conns = append(conns, c)
		_, _ = c.Write(begin[:i%(len(begin)+1)])
	}
	require.Greater(t, len(conns), most)
	time.Sleep(500 * time.Millisecond)
	grown := heap() - before
	t.Logf("%d connections, of which %d may be: the heap has grown by %d MB", len(conns), most, grown>>20)
	require.Less(t, grown, int64(most*100<<10), "100 KiB a connection")
	look()
}

func many(name, value string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(name, i), value)
	}
	return out
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
