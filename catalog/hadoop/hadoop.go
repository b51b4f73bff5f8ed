// Package hadoop reads a warehouse folder: namespaces are folders, and a folder with a metadata folder in it is a
// table (Iceberg's Hadoop catalog layout).
//
// It keeps no list of tables: the folder is the truth at every call. A Catalog is safe for concurrent use.
package hadoop

import (
	"context"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Options describes a warehouse.
type Options struct {
	Name string
	// Warehouse is the root folder.
	Warehouse string
	// Store opens files; the catalog confines it to Warehouse and Prefixes.
	Store storage.Store
	// Prefixes are further locations that tables may read.
	Prefixes  []string
	Locations catalog.LocationMapping
	// Keys unwraps the keys of encrypted tables; nil when there is no key management service.
	Keys *encryption.Keyring
}

// Catalog is a warehouse folder.
type Catalog struct {
	opt   Options
	store storage.Store

	mu     sync.Mutex
	parsed *simplelru.LRU[string, *parsed]
	bytes  int64 // of the metadata files behind parsed
}

// parsed remembers a table by the metadata file it came from. Size and time are part of the identity because file
// catalogs reuse v1.metadata.json for a table that was dropped and made again.
type parsed struct {
	info  storage.Info
	table *catalog.Table
}

// Tables are remembered up to so many, and so many bytes of metadata files.
const (
	rememberedTables = 1 << 16
	rememberedBytes  = 64 << 20
)

// New opens a warehouse. A folder that does not exist is fault.NotFound.
func New(ctx context.Context, opt Options) (*Catalog, error) {
	opt.Warehouse = strings.TrimSuffix(opt.Warehouse, "/")
	info, err := opt.Store.Stat(ctx, opt.Warehouse)
	if err == nil && !info.Dir {
		err = fault.New(fault.Invalid, "%s is not a folder", opt.Warehouse)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "catalog %s: warehouse", opt.Name)
	}
	c := &Catalog{opt: opt, store: storage.Confine(opt.Store, append([]string{opt.Warehouse}, opt.Prefixes...)...)}
	if table, err := c.isTable(ctx, opt.Warehouse); err == nil && table {
		return nil, fault.New(fault.Invalid, "catalog %s: %s is a table and no warehouse; name the folder above it, or its newest metadata file", opt.Name, opt.Warehouse)
	}
	c.parsed, err = simplelru.NewLRU(rememberedTables, func(_ string, p *parsed) { c.bytes -= p.info.Size })
	return c, err
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.opt.Name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error { return nil }

func (c *Catalog) folder(ns catalog.Namespace, more ...string) (string, error) {
	p := c.opt.Warehouse
	for _, level := range append(append([]string{}, ns...), more...) {
		if level == "" || level == "." || level == ".." || strings.ContainsAny(level, "/\x00") {
			return "", fault.New(fault.NotFound, "catalog %s has no namespace or table named %q", c.opt.Name, level)
		}
		p += "/" + level
	}
	return p, nil
}

// rootNamespace is where tables directly below the warehouse are found: SQL has no name for a table without a schema.
const rootNamespace = "default"

// maxLevels bounds the depth of namespaces, since links may make a tree of folders endless.
const maxLevels = 16

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	var out []catalog.Namespace
	tables, named := false, false
	err := c.children(ctx, parent, func(name string, table bool) {
		if tables = tables || table; !table && len(parent) < maxLevels {
			named = named || name == rootNamespace
			out = append(out, append(append(catalog.Namespace{}, parent...), name))
		}
	})
	if isRoot(parent) && fault.KindOf(err) == fault.NotFound {
		_, err = c.Tables(ctx, parent)
	}
	if len(parent) == 0 && tables && !named {
		out = append(out, catalog.Namespace{rootNamespace})
	}
	return out, err
}

// isRoot reports whether ns stands for the warehouse itself.
func isRoot(ns catalog.Namespace) bool { return len(ns) == 1 && ns[0] == rootNamespace }

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	var out []string
	collect := func(name string, table bool) {
		if table {
			out = append(out, name)
		}
	}
	err := c.children(ctx, ns, collect)
	if isRoot(ns) && (err == nil || fault.KindOf(err) == fault.NotFound) {
		found := err == nil
		if err = c.children(ctx, nil, collect); err == nil && !found && len(out) == 0 {
			err = c.noNamespace(ns, nil)
		}
	}
	sort.Strings(out)
	return slices.Compact(out), err
}

func (c *Catalog) children(ctx context.Context, ns catalog.Namespace, visit func(name string, table bool)) error {
	dir, err := c.folder(ns)
	if err != nil {
		return err
	}
	if len(ns) > 0 {
		if table, err := c.isTable(ctx, dir); err != nil || table {
			return c.noNamespace(ns, err)
		}
	}
	infos, err := c.store.List(ctx, dir)
	if err != nil {
		return c.noNamespace(ns, err)
	}
	for _, i := range infos {
		name := path.Base(i.Path)
		if !i.Dir || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			continue
		}
		table, err := c.isTable(ctx, i.Path)
		if err != nil {
			return err
		}
		visit(name, table)
	}
	return nil
}

func (c *Catalog) noNamespace(ns catalog.Namespace, err error) error {
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return fault.Wrap(fault.Unavailable, err, "catalog %s: namespace %s", c.opt.Name, ns)
	}
	return fault.WithID(fault.NotFound, "SCHEMA_NOT_FOUND", "catalog %s has no namespace %q", c.opt.Name, ns.String())
}

