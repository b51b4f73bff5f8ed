package orc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

func varint(b []byte, num int, u uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(num)<<3), u)
}

func blob(b []byte, num int, p []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(b, uint64(num)<<3|wireBytes), uint64(len(p))), p...)
}

func zag(x int64) uint64 { return uint64(x<<1) ^ uint64(x>>63) }

// compress makes the chunks of a stream and tells where a byte of it went.
func (w *writer) compress(b []byte) (out []byte, place func(off int) []uint64) {
	if w.codec == None {
		return b, func(off int) []uint64 { return []uint64{uint64(off)} }
	}
	var starts []int
	for at := 0; at < len(b); at += w.block {
		src := b[at:min(at+w.block, len(b))]
		starts = append(starts, len(out))
		z := src
		switch w.codec {
		case Zlib:
			var buf bytes.Buffer
			zw := flateWriter()
			zw.Reset(&buf)
			_, _ = zw.Write(src)
			_ = zw.Close()
			z = buf.Bytes()
		case Snappy:
			z = snappy.Encode(nil, src)
		case Zstd:
			z = zstdWriter().EncodeAll(src, nil)
		case LZ4:
			dst := make([]byte, lz4.CompressBlockBound(len(src)))
			if n, _ := lz4.CompressBlock(src, dst, nil); n > 0 {
				z = dst[:n]
			}
		}
		h := len(z) << 1
		if len(z) >= len(src) {
			z, h = src, len(src)<<1|1
		}
		out = append(out, byte(h), byte(h>>8), byte(h>>16))
		out = append(out, z...)
	}
	starts = append(starts, len(out))
	return out, func(off int) []uint64 {
		return []uint64{uint64(starts[off/w.block]), uint64(off % w.block)}
	}
}

var (
	zstdWriter = sync.OnceValue(func() *zstd.Encoder {
		w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		return w
	})
	flateWriter = sync.OnceValue(func() *flate.Writer {
		w, _ := flate.NewWriter(nil, 6)
		return w
	})
)

// runs is where the runs of a stream begin.
type runs struct {
	b     []byte
	first []int // value
	off   []int // byte
}

func (x *runs) begin(value int) {
	x.first, x.off = append(x.first, value), append(x.off, len(x.b))
}

// at gives the byte of the run that value k is in, and its place within.
func (x *runs) at(k int) (off, within int) {
	for i := len(x.first) - 1; i >= 0; i-- {
		if x.first[i] <= k {
			return x.off[i], k - x.first[i]
		}
	}
	return len(x.b), 0
}

func (w *writer) byteRuns(vals []byte) *runs {
	x := &runs{}
	for i := 0; i < len(vals); {
		x.begin(i)
		n := 1
		for i+n < len(vals) && n < 130 && vals[i+n] == vals[i] {
			n++
		}
		if n >= 3 {
			x.b = append(x.b, byte(n-3), vals[i])
		} else {
			n = min(len(vals)-i, 1+w.r.IntN(128))
			x.b = append(append(x.b, byte(256-n)), vals[i:i+n]...)
		}
		i += n
	}
	return x
}

// intRuns encodes integers in the file's version.
func (w *writer) intRuns(vals []int64, signed bool) *runs {
	if w.v1 {
		return w.intRunsV1(vals, signed)
	}
	x := &runs{}
	for i := 0; i < len(vals); {
		x.begin(i)
		n := min(len(vals)-i, 1+w.r.IntN(512))
		equal := 1
		for i+equal < len(vals) && equal < 10 && vals[i+equal] == vals[i] {
			equal++
		}
		if equal >= 3 {
			n = equal
			u := uint64(vals[i])
			if signed {
				u = zag(vals[i])
			}
			size := max(1, (bits.Len64(u)+7)/8)
			x.b = append(x.b, byte((size-1)<<3|n-3))
			x.b = appendBig(x.b, u, size)
		} else {
			x.b = w.run(x.b, vals[i:i+n], signed)
		}
		i += n
	}
	return x
}

func appendBig(b []byte, u uint64, size int) []byte {
	for k := size - 1; k >= 0; k-- {
		b = append(b, byte(u>>(8*k)))
	}
	return b
}

func widthCode(width int) int {
	for i, c := range widths {
		if int(c) == width {
			return i
		}
	}
	panic("width")
}

func pack(b []byte, vals []uint64, width int) []byte {
	cur, have := byte(0), 0
	for _, v := range vals {
		for k := width - 1; k >= 0; k-- {
			cur = cur<<1 | byte(v>>k&1)
			if have++; have == 8 {
				b, cur, have = append(b, cur), 0, 0
			}
		}
	}
	if have > 0 {
		b = append(b, cur<<(8-have))
	}
	return b
}

