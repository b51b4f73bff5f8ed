package scanner

import (
	"context"

	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// openParquet makes the source of a Parquet task.
func (r *reader) openParquet(ctx context.Context) error {
	f := r.f
	ft, err := f.loadFooter(ctx)
	if err != nil {
		return err
	}
	if err := r.project(ft.tree); err != nil {
		return err
	}
	groups := r.task.groups
	if groups == nil {
		if groups, err = f.keepGroups(ctx, ft); err != nil {
			return err
		}
	}
	s := r.grouped(groups)
	if s.o, err = f.object(ctx); err != nil {
		return err
	}
	opt := f.options(r.pool)
	if len(r.sc.steps) > 0 {
		opt.Deferred = r.deferred()
	}
	columns := make([]*parquet.Projection, len(r.columns))
	for i, c := range r.columns {
		columns[i] = c.parquet()
	}
	s.narrow = func(ctx context.Context, g int) ([]parquet.RowRange, error) {
		return f.pageRanges(ctx, s.o, ft, g, r.pool)
	}
	s.open = func(ctx context.Context, g int, ranges []parquet.RowRange) (groupReader, error) {
		opt := opt
		if f.sc.lookup && rowsIn(ranges, ft.RowGroups[g].NumRows) <= mostCachedRows {
			if ranges != nil {
				if err := ft.LearnOffsets(ctx, s.o, g, columns, r.pool); err != nil {
					return nil, err
				}
			}
			opt.PageCache = filePages{f.sc.s.caches.pages, f.sc.key(f.open, f.size, f.key)}
		}
		return parquet.OpenRowGroup(ctx, s.o, ft.Footer, g, columns, ranges, opt)
	}
	return nil
}

// deferred marks the columns that are read only for batches with survivors of the filter.
func (r *reader) deferred() []bool {
	if r.sc.s.opt.Without.LateMaterialization {
		return nil
	}
	out := make([]bool, len(r.columns))
	for i := range out {
		out[i] = true
	}
	for _, s := range r.sc.steps {
		for _, c := range s.cols {
			if r.slots[c] >= 0 {
				out[r.slots[c]] = false
			}
		}
	}
	for _, cols := range r.keyCols {
		for _, c := range cols {
			out[c] = false
		}
	}
	return out
}

// groupReader reads the wanted columns of one group of rows, batch by batch.
type groupReader interface {
	NextBatch(limit int) (n int, first int64)
	// Read decodes a column of the current batch; valid until the next one.
	Read(ctx context.Context, col int) (*vector.Vector, error)
	Close()
}

// groupedSource reads the groups of a Parquet or ORC file one after the other.
type groupedSource struct {
	o       storage.Object
	groups  []int
	narrow  func(ctx context.Context, g int) ([]parquet.RowRange, error) // the rows of a group that may match; nil for all
	open    func(ctx context.Context, g int, ranges []parquet.RowRange) (groupReader, error)
	group   groupReader
	vectors []*vector.Vector // of the current batch, nil where not read
}

// grouped makes r's source, whose object, narrow and open are to be set.
func (r *reader) grouped(groups []int) *groupedSource {
	s := &groupedSource{groups: groups, vectors: make([]*vector.Vector, len(r.columns))}
	r.src = s
	return s
}

func (s *groupedSource) next(ctx context.Context) (int, int64, error) {
	clear(s.vectors)
	for {
		if s.group == nil {
			if len(s.groups) == 0 {
				return 0, 0, nil
			}
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			g := s.groups[0]
			s.groups = s.groups[1:]
			ranges, err := s.narrow(ctx, g)
			if err != nil {
				return 0, 0, err
			}
			if ranges != nil && len(ranges) == 0 {
				continue
			}
			group, err := s.open(ctx, g, ranges)
			if err != nil {
				return 0, 0, err
			}
			s.group = group
		}
		if n, first := s.group.NextBatch(vector.Size); n > 0 {
			return n, first, ctx.Err()
		}
		s.group.Close()
		s.group = nil
	}
}

// mostCachedRows is the largest part of a row group whose pages a lookup keeps in the page cache; more is a scan.
const mostCachedRows = 256 << 10

func rowsIn(ranges []parquet.RowRange, all int64) int64 {
	if ranges == nil {
		return all
	}
	n := int64(0)
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

func (s *groupedSource) read(ctx context.Context, col int) (*vector.Vector, error) {
	if v := s.vectors[col]; v != nil {
		return v, nil
	}
	v, err := s.group.Read(ctx, col)
	s.vectors[col] = v
	return v, err
}

func (s *groupedSource) close() {
	if s.group != nil {
		s.group.Close()
		s.group = nil
	}
	if s.o != nil {
		_ = s.o.Close()
		s.o = nil
	}
}

// openAvro makes the source of an Avro data file.
func (r *reader) openAvro(ctx context.Context) error {
	o, err := r.f.object(ctx)
	if err != nil {
		return err
	}
	s := &avroSource{o: o}
	r.src = s
	f, err := avro.Open(ctx, o, "")
	if err != nil {
		return err
	}
	tree, err := r.sc.withIDs(avroTree(f.Root), r.f.path)
	if err != nil {
		return err
	}
	if err := r.project(tree); err != nil {
		return err
	}
	var cols []*avro.Projection
	for _, c := range r.columns {
		cols = append(cols, c.avro())
	}
	s.r, err = f.NewReader(cols, r.pool)
	return err
}

// avroSource reads an Avro file, all columns at once.
type avroSource struct {
	o    storage.Object
	r    *avro.Reader
	cols []*vector.Vector
}

func (s *avroSource) next(ctx context.Context) (n int, first int64, err error) {
	n, first, s.cols, err = s.r.Next(ctx, vector.Size)
	return n, first, err
}

func (s *avroSource) read(_ context.Context, col int) (*vector.Vector, error) {
	return s.cols[col], nil
}

func (s *avroSource) close() {
	if s.r != nil {
		s.r.Close()
	}
	_ = s.o.Close()
}
