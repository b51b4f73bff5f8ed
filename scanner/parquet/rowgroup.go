package parquet

import (
	"context"
	"sort"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// RowGroupReader reads the columns of one row group in batches. Columns that are not read for a batch are skipped without being
// decoded, whole pages of them without being decompressed. It belongs to one goroutine.
type RowGroupReader struct {
	file   *Footer
	group  *RowGroup
	obj    storage.Object
	opt    Options
	cols   []*column
	groups [2]fetchGroup // what is fetched at once: columns wanted for every row, and deferred ones
	which  []int         // the group of each column

	ranges []RowRange
	at     int   // index into ranges
	next   int64 // next row of the row group
	first  int64 // the current batch
	n      int
	closed bool
}

// fetchGroup is a set of leaves whose bytes are fetched together.
type fetchGroup struct {
	leaves  []*leaf
	fetched bool
}

const defaultReadAhead = 64 << 20

// OpenRowGroup prepares the columns of one row group. ranges nil means all rows; otherwise they are ascending, disjoint row ranges of
// the row group, as page pruning leaves them: pages outside are neither read nor decompressed where the file has an offset
// index. Errors are fault.Corrupt when a column cannot be read as the type wanted.
func OpenRowGroup(ctx context.Context, o storage.Object, f *Footer, rg int, cols []*Projection, ranges []RowRange, opt Options) (*RowGroupReader, error) {
	if rg < 0 || rg >= len(f.RowGroups) {
		return nil, fault.New(fault.Internal, "%s has no row group %d", inFile(f.Path), rg)
	}
	r := &RowGroupReader{file: f, group: f.RowGroups[rg], obj: o, opt: opt, ranges: ranges, which: make([]int, len(cols))}
	if ranges == nil {
		r.ranges = []RowRange{{0, r.group.NumRows}}
	}
	last := int64(0)
	for _, x := range r.ranges {
		if x.First < last || x.Last < x.First || x.Last > r.group.NumRows {
			return nil, fault.New(fault.Internal, "row range [%d, %d) of a row group of %d rows", x.First, x.Last, r.group.NumRows)
		}
		last = x.Last
	}
	if r.opt.ReadAheadBytes <= 0 {
		r.opt.ReadAheadBytes = defaultReadAhead
	}
	for i, p := range cols {
		b := builder{file: f.Path, leaves: map[*Node]*leaf{}}
		c, err := b.column(p, 0, 0)
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "%s", inFile(f.Path))
		}
		r.cols = append(r.cols, c)
		if opt.Deferred != nil && i < len(opt.Deferred) && opt.Deferred[i] {
			r.which[i] = 1
		}
		g := &r.groups[r.which[i]]
		for _, l := range b.order {
			ch := &r.group.Columns[l.node.Leaf]
			l.src = pageSource{file: f, obj: o, opt: &r.opt, chunk: ch, where: f.chunkRange(ch), rowGroup: r.group.ordinal, column: l.node.Leaf}
			l.left = ch.NumValues
			g.leaves = append(g.leaves, l)
		}
	}
	if ranges != nil {
		if err := r.planPages(ctx, rg); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// chunkRange is where a chunk's pages lie. Writers before parquet-mr 1.2.9 left the dictionary page's header out of the chunk's size
// (PARQUET-816), so their chunks are read a little further.
func (f *Footer) chunkRange(c *ColumnChunk) storage.Range {
	r := c.Range()
	if f.shortChunks {
		r.Length += min(100, f.Size-r.End())
	}
	return r
}

// NextBatch moves to the next batch: n contiguous rows, at most limit; firstRow is the ordinal of its first row within the file. n is
// 0 at the end.
func (r *RowGroupReader) NextBatch(limit int) (n int, firstRow int64) {
	for r.at < len(r.ranges) {
		x := r.ranges[r.at]
		r.next = max(r.next, x.First)
		if r.next < x.Last {
			r.first = r.next
			r.n = int(min(int64(limit), x.Last-r.next))
			r.next += int64(r.n)
			return r.n, r.group.FirstRow + r.first
		}
		r.at++
	}
	r.n = 0
	return 0, 0
}

// Read decodes column col for the whole current batch. The vector is valid until the next NextBatch; reading a column again gives
// the same vector.
func (r *RowGroupReader) Read(ctx context.Context, col int) (*vector.Vector, error) {
	if r.n == 0 || r.closed {
		return nil, fault.New(fault.Internal, "%s: read outside a batch", inFile(r.file.Path))
	}
	c := r.cols[col]
	if c.kind == constantColumn {
		return c.constant, nil
	}
	if g := &r.groups[r.which[col]]; !g.fetched {
		if err := r.fetch(ctx, g); err != nil {
			return nil, err
		}
	}
	return c.read(ctx, r.first, r.n)
}

// Skip says that column col is not needed for the current batch. A column that is not read is skipped anyway: the rows are passed
// over when it is next read, many batches at once.
func (r *RowGroupReader) Skip(context.Context, int) error { return nil }

// Close gives all buffers back. Vectors of the last batch are no longer valid.
func (r *RowGroupReader) Close() {
	if r.closed {
		return
	}
	r.closed = true
	for i := range r.groups {
		for _, l := range r.groups[i].leaves {
			l.close()
		}
	}
}

// fetch reads the bytes of a group in one request list, or sets windows when they are too many.
func (r *RowGroupReader) fetch(ctx context.Context, g *fetchGroup) error {
	g.fetched = true
	type want struct {
		storage.Range
		l   *leaf
		buf *buffer
	}
	var ws []want
	total := int64(0)
	for _, l := range g.leaves {
		for _, x := range l.src.fetchPlan() {
			ws = append(ws, want{Range: x, l: l})
			total += x.Length
		}
	}
	if total > r.opt.ReadAheadBytes {
		window := max(1<<20, r.opt.ReadAheadBytes/int64(len(g.leaves)))
		for _, l := range g.leaves {
			l.src.window = window
		}
		return nil
	}
	if len(ws) == 0 {
		return nil
	}
	sort.SliceStable(ws, func(i, j int) bool { return ws[i].Offset < ws[j].Offset })
	ranges, dst := make([]storage.Range, len(ws)), make([][]byte, len(ws))
	for i := range ws {
		buf, err := newBuffer(r.opt.Pool, int(ws[i].Length))
		if err != nil {
			for _, w := range ws[:i] {
				w.buf.release()
			}
			return err
		}
		ws[i].buf = buf
		ranges[i], dst[i] = ws[i].Range, buf.b
	}
	if err := r.obj.ReadRanges(ctx, ranges, dst); err != nil {
		for _, w := range ws {
			w.buf.release()
		}
		return fault.Wrap(fault.Internal, err, "%s", inFile(r.file.Path))
	}
	for _, w := range ws {
		w.l.src.segs = append(w.l.src.segs, segment{w.Offset, w.buf})
	}
	if r.opt.Profile != nil {
		r.opt.Profile.BytesRead.Add(total)
	}
	return nil
}
