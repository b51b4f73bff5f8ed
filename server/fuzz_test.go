package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// bare is a server without catalogs, and a caller of it.
func bare(t testing.TB) (*Server, context.Context) {
	t.Helper()
	a, err := NewAuthenticator(AuthOptions{Anonymous: true})
	require.NoError(t, err)
	sealer, err := seal.Random()
	require.NoError(t, err)
	s, err := New(Options{Auth: a, Sealer: sealer, Pool: memory.NewPool("process", 256<<20)})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	c := caller{principal: anonymous, session: s.sessions.get(anonymous, "test")}
	return s, context.WithValue(context.Background(), callerKey{}, c)
}

func packed(t testing.TB, m proto.Message) []byte {
	t.Helper()
	a, err := anypb.New(m)
	require.NoError(t, err)
	b, err := proto.Marshal(a)
	require.NoError(t, err)
	return b
}

// FuzzCommand hands arbitrary bytes in as command and ticket. Whatever they are, the answer is a command or a fault that is not
// ours.
func FuzzCommand(f *testing.F) {
	s, ctx := bare(f)
	blob, err := s.sealHandle(&handle{ID: "i", Principal: anonymous, SQL: "SELECT 1", Expiry: time.Now().Add(time.Hour).Unix()})
	require.NoError(f, err)
	pattern := "a_%\\"
	for _, seed := range [][]byte{
		nil, []byte("SELECT 1"), blob, blob[:len(blob)-1], {0xff, 0xfe}, {1},
		packed(f, &pb.CommandStatementQuery{Query: "SELECT ?"}),
		packed(f, &pb.CommandStatementQuery{Query: "SELECT 1", TransactionId: []byte("x")}),
		packed(f, &pb.TicketStatementQuery{StatementHandle: blob}),
		packed(f, &pb.CommandPreparedStatementQuery{PreparedStatementHandle: []byte("x")}),
		packed(f, &pb.CommandGetTables{TableNameFilterPattern: &pattern, IncludeSchema: true}),
		packed(f, &pb.CommandGetDbSchemas{DbSchemaFilterPattern: &pattern}),
		packed(f, &pb.CommandGetSqlInfo{Info: []uint32{0, 1 << 31}}),
		packed(f, &pb.CommandGetCrossReference{}), packed(f, &pb.CommandGetXdbcTypeInfo{}),
		packed(f, &pb.CommandStatementIngest{}), packed(f, &pb.ActionCreatePreparedStatementRequest{}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 1<<16 {
			return
		}
		c, err := s.parse(ctx, raw)
		if err == nil {
			if _, err = c.schema(ctx); err == nil {
				_, err = c.ticket(ctx)
			}
		}
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.KindOf(err), "%v", err)
		}
	})
}

// messages is an upload: each message is a header and a body, both with their lengths before them.
type messages struct{ rest []byte }

func (m *messages) Recv() (*flight.FlightData, error) {
	if len(m.rest) == 0 {
		return nil, io.EOF
	}
	return &flight.FlightData{DataHeader: m.part(), DataBody: m.part()}, nil
}

func (m *messages) part() []byte {
	if len(m.rest) < 4 {
		m.rest = nil
		return nil
	}
	n := min(int(binary.LittleEndian.Uint32(m.rest)), len(m.rest)-4)
	p := m.rest[4 : 4+n]
	m.rest = m.rest[4+n:]
	return p
}

// upload writes batches as a client would send them.
func upload(t testing.TB, rec arrow.RecordBatch, opts ...ipc.Option) []byte {
	t.Helper()
	var out bytes.Buffer
	w := ipc.NewWriterWithPayloadWriter(payloads{&out}, append(opts, ipc.WithSchema(rec.Schema()))...)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return out.Bytes()
}

type payloads struct{ out *bytes.Buffer }

func (p payloads) Start() error { return nil }
func (p payloads) Close() error { return nil }
func (p payloads) WritePayload(x ipc.Payload) error {
	var body bytes.Buffer
	if err := x.SerializeBody(&body); err != nil {
		return err
	}
	m := x.Meta()
	defer m.Release()
	for _, part := range [][]byte{m.Bytes(), body.Bytes()} {
		if err := binary.Write(p.out, binary.LittleEndian, uint32(len(part))); err != nil {
			return err
		}
		p.out.Write(part)
	}
	return nil
}

func record(t testing.TB, fields []arrow.Field, json string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(arrowmem.DefaultAllocator, arrow.NewSchema(fields, nil), bytes.NewReader([]byte(json)))
	require.NoError(t, err)
	return rec
}

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

