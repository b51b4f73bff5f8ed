package orc

import (
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/vector"
)

// Projection tells how a wanted column is made from the file's columns. It is a tree like the wanted type.
type Projection struct {
	// Type is the wanted type.
	Type vector.Type
	// Node is the file's column. nil when the file has none: every row is Default (nil: null).
	Node    *Node
	Default vector.Value
	// Children: of a row one a wanted field; of an array the element; of a map key and value. Those of a Variant are found by name.
	Children []*Projection
}

// Bounds and row ranges have one shape for all formats, so that one pruner serves them.
type (
	// Bounds is what statistics say about the values of a stripe or row group of a column.
	Bounds = parquet.Bounds
	// RowRange is a run of rows [First, Last) of a stripe.
	RowRange = parquet.RowRange
	// GroupBounds is a row group of a stripe with its bounds.
	GroupBounds = parquet.PageBounds
)

// Options are the circumstances of a read. The zero Options work.
type Options struct {
	// Pool accounts for buffers; nil for no accounting.
	Pool *memory.Pool
	// Profile receives bytes; nil for none.
	Profile *profile.Scan
	// Deferred marks columns whose bytes are wanted only if rows survive: they are fetched, all together, when one of them is
	// first read. nil: everything is fetched with the first Read.
	Deferred []bool
	// ReadAheadBytes bounds what is fetched at once; 0 means 64 MiB. A stripe that needs more is fetched in windows.
	ReadAheadBytes int64
}
