package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// maxBoundBytes bounds the parameters that a handle carries.
const maxBoundBytes = 8 << 20

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

// bind reads the rows of parameters that a client uploads and gives a handle that holds them. Each handle stands by
// itself: JDBC goes on binding the first one, ADBC the newest.
func (s *Server) bind(ctx context.Context, blob []byte, stream flight.DataStreamReader) ([]byte, error) {
	st, err := s.sealedStatement(ctx, blob)
	if err != nil {
		return nil, err
	}
	r, err := flight.NewRecordReader(stream, ipc.WithAllocator(memory.Arrow(s.opt.Pool)))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the parameters cannot be read: %v", err)
	}
	defer r.Release()
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(r.Schema()))
	for r.Next() {
		if err := w.Write(r.RecordBatch()); err != nil {
			return nil, fault.New(fault.Invalid, "the parameters cannot be kept: %v", err)
		}
		if buf.Len() > maxBoundBytes {
			return nil, fault.New(fault.Exhausted, "the bound parameters are larger than %d bytes; bind fewer rows at once", maxBoundBytes)
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "the parameters cannot be read: %v", err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	st.h.Params = buf.Bytes()
	if err := st.plan(ctx); err != nil {
		return nil, err
	}
	if _, err := st.boundRows(); err != nil { // a wrong parameter is told here, before anything runs
		return nil, err
	}
	if len(st.h.Params) <= maxRememberedBytes {
		s.bound.Add(st.boundKey(), st.h.Params)
	} else {
		s.bound.Remove(st.boundKey())
	}
	return s.sealHandle(st.h)
}

// maxRememberedBytes bounds what is remembered of one handle's parameters.
const maxRememberedBytes = 64 << 10

func (st *statement) boundKey() string { return st.h.Principal + "\x00" + st.h.ID }

// lastBound gives the parameters that were last bound to a handle which carries none itself: drivers before 18 ignore the
// handle that a bind returns and execute the first one. It is the one thing that only the server that took the bind knows.
func (st *statement) lastBound() {
	if len(st.h.Params) == 0 && st.blob != nil && len(st.prepared.Params) > 0 {
		st.h.Params, _ = st.s.bound.Get(st.boundKey())
	}
}

// boundRows gives the rows of parameters to run with: one empty row for a statement without parameters.
func (st *statement) boundRows() ([][]vector.Value, error) {
	want := st.prepared.Params
	st.lastBound()
	if len(st.h.Params) == 0 {
		if len(want) > 0 {
			return nil, fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "the statement has %d parameters and none are bound", len(want))
		}
		return [][]vector.Value{nil}, nil
	}
	r, err := ipc.NewReader(bytes.NewReader(st.h.Params))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the bound parameters cannot be read: %v", err)
	}
	defer r.Release()
	if n := r.Schema().NumFields(); n != len(want) {
		return nil, fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "the statement has %d parameters, but %d are bound", len(want), n)
	}
	var rows [][]vector.Value
	for r.Next() {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			row := make([]vector.Value, len(want))
			for j := range row {
				if row[j], err = coerceParameter(rec.Column(j), i, want[j]); err != nil {
					return nil, fault.Wrap(fault.Invalid, err, "parameter %d", j+1)
				}
			}
			rows = append(rows, row)
		}
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "the bound parameters cannot be read: %v", err)
	}
	if len(rows) == 0 && len(want) == 0 {
		rows = append(rows, nil)
	}
	return rows, nil
}

// coerceParameter casts what the client sent (its own types: int64 and string, mostly) to what the statement needs.
func coerceParameter(a arrow.Array, i int, want vector.Type) (vector.Value, error) {
	have, ok := vector.FromArrow(a.DataType())
	if !ok {
		return nil, fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "a value of Arrow type %s cannot be bound", a.DataType())
	}
	v := vector.ArrowValue(a, i)
	if v == nil || have.Equal(want) || want.Kind == vector.Null {
		return v, nil
	}
	e, err := expr.NewCast(&expr.Literal{Value: v, Typ: have}, want, false)
	if err != nil {
		return nil, err
	}
	return expr.EvalConst(e, &expr.Context{})
}
