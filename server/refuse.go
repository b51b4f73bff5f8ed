package server

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/fault"
)

// errReadOnly refuses everything that would write.
func errReadOnly() error {
	return fault.New(fault.Unsupported, "Skua is a read-only service: tables are written by the engines that own them")
}

// DoPut takes the parameters of a prepared statement and refuses every other upload before reading it.
func (s *Server) DoPut(stream flight.FlightService_DoPutServer) error {
	ctx := stream.Context()
	head, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return fault.New(fault.Invalid, "the upload carries no Flight SQL command")
	}
	if err != nil {
		return err
	}
	var any anypb.Any
	if err := proto.Unmarshal(head.GetFlightDescriptor().GetCmd(), &any); err != nil || any.TypeUrl == "" {
		return fault.New(fault.Invalid, "the upload carries no Flight SQL command")
	}
	msg, err := any.UnmarshalNew()
	if err != nil {
		return fault.New(fault.Unsupported, "command %s is not known", any.TypeUrl)
	}
	bind, ok := msg.(*pb.CommandPreparedStatementQuery)
	if !ok {
		return errReadOnly()
	}
	blob, err := s.bind(ctx, bind.GetPreparedStatementHandle(), &resumed{stream, head})
	if err != nil {
		return err
	}
	meta, err := proto.Marshal(&pb.DoPutPreparedStatementResult{PreparedStatementHandle: blob})
	if err != nil {
		return err
	}
	return stream.Send(&flight.PutResult{AppMetadata: meta})
}

// resumed gives back the message that was read to learn the command, then the rest of the stream.
type resumed struct {
	flight.FlightService_DoPutServer
	head *flight.FlightData
}

func (r *resumed) Recv() (*flight.FlightData, error) {
	if h := r.head; h != nil {
		r.head = nil
		return h, nil
	}
	return r.FlightService_DoPutServer.Recv()
}

// noTransaction refuses statements inside a transaction that this server cannot have begun.
func noTransaction(_ context.Context, id []byte) error {
	if len(id) > 0 {
		return fault.New(fault.Unsupported, "transactions are not served: Skua is a read-only service")
	}
	return nil
}
