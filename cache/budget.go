package cache

import (
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/memory"
)

// Budget is the one byte budget of all caches: a child of the process pool that shrinks when that pool is full.
type Budget struct {
	pool   *memory.Pool
	clock  atomic.Int64
	remove func()

	mu     sync.Mutex
	caches []evictable
}

type evictable interface {
	oldest() (at int, used int64, ok bool)
	evict(at int) int64
	Clear()
	Stats() Stats
}

// NewBudget makes a budget of at most limitBytes (0: as much as parent has) below parent, and promises parent to give
// memory back on request.
func NewBudget(parent *memory.Pool, limitBytes int64) *Budget {
	b := &Budget{pool: parent.Child("caches", limitBytes)}
	b.pool.AddRevoker(b)
	b.remove = parent.AddRevoker(b)
	return b
}

// Revoke evicts the entries that were used longest ago, over all caches, until want bytes are free.
func (b *Budget) Revoke(want int64) int64 {
	b.mu.Lock()
	caches := append([]evictable(nil), b.caches...)
	b.mu.Unlock()
	var freed int64
	for freed < want {
		var from evictable
		var at int
		var least int64
		for _, c := range caches {
			if i, used, ok := c.oldest(); ok && (from == nil || used < least) {
				from, at, least = c, i, used
			}
		}
		if from == nil {
			break
		}
		freed += from.evict(at)
	}
	return freed
}

// Used is the number of bytes that all caches hold.
func (b *Budget) Used() int64 { return b.pool.Used() }

// Stats lists the counters of all caches.
func (b *Budget) Stats() []Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Stats, len(b.caches))
	for i, c := range b.caches {
		out[i] = c.Stats()
	}
	return out
}

// Close empties all caches and leaves the parent pool.
func (b *Budget) Close() {
	b.remove()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.caches {
		c.Clear()
	}
}

func (b *Budget) join(c evictable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.caches = append(b.caches, c)
}

// reserve takes n bytes; a value larger than a quarter of the budget would only drive everything else out.
func (b *Budget) reserve(n int64) bool {
	if l := b.pool.Limit(); l > 0 && n > l/4 {
		return false
	}
	return b.pool.Reserve(n) == nil
}
