package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc/metadata"

	"github.com/skua-db/skua/fault"
)

// expectedSchemaHeader holds the schema that the caller counts on: an Arrow schema message, as FlightInfo.schema has it, in base64.
const expectedSchemaHeader = "x-skua-expected-schema"

// asExpected refuses a result whose schema is not the one that the caller's header says, before any data is read. Names, types and
// nullability count, in order; metadata does not.
func (s *Server) asExpected(ctx context.Context, have *arrow.Schema) error {
	md, _ := metadata.FromIncomingContext(ctx)
	text := first(md, expectedSchemaHeader)
	if text == "" {
		return nil
	}
	want, err := decodeSchema(text)
	if err != nil {
		return err
	}
	if d := difference(want, have); d != "" {
		return fault.WithID(fault.Invalid, "SCHEMA_MISMATCH", "the result differs from what %s says: %s", expectedSchemaHeader, d)
	}
	return nil
}

func decodeSchema(text string) (*arrow.Schema, error) {
	bad := func(why string) error {
		return fault.New(fault.Invalid, "the header %s is not an Arrow schema in base64: %s", expectedSchemaHeader, why)
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(strings.TrimSpace(text), "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, bad("it is not base64")
	}
	// An encapsulated message: the marker, the length, the header that must be sound before arrow-go sees it.
	const head = 8
	if len(raw) < head || binary.LittleEndian.Uint32(raw) != 0xFFFFFFFF {
		return nil, bad("it does not begin as an IPC message")
	}
	n := int64(binary.LittleEndian.Uint32(raw[4:]))
	if n > int64(len(raw)-head) || n < head {
		return nil, bad("it is cut short")
	}
	if err := checkHeader(raw[head : head+n]); err != nil {
		return nil, bad("it is damaged")
	}
	var schema *arrow.Schema
	err = fault.Guard(func() error {
		r, err := ipc.NewReader(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		defer r.Release()
		schema = r.Schema()
		return nil
	})
	if err != nil || schema == nil {
		return nil, bad("it is damaged")
	}
	return schema, nil
}

// difference says in what have is not want; "" when it is.
func difference(want, have *arrow.Schema) string {
	for i := range max(want.NumFields(), have.NumFields()) {
		switch {
		case i >= have.NumFields():
			return strings.Join([]string{"column", quoted(want.Field(i).Name), "is missing"}, " ")
		case i >= want.NumFields():
			return strings.Join([]string{"column", quoted(have.Field(i).Name), "is not expected"}, " ")
		}
		w, h := want.Field(i), have.Field(i)
		switch {
		case w.Name != h.Name:
			return strings.Join([]string{"column", quoted(h.Name), "stands where", quoted(w.Name), "is expected"}, " ")
		case !arrow.TypeEqual(w.Type, h.Type):
			return strings.Join([]string{"column", quoted(h.Name), "is", clip(h.Type.String(), 200), "and not", clip(w.Type.String(), 200)}, " ")
		case w.Nullable != h.Nullable && h.Nullable:
			return strings.Join([]string{"column", quoted(h.Name), "may be null"}, " ")
		case w.Nullable != h.Nullable:
			return strings.Join([]string{"column", quoted(h.Name), "is never null"}, " ")
		}
	}
	return ""
}

func quoted(name string) string { return `"` + clip(name, 100) + `"` }
