package orc

import (
	"encoding/binary"
	"math/bits"

	"github.com/skua-db/skua/fault"
)

// byteRuns reads byte run length encoding: a control byte of 0 to 127 is a run of three more of the byte that follows, one of 128
// to 255 is 256 less that many literals.
type byteRuns struct {
	s       *stream
	left    int
	literal bool
	value   byte
}

func (r *byteRuns) head() error {
	c, err := r.s.byte()
	if err != nil {
		return err
	}
	if c < 128 {
		r.literal, r.left = false, int(c)+3
		r.value, err = r.s.byte()
		return err
	}
	r.literal, r.left = true, 256-int(c)
	return nil
}

func (r *byteRuns) read(dst []byte) error {
	for len(dst) > 0 {
		if r.left == 0 {
			if err := r.head(); err != nil {
				return err
			}
		}
		n := min(r.left, len(dst))
		if r.literal {
			if err := r.s.read(dst[:n]); err != nil {
				return err
			}
		} else {
			for i := range dst[:n] {
				dst[i] = r.value
			}
		}
		r.left -= n
		dst = dst[n:]
	}
	return nil
}

func (r *byteRuns) skip(n int64) error {
	for n > 0 {
		if r.left == 0 {
			if err := r.head(); err != nil {
				return err
			}
		}
		k := min(int64(r.left), n)
		if r.literal {
			if err := r.s.skip(k); err != nil {
				return err
			}
		}
		r.left -= int(k)
		n -= k
	}
	return nil
}

func (r *byteRuns) seek(p *positions) error {
	if err := r.s.seek(p); err != nil {
		return err
	}
	r.left = 0
	return r.within(p.next())
}

// within skips what a position says of the run that begins there.
func (r *byteRuns) within(n uint64) error {
	const most = 130
	if n > most {
		return r.s.outside(n)
	}
	return r.skip(int64(n))
}

// bitRuns reads booleans: bytes in byte run length encoding, most significant bit first.
type bitRuns struct {
	runs    byteRuns
	cur     byte // bits still to be given, the next one lowest
	left    int
	scratch [256]byte
}

// read sets dst to the next n bits, least significant first, and gives how many are set. dst has room for them.
func (r *bitRuns) read(dst []uint64, n int) (set int, err error) {
	clear(dst[:(n+63)/64])
	at := 0
	put := func(b byte, k int) {
		w, shift := at>>6, uint(at)&63
		dst[w] |= uint64(b) << shift
		if shift > 56 && w+1 < len(dst) {
			dst[w+1] |= uint64(b) >> (64 - shift)
		}
		set += bits.OnesCount8(b)
		at += k
	}
	if r.left > 0 {
		k := min(r.left, n)
		put(r.cur&(1<<k-1), k)
		r.cur >>= uint(k)
		r.left -= k
	}
	for n-at >= 8 {
		b := r.scratch[:min((n-at)/8, len(r.scratch))]
		if err := r.runs.read(b); err != nil {
			return 0, err
		}
		for _, x := range b {
			put(bits.Reverse8(x), 8)
		}
	}
	if k := n - at; k > 0 {
		if err := r.load(); err != nil {
			return 0, err
		}
		put(r.cur&(1<<k-1), k)
		r.cur >>= uint(k)
		r.left -= k
	}
	return set, nil
}

// load takes the next byte.
func (r *bitRuns) load() error {
	if err := r.runs.read(r.scratch[:1]); err != nil {
		return err
	}
	r.cur, r.left = bits.Reverse8(r.scratch[0]), 8
	return nil
}

// skip passes n bits over and gives how many of them are set.
func (r *bitRuns) skip(n int64) (set int64, err error) {
	var words [64]uint64
	for n > 0 {
		k := min(n, 64*int64(len(words)))
		s, err := r.read(words[:], int(k))
		if err != nil {
			return 0, err
		}
		set += int64(s)
		n -= k
	}
	return set, nil
}

func (r *bitRuns) seek(p *positions) error {
	if err := r.runs.seek(p); err != nil {
		return err
	}
	r.left = 0
	k := p.next()
	if k > 8 {
		return r.runs.s.outside(k)
	}
	if k == 0 {
		return nil
	}
	if err := r.load(); err != nil {
		return err
	}
	r.cur >>= uint(k)
	r.left -= int(k)
	return nil
}

// maxRun is the largest number of values of a run of integers.
const maxRun = 512

// intRuns reads integers in either version of run length encoding (specification, "Run Length Encoding").
type intRuns struct {
	s      *stream
	v2     bool
	signed bool

	buf     [maxRun]int64 // a run that was decoded, but not given whole
	at, end int
}

