// Package located is a catalog over an index that knows one thing of each table: where its current metadata file lies. Databases and
// Glue are such indexes (catalog/sqldb, catalog/glue).
//
// It keeps parsed metadata, under the file's path, which never changes; where a table's file is it asks every time. A Catalog is
// safe for concurrent use.
package located

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/s3"
)

// Index knows where metadata files lie. Its errors are as those of catalog.Catalog.
type Index interface {
	Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error)
	Tables(ctx context.Context, ns catalog.Namespace) ([]string, error)
	// Find gives the place of a table's current metadata file.
	Find(ctx context.Context, ns catalog.Namespace, name string) (string, error)
	Close() error
}

// Options describes a catalog.
type Options struct {
	Name string
	// Properties are Iceberg's: how S3 is reached (s3.PropertyNames) and by which key (credentials.KeyProperties, RoleProperties,
	// ambient-fallback), and warehouse, below which files of this machine may be read.
	Properties map[string]string
	// Prefixes are locations that tables may read beside their own.
	Prefixes  []string
	Locations catalog.LocationMapping
	// Keys unwraps the keys of encrypted tables; nil when there is no key management service.
	Keys *encryption.Keyring
	// Ambient gives the process's own S3 keys, for ambient-fallback: true.
	Ambient credentials.Provider
}

// Catalog is an index with a way to the files.
type Catalog struct {
	opt     Options
	index   Index
	client  *s3.Client
	objects *s3.Store

	mu     sync.Mutex
	parsed *simplelru.LRU[string, *catalog.Table] // Metadata and Extra, by the place of their file
}

// rememberedTables is how many parsed metadata files are kept.
const rememberedTables = 4096

// New makes a catalog over an index, which it closes.
func New(opt Options, index Index) (*Catalog, error) {
	c := &Catalog{opt: opt, index: index, client: s3.NewClient()}
	var err error
	if c.objects, err = objects(opt, c.client); err != nil {
		return nil, err
	}
	c.parsed, err = simplelru.NewLRU[string, *catalog.Table](rememberedTables, nil)
	return c, err
}

// objects is the store of what the properties say of S3.
func objects(opt Options, client *s3.Client) (*s3.Store, error) {
	keys, ok, err := credentials.Configured(opt.Properties, opt.Ambient)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "catalog %s", opt.Name)
	}
	if !ok {
		keys = credentials.None{Reason: "the properties of catalog " + opt.Name + " hold no S3 key (s3.access-key-id and s3.secret-access-key, client.assume-role.arn, or ambient-fallback: true)"}
	}
	o := s3.OptionsOf(opt.Properties, func(names ...string) string {
		for _, n := range names {
			if v := opt.Properties[n]; v != "" {
				return v
			}
		}
		return ""
	})
	o.Keys = keys
	s, err := s3.New(client, o)
	return s, fault.Wrap(fault.Invalid, err, "catalog %s", opt.Name)
}

// Files is the store of a warehouse that lies in S3, as the properties say.
func Files(opt Options) (storage.Store, error) {
	s, err := objects(opt, s3.NewClient())
	if err != nil {
		return nil, err
	}
	return s3.Route(s, append([]string{opt.Properties["warehouse"]}, opt.Prefixes...), opt.Prefixes), nil
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.opt.Name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error {
	c.client.Close()
	return c.index.Close()
}

// Connect proves that the index answers.
func (c *Catalog) Connect(ctx context.Context) error {
	_, err := c.index.Namespaces(ctx, nil)
	return c.wrap(err)
}

func (c *Catalog) wrap(err error) error {
	return fault.Wrap(fault.Unavailable, err, "catalog %s", c.opt.Name)
}

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	out, err := c.index.Namespaces(ctx, parent)
	return out, c.wrap(err)
}

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	out, err := c.index.Tables(ctx, ns)
	return out, c.wrap(err)
}

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	file, err := c.index.Find(ctx, ns, name)
	if err != nil {
		return nil, c.wrap(err)
	}
	c.mu.Lock()
	t, ok := c.parsed.Get(file)
	c.mu.Unlock()
	if !ok {
		if t, err = c.read(ctx, file); err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "table %s.%s.%s", c.opt.Name, ns, name)
		}
		c.mu.Lock()
		c.parsed.Add(file, t)
		c.mu.Unlock()
	}
	return &catalog.Table{
		Catalog: c.opt.Name, Namespace: ns, Name: name, MetadataLocation: file, Metadata: t.Metadata, Extra: t.Extra,
		Keys: catalog.KeysOf(c.opt.Name, t.Metadata, t.Extra, c.opt.Keys), Store: c.store(t.Metadata.Location()), Locations: c.opt.Locations, Loaded: time.Now(),
	}, nil
}

func (c *Catalog) read(ctx context.Context, file string) (*catalog.Table, error) {
	place := c.opt.Locations.Map(file)
	// The folder that holds the metadata folder is the table's own.
	home := above(above(place))
	m, extra, err := catalog.ReadMetadata(ctx, c.store(home), place, -1)
	return &catalog.Table{Metadata: m, Extra: extra}, err
}

// above is the folder around a path, which may be a URI.
func above(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return p
}

// store reads S3 below a table's location, and this machine below the warehouse only: an index that somebody else writes opens no
// file here.
func (c *Catalog) store(location string) storage.Store {
	operator := append([]string(nil), c.opt.Prefixes...)
	if w := c.opt.Properties["warehouse"]; w != "" {
		operator = append(operator, w)
	}
	return s3.Route(c.objects, append([]string{strings.TrimSuffix(c.opt.Locations.Map(location), "/")}, c.opt.Prefixes...), operator)
}

// PropertyNames are the names of all properties that New reads.
func PropertyNames() []string {
	names := append([]string{"warehouse", "ambient-fallback"}, s3.PropertyNames...)
	return append(append(names, credentials.KeyProperties...), credentials.RoleProperties...)
}
