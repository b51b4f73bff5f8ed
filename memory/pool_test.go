package memory

import (
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLimitsAlongThePath(t *testing.T) {
	root := NewPool("process", 100)
	a := root.Child("query a", 80)
	b := root.Child("query b", 0)
	require.NoError(t, a.Reserve(60))
	err := a.Reserve(30)
	require.ErrorIs(t, err, fault.Exhausted)
	require.ErrorContains(t, err, "query a needs 30 more bytes, but its limit of 80 bytes has 60 in use")
	require.NoError(t, b.Reserve(40))
	err = b.Reserve(1)
	require.ErrorContains(t, err, "process needs 1 more bytes")
	require.EqualValues(t, 100, root.Used())
	require.EqualValues(t, 40, b.Used(), "a refused reservation leaves nothing behind")
	a.Release(60)
	b.Release(40)
	require.Zero(t, root.Used())
	require.EqualValues(t, 100, root.Peak())
	require.Panics(t, func() { a.Release(1) })
}

type shrinking struct {
	pool *Pool
	held int64
}

func (s *shrinking) Revoke(want int64) int64 {
	n := min(want, s.held)
	s.held -= n
	s.pool.Release(n)
	return n
}

func TestRevokersAreAskedFirst(t *testing.T) {
	root := NewPool("process", 100)
	cache := root.Child("cache", 0)
	require.NoError(t, cache.Reserve(90))
	s := &shrinking{pool: cache, held: 90}
	remove := root.AddRevoker(s)
	q := root.Child("query", 0)
	require.NoError(t, q.Reserve(50))
	require.EqualValues(t, 50, s.held)
	remove()
	require.Error(t, q.Reserve(10), "a removed revoker is not asked")
	q.Release(50)
	cache.Release(s.held)
	require.Zero(t, root.Used())
}

func TestOverdrawnPoolGoesBeyondItsParentOnly(t *testing.T) {
	root := NewPool("process", 200)
	query := root.Child("query", 100)
	require.NoError(t, query.Reserve(90))
	scan := query.Overdraw("scan", 30)
	require.NoError(t, scan.Reserve(40))
	require.ErrorContains(t, scan.Reserve(1), "query needs 1 more bytes, but its limit of 100 bytes has 130 in use")
	require.Error(t, query.Reserve(1), "others wait until there is room again")
	require.NoError(t, root.Reserve(60))
	scan.Release(20)
	require.ErrorContains(t, scan.Reserve(90), "query needs")
	scan.Release(20)
	query.Release(90)
	root.Release(60)
	require.Zero(t, root.Used())
}

func TestConcurrentReservationsKeepTheLimit(t *testing.T) {
	root := NewPool("process", 1000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p := root.Child("query", 300)
			for range 2000 {
				if p.Reserve(100) == nil {
					p.Release(100)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, root.Used())
}

func TestArrowAllocatorCounts(t *testing.T) {
	p := NewPool("query", 0)
	a := Arrow(p)
	b := a.Allocate(100)
	require.EqualValues(t, 100, p.Used())
	b = a.Reallocate(300, b)
	require.EqualValues(t, 300, p.Used())
	a.Free(b)
	require.Zero(t, p.Used())
}

func TestHeapLimitFollowsWhatIsReserved(t *testing.T) {
	const mib = 1 << 20
	require.EqualValues(t, 164*mib, heapLimit(100*mib, 300*mib, 240*mib, 330*mib), "a small budget: the least slack")
	require.EqualValues(t, 330*mib, heapLimit(290*mib, 300*mib, 240*mib, 330*mib), "never above the most")
	require.EqualValues(t, 1000*mib+1800*mib, heapLimit(1000*mib, 10000*mib, 8000*mib, 11000*mib), "a large one: a fifth of what is free")
	require.EqualValues(t, 320*mib, heapLimit(256*mib, 10000*mib, 256*mib, 11000*mib), "small budgets of queries in a large process")
	require.EqualValues(t, 250*mib+100*mib, heapLimit(250*mib, 10000*mib, 400*mib, 11000*mib))

	p := NewPool("process", 300*mib)
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	stop := Govern(p, 300*mib, 240*mib, 330*mib)
	require.NoError(t, p.Reserve(150*mib))
	require.Eventually(t, func() bool { return debug.SetMemoryLimit(-1) == 214*mib }, 5*time.Second, 10*time.Millisecond)
	p.Release(150 * mib)
	stop()
	require.EqualValues(t, 330*mib, debug.SetMemoryLimit(-1))
}

func TestSplitLeavesRoomForTheProgram(t *testing.T) {
	for _, total := range []int64{32 << 20, 256_000_000, 1 << 30, 64 << 30} {
		pool, most := Split(total)
		require.Positive(t, pool)
		require.Less(t, pool, most)
		require.Less(t, most, total)
		require.GreaterOrEqual(t, pool, total/4)
	}
	require.Positive(t, programBytes())
	require.Positive(t, held())
}

// TestLargeReservationsCollectFirst fills the heap with garbage beside a governed pool: a large reservation frees it before it is used.
func TestLargeReservationsCollectFirst(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector itself does nothing
	const most, size = 200 << 20, 100 << 20
	p := NewPool("process", most)
	stop := Govern(p, most, most, 1<<40)
	stop()
	p.governed(most)
	for range 5 {
		require.NoError(t, p.Reserve(size))
		b := make([]byte, size)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		require.Less(t, held(), int64(most)+size/2)
		p.Release(size)
	}
}
