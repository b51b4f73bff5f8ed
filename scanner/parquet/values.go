package parquet

import (
	"encoding/binary"
	"unsafe"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/parquet/encoding"
	"github.com/skua-db/skua/vector"
)

// values decodes the values of one page, nulls not among them, in any steps.
type values struct {
	enc      Encoding
	physical Physical
	width    int // bytes of a fixed-width value
	buf      []byte
	total    int // values in the page
	at       int // values consumed
	pos      int // bytes consumed, where the encoding is read by bytes

	hybrid  encoding.Hybrid
	delta   encoding.Delta
	lengths []int32 // DELTA_LENGTH_BYTE_ARRAY and suffixes of DELTA_BYTE_ARRAY
	prefix  []int32 // DELTA_BYTE_ARRAY
	last    []byte  // DELTA_BYTE_ARRAY: the value before
	scratch []byte
}

// fixedWidth is the size of a physical type's values; 0 for those without one.
func fixedWidth(p Physical, length int) int {
	switch p {
	case Int32, Float:
		return 4
	case Int64, Double:
		return 8
	case Int96:
		return 12
	case FixedLenByteArray:
		return length
	}
	return 0
}

// reset starts on buf, which holds n values. dictLen is the size of the chunk's dictionary, -1 when there is none.
func (v *values) reset(enc Encoding, n *Node, buf []byte, count, dictLen int) error {
	v.enc, v.physical, v.width = enc, n.Physical, fixedWidth(n.Physical, n.Length)
	v.buf, v.total, v.at, v.pos = buf, count, 0, 0
	if enc == PlainDictionary {
		v.enc = RLEDictionary
	}
	if count == 0 {
		return nil
	}
	wrong := func() error { return fault.New(fault.Corrupt, "encoding %s on %s", enc, n.Physical) }
	switch v.enc {
	case Plain:
		need := 4 * int64(count)
		if n.Physical == Boolean {
			need = (int64(count) + 7) / 8
		} else if v.width > 0 {
			need = int64(v.width) * int64(count)
		}
		if need > int64(len(buf)) {
			return fault.New(fault.Corrupt, "%d values of %s in %d bytes", count, n.Physical, len(buf))
		}
	case RLEDictionary:
		if dictLen < 0 {
			return fault.New(fault.Corrupt, "dictionary-encoded page in a chunk without dictionary")
		}
		if dictLen == 0 {
			return fault.New(fault.Corrupt, "%d values refer to an empty dictionary", count)
		}
		if len(buf) == 0 {
			return fault.New(fault.Corrupt, "dictionary-encoded page has no bit width")
		}
		return v.hybrid.Reset(buf[1:], uint(buf[0]), uint32(dictLen))
	case RLE:
		if n.Physical != Boolean {
			return wrong()
		}
		if len(buf) < 4 || int64(binary.LittleEndian.Uint32(buf)) > int64(len(buf)-4) {
			return fault.New(fault.Corrupt, "RLE booleans are longer than the page")
		}
		return v.hybrid.Reset(buf[4:4+binary.LittleEndian.Uint32(buf)], 1, 2)
	case DeltaBinaryPacked:
		if n.Physical != Int32 && n.Physical != Int64 {
			return wrong()
		}
		return v.delta.Reset(buf, count)
	case DeltaLengthByteArray:
		if n.Physical != ByteArray {
			return wrong()
		}
		rest, err := v.readLengths(&v.lengths, buf, count)
		v.buf = rest
		return err
	case DeltaByteArray:
		if n.Physical != ByteArray && n.Physical != FixedLenByteArray {
			return wrong()
		}
		rest, err := v.readLengths(&v.prefix, buf, count)
		if err != nil {
			return err
		}
		v.last = v.last[:0]
		v.buf, err = v.readLengths(&v.lengths, rest, count)
		return err
	case ByteStreamSplit:
		if v.width == 0 || n.Physical == Int96 {
			return wrong()
		}
		if int64(len(buf)) != int64(v.width)*int64(count) {
			return fault.New(fault.Corrupt, "%d values of %d byte streams in %d bytes", count, v.width, len(buf))
		}
	default:
		return fault.New(fault.Unsupported, "values in %s", enc)
	}
	return nil
}

