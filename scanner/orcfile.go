package scanner

import (
	"context"

	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// orcFooter is an ORC footer with its schema in the scanner's shape.
type orcFooter struct {
	*orc.Footer
	tree *fileNode
}

func orcTree(n *orc.Node) *fileNode {
	f := &fileNode{id: n.ID, name: n.Name, orc: n}
	switch n.Kind {
	case orc.Struct:
		f.kind = vector.Row
	case orc.Union: // read as a row of the tag and the members
		f.kind = vector.Row
		f.kids = append(f.kids, &fileNode{id: -1, name: orc.UnionField(0), orc: n})
	case orc.List:
		f.kind = vector.Array
	case orc.Map:
		f.kind = vector.Map
	default:
		return f
	}
	for _, c := range n.Children {
		f.kids = append(f.kids, orcTree(c))
	}
	return f
}

func (p *projected) orc() *orc.Projection {
	out := &orc.Projection{Type: p.typ, Default: p.value}
	if p.node != nil {
		out.Node = p.node.orc
	}
	for _, k := range p.kids {
		out.Children = append(out.Children, k.orc())
	}
	return out
}

// loadORC reads the footer of an ORC data file, through the cache, and gives its columns ids.
func (f *dataFile) loadORC(ctx context.Context) (*orcFooter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.orc != nil {
		return f.orc, nil
	}
	missed := false
	ft, err := f.sc.s.caches.orcs.Get(ctx, f.sc.key(f.open, f.size, f.key), func(ctx context.Context) (*orcFooter, int64, error) {
		missed = true
		o, err := f.object(ctx)
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = o.Close() }()
		of, err := orc.ReadFooter(ctx, o, f.path)
		if err != nil {
			return nil, 0, err
		}
		return &orcFooter{of, orcTree(of.Root)}, 2 * of.HeldBytes(), nil
	})
	if missed {
		f.sc.r.Profile.CacheMisses.Add(1)
	} else {
		f.sc.r.Profile.CacheHits.Add(1)
	}
	if err != nil {
		return nil, err
	}
	tree, err := f.sc.withIDs(ft.tree, f.path)
	if err != nil {
		return nil, err
	}
	f.orc = &orcFooter{ft.Footer, tree}
	return f.orc, nil
}

// openORC makes the source of an ORC task.
func (r *reader) openORC(ctx context.Context) error {
	f := r.f
	ft, err := f.loadORC(ctx)
	if err != nil {
		return err
	}
	if err := r.project(ft.tree); err != nil {
		return err
	}
	stripes := r.task.groups
	if stripes == nil {
		stripes = f.keepStripes(ft)
	}
	s := r.grouped(stripes)
	if s.o, err = f.object(ctx); err != nil {
		return err
	}
	opt := orc.Options{Pool: r.pool, Profile: r.sc.r.Profile}
	if len(r.sc.steps) > 0 {
		opt.Deferred = r.deferred()
	}
	columns := make([]*orc.Projection, len(r.columns))
	for i, c := range r.columns {
		columns[i] = c.orc()
	}
	s.narrow = func(ctx context.Context, g int) ([]parquet.RowRange, error) { return f.groupRanges(ctx, s.o, ft, g) }
	s.open = func(ctx context.Context, g int, ranges []parquet.RowRange) (groupReader, error) {
		return orc.OpenStripe(ctx, s.o, ft.Footer, g, columns, ranges, opt)
	}
	return nil
}

// statistics says what the footer knows of a column of stripe g.
func (ft *orcFooter) statistics(g int, n *fileNode, want vector.Type) parquet.Bounds {
	return ft.Bounds(g, n.orc, want)
}

func (ft *orcFooter) box(int, *fileNode) *parquet.Box { return nil }

func (ft *orcFooter) root() *fileNode { return ft.tree }

// keepStripes lists the stripes that statistics and runtime filters leave.
func (f *dataFile) keepStripes(ft *orcFooter) []int {
	keep := []int{}
	src := f.groupSource(ft)
	considered := int64(0)
	for g, s := range ft.Stripes {
		if s.NumRows == 0 {
			continue
		}
		considered++
		if !f.mayMatch(src, ft, g) {
			continue
		}
		keep = append(keep, g)
	}
	f.sc.r.Profile.RowGroups.Add(considered, int64(len(keep)))
	return keep
}

// weight gives what stripe g holds.
func (ft *orcFooter) weight(g int) (rows, bytes int64) {
	return ft.Stripes[g].NumRows, ft.Stripes[g].Bytes()
}

// groupRanges gives the rows of a stripe that its row index leaves; nil for all.
func (f *dataFile) groupRanges(ctx context.Context, o storage.Object, ft *orcFooter, g int) ([]parquet.RowRange, error) {
	rows := ft.Stripes[g].NumRows
	if ft.Stride <= 0 {
		return nil, nil
	}
	var ranges []parquet.RowRange
	if rows > ft.Stride {
		var err error
		ranges, err = f.keepRows(ft, g, rows, func(n *fileNode, want vector.Type) ([]parquet.PageBounds, error) {
			return orc.GroupIndex(ctx, o, ft.Footer, g, n.orc, want)
		})
		if err != nil {
			return nil, err
		}
	}
	return f.bloomRanges(ctx, o, ft, g, ranges)
}

// bloomRanges takes those row groups of a stripe out of ranges (nil: all rows) whose bloom filters have none of the values that the filter
// asks for.
func (f *dataFile) bloomRanges(ctx context.Context, o storage.Object, ft *orcFooter, g int, ranges []parquet.RowRange) ([]parquet.RowRange, error) {
	sc := f.sc
	if sc.s.opt.Without.Indexes {
		return ranges, nil
	}
	columns := sc.filter.Columns()
	for _, e := range sc.filter.Equalities() {
		leaf := f.leaf(ft, &columns[e.Column]).node
		if leaf == nil || ranges != nil && len(ranges) == 0 {
			continue
		}
		may, err := orc.BloomGroups(ctx, o, ft.Footer, g, leaf.orc, e.Values, columns[e.Column].Type)
		if err != nil {
			return nil, err
		}
		keep, dropped := []parquet.RowRange{}, int64(0)
		for i, ok := range may {
			if !ok {
				dropped++
				continue
			}
			first := int64(i) * ft.Stride
			keep = append(keep, parquet.RowRange{First: first, Last: min(first+ft.Stride, ft.Stripes[g].NumRows)})
		}
		if dropped == 0 {
			continue
		}
		sc.removed("page", "bloom filter", e.Conjunct, dropped)
		if ranges == nil {
			ranges = keep
		} else if ranges = intersect(ranges, keep); ranges == nil {
			ranges = []parquet.RowRange{}
		}
	}
	return ranges, nil
}