var boundSamples = []struct {
	fields []arrow.Field
	json   string
}{
	{[]arrow.Field{nullable("a", arrow.PrimitiveTypes.Int64), nullable("b", arrow.BinaryTypes.String)}, `[{"a": 1, "b": "x"}, {"a": null, "b": null}]`},
	{[]arrow.Field{nullable("a", arrow.Null)}, `[{"a": null}]`},
	{[]arrow.Field{nullable("a", arrow.ListOf(arrow.PrimitiveTypes.Int32))}, `[{"a": [1, null]}, {"a": null}]`},
	{[]arrow.Field{nullable("a", arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString))}, `[{"a": [{"key": "k", "value": "v"}]}]`},
	{[]arrow.Field{nullable("a", arrow.StructOf(nullable("x", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32))))}, `[{"a": {"x": [1, 2]}}]`},
	{[]arrow.Field{nullable("a", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String})}, `[{"a": "x"}, {"a": null}]`},
	{[]arrow.Field{nullable("a", arrow.BinaryTypes.StringView)}, `[{"a": "a string of more than twelve bytes"}]`},
	{[]arrow.Field{nullable("a", &arrow.Decimal128Type{Precision: 38, Scale: 2})}, `[{"a": "1.25"}]`},
}

// FuzzBind hands arbitrary uploads in. What is accepted can be decoded, and all memory is given back.
func FuzzBind(f *testing.F) {
	for _, s := range boundSamples {
		rec := record(f, s.fields, s.json)
		f.Add(upload(f, rec))
		f.Add(upload(f, rec, ipc.WithZstd()))
		rec.Release()
	}
	f.Add([]byte{})
	pool := memory.NewPool("process", 64<<20)
	f.Fuzz(func(t *testing.T, raw []byte) {
		stream, err := readParameters(&messages{raw}, pool)
		require.Zero(t, pool.Used())
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.KindOf(err), "%v", err)
			return
		}
		r, err := ipc.NewReader(bytes.NewReader(stream))
		require.NoError(t, err)
		want := make([]vector.Type, r.Schema().NumFields())
		for i, f := range r.Schema().Fields() {
			want[i], _ = vector.FromArrow(f.Type)
		}
		r.Release()
		err = guardBytes(func() error {
			_, err := decodeParameters(stream, want)
			return err
		})
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.KindOf(err), "%v", err)
		}
	})
}

// TestBindRefusesBombs sends few bytes that claim to be much.
func TestBindRefusesBombs(t *testing.T) {
	pool := memory.NewPool("process", 1<<30)
	refuse := func(rec arrow.RecordBatch, change func([]byte), text string, opts ...ipc.Option) {
		t.Helper()
		defer rec.Release()
		raw := upload(t, rec, opts...)
		change(raw)
		_, err := readParameters(&messages{raw}, pool)
		require.ErrorContains(t, err, text)
		require.NotEqual(t, fault.Internal, fault.KindOf(err))
		require.Zero(t, pool.Used())
	}
	same := func([]byte) {}
	empty := arrow.NewSchema(nil, nil)
	refuse(array.NewRecordBatch(empty, nil, 1<<40), same, "rows of parameters")
	nulls := array.NewNull(1 << 40)
	refuse(array.NewRecordBatch(arrow.NewSchema([]arrow.Field{nullable("a", arrow.Null)}, nil), []arrow.Array{nulls}, 1<<40), same, "rows of parameters")
	zeros := record(t, []arrow.Field{nullable("a", arrow.PrimitiveTypes.Int64)}, `[`+string(bytes.Repeat([]byte(`{"a": 0},`), 200))+`{"a": 0}]`)
	refuse(zeros, func(raw []byte) {
		// The compressed buffer begins with its uncompressed length.
		at := bytes.LastIndex(raw, binary.LittleEndian.AppendUint64(nil, 201*8))
		require.Positive(t, at)
		binary.LittleEndian.PutUint64(raw[at:], 1<<44)
	}, "once unpacked", ipc.WithZstd())
	lists := record(t, boundSamples[2].fields, `[{"a": [1, 2, 3]}]`)
	refuse(lists, func(raw []byte) {
		at := bytes.LastIndex(raw, []byte{0, 0, 0, 0, 3, 0, 0, 0})
		require.Positive(t, at)
		raw[at+4] = 200
	}, "is damaged")
}

func TestBindTakesWhatDriversSend(t *testing.T) {
	pool := memory.NewPool("process", 1<<30)
	for _, s := range boundSamples {
		for _, opts := range [][]ipc.Option{nil, {ipc.WithZstd()}} {
			rec := record(t, s.fields, s.json)
			stream, err := readParameters(&messages{upload(t, rec, opts...)}, pool)
			require.NoError(t, err, s.json)
			want := make([]vector.Type, len(s.fields))
			for i, f := range s.fields {
				var ok bool
				want[i], ok = vector.FromArrow(f.Type)
				require.True(t, ok)
			}
			rows, err := decodeParameters(stream, want)
			require.NoError(t, err, s.json)
			require.Len(t, rows, int(rec.NumRows()))
			rec.Release()
		}
	}
	_, err := readParameters(&messages{}, pool)
	require.ErrorContains(t, err, "before it brought any parameters")
	require.Zero(t, pool.Used())
}
