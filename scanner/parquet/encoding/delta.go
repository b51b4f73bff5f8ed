package encoding

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

// Delta decodes DELTA_BINARY_PACKED integers. 32-bit columns wrap at 32 bits, which truncation of the 64-bit sums gives.
type Delta struct {
	buf  []byte // what follows the current miniblock
	left int    // values not yet handed out, the first one included

	perMini  int // values in a miniblock
	minis    int // miniblocks in a block
	widths   []byte
	nextMini int // index into widths; len(widths) when a block must begin

	min    int64
	last   int64
	first  bool // the first value is still to come
	mini   []byte
	width  uint
	inMini int  // values left in the current miniblock
	cut    bool // the current miniblock was not complete

	pend    [miniStep]int64 // decoded, not handed out
	pendLen int
	pendPos int
}

const miniStep = 32

// Reset parses the header. max is how many values the page can hold; a header that claims more is corrupt.
func (d *Delta) Reset(buf []byte, max int) error {
	*d = Delta{}
	var h [3]uint64
	for i := range h {
		v, n := binary.Uvarint(buf)
		if n <= 0 {
			return fault.New(fault.Corrupt, "delta header ends early")
		}
		h[i], buf = v, buf[n:]
	}
	first, n := binary.Varint(buf)
	if n <= 0 {
		return fault.New(fault.Corrupt, "delta header ends early")
	}
	buf = buf[n:]
	block, minis, total := h[0], h[1], h[2]
	if total > uint64(max) {
		return fault.New(fault.Corrupt, "delta header claims %d values, the page has %d", total, max)
	}
	if block == 0 || minis == 0 || block > 1<<24 || minis > block || block%minis != 0 || block/minis%8 != 0 {
		return fault.New(fault.Corrupt, "delta block of %d values in %d miniblocks", block, minis)
	}
	d.buf, d.left, d.perMini, d.minis = buf, int(total), int(block/minis), int(minis)
	d.last, d.first = first, true
	return nil
}

// Len is the number of values not yet read.
func (d *Delta) Len() int { return d.left }

// Rest is what follows the encoded values, once all have been read.
func (d *Delta) Rest() []byte { return d.buf }

// Read fills dst with the next values.
func (d *Delta) Read(dst []int64) error { return readDelta(d, dst) }

// Read32 fills dst with the next values of a 32-bit column.
func (d *Delta) Read32(dst []int32) error { return readDelta(d, dst) }

// Skip passes over n values; they have to be summed all the same.
func (d *Delta) Skip(n int) error {
	var sink [256]int64
	for n > 0 {
		k := min(n, len(sink))
		if err := d.Read(sink[:k]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

func readDelta[T int32 | int64](d *Delta, dst []T) error {
	if len(dst) > d.left {
		return fault.New(fault.Corrupt, "delta data ends early: %d values left, %d needed", d.left, len(dst))
	}
	d.left -= len(dst)
	if d.first && len(dst) > 0 {
		d.first = false
		dst[0] = T(d.last)
		dst = dst[1:]
	}
	for len(dst) > 0 {
		if d.pendPos < d.pendLen {
			n := min(d.pendLen-d.pendPos, len(dst))
			for i, v := range d.pend[d.pendPos : d.pendPos+n] {
				dst[i] = T(v)
			}
			d.pendPos += n
			dst = dst[n:]
			continue
		}
		if d.inMini == 0 {
			if err := d.nextMiniblock(); err != nil {
				return err
			}
		}
		step := min(d.inMini, miniStep)
		if len(dst) >= step {
			sumDeltas(d, dst[:step])
			dst = dst[step:]
		} else {
			sumDeltas(d, d.pend[:step])
			d.pendPos, d.pendLen = 0, step
		}
		d.inMini -= step
	}
	return nil
}

// nextMiniblock makes the next miniblock current, reading a block header when it begins one.
func (d *Delta) nextMiniblock() error {
	if d.cut {
		return fault.New(fault.Corrupt, "delta data ends early")
	}
	if d.nextMini == len(d.widths) {
		m, n := binary.Varint(d.buf)
		if n <= 0 || len(d.buf)-n < d.minis {
			return fault.New(fault.Corrupt, "delta block header ends early")
		}
		d.min, d.widths, d.buf = m, d.buf[n:n+d.minis], d.buf[n+d.minis:]
		d.nextMini = 0
	}
	w := uint(d.widths[d.nextMini])
	d.nextMini++
	if w > 64 {
		return fault.New(fault.Corrupt, "delta bit width of %d", w)
	}
	size := d.perMini / 8 * int(w)
	d.inMini, d.width = d.perMini, w
	if size > len(d.buf) {
		// A writer may cut the padding of the last miniblock: what is there counts, and the unpacking gets room to read past it.
		d.inMini = min(d.perMini, len(d.buf)*8/int(w))
		if d.inMini == 0 {
			return fault.New(fault.Corrupt, "delta miniblock of width %d has %d bytes", w, len(d.buf))
		}
		p := make([]byte, len(d.buf)+64)
		copy(p, d.buf)
		d.mini, d.buf, d.cut = p, nil, true
		return nil
	}
	d.mini, d.buf = d.buf[:size:size], d.buf[size:]
	return nil
}

// sumDeltas decodes len(dst) values, at most miniStep, of the current miniblock; all but its last step are multiples of 8.
func sumDeltas[T int32 | int64](d *Delta, dst []T) {
	n := (len(dst) + 7) &^ 7
	size := n / 8 * int(d.width)
	src := d.mini
	last, base := d.last, d.min
	switch {
	case d.width == 0:
		for i := range dst {
			last += base
			dst[i] = T(last)
		}
	case d.width <= 32:
		var tmp [miniStep]int32
		Unpack(tmp[:n], src, d.width)
		for i := range dst {
			last += base + int64(uint32(tmp[i&(miniStep-1)]))
			dst[i] = T(last)
		}
	default:
		var tmp [miniStep]int64
		unpack64(tmp[:n], src, d.width)
		for i := range dst {
			last += base + tmp[i&(miniStep-1)]
			dst[i] = T(last)
		}
	}
	d.last = last
	d.mini = src[size:]
}
