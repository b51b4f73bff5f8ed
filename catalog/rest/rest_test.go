package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/catalogtest"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/internal/lakeserver"
	"github.com/skua-db/skua/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var orders = catalog.Namespace{"sales"}

// lake starts a store and a catalog with the tables of the conformance suite, each with a data file.
func lake(t *testing.T) (*lakeserver.Catalog, *lakeserver.S3) {
	t.Helper()
	store := lakeserver.NewS3(t)
	srv := lakeserver.NewCatalog(t, store)
	for _, name := range []string{"sales.orders", "sales.eu.customers"} {
		location := "s3://lake/" + strings.ReplaceAll(name, ".", "/")
		srv.Put(name, lakeserver.Table{MetadataLocation: location + "/metadata/1.metadata.json", Metadata: catalogtest.Metadata(t, location), Locations: []string{location}})
		store.Put(strings.TrimPrefix(location, "s3://")+"/data/f", []byte("data"))
	}
	return srv, store
}

func open(t *testing.T, srv *lakeserver.Catalog, more ...string) *Catalog {
	t.Helper()
	p := map[string]string{"uri": srv.URL, "credential": "skua:skua-secret", "s3.retry.min-wait-ms": "1", "rest.client.max-retries": "2"}
	for i := 0; i < len(more); i += 2 {
		if p[more[i]] = more[i+1]; more[i+1] == "" {
			delete(p, more[i])
		}
	}
	c, err := New(Options{Name: "lake", Properties: p})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestConformance(t *testing.T) {
	for _, separator := range []string{"", "%2E", "%1F", "-"} {
		catalogtest.Run(t, func(t *testing.T) catalogtest.Fixture {
			srv, _ := lake(t)
			srv.Change(func(k *lakeserver.Knobs) { k.Separator, k.PageSize = separator, 1 })
			return catalogtest.Fixture{Catalog: open(t, srv), Damage: func(*testing.T) {
				srv.Put("sales.orders", lakeserver.Table{MetadataLocation: "s3://lake/sales/orders/metadata/1.metadata.json", Metadata: json.RawMessage(`{"format-version": "two"}`)})
			}}
		})
	}
}

func read(tab *catalog.Table, path string) (string, error) {
	b, err := storage.ReadAll(context.Background(), tab.Store, path, -1, 1000)
	return string(b), err
}

func load(t *testing.T, c *Catalog) *catalog.Table {
	t.Helper()
	tab, err := c.Load(context.Background(), orders, "orders")
	require.NoError(t, err)
	return tab
}

func TestPaging(t *testing.T) {
	srv, _ := lake(t)
	for i := range 25 {
		srv.Put(fmt.Sprintf("many.t%02d", i), lakeserver.Table{})
	}
	srv.Change(func(k *lakeserver.Knobs) { k.PageSize = 10 })
	tables, err := open(t, srv, "rest-page-size", "10").Tables(context.Background(), catalog.Namespace{"many"})
	require.NoError(t, err)
	require.Len(t, tables, 25)
	log := srv.Log()
	require.Contains(t, log[len(log)-1].Query, "pageSize=10")
}

func TestAwkwardNames(t *testing.T) {
	srv, _ := lake(t)
	for _, name := range []string{"a b", "a+b", "a/b", "ü", "a%2Fb", "x?y#z"} {
		srv.Put("odd ns/+."+name, lakeserver.Table{MetadataLocation: "s3://lake/x", Metadata: catalogtest.Metadata(t, "s3://lake/x")})
		_, err := open(t, srv).Load(context.Background(), catalog.Namespace{"odd ns/+"}, name)
		require.NoError(t, err, name)
	}
}

// TestVendedKeys reads a file of a table in each way that catalogs vend keys, before and after they expired.
func TestVendedKeys(t *testing.T) {
	const file = "s3a://lake/sales/orders/data/f"
	cases := []struct {
		name   string
		knobs  lakeserver.Knobs
		renews string // the path of the call that renews
	}{
		{"storage credentials", lakeserver.Knobs{}, "/credentials"},
		{"a bare scheme as prefix", lakeserver.Knobs{Prefix: "s3"}, "/credentials"},
		{"s3a as prefix", lakeserver.Knobs{Prefix: "s3a://lake/sales"}, "/credentials"},
		{"no expiry told", lakeserver.Knobs{OmitExpiry: true}, "/credentials"},
		{"keys in the configuration", lakeserver.Knobs{LegacyKeys: true, Credentials: "unadvertised"}, "/orders"},
		{"no such endpoint", lakeserver.Knobs{Credentials: "404"}, "/orders"},
		{"endpoint not served", lakeserver.Knobs{Credentials: "501"}, "/orders"},
		{"empty answer", lakeserver.Knobs{Credentials: "empty"}, "/orders"},
		{"not advertised", lakeserver.Knobs{Credentials: "unadvertised"}, "/orders"},
		{"told by the old property", lakeserver.Knobs{TableConfig: map[string]string{"client.refresh-credentials-endpoint": "http://evil.example/x"}}, "/credentials"},
		{"renewal switched off", lakeserver.Knobs{TableConfig: map[string]string{"client.refresh-credentials-enabled": "false"}}, "/orders"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv, store := lake(t)
			srv.Change(func(k *lakeserver.Knobs) { *k = c.knobs; k.KeyLife = 150 * time.Millisecond })
			tab := load(t, open(t, srv))
			got, err := read(tab, file)
			require.NoError(t, err)
			require.Equal(t, "data", got)
			time.Sleep(200 * time.Millisecond)
			srv.Log()
			_, err = read(tab, file)
			require.NoError(t, err)
			calls := srv.Log()
			require.True(t, strings.HasSuffix(calls[len(calls)-1].Path, c.renews), "%v", calls)
			dead := 0
			for _, r := range store.Log() {
				if r.Note == "ExpiredToken" {
					dead++
				}
			}
			require.LessOrEqual(t, dead, 1)
			_, err = read(tab, "s3://lake/sales/eu/customers/data/f")
			require.ErrorIs(t, err, fault.Denied, "a key reads what it was vended for and nothing else")
		})
	}
}

