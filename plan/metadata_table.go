package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// metadataTables are the names that can follow t$ ; true means that the table metadata alone answers them.
var metadataTables = map[string]bool{
	"snapshots": true, "history": true, "refs": true, "properties": true, "metadata_log_entries": true,
	"manifests": true, "all_manifests": true, "files": true, "data_files": true, "delete_files": true, "all_files": true, "all_data_files": true, "all_delete_files": true,
	"partitions": true, "position_deletes": true, "entries": true, "all_entries": true,
}

var (
	bigint    = vector.Of(vector.BigInt)
	integer   = vector.Of(vector.Integer)
	varchar   = vector.Of(vector.Varchar)
	instant   = vector.Of(vector.TimestampTZ)
	textMap   = vector.MapOf(varchar, varchar)
	timestamp = func(ms int64) vector.Value { return time.UnixMilli(ms).UnixMicro() }
)

// rows makes a bound query of literal rows.
func (b *binder) rows(cols []Column, rows [][]vector.Value) *bound {
	v := &valuesRel{}
	s := &bound{rel: v}
	for _, c := range cols {
		id := b.cols.add(c.Name, c.Type, c.Nullable)
		v.cols = append(v.cols, id)
		s.cols = append(s.cols, outCol{c.Name, id})
	}
	for _, r := range rows {
		row := make([]expr.Expr, len(r))
		for i, x := range r {
			row[i] = &expr.Literal{Value: x, Typ: cols[i].Type}
		}
		v.rows = append(v.rows, row)
	}
	return s
}

func column(name string, t vector.Type) Column { return Column{Name: name, Type: t, Nullable: true} }

func optional[T any](p *T) vector.Value {
	if p == nil {
		return nil
	}
	return *p
}

// metadataTable gives the rows of t$name, from the table's metadata or, where manifests are needed, from the environment.
func (b *binder) metadataTable(at sql.Pos, t *catalog.Table, s catalog.Snapshot, name string) (*bound, error) {
	m := t.Metadata
	switch name {
	case "snapshots":
		cols := []Column{column("committed_at", instant), column("snapshot_id", bigint), column("parent_id", bigint), column("operation", varchar), column("manifest_list", varchar), column("summary", textMap)}
		var rows [][]vector.Value
		for _, s := range m.Snapshots() {
			var op, summary vector.Value
			if s.Summary != nil {
				op = string(s.Summary.Operation)
				summary = pairs(s.Summary.Properties)
			}
			rows = append(rows, []vector.Value{timestamp(s.TimestampMs), s.SnapshotID, optional(s.ParentSnapshotID), op, s.ManifestList, summary})
		}
		return b.rows(cols, rows), nil
	case "history":
		ancestors := map[int64]bool{}
		for s := m.CurrentSnapshot(); s != nil && !ancestors[s.SnapshotID]; {
			ancestors[s.SnapshotID] = true
			if s.ParentSnapshotID == nil {
				break
			}
			s = m.SnapshotByID(*s.ParentSnapshotID)
		}
		cols := []Column{column("made_current_at", instant), column("snapshot_id", bigint), column("parent_id", bigint), column("is_current_ancestor", boolType)}
		var rows [][]vector.Value
		for e := range m.SnapshotLogs() {
			var parent vector.Value
			if s := m.SnapshotByID(e.SnapshotID); s != nil {
				parent = optional(s.ParentSnapshotID)
			}
			rows = append(rows, []vector.Value{timestamp(e.TimestampMs), e.SnapshotID, parent, ancestors[e.SnapshotID]})
		}
		return b.rows(cols, rows), nil
	case "refs":
		cols := []Column{column("name", varchar), column("type", varchar), column("snapshot_id", bigint), column("max_reference_age_in_ms", bigint), column("min_snapshots_to_keep", integer), column("max_snapshot_age_in_ms", bigint)}
		var rows [][]vector.Value
		main := false
		for name, r := range m.Refs() {
			main = main || name == table.MainBranch
			var keep vector.Value
			if r.MinSnapshotsToKeep != nil {
				keep = int32(*r.MinSnapshotsToKeep)
			}
			kind := "BRANCH"
			if r.SnapshotRefType == table.TagRef {
				kind = "TAG"
			}
			rows = append(rows, []vector.Value{name, kind, r.SnapshotID, optional(r.MaxRefAgeMs), keep, optional(r.MaxSnapshotAgeMs)})
		}
		if cur := m.CurrentSnapshot(); cur != nil && !main { // v1 metadata has no refs; main is the current snapshot
			rows = append(rows, []vector.Value{table.MainBranch, "BRANCH", cur.SnapshotID, nil, nil, nil})
		}
		slices.SortFunc(rows, func(a, b []vector.Value) int { return cmp.Compare(a[0].(string), b[0].(string)) })
		return b.rows(cols, rows), nil
	case "properties":
		cols := []Column{column("key", varchar), column("value", varchar)}
		var rows [][]vector.Value
		for _, p := range pairs(m.Properties()) {
			rows = append(rows, []vector.Value{p.Key, p.Value})
		}
		return b.rows(cols, rows), nil
	case "metadata_log_entries":
		return b.metadataLog(t), nil
	}
	if b.env.MetadataTable == nil {
		return nil, b.unsupported(at, "the metadata table $%s is not supported", name)
	}
	cols, rows, err := b.env.MetadataTable(b.ctx, t, s, name)
	if err != nil {
		return nil, b.place(at, fault.Wrap(fault.Internal, err, "table %s$%s", t.FullName(), name))
	}
	return b.rows(cols, rows), nil
}

// metadataLog lists the metadata files of a table with the snapshot that was current in each.
func (b *binder) metadataLog(t *catalog.Table) *bound {
	m := t.Metadata
	cols := []Column{column("timestamp", instant), column("file", varchar), column("latest_snapshot_id", bigint), column("latest_schema_id", integer), column("latest_sequence_number", bigint)}
	type entry struct {
		ms   int64
		file string
	}
	var log []entry
	for e := range m.PreviousFiles() {
		log = append(log, entry{e.TimestampMs, e.MetadataFile})
	}
	log = append(log, entry{m.LastUpdatedMillis(), t.MetadataLocation})
	var rows [][]vector.Value
	for _, e := range log {
		var id, schema, seq vector.Value
		for h := range m.SnapshotLogs() {
			if h.TimestampMs > e.ms {
				break
			}
			id, schema, seq = h.SnapshotID, nil, nil
			if s := m.SnapshotByID(h.SnapshotID); s != nil {
				seq = s.SequenceNumber
				if s.SchemaID != nil {
					schema = int32(*s.SchemaID)
				}
			}
		}
		rows = append(rows, []vector.Value{timestamp(e.ms), e.file, id, schema, seq})
	}
	return b.rows(cols, rows)
}

// pairs makes a map value of a Go map, ordered by key.
func pairs[M ~map[string]string](m M) []vector.Pair {
	out := make([]vector.Pair, 0, len(m))
	for k, v := range m {
		out = append(out, vector.Pair{Key: k, Value: v})
	}
	slices.SortFunc(out, func(a, b vector.Pair) int { return cmp.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key)) })
	return out
}
