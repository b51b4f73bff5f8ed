package lakeserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Knobs say how the catalog behaves. The zero Knobs vend keys of an hour by storage-credentials, renewed at /credentials.
type Knobs struct {
	KeyLife     time.Duration // 0: an hour
	OmitExpiry  bool
	LegacyKeys  bool   // keys in the table's config and no storage-credentials
	NoKeys      bool   // none at all
	Credentials string // of /credentials: "" answers, "404", "501", "empty", "unadvertised", "503"
	Separator   string // namespace-separator override, URL-encoded
	PageSize    int
	TokenLife   time.Duration // 0: an hour
	Overrides   map[string]string
	TableConfig map[string]string
	// Prefix is what the credential is vended for; empty is the table's location.
	Prefix string
}

// Table is a table of the catalog.
type Table struct {
	MetadataLocation string
	Metadata         json.RawMessage
	// Locations are what vended keys may read, as s3://bucket/prefix.
	Locations []string
}

// Call is one request in the log.
type Call struct {
	Path, Query, Delegation string
	Status                  int
}

// Catalog is a REST catalog under the prefix ws/main for OAuth client skua with secret skua-secret, or for Token.
type Catalog struct {
	URL   string
	Token string // a fixed token that is let in; empty: none

	store  *S3
	mu     sync.Mutex
	knobs  Knobs
	tables map[string]Table // namespace levels joined with dots, a dot, the name
	tokens map[string]time.Time
	log    []Call
	n      int
	fault  func(n int, r *http.Request) *Fault
	seen   int
}

// NewCatalog starts a catalog over store that ends with the test.
func NewCatalog(t testing.TB, store *S3) *Catalog {
	c := &Catalog{store: store, tables: map[string]Table{}, tokens: map[string]time.Time{}}
	h := httptest.NewServer(c)
	t.Cleanup(h.Close)
	c.URL = h.URL + "/catalog"
	return c
}

// Change changes the knobs.
func (c *Catalog) Change(f func(k *Knobs)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.knobs)
}

// SetFault sets what goes wrong; nil mends all.
func (c *Catalog) SetFault(f func(n int, r *http.Request) *Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault, c.seen = f, 0
}

// Put adds a table under its dotted name.
func (c *Catalog) Put(name string, t Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[name] = t
}

// Log gives the calls so far and forgets them.
func (c *Catalog) Log() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

// ExpireTokens ends all tokens that were given.
func (c *Catalog) ExpireTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = map[string]time.Time{}
}

// ServeHTTP implements http.Handler.
func (c *Catalog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, body := 0, any(nil)
	if c.fault != nil {
		if f := c.fault(c.seen, r); f != nil {
			status, body = f.Status, failed(f.Status, f.Code, "as asked for, Bearer "+r.Header.Get("Authorization"))
			if f.RetryAfter != "" {
				w.Header().Set("Retry-After", f.RetryAfter)
			}
		}
		c.seen++
	}
	if status == 0 {
		status, body = c.answer(r)
	}
	c.log = append(c.log, Call{Path: strings.TrimPrefix(r.URL.EscapedPath(), "/catalog/"), Query: r.URL.RawQuery, Delegation: r.Header.Get("X-Iceberg-Access-Delegation"), Status: status})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func failed(status int, kind, message string) any {
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "code": status}}
}

func (c *Catalog) answer(r *http.Request) (int, any) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/catalog/v1/")
	if !ok {
		return 404, failed(404, "NotFoundException", "no such path")
	}
	if path == "oauth/tokens" {
		return c.grant(r)
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if until, ok := c.tokens[token]; (!ok || time.Now().After(until)) && (c.Token == "" || token != c.Token) {
		return 401, failed(401, "NotAuthorizedException", "token "+token+" is not valid")
	}
	if path == "config" {
		if r.URL.Query().Get("warehouse") == "none" {
			return 404, failed(404, "NoSuchWarehouseException", "no such warehouse")
		}
		overrides := map[string]any{"prefix": "ws/main", "uri": "http://169.254.169.254/", "io-impl": "com.example.Evil", "nothing": nil}
		if c.knobs.Separator != "" {
			overrides["namespace-separator"] = c.knobs.Separator
		}
		for k, v := range c.knobs.Overrides {
			overrides[k] = v
		}
		endpoints := []string{"GET /v1/{prefix}/namespaces", "GET /v1/{prefix}/namespaces/{namespace}/tables", "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}"}
		if c.knobs.Credentials != "unadvertised" {
			endpoints = append(endpoints, "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials")
		}
		return 200, map[string]any{"defaults": map[string]any{"s3.endpoint": c.store.URL, "s3.path-style-access": "true"}, "overrides": overrides, "endpoints": endpoints}
	}
	path, ok = strings.CutPrefix(path, "ws/main/namespaces")
	if !ok {
		return 404, failed(404, "NotFoundException", "path without the prefix")
	}
	separator := "%1F"
	if c.knobs.Separator != "" {
		separator = c.knobs.Separator
	}
	steps := strings.Split(strings.Trim(path, "/"), "/")
	for i, s := range steps {
		raw, err := url.PathUnescape(strings.ReplaceAll(s, separator, "."))
		if err != nil {
			return 400, failed(400, "BadRequestException", "path")
		}
		steps[i] = raw
	}
	switch {
	case path == "":
		plain, _ := url.PathUnescape(separator)
		return c.namespaces(strings.ReplaceAll(r.URL.Query().Get("parent"), plain, "."), r.URL.Query())
	case len(steps) == 2 && steps[1] == "tables":
		return c.list(steps[0], r.URL.Query())
	case len(steps) == 3 && steps[1] == "tables":
		t, ok := c.tables[steps[0]+"."+steps[2]]
		if !ok {
			return 404, failed(404, "NoSuchTableException", "Table does not exist: "+steps[0]+"."+steps[2])
		}
		return 200, c.load(t, r.Header.Get("X-Iceberg-Access-Delegation"))
	case len(steps) == 4 && steps[3] == "credentials":
		t, ok := c.tables[steps[0]+"."+steps[2]]
		if !ok {
			return 404, failed(404, "NoSuchTableException", "Table does not exist")
		}
		switch c.knobs.Credentials {
		case "empty":
			return 200, map[string]any{"storage-credentials": []any{}}
		case "":
			return 200, map[string]any{"storage-credentials": c.vend(t)}
		}
		status, err := strconv.Atoi(c.knobs.Credentials)
		if err != nil {
			status = 404
		}
		return status, failed(status, "Exception", "no credentials endpoint")
	}
	return 404, failed(404, "NotFoundException", "no such path")
}

