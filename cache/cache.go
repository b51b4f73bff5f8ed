// Package cache holds what many queries share for a while: decoded manifests, footers, delete sets, pages. All caches
// of a process draw on one byte Budget, which gives memory back before any query is refused.
//
// It is not a store: an entry may vanish at any time, and a value that does not fit is simply not kept. It knows
// nothing of what it holds; whoever looks something up has the right to see it. Everything here is safe for
// concurrent use, and values must be immutable.
package cache

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/fault"
)

const shardCount = 16

// Cache maps keys to values within a Budget. A miss is loaded once, however many ask for it at the same time.
type Cache[K comparable, V any] struct {
	name   string
	budget *Budget
	seed   maphash.Seed
	shards [shardCount]shard[K, V]
	stats  counters
}

type counters struct{ hits, misses, evictions, bytes, entries atomic.Int64 }

// Stats is what a cache has done so far and what it holds now.
type Stats struct {
	Name                    string
	Hits, Misses, Evictions int64
	Bytes, Entries          int64
}

type shard[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]*entry[K, V]
	flights map[K]*flight[V]
	// The list runs from the most to the least recently used; both ends nil when empty.
	first, last *entry[K, V]
}

type entry[K comparable, V any] struct {
	key        K
	value      V
	bytes      int64
	used       int64 // the budget's clock at the last use
	prev, next *entry[K, V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// New makes a cache that draws on b. name appears in metrics.
func New[K comparable, V any](b *Budget, name string) *Cache[K, V] {
	c := &Cache[K, V]{name: name, budget: b, seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].entries = map[K]*entry[K, V]{}
		c.shards[i].flights = map[K]*flight[V]{}
	}
	b.join(c)
	return c
}

func (c *Cache[K, V]) shard(k K) *shard[K, V] {
	return &c.shards[maphash.Comparable(c.seed, k)%shardCount]
}

// Lookup gives the value of k when it is held.
func (c *Cache[K, V]) Lookup(k K) (V, bool) {
	s := c.shard(k)
	s.mu.Lock()
	e := s.entries[k]
	if e == nil {
		s.mu.Unlock()
		c.stats.misses.Add(1)
		var none V
		return none, false
	}
	s.use(e, c.budget.clock.Add(1))
	v := e.value
	s.mu.Unlock()
	c.stats.hits.Add(1)
	return v, true
}

// Has reports whether the value of k is held, without counting as a use.
func (c *Cache[K, V]) Has(k K) bool {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[k] != nil
}

// Get gives the value of k, calling load on a miss. load returns the value and the bytes that it holds. While one
// caller loads, others with the same key wait for it or for their ctx; when the loader's own ctx ends, one of them
// takes over. Errors are not kept.
func (c *Cache[K, V]) Get(ctx context.Context, k K, load func(context.Context) (V, int64, error)) (V, error) {
	s := c.shard(k)
	for {
		s.mu.Lock()
		if e := s.entries[k]; e != nil {
			s.use(e, c.budget.clock.Add(1))
			v := e.value
			s.mu.Unlock()
			c.stats.hits.Add(1)
			return v, nil
		}
		f := s.flights[k]
		if f == nil {
			f = &flight[V]{done: make(chan struct{}), err: errAbandoned}
			s.flights[k] = f
			s.mu.Unlock()
			c.stats.misses.Add(1)
			c.fly(ctx, s, k, f, load)
			return f.value, f.err
		}
		s.mu.Unlock()
		select {
		case <-f.done:
			if f.err == nil {
				c.stats.hits.Add(1)
				return f.value, nil
			}
			if kind := fault.KindOf(f.err); (kind == fault.Canceled || kind == fault.Timeout || errors.Is(f.err, errAbandoned)) && ctx.Err() == nil {
				continue
			}
			return f.value, f.err
		case <-ctx.Done():
			var none V
			return none, ctx.Err()
		}
	}
}

// errAbandoned stands until a load has returned, so that waiters see an error when it panics.
var errAbandoned = fault.New(fault.Internal, "the load of a cache entry did not finish")

func (c *Cache[K, V]) fly(ctx context.Context, s *shard[K, V], k K, f *flight[V], load func(context.Context) (V, int64, error)) {
	var bytes int64
	defer func() {
		s.mu.Lock()
		delete(s.flights, k)
		s.mu.Unlock()
		close(f.done)
	}()
	f.value, bytes, f.err = load(ctx)
	if f.err == nil {
		c.Put(k, f.value, bytes)
	}
}

// Put keeps v, which holds so many bytes, unless the budget has no room even after evictions.
func (c *Cache[K, V]) Put(k K, v V, bytes int64) {
	bytes += entryOverhead
	if !c.budget.reserve(bytes) {
		return
	}
	s := c.shard(k)
	s.mu.Lock()
	if old := s.entries[k]; old != nil {
		s.drop(old)
		c.forget(old)
	}
	e := &entry[K, V]{key: k, value: v, bytes: bytes, used: c.budget.clock.Add(1)}
	s.entries[k] = e
	s.push(e)
	c.stats.bytes.Add(bytes)
	c.stats.entries.Add(1)
	s.mu.Unlock()
}

// entryOverhead is about what an entry costs beside its value: the node and its share of the map.
const entryOverhead = 160

// Remove drops k.
func (c *Cache[K, V]) Remove(k K) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[k]; e != nil {
		s.drop(e)
		c.forget(e)
	}
}

// Clear drops everything.
func (c *Cache[K, V]) Clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		for s.last != nil {
			e := s.last
			s.drop(e)
			c.forget(e)
		}
		s.mu.Unlock()
	}
}

// Stats tells the counters.
func (c *Cache[K, V]) Stats() Stats {
	return Stats{c.name, c.stats.hits.Load(), c.stats.misses.Load(), c.stats.evictions.Load(), c.stats.bytes.Load(), c.stats.entries.Load()}
}

// forget returns the bytes of an entry that was dropped.
func (c *Cache[K, V]) forget(e *entry[K, V]) {
	c.stats.bytes.Add(-e.bytes)
	c.stats.entries.Add(-1)
	c.budget.pool.Release(e.bytes)
}

// oldest tells which shard holds the entry that was used longest ago.
func (c *Cache[K, V]) oldest() (at int, used int64, ok bool) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if s.last != nil && (!ok || s.last.used < used) {
			at, used, ok = i, s.last.used, true
		}
		s.mu.Unlock()
	}
	return at, used, ok
}

// evict drops the least recently used entry of a shard and tells how many bytes that gave back.
func (c *Cache[K, V]) evict(at int) int64 {
	s := &c.shards[at]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.last
	if e == nil {
		return 0
	}
	s.drop(e)
	c.forget(e)
	c.stats.evictions.Add(1)
	return e.bytes
}

func (s *shard[K, V]) use(e *entry[K, V], now int64) {
	e.used = now
	if s.first != e {
		s.unlink(e)
		s.push(e)
	}
}

func (s *shard[K, V]) push(e *entry[K, V]) {
	e.prev, e.next = nil, s.first
	if s.first != nil {
		s.first.prev = e
	}
	s.first = e
	if s.last == nil {
		s.last = e
	}
}

func (s *shard[K, V]) unlink(e *entry[K, V]) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		s.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		s.last = e.prev
	}
	e.prev, e.next = nil, nil
}

func (s *shard[K, V]) drop(e *entry[K, V]) {
	s.unlink(e)
	delete(s.entries, e.key)
}
