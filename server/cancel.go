package server

import (
	"context"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/skua-db/skua/fault"
)

// running knows the statements that stream now, by the id in their handle, and the ids that were cancelled.
type running struct {
	mu        sync.Mutex
	active    map[string]map[*runningStatement]struct{}
	cancelled map[string]time.Time
}

type runningStatement struct {
	cancel context.CancelCauseFunc
	m      *measure
}

func newRunning() *running {
	return &running{active: map[string]map[*runningStatement]struct{}{}, cancelled: map[string]time.Time{}}
}

// cancelledLife is how long the id of a cancelled statement is remembered.
const cancelledLife = time.Hour

var errCancelled = fault.New(fault.Canceled, "the statement was cancelled")

// start registers a statement; done must be called at its end. A statement that was cancelled does not start.
func (r *running) start(ctx context.Context, id string, m *measure) (run context.Context, end context.CancelCauseFunc, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, gone := r.cancelled[id]; gone {
		return nil, nil, nil, errCancelled
	}
	run, cancel := context.WithCancelCause(ctx)
	st := &runningStatement{cancel, m}
	if r.active[id] == nil {
		r.active[id] = map[*runningStatement]struct{}{}
	}
	r.active[id][st] = struct{}{}
	return run, cancel, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.active[id], st)
		if len(r.active[id]) == 0 {
			delete(r.active, id)
		}
	}, nil
}

// progress tells which part of the rows in a statement's tables its streams have looked at, from 0 to 1; runs is false when there is none.
func (r *running) progress(id string) (part float64, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, all := 0.0, 0.0
	for st := range r.active[id] {
		runs = true
		q := st.m.profile.Load()
		if q == nil {
			continue
		}
		for _, s := range q.Scans() {
			seen += float64(s.Rows.Considered.Load())
		}
		all += st.m.total()
	}
	if all <= 0 {
		return 0, runs
	}
	return min(seen/all, 1), runs
}

// cancel stops every stream of id, now and later.
func (r *running) cancel(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for k, at := range r.cancelled {
		if now.Sub(at) > cancelledLife {
			delete(r.cancelled, k)
		}
	}
	r.cancelled[id] = now
	for st := range r.active[id] {
		st.cancel(errCancelled)
	}
}

func (s *Server) cancelInfo(ctx context.Context, info *flight.FlightInfo) (*flight.CancelFlightInfoResult, error) {
	for _, e := range info.GetEndpoint() {
		c, err := s.parse(ctx, e.GetTicket().GetTicket())
		if err != nil {
			return nil, err
		}
		st, ok := c.(*statement)
		if !ok {
			return &flight.CancelFlightInfoResult{Status: flight.CancelStatusNotCancellable}, nil
		}
		s.running.cancel(st.h.ID)
	}
	return &flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
}

// renew seals an endpoint's ticket anew with a full life. Tickets of metadata commands do not expire.
func (s *Server) renew(ctx context.Context, e *flight.FlightEndpoint) (*flight.FlightEndpoint, error) {
	c, err := s.parse(ctx, e.GetTicket().GetTicket())
	if err != nil {
		return nil, err
	}
	if st, ok := c.(*statement); ok {
		st.h.Expiry = time.Now().Add(s.opt.HandleLife).Unix()
		blob, err := s.sealHandle(st.h)
		if err != nil {
			return nil, err
		}
		e = &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: blob}, Location: e.GetLocation(), AppMetadata: e.GetAppMetadata(),
			ExpirationTime: timestamppb.New(time.Unix(st.h.Expiry, 0))}
	}
	return e, nil
}
