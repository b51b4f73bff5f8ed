package plan

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// tableName binds a name in FROM: a table of WITH, a catalog's table, a metadata table or one of information_schema.
func (b *binder) tableName(t *sql.TableName, outer *scope) (rel, *scope, error) {
	if len(t.Parts) == 1 {
		for s := outer; s != nil; s = s.parent {
			if c := s.ctes[fold(t.Parts[0].Name)]; c != nil {
				return b.useCTE(c, t)
			}
		}
	}
	if r, sc, ok, err := b.informationSchema(t); ok || err != nil {
		return r, sc, err
	}
	tab, meta, err := b.load(t.Parts)
	var view *catalog.ViewError
	if errors.As(err, &view) {
		return b.view(t, view.View)
	}
	if err != nil {
		return nil, nil, err
	}
	at := t.Parts[len(t.Parts)-1].Pos
	full := tab.FullName()
	var snap catalog.Snapshot
	if t.Version != nil {
		v, err := b.version(t.Version)
		if err != nil {
			return nil, nil, err
		}
		if snap, err = resolve(tab, v, t.Version.Kind); err != nil {
			return nil, nil, b.place(t.Version.Pos, err)
		}
	} else {
		v := catalog.Version{}
		cur := tab.Metadata.CurrentSnapshot()
		if id, ok := b.env.Snapshots[full]; ok && (cur == nil || cur.SnapshotID != id) {
			v = catalog.Version{Kind: catalog.ByID, ID: id}
		}
		if snap, err = tab.Resolve(v); err != nil {
			return nil, nil, b.place(at, err)
		}
		if snap.Present {
			b.pinned[full] = snap.ID
		}
	}
	name := tab.Name
	if meta != "" {
		name += "$" + meta
	}
	qual := qualifier(t.Alias, tab.Catalog, tab.Namespace.String(), name)
	if meta != "" {
		if tab.Access != nil {
			return nil, nil, b.errorf(at, fault.Denied, "PERMISSION_DENIED", "metadata tables tell of rows and columns that you may not see in %s", full)
		}
		if t.Sample != nil {
			return nil, nil, b.unsupported(t.Sample.Pos, "TABLESAMPLE is not supported on metadata tables")
		}
		s, err := b.metadataTable(at, tab, snap, meta)
		if err != nil {
			return nil, nil, err
		}
		sc, err := b.tableAlias(s, t.Alias, qual)
		return s.rel, sc, err
	}
	return b.scan(at, tab, snap, t.Sample, t.Alias, qual)
}

// scan binds a table at a snapshot, whose columns may be qualified by qual.
func (b *binder) scan(at sql.Pos, tab *catalog.Table, snap catalog.Snapshot, sample *sql.Sample, alias *sql.Alias, qual []string) (rel, *scope, error) {
	if tab.Access != nil {
		return b.partialScan(at, tab, snap, sample, alias, qual)
	}
	full := tab.FullName()
	scan := &scanRel{table: tab, snap: snap, limit: -1}
	s := &bound{rel: scan}
	for _, f := range snap.Schema.Fields() {
		typ, err := catalog.TypeOf(f.Type)
		if err != nil {
			return nil, nil, b.place(at, fault.Wrap(fault.Unsupported, err, "table %s: column %q", full, f.Name))
		}
		id := b.cols.add(f.Name, typ, !f.Required)
		scan.cols, scan.fields = append(scan.cols, id), append(scan.fields, f)
		s.cols = append(s.cols, outCol{f.Name, id})
	}
	if sample != nil {
		var err error
		if scan.sample, err = b.sample(sample); err != nil {
			return nil, nil, err
		}
	}
	sc, err := b.tableAlias(s, alias, qual)
	if err != nil {
		return nil, nil, err
	}
	sc.scans = []scopeScan{{qual, scan}}
	out, err := sampled(scan, scan.sample)
	return out, sc, err
}

// sampled keeps each row by chance; s may be nil.
func sampled(in rel, s *sampleSpec) (rel, error) {
	if s == nil {
		return in, nil
	}
	random, err := expr.NewCall("random", nil)
	if err != nil {
		return nil, err
	}
	c, err := expr.NewCompare(expr.Lt, random, &expr.Literal{Value: s.fraction, Typ: vector.Of(vector.Double)})
	if err != nil {
		return nil, err
	}
	return &filterRel{in, []expr.Expr{c}}, nil
}

