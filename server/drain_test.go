package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/server"
)

func probe(t *testing.T, st *stack) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(st.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

// TestHealth asks without credentials, for the server and for its one service, and watches it stop.
func TestHealth(t *testing.T) {
	st := startWith(t, lake(t), server.AuthOptions{}, nil, func(o *server.Options) { o.Drain = server.Drain{Notice: 300 * time.Millisecond, Time: time.Minute} })
	h := probe(t, st)
	for _, service := range []string{"", "arrow.flight.protocol.FlightService"} {
		got, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, got.GetStatus())
	}
	_, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "other"})
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = count(t.Context(), connect(t, st), "SELECT 1")
	require.Equal(t, codes.Unauthenticated, status.Code(err), "nothing else is open")

	watch, err := h.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	got, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, got.GetStatus())
	stopped := make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(stopped)
		st.server.Stop()
	}()
	got, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, got.GetStatus())
	got, err = h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err, "while it gives notice it answers")
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, got.GetStatus())
	_, err = watch.Recv()
	require.Error(t, err)
	<-stopped
	require.Less(t, time.Since(begun), 20*time.Second, "who watches does not hold it up")
}

// TestDrain stops a server under a client that reads, one whose statement never ends and one that waits for its turn.
func TestDrain(t *testing.T) {
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) {
		o.Drain = server.Drain{Time: 2 * time.Second}
		o.Concurrency = 2
	})
	ctx := t.Context()
	// One that is in the middle of its answer and will have all of it.
	cl := connect(t, st)
	info, err := cl.Execute(ctx, "SELECT a.l_comment, b.l_comment FROM tpch.lineitem a, (SELECT * FROM tpch.lineitem LIMIT 30) b")
	require.NoError(t, err)
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.True(t, r.Next())
	rows := r.RecordBatch().NumRows()
	// One that would go on for ever.
	forever, err := connect(t, st).Execute(ctx, endless)
	require.NoError(t, err)
	second := connect(t, st)
	r2, err := second.DoGet(ctx, forever.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.True(t, r2.Next())
	// One that waits.
	third := connect(t, st)
	waits, err := third.Execute(ctx, "SELECT count(*) FROM tpch.lineitem a, tpch.lineitem b")
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := drain(ctx, third, waits.Endpoint[0].Ticket)
		waited <- err
	}()
	select {
	case err := <-waited:
		t.Fatal("it did not wait", err)
	case <-time.After(200 * time.Millisecond):
	}

	var all sync.WaitGroup
	all.Go(st.server.Stop)
	err = <-waited
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "another one answers the same ticket")
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err(), "a running statement is finished")
	r.Release()
	want, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err == nil {
		_ = want.Next()
		err = want.Err()
		want.Release()
	}
	require.Error(t, err, "nothing new begins")
	require.Positive(t, rows)
	for r2.Next() {
	}
	require.Equal(t, codes.Unavailable, status.Code(r2.Err()), "%v", r2.Err())
	require.ErrorContains(t, r2.Err(), "SERVER_STOPPING")
	r2.Release()
	all.Wait()
}

