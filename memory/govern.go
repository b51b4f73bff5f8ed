package memory

import (
	"runtime/debug"
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

// heapLimit is the heap size to aim at.
func heapLimit(used, total, query, most int64) int64 {
	return min(used+max(minSlack, min((total-used)/slackShare, query/queryShare)), most)
}

// Govern keeps the runtime's soft memory limit near what is reserved in p, the root pool of totalBytes of which a query may have queryBytes,
// and never above mostBytes. The returned function ends it and leaves the limit at mostBytes.
func Govern(p *Pool, totalBytes, queryBytes, mostBytes int64) (stop func()) {
	debug.SetMemoryLimit(mostBytes)
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
