package deletes

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"

	"github.com/skua-db/skua/fault"
)

const vectorMagic = 0x6439D3D1

// ParseVector reads a deletion-vector-v1 blob (Puffin spec). cardinality is the entry's record_count, negative when it is
// not to be checked. Every contradiction is fault.Corrupt; nothing larger than the blob is allocated but for
// containers that the blob itself describes.
func ParseVector(blob []byte, cardinality int64) (*Bitmap, error) {
	if len(blob) < 20 {
		return nil, corrupt("a deletion vector has %d bytes, fewer than its frame", len(blob))
	}
	if n := binary.BigEndian.Uint32(blob); int64(n) != int64(len(blob))-8 {
		return nil, corrupt("a deletion vector says it has %d bytes, but its entry says %d", n, len(blob)-8)
	}
	body := blob[4 : len(blob)-4]
	if m := binary.LittleEndian.Uint32(body); m != vectorMagic {
		return nil, corrupt("a deletion vector has magic %08x", m)
	}
	if want, got := binary.BigEndian.Uint32(blob[len(blob)-4:]), crc32.ChecksumIEEE(body); want != got {
		return nil, corrupt("a deletion vector has checksum %08x, but says %08x", got, want)
	}
	r := roaringReader{b: body[4:]}
	b, err := r.bitmap64()
	if err != nil {
		return nil, err
	}
	if cardinality >= 0 && b.count != cardinality {
		return nil, corrupt("a deletion vector holds %d positions, but its entry says %d", b.count, cardinality)
	}
	return b, nil
}

func corrupt(format string, args ...any) error { return fault.New(fault.Corrupt, format, args...) }

// roaringReader reads the portable Roaring format.
type roaringReader struct{ b []byte }

func (r *roaringReader) take(n int) ([]byte, error) {
	if n > len(r.b) {
		return nil, corrupt("a deletion vector ends early")
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p, nil
}

func (r *roaringReader) u32() (uint32, error) {
	p, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(p), nil
}

func (r *roaringReader) bitmap64() (*Bitmap, error) {
	p, err := r.take(8)
	if err != nil {
		return nil, err
	}
	count := binary.LittleEndian.Uint64(p)
	if count > uint64(len(r.b))/12 { // key, cookie and count of a bitmap
		return nil, corrupt("a deletion vector says it has %d bitmaps in %d bytes", count, len(r.b))
	}
	b := &Bitmap{}
	last := int64(-1)
	for range count {
		key, err := r.u32()
		if err != nil {
			return nil, err
		}
		if int64(key) <= last || key > 1<<31-2 {
			return nil, corrupt("a deletion vector has key %d after %d", key, last)
		}
		last = int64(key)
		if err := r.bitmap32(uint64(key)<<16, b); err != nil {
			return nil, err
		}
	}
	if len(r.b) > 0 {
		return nil, corrupt("a deletion vector has %d bytes after its last bitmap", len(r.b))
	}
	return b, nil
}

const (
	cookieNoRuns    = 12346
	cookieRuns      = 12347
	offsetThreshold = 4
)

// bitmap32 reads a 32-bit bitmap whose containers follow base, a number of 65,536 positions.
func (r *roaringReader) bitmap32(base uint64, b *Bitmap) error {
	cookie, err := r.u32()
	if err != nil {
		return err
	}
	var n int
	var runs []byte
	switch {
	case cookie == cookieNoRuns:
		c, err := r.u32()
		if err != nil {
			return err
		}
		if c > 1<<16 {
			return corrupt("a bitmap of a deletion vector says it has %d containers", c)
		}
		n = int(c)
	case cookie&0xffff == cookieRuns:
		n = int(cookie>>16) + 1
		if runs, err = r.take((n + 7) / 8); err != nil {
			return err
		}
	default:
		return corrupt("a bitmap of a deletion vector has cookie %d", cookie)
	}
	head, err := r.take(4 * n)
	if err != nil {
		return err
	}
	if runs == nil || n >= offsetThreshold {
		if _, err := r.take(4 * n); err != nil { // offsets: containers are read in order
			return err
		}
	}
	last := -1
	for i := range n {
		key, size := int(binary.LittleEndian.Uint16(head[4*i:])), int(binary.LittleEndian.Uint16(head[4*i+2:]))+1
		if key <= last {
			return corrupt("a bitmap of a deletion vector has container %d after %d", key, last)
		}
		last = key
		var c container
		switch {
		case runs != nil && runs[i/8]&(1<<(i%8)) != 0:
			c, err = r.runContainer()
		case size > arrayMax:
			c, err = r.bitContainer()
		default:
			c, err = r.arrayContainer(size)
		}
		if err != nil {
			return err
		}
		if got := c.count(); got != int64(size) {
			return corrupt("a container of a deletion vector holds %d positions, but says %d", got, size)
		}
		b.push(base|uint64(key), c)
	}
	return nil
}

func (r *roaringReader) arrayContainer(n int) (container, error) {
	p, err := r.take(2 * n)
	if err != nil {
		return container{}, err
	}
	c := container{array: make([]uint16, n)}
	for i := range n {
		c.array[i] = binary.LittleEndian.Uint16(p[2*i:])
		if i > 0 && c.array[i] <= c.array[i-1] {
			return c, corrupt("a container of a deletion vector is not in order")
		}
	}
	return c, nil
}

func (r *roaringReader) bitContainer() (container, error) {
	p, err := r.take(8 * containerWords)
	if err != nil {
		return container{}, err
	}
	c := container{words: make([]uint64, containerWords)}
	for i := range c.words {
		c.words[i] = binary.LittleEndian.Uint64(p[8*i:])
	}
	return c, nil
}

func (r *roaringReader) runContainer() (container, error) {
	p, err := r.take(2)
	if err != nil {
		return container{}, err
	}
	n := int(binary.LittleEndian.Uint16(p))
	if p, err = r.take(4 * n); err != nil {
		return container{}, err
	}
	c := container{words: make([]uint64, containerWords)}
	next := 0
	for i := range n {
		start, length := int(binary.LittleEndian.Uint16(p[4*i:])), int(binary.LittleEndian.Uint16(p[4*i+2:]))
		end := start + length // inclusive
		if start < next || end > 1<<16-1 {
			return c, corrupt("a run of a deletion vector is out of order or range")
		}
		setRun(c.words, start, end)
		next = end + 1
	}
	if n := c.count(); n <= arrayMax {
		low := make([]uint16, 0, n)
		for i, w := range c.words {
			for ; w != 0; w &= w - 1 {
				low = append(low, uint16(i<<6+bits.TrailingZeros64(w)))
			}
		}
		c = container{array: low}
	}
	return c, nil
}

func setRun(words []uint64, start, end int) {
	for w := start >> 6; w <= end>>6; w++ {
		mask := ^uint64(0)
		if w == start>>6 {
			mask &= ^uint64(0) << (uint(start) & 63)
		}
		if w == end>>6 {
			mask &= ^uint64(0) >> (63 - uint(end)&63)
		}
		words[w] |= mask
	}
}
