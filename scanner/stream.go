package scanner

import (
	"context"
	"sync"
	"time"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/prune"
	"github.com/skua-db/skua/vector"
)

// stream plans as its tasks are asked for: a worker that finds no task ready takes the next manifest and plans it, so
// planning runs on as many workers as wait. Manifests that are not cached are read some way ahead (see ahead).
type stream struct {
	sc *scan

	mu       sync.Mutex
	changed  chan struct{} // closed at every change that waiters may want to see
	started  bool          // somebody prepares
	ready    bool          // manifests is set
	manifest []manifest.File
	next     int
	busy     int // workers that plan or split now
	queue    []*Task
	head     int
	rows     int64 // of tasks without deletes handed out, for the limit
	err      error
	closed   bool
	ahead    ahead
}

func newStream(sc *scan) *stream {
	s := &stream{sc: sc, changed: make(chan struct{})}
	s.ahead.ctx, s.ahead.cancel = context.WithCancel(context.Background())
	return s
}

// wake tells waiters to look again; mu is held.
func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) fail(err error) error {
	if s.err == nil {
		s.err = fault.Wrap(fault.Internal, err, "table %s", s.sc.r.Table.FullName())
	}
	s.wake()
	return s.err
}

// Next implements TaskStream.
func (s *stream) Next(ctx context.Context) (*Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return nil, nil
		case s.err != nil:
			return nil, s.err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !s.started:
			s.started = true
			if err := s.prepare(ctx); err != nil {
				return nil, err
			}
		case s.head < len(s.queue):
			t := s.queue[s.head]
			s.queue[s.head] = nil
			s.head++
			t, err := s.split(ctx, t)
			if t != nil || err != nil {
				return t, err
			}
		case s.ready && s.next < len(s.manifest):
			if l := s.sc.r.Limit; l >= 0 && s.rows >= l && len(s.sc.steps) == 0 && len(s.sc.r.Runtime) == 0 {
				s.next = len(s.manifest)
				continue
			}
			if err := s.plan(ctx); err != nil {
				return nil, err
			}
		case s.ready && s.busy == 0:
			return nil, nil
		default:
			c := s.changed
			s.mu.Unlock()
			select {
			case <-c:
			case <-ctx.Done():
			}
			s.mu.Lock()
		}
	}
}

// Close implements TaskStream.
func (s *stream) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		s.queue = nil
		s.wake()
	}
	s.mu.Unlock()
	s.ahead.cancel()
	s.ahead.running.Wait()
	s.sc.close()
}

func (s *stream) prepare(ctx context.Context) error {
	s.mu.Unlock()
	start := time.Now()
	list, err := s.sc.prepare(ctx)
	s.sc.r.Profile.MetadataNanos.Add(int64(time.Since(start)))
	s.mu.Lock()
	if err != nil {
		return s.fail(err)
	}
	s.manifest, s.ready = list, true
	s.queue = s.sc.loneTasks()
	s.wake()
	return nil
}

// plan turns the next manifest into tasks.
func (s *stream) plan(ctx context.Context) error {
	m := &s.manifest[s.next]
	s.next++
	s.busy++
	s.readAhead()
	s.mu.Unlock()
	start := time.Now()
	tasks, err := s.sc.planManifest(ctx, m)
	s.sc.r.Profile.MetadataNanos.Add(int64(time.Since(start)))
	s.mu.Lock()
	s.busy--
	if err != nil {
		return s.fail(err)
	}
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	if !s.closed {
		s.queue = append(s.queue, tasks...)
	}
	s.wake()
	return nil
}

// split shares a large file's row groups out: the first task is returned, the others are queued. A nil task means that
// nothing of the file is left.
func (s *stream) split(ctx context.Context, t *Task) (*Task, error) {
	f := t.file
	if l := s.sc.r.Limit; l >= 0 && s.rows >= l && len(s.sc.steps) == 0 && len(s.sc.r.Runtime) == 0 {
		return nil, nil
	}
	if f.runtimeExcludes(nil, 0) {
		s.sc.r.Profile.Removed(profile.Removal{Level: "file", Means: "runtime filter", Predicate: "join key"}, 1)
		return nil, nil
	}
	if t.groups != nil || f.format != manifest.Parquet && f.format != manifest.ORC || f.size < s.sc.s.opt.SplitBytes || f.counted() || s.sc.r.MetadataOnly {
		s.promise(t)
		return t, nil
	}
	s.busy++
	s.mu.Unlock()
	parts, err := s.sc.shares(ctx, t)
	s.mu.Lock()
	s.busy--
	if err != nil {
		return nil, s.fail(fault.Wrap(fault.Corrupt, err, "%s", f.name()))
	}
	if len(parts) > 1 && !s.closed {
		s.queue = append(s.queue, parts[1:]...)
	}
	s.wake()
	if len(parts) == 0 {
		return nil, nil
	}
	s.promise(parts[0])
	return parts[0], nil
}

