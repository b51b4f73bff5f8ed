package server

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// prepare plans a statement for its schemas. The handle holds the text, so nothing is kept here.
func (s *Server) prepare(ctx context.Context, req *pb.ActionCreatePreparedStatementRequest) (proto.Message, error) {
	st, err := s.newStatement(ctx, req.GetQuery(), req.GetTransactionId())
	if err != nil {
		return nil, err
	}
	schema, err := st.schema(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.asExpected(ctx, schema); err != nil {
		return nil, err
	}
	blob, err := s.sealHandle(st.h)
	if err != nil {
		return nil, err
	}
	alloc := memory.Arrow(s.opt.Pool)
	update := false
	return anypb.New(&pb.ActionCreatePreparedStatementResult{
		PreparedStatementHandle: blob,
		DatasetSchema:           flight.SerializeSchema(schema, alloc),
		ParameterSchema:         flight.SerializeSchema(st.parameterSchema(), alloc),
		IsUpdate:                &update,
	})
}

// parameterSchema names the parameters by position and gives each a type that JDBC can bind: timestamps and times in
// milliseconds, since its converter writes raw milliseconds whatever the unit says.
func (st *statement) parameterSchema() *arrow.Schema {
	fields := make([]arrow.Field, len(st.prepared.Params))
	for i, t := range st.prepared.Params {
		name := fmt.Sprint("parameter_", i+1)
		if i < len(st.prepared.ParamNames) && st.prepared.ParamNames[i] != "" {
			name = st.prepared.ParamNames[i]
		}
		var dt arrow.DataType
		switch t.Kind {
		case vector.Null, vector.Variant, vector.JSON, vector.UUID:
			dt = arrow.BinaryTypes.String
		case vector.Timestamp:
			dt = &arrow.TimestampType{Unit: arrow.Millisecond}
		case vector.TimestampTZ:
			dt = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}
		case vector.Time:
			dt = arrow.FixedWidthTypes.Time32ms
		default:
			dt = vector.ArrowType(t)
		}
		fields[i] = arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}
