package scanner

import (
	"context"
	"crypto/sha256"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
)

// Options configure a Scanner.
type Options struct {
	// Budget is what the scanner's caches draw on; nil gives the scanner a budget of its own of 256 MiB.
	Budget *cache.Budget
	// Workers is how many goroutines will usually drain one TaskStream; delete manifests are read by as many.
	Workers int
	// SplitBytes is the size from which a file is shared among workers by row groups, and the least size of a share; 0
	// means 8 MiB.
	SplitBytes int64
	// SkipCRC leaves Parquet page checksums unchecked.
	SkipCRC bool
	// Without turns off what only makes scans cheaper.
	Without Without
	// FilesWithoutIDs says what to do with data files that carry no field ids in a table without a name mapping: ""
	// refuses them, "position" numbers their columns 1..n.
	FilesWithoutIDs string
}

// Without names what a scanner does without, so that a test can prove that it changes no row. The caches are turned off by a
// Budget of one byte.
type Without struct {
	// Partitions: pruning of manifests and files by partition summaries and tuples.
	Partitions bool
	// Bounds: pruning of files, row groups and stripes by statistics, bounding boxes among them.
	Bounds bool
	// Indexes: pruning of row groups by dictionaries and bloom filters.
	Indexes bool
	// RuntimeFilters that joins hand to their scans.
	RuntimeFilters bool
	// PageSkipping by Parquet's page index and ORC's row index.
	PageSkipping bool
	// LateMaterialization: all columns are then decoded whether rows survive the filter or not.
	LateMaterialization bool
	// VariantParts: reading of those columns of a shredded variant only that the paths of the query name.
	VariantParts bool
	// Counts: answers from record counts, for scans that need no column, without reading data files.
	Counts bool
	// KeyBounds: equality delete files are left out where statistics show that no key is in the data file.
	KeyBounds bool
}

// Everything does without all that can be done without.
var Everything = Without{true, true, true, true, true, true, true, true, true}

// Scanner plans and reads scans. It holds the caches that scans share and is safe for concurrent use.
type Scanner struct {
	opt    Options
	caches caches
}

// Service is what the engine uses of a Scanner.
type Service interface {
	Plan(ctx context.Context, r *Request) (TaskStream, error)
	Open(ctx context.Context, t *Task, pool *memory.Pool) (ChunkReader, error)
}

var _ Service = (*Scanner)(nil)

// caches are the scanner's caches; files are immutable, so within a catalog a path and a length name content.
type caches struct {
	lists     *cache.Cache[fileKey, []manifest.File]
	manifests *cache.Cache[fileKey, *manifest.Manifest]
	footers   *cache.Cache[fileKey, *footer]
	orcs      *cache.Cache[fileKey, *orcFooter]
	vectors   *cache.Cache[vectorKey, *deletes.Bitmap]
	positions *cache.Cache[fileKey, *deletes.Positions]
	keys      *cache.Cache[string, *deletes.Keys]
	puffins   *cache.Cache[fileKey, map[int64]string]
	pages     *cache.Cache[pageKey, *parquet.Page]
	zones     *cache.Cache[zoneKey, []parquet.PageBounds]
	met       *met[zoneKey]
}

// fileKey names a file by the path that the store takes. The catalog is part of it because two catalogs may know
// different stores by one name, and the hash of its key because who names an encrypted file without its key must not find
// what was decrypted with it.
type fileKey struct {
	catalog, path string
	size          int64
	secret        [sha256.Size]byte
}

type vectorKey struct {
	file           fileKey
	offset, length int64
}

type pageKey struct {
	file   fileKey
	offset int64
}

// filePages is the part of the page cache that belongs to one file.
type filePages struct {
	pages *cache.Cache[pageKey, *parquet.Page]
	file  fileKey
}

// Get implements parquet.PageCache.
func (p filePages) Get(k parquet.PageKey) (*parquet.Page, bool) {
	return p.pages.Lookup(pageKey{p.file, k.Offset})
}

// Put implements parquet.PageCache.
func (p filePages) Put(k parquet.PageKey, page *parquet.Page) {
	p.pages.Put(pageKey{p.file, k.Offset}, page, page.Bytes())
}

// footer is a Parquet footer with its schema in the scanner's shape.
type footer struct {
	*parquet.Footer
	tree *fileNode
	size int64 // of the file, in bytes
}

// New makes a Scanner.
func New(opt Options) *Scanner {
	if opt.Workers <= 0 {
		opt.Workers = 1
	}
	if opt.SplitBytes <= 0 {
		opt.SplitBytes = 8 << 20
	}
	if opt.Budget == nil {
		const ownBytes = 256 << 20
		opt.Budget = cache.NewBudget(memory.NewPool("scanner caches", ownBytes), 0)
	}
	b := opt.Budget
	return &Scanner{opt: opt, caches: caches{
		lists:     cache.New[fileKey, []manifest.File](b, "manifest_list"),
		manifests: cache.New[fileKey, *manifest.Manifest](b, "manifest"),
		footers:   cache.New[fileKey, *footer](b, "footer"),
		orcs:      cache.New[fileKey, *orcFooter](b, "orc_footer"),
		vectors:   cache.New[vectorKey, *deletes.Bitmap](b, "deletion_vector"),
		positions: cache.New[fileKey, *deletes.Positions](b, "position_deletes"),
		keys:      cache.New[string, *deletes.Keys](b, "equality_deletes"),
		puffins:   cache.New[fileKey, map[int64]string](b, "puffin_footer"),
		pages:     cache.New[pageKey, *parquet.Page](b, "page"),
		zones:     cache.New[zoneKey, []parquet.PageBounds](b, "zone"),
		met:       newMet[zoneKey](),
	}}
}

// Plan begins a scan. It reads nothing yet: the first Next does. A request that contradicts its table is an error.
func (s *Scanner) Plan(ctx context.Context, r *Request) (TaskStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sc, err := newScan(s, r)
	if err != nil {
		return nil, err
	}
	return newStream(sc), nil
}
