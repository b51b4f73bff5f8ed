package plan

import (
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// changesCall are the arguments of table_changes and table_appends.
type changesCall struct {
	table      []sql.Ident
	start, end *int64
}

// changes binds TABLE(system.table_changes(schema_name => ..., table_name => ..., start_snapshot_id => ..., end_snapshot_id => ...)) as
// Trino has it, and table_appends with the same arguments. The start is exclusive and the end inclusive; without an end it is
// the current snapshot, without a start all changes since the table was made.
//
// table_changes gives the rows that a snapshot added (insert) or removed (delete), by data files or by delete files, with the columns
// _change_type, _change_version_id, _change_timestamp and _change_ordinal. A rewritten file's rows that did not change come as a
// pair. Snapshots that rewrite without changing rows (operation replace) are passed over. table_appends gives the rows of snapshots that append, and refuses others that change rows.
func (b *binder) changes(t *sql.TableCall, name string) (rel, *scope, error) {
	c := t.Call
	args, err := b.changesArgs(c)
	if err != nil {
		return nil, nil, err
	}
	tab, meta, err := b.load(args.table)
	if err != nil {
		return nil, nil, err
	}
	if meta != "" {
		return nil, nil, b.errorf(c.At(), fault.Invalid, "INVALID_ARGUMENTS", "a metadata table has no changes")
	}
	if tab.Access != nil {
		return nil, nil, b.errorf(c.At(), fault.Denied, "PERMISSION_DENIED", "changes tell of rows and columns that you may not see in %s", tab.FullName())
	}
	snap, err := b.changesEnd(tab, args.end)
	if err != nil {
		return nil, nil, b.place(c.At(), err)
	}
	var steps []catalog.Step
	if snap.Present {
		if steps, err = tab.Steps(args.start, snap.ID); err != nil {
			return nil, nil, b.place(c.At(), err)
		}
	}
	appends := strings.HasSuffix(name, "table_appends")
	u := &unionRel{}
	for i, s := range steps {
		switch {
		case s.Operation == table.OpReplace:
			continue
		case appends && s.Operation != table.OpAppend:
			return nil, nil, b.errorf(c.At(), fault.Unsupported, "NOT_SUPPORTED", "snapshot %d is a %q, not an append; table_changes tells what it removed", s.ID, s.Operation)
		}
		if err := b.change(u, tab, snap, s, i, false, appends); err != nil {
			return nil, nil, b.place(c.At(), err)
		}
		if s.Operation != table.OpAppend && s.HasParent {
			if err := b.change(u, tab, snap, s, i, true, appends); err != nil {
				return nil, nil, b.place(c.At(), err)
			}
		}
	}
	cols, err := changeColumns(snap, appends)
	if err != nil {
		return nil, nil, b.place(c.At(), err)
	}
	out := b.rows(cols, nil)
	if len(u.ins) > 0 {
		u.cols = out.ids()
		out.rel = u
	}
	sc, err := b.tableAlias(out, t.Alias, qualifier(t.Alias, tab.Catalog, tab.Namespace.String(), tab.Name))
	return out.rel, sc, err
}

// changeColumns are those of the table, then those that tell of the change.
func changeColumns(snap catalog.Snapshot, appends bool) ([]Column, error) {
	var cols []Column
	for _, f := range snap.Schema.Fields() {
		typ, err := catalog.TypeOf(f.Type)
		if err != nil {
			return nil, fault.Wrap(fault.Unsupported, err, "column %q", f.Name)
		}
		cols = append(cols, Column{Name: f.Name, Type: typ, Nullable: !f.Required})
	}
	if !appends {
		cols = append(cols, Column{Name: "_change_type", Type: varchar})
	}
	return append(cols, Column{Name: "_change_version_id", Type: bigint}, Column{Name: "_change_timestamp", Type: instant}, Column{Name: "_change_ordinal", Type: integer}), nil
}

// change adds the rows that a snapshot added or removed to u.
func (b *binder) change(u *unionRel, tab *catalog.Table, end catalog.Snapshot, s catalog.Step, ordinal int, removed, appends bool) error {
	scan := &scanRel{table: tab, snap: catalog.Snapshot{ID: s.ID, Present: true, Schema: end.Schema}, limit: -1,
		change: &catalog.Change{Other: s.Parent, HasOther: s.HasParent}}
	if removed {
		scan.snap.ID, scan.change = s.Parent, &catalog.Change{Removed: true, Other: s.ID, HasOther: true}
	}
	p := &projectRel{in: scan}
	for _, f := range end.Schema.Fields() {
		typ, err := catalog.TypeOf(f.Type)
		if err != nil {
			return err
		}
		id := b.cols.add(f.Name, typ, !f.Required)
		scan.cols, scan.fields = append(scan.cols, id), append(scan.fields, f)
		p.list, p.cols = append(p.list, b.cols.ref(id)), append(p.cols, id)
	}
	constant := func(name string, t vector.Type, v vector.Value) {
		p.list = append(p.list, &expr.Literal{Value: v, Typ: t})
		p.cols = append(p.cols, b.cols.add(name, t, false))
	}
	if !appends {
		kind := "insert"
		if removed {
			kind = "delete"
		}
		constant("_change_type", varchar, kind)
	}
	constant("_change_version_id", bigint, s.ID)
	constant("_change_timestamp", instant, s.At.UnixMicro())
	constant("_change_ordinal", integer, int32(ordinal))
	u.ins, u.maps = append(u.ins, p), append(u.maps, p.cols)
	return nil
}

// changesEnd is the last snapshot, which is pinned when the call names none.
func (b *binder) changesEnd(tab *catalog.Table, end *int64) (catalog.Snapshot, error) {
	if end != nil {
		return tab.Resolve(catalog.Version{Kind: catalog.ByID, ID: *end})
	}
	v := catalog.Version{}
	full := tab.FullName()
	cur := tab.Metadata.CurrentSnapshot()
	if id, ok := b.env.Snapshots[full]; ok && (cur == nil || cur.SnapshotID != id) {
		v = catalog.Version{Kind: catalog.ByID, ID: id}
	}
	snap, err := tab.Resolve(v)
	if err == nil && snap.Present {
		b.pinned[full] = snap.ID
	}
	return snap, err
}

func (b *binder) changesArgs(c *sql.Call) (*changesCall, error) {
	order := []string{"schema_name", "table_name", "start_snapshot_id", "end_snapshot_id"}
	values := map[string]vector.Value{}
	for i, a := range c.Args {
		name := ""
		if c.ArgNames != nil {
			name = fold(c.ArgNames[i].Name)
		}
		if name == "" {
			if i >= len(order) {
				return nil, b.errorf(a.At(), fault.Invalid, "INVALID_ARGUMENTS", "%s takes schema_name, table_name, start_snapshot_id, end_snapshot_id", dotted(c.Name))
			}
			name = order[i]
		}
		x := &exprBinder{b: b, where: "a table function"}
		e, err := x.bind(a)
		if err != nil {
			return nil, err
		}
		v, err := expr.EvalConst(e, b.env.context())
		if err != nil {
			return nil, b.errorf(a.At(), fault.Invalid, "INVALID_ARGUMENTS", "argument %s must be a constant: %v", name, err)
		}
		switch name {
		case "schema_name", "table_name":
			if _, ok := v.(string); !ok {
				return nil, b.errorf(a.At(), fault.Invalid, "INVALID_ARGUMENTS", "argument %s is a text, not %s", name, e.Type())
			}
		case "start_snapshot_id", "end_snapshot_id":
			if n, ok := v.(int32); ok {
				v = int64(n)
			}
			if _, ok := v.(int64); !ok && v != nil {
				return nil, b.errorf(a.At(), fault.Invalid, "INVALID_ARGUMENTS", "argument %s is a snapshot id, not %s", name, e.Type())
			}
		default:
			return nil, b.errorf(a.At(), fault.Invalid, "INVALID_ARGUMENTS", "%s has no argument %q; it takes schema_name, table_name, start_snapshot_id, end_snapshot_id", dotted(c.Name), name)
		}
		values[name] = v
	}
	out := &changesCall{}
	if n := len(c.Name); n > 2 { // catalog.system.table_changes
		out.table = append(out.table, c.Name[:n-2]...)
	}
	for _, key := range order[:2] {
		if s, ok := values[key].(string); ok && s != "" {
			parts := []string{s}
			if key == "table_name" && values["schema_name"] == nil {
				parts = strings.Split(s, ".")
			}
			for _, p := range parts {
				out.table = append(out.table, sql.Ident{Pos: c.At(), Name: p})
			}
		} else if key == "table_name" {
			return nil, b.errorf(c.At(), fault.Invalid, "INVALID_ARGUMENTS", "%s needs table_name", dotted(c.Name))
		}
	}
	if n, ok := values["start_snapshot_id"].(int64); ok {
		out.start = &n
	}
	if n, ok := values["end_snapshot_id"].(int64); ok {
		out.end = &n
	}
	return out, nil
}
