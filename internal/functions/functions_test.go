package functions

import (
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/expr"
)

var update = flag.Bool("update", false, "write docs/FUNCTIONS.md anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryFunctionOfTrinoIsHereOrHasAReason(t *testing.T) {
	here := map[string]bool{}
	for _, f := range expr.Functions() {
		here[f.Name] = true
		require.NotEmpty(t, f.Description, f.Name)
		require.NotEmpty(t, f.Return, f.Name)
	}
	names := trino()
	require.Len(t, names, 317)
	for _, name := range names {
		why, listed := missing[name]
		switch {
		case here[name] && listed:
			t.Errorf("%s has been built: take it out of the list of missing functions", name)
		case !here[name] && why == "":
			t.Errorf("%s of Trino is neither here nor in the list of missing functions with a reason", name)
		}
	}
	for name := range missing {
		require.True(t, slices.Contains(names, name), "%s is no function of Trino", name)
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	const path = "../../docs/FUNCTIONS.md"
	want := document()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644)) //nolint:gosec // documentation is for everybody
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go test ./internal/functions -update")
}
