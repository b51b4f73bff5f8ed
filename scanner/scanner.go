// Package scanner turns a snapshot, a projection and a filter into chunks of live rows: it plans the files, prunes
// manifests, files, row groups and pages, decodes, applies deletes and filters row by row.
//
// It knows no SQL text and no protocol. A TaskStream may be drained by several workers at once; a ChunkReader belongs
// to one.
package scanner

import (
	"context"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/vector"
)

// Request says what to read.
type Request struct {
	Table    *catalog.Table
	Snapshot catalog.Snapshot
	// Change narrows the scan to the rows that another snapshot lacks; nil reads all that are live.
	Change *catalog.Change
	// Variants says, by position of Projection, which parts of a variant are used: others may be left out. nil is all.
	Variants []*vector.VariantParts
	// Projection lists the columns to read, a subset (nested fields too) of Snapshot.Schema plus metadata columns by
	// reserved id, in the order of the chunks' columns.
	Projection *iceberg.Schema
	// Output is how many leading columns of Projection the chunks carry; the rest serve Filter only.
	Output int
	// Filter is applied row-exactly; its columns are positions in Projection. nil keeps every live row.
	Filter expr.Expr
	// Context carries parameters, zone and clock for Filter.
	Context *expr.Context
	// Runtime narrows the scan further while it runs.
	Runtime []RuntimeFilter
	// Limit is a hint that no more than so many rows will be wanted; negative for none.
	Limit int64
	// Profile receives the pruning funnel; never nil.
	Profile *profile.Scan
	// MetadataOnly plans and counts without opening data files (EXPLAIN).
	MetadataOnly bool
}

// RuntimeFilter is what a join's build side knows about the values that can match a column.
type RuntimeFilter interface {
	// Column is the position in Projection that is narrowed.
	Column() int
	// Ready is closed when the filter has its values; the scan does not wait for it longer than it has other work.
	Ready() <-chan struct{}
	// MayContain reports whether a value between lo and hi (either may be nil: unbounded) can match.
	MayContain(lo, hi vector.Value) bool
	// Select keeps the rows of sel (nil: 0..n-1) that can match, writing into dst.
	Select(v *vector.Vector, n int, sel, dst []uint16) []uint16
}

// TaskStream gives file tasks as planning finds them.
type TaskStream interface {
	// Next gives the next task, or nil at the end. It is safe for concurrent use; ctx cancels the wait.
	Next(ctx context.Context) (*Task, error)
	// Close stops planning and frees what it holds. It may be called at any time, more than once.
	Close()
}

// ChunkReader reads one task.
type ChunkReader interface {
	// Next gives the next chunk with at least one row that counts, or nil at the end. The chunk and its vectors are
	// valid until the next call.
	Next(ctx context.Context) (*vector.Chunk, error)
	Close() error
}
