package catalog

import (
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/fault"
)

// Change narrows a scan of one snapshot to the rows that are not live in another: those that a snapshot added are its own rows that
// the snapshot before it lacks, those that it removed are the rows of the one before that it lacks. A row is the same in both
// where it has the same position in the same data file.
type Change struct {
	// Removed says that the rows were removed; it is for those who tell of the scan.
	Removed bool
	// Other is the snapshot whose live rows are left out, when HasOther; else the table was empty.
	Other    int64
	HasOther bool
}

// Step is a snapshot on the way from one state of a table to a later one.
type Step struct {
	ID        int64
	Parent    int64 // meaningful when HasParent
	HasParent bool
	Operation table.Operation // as the summary says; empty when it says nothing
	At        time.Time
}

// Steps lists the snapshots that lead from the state after snapshot `after` (nil: from an empty table) to snapshot `to`,
// oldest first. It is an error when `after` is no ancestor of `to`, or when a snapshot between them has expired, since what
// it changed cannot be told any more.
func (t *Table) Steps(after *int64, to int64) ([]Step, error) {
	var out []Step
	id := to
	seen := map[int64]bool{}
	for after == nil || id != *after {
		s := t.Metadata.SnapshotByID(id)
		switch {
		case s == nil && id == to:
			return nil, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS", "table %s has no snapshot %d; it has %s", t.FullName(), id, t.snapshotList())
		case s == nil && after == nil:
			return nil, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS", "table %s: snapshot %d has expired, so that the changes since the table's beginning cannot be told; give a start snapshot", t.FullName(), id)
		case s == nil || seen[id]:
			return nil, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS", "table %s: snapshot %d is no ancestor of snapshot %d that the metadata still leads to", t.FullName(), *after, to)
		}
		seen[id] = true
		step := Step{ID: id, At: time.UnixMilli(s.TimestampMs).UTC()}
		if s.Summary != nil {
			step.Operation = s.Summary.Operation
		}
		if s.ParentSnapshotID != nil {
			step.Parent, step.HasParent = *s.ParentSnapshotID, true
		}
		out = append(out, step)
		if !step.HasParent {
			if after != nil {
				return nil, fault.WithID(fault.NotFound, "INVALID_ARGUMENTS", "table %s: snapshot %d is no ancestor of snapshot %d", t.FullName(), *after, to)
			}
			break
		}
		id = step.Parent
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}
