// Package server is Flight SQL at the edge: it knows who calls, turns commands into plans and results into streams of
// Arrow batches, and errors into gRPC codes.
//
// It knows no file format and evaluates nothing. All state that a client depends on lies in sealed handles, so that any
// server with the same keys answers them; sessions and running queries are kept for convenience only. A Server is safe
// for concurrent use.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/keepalive"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// Options is all a server needs. Zero values of limits mean the defaults named.
type Options struct {
	Catalogs []catalog.Catalog
	// DefaultCatalog and DefaultSchema are where a session begins; empty: the first catalog, no schema.
	DefaultCatalog, DefaultSchema string

	Scanner *scanner.Scanner
	Pool    *memory.Pool
	// Budget is of the caches; nil keeps nothing.
	Budget  *cache.Budget
	Workers int // threads a query may use; default GOMAXPROCS
	// ChunkRows is the greatest number of rows that operators hand on at once; 0 is the most there is.
	ChunkRows int
	// QueryMemory limits one query in bytes; 0 leaves it to Pool.
	QueryMemory int64
	// Concurrency is how many statements run at once, 0 any number; the others wait for QueueTime, 0 for ever.
	Concurrency int
	QueueTime   time.Duration
	// PrincipalConcurrency is how many of them one principal may run, Queue and PrincipalQueue how many may wait, Lookups how many
	// statements may run that need not wait (see gate); 0 is any number.
	PrincipalConcurrency, Queue, PrincipalQueue, Lookups int
	// QueryTime ends a statement after so long; 0 never.
	QueryTime time.Duration
	Results   ResultLimits
	// Connections is how many there may be, 0 any number; ConnectionAge and ConnectionIdle are after how long a client is asked to
	// make a new one, 0 never.
	Connections                   int
	ConnectionAge, ConnectionIdle time.Duration
	Drain                         Drain
	// Spill is where queries put what memory does not hold; nil is the system's directory for temporary files.
	Spill *spill.Disk

	// Files opens the lone files that statements name; nil, as for every server with a port, refuses them.
	Files plan.Files

	Auth *Authenticator
	// Policy tells when the access policy in front of Catalogs changes; nil when there is none.
	Policy interface{ Version() uint64 }
	Sealer *seal.Sealer
	TLS    *tls.Config // nil: plaintext
	// HandleLife is how long handles and tickets stay valid; default 24 h.
	HandleLife time.Duration
	Version    string
	Log        *zap.Logger
	// Audit has a line of every command and of every caller that is not let in; nil for none.
	Audit      *zap.Logger
	Statements StatementLog
}

// Server answers Flight SQL.
type Server struct {
	flight.BaseFlightServer
	gate     *gate
	opt      Options
	catalogs map[string]catalog.Catalog
	names    []string
	sessions *sessions
	running  *running
	planned  *plans
	bound    *lru.Cache[string, []byte] // by principal and handle id: see lastBound
	schemas  *cache.Cache[schemaKey, []byte]
	sqlInfo  map[uint32]any
	grpc     *grpc.Server
	steps    []step
	health   *health.Server
	stop     context.CancelCauseFunc
	ctx      context.Context // ends when what runs is cut off
	drain    context.CancelFunc
	draining context.Context // ends when the server begins to stop
	open     atomic.Int64    // connections
	started  sync.WaitGroup
	sending  sync.WaitGroup // see untilEnd
}

const (
	maxReceiveBytes   = 16 << 20
	maxHeaderBytes    = 64 << 10
	maxStreams        = 1000
	boundHandles      = 1024
	defaultHandleLife = 24 * time.Hour
	keepaliveMinTime  = 10 * time.Second
	keepaliveEvery    = 30 * time.Second
	keepaliveTimeout  = 20 * time.Second
	handshakeTimeout  = 20 * time.Second
	readBufferBytes   = 16 << 10 // of each connection, idle ones too
)

// New makes a server. It fails with fault.Invalid when the options contradict each other.
func New(opt Options) (*Server, error) {
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.ChunkRows <= 0 || opt.ChunkRows > vector.Size {
		opt.ChunkRows = vector.Size
	}
	if opt.HandleLife <= 0 {
		opt.HandleLife = defaultHandleLife
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	s := &Server{opt: opt, catalogs: map[string]catalog.Catalog{}, sessions: newSessions(), running: newRunning()}
	s.gate = &gate{max: opt.Concurrency, each: opt.PrincipalConcurrency, queued: opt.Queue, eachWaits: opt.PrincipalQueue, lookups: opt.Lookups,
		wait: opt.QueueTime}
	if opt.Pool != nil {
		s.gate.queries, s.gate.total = opt.Pool.Child("queries", 0), opt.Pool.Limit()
	}
	for _, c := range opt.Catalogs {
		s.catalogs[c.Name()] = c
		s.names = append(s.names, c.Name())
	}
	if s.opt.DefaultCatalog == "" && len(s.names) > 0 {
		s.opt.DefaultCatalog = s.names[0]
	}
	var err error
	if s.planned, err = newPlans(); err != nil {
		return nil, err
	}
	if s.bound, err = lru.New[string, []byte](boundHandles); err != nil {
		return nil, err
	}
	s.sqlInfo = sqlInfo(opt.Version)
	if opt.Budget != nil {
		s.schemas = cache.New[schemaKey, []byte](opt.Budget, "schemas of tables")
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.steps = steps()
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveEvery, Timeout: keepaliveTimeout,
			MaxConnectionAge: opt.ConnectionAge, MaxConnectionIdle: opt.ConnectionIdle}),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ReadBufferSize(readBufferBytes),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	}
	if opt.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(opt.TLS)))
	}
	s.grpc = grpc.NewServer(options...)
	flight.RegisterFlightServiceServer(s.grpc, s)
	s.registerHealth()
	return s, nil
}

// visible are the catalogs that are there for the caller of a context.
type visible struct {
	ctx context.Context
	s   *Server
}

// Names implements plan.Catalogs.
func (v visible) Names() []string {
	names := make([]string, 0, len(v.s.names))
	for _, n := range v.s.names {
		if catalog.Visible(v.ctx, v.s.catalogs[n]) {
			names = append(names, n)
		}
	}
	return names
}

// Catalog implements plan.Catalogs.
func (v visible) Catalog(name string) (catalog.Catalog, bool) {
	c, ok := v.s.catalogs[name]
	if !ok || !catalog.Visible(v.ctx, c) {
		return nil, false
	}
	return c, true
}

// Serve answers connections on l until Stop. It returns nil after a Stop.
func (s *Server) Serve(l net.Listener) error {
	s.started.Add(1)
	defer s.started.Done()
	err := s.grpc.Serve(s.told(l))
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}
