package orc

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// object is a file in memory that counts what is read of it.
type object struct {
	b    []byte
	read int64
}

func (o *object) Size() int64  { return int64(len(o.b)) }
func (o *object) Close() error { return nil }
func (o *object) ReadRanges(ctx context.Context, rs []storage.Range, dst [][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, r := range rs {
		if r.Offset < 0 || r.Length < 0 || r.End() > int64(len(o.b)) || int64(len(dst[i])) != r.Length {
			return fault.New(fault.Corrupt, "range [%d, +%d) of %d bytes", r.Offset, r.Length, len(o.b))
		}
		o.read += r.Length
		copy(dst[i], o.b[r.Offset:r.End()])
	}
	return nil
}

// wtype is a column to write.
type wtype struct {
	name  string
	kind  Kind
	kids  []*wtype
	prec  int
	scale int
	attrs map[string]string
	dict  bool // strings by dictionary

	col int
}

func field(name string, kind Kind, kids ...*wtype) *wtype {
	return &wtype{name: name, kind: kind, kids: kids}
}

// natural is the type in which the file's own values are read.
func (t *wtype) natural() vector.Type {
	switch t.kind {
	case Boolean:
		return vector.Of(vector.Boolean)
	case Byte, Short, Int:
		return vector.Of(vector.Integer)
	case Long:
		return vector.Of(vector.BigInt)
	case Float:
		return vector.Of(vector.Real)
	case Double:
		return vector.Of(vector.Double)
	case String, Varchar, Char:
		return vector.Of(vector.Varchar)
	case Binary:
		return vector.Of(vector.Varbinary)
	case Date:
		return vector.Of(vector.Date)
	case Timestamp:
		return vector.Type{Kind: vector.Timestamp, Precision: 9}
	case TimestampInstant:
		return vector.Type{Kind: vector.TimestampTZ, Precision: 9}
	case Decimal:
		return vector.DecimalOf(t.prec, t.scale)
	case List:
		return vector.ArrayOf(t.kids[0].natural())
	case Map:
		return vector.MapOf(t.kids[0].natural(), t.kids[1].natural())
	}
	var fs []vector.Field
	for _, k := range t.kids {
		fs = append(fs, vector.Field{Name: k.name, Type: k.natural(), Nullable: true})
	}
	return vector.RowOf(fs...)
}

// project reads a file's column in its own type.
func project(n *Node, t vector.Type) *Projection {
	p := &Projection{Type: t, Node: n}
	for i, f := range t.Fields {
		p.Children = append(p.Children, project(n.Children[i], f.Type))
	}
	return p
}

func projections(f *Footer, types []*wtype) []*Projection {
	var out []*Projection
	for i, t := range types {
		out = append(out, project(f.Root.Children[i], t.natural()))
	}
	return out
}

// writer writes the files of these tests: every encoding that the format has, chosen by chance where writers may choose.
type writer struct {
	r       *rand.Rand
	codec   Codec
	block   int
	v1      bool // run length encoding of version 1
	stride  int
	noIndex bool
	zone    string
	magic   bool
	writer  uint64
	writerV uint64
	version [2]uint64
	types   []*wtype

	columns int
	stripes [][]byte // StripeInformation
	stats   [][]byte // StripeStatistics
	file    []byte
	rows    int

	streams []wstream
	encs    [][]byte
	index   map[int][]*wentry
	colStat map[int][]byte
}

type wstream struct {
	col  int
	kind streamKind
	b    []byte
}

type wentry struct {
	positions []uint64
	stats     []byte
}

func newWriter(r *rand.Rand, codec Codec, types ...*wtype) *writer {
	w := &writer{r: r, codec: codec, block: 256, stride: 100, magic: true, version: [2]uint64{0, 12}, writerV: 8, types: types, zone: "UTC"}
	w.file = []byte(magic)
	w.columns = 1
	var number func(t *wtype)
	number = func(t *wtype) {
		t.col = w.columns
		w.columns++
		for _, k := range t.kids {
			number(k)
		}
	}
	for _, t := range types {
		number(t)
	}
	return w
}

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

// add puts a stream of runs into the stripe and its places into the row index. groups are the values that row groups begin with.
func (w *writer) add(t *wtype, kind streamKind, x *runs, groups []int) {
	z, place := w.compress(x.b)
	w.streams = append(w.streams, wstream{t.col, kind, z})
	for g, k := range groups {
		off, within := x.at(k)
		w.entry(t.col, g, append(place(off), uint64(within))...)
	}
}

func (w *writer) addBits(t *wtype, kind streamKind, vals []bool, groups []int) {
	b := make([]byte, (len(vals)+7)/8)
	for i, v := range vals {
		if v {
			b[i/8] |= 0x80 >> (i % 8)
		}
	}
	x := w.byteRuns(b)
	z, place := w.compress(x.b)
	w.streams = append(w.streams, wstream{t.col, kind, z})
	for g, k := range groups {
		off, within := x.at(k / 8)
		w.entry(t.col, g, append(place(off), uint64(within), uint64(k%8))...)
	}
}

// addBytes puts a stream without runs; offs are the bytes that row groups begin with.
func (w *writer) addBytes(t *wtype, kind streamKind, b []byte, offs []int) {
	z, place := w.compress(b)
	w.streams = append(w.streams, wstream{t.col, kind, z})
	for g, off := range offs {
		w.entry(t.col, g, place(off)...)
	}
}

func (w *writer) entry(col, g int, positions ...uint64) {
	for len(w.index[col]) <= g {
		w.index[col] = append(w.index[col], &wentry{})
	}
	e := w.index[col][g]
	e.positions = append(e.positions, positions...)
}

// column writes the values of a column; groups are the slots that row groups begin with.
func (w *writer) column(t *wtype, vals []vector.Value, groups []int) {
	var present []bool
	var some []vector.Value
	nulls := false
	starts := make([]int, len(groups))
	for _, v := range vals {
		present = append(present, v != nil)
		nulls = nulls || v == nil
		if v != nil {
			some = append(some, v)
		}
	}
	for g, k := range groups {
		for _, p := range present[:k] {
			if p {
				starts[g]++
			}
		}
		end := len(vals)
		if g+1 < len(groups) {
			end = groups[g+1]
		}
		w.entry(t.col, g)
		w.index[t.col][g].stats = encodeStatistics(t, vals[k:end])
	}
	w.colStat[t.col] = encodeStatistics(t, vals)
	if nulls {
		w.addBits(t, streamPresent, present, groups)
	}
	enc := encDirect
	if !w.v1 {
		enc = encDirectV2
	}
	ints := func(f func(v vector.Value) int64) []int64 {
		out := make([]int64, len(some))
		for i, v := range some {
			out[i] = f(v)
		}
		return out
	}
	size := 0
	switch t.kind {
	case Boolean:
		bs := make([]bool, len(some))
		for i, v := range some {
			bs[i] = v.(bool)
		}
		w.addBits(t, streamData, bs, starts)
		enc = encDirect
	case Byte:
		bs := make([]byte, len(some))
		for i, v := range some {
			bs[i] = byte(v.(int32))
		}
		w.add(t, streamData, w.byteRuns(bs), starts)
		enc = encDirect
	case Short, Int, Date:
		w.add(t, streamData, w.intRuns(ints(func(v vector.Value) int64 { return int64(v.(int32)) }), true), starts)
	case Long:
		w.add(t, streamData, w.intRuns(ints(func(v vector.Value) int64 { return v.(int64) }), true), starts)
	case Float, Double:
		var b []byte
		for _, v := range some {
			if t.kind == Float {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.(float32)))
			} else {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.(float64)))
			}
		}
		offs := make([]int, len(starts))
		for g, k := range starts {
			offs[g] = k * 8
			if t.kind == Float {
				offs[g] = k * 4
			}
		}
		w.addBytes(t, streamData, b, offs)
		enc = encDirect
	case String, Varchar, Char, Binary:
		if t.dict {
			var entries []string
			for _, v := range some {
				entries = append(entries, v.(string))
			}
			slices.Sort(entries)
			entries = slices.Compact(entries)
			size = len(entries)
			var lens []int64
			for _, e := range entries {
				lens = append(lens, int64(len(e)))
			}
			w.add(t, streamData, w.intRuns(ints(func(v vector.Value) int64 {
				i, _ := slices.BinarySearch(entries, v.(string))
				return int64(i)
			}), false), starts)
			w.add(t, streamLength, w.intRuns(lens, false), nil)
			w.addBytes(t, streamDictionary, []byte(strings.Join(entries, "")), nil)
			enc |= encDictionary
			break
		}
		var b []byte
		ends := []int{0}
		for _, v := range some {
			b = append(b, v.(string)...)
			ends = append(ends, len(b))
		}
		offs := make([]int, len(starts))
		for g, k := range starts {
			offs[g] = ends[k]
		}
		w.addBytes(t, streamData, b, offs)
		w.add(t, streamLength, w.intRuns(ints(func(v vector.Value) int64 { return int64(len(v.(string))) }), false), starts)
	case Timestamp, TimestampInstant:
		loc, base := time.UTC, int64(baseUTC)
		if t.kind == Timestamp && w.zone != "" {
			loc, _ = time.LoadLocation(w.zone)
			base = time.Date(2015, 1, 1, 0, 0, 0, 0, loc).Unix()
		}
		var secs, nanos []int64
		for _, v := range some {
			u := time.Unix(0, v.(int64)).UTC()
			at := time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, loc).Unix()
			nano := int64(u.Nanosecond())
			if at < 0 && nano > 999_999 {
				at++
			}
			secs = append(secs, at-base)
			zeros := int64(0)
			for z := int64(7); z > 0 && nano != 0; z-- {
				if nano%trailing[z] == 0 {
					nano, zeros = nano/trailing[z], z
					break
				}
			}
			nanos = append(nanos, nano<<3|zeros)
		}
		w.add(t, streamData, w.intRuns(secs, true), starts)
		w.add(t, streamSecondary, w.intRuns(nanos, false), starts)
	case Decimal:
		w.decimals(t, some, starts)
	case List, Map:
		var kids [2][]vector.Value
		var lens []int64
		ends := []int{0}
		for _, v := range some {
			n := 0
			switch xs := v.(type) {
			case []vector.Value:
				kids[0], n = append(kids[0], xs...), len(xs)
			case []vector.Pair:
				n = len(xs)
				for _, p := range xs {
					kids[0], kids[1] = append(kids[0], p.Key), append(kids[1], p.Value)
				}
			}
			lens = append(lens, int64(n))
			ends = append(ends, len(kids[0]))
		}
		w.add(t, streamLength, w.intRuns(lens, false), starts)
		w.encoding(t, enc, 0)
		below := make([]int, len(starts))
		for g, k := range starts {
			below[g] = ends[k]
		}
		for i, k := range t.kids {
			w.column(k, kids[i], below)
		}
		return
	case Struct:
		w.encoding(t, encDirect, 0)
		for i, k := range t.kids {
			kid := make([]vector.Value, len(some))
			for j, v := range some {
				kid[j] = v.([]vector.Value)[i]
			}
			w.column(k, kid, starts)
		}
		return
	}
	w.encoding(t, enc, size)
}

