package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/fault"
)

// TestInnerDetailsStayInside: what goes wrong inside is told by an id only, and all else by its kind.
func TestInnerDetailsStayInside(t *testing.T) {
	s, ctx := bare(t)
	ctx = context.WithValue(ctx, callIDKey{}, "k3f9x2ab")
	for _, err := range []error{
		errors.New("open /etc/skua/secret: no"), fault.New(fault.Internal, "secret"), fmt.Errorf("secret: %w", errors.New("x")),
		fault.Guard(func() error { panic("secret") }),
	} {
		got := s.toStatus(ctx, err)
		require.Equal(t, codes.Internal, status.Code(got))
		require.Regexp(t, `^INTERNAL: internal error; the server's log has the details \(call k3f9x2ab\)$`, status.Convert(got).Message())
		require.Equal(t, "Internal", codeName(err))
	}
	for err, code := range map[error]codes.Code{
		fault.New(fault.Exhausted, "x"): codes.ResourceExhausted, context.Canceled: codes.Canceled, context.DeadlineExceeded: codes.DeadlineExceeded,
		status.Error(codes.Aborted, "x"): codes.Aborted,
	} {
		require.Equal(t, code, status.Code(s.toStatus(ctx, err)))
		require.Equal(t, code.String(), codeName(err))
	}
	require.NoError(t, s.toStatus(ctx, nil))
	require.Equal(t, "OK", codeName(nil))
}