// promise counts the rows of a task that is handed out towards the limit; mu is held.
func (s *stream) promise(t *Task) {
	if t.file.applied.None() && t.file.other == nil && t.Rows > 0 {
		s.rows += t.Rows
	}
}

// planManifest lists the tasks of a data manifest that the filter leaves.
func (sc *scan) planManifest(ctx context.Context, f *manifest.File) ([]*Task, error) {
	if sc.change != nil {
		if err := sc.change.ready(ctx); err != nil || sc.change.skip(f) {
			return nil, err
		}
	}
	m, err := sc.manifest(ctx, f)
	if err != nil {
		return nil, err
	}
	sp, err := sc.specOf(f, m)
	if err != nil {
		return nil, err
	}
	p := planner{sc: sc, list: f, m: m, spec: sp, tuple: sc.partitionColumns(m, sp), src: sc.newDomains()}
	for _, c := range sc.filter.Columns() {
		p.stats = append(p.stats, m.Column(c.ID))
	}
	var out []*Task
	considered, kept := int64(0), int64(0)
	for i := range m.N {
		if m.Status[i] == manifest.Deleted {
			continue
		}
		if m.Content[i] != manifest.DataFile {
			return nil, fault.New(fault.Corrupt, "manifest %s: entry %d (%s) is a delete file in a data manifest", f.Path, i, m.FilePath(i))
		}
		considered++
		if !p.keep(i) {
			continue
		}
		t, err := p.task(i)
		if err != nil {
			return nil, err
		}
		if sc.change != nil {
			if has, err := sc.change.narrow(t, f, tupleKey(m, p.tuple, i)); err != nil || !has {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		kept++
		out = append(out, t)
	}
	sc.r.Profile.Files.Add(considered, kept)
	return out, nil
}

// planner plans one manifest.
type planner struct {
	sc    *scan
	list  *manifest.File
	m     *manifest.Manifest
	spec  *spec
	tuple []*vector.Vector
	src   *domains
	stats []*manifest.Stats // by column of the filter
}

func (sc *scan) removed(level, means string, conjunct int, n int64) {
	sc.r.Profile.Removed(profile.Removal{Level: level, Means: means, Predicate: sc.filter.Text(conjunct)}, n)
}

// keep prunes entry i by its partition tuple, then by its statistics.
func (p *planner) keep(i int) bool {
	sc := p.sc
	if p.m.Records.At(i) == 0 && !sc.s.opt.Without.Counts || !p.boxesKeep(i) {
		return false
	}
	if sc.filter.Useless() {
		return true
	}
	p.src.reset()
	if !p.spec.prune.Useless() && !sc.s.opt.Without.Partitions {
		p.spec.prune.Tuple(p.src.domains, func(k int) (*vector.Vector, int) { return p.tuple[k], i })
		if c := sc.filter.Excludes(p.src); c >= 0 {
			sc.removed("file", "partition", c, 1)
			return false
		}
	}
	if sc.s.opt.Without.Bounds {
		return true
	}
	known := false
	for c, st := range p.stats {
		if st != nil {
			known = true
			limit(&p.src.domains[c], &sc.filter.Columns()[c], st, i)
		}
	}
	if !known {
		return true
	}
	if c := sc.filter.Excludes(p.src); c >= 0 {
		sc.removed("file", "bounds", c, 1)
		return false
	}
	return true
}

// limit narrows a column's domain to the statistics of entry i.
func limit(d *prune.Domain, c *prune.Column, st *manifest.Stats, i int) {
	if b, ok := st.Lower.At(i); ok {
		d.Lower(c.Type, b)
	}
	if b, ok := st.Upper.At(i); ok {
		d.Upper(c.Type, b)
	}
	nulls := d.MayBeNull()
	d.Counts(st.Nulls.At(i), st.Values.At(i), st.NaNs.At(i))
	if len(c.Path) > 0 && nulls { // writers differ in counting rows whose parent is null
		d.AllowNull()
	}
}

// task makes the task of entry i.
func (p *planner) task(i int) (*Task, error) {
	sc, m := p.sc, p.m
	seq, err := m.Seq(i, p.list)
	if err != nil {
		return nil, err
	}
	f := &dataFile{sc: sc, path: m.FilePath(i), format: m.Formats[i], size: m.Sizes.At(i), records: m.Records.At(i), seq: seq,
		firstRowID: m.FirstRowID(i, p.list), spec: p.spec, tuple: p.tuple, row: i, stats: m}
	f.open = sc.mapPath(f.path)
	if key, ok := m.KeyMetadata.At(i); ok {
		f.key = key
	}
	if sc.index.Len() > 0 {
		f.applied, err = sc.index.For(deletes.DataFile{Path: f.open, Seq: seq, SpecID: p.spec.ID(), Partition: tupleKey(m, p.tuple, i), Apart: f.apart()})
		if err != nil {
			return nil, err
		}
	}
	return &Task{Path: f.path, Rows: f.records, Bytes: f.size, file: f}, nil
}
