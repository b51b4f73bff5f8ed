package orc

import (
	"context"
	"sort"

	"github.com/skua-db/skua/storage"
)

// segment is a run of bytes of a stream.
type segment struct {
	at int64 // in the stream
	b  []byte
}

// place is a stream with the number, among the positions of its column's row index, of the one that says where in it a row group
// begins.
type place struct {
	s  *stream
	at int
}

// places lists the streams of a column that the row index has positions of.
func (c *column) places() []place {
	var out []place
	at := 0
	if c.present != nil {
		s := c.present.runs.s
		out = append(out, place{s, 0})
		at = s.width() + 2
	}
	switch c.kind {
	case leafColumn:
		out = append(out, c.leaf.places(at)...)
	case listColumn:
		out = append(out, place{c.lengths.s, at})
	case unionColumn:
		out = append(out, place{c.union.tags.s, at})
	}
	return out
}

// fetch reads the streams of a group in one request list, or sets windows when they are too long.
func (r *StripeReader) fetch(ctx context.Context, g *fetchGroup) error {
	g.fetched = true
	type want struct {
		storage.Range // in the stream
		s             *stream
	}
	var ws []want
	total := int64(0)
	few := r.few()
	if few {
		var nodes []*Node
		for _, t := range g.cols {
			t.walk(func(c *column) bool {
				nodes = append(nodes, c.node)
				return true
			})
		}
		if err := r.file.readIndexes(ctx, r.in.obj, r.number, nodes...); err != nil {
			return err
		}
	}
	for _, t := range g.cols {
		var parts map[*stream][]storage.Range
		var err error
		if few {
			parts, err = r.parts(ctx, t)
		}
		if err != nil {
			return err
		}
		for _, s := range t.streams {
			ranges, ok := parts[s]
			if !ok {
				ranges = []storage.Range{{Length: s.length}}
			}
			for _, x := range ranges {
				if x.Length > 0 {
					ws = append(ws, want{x, s})
					total += x.Length
				}
			}
		}
	}
	if total > r.in.opt.ReadAheadBytes {
		window := max(1<<20, r.in.opt.ReadAheadBytes/int64(len(ws)))
		for _, w := range ws {
			w.s.window = window
		}
		return nil
	}
	if total == 0 {
		return nil
	}
	sort.SliceStable(ws, func(i, j int) bool { return ws[i].s.off+ws[i].Offset < ws[j].s.off+ws[j].Offset })
	slab, err := r.acc.buffer(int(total))
	if err != nil {
		return err
	}
	ranges, dst := make([]storage.Range, len(ws)), make([][]byte, len(ws))
	for i, w := range ws {
		ranges[i], dst[i] = storage.Range{Offset: w.s.off + w.Offset, Length: w.Length}, slab[:w.Length:w.Length]
		slab = slab[w.Length:]
	}
	if err := r.in.obj.ReadRanges(ctx, ranges, dst); err != nil {
		return err
	}
	for i, w := range ws {
		w.s.segs = append(w.s.segs, segment{w.Offset, dst[i]})
	}
	if p := r.in.opt.Profile; p != nil {
		p.BytesRead.Add(total)
	}
	return nil
}

// few reports whether the rows that are read are few enough to look for the parts of streams that hold them.
func (r *StripeReader) few() bool {
	rows := int64(0)
	for _, x := range r.ranges {
		rows += x.Len()
	}
	return r.file.Stride > 0 && rows <= r.stripe.NumRows/2
}

// parts tells which parts of a column's streams hold the row groups that are read. What a part turns out to be short of is read
// later, so this is a matter of speed only. Streams that are not in the answer are wanted whole.
func (r *StripeReader) parts(ctx context.Context, t *topColumn) (map[*stream][]storage.Range, error) {
	stride := r.file.Stride
	if t.kind == constantColumn {
		return nil, nil
	}
	if err := r.loadIndexes(ctx, t); err != nil || t.unindexed {
		return nil, err
	}
	out := map[*stream][]storage.Range{}
	t.walk(func(c *column) bool {
		groups := t.indexes[c.node.Column].groups
		for _, p := range c.places() {
			if parts, ok := p.parts(groups, r.ranges, stride); ok {
				out[p.s] = parts
				p.s.window = max(int64(p.s.block), 64<<10)
			}
		}
		return true
	})
	return out, nil
}

// parts gives the parts of a stream; false when its positions are out of order.
func (p place) parts(groups []indexEntry, ranges []RowRange, stride int64) ([]storage.Range, bool) {
	// A run may end in the chunk after the one in which the next row group begins.
	slack := int64(maxRun*8 + 64)
	if p.s.codec != None {
		slack = 2 * int64(p.s.block+chunkHeaderLen)
	}
	var out []storage.Range
	for _, x := range ranges {
		if x.Len() == 0 {
			continue
		}
		start, end := groups[x.First/stride].positions[p.at], uint64(p.s.length)
		if next := (x.Last-1)/stride + 1; next < int64(len(groups)) {
			end = min(end, groups[next].positions[p.at])
			end = min(uint64(p.s.length), end+uint64(slack))
		}
		if start > end {
			return nil, false
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			if int64(start) < last.Offset {
				return nil, false
			}
			if int64(start) <= last.End() {
				last.Length = max(last.Length, int64(end)-last.Offset)
				continue
			}
		}
		out = append(out, storage.Range{Offset: int64(start), Length: int64(end - start)})
	}
	return out, true
}
