package memory

import "github.com/apache/arrow-go/v18/arrow/memory"

// Arrow returns an Arrow allocator whose buffers are reserved in p. Arrow's interface cannot
// return an error, so buffers that would break the limit are still made and counted: callers
// keep batches small (1-2 MiB) and reserve for them beforehand where the size is known.
func Arrow(p *Pool) memory.Allocator { return &arrowAllocator{pool: p} }

type arrowAllocator struct {
	pool *Pool
	base memory.GoAllocator
}

func (a *arrowAllocator) Allocate(size int) []byte {
	a.pool.Force(int64(size))
	return a.base.Allocate(size)
}

func (a *arrowAllocator) Reallocate(size int, b []byte) []byte {
	a.pool.Force(int64(size))
	a.pool.Release(int64(len(b)))
	return a.base.Reallocate(size, b)
}

func (a *arrowAllocator) Free(b []byte) {
	a.pool.Release(int64(len(b)))
	a.base.Free(b)
}
