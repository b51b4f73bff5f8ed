package rest

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// PassTokenProperty makes a catalog ask its server with the token of whoever asks Skua.
const PassTokenProperty = "rest.auth.pass-token"

// callers is a catalog that has no identity of its own: each caller's token is shown to the server, and nothing that one token
// got serves another. A caller without a token is refused, whoever it is.
type callers struct {
	opt Options

	mu  sync.Mutex
	own *simplelru.LRU[[sha256.Size]byte, *ownCatalog]
}

type ownCatalog struct {
	*Catalog
	until time.Time // when the token ends; zero when it does not say
}

// rememberedCallers is how many tokens' catalogs are kept.
const rememberedCallers = 1024

func newCallers(opt Options) (*callers, error) {
	c := &callers{opt: opt}
	var err error
	c.own, err = simplelru.NewLRU(rememberedCallers, func(_ [sha256.Size]byte, o *ownCatalog) { _ = o.Close() })
	return c, err
}

// Open makes the catalog that the properties describe: one of a single identity, or of as many as there are callers.
func Open(opt Options) (catalog.Catalog, error) {
	if opt.Properties[PassTokenProperty] != "true" {
		return New(opt)
	}
	if _, err := New(opt); err != nil { // what is wrong is told at the start
		return nil, err
	}
	return newCallers(opt)
}

// of gives the catalog of the caller's token.
func (c *callers) of(ctx context.Context) (*Catalog, error) {
	who := credentials.CallerOf(ctx)
	if who.Token.Empty() {
		return nil, fault.New(fault.Denied, "catalog %s is asked with the caller's own token, and %q came without one: log in with a token of the identity provider", c.opt.Name, who.Name)
	}
	token := who.Token.Reveal()
	key := sha256.Sum256([]byte(who.Name + "\x00" + token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.own.Get(key); ok && (o.until.IsZero() || time.Now().Before(o.until)) {
		return o.Catalog, nil
	}
	opt := c.opt
	opt.Properties = maps.Clone(opt.Properties)
	delete(opt.Properties, PassTokenProperty)
	opt.Properties["token"] = token
	own, err := New(opt)
	if err != nil {
		return nil, err
	}
	o := &ownCatalog{Catalog: own}
	o.until, _ = expiryOf(token)
	c.own.Remove(key)
	c.own.Add(key, o)
	return own, nil
}

// Name implements catalog.Catalog.
func (c *callers) Name() string { return c.opt.Name }

// Close implements catalog.Catalog.
func (c *callers) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own.Purge()
	return nil
}

// Namespaces implements catalog.Catalog.
func (c *callers) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	own, err := c.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Namespaces(ctx, parent)
}

// Tables implements catalog.Catalog.
func (c *callers) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	own, err := c.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Tables(ctx, ns)
}

// Load implements catalog.Catalog.
func (c *callers) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	own, err := c.of(ctx)
	if err != nil {
		return nil, err
	}
	return own.Load(ctx, ns, name)
}
