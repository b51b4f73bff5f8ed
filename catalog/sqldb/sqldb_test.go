package sqldb

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/catalogtest"
	"github.com/skua-db/skua/catalog/located"
	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database makes the tables of Iceberg's JDBC catalog (JdbcUtil, schema version 1).
func database(t *testing.T, statements ...string) (file string) {
	file = filepath.Join(t.TempDir(), "catalog.db")
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, s := range append([]string{
		`CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
		  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))`,
		`CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000))`,
	}, statements...) {
		_, err := db.Exec(s)
		require.NoError(t, err)
	}
	return file
}

func open(t *testing.T, file, warehouse string, more ...string) (*located.Catalog, error) {
	p := map[string]string{"uri": "sqlite:///" + file, "warehouse": warehouse}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	i, err := Open("lake", p)
	if err != nil {
		return nil, err
	}
	c, err := located.New(located.Options{Name: "lake", Properties: p}, i)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, nil
}

func TestConformance(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalogtest.Fixture {
		root := t.TempDir()
		places := map[string]string{}
		var rows []string
		for _, table := range [][2]string{{"sales", "orders"}, {"sales.eu", "customers"}} {
			home := filepath.Join(root, table[0], table[1])
			file := filepath.Join(home, "metadata", "00001-ab.metadata.json")
			places[table[1]] = file
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, catalogtest.Metadata(t, home), 0o600))
			rows = append(rows, `INSERT INTO iceberg_tables VALUES ('lake', '`+table[0]+`', '`+table[1]+`', 'file://`+file+`', NULL, 'TABLE'), ('other', 'x', '`+table[1]+`', 'nowhere', NULL, NULL)`)
		}
		rows = append(rows, `INSERT INTO iceberg_namespace_properties VALUES ('lake', 'sales', 'exists', 'true'), ('other', 'hidden', 'exists', 'true')`)
		rows[0], rows[1] = rows[1], rows[0]
		c, err := open(t, database(t, rows...), root)
		require.NoError(t, err)
		return catalogtest.Fixture{Catalog: c, Damage: func(t *testing.T) {
			require.NoError(t, os.WriteFile(places["orders"], []byte("{"), 0o600))
		}}
	})
}

func TestWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	for uri, want := range map[string]string{
		"sqlite://relative.db": "absolute path", "sqlite:////nowhere/x.db": "no such file", "oracle://h/db": "not supported", "nonsense": "not that of a database",
		"postgresql:///db": "not of the form", "jdbc:mysql:db": "not of the form",
	} {
		_, err := Open("lake", map[string]string{"uri": uri})
		require.ErrorContains(t, err, want, uri)
	}
	_, err := Open("lake", map[string]string{"uri": "postgresql://ann:topsecret@:bad"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "topsecret")

	file := database(t, `INSERT INTO iceberg_tables VALUES ('prod', 'a', 't', '/etc/passwd', NULL, NULL)`)
	c, err := open(t, file, t.TempDir())
	require.NoError(t, err)
	_, err = c.Namespaces(ctx, nil)
	require.ErrorContains(t, err, `holds no catalog "lake" but "prod"; set catalog-name`)
	c, err = open(t, file, t.TempDir(), "catalog-name", "prod")
	require.NoError(t, err)
	_, err = c.Load(ctx, catalog.Namespace{"a"}, "t")
	require.ErrorIs(t, err, fault.Denied, "outside the warehouse")

	empty := filepath.Join(t.TempDir(), "empty.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	c, err = open(t, empty, t.TempDir())
	require.NoError(t, err)
	require.ErrorContains(t, c.Connect(ctx), "holds no Iceberg catalog")

	i, err := Open("lake", map[string]string{"uri": "postgresql://ann:topsecret@127.0.0.1:1/db?connect_timeout=2"})
	require.NoError(t, err)
	defer func() { require.NoError(t, i.Close()) }()
	_, err = i.Tables(ctx, catalog.Namespace{"a"})
	require.ErrorIs(t, err, fault.Unavailable)
	require.NotContains(t, err.Error(), "topsecret")
}