func TestTwoPrefixes(t *testing.T) {
	srv, store := lake(t)
	srv.Put("sales.orders", lakeserver.Table{
		MetadataLocation: "s3://lake/sales/orders/metadata/1.metadata.json", Metadata: catalogtest.Metadata(t, "s3://lake/sales/orders"),
		Locations: []string{"s3://lake/sales/orders", "s3://bulk/of/orders"},
	})
	store.Put("bulk/of/orders/f", []byte("bulk"))
	store.Put("bulk/of/ordersx/f", []byte("other"))
	tab := load(t, open(t, srv))
	for path, want := range map[string]string{"s3://lake/sales/orders/data/f": "data", "s3n://bulk/of/orders/f": "bulk"} {
		got, err := read(tab, path)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	store.Log()
	for _, path := range []string{"s3://bulk/of/ordersx/f", "s3://bulk/x", "s3://third/f", "/etc/passwd", "file:///etc/passwd", "gs://lake/x", "s3://lake/sales/orders/../x"} {
		_, err := read(tab, path)
		require.Error(t, err, path)
	}
	require.Empty(t, store.Log(), "no request leaves for what no key covers")
}

func TestKeysOfItsOwn(t *testing.T) {
	srv, store := lake(t)
	srv.Change(func(k *lakeserver.Knobs) { k.NoKeys = true })
	_, err := read(load(t, open(t, srv)), "s3://lake/sales/orders/data/f")
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "the catalog vended no S3 key for table lake.sales.orders")

	store.AddKey(lakeserver.Key{ID: "AKOWN", Secret: "own"})
	own := load(t, open(t, srv, "s3.access-key-id", "AKOWN", "s3.secret-access-key", "own"))
	_, err = read(own, "s3://lake/sales/orders/data/f")
	require.NoError(t, err)
	_, err = read(own, "s3://lake/sales/eu/customers/data/f")
	require.ErrorContains(t, err, "outside the locations", "a key for all does not let one table read another")

	ambient := credentials.NewStatic(credentials.FromProperties(map[string]string{"s3.access-key-id": "AKOWN", "s3.secret-access-key": "own"}))
	for _, allow := range []string{"false", "true"} {
		c, err := New(Options{Name: "lake", Ambient: ambient, Properties: map[string]string{"uri": srv.URL, "credential": "skua:skua-secret", "ambient-fallback": allow}})
		require.NoError(t, err)
		_, err = read(load(t, c), "s3://lake/sales/orders/data/f")
		require.Equal(t, allow == "true", err == nil, "%v", err)
		require.NoError(t, c.Close())
	}
	srv.Change(func(k *lakeserver.Knobs) { k.TableConfig = map[string]string{"s3.remote-signing-enabled": "true"} })
	_, err = read(load(t, open(t, srv)), "s3://lake/sales/orders/data/f")
	require.ErrorContains(t, err, "signs requests")
	srv.Change(func(k *lakeserver.Knobs) { k.TableConfig = map[string]string{"scan-planning-mode": "server"} })
	_, err = open(t, srv).Load(context.Background(), orders, "orders")
	require.ErrorIs(t, err, fault.Unsupported)
}

