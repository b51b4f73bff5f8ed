package server

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
)

func TestGateLetsInByOrderAndMemory(t *testing.T) {
	root := memory.NewPool("limits.memory", 100)
	g := &gate{max: 2, wait: time.Minute, queries: root.Child("queries", 0), total: 100}
	a, err := g.enter(t.Context())
	require.NoError(t, err)
	b, err := g.enter(t.Context())
	require.NoError(t, err)

	// Two wait; they come in one after the other as others leave.
	order := make(chan int, 2)
	leaves := make(chan func(), 2)
	for i := range 2 {
		go func() {
			l, err := g.enter(context.Background())
			if err == nil {
				order <- i
				leaves <- l
			}
		}()
		require.Eventually(t, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.queue) == i+1
		}, 5*time.Second, time.Millisecond)
	}
	a()
	require.Equal(t, 0, <-order)
	b()
	require.Equal(t, 1, <-order)
	(<-leaves)()
	(<-leaves)()

	// With memory nearly full the next waits, and gives up by name.
	require.NoError(t, g.queries.Reserve(90))
	a, err = g.enter(t.Context())
	require.NoError(t, err, "the first may always begin")
	g.wait = 50 * time.Millisecond
	_, err = g.enter(t.Context())
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "1 run and hold 90 of 100 bytes")
	g.wait = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = g.enter(ctx)
	require.ErrorIs(t, err, context.Canceled)
	time.AfterFunc(30*time.Millisecond, func() { g.queries.Release(90) })
	b, err = g.enter(t.Context())
	require.NoError(t, err)
	a()
	b()
	require.Zero(t, g.running)
	require.Empty(t, g.queue)
}
