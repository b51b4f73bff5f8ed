package scanner

import (
	"context"
	"slices"
	"sync"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/scanner/manifest"
)

// changed leaves out of a scan the rows that are live in another snapshot. What both snapshots have in common is told by
// manifests first: the files of a manifest that both list are in both, and without a difference in delete files no row of
// them has changed.
type changed struct {
	sc   *scan
	what *catalog.Change
	once sync.Once
	err  error

	// shared are the paths of the manifests that both snapshots list.
	shared map[string]bool
	// files are the paths, as the metadata writes them, of the other snapshot's data files in manifests that only it lists.
	files map[string]bool
	// index finds the other snapshot's deletes; sameDeletes says that both snapshots list the same manifests of them.
	index       *deletes.Index
	sameDeletes bool
}

// ready reads what the other snapshot has.
func (c *changed) ready(ctx context.Context) error {
	c.once.Do(func() { c.err = c.read(ctx) })
	return c.err
}

func (c *changed) read(ctx context.Context) error {
	c.shared, c.files = map[string]bool{}, map[string]bool{}
	own, err := c.sc.manifests(ctx)
	if err != nil {
		return err
	}
	var other []manifest.File
	if c.what.HasOther {
		r := *c.sc.r
		r.Snapshot.ID, r.Snapshot.Present = c.what.Other, true
		at := &scan{s: c.sc.s, r: &r} // for the list of another snapshot
		if other, err = at.manifests(ctx); err != nil {
			return err
		}
	}
	ownDeletes, mine := 0, map[string]bool{}
	for i := range own {
		mine[own[i].Path] = true
		if own[i].Content == manifest.Deletes && live(&own[i]) {
			ownDeletes++
		}
	}
	var del []manifest.File
	c.sameDeletes = true
	for i := range other {
		f := &other[i]
		if !live(f) {
			continue
		}
		c.shared[f.Path] = mine[f.Path]
		if f.Content == manifest.Deletes {
			del = append(del, *f)
			c.sameDeletes = c.sameDeletes && mine[f.Path]
			continue
		}
		if mine[f.Path] {
			continue
		}
		m, err := c.sc.manifest(ctx, f)
		if err != nil {
			return err
		}
		for e := range m.N {
			if m.Status[e] != manifest.Deleted {
				c.files[m.FilePath(e)] = true
			}
		}
	}
	c.sameDeletes = c.sameDeletes && len(del) == ownDeletes
	if c.sameDeletes {
		return nil
	}
	c.index, err = c.sc.deleteIndex(ctx, del)
	return err
}

// skip reports whether no row of a manifest's files can have changed.
func (c *changed) skip(f *manifest.File) bool { return c.sameDeletes && c.shared[f.Path] }

// narrow cuts a task down to the rows that the other snapshot lacks: all of a file that it does not have, of others those that its
// deletes delete. It is false when there are none.
func (c *changed) narrow(t *Task, f *manifest.File, partition string) (bool, error) {
	d := t.file
	if !c.shared[f.Path] && !c.files[d.path] {
		return true, nil
	}
	if c.sameDeletes {
		return false, nil
	}
	other, err := c.index.For(deletes.DataFile{Path: d.open, Seq: d.seq, SpecID: d.spec.ID(), Partition: partition, Apart: d.apart()})
	if err != nil || other.None() || sameDeletes(&d.applied, &other) {
		return false, err
	}
	d.other = &dataFile{sc: d.sc, path: d.path, open: d.open, format: d.format, size: d.size, seq: d.seq, spec: d.spec, applied: other, key: d.key}
	return true, nil
}

func sameDeletes(a, b *deletes.Applied) bool {
	if (a.Vector == nil) != (b.Vector == nil) || len(a.Positions) != len(b.Positions) || len(a.Equality) != len(b.Equality) {
		return false
	}
	if a.Vector != nil && (a.Vector.Path != b.Vector.Path || a.Vector.Offset != b.Vector.Offset) {
		return false
	}
	paths := map[string]bool{}
	for _, f := range a.Positions {
		paths[f.Path] = true
	}
	for _, f := range b.Positions {
		if !paths[f.Path] {
			return false
		}
	}
	for _, g := range b.Equality {
		if !slices.ContainsFunc(a.Equality, func(x *deletes.Group) bool { return x.Key == g.Key }) {
			return false
		}
	}
	return true
}

// openOther reads the deletes of the other snapshot.
func (r *reader) openOther(ctx context.Context) error {
	o := r.f.other
	if o == nil {
		return nil
	}
	var err error
	if r.otherDead, err = o.positions(ctx, r.pool); err != nil {
		return err
	}
	r.otherKeys, err = o.equality(ctx, r.pool)
	return err
}

// keepOther keeps of sel those rows that the other snapshot's deletes delete. Positions are known before any column is read, keys
// are looked up after this snapshot's own.
func (r *reader) keepOther(ctx context.Context, sel []uint16, early bool) ([]uint16, error) {
	if r.f.other == nil || early != (len(r.otherKeys) == 0) {
		return sel, nil
	}
	r.gone = append(r.gone[:0], make([]uint64, (r.n+63)/64)...)
	if r.otherDead != nil {
		r.otherDead.Mask(r.first, r.n, r.gone)
	}
	for k, set := range r.otherKeys {
		cols, err := r.keyColumns(ctx, len(r.keys)+k, &set)
		if err != nil {
			return nil, err
		}
		r.otherSel = set.keys.Select(cols, r.n, sel, r.otherSel[:0], r.f.seq, &r.scratch)
		r.markGone(sel, r.otherSel)
	}
	out := r.buffer()
	for i := range r.rowsOf(sel) {
		row := uint16(i)
		if sel != nil {
			row = sel[i]
		}
		if r.gone[row>>6]&(1<<(row&63)) != 0 {
			out = append(out, row)
		}
	}
	return out, nil
}
