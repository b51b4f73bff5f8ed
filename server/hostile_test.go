package server_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/server"
)

// settled waits until queries hold no memory.
func settled(t *testing.T, st *stack) {
	t.Helper()
	deadline := time.Now().Add(settleTime)
	for st.pool.Used() != st.caches.Used() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d bytes are still reserved\n%s", st.pool.Used()-st.caches.Used(), stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestCancelReachesAClientThatDoesNotRead: the server waits to send then, and must give up its memory all the same.
func TestCancelReachesAClientThatDoesNotRead(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl, other := connect(t, st), connect(t, st)
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	info, err := cl.Execute(ctx, endless)
	require.NoError(t, err)
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	time.Sleep(300 * time.Millisecond) // until the connection's windows are full
	require.Greater(t, st.pool.Used(), st.caches.Used())
	res, err := other.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
	require.NoError(t, err)
	require.Equal(t, flight.CancelStatusCancelled, res.Status)
	settled(t, st)
	for r.Next() { //nolint:revive // what was under way still comes
	}
	require.Equal(t, codes.Canceled, status.Code(r.Err()), "%v", r.Err())
}

func TestTimeLimitReachesAClientThatDoesNotRead(t *testing.T) {
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.QueryTime = 500 * time.Millisecond })
	cl := connect(t, st)
	info, err := cl.Execute(context.Background(), endless)
	require.NoError(t, err)
	r, err := cl.DoGet(context.Background(), info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	settled(t, st)
	for r.Next() { //nolint:revive // what was under way still comes
	}
	require.Equal(t, codes.DeadlineExceeded, status.Code(r.Err()), "%v", r.Err())
	require.ErrorContains(t, r.Err(), "EXCEEDED_TIME_LIMIT")
}

// TestCancelEndsOneRun: a prepared statement can run again after one of its runs was cancelled.
func TestCancelEndsOneRun(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	p, err := cl.Prepare(ctx, "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	info, err := p.Execute(ctx)
	require.NoError(t, err)
	_, err = cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info})
	require.NoError(t, err)
	_, err = drain(ctx, cl, info.Endpoint[0].Ticket)
	require.Equal(t, codes.Canceled, status.Code(err))
	info, err = p.Execute(ctx)
	require.NoError(t, err)
	n, err := drain(ctx, cl, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
	require.NoError(t, p.Close(ctx))
}

