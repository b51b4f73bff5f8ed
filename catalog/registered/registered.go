// Package registered is a catalog of single metadata files: each is registered under a name of its own, wherever it
// lies.
//
// It finds no newer version of a table by itself: what was registered is what is read, anew whenever the file changes.
// A Catalog is safe for concurrent use.
package registered

import (
	"context"
	"path"
	"sort"
	"strings"
	"time"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Options describes a catalog.
type Options struct {
	Name string
	// Tables maps "namespace.table" to the path of a metadata file.
	Tables map[string]string
	Store  storage.Store
	// Prefixes are locations that tables may read beside their own folder.
	Prefixes  []string
	Locations catalog.LocationMapping
	// Keys unwraps the keys of encrypted tables; nil when there is no key management service.
	Keys *encryption.Keyring
}

// Catalog is a fixed list of tables.
type Catalog struct {
	opt    Options
	tables map[string]map[string]string // namespace, table -> metadata file
}

// New checks the names; the files are read when their tables are.
func New(opt Options) (*Catalog, error) {
	c := &Catalog{opt: opt, tables: map[string]map[string]string{}}
	for name, file := range opt.Tables {
		dot := strings.LastIndexByte(name, '.')
		if dot <= 0 || dot == len(name)-1 {
			return nil, fault.New(fault.Invalid, "catalog %s: table name %q is not of the form namespace.table", opt.Name, name)
		}
		ns, table := name[:dot], name[dot+1:]
		if c.tables[ns] == nil {
			c.tables[ns] = map[string]string{}
		}
		c.tables[ns][table] = file
	}
	return c, nil
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.opt.Name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error { return nil }

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(_ context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	below := map[string]bool{}
	known := len(parent) == 0
	prefix := ""
	if len(parent) > 0 {
		prefix = parent.String() + "."
	}
	for ns := range c.tables {
		known = known || ns == parent.String() || strings.HasPrefix(ns, prefix)
		if rest, ok := strings.CutPrefix(ns, prefix); ok && rest != "" {
			first, _, _ := strings.Cut(rest, ".")
			below[first] = true
		}
	}
	if !known {
		return nil, c.noNamespace(parent)
	}
	out := make([]catalog.Namespace, 0, len(below))
	for name := range below {
		out = append(out, append(append(catalog.Namespace{}, parent...), name))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out, nil
}

func (c *Catalog) noNamespace(ns catalog.Namespace) error {
	return fault.WithID(fault.NotFound, "SCHEMA_NOT_FOUND", "catalog %s has no namespace %q", c.opt.Name, ns.String())
}

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	tables, ok := c.tables[ns.String()]
	if !ok {
		_, err := c.Namespaces(ctx, ns) // an outer level without tables of its own
		return nil, err
	}
	out := make([]string, 0, len(tables))
	for name := range tables {
		out = append(out, name)
	}
	sort.Strings(out)
	return out, nil
}

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	file, ok := c.tables[ns.String()][name]
	if !ok {
		return nil, fault.WithID(fault.NotFound, "TABLE_NOT_FOUND", "table %s.%s.%s does not exist", c.opt.Name, ns, name)
	}
	// The table's own folder is the one that holds its metadata folder.
	home := path.Dir(file)
	if path.Base(home) == "metadata" {
		home = path.Dir(home)
	}
	store := storage.Confine(c.opt.Store, append([]string{home}, c.opt.Prefixes...)...)
	m, extra, err := catalog.ReadMetadata(ctx, store, file, -1)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "table %s.%s.%s", c.opt.Name, ns, name)
	}
	return &catalog.Table{
		Catalog: c.opt.Name, Namespace: ns, Name: name, MetadataLocation: file,
		Metadata: m, Extra: extra, Keys: catalog.KeysOf(c.opt.Name, m, extra, c.opt.Keys), Store: store, Locations: c.opt.Locations, Loaded: time.Now(),
	}, nil
}
