package server

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

const (
	// maxBoundBytes bounds the parameters that a handle carries.
	maxBoundBytes = 8 << 20
	// maxBoundRows bounds rows, and elements of a nested value: a column of nulls has a length but no bytes.
	maxBoundRows = 1 << 20
)

// bind reads the rows of parameters that a client uploads and gives a handle that holds them. Each handle stands by
// itself: JDBC goes on binding the first one, ADBC the newest.
func (s *Server) bind(ctx context.Context, blob []byte, stream flight.DataStreamReader) ([]byte, error) {
	st, err := s.sealedStatement(ctx, blob)
	if err != nil {
		return nil, err
	}
	if st.h.Params, err = readParameters(stream, s.opt.Pool); err != nil {
		return nil, err
	}
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
	var rows [][]vector.Value
	err := guardBytes(func() (err error) {
		rows, err = decodeParameters(st.h.Params, want)
		return err
	})
	if len(rows) == 0 && len(want) == 0 {
		rows = append(rows, nil)
	}
	return rows, err
}

// boundTypes gives the types of the parameters as the client sent them: the statement takes them where nothing in its text
// says what a parameter is, as in SELECT ?. A struct says nothing: no statement wants one, and the fault of binding it names
// the parameter.
func (st *statement) boundTypes() []vector.Type {
	if len(st.h.Params) == 0 {
		return nil
	}
	var types []vector.Type
	_ = guardBytes(func() error { // what cannot be read is told by boundRows
		r, err := ipc.NewReader(bytes.NewReader(st.h.Params))
		if err != nil {
			return err
		}
		defer r.Release()
		for _, f := range r.Schema().Fields() {
			t, ok := vector.FromArrow(f.Type)
			if !ok || t.Kind == vector.Row {
				t = vector.Of(vector.Null)
			}
			types = append(types, t)
		}
		return nil
	})
	return types
}

func decodeParameters(stream []byte, want []vector.Type) ([][]vector.Value, error) {
	r, err := ipc.NewReader(bytes.NewReader(stream))
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

// readParameters reads a stream of record batches and gives it back as bytes, checked: what it holds can be decoded without
// a look at what it claims.
func readParameters(stream flight.DataStreamReader, pool *memory.Pool) ([]byte, error) {
	alloc := &cappedAllocator{pool: pool, left: 2 * maxBoundBytes}
	defer alloc.close()
	var buf bytes.Buffer
	err := guardBytes(func() error {
		r, err := flight.NewRecordReader(checkedStream{stream}, ipc.WithAllocator(alloc))
		if err != nil {
			return unreadable(err)
		}
		defer r.Release()
		w := ipc.NewWriter(&buf, ipc.WithSchema(r.Schema()))
		rows := int64(0)
		for r.Next() {
			rec := r.RecordBatch()
			if rows += rec.NumRows(); rows > maxBoundRows {
				return fault.New(fault.Exhausted, "more than %d rows of parameters are bound; bind fewer at once", maxBoundRows)
			}
			for i, c := range rec.Columns() {
				if err := checkBound(c); err != nil {
					return fault.Wrap(fault.Invalid, err, "parameter %d", i+1)
				}
			}
			if err := w.Write(rec); err != nil {
				return fault.New(fault.Invalid, "the parameters cannot be kept: %v", err)
			}
			if buf.Len() > maxBoundBytes {
				return fault.New(fault.Exhausted, "the bound parameters are larger than %d bytes; bind fewer rows at once", maxBoundBytes)
			}
		}
		if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
			return unreadable(err)
		}
		return w.Close()
	})
	if alloc.refused != nil {
		err = alloc.refused
	}
	return buf.Bytes(), err
}

// unreadable says that a client's bytes are no parameters; the end of the call itself keeps its own meaning.
func unreadable(err error) error {
	if fault.KindOf(err) != fault.Internal {
		return err
	}
	if errors.Is(err, io.EOF) {
		return fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "the upload ended before it brought any parameters")
	}
	return fault.New(fault.Invalid, "the parameters cannot be read: %v", err)
}

// guardBytes runs f, which decodes what a client sent: a panic there is the client's fault.
func guardBytes(f func() error) error {
	err := fault.Guard(f)
	if err != nil && fault.KindOf(err) == fault.Internal {
		return fault.New(fault.Invalid, "the parameters are damaged")
	}
	return err
}

// checkBound refuses arrays whose lengths, offsets or indices lie, or whose values are many times larger than their bytes.
func checkBound(a arrow.Array) error {
	if a.Len() > maxBoundRows {
		return fault.New(fault.Exhausted, "a value has more than %d elements", maxBoundRows)
	}
	if v, ok := a.(interface{ ValidateFull() error }); ok {
		if err := v.ValidateFull(); err != nil {
			return fault.New(fault.Invalid, "is damaged: %v", err)
		}
	}
	switch a := a.(type) {
	case *array.ListView, *array.LargeListView, *array.RunEndEncoded, array.Union:
		return fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "a value of Arrow type %s cannot be bound", a.DataType())
	case array.ExtensionArray:
		return checkBound(a.Storage())
	case *array.Dictionary:
		if arrow.IsNested(a.Dictionary().DataType().ID()) {
			return fault.WithID(fault.Invalid, "INVALID_PARAMETER_USAGE", "a dictionary of nested values cannot be bound")
		}
		for i, n := 0, a.Dictionary().Len(); i < a.Len(); i++ {
			if at := a.GetValueIndex(i); a.IsValid(i) && (at < 0 || at >= n) {
				return fault.New(fault.Invalid, "is damaged: index %d of a dictionary of %d values", at, n)
			}
		}
		return checkBound(a.Dictionary())
	case *array.Struct:
		for i := range a.NumField() {
			if err := checkBound(a.Field(i)); err != nil {
				return err
			}
		}
	case array.ListLike:
		return checkBound(a.ListValues())
	}
	return nil
}

// cappedAllocator reserves what it gives in a pool and panics, which the reader of Arrow streams turns into an error, when a
// stream asks for more than its bytes can be worth: compressed buffers say themselves how large they are.
type cappedAllocator struct {
	base       arrowmem.GoAllocator
	pool       *memory.Pool
	left, held int64
	refused    error
}

func (c *cappedAllocator) take(n int64) {
	if n < 0 || n > c.left {
		c.refused = fault.New(fault.Exhausted, "the bound parameters need more than %d bytes once unpacked; bind fewer rows at once", 2*maxBoundBytes)
	} else {
		c.refused = c.pool.Reserve(n)
	}
	if c.refused != nil {
		panic(c.refused)
	}
	c.left -= n
	c.held += n
}

// Allocate implements arrow's Allocator.
func (c *cappedAllocator) Allocate(size int) []byte {
	c.take(int64(size))
	return c.base.Allocate(size)
}

// Reallocate implements arrow's Allocator.
func (c *cappedAllocator) Reallocate(size int, b []byte) []byte {
	c.take(int64(size))
	return c.base.Reallocate(size, b)
}

// Free implements arrow's Allocator. The memory is the garbage collector's; close gives the reservation back.
func (c *cappedAllocator) Free([]byte) {}

func (c *cappedAllocator) close() { c.pool.Release(c.held) }
