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

// gate lets statements begin in the order they came: at most max at once (0: any number), and none while the running ones hold nearly all
// memory. Caches do not count, they give way.
type gate struct {
	max     int
	wait    time.Duration
	queries *memory.Pool // parent of every query's pool
	total   int64

	mu      sync.Mutex
	running int
	queue   []chan struct{} // closed when its turn has come
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

// admit begins those whose turn it is; mu is held.
func (g *gate) admit() {
	for len(g.queue) > 0 && g.room() {
		g.running++
		close(g.queue[0])
		g.queue = g.queue[1:]
	}
}

// gatePeriod is how often a waiting statement looks whether memory has become free.
const gatePeriod = 20 * time.Millisecond

// enter waits for its turn. leave must be called once the statement has ended.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	leave = func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
		g.admit()
	}
	g.mu.Lock()
	if len(g.queue) == 0 && g.room() {
		g.running++
		g.mu.Unlock()
		return leave, nil
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
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
		select {
		case <-turn:
			return leave, nil
		case <-tick.C:
			g.mu.Lock()
			g.admit()
			g.mu.Unlock()
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-late:
			err = fault.WithID(fault.Exhausted, "QUERY_QUEUE_FULL",
				"the statement waited %s for its turn: %d run and hold %d of %d bytes; raise limits.concurrency.queries, limits.concurrency.wait or limits.memory, or try again",
				g.wait, g.active(), g.queries.Used(), g.total)
		}
		if g.quit(turn) {
			return nil, err
		}
		leave() // its turn came at the same moment
		return nil, err
	}
}

func (g *gate) active() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// quit takes a waiting statement out of the queue; false when it is no longer there.
func (g *gate) quit(turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, t := range g.queue {
		if t == turn {
			g.queue = append(g.queue[:i:i], g.queue[i+1:]...)
			g.admit()
			return true
		}
	}
	return false
}
