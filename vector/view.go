package vector

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// InlineLen is the longest value that a View holds by itself.
const InlineLen = 12

// View is a string or binary value in Arrow's Utf8View layout: the length, then the value itself when it
// has up to 12 bytes, otherwise its first four bytes, a buffer index and an offset. It has no pointer, so the garbage
// collector never looks at it.
type View struct {
	Len    uint32
	Prefix [4]byte // first bytes, zero padded
	buf    uint32  // inline: bytes 4-7
	off    uint32  // inline: bytes 8-11
}

// MakeView refers to the n bytes at off of bufs[buf]. Values of up to 12 bytes are copied into the view.
func MakeView(bufs [][]byte, buf, off, n int) View {
	b := bufs[buf][off : off+n : off+n]
	if n <= InlineLen {
		return InlineView(b)
	}
	v := View{Len: uint32(n), buf: uint32(buf), off: uint32(off)}
	copy(v.Prefix[:], b)
	return v
}

// InlineView holds b, at most 12 bytes, in the view.
func InlineView(b []byte) View {
	v := View{Len: uint32(len(b))}
	copy((*[InlineLen]byte)(unsafe.Pointer(&v.Prefix))[:], b)
	return v
}

// Buf and Off locate a value that is not inline.
func (v *View) Buf() int { return int(v.buf) }

// Off is the offset in the buffer of a value that is not inline.
func (v *View) Off() int { return int(v.off) }

// Inline reports whether the value stands in the view itself.
func (v *View) Inline() bool { return v.Len <= InlineLen }

// Bytes gives the value. For an inline view the bytes are those of *v, so v must stay where it is.
func (v *View) Bytes(bufs [][]byte) []byte {
	if v.Len <= InlineLen {
		return unsafe.Slice((*byte)(unsafe.Pointer(&v.Prefix)), int(v.Len))
	}
	b := bufs[v.buf]
	return b[v.off : v.off+v.Len : v.off+v.Len]
}

// Rebase returns the view with its buffer index raised by d, for buffers appended to another list.
func (v View) Rebase(d int) View {
	if v.Len > InlineLen {
		v.buf += uint32(d)
	}
	return v
}

// EqualViews compares two values, most pairs by their first eight bytes alone.
func EqualViews(a *View, abufs [][]byte, b *View, bbufs [][]byte) bool {
	if a.Len != b.Len || a.Prefix != b.Prefix {
		return false
	}
	if a.Len <= InlineLen {
		return a.buf == b.buf && a.off == b.off
	}
	return bytes.Equal(a.Bytes(abufs), b.Bytes(bbufs))
}

// CompareViews orders two values bytewise, unsigned: for UTF-8 this is code point order.
func CompareViews(a *View, abufs [][]byte, b *View, bbufs [][]byte) int {
	x, y := binary.BigEndian.Uint32(a.Prefix[:]), binary.BigEndian.Uint32(b.Prefix[:])
	if x != y {
		if x < y {
			return -1
		}
		return 1
	}
	return bytes.Compare(a.Bytes(abufs), b.Bytes(bbufs))
}

// viewMasks keep the first n bytes of an inline value, as its words of four and eight bytes; the last entry, of values that are not
// inline, keeps the reference instead of the second word.
var viewMasks = func() (m [InlineLen + 2]struct {
	lo      uint32
	hi, ref uint64
}) {
	for n := range InlineLen + 1 {
		m[n].lo = uint32(uint64(1)<<(8*min(n, 4)) - 1)
		m[n].hi = uint64(1)<<(8*max(n-4, 0)) - 1
	}
	m[InlineLen+1].lo, m[InlineLen+1].ref = ^uint32(0), ^uint64(0)
	return m
}()

// LoadView makes a view of the n bytes at off of b, which is buffer buf of its vector. It is MakeView for decoders: where twelve
// bytes can be read at off it loads words and masks them, without a branch on the length, instead of copying.
func LoadView(b []byte, buf, off, n int) View {
	if off+InlineLen > len(b) {
		if n <= InlineLen {
			return InlineView(b[off : off+n])
		}
		return View{} // n bytes at off are not all in b
	}
	p := (*[InlineLen]byte)(b[off:])
	m := &viewMasks[min(uint(n), InlineLen+1)]
	lo := binary.LittleEndian.Uint32(p[:4]) & m.lo
	hi := binary.LittleEndian.Uint64(p[4:])&m.hi | (uint64(uint32(buf))|uint64(off)<<32)&m.ref
	v := View{Len: uint32(n), buf: uint32(hi), off: uint32(hi >> 32)}
	binary.LittleEndian.PutUint32(v.Prefix[:], lo)
	return v
}
