package scanner

import (
	"context"
	"slices"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/scanner/prune"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// loadFooter reads the footer of a Parquet data file, through the cache, and gives its columns ids.
func (f *dataFile) loadFooter(ctx context.Context) (*footer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.footer != nil {
		return f.footer, nil
	}
	ft, err := f.sc.loadFooter(ctx, f.open, f.path, f.size, f.key)
	if err != nil {
		return nil, err
	}
	if ft.size != f.size && f.records != ft.NumRows {
		return nil, fault.New(fault.Corrupt, "it has %d bytes and %d rows, but the manifest says %d bytes and %d rows", ft.size, ft.NumRows, f.size, f.records)
	}
	tree, err := f.sc.withIDs(ft.tree, f.path)
	if err != nil {
		return nil, err
	}
	f.footer = &footer{ft.Footer, tree, ft.size}
	return f.footer, nil
}

func (sc *scan) loadFooter(ctx context.Context, open, path string, size int64, key []byte) (*footer, error) {
	missed := false
	ft, err := sc.s.caches.footers.Get(ctx, sc.key(open, size), func(ctx context.Context) (*footer, int64, error) {
		missed = true
		if size < 0 {
			return nil, 0, fault.New(fault.Corrupt, "its length in the manifest is negative, %d", size)
		}
		o, err := sc.parquetObject(ctx, open, size)
		if key != nil && err == nil && o.Size() != size {
			_ = o.Close()
			err = wrongLength(o.Size(), size)
		}
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = o.Close() }()
		pf, err := sc.readFooter(ctx, o, "", key) // the reader names the file
		if err != nil {
			return nil, 0, err
		}
		tree := parquetTree(pf.Root)
		return &footer{pf, tree, o.Size()}, 2 * pf.HeldBytes(), nil
	})
	if missed {
		sc.r.Profile.CacheMisses.Add(1)
	} else {
		sc.r.Profile.CacheHits.Add(1)
	}
	return ft, err
}

// withIDs gives a file's columns field ids when the file itself has none.
func (sc *scan) withIDs(tree *fileNode, path string) (*fileNode, error) {
	switch {
	case sc.r.Table.Files != nil:
		return tree.named(sc.r.Table.Schema.Fields()), nil
	case tree.hasIDs() || len(tree.kids) == 0:
		return tree, nil
	case len(sc.names) > 0:
		return tree.mapped(sc.names), nil
	case sc.s.opt.FilesWithoutIDs == "position":
		return tree.numbered(), nil
	}
	return nil, fault.New(fault.Unsupported, "file %s has no field ids; set the table property schema.name-mapping.default, "+
		"or the catalog option files_without_ids: position", path)
}

// groupSource narrows the filter's columns to what a footer says of a row group.
type groupSource struct {
	*domains
	leaves []leafOf
}

// leafOf is where a column of the filter stands in a file.
type leafOf struct {
	node *parquet.Node // nil when the file lacks the column
	// value of every row when the file lacks a top-level column and known is set.
	value vector.Value
	known bool
}

func (f *dataFile) groupSource(ft *footer) *groupSource {
	src := &groupSource{domains: f.sc.newDomains()}
	for _, c := range f.sc.filter.Columns() {
		src.leaves = append(src.leaves, f.leaf(ft, &c))
	}
	return src
}

func (f *dataFile) leaf(ft *footer, c *prune.Column) leafOf {
	w := f.sc.wants[c.Position]
	n := ft.tree.find(w.id)
	if n == nil {
		if len(c.Path) > 0 {
			return leafOf{}
		}
		if v, ok := f.constants(w); ok {
			return leafOf{value: v, known: true}
		}
		return leafOf{value: w.def, known: !w.required || w.def != nil}
	}
	for _, i := range c.Path {
		w = w.kids[i]
		if n.kind != vector.Row {
			return leafOf{}
		}
		if n = n.find(w.id); n == nil {
			return leafOf{}
		}
	}
	if n.kind != vector.Null || !n.pq.IsLeaf() || n.pq.MaxRep > 0 {
		return leafOf{}
	}
	return leafOf{node: n.pq}
}

