package scanner

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage/storagetest"
)

// puffin makes a file whose footer says that the vector at byte 4 is for path.
func puffin(path string, flags uint32) storagetest.Bytes {
	footer := fmt.Sprintf(`{"blobs":[{"type":"deletion-vector-v1","fields":[],"snapshot-id":-1,"sequence-number":-1,"offset":4,"length":10,"properties":{"referenced-data-file":%q,"cardinality":"1"}},
 {"type":"something-else","offset":6,"properties":{"referenced-data-file":"/no"}}]}`, path)
	b := append([]byte("PFA1"), make([]byte, 10)...)
	if flags == puffinCompressed {
		var packed bytes.Buffer
		w := lz4.NewWriter(&packed)
		_, _ = w.Write([]byte(footer))
		_ = w.Close()
		footer = packed.String()
	}
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
	refs, err = puffinReferences(ctx, puffin("/t/a", puffinCompressed))
	require.NoError(t, err, "a footer may be an LZ4 frame")
	require.Equal(t, map[int64]string{4: "/t/a"}, refs)
	whole := puffin("/t/a", 0)
	for _, b := range []storagetest.Bytes{nil, whole[:20], whole[:len(whole)-1], puffin("/t/a", 2), make(storagetest.Bytes, 500)} {
		refs, err := puffinReferences(ctx, b)
		require.NoError(t, err, "a vector without a footer is found by its offset")
		require.Empty(t, refs)
	}
}

func TestPuffinFooter(t *testing.T) {
	ctx := context.Background()
	blobs, err := puffinFooter(ctx, puffin("/t/a", 0))
	require.NoError(t, err)
	require.Len(t, blobs, 2)
	require.Equal(t, puffinBlob{Type: "something-else", Offset: 6, Properties: map[string]string{"referenced-data-file": "/no"}}, blobs[1])
	whole := string(puffin("/t/a", 0))
	for why, b := range map[string]string{
		"fewer than":         whole[:12],
		"begin and end":      "PFA2" + whole[4:],
		"only bit 0":         string(puffin("/t/a", 2)),
		"is at bytes 90000":  strings.Replace(whole, `"offset":4`, `"offset":90000`, 1) + "",
		"no LZ4 frame":       whole[:len(whole)-8] + "\x01\x00\x00\x00PFA1",
		"says that it has 0": whole[:len(whole)-12] + "\x00\x00\x00\x00\x00\x00\x00\x00PFA1",
		"not JSON":           strings.Replace(whole, `{"blobs"`, `["blobs"`, 1),
	} {
		if strings.Contains(why, "90000") { // four bytes more of footer
			n := len(whole) - 12
			size := binary.LittleEndian.Uint32([]byte(whole[n:]))
			b = b[:len(b)-12] + string(binary.LittleEndian.AppendUint32(nil, size+4)) + b[len(b)-8:]
		}
		_, err := puffinFooter(ctx, storagetest.Bytes(b))
		require.ErrorIs(t, err, fault.Corrupt, why)
		require.ErrorContains(t, err, why)
	}
}

func FuzzPuffinReferences(f *testing.F) {
	f.Add([]byte(puffin("/t/a", 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := puffinReferences(context.Background(), storagetest.Bytes(b))
		require.NoError(t, err)
	})
}