// read fills dst.
func (r *intRuns) read(dst []int64) error {
	for len(dst) > 0 {
		if r.at < r.end {
			n := copy(dst, r.buf[r.at:r.end])
			r.at += n
			dst = dst[n:]
			continue
		}
		direct := len(dst) >= maxRun
		to := r.buf[:]
		if direct {
			to = dst[:maxRun]
		}
		n, err := r.run(to)
		if err != nil {
			return err
		}
		if direct {
			dst = dst[n:]
		} else {
			r.at, r.end = 0, n
		}
	}
	return nil
}

func (r *intRuns) skip(n int64) error {
	for n > 0 {
		if r.at == r.end {
			k, err := r.run(r.buf[:])
			if err != nil {
				return err
			}
			r.at, r.end = 0, k
		}
		k := min(n, int64(r.end-r.at))
		r.at += int(k)
		n -= k
	}
	return nil
}

// sum passes n values over and adds them up; each must lie within 0 and most, and so must the sum.
func (r *intRuns) sum(n, most int64) (sum int64, err error) {
	for n > 0 {
		if r.at == r.end {
			k, err := r.run(r.buf[:])
			if err != nil {
				return 0, err
			}
			r.at, r.end = 0, k
		}
		k := int(min(n, int64(r.end-r.at)))
		for _, x := range r.buf[r.at : r.at+k] {
			if x < 0 || x > most-sum {
				return 0, fault.New(fault.Corrupt, "its %s stream has a length of %d", r.s.kind, x)
			}
			sum += x
		}
		r.at += k
		n -= int64(k)
	}
	return sum, nil
}

func (r *intRuns) seek(p *positions) error {
	if err := r.s.seek(p); err != nil {
		return err
	}
	r.at, r.end = 0, 0
	n := p.next()
	if n > maxRun {
		return r.s.outside(n)
	}
	return r.skip(int64(n))
}

// run decodes the next run into dst, which has room for maxRun values.
func (r *intRuns) run(dst []int64) (int, error) {
	head, err := r.s.byte()
	if err != nil {
		return 0, err
	}
	if !r.v2 {
		return r.runV1(dst, head)
	}
	switch head >> 6 {
	case 0:
		return r.shortRepeat(dst, head)
	case 1:
		return r.direct(dst, head)
	case 2:
		return r.patched(dst, head)
	}
	return r.delta(dst, head)
}

func (r *intRuns) value() (int64, error) {
	u, err := r.s.varint()
	if r.signed {
		return zigzag(u), err
	}
	return int64(u), err
}

func (r *intRuns) runV1(dst []int64, head byte) (int, error) {
	if head >= 128 {
		n := 256 - int(head)
		for i := range n {
			var err error
			if dst[i], err = r.value(); err != nil {
				return 0, err
			}
		}
		return n, nil
	}
	d, err := r.s.byte()
	if err != nil {
		return 0, err
	}
	base, err := r.value()
	if err != nil {
		return 0, err
	}
	n := int(head) + 3
	step := int64(int8(d))
	for i := range n {
		dst[i] = base
		base += step
	}
	return n, nil
}

func (r *intRuns) shortRepeat(dst []int64, head byte) (int, error) {
	b, err := r.s.take(int(head>>3&7) + 1)
	if err != nil {
		return 0, err
	}
	u := bigEndian(b)
	x := int64(u)
	if r.signed {
		x = zigzag(u)
	}
	n := int(head&7) + 3
	for i := range n {
		dst[i] = x
	}
	return n, nil
}

func bigEndian(b []byte) (u uint64) {
	for _, x := range b {
		u = u<<8 | uint64(x)
	}
	return u
}

// widths are the bits of a value by the five-bit code of a run's header.
var widths = [32]uint8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56, 64}

// closestWidth is the least of widths that has n bits.
func closestWidth(n int) int {
	for _, w := range widths {
		if int(w) >= n {
			return int(w)
		}
	}
	return 0
}

// runLength reads the second byte of a header and gives the number of values.
func (r *intRuns) runLength(head byte) (int, error) {
	b, err := r.s.byte()
	return (int(head&1)<<8 | int(b)) + 1, err
}

func (r *intRuns) direct(dst []int64, head byte) (int, error) {
	width := int(widths[head>>1&31])
	n, err := r.runLength(head)
	if err != nil {
		return 0, err
	}
	b, err := r.s.take((n*width + 7) / 8)
	if err != nil {
		return 0, err
	}
	unpack(dst[:n], b, width)
	if r.signed {
		for i, x := range dst[:n] {
			dst[i] = zigzag(uint64(x))
		}
	}
	return n, nil
}

