package scanner

import (
	"context"
	"sync"

	"github.com/skua-db/skua/fault"
)

// mostAhead is how many manifests are read before their turn: enough to hide the latency of an object store.
const mostAhead = 8

// ahead reads manifests into the cache before a worker comes to plan them. All of it is guarded by the stream's lock.
type ahead struct {
	ctx     context.Context // ends when the stream is closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	next    int // position in the stream's manifests
	active  int
	off     bool // the cache has no room: what is read ahead would be read twice
}

// readAhead starts reads up to mostAhead manifests beyond the one that is planned; the stream's lock is held. Failures are
// left to the worker whose turn it is, for it asks again. A scan that may stop early does not read ahead.
func (s *stream) readAhead() {
	a := &s.ahead
	a.next = max(a.next, s.next)
	for !a.off && !s.closed && s.err == nil && s.sc.r.Limit < 0 && a.active < mostAhead && a.next < min(len(s.manifest), s.next+mostAhead) {
		f := &s.manifest[a.next]
		a.next++
		key := s.sc.key(s.sc.mapPath(f.Path), f.Length, f.KeyMetadata)
		if s.sc.s.caches.manifests.Has(key) {
			continue
		}
		a.active++
		a.running.Go(func() {
			err := fault.Guard(func() error {
				_, err := s.sc.manifest(a.ctx, f)
				return err
			})
			s.mu.Lock()
			defer s.mu.Unlock()
			a.active--
			a.off = a.off || err == nil && !s.sc.s.caches.manifests.Has(key)
			s.readAhead()
		})
	}
}
