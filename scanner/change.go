package scanner

import (
	"context"
	"sync"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/manifest"
)

// changed picks the files of a scan that is narrowed to the change of one snapshot.
type changed struct {
	sc   *scan
	what *catalog.Change
	once sync.Once
	err  error
	// removed are the paths, as the metadata writes them, of the files that the snapshot removed.
	removed map[string]bool
}

// ready reads what the snapshot changed. A change by delete files is refused: which rows they took cannot be told from the
// files that were added and removed.
func (c *changed) ready(ctx context.Context) error {
	c.once.Do(func() { c.err = c.read(ctx) })
	return c.err
}

func (c *changed) read(ctx context.Context) error {
	r := *c.sc.r
	r.Snapshot.ID, r.Snapshot.Present = c.what.Snapshot, true
	at := &scan{s: c.sc.s, r: &r} // for the list of another snapshot
	list, err := at.manifests(ctx)
	if err != nil {
		return err
	}
	c.removed = map[string]bool{}
	for i := range list {
		f := &list[i]
		if f.SnapshotID >= 0 && f.SnapshotID != c.what.Snapshot {
			continue // carried over
		}
		if f.Content == manifest.Deletes {
			if f.AddedFiles != 0 || f.DeletedFiles != 0 {
				return fault.New(fault.Unsupported, "snapshot %d changes rows by delete files; changes are told of snapshots that add and remove data files only", c.what.Snapshot)
			}
			continue
		}
		if !c.what.Removed || f.DeletedFiles == 0 {
			continue
		}
		m, err := c.sc.manifest(ctx, f)
		if err != nil {
			return err
		}
		for e := range m.N {
			if m.Status[e] == manifest.Deleted && snapshotOf(m, e, f) == c.what.Snapshot {
				c.removed[m.FilePath(e)] = true
			}
		}
	}
	return nil
}

// snapshotOf is the snapshot that entry i was added or deleted in, inherited from the list when the entry has none.
func snapshotOf(m *manifest.Manifest, i int, f *manifest.File) int64 {
	if id := m.Snapshots.At(i); id >= 0 {
		return id
	}
	return f.SnapshotID
}

// keep reports whether entry i belongs to the change.
func (c *changed) keep(m *manifest.Manifest, i int, f *manifest.File) bool {
	if c.what.Removed {
		return c.removed[m.FilePath(i)]
	}
	return m.Status[i] == manifest.Added && snapshotOf(m, i, f) == c.what.Snapshot
}
