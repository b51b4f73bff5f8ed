// Package memory is the tree of memory pools: process, query, operator. Every
// buffer that outlives one chunk is reserved here before it is made.
//
// It is not an allocator of its own: buffers come from the Go heap, and the
// pool keeps the promise about how many bytes of them exist. Pools are safe
// for concurrent use.
package memory

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/fault"
)

// Pool accounts for bytes under a limit. A reservation in a child is also one
// in each of its parents, so a limit anywhere on the path refuses it.
type Pool struct {
	name   string
	limit  int64 // 0: only the parents limit
	parent *Pool
	used   atomic.Int64
	peak   atomic.Int64
	over   int64         // see Overdraw
	room   func(n int64) // see Govern; nil: nothing is done

	mu       sync.Mutex
	revokers []Revoker
}

// Revoker frees memory on request: a cache that can shrink or an operator that can
// spill. Revoke is called without locks held, possibly from any goroutine, and returns the bytes
// it released (by calling Release itself). want is a hint in bytes.
type Revoker interface {
	Revoke(want int64) int64
}

// NewPool makes a root pool of limitBytes; 0 means no limit.
func NewPool(name string, limitBytes int64) *Pool {
	return &Pool{name: name, limit: limitBytes}
}

// Child makes a pool below p. limitBytes 0 leaves the limit to the parents.
func (p *Pool) Child(name string, limitBytes int64) *Pool {
	return &Pool{name: name, limit: limitBytes, parent: p}
}

// Overdraw makes a pool below p whose reservations may exceed p's own limit by n bytes together with all else in p. It is for what must go on
// for others to make room: a scan whose rows operators spill. The limits of p's parents hold.
func (p *Pool) Overdraw(name string, n int64) *Pool {
	return &Pool{name: name, parent: p, over: n}
}

// Name is the pool's name, as refusals show it.
func (p *Pool) Name() string { return p.name }

// Limit is the limit in bytes; 0 when only the parents limit.
func (p *Pool) Limit() int64 { return p.limit }

// Used is the number of bytes reserved now.
func (p *Pool) Used() int64 { return p.used.Load() }

// Peak is the largest number of bytes reserved at once.
func (p *Pool) Peak() int64 { return p.peak.Load() }

// AddRevoker registers something that can give memory back before a reservation is refused.
// The returned function removes it.
func (p *Pool) AddRevoker(r Revoker) (remove func()) {
	p.mu.Lock()
	p.revokers = append(p.revokers, r)
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for i, x := range p.revokers {
			if x == r {
				p.revokers = append(p.revokers[:i:i], p.revokers[i+1:]...)
				return
			}
		}
	}
}

// Reserve takes n bytes, asking revokers of the pool that is full first. It returns an
// error of kind fault.Exhausted that names the pool and its limit; then nothing is reserved.
func (p *Pool) Reserve(n int64) error {
	if n < 0 {
		panic(fmt.Sprintf("memory: reserve of %d bytes", n))
	}
	for q := p; q != nil; q = q.parent {
		over := int64(0)
		if q == p.parent {
			over = p.over
		}
		if err := q.take(n, over); err != nil {
			for r := p; r != q; r = r.parent {
				r.used.Add(-n)
			}
			return err
		}
	}
	return nil
}

// Force reserves n bytes whatever the limits say. It is for small amounts that are needed to get below a limit: the buffers of an
// operator that spills, an Arrow allocation that cannot fail.
func (p *Pool) Force(n int64) {
	for q := p; q != nil; q = q.parent {
		q.note(q.used.Add(n))
	}
}

// note keeps the greatest number of bytes in use.
func (p *Pool) note(now int64) {
	for peak := p.peak.Load(); now > peak && !p.peak.CompareAndSwap(peak, now); peak = p.peak.Load() {
	}
}

func (p *Pool) take(n, over int64) error {
	for range 4 {
		now := p.used.Add(n)
		if p.limit == 0 || now <= p.limit+over {
			p.note(now)
			if p.room != nil && n >= largeReservation {
				p.room(n)
			}
			return nil
		}
		p.used.Add(-n)
		if !p.revoke(now - p.limit - over) {
			break
		}
	}
	return fault.WithID(fault.Exhausted, "EXCEEDED_MEMORY_LIMIT",
		"%s needs %d more bytes, but its limit of %d bytes has %d in use", p.name, n, p.limit, p.used.Load())
}

func (p *Pool) revoke(want int64) bool {
	p.mu.Lock()
	rs := append([]Revoker(nil), p.revokers...)
	p.mu.Unlock()
	var freed int64
	for _, r := range rs {
		if freed += r.Revoke(want - freed); freed >= want {
			break
		}
	}
	return freed > 0
}

// Release gives n bytes back to p and its parents.
func (p *Pool) Release(n int64) {
	for q := p; q != nil; q = q.parent {
		if q.used.Add(-n) < 0 {
			panic(fmt.Sprintf("memory: pool %s released more than it reserved", q.name))
		}
	}
}
