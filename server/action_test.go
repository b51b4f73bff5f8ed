package server_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/server"
)

// TestMalformedActions sends every action bodies that are nonsense, cut short or another action's.
func TestMalformedActions(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	list, err := cl.Client.ListActions(ctx, &flight.Empty{})
	require.NoError(t, err)
	names := []string{"", "nope", "BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint", "CreatePreparedSubstraitPlan"}
	for {
		a, err := list.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.NotEmpty(t, a.Description)
		names = append(names, a.Type)
	}
	require.Greater(t, len(names), 14)
	info, err := cl.Execute(ctx, "SELECT 1")
	require.NoError(t, err)
	ticket := info.Endpoint[0].Ticket.Ticket
	for _, name := range names {
		for _, body := range [][]byte{nil, {}, {0xff}, []byte("nonsense"), ticket, ticket[:len(ticket)/2], make([]byte, 1<<20)} {
			stream, err := cl.Client.DoAction(ctx, &flight.Action{Type: name, Body: body})
			require.NoError(t, err)
			for err == nil {
				_, err = stream.Recv()
			}
			if errors.Is(err, io.EOF) {
				continue
			}
			require.Contains(t, []codes.Code{codes.InvalidArgument, codes.Unimplemented}, status.Code(err), "%s %.20q: %v", name, body, err)
		}
	}
	for _, d := range []*flight.FlightDescriptor{
		nil, {}, {Type: flight.DescriptorPATH, Path: []string{"a", "b"}}, {Type: flight.DescriptorCMD, Cmd: []byte{0xff}}, {Type: flight.DescriptorUNKNOWN, Cmd: []byte("\x00\x01")},
	} {
		_, err := cl.Client.GetFlightInfo(ctx, d)
		require.Contains(t, []codes.Code{codes.InvalidArgument, codes.Unimplemented}, status.Code(err), "%v", err)
		_, err = cl.Client.GetSchema(ctx, d)
		require.Contains(t, []codes.Code{codes.InvalidArgument, codes.Unimplemented}, status.Code(err), "%v", err)
	}
	for _, header := range []string{"", "Basic", "Basic !!!", "Basic " + "Og==", "Bearer", "Digest x", "Bearer AAAA"} {
		_, err := count(metadata.AppendToOutgoingContext(ctx, "authorization", header), cl, "SELECT 1")
		require.Contains(t, []codes.Code{codes.OK, codes.Unauthenticated}, status.Code(err), "%q: %v", header, err)
	}
	exchange, err := cl.Client.DoExchange(ctx)
	require.NoError(t, err)
	_, err = exchange.Recv()
	require.Equal(t, codes.Unimplemented, status.Code(err))
	put, err := cl.Client.DoPut(ctx)
	require.NoError(t, err)
	require.NoError(t, put.CloseSend())
	_, err = put.Recv()
	require.Equal(t, codes.InvalidArgument, status.Code(err), "%v", err)
	settled(t, st)
}
