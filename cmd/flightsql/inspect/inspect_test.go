package inspect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/apache/iceberg-go"
	ihadoop "github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/cmd/flightsql/inspect"
	"github.com/skua-db/skua/scanner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(args ...string) (string, error) {
	cmd := inspect.Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestInspectWarehouse(t *testing.T) {
	dir := t.TempDir()
	cat, err := ihadoop.NewCatalog("lake", dir, nil)
	require.NoError(t, err)
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	for _, ns := range []string{"sales", "hr"} {
		require.NoError(t, cat.CreateNamespace(context.Background(), table.Identifier{ns}, nil))
		_, err = cat.CreateTable(context.Background(), table.Identifier{ns, "t"}, schema)
		require.NoError(t, err)
	}
	out, err := run("--catalog", "lake="+dir, "--format", "json")
	require.NoError(t, err)
	var all []scanner.Inventory
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	require.Len(t, all, 2)
	require.Equal(t, "lake.hr.t", all[0].Table)
	require.Equal(t, []string{"0: unpartitioned *"}, all[0].Specs)

	for _, only := range []string{"sales", "sales.t"} {
		out, err = run("--catalog", "lake="+dir, only)
		require.NoError(t, err)
		require.Contains(t, out, "lake.sales.t")
		require.NotContains(t, out, "lake.hr.t")
	}
	_, err = run("--catalog", "lake="+dir, "nowhere")
	require.ErrorContains(t, err, "nowhere")
	_, err = run()
	require.ErrorContains(t, err, "say what to inspect")
}