func (c *Catalog) isTable(ctx context.Context, dir string) (bool, error) {
	infos, err := c.store.List(ctx, dir+"/metadata")
	if err != nil {
		switch fault.KindOf(err) {
		case fault.NotFound:
			return false, nil
		case fault.Unavailable:
			return false, ctx.Err() // a file of that name
		case fault.Denied:
			return true, nil // loading it tells that it may not be read; the listing goes on
		}
		return false, err
	}
	for _, i := range infos {
		if versionOf(path.Base(i.Path)) >= 0 {
			return true, nil
		}
	}
	return false, nil
}

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	missing := fault.WithID(fault.NotFound, "TABLE_NOT_FOUND", "table %s.%s.%s does not exist", c.opt.Name, ns, name)
	dir, err := c.folder(ns, name)
	if err != nil {
		return nil, missing
	}
	full := c.opt.Name + "." + ns.String() + "." + name
	info, err := c.current(ctx, dir)
	if isRoot(ns) && err != nil && fault.KindOf(err) == fault.NotFound {
		info, err = c.current(ctx, c.opt.Warehouse+"/"+name)
	}
	switch {
	case err == nil:
	case fault.KindOf(err) == fault.NotFound:
		return nil, missing
	default:
		return nil, fault.Wrap(fault.Unavailable, err, "table %s", full)
	}
	if t := c.remembered(info); t != nil {
		return t, nil
	}
	m, extra, err := catalog.ReadMetadata(ctx, c.store, info.Path, info.Size)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "table %s", full)
	}
	t := &catalog.Table{
		Catalog: c.opt.Name, Namespace: ns, Name: name, MetadataLocation: info.Path,
		Metadata: m, Extra: extra, Keys: catalog.KeysOf(c.opt.Name, m, extra, c.opt.Keys), Store: c.store, Locations: c.opt.Locations, Loaded: time.Now(),
	}
	c.remember(info, t)
	return t, nil
}

func (c *Catalog) remembered(info storage.Info) *catalog.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.parsed.Get(info.Path); ok && p.info == info {
		return p.table
	}
	return nil
}

func (c *Catalog) remember(info storage.Info, t *catalog.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parsed.Remove(info.Path)
	c.parsed.Add(info.Path, &parsed{info, t})
	for c.bytes += info.Size; c.bytes > rememberedBytes; {
		c.parsed.RemoveOldest()
	}
}

// v3.metadata.json, v3.gz.metadata.json, v3.metadata.json.gz and the names that other catalogs give
// (00003-<uuid>.metadata.json), which a copied table keeps.
var (
	versionName = regexp.MustCompile(`^v(\d{1,18})(\.gz)?\.metadata\.json(\.gz)?$`)
	uuidName    = regexp.MustCompile(`^(\d{1,18})-[0-9a-fA-F-]+(\.gz)?\.metadata\.json(\.gz)?$`)
)

// versionOf gives the version in a metadata file's name, or -1 for another file.
func versionOf(name string) int64 {
	m := versionName.FindStringSubmatch(name)
	if m == nil {
		m = uuidName.FindStringSubmatch(name)
	}
	if m == nil {
		return -1
	}
	v, _ := strconv.ParseInt(m[1], 10, 64)
	return v
}

// current finds the newest metadata file of a table: the version that version-hint.text names and any that follow it
// without a gap (a writer updates the hint after the file, and may die between), else the highest there is.
func (c *Catalog) current(ctx context.Context, dir string) (storage.Info, error) {
	infos, err := c.store.List(ctx, dir+"/metadata")
	if err != nil {
		return storage.Info{}, err
	}
	versions := map[int64]storage.Info{}
	highest, hinted := int64(-1), int64(-1)
	var hint *storage.Info
	for _, i := range infos {
		name := path.Base(i.Path)
		if name == "version-hint.text" {
			hint = &i
		}
		v := versionOf(name)
		if v < 0 || i.Dir {
			continue
		}
		if old, ok := versions[v]; ok && !newer(i, old) {
			continue
		}
		versions[v] = i
		highest = max(highest, v)
	}
	if highest < 0 {
		return storage.Info{}, fault.New(fault.NotFound, "folder %s/metadata holds no metadata file", dir)
	}
	if hint != nil {
		if hinted, err = c.readHint(ctx, *hint); err != nil {
			return storage.Info{}, err
		}
	}
	if _, ok := versions[hinted]; !ok {
		if hinted >= 0 && hinted > highest {
			return storage.Info{}, fault.New(fault.Corrupt, "%s names version %d, but the newest metadata file is version %d", hint.Path, hinted, highest)
		}
		return versions[highest], nil
	}
	for {
		next, ok := versions[hinted+1]
		if !ok {
			return versions[hinted], nil
		}
		if hinted++; next.Size == 0 {
			return storage.Info{}, fault.New(fault.Corrupt, "metadata file %s is empty", next.Path)
		}
	}
}

// newer orders two metadata files of one version: a table written by other catalogs may hold the leavings of lost commits.
func newer(a, b storage.Info) bool {
	if !a.Modified.Equal(b.Modified) {
		return a.Modified.After(b.Modified)
	}
	return a.Path > b.Path
}

const maxHintBytes = 4096

// readHint gives the version in a hint file: a bare number, or a file name that holds one. Other text is no hint (-1).
func (c *Catalog) readHint(ctx context.Context, i storage.Info) (int64, error) {
	b, err := storage.ReadAll(ctx, c.store, i.Path, i.Size, maxHintBytes)
	if err != nil {
		return -1, err
	}
	text := strings.TrimSpace(string(b))
	if v, err := strconv.ParseInt(text, 10, 64); err == nil && v >= 0 {
		return v, nil
	}
	text = path.Base(text)
	if !strings.Contains(text, ".metadata.json") {
		text += ".metadata.json"
	}
	return versionOf(text), nil
}