func (w *writer) encoding(t *wtype, enc uint64, size int) {
	e := varint(nil, 1, enc)
	if size > 0 {
		e = varint(e, 2, uint64(size))
	}
	w.encs[t.col] = e
}

func unscaled(v vector.Value) *big.Int {
	if x, ok := v.(int64); ok {
		return big.NewInt(x)
	}
	return v.(vector.Int128).BigInt()
}

// decimals writes values without their trailing zeros, as Hive does, but not always.
func (w *writer) decimals(t *wtype, some []vector.Value, starts []int) {
	if w.version[0] == 1 && t.prec <= 18 {
		var xs []int64
		for _, v := range some {
			xs = append(xs, v.(int64))
		}
		w.add(t, streamData, w.intRuns(xs, true), starts)
		return
	}
	var b []byte
	var scales []int64
	ends := []int{0}
	ten := big.NewInt(10)
	for _, v := range some {
		x, scale := unscaled(v), int64(t.scale)
		for w.r.IntN(4) > 0 && scale > 0 && new(big.Int).Mod(x, ten).Sign() == 0 {
			x, scale = new(big.Int).Quo(x, ten), scale-1
		}
		z := new(big.Int).Lsh(x, 1)
		if x.Sign() < 0 {
			z.Neg(z).Sub(z, big.NewInt(1))
		}
		for z.BitLen() > 7 {
			b = append(b, byte(z.Uint64())|0x80)
			z.Rsh(z, 7)
		}
		b = append(b, byte(z.Uint64()))
		ends = append(ends, len(b))
		scales = append(scales, scale)
	}
	offs := make([]int, len(starts))
	for g, k := range starts {
		offs[g] = ends[k]
	}
	w.addBytes(t, streamData, b, offs)
	w.add(t, streamSecondary, w.intRuns(scales, true), starts)
}

