package orc

import (
	"encoding/binary"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/skua-db/skua/vector"
)

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
	case Union: // rows of the tag and the members, of which the one that the tag names counts
		w.encoding(t, encDirect, 0)
		tags := make([]byte, len(some))
		for j, v := range some {
			tags[j] = byte(v.([]vector.Value)[0].(int32))
		}
		w.add(t, streamData, w.byteRuns(tags), starts)
		for i, k := range t.kids {
			var kid []vector.Value
			at := make([]int, len(starts))
			for j, v := range some {
				for g, start := range starts {
					if start == j {
						at[g] = len(kid)
					}
				}
				if tags[j] == byte(i) {
					kid = append(kid, v.([]vector.Value)[i+1])
				}
			}
			for g, start := range starts {
				if start == len(some) {
					at[g] = len(kid)
				}
			}
			w.column(k, kid, at)
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
