// Package profile is the record of what one query did: phases, operators, the pruning funnel of each scan, bytes and
// waits. EXPLAIN ANALYZE, history, the console, metrics and traces all read this one record.
//
// It is not for logging and holds no values of rows. Counters are atomic, so any worker may add while another
// reads; everything else is guarded by the record's lock.
package profile

import (
	"sync"
	"sync/atomic"
	"time"
)

// Query is the record of one statement.
type Query struct {
	ID        string
	Statement string
	Start     time.Time

	mu     sync.Mutex
	phases []Phase
	root   *Operator
	scans  []*Scan
}

// Phase is a step on the road of a query: parse, bind, optimise, plan files, execute, send.
type Phase struct {
	Name string
	Took time.Duration
}

// New starts a record.
func New(id, statement string) *Query {
	return &Query{ID: id, Statement: statement, Start: time.Now()}
}

// Phase records that a phase began at start and ended now.
func (q *Query) Phase(name string, start time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.phases = append(q.phases, Phase{name, time.Since(start)})
}

// Phases lists the phases so far, in order.
func (q *Query) Phases() []Phase {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Phase(nil), q.phases...)
}

// SetRoot sets the top of the operator tree.
func (q *Query) SetRoot(o *Operator) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.root = o
}

// Root is the top of the operator tree; nil before execution.
func (q *Query) Root() *Operator {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.root
}

// AddScan registers the record of a table scan.
func (q *Query) AddScan(s *Scan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.scans = append(q.scans, s)
}

// Scans lists the scans in the order they began.
func (q *Query) Scans() []*Scan {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]*Scan(nil), q.scans...)
}

// Operator counts what one physical operator did, over all workers.
type Operator struct {
	Name, Detail string
	Children     []*Operator
	Scan         *Scan // of a scan operator

	RowsIn, RowsOut atomic.Int64
	Chunks          atomic.Int64
	Nanos           atomic.Int64 // worker time in the operator itself
	PeakBytes       atomic.Int64
	SpilledBytes    atomic.Int64
}

// Funnel counts how many of something were considered and how many were kept.
type Funnel struct {
	Considered, Kept atomic.Int64
}

// Add counts n considered and k kept.
func (f *Funnel) Add(n, k int64) {
	f.Considered.Add(n)
	f.Kept.Add(k)
}

// Scan is the pruning funnel of one table scan and what it cost.
type Scan struct {
	Table      string
	SnapshotID int64

	Manifests, DeleteManifests Funnel
	Files, DeleteFiles         Funnel
	RowGroups, Pages, Rows     Funnel
	RowsDeleted                atomic.Int64
	BytesRead, Requests        atomic.Int64
	BytesDecompressed          atomic.Int64
	CacheHits, CacheMisses     atomic.Int64
	MetadataNanos              atomic.Int64

	mu      sync.Mutex
	removed map[Removal]int64
	order   []Removal
}

// Removal says that a predicate removed things of a level ("manifest", "file", "row group", "page", "row")
// by a means ("partition", "bounds", "null count", "dictionary", "bloom filter", "filter", "runtime filter").
type Removal struct {
	Level, Means, Predicate string
}

// Removed adds n to what r removed.
func (s *Scan) Removed(r Removal, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed == nil {
		s.removed = map[Removal]int64{}
	}
	if _, ok := s.removed[r]; !ok {
		s.order = append(s.order, r)
	}
	s.removed[r] += n
}

// Removals lists what was removed, in order of first removal.
func (s *Scan) Removals() ([]Removal, []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ns := make([]int64, len(s.order))
	for i, r := range s.order {
		ns[i] = s.removed[r]
	}
	return append([]Removal(nil), s.order...), ns
}