func (r *intRuns) patched(dst []int64, head byte) (int, error) {
	width := int(widths[head>>1&31])
	n, err := r.runLength(head)
	if err != nil {
		return 0, err
	}
	b, err := r.s.take(2)
	if err != nil {
		return 0, err
	}
	baseBytes, patchWidth := int(b[0]>>5)+1, int(widths[b[0]&31])
	gapWidth, patches := int(b[1]>>5)+1, int(b[1]&31)
	if b, err = r.s.take(baseBytes); err != nil {
		return 0, err
	}
	u := bigEndian(b)
	sign := uint64(1) << (8*baseBytes - 1)
	base := int64(u &^ sign) // the most significant bit is the sign of a magnitude
	if u&sign != 0 {
		base = -base
	}
	if b, err = r.s.take((n*width + 7) / 8); err != nil {
		return 0, err
	}
	unpack(dst[:n], b, width)
	entryWidth := closestWidth(patchWidth + gapWidth)
	if entryWidth == 0 {
		return 0, fault.New(fault.Corrupt, "its %s stream has patches of %d bits", r.s.kind, patchWidth+gapWidth)
	}
	if b, err = r.s.take((patches*entryWidth + 7) / 8); err != nil {
		return 0, err
	}
	var entries [32]int64
	unpack(entries[:patches], b, entryWidth)
	at := 0
	for _, e := range entries[:patches] {
		u := uint64(e)
		at += int(u >> patchWidth & (1<<gapWidth - 1))
		patch := u & (1<<patchWidth - 1)
		if patch == 0 {
			continue // a gap longer than one entry can say
		}
		if at >= n {
			return 0, fault.New(fault.Corrupt, "its %s stream has a patch for value %d of a run of %d", r.s.kind, at, n)
		}
		dst[at] |= int64(patch << width)
	}
	for i := range dst[:n] {
		dst[i] += base
	}
	return n, nil
}

func (r *intRuns) delta(dst []int64, head byte) (int, error) {
	n, err := r.runLength(head)
	if err != nil {
		return 0, err
	}
	base, err := r.value()
	if err != nil {
		return 0, err
	}
	u, err := r.s.varint()
	if err != nil {
		return 0, err
	}
	step := zigzag(u)
	code := head >> 1 & 31
	dst[0] = base
	if code == 0 {
		for i := 1; i < n; i++ {
			base += step
			dst[i] = base
		}
		return n, nil
	}
	if n < 2 {
		return n, nil
	}
	base += step
	dst[1] = base
	width := int(widths[code])
	b, err := r.s.take(((n-2)*width + 7) / 8)
	if err != nil {
		return 0, err
	}
	unpack(dst[2:n], b, width)
	if step < 0 {
		for i, d := range dst[2:n] {
			base -= d
			dst[2+i] = base
		}
	} else {
		for i, d := range dst[2:n] {
			base += d
			dst[2+i] = base
		}
	}
	return n, nil
}

// unpack reads big-endian integers of width bits; b has all their bytes.
func unpack(dst []int64, b []byte, width int) {
	switch width {
	case 8:
		for i, x := range b[:len(dst)] {
			dst[i] = int64(x)
		}
		return
	case 16:
		for i := range dst {
			dst[i] = int64(binary.BigEndian.Uint16(b[2*i:]))
		}
		return
	case 32:
		for i := range dst {
			dst[i] = int64(binary.BigEndian.Uint32(b[4*i:]))
		}
		return
	case 64:
		for i := range dst {
			dst[i] = int64(binary.BigEndian.Uint64(b[8*i:]))
		}
		return
	}
	// A value of up to 56 bits stands within the eight bytes from the byte of its first bit on.
	fast := 0
	if len(b) >= 8 {
		fast = min(len(dst), ((len(b)-8)*8+7)/width+1)
	}
	drop := uint(64 - width)
	bit := 0
	for i := range dst[:fast] {
		dst[i] = int64(binary.BigEndian.Uint64(b[bit>>3:]) << (uint(bit) & 7) >> drop)
		bit += width
	}
	for i := fast; i < len(dst); i++ {
		var last [8]byte
		copy(last[:], b[bit>>3:])
		dst[i] = int64(binary.BigEndian.Uint64(last[:]) << (uint(bit) & 7) >> drop)
		bit += width
	}
}
