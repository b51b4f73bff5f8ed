package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/skua-db/skua/fault"
)

// flightService is the name under which probes ask for it; the empty name asks for the server.
const flightService = "arrow.flight.protocol.FlightService"

// probes answers health checks. Those that watch are let go once they have been told that the server stops, or they would hold up its end.
type probes struct {
	*health.Server
	ending context.Context
}

// Watch implements grpc_health_v1.HealthServer.
func (p *probes) Watch(req *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stop := context.AfterFunc(p.ending, func() {
		t := time.NewTimer(endGrace)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		cancel()
	})
	defer stop()
	return p.Server.Watch(req, &watched{stream, ctx})
}

type watched struct {
	grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (w *watched) Context() context.Context { return w.ctx }

func (s *Server) registerHealth() {
	s.health = health.NewServer()
	s.draining, s.drain = context.WithCancel(context.Background())
	s.health.SetServingStatus(flightService, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(s.grpc, &probes{s.health, s.draining})
}

// errStopping is told to statements that the server's end cuts off, or that come too late.
var errStopping = fault.WithID(fault.Unavailable, "SERVER_STOPPING", "this server is stopping; another one answers the same ticket")

// Drain is how a server stops.
type Drain struct {
	// Notice is how long it says that it is not serving before it refuses anything, so that balancers see it in time.
	Notice time.Duration
	// Time is how long running statements may go on.
	Time time.Duration
}

// Stop says that the server is not serving, then takes no more, lets running calls finish for a while, cancels the rest and closes
// every connection.
func (s *Server) Stop() {
	s.health.Shutdown()
	pause := time.NewTimer(s.opt.Drain.Notice)
	select {
	case <-pause.C:
	case <-s.ctx.Done():
		pause.Stop()
	}
	s.drain()
	s.gate.close(errStopping)
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	t := time.NewTimer(s.opt.Drain.Time)
	defer t.Stop()
	select {
	case <-done:
	case <-s.ctx.Done():
	case <-t.C:
		s.stop(errStopping)
		// Those that are cut off are told so.
		told := time.NewTimer(2 * endGrace)
		defer told.Stop()
		select {
		case <-done:
		case <-told.C:
		}
	}
	s.Close()
	<-done
}

// Close cancels what runs and closes every connection at once.
func (s *Server) Close() {
	s.stop(errStopping)
	s.drain()
	s.grpc.Stop()
	s.started.Wait()
	s.sending.Wait()
}
