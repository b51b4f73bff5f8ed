package scanner

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"sync"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/prune"
	"github.com/skua-db/skua/vector"
)

// scan is one request with everything that its tasks share.
type scan struct {
	s *Scanner
	r *Request
	// wants has the tree of each column of the projection; metas the reserved id where it is a metadata column, else 0.
	wants []*want
	metas []int
	// physical reports whether any column is to be read from files.
	physical bool
	filter   *prune.Filter
	// lookup says that the filter asks for single values: few pages will be read, and likely again.
	lookup bool
	// variantColumns counts the columns of the filter that are fields of variants.
	variantColumns int
	specs          map[int]*spec
	steps          []step
	names          iceberg.NameMapping
	change         *changed // nil: the scan is of a whole snapshot
	boxes          []geoBox

	index *deletes.Index // set by prepare

	mu       sync.Mutex
	keyCols  map[int]keyPath   // of equality ids
	programs [][]*expr.Program // idle programs by step
	held     []reservation     // of key sets in use
	closed   bool
}

type reservation struct {
	pool  *memory.Pool
	bytes int64
}

// spec is a partition spec of the table, with what the filter can learn from it.
type spec struct {
	iceberg.PartitionSpec
	fields        []iceberg.PartitionField
	prune         *prune.Partition
	unpartitioned bool
}

// step is a conjunct of the row filter.
type step struct {
	e    expr.Expr
	text string
	cols []int
	// safe steps cannot fail, so they may see rows that are deleted.
	safe bool
}

// mostLookupValues is how many values a conjunct may ask for to count as a lookup.
const mostLookupValues = 64

func newScan(s *Scanner, r *Request) (*scan, error) {
	sc := &scan{s: s, r: r, specs: map[int]*spec{}, names: r.Table.Metadata.NameMapping()}
	fields := r.Projection.Fields()
	if r.Output > len(fields) {
		return nil, fault.New(fault.Internal, "scan of %s outputs %d of %d columns", r.Table.FullName(), r.Output, len(fields))
	}
	for i, f := range fields {
		w, err := wantOf(f, r.Table.Extra.Defaults)
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "table %s", r.Table.FullName())
		}
		if i < len(r.Variants) && !s.opt.Without.VariantParts {
			w.parts = r.Variants[i]
		}
		meta := 0
		switch f.ID {
		case idFile, idPos, idDeleted, idSpecID, idPartition, idRowID, idLastSeq:
			meta = f.ID
		default:
			if f.ID > math.MaxInt32-200 {
				return nil, fault.New(fault.Unsupported, "metadata column %s (id %d) is not readable here", f.Name, f.ID)
			}
			sc.physical = true
		}
		sc.wants, sc.metas = append(sc.wants, w), append(sc.metas, meta)
	}
	sc.filter = prune.CompileVariants(r.Filter, sc.leaf, sc.variantLeaf, r.Context)
	for _, e := range sc.filter.Equalities() {
		sc.lookup = sc.lookup || len(e.Values) <= mostLookupValues
	}
	for _, ps := range r.Table.Metadata.PartitionSpecs() {
		sp := &spec{PartitionSpec: ps, unpartitioned: true}
		for _, f := range ps.Fields() {
			sp.fields = append(sp.fields, f)
			if _, void := f.Transform.(iceberg.VoidTransform); !void {
				sp.unpartitioned = false
			}
		}
		sp.prune = sc.filter.NewPartition(ps)
		sc.specs[ps.ID()] = sp
	}
	if r.Filter != nil {
		for _, e := range expr.Conjuncts(r.Filter) {
			sc.steps = append(sc.steps, step{e: e, text: e.String(), cols: expr.Columns(e), safe: cannotFail(e)})
		}
	}
	sc.programs = make([][]*expr.Program, len(sc.steps))
	sc.boxes = sc.geoBoxes()
	if r.Change != nil {
		sc.change = &changed{sc: sc, what: r.Change}
	}
	return sc, nil
}

// leaf resolves a column of the filter for pruning: a primitive outside lists and maps.
func (sc *scan) leaf(position int, path []int) (prune.Column, bool) {
	if position >= len(sc.wants) || sc.metas[position] != 0 {
		return prune.Column{}, false
	}
	w := sc.wants[position]
	for _, i := range path {
		if w.typ.Kind != vector.Row || i >= len(w.kids) {
			return prune.Column{}, false
		}
		w = w.kids[i]
	}
	if len(w.kids) > 0 || w.typ.Kind == vector.Null || w.typ.Kind == vector.Variant {
		return prune.Column{}, false
	}
	return prune.Column{ID: w.id, Type: w.typ, Position: position, Path: path}, true
}

