package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnorderedSnapshotLog: a time means the newest entry of the log that is not after it, in whatever order the log stands.
func TestUnorderedSnapshotLog(t *testing.T) {
	const first, second = `{"snapshot-id": 10, "timestamp-ms": 1600000001000}`, `{"snapshot-id": 20, "timestamp-ms": 1600000002000}`
	doc := strings.Replace(string(document2(func(*metadataParts) {})), first+", "+second, second+", "+first, 1)
	m, _, err := ParseMetadata([]byte(doc))
	require.NoError(t, err)
	tab := &Table{Catalog: "c", Namespace: Namespace{"n"}, Name: "t", Metadata: m}
	for ms, want := range map[int64]int64{1600000001000: 10, 1600000001999: 10, 1600000002000: 20, 1700000000000: 20} {
		s, err := tab.Resolve(Version{Kind: ByTime, Time: time.UnixMilli(ms)})
		require.NoError(t, err)
		require.Equal(t, want, s.ID, ms)
	}
}
