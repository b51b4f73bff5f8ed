package server

import (
	"context"
	"sync"
	"time"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
)

// nearlyFull is the share of the process's memory above which no further query begins while others run.
const nearlyFull = 0.85

// gate lets statements begin: at most max at once (0: any number), of one principal at most each, and none while the running ones hold
// nearly all memory. Caches do not count, they give way. Whose principal runs the fewest comes first, and then who came first.
// Lookups are a class of their own: they do not queue and are only counted.
type gate struct {
	max, each         int // statements at once: of all, of one principal
	queued, eachWaits int // how many may wait: of all, of one principal
	lookups           int // lookups at once
	wait              time.Duration
	queries           *memory.Pool // parent of every query's pool
	total             int64

	mu      sync.Mutex
	running int
	looking int // lookups that run
	by      map[string]*share
	queue   []*waiter
	shut    error // why nothing begins any more
}

// share is what one principal has.
type share struct{ running, waiting int }

type waiter struct {
	principal string
	turn      chan struct{} // closed when its turn has come, or will never
	refused   error         // why it will never; set before turn is closed
}

// place is a statement's place among those that run. Its methods are called by one goroutine at a time.
type place struct {
	g         *gate
	principal string
	lookup    bool
}

// leave gives the place back, once the statement has ended.
func (p *place) leave() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.lookup {
		p.g.looking--
		return
	}
	p.g.running--
	p.g.of(p.principal).running--
	p.g.forget(p.principal)
	p.g.admit()
}

// unless gives the place if err is nil.
func (p *place) unless(err error) (*place, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

// demote makes an ordinary statement of what passed for a lookup: it runs on, and others wait in its stead.
func (p *place) demote() {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.lookup {
		p.lookup = false
		p.g.looking--
		p.g.running++
		p.g.of(p.principal).running++
	}
}

// of gives the share of a principal; mu is held.
func (g *gate) of(principal string) *share {
	if g.by == nil {
		g.by = map[string]*share{}
	}
	s := g.by[principal]
	if s == nil {
		s = &share{}
		g.by[principal] = s
	}
	return s
}

func (g *gate) forget(principal string) {
	if s := g.by[principal]; s != nil && *s == (share{}) {
		delete(g.by, principal)
	}
}

// room reports whether another may begin; mu is held. The first always may.
func (g *gate) room() bool {
	if g.running == 0 {
		return true
	}
	if g.max > 0 && g.running >= g.max {
		return false
	}
	return g.total == 0 || float64(g.queries.Used()) < nearlyFull*float64(g.total)
}

func (g *gate) allowed(principal string) bool { return g.each == 0 || g.of(principal).running < g.each }

// anyAllowed tells whether any that waits could begin if there were room: it came first. mu is held.
func (g *gate) anyAllowed() bool {
	for _, w := range g.queue {
		if g.allowed(w.principal) {
			return true
		}
	}
	return false
}

// admit begins those whose turn it is; mu is held.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.room() {
		best := -1
		for i, w := range g.queue {
			if g.allowed(w.principal) && (best < 0 || g.of(w.principal).running < g.of(g.queue[best].principal).running) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := g.queue[best]
		g.queue = append(g.queue[:best:best], g.queue[best+1:]...)
		g.begin(w.principal)
		g.of(w.principal).waiting--
		close(w.turn)
	}
}

func (g *gate) begin(principal string) {
	g.running++
	g.of(principal).running++
}

// gatePeriod is how often a waiting statement looks whether memory has become free.
const gatePeriod = 20 * time.Millisecond

// queueFull is the id of errors of those that do not get their turn.
const queueFull = "QUERY_QUEUE_FULL"

// look takes the place of a lookup, at once or not at all.
func (g *gate) look(principal string) (*place, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		return nil, g.shut
	}
	if g.lookups > 0 && g.looking >= g.lookups {
		return nil, fault.WithID(fault.Unavailable, queueFull, "%d lookups run, as many as limits.concurrency.lookups allows; try again", g.looking)
	}
	g.looking++
	return &place{g, principal, true}, nil
}

// enter waits for its turn.
func (g *gate) enter(ctx context.Context, principal string) (*place, error) {
	g.mu.Lock()
	if g.shut != nil {
		g.mu.Unlock()
		return nil, g.shut
	}
	mine := &place{g: g, principal: principal}
	if g.room() && g.allowed(principal) && !g.anyAllowed() {
		g.begin(principal)
		g.mu.Unlock()
		return mine, nil
	}
	if err := g.full(principal); err != nil {
		g.forget(principal)
		g.mu.Unlock()
		return nil, err
	}
	w := &waiter{principal: principal, turn: make(chan struct{})}
	g.queue = append(g.queue, w)
	g.of(principal).waiting++
	g.admit()
	g.mu.Unlock()
	tick := time.NewTicker(gatePeriod)
	defer tick.Stop()
	var late <-chan time.Time
	if g.wait > 0 {
		t := time.NewTimer(g.wait)
		defer t.Stop()
		late = t.C
	}
	for {
		var err error
		select {
		case <-w.turn:
			return mine.unless(w.refused)
		case <-tick.C:
			g.mu.Lock()
			g.admit()
			g.mu.Unlock()
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-late:
			err = g.tooLate(principal)
		}
		if g.quit(w) {
			return nil, err
		}
		if <-w.turn; w.refused == nil {
			mine.leave() // its turn came at the same moment
		}
		return nil, err
	}
}

// full refuses at once what would wait in vain; mu is held.
func (g *gate) full(principal string) error {
	if mine := g.of(principal); g.eachWaits > 0 && mine.waiting >= g.eachWaits {
		return fault.WithID(fault.Exhausted, "EXCEEDED_PRINCIPAL_LIMIT", "%q runs %d statements and has %d waiting, as many as limits.principal.queue allows",
			principal, mine.running, mine.waiting)
	}
	if g.queued > 0 && len(g.queue) >= g.queued {
		return fault.WithID(fault.Unavailable, queueFull, "%d statements run and %d wait, as many as limits.concurrency.queue allows; try again", g.running, len(g.queue))
	}
	return nil
}

func (g *gate) tooLate(principal string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.allowed(principal) {
		return fault.WithID(fault.Exhausted, "EXCEEDED_PRINCIPAL_LIMIT", "the statement waited %s for its turn: %q runs %d others, as many as limits.principal.queries allows",
			g.wait, principal, g.of(principal).running)
	}
	return fault.WithID(fault.Unavailable, queueFull,
		"the statement waited %s for its turn: %d run and hold %d of %d bytes; raise limits.concurrency.queries, limits.concurrency.wait or limits.memory, or try again",
		g.wait, g.running, g.queries.Used(), g.total)
}

// close refuses all that wait and all that come.
func (g *gate) close(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = why
	for _, w := range g.queue {
		g.of(w.principal).waiting--
		g.forget(w.principal)
		w.refused = why
		close(w.turn)
	}
	g.queue = nil
}

// quit takes a waiting statement out of the queue; false when it is no longer there.
func (g *gate) quit(w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range g.queue {
		if o == w {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
			g.of(w.principal).waiting--
			g.forget(w.principal)
			g.admit()
			return true
		}
	}
	return false
}
