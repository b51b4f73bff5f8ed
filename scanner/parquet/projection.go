package parquet

import (
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// Projection tells how a wanted column is made from the file's columns. It is a tree like the wanted type.
type Projection struct {
	// Type is the wanted type.
	Type vector.Type
	// Node is the file's field. nil when the file has none: every row is Default (nil: null).
	Node    *Node
	Default vector.Value
	// Children: of a row one a wanted field; of an array the element; of a map key and value. A Variant may leave them
	// out: metadata and value are found by name.
	Children []*Projection
	// Parts says what of a Variant is wanted; nil is all. Of a shredded one the columns of other fields are not read, and its
	// values lack those fields.
	Parts *vector.VariantParts
}

// RowRange is a run of rows [First, Last) of a row group.
type RowRange struct {
	First, Last int64
}

// Len is the number of rows.
func (r RowRange) Len() int64 { return r.Last - r.First }

// Options are the circumstances of a read. The zero Options work.
type Options struct {
	// CheckCRC verifies the checksum of pages that carry one.
	CheckCRC bool
	// Pool accounts for page buffers; nil for no accounting.
	Pool *memory.Pool
	// PageCache keeps decompressed pages between readers; nil for none. Give it where few pages are read often, not to a
	// scan of everything.
	PageCache PageCache
	// Profile receives bytes, requests and pages; nil for none.
	Profile *profile.Scan
	// Deferred marks columns whose bytes are wanted only if rows survive: they are fetched, all together, when one of
	// them is first read. nil: everything is fetched with the first Read.
	Deferred []bool
	// ReadAheadBytes bounds what is fetched at once; 0 means 64 MiB. A row group that needs more is fetched column by
	// column in windows.
	ReadAheadBytes int64
}

// PageKey names a page of a file.
type PageKey struct {
	Path   string
	Offset int64
}

// PageCache keeps decompressed pages. It is called from many goroutines; pages are immutable.
type PageCache interface {
	Get(k PageKey) (*Page, bool)
	Put(k PageKey, p *Page)
}

// Bounds is what statistics say about the values of a chunk or page, in the wanted type. Min and Max are outer bounds: no
// value lies outside, but they need not occur.
type Bounds struct {
	HasMin, HasMax bool
	Min, Max       vector.Value
	NullCount      int64 // -1 unknown
	NumValues      int64 // nulls included; of a page -1 when unknown
	Exact          bool  // Min and Max are values that occur
	// MayHaveNaN is true when floating-point values outside [Min, Max] can be NaN.
	MayHaveNaN bool
}

// AllNull reports that no value is present.
func (b Bounds) AllNull() bool { return b.NumValues >= 0 && b.NullCount == b.NumValues }

// PageBounds is a data page's entry in the page index.
type PageBounds struct {
	Rows RowRange // within the row group
	Bounds
}
