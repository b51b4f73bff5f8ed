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

func (s *Server) recoverUnary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer s.recovered(&err)
	resp, err = next(ctx, req)
	return resp, s.toStatus(err)
}

func (s *Server) recoverStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer s.recovered(&err)
	return s.toStatus(next(srv, stream))
}

// recovered makes an internal error of a panic: the fault is ours, the client learns an id, the server lives on.
func (s *Server) recovered(err *error) {
	if p := recover(); p != nil {
		s.opt.Log.Error("panic", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = s.toStatus(fault.New(fault.Internal, "panic: %v", p))
	}
}

func (s *Server) logUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	start := time.Now()
	resp, err := next(ctx, req)
	s.logCall(ctx, info.FullMethod, start, err)
	return resp, err
}

func (s *Server) logStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	start := time.Now()
	err := next(srv, stream)
	s.logCall(stream.Context(), info.FullMethod, start, err)
	return err
}

func (s *Server) logCall(ctx context.Context, method string, start time.Time, err error) {
	fields := []zap.Field{
		zap.String("method", method[strings.LastIndexByte(method, '/')+1:]),
		zap.Duration("took", time.Since(start)),
		zap.String("code", codeName(err)),
	}
	if p, ok := peer.FromContext(ctx); ok {
		fields = append(fields, zap.String("peer", p.Addr.String()))
	}
	if err != nil {
		s.opt.Log.Info("call failed", append(fields, zap.Error(err))...)
		return
	}
	s.opt.Log.Debug("call", fields...)
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

func (s *Server) authUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := s.identify(ctx, info.FullMethod, func(md metadata.MD) error { return grpc.SetHeader(ctx, md) })
	if err != nil {
		return nil, err
	}
	return next(ctx, req)
}

type identified struct {
	grpc.ServerStream
	ctx context.Context
}

func (i *identified) Context() context.Context { return i.ctx }

func (s *Server) authStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, err := s.identify(stream.Context(), info.FullMethod, stream.SetHeader)
	if err != nil {
		return err
	}
	return next(srv, &identified{stream, ctx})
}
