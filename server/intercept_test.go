package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
)

// TestSteps passes calls that end in every way through the interceptors and looks at what the client and the log are told.
func TestSteps(t *testing.T) {
	var names []string
	for _, s := range steps() {
		names = append(names, s.name)
	}
	require.Equal(t, []string{"number", "tell", "log", "authenticate"}, names, "the order of the layers")

	core, logs := observer.New(zapcore.DebugLevel)
	auditCore, audits := observer.New(zapcore.InfoLevel)
	a, err := NewAuthenticator(AuthOptions{Tokens: map[string]string{"a token that is long enough": "etl"}})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	sealer, err := seal.Random()
	require.NoError(t, err)
	s, err := New(Options{Auth: a, Sealer: sealer, Pool: memory.NewPool("process", 256<<20), Log: zap.New(core), Audit: zap.New(auditCore)})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	const doGet, check = "/arrow.flight.protocol.FlightService/DoGet", "/grpc.health.v1.Health/Check"
	for _, c := range []struct {
		name, method, authorization string
		handler                     func(context.Context) error
		code                        codes.Code
		text                        string // begins what the client is told
		line                        string // the last line of the log
		reached, audited            bool
	}{
		{"all is well", doGet, "Bearer a token that is long enough", func(ctx context.Context) error {
			require.Equal(t, "etl", callerOf(ctx).principal)
			require.Len(t, callID(ctx), 8)
			return nil
		}, codes.OK, "", "call", true, false},
		{"nobody known", doGet, "", nil, codes.Unauthenticated, "UNAUTHENTICATED: this server needs", "call failed", false, true},
		{"a wrong token", doGet, "Bearer x", nil, codes.Unauthenticated, "UNAUTHENTICATED: bearer token is not known", "call failed", false, true},
		{"another scheme", doGet, "Digest x", nil, codes.Unauthenticated, "UNAUTHENTICATED: authorization scheme", "call failed", false, true},
		{"a probe needs no credentials", check, "", func(ctx context.Context) error {
			require.Empty(t, callerOf(ctx).principal)
			return nil
		}, codes.OK, "", "call", true, false},
		{"a fault", doGet, "Bearer a token that is long enough", func(context.Context) error { return fault.New(fault.NotFound, "table x") },
			codes.NotFound, "NOT_FOUND: table x (call ", "call failed", true, false},
		{"an error of ours", doGet, "Bearer a token that is long enough", func(context.Context) error { return errors.New("secret") },
			codes.Internal, "INTERNAL: internal error; the server's log has the details (call ", "internal error", true, false},
		{"a panic", doGet, "Bearer a token that is long enough", func(context.Context) error { panic("secret") },
			codes.Internal, "INTERNAL: internal error; the server's log has the details (call ", "internal error", true, false},
		{"a panic of a probe", check, "", func(context.Context) error { panic("secret") },
			codes.Internal, "INTERNAL: internal error; the server's log has the details (call ", "internal error", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			logs.TakeAll()
			audits.TakeAll()
			ctx := t.Context()
			if c.authorization != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", c.authorization))
			}
			reached := false
			err := s.pass(ctx, &call{c.method, func(metadata.MD) error { return nil }}, func(ctx context.Context) error {
				reached = true
				return c.handler(ctx)
			})
			require.Equal(t, c.reached, reached)
			require.Equal(t, c.code, status.Code(err))
			require.True(t, strings.HasPrefix(status.Convert(err).Message(), c.text), "%v", err)
			require.NotContains(t, status.Convert(err).Message(), "secret")
			all := logs.TakeAll()
			require.NotEmpty(t, all)
			last := all[len(all)-1]
			require.Equal(t, c.line, last.Message)
			id, _ := last.ContextMap()["call"].(string)
			require.Len(t, id, 8, "every line carries the call's id")
			if err != nil {
				require.Contains(t, err.Error(), "(call "+id+")", "and so does every error")
			}
			require.Equal(t, c.audited, audits.Len() > 0)
		})
	}
}

// TestEveryKindHasItsCode is the whole table from kinds of error to codes.
func TestEveryKindHasItsCode(t *testing.T) {
	s, ctx := bare(t)
	want := map[fault.Kind]codes.Code{
		fault.Internal: codes.Internal, fault.NotFound: codes.NotFound, fault.Invalid: codes.InvalidArgument, fault.Unauthenticated: codes.Unauthenticated,
		fault.Denied: codes.PermissionDenied, fault.Unsupported: codes.Unimplemented, fault.Corrupt: codes.DataLoss, fault.Exhausted: codes.ResourceExhausted,
		fault.Expired: codes.InvalidArgument, fault.Unavailable: codes.Unavailable, fault.Canceled: codes.Canceled, fault.Timeout: codes.DeadlineExceeded,
	}
	require.Len(t, want, len(fault.Kinds()))
	for _, k := range fault.Kinds() {
		for _, err := range []error{fault.New(k, "what"), fault.Wrap(fault.Corrupt, fault.New(k, "what"), "table t"), errors.Join(errors.New("a"), fault.New(k, "what"))} {
			got := s.toStatus(ctx, err)
			require.Equal(t, want[k], status.Code(got), "%v", err)
			if k != fault.Internal {
				require.Contains(t, got.Error(), "what")
			}
		}
	}
	long := s.toStatus(context.WithValue(ctx, callIDKey{}, "k3f9x2ab"), fault.New(fault.Invalid, "%s", strings.Repeat("ü", 5000)+"\xff"))
	require.LessOrEqual(t, len(status.Convert(long).Message()), maxMessageBytes)
	require.True(t, strings.HasSuffix(status.Convert(long).Message(), "... (call k3f9x2ab)"))
}