// TestLostKeys: ambient keys that would work are not used for a vended table whose keys are gone.
func TestLostKeys(t *testing.T) {
	srv, store := lake(t)
	store.AddKey(lakeserver.Key{ID: "AKOWN", Secret: "own"})
	t.Setenv("AWS_ACCESS_KEY_ID", "AKOWN")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "own")
	srv.Change(func(k *lakeserver.Knobs) { k.KeyLife = 50 * time.Millisecond })
	tab := load(t, open(t, srv, "s3.access-key-id", "AKOWN", "s3.secret-access-key", "own"))
	srv.Change(func(k *lakeserver.Knobs) { k.NoKeys, k.Credentials = true, "empty" })
	time.Sleep(60 * time.Millisecond)
	_, err := read(tab, "s3://lake/sales/orders/data/f")
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "could not be renewed: the catalog answered without a usable S3 key")
	for _, r := range store.Log() {
		require.NotEqual(t, "AKOWN", r.KeyID)
	}
}

// TestManyReadersRenewOnce: loads at the same time share their keys, and each expiry costs one call.
func TestManyReadersRenewOnce(t *testing.T) {
	srv, store := lake(t)
	const life = time.Second
	srv.Change(func(k *lakeserver.Knobs) { k.KeyLife = life })
	c := open(t, srv)
	var wg sync.WaitGroup
	began := time.Now()
	for range 8 {
		wg.Go(func() {
			tab, err := c.Load(context.Background(), orders, "orders")
			for err == nil && time.Since(began) < 3*life {
				_, err = read(tab, "s3://lake/sales/orders/data/f")
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	renewals := 0
	for _, call := range srv.Log() {
		if strings.HasSuffix(call.Path, "/credentials") {
			renewals++
		}
	}
	require.LessOrEqual(t, renewals, 4, "one at four fifths of each life")
	require.GreaterOrEqual(t, renewals, 2)
	refused := map[string]int{}
	for _, r := range store.Log() {
		if r.Note != "" {
			refused[r.KeyID+" "+r.Note]++
		}
	}
	require.LessOrEqual(t, len(refused), 1, "a key is dead at most for who discovers it: %v", refused)
}

func TestMetadataIsParsedOnce(t *testing.T) {
	srv, _ := lake(t)
	c := open(t, srv)
	first := load(t, c)
	require.Same(t, first.Metadata, load(t, c).Metadata)
	srv.Put("sales.orders", lakeserver.Table{MetadataLocation: first.MetadataLocation, Metadata: catalogtest.Metadata(t, "s3://lake/sales/orders"), Locations: []string{"s3://lake"}})
	require.NotEqual(t, first.Metadata.TableUUID(), load(t, c).Metadata.TableUUID(), "a table made anew under the same file name")
}

func TestTokens(t *testing.T) {
	srv, _ := lake(t)
	c := open(t, srv)
	load(t, c)
	srv.ExpireTokens()
	srv.Log()
	load(t, c)
	var paths []string
	for _, call := range srv.Log() {
		paths = append(paths, fmt.Sprint(call.Path, " ", call.Status))
	}
	require.Equal(t, []string{"v1/ws/main/namespaces/sales/tables/orders 401", "v1/oauth/tokens 200", "v1/ws/main/namespaces/sales/tables/orders 200"}, paths)

	srv.Change(func(k *lakeserver.Knobs) { k.TokenLife = time.Second })
	short := open(t, srv)
	load(t, short)
	time.Sleep(950 * time.Millisecond)
	srv.Log()
	load(t, short)
	for _, call := range srv.Log() {
		require.Equal(t, 200, call.Status, "a token is renewed before it ends")
	}
	srv.Token = "a-fixed-token"
	load(t, open(t, srv, "credential", "", "token", "a-fixed-token"))
}

// TestRefusals wants one sentence that names the catalog, of the right kind, without a secret.
func TestRefusals(t *testing.T) {
	fail := func(status int, kind string) func(int, *http.Request) *lakeserver.Fault {
		return func(_ int, r *http.Request) *lakeserver.Fault {
			if !strings.Contains(r.URL.Path, "/tables/") {
				return nil
			}
			return &lakeserver.Fault{Status: status, Code: kind}
		}
	}
	cases := []struct {
		name  string
		more  []string
		fault func(int, *http.Request) *lakeserver.Fault
		kind  error
		text  string
	}{
		{"wrong credential", []string{"credential", "skua:wrong-secret"}, nil, fault.Denied, "refuses the credential (401 invalid_client)"},
		{"wrong token", []string{"credential", "", "token", "wrong-secret"}, nil, fault.Denied, "does not accept the token (401)"},
		{"no token", []string{"credential", ""}, nil, fault.Denied, "does not accept requests without a token; set token or credential (401)"},
		{"no warehouse", []string{"warehouse", "none"}, nil, fault.NotFound, "has not found its configuration (404 NoSuchWarehouseException, no such warehouse)"},
		{"forbidden", nil, fail(403, "ForbiddenException"), fault.Denied, "does not let this catalog's identity read table sales.orders (403 ForbiddenException"},
		{"always unauthorised", nil, fail(401, "NotAuthorizedException"), fault.Denied, "does not accept the token that the credential got (401)"},
		{"broken", nil, fail(500, "InternalServerError"), fault.Unavailable, "failed at table sales.orders (500"},
		{"busy", nil, fail(503, "ServiceUnavailable"), fault.Unavailable, "failed at table sales.orders (503"},
		{"not served", nil, fail(501, "UnsupportedOperationException"), fault.Unsupported, "does not serve table sales.orders (501"},
		{"redirects", nil, fail(301, ""), fault.Unavailable, "redirects (301)"},
		{"nobody there", []string{"uri", "http://127.0.0.1:1", "credential", ""}, nil, fault.Unavailable, "the server at 127.0.0.1:1 does not answer"},
		{"an unknown host", []string{"uri", "http://nowhere.invalid", "credential", ""}, nil, fault.Unavailable, "nowhere.invalid"},
		{"a link-local address", []string{"uri", "http://169.254.169.254", "credential", ""}, nil, fault.Denied, "link-local"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv, _ := lake(t)
			srv.SetFault(c.fault)
			_, err := open(t, srv, c.more...).Load(context.Background(), orders, "orders")
			require.ErrorIs(t, err, c.kind)
			require.ErrorContains(t, err, "catalog lake")
			require.ErrorContains(t, err, c.text)
			for _, secret := range []string{"skua-secret", "wrong-secret", "oauth-token", "\n"} {
				require.NotContains(t, err.Error(), secret)
			}
			require.Less(t, len(err.Error()), 1024)
		})
	}
}

func TestReadsAreTriedAgain(t *testing.T) {
	srv, _ := lake(t)
	for _, status := range []int{408, 429, 500, 502, 503, 504} {
		srv.SetFault(func(n int, _ *http.Request) *lakeserver.Fault {
			if n%2 == 0 {
				return nil
			}
			return &lakeserver.Fault{Status: status}
		})
		load(t, open(t, srv))
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, body := range []string{"<html>", "", "[]", `{"namespaces": 7}`, `{"namespaces": [["a"]], "next-page-token": "x"}`} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "config") {
				_, _ = w.Write([]byte("{}"))
				return
			}
			_, _ = w.Write([]byte(body))
		}))
		c, err := New(Options{Name: "lake", Properties: map[string]string{"uri": h.URL}})
		require.NoError(t, err)
		_, err = c.Namespaces(context.Background(), nil)
		require.ErrorIs(t, err, fault.Corrupt, body)
		require.ErrorContains(t, err, "catalog lake")
		require.NoError(t, c.Close())
		h.Close()
	}
}

