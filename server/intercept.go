package server

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/skua-db/skua/fault"
)

// call is one call of a client, of either kind.
type call struct {
	method    string // the whole, as in /arrow.flight.protocol.FlightService/DoGet
	setHeader func(metadata.MD) error
}

// name is the method without its service.
func (c *call) name() string { return c.method[strings.LastIndexByte(c.method, '/')+1:] }

// open tells whether anybody may make the call: probes of a balancer have no credentials.
func (c *call) open() bool { return strings.HasPrefix(c.method, "/grpc.health.v1.Health/") }

// step is a layer that every call passes; next is the rest of the way.
type step struct {
	name string
	do   func(s *Server, ctx context.Context, c *call, next func(context.Context) error) error
}

// steps are the layers in the order in which a call passes them, and all there are. Limits follow where a statement begins (see gate):
// only there it is known what it costs.
func steps() []step {
	return []step{
		{"number", (*Server).number},             // an id, which errors and log lines carry
		{"tell", (*Server).tell},                 // whatever goes wrong further in, panics too, becomes a status
		{"log", (*Server).log},                   // how long it took, how it ended
		{"authenticate", (*Server).authenticate}, // who it is, and in which session
	}
}

// pass runs f behind all steps.
func (s *Server) pass(ctx context.Context, c *call, f func(context.Context) error) error {
	for all, i := s.steps, len(s.steps)-1; i >= 0; i-- {
		next, do := f, all[i].do
		f = func(ctx context.Context) error { return do(s, ctx, c, next) }
	}
	return f(ctx)
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	c := &call{info.FullMethod, func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }}
	err = s.pass(ctx, c, func(ctx context.Context) error {
		var err error
		resp, err = handler(ctx, req)
		return err
	})
	return resp, err
}

func (s *Server) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return s.pass(stream.Context(), &call{info.FullMethod, stream.SetHeader}, func(ctx context.Context) error {
		return handler(srv, &identified{stream, ctx})
	})
}

// identified is a stream whose context knows who calls.
type identified struct {
	grpc.ServerStream
	ctx context.Context
}

func (i *identified) Context() context.Context { return i.ctx }

func (s *Server) number(ctx context.Context, _ *call, next func(context.Context) error) error {
	return next(context.WithValue(ctx, callIDKey{}, newCallID()))
}

func (s *Server) tell(ctx context.Context, _ *call, next func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil { // the fault is ours, the client learns an id, the server lives on
			s.logFor(ctx).Error("panic", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = s.toStatus(ctx, fault.New(fault.Internal, "panic: %v", p))
		}
	}()
	return s.toStatus(ctx, next(ctx))
}

func (s *Server) log(ctx context.Context, c *call, next func(context.Context) error) error {
	start := time.Now()
	err := next(ctx)
	if err == nil && !s.opt.Log.Core().Enabled(zap.DebugLevel) {
		return nil
	}
	fields := []zap.Field{zap.String("method", c.name()), zap.Duration("took", time.Since(start)), zap.String("code", codeName(err))}
	if p, ok := peer.FromContext(ctx); ok {
		fields = append(fields, zap.String("peer", p.Addr.String()))
	}
	if err != nil {
		s.logFor(ctx).Info("call failed", append(fields, zap.Error(err))...)
		return err
	}
	s.logFor(ctx).Debug("call", fields...)
	return nil
}

func (s *Server) authenticate(ctx context.Context, c *call, next func(context.Context) error) error {
	if c.open() {
		return next(ctx)
	}
	known, err := s.identify(ctx, c.method, c.setHeader)
	if err != nil {
		s.auditLogin(ctx, err)
		return err
	}
	return next(known)
}

type callerKey struct{}

// caller is who makes a call, and in which session.
type caller struct {
	principal string
	session   *session
}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}
