// Package rest reads an Iceberg REST catalog: it finds tables by name, takes their metadata from the server's answer and hands
// each table a store whose keys the server vends and renews.
//
// It never commits, and a server's answer changes only the settings on a short list: no class names, no proxies, no other
// hosts for its requests. A Catalog has one identity, under which all that it keeps was given. It is safe for concurrent use.
package rest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/s3"
)

// Options describes a catalog.
type Options struct {
	Name string
	// Properties are Iceberg's catalog properties; Check says which are known.
	Properties map[string]string
	// Prefixes are locations that tables may read beside their own.
	Prefixes  []string
	Locations catalog.LocationMapping
	// Keys unwraps the keys of encrypted tables; nil when there is no key management service.
	Keys *encryption.Keyring
	// Ambient gives the process's own S3 keys. It is asked only when the properties say ambient-fallback: true and neither
	// the server nor the properties give a key.
	Ambient credentials.Provider
}

// Catalog is a REST catalog. It connects at the first call, so that a server that is down stops nothing else.
type Catalog struct {
	opt     Options
	client  *client
	objects *s3.Client
	keys    credentials.Provider // that the properties name; nil when they name none

	booting chan struct{} // held while the configuration is fetched
	session atomic.Pointer[session]

	mu     sync.Mutex
	tables *simplelru.LRU[string, *remembered]
	bytes  int64 // of the metadata documents behind tables
}

// remembered is what a table's last load left: the parsed metadata, found again when the document is the same, and the keys,
// which running scans go on to renew.
type remembered struct {
	sum   [sha256.Size]byte
	size  int64
	meta  catalog.Table // Metadata and Extra only
	uuid  string
	keys  *credentials.Vended
	noAPI *atomic.Bool // the server has no way to renew keys but a load
}

// Tables are remembered up to so many, and so many bytes of metadata documents.
const (
	rememberedTables = 1 << 14
	rememberedBytes  = 64 << 20
)

// New makes a catalog without connecting. Properties that Check refuses are fault.Invalid.
func New(opt Options) (*Catalog, error) {
	var wrong []string
	Check(opt.Properties, func(property, reason string) { wrong = append(wrong, property+": "+reason) })
	if len(wrong) > 0 {
		return nil, fault.New(fault.Invalid, "catalog %s: %s", opt.Name, strings.Join(wrong, "; "))
	}
	c := &Catalog{opt: opt, client: newClient(opt.Name, opt.Properties), objects: s3.NewClient(), booting: make(chan struct{}, 1)}
	var err error
	if c.keys, _, err = credentials.Configured(opt.Properties, opt.Ambient); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "catalog %s", opt.Name)
	}
	c.tables, err = simplelru.NewLRU(rememberedTables, func(_ string, r *remembered) { c.bytes -= r.size })
	return c, err
}

// Name implements catalog.Catalog.
func (c *Catalog) Name() string { return c.opt.Name }

// Close implements catalog.Catalog.
func (c *Catalog) Close() error {
	c.client.close()
	c.objects.Close()
	return nil
}

// Connect proves that the server answers and lets this catalog in.
func (c *Catalog) Connect(ctx context.Context) error {
	_, err := c.Namespaces(ctx, nil)
	return err
}

// session is what the server's configuration settled.
type session struct {
	properties map[string]string // defaults, then ours, then overrides: the ones that a server may set
	root       string            // v1/ and the prefix
	separator  string            // of namespace levels in paths, URL-encoded
	endpoints  []string          // nil when the server does not tell
}

const credentialsEndpoint = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"