func TestServerCannotRedirect(t *testing.T) {
	srv, _ := lake(t)
	c := open(t, srv)
	s, err := c.open(context.Background())
	require.NoError(t, err)
	require.Equal(t, srv.URL, s.properties["uri"])
	require.NotContains(t, s.properties, "io-impl")
}

func TestDelegationIsAskedFor(t *testing.T) {
	srv, _ := lake(t)
	load(t, open(t, srv))
	log := srv.Log()
	require.Equal(t, "vended-credentials", log[len(log)-1].Delegation)
}

func TestCheck(t *testing.T) {
	cases := []struct {
		p    map[string]string
		want string
	}{
		{map[string]string{}, "uri: is missing"},
		{map[string]string{"uri": "host:8181"}, "uri: is not an http or https URL"},
		{map[string]string{"uri": "http://a:b@h"}, "uri: holds a password"},
		{map[string]string{"uri": "http://h", "s3.path-style-access": "yes"}, `s3.path-style-access: "yes" is neither true nor false`},
		{map[string]string{"uri": "http://h", "rest-page-size": "-1"}, "rest-page-size"},
		{map[string]string{"uri": "http://h", "io-impl": "x"}, "io-impl: is not a property of a rest catalog"},
		{map[string]string{"uri": "http://h", "rest.auth.type": "sigv4"}, `rest.auth.type: "sigv4" is not supported`},
		{map[string]string{"uri": "http://h", "token": "a", "credential": "b"}, "token: goes not with credential"},
		{map[string]string{"uri": "http://h", "s3.access-key-id": "a"}, "goes together with"},
		{map[string]string{"uri": "http://h", "header.X-Team": "a", "warehouse": "w", "oauth2-server-uri": "v1/tokens"}, ""},
	}
	for _, c := range cases {
		var got []string
		Check(c.p, func(property, reason string) { got = append(got, property+": "+reason) })
		if c.want == "" {
			require.Empty(t, got)
			continue
		}
		require.Contains(t, strings.Join(got, "\n"), c.want)
	}
}
