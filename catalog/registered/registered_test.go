package registered

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog/catalogtest"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Fixture {
		root := t.TempDir()
		tables := map[string]string{}
		for name, dir := range map[string]string{"sales.orders": "x/orders", "sales.eu.customers": "y/c"} {
			tables[name] = filepath.Join(root, dir, "metadata", "00007-ab.metadata.json")
			require.NoError(t, os.MkdirAll(filepath.Dir(tables[name]), 0o755))
			require.NoError(t, os.WriteFile(tables[name], catalogtest.Metadata(t, root+"/"+dir), 0o644))
		}
		c, err := New(Options{Name: "files", Tables: tables, Store: storage.Local{}})
		require.NoError(t, err)
		return catalogtest.Fixture{Catalog: c, Damage: func(t *testing.T) {
			require.NoError(t, os.WriteFile(tables["sales.orders"], []byte("{"), 0o644))
		}}
	})
}

func TestNames(t *testing.T) {
	for _, bad := range []string{"orders", ".orders", "sales.", ""} {
		_, err := New(Options{Name: "files", Tables: map[string]string{bad: "/x"}, Store: storage.Local{}})
		require.ErrorIs(t, err, fault.Invalid, bad)
	}
}
