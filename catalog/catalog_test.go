package catalog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocationMapping(t *testing.T) {
	m := NewLocationMapping(map[string]string{
		"s3://bucket":       "/mnt/bucket",
		"s3://bucket/deep/": "/mnt/deep",
		"hdfs://nn:8020":    "",
	})
	for in, want := range map[string]string{
		"s3://bucket/a/b":        "/mnt/bucket/a/b",
		"s3://bucket/deep/x":     "/mnt/deep/x",
		"s3://bucket/deeper/x":   "/mnt/bucket/deeper/x",
		"s3://bucket2/x":         "s3://bucket2/x",
		"hdfs://nn:8020/user/t":  "/user/t",
		"hdfs://nn:80201/user/t": "hdfs://nn:80201/user/t",
		"/plain":                 "/plain",
	} {
		require.Equal(t, want, m.Map(in), in)
	}
	require.Equal(t, "/x", LocationMapping{}.Map("/x"))
	require.True(t, LocationMapping{}.Empty())
	require.False(t, m.Empty())
	for _, cut := range []string{"s3", "s3://buc", "s3://bucket", "s3://bucket/de", "s3://bucket/deep", "hdfs://nn"} {
		_, ok := m.MapPrefix(cut)
		require.False(t, ok, cut)
	}
	for cut, want := range map[string]string{"s3://bucket/a": "/mnt/bucket/a", "s3://bucket/deep/f": "/mnt/deep/f", "/data": "/data"} {
		got, ok := m.MapPrefix(cut)
		require.True(t, ok, cut)
		require.Equal(t, want, got)
	}
}

const metadataTemplate = `{"format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "/t",
 "last-sequence-number": 3, "last-updated-ms": 1600000003000, "last-column-id": 2, "current-schema-id": %s,
 "schemas": [
  {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": false, "type": %s}]},
  {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "a", "required": false, "type": "long"}, {"id": %s, "name": %s, "required": false, "type": "string"}]}],
 "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
 "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}], "properties": {},
 "current-snapshot-id": %s,
 "snapshots": [
  {"snapshot-id": 10, "sequence-number": 1, "timestamp-ms": 1600000001000, "manifest-list": "/t/l1", "summary": {"operation": "append"}, "schema-id": 0},
  {"snapshot-id": 20, "parent-snapshot-id": 10, "sequence-number": 2, "timestamp-ms": 1600000002000, %s "summary": {"operation": "append"}, "schema-id": 1, "key-id": "k7"},
  {"snapshot-id": 30, "parent-snapshot-id": 10, "sequence-number": 3, "timestamp-ms": 1600000003000, "manifest-list": "/t/l3", "summary": {"operation": "append"}, "schema-id": 0}],
 "snapshot-log": [{"snapshot-id": 10, "timestamp-ms": 1600000001000}, {"snapshot-id": 20, "timestamp-ms": 1600000002000}],
 "refs": {"main": {"snapshot-id": %s, "type": "branch"}, "old": {"snapshot-id": 10, "type": "tag"}, "audit": {"snapshot-id": 30, "type": "branch"}}}`

type metadataParts struct{ schema, typ, id2, name2, current, list, main string }

func document2(change func(*metadataParts)) []byte {
	p := metadataParts{"1", `"int"`, "2", `"b"`, "20", `"manifest-list": "/t/l2",`, "20"}
	change(&p)
	return fmt.Appendf(nil, metadataTemplate, p.schema, p.typ, p.id2, p.name2, p.current, p.list, p.main)
}

func TestResolve(t *testing.T) {
	m, extra, err := ParseMetadata(document2(func(*metadataParts) {}))
	require.NoError(t, err)
	require.Equal(t, map[int64]string{20: "k7"}, extra.SnapshotKeyIDs)
	tab := &Table{Catalog: "c", Namespace: Namespace{"n"}, Name: "t", Metadata: m}
	at := func(ms int64) Version { return Version{Kind: ByTime, Time: time.UnixMilli(ms)} }
	cases := []struct {
		name   string
		v      Version
		id     int64
		schema int
		fault  string
	}{
		{"current", Version{}, 20, 1, ""},
		{"main by name", Version{Kind: ByRef, Ref: "main"}, 20, 1, ""},
		{"a branch has the current schema", Version{Kind: ByRef, Ref: "audit"}, 30, 1, ""},
		{"a tag has its own schema", Version{Kind: ByRef, Ref: "old"}, 10, 0, ""},
		{"an id has its own schema", Version{Kind: ByID, ID: 10}, 10, 0, ""},
		{"a time is inclusive", at(1600000002000), 20, 1, ""},
		{"between two", at(1600000001999), 10, 0, ""},
		{"the future is main's newest", at(1900000000000), 20, 1, ""},
		{"before the first", at(1600000000999), 0, 0, "no snapshot at or before"},
		{"names are case-sensitive", Version{Kind: ByRef, Ref: "AUDIT"}, 0, 0, `no branch or tag "AUDIT"`},
		{"unknown id", Version{Kind: ByID, ID: 1}, 0, 0, "no snapshot 1; it has snapshots 30"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := tab.Resolve(c.v)
			if c.fault != "" {
				require.ErrorIs(t, err, fault.NotFound)
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.id, s.ID)
			require.Equal(t, c.schema, s.Schema.ID)
		})
	}
}

func TestParseMetadataRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change func(*metadataParts)
		text   string
	}{
		{"schema gone", func(p *metadataParts) { p.schema = "7" }, "current schema 7 is not in schemas"},
		{"snapshot gone", func(p *metadataParts) { p.current = "77"; p.main = "77" }, "current snapshot 77 is not in snapshots"},
		{"refs disagree", func(p *metadataParts) { p.main = "10" }, "current-snapshot-id is 20, but branch main stands at 10"},
		{"duplicate id", func(p *metadataParts) { p.id2 = "1"; p.name2 = `"a2"` }, "field id 1 is used twice, by a and a2"},
		{"duplicate name", func(p *metadataParts) { p.name2 = `"a"` }, "column name a is used twice"},
		{"wide decimal", func(p *metadataParts) { p.typ = `"decimal(50, 2)"` }, "decimal"},
		{"unknown type", func(p *metadataParts) { p.typ = `"int128"` }, "int128"},
		{"no manifests", func(p *metadataParts) { p.list = "" }, "snapshot 20 has neither manifest-list nor manifests"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := ParseMetadata(document2(c.change))
			require.ErrorIs(t, err, fault.Corrupt)
			require.ErrorContains(t, err, c.text)
		})
	}
	_, _, err := ParseMetadata([]byte(`{"format-version": 4}`))
	require.ErrorIs(t, err, fault.Unsupported)
	require.ErrorContains(t, err, "format version 4")
	for _, bad := range []string{"", "{", "[]", "null", `{"format-version": "2"}`} {
		_, _, err := ParseMetadata([]byte(bad))
		require.ErrorIs(t, err, fault.Corrupt, bad)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add(document2(func(*metadataParts) {}))
	f.Add([]byte(`{"format-version": 1, "snapshots": null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := ParseMetadata(b); err != nil {
			var e *fault.Error
			require.ErrorAs(t, err, &e)
		}
	})
}
