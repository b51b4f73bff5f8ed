package scanner

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Task is a data file, or some row groups of one, with the deletes that apply to it. Any worker of the scan may open it,
// once.
type Task struct {
	// Path is the data file's path as the metadata writes it.
	Path string
	// Rows is about how many rows the task has before deletes and filters; negative when unknown.
	Rows int64
	// Bytes is about how many bytes of the file the task covers.
	Bytes int64

	file *dataFile
	// groups are the row groups to read; nil for those of the whole file that pruning leaves.
	groups []int
}

// Deletes gives the paths of the delete files that are applied to the task's data file, each once, in no order.
func (t *Task) Deletes() []string {
	a := &t.file.applied
	seen := map[string]bool{}
	if a.Vector != nil {
		seen[a.Vector.Path] = true
	}
	for _, f := range a.Positions {
		seen[f.Path] = true
	}
	apart := t.file.apart()
	for _, g := range a.Equality {
		for _, f := range g.Files {
			if f.Seq > t.file.seq && (apart == nil || !apart(f)) {
				seen[f.Path] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// dataFile is a data file of a scan with what its tasks share.
type dataFile struct {
	sc     *scan
	path   string // as the metadata writes it
	open   string // as the store takes it
	format manifest.Format
	size   int64
	// records is the entry's record_count, negative when it is not to be trusted.
	records    int64
	seq        int64
	firstRowID int64
	spec       *spec
	tuple      []*vector.Vector // by field of the spec
	row        int              // in tuple
	stats      *manifest.Manifest
	applied    deletes.Applied
	// other is the file in another snapshot, whose live rows are not asked for; nil: no row is live there (see changed).
	other *dataFile
	key   []byte // key metadata of an encrypted file

	mu     sync.Mutex
	footer *footer    // of a Parquet file
	orc    *orcFooter // of an ORC file
	// dead are the positions that are deleted, valid when deadKnown; nil for none.
	dead      *deletes.Bitmap
	deadKnown bool
	keys      []keySet
	keysKnown bool
}

// name says which file an error is about.
func (f *dataFile) name() string { return "data file " + f.path }

// object opens the file and holds its length against the manifest's.
func (f *dataFile) object(ctx context.Context) (storage.Object, error) {
	if f.format == manifest.Parquet && f.key == nil {
		return f.sc.parquetObject(ctx, f.open, f.size)
	}
	if f.format == manifest.Parquet || f.key == nil {
		return f.sc.object(ctx, f.open, f.size) // Parquet has an encryption of its own
	}
	return f.sc.decrypted(ctx, f.open, f.size, f.key)
}

// mostOverstated bounds by how much a manifest may overstate a Parquet file's length, in bytes: writers that count before they
// compress exist. Such a file tells its own extent at its end, which truncation would have cut off, and loadFooter
// holds its rows against the manifest's.
const mostOverstated = 1 << 40

func (sc *scan) parquetObject(ctx context.Context, path string, size int64) (storage.Object, error) {
	o, err := sc.r.Table.Store.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	if have := o.Size(); have > size || size-have > mostOverstated {
		_ = o.Close()
		return nil, wrongLength(have, size)
	}
	return o, nil
}

func wrongLength(have, want int64) error {
	return fault.New(fault.Corrupt, "it has %d bytes, but the manifest says %d", have, want)
}

func (sc *scan) object(ctx context.Context, path string, size int64) (storage.Object, error) {
	if size < 0 {
		return nil, fault.New(fault.Corrupt, "its length in the manifest is negative, %d", size)
	}
	o, err := sc.r.Table.Store.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	if o.Size() != size {
		_ = o.Close()
		return nil, wrongLength(o.Size(), size)
	}
	return o, nil
}

// counted reports whether all that is asked of the file can be told from its record count and its positions.
func (f *dataFile) counted() bool {
	if f.sc.s.opt.Without.Counts || f.records < 0 || f.sc.physical || f.other != nil || len(f.sc.steps) > 0 || len(f.applied.Equality) > 0 || len(f.sc.r.Runtime) > 0 {
		return false
	}
	for _, m := range f.sc.metas {
		if m == idRowID && f.firstRowID >= 0 || m == idLastSeq && f.firstRowID >= 0 {
			return false // files may hold these
		}
	}
	return true
}