// cannotFail reports whether e is made of operators only that give a value for every input.
func cannotFail(e expr.Expr) bool {
	ok := true
	expr.Walk(e, func(x expr.Expr) bool {
		switch x.(type) {
		case *expr.Column, *expr.Literal, *expr.Param, *expr.Subquery, *expr.Compare, *expr.And, *expr.Or, *expr.Not, *expr.IsNull,
			*expr.In, *expr.FieldAccess, *expr.Coalesce:
		default:
			ok = false
		}
		return ok
	})
	return ok
}

// program lends a compiled step; give it back with putProgram.
func (sc *scan) program(i int) (*expr.Program, error) {
	sc.mu.Lock()
	if idle := sc.programs[i]; len(idle) > 0 {
		p := idle[len(idle)-1]
		sc.programs[i] = idle[:len(idle)-1]
		sc.mu.Unlock()
		return p, nil
	}
	sc.mu.Unlock()
	ctx := sc.r.Context
	if ctx == nil {
		ctx = &expr.Context{}
	}
	return expr.Compile(sc.steps[i].e, ctx)
}

func (sc *scan) putProgram(i int, p *expr.Program) {
	sc.mu.Lock()
	sc.programs[i] = append(sc.programs[i], p)
	sc.mu.Unlock()
}

// hold keeps n bytes reserved in pool until the scan is closed.
func (sc *scan) hold(pool *memory.Pool, n int64) error {
	if pool == nil {
		return nil
	}
	if err := pool.Reserve(n); err != nil {
		return err
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.closed {
		pool.Release(n)
		return nil
	}
	sc.held = append(sc.held, reservation{pool, n})
	return nil
}

func (sc *scan) close() {
	sc.mu.Lock()
	held := sc.held
	sc.held, sc.closed = nil, true
	sc.mu.Unlock()
	for _, h := range held {
		h.pool.Release(h.bytes)
	}
}

// key names a file, by the path that the store takes, in the caches. metadata is its key metadata, nil for one that is not encrypted.
func (sc *scan) key(path string, size int64, metadata []byte) fileKey {
	k := fileKey{catalog: sc.r.Table.Catalog, path: path, size: size}
	if metadata != nil {
		k.secret = sha256.Sum256(metadata)
	}
	return k
}

// mapPath maps a path of the metadata to the one that the store takes.
func (sc *scan) mapPath(path string) string { return sc.r.Table.Locations.Map(path) }

// manifests lists the manifests of the snapshot.
func (sc *scan) manifests(ctx context.Context) ([]manifest.File, error) {
	t := sc.r.Table
	snap := t.Metadata.SnapshotByID(sc.r.Snapshot.ID)
	if snap == nil {
		return nil, fault.New(fault.NotFound, "snapshot %d is not in the metadata", sc.r.Snapshot.ID)
	}
	if snap.ManifestList == "" {
		inline := t.Extra.Manifests[snap.SnapshotID]
		if inline == nil {
			inline = snap.ManifestLocations
		}
		if inline == nil {
			return nil, fault.New(fault.Corrupt, "snapshot %d has neither a manifest list nor manifests", snap.SnapshotID)
		}
		files := make([]manifest.File, len(inline))
		for i, p := range inline {
			files[i] = manifest.File{Path: p, Length: -1, SpecID: -1, SnapshotID: snap.SnapshotID, FirstRowID: -1,
				AddedFiles: -1, ExistingFiles: -1, DeletedFiles: -1, AddedRows: -1, ExistingRows: -1, DeletedRows: -1}
		}
		return files, nil
	}
	key, encrypted, err := sc.listKey(ctx, snap.SnapshotID)
	if err != nil {
		return nil, err
	}
	path := sc.mapPath(snap.ManifestList)
	return sc.s.caches.lists.Get(ctx, sc.key(path, -1, sealedUnder(key, encrypted)), func(ctx context.Context) ([]manifest.File, int64, error) {
		files, err := manifest.ReadList(ctx, sc.storeOf(key, encrypted), path, -1)
		size := int64(0)
		for i := range files {
			size += 300 + int64(len(files[i].Path)) + 100*int64(len(files[i].Partitions))
		}
		return files, size, err
	})
}

// manifest reads a manifest, through the cache.
func (sc *scan) manifest(ctx context.Context, f *manifest.File) (*manifest.Manifest, error) {
	key, encrypted, err := sc.keyOf(f.KeyMetadata)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "manifest %s", f.Path)
	}
	path := sc.mapPath(f.Path)
	missed := false
	m, err := sc.s.caches.manifests.Get(ctx, sc.key(path, f.Length, f.KeyMetadata), func(ctx context.Context) (*manifest.Manifest, int64, error) {
		missed = true
		m, err := manifest.Read(ctx, sc.storeOf(key, encrypted), path, f.Length, nil)
		if err != nil {
			return nil, 0, err
		}
		return m, m.Bytes, nil
	})
	if missed {
		sc.r.Profile.CacheMisses.Add(1)
	} else {
		sc.r.Profile.CacheHits.Add(1)
	}
	return m, err
}

