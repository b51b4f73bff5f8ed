package server_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/server"
)

// trace replays calls as a driver sends them and writes down what comes back, without what differs from run to run.
type trace struct {
	t   *testing.T
	rpc flight.FlightServiceClient
	ctx context.Context
	out strings.Builder
}

func (r *trace) note(what string, err error, format string, args ...any) {
	if err != nil {
		text := status.Convert(err).Message()
		if at := strings.LastIndex(text, " (call "); at > 0 {
			text = text[:at]
		}
		fmt.Fprintf(&r.out, "%s -> %s: %s\n", what, status.Code(err), text)
		return
	}
	fmt.Fprintf(&r.out, "%s -> %s\n", what, fmt.Sprintf(format, args...))
}

func packedBytes(t *testing.T, m proto.Message) []byte {
	t.Helper()
	a, err := anypb.New(m)
	require.NoError(t, err)
	b, err := proto.Marshal(a)
	require.NoError(t, err)
	return b
}

func fieldsOf(t *testing.T, raw []byte) string {
	t.Helper()
	if len(raw) == 0 {
		return "no schema"
	}
	s, err := flight.DeserializeSchema(raw, memory.DefaultAllocator)
	require.NoError(t, err)
	return columnsOf(s)
}

func columnsOf(s *arrow.Schema) string {
	var out []string
	for _, f := range s.Fields() {
		null := ""
		if !f.Nullable {
			null = " not null"
		}
		out = append(out, f.Name+" "+f.Type.String()+null)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// handshake shakes hands; the token of the answer goes into the calls that follow.
func (r *trace) handshake(header string) {
	var head metadata.MD
	stream, err := r.rpc.Handshake(metadata.AppendToOutgoingContext(r.ctx, "authorization", header), grpc.Header(&head))
	if err == nil {
		err = stream.CloseSend()
	}
	if err == nil {
		if head, err = stream.Header(); err == nil && len(head.Get("authorization")) == 0 {
			_, err = stream.Recv()
		}
	}
	scheme := "nothing"
	if v := head.Get("authorization"); len(v) == 1 {
		scheme, _, _ = strings.Cut(v[0], " ")
		r.ctx = metadata.AppendToOutgoingContext(r.ctx, "authorization", v[0])
	}
	kind, _, _ := strings.Cut(header, " ")
	r.note("Handshake "+kind, err, "header authorization: %s", scheme)
}

// action runs an action and gives the body of its one result.
func (r *trace) action(name string, body []byte) []byte {
	stream, err := r.rpc.DoAction(r.ctx, &flight.Action{Type: name, Body: body})
	var res *flight.Result
	if err == nil {
		res, err = stream.Recv()
	}
	r.note(name, err, "%s", map[bool]string{true: "a body", false: "nothing"}[len(res.GetBody()) > 0])
	return res.GetBody()
}

func (r *trace) prepare(sql string) []byte {
	body := r.action(flightsql.CreatePreparedStatementActionType, packedBytes(r.t, &pb.ActionCreatePreparedStatementRequest{Query: sql}))
	var any anypb.Any
	require.NoError(r.t, proto.Unmarshal(body, &any))
	var res pb.ActionCreatePreparedStatementResult
	require.NoError(r.t, any.UnmarshalTo(&res))
	fmt.Fprintf(&r.out, "  dataset %s parameters %s update %v\n", fieldsOf(r.t, res.GetDatasetSchema()), fieldsOf(r.t, res.GetParameterSchema()), res.GetIsUpdate())
	return res.GetPreparedStatementHandle()
}

func (r *trace) bind(handle []byte, rec arrow.RecordBatch) []byte {
	stream, err := r.rpc.DoPut(r.ctx)
	require.NoError(r.t, err)
	w := flight.NewRecordWriter(stream, ipc.WithSchema(rec.Schema()))
	w.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: packedBytes(r.t, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: handle})})
	require.NoError(r.t, w.Write(rec))
	require.NoError(r.t, w.Close())
	require.NoError(r.t, stream.CloseSend())
	res, err := stream.Recv()
	var put pb.DoPutPreparedStatementResult
	if err == nil {
		err = proto.Unmarshal(res.GetAppMetadata(), &put)
	}
	r.note(fmt.Sprintf("DoPut CommandPreparedStatementQuery %d rows", rec.NumRows()), err, "a handle of its own: %v", string(put.GetPreparedStatementHandle()) != string(handle))
	return put.GetPreparedStatementHandle()
}

// query asks for the FlightInfo of a command and reads all its endpoints.
func (r *trace) query(m proto.Message) {
	name := string(m.ProtoReflect().Descriptor().Name())
	info, err := r.rpc.GetFlightInfo(r.ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: packedBytes(r.t, m)})
	r.note("GetFlightInfo "+name, err, "%d endpoint, %d locations, records %d", len(info.GetEndpoint()), len(info.GetEndpoint())-1+len(firstLocations(info)), info.GetTotalRecords())
	for _, e := range info.GetEndpoint() {
		stream, err := r.rpc.DoGet(r.ctx, e.GetTicket())
		require.NoError(r.t, err)
		rd, err := flight.NewRecordReader(stream)
		if err != nil {
			r.note("DoGet", err, "")
			continue
		}
		n := int64(0)
		for rd.Next() {
			n += rd.RecordBatch().NumRows()
		}
		same := "the same schema"
		if columnsOf(rd.Schema()) != fieldsOf(r.t, info.GetSchema()) {
			same = "ANOTHER SCHEMA " + columnsOf(rd.Schema())
		}
		r.note("DoGet", rd.Err(), "%d rows of %s %s", n, same, columnsOf(rd.Schema()))
		rd.Release()
	}
}