// encodeStatistics makes a ColumnStatistics message.
func encodeStatistics(t *wtype, vals []vector.Value) []byte {
	var some []vector.Value
	for _, v := range vals {
		if v != nil {
			some = append(some, v)
		}
	}
	b := varint(nil, 1, uint64(len(some)))
	null := uint64(0)
	if len(some) < len(vals) {
		null = 1
	}
	b = varint(b, 10, null)
	if len(some) == 0 || len(t.kids) > 0 {
		return b
	}
	lo, hi := some[0], some[0]
	for _, v := range some {
		if greater(lo, v) {
			lo = v
		}
		if greater(v, hi) {
			hi = v
		}
	}
	fixed := func(num int, f float64) []byte {
		return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, uint64(num)<<3|wireFixed64), math.Float64bits(f))
	}
	switch t.kind {
	case Byte, Short, Int:
		b = blob(b, 2, varint(varint(nil, 1, zag(int64(lo.(int32)))), 2, zag(int64(hi.(int32)))))
	case Date:
		b = blob(b, 7, varint(varint(nil, 1, zag(int64(lo.(int32)))), 2, zag(int64(hi.(int32)))))
	case Long:
		b = blob(b, 2, varint(varint(nil, 1, zag(lo.(int64))), 2, zag(hi.(int64))))
	case Float:
		b = blob(b, 3, append(fixed(1, float64(lo.(float32))), fixed(2, float64(hi.(float32)))...))
	case Double:
		b = blob(b, 3, append(fixed(1, lo.(float64)), fixed(2, hi.(float64))...))
	case String, Varchar, Char:
		b = blob(b, 4, blob(blob(nil, 1, []byte(lo.(string))), 2, []byte(hi.(string))))
	case Boolean:
		n := uint64(0)
		for _, v := range some {
			if v.(bool) {
				n++
			}
		}
		b = blob(b, 5, blob(nil, 1, binary.AppendUvarint(nil, n)))
	case Decimal:
		text := func(v vector.Value) []byte {
			s := new(big.Rat).SetFrac(unscaled(v), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.scale)), nil)).FloatString(t.scale)
			return []byte(s)
		}
		b = blob(b, 6, blob(blob(nil, 1, text(lo)), 2, text(hi)))
	case Timestamp, TimestampInstant:
		ms := func(v vector.Value) uint64 { return zag(int64(math.Floor(float64(v.(int64)) / 1e6))) }
		b = blob(b, 9, varint(varint(nil, 3, ms(lo)), 4, ms(hi)))
	}
	return b
}

