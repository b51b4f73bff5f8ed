package s3

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/storage"
)

// TestConnectionsAreKept reads 13,000 small objects from 100 goroutines: the connections are no more than the client's bound, and each
// serves request after request.
func TestConnectionsAreKept(t *testing.T) {
	const objects, readers = 13_000, 100
	srv, s := start(t, nil)
	for i := range objects {
		srv.Put(fmt.Sprintf("lake/f/%d.parquet", i), []byte("x"))
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, readers)
	for g := range readers {
		wg.Go(func() {
			for errs[g] == nil {
				i := next.Add(1) - 1
				if i >= objects {
					return
				}
				_, errs[g] = readRange(s, fmt.Sprintf("s3://lake/f/%d.parquet", i), 1, storage.Range{Length: 1})
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, srv.Log(), objects)
	require.LessOrEqual(t, srv.Connections(), int64(maxConnections))
}
