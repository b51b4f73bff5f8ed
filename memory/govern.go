package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The heap may be as large as what is reserved and some slack: a fifth of what is still free, at most a quarter of what one query may have,
// but at least minSlack. So a process with a small budget, or with small budgets for its queries, stays near it, and one with plenty of
// room is left to the collector's usual pace.
const (
	minSlack   = 64 << 20
	slackShare = 5
	queryShare = 4
	// governStep is the least change in bytes that is worth telling the runtime.
	governStep   = 8 << 20
	governPeriod = 50 * time.Millisecond
)

// largeReservation is the size in bytes from which on a reservation in a governed pool first has garbage collected where the memory would
// otherwise grow beyond the most that it may: the collector runs beside the program, and one large buffer outruns it.
const largeReservation = 16 << 20

// Split divides the memory that a process may have, as its owner counts it from outside: pool is what may be promised to queries and caches,
// most what Go's runtime may hold in all. The rest is the program itself, whose pages count once they have been run.
func Split(totalBytes int64) (pool, most int64) {
	const (
		growth    = 10 << 20 // of the program's pages that later work touches
		leastIdle = 24 << 20 // what an idle server holds, with the buffers of its connections
		idleShare = 10
	)
	most = max(totalBytes-programBytes()-growth, totalBytes/2)
	return most - min(max(leastIdle, most/idleShare), most/2), most
}

// programBytes is how much of the program's file is in memory now, as the kernel counts it; a usual value where it does not tell.
func programBytes() int64 {
	const usual, kilo = 64 << 20, 1024
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return usual
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return usual
	}
	return n * kilo
}

// held is what the runtime holds of the machine's memory, in bytes.
func held() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// heapLimit is the heap size to aim at.
func heapLimit(used, total, query, most int64) int64 {
	return min(used+max(minSlack, min((total-used)/slackShare, query/queryShare)), most)
}

// Govern keeps the runtime's soft memory limit near what is reserved in p, the root pool of totalBytes of which a query may have queryBytes,
// and never above mostBytes. It is called before anybody reserves. The returned function ends it and leaves the limit at mostBytes.
func Govern(p *Pool, totalBytes, queryBytes, mostBytes int64) (stop func()) {
	debug.SetMemoryLimit(mostBytes)
	p.governed(mostBytes)
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(governPeriod)
		defer tick.Stop()
		set := mostBytes
		for {
			select {
			case <-done:
				debug.SetMemoryLimit(mostBytes)
				return
			case <-tick.C:
			}
			if want := heapLimit(p.Used(), totalBytes, queryBytes, mostBytes); want-set > governStep || set-want > governStep {
				debug.SetMemoryLimit(want)
				set = want
			}
		}
	})
	return func() {
		close(done)
		ended.Wait()
	}
}

// governed makes large reservations in p collect garbage first where the runtime would hold more than mostBytes.
func (p *Pool) governed(mostBytes int64) {
	var collecting sync.Mutex
	p.room = func(n int64) {
		if held()+n <= mostBytes {
			return
		}
		collecting.Lock() // one collection serves all who wait
		defer collecting.Unlock()
		if held()+n > mostBytes {
			debug.FreeOSMemory()
		}
	}
}
