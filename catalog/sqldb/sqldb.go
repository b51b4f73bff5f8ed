// Package sqldb finds tables in the database of Iceberg's JDBC catalog, which PyIceberg's SQL catalog shares: SQLite, PostgreSQL or
// MySQL with the tables iceberg_tables and iceberg_namespace_properties.
//
// It only selects. An Index is safe for concurrent use.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of mysql URIs
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of postgresql URIs
	_ "modernc.org/sqlite"             // the driver of sqlite URIs

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
)

// Index is a catalog in a database.
type Index struct {
	db     *sql.DB
	driver string
	name   string // of the catalog in the database
	shown  string // the database without its password
}

// Properties are the names of the properties that Open reads.
var Properties = []string{"uri", "jdbc.user", "jdbc.password", "catalog-name"}

// Open prepares a connection to the database that the property uri names, in the spelling of SQLAlchemy or JDBC
// (postgresql://user:password@host:5432/db, jdbc:mysql://host/db, sqlite:////path/to/file.db). name is that of the catalog as
// Skua knows it; catalog-name is the one in the database, when it differs.
func Open(name string, p map[string]string) (*Index, error) {
	uri := strings.TrimPrefix(p["uri"], "jdbc:")
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return nil, fault.New(fault.Invalid, "uri %q is not that of a database", uri)
	}
	scheme, _, _ = strings.Cut(scheme, "+") // SQLAlchemy names its driver behind a plus sign
	i := &Index{name: p["catalog-name"]}
	if i.name == "" {
		i.name = name
	}
	source := ""
	switch scheme {
	case "sqlite":
		file := strings.TrimPrefix(rest, "//") // one slash more begins the path
		if strings.HasPrefix(rest, "//") {
			file = strings.TrimPrefix(file, "/")
		}
		if !strings.HasPrefix(file, "/") {
			return nil, fault.New(fault.Invalid, "uri %q: the file of a SQLite database is an absolute path, sqlite:////path/to/file.db", uri)
		}
		if _, err := os.Stat(file); err != nil {
			return nil, fault.Wrap(fault.NotFound, err, "database")
		}
		i.driver, i.shown = "sqlite", file
		source = (&url.URL{Scheme: "file", Path: file, RawQuery: "mode=ro&_pragma=busy_timeout(5000)"}).String()
	case "postgresql", "postgres", "mysql", "mariadb":
		u, err := url.Parse(scheme + ":" + rest)
		if err != nil || u.Host == "" && u.Query().Get("host") == "" {
			return nil, fault.New(fault.Invalid, "uri of the %s database is not of the form %s://user:password@host:port/database", scheme, scheme)
		}
		user, password := u.User.Username(), ""
		password, _ = u.User.Password()
		if p["jdbc.user"] != "" {
			user = p["jdbc.user"]
		}
		if p["jdbc.password"] != "" {
			password = p["jdbc.password"]
		}
		i.shown = u.Host + u.Path
		if scheme == "postgresql" || scheme == "postgres" {
			u.Scheme, u.User = "postgres", url.UserPassword(user, password)
			i.driver, source = "pgx", u.String()
		} else {
			host := u.Host
			if u.Port() == "" {
				host += ":3306"
			}
			i.driver, source = "mysql", fmt.Sprintf("%s:%s@tcp(%s)/%s?timeout=10s&readTimeout=30s", user, password, host, strings.TrimPrefix(u.Path, "/"))
		}
	default:
		return nil, fault.New(fault.Invalid, "uri: a %s database is not supported; there are sqlite, postgresql and mysql", scheme)
	}
	db, err := sql.Open(i.driver, source)
	if err != nil {
		return nil, fault.New(fault.Invalid, "uri of the database %s cannot be used", i.shown)
	}
	db.SetMaxOpenConns(8)
	db.SetConnMaxIdleTime(time.Minute)
	i.db = db
	return i, nil
}

// Close implements located.Index.
func (i *Index) Close() error { return i.db.Close() }

