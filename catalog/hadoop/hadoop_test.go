package hadoop

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/catalogtest"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, content, 0o644))
}

func open(t *testing.T, root string) *Catalog {
	t.Helper()
	c, err := New(context.Background(), Options{Name: "lake", Warehouse: root, Store: storage.Local{}})
	require.NoError(t, err)
	return c
}

func TestConformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Fixture {
		root := t.TempDir()
		for _, p := range []string{"sales/orders", "sales/eu/customers"} {
			write(t, root+"/"+p+"/metadata/v1.metadata.json", catalogtest.Metadata(t, root+"/"+p))
			write(t, root+"/"+p+"/metadata/version-hint.text", []byte("1"))
		}
		return catalogtest.Fixture{
			Catalog: open(t, root),
			Damage: func(t *testing.T) {
				write(t, root+"/sales/orders/metadata/v1.metadata.json", []byte(`{"format-version": 2,`))
			},
		}
	})
}

func zipped(t *testing.T, b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(b)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return z.Bytes()
}

// TestCurrentVersion says which metadata file is read, by what the metadata folder holds.
func TestCurrentVersion(t *testing.T) {
	cases := []struct {
		name  string
		files []string
		hint  string
		want  string
		kind  error
	}{
		{"the hint names it", []string{"v1.metadata.json", "v2.metadata.json"}, "2", "v2.metadata.json", nil},
		{"a newer one follows the hint", []string{"v1.metadata.json", "v2.metadata.json", "v3.metadata.json"}, "1\n", "v3.metadata.json", nil},
		{"a gap ends the chain", []string{"v1.metadata.json", "v3.metadata.json"}, "1", "v1.metadata.json", nil},
		{"no hint", []string{"v1.metadata.json", "v10.metadata.json", "v9.metadata.json"}, "", "v10.metadata.json", nil},
		{"a hint that is no number", []string{"v1.metadata.json", "v2.metadata.json"}, "two", "v2.metadata.json", nil},
		{"a hint with a file name", []string{"v1.metadata.json", "v2.metadata.json"}, "v2.metadata.json", "v2.metadata.json", nil},
		{"gzip, both spellings", []string{"v1.gz.metadata.json", "v2.metadata.json.gz"}, "2", "v2.metadata.json.gz", nil},
		{"another catalog's names", []string{"00000-aa-bb.metadata.json", "00001-cc-dd.metadata.json"}, "", "00001-cc-dd.metadata.json", nil},
		{"a hint past the end", []string{"v1.metadata.json"}, "7", "", fault.Corrupt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for _, f := range c.files {
				b := catalogtest.Metadata(t, root+"/ns/t")
				if filepath.Ext(f) == ".gz" || f == "v1.gz.metadata.json" {
					b = zipped(t, b)
				}
				write(t, root+"/ns/t/metadata/"+f, b)
			}
			if c.hint != "" {
				write(t, root+"/ns/t/metadata/version-hint.text", []byte(c.hint))
			}
			tab, err := open(t, root).Load(context.Background(), catalog.Namespace{"ns"}, "t")
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
				return
			}
			require.NoError(t, err)
			require.Equal(t, root+"/ns/t/metadata/"+c.want, tab.MetadataLocation)
		})
	}
}

// TestReusedFileName drops a table and makes another under the same v1.metadata.json: the new one is read.
func TestReusedFileName(t *testing.T) {
	root := t.TempDir()
	c := open(t, root)
	load := func() *catalog.Table {
		tab, err := c.Load(context.Background(), catalog.Namespace{"ns"}, "t")
		require.NoError(t, err)
		return tab
	}
	write(t, root+"/ns/t/metadata/v1.metadata.json", catalogtest.Metadata(t, root+"/ns/t"))
	first := load()
	require.Same(t, first, load(), "an unchanged file is parsed once")
	write(t, root+"/ns/t/metadata/v1.metadata.json", catalogtest.Metadata(t, root+"/ns/t"))
	require.NotEqual(t, first.Metadata.TableUUID(), load().Metadata.TableUUID())
}

func TestMissingWarehouse(t *testing.T) {
	_, err := New(context.Background(), Options{Name: "lake", Warehouse: t.TempDir() + "/none", Store: storage.Local{}})
	require.ErrorIs(t, err, fault.NotFound)
	require.ErrorContains(t, err, "catalog lake")
}

func table(t *testing.T, root, path string) {
	t.Helper()
	write(t, root+"/"+path+"/metadata/v1.metadata.json", catalogtest.Metadata(t, root+"/"+path))
}