// TestLogs looks at the lines about statements, slow ones too, and at the audit.
func TestLogs(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	auditCore, audits := observer.New(zapcore.InfoLevel)
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) {
		o.Log, o.Audit = zap.New(core), zap.New(auditCore)
		o.Statements = server.StatementLog{All: true, Slow: 300 * time.Millisecond}
	})
	cl := connect(t, st)
	n, err := count(t.Context(), cl, "SELECT n_name FROM tpch.nation WHERE n_name > 'SECRET'")
	require.NoError(t, err)
	_, err = count(t.Context(), cl, "SELECT 1 / (n_nationkey - 3) FROM tpch.nation")
	require.Error(t, err)
	info, err := cl.GetTables(t.Context(), &flightsql.GetTablesOpts{})
	require.NoError(t, err)
	_, err = drain(t.Context(), cl, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return audits.Len() == 3 && logs.FilterMessage("statement").Len() == 2 }, 5*time.Second, time.Millisecond)
	first := logs.FilterMessage("statement").All()[0].ContextMap()
	require.Equal(t, "anonymous", first["principal"])
	require.Equal(t, n, first["rows"])
	require.Equal(t, "OK", first["code"])
	require.Positive(t, first["bytes"])
	require.NotContains(t, first, "text", "the text is not wanted in the log")
	lines := audits.All()
	require.Equal(t, "SELECT n_name FROM tpch.nation WHERE n_name > 'SECRET'", lines[0].ContextMap()["text"])
	require.Equal(t, []any{"demo.tpch.nation"}, lines[0].ContextMap()["tables"])
	failed := lines[1].ContextMap()
	require.Equal(t, "InvalidArgument", failed["code"])
	require.Contains(t, textOf(failed), "DIVISION_BY_ZERO")
	require.Len(t, failed["call"], 8)
	require.Equal(t, "metadata", lines[2].Message)
	require.Equal(t, "tablesCommand", lines[2].ContextMap()["command"])
	_, err = count(t.Context(), cl, "SELECT count(*) FROM tpch.lineitem a, tpch.lineitem b WHERE a.l_comment < b.l_comment")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return logs.FilterMessage("slow statement").Len() == 1 }, 5*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, logs.FilterMessage("slow statement").All()[0].ContextMap()["took"], 300*time.Millisecond)
}

func textOf(m map[string]any) string {
	s, _ := m["error"].(string)
	return s
}

// TestResultLimits: each limit names itself, and none cuts a result off unseen.
func TestResultLimits(t *testing.T) {
	dir := lake(t)
	for _, c := range []struct {
		limits server.ResultLimits
		sql    string
		name   string // of the limit; "" when the statement is within it
	}{
		{server.ResultLimits{Rows: 24}, "SELECT * FROM tpch.nation", "limits.query.rows"},
		{server.ResultLimits{Rows: 25}, "SELECT * FROM tpch.nation", ""},
		{server.ResultLimits{Bytes: 100_000}, "SELECT * FROM tpch.lineitem", "limits.query.result"},
		{server.ResultLimits{Bytes: 100_000}, "SELECT * FROM tpch.nation", ""},
		{server.ResultLimits{Scan: 10_000}, "SELECT max(l_comment) FROM tpch.lineitem", "limits.query.scan"},
		{server.ResultLimits{Scan: 10_000_000}, "SELECT max(l_comment) FROM tpch.lineitem", ""},
	} {
		st := startWith(t, dir, server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.Results = c.limits })
		_, err := count(t.Context(), connect(t, st), c.sql)
		if c.name == "" {
			require.NoError(t, err, "%s", c.sql)
			continue
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(err), "%s: %v", c.sql, err)
		require.ErrorContains(t, err, c.name)
	}
}

// TestSlowReadersHoldLittle has many clients that begin to read a large result and stop; lookups pass them.
func TestSlowReadersHoldLittle(t *testing.T) {
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.Concurrency, o.QueueTime = 8, 200*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range 8 {
		cl := connect(t, st)
		info, err := cl.Execute(ctx, endless)
		require.NoError(t, err)
		r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		require.True(t, r.Next())
		all.Go(func() {
			<-ctx.Done()
			for r.Next() {
			}
			r.Release()
		})
	}
	time.Sleep(300 * time.Millisecond)
	require.Less(t, st.pool.Used()-st.caches.Used(), int64(8*16<<20), "a reader that does not read holds a few batches")
	cl := connect(t, st)
	_, err := count(ctx, cl, "SELECT count(*) FROM tpch.lineitem a, tpch.lineitem b")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "limits.concurrency")
	n, err := count(ctx, cl, "SELECT * FROM tpch.nation WHERE n_nationkey = 7")
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	cancel()
	all.Wait()
	settled(t, st)
}