// narrow sets the domains to what is known of row group g.
func (src *groupSource) narrow(columns []prune.Column, ft *footer, g int) {
	src.reset()
	for i := range columns {
		c, l := &columns[i], &src.leaves[i]
		switch {
		case l.node != nil:
			bounds(&src.domains.domains[i], c, ft.Bounds(g, l.node.Leaf, c.Type))
		case l.known:
			src.domains.domains[i].Constant(c.Type, l.value)
		}
	}
}

func bounds(d *prune.Domain, c *prune.Column, b parquet.Bounds) {
	var lo, hi vector.Value
	if b.HasMin {
		lo = b.Min
	}
	if b.HasMax {
		hi = b.Max
	}
	d.Limit(c.Type, lo, hi, b.NullCount, b.NumValues, b.MayHaveNaN || !b.HasMin && !b.HasMax)
	if len(c.Path) > 0 {
		d.AllowNull()
	}
}

// keepGroups lists the row groups that bounds, runtime filters, dictionaries and bloom filters leave.
func (f *dataFile) keepGroups(ctx context.Context, ft *footer) ([]int, error) {
	keep := []int{}
	sc := f.sc
	src := f.groupSource(ft)
	columns := sc.filter.Columns()
	equal := sc.filter.Equalities()
	var o storage.Object
	defer func() {
		if o != nil {
			_ = o.Close()
		}
	}()
	considered, rows, keptRows := int64(0), int64(0), int64(0)
	for g, rg := range ft.RowGroups {
		if rg.NumRows == 0 {
			continue
		}
		considered++
		rows += rg.NumRows
		if !sc.filter.Useless() {
			src.narrow(columns, ft, g)
			if c := sc.filter.Excludes(src); c >= 0 {
				sc.removed("row group", "bounds", c, 1)
				continue
			}
		}
		if f.runtimeExcludes(ft, g) {
			sc.r.Profile.Removed(profile.Removal{Level: "row group", Means: "runtime filter", Predicate: "join key"}, 1)
			continue
		}
		drop := false
		for _, e := range equal {
			n := src.leaves[e.Column].node
			if n == nil || len(e.Values) == 0 {
				continue
			}
			cc := &rg.Columns[n.Leaf]
			if o == nil {
				var err error
				if o, err = f.object(ctx); err != nil {
					return nil, err
				}
			}
			may, means := true, "bloom filter"
			var err error
			if cc.BloomOffset > 0 {
				may, err = parquet.BloomMayContain(ctx, o, ft.Footer, g, n.Leaf, e.Values, columns[e.Column].Type)
			} else if cc.DictOffset > 0 {
				means = "dictionary"
				may, err = parquet.DictionaryMayContain(ctx, o, ft.Footer, g, n.Leaf, e.Values, columns[e.Column].Type, f.options(nil))
			}
			if err != nil {
				return nil, err
			}
			if !may {
				sc.removed("row group", means, e.Conjunct, 1)
				drop = true
				break
			}
		}
		if !drop {
			keep = append(keep, g)
			keptRows += rg.NumRows
		}
	}
	sc.r.Profile.RowGroups.Add(considered, int64(len(keep)))
	return keep, nil
}

// runtimeExcludes asks the runtime filters that are ready about row group g, or without a footer about the whole file by the
// manifest's statistics.
func (f *dataFile) runtimeExcludes(ft *footer, g int) bool {
	if f.sc.s.opt.Without.Pruning {
		return false
	}
	for _, rf := range f.sc.r.Runtime {
		select {
		case <-rf.Ready():
		default:
			continue
		}
		col := rf.Column()
		if col >= len(f.sc.wants) || f.sc.metas[col] != 0 {
			continue
		}
		w := f.sc.wants[col]
		if len(w.kids) > 0 {
			continue
		}
		c := prune.Column{ID: w.id, Type: w.typ, Position: col}
		d := prune.Any(w.typ)
		if ft == nil {
			if st := f.stats.Column(w.id); st != nil {
				limit(&d, &c, st, f.row)
			}
		} else if l := f.leaf(ft, &c); l.node != nil {
			bounds(&d, &c, ft.Bounds(g, l.node.Leaf, w.typ))
		} else if l.known {
			d.Constant(w.typ, l.value)
		}
		if !d.MayHaveValues() {
			return true
		}
		if lo, hi := d.Bounds(w.typ); (lo != nil || hi != nil) && !rf.MayContain(lo, hi) {
			return true
		}
	}
	return false
}

