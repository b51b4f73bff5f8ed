package encoding

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pack is the reference bit packing: least significant bit first.
func pack(vals []uint64, width uint) []byte {
	out := make([]byte, (len(vals)*int(width)+7)/8)
	for i, v := range vals {
		for b := range width {
			if v>>b&1 == 1 {
				at := i*int(width) + int(b)
				out[at>>3] |= 1 << (at & 7)
			}
		}
	}
	return out
}

func random(r *rand.Rand, n int, width uint) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		if width > 0 {
			v[i] = r.Uint64() >> (64 - width)
		}
	}
	return v
}

func TestUnpackEveryWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for w := uint(0); w <= 32; w++ {
		for _, n := range []int{0, 8, 16, 64, 120, 2048} {
			want := random(r, n, w)
			got := make([]int32, n)
			Unpack(got, pack(want, w), w)
			for i := range want {
				require.Equal(t, uint32(want[i]), uint32(got[i]), "width %d, value %d of %d", w, i, n)
			}
		}
	}
	for w := uint(0); w <= 64; w++ {
		want := random(r, 64, w)
		got := make([]int64, 64)
		unpack64(got, pack(want, w), w)
		for i := range want {
			require.Equal(t, want[i], uint64(got[i]), "width %d, value %d", w, i)
		}
	}
}

func TestGeneratedUnpackersAreCurrent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "widths.txt")
	msg, err := exec.Command("go", "run", "generate.go", out).CombinedOutput()
	require.NoError(t, err, string(msg))
	want, err := os.ReadFile(out)
	require.NoError(t, err)
	got, err := os.ReadFile("unpack_widths.go")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "run go generate")
}

// hybridOf encodes vals with a mixture of runs.
func hybridOf(r *rand.Rand, vals []uint64, width uint) []byte {
	var out []byte
	for len(vals) > 0 {
		n := 1
		for n < len(vals) && vals[n] == vals[0] {
			n++
		}
		if n >= 8 || len(vals) < 8 {
			out = binary.AppendUvarint(out, uint64(n)<<1)
			for b := uint(0); b < width; b += 8 {
				out = append(out, byte(vals[0]>>b))
			}
			vals = vals[n:]
			continue
		}
		groups := 1 + r.IntN(min(20, len(vals)/8))
		out = binary.AppendUvarint(out, uint64(groups)<<1|1)
		out = append(out, pack(vals[:groups*8], width)...)
		vals = vals[groups*8:]
	}
	return out
}

func runs(r *rand.Rand, n int, width uint) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		if i > 0 && r.IntN(4) > 0 && r.IntN(50) > 0 {
			v[i] = v[i-1]
			continue
		}
		v[i] = random(r, 1, width)[0]
	}
	return v
}

func TestHybridReadsAndSkipsInAnySteps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for w := uint(0); w <= 32; w++ {
		want := runs(r, 3000, w)
		enc := hybridOf(r, want, w)
		for range 5 {
			var h Hybrid
			require.NoError(t, h.Reset(enc, w, 0))
			for at := 0; at < len(want); {
				n := min(1+r.IntN(200), len(want)-at)
				if r.IntN(3) == 0 {
					require.NoError(t, h.Skip(n))
				} else {
					got := make([]int32, n)
					require.NoError(t, h.Read(got))
					for i := range got {
						require.Equal(t, uint32(want[at+i]), uint32(got[i]), "width %d at %d", w, at+i)
					}
				}
				at += n
			}
			require.Error(t, h.Read(make([]int32, 1)))
		}
	}
}

func TestHybridBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		n := 1 + r.IntN(1000)
		want := runs(r, n, 1)
		var h Hybrid
		require.NoError(t, h.Reset(hybridOf(r, want, 1), 1, 2))
		b := make([]uint64, (n+63)/64)
		require.NoError(t, h.ReadBits(b, n))
		ones := 0
		for i := range want {
			require.Equal(t, want[i], b[i>>6]>>(i&63)&1, "bit %d", i)
			ones += int(want[i])
		}
		count := 0
		for _, w := range b {
			count += bits.OnesCount64(w)
		}
		require.Equal(t, ones, count)
		from := r.IntN(n)
		k := r.IntN(n - from + 1)
		at := r.IntN(100)
		dst := make([]uint64, (at+k+63)/64)
		CopyBits(dst, at, b, from, k)
		for i := range k {
			require.Equal(t, want[from+i], dst[(at+i)>>6]>>((at+i)&63)&1)
		}
		set := make([]uint64, (at+k+63)/64)
		SetBits(set, at, k)
		for i := range len(set) * 64 {
			require.Equal(t, i >= at && i < at+k, set[i>>6]>>(i&63)&1 == 1)
		}
	}
}

func TestHybridRefusesBadData(t *testing.T) {
	var h Hybrid
	require.Error(t, h.Reset(nil, 33, 0))
	for name, b := range map[string][]byte{
		"empty": {}, "header without value": {4}, "value out of range": {4, 9}, "value at limit": {4, 5}, "packed value at limit": {3, 0xff, 0xff, 0xff},
		"endless zero runs": {0, 0, 0, 0}, "varint without end": {0x80, 0x80}, "packed run without bytes": {3},
	} {
		require.NoError(t, h.Reset(b, 3, 5), name)
		require.Error(t, h.Read(make([]int32, 2)), name)
	}
}

// deltaOf is a plain DELTA_BINARY_PACKED encoder.
func deltaOf(vals []int64, block, minis int) []byte {
	out := binary.AppendUvarint(nil, uint64(block))
	out = binary.AppendUvarint(out, uint64(minis))
	out = binary.AppendUvarint(out, uint64(len(vals)))
	if len(vals) == 0 {
		return binary.AppendVarint(out, 0)
	}
	out = binary.AppendVarint(out, vals[0])
	per := block / minis
	for at := 1; at < len(vals); at += block {
		end := min(at+block, len(vals))
		least := vals[at] - vals[at-1]
		for i := at; i < end; i++ {
			least = min(least, vals[i]-vals[i-1])
		}
		out = binary.AppendVarint(out, least)
		widths := len(out)
		out = append(out, make([]byte, minis)...)
		for m := 0; m < minis && at+m*per < end; m++ {
			ds := make([]uint64, per)
			w := 0
			for i := range ds {
				if k := at + m*per + i; k < end {
					ds[i] = uint64(vals[k] - vals[k-1] - least)
					w = max(w, bits.Len64(ds[i]))
				}
			}
			out[widths+m] = byte(w)
			out = append(out, pack(ds, uint(w))...)
		}
	}
	return out
}

func TestDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for w := uint(0); w <= 64; w++ {
		for _, n := range []int{0, 1, 2, 33, 129, 1000} {
			want := make([]int64, n)
			for i, v := range random(r, n, w) {
				want[i] = int64(v)
			}
			enc := deltaOf(want, 128, 4)
			var d Delta
			require.NoError(t, d.Reset(append(enc, "rest"...), n))
			for at := 0; at < n; {
				k := min(1+r.IntN(100), n-at)
				if r.IntN(4) == 0 {
					require.NoError(t, d.Skip(k))
				} else {
					got := make([]int64, k)
					require.NoError(t, d.Read(got))
					require.Equal(t, want[at:at+k], got, "width %d at %d of %d", w, at, n)
				}
				at += k
			}
			require.Equal(t, "rest", string(d.Rest()))
			require.Error(t, d.Read(make([]int64, 1)))
		}
	}
}

func TestDeltaCutAfterLastValue(t *testing.T) {
	want := make([]int64, 20)
	for i := range want {
		want[i] = int64(i * i * 37)
	}
	enc := deltaOf(want, 128, 4)
	var d Delta
	require.NoError(t, d.Reset(enc[:len(enc)-3], 20))
	got := make([]int64, 20)
	require.NoError(t, d.Read(got))
	require.Equal(t, want, got)
	require.NoError(t, d.Reset(enc[:len(enc)/2], 20))
	require.Error(t, d.Read(got))
	require.Error(t, d.Reset(enc, 19))
}

