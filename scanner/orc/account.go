package orc

import (
	"math/bits"
	"sync"

	"github.com/skua-db/skua/memory"
)

// account keeps what a stripe reader holds reserved in its pool, and lends it byte buffers that readers share one after the other.
type account struct {
	pool *memory.Pool
	held int64
	bufs []*[]byte
}

const (
	minBufferShift = 12
	maxBufferShift = 26
)

// buffers holds free byte buffers by the power of two of their size: making one costs more than filling it.
var buffers [maxBufferShift + 1]sync.Pool

func (a *account) take(n int64) error {
	if a.pool == nil || n <= 0 {
		return nil
	}
	if err := a.pool.Reserve(n); err != nil {
		return err
	}
	a.held += n
	return nil
}

// buffer lends n bytes of undefined content until the account is closed.
func (a *account) buffer(n int) ([]byte, error) {
	shift := max(minBufferShift, bits.Len(uint(max(n, 1)-1)))
	if shift > maxBufferShift {
		if err := a.take(int64(n)); err != nil {
			return nil, err
		}
		return make([]byte, n), nil
	}
	if err := a.take(1 << shift); err != nil {
		return nil, err
	}
	b, _ := buffers[shift].Get().(*[]byte)
	if b == nil {
		s := make([]byte, 1<<shift)
		b = &s
	}
	a.bufs = append(a.bufs, b)
	return (*b)[:n], nil
}

// fit makes *s n bytes long; its content is lost when it has to grow.
func (a *account) fit(s *[]byte, n int) error {
	if n <= cap(*s) {
		*s = (*s)[:n]
		return nil
	}
	b, err := a.buffer(n)
	if err != nil {
		return err
	}
	*s = b[:n:cap(b)]
	return nil
}

func (a *account) close() {
	if a.pool != nil {
		a.pool.Release(a.held)
	}
	for _, b := range a.bufs {
		buffers[bits.Len(uint(len(*b)-1))].Put(b)
	}
	a.held, a.bufs = 0, nil
}

// grow gives *s room for n values and that length. The first keep values stay; others are undefined.
func grow[T any](a *account, s *[]T, n, keep int, size int64) error {
	if n <= cap(*s) {
		*s = (*s)[:n]
		return nil
	}
	room := max(64, n)
	if keep > 0 || room < 4096 {
		room = max(room, 2*cap(*s))
	}
	if err := a.take(int64(room-cap(*s)) * size); err != nil {
		return err
	}
	next := make([]T, n, room)
	copy(next, (*s)[:min(keep, len(*s))])
	*s = next
	return nil
}
