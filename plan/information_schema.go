package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

const informationSchema = "information_schema"

// equalities collects column = 'text' and column IN ('text', ...) of a WHERE by column name. They are hints: information_schema reads
// no more schemas and tables than they allow, and the filter stays.
func equalities(where sql.Expr) map[string][]string {
	if where == nil {
		return nil
	}
	m := map[string][]string{}
	put := func(e sql.Expr, vals ...sql.Expr) {
		n, ok := e.(*sql.Name)
		if !ok {
			return
		}
		var texts []string
		for _, v := range vals {
			t, ok := v.(*sql.Text)
			if !ok {
				return
			}
			texts = append(texts, t.Value)
		}
		key := fold(n.Parts[len(n.Parts)-1].Name)
		if m[key] == nil {
			m[key] = texts
		}
	}
	for _, c := range conjuncts(where) {
		switch c := c.(type) {
		case *sql.Binary:
			if c.Op == "=" {
				put(c.L, c.R)
				put(c.R, c.L)
			}
		case *sql.In:
			if !c.Not && c.Query == nil {
				put(c.X, c.List...)
			}
		}
	}
	return m
}

// informationSchema binds information_schema.x and catalog.information_schema.x; ok is false for other names.
func (b *binder) informationSchema(t *sql.TableName) (rel, *scope, bool, error) {
	n := len(t.Parts)
	if n < 2 || n > 3 || fold(t.Parts[n-2].Name) != informationSchema {
		return nil, nil, false, nil
	}
	var cat catalog.Catalog
	var err error
	if n == 3 {
		var ok bool
		if cat, ok = b.catalog(t.Parts[0]); !ok {
			return nil, nil, false, nil
		}
	} else if cat, err = b.sessionCatalog(t.Parts[0].Pos); err != nil {
		return nil, nil, true, err
	}
	if t.Version != nil {
		return nil, nil, true, b.unsupported(t.Version.Pos, "information_schema has no versions")
	}
	var s *bound
	switch fold(t.Parts[n-1].Name) {
	case "catalogs":
		s = b.catalogs()
	case "schemata":
		s, err = b.schemata(cat)
	case "tables":
		s, err = b.tablesOf(cat)
	case "columns":
		s, err = b.columnsOf(cat)
	case "views":
		s = b.rows([]Column{column("table_catalog", varchar), column("table_schema", varchar), column("table_name", varchar), column("view_definition", varchar)}, nil)
	default:
		m := sql.Nearest(t.Parts[n-1].Name, []string{"catalogs", "schemata", "tables", "columns", "views"})
		if m != "" {
			m = "; did you mean " + m + "?"
		}
		err = b.errorf(t.Parts[n-1].Pos, fault.NotFound, "TABLE_NOT_FOUND", "information_schema has no table %q%s", t.Parts[n-1].Name, m)
	}
	if err != nil {
		return nil, nil, true, b.place(t.Parts[0].Pos, err)
	}
	sc, err := b.tableAlias(s, t.Alias, qualifier(t.Alias, cat.Name(), informationSchema, fold(t.Parts[n-1].Name)))
	return s.rel, sc, true, err
}

func (b *binder) catalogs() *bound {
	var rows [][]vector.Value
	if b.env.Catalogs != nil {
		for _, n := range b.env.Catalogs.Names() {
			rows = append(rows, []vector.Value{n})
		}
	}
	return b.rows([]Column{column("catalog_name", varchar)}, rows)
}

// maxNamespaceDepth bounds the walk through nested namespaces.
const maxNamespaceDepth = 16

