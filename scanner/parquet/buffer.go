package parquet

import (
	"math/bits"
	"sync"

	"github.com/skua-db/skua/memory"
)

// buffer is a byte slice from the process-wide pools, accounted for in a memory pool while it is out. Making 64 KiB costs more
// than decoding it, so pages are never made anew.
type buffer struct {
	b     []byte
	pool  *memory.Pool
	class int8 // -1: too large to be kept
}

const (
	minBufferShift = 12
	maxBufferShift = 26
	// bufferSlack is room after the last byte, so that words may be loaded at any offset.
	bufferSlack = 16
)

// bufferPools holds free buffers by size: two classes for each power of two.
var bufferPools [2 * (maxBufferShift - minBufferShift + 1)]sync.Pool

// classOf gives the size class of n bytes and its size.
func classOf(n int) (class int8, size int) {
	if n <= 1<<minBufferShift {
		return 0, 1 << minBufferShift
	}
	shift := bits.Len(uint(n - 1)) // 1<<shift >= n
	if shift > maxBufferShift {
		return -1, n
	}
	if half := 3 << (shift - 2); n <= half {
		return int8(2*(shift-minBufferShift) - 1), half
	}
	return int8(2 * (shift - minBufferShift)), 1 << shift
}

// newBuffer takes a buffer of n bytes. Its content is undefined. It fails with fault.Exhausted when pool refuses.
func newBuffer(pool *memory.Pool, n int) (*buffer, error) {
	class, size := classOf(n + bufferSlack)
	if pool != nil {
		if err := pool.Reserve(int64(size)); err != nil {
			return nil, err
		}
	}
	var b *buffer
	if class >= 0 {
		b, _ = bufferPools[class].Get().(*buffer)
	}
	if b == nil {
		b = &buffer{b: make([]byte, size), class: class}
	}
	b.pool = pool
	b.b = b.b[:n]
	return b, nil
}

// release gives the buffer back; nobody may look at its bytes any more.
func (b *buffer) release() {
	if b == nil {
		return
	}
	if b.pool != nil {
		b.pool.Release(int64(cap(b.b)))
		b.pool = nil
	}
	if b.class >= 0 {
		bufferPools[b.class].Put(b)
	}
}
