package orc

import (
	"context"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// plain is an uncompressed stream of bytes in memory.
func plain(b []byte) *stream {
	return &stream{kind: streamData, acc: &account{}, in: &input{ctx: context.Background(), obj: &object{Bytes: b}, opt: &Options{}}, length: int64(len(b)), window: 7}
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func repeat(n int, x int64) []int64 { return slices.Repeat([]int64{x}, n) }

func counting(n int, from, step int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = from + int64(i)*step
	}
	return out
}

// TestIntegerRuns reads the examples of the specification and the edges of each form.
func TestIntegerRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		hex    string
		v2     bool
		signed bool
		want   []int64
	}{
		{"version 1, run", "6100" + "07", false, false, repeat(100, 7)},
		{"version 1, run down", "61ff" + "64", false, false, counting(100, 100, -1)},
		{"version 1, literals", "fb" + "020306070b", false, false, []int64{2, 3, 6, 7, 11}},
		{"version 1, signed literals", "fe" + "0304", false, true, []int64{-2, 2}},
		{"short repeat", "0a2710", true, false, repeat(5, 10000)},
		{"short repeat, signed", "00" + "03", true, true, repeat(3, -2)},
		{"short repeat, eight bytes", "38" + "ffffffffffffffff", true, true, repeat(3, math.MinInt64)},
		{"direct", "5e03" + "5ca1ab1edeadbeef", true, false, []int64{23713, 43806, 57005, 48879}},
		{"direct, one bit", "4002" + "a0", true, false, []int64{1, 0, 1}},
		{"direct, 64 bits", "7e00" + "fffffffffffffffe", true, true, []int64{math.MaxInt64}},
		{"delta", "c609" + "0202" + "22424246", true, false, []int64{2, 3, 5, 7, 11, 13, 17, 19, 23, 29}},
		{"delta, fixed", "c063" + "0a" + "06", true, false, counting(100, 10, 3)},
		{"delta, down", "c203" + "14" + "03" + "50", true, true, []int64{10, 8, 7, 6}},
		{"delta, one value", "c000" + "0a" + "00", true, false, []int64{10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]int64, len(c.want))
			r := intRuns{s: plain(unhex(t, c.hex)), v2: c.v2, signed: c.signed}
			require.NoError(t, r.read(got))
			require.Equal(t, c.want, got)
			require.ErrorIs(t, r.read(got[:1]), fault.Corrupt)
			for cut := range len(c.hex) / 2 {
				r := intRuns{s: plain(unhex(t, c.hex[:2*cut])), v2: c.v2, signed: c.signed}
				require.ErrorIs(t, r.read(got), fault.Corrupt)
			}
		})
	}
}

// TestPatchedBase is the specification's example.
func TestPatchedBase(t *testing.T) {
	want := []int64{2030, 2000, 2020, 1000000, 2040, 2050, 2060, 2070, 2080, 2090, 2100, 2110, 2120, 2130, 2140, 2150, 2160, 2170, 2180, 2190}
	got := make([]int64, len(want))
	r := intRuns{s: plain(unhex(t, "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8")), v2: true}
	require.NoError(t, r.read(got))
	require.Equal(t, want, got)
}

func TestByteAndBitRuns(t *testing.T) {
	r := byteRuns{s: plain(unhex(t, "6100"))}
	got := make([]byte, 100)
	require.NoError(t, r.read(got))
	require.Equal(t, make([]byte, 100), got)
	r = byteRuns{s: plain(unhex(t, "fe4445"))}
	require.NoError(t, r.read(got[:2]))
	require.Equal(t, []byte{0x44, 0x45}, got[:2])

	b := bitRuns{runs: byteRuns{s: plain(unhex(t, "ff80"))}}
	var word [1]uint64
	n, err := b.read(word[:], 8)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, uint64(1), word[0], "the most significant bit comes first")
}

// TestRunsAgainstEncoder reads what the encoder of these tests wrote, in pieces of any size, with skips and seeks.
func TestRunsAgainstEncoder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		n := 1 + r.IntN(3000)
		vals := make([]int64, n)
		shape, signed := r.IntN(5), r.IntN(2) == 0
		for i := range vals {
			switch shape {
			case 0:
				vals[i] = int64(r.IntN(50))
			case 1:
				vals[i] = int64(i) * 3
			case 2:
				vals[i] = int64(r.Uint64() >> r.IntN(63) >> 1)
			case 3:
				vals[i] = int64(i/40 + r.IntN(2))
			default:
				vals[i] = int64(r.IntN(100))
				if r.IntN(60) == 0 {
					vals[i] <<= 20
				}
			}
			if signed && shape != 3 && r.IntN(3) == 0 {
				vals[i] = -vals[i]
			}
		}
		w := &writer{r: r, v1: round%3 == 0}
		x := w.intRuns(vals, signed)
		dec := intRuns{s: plain(x.b), v2: !w.v1, signed: signed}
		for at := 0; at < n; {
			k := min(n-at, 1+r.IntN(800))
			switch r.IntN(4) {
			case 0:
				require.NoError(t, dec.skip(int64(k)))
			case 1:
				at = r.IntN(n)
				k = min(n-at, k)
				off, within := x.at(at)
				require.NoError(t, dec.seek(&positions{[]uint64{uint64(off), uint64(within)}}))
				fallthrough
			default:
				got := make([]int64, k)
				require.NoError(t, dec.read(got))
				require.Equal(t, vals[at:at+k], got, "round %d", round)
			}
			at += k
		}
	}
}

func TestUnpack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, width := range widths {
		for _, n := range []int{1, 2, 7, 64, 511} {
			vals, want := make([]uint64, n), make([]int64, n)
			for i := range vals {
				vals[i] = r.Uint64() >> (64 - width)
				want[i] = int64(vals[i])
			}
			got := make([]int64, n)
			unpack(got, pack(nil, vals, int(width)), int(width))
			require.Equal(t, want, got, "width %d", width)
		}
	}
}

// TestLZO reads blocks made by hand (Linux kernel documentation, "LZO stream format").
func TestLZO(t *testing.T) {
	dst := make([]byte, 64)
	for _, c := range []struct{ hex, want string }{
		{"15" + hex.EncodeToString([]byte("abcd")) + "110000", "abcd"},
		// Four literals, then a match of four from distance four, and the end.
		{"15" + hex.EncodeToString([]byte("abcd")) + "22" + "0c00" + "110000", "abcdabcd"},
		// The same by a short match (distance 4, length 4), with one literal after it.
		{"15" + hex.EncodeToString([]byte("abcd")) + "6d00" + "65" + "110000", "abcdabcde"},
	} {
		n, err := unlzo(dst, unhex(t, c.hex))
		require.NoError(t, err, c.hex)
		require.Equal(t, c.want, string(dst[:n]))
		for cut := range len(c.hex)/2 - 1 {
			_, err := unlzo(dst, unhex(t, c.hex[:2*cut]))
			require.Error(t, err)
		}
	}
}