func TestAnotherUserCannotCancelOrRenew(t *testing.T) {
	st := start(t, server.AuthOptions{Tokens: map[string]string{"the-token-of-ann-0": "ann", "the-token-of-bob-0": "bob"}})
	cl := connect(t, st)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
	}
	info, err := cl.Execute(as("the-token-of-ann-0"), "SELECT 1")
	require.NoError(t, err)
	_, err = cl.CancelFlightInfo(as("the-token-of-bob-0"), &flight.CancelFlightInfoRequest{Info: info})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	_, err = cl.RenewFlightEndpoint(as("the-token-of-bob-0"), &flight.RenewFlightEndpointRequest{Endpoint: info.Endpoint[0]})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	renewed, err := cl.RenewFlightEndpoint(as("the-token-of-ann-0"), &flight.RenewFlightEndpointRequest{Endpoint: info.Endpoint[0]})
	require.NoError(t, err)
	n, err := drain(as("the-token-of-ann-0"), cl, renewed.Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

func TestHandlesExpireAndKeysRotate(t *testing.T) {
	k1 := seal.Key{ID: "k1", Secret: []byte("0123456789abcdef-1")}
	k2 := seal.Key{ID: "k2", Secret: []byte("0123456789abcdef-2")}
	one, err := seal.New(k1)
	require.NoError(t, err)
	both, err := seal.New(k2, k1)
	require.NoError(t, err)
	next, err := seal.New(k2)
	require.NoError(t, err)
	dir, open := lake(t), server.AuthOptions{Anonymous: true}
	ctx := context.Background()
	a := connect(t, startOn(t, dir, open, one))
	b := connect(t, startOn(t, dir, open, both))
	c := connect(t, startOn(t, dir, open, next))
	info, err := a.Execute(ctx, "SELECT 1")
	require.NoError(t, err)
	n, err := drain(ctx, b, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	_, err = drain(ctx, c, info.Endpoint[0].Ticket)
	require.ErrorContains(t, err, "no longer in use")

	short := connect(t, startWith(t, dir, open, nil, func(o *server.Options) { o.HandleLife = time.Nanosecond }))
	info, err = short.Execute(ctx, "SELECT 1")
	require.NoError(t, err)
	time.Sleep(1100 * time.Millisecond)
	_, err = drain(ctx, short, info.Endpoint[0].Ticket)
	require.ErrorContains(t, err, "has expired")
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

// TestUseMovesTheSession checks USE and SET SESSION over one connection.
func TestUseMovesTheSession(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	_, err := texts(ctx, cl, "SELECT n_name FROM nation")
	require.ErrorContains(t, err, "MISSING_SCHEMA_NAME")
	said, err := texts(ctx, cl, "USE tpch")
	require.NoError(t, err)
	require.Equal(t, []string{"schema demo.tpch"}, said)
	n, err := count(ctx, cl, "SELECT n_name FROM nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
	said, err = texts(ctx, cl, "USE demo.samples")
	require.NoError(t, err)
	require.Equal(t, []string{"schema demo.samples"}, said)
	_, err = texts(ctx, cl, "USE nope")
	require.ErrorContains(t, err, "SCHEMA_NOT_FOUND")
	for sql, want := range map[string]string{
		"SET SESSION dialect = 'perl'":         "use trino, spark or duckdb",
		"SET SESSION time_zone = 'Mars/North'": "time zone",
		"SET SESSION catalog = 'nope'":         "there are demo",
		"SET SESSION colour = 'red'":           "INVALID_SESSION_PROPERTY",
	} {
		_, err = texts(ctx, cl, sql)
		require.ErrorContains(t, err, want, sql)
	}
	said, err = texts(ctx, cl, "SET SESSION time_zone = 'Europe/Berlin'")
	require.NoError(t, err)
	require.Equal(t, []string{"time_zone Europe/Berlin"}, said)
	_, err = texts(ctx, cl, "SET SESSION workers = 10000")
	require.ErrorContains(t, err, "workers is a number from 1 to")
	_, err = texts(ctx, cl, "SET SESSION chunk_rows = '0'")
	require.ErrorContains(t, err, "chunk_rows is a number from 1 to 2048, as limits.chunk_rows has it")
	said, err = texts(ctx, cl, "SET SESSION chunk_rows = 7")
	require.NoError(t, err)
	require.Equal(t, []string{"chunk_rows 7"}, said)
	said, err = texts(ctx, cl, "SET SESSION workers = 1")
	require.NoError(t, err)
	require.Equal(t, []string{"workers 1"}, said)
	n, err = count(ctx, cl, "SELECT n_name FROM demo.tpch.nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
	said, err = texts(ctx, cl, "RESET SESSION time_zone")
	require.NoError(t, err)
	require.Equal(t, []string{"time_zone UTC"}, said)
}

func TestSessionOptions(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	text := func(s string) *flight.SessionOptionValue {
		return &flight.SessionOptionValue{OptionValue: &pb.SessionOptionValue_StringValue{StringValue: s}}
	}
	res, err := cl.SetSessionOptions(ctx, &flight.SetSessionOptionsRequest{SessionOptions: map[string]*flight.SessionOptionValue{
		"schema": text("tpch"), "catalog": {OptionValue: &pb.SessionOptionValue_Int64Value{Int64Value: 7}}, "dialect": text("perl"),
		"colour": text("red"), "time_zone": nil,
	}})
	require.NoError(t, err)
	require.Len(t, res.Errors, 3)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidValue, res.Errors["catalog"].Value)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidValue, res.Errors["dialect"].Value)
	require.Equal(t, flight.SetSessionOptionsResultErrorInvalidName, res.Errors["colour"].Value)
	n, err := count(ctx, cl, "SELECT * FROM nation")
	require.NoError(t, err, "those that are right are set")
	require.EqualValues(t, 25, n)

	res, err = cl.SetSessionOptions(ctx, &flight.SetSessionOptionsRequest{SessionOptions: map[string]*flight.SessionOptionValue{
		"schema": text(strings.Repeat("x", 1<<20)),
	}})
	require.NoError(t, err)
	require.Len(t, res.Errors, 1)

	// A cookie does not reach the session of a connection.
	peer := st.address
	forged := metadata.AppendToOutgoingContext(ctx, "cookie", `arrow_flight_session_id="peer `+peer+`"`)
	_, err = count(forged, connect(t, st), "SELECT * FROM nation")
	require.ErrorContains(t, err, "MISSING_SCHEMA_NAME")
	_, err = cl.CloseSession(ctx, &flight.CloseSessionRequest{})
	require.NoError(t, err)
	_, err = count(ctx, cl, "SELECT * FROM nation")
	require.ErrorContains(t, err, "MISSING_SCHEMA_NAME")
}

func TestParameters(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	run := func(sql string, fields []arrow.Field, json string) (int64, error) {
		p, err := cl.Prepare(ctx, sql)
		if err != nil {
			return 0, err
		}
		defer func() { require.NoError(t, p.Close(ctx)) }()
		if fields != nil {
			rec, _, err := array.RecordFromJSON(arrowmem.DefaultAllocator, arrow.NewSchema(fields, nil), strings.NewReader(json))
			require.NoError(t, err)
			p.SetParameters(rec)
		}
		info, err := p.Execute(ctx)
		if err != nil {
			return 0, err
		}
		return drain(ctx, cl, info.Endpoint[0].Ticket)
	}
	field := func(name string, typ arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: true}
	}
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, c := range []struct {
		name, sql string
		fields    []arrow.Field
		json      string
		rows      int64
		fails     string
	}{
		{"text for a key", "SELECT * FROM tpch.nation WHERE n_nationkey = ?", []arrow.Field{field("a", arrow.BinaryTypes.String)}, `[{"a": "3"}]`, 1, ""},
		{"not a number", "SELECT * FROM tpch.nation WHERE n_nationkey = ?", []arrow.Field{field("a", arrow.BinaryTypes.String)}, `[{"a": "x"}]`, 0, "parameter 1"},
		{"three rows", "SELECT * FROM tpch.nation WHERE n_nationkey = ?", []arrow.Field{field("a", arrow.PrimitiveTypes.Int64)}, `[{"a": 3}, {"a": 4}, {"a": 400}]`, 2, ""},
		{"a dictionary", "SELECT * FROM tpch.nation WHERE n_name = ?", []arrow.Field{field("a", dict)}, `[{"a": "FRANCE"}, {"a": "PERU"}]`, 2, ""},
		{"a list", "SELECT * FROM tpch.nation WHERE contains(CAST(? AS array(varchar)), n_name)", []arrow.Field{field("a", arrow.ListOf(arrow.BinaryTypes.String))}, `[{"a": ["FRANCE", "PERU", null]}]`, 2, ""},
		{"a list, by its own type", "SELECT * FROM tpch.nation WHERE contains(?, n_name)", []arrow.Field{field("a", arrow.ListOf(arrow.BinaryTypes.String))}, `[{"a": ["FRANCE", "PERU", null]}]`, 2, ""},
		{"a number, by its own type", "SELECT 1 WHERE typeof(?) = 'bigint'", []arrow.Field{field("a", arrow.PrimitiveTypes.Int64)}, `[{"a": 3}]`, 1, ""},
		{"too few", "SELECT ?, ?", []arrow.Field{field("a", arrow.BinaryTypes.String)}, `[{"a": "x"}]`, 0, "the statement has 2 parameters, but 1 are bound"},
		{"too many", "SELECT 1", []arrow.Field{field("a", arrow.BinaryTypes.String)}, `[{"a": "x"}]`, 0, "the statement has 0 parameters, but 1 are bound"},
		{"none", "SELECT ?", nil, ``, 0, "none are bound"},
		{"a struct for a number", "SELECT * FROM tpch.nation WHERE n_nationkey = ?", []arrow.Field{field("a", arrow.StructOf(field("x", arrow.BinaryTypes.String)))}, `[{"a": {"x": "1"}}]`, 0, "parameter 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := run(c.sql, c.fields, c.json)
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				require.NotEqual(t, codes.Internal, status.Code(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.rows, n)
		})
	}
	settled(t, st)

	// An upload without a schema, and one that ends at once.
	p, err := cl.Prepare(ctx, "SELECT ?")
	require.NoError(t, err)
	for _, data := range [][]*flight.FlightData{
		{{FlightDescriptor: bindDescriptor(t, p.Handle())}},
		{{FlightDescriptor: bindDescriptor(t, p.Handle()), DataHeader: []byte("nonsense of some length")}},
	} {
		stream, err := cl.Client.DoPut(ctx)
		require.NoError(t, err)
		for _, d := range data {
			require.NoError(t, stream.Send(d))
		}
		require.NoError(t, stream.CloseSend())
		_, err = stream.Recv()
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	}
}

// TestManyStreams opens 500 streams at once; clients leave at different moments.
func TestManyStreams(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			ctx, leave := context.WithTimeout(context.Background(), time.Duration(i%50)*4*time.Millisecond)
			defer leave()
			_, err := count(ctx, cl, "SELECT * FROM tpch.lineitem ORDER BY l_comment")
			switch status.Code(err) {
			case codes.OK, codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted:
			default:
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	settled(t, st)
	n, err := count(context.Background(), cl, "SELECT * FROM tpch.nation")
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
}

func TestLargeStatements(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	deep := strings.Repeat("(", 100_000) + "1" + strings.Repeat(")", 100_000)
	for _, c := range []struct {
		name, sql string
		code      codes.Code
	}{
		{"deep", "SELECT " + deep, codes.InvalidArgument},
		{"deep not", "SELECT " + strings.Repeat("NOT ", 100_000) + "true", codes.InvalidArgument},
		{"deep queries", strings.Repeat("SELECT * FROM (", 20_000) + "SELECT 1" + strings.Repeat(")", 20_000), codes.InvalidArgument},
		{"long text", "SELECT '" + strings.Repeat("x", 1<<19) + "'", codes.OK},
		{"longer text", "SELECT '" + strings.Repeat("x", 1<<20) + "'", codes.InvalidArgument},
		{"too long for a message", "SELECT '" + strings.Repeat("x", 17<<20) + "'", codes.ResourceExhausted},
		{"not a statement", strings.Repeat("x", 1<<20), codes.InvalidArgument},
		{"nothing", "", codes.InvalidArgument},
		{"a null byte", "SELECT '\x00'", codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := count(context.Background(), cl, c.sql)
			require.Equal(t, c.code, status.Code(err), "%v", err)
			if err != nil {
				require.LessOrEqual(t, len(status.Convert(err).Message()), 1000)
			}
		})
	}
	many := "SELECT * FROM tpch.nation WHERE n_nationkey IN (" + strings.Repeat("?, ", 9_999) + "?)"
	p, err := cl.Prepare(context.Background(), many)
	if err != nil {
		require.NotEqual(t, codes.Internal, status.Code(err), "%v", err)
		return
	}
	require.Equal(t, 10_000, p.ParameterSchema().NumFields())
	fields := make([]arrow.Field, 10_000)
	columns := make([]arrow.Array, len(fields))
	b := array.NewInt64Builder(arrowmem.DefaultAllocator)
	for i := range fields {
		b.Append(int64(i))
		fields[i], columns[i] = arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Int64}, b.NewArray()
	}
	p.SetParameters(array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 1))
	info, err := p.Execute(context.Background())
	require.NoError(t, err)
	n, err := drain(context.Background(), cl, info.Endpoint[0].Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 25, n)
}

func bindDescriptor(t *testing.T, handle []byte) *flight.FlightDescriptor {
	t.Helper()
	a, err := anypb.New(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: handle})
	require.NoError(t, err)
	b, err := proto.Marshal(a)
	require.NoError(t, err)
	return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}
}
