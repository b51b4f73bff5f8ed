package orc

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

var rewrite = flag.Bool("rewrite", false, "write the files of testdata anew")

// TestData keeps the file that tests of the scanner read: three stripes of 600 rows, in row groups of 100. id ascends, kind
// follows the row group, n is by chance, and the rest is nested or typed by an attribute.
func TestData(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	id := func(n string) map[string]string { return map[string]string{"iceberg.id": n} }
	types := []*wtype{
		{name: "id", kind: Long, attrs: map[string]string{"iceberg.id": "1", "iceberg.required": "true"}},
		{name: "kind", kind: String, dict: true, attrs: id("2")},
		{name: "n", kind: Int, attrs: id("3")},
		{name: "place", kind: Struct, attrs: id("4"), kids: []*wtype{{name: "x", kind: Double, attrs: id("5")}, {name: "at", kind: Timestamp,
			attrs: map[string]string{"iceberg.id": "6", "iceberg.timestamp-unit": "MICROS"}}}},
		{name: "tags", kind: List, attrs: id("7"), kids: []*wtype{{kind: String, dict: true, attrs: id("8")}}},
		{name: "t", kind: Long, attrs: map[string]string{"iceberg.id": "9", "iceberg.long-type": "TIME"}},
	}
	w := newWriter(r, None, types...)
	for s := range 3 {
		var rows [][]vector.Value
		for i := range 600 {
			at := s*600 + i
			var place vector.Value
			if at%5 > 0 {
				place = []vector.Value{float64(at) / 2, int64(at) * 1e9}
			}
			tags := []vector.Value{}
			for range at % 3 {
				tags = append(tags, "t"+string(rune('0'+at%4)))
			}
			rows = append(rows, []vector.Value{int64(at), "kind " + string(rune('a'+at/100)), int32(r.IntN(1000)), place, tags, int64(at) * 1e6})
		}
		w.stripe(rows)
	}
	b := w.finish()
	path := filepath.Join("testdata", "events.orc")
	if *rewrite {
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(have, b), "run go test ./scanner/orc -rewrite")
}