// open fetches the configuration once.
func (c *Catalog) open(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := c.session.Load(); s != nil {
		return s, nil
	}
	select {
	case c.booting <- struct{}{}:
		defer func() { <-c.booting }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s := c.session.Load(); s != nil {
		return s, nil
	}
	q := url.Values{}
	if w := c.opt.Properties["warehouse"]; w != "" {
		q.Set("warehouse", w)
	}
	var answer struct {
		Defaults  map[string]*string `json:"defaults"`
		Overrides map[string]*string `json:"overrides"`
		Endpoints []string           `json:"endpoints"`
	}
	if err := c.client.get(ctx, "v1/config", q, nil, "its configuration", &answer); err != nil {
		return nil, err
	}
	s := &session{properties: map[string]string{}, separator: "%1F", root: "v1/", endpoints: answer.Endpoints}
	for k, v := range allowed(answer.Defaults) {
		s.properties[k] = v
	}
	for k, v := range c.opt.Properties {
		s.properties[k] = v
	}
	for k, v := range allowed(answer.Overrides) {
		s.properties[k] = v
	}
	if p := strings.Trim(s.properties["prefix"], "/"); p != "" {
		var steps []string
		for _, step := range strings.Split(p, "/") {
			if raw, err := url.PathUnescape(step); err == nil {
				step = raw // servers give it escaped or not
			}
			if step == "" || step == "." || step == ".." {
				return nil, fault.New(fault.Invalid, "catalog %s: the prefix %q that the server gives is no path", c.opt.Name, p)
			}
			steps = append(steps, escape(step))
		}
		s.root += strings.Join(steps, "/") + "/"
	}
	if sep := s.properties["namespace-separator"]; sep != "" {
		if raw, err := url.PathUnescape(sep); err == nil {
			s.separator = escape(raw)
		}
	}
	c.session.Store(s)
	return s, nil
}

// escape encodes a path segment so that no server decodes it otherwise: a plus stands for a blank in some.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func (s *session) path(ns catalog.Namespace, more ...string) string {
	levels := make([]string, len(ns))
	for i, l := range ns {
		levels[i] = escape(l)
	}
	p := s.root + "namespaces"
	if len(ns) > 0 {
		p += "/" + strings.Join(levels, s.separator)
	}
	for _, m := range more {
		p += "/" + escape(m)
	}
	return p
}

// named reports whether all levels can stand in a path.
func named(names ...string) bool {
	for _, n := range names {
		if n == "" || n == "." || n == ".." || strings.ContainsRune(n, 0) {
			return false
		}
	}
	return true
}

// maxPages bounds a listing whose server never ends it.
const maxPages = 10_000

// pages walks a listing.
func (c *Catalog) pages(ctx context.Context, s *session, path string, q url.Values, what string, page func(raw json.RawMessage) (next string, err error)) error {
	q.Set("pageToken", "")
	if n := s.properties["rest-page-size"]; n != "" {
		q.Set("pageSize", n)
	}
	for n := 0; ; n++ {
		var raw json.RawMessage
		if err := c.client.get(ctx, path, q, nil, what, &raw); err != nil {
			return err
		}
		next, err := page(raw)
		if err != nil {
			return fault.New(fault.Corrupt, "catalog %s: the answer to %s is not what the REST specification says: %v", c.opt.Name, what, err)
		}
		if next == "" {
			return nil
		}
		if next == q.Get("pageToken") || n == maxPages {
			return fault.New(fault.Corrupt, "catalog %s: the pages of %s never end", c.opt.Name, what)
		}
		q.Set("pageToken", next)
	}
}

func (c *Catalog) noNamespace(ns catalog.Namespace) error {
	return fault.WithID(fault.NotFound, "SCHEMA_NOT_FOUND", "catalog %s has no namespace %q", c.opt.Name, ns.String())
}

// Namespaces implements catalog.Catalog.
func (c *Catalog) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	if len(parent) > 0 {
		if !named(parent...) {
			return nil, c.noNamespace(parent)
		}
		sep, _ := url.PathUnescape(s.separator) // made by escape
		q.Set("parent", strings.Join(parent, sep))
	}
	var out []catalog.Namespace
	err = c.pages(ctx, s, s.path(nil), q, "the list of namespaces", func(raw json.RawMessage) (string, error) {
		var a struct {
			Namespaces []catalog.Namespace `json:"namespaces"`
			Next       string              `json:"next-page-token"`
		}
		err := json.Unmarshal(raw, &a)
		for _, ns := range a.Namespaces {
			// A server may ignore parent and list the top.
			if len(ns) == len(parent)+1 && slices.Equal(ns[:len(parent)], parent) && named(ns...) {
				out = append(out, ns)
			}
		}
		return a.Next, err
	})
	if fault.KindOf(err) == fault.NotFound && len(parent) > 0 {
		return nil, c.noNamespace(parent)
	}
	sort.Slice(out, func(i, j int) bool { return slices.Compare(out[i], out[j]) < 0 })
	return out, err
}

