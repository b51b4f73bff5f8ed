package parquet

import (
	"context"
	"sync"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
	"github.com/skua-db/skua/storage"
)

// pageLocation is an entry of an offset index.
type pageLocation struct {
	offset   int64
	size     int64 // header included
	firstRow int64
}

// columnIndex holds the page statistics of a chunk.
type columnIndex struct {
	nullPages  []bool
	mins, maxs [][]byte
	nullCounts []int64 // nil when unknown
	nanCounts  []int64 // nil when unknown
}

// chunkKey names a chunk of a footer.
type chunkKey struct{ rg, leaf int }

// indexCache keeps what was read of a file's indexes, beside its footer.
type indexCache struct {
	mu      sync.Mutex
	offsets map[chunkKey][]pageLocation
	columns map[chunkKey]*columnIndex
	blooms  map[chunkKey]*bloomFilter
}

// cached looks k up in *m or loads it. Two goroutines may load the same; the first wins. size tells the bytes held.
func cached[T any](f *Footer, m *map[chunkKey]T, k chunkKey, size func(T) int64, load func() (T, error)) (T, error) {
	f.indexes.mu.Lock()
	v, ok := (*m)[k]
	f.indexes.mu.Unlock()
	if ok {
		return v, nil
	}
	v, err := load()
	if err != nil {
		return v, err
	}
	f.indexes.mu.Lock()
	defer f.indexes.mu.Unlock()
	if w, ok := (*m)[k]; ok {
		return w, nil
	}
	if *m == nil {
		*m = map[chunkKey]T{}
	}
	(*m)[k] = v
	f.indexBytes.Add(size(v))
	return v, nil
}

// readRange fetches one range.
func (f *Footer) readRange(ctx context.Context, o storage.Object, r storage.Range) ([]byte, error) {
	b := make([]byte, r.Length)
	if err := o.ReadRanges(ctx, []storage.Range{r}, [][]byte{b}); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%s", inFile(f.Path))
	}
	return b, nil
}

// maxIndexBytes is the longest page index of a chunk that is read.
const maxIndexBytes = 64 << 20

// indexFail says where an index went wrong.
func (f *Footer) indexFail(err error, what string, rg, leaf int) error {
	return fault.Wrap(fault.Corrupt, err, "%s: row group %d, column %s, %s", inFile(f.Path), rg, f.Leaves[leaf].Path(), what)
}

// offsetIndex gives where the pages of a chunk lie; nil when the file does not say.
func (f *Footer) offsetIndex(ctx context.Context, o storage.Object, rg, leaf int) ([]pageLocation, error) {
	c := &f.RowGroups[rg].Columns[leaf]
	if c.OffsetIndex.Length == 0 || c.OffsetIndex.Length > maxIndexBytes {
		f.indexes.mu.Lock()
		defer f.indexes.mu.Unlock()
		return f.indexes.offsets[chunkKey{rg, leaf}], nil // what LearnOffsets found
	}
	return cached(f, &f.indexes.offsets, chunkKey{rg, leaf}, func(p []pageLocation) int64 { return int64(len(p)) * 24 }, func() ([]pageLocation, error) {
		b, err := f.readRange(ctx, o, c.OffsetIndex)
		if err != nil {
			return nil, err
		}
		return f.openOffsetIndex(b, rg, leaf)
	})
}

func (f *Footer) openOffsetIndex(b []byte, rg, leaf int) ([]pageLocation, error) {
	b, err := f.openWhole(b, offsetIndexModule, f.RowGroups[rg].ordinal, leaf)
	if err != nil {
		return nil, f.indexFail(err, "offset index", rg, leaf)
	}
	p, err := parseOffsetIndex(b, f.RowGroups[rg].Columns[leaf].Range(), f.RowGroups[rg].NumRows)
	if err != nil {
		return nil, f.indexFail(err, "offset index", rg, leaf)
	}
	return p, nil
}

// parseOffsetIndex decodes an OffsetIndex and checks that its pages ascend, within the chunk and its rows.
func parseOffsetIndex(b []byte, chunk storage.Range, rows int64) ([]pageLocation, error) {
	var ps []pageLocation
	r := thrift.NewReader(b)
	r.Struct(func(id int16, t thrift.Type) {
		if id != 1 {
			r.Skip(t)
			return
		}
		r.Each(t, func(i, n int, t thrift.Type) {
			if i == 0 {
				ps = make([]pageLocation, 0, n)
			}
			var p pageLocation
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					p.offset = r.Int(t)
				case 2:
					p.size = r.Int(t)
				case 3:
					p.firstRow = r.Int(t)
				default:
					r.Skip(t)
				}
			})
			ps = append(ps, p)
		})
	})
	if r.Err() != nil {
		return nil, r.Err()
	}
	at, row := chunk.Offset, int64(0)
	for i, p := range ps {
		if p.size <= 0 || p.offset < at || p.size > chunk.End()-p.offset {
			return nil, fault.New(fault.Corrupt, "page %d at [%d, +%d) is out of order or outside its chunk", i, p.offset, p.size)
		}
		if i == 0 && p.firstRow != 0 || p.firstRow < row || p.firstRow > rows {
			return nil, fault.New(fault.Corrupt, "page %d begins at row %d, after %d", i, p.firstRow, row)
		}
		at, row = p.offset+p.size, p.firstRow
	}
	return ps, nil
}

