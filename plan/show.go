package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// typeName is a column's type as SQL spells it; a type that Skua does not know goes by its Iceberg name.
func typeName(t iceberg.Type) string {
	v, err := catalog.TypeOf(t)
	if err != nil {
		return t.String()
	}
	return v.String()
}

// show binds the SHOW statements and DESCRIBE; LIKE filters by the first column.
func (b *binder) show(s *sql.Show) (*bound, error) {
	var out *bound
	switch s.What {
	case "CATALOGS":
		out = b.catalogs()
		out.cols[0].name = "Catalog"
	case "SCHEMAS":
		cat, err := b.sessionCatalog(s.Pos)
		if s.In != nil {
			var ok bool
			if cat, ok = b.catalog(s.In[0]); !ok || len(s.In) > 1 {
				return nil, b.errorf(s.In[0].Pos, fault.NotFound, "CATALOG_NOT_FOUND", "catalog %q does not exist", dotted(s.In))
			}
		} else if err != nil {
			return nil, err
		}
		nss, err := b.namespaces(cat)
		if err != nil {
			return nil, b.place(s.Pos, err)
		}
		names := []string{informationSchema}
		for _, ns := range nss {
			names = append(names, ns.String())
		}
		slices.Sort(names)
		out = b.names("Schema", names)
	case "TABLES":
		cat, ns, err := b.showSchema(s)
		if err != nil {
			return nil, err
		}
		names, err := cat.Tables(b.ctx, ns)
		if err != nil {
			return nil, b.place(s.Pos, err)
		}
		out = b.names("Table", names)
	case "COLUMNS":
		t, meta, err := b.load(s.In)
		if err != nil {
			return nil, err
		}
		var rows [][]vector.Value
		if meta != "" {
			snap, err := t.Resolve(catalog.Version{})
			if err != nil {
				return nil, b.place(s.Pos, err)
			}
			m, err := b.metadataTable(s.Pos, t, snap, meta)
			if err != nil {
				return nil, err
			}
			for _, c := range m.cols {
				rows = append(rows, []vector.Value{c.name, b.cols.list[c.id].Type.String(), "", ""})
			}
		} else {
			parts := map[int]bool{}
			spec := t.Metadata.PartitionSpec()
			for _, f := range spec.Fields() {
				for _, id := range f.SourceIDs {
					parts[id] = true
				}
			}
			for _, f := range t.Fields(t.Metadata.CurrentSchema()) {
				extra := ""
				if parts[f.ID] {
					extra = "partition key"
				}
				rows = append(rows, []vector.Value{f.Name, typeName(f.Type), extra, f.Doc})
			}
		}
		out = b.rows([]Column{column("Column", varchar), column("Type", varchar), column("Extra", varchar), column("Comment", varchar)}, rows)
	case "FUNCTIONS":
		var rows [][]vector.Value
		for _, f := range expr.Functions() {
			rows = append(rows, []vector.Value{f.Name, f.Return, f.Arguments, f.Kind, f.Deterministic, f.Description})
		}
		out = b.rows([]Column{column("Function", varchar), column("Return Type", varchar), column("Argument Types", varchar), column("Function Type", varchar), column("Deterministic", boolType), column("Description", varchar)}, rows)
	case "SESSION":
		var names []string
		for n := range b.env.Session {
			names = append(names, n)
		}
		slices.Sort(names)
		var rows [][]vector.Value
		for _, n := range names {
			rows = append(rows, []vector.Value{n, b.env.Session[n]})
		}
		out = b.rows([]Column{column("Name", varchar), column("Value", varchar)}, rows)
	case "CREATE TABLE":
		t, _, err := b.load(s.In)
		if err != nil {
			return nil, err
		}
		out = b.rows([]Column{column("Create Table", varchar)}, [][]vector.Value{{createTable(t)}})
	}
	if s.Like == nil {
		return out, nil
	}
	x := &exprBinder{b: b, where: "LIKE"}
	p, err := x.bind(s.Like)
	if err != nil {
		return nil, err
	}
	var esc expr.Expr
	if s.Escape != nil {
		if esc, err = x.bind(s.Escape); err != nil {
			return nil, err
		}
	}
	c, err := expr.NewLike(b.cols.ref(out.cols[0].id), p, esc, false, false)
	if err != nil {
		return nil, b.place(s.Like.At(), err)
	}
	out.rel = &filterRel{out.rel, []expr.Expr{c}}
	return out, nil
}

