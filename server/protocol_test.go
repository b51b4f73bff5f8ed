package server_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/server"
)

func raw(t *testing.T, address string) flight.FlightServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return flight.NewFlightServiceClient(conn)
}

// TestExpectedSchema says what result it counts on, and is refused by name where it would get another one.
func TestExpectedSchema(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	const sql = "SELECT n_nationkey, n_name, n_comment FROM tpch.nation"
	field := func(name string, dt arrow.DataType, null bool) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: null}
	}
	key, name, comment := field("n_nationkey", arrow.PrimitiveTypes.Int64, false), field("n_name", arrow.BinaryTypes.String, false), field("n_comment", arrow.BinaryTypes.String, true)
	encoded := func(fields ...arrow.Field) string {
		return base64.StdEncoding.EncodeToString(flight.SerializeSchema(arrow.NewSchema(fields, nil), memory.DefaultAllocator))
	}
	plan, err := cl.Execute(t.Context(), sql)
	require.NoError(t, err)
	good := encoded(key, name, comment)
	garbage := flight.SerializeSchema(arrow.NewSchema([]arrow.Field{key}, nil), memory.DefaultAllocator)
	for i := 8; i < len(garbage); i++ {
		garbage[i] = 0xFF
	}
	for _, c := range []struct{ name, header, told string }{
		{"the same", good, ""},
		{"for URLs", strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(good), ""},
		{"another type", encoded(field("n_nationkey", arrow.PrimitiveTypes.Int32, false), name, comment), `column "n_nationkey" is int64 and not int32`},
		{"another name", encoded(key, field("nom", arrow.BinaryTypes.String, false), comment), `column "n_name" stands where "nom" is expected`},
		{"another order", encoded(name, key, comment), `column "n_nationkey" stands where "n_name" is expected`},
		{"nulls", encoded(key, name, field("n_comment", arrow.BinaryTypes.String, false)), `column "n_comment" may be null`},
		{"no nulls", encoded(key, field("n_name", arrow.BinaryTypes.String, true), comment), `column "n_name" is never null`},
		{"fewer", encoded(key, name), `column "n_comment" is not expected`},
		{"more", encoded(key, name, comment, field("x", arrow.BinaryTypes.String, true)), `column "x" is missing`},
		{"not base64", "***", "it is not base64"},
		{"not a schema", "AAAA", "it does not begin as an IPC message"},
		{"cut", base64.StdEncoding.EncodeToString(garbage[:20]), "it is cut short"},
		{"damaged", base64.StdEncoding.EncodeToString(garbage), "it is damaged"},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-skua-expected-schema", c.header)
		_, planned := cl.Execute(ctx, sql)
		_, schema := cl.GetExecuteSchema(ctx, sql)
		prepared, preparing := cl.Prepare(ctx, sql)
		if preparing == nil {
			require.NoError(t, prepared.Close(t.Context()))
		}
		_, got := drain(ctx, cl, plan.Endpoint[0].Ticket)
		for _, err := range []error{planned, schema, preparing, got} {
			if c.told == "" {
				require.NoError(t, err, c.name)
				continue
			}
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", c.name, err)
			require.ErrorContains(t, err, c.told, c.name)
		}
	}
}

// TestPollTellsProgress polls a plan, which is there at once, and then the stream of its ticket until it has ended.
func TestPollTellsProgress(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl, rpc := connect(t, st), raw(t, st.address)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command, err := anypb.New(&pb.CommandStatementQuery{Query: endless})
	require.NoError(t, err)
	cmd, err := proto.Marshal(command)
	require.NoError(t, err)
	first, err := rpc.PollFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: cmd})
	require.NoError(t, err)
	require.Nil(t, first.GetFlightDescriptor(), "the plan is done")
	require.InDelta(t, 1, first.GetProgress(), 0)
	ticket := first.GetInfo().GetEndpoint()[0].GetTicket()
	ask := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: ticket.GetTicket()}
	before, err := rpc.PollFlightInfo(ctx, ask)
	require.NoError(t, err)
	require.Nil(t, before.GetFlightDescriptor(), "no stream of it runs")
	require.Equal(t, ticket.GetTicket(), before.GetInfo().GetEndpoint()[0].GetTicket().GetTicket())

	r, err := cl.DoGet(ctx, ticket)
	require.NoError(t, err)
	require.True(t, r.Next())
	during, err := rpc.PollFlightInfo(ctx, ask)
	require.NoError(t, err)
	require.Equal(t, ticket.GetTicket(), during.GetFlightDescriptor().GetCmd(), "to be asked again")
	require.Greater(t, during.GetProgress(), 0.0)
	require.LessOrEqual(t, during.GetProgress(), 1.0)
	cancel()
	for r.Next() {
	}
	r.Release()
	require.Eventually(t, func() bool {
		after, err := rpc.PollFlightInfo(t.Context(), ask)
		return err == nil && after.GetFlightDescriptor() == nil
	}, settleTime, 10*time.Millisecond)
}

