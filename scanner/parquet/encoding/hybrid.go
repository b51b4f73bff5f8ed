package encoding

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

// Hybrid decodes the RLE / bit-packed hybrid of levels, dictionary codes and booleans.
type Hybrid struct {
	buf   []byte // what follows the current run
	width uint
	limit uint32 // values must be below; 0 means no limit

	run   int // values left in the current run
	value int32
	// packed is the bit-packed run from its current group on; skip values of that group are consumed. nil in an RLE run.
	packed []byte
	skip   int
}

// Reset starts on buf. Values have width bits, at most 32, and must be below limit when it is not 0.
func (h *Hybrid) Reset(buf []byte, width uint, limit uint32) error {
	if width > 32 {
		return fault.New(fault.Corrupt, "bit width of %d", width)
	}
	if uint64(limit) >= 1<<width {
		limit = 0 // the width alone holds values below
	}
	*h = Hybrid{buf: buf, width: width, limit: limit}
	return nil
}

// Next makes a run current if none is, and tells its length (0 at the end of the data), and for an RLE run its value.
func (h *Hybrid) next() error {
	for h.run == 0 {
		if len(h.buf) == 0 {
			return fault.New(fault.Corrupt, "RLE data ends early")
		}
		head, n := binary.Uvarint(h.buf)
		if n <= 0 || head > 1<<32 {
			return fault.New(fault.Corrupt, "bad RLE run header")
		}
		h.buf = h.buf[n:]
		if head&1 == 1 {
			groups := head >> 1
			// The last run of a page may be cut after its last real value.
			size := min(groups*uint64(h.width), uint64(len(h.buf)))
			count := groups * 8
			if h.width > 0 {
				count = min(count, size*8/uint64(h.width))
			}
			if groups > 0 && count == 0 {
				return fault.New(fault.Corrupt, "bit-packed run of %d groups has %d bytes", groups, len(h.buf))
			}
			h.run, h.skip = int(count), 0
			h.packed, h.buf = h.buf[:size:size], h.buf[size:]
			if h.packed == nil {
				h.packed = []byte{}
			}
			continue
		}
		size := int(h.width+7) / 8
		if size > len(h.buf) {
			return fault.New(fault.Corrupt, "RLE run has no value")
		}
		var v uint32
		for i := range size {
			v |= uint32(h.buf[i]) << (8 * i)
		}
		if h.width < 32 && v>>h.width != 0 || h.limit != 0 && v >= h.limit {
			return fault.New(fault.Corrupt, "RLE value %d is out of range (width %d, limit %d)", v, h.width, h.limit)
		}
		h.run, h.value, h.packed, h.buf = int(head>>1), int32(v), nil, h.buf[size:]
	}
	return nil
}

