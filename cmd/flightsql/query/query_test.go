package query_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/cmd/flightsql/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(args ...string) (string, error) {
	cmd := query.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func trips(t *testing.T) string {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "city", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	tbl, err := array.TableFromJSON(memory.DefaultAllocator, schema, []string{`[{"id": 1, "city": "Bern"}, {"id": 2, "city": null}]`})
	require.NoError(t, err)
	defer tbl.Release()
	path := filepath.Join(t.TempDir(), "trips.parquet")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, pqarrow.WriteTable(tbl, f, 10, nil, pqarrow.DefaultWriterProps()))
	return path
}

func TestLoneFileInThisProcess(t *testing.T) {
	path := trips(t)
	out, err := run("--format", "csv", "SELECT t.id, trips.city FROM '"+path+"' t JOIN '"+path+"' USING (id) ORDER BY 1; SELECT count(*) FROM '"+path+"'")
	require.NoError(t, err)
	require.Equal(t, "id,city\n1,Bern\n2,\n_col0\n2\n", out)
}

// TestValuesTooDeepForArrow: what is nested deeper than Arrow carries comes as JSON text here, where a server refuses it.
func TestValuesTooDeepForArrow(t *testing.T) {
	const depth = 80
	nested := strings.Repeat("array(", depth) + "integer" + strings.Repeat(")", depth)
	value := strings.Repeat("[", depth) + "7" + strings.Repeat("]", depth)
	out, err := run("--format", "csv", "SELECT CAST(JSON '"+value+"' AS "+nested+") v, 1 x")
	require.NoError(t, err)
	require.Equal(t, "v,x\n"+value+",1\n", out)
}

func TestLoneFileThatIsNotThere(t *testing.T) {
	_, err := run("SELECT * FROM '/nowhere/trips.parquet'")
	require.ErrorContains(t, err, "/nowhere/trips.parquet")
}

func TestCatalogsOfAConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skua.yaml")
	require.NoError(t, os.WriteFile(file, []byte("catalogs:\n  lake:\n    type: hadoop\n    properties: {warehouse: "+t.TempDir()+"}\n"), 0o600))
	out, err := run("--config", file, "--format", "csv", "SHOW CATALOGS")
	require.NoError(t, err)
	require.Contains(t, out, "lake\n")
	_, err = run("--config", file, "--server", "grpc://127.0.0.1:1", "SELECT 1")
	require.ErrorContains(t, err, "either --server")
}
