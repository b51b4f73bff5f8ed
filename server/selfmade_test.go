package server_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/server"
)

// TestSelfMadeTickets: one call answers a statement that the client puts into the ticket, with a row of parameters for each run.
func TestSelfMadeTickets(t *testing.T) {
	cl := connect(t, start(t, server.AuthOptions{Anonymous: true}))
	ctx := context.Background()
	get := func(statement []byte, wrapped bool) ([]string, error) {
		ticket := statement
		if wrapped {
			msg, err := anypb.New(&pb.TicketStatementQuery{StatementHandle: statement})
			require.NoError(t, err)
			ticket, err = proto.Marshal(msg)
			require.NoError(t, err)
		}
		r, err := cl.DoGet(ctx, &flight.Ticket{Ticket: ticket})
		if err != nil {
			return nil, err
		}
		defer r.Release()
		return firstColumn(r)
	}
	var params bytes.Buffer
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "key", Type: arrow.PrimitiveTypes.Int64}}, nil))
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{3, 99, 1}, nil)
	w := ipc.NewWriter(&params, ipc.WithSchema(b.Schema()))
	require.NoError(t, w.Write(b.NewRecordBatch()))
	require.NoError(t, w.Close())
	b.Release()
	sql := "SELECT n_name FROM tpch.nation WHERE n_nationkey = "
	bound := append([]byte(sql+"?\x00"), params.Bytes()...)
	for _, wrapped := range []bool{false, true} {
		rows, err := get([]byte(sql+"3"), wrapped)
		require.NoError(t, err)
		require.Equal(t, []string{"CANADA"}, rows)
		rows, err = get(bound, wrapped)
		require.NoError(t, err)
		require.Equal(t, []string{"CANADA", "ARGENTINA"}, rows)
		for _, bad := range [][]byte{bound[:len(bound)-20], bound[:len(sql)+2], append([]byte(sql+"?\x00"), bytes.Repeat([]byte{0xFF}, 40)...), []byte("\x00"), []byte("SELECT \xff"), []byte("SELECT 1\x00junk")} {
			_, err := get(bad, wrapped)
			require.Equal(t, codes.InvalidArgument, status.Code(err), "%q: %v", bad, err)
		}
	}
	for i := range params.Len() { // nothing that is cut or changed ends the server
		_, _ = get(append([]byte(sql+"?\x00"), params.Bytes()[:i]...), false)
		c := bytes.Clone(bound)
		c[len(sql)+2+i] ^= 0xFF
		_, _ = get(c, false)
	}
	_, err := get([]byte(sql+"3"), true)
	require.NoError(t, err)
}