func (v *values) readLengths(dst *[]int32, buf []byte, count int) (rest []byte, err error) {
	if err := v.delta.Reset(buf, count); err != nil {
		return nil, err
	}
	if v.delta.Len() != count {
		return nil, fault.New(fault.Corrupt, "%d lengths for %d values", v.delta.Len(), count)
	}
	grow(dst, count, 0)
	if err := v.delta.Read32(*dst); err != nil {
		return nil, err
	}
	return v.delta.Rest(), nil
}

// grow makes *s n long, keeping its first keep elements.
func grow[T any](s *[]T, n, keep int) {
	if n <= cap(*s) {
		*s = (*s)[:n]
		return
	}
	g := make([]T, n, max(n, 2*cap(*s)))
	copy(g, (*s)[:min(keep, cap(*s))])
	*s = g
}

func (v *values) short(n int) error {
	return fault.New(fault.Corrupt, "page has %d values left, %d are needed", v.total-v.at, n)
}

// skip passes over n values.
func (v *values) skip(n int) error {
	if n == 0 {
		return nil
	}
	if n > v.total-v.at {
		return v.short(n)
	}
	switch v.enc {
	case Plain:
		if v.physical == ByteArray {
			if err := v.skipPlainBytes(n); err != nil {
				return err
			}
		}
	case RLEDictionary, RLE:
		if err := v.hybrid.Skip(n); err != nil {
			return err
		}
	case DeltaBinaryPacked:
		if err := v.delta.Skip(n); err != nil {
			return err
		}
	case DeltaLengthByteArray:
		for _, l := range v.lengths[v.at : v.at+n] {
			if l < 0 || int(l) > len(v.buf)-v.pos {
				return fault.New(fault.Corrupt, "value of %d bytes, %d remain", l, len(v.buf)-v.pos)
			}
			v.pos += int(l)
		}
	case DeltaByteArray:
		for i := v.at; i < v.at+n; i++ {
			if err := v.appendDelta(i); err != nil {
				return err
			}
		}
	}
	v.at += n
	return nil
}

func (v *values) skipPlainBytes(n int) error {
	b, pos := v.buf, v.pos
	for range n {
		if len(b)-pos < 4 {
			return fault.New(fault.Corrupt, "page ends inside a value")
		}
		l := int(binary.LittleEndian.Uint32(b[pos:]))
		if l > len(b)-pos-4 {
			return fault.New(fault.Corrupt, "value of %d bytes, %d remain", l, len(b)-pos-4)
		}
		pos += 4 + l
	}
	v.pos = pos
	return nil
}

// appendDelta makes v.last value i of a DELTA_BYTE_ARRAY page.
func (v *values) appendDelta(i int) error {
	p, l := int(v.prefix[i]), int(v.lengths[i])
	if p < 0 || p > len(v.last) || l < 0 || l > len(v.buf)-v.pos {
		return fault.New(fault.Corrupt, "value with a prefix of %d of %d bytes and a suffix of %d of %d", p, len(v.last), l, len(v.buf)-v.pos)
	}
	v.last = append(v.last[:p], v.buf[v.pos:v.pos+l]...)
	v.pos += l
	return nil
}

// codes reads n dictionary codes.
func (v *values) codes(dst []int32) error {
	if len(dst) > v.total-v.at {
		return v.short(len(dst))
	}
	v.at += len(dst)
	return v.hybrid.Read(dst)
}

// number is a physical type with values of Go's own.
type number interface {
	int32 | int64 | float32 | float64
}

// asBytes is s as raw memory.
func asBytes[T any](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}

// readNumbers gives the next len(dst) values: those of a plain page where they stand, all others in dst.
func readNumbers[T number](v *values, dst []T) ([]T, error) {
	n := len(dst)
	if n > v.total-v.at {
		return nil, v.short(n)
	}
	at := v.at
	v.at += n
	if n == 0 {
		return dst, nil
	}
	switch v.enc {
	case Plain:
		return unsafe.Slice((*T)(unsafe.Pointer(&v.buf[at*v.width])), n), nil
	case ByteStreamSplit:
		encoding.Unsplit(asBytes(dst), v.buf, v.total, at, v.width)
		return dst, nil
	case DeltaBinaryPacked:
		switch d := any(dst).(type) {
		case []int32:
			return dst, v.delta.Read32(d)
		case []int64:
			return dst, v.delta.Read(d)
		}
	}
	return nil, fault.New(fault.Corrupt, "encoding %s on %s", v.enc, v.physical)
}

