package scanner

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
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
	ft, err := sc.s.caches.footers.Get(ctx, sc.key(open, size, key), func(ctx context.Context) (*footer, int64, error) {
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

// keepGroups lists the row groups that bounds, runtime filters, dictionaries and bloom filters leave.
func (f *dataFile) keepGroups(ctx context.Context, ft *footer) ([]int, error) {
	keep := []int{}
	sc := f.sc
	src := f.groupSource(ft)
	columns := sc.filter.Columns()
	var equal []prune.Equality
	if !sc.s.opt.Without.Indexes {
		equal = sc.filter.Equalities()
	}
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
		if !f.mayMatch(src, ft, g) {
			continue
		}
		drop := false
		for _, e := range equal {
			n := src.leaves[e.Column].node
			if n == nil || len(e.Values) == 0 {
				continue
			}
			leaf := n.pq.Leaf
			cc := &rg.Columns[leaf]
			if o == nil {
				var err error
				if o, err = f.object(ctx); err != nil {
					return nil, err
				}
			}
			may, means := true, "bloom filter"
			var err error
			if cc.BloomOffset > 0 {
				may, err = parquet.BloomMayContain(ctx, o, ft.Footer, g, leaf, e.Values, columns[e.Column].Type)
			} else if cc.DictOffset > 0 && !f.zonesKnown(g, n, columns[e.Column].Type) { // which cost less and tell more
				means = "dictionary"
				may, err = parquet.DictionaryMayContain(ctx, o, ft.Footer, g, leaf, e.Values, columns[e.Column].Type, f.options(nil))
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

// statistics says what the footer knows of a column of row group g.
func (ft *footer) statistics(g int, n *fileNode, want vector.Type) parquet.Bounds {
	return ft.Bounds(g, n.pq.Leaf, want)
}

func (ft *footer) box(g int, n *fileNode) *parquet.Box { return ft.RowGroups[g].Columns[n.pq.Leaf].Box }

func (ft *footer) root() *fileNode { return ft.tree }

func (ft *footer) weight(g int) (rows, bytes int64) {
	rg := ft.RowGroups[g]
	for i := range rg.Columns {
		bytes += rg.Columns[i].CompressedSize
	}
	return rg.NumRows, bytes
}

// pageRanges gives the rows of a row group that the page index leaves; nil for all.
func (f *dataFile) pageRanges(ctx context.Context, o storage.Object, ft *footer, g int, pool *memory.Pool) ([]parquet.RowRange, error) {
	return f.keepRows(ft, g, ft.RowGroups[g].NumRows, func(n *fileNode, want vector.Type) ([]parquet.PageBounds, error) {
		if cc := &ft.RowGroups[g].Columns[n.pq.Leaf]; cc.ColumnIndex.Length == 0 || cc.OffsetIndex.Length == 0 {
			return f.zones(ctx, o, ft, g, n, want, pool)
		}
		return parquet.PageIndex(ctx, o, ft.Footer, g, n.pq.Leaf, want)
	})
}