// specOf finds the partition spec of a manifest.
func (sc *scan) specOf(f *manifest.File, m *manifest.Manifest) (*spec, error) {
	id := f.SpecID
	if id < 0 {
		id = max(m.SpecID, 0)
	}
	if sp := sc.specs[id]; sp != nil {
		return sp, nil
	}
	return nil, fault.New(fault.Corrupt, "manifest %s names partition spec %d, which the table does not have", f.Path, id)
}

// live reports whether a manifest can hold live entries.
func live(f *manifest.File) bool { return f.AddedFiles != 0 || f.ExistingFiles != 0 }

// prepare reads the manifest list and all delete manifests; it gives the data manifests that the filter leaves.
func (sc *scan) prepare(ctx context.Context) ([]manifest.File, error) {
	sc.index, _ = deletes.NewIndex(nil, nil)
	if !sc.r.Snapshot.Present || sc.r.Table.Files != nil {
		return nil, nil
	}
	all, err := sc.manifests(ctx)
	if err != nil {
		return nil, err
	}
	var data, del []manifest.File
	for i := range all {
		if all[i].Content == manifest.Deletes {
			if live(&all[i]) {
				del = append(del, all[i])
			}
			sc.r.Profile.DeleteManifests.Add(1, int64(b2i(live(&all[i]))))
			continue
		}
		keep, err := sc.keepManifest(&all[i])
		if err != nil {
			return nil, err
		}
		sc.r.Profile.Manifests.Add(1, int64(b2i(keep)))
		if keep {
			data = append(data, all[i])
		}
	}
	if len(data) == 0 || len(del) == 0 {
		return data, nil
	}
	sc.index, err = sc.deleteIndex(ctx, del)
	return data, err
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// keepManifest prunes a data manifest by its counts and partition summaries.
func (sc *scan) keepManifest(f *manifest.File) (bool, error) {
	if !live(f) {
		return false, nil
	}
	if f.SpecID < 0 {
		return true, nil
	}
	sp := sc.specs[f.SpecID]
	if sp == nil {
		return false, fault.New(fault.Corrupt, "manifest %s names partition spec %d, which the table does not have", f.Path, f.SpecID)
	}
	if sc.s.opt.Without.Partitions || sc.filter.Useless() || sp.prune.Useless() || len(f.Partitions) != len(sp.fields) {
		return true, nil
	}
	src := sc.newDomains()
	sp.prune.Summaries(src.domains, func(i int) (prune.Summary, bool) {
		p := &f.Partitions[i]
		return prune.Summary{ContainsNull: p.ContainsNull, Lower: p.Lower, Upper: p.Upper}, true
	})
	if c := sc.filter.Excludes(src); c >= 0 {
		sc.removed("manifest", "partition", c, 1)
		return false, nil
	}
	return true, nil
}

// domains is the prune.Source over a slice, one Domain a column of the filter.
type domains struct{ domains, base []prune.Domain }

func (d *domains) Domain(i int) *prune.Domain { return &d.domains[i] }

// reset allows everything again.
func (d *domains) reset() { copy(d.domains, d.base) }

func (sc *scan) newDomains() *domains {
	d := &domains{}
	for _, c := range sc.filter.Columns() {
		d.base = append(d.base, prune.Any(c.Type))
	}
	d.domains = slices.Clone(d.base)
	return d
}

// deleteIndex reads the delete manifests of a list.
func (sc *scan) deleteIndex(ctx context.Context, list []manifest.File) (*deletes.Index, error) {
	out := make([][]*deletes.File, len(list))
	err := parallel(ctx, sc.s.opt.Workers, len(list), func(ctx context.Context, i int) error {
		fs, err := sc.deleteFiles(ctx, &list[i])
		out[i] = fs
		return err
	})
	if err != nil {
		return nil, err
	}
	files := slices.Concat(out...)
	sc.r.Profile.DeleteFiles.Considered.Add(int64(len(files)))
	return deletes.NewIndex(files, func(id int) bool { return sc.specs[id] != nil && sc.specs[id].unpartitioned })
}

// parallel runs f for 0..n-1 on up to workers goroutines and gives the first error; all have ended when it returns.
func parallel(ctx context.Context, workers, n int, f func(context.Context, int) error) error {
	if workers = min(workers, n); workers <= 1 {
		for i := range n {
			if err := f(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var first error
	next := 0
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := first != nil
				mu.Unlock()
				if stop || i >= n {
					return
				}
				if err := fault.Guard(func() error { return f(ctx, i) }); err != nil {
					mu.Lock()
					if first == nil {
						first = err
					}
					mu.Unlock()
					cancel()
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// deleteFiles lists the live delete files of a manifest.
func (sc *scan) deleteFiles(ctx context.Context, f *manifest.File) ([]*deletes.File, error) {
	m, err := sc.manifest(ctx, f)
	if err != nil {
		return nil, err
	}
	sp, err := sc.specOf(f, m)
	if err != nil {
		return nil, err
	}
	if m.SpecKnown && m.Unpartitioned && !sp.unpartitioned {
		return nil, fault.New(fault.Corrupt,
			"delete manifest %s was written with an unpartitioned spec, but table spec %d has partition fields", f.Path, sp.ID())
	}
	at := sc.partitionColumns(m, sp)
	var out []*deletes.File
	for i := range m.N {
		if m.Status[i] == manifest.Deleted {
			continue
		}
		d, err := sc.deleteFile(f, m, i)
		if err != nil {
			return nil, err
		}
		d.SpecID, d.Partition = sp.ID(), tupleKey(m, at, i)
		out = append(out, d)
	}
	return out, nil
}

func (sc *scan) deleteFile(f *manifest.File, m *manifest.Manifest, i int) (*deletes.File, error) {
	seq, err := m.Seq(i, f)
	if err != nil {
		return nil, err
	}
	d := &deletes.File{Path: m.FilePath(i), Format: m.Formats[i].String(), Size: m.Sizes.At(i), Seq: seq, Records: m.Records.At(i),
		Offset: m.ContentOffset.At(i), Length: m.ContentSize.At(i)}
	if key, ok := m.KeyMetadata.At(i); ok {
		d.KeyMetadata = key
	}
	if ref, ok := m.Referenced(i); ok {
		d.Referenced = sc.mapPath(ref)
	}
	switch {
	case m.Content[i] == manifest.EqualityDeletes:
		d.Kind = deletes.EqualityFile
		for _, id := range m.EqualityIDs.At(i) {
			d.EqualityIDs = append(d.EqualityIDs, int(id))
		}
		d.KeyStats = keyStats(m, i, d.EqualityIDs)
	case m.Content[i] != manifest.PositionDeletes:
		return nil, fault.New(fault.Corrupt, "manifest %s: entry %d (%s) is a data file in a delete manifest", f.Path, i, d.Path)
	case m.Formats[i] == manifest.Puffin:
		d.Kind = deletes.Vector
	default:
		d.Kind = deletes.PositionFile
		if st := m.Column(idDeletePath); st != nil {
			lo, okL := st.Lower.At(i)
			hi, okH := st.Upper.At(i)
			switch mapping := sc.r.Table.Locations; {
			case !okL || !okH || len(lo) == 0:
			case mapping.Empty():
				d.Bounded, d.Lower, d.Upper = true, string(lo), string(hi)
			case string(lo) == string(hi):
				// Mapping keeps no order, and a bound cut short may not show by which rule its paths map: what cannot be
				// told bounds nothing, lest the deletes be missed.
				d.Lower, d.Bounded = mapping.MapPrefix(string(lo))
				d.Upper = d.Lower
			}
		}
	}
	return d, nil
}
