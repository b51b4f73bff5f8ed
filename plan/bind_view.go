package plan

import (
	"errors"
	"slices"
	"strings"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// viewDialects are the dialects of views that are read as they stand, best first: the parser takes their spellings, and the
// session's dialect is set to theirs where meanings differ. Dremio's is taken to mean what Trino's does.
var viewDialects = []string{"trino", "spark", "duckdb", "dremio"}

// view binds the query of a view in place of a table.
func (b *binder) view(t *sql.TableName, v *catalog.View) (rel, *scope, error) {
	at := t.Parts[len(t.Parts)-1].Pos
	names := make([]string, len(t.Parts))
	for i, p := range t.Parts {
		names[i] = p.Name
	}
	name := strings.Join(names, ".")
	switch {
	case t.Version != nil:
		return nil, nil, b.unsupported(t.Version.Pos, "%s is a view and has no versions of its own", name)
	case t.Sample != nil:
		return nil, nil, b.unsupported(t.Sample.Pos, "TABLESAMPLE is supported on tables only")
	case slices.Contains(b.views, b.viewKey(name)):
		return nil, nil, b.errorf(at, fault.Invalid, "VIEW_IS_RECURSIVE", "view %s refers to itself", name)
	}
	text, err := viewText(v)
	if err != nil {
		return nil, nil, b.place(at, fault.Wrap(fault.Unsupported, err, "view %s", name))
	}
	s, err := b.viewQuery(t, v, text, name)
	if err != nil {
		return nil, nil, b.place(at, outside(fault.Wrap(fault.Invalid, err, "view %s", name)))
	}
	sc, err := b.tableAlias(s, t.Alias, qualifier(t.Alias, names...))
	return s.rel, sc, err
}

// viewKey tells a view from others of its name: a name means another view where it stands in another catalog or namespace.
func (b *binder) viewKey(name string) string {
	return b.env.Catalog + "\x00" + b.env.Schema + "\x00" + fold(name)
}

// outside takes the position within the view's text out of an error, which would be read as one in the statement.
func outside(err error) error {
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		return e.At(0, 0)
	}
	return err
}

// viewText chooses a representation.
func viewText(v *catalog.View) (catalog.ViewText, error) {
	var have []string
	for _, d := range viewDialects {
		for _, t := range v.Representations {
			if strings.EqualFold(t.Dialect, d) {
				return catalog.ViewText{Dialect: d, SQL: t.SQL}, nil
			}
		}
	}
	for _, t := range v.Representations {
		have = append(have, t.Dialect)
	}
	return catalog.ViewText{}, fault.New(fault.Unsupported, "its query is written for %q; views for %s are read", have, strings.Join(viewDialects, ", "))
}

// viewQuery binds the text of a view under the names that it starts from, then brings the columns to the view's schema.
func (b *binder) viewQuery(t *sql.TableName, v *catalog.View, text catalog.ViewText, name string) (*bound, error) {
	p, err := sql.Parse(text.SQL)
	if err != nil {
		return nil, err
	}
	q, ok := p.Statement.(*sql.Query)
	if !ok || p.Params > 0 {
		return nil, fault.New(fault.Unsupported, "its text is not a query")
	}
	env := *b.env
	if env.Dialect = text.Dialect; env.Dialect == "dremio" {
		env.Dialect = "trino"
	}
	switch n := len(t.Parts); {
	case n > 2 || n == 2 && env.Catalog == "":
		if _, ok := b.catalog(t.Parts[0]); ok {
			env.Catalog = t.Parts[0].Name
			if n > 2 {
				env.Schema = joined(t.Parts[1 : n-1])
			}
			break
		}
		fallthrough
	case n == 2:
		env.Schema = joined(t.Parts[:n-1])
	}
	if v.DefaultCatalog != "" {
		if _, ok := b.catalog(sql.Ident{Name: v.DefaultCatalog}); ok {
			env.Catalog = v.DefaultCatalog // else the catalog goes by another name here: the view's own
		}
	}
	if len(v.DefaultNamespace) > 0 {
		env.Schema = v.DefaultNamespace.String()
	}
	outer, outerText, outerHints := b.env, b.text, b.hints
	b.env, b.text, b.hints, b.views = &env, p.Text, nil, append(b.views, b.viewKey(name))
	defer func() { b.env, b.text, b.hints, b.views = outer, outerText, outerHints, b.views[:len(b.views)-1] }()
	s, err := b.query(q, nil)
	if err != nil || v.Schema == nil {
		return s, err
	}
	fields := v.Schema.Fields()
	if len(fields) != len(s.cols) {
		return nil, fault.New(fault.Invalid, "its query gives %d columns, its schema has %d", len(s.cols), len(fields))
	}
	out := &bound{rel: s.rel}
	var types []vector.Type
	for i, f := range fields {
		out.cols = append(out.cols, outCol{f.Name, s.cols[i].id})
		typ, err := catalog.TypeOf(f.Type)
		if err != nil {
			return nil, err
		}
		if ref := b.cols.ref(s.cols[i].id); !ref.Typ.Equal(typ) {
			if _, err := expr.Coerce(ref, typ); err != nil {
				typ = ref.Typ // as the tables are now
			}
		}
		types = append(types, typ)
	}
	return out, b.coerceTo(out, types)
}

func joined(parts []sql.Ident) string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.Name
	}
	return strings.Join(names, ".")
}
