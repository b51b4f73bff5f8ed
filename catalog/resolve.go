package catalog

import (
	"fmt"
	"sort"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/fault"
)

// Resolve finds the snapshot that a version means and the schema to read it with. The main branch and other
// branches are read with the table's current schema; a tag, a snapshot id and a time with the snapshot's own (spec:
// Snapshot References, and Java's SnapshotUtil.schemaFor). A version that does not exist is fault.NotFound.
func (t *Table) Resolve(v Version) (Snapshot, error) {
	switch v.Kind {
	case ByRef:
		return t.byRef(v.Ref)
	case ByID:
		if s := t.Metadata.SnapshotByID(v.ID); s != nil {
			return t.pin(s)
		}
		return Snapshot{}, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS",
			"table %s has no snapshot %d; it has %s", t.FullName(), v.ID, t.snapshotList())
	case ByTime:
		return t.byTime(v.Time)
	}
	if s := t.Metadata.CurrentSnapshot(); s != nil {
		return Snapshot{ID: s.SnapshotID, Present: true, Schema: t.Metadata.CurrentSchema()}, nil
	}
	return Snapshot{Schema: t.Metadata.CurrentSchema()}, nil
}

func (t *Table) byRef(name string) (Snapshot, error) {
	if name == table.MainBranch {
		return t.Resolve(Version{})
	}
	var names []string
	for ref, r := range t.Metadata.Refs() {
		if ref != name {
			names = append(names, ref)
			continue
		}
		s := t.Metadata.SnapshotByID(r.SnapshotID)
		if s == nil {
			return Snapshot{}, fault.New(fault.Corrupt, "table %s: %s %q names snapshot %d, which the metadata does not hold",
				t.FullName(), r.SnapshotRefType, name, r.SnapshotID)
		}
		if r.SnapshotRefType == table.BranchRef {
			return Snapshot{ID: s.SnapshotID, Present: true, Schema: t.Metadata.CurrentSchema()}, nil
		}
		return t.pin(s)
	}
	sort.Strings(names)
	return Snapshot{}, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS",
		"table %s has no branch or tag %q; it has %q", t.FullName(), name, names)
}

func (t *Table) pin(s *table.Snapshot) (Snapshot, error) {
	schema := t.Metadata.CurrentSchema()
	if s.SchemaID != nil {
		if schema = t.schemaByID(*s.SchemaID); schema == nil {
			return Snapshot{}, fault.New(fault.Corrupt, "table %s: snapshot %d names schema %d, which the metadata does not hold",
				t.FullName(), s.SnapshotID, *s.SchemaID)
		}
	}
	return Snapshot{ID: s.SnapshotID, Present: true, Schema: schema}, nil
}

func (t *Table) schemaByID(id int) *iceberg.Schema {
	for _, s := range t.Metadata.Schemas() {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// byTime finds the snapshot that main pointed to at a time, by the snapshot log. Metadata without a log (it is
// optional) falls back to the commit times of main's ancestors.
func (t *Table) byTime(at time.Time) (Snapshot, error) {
	type entry struct{ id, ms int64 }
	var log []entry
	for e := range t.Metadata.SnapshotLogs() {
		log = append(log, entry{e.SnapshotID, e.TimestampMs})
	}
	if len(log) == 0 {
		for s := t.Metadata.CurrentSnapshot(); s != nil; {
			log = append(log, entry{s.SnapshotID, s.TimestampMs})
			if s.ParentSnapshotID == nil {
				break
			}
			s = t.Metadata.SnapshotByID(*s.ParentSnapshotID)
		}
	}
	sort.SliceStable(log, func(i, j int) bool { return log[i].ms < log[j].ms })
	ms := at.UnixMilli()
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].ms > ms {
			continue
		}
		s := t.Metadata.SnapshotByID(log[i].id)
		if s == nil {
			return Snapshot{}, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS",
				"table %s: snapshot %d, current at %s, has expired; it has %s", t.FullName(), log[i].id, at.UTC().Format(time.RFC3339Nano), t.snapshotList())
		}
		return t.pin(s)
	}
	return Snapshot{}, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS",
		"table %s has no snapshot at or before %s; it has %s", t.FullName(), at.UTC().Format(time.RFC3339Nano), t.snapshotList())
}

// snapshotList names the newest snapshots for a message.
func (t *Table) snapshotList() string {
	all := t.Metadata.Snapshots()
	if len(all) == 0 {
		return "no snapshots"
	}
	const most = 5
	text := ""
	for i := len(all) - 1; i >= 0 && i >= len(all)-most; i-- {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d (%s)", all[i].SnapshotID, time.UnixMilli(all[i].TimestampMs).UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if len(all) > most {
		text += fmt.Sprintf(" and %d older", len(all)-most)
	}
	return "snapshots " + text
}
