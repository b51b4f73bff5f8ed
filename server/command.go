package server

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
)

// command is one thing a client can ask rows of. Each family has a file.
type command interface {
	// schema is the schema of the rows, the same to the bit in GetSchema, GetFlightInfo and DoGet.
	schema(ctx context.Context) (*arrow.Schema, error)
	// ticket is what DoGet takes to give the rows.
	ticket(ctx context.Context) ([]byte, error)
	// rows sends the rows.
	rows(ctx context.Context, out *rowWriter) error
}

// parse finds the command in the bytes of a descriptor or a ticket: a Flight SQL message, a sealed statement, or bare SQL
// text, which plain Flight clients send.
func (s *Server) parse(ctx context.Context, raw []byte) (command, error) {
	var any anypb.Any
	if err := proto.Unmarshal(raw, &any); err != nil || any.TypeUrl == "" {
		return s.parseBare(ctx, raw)
	}
	msg, err := any.UnmarshalNew()
	if err != nil {
		return nil, fault.New(fault.Unsupported, "command %s is not known", any.TypeUrl)
	}
	switch m := msg.(type) {
	case *pb.CommandStatementQuery:
		return s.newStatement(ctx, m.GetQuery(), m.GetTransactionId())
	case *pb.TicketStatementQuery:
		return s.parseBare(ctx, m.GetStatementHandle())
	case *pb.CommandPreparedStatementQuery:
		return s.sealedStatement(ctx, m.GetPreparedStatementHandle())
	case *pb.CommandGetCatalogs:
		return &catalogsCommand{s, raw}, nil
	case *pb.CommandGetDbSchemas:
		return &schemasCommand{s, m, raw}, nil
	case *pb.CommandGetTables:
		return &tablesCommand{s, m, raw}, nil
	case *pb.CommandGetTableTypes:
		return tableTypesCommand{raw}, nil
	case *pb.CommandGetSqlInfo:
		return &sqlInfoCommand{s.sqlInfo, m.GetInfo(), raw}, nil
	case *pb.CommandGetXdbcTypeInfo:
		return &xdbcTypesCommand{m, raw}, nil
	case *pb.CommandGetPrimaryKeys, *pb.CommandGetExportedKeys, *pb.CommandGetImportedKeys, *pb.CommandGetCrossReference:
		return &keysCommand{m, raw}, nil
	case *pb.CommandStatementSubstraitPlan:
		return nil, fault.New(fault.Unsupported, "Substrait plans are not served; send SQL")
	case *pb.CommandStatementUpdate, *pb.CommandPreparedStatementUpdate, *pb.CommandStatementIngest:
		return nil, errReadOnly()
	}
	return nil, fault.New(fault.Unsupported, "command %s is not served", any.TypeUrl)
}

func (s *Server) parseBare(ctx context.Context, raw []byte) (command, error) {
	if seal.Sealed(raw) {
		return s.sealedStatement(ctx, raw)
	}
	return s.selfMade(ctx, raw)
}

// GetFlightInfo plans a command; it reads no data.
func (s *Server) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	c, err := s.parseDescriptor(ctx, d)
	if err != nil {
		return nil, err
	}
	schema, err := c.schema(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.asExpected(ctx, schema); err != nil {
		return nil, err
	}
	ticket, err := c.ticket(ctx)
	if err != nil {
		return nil, err
	}
	return s.infoOf(d, c, schema, ticket), nil
}

func (s *Server) infoOf(d *flight.FlightDescriptor, c command, schema *arrow.Schema, ticket []byte) *flight.FlightInfo {
	end := &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}}
	if st, ok := c.(*statement); ok {
		end.ExpirationTime = timestamppb.New(time.Unix(st.h.Expiry, 0))
	}
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, memory.Arrow(s.opt.Pool)),
		FlightDescriptor: d,
		Endpoint:         []*flight.FlightEndpoint{end},
		TotalRecords:     -1,
		TotalBytes:       -1,
	}
}

func (s *Server) parseDescriptor(ctx context.Context, d *flight.FlightDescriptor) (command, error) {
	if d.GetType() == flight.DescriptorPATH {
		return nil, fault.New(fault.Unsupported, "descriptors with a path are not served; send a command or SQL text")
	}
	return s.parse(ctx, d.GetCmd())
}

// GetSchema gives the schema that the command's rows will have.
func (s *Server) GetSchema(ctx context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	c, err := s.parseDescriptor(ctx, d)
	if err != nil {
		return nil, err
	}
	schema, err := c.schema(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.asExpected(ctx, schema); err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(schema, memory.Arrow(s.opt.Pool))}, nil
}

// PollFlightInfo answers at once with a finished plan, since planning is synchronous and the rows are made as they are fetched. A
// descriptor that holds a statement's ticket asks how far its stream is.
func (s *Server) PollFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.PollInfo, error) {
	if d.GetType() != flight.DescriptorPATH {
		c, err := s.parse(ctx, d.GetCmd())
		if err != nil {
			return nil, err
		}
		if st, ok := c.(*statement); ok && len(st.h.Pins) > 0 {
			schema, err := st.schema(ctx)
			if err != nil {
				return nil, err
			}
			poll := &flight.PollInfo{Info: s.infoOf(d, c, schema, d.GetCmd()), Progress: proto.Float64(1)}
			if part, runs := s.running.progress(st.h.ID); runs {
				poll.FlightDescriptor, poll.Progress = d, &part
			}
			return poll, nil
		}
	}
	info, err := s.GetFlightInfo(ctx, d)
	if err != nil {
		return nil, err
	}
	return &flight.PollInfo{Info: info, Progress: proto.Float64(1)}, nil
}

// DoGet streams the rows of a ticket.
func (s *Server) DoGet(t *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	ctx := stream.Context()
	c, err := s.parse(ctx, t.GetTicket())
	if err != nil {
		return err
	}
	schema, err := c.schema(ctx)
	if err != nil {
		return err
	}
	if err := s.asExpected(ctx, schema); err != nil {
		return err
	}
	m := &measure{begun: time.Now(), sent: &sent{FlightService_DoGetServer: stream}}
	out := newRowWriter(m, schema)
	if err = c.rows(ctx, out); err == nil {
		err = out.close()
	}
	s.account(ctx, c, m, err)
	return err
}

// nameOf names a command for logs.
func nameOf(c command) string { return fmt.Sprintf("%T", c) }

// ListFlights has nothing to list: results exist only as answers to commands.
func (s *Server) ListFlights(*flight.Criteria, flight.FlightService_ListFlightsServer) error {
	return nil
}

// DoExchange is not part of Flight SQL.
func (s *Server) DoExchange(flight.FlightService_DoExchangeServer) error {
	return fault.New(fault.Unsupported, "DoExchange is not served")
}