// readFixed gives the next n values of fixed width as one run of bytes, in the page or in scratch.
func (v *values) readFixed(n int) ([]byte, error) {
	if n > v.total-v.at {
		return nil, v.short(n)
	}
	at := v.at
	v.at += n
	w := v.width
	switch v.enc {
	case Plain:
		return v.buf[at*w : (at+n)*w], nil
	case ByteStreamSplit:
		grow(&v.scratch, n*w, 0)
		encoding.Unsplit(v.scratch, v.buf, v.total, at, w)
		return v.scratch, nil
	case DeltaByteArray:
		v.scratch = v.scratch[:0]
		for i := at; i < at+n; i++ {
			if err := v.appendDelta(i); err != nil {
				return nil, err
			}
			if len(v.last) != w {
				return nil, fault.New(fault.Corrupt, "value of %d bytes in a column of %d", len(v.last), w)
			}
			v.scratch = append(v.scratch, v.last...)
		}
		return v.scratch, nil
	}
	if n == 0 {
		return nil, nil
	}
	return nil, fault.New(fault.Corrupt, "encoding %s on %s", v.enc, v.physical)
}

// readBools fills dst.
func (v *values) readBools(dst []bool, tmp *[]int32) error {
	n := len(dst)
	if n > v.total-v.at {
		return v.short(n)
	}
	at := v.at
	v.at += n
	switch v.enc {
	case Plain:
		encoding.Bools(dst, v.buf, at)
		return nil
	case RLE:
		grow(tmp, n, 0)
		if err := v.hybrid.Read(*tmp); err != nil {
			return err
		}
		for i, x := range *tmp {
			dst[i] = x != 0
		}
		return nil
	}
	if n == 0 {
		return nil
	}
	return fault.New(fault.Corrupt, "encoding %s on BOOLEAN", v.enc)
}

// maxArenaBytes bounds what a batch of DELTA_BYTE_ARRAY values may unfold to: a few bytes of prefix lengths can name gigabytes.
const maxArenaBytes = 256 << 20

// readViews fills dst with byte-array values that refer to buffer number buf of their vector, and returns that buffer: the page, or
// for values that had to be put together an arena taken from pool, also returned as arena for release.
func (v *values) readViews(dst []vector.View, buf int, pool *memory.Pool) (bytes []byte, arena *buffer, err error) {
	n := len(dst)
	if n > v.total-v.at {
		return nil, nil, v.short(n)
	}
	at := v.at
	v.at += n
	if n == 0 {
		return nil, nil, nil
	}
	switch v.enc {
	case Plain:
		return v.buf, nil, v.readPlainViews(dst, buf)
	case DeltaLengthByteArray:
		b, pos := v.buf, v.pos
		for i, l := range v.lengths[at : at+n] {
			if l < 0 || int(l) > len(b)-pos {
				return nil, nil, fault.New(fault.Corrupt, "value of %d bytes, %d remain", l, len(b)-pos)
			}
			dst[i] = vector.LoadView(b, buf, pos, int(l))
			pos += int(l)
		}
		v.pos = pos
		return b, nil, nil
	case DeltaByteArray:
		size := int64(0)
		for i := at; i < at+n; i++ {
			size += int64(max(v.prefix[i], 0)) + int64(max(v.lengths[i], 0))
		}
		if size > maxArenaBytes {
			return nil, nil, fault.New(fault.Exhausted, "%d values of DELTA_BYTE_ARRAY unfold to %d bytes", n, size)
		}
		arena, err := newBuffer(pool, int(size))
		if err != nil {
			return nil, nil, err
		}
		pos := 0
		for i := range n {
			if err := v.appendDelta(at + i); err != nil {
				arena.release()
				return nil, nil, err
			}
			copy(arena.b[pos:], v.last)
			dst[i] = vector.LoadView(arena.b, buf, pos, len(v.last))
			pos += len(v.last)
		}
		return arena.b, arena, nil
	}
	return nil, nil, fault.New(fault.Corrupt, "encoding %s on %s", v.enc, v.physical)
}

func (v *values) readPlainViews(dst []vector.View, buf int) error {
	b, pos := v.buf, v.pos
	for i := range dst {
		if len(b)-pos < 4 {
			return fault.New(fault.Corrupt, "page ends inside a value")
		}
		l := int(binary.LittleEndian.Uint32(b[pos:]))
		pos += 4
		if l > len(b)-pos {
			return fault.New(fault.Corrupt, "value of %d bytes, %d remain", l, len(b)-pos)
		}
		dst[i] = vector.LoadView(b, buf, pos, l)
		pos += l
	}
	v.pos = pos
	return nil
}