func (c *Catalog) grant(r *http.Request) (int, any) {
	if r.Method != http.MethodPost || r.ParseForm() != nil || r.Form.Get("grant_type") != "client_credentials" ||
		r.Form.Get("client_id") != "skua" || r.Form.Get("client_secret") != "skua-secret" {
		return 401, map[string]any{"error": "invalid_client", "error_description": "secret " + r.Form.Get("client_secret") + " is wrong"}
	}
	life := c.knobs.TokenLife
	if life == 0 {
		life = time.Hour
	}
	c.n++
	token := fmt.Sprint("oauth-token-", c.n)
	c.tokens[token] = time.Now().Add(life)
	return 200, map[string]any{"access_token": token, "token_type": "bearer", "expires_in": life.Seconds()}
}

// page cuts a sorted list by the page token, which is the last entry of the page before.
func (c *Catalog) page(all []string, q url.Values) (part []string, next any) {
	sort.Strings(all)
	if !q.Has("pageToken") || c.knobs.PageSize == 0 {
		return all, nil
	}
	for _, s := range all {
		if s <= q.Get("pageToken") {
			continue
		}
		if len(part) == c.knobs.PageSize {
			return part, part[len(part)-1]
		}
		part = append(part, s)
	}
	return part, nil
}

func (c *Catalog) namespaces(parent string, q url.Values) (int, any) {
	below, exists := map[string]bool{}, parent == ""
	for name := range c.tables {
		ns := name[:strings.LastIndexByte(name, '.')]
		if parent != "" {
			if ns == parent {
				exists = true
				continue
			}
			rest, ok := strings.CutPrefix(ns, parent+".")
			if !ok {
				continue
			}
			exists, ns = true, rest
		}
		level, _, _ := strings.Cut(ns, ".")
		below[strings.TrimPrefix(parent+"."+level, ".")] = true
	}
	if !exists {
		return 404, failed(404, "NoSuchNamespaceException", "Namespace does not exist: "+parent)
	}
	var all []string
	for ns := range below {
		all = append(all, ns)
	}
	part, next := c.page(all, q)
	out := [][]string{}
	for _, ns := range part {
		out = append(out, strings.Split(ns, "."))
	}
	return 200, map[string]any{"namespaces": out, "next-page-token": next}
}

func (c *Catalog) list(ns string, q url.Values) (int, any) {
	var all []string
	exists := false
	for name := range c.tables {
		at := strings.LastIndexByte(name, '.')
		exists = exists || strings.HasPrefix(name, ns+".")
		if name[:at] == ns {
			all = append(all, name[at+1:])
		}
	}
	if !exists {
		return 404, failed(404, "NoSuchNamespaceException", "Namespace does not exist: "+ns)
	}
	part, next := c.page(all, q)
	out := []any{}
	for _, n := range part {
		out = append(out, map[string]any{"namespace": strings.Split(ns, "."), "name": n})
	}
	return 200, map[string]any{"identifiers": out, "next-page-token": next}
}

// vend makes a key for each location of a table.
func (c *Catalog) vend(t Table) []any {
	life := c.knobs.KeyLife
	if life == 0 {
		life = time.Hour
	}
	out := []any{}
	for _, l := range t.Locations {
		c.n++
		k := c.store.AddKey(Key{
			ID: fmt.Sprint("ASIAVEND", c.n), Secret: fmt.Sprint("vended-secret-", c.n), Token: fmt.Sprint("vended-token-", c.n),
			Expires: time.Now().Add(life), Prefixes: []string{strings.TrimPrefix(l, "s3://")},
		})
		config := map[string]any{"s3.access-key-id": k.ID, "s3.secret-access-key": k.Secret, "s3.session-token": k.Token}
		if !c.knobs.OmitExpiry {
			config["s3.session-token-expires-at-ms"] = strconv.FormatInt(k.Expires.UnixMilli(), 10)
		}
		prefix := l
		if c.knobs.Prefix != "" {
			prefix = c.knobs.Prefix
		}
		out = append(out, map[string]any{"prefix": prefix, "config": config})
	}
	return out
}

func (c *Catalog) load(t Table, delegation string) any {
	config := map[string]any{}
	for k, v := range c.knobs.TableConfig {
		config[k] = v
	}
	a := map[string]any{"metadata-location": t.MetadataLocation, "metadata": t.Metadata, "config": config}
	if c.knobs.NoKeys || !strings.Contains(delegation, "vended-credentials") {
		return a
	}
	keys := c.vend(t)
	if !c.knobs.LegacyKeys {
		a["storage-credentials"] = keys
		return a
	}
	for _, k := range keys {
		for n, v := range k.(map[string]any)["config"].(map[string]any) {
			config[n] = v
		}
	}
	return a
}