// columnIndexOf gives the page statistics of a chunk; nil when the file has none.
func (f *Footer) columnIndexOf(ctx context.Context, o storage.Object, rg, leaf int) (*columnIndex, error) {
	c := &f.RowGroups[rg].Columns[leaf]
	if c.ColumnIndex.Length == 0 || c.ColumnIndex.Length > maxIndexBytes {
		return nil, nil
	}
	return cached(f, &f.indexes.columns, chunkKey{rg, leaf}, func(*columnIndex) int64 { return 2 * c.ColumnIndex.Length }, func() (*columnIndex, error) {
		b, err := f.readRange(ctx, o, c.ColumnIndex)
		if err != nil {
			return nil, err
		}
		var x *columnIndex
		if b, err = f.openWhole(b, columnIndexModule, f.RowGroups[rg].ordinal, leaf); err == nil {
			x, err = parseColumnIndex(b)
		}
		if err != nil {
			return nil, f.indexFail(err, "column index", rg, leaf)
		}
		return x, nil
	})
}

func parseColumnIndex(b []byte) (*columnIndex, error) {
	x := &columnIndex{}
	r := thrift.NewReader(b)
	ints := func(t thrift.Type) (v []int64) {
		v = []int64{}
		r.Each(t, func(_, _ int, t thrift.Type) { v = append(v, r.Int(t)) })
		return v
	}
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			r.Each(t, func(_, _ int, t thrift.Type) { x.nullPages = append(x.nullPages, r.BoolElem(t)) })
		case 2:
			r.Each(t, func(_, _ int, t thrift.Type) { x.mins = append(x.mins, notNil(r.Binary(t))) })
		case 3:
			r.Each(t, func(_, _ int, t thrift.Type) { x.maxs = append(x.maxs, notNil(r.Binary(t))) })
		case 5:
			x.nullCounts = ints(t)
		case 8:
			x.nanCounts = ints(t)
		default:
			r.Skip(t)
		}
	})
	if r.Err() != nil {
		return nil, r.Err()
	}
	n := len(x.nullPages)
	if len(x.mins) != n || len(x.maxs) != n || x.nullCounts != nil && len(x.nullCounts) != n {
		return nil, fault.New(fault.Corrupt, "%d pages, %d minima, %d maxima, %d null counts", n, len(x.mins), len(x.maxs), len(x.nullCounts))
	}
	if len(x.nanCounts) != n {
		x.nanCounts = nil
	}
	return x, nil
}

// planPages restricts each leaf to the pages that the row ranges need, where an offset index tells them. All indexes that are not
// known yet are fetched together.
func (r *RowGroupReader) planPages(ctx context.Context, rg int) error {
	var leaves []*leaf
	for i := range r.groups {
		leaves = append(leaves, r.groups[i].leaves...)
	}
	if err := r.file.prefetchOffsets(ctx, r.obj, rg, leaves); err != nil {
		return err
	}
	for _, l := range leaves {
		ps, err := r.file.offsetIndex(ctx, r.obj, rg, l.node.Leaf)
		if err != nil {
			return err
		}
		if len(ps) == 0 {
			continue
		}
		l.src.planned = true
		l.src.firstData = ps[0].offset
		at := 0
		for i, p := range ps {
			end := r.group.NumRows
			if i+1 < len(ps) {
				end = ps[i+1].firstRow
			}
			for at < len(r.ranges) && r.ranges[at].Last <= p.firstRow {
				at++
			}
			if at < len(r.ranges) && r.ranges[at].First < end && p.firstRow < end {
				l.src.plan = append(l.src.plan, plannedPage{p.offset, p.size, p.firstRow, end, i})
			}
		}
		if r.opt.Profile != nil {
			r.opt.Profile.Pages.Add(int64(len(ps)), int64(len(l.src.plan)))
		}
	}
	return nil
}

// prefetchOffsets reads the offset indexes of several leaves in one request list.
func (f *Footer) prefetchOffsets(ctx context.Context, o storage.Object, rg int, leaves []*leaf) error {
	var ranges []storage.Range
	var dst [][]byte
	var ids []int
	f.indexes.mu.Lock()
	seen := map[int]bool{}
	for _, l := range leaves {
		id := l.node.Leaf
		c := &f.RowGroups[rg].Columns[id]
		if _, ok := f.indexes.offsets[chunkKey{rg, id}]; ok || seen[id] || c.OffsetIndex.Length == 0 || c.OffsetIndex.Length > maxIndexBytes {
			continue
		}
		seen[id] = true
		ids = append(ids, id)
		ranges = append(ranges, c.OffsetIndex)
	}
	f.indexes.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	for _, x := range ranges {
		dst = append(dst, make([]byte, x.Length))
	}
	if err := o.ReadRanges(ctx, ranges, dst); err != nil {
		return fault.Wrap(fault.Internal, err, "%s", inFile(f.Path))
	}
	for i, id := range ids {
		_, err := cached(f, &f.indexes.offsets, chunkKey{rg, id}, func(p []pageLocation) int64 { return int64(len(p)) * 24 }, func() ([]pageLocation, error) {
			return f.openOffsetIndex(dst[i], rg, id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
