package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/server"
)

// stressTime is how long clients come and go in TestClientsComeAndGo.
const stressTime = 3 * time.Second

// TestClientsComeAndGo runs different queries at once while other clients leave, cancel, stop reading and send nonsense. Those that stay get
// their right rows, and nothing is left when all are gone.
func TestClientsComeAndGo(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	steady := []struct {
		sql  string
		rows int64
	}{
		{"SELECT * FROM tpch.nation", 25}, {"SELECT r_name, count(*) FROM tpch.nation JOIN tpch.region ON n_regionkey = r_regionkey GROUP BY 1", 5},
		{"SELECT n_name, row_number() OVER (ORDER BY n_name) FROM tpch.nation ORDER BY 1 DESC LIMIT 7", 7}, {"SHOW TABLES FROM tpch", 8},
		{"SELECT l_returnflag, count(DISTINCT l_suppkey) FROM tpch.lineitem GROUP BY 1", 3}, {`SELECT * FROM tpch."nation$snapshots"`, 1},
	}
	end := time.Now().Add(stressTime)
	var wg sync.WaitGroup
	var answered atomic.Int64
	for i := range 4 {
		wg.Go(func() {
			cl := connect(t, st)
			for k := i; time.Now().Before(end); k++ {
				q := steady[k%len(steady)]
				n, err := count(context.Background(), cl, q.sql)
				if err != nil || n != q.rows {
					t.Errorf("%s: %d rows, %v", q.sql, n, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			for time.Now().Before(end) {
				if err := leave(st, t, rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, answered.Load())
	settled(t, st)
}

// leave begins an endless answer and ends it in one of several bad ways.
func leave(st *stack, t *testing.T, rng *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(150))*time.Millisecond)
	defer cancel()
	cl := connect(t, st)
	defer func() { _ = cl.Close() }()
	info, err := cl.Execute(ctx, endless)
	if err != nil {
		return asExpected(err)
	}
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return asExpected(err)
	}
	defer r.Release()
	for range rng.IntN(5) {
		if !r.Next() {
			break
		}
	}
	switch rng.IntN(4) {
	case 0: // cancels in words and reads on
		if _, err := cl.CancelFlightInfo(ctx, &flight.CancelFlightInfoRequest{Info: info}); err != nil {
			return asExpected(err)
		}
		for r.Next() { //nolint:revive // until the end that was asked for
		}
	case 1: // stops reading
		<-ctx.Done()
	case 2: // closes the connection under the stream
		_ = cl.Close()
	}
	return nil
}

func asExpected(err error) error {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		return nil
	}
	return fmt.Errorf("a client that leaves: %w", err)
}