// namespaces lists all namespaces of a catalog, nested ones too, parents first.
func (b *binder) namespaces(cat catalog.Catalog) ([]catalog.Namespace, error) {
	var out []catalog.Namespace
	var walk func(parent catalog.Namespace) error
	walk = func(parent catalog.Namespace) error {
		if len(parent) >= maxNamespaceDepth {
			return nil
		}
		kids, err := cat.Namespaces(b.ctx, parent)
		if err != nil {
			if parent != nil && errors.Is(err, fault.NotFound) { // dropped meanwhile
				return nil
			}
			return err
		}
		for _, k := range kids {
			out = append(out, k)
			if err := walk(k); err != nil {
				return err
			}
		}
		return nil
	}
	err := walk(nil)
	return out, err
}

// wantedNamespaces are the namespaces that a filter on the schema column allows.
func (b *binder) wantedNamespaces(cat catalog.Catalog, column string) ([]catalog.Namespace, error) {
	if names, ok := b.wanted[column]; ok {
		var out []catalog.Namespace
		for _, n := range names {
			if ns, ok := b.respellNamespace(cat, levels(n)); ok && ns.String() == n {
				out = append(out, ns)
			}
		}
		return out, nil
	}
	return b.namespaces(cat)
}

func (b *binder) schemata(cat catalog.Catalog) (*bound, error) {
	nss, err := b.wantedNamespaces(cat, "schema_name")
	if err != nil {
		return nil, err
	}
	var rows [][]vector.Value
	for _, ns := range nss {
		rows = append(rows, []vector.Value{cat.Name(), ns.String()})
	}
	if names, ok := b.wanted["schema_name"]; !ok || slices.Contains(names, informationSchema) {
		rows = append(rows, []vector.Value{cat.Name(), informationSchema})
	}
	return b.rows([]Column{column("catalog_name", varchar), column("schema_name", varchar)}, rows), nil
}

// eachTable calls f for every table that the filters on table_schema and table_name allow.
func (b *binder) eachTable(cat catalog.Catalog, f func(ns catalog.Namespace, name string) error) error {
	nss, err := b.wantedNamespaces(cat, "table_schema")
	if err != nil {
		return err
	}
	names, filtered := b.wanted["table_name"]
	for _, ns := range nss {
		tables, err := cat.Tables(b.ctx, ns)
		if err != nil {
			if errors.Is(err, fault.NotFound) {
				continue
			}
			return err
		}
		for _, t := range tables {
			if filtered && !slices.Contains(names, t) {
				continue
			}
			if err := f(ns, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *binder) tablesOf(cat catalog.Catalog) (*bound, error) {
	var rows [][]vector.Value
	err := b.eachTable(cat, func(ns catalog.Namespace, t string) error {
		rows = append(rows, []vector.Value{cat.Name(), ns.String(), t, "BASE TABLE"})
		return nil
	})
	return b.rows([]Column{column("table_catalog", varchar), column("table_schema", varchar), column("table_name", varchar), column("table_type", varchar)}, rows), err
}

func (b *binder) columnsOf(cat catalog.Catalog) (*bound, error) {
	cols := []Column{column("table_catalog", varchar), column("table_schema", varchar), column("table_name", varchar), column("column_name", varchar), column("ordinal_position", bigint),
		column("column_default", varchar), column("is_nullable", varchar), column("data_type", varchar), column("comment", varchar)}
	var rows [][]vector.Value
	err := b.eachTable(cat, func(ns catalog.Namespace, name string) error {
		t, err := cat.Load(b.ctx, ns, name)
		if err != nil {
			// One table that is gone, hidden or broken must not hide the others.
			if b.ctx.Err() != nil || errors.Is(err, fault.Unavailable) {
				return err
			}
			return nil
		}
		for i, f := range t.Fields(t.Metadata.CurrentSchema()) {
			null := "YES"
			if f.Required {
				null = "NO"
			}
			rows = append(rows, []vector.Value{cat.Name(), ns.String(), name, f.Name, int64(i + 1), nil, null, typeName(f.Type), comment(f.Doc)})
		}
		return nil
	})
	return b.rows(cols, rows), err
}

func comment(doc string) vector.Value {
	if strings.TrimSpace(doc) == "" {
		return nil
	}
	return doc
}
