package scanner

import (
	"context"
	"slices"

	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/scanner/prune"
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
	ft, err := f.sc.s.caches.orcs.Get(ctx, f.sc.key(f.open, f.size), func(ctx context.Context) (*orcFooter, int64, error) {
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
	s := &orcSource{r: r, ft: ft, stripes: stripes, opt: orc.Options{Pool: r.pool, Profile: r.sc.r.Profile}}
	r.src = s
	if s.o, err = f.object(ctx); err != nil {
		return err
	}
	if len(r.sc.steps) > 0 {
		s.opt.Deferred = r.deferred()
	}
	for _, c := range r.columns {
		s.columns = append(s.columns, c.orc())
	}
	return nil
}

// orcSource reads stripes one after the other.
type orcSource struct {
	r       *reader
	ft      *orcFooter
	o       storage.Object
	stripes []int
	opt     orc.Options
	columns []*orc.Projection
	stripe  *orc.StripeReader
}

func (s *orcSource) next(ctx context.Context) (int, int64, error) {
	for {
		if s.stripe == nil {
			if len(s.stripes) == 0 {
				return 0, 0, nil
			}
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			g := s.stripes[0]
			s.stripes = s.stripes[1:]
			ranges, err := s.r.f.groupRanges(ctx, s.o, s.ft, g)
			if err != nil {
				return 0, 0, err
			}
			if ranges != nil && len(ranges) == 0 {
				continue
			}
			if s.stripe, err = orc.OpenStripe(ctx, s.o, s.ft.Footer, g, s.columns, ranges, s.opt); err != nil {
				return 0, 0, err
			}
		}
		if n, first := s.stripe.NextBatch(vector.Size); n > 0 {
			return n, first, ctx.Err()
		}
		s.stripe.Close()
		s.stripe = nil
	}
}

func (s *orcSource) read(ctx context.Context, col int) (*vector.Vector, error) {
	return s.stripe.Read(ctx, col)
}

func (s *orcSource) close() {
	if s.stripe != nil {
		s.stripe.Close()
		s.stripe = nil
	}
	if s.o != nil {
		_ = s.o.Close()
		s.o = nil
	}
}

// stripeSource narrows the filter's columns to what a footer says of a stripe.
type stripeSource struct {
	*domains
	leaves []orcLeaf
}

// orcLeaf is where a column of the filter stands in a file.
type orcLeaf struct {
	node *orc.Node // nil when the file lacks the column
	// value of every row when the file lacks a top-level column and known is set.
	value vector.Value
	known bool
}

func (f *dataFile) stripeSource(ft *orcFooter) *stripeSource {
	src := &stripeSource{domains: f.sc.newDomains()}
	for _, c := range f.sc.filter.Columns() {
		src.leaves = append(src.leaves, f.orcLeaf(ft, &c))
	}
	return src
}

func (f *dataFile) orcLeaf(ft *orcFooter, c *prune.Column) orcLeaf {
	w := f.sc.wants[c.Position]
	n := ft.tree.find(w.id)
	if n == nil {
		if len(c.Path) > 0 {
			return orcLeaf{}
		}
		if v, ok := f.constants(w); ok {
			return orcLeaf{value: v, known: true}
		}
		return orcLeaf{value: w.def, known: !w.required || w.def != nil}
	}
	for _, i := range c.Path {
		w = w.kids[i]
		if n.kind != vector.Row {
			return orcLeaf{}
		}
		if n = n.find(w.id); n == nil {
			return orcLeaf{}
		}
	}
	if n.kind != vector.Null || n.orc.Repeated {
		return orcLeaf{}
	}
	return orcLeaf{node: n.orc}
}

// narrow sets the domains to what is known of stripe g.
func (src *stripeSource) narrow(columns []prune.Column, ft *orcFooter, g int) {
	src.reset()
	for i := range columns {
		c, l := &columns[i], &src.leaves[i]
		switch {
		case l.node != nil:
			bounds(&src.domains.domains[i], c, ft.Bounds(g, l.node, c.Type))
		case l.known:
			src.domains.domains[i].Constant(c.Type, l.value)
		}
	}
}

// keepStripes lists the stripes that statistics and runtime filters leave.
func (f *dataFile) keepStripes(ft *orcFooter) []int {
	keep := []int{}
	sc := f.sc
	src := f.stripeSource(ft)
	columns := sc.filter.Columns()
	considered := int64(0)
	for g, s := range ft.Stripes {
		if s.NumRows == 0 {
			continue
		}
		considered++
		if !sc.filter.Useless() {
			src.narrow(columns, ft, g)
			if c := sc.filter.Excludes(src); c >= 0 {
				sc.removed("row group", "bounds", c, 1)
				continue
			}
		}
		if f.stripeRuntimeExcludes(ft, g) {
			sc.r.Profile.Removed(profile.Removal{Level: "row group", Means: "runtime filter", Predicate: "join key"}, 1)
			continue
		}
		keep = append(keep, g)
	}
	sc.r.Profile.RowGroups.Add(considered, int64(len(keep)))
	return keep
}

// stripeRuntimeExcludes asks the runtime filters that are ready about stripe g.
func (f *dataFile) stripeRuntimeExcludes(ft *orcFooter, g int) bool {
	for _, rf := range f.sc.r.Runtime {
		select {
		case <-rf.Ready():
		default:
			continue
		}
		col := rf.Column()
		if col >= len(f.sc.wants) || f.sc.metas[col] != 0 || len(f.sc.wants[col].kids) > 0 {
			continue
		}
		w := f.sc.wants[col]
		c := prune.Column{ID: w.id, Type: w.typ, Position: col}
		d := prune.Any(w.typ)
		if l := f.orcLeaf(ft, &c); l.node != nil {
			bounds(&d, &c, ft.Bounds(g, l.node, w.typ))
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

// orcShares splits a file's surviving stripes into tasks of at least Options.SplitBytes.
func (sc *scan) orcShares(ctx context.Context, t *Task) ([]*Task, error) {
	f := t.file
	ft, err := f.loadORC(ctx)
	if err != nil {
		return nil, err
	}
	var out []*Task
	var part *Task
	for _, g := range f.keepStripes(ft) {
		if part == nil || part.Bytes >= sc.s.opt.SplitBytes {
			part = &Task{Path: t.Path, file: f, groups: []int{}}
			out = append(out, part)
		}
		part.groups = append(part.groups, g)
		part.Rows += ft.Stripes[g].NumRows
		part.Bytes += ft.Stripes[g].Bytes()
	}
	return out, nil
}

// groupRanges gives the rows of a stripe that its row index leaves; nil for all. Only conjuncts of one column are asked.
func (f *dataFile) groupRanges(ctx context.Context, o storage.Object, ft *orcFooter, g int) ([]parquet.RowRange, error) {
	sc := f.sc
	rows := ft.Stripes[g].NumRows
	if sc.filter.Useless() || ft.Stride <= 0 || rows <= ft.Stride {
		return nil, nil
	}
	src := f.stripeSource(ft)
	columns := sc.filter.Columns()
	all := []parquet.RowRange{{First: 0, Last: rows}}
	ranges := all
	for i := range sc.filter.Len() {
		c := sc.filter.Single(i)
		if c < 0 || src.leaves[c].node == nil {
			continue
		}
		groups, err := orc.GroupIndex(ctx, o, ft.Footer, g, src.leaves[c].node, columns[c].Type)
		if err != nil {
			return nil, err
		}
		if len(groups) == 0 {
			continue
		}
		var keep []parquet.RowRange
		dropped := int64(0)
		for k := range groups {
			src.reset()
			bounds(&src.domains.domains[c], &columns[c], groups[k].Bounds)
			if sc.filter.Rejects(i, src) {
				dropped++
				continue
			}
			if n := len(keep); n > 0 && keep[n-1].Last == groups[k].Rows.First {
				keep[n-1].Last = groups[k].Rows.Last
			} else {
				keep = append(keep, groups[k].Rows)
			}
		}
		sc.r.Profile.Pages.Add(int64(len(groups)), int64(len(groups))-dropped)
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

// readORC reads wanted columns of all rows of an ORC delete file.
func (sc *scan) readORC(ctx context.Context, o storage.Object, f *orc.Footer, cols []*projected, pool *memory.Pool,
	take func(n int, cols []*vector.Vector) error) error {
	ps := make([]*orc.Projection, len(cols))
	for i, c := range cols {
		ps[i] = c.orc()
	}
	vs := make([]*vector.Vector, len(cols))
	stripe := func(g int) error {
		r, err := orc.OpenStripe(ctx, o, f, g, ps, nil, orc.Options{Pool: pool, Profile: sc.r.Profile})
		if err != nil {
			return err
		}
		defer r.Close()
		for {
			n, _ := r.NextBatch(vector.Size)
			if n == 0 {
				return nil
			}
			for i := range ps {
				if vs[i], err = r.Read(ctx, i); err != nil {
					return err
				}
			}
			if err := take(n, vs); err != nil {
				return err
			}
		}
	}
	for g := range f.Stripes {
		if err := stripe(g); err != nil {
			return err
		}
	}
	return nil
}
