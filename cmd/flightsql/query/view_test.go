package query_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// addView writes the metadata of a view s.<name> into a warehouse folder.
func addView(t *testing.T, dir, name, dialect, sql string) {
	addViewIn(t, dir, "s", name, "prod", "s", dialect, sql)
}

// addViewIn writes the metadata of a view of a namespace, whose text starts from a catalog and a namespace of its own.
func addViewIn(t *testing.T, dir, ns, name, fromCatalog, fromNamespace, dialect, sql string) {
	at := filepath.Join(dir, ns, name, "metadata")
	require.NoError(t, os.MkdirAll(at, 0o750))
	doc := fmt.Sprintf(`{"view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1, "location": "/v", "current-version-id": 2,
		"properties": {}, "version-log": [{"version-id": 2, "timestamp-ms": 1}],
		"schemas": [{"schema-id": 1, "type": "struct", "fields": [{"id": 1, "name": "key", "required": false, "type": "long"}, {"id": 2, "name": "twice", "required": false, "type": "long"}]}],
		"versions": [{"version-id": 2, "timestamp-ms": 1, "schema-id": 1, "summary": {}, "default-catalog": %q, "default-namespace": [%q],
			"representations": [{"type": "sql", "sql": %q, "dialect": %q}]}]}`, fromCatalog, fromNamespace, sql, dialect)
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

// TestViewsStartFromTheirOwnNames: a view's names are those of its own catalog and namespace, whatever the session's are and whatever views
// stand around it, and every dialect that is read keeps its meaning.
func TestViewsStartFromTheirOwnNames(t *testing.T) {
	dir, other := warehouse(t, "2", numbers, []string{ids(0, 4)}), warehouse(t, "3", numbers, []string{ids(10, 12)})
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "top"), 0o750))
	// Two views of one name, one over the other, are no circle.
	addViewIn(t, dir, "s", "v", "lake", "s", "trino", "SELECT id, id FROM t")
	addViewIn(t, dir, "top", "v", "lake", "s", "trino", "SELECT key, twice + 1 FROM v")
	addViewIn(t, dir, "top", "elsewhere", "other", "s", "trino", "SELECT id, 0 FROM t")
	addViewIn(t, dir, "top", "both", "lake", "s", "spark", "SELECT a.id, b.id FROM t a JOIN other.s.t b ON b.id = a.id + 10")
	addViewIn(t, dir, "top", "dremio", "lake", "s", "DREMIO", `SELECT "id", 7 / 2 FROM "s"."t" WHERE "id" = 3`)
	addViewIn(t, dir, "top", "spark", "lake", "s", "spark", "SELECT `id`, cast(7 / 2 AS BIGINT) FROM `t` WHERE `id` = 3")
	addViewIn(t, dir, "top", "wide", "lake", "s", "trino", "SELECT id, 2, 3 FROM t")
	addViewIn(t, dir, "top", "there", "lake", "top", "trino", "SELECT key, twice FROM back")
	addViewIn(t, dir, "top", "back", "lake", "s", "trino", "SELECT key, twice FROM lake.top.there")
	addViewIn(t, dir, "top", "twisted", "lake", "s", "trino", "SELECT s, s FROM t WHERE id = 1")
	at := []string{"--catalog", "lake=" + dir, "--catalog", "other=" + other, "--format", "csv"}
	for sql, want := range map[string]string{
		"SELECT * FROM lake.top.v ORDER BY 1":         "key,twice\n0,1\n1,2\n2,3\n3,4\n",
		"SELECT * FROM lake.top.elsewhere ORDER BY 1": "key,twice\n10,0\n11,0\n",
		"SELECT * FROM lake.top.both ORDER BY 1":      "key,twice\n0,10\n1,11\n",
		"SELECT * FROM lake.top.dremio":               "key,twice\n3,3\n",
		"SELECT * FROM lake.top.spark":                "key,twice\n3,3\n",
		"SELECT count(*) FROM lake.top.v a JOIN lake.s.v b ON a.key = b.key WHERE a.key IN (SELECT key FROM lake.top.v WHERE twice > 2)": "count(*)\n2\n",
	} {
		out, err := run(append(at, sql)...)
		require.NoError(t, err, sql)
		if _, rows, _ := strings.Cut(out, "\n"); strings.HasPrefix(want, "count") {
			require.Equal(t, "2\n", rows)
			continue
		}
		require.Equal(t, want, out, sql)
	}
	for sql, want := range map[string]string{
		"SELECT * FROM lake.top.wide":  "its query gives 3 columns, its schema has 2",
		"SELECT * FROM lake.top.there": "refers to itself",
		"SELECT * FROM lake.top.back":  "refers to itself",
	} {
		_, err := run(append(at, sql)...)
		require.ErrorContains(t, err, want, sql)
	}
	out, err := run(append(at, "SELECT * FROM lake.top.twisted")...)
	require.NoError(t, err)
	require.Contains(t, out, "a text that is longer", "a column whose type has changed since is as the tables are now")
}
