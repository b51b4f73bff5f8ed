package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/flight"
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/skua-db/skua/fault"
)

// selfMade is a statement that a client put into a ticket itself, so that one call answers it: SQL, or SQL, a zero byte and an Arrow
// IPC stream of parameters, a row for each run. No sealed handle is valid UTF-8 up to its first zero byte and meant by it: seals
// are looked at first.
func (s *Server) selfMade(ctx context.Context, raw []byte) (command, error) {
	text, params, bound := bytes.Cut(raw, []byte{0})
	if len(text) == 0 || !utf8.Valid(text) {
		return nil, fault.New(fault.Invalid, "the command is neither a Flight SQL message nor SQL text")
	}
	st, err := s.newStatement(ctx, string(text), nil)
	if err != nil || !bound {
		return st, err
	}
	if len(params) > maxBoundBytes {
		return nil, fault.New(fault.Exhausted, "the bound parameters are larger than %d bytes; bind fewer rows at once", maxBoundBytes)
	}
	st.h.Params, err = readParameters(&ipcStream{left: params}, s.opt.Pool)
	return st, err
}

// ipcStream hands the messages of an Arrow IPC stream (Arrow columnar format, encapsulated messages) to the reader of uploads,
// which proves them before it decodes them.
type ipcStream struct{ left []byte }

// messageBodyLength is the position of bodyLength in the tables of Arrow's Message.fbs.
const messageBodyLength = 10

// Recv implements flight.DataStreamReader.
func (i *ipcStream) Recv() (*flight.FlightData, error) {
	const continuation, word = 0xFFFFFFFF, 4
	damaged := fault.New(fault.Invalid, "the parameters behind the statement are no Arrow IPC stream")
	if len(i.left) == 0 {
		return nil, io.EOF
	}
	if len(i.left) < 2*word || binary.LittleEndian.Uint32(i.left) != continuation {
		return nil, damaged
	}
	n := int64(binary.LittleEndian.Uint32(i.left[word:]))
	if n == 0 { // the end of the stream
		i.left = nil
		return nil, io.EOF
	}
	rest := i.left[2*word:]
	if n > int64(len(rest)) {
		return nil, damaged
	}
	d := &flight.FlightData{DataHeader: rest[:n]}
	rest = rest[n:]
	body := int64(0)
	if err := checkHeader(d.DataHeader); err != nil {
		return nil, err
	}
	if err := guardBytes(func() error {
		m := flatbuffers.Table{Bytes: d.DataHeader, Pos: flatbuffers.GetUOffsetT(d.DataHeader)}
		body = m.GetInt64Slot(messageBodyLength, 0)
		return nil
	}); err != nil {
		return nil, err
	}
	if body < 0 || body > int64(len(rest)) {
		return nil, damaged
	}
	d.DataBody, i.left = rest[:body], rest[body:]
	return d, nil
}
