package main

import (
	"context"
	"math/rand"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// library plans with iceberg-go.
type library struct{}

func (library) plan(ctx context.Context, t *table.Table, f *filter) (map[string][]string, error) {
	tasks, err := t.Scan(table.WithRowFilter(f.ice)).PlanFiles(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, task := range tasks {
		paths := []string{}
		for _, list := range [][]iceberg.DataFile{task.DeleteFiles, task.EqualityDeleteFiles, task.DeletionVectorFiles} {
			for _, d := range list {
				paths = append(paths, d.FilePath())
			}
		}
		out[task.File.FilePath()] = append(out[task.File.FilePath()], paths...)
	}
	return out, nil
}

// TestPlansEqualTheLibrarys compares planned files and their deletes with iceberg-go's PlanFiles.
func TestPlansEqualTheLibrarys(t *testing.T) {
	const seed, filters = 7, 15
	ctx := context.Background()
	tables, err := makeTables(ctx, t.TempDir(), seed)
	require.NoError(t, err)
	var sum tally
	for _, m := range tables {
		one, err := compare(ctx, m, library{}, rand.New(rand.NewSource(seed)), filters)
		require.NoError(t, err, m.name)
		sum.add(one)
	}
	t.Log(sum)
	require.Positive(t, sum.pruned)
	require.Positive(t, sum.deletes)
}