// sample reads TABLESAMPLE; both methods keep each row by chance.
func (b *binder) sample(s *sql.Sample) (*sampleSpec, error) {
	x := &exprBinder{b: b, where: "TABLESAMPLE"}
	e, err := x.bind(s.Percent)
	if err != nil {
		return nil, err
	}
	if e, err = expr.NewCast(e, vector.Of(vector.Double), false); err != nil {
		return nil, b.place(s.Pos, err)
	}
	v, err := expr.EvalConst(e, b.env.context())
	if err != nil {
		return nil, b.place(s.Pos, err)
	}
	p, ok := v.(float64)
	if !ok || !(p >= 0 && p <= 100) {
		return nil, b.errorf(s.Pos, fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", "the sample percentage must be between 0 and 100")
	}
	return &sampleSpec{p / 100}, nil
}

// sampleRows keeps each row of a relation by chance; s may be nil.
func (b *binder) sampleRows(in rel, s *sql.Sample) (rel, error) {
	if s == nil {
		return in, nil
	}
	spec, err := b.sample(s)
	if err != nil {
		return nil, err
	}
	return sampled(in, spec)
}

func (b *binder) tableAlias(s *bound, a *sql.Alias, qual []string) (*scope, error) {
	if a != nil && a.Columns != nil {
		n, err := b.rename(s, a.Columns, a.Name)
		if err != nil {
			return nil, err
		}
		*s = *n
	}
	sc := &scope{}
	for _, c := range s.cols {
		sc.cols = append(sc.cols, scopeCol{qual: qual, name: c.name, id: c.id})
	}
	return sc, nil
}

// useCTE makes a use of a common table expression, with columns of its own.
func (b *binder) useCTE(c *cte, t *sql.TableName) (rel, *scope, error) {
	if c.bound == nil {
		return nil, nil, b.errorf(t.Parts[0].Pos, fault.Invalid, "INVALID_RECURSIVE_REFERENCE", "a recursive query can refer to itself only in the FROM of its step, after UNION")
	}
	if t.Version != nil {
		return nil, nil, b.errorf(t.Version.Pos, fault.Invalid, "NOT_SUPPORTED", "%q is a query of WITH and has no versions", c.name)
	}
	if c.sp == nil {
		b.spools++
		c.sp = &spool{b.spools, c.bound.rel}
	}
	u := &spoolRel{sp: c.sp}
	m := map[int]int{}
	s := &bound{rel: u}
	for _, o := range c.bound.cols {
		id, ok := m[o.id]
		if !ok {
			k := b.cols.list[o.id]
			id = b.cols.add(o.name, k.Type, k.Nullable)
			m[o.id] = id
			u.src, u.cols = append(u.src, o.id), append(u.cols, id)
		}
		s.cols = append(s.cols, outCol{o.name, id})
	}
	c.uses = append(c.uses, u)
	sc, err := b.tableAlias(s, t.Alias, qualifier(t.Alias, c.name))
	if err != nil {
		return nil, nil, err
	}
	r, err := b.sampleRows(u, t.Sample)
	return r, sc, err
}

// version evaluates a time travel clause.
func (b *binder) version(v *sql.Version) (catalog.Version, error) {
	out := catalog.Version{}
	if n, ok := v.Expr.(*sql.Name); ok && len(n.Parts) == 1 && v.Kind != "TIMESTAMP" { // AT BRANCH audit
		return catalog.Version{Kind: catalog.ByRef, Ref: n.Parts[0].Name}, nil
	}
	x := &exprBinder{b: b, where: "a version"}
	e, err := x.bind(v.Expr)
	if err != nil {
		return out, err
	}
	if v.Kind == "TIMESTAMP" {
		t := vector.Type{Kind: vector.TimestampTZ, Precision: 9}
		if e, err = expr.NewCast(e, t, false); err != nil {
			return out, b.place(v.Pos, err)
		}
	}
	val, err := expr.EvalConst(e, b.env.context())
	if err != nil {
		return out, b.errorf(v.Pos, fault.Invalid, "INVALID_ARGUMENTS", "the version must be a constant: %v", err)
	}
	switch n := val.(type) {
	case int32:
		return catalog.Version{Kind: catalog.ByID, ID: int64(n)}, nil
	case int64:
		if v.Kind == "TIMESTAMP" {
			return catalog.Version{Kind: catalog.ByTime, Time: time.Unix(0, n).UTC()}, nil
		}
		return catalog.Version{Kind: catalog.ByID, ID: n}, nil
	case string:
		if id, err := strconv.ParseInt(n, 10, 64); err == nil && v.Kind == "SNAPSHOT" {
			return catalog.Version{Kind: catalog.ByID, ID: id}, nil
		}
		return catalog.Version{Kind: catalog.ByRef, Ref: n}, nil
	}
	return out, b.errorf(v.Pos, fault.Invalid, "INVALID_ARGUMENTS", "a version is a snapshot id, the name of a branch or tag, or a timestamp, not %s", e.Type())
}

// resolve finds the snapshot of a version. The name of a ref wins; one that is no ref but a number is a snapshot id, as in Spark.
func resolve(t *catalog.Table, v catalog.Version, kind string) (catalog.Snapshot, error) {
	s, err := t.Resolve(v)
	if err != nil && v.Kind == catalog.ByRef && kind == "VERSION" && errors.Is(err, fault.NotFound) {
		if id, perr := strconv.ParseInt(v.Ref, 10, 64); perr == nil {
			if s, err := t.Resolve(catalog.Version{Kind: catalog.ByID, ID: id}); err == nil {
				return s, nil
			}
		}
	}
	return s, err
}

// metadata columns by the names of the spec and of Trino (spec: Reserved Field IDs).
var metadataColumns = map[string]iceberg.NestedField{
	"_file": {ID: 2147483646, Name: "_file", Type: iceberg.PrimitiveTypes.String, Required: true},
	"$path": {ID: 2147483646, Name: "$path", Type: iceberg.PrimitiveTypes.String, Required: true},
	"_pos":  {ID: 2147483645, Name: "_pos", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	// Naming _deleted asks for the deleted rows too, marked by it.
	"_deleted":                      {ID: 2147483644, Name: "_deleted", Type: iceberg.PrimitiveTypes.Bool, Required: true},
	"_partition":                    {ID: 2147483642, Name: "_partition", Type: iceberg.UnknownType{}},
	"_spec_id":                      {ID: 2147483643, Name: "_spec_id", Type: iceberg.PrimitiveTypes.Int32, Required: true},
	"_row_id":                       {ID: 2147483540, Name: "_row_id", Type: iceberg.PrimitiveTypes.Int64},
	"_last_updated_sequence_number": {ID: 2147483539, Name: "_last_updated_sequence_number", Type: iceberg.PrimitiveTypes.Int64},
}

// metadataColumn adds a metadata column to a scan of the scope when it is named; nil when the name means none.
func (b *binder) metadataColumn(s *scope, qual []sql.Ident, name sql.Ident) (*scopeCol, error) {
	f, ok := metadataColumns[fold(name.Name)]
	if !ok {
		return nil, nil
	}
	var found []scopeScan
	for _, sc := range s.scans {
		if len(qual) == 0 || qualifies(qual, sc.qual) {
			found = append(found, sc)
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	if len(found) > 1 {
		return nil, b.errorf(name.Pos, fault.Invalid, "AMBIGUOUS_NAME", "column %q is ambiguous: several tables have it", name.Name)
	}
	scan := found[0].scan
	if f.Name == "_partition" {
		if t := catalog.PartitionType(scan.table.Metadata); t != nil {
			f.Type = t
		}
	}
	i := slices.IndexFunc(scan.fields, func(g iceberg.NestedField) bool { return g.ID == f.ID })
	if i < 0 {
		t, err := catalog.TypeOf(f.Type)
		if err != nil {
			return nil, err
		}
		i = len(scan.cols)
		scan.cols = append(scan.cols, b.cols.add(f.Name, t, !f.Required))
		scan.fields = append(scan.fields, f)
	}
	return &scopeCol{qual: found[0].qual, name: f.Name, id: scan.cols[i]}, nil
}

// target is one meaning of a written table name.
type target struct {
	cat  catalog.Catalog
	ns   catalog.Namespace
	name string
	meta string // metadata table, "" for the table itself
	// positions of the parts, for messages
	catPart, nsPart, namePart int
}

// levels splits a dotted schema name into the levels of its namespace.
func levels(parts ...string) catalog.Namespace {
	var ns catalog.Namespace
	for _, p := range parts {
		ns = append(ns, strings.Split(p, ".")...)
	}
	return ns
}

// targets lists what a table name can mean, best first.
func (b *binder) targets(parts []sql.Ident) ([]target, error) {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name
	}
	n := len(names)
	var out []target
	add := func(cat catalog.Catalog, ns catalog.Namespace, catPart int) {
		t := target{cat: cat, ns: ns, name: names[n-1], catPart: catPart, nsPart: max(n-2, 0), namePart: n - 1}
		if base, meta, ok := strings.Cut(t.name, "$"); ok && base != "" {
			// A table may have a $ in its name: the metadata table is the second guess.
			out = append(out, t)
			t.name, t.meta = base, meta
		}
		out = append(out, t)
	}
	session, err := b.sessionCatalog(parts[0].Pos)
	switch n {
	case 1:
		if err != nil {
			return nil, err
		}
		if b.env.Schema == "" {
			return nil, b.errorf(parts[0].Pos, fault.Invalid, "MISSING_SCHEMA_NAME", "%q has no schema, and the session has no default; write schema.%s or USE a schema", names[0], names[0])
		}
		add(session, levels(b.env.Schema), -1)
	default:
		if cat, ok := b.catalog(parts[0]); ok && n > 2 {
			add(cat, levels(names[1:n-1]...), 0)
		}
		if err == nil {
			add(session, levels(names[:n-1]...), -1)
		}
		if cat, ok := b.catalog(parts[0]); ok && n == 2 && b.env.Schema != "" && (err != nil || session != cat) && b.env.Catalog == "" {
			add(cat, levels(b.env.Schema), 0)
		}
	}
	// t.files: the last part may be a metadata table.
	if n >= 2 && metadataTables[fold(names[n-1])] {
		more, err := b.targets(parts[:n-1])
		if err == nil {
			for _, t := range more {
				if t.meta == "" {
					t.meta = fold(names[n-1])
					out = append(out, t)
				}
			}
		}
	}
	if len(out) == 0 {
		if n > 2 {
			hint := ""
			if m := sql.Nearest(names[0], b.env.Catalogs.Names()); m != "" {
				hint = "; did you mean " + m + "?"
			}
			return nil, b.errorf(parts[0].Pos, fault.NotFound, "CATALOG_NOT_FOUND", "catalog %q does not exist%s", names[0], hint)
		}
		return nil, err
	}
	return out, nil
}

func (b *binder) catalog(id sql.Ident) (catalog.Catalog, bool) {
	if b.env.Catalogs == nil {
		return nil, false
	}
	if c, ok := b.env.Catalogs.Catalog(id.Name); ok {
		return c, true
	}
	for _, n := range b.env.Catalogs.Names() {
		if strings.EqualFold(n, id.Name) {
			return b.env.Catalogs.Catalog(n)
		}
	}
	return nil, false
}

func (b *binder) sessionCatalog(at sql.Pos) (catalog.Catalog, error) {
	name := b.env.Catalog
	if name == "" && b.env.Catalogs != nil {
		if all := b.env.Catalogs.Names(); len(all) == 1 {
			name = all[0]
		}
	}
	if name == "" {
		return nil, b.errorf(at, fault.Invalid, "MISSING_CATALOG_NAME", "the name has no catalog, and the session has no default; write catalog.schema.table or USE a schema")
	}
	c, ok := b.catalog(sql.Ident{Name: name})
	if !ok {
		return nil, b.errorf(at, fault.NotFound, "CATALOG_NOT_FOUND", "the session's catalog %q does not exist", name)
	}
	return c, nil
}

// load finds the table that a name means and reads its metadata, once a statement. meta is the metadata table that was asked for.
func (b *binder) load(parts []sql.Ident) (*catalog.Table, string, error) {
	ts, err := b.targets(parts)
	if err != nil {
		return nil, "", err
	}
	for _, t := range ts {
		tab, err := b.loadTarget(t, parts[t.namePart].Quoted)
		if err == nil {
			if t.meta != "" && !metadataTables[t.meta] {
				names := make([]string, 0, len(metadataTables))
				for n := range metadataTables {
					names = append(names, n)
				}
				slices.Sort(names)
				hint := ""
				if m := sql.Nearest(t.meta, names); m != "" {
					hint = "; did you mean $" + m + "?"
				}
				return nil, "", b.errorf(parts[t.namePart].Pos, fault.NotFound, "TABLE_NOT_FOUND", "table %s has no metadata table %q%s", tab.FullName(), t.meta, hint)
			}
			return tab, t.meta, nil
		}
		if !errors.Is(err, fault.NotFound) {
			return nil, "", b.place(parts[0].Pos, err)
		}
	}
	return nil, "", b.noTable(ts[0], parts)
}

func (b *binder) loadTarget(t target, quoted bool) (*catalog.Table, error) {
	key := t.cat.Name() + "\x00" + strings.Join(t.ns, "\x00") + "\x00" + t.name
	if tab := b.tables[key]; tab != nil {
		return tab, nil
	}
	tab, err := t.cat.Load(b.ctx, t.ns, t.name)
	if errors.Is(err, fault.NotFound) {
		// Catalogs keep case; names written without quotes do not.
		if ns, name, ok := b.respell(t); ok && (ns.String() != t.ns.String() || name != t.name) {
			tab, err = t.cat.Load(b.ctx, ns, name)
		}
	}
	if err != nil {
		return nil, err
	}
	b.tables[key] = tab
	return tab, nil
}

// respell finds the namespace and table whose names differ in case only.
func (b *binder) respell(t target) (catalog.Namespace, string, bool) {
	ns, ok := b.respellNamespace(t.cat, t.ns)
	if !ok {
		return nil, "", false
	}
	names, err := t.cat.Tables(b.ctx, ns)
	if err != nil {
		return nil, "", false
	}
	for _, n := range names {
		if strings.EqualFold(n, t.name) {
			return ns, n, true
		}
	}
	return nil, "", false
}

func (b *binder) respellNamespace(cat catalog.Catalog, ns catalog.Namespace) (catalog.Namespace, bool) {
	var out catalog.Namespace
	for i := range ns {
		kids, err := cat.Namespaces(b.ctx, out)
		if err != nil {
			return nil, false
		}
		at := slices.IndexFunc(kids, func(k catalog.Namespace) bool { return len(k) == i+1 && k[i] == ns[i] })
		if at < 0 {
			at = slices.IndexFunc(kids, func(k catalog.Namespace) bool { return len(k) == i+1 && strings.EqualFold(k[i], ns[i]) })
		}
		if at < 0 {
			return nil, false
		}
		out = kids[at]
	}
	return out, true
}

// noTable tells which part of a name does not exist, and what is near it.
func (b *binder) noTable(t target, parts []sql.Ident) error {
	names, err := t.cat.Tables(b.ctx, t.ns)
	if err != nil {
		if ns, ok := b.respellNamespace(t.cat, t.ns); ok {
			names, err = t.cat.Tables(b.ctx, ns)
		}
	}
	if err != nil && errors.Is(err, fault.NotFound) {
		var all []string
		if kids, err := t.cat.Namespaces(b.ctx, nil); err == nil {
			for _, k := range kids {
				all = append(all, k.String())
			}
		}
		hint := ""
		if m := sql.Nearest(t.ns.String(), all); m != "" {
			hint = "; did you mean " + m + "?"
		}
		return b.errorf(parts[t.nsPart].Pos, fault.NotFound, "SCHEMA_NOT_FOUND", "schema %q does not exist in catalog %s%s", t.ns, t.cat.Name(), hint)
	}
	if err != nil {
		return b.place(parts[0].Pos, err)
	}
	hint := ""
	if m := sql.Nearest(t.name, names); m != "" {
		hint = "; did you mean " + m + "?"
	}
	return b.errorf(parts[t.namePart].Pos, fault.NotFound, "TABLE_NOT_FOUND", "table %q does not exist in schema %s.%s%s", t.name, t.cat.Name(), t.ns, hint)
}