func firstLocations(info *flight.FlightInfo) []*flight.Location {
	if len(info.GetEndpoint()) == 0 {
		return nil
	}
	return info.GetEndpoint()[0].GetLocation()
}

func (r *trace) close(handle []byte) {
	r.action(flightsql.ClosePreparedStatementActionType, packedBytes(r.t, &pb.ActionClosePreparedStatementRequest{PreparedStatementHandle: handle}))
}

func (r *trace) session(pairs ...string) {
	options := map[string]*flight.SessionOptionValue{}
	for i := 0; i < len(pairs); i += 2 {
		v, err := flight.NewSessionOptionValue(pairs[i+1])
		require.NoError(r.t, err)
		options[pairs[i]] = &v
	}
	b, err := proto.Marshal(&flight.SetSessionOptionsRequest{SessionOptions: options})
	require.NoError(r.t, err)
	var res flight.SetSessionOptionsResult
	require.NoError(r.t, proto.Unmarshal(r.action(flight.SetSessionOptionsActionType, b), &res))
	fmt.Fprintf(&r.out, "  %d errors\n", len(res.GetErrors()))
}

// TestTraces replays what drivers send, call by call; testdata/traces.golden is what they get.
func TestTraces(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("ada:"+bcryptHash(t, "secret")+"\n"), 0o600))
	st := startWith(t, lake(t), server.AuthOptions{UsersFile: users, Tokens: twoPeople().Tokens}, nil, func(*server.Options) {})
	const byKey = "SELECT n_name, n_comment FROM tpch.nation WHERE n_nationkey = ?"
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:secret"))
	schema := "tpch"
	var all strings.Builder
	for _, d := range []struct {
		name string
		play func(r *trace)
	}{
		{"JDBC with user and password, catalog= and a property of its own", func(r *trace) {
			r.ctx = metadata.AppendToOutgoingContext(r.ctx, "x-partition-rows", "1000", "schema", "tpch")
			r.handshake(basic)
			r.session("catalog", "demo")
			r.query(&pb.CommandGetSqlInfo{})
			h := r.prepare("SELECT n_name FROM nation")
			r.query(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: h})
			r.close(h)
			h = r.prepare(byKey)
			for k := range int64(2) { // binds the first handle again, executes what the bind gave
				r.query(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: r.bind(h, keyRows(k))})
			}
			r.close(h) // the first
			r.action(flight.CloseSessionActionType, nil)
		}},
		{"JDBC before 18, which executes the first handle", func(r *trace) {
			r.handshake(basic)
			h := r.prepare(byKey)
			r.bind(h, keyRows(3))
			r.query(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: h})
			r.close(h)
		}},
		{"JDBC with token=, browsing", func(r *trace) {
			r.handshake("Bearer " + aliceToken)
			r.query(&pb.CommandGetCatalogs{})
			r.query(&pb.CommandGetDbSchemas{})
			r.query(&pb.CommandGetTables{DbSchemaFilterPattern: &schema})
			r.query(&pb.CommandGetTables{DbSchemaFilterPattern: &schema, IncludeSchema: true})
			r.query(&pb.CommandGetTableTypes{})
			r.query(&pb.CommandGetPrimaryKeys{Table: "nation"})
			r.query(&pb.CommandGetImportedKeys{Table: "nation"})
		}},
		{"JDBC with a wrong token", func(r *trace) { r.handshake("Bearer wrong") }},
		{"ADBC with Basic on every call", func(r *trace) {
			r.ctx = metadata.AppendToOutgoingContext(r.ctx, "authorization", basic)
			r.query(&pb.CommandGetSqlInfo{Info: []uint32{8}})
			r.query(&pb.CommandGetSqlInfo{Info: []uint32{0, 1, 2, 4, 5, 6, 7, 123456}})
			r.query(&pb.CommandStatementQuery{Query: "SELECT 1 AS a"})
			h := r.prepare(byKey)
			for k := range int64(2) { // binds and closes the latest
				h = r.bind(h, keyRows(k, 24))
				r.query(&pb.CommandPreparedStatementQuery{PreparedStatementHandle: h})
			}
			r.close(h)
			r.query(&pb.CommandGetDbSchemas{})
			r.query(&pb.CommandGetTables{IncludeSchema: true, DbSchemaFilterPattern: &schema})
			r.query(&pb.CommandGetCatalogs{})
			r.session("catalog", "demo", "schema", "tpch")
			r.query(&pb.CommandStatementQuery{Query: "SELECT count(*) AS n FROM region"})
			r.action(flight.CloseSessionActionType, nil)
			r.query(&pb.CommandStatementQuery{Query: "SELECT count(*) AS n FROM region"})
			r.query(&pb.CommandStatementIngest{Table: "t"})
		}},
	} {
		r := &trace{t: t, rpc: raw(t, st.address), ctx: t.Context()}
		d.play(r)
		fmt.Fprintf(&all, "# %s\n%s\n", d.name, r.out.String())
	}
	const golden = "testdata/traces.golden"
	if os.Getenv("SKUA_REWRITE") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(all.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), all.String(), "run with SKUA_REWRITE=1 to write it anew")
}
