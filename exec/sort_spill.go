package exec

import (
	"bytes"
	"container/heap"
	"context"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

// A worker whose rows do not fit sorts what it has and writes it to disk as a run. Runs are merged through a heap of their next keys;
// where there are very many, some are merged into longer ones first. Keys are not written: they follow from the rows.

const (
	// fanIn is how many runs are merged at once.
	fanIn = 64
	// runFrameBytes is about what a run being merged holds in memory.
	runFrameBytes = 64 << 10
)

type diskRun struct {
	file   *spill.File
	frames []spill.Frame
}

// toDisk writes the rows so far as a run.
func (l *sortLocal) toDisk(ctx context.Context) error {
	if l.store.N > 0 {
		if len(l.rows) == 0 {
			if err := l.order(ctx); err != nil {
				return err
			}
		}
		f, err := l.s.r.area.File()
		if err != nil {
			return err
		}
		run := diskRun{file: f}
		w := runWriter{s: l.s, run: &run}
		var g kernel.Gatherer
		ids := make([]int32, 0, vector.Size)
		cols := make([]*vector.Vector, len(l.store.Cols))
		rows := l.rows[:l.kept()]
		for lo := 0; lo < len(rows); lo += vector.Size {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			ids = ids[:0]
			for _, r := range rows[lo:min(lo+vector.Size, len(rows))] {
				ids = append(ids, r.row)
			}
			for k, v := range l.store.Cols {
				cols[k] = g.Column(k, v, ids, len(ids))
			}
			if err := w.add(cols, len(ids)); err != nil {
				return err
			}
		}
		if err := w.end(); err != nil {
			return err
		}
		l.s.mu.Lock()
		l.s.onDisk = append(l.s.onDisk, run)
		l.s.mu.Unlock()
	}
	l.store, l.arena, l.ends, l.rows = kernel.NewStore(l.s.types), nil, nil, nil
	return l.mem.set(0)
}

// runWriter writes rows in frames of about runFrameBytes.
type runWriter struct {
	s   *sortSink
	run *diskRun
	tmp *kernel.Store
}

func (w *runWriter) add(cols []*vector.Vector, n int) error {
	if w.tmp == nil {
		w.tmp = kernel.NewStore(w.s.types)
	}
	for lo := 0; lo < n; lo += 256 {
		w.tmp.Append(cols, kernel.Identity(min(lo+256, n))[lo:], n)
		if w.tmp.N+256 > vector.Size || w.tmp.Bytes() >= runFrameBytes {
			if err := w.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *runWriter) write() error {
	if w.tmp == nil || w.tmp.N == 0 {
		return nil
	}
	before := w.run.file.Bytes()
	f, err := w.run.file.Append(w.tmp)
	if err != nil {
		return err
	}
	w.s.mem.op.SpilledBytes.Add(w.run.file.Bytes() - before)
	w.run.frames = append(w.run.frames, f)
	w.tmp.Reset()
	return nil
}

func (w *runWriter) end() error {
	if err := w.write(); err != nil {
		return err
	}
	return w.run.file.Finish()
}

// narrow merges neighbouring runs until fanIn or fewer are left.
func (s *sortSink) narrow(ctx context.Context) error {
	for len(s.onDisk) > fanIn {
		var next []diskRun
		for lo := 0; lo < len(s.onDisk); lo += fanIn {
			run, err := s.mergeRuns(ctx, s.onDisk[lo:min(lo+fanIn, len(s.onDisk))])
			if err != nil {
				return err
			}
			next = append(next, run)
		}
		s.onDisk = next
	}
	return nil
}

// mergeRuns makes one run of several.
func (s *sortSink) mergeRuns(ctx context.Context, some []diskRun) (diskRun, error) {
	m, err := s.merge(some)
	if err != nil {
		return diskRun{}, err
	}
	f, err := s.r.area.File()
	if err != nil {
		return diskRun{}, err
	}
	run := diskRun{file: f}
	w := runWriter{s: s, run: &run}
	all := &sortReader{s: s, left: s.keep}
	if s.ties {
		all.left = -1
	}
	for {
		c, err := m.next(ctx, all)
		if err != nil {
			return run, err
		}
		if c == nil {
			break
		}
		if err := w.add(c.Cols, c.N); err != nil {
			return run, err
		}
	}
	for _, r := range some {
		r.file.Remove()
	}
	return run, w.end()
}

// runMerge merges runs. It is a heap of the runs that have rows left.
type runMerge struct {
	s     *sortSink
	progs []*expr.Program
	heads []*runHead
	picks []pick
	ids   []int32
	place []int32
	g     kernel.Gatherer
	out   vector.Chunk
	begun bool
}

// runHead is where a run is read.
type runHead struct {
	run   diskRun
	next  int // frame
	frame *runFrame
	pos   int
	seq   int
	rd    spill.Reader
}

// runFrame is a frame in memory with the keys of its rows.
type runFrame struct {
	cols  []*vector.Vector
	n     int
	arena []byte
	ends  []int
}

type pick struct {
	frame *runFrame
	row   int32
}

func (f *runFrame) key(i int) []byte {
	lo := 0
	if i > 0 {
		lo = f.ends[i-1]
	}
	return f.arena[lo:f.ends[i]]
}

func (s *sortSink) merge(runs []diskRun) (*runMerge, error) {
	m := &runMerge{s: s}
	for _, k := range s.keys {
		p, err := expr.Compile(k.Expr, s.ctx)
		if err != nil {
			return nil, err
		}
		m.progs = append(m.progs, p)
	}
	for i, r := range runs {
		m.heads = append(m.heads, &runHead{run: r, seq: i})
	}
	return m, nil
}

// fill reads the next frame of a run; false at its end.
func (m *runMerge) fill(h *runHead) (bool, error) {
	if h.next == len(h.run.frames) {
		return false, nil
	}
	fr := h.run.frames[h.next]
	h.next++
	cols, err := h.rd.Read(fr, m.s.types)
	if err != nil {
		return false, err
	}
	f := &runFrame{cols: cols, n: fr.Rows}
	keys, err := evalAll(m.progs, &vector.Chunk{Cols: cols, N: fr.Rows}, nil)
	if err != nil {
		return false, err
	}
	for i := range fr.Rows {
		for k, v := range keys {
			f.arena = appendSortKey(f.arena, v, i, m.s.keys[k].Desc, m.s.keys[k].NullsFirst)
		}
		f.ends = append(f.ends, len(f.arena))
	}
	h.frame, h.pos = f, 0
	return true, nil
}

// Len, Less, Swap, Push and Pop make the heap.
func (m *runMerge) Len() int { return len(m.heads) }

func (m *runMerge) Less(i, j int) bool {
	a, b := m.heads[i], m.heads[j]
	c := bytes.Compare(a.frame.key(a.pos), b.frame.key(b.pos))
	return c < 0 || c == 0 && a.seq < b.seq
}

func (m *runMerge) Swap(i, j int) { m.heads[i], m.heads[j] = m.heads[j], m.heads[i] }
func (m *runMerge) Push(any)      {}
func (m *runMerge) Pop() any {
	m.heads = m.heads[:len(m.heads)-1]
	return nil
}

// next gives a chunk of what r still wants.
func (m *runMerge) next(ctx context.Context, r *sortReader) (*vector.Chunk, error) {
	if !m.begun {
		m.begun = true
		live := m.heads[:0]
		for _, h := range m.heads {
			ok, err := m.fill(h)
			if err != nil {
				return nil, err
			}
			if ok {
				live = append(live, h)
			}
		}
		m.heads = live
		heap.Init(m)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.picks = m.picks[:0]
	for len(m.picks) < vector.Size && len(m.heads) > 0 {
		h := m.heads[0]
		key := h.frame.key(h.pos)
		if r.left == 0 {
			if !m.s.ties || !bytes.Equal(key, r.last) {
				break
			}
		} else if r.left > 0 {
			r.left--
			if r.left == 0 && m.s.ties {
				r.last = append([]byte(nil), key...)
			}
		}
		if r.skip > 0 {
			r.skip--
		} else {
			m.picks = append(m.picks, pick{h.frame, int32(h.pos)})
		}
		h.pos++
		if h.pos == h.frame.n {
			ok, err := m.fill(h)
			if err != nil {
				return nil, err
			}
			if !ok {
				m.heads[0] = m.heads[len(m.heads)-1]
				m.heads = m.heads[:len(m.heads)-1]
			}
		}
		if len(m.heads) > 0 {
			heap.Fix(m, 0)
		}
	}
	if len(m.picks) == 0 {
		return nil, nil
	}
	return m.chunk(), nil
}

// chunk gathers the picked rows, frame by frame.
func (m *runMerge) chunk() *vector.Chunk {
	n := len(m.picks)
	tmp := kernel.NewStore(m.s.types)
	if cap(m.place) < n {
		m.place = make([]int32, vector.Size)
	}
	place := m.place[:n]
	for i := range place {
		place[i] = -1
	}
	cols := make([]*vector.Vector, len(m.s.types))
	var g kernel.Gatherer
	for from := range m.picks {
		if place[from] >= 0 {
			continue
		}
		f := m.picks[from].frame
		m.ids = m.ids[:0]
		for i := from; i < n; i++ {
			if m.picks[i].frame == f {
				place[i] = int32(tmp.N + len(m.ids))
				m.ids = append(m.ids, m.picks[i].row)
			}
		}
		for k, v := range f.cols {
			cols[k] = g.Column(k, v, m.ids, len(m.ids))
		}
		tmp.Append(cols, nil, len(m.ids))
	}
	m.out = vector.Chunk{N: n, Cols: m.out.Cols[:0]}
	for k, v := range tmp.Cols {
		m.out.Cols = append(m.out.Cols, m.g.Column(k, v, place, n))
	}
	return &m.out
}
