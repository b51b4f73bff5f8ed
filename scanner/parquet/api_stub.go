package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

type indexCache struct{}

// Page is a decompressed page with its header.
type Page struct{}

// Bytes is the memory the page holds.
func (p *Page) Bytes() int64 { return 0 }

// RowGroupReader reads the columns of one row group in batches.
type RowGroupReader struct{}

// OpenRowGroup prepares the columns of one row group. ranges nil = all rows; else ascending disjoint row ranges of the row
// group; pages outside are neither read nor decompressed.
func OpenRowGroup(ctx context.Context, o storage.Object, f *Footer, rg int, cols []*Projection, ranges []RowRange, opt Options) (*RowGroupReader, error) {
	return nil, fault.New(fault.Internal, "open")
}

// NextBatch advances to the next batch: n rows (at most max, contiguous), firstRow the ordinal of the first in the FILE; 0 at the end.
func (r *RowGroupReader) NextBatch(max int) (n int, firstRow int64) { return 0, 0 }

// Read decodes column col for the current batch. The vector is valid until the next NextBatch.
func (r *RowGroupReader) Read(ctx context.Context, col int) (*vector.Vector, error) { return nil, nil }

// Skip says that column col is not needed for the current batch; implied when it is not read.
func (r *RowGroupReader) Skip(ctx context.Context, col int) error { return nil }

// Close returns all buffers.
func (r *RowGroupReader) Close() {}

// Bounds gives the statistics of a leaf in a row group.
func (f *Footer) Bounds(rg, leaf int, want vector.Type) Bounds { return Bounds{} }

// PageIndex gives the page bounds of a leaf in a row group; nil when the file has no page index for it.
func PageIndex(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, want vector.Type) ([]PageBounds, error) {
	return nil, nil
}

// BloomMayContain reports whether one of values may stand in the chunk; true when there is no usable filter.
func BloomMayContain(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, values []vector.Value, want vector.Type) (bool, error) {
	return true, nil
}

// DictionaryMayContain reports whether one of values may stand in the chunk, by its dictionary; true unless every page is dictionary-encoded.
func DictionaryMayContain(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, values []vector.Value, want vector.Type, opt Options) (bool, error) {
	return true, nil
}