// stripe writes rows; each has a value a column.
func (w *writer) stripe(rows [][]vector.Value) {
	w.streams, w.encs = nil, make([][]byte, w.columns)
	w.index, w.colStat = map[int][]*wentry{}, map[int][]byte{}
	w.encs[0] = varint(nil, 1, encDirect)
	w.colStat[0] = varint(nil, 1, uint64(len(rows)))
	var groups []int
	for at := 0; at < len(rows); at += w.stride {
		groups = append(groups, at)
	}
	for i, t := range w.types {
		col := make([]vector.Value, len(rows))
		for j, r := range rows {
			col[j] = r[i]
		}
		w.column(t, col, groups)
	}
	offset := len(w.file)
	var foot, stats []byte
	stream := func(col int, kind streamKind, b []byte) {
		foot = blob(foot, 1, varint(varint(varint(nil, 1, uint64(kind)), 2, uint64(col)), 3, uint64(len(b))))
		w.file = append(w.file, b...)
	}
	if !w.noIndex {
		for col := 1; col < w.columns; col++ {
			var b []byte
			for _, e := range w.index[col] {
				var packed []byte
				for _, p := range e.positions {
					packed = binary.AppendUvarint(packed, p)
				}
				b = blob(b, 1, blob(blob(nil, 1, packed), 2, e.stats))
			}
			z, _ := w.compress(b)
			stream(col, streamRowIndex, z)
		}
	}
	indexLen := len(w.file) - offset
	for _, s := range w.streams {
		stream(s.col, s.kind, s.b)
	}
	dataLen := len(w.file) - offset - indexLen
	for _, e := range w.encs {
		foot = blob(foot, 2, e)
	}
	if w.zone != "" {
		foot = blob(foot, 3, []byte(w.zone))
	}
	z, _ := w.compress(foot)
	w.file = append(w.file, z...)
	w.stripes = append(w.stripes, varint(varint(varint(varint(varint(nil, 1, uint64(offset)), 2, uint64(indexLen)), 3, uint64(dataLen)), 4, uint64(len(z))), 5, uint64(len(rows))))
	for col := range w.columns {
		stats = blob(stats, 1, w.colStat[col])
	}
	w.stats = append(w.stats, stats)
	w.rows += len(rows)
}