// TestRenew extends an endpoint, whose expiry is told.
func TestRenew(t *testing.T) {
	st := startWith(t, lake(t), server.AuthOptions{Anonymous: true}, nil, func(o *server.Options) { o.HandleLife = 3 * time.Second })
	cl := connect(t, st)
	info, err := cl.Execute(t.Context(), "SELECT * FROM tpch.region")
	require.NoError(t, err)
	old := info.Endpoint[0]
	require.WithinDuration(t, time.Now().Add(3*time.Second), old.GetExpirationTime().AsTime(), 2*time.Second)
	time.Sleep(1500 * time.Millisecond)
	renewed, err := cl.RenewFlightEndpoint(t.Context(), &flight.RenewFlightEndpointRequest{Endpoint: old})
	require.NoError(t, err)
	require.True(t, renewed.GetExpirationTime().AsTime().After(old.GetExpirationTime().AsTime()))
	time.Sleep(time.Until(old.GetExpirationTime().AsTime().Add(1100 * time.Millisecond)))
	_, err = drain(t.Context(), cl, old.Ticket)
	require.ErrorContains(t, err, "plan again")
	n, err := drain(t.Context(), cl, renewed.Ticket)
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
	_, err = cl.RenewFlightEndpoint(t.Context(), &flight.RenewFlightEndpointRequest{Endpoint: old})
	require.ErrorContains(t, err, "plan again")
}

// TestEveryCommand sends every command and action of the protocol: each is answered, or refused with UNIMPLEMENTED and a sentence.
func TestEveryCommand(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	rpc := raw(t, st.address)
	prepared, err := connect(t, st).Prepare(t.Context(), "SELECT 1 AS a")
	require.NoError(t, err)
	handle := prepared.Handle()
	refused := map[proto.Message]string{
		&pb.CommandStatementSubstraitPlan{}:                              "Substrait",
		&pb.CommandStatementUpdate{Query: "DELETE FROM tpch.nation"}:     "read-only",
		&pb.CommandPreparedStatementUpdate{PreparedStatementHandle: nil}: "read-only",
		&pb.CommandStatementIngest{Table: "t"}:                           "read-only",
	}
	answered := []proto.Message{
		&pb.CommandStatementQuery{Query: "SELECT 1 AS a"}, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: handle}, &pb.CommandGetCatalogs{},
		&pb.CommandGetDbSchemas{}, &pb.CommandGetTables{}, &pb.CommandGetTables{IncludeSchema: true}, &pb.CommandGetTableTypes{}, &pb.CommandGetSqlInfo{},
		&pb.CommandGetXdbcTypeInfo{}, &pb.CommandGetPrimaryKeys{Table: "t"}, &pb.CommandGetExportedKeys{Table: "t"}, &pb.CommandGetImportedKeys{Table: "t"},
		&pb.CommandGetCrossReference{PkTable: "t", FkTable: "u"},
	}
	descriptor := func(m proto.Message) *flight.FlightDescriptor {
		a, err := anypb.New(m)
		require.NoError(t, err)
		b, err := proto.Marshal(a)
		require.NoError(t, err)
		return &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}
	}
	told := func(err error, text, what string) {
		t.Helper()
		require.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", what, err)
		require.ErrorContains(t, err, text, what)
	}
	for _, m := range answered {
		d := descriptor(m)
		info, err := rpc.GetFlightInfo(t.Context(), d)
		require.NoError(t, err, "%T", m)
		schema, err := rpc.GetSchema(t.Context(), d)
		require.NoError(t, err, "%T", m)
		require.Equal(t, info.GetSchema(), schema.GetSchema(), "%T", m)
		_, err = rpc.PollFlightInfo(t.Context(), d)
		require.NoError(t, err, "%T", m)
		stream, err := rpc.DoGet(t.Context(), info.GetEndpoint()[0].GetTicket())
		require.NoError(t, err, "%T", m)
		r, err := flight.NewRecordReader(stream)
		require.NoError(t, err, "%T", m)
		for r.Next() {
		}
		require.NoError(t, r.Err(), "%T", m)
		r.Release()
	}
	for m, text := range refused {
		d := descriptor(m)
		_, err := rpc.GetFlightInfo(t.Context(), d)
		told(err, text, "info")
		_, err = rpc.GetSchema(t.Context(), d)
		told(err, text, "schema")
		put, err := rpc.DoPut(t.Context())
		require.NoError(t, err)
		require.NoError(t, put.Send(&flight.FlightData{FlightDescriptor: d}))
		_, err = put.Recv()
		told(err, "", "put")
	}
	for name, text := range map[string]string{
		flightsql.BeginTransactionActionType: "read-only", flightsql.EndTransactionActionType: "read-only", flightsql.BeginSavepointActionType: "read-only",
		flightsql.EndSavepointActionType: "read-only", flightsql.CreatePreparedSubstraitPlanActionType: "Substrait", "Dance": "not known",
	} {
		stream, err := rpc.DoAction(t.Context(), &flight.Action{Type: name})
		require.NoError(t, err)
		_, err = stream.Recv()
		told(err, text, name)
	}
	exchange, err := rpc.DoExchange(t.Context())
	require.NoError(t, err)
	_, err = exchange.Recv()
	told(err, "DoExchange", "exchange")
}
