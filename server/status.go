package server

import (
	"errors"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/fault"
)

// maxMessageBytes bounds an error's text: gRPC clients in C++ drop header lists of more than about 8 KiB, and
// the text travels percent-encoded, up to three bytes for one.
const maxMessageBytes = 1000

// toStatus turns any error into the gRPC status that a client sees. It is the only place that does.
func (s *Server) toStatus(err error) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		if st, ok := status.FromError(err); ok && st.Code() != codes.Unknown {
			return err
		}
	}
	kind := fault.KindOf(err)
	text := err.Error()
	if f == nil {
		switch kind {
		case fault.Canceled:
			text = "CANCELED: the statement was cancelled"
		case fault.Timeout:
			text = "EXCEEDED_TIME_LIMIT: the statement ran past its time limit"
		}
	}
	if kind == fault.Internal {
		id := uuid.NewString()
		s.opt.Log.Error("internal error", zap.String("error_id", id), zap.Error(err))
		text = "INTERNAL: internal error " + id + "; the server's log has the details"
	}
	return status.Error(kind.Code(), clip(text, maxMessageBytes))
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