func (w *writer) run(b []byte, vals []int64, signed bool) []byte {
	n := len(vals)
	header := func(kind, code int) []byte {
		return append(b, byte(kind<<6|code<<1|(n-1)>>8), byte(n-1))
	}
	up, down := n >= 2, n >= 2
	lo, hi := vals[0], vals[0]
	for i, v := range vals {
		if i > 0 {
			up, down = up && v >= vals[i-1], down && v <= vals[i-1]
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	small := lo > -1<<60 && hi < 1<<60
	if (up || down) && small && w.r.IntN(4) > 0 {
		step := vals[1] - vals[0]
		var ds []uint64
		most, fixed := uint64(0), true
		for i := 2; i < n; i++ {
			d := vals[i] - vals[i-1]
			fixed = fixed && d == step
			if d < 0 {
				d = -d
			}
			ds = append(ds, uint64(d))
			most = max(most, uint64(d))
		}
		// The sign of the first step is that of all.
		if fixed || step != 0 || up {
			width := closestWidth(max(2, bits.Len64(most)))
			code := widthCode(width)
			if fixed {
				code = 0
			}
			b = header(3, code)
			if signed {
				b = binary.AppendUvarint(b, zag(vals[0]))
			} else {
				b = binary.AppendUvarint(b, uint64(vals[0]))
			}
			b = binary.AppendUvarint(b, zag(step))
			if !fixed {
				b = pack(b, ds, width)
			}
			return b
		}
	}
	if small && n > 3 && w.r.IntN(2) == 0 {
		if p, ok := patchedRun(vals, lo, header); ok {
			return p
		}
	}
	us := make([]uint64, n)
	most := uint64(0)
	for i, v := range vals {
		us[i] = uint64(v)
		if signed {
			us[i] = zag(v)
		}
		most |= us[i]
	}
	width := closestWidth(max(1, bits.Len64(most)))
	return pack(header(1, widthCode(width)), us, width)
}

// patchedRun encodes values of which a few are much larger.
func patchedRun(vals []int64, base int64, header func(kind, code int) []byte) ([]byte, bool) {
	us := make([]uint64, len(vals))
	most := uint64(0)
	for i, v := range vals {
		us[i] = uint64(v - base)
		most = max(most, us[i])
	}
	sorted := slices.Clone(us)
	slices.Sort(sorted)
	width := closestWidth(max(1, bits.Len64(sorted[len(sorted)*95/100])))
	if patchWidth := bits.Len64(most) - width; patchWidth <= 0 || patchWidth > 56 {
		return nil, false
	}
	patchWidth := closestWidth(bits.Len64(most) - width)
	gapWidth := 8
	if patchWidth+gapWidth > 64 {
		return nil, false
	}
	var entries []uint64
	last := 0
	low := make([]uint64, len(us))
	for i, u := range us {
		low[i] = u & (1<<width - 1)
		if high := u >> width; high != 0 {
			gap := i - last
			for gap > 255 {
				entries = append(entries, 255<<patchWidth)
				gap -= 255
			}
			entries = append(entries, uint64(gap)<<patchWidth|high)
			last = i
		}
	}
	if len(entries) > 31 {
		return nil, false
	}
	magnitude, neg := uint64(base), uint64(0)
	if base < 0 {
		magnitude, neg = uint64(-base), 1
	}
	size := bits.Len64(magnitude)/8 + 1
	b := header(2, widthCode(width))
	b = append(b, byte((size-1)<<5|widthCode(patchWidth)), byte((gapWidth-1)<<5|len(entries)))
	b = appendBig(b, magnitude|neg<<(8*size-1), size)
	b = pack(b, low, width)
	return pack(b, entries, closestWidth(patchWidth+gapWidth)), true
}

func (w *writer) intRunsV1(vals []int64, signed bool) *runs {
	x := &runs{}
	put := func(v int64) {
		if signed {
			x.b = binary.AppendUvarint(x.b, zag(v))
		} else {
			x.b = binary.AppendUvarint(x.b, uint64(v))
		}
	}
	for i := 0; i < len(vals); {
		x.begin(i)
		n := 1
		for i+n < len(vals) && n < 130 && vals[i+n]-vals[i+n-1] == vals[min(i+1, len(vals)-1)]-vals[i] {
			n++
		}
		if step := vals[min(i+1, len(vals)-1)] - vals[i]; n >= 3 && step >= -128 && step <= 127 {
			x.b = append(x.b, byte(n-3), byte(step))
			put(vals[i])
		} else {
			n = min(len(vals)-i, 1+w.r.IntN(128))
			x.b = append(x.b, byte(256-n))
			for _, v := range vals[i : i+n] {
				put(v)
			}
		}
		i += n
	}
	return x
}