// shares splits a file's surviving row groups into tasks of at least Options.SplitBytes.
func (sc *scan) shares(ctx context.Context, t *Task) ([]*Task, error) {
	f := t.file
	if f.checkKey() != nil {
		return []*Task{t}, nil // opening it tells why not
	}
	if f.format == manifest.ORC {
		return sc.orcShares(ctx, t)
	}
	ft, err := f.loadFooter(ctx)
	if err != nil {
		return nil, err
	}
	keep, err := f.keepGroups(ctx, ft)
	if err != nil {
		return nil, err
	}
	var out []*Task
	var part *Task
	for _, g := range keep {
		if part == nil || part.Bytes >= sc.s.opt.SplitBytes {
			part = &Task{Path: t.Path, file: f, groups: []int{}}
			out = append(out, part)
		}
		part.groups = append(part.groups, g)
		part.Rows += ft.RowGroups[g].NumRows
		for i := range ft.RowGroups[g].Columns {
			part.Bytes += ft.RowGroups[g].Columns[i].CompressedSize
		}
	}
	return out, nil
}

// pageRanges gives the rows of a row group that the page index leaves; nil for all. Only conjuncts of one column are asked.
func (f *dataFile) pageRanges(ctx context.Context, o storage.Object, ft *footer, g int) ([]parquet.RowRange, error) {
	sc := f.sc
	if sc.filter.Useless() || sc.s.opt.Without.PageSkipping {
		return nil, nil
	}
	src := f.groupSource(ft)
	columns := sc.filter.Columns()
	pages := map[int][]parquet.PageBounds{}
	all := []parquet.RowRange{{First: 0, Last: ft.RowGroups[g].NumRows}}
	ranges := all
	for i := range sc.filter.Len() {
		c := sc.filter.Single(i)
		if c < 0 || src.leaves[c].node == nil {
			continue
		}
		leaf := src.leaves[c].node.Leaf
		if cc := &ft.RowGroups[g].Columns[leaf]; cc.ColumnIndex.Length == 0 || cc.OffsetIndex.Length == 0 {
			continue
		}
		ps, ok := pages[c]
		if !ok {
			var err error
			if ps, err = parquet.PageIndex(ctx, o, ft.Footer, g, leaf, columns[c].Type); err != nil {
				return nil, err
			}
			pages[c] = ps
		}
		if len(ps) == 0 {
			continue
		}
		var keep []parquet.RowRange
		dropped := int64(0)
		for k := range ps {
			src.reset()
			bounds(&src.domains.domains[c], &columns[c], ps[k].Bounds)
			if sc.filter.Rejects(i, src) {
				dropped++
				continue
			}
			if n := len(keep); n > 0 && keep[n-1].Last == ps[k].Rows.First {
				keep[n-1].Last = ps[k].Rows.Last
			} else {
				keep = append(keep, ps[k].Rows)
			}
		}
		sc.r.Profile.Pages.Add(int64(len(ps)), int64(len(ps))-dropped)
		if dropped > 0 {
			sc.removed("page", "bounds", i, dropped)
			ranges = intersect(ranges, keep)
		}
	}
	if slices.Equal(ranges, all) {
		return nil, nil
	}
	if ranges == nil {
		ranges = []parquet.RowRange{}
	}
	return ranges, nil
}

// intersect gives the rows in both of two ascending lists.
func intersect(a, b []parquet.RowRange) []parquet.RowRange {
	var out []parquet.RowRange
	for i, j := 0, 0; i < len(a) && j < len(b); {
		lo, hi := max(a[i].First, b[j].First), min(a[i].Last, b[j].Last)
		if lo < hi {
			out = append(out, parquet.RowRange{First: lo, Last: hi})
		}
		if a[i].Last < b[j].Last {
			i++
		} else {
			j++
		}
	}
	return out
}
