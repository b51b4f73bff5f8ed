package deletes

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// golden are blobs as Iceberg Java writes them.
var golden = []struct {
	positions []int64
	hex       string
}{
	{nil, "0000000c d1d33964 0000000000000000 bf18480c"},
	{[]int64{5}, "00000022 d1d33964 0100000000000000 00000000 3a300000 01000000 00000000 10000000 0500 8ad140f0"},
	{[]int64{0, 1, 7}, "00000026 d1d33964 0100000000000000 00000000 3a300000 01000000 00000200 10000000 000001000700 09fd2495"},
	{[]int64{1, 3, 5, 7, 9}, "0000002a d1d33964 0100000000000000 00000000 3a300000 01000000 00000400 10000000 01000300050007000900 b3fb20be"},
	{[]int64{5, 1<<32 + 9}, "00000038 d1d33964 0200000000000000 00000000 3a300000 01000000 00000000 10000000 0500 01000000 3a300000 01000000 00000000 10000000 0900 7e5b47b5"},
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

func TestParseVectorGolden(t *testing.T) {
	for _, g := range golden {
		blob := unhex(t, g.hex)
		b, err := ParseVector(blob, int64(len(g.positions)))
		require.NoError(t, err)
		require.Equal(t, g.positions, b.Positions())
		_, err = ParseVector(blob, int64(len(g.positions))+1)
		require.ErrorIs(t, err, fault.Corrupt)
		for i := range blob { // a flipped bit anywhere is noticed
			bad := bytes.Clone(blob)
			bad[i] ^= 0x10
			_, err := ParseVector(bad, -1)
			require.ErrorIs(t, err, fault.Corrupt, "byte %d", i)
		}
		for n := range blob {
			_, err := ParseVector(blob[:n], -1)
			require.ErrorIs(t, err, fault.Corrupt)
		}
	}
}

// frame puts a serialised 64-bit bitmap into a blob.
func frame(vec []byte) []byte {
	body := append([]byte{0xd1, 0xd3, 0x39, 0x64}, vec...)
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	blob = append(blob, body...)
	return binary.BigEndian.AppendUint32(blob, crc32.ChecksumIEEE(body))
}

// roar serialises positions with the Roaring library; runs makes run containers.
func roar(t testing.TB, positions []int64, runs bool) []byte {
	b := roaring64.New()
	for _, p := range positions {
		b.Add(uint64(p))
	}
	if runs {
		b.RunOptimize()
	}
	var buf bytes.Buffer
	_, err := b.WriteTo(&buf)
	require.NoError(t, err)
	return buf.Bytes()
}

func randomPositions(r *rand.Rand) []int64 {
	set := map[int64]bool{}
	for range 1 + r.Intn(4) {
		base := []int64{0, 60_000, 1 << 17, 1<<32 - 100, 1 << 33}[r.Intn(5)]
		switch r.Intn(3) {
		case 0:
			for range r.Intn(300) {
				set[base+int64(r.Intn(100_000))] = true
			}
		case 1:
			for i := range int64(r.Intn(9000)) {
				set[base+i] = true
			}
		case 2:
			for i := range int64(r.Intn(70_000)) {
				if r.Intn(3) > 0 {
					set[base+i] = true
				}
			}
		}
	}
	out := make([]int64, 0, len(set))
	for p := range set {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

func TestBitmapAgainstMap(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 25 {
		want := randomPositions(r)
		shuffled := slices.Clone(want)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		built := FromPositions(append(shuffled, shuffled[:len(shuffled)/2]...))
		parsed, err := ParseVector(frame(roar(t, want, r.Intn(2) == 0)), int64(len(want)))
		require.NoError(t, err)
		half := len(want) / 2
		union := Union([]*Bitmap{FromPositions(slices.Clone(want[:half])), FromPositions(slices.Clone(want[half/2:]))})
		for _, b := range []*Bitmap{built, parsed, union} {
			require.EqualValues(t, len(want), b.Count())
			if len(want) > 0 {
				require.Equal(t, want, b.Positions())
			}
		}
		for range 20 {
			first, n := int64(r.Intn(200_000)), 1+r.Intn(vector.Size)
			if len(want) > 0 && r.Intn(2) == 0 {
				first = max(0, want[r.Intn(len(want))]-int64(r.Intn(n)))
			}
			mask := make([]uint64, (n+63)/64)
			any := parsed.Mask(first, n, mask)
			var keep []uint16
			found := false
			for i := range n {
				_, dead := slices.BinarySearch(want, first+int64(i))
				require.Equal(t, dead, parsed.Contains(first+int64(i)))
				if found = found || dead; !dead {
					keep = append(keep, uint16(i))
				}
			}
			require.Equal(t, found, any)
			require.Equal(t, keep, append([]uint16(nil), Drop(mask, n, nil, nil)...))
			require.Equal(t, keep, append([]uint16(nil), Drop(mask, n, all(n), nil)...))
		}
	}
}

func all(n int) []uint16 {
	out := make([]uint16, n)
	for i := range out {
		out[i] = uint16(i)
	}
	return out
}

func TestHostileCounts(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<40)
	_, err := ParseVector(frame(huge), -1)
	require.ErrorIs(t, err, fault.Corrupt)
	one := binary.LittleEndian.AppendUint64(nil, 1)
	for _, tail := range [][]byte{
		{0, 0, 0, 0x80, 0x3a, 0x30, 0, 0, 0, 0, 0, 0},          // key above 2^31-2
		{0, 0, 0, 0, 0x3a, 0x30, 0, 0, 0xff, 0xff, 0xff, 0xff}, // container count
		{0, 0, 0, 0, 0x3b, 0x30, 0xff, 0xff, 1, 2, 3, 4},       // run containers
		{0, 0, 0, 0, 0x99, 0x30, 0, 0, 0, 0, 0, 0},             // cookie
	} {
		_, err := ParseVector(frame(append(bytes.Clone(one), tail...)), -1)
		require.ErrorIs(t, err, fault.Corrupt)
	}
}

func FuzzParseVector(f *testing.F) {
	for _, g := range golden {
		f.Add(unhex(f, g.hex)[8:])
	}
	f.Add(roar(f, randomPositions(rand.New(rand.NewSource(3))), true))
	f.Fuzz(func(t *testing.T, vec []byte) {
		b, err := ParseVector(frame(vec), -1)
		if err != nil {
			require.ErrorIs(t, err, fault.Corrupt)
			return
		}
		require.True(t, slices.IsSorted(b.keys))
		mask := make([]uint64, vector.Size/64)
		b.Mask(0, vector.Size, mask)
	})
}
