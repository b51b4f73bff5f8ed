package scanner

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/storage/storagetest"
)

// puffin makes a file whose footer says that the vector at byte 4 is for path.
func puffin(path string, flags uint32) storagetest.Bytes {
	footer := fmt.Sprintf(`{"blobs":[{"type":"deletion-vector-v1","fields":[],"snapshot-id":-1,"sequence-number":-1,"offset":4,"length":10,"properties":{"referenced-data-file":%q,"cardinality":"1"}},
 {"type":"something-else","offset":99,"properties":{"referenced-data-file":"/no"}}]}`, path)
	b := append([]byte("PFA1"), make([]byte, 10)...)
	b = append(append(b, "PFA1"...), footer...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(footer)))
	b = binary.LittleEndian.AppendUint32(b, flags)
	return append(b, "PFA1"...)
}

func TestPuffinReferences(t *testing.T) {
	ctx := context.Background()
	refs, err := puffinReferences(ctx, puffin("/t/a", 0))
	require.NoError(t, err)
	require.Equal(t, map[int64]string{4: "/t/a"}, refs)
	whole := puffin("/t/a", 0)
	for _, b := range []storagetest.Bytes{nil, whole[:20], whole[:len(whole)-1], puffin("/t/a", 1), make(storagetest.Bytes, 500)} {
		refs, err := puffinReferences(ctx, b)
		require.NoError(t, err, "a vector without a footer is found by its offset")
		require.Empty(t, refs)
	}
}

func FuzzPuffinReferences(f *testing.F) {
	f.Add([]byte(puffin("/t/a", 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := puffinReferences(context.Background(), storagetest.Bytes(b))
		require.NoError(t, err)
	})
}
