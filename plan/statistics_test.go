package plan

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
)

// withDistinct gives a table a statistics file with numbers of distinct values by column.
func withDistinct(t *testing.T, x *catalog.Table, values map[string]int) *catalog.Table {
	t.Helper()
	f := table.StatisticsFile{SnapshotID: 1, StatisticsPath: "s.puffin", FileSizeInBytes: 100, FileFooterSizeInBytes: 50}
	for name, n := range values {
		field, ok := x.Metadata.CurrentSchema().FindFieldByName(name)
		require.True(t, ok, name)
		f.BlobMetadata = append(f.BlobMetadata, table.BlobMetadata{Type: table.BlobTypeApacheDatasketchesThetaV1, SnapshotID: 1, SequenceNumber: 1,
			Fields: []int32{int32(field.ID)}, Properties: map[string]string{"ndv": strconv.Itoa(n)}})
	}
	b, err := table.MetadataBuilderFromBase(x.Metadata, "")
	require.NoError(t, err)
	require.NoError(t, b.SetStatistics(f))
	m, err := b.Build()
	require.NoError(t, err)
	c := *x
	c.Metadata = m
	return &c
}

// TestDistinctValuesOfStatisticsFiles checks the estimates with and without sketches.
func TestDistinctValuesOfStatisticsFiles(t *testing.T) {
	env, m := testEnvironment(t)
	ns := m.tables["st"]
	require.Nil(t, ns)
	fact := makeTable(t, "lake", "st", "fact", 1_000_000, "a long, b long, c long")
	dim := makeTable(t, "lake", "st", "dim", 50_000, "a long, b long")
	expected := func(sql, operator string) float64 {
		t.Helper()
		p, err := Build(context.Background(), "explain "+sql, env)
		require.NoError(t, err)
		text := p.Root.(*Explain).Text(nil)
		found := regexp.MustCompile(operator + `.*\{about (\d+) rows\}`).FindStringSubmatch(text)
		require.NotNil(t, found, text)
		n, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		return n
	}
	join := "select fact.c, dim.a from st.fact join st.dim on fact.b = dim.b"
	m.tables["st"] = map[string]*catalog.Table{"fact": fact, "dim": dim}
	require.EqualValues(t, 1_000_000, expected(join, "Join"), "without statistics, a foreign key")
	require.EqualValues(t, 100_000, expected("select c from st.fact where a = 7", "Scan"))

	m.tables["st"] = map[string]*catalog.Table{
		"fact": withDistinct(t, fact, map[string]int{"a": 500_000, "b": 200, "c": 40}),
		"dim":  withDistinct(t, dim, map[string]int{"b": 100, "a": 50_500}),
	}
	require.EqualValues(t, 1_000_000*50_000/200, expected(join, "Join"), "many to many")
	require.EqualValues(t, 2, expected("select c from st.fact where a = 7", "Scan"))
	require.EqualValues(t, 25_000, expected("select c from st.fact where c = 7", "Scan"))
	require.EqualValues(t, 40, expected("select c, count(*) from st.fact group by c", "Aggregate"))

	m.tables["st"]["fact"] = fact
	require.EqualValues(t, 1_000_000, expected("select fact.c from st.fact join st.dim on fact.a = dim.a", "Join"), "the key of dim")
}