// all lists every table by its full name, as the server does.
func all(t *testing.T, c *Catalog, parent catalog.Namespace) []string {
	t.Helper()
	var out []string
	level, err := c.Namespaces(context.Background(), parent)
	require.NoError(t, err)
	for _, ns := range level {
		tables, err := c.Tables(context.Background(), ns)
		require.NoError(t, err)
		for _, name := range tables {
			out = append(out, ns.String()+"/"+name)
		}
		out = append(out, all(t, c, ns)...)
	}
	return out
}

// TestTablesAtTheRoot: a table without a namespace is found in the schema default.
func TestTablesAtTheRoot(t *testing.T) {
	root := t.TempDir()
	table(t, root, "top")
	table(t, root, "ns/inner")
	c := open(t, root)
	require.ElementsMatch(t, []string{"default/top", "ns/inner"}, all(t, c, nil))
	tab, err := c.Load(context.Background(), catalog.Namespace{"default"}, "top")
	require.NoError(t, err)
	require.Equal(t, root+"/top/metadata/v1.metadata.json", tab.MetadataLocation)
	table(t, root, "default/named")
	table(t, root, "default/top")
	require.ElementsMatch(t, []string{"default/named", "default/top", "ns/inner"}, all(t, c, nil))
	tab, err = c.Load(context.Background(), catalog.Namespace{"default"}, "top")
	require.NoError(t, err)
	require.Equal(t, root+"/default/top/metadata/v1.metadata.json", tab.MetadataLocation, "the folder of that name goes first")

	_, err = open(t, t.TempDir()).Tables(context.Background(), catalog.Namespace{"default"})
	require.ErrorIs(t, err, fault.NotFound)
	_, err = New(context.Background(), Options{Name: "lake", Warehouse: root + "/ns/inner", Store: storage.Local{}})
	require.ErrorIs(t, err, fault.Invalid)
	require.ErrorContains(t, err, "is a table and no warehouse")
}

// TestLinksInCircles: listing ends, and links that lead somewhere are followed.
func TestLinksInCircles(t *testing.T) {
	root := t.TempDir()
	table(t, root, "ns/t")
	require.NoError(t, os.MkdirAll(root+"/a", 0o755))
	require.NoError(t, os.MkdirAll(root+"/b", 0o755))
	for link, to := range map[string]string{
		"loop": ".", "ns/up": "..", "ns/self": "self", "dangling": "/nowhere/at/all", "a/l": "../b", "b/l": "../a", "ns/link": "t", "other": "ns",
	} {
		require.NoError(t, os.Symlink(to, root+"/"+link))
	}
	require.ElementsMatch(t, []string{"ns/t", "ns/link", "other/t", "other/link"}, all(t, open(t, root), nil))
}

// denied refuses to list some folders.
type denied struct {
	storage.Store
	match string
}

func (d denied) List(ctx context.Context, dir string) ([]storage.Info, error) {
	if strings.Contains(dir, d.match) {
		return nil, fault.New(fault.Denied, "object %s may not be read by this process", dir)
	}
	return d.Store.List(ctx, dir)
}

// TestUnreadableFolders: one folder that may not be read hides nothing else, and says so when it is asked for.
func TestUnreadableFolders(t *testing.T) {
	root := t.TempDir()
	for _, p := range []string{"ns/a", "ns/secret", "ns/z", "secret/x", "we ird/q'uo\"te", "ü.nïcode/T", "empty/_hidden"} {
		table(t, root, p)
	}
	c, err := New(context.Background(), Options{Name: "lake", Warehouse: root, Store: denied{storage.Local{}, "secret"}})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ns/a", "ns/secret", "ns/z", "we ird/q'uo\"te", "ü.nïcode/T", "default/secret"}, all(t, c, nil))
	_, err = c.Load(context.Background(), catalog.Namespace{"ns"}, "secret")
	require.ErrorIs(t, err, fault.Denied)
	_, err = c.Tables(context.Background(), catalog.Namespace{"secret"})
	require.Error(t, err)
}

func TestRememberedTablesAreBounded(t *testing.T) {
	root := t.TempDir()
	c := open(t, root)
	for _, size := range []int64{rememberedBytes - 10, 20, 10, rememberedBytes + 1, 5} {
		c.remember(storage.Info{Path: "t", Size: size}, &catalog.Table{})
		c.remember(storage.Info{Path: string(rune('a' + size%26)), Size: size}, &catalog.Table{})
		require.LessOrEqual(t, c.bytes, int64(rememberedBytes))
	}
	for c.parsed.Len() > 0 {
		c.parsed.RemoveOldest()
	}
	require.Zero(t, c.bytes)
}