// Tables implements catalog.Catalog.
func (c *Catalog) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	if len(ns) == 0 || !named(ns...) {
		return nil, c.noNamespace(ns)
	}
	var out []string
	err = c.pages(ctx, s, s.path(ns, "tables"), url.Values{}, "the list of tables in "+ns.String(), func(raw json.RawMessage) (string, error) {
		var a struct {
			Identifiers []struct {
				Name string `json:"name"`
			} `json:"identifiers"`
			Next string `json:"next-page-token"`
		}
		err := json.Unmarshal(raw, &a)
		for _, t := range a.Identifiers {
			out = append(out, t.Name)
		}
		return a.Next, err
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil, c.noNamespace(ns)
	}
	sort.Strings(out)
	return slices.Compact(out), err
}

// loaded is the server's answer to a load. Its configuration holds secrets: it is never printed.
type loaded struct {
	Location    string              `json:"metadata-location"`
	Metadata    json.RawMessage     `json:"metadata"`
	Config      map[string]*string  `json:"config"`
	Credentials []storageCredential `json:"storage-credentials"`
}

type storageCredential struct {
	Prefix string             `json:"prefix"`
	Config map[string]*string `json:"config"`
}

// grants are the storage credentials, and behind them the keys that older servers put into the table's configuration.
func (l *loaded) grants() []credentials.Grant {
	g := grantsOf(l.Credentials)
	return append(g, credentials.Grant{Prefix: "s3", Config: plain(l.Config)})
}

func grantsOf(list []storageCredential) []credentials.Grant {
	var out []credentials.Grant
	for _, s := range list {
		out = append(out, credentials.Grant{Prefix: s.Prefix, Config: plain(s.Config)})
	}
	return out
}

func (c *Catalog) load(ctx context.Context, s *session, ns catalog.Namespace, name string) (*loaded, error) {
	h := http.Header{"X-Iceberg-Access-Delegation": {"vended-credentials"}}
	var l loaded
	err := c.client.get(ctx, s.path(ns, "tables", name), url.Values{"snapshots": {"all"}}, h, "table "+ns.String()+"."+name, &l)
	return &l, err
}

// Load implements catalog.Catalog.
func (c *Catalog) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	full := c.opt.Name + "." + ns.String() + "." + name
	missing := fault.WithID(fault.NotFound, "TABLE_NOT_FOUND", "table %s does not exist", full)
	if len(ns) == 0 || !named(ns...) || !named(name) {
		return nil, missing
	}
	l, err := c.load(ctx, s, ns, name)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return nil, missing
	case err != nil:
		return nil, err
	}
	if mode := l.Config["scan-planning-mode"]; mode != nil && *mode == "server" {
		return nil, fault.New(fault.Unsupported, "table %s: the catalog demands that it plans scans itself (scan-planning-mode: server), which Skua does not support", full)
	}
	sum := sha256.Sum256(l.Metadata)
	c.mu.Lock()
	old, _ := c.tables.Get(full)
	c.mu.Unlock()
	r := &remembered{sum: sum, size: int64(len(l.Metadata)), noAPI: &atomic.Bool{}}
	if old != nil && old.sum == sum {
		r.meta = old.meta
	} else if r.meta.Metadata, r.meta.Extra, err = catalog.ParseMetadata(l.Metadata); err != nil {
		where := l.Location
		if where == "" {
			where = "of the catalog's answer"
		}
		return nil, fault.Wrap(fault.Corrupt, err, "table %s: metadata file %s", full, where)
	}
	r.uuid = r.meta.Metadata.TableUUID().String()
	c.remember(full, r, l.grants(), func() credentials.Fetch { return c.renewal(s, ns, name, r.uuid, l, r.noAPI) })
	store, err := c.store(s, l, r, full)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "table %s", full)
	}
	return &catalog.Table{
		Catalog: c.opt.Name, Namespace: ns, Name: name, MetadataLocation: l.Location,
		Metadata: r.meta.Metadata, Extra: r.meta.Extra, Keys: catalog.KeysOf(c.opt.Name, r.meta.Metadata, r.meta.Extra, c.opt.Keys),
		Store: store, Locations: c.opt.Locations, Loaded: time.Now(),
	}, nil
}

