package server

import (
	"github.com/apache/arrow-go/v18/arrow/flight"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/skua-db/skua/fault"
)

// checkedStream looks at the headers of Arrow messages before arrow-go does: that makes slices of the lengths that a header
// claims, and a few bytes that claim four thousand million fields would end the process.
type checkedStream struct{ flight.DataStreamReader }

// Recv implements flight.DataStreamReader.
func (c checkedStream) Recv() (*flight.FlightData, error) {
	d, err := c.DataStreamReader.Recv()
	if err == nil && len(d.GetDataHeader()) > 0 {
		err = checkHeader(d.GetDataHeader())
	}
	return d, err
}

// Positions of fields in the tables of Arrow's Message.fbs and Schema.fbs, as offsets into a vtable.
const (
	messageHeaderType, messageHeader, messageMetadata = 6, 8, 12
	schemaFields, schemaMetadata                      = 6, 8
	fieldTypeKind, fieldType                          = 8, 10
	fieldChildren, fieldMetadata                      = 14, 16
	unionTypeIDs                                      = 6
	batchNodes, batchBuffers, batchVariadic           = 6, 8, 12
	dictionaryBatch                                   = 6

	headerSchema, headerDictionary, headerBatch = 1, 2, 3
	typeUnion                                   = 14
)

// maxBoundFields bounds the fields of a schema at all levels: tables may share their children, so that few bytes can
// describe ever so many.
const (
	maxBoundFields = 20_000
	maxFieldDepth  = 32
)

// checkHeader proves that every vector of a message lies within it.
func checkHeader(b []byte) error {
	return guardBytes(func() error {
		h := &headerCheck{bytes: b}
		m := flatbuffers.Table{Bytes: b, Pos: flatbuffers.GetUOffsetT(b)}
		h.vector(m, messageMetadata, 4)
		var t flatbuffers.Table
		o := flatbuffers.UOffsetT(m.Offset(messageHeader))
		if o == 0 {
			return fault.New(fault.Invalid, "the parameters are damaged: a message has no header")
		}
		m.Union(&t, o)
		switch m.GetByteSlot(messageHeaderType, 0) {
		case headerSchema:
			h.vector(t, schemaMetadata, 4)
			h.fields(t, schemaFields, 0)
		case headerDictionary:
			if o := flatbuffers.UOffsetT(t.Offset(dictionaryBatch)); o != 0 {
				h.batch(flatbuffers.Table{Bytes: b, Pos: t.Indirect(o + t.Pos)})
			}
		case headerBatch:
			h.batch(t)
		}
		if h.bad {
			return fault.New(fault.Invalid, "the parameters are damaged: a message claims more than it holds")
		}
		return nil
	})
}

type headerCheck struct {
	bytes []byte
	seen  int
	bad   bool
}

// vector checks a vector of elements of size bytes; 0 when there is none.
func (h *headerCheck) vector(t flatbuffers.Table, slot flatbuffers.VOffsetT, size int) (start flatbuffers.UOffsetT, n int) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return 0, 0
	}
	start, n = t.Vector(o), t.VectorLen(o)
	if n < 0 || int(start) > len(h.bytes) || n > (len(h.bytes)-int(start))/size {
		h.bad = true
		return 0, 0
	}
	return start, n
}

func (h *headerCheck) fields(t flatbuffers.Table, slot flatbuffers.VOffsetT, depth int) {
	start, n := h.vector(t, slot, 4)
	if h.seen += n; h.seen > maxBoundFields || depth > maxFieldDepth {
		h.bad = true
	}
	for i := 0; i < n && !h.bad; i++ {
		f := flatbuffers.Table{Bytes: h.bytes, Pos: t.Indirect(start + flatbuffers.UOffsetT(i)*4)}
		h.vector(f, fieldMetadata, 4)
		if o := flatbuffers.UOffsetT(f.Offset(fieldType)); o != 0 && f.GetByteSlot(fieldTypeKind, 0) == typeUnion {
			var u flatbuffers.Table
			f.Union(&u, o)
			h.vector(u, unionTypeIDs, 4)
		}
		h.fields(f, fieldChildren, depth+1)
	}
}

func (h *headerCheck) batch(t flatbuffers.Table) {
	h.vector(t, batchNodes, 16)
	_, buffers := h.vector(t, batchBuffers, 16)
	start, n := h.vector(t, batchVariadic, 8)
	for i := range n {
		if c := t.GetInt64(start + flatbuffers.UOffsetT(i)*8); c < 0 || c > int64(buffers) {
			h.bad = true
		}
	}
}
