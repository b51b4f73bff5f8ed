package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(v string, bytes int64) func(context.Context) (string, int64, error) {
	return func(context.Context) (string, int64, error) { return v, bytes, nil }
}

func TestGetLoadsOnce(t *testing.T) {
	pool := memory.NewPool("process", 1<<20)
	b := cache.NewBudget(pool, 0)
	c := cache.New[int, string](b, "things")
	var loads atomic.Int64
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			v, err := c.Get(context.Background(), 7, func(context.Context) (string, int64, error) {
				loads.Add(1)
				<-gate
				return "seven", 100, nil
			})
			require.NoError(t, err)
			require.Equal(t, "seven", v)
		})
	}
	close(gate)
	wg.Wait()
	require.EqualValues(t, 1, loads.Load())
	s := c.Stats()
	require.EqualValues(t, 20, s.Hits+s.Misses)
	require.EqualValues(t, 1, s.Entries)
	b.Close()
	require.Zero(t, pool.Used())
}

func TestErrorsAreNotKept(t *testing.T) {
	c := cache.New[string, string](cache.NewBudget(memory.NewPool("p", 0), 0), "x")
	boom := errors.New("boom")
	_, err := c.Get(context.Background(), "k", func(context.Context) (string, int64, error) { return "", 0, boom })
	require.ErrorIs(t, err, boom)
	v, err := c.Get(context.Background(), "k", load("fine", 1))
	require.NoError(t, err)
	require.Equal(t, "fine", v)
}

// A loader whose own context ends must not fail those who wait for the same key.
func TestWaiterTakesOver(t *testing.T) {
	c := cache.New[string, string](cache.NewBudget(memory.NewPool("p", 0), 0), "x")
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Get(ctx, "k", func(ctx context.Context) (string, int64, error) {
			close(started)
			<-ctx.Done()
			return "", 0, ctx.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
	})
	<-started
	wg.Go(func() {
		v, err := c.Get(context.Background(), "k", load("second", 1))
		require.NoError(t, err)
		require.Equal(t, "second", v)
	})
	cancel()
	wg.Wait()
}

func TestBudgetEvictsTheOldestOfAllCaches(t *testing.T) {
	pool := memory.NewPool("process", 0)
	b := cache.NewBudget(pool, 10_000)
	old, young := cache.New[int, string](b, "old"), cache.New[int, string](b, "young")
	old.Put(1, "a", 1500)
	old.Put(2, "b", 1500)
	young.Put(1, "c", 1500)
	_, ok := old.Lookup(1) // now 2 is the oldest
	require.True(t, ok)
	for i := range 4 {
		young.Put(10+i, "d", 1500)
	}
	_, ok = old.Lookup(2)
	require.False(t, ok)
	_, ok = old.Lookup(1)
	require.True(t, ok)
	require.LessOrEqual(t, b.Used(), int64(10_000))
	young.Put(99, "too large", 5000)
	_, ok = young.Lookup(99)
	require.False(t, ok)
	b.Close()
	require.Zero(t, pool.Used())
}

// A query that needs memory gets it from the caches before it is refused.
func TestRevoke(t *testing.T) {
	pool := memory.NewPool("process", 100_000)
	b := cache.NewBudget(pool, 0)
	c := cache.New[int, string](b, "x")
	for i := range 90 {
		c.Put(i, "v", 800)
	}
	q := pool.Child("query", 0)
	require.NoError(t, q.Reserve(90_000))
	require.LessOrEqual(t, b.Used(), int64(10_000))
	require.Error(t, q.Reserve(20_000))
	q.Release(90_000)
	b.Close()
	require.Zero(t, pool.Used())
}

func TestConcurrentUse(t *testing.T) {
	pool := memory.NewPool("process", 0)
	b := cache.NewBudget(pool, 50_000)
	c := cache.New[int, string](b, "x")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewSource(int64(w)))
			for range 2000 {
				k := r.Intn(300)
				switch r.Intn(10) {
				case 0:
					c.Remove(k)
				case 1:
					c.Put(k, fmt.Sprint(k), int64(r.Intn(500)))
				default:
					v, err := c.Get(context.Background(), k, load(fmt.Sprint(k), int64(r.Intn(500))))
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(k), v)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, c.Stats().Bytes, b.Used())
	b.Close()
	require.Zero(t, pool.Used())
}