func (w *writer) footer() []byte {
	foot := varint(varint(nil, 1, 3), 2, uint64(len(w.file)))
	for _, s := range w.stripes {
		foot = blob(foot, 3, s)
	}
	var add func(t *wtype)
	add = func(t *wtype) {
		b := varint(nil, 1, uint64(t.kind))
		for _, k := range t.kids {
			b = varint(b, 2, uint64(k.col))
		}
		if t.kind == Struct {
			for _, k := range t.kids {
				b = blob(b, 3, []byte(k.name))
			}
		}
		if t.kind == Decimal {
			b = varint(varint(b, 5, uint64(t.prec)), 6, uint64(t.scale))
		}
		for _, k := range slices.Sorted(maps.Keys(t.attrs)) {
			b = blob(b, 7, blob(blob(nil, 1, []byte(k)), 2, []byte(t.attrs[k])))
		}
		foot = blob(foot, 4, b)
		for _, k := range t.kids {
			add(k)
		}
	}
	add(&wtype{kind: Struct, kids: w.types})
	foot = blob(foot, 5, blob(blob(nil, 1, []byte("written.by")), 2, []byte("test")))
	foot = varint(foot, 6, uint64(w.rows))
	if !w.noIndex {
		foot = varint(foot, 8, uint64(w.stride))
	}
	return varint(foot, 9, w.writer)
}