func (b *binder) names(title string, names []string) *bound {
	var rows [][]vector.Value
	for _, n := range names {
		rows = append(rows, []vector.Value{n})
	}
	return b.rows([]Column{column(title, varchar)}, rows)
}

// showSchema finds the catalog and namespace that SHOW TABLES is about.
func (b *binder) showSchema(s *sql.Show) (catalog.Catalog, catalog.Namespace, error) {
	if s.In == nil {
		cat, err := b.sessionCatalog(s.Pos)
		if err != nil {
			return nil, nil, err
		}
		if b.env.Schema == "" {
			return nil, nil, b.errorf(s.Pos, fault.Invalid, "MISSING_SCHEMA_NAME", "the session has no schema; write SHOW TABLES FROM schema")
		}
		return cat, levels(b.env.Schema), nil
	}
	cat, ns, err := b.schema(s.In)
	return cat, ns, err
}

// schema resolves [catalog.]schema.
func (b *binder) schema(parts []sql.Ident) (catalog.Catalog, catalog.Namespace, error) {
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	if len(parts) > 1 {
		if cat, ok := b.catalog(parts[0]); ok {
			if ns, ok := b.respellNamespace(cat, levels(names[1:]...)); ok {
				return cat, ns, nil
			}
		}
	}
	cat, err := b.sessionCatalog(parts[0].Pos)
	if err == nil {
		if ns, ok := b.respellNamespace(cat, levels(names...)); ok {
			return cat, ns, nil
		}
	} else if len(parts) == 1 {
		return nil, nil, err
	}
	return nil, nil, b.errorf(parts[0].Pos, fault.NotFound, "SCHEMA_NOT_FOUND", "schema %q does not exist", dotted(parts))
}

// createTable describes a table as the statement that would make one like it.
func createTable(t *catalog.Table) string {
	var w strings.Builder
	fmt.Fprintf(&w, "CREATE TABLE %s.%s.%s (\n", sql.Quote(t.Catalog), sql.Quote(t.Namespace.String()), sql.Quote(t.Name))
	fields := t.Fields(t.Metadata.CurrentSchema())
	for i, f := range fields {
		fmt.Fprintf(&w, "   %s %s", sql.Quote(f.Name), typeName(f.Type))
		if f.Required {
			w.WriteString(" NOT NULL")
		}
		if f.Doc != "" {
			w.WriteString(" COMMENT " + sql.QuoteText(f.Doc))
		}
		if i < len(fields)-1 {
			w.WriteByte(',')
		}
		w.WriteByte('\n')
	}
	fmt.Fprintf(&w, ")\nWITH (\n   format_version = %d,\n   location = %s", t.Metadata.Version(), sql.QuoteText(t.Metadata.Location()))
	spec := t.Metadata.PartitionSpec()
	var parts []string
	for _, f := range spec.Fields() {
		name, ok := t.Metadata.CurrentSchema().FindColumnName(f.SourceID())
		if !ok {
			name = f.Name
		}
		if !slices.ContainsFunc(fields, func(c iceberg.NestedField) bool { return c.ID == f.SourceID() }) && t.Access != nil {
			continue
		}
		parts = append(parts, sql.QuoteText(partitionText(f.Transform, name)))
	}
	if len(parts) > 0 {
		fmt.Fprintf(&w, ",\n   partitioning = ARRAY[%s]", strings.Join(parts, ", "))
	}
	w.WriteString("\n)")
	return w.String()
}

func partitionText(t iceberg.Transform, column string) string {
	name := t.String()
	switch {
	case name == "identity":
		return column
	case strings.HasSuffix(name, "]"): // bucket[16], truncate[4]
		fn, n, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		return fn + "(" + column + ", " + n + ")"
	}
	return name + "(" + column + ")"
}