// remember keeps a load and settles the keys of its table: all loads of one table share one provider, so that its keys are
// renewed once for all scans that run.
func (c *Catalog) remember(full string, r *remembered, grants []credentials.Grant, renewal func() credentials.Fetch) {
	usable := slices.ContainsFunc(grants, func(g credentials.Grant) bool { return credentials.FromProperties(g.Config).Usable() })
	c.mu.Lock()
	defer c.mu.Unlock()
	old, ok := c.tables.Get(full)
	switch {
	case !usable:
	case ok && old.uuid == r.uuid && old.keys != nil:
		r.keys, r.noAPI = old.keys, old.noAPI
		r.keys.Install(grants)
	default:
		r.keys = credentials.NewVended(full, grants, renewal())
	}
	c.tables.Remove(full)
	c.tables.Add(full, r)
	for c.bytes += r.size; c.bytes > rememberedBytes && c.tables.Len() > 1; {
		c.tables.RemoveOldest()
	}
}

// renewal fetches a table's keys anew: from the endpoint made for it where the server has one, else by another load. The
// URL is made here and not taken from the server: it carries our token.
func (c *Catalog) renewal(s *session, ns catalog.Namespace, name, uuid string, l *loaded, noAPI *atomic.Bool) credentials.Fetch {
	told := plain(l.Config)
	offered := slices.Contains(s.endpoints, credentialsEndpoint) || told["client.refresh-credentials-endpoint"] != ""
	if told["client.refresh-credentials-enabled"] == "false" || s.properties["client.refresh-credentials-enabled"] == "false" {
		offered = false
	}
	return func(ctx context.Context) ([]credentials.Grant, error) {
		if offered && !noAPI.Load() {
			var a struct {
				Credentials []storageCredential `json:"storage-credentials"`
			}
			err := c.client.get(ctx, s.path(ns, "tables", name, "credentials"), nil, nil, "the credentials of table "+ns.String()+"."+name, &a)
			switch kind := fault.KindOf(err); {
			case err == nil && len(a.Credentials) > 0:
				return grantsOf(a.Credentials), nil
			case err == nil, kind == fault.NotFound, kind == fault.Unsupported:
				noAPI.Store(true) // servers advertise it and answer nothing
			default:
				return nil, err
			}
		}
		again, err := c.load(ctx, s, ns, name)
		if err != nil {
			return nil, err
		}
		var m struct {
			UUID string `json:"table-uuid"`
		}
		if json.Unmarshal(again.Metadata, &m) != nil || !strings.EqualFold(m.UUID, uuid) {
			return nil, fault.New(fault.Expired, "another table has its name now")
		}
		return again.grants(), nil
	}
}

// store makes the store of a table.
func (c *Catalog) store(s *session, l *loaded, r *remembered, full string) (storage.Store, error) {
	o := s3Options(c.opt.Properties, l, s)
	inside := append([]string{c.opt.Locations.Map(r.meta.Metadata.Location())}, c.opt.Prefixes...)
	switch {
	case r.keys != nil:
		// The server says by its prefixes what the table may read.
		o.Keys, inside = r.keys, []string{"s3://"}
	case c.keys != nil:
		o.Keys = c.keys
	default:
		reason := "the catalog vended no S3 key for table " + full + ", and its properties hold none (s3.access-key-id, s3.secret-access-key)"
		if plain(l.Config)["s3.remote-signing-enabled"] == "true" {
			reason = "the catalog signs requests for table " + full + " itself and vends no S3 key, which Skua does not support"
		}
		o.Keys = credentials.None{Reason: reason}
	}
	objects, err := s3.New(c.objects, o)
	if err != nil {
		return nil, err
	}
	return s3.Route(objects, inside, c.opt.Prefixes), nil
}