// finish gives the file.
func (w *writer) finish() []byte {
	var meta []byte
	for _, s := range w.stats {
		meta = blob(meta, 1, s)
	}
	zm, _ := w.compress(meta)
	zf, _ := w.compress(w.footer())
	ps := varint(varint(nil, 1, uint64(len(zf))), 2, uint64(w.codec))
	if w.codec != None {
		ps = varint(ps, 3, uint64(w.block))
	}
	ps = blob(ps, 4, binary.AppendUvarint(binary.AppendUvarint(nil, w.version[0]), w.version[1]))
	ps = varint(varint(ps, 5, uint64(len(zm))), 6, w.writerV)
	if w.magic {
		ps = blob(ps, 8000, []byte(magic))
	}
	out := append(append(append([]byte(nil), w.file...), zm...), zf...)
	return append(append(out, ps...), byte(len(ps)))
}

// randomValue makes a value of a column's own type.
func randomValue(r *rand.Rand, t *wtype, nulls float64) vector.Value {
	if r.Float64() < nulls {
		return nil
	}
	wild := r.IntN(30) == 0
	switch t.kind {
	case Boolean:
		return r.IntN(3) > 0
	case Byte:
		return int32(int8(r.IntN(256)))
	case Short:
		return int32(int16(r.IntN(1 << 16)))
	case Int, Date:
		if wild {
			return int32(r.Uint32())
		}
		return int32(r.IntN(100))
	case Long:
		if wild {
			return int64(r.Uint64())
		}
		return int64(r.IntN(1000)) - 500
	case Float:
		return float32(r.IntN(1000)) / 8
	case Double:
		return r.NormFloat64()
	case String, Varchar, Char, Binary:
		if t.dict {
			return strings.Repeat("word", r.IntN(5)) + string(rune('a'+r.IntN(20)))
		}
		return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(30))
	case Timestamp, TimestampInstant:
		unit := int64(math.Pow10(r.IntN(10)))
		x := r.Int64N(4e18) - 2e18
		if x = x / unit * unit; x < 0 && x > -2e9 {
			x = 0
		}
		return x
	case Decimal:
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+r.IntN(t.prec))), nil)
		x := new(big.Int).Mod(new(big.Int).Mul(new(big.Int).SetUint64(r.Uint64()), new(big.Int).SetUint64(r.Uint64())), most)
		if r.IntN(2) == 0 {
			x.Neg(x)
		}
		if t.prec <= 18 {
			return x.Int64()
		}
		return int128(x)
	case List:
		out := []vector.Value{}
		for range r.IntN(5) {
			out = append(out, randomValue(r, t.kids[0], nulls))
		}
		return out
	case Map:
		out := []vector.Pair{}
		for range r.IntN(4) {
			out = append(out, vector.Pair{Key: randomValue(r, t.kids[0], 0), Value: randomValue(r, t.kids[1], nulls)})
		}
		return out
	}
	out := []vector.Value{}
	for _, k := range t.kids {
		out = append(out, randomValue(r, k, nulls))
	}
	return out
}

func randomRows(r *rand.Rand, types []*wtype, n int, nulls float64) [][]vector.Value {
	rows := make([][]vector.Value, n)
	for i := range rows {
		for _, t := range types {
			rows[i] = append(rows[i], randomValue(r, t, nulls))
		}
	}
	return rows
}

// requireKind checks that an error is one that a broken file may cause.
func requireKind(t testing.TB, err error) {
	t.Helper()
	switch k := fault.KindOf(err); {
	case err == nil, k == fault.Corrupt, k == fault.Unsupported, k == fault.Exhausted:
	default:
		t.Fatalf("error of kind %v: %v", k, err)
	}
}

func open(t testing.TB, b []byte) (*object, *Footer) {
	t.Helper()
	o := &object{b: b}
	f, err := ReadFooter(context.Background(), o, "test.orc")
	require.NoError(t, err)
	return o, f
}

func int128(x *big.Int) vector.Int128 {
	var b [16]byte
	new(big.Int).Abs(x).FillBytes(b[:])
	n := decimal128.New(int64(binary.BigEndian.Uint64(b[:8])), binary.BigEndian.Uint64(b[8:]))
	if x.Sign() < 0 {
		n = n.Negate()
	}
	return n
}
