package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Unsplit decodes BYTE_STREAM_SPLIT: src holds width streams of n bytes, stream b the b-th byte of every value. It writes the
// values from up to from+len(dst)/width, each of width bytes, to dst. len(src) is n*width.
func Unsplit(dst, src []byte, n, from, width int) {
	count := len(dst) / width
	i := 0
	switch width {
	case 8:
		for ; i+8 <= count; i += 8 {
			var x [8]uint64
			for b := range x {
				x[b] = binary.LittleEndian.Uint64(src[b*n+from+i:])
			}
			transpose8(&x)
			d := dst[i*8 : i*8+64]
			for b, v := range x {
				binary.LittleEndian.PutUint64(d[b*8:], v)
			}
		}
	case 4:
		for ; i+8 <= count; i += 8 {
			a := binary.LittleEndian.Uint64(src[from+i:])
			b := binary.LittleEndian.Uint64(src[n+from+i:])
			c := binary.LittleEndian.Uint64(src[2*n+from+i:])
			e := binary.LittleEndian.Uint64(src[3*n+from+i:])
			d := dst[i*4 : i*4+32]
			unsplit4(d[:16], uint32(a), uint32(b), uint32(c), uint32(e))
			unsplit4(d[16:], uint32(a>>32), uint32(b>>32), uint32(c>>32), uint32(e>>32))
		}
	}
	for b := range width {
		s := src[b*n+from : b*n+from+count]
		for j := i; j < count; j++ {
			dst[j*width+b] = s[j]
		}
	}
}

// unsplit4 interleaves four bytes of each of four streams.
func unsplit4(d []byte, a, b, c, e uint32) {
	x, y := spread(a)|spread(b)<<8, spread(c)|spread(e)<<8
	// x holds a0 b0 a1 b1 a2 b2 a3 b3, y the same of c and e; now 16-bit halves are interleaved.
	lo := spread16(uint32(x)) | spread16(uint32(y))<<16
	hi := spread16(uint32(x>>32)) | spread16(uint32(y>>32))<<16
	binary.LittleEndian.PutUint64(d, lo)
	binary.LittleEndian.PutUint64(d[8:], hi)
}

// spread puts a zero byte after each byte of v.
func spread(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	return (x | x<<8) & 0x00ff00ff00ff00ff
}

// spread16 puts two zero bytes after each 16 bits of v.
func spread16(v uint32) uint64 {
	x := uint64(v)
	return (x | x<<16) & 0x0000ffff0000ffff
}

// transpose8 transposes an 8x8 matrix of bytes by swapping ever smaller blocks (Warren, Hacker's Delight, section 7-3).
func transpose8(x *[8]uint64) {
	for i := range 4 {
		a, b := x[i], x[i+4]
		x[i] = a&0x00000000ffffffff | b<<32
		x[i+4] = a>>32 | b&0xffffffff00000000
	}
	for _, i := range [4]int{0, 1, 4, 5} {
		a, b := x[i], x[i+2]
		x[i] = a&0x0000ffff0000ffff | b<<16&0xffff0000ffff0000
		x[i+2] = a>>16&0x0000ffff0000ffff | b&0xffff0000ffff0000
	}
	for _, i := range [4]int{0, 2, 4, 6} {
		a, b := x[i], x[i+1]
		x[i] = a&0x00ff00ff00ff00ff | b<<8&0xff00ff00ff00ff00
		x[i+1] = a>>8&0x00ff00ff00ff00ff | b&0xff00ff00ff00ff00
	}
}

// boolBytes holds for each byte its eight bits as eight bytes.
var boolBytes = func() (t [256][8]bool) {
	for v := range t {
		for i := range 8 {
			t[v][i] = v>>i&1 == 1
		}
	}
	return t
}()

// Bools decodes PLAIN booleans: len(dst) bits of src from bit from on. src holds them all.
func Bools(dst []bool, src []byte, from int) {
	i := 0
	for ; i < len(dst) && from&7 != 0; i++ {
		dst[i] = src[from>>3]>>(uint(from)&7)&1 == 1
		from++
	}
	p := src[from>>3:]
	for ; i+8 <= len(dst); i += 8 {
		copy(dst[i:i+8], boolBytes[p[0]][:])
		p = p[1:]
	}
	for j := 0; i < len(dst); i++ {
		dst[i] = p[0]>>j&1 == 1
		j++
	}
}

// LevelWidth is the bit width of levels up to max.
func LevelWidth(max int) uint { return uint(bits.Len(uint(max))) }

// BitPackedLevels decodes the deprecated BIT_PACKED encoding: values of width bits packed from the most significant bit on.
// It reports whether src held all of dst and no level was above limit.
func BitPackedLevels(dst []byte, src []byte, width uint, limit int) bool {
	if width > 8 || (len(dst)*int(width)+7)/8 > len(src) {
		return false
	}
	bit := 0
	for i := range dst {
		v := 0
		for range width {
			v = v<<1 | int(src[bit>>3]>>(7-bit&7)&1)
			bit++
		}
		if v > limit {
			return false
		}
		dst[i] = byte(v)
	}
	return true
}
