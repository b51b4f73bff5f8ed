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
	a, err := g.enter(t.Context(), "p")
	require.NoError(t, err)
	b, err := g.enter(t.Context(), "p")
	require.NoError(t, err)

	// Two wait; they come in one after the other as others leave.
	order := make(chan int, 2)
	leaves := make(chan *place, 2)
	for i := range 2 {
		go func() {
			l, err := g.enter(context.Background(), "p")
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
	a.leave()
	require.Equal(t, 0, <-order)
	b.leave()
	require.Equal(t, 1, <-order)
	(<-leaves).leave()
	(<-leaves).leave()

	// With memory nearly full the next waits, and gives up by name.
	require.NoError(t, g.queries.Reserve(90))
	a, err = g.enter(t.Context(), "p")
	require.NoError(t, err, "the first may always begin")
	g.wait = 50 * time.Millisecond
	_, err = g.enter(t.Context(), "p")
	require.ErrorIs(t, err, fault.Unavailable)
	require.ErrorContains(t, err, "1 run and hold 90 of 100 bytes")
	g.wait = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = g.enter(ctx, "p")
	require.ErrorIs(t, err, context.Canceled)
	time.AfterFunc(30*time.Millisecond, func() { g.queries.Release(90) })
	b, err = g.enter(t.Context(), "p")
	require.NoError(t, err)
	a.leave()
	b.leave()
	require.Zero(t, g.running)
	require.Empty(t, g.queue)
	require.Empty(t, g.by)
}

// TestGateIsFair: of those that wait, whoever's principal runs the fewest comes first, and nobody waits past a limit that names itself.
func TestGateIsFair(t *testing.T) {
	root := memory.NewPool("limits.memory", 100)
	g := &gate{max: 2, each: 1, queued: 3, eachWaits: 2, lookups: 1, wait: time.Minute, queries: root.Child("queries", 0), total: 100}
	waiting := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.queue) == n
		}, 5*time.Second, time.Millisecond)
	}
	greedy, err := g.enter(t.Context(), "greedy")
	require.NoError(t, err)
	came := make(chan *place, 4)
	enter := func(who string) {
		go func() {
			p, err := g.enter(context.Background(), who)
			if err == nil {
				came <- p
			}
		}()
	}
	enter("greedy")
	waiting(1)
	enter("greedy")
	waiting(2)
	_, err = g.enter(t.Context(), "greedy")
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "limits.principal.queue")
	// Another passes those that wait for their principal's share.
	other, err := g.enter(t.Context(), "other")
	require.NoError(t, err)
	enter("third")
	waiting(3)
	_, err = g.enter(t.Context(), "fourth")
	require.ErrorIs(t, err, fault.Unavailable)
	require.ErrorContains(t, err, "limits.concurrency.queue")
	// Lookups pass all of them, as many as there may be.
	look, err := g.look("greedy")
	require.NoError(t, err)
	_, err = g.look("other")
	require.ErrorIs(t, err, fault.Unavailable)
	require.ErrorContains(t, err, "limits.concurrency.lookups")
	other.leave()
	third := <-came
	require.Equal(t, "third", third.principal)
	look.demote()
	look.demote()
	require.Equal(t, 3, g.running)
	greedy.leave()
	look.leave()
	next := <-came
	require.Equal(t, "greedy", next.principal)
	// The one left is told when the server stops.
	failed := make(chan error, 1)
	go func() {
		_, err := g.enter(context.Background(), "third")
		failed <- err
	}()
	waiting(2)
	g.close(errStopping)
	require.ErrorIs(t, <-failed, fault.Unavailable)
	_, err = g.enter(t.Context(), "late")
	require.ErrorIs(t, err, fault.Unavailable)
	_, err = g.look("late")
	require.ErrorIs(t, err, fault.Unavailable)
	next.leave()
	third.leave()
	require.Zero(t, g.running+g.looking)
	require.Empty(t, g.queue)
	require.Empty(t, g.by)
	require.Empty(t, came)
}

// TestGateNamesThePrincipalsLimit: a wait that its own principal's statements are the cause of is a quota and no overload.
func TestGateNamesThePrincipalsLimit(t *testing.T) {
	g := &gate{each: 1, wait: 20 * time.Millisecond, queries: memory.NewPool("limits.memory", 100)}
	p, err := g.enter(t.Context(), "p")
	require.NoError(t, err)
	_, err = g.enter(t.Context(), "p")
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "limits.principal.queries")
	p.leave()
	require.Empty(t, g.by)
}
