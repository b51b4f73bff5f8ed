package server_test

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/server"
)

// balancer hands TCP connections to nodes in turn, as one before a fleet does; it knows nothing of what they carry.
type balancer struct {
	l     net.Listener
	all   sync.WaitGroup
	mu    sync.Mutex
	nodes []string
	turn  int
	open  map[net.Conn]string // by node
}

func balance(t *testing.T, nodes ...string) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{l: l, nodes: nodes, open: map[net.Conn]string{}}
	b.all.Go(b.accept)
	t.Cleanup(func() {
		_ = l.Close()
		b.mu.Lock()
		for c := range b.open {
			_ = c.Close()
		}
		b.mu.Unlock()
		b.all.Wait()
	})
	return b
}

func (b *balancer) accept() {
	for {
		c, err := b.l.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		node := b.nodes[b.turn%len(b.nodes)]
		b.turn++
		b.mu.Unlock()
		up, err := net.Dial("tcp", node)
		if err != nil {
			_ = c.Close()
			continue
		}
		b.mu.Lock()
		b.open[c], b.open[up] = node, node
		b.mu.Unlock()
		for _, pair := range [][2]net.Conn{{c, up}, {up, c}} {
			b.all.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.open, pair[0])
				delete(b.open, pair[1])
			})
		}
	}
}

// kill takes a node away: its connections break, and nobody is sent there any more.
func (b *balancer) kill(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var left []string
	for _, n := range b.nodes {
		if n != node {
			left = append(left, n)
		}
	}
	b.nodes = left
	for c, n := range b.open {
		if n == node {
			_ = c.Close()
		}
	}
}

func keyRows(v ...int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(v, nil)
	return b.NewRecordBatch()
}

// TestTwoNodesBehindABalancer prepares on one node, binds on the other, fetches from either, and loses one in the middle of a stream: the
// same ticket, asked for again, gives all rows. Logins are good on both, since the nodes share their keys.
func TestTwoNodesBehindABalancer(t *testing.T) {
	dir := lake(t)
	keys := func() *seal.Sealer {
		s, err := seal.New(seal.Key{ID: "k1", Secret: []byte("a secret that the nodes share")})
		require.NoError(t, err)
		return s
	}
	auth := server.AuthOptions{Tokens: map[string]string{"a token that is long enough": "etl"}}
	one, two := startOn(t, dir, auth, keys()), startOn(t, dir, auth, keys())
	b := balance(t, one.address, two.address)
	// Each client has one connection, so the first is at node one, the second at node two, and so on.
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer a token that is long enough")
	first, second := dial(t, b.l.Addr().String(), insecure.NewCredentials()), dial(t, b.l.Addr().String(), insecure.NewCredentials())
	prepared, err := first.Prepare(ctx, "SELECT n_name FROM tpch.nation WHERE n_nationkey = ?")
	require.NoError(t, err)
	bound := flightsql.NewPreparedStatement(second, prepared.Handle())
	bound.SetParameters(keyRows(0, 2, 24))
	require.NoError(t, bound.ExecutePut(ctx))
	for _, cl := range []*flightsql.Client{first, second} {
		info, err := flightsql.NewPreparedStatement(cl, bound.Handle()).Execute(ctx)
		require.NoError(t, err)
		for _, other := range []*flightsql.Client{first, second} {
			n, err := drain(ctx, other, info.Endpoint[0].Ticket)
			require.NoError(t, err)
			require.EqualValues(t, 3, n)
		}
	}
	require.NoError(t, prepared.Close(ctx))
	require.NoError(t, bound.Close(ctx))

	info, err := first.Execute(ctx, "SELECT a.l_comment, b.l_comment FROM tpch.lineitem a, (SELECT * FROM tpch.lineitem LIMIT 100) b")
	require.NoError(t, err)
	ticket := info.Endpoint[0].Ticket
	want, err := drain(ctx, second, ticket)
	require.NoError(t, err)
	r, err := first.DoGet(ctx, ticket)
	require.NoError(t, err)
	require.True(t, r.Next())
	rows := r.RecordBatch().NumRows()
	b.kill(one.address)
	one.server.Close()
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.Equal(t, codes.Unavailable, status.Code(r.Err()), "a broken stream is one to be tried again: %v", r.Err())
	r.Release()
	require.Less(t, rows, want, "it was in the middle")
	again, err := drain(ctx, first, ticket)
	if status.Code(err) == codes.Unavailable { // the client had not noticed yet that its connection is gone
		again, err = drain(ctx, first, ticket)
	}
	require.NoError(t, err, "the same client, the same ticket, the other node")
	require.Equal(t, want, again)
}
