package exec

import (
	"context"
	"sync"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

func (r *run) scan(x *plan.Scan, op *profile.Operator) (*stream, error) {
	if r.q.Scanner == nil {
		return nil, fault.New(fault.Internal, "a scan without a scanner")
	}
	rec := &profile.Scan{SnapshotID: x.Snapshot.ID}
	if x.Table != nil {
		rec.Table = x.Table.Catalog + "." + x.Table.Namespace.String() + "." + x.Table.Name
		op.Detail = rec.Table
	}
	op.Scan = rec
	r.q.Profile.AddScan(rec)
	src := &scanSource{r: r, rec: rec, pool: r.q.Pool.Overdraw("scan "+rec.Table, overdraft(r.q.Pool.Limit()))}
	src.req = scanner.Request{Table: x.Table, Snapshot: x.Snapshot, Change: x.Change, Variants: x.Variants, Projection: x.Projection, Output: x.Output, Filter: x.Filter,
		Context: r.q.Context, Limit: x.Limit, Profile: rec}
	for _, f := range x.RuntimeFilters {
		if jf := r.filters[f.ID]; jf != nil {
			src.req.Runtime = append(src.req.Runtime, &scanFilter{joinFilter: jf, column: f.Column})
		}
	}
	r.atEnd(src.stop)
	s := &stream{branches: []branch{{src: &countedSource{op, src}}}, types: typesOf(x.Cols)}
	if x.Limit >= 0 {
		r.cut(s, &profile.Operator{}, x.Limit, 0)
	}
	return s, nil
}

// overdraft is how many bytes scans may take beyond a query's limit: operators that have filled it spill when they get their next rows, which
// scans must first read.
func overdraft(limit int64) int64 { return min(max(limit/8, 16<<20), 32<<20) }

// scanSource shares one stream of tasks among the workers.
type scanSource struct {
	r    *run
	req  scanner.Request
	rec  *profile.Scan
	pool *memory.Pool

	once  sync.Once
	tasks scanner.TaskStream
	err   error
}

func (s *scanSource) open(ctx context.Context) (reader, error) {
	s.once.Do(func() { s.tasks, s.err = s.r.q.Scanner.Plan(ctx, &s.req) })
	return &scanReader{s: s}, s.err
}

func (s *scanSource) stop() {
	if s.tasks != nil {
		s.tasks.Close()
	}
}

type scanReader struct {
	s   *scanSource
	cur scanner.ChunkReader
}

func (s *scanReader) next(ctx context.Context) (*vector.Chunk, error) {
	for {
		if s.cur == nil {
			t, err := s.s.tasks.Next(ctx)
			if t == nil || err != nil {
				return nil, err
			}
			if s.cur, err = s.s.r.q.Scanner.Open(ctx, t, s.s.pool); err != nil {
				s.cur = nil
				return nil, err
			}
		}
		c, err := s.cur.Next(ctx)
		if err != nil {
			return nil, err
		}
		if c != nil {
			return c, nil
		}
		if err := s.close(); err != nil {
			return nil, err
		}
	}
}

func (s *scanReader) close() error {
	if s.cur == nil {
		return nil
	}
	c := s.cur
	s.cur = nil
	return c.Close()
}

// scanFilter gives a join's filter to a scan under the scan's column number.
type scanFilter struct {
	*joinFilter
	column int
}

func (f *scanFilter) Column() int { return f.column }

var _ scanner.RuntimeFilter = (*scanFilter)(nil)
