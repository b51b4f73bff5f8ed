// Command load mixes scans and lookups of many clients on one server and judges it from outside: its memory, the time of lookups beside
// that of the same lookups alone, what it says to those it refuses, and what is left when all have gone.
//
//	go run ./integration/load --skua build/skua --lake build/lake --for 5m
//
// The server has two threads a query, four statements at once and limits.memory of 2 GB.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	lookers, scanners = 32, 32
	memoryLimit       = 2e9
	memorySlack       = 1.15
	slower            = 5 // times that lookups may take beside scans
)

var scans = []string{
	"SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice), count(*) FROM tpch.lineitem GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT a.l_suppkey, count(*) FROM tpch.lineitem a JOIN tpch.lineitem b ON a.l_partkey = b.l_partkey GROUP BY 1",
	"SELECT l_comment, count(*) FROM tpch.lineitem GROUP BY 1 ORDER BY 2 DESC",
	"SELECT l_orderkey, row_number() OVER (PARTITION BY l_suppkey ORDER BY l_extendedprice) FROM tpch.lineitem",
}

func main() {
	skua := flag.String("skua", "build/skua", "the binary")
	lake := flag.String("lake", "build/lake", "the demo lakehouse")
	length := flag.Duration("for", 30*time.Second, "how long")
	flag.Parse()
	if err := run(*skua, *lake, *length); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

type serverProcess struct {
	cmd     *exec.Cmd
	address string
	drained chan struct{}
}

func start(skua, lake string) (*serverProcess, error) {
	cmd := exec.Command(skua, "serve", "--listen", "127.0.0.1:0", "--catalog", "demo="+lake) //nolint:gosec // the binary under test
	cmd.Env = append(os.Environ(), "SKUA__LIMITS__MEMORY=2GB", "SKUA__LIMITS__WORKERS=2", "SKUA__LIMITS__CONCURRENCY__QUERIES=2",
		"SKUA__LIMITS__CONCURRENCY__QUEUE=16", "SKUA__LIMITS__CONCURRENCY__WAIT=5s", "SKUA__OBSERVABILITY__LOG__FORMAT=json", "GOMAXPROCS=2")
	log, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &serverProcess{cmd: cmd, drained: make(chan struct{})}
	lines := bufio.NewScanner(log)
	for s.address == "" && lines.Scan() {
		var entry struct{ Address string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil {
			s.address = entry.Address
		}
	}
	go func() {
		defer close(s.drained)
		for lines.Scan() {
		}
	}()
	return s, nil
}

func (s *serverProcess) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	<-s.drained
	return s.cmd.Wait()
}

// resident is the process's memory in bytes.
func (s *serverProcess) resident() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	return pages * float64(os.Getpagesize())
}

type tally struct {
	mu      sync.Mutex
	lookups []time.Duration
	scans   int
	refused map[string]int
	wrong   error
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong == nil {
		t.wrong = err
	}
}

func query(ctx context.Context, cl *flightsql.Client, sql string) (rows int64, err error) {
	info, err := cl.Execute(ctx, sql)
	if err != nil {
		return 0, err
	}
	r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	return rows, r.Err()
}

// clients runs lookups, and scans where there are any, until end.
func clients(address string, scanning int, end time.Time) *tally {
	t := &tally{refused: map[string]int{}}
	var all sync.WaitGroup
	work := func(do func(context.Context, *flightsql.Client) error) {
		all.Go(func() {
			cl, err := flightsql.NewClientCtx(context.Background(), address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.fail(err)
				return
			}
			defer func() { _ = cl.Close() }()
			for time.Now().Before(end) {
				if err := do(context.Background(), cl); err != nil {
					t.fail(err)
					return
				}
			}
		})
	}
	for range lookers {
		work(func(ctx context.Context, cl *flightsql.Client) error {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond) // as people and services ask: not all the time
			key := rand.IntN(25)
			begun := time.Now()
			n, err := query(ctx, cl, fmt.Sprintf("SELECT n_name FROM tpch.nation WHERE n_nationkey = %d", key))
			if err != nil || n != 1 {
				return fmt.Errorf("a lookup gave %d rows: %w", n, err)
			}
			t.mu.Lock()
			t.lookups = append(t.lookups, time.Since(begun))
			t.mu.Unlock()
			return nil
		})
	}
	for range scanning {
		work(func(ctx context.Context, cl *flightsql.Client) error {
			_, err := query(ctx, cl, scans[rand.IntN(len(scans))])
			t.mu.Lock()
			defer t.mu.Unlock()
			switch status.Code(err) {
			case codes.OK:
				t.scans++
			case codes.Unavailable, codes.ResourceExhausted:
				if !strings.Contains(err.Error(), "limits.") {
					return fmt.Errorf("a refusal that names no limit: %w", err)
				}
				t.refused[status.Code(err).String()]++
				t.mu.Unlock()
				time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond) // as clients do that are told to try again
				t.mu.Lock()
			default:
				return err
			}
			return nil
		})
	}
	all.Wait()
	return t
}

func (t *tally) p99() time.Duration {
	slices.Sort(t.lookups)
	if len(t.lookups) == 0 {
		return 0
	}
	return t.lookups[len(t.lookups)*99/100]
}

func run(skua, lake string, length time.Duration) error {
	s, err := start(skua, lake)
	if err != nil {
		return err
	}
	watch := make(chan struct{})
	peak := make(chan float64, 1)
	go func() {
		most := 0.0
		for {
			select {
			case <-watch:
				peak <- most
				return
			case <-time.After(100 * time.Millisecond):
				most = max(most, s.resident())
			}
		}
	}()
	warm := clients(s.address, 0, time.Now().Add(3*time.Second))
	idle := clients(s.address, 0, time.Now().Add(length/5))
	busy := clients(s.address, scanners, time.Now().Add(length))
	close(watch)
	most := <-peak
	after := clients(s.address, 0, time.Now().Add(3*time.Second))
	err = errors.Join(warm.wrong, idle.wrong, busy.wrong, after.wrong, s.stop())
	fmt.Printf("lookups alone: %d, p99 %s; beside scans: %d, p99 %s; scans: %d, refused: %v; memory at most %.0f MB of %.0f MB\n",
		len(idle.lookups), idle.p99(), len(busy.lookups), busy.p99(), busy.scans, busy.refused, most/1e6, memoryLimit/1e6)
	if most > memoryLimit*memorySlack {
		err = errors.Join(err, fmt.Errorf("the process took %.0f MB", most/1e6))
	}
	if busy.p99() > slower*idle.p99() {
		err = errors.Join(err, fmt.Errorf("lookups took %s beside scans and %s alone", busy.p99(), idle.p99()))
	}
	if busy.scans == 0 {
		err = errors.Join(err, errors.New("no scan was finished"))
	}
	return err
}
