package query_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// addView writes the metadata of a view s.<name> into a warehouse folder.
func addView(t *testing.T, dir, name, dialect, sql string) {
	at := filepath.Join(dir, "s", name, "metadata")
	require.NoError(t, os.MkdirAll(at, 0o750))
	doc := fmt.Sprintf(`{"view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1, "location": "/v", "current-version-id": 2,
		"properties": {}, "version-log": [{"version-id": 2, "timestamp-ms": 1}],
		"schemas": [{"schema-id": 1, "type": "struct", "fields": [{"id": 1, "name": "key", "required": false, "type": "long"}, {"id": 2, "name": "twice", "required": false, "type": "long"}]}],
		"versions": [{"version-id": 2, "timestamp-ms": 1, "schema-id": 1, "summary": {}, "default-catalog": "prod", "default-namespace": ["s"],
			"representations": [{"type": "sql", "sql": %q, "dialect": %q}]}]}`, sql, dialect)
	require.NoError(t, os.WriteFile(filepath.Join(at, "v1.metadata.json"), []byte(doc), 0o600))
}

func TestViewsOfAWarehouse(t *testing.T) {
	dir := warehouse(t, "2", numbers, []string{ids(0, 4)})
	addView(t, dir, "doubled", "spark", "SELECT id, CAST(id * 2 AS INT) FROM t WHERE id > 0")
	addView(t, dir, "nested", "trino", "SELECT key, twice FROM doubled WHERE twice > 2")
	addView(t, dir, "foreign", "oracle", "SELECT 1, 2 FROM dual")
	addView(t, dir, "circle", "trino", "SELECT key, twice FROM circle")
	addView(t, dir, "stale", "trino", "SELECT gone, 1 FROM t")
	addView(t, dir, "statement", "trino", "SHOW TABLES")
	out, err := run("--catalog", "lake="+dir, "--format", "csv", "SELECT v.key, twice FROM s.doubled v ORDER BY 1; SELECT * FROM lake.s.nested ORDER BY 1")
	require.NoError(t, err)
	require.Equal(t, "key,twice\n1,2\n2,4\n3,6\nkey,twice\n2,4\n3,6\n", out)
	for sql, want := range map[string]string{
		"SELECT * FROM s.foreign":                     `its query is written for ["oracle"]`,
		"SELECT * FROM s.circle":                      "refers to itself",
		"SELECT * FROM s.stale":                       "view s.stale: ",
		"SELECT * FROM s.statement":                   "its text is not a query",
		"SELECT * FROM s.doubled FOR VERSION AS OF 1": "no versions of its own",
	} {
		_, err := run("--catalog", "lake="+dir, sql)
		require.ErrorContains(t, err, want, sql)
	}
}
