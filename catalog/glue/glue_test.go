package glue

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/catalogtest"
	"github.com/skua-db/skua/catalog/located"
	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = map[string]any

// service speaks the calls of Glue that an Index makes, a page of one at a time. The integration tests ask another's.
type service struct{ databases map[string][]object }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v object) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	fail := func(code string) { answer(http.StatusBadRequest, object{"__type": code, "Message": "told by Glue"}) }
	var in struct{ CatalogID, DatabaseName, Name, NextToken string }
	if !strings.Contains(r.Header.Get("Authorization"), "Credential=GOOD/") {
		fail("AccessDeniedException")
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		fail("InvalidInputException")
		return
	}
	page := func(name string, all []object) {
		at := len(in.NextToken)
		out := object{name: []object{}}
		if at < len(all) {
			out[name] = all[at : at+1]
		}
		if at+1 < len(all) {
			out["NextToken"] = strings.Repeat("x", at+1)
		}
		answer(http.StatusOK, out)
	}
	switch _, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); call {
	case "GetDatabases":
		var all []object
		for _, name := range slices.Sorted(maps.Keys(s.databases)) { // pages must agree
			all = append(all, object{"Name": name})
		}
		page("DatabaseList", all)
	case "GetDatabase":
		if _, ok := s.databases[in.Name]; !ok {
			fail("EntityNotFoundException")
			return
		}
		answer(http.StatusOK, object{"Database": object{"Name": in.Name}})
	case "GetTables":
		page("TableList", s.databases[in.DatabaseName])
	case "GetTable":
		for _, t := range s.databases[in.DatabaseName] {
			if t["Name"] == in.Name {
				answer(http.StatusOK, object{"Table": t})
				return
			}
		}
		fail("EntityNotFoundException")
	default:
		fail("InvalidInputException")
	}
}

func open(t *testing.T, s *service, key, warehouse string) *located.Catalog {
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p := map[string]string{"client.region": "us-east-1", "glue.endpoint": srv.URL, "glue.access-key-id": key, "glue.secret-access-key": "a secret key", "warehouse": warehouse}
	i, err := Open(p, nil)
	require.NoError(t, err)
	c, err := located.New(located.Options{Name: "aws", Properties: p}, i)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestGlue(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	file := filepath.Join(root, "sales.db/orders/metadata/1.metadata.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, catalogtest.Metadata(t, filepath.Join(root, "sales.db/orders")), 0o600))
	table := func(name, kind, place string) object {
		return object{"Name": name, "Parameters": object{"table_type": kind, "metadata_location": place}}
	}
	s := &service{databases: map[string][]object{
		"sales": {table("orders", "ICEBERG", file), table("hive", "", ""), table("lost", "iceberg", ""), table("away", "ICEBERG", "/etc/x/y.metadata.json")}, "empty": nil,
	}}
	c := open(t, s, "GOOD", root)
	top, err := c.Namespaces(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, []catalog.Namespace{{"empty"}, {"sales"}}, top)
	below, err := c.Namespaces(ctx, catalog.Namespace{"sales"})
	require.NoError(t, err)
	require.Empty(t, below)
	names, err := c.Tables(ctx, catalog.Namespace{"sales"})
	require.NoError(t, err)
	require.Equal(t, []string{"away", "lost", "orders"}, names)
	names, err = c.Tables(ctx, catalog.Namespace{"empty"})
	require.NoError(t, err)
	require.Empty(t, names)
	tab, err := c.Load(ctx, catalog.Namespace{"sales"}, "orders")
	require.NoError(t, err)
	require.Equal(t, file, tab.MetadataLocation)
	for _, ns := range []catalog.Namespace{{"nope"}, {"sales", "x"}} {
		_, err = c.Tables(ctx, ns)
		require.ErrorIs(t, err, fault.NotFound)
		_, err = c.Load(ctx, ns, "orders")
		require.ErrorIs(t, err, fault.NotFound)
	}
	for name, kind := range map[string]fault.Kind{"nope": fault.NotFound, "hive": fault.Unsupported, "lost": fault.Corrupt, "away": fault.Denied} {
		_, err = c.Load(ctx, catalog.Namespace{"sales"}, name)
		require.ErrorIs(t, err, kind, name)
	}
	require.NoError(t, c.Connect(ctx))
	err = open(t, s, "WEAK", root).Connect(ctx)
	require.ErrorIs(t, err, fault.Denied)
	require.NotContains(t, err.Error(), "a secret key")
	for _, p := range []map[string]string{{"client.region": "x"}, {"s3.access-key-id": "a", "s3.secret-access-key": "b"}} {
		_, err = Open(p, nil)
		require.ErrorIs(t, err, fault.Invalid)
	}
}