func TestUnsplit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, width := range []int{1, 2, 4, 8, 12, 16} {
		n := 203
		want := make([]byte, n*width)
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		src := make([]byte, len(want))
		for i := range n {
			for b := range width {
				src[b*n+i] = want[i*width+b]
			}
		}
		for _, from := range []int{0, 5, 190} {
			got := make([]byte, (n-from)*width)
			Unsplit(got, src, n, from, width)
			require.Equal(t, want[from*width:], got, "width %d", width)
		}
	}
}

func TestBools(t *testing.T) {
	src := []byte{0b10110010, 0b01011101, 0b11110000}
	for from := range 20 {
		got := make([]bool, 24-from)
		Bools(got, src, from)
		for i := range got {
			at := from + i
			require.Equal(t, src[at>>3]>>(at&7)&1 == 1, got[i])
		}
	}
}

func TestBitPackedLevels(t *testing.T) {
	// Encodings.md: 0..7 at width 3, most significant bit first.
	got := make([]byte, 8)
	require.True(t, BitPackedLevels(got, []byte{0b00000101, 0b00111001, 0b01110111}, 3, 7))
	require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7}, got)
	require.False(t, BitPackedLevels(got, []byte{0, 0}, 3, 7))
	require.False(t, BitPackedLevels(got, []byte{255, 255, 255}, 3, 6))
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{8, 1, 3, 0x88, 0xc6, 0xfa}, byte(3))
	f.Fuzz(func(t *testing.T, b []byte, w byte) {
		var h Hybrid
		if h.Reset(b, uint(w%34), uint32(w)) != nil {
			return
		}
		dst := make([]int32, 333)
		for i := 0; i < 100; i++ {
			if h.Read(dst) != nil || h.Skip(i) != nil {
				return
			}
		}
	})
}

func FuzzDelta(f *testing.F) {
	f.Add(deltaOf([]int64{1, 5, 9, 1 << 40}, 128, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Delta
		if d.Reset(b, 1<<16) != nil {
			return
		}
		dst := make([]int64, 77)
		for d.Len() > 0 {
			if d.Read(dst[:min(len(dst), d.Len())]) != nil {
				return
			}
		}
	})
}

func BenchmarkUnpack(b *testing.B) {
	dst := make([]int32, 2048)
	for _, w := range []uint{1, 3, 7, 10, 14, 20, 27} {
		b.Run(string(rune('0'+w/10))+string(rune('0'+w%10)), func(b *testing.B) {
			src := make([]byte, 2048*4+8)
			for b.Loop() {
				Unpack(dst, src, w)
			}
			b.ReportMetric(float64(b.N)*2048/b.Elapsed().Seconds()/1e9, "Gvalues/s")
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	vals := make([]int64, 64<<10)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range vals {
		vals[i] = int64(i)*10 + int64(r.IntN(1000))
	}
	enc := deltaOf(vals, 128, 4)
	dst := make([]int64, 2048)
	for b.Loop() {
		var d Delta
		_ = d.Reset(enc, len(vals))
		for d.Len() > 0 {
			_ = d.Read(dst)
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(vals))/b.Elapsed().Seconds()/1e9, "Gvalues/s")
}

func BenchmarkUnsplit(b *testing.B) {
	src := make([]byte, 64<<10*8)
	dst := make([]byte, 2048*8)
	for _, w := range []int{4, 8} {
		b.Run(string(rune('0'+w)), func(b *testing.B) {
			for b.Loop() {
				Unsplit(dst[:2048*w], src[:64<<10*w], 64<<10, 4096, w)
			}
			b.ReportMetric(float64(b.N)*2048/b.Elapsed().Seconds()/1e9, "Gvalues/s")
		})
	}
}
