package server

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/fault"
)

// action is one action with the sentence that ListActions shows.
type action struct {
	description string
	run         func(s *Server, ctx context.Context, body []byte, setHeader func(metadata.MD) error) (proto.Message, error)
}

// actions are those that are served. Actions that would write are known by name so that they are refused with a reason.
var actions = map[string]action{
	flightsql.CreatePreparedStatementActionType: {"Prepares a statement.", func(s *Server, ctx context.Context, body []byte, _ func(metadata.MD) error) (proto.Message, error) {
		var req pb.ActionCreatePreparedStatementRequest
		if err := unpack(body, &req); err != nil {
			return nil, err
		}
		return s.prepare(ctx, &req)
	}},
	flightsql.ClosePreparedStatementActionType: {"Closes a prepared statement.", func(s *Server, ctx context.Context, body []byte, _ func(metadata.MD) error) (proto.Message, error) {
		// Handles hold all their state, so there is nothing to free; a client may close one twice or not at all.
		return nil, unpack(body, &pb.ActionClosePreparedStatementRequest{})
	}},
	flight.CancelFlightInfoActionType: {"Stops the statement of a FlightInfo.", func(s *Server, ctx context.Context, body []byte, _ func(metadata.MD) error) (proto.Message, error) {
		var req flight.CancelFlightInfoRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			return nil, badBody(err)
		}
		return s.cancelInfo(ctx, req.GetInfo())
	}},
	flightsql.CancelQueryActionType: {"Stops a statement (older form of CancelFlightInfo).", func(s *Server, ctx context.Context, body []byte, _ func(metadata.MD) error) (proto.Message, error) {
		var req pb.ActionCancelQueryRequest //nolint:staticcheck // deprecated in the protocol, still sent by older drivers
		if err := unpack(body, &req); err != nil {
			return nil, err
		}
		var info flight.FlightInfo
		if err := proto.Unmarshal(req.GetInfo(), &info); err != nil {
			return nil, badBody(err)
		}
		res, err := s.cancelInfo(ctx, &info)
		if err != nil {
			return nil, err
		}
		return anypb.New(&pb.ActionCancelQueryResult{Result: pb.ActionCancelQueryResult_CancelResult(res.GetStatus())}) //nolint:staticcheck // see above
	}},
	flight.RenewFlightEndpointActionType: {"Extends the life of an endpoint's ticket.", func(s *Server, ctx context.Context, body []byte, _ func(metadata.MD) error) (proto.Message, error) {
		var req flight.RenewFlightEndpointRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			return nil, badBody(err)
		}
		return s.renew(ctx, req.GetEndpoint())
	}},
	flight.SetSessionOptionsActionType: {"Sets session options: catalog, schema, dialect, time_zone.", func(s *Server, ctx context.Context, body []byte, setHeader func(metadata.MD) error) (proto.Message, error) {
		var req flight.SetSessionOptionsRequest
		if err := proto.Unmarshal(body, &req); err != nil {
			return nil, badBody(err)
		}
		return s.setSessionOptions(ctx, &req, setHeader)
	}},
	flight.GetSessionOptionsActionType: {"Gets the session's options.", func(s *Server, ctx context.Context, _ []byte, _ func(metadata.MD) error) (proto.Message, error) {
		return s.getSessionOptions(ctx), nil
	}},
	flight.CloseSessionActionType: {"Ends the session.", func(s *Server, ctx context.Context, _ []byte, _ func(metadata.MD) error) (proto.Message, error) {
		return s.closeSession(ctx), nil
	}},
}

var refusedActions = map[string]bool{
	flightsql.BeginTransactionActionType: true, flightsql.EndTransactionActionType: true,
	flightsql.BeginSavepointActionType: true, flightsql.EndSavepointActionType: true,
}

func unpack(body []byte, req proto.Message) error {
	var any anypb.Any
	if err := proto.Unmarshal(body, &any); err != nil {
		return badBody(err)
	}
	if err := any.UnmarshalTo(req); err != nil {
		return badBody(err)
	}
	return nil
}

func badBody(err error) error {
	return fault.New(fault.Invalid, "the action's body cannot be read: %v", err)
}

// DoAction runs an action and sends its one result.
func (s *Server) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	act, ok := actions[a.GetType()]
	switch {
	case refusedActions[a.GetType()]:
		return fault.New(fault.Unsupported, "action %s is not served: Skua is a read-only service without transactions", a.GetType())
	case a.GetType() == flightsql.CreatePreparedSubstraitPlanActionType:
		return fault.New(fault.Unsupported, "Substrait plans are not served; send SQL")
	case !ok:
		return fault.New(fault.Unsupported, "action %q is not known", a.GetType())
	}
	msg, err := act.run(s, stream.Context(), a.GetBody(), stream.SetHeader)
	if err != nil {
		return err
	}
	if msg == nil {
		return stream.Send(&flight.Result{})
	}
	body, err := proto.Marshal(msg)
	if err != nil {
		return err
	}
	return stream.Send(&flight.Result{Body: body})
}

// ListActions lists what DoAction runs.
func (s *Server) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	for name, a := range actions {
		if err := stream.Send(&flight.ActionType{Type: name, Description: a.description}); err != nil {
			return err
		}
	}
	return nil
}
