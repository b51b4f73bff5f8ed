package parquet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// TestLoadedViewsAreThoseMadeByCopying holds the decoders' fast path against the plain one, up to the end of the buffer.
func TestLoadedViewsAreThoseMadeByCopying(t *testing.T) {
	b := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
	bufs := [][]byte{nil, b}
	for off := 0; off <= len(b); off++ {
		for n := 0; n <= len(b)-off; n++ {
			got, want := vector.LoadView(b, 1, off, n), vector.MakeView(bufs, 1, off, n)
			require.Equal(t, want, got, "%d bytes at %d", n, off)
			require.Equal(t, b[off:off+n:off+n], append([]byte{}, got.Bytes(bufs)...))
		}
	}
}
