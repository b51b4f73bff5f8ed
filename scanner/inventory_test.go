package scanner_test

import (
	"bytes"
	"context"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"
)

func TestInventory(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithPartitionSpec(spec(iceberg.PartitionField{
		SourceIDs: []int{1}, FieldID: 1000, Name: "id_bucket", Transform: iceberg.BucketTransform{NumBuckets: 4},
	})))
	for i := range 5 {
		tbl = l.append(tbl, events(rand.New(rand.NewSource(int64(i))), i*20, i*20+20))
	}
	inv := l.scan.Inventory(context.Background(), l.table(tbl))
	require.Empty(t, inv.Error)
	require.Equal(t, []string{"0: bucket[4](id) *"}, inv.Specs)
	require.Len(t, inv.Data, 1)
	require.Equal(t, "parquet", inv.Data[0].Format)
	require.EqualValues(t, 100, inv.Data[0].Rows)
	require.EqualValues(t, 20, inv.Data[0].Files)
	require.Positive(t, inv.Planning.ManifestBytes)
	require.EqualValues(t, 20, inv.Planning.Entries)
	require.Contains(t, inv.Features, "partitioning")
	require.Len(t, inv.Warnings, 1)
	require.Contains(t, inv.Warnings[0], "small files: 20 data files")
	var text bytes.Buffer
	require.NoError(t, inv.WriteText(&text))
	require.Contains(t, text.String(), "20 parquet files")

	// A table that cannot be planned says why and keeps what its metadata tells.
	require.NoError(t, os.Remove(strings.TrimPrefix(tbl.CurrentSnapshot().ManifestList, "file://")))
	again := newLake(t)
	inv = again.scan.Inventory(context.Background(), l.table(tbl))
	require.Contains(t, inv.Error, tbl.CurrentSnapshot().ManifestList[len("file://"):])
	require.Equal(t, tbl.Metadata().Version(), inv.FormatVersion)
}
