package server

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"strings"
	"unicode/utf8"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/fault"
)

// maxMessageBytes bounds an error's text: gRPC clients in C++ drop header lists of more than about 8 KiB, and
// the text travels percent-encoded, up to three bytes for one.
const maxMessageBytes = 1000

type callIDKey struct{}

// newCallID makes the short id of a call: 40 random bits, enough to find its lines in a log.
func newCallID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// callID is the id of the call that ctx belongs to; "" outside of one.
func callID(ctx context.Context) string {
	id, _ := ctx.Value(callIDKey{}).(string)
	return id
}

// logFor is the log for lines about the call of ctx.
func (s *Server) logFor(ctx context.Context) *zap.Logger {
	if id := callID(ctx); id != "" {
		return s.opt.Log.With(zap.String("call", id))
	}
	return s.opt.Log
}

// toStatus turns any error into the gRPC status that a client sees, which ends with the call's id. It is the only place that does.
func (s *Server) toStatus(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	code, text := fault.KindOf(err).Code(), err.Error()
	var f *fault.Error
	if !errors.As(err, &f) {
		st, ok := status.FromError(err)
		switch kind := fault.KindOf(err); {
		case ok && st.Code() != codes.Unknown:
			code, text = st.Code(), st.Message()
		case kind == fault.Canceled:
			text = "CANCELED: the statement was cancelled"
		case kind == fault.Timeout:
			text = "EXCEEDED_TIME_LIMIT: the statement ran past its time limit"
		}
	}
	id := callID(ctx)
	if code == codes.Internal {
		if id == "" {
			id = newCallID()
		}
		s.opt.Log.Error("internal error", zap.String("call", id), zap.Error(err))
		text = "INTERNAL: internal error; the server's log has the details"
	}
	tail := ""
	if id != "" {
		tail = " (call " + id + ")"
	}
	return status.Error(code, clip(strings.ToValidUTF8(text, "?"), maxMessageBytes-len(tail))+tail)
}

// clip shortens text to at most max bytes at a character boundary.
func clip(text string, max int) string {
	if len(text) <= max {
		return text
	}
	const tail = "..."
	cut := max - len(tail)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + tail
}

// codeName names the gRPC code that err is told with, for logs.
func codeName(err error) string {
	if err == nil {
		return codes.OK.String()
	}
	if kind := fault.KindOf(err); kind != fault.Internal {
		return kind.Code().String()
	}
	if st, ok := status.FromError(err); ok && st.Code() != codes.Unknown {
		return st.Code().String()
	}
	return codes.Internal.String()
}
