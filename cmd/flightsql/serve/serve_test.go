package serve_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/cmd/flightsql/serve"
	"github.com/skua-db/skua/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCatalogFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	load := func() *config.Loaded {
		c, err := config.Load("", nil)
		require.NoError(t, err)
		return c
	}
	c := load()
	require.NoError(t, serve.Flags(c, []string{"lake=some/folder", "t=/w/db/orders/metadata/v3.metadata.json"}, ""))
	require.Equal(t, filepath.Join(here, "some/folder"), c.Catalogs["lake"].Properties["warehouse"], "relative to where the command runs")
	require.Equal(t, map[string]string{"default.orders": "/w/db/orders/metadata/v3.metadata.json"}, c.Catalogs["t"].Tables)
	require.True(t, c.Auth.Anonymous, "a try on loopback needs no login")

	c = load()
	require.NoError(t, serve.Flags(c, []string{"r=http://host:8181/catalog?warehouse=demo&client.region=eu"}, ""))
	require.Equal(t, config.Catalog{Type: "rest", Properties: map[string]string{"uri": "http://host:8181/catalog", "warehouse": "demo", "client.region": "eu"}}, c.Catalogs["r"])
	require.NoError(t, c.Check())

	c = load()
	require.NoError(t, serve.Flags(c, []string{"lake=/w"}, "0.0.0.0:1"))
	require.False(t, c.Auth.Anonymous)
	require.ErrorContains(t, serve.Flags(load(), []string{"lake=/a", "lake=/b"}, ""), "lake is given twice")
	for _, bad := range []string{"lake", "=x", "lake=", ""} {
		require.ErrorContains(t, serve.Flags(load(), []string{bad}, ""), "name=folder")
	}
}
