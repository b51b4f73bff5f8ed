package server_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/server"
)

// manyTables makes a warehouse of n tables, in ten schemas, whose metadata is that of a table of the demo.
func manyTables(t *testing.T, n int) string {
	t.Helper()
	from := filepath.Join(lake(t), "tpch", "lineitem", "metadata")
	files, err := filepath.Glob(filepath.Join(from, "v*.metadata.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	text, err := os.ReadFile(files[len(files)-1])
	require.NoError(t, err)
	dir := t.TempDir()
	for i := range n {
		to := filepath.Join(dir, fmt.Sprintf("s%d", i%10), fmt.Sprintf("t_%04d", i), "metadata")
		require.NoError(t, os.MkdirAll(to, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, "v1.metadata.json"), text, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(to, "version-hint.text"), []byte("1"), 0o600))
	}
	return dir
}

// TestFiveThousandTables lists 5,000 tables with their schemas, as JDBC's getColumns and ADBC's GetObjects ask for them. From the second
// time on no metadata is parsed and no schema made, which the allocations tell on any machine, and a table that has changed is
// still seen. The log has the times.
func TestFiveThousandTables(t *testing.T) {
	const tables = 5000
	dir := manyTables(t, tables)
	st := startOn(t, dir, server.AuthOptions{Anonymous: true}, nil)
	cl := connect(t, st)
	list := func() (time.Duration, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		info, err := cl.GetTables(t.Context(), &flightsql.GetTablesOpts{IncludeSchema: true})
		require.NoError(t, err)
		n, err := drain(t.Context(), cl, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		require.EqualValues(t, tables, n)
		took := time.Since(begun)
		runtime.ReadMemStats(&after)
		return took, (after.Mallocs - before.Mallocs) / tables
	}
	first, made := list()
	again, kept := list()
	t.Logf("first %s and %d allocations a table, then %s and %d", first, made, again, kept)
	require.Less(t, kept, made/4, "allocations a table")

	changed := filepath.Join(dir, "s0", "t_0010", "metadata")
	text, err := os.ReadFile(filepath.Join(changed, "v1.metadata.json"))
	require.NoError(t, err)
	text = bytes.ReplaceAll(text, []byte("l_comment"), []byte("l_remark"))
	require.NoError(t, os.WriteFile(filepath.Join(changed, "v2.metadata.json"), text, 0o600))
	like := "t\\_0010"
	info, err := cl.GetTables(t.Context(), &flightsql.GetTablesOpts{IncludeSchema: true, TableNameFilterPattern: &like})
	require.NoError(t, err)
	r, err := cl.DoGet(t.Context(), info.Endpoint[0].Ticket)
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next())
	require.EqualValues(t, 1, r.RecordBatch().NumRows(), "an escaped underscore is no wildcard")
	schema, err := flight.DeserializeSchema(r.RecordBatch().Column(4).(*array.Binary).Value(0), memory.DefaultAllocator)
	require.NoError(t, err)
	require.True(t, schema.HasField("l_remark"), "a change is seen at once")
}