// query runs a statement whose parameters are written ?.
func (i *Index) query(ctx context.Context, text string, args ...any) ([][]string, error) {
	if i.driver == "pgx" {
		for n := 1; strings.Contains(text, "?"); n++ {
			text = strings.Replace(text, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	rows, err := i.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, i.failure(ctx, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return nil, i.failure(ctx, err)
	}
	var out [][]string
	for rows.Next() {
		row, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for k := range row {
			into[k] = &row[k]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, i.failure(ctx, err)
		}
		texts := make([]string, len(columns))
		for k, v := range row {
			texts[k] = v.String
		}
		out = append(out, texts)
	}
	return out, i.failure(ctx, rows.Err())
}

func (i *Index) failure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(err.Error(), "iceberg_tables"):
		return fault.New(fault.Invalid, "the database %s holds no Iceberg catalog: it has no table iceberg_tables that can be read", i.shown)
	case strings.Contains(err.Error(), "iceberg_namespace_properties"):
		return errNoProperties
	}
	return fault.New(fault.Unavailable, "the database %s cannot be asked: %v", i.shown, err)
}

var errNoProperties = errors.New("no table of namespaces")

// all lists the namespaces of the catalog, with those around them.
func (i *Index) all(ctx context.Context) ([]catalog.Namespace, error) {
	rows, err := i.query(ctx, "SELECT DISTINCT table_namespace FROM iceberg_tables WHERE catalog_name = ?", i.name)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		if err := i.known(ctx); err != nil {
			return nil, err
		}
	}
	more, err := i.query(ctx, "SELECT DISTINCT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?", i.name)
	if err != nil && !errors.Is(err, errNoProperties) { // old catalogs have none
		return nil, err
	}
	seen := map[string]catalog.Namespace{}
	for _, r := range append(rows, more...) {
		ns := catalog.Namespace(strings.Split(r[0], "."))
		for n := 1; n <= len(ns); n++ {
			seen[ns[:n].String()] = ns[:n:n]
		}
	}
	out := make([]catalog.Namespace, 0, len(seen))
	for _, ns := range seen {
		out = append(out, ns)
	}
	slices.SortFunc(out, func(a, b catalog.Namespace) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

// known refuses a name that the database does not have while it has others: every table would silently be missing.
func (i *Index) known(ctx context.Context) error {
	rows, err := i.query(ctx, "SELECT DISTINCT catalog_name FROM iceberg_tables")
	if err != nil || len(rows) == 0 {
		return err
	}
	var names []string
	for _, r := range rows {
		names = append(names, strconv.Quote(r[0]))
	}
	slices.Sort(names)
	return fault.New(fault.Invalid, "the database %s holds no catalog %q but %s; set catalog-name", i.shown, i.name, strings.Join(names, ", "))
}

// Namespaces implements located.Index.
func (i *Index) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	all, err := i.all(ctx)
	if err != nil {
		return nil, err
	}
	var out []catalog.Namespace
	known := len(parent) == 0
	for _, ns := range all {
		known = known || ns.String() == parent.String()
		if len(ns) == len(parent)+1 && ns[:len(parent)].String() == parent.String() {
			out = append(out, ns)
		}
	}
	if !known {
		return nil, noNamespace(parent)
	}
	return out, nil
}

func noNamespace(ns catalog.Namespace) error {
	return fault.WithID(fault.NotFound, "SCHEMA_NOT_FOUND", "namespace %q does not exist", ns.String())
}

// Tables implements located.Index.
func (i *Index) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	rows, err := i.query(ctx, "SELECT table_name FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? ORDER BY table_name", i.name, ns.String())
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		all, err := i.all(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(all, func(o catalog.Namespace) bool { return o.String() == ns.String() }) {
			return nil, noNamespace(ns)
		}
	}
	var out []string
	for _, r := range rows {
		out = append(out, r[0])
	}
	slices.Sort(out) // by bytes, whatever the database's collation
	return out, nil
}

// Find implements located.Index.
func (i *Index) Find(ctx context.Context, ns catalog.Namespace, name string) (string, error) {
	rows, err := i.query(ctx, "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?", i.name, ns.String(), name)
	switch {
	case err != nil:
		return "", err
	case len(rows) == 0:
		return "", fault.WithID(fault.NotFound, "TABLE_NOT_FOUND", "table %s.%s does not exist", ns, name)
	case rows[0][0] == "":
		return "", fault.New(fault.Corrupt, "table %s.%s has no metadata_location in the database", ns, name)
	}
	return rows[0][0], nil
}
