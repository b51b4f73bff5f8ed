package exec

import (
	"context"

	"github.com/skua-db/skua/exec/hash"
	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/vector"
)

// Rows that memory does not hold go to disk in partitions by the hash of their keys. A partition that is still too large is split again by
// other bits, up to maxDepth times.
const (
	parts    = 64
	maxDepth = 4
)

// partOf is the partition of a hash at a depth.
func partOf(h uint64, depth int) int { return int(hash.Mix(h+uint64(depth)*0x9E3779B97F4A7C15) >> 58) }

// scatter writes the rows of one worker to partitions of one file.
type scatter struct {
	r      *run
	mem    *account
	types  []vector.Type
	depth  int
	file   *spill.File
	staged [parts]*kernel.Store
	rows   [parts][]uint16
	held   int64 // of staged, as reserved
	frames [parts][]spill.Frame
}

func (r *run) scatter(mem *account, types []vector.Type, depth int) (*scatter, error) {
	f, err := r.area.File()
	return &scatter{r: r, mem: mem, types: types, depth: depth, file: f}, err
}

// stageBytes is how much is gathered before partitions are written: little where the query has little.
func (r *run) stageBytes() int64 {
	if l := r.q.Pool.Limit(); l > 0 {
		return min(max(l/64, 256<<10), 4<<20)
	}
	return 4 << 20
}

// add takes rows of cols; hashes run parallel to rows.
func (s *scatter) add(ctx context.Context, cols []*vector.Vector, rows []uint16, hashes []uint64) error {
	for p := range s.rows {
		s.rows[p] = s.rows[p][:0]
	}
	for k, i := range rows {
		p := partOf(hashes[k], s.depth)
		s.rows[p] = append(s.rows[p], i)
	}
	total := int64(0)
	for p, some := range s.rows {
		if len(some) > 0 {
			if s.staged[p] == nil {
				s.staged[p] = kernel.NewStore(s.types)
			}
			s.staged[p].Append(cols, some, 0)
		}
		if s.staged[p] != nil && s.staged[p].N > 0 {
			total += s.staged[p].Bytes()
		}
	}
	if total > s.held {
		s.mem.force(total - s.held)
		s.held = total
	}
	if total < s.r.stageBytes() {
		return nil
	}
	return s.flush(ctx)
}

func (s *scatter) flush(ctx context.Context) error {
	for p, st := range s.staged {
		if st == nil || st.N == 0 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		before := s.file.Bytes()
		f, err := s.file.Append(st)
		if err != nil {
			return err
		}
		s.mem.op.SpilledBytes.Add(s.file.Bytes() - before)
		s.frames[p] = append(s.frames[p], f)
		st.Reset()
	}
	return nil
}

// finish writes the rest; frames are readable afterwards.
func (s *scatter) finish(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	s.staged = [parts]*kernel.Store{}
	s.mem.force(-s.held)
	s.held = 0
	return s.file.Finish()
}

// frameRows gives the rows of frames, a chunk a call to f; the columns belong to f.
func frameRows(ctx context.Context, frames []spill.Frame, types []vector.Type, f func(c *vector.Chunk) error) error {
	var rd spill.Reader
	for _, fr := range frames {
		cols, err := rd.Read(fr, types)
		if err != nil {
			return err
		}
		for lo := 0; lo < fr.Rows; lo += vector.Size {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := f(sliced(cols, lo, min(lo+vector.Size, fr.Rows))); err != nil {
				return err
			}
		}
	}
	return nil
}

func sliced(cols []*vector.Vector, lo, hi int) *vector.Chunk {
	c := &vector.Chunk{N: hi - lo}
	for _, v := range cols {
		c.Cols = append(c.Cols, kernel.Slice(v, lo, hi))
	}
	return c
}
