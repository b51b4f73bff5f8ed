package scanner

import (
	"context"
	"slices"

	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/scanner/prune"
	"github.com/skua-db/skua/vector"
)

// grouped is the footer of a file whose rows stand in groups with statistics: the row groups of Parquet, the stripes of ORC.
type grouped interface {
	root() *fileNode
	// statistics says what the footer knows of a leaf in group g.
	statistics(g int, leaf *fileNode, want vector.Type) parquet.Bounds
	// box is the extent of the geometries of a leaf in group g; nil when unknown.
	box(g int, leaf *fileNode) *parquet.Box
	// weight gives the rows of group g and its bytes in the file.
	weight(g int) (rows, bytes int64)
}

// shares splits a file's surviving groups into tasks of at least Options.SplitBytes.
func (sc *scan) shares(ctx context.Context, t *Task) ([]*Task, error) {
	f := t.file
	if f.checkKey() != nil {
		return []*Task{t}, nil // opening it tells why not
	}
	ft, keep, err := f.survivors(ctx)
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
		rows, bytes := ft.weight(g)
		part.Rows += rows
		part.Bytes += bytes
	}
	return out, nil
}

// survivors gives the footer of a Parquet or ORC file and the groups that may match.
func (f *dataFile) survivors(ctx context.Context) (grouped, []int, error) {
	if f.format == manifest.ORC {
		ft, err := f.loadORC(ctx)
		if err != nil {
			return nil, nil, err
		}
		return ft, f.keepStripes(ft), nil
	}
	ft, err := f.loadFooter(ctx)
	if err != nil {
		return nil, nil, err
	}
	keep, err := f.keepGroups(ctx, ft)
	return ft, keep, err
}

// groupSource narrows the filter's columns to what a footer says of a row group.
type groupSource struct {
	*domains
	leaves []leafOf
}

// leafOf is where a column of the filter stands in a file.
type leafOf struct {
	node *fileNode // nil when the file lacks the column
	// value of every row when the file lacks a top-level column and known is set.
	value vector.Value
	known bool
	// typed is the typed_value of a field of a shredded variant; node is set to it in those groups where all of values, which stand
	// beside it and above, are null.
	typed  *fileNode
	values []*fileNode
}

func (f *dataFile) groupSource(ft grouped) *groupSource {
	src := &groupSource{domains: f.sc.newDomains()}
	for _, c := range f.sc.filter.Columns() {
		src.leaves = append(src.leaves, f.leaf(ft, &c))
	}
	return src
}

func (f *dataFile) leaf(ft grouped, c *prune.Column) leafOf {
	w := f.sc.wants[c.Position]
	n := ft.root().find(w.id)
	if n == nil {
		if len(c.Path) > 0 || c.Names != nil {
			return leafOf{}
		}
		if v, ok := f.constants(w); ok {
			return leafOf{value: v, known: true}
		}
		return leafOf{value: w.def, known: !w.required || w.def != nil}
	}
	if c.Names != nil {
		return shreddedLeaf(n, c.Names, c.Type)
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
	if !n.onceARow() {
		return leafOf{}
	}
	return leafOf{node: n}
}

// narrow sets the domains to what is known of row group g.
func (src *groupSource) narrow(columns []prune.Column, ft grouped, g int) {
	src.reset()
	for i := range columns {
		c, l := &columns[i], &src.leaves[i]
		switch {
		case l.node != nil:
			bounds(&src.domains.domains[i], c, ft.statistics(g, l.node, c.Type))
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
	if len(c.Path) > 0 || c.Names != nil {
		d.AllowNull()
	}
}

// mayMatch asks the footer's statistics and the runtime filters about group g, and counts what they remove.
func (f *dataFile) mayMatch(src *groupSource, ft grouped, g int) bool {
	sc := f.sc
	src.enter(ft, g)
	if !sc.filter.Useless() && !sc.s.opt.Without.Bounds {
		src.narrow(sc.filter.Columns(), ft, g)
		if c := sc.filter.Excludes(src); c >= 0 {
			sc.removed("row group", "bounds", c, 1)
			return false
		}
	}
	if f.boxesExclude(ft, g) {
		return false
	}
	if f.runtimeExcludes(ft, g) {
		sc.r.Profile.Removed(profile.Removal{Level: "row group", Means: "runtime filter", Predicate: "join key"}, 1)
		return false
	}
	return true
}

// runtimeExcludes asks the runtime filters that are ready about group g, or without a footer about the whole file by the
// manifest's statistics.
func (f *dataFile) runtimeExcludes(ft grouped, g int) bool {
	if f.sc.s.opt.Without.RuntimeFilters {
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
			bounds(&d, &c, ft.statistics(g, l.node, w.typ))
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

// keepRows gives the rows, of group g of that many, that an index of its parts leaves; nil for all. The index gives the bounds
// of a leaf's parts, pages or index strides, and nothing when the file has none. Only conjuncts of one column are asked.
func (f *dataFile) keepRows(ft grouped, g int, rows int64, index func(leaf *fileNode, want vector.Type) ([]parquet.PageBounds, error)) ([]parquet.RowRange, error) {
	sc := f.sc
	if sc.filter.Useless() || sc.s.opt.Without.PageSkipping {
		return nil, nil
	}
	src := f.groupSource(ft)
	src.enter(ft, g)
	columns := sc.filter.Columns()
	indexes := map[int][]parquet.PageBounds{}
	all := []parquet.RowRange{{First: 0, Last: rows}}
	ranges := all
	for i := range sc.filter.Len() {
		c := sc.filter.Single(i)
		if c < 0 || src.leaves[c].node == nil {
			continue
		}
		parts, ok := indexes[c]
		if !ok {
			var err error
			if parts, err = index(src.leaves[c].node, columns[c].Type); err != nil {
				return nil, err
			}
			indexes[c] = parts
		}
		if len(parts) == 0 {
			continue
		}
		var keep []parquet.RowRange
		dropped := int64(0)
		for k := range parts {
			src.reset()
			bounds(&src.domains.domains[c], &columns[c], parts[k].Bounds)
			if sc.filter.Rejects(i, src) {
				dropped++
				continue
			}
			if n := len(keep); n > 0 && keep[n-1].Last == parts[k].Rows.First {
				keep[n-1].Last = parts[k].Rows.Last
			} else {
				keep = append(keep, parts[k].Rows)
			}
		}
		sc.r.Profile.Pages.Add(int64(len(parts)), int64(len(parts))-dropped)
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