// Read fills dst with the next values.
func (h *Hybrid) Read(dst []int32) error {
	for len(dst) > 0 {
		if err := h.next(); err != nil {
			return err
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			d, v := dst[:n], h.value
			for i := range d {
				d[i] = v
			}
		} else {
			h.unpack(dst[:n])
			if h.limit != 0 && exceeds(dst[:n], h.limit) {
				return fault.New(fault.Corrupt, "a value of %d or more", h.limit)
			}
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// unpack writes the next len(dst) values of the packed run and moves on.
func (h *Hybrid) unpack(dst []int32) {
	var group [8]int32
	if h.skip > 0 {
		h.group(&group)
		n := copy(dst, group[h.skip:])
		dst = dst[n:]
		h.consume(n)
	}
	if n := len(dst) &^ 7; n > 0 {
		Unpack(dst[:n], h.packed, h.width)
		dst = dst[n:]
		h.packed = h.packed[n/8*int(h.width):]
	}
	if len(dst) > 0 {
		h.group(&group)
		copy(dst, group[:])
		h.consume(len(dst))
	}
}

// group unpacks the current group of eight, which may be cut short.
func (h *Hybrid) group(g *[8]int32) {
	var pad [64]byte
	copy(pad[:32], h.packed)
	Unpack(g[:], pad[:], h.width)
}

func (h *Hybrid) consume(n int) {
	if h.skip += n; h.skip >= 8 {
		h.packed = h.packed[min(int(h.width)*(h.skip/8), len(h.packed)):]
		h.skip %= 8
	}
}

func exceeds(v []int32, limit uint32) bool {
	var a, b uint32
	i := 0
	for ; i+4 <= len(v); i += 4 {
		a = max(a, uint32(v[i]), uint32(v[i+1]))
		b = max(b, uint32(v[i+2]), uint32(v[i+3]))
	}
	for ; i < len(v); i++ {
		a = max(a, uint32(v[i]))
	}
	return max(a, b) >= limit
}

// Skip passes over n values.
func (h *Hybrid) Skip(n int) error {
	for n > 0 {
		if err := h.next(); err != nil {
			return err
		}
		k := min(h.run, n)
		if h.packed != nil {
			h.consume(k)
		}
		h.run -= k
		n -= k
	}
	return nil
}

// Constant reports whether the next n values are one RLE run, and which value. It consumes nothing.
func (h *Hybrid) Constant(n int) (int32, bool) {
	if n == 0 || h.next() != nil {
		return 0, false
	}
	if h.packed == nil && h.run >= n {
		return h.value, true
	}
	return 0, false
}

// ReadBits decodes n values of width 1 into bits, least significant first, starting at bit 0 of a cleared bitmap.
func (h *Hybrid) ReadBits(bits []uint64, n int) error {
	at := 0
	for at < n {
		if err := h.next(); err != nil {
			return err
		}
		k := min(h.run, n-at)
		if h.packed == nil {
			if h.value != 0 {
				SetBits(bits, at, k)
			}
		} else {
			copyBits(bits, at, h.packed, h.skip, k)
			h.consume(k)
		}
		h.run -= k
		at += k
	}
	return nil
}

// ReadBytes decodes values of at most 8 bits, each at most limit, into bytes: the levels of nested columns.
func (h *Hybrid) ReadBytes(dst []byte, limit int) error {
	var tmp [512]int32
	for len(dst) > 0 {
		if err := h.next(); err != nil {
			return err
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			if int(h.value) > limit {
				return fault.New(fault.Corrupt, "level %d is above %d", h.value, limit)
			}
			d, v := dst[:n], byte(h.value)
			for i := range d {
				d[i] = v
			}
		} else {
			n = min(n, len(tmp))
			h.unpack(tmp[:n])
			for i, v := range tmp[:n] {
				if int(v) > limit {
					return fault.New(fault.Corrupt, "level %d is above %d", v, limit)
				}
				dst[i] = byte(v)
			}
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// SetBits sets n bits from bit at on.
func SetBits(bits []uint64, at, n int) {
	if n <= 0 {
		return
	}
	first, last := at>>6, (at+n-1)>>6
	lo, hi := ^uint64(0)<<(uint(at)&63), ^uint64(0)>>(63-uint(at+n-1)&63)
	if first == last {
		bits[first] |= lo & hi
		return
	}
	bits[first] |= lo
	for i := first + 1; i < last; i++ {
		bits[i] = ^uint64(0)
	}
	bits[last] |= hi
}

// copyBits ORs n bits of src from bit from on into dst from bit at on.
func copyBits(dst []uint64, at int, src []byte, from, n int) {
	for n > 0 {
		var x uint64
		p := src[from>>3:]
		if len(p) >= 8 {
			x = binary.LittleEndian.Uint64(p)
		} else {
			for i, b := range p {
				x |= uint64(b) << (8 * i)
			}
		}
		x >>= uint(from) & 7
		k := min(n, 56, 64-at&63)
		x &= 1<<uint(k) - 1
		dst[at>>6] |= x << (uint(at) & 63)
		at, from, n = at+k, from+k, n-k
	}
}

// CopyBits ORs n bits of src from bit from on into dst from bit at on.
func CopyBits(dst []uint64, at int, src []uint64, from, n int) {
	for n > 0 {
		w, s := from>>6, uint(from)&63
		x := src[w] >> s
		if s != 0 && w+1 < len(src) {
			x |= src[w+1] << (64 - s)
		}
		k := min(n, 64-at&63)
		if k < 64 {
			x &= 1<<uint(k) - 1
		}
		dst[at>>6] |= x << (uint(at) & 63)
		at, from, n = at+k, from+k, n-k
	}
}
