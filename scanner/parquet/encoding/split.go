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
		i = unsplit8(dst, src[from:], n, count)
	case 4:
		i = unsplit4(dst, src[from:], n, count)
	}
	for b := range width {
		s := src[b*n+from : b*n+from+count]
		for j := i; j < count; j++ {
			dst[j*width+b] = s[j]
		}
	}
}

// Masks of the lower half of each 64, 32 and 16 bits.
const (
	m32 = 0x00000000ffffffff
	m16 = 0x0000ffff0000ffff
	m8  = 0x00ff00ff00ff00ff
)

// unsplit4 transposes blocks of four bytes of eight values, in registers, and returns how many values it wrote, a multiple of 8.
func unsplit4(dst, src []byte, n, count int) int {
	le := binary.LittleEndian
	s0, s1, s2, s3 := src[:count], src[n:n+count], src[2*n:2*n+count], src[3*n:3*n+count]
	i := 0
	for ; i+8 <= count; i += 8 {
		a, b, c, e := le.Uint64(s0[i:]), le.Uint64(s1[i:]), le.Uint64(s2[i:]), le.Uint64(s3[i:])
		// Bytes of even and odd values side by side, then their 16-bit halves: v0 holds values 0 and 4, v1 1 and 5, and so on.
		t0, t1 := a&m8|b&m8<<8, a>>8&m8|b&^m8
		u0, u1 := c&m8|e&m8<<8, c>>8&m8|e&^m8
		v0, v2 := t0&m16|u0&m16<<16, t0>>16&m16|u0&^m16
		v1, v3 := t1&m16|u1&m16<<16, t1>>16&m16|u1&^m16
		d := (*[32]byte)(dst[i*4:])
		le.PutUint64(d[0:], v0&m32|v1<<32)
		le.PutUint64(d[8:], v2&m32|v3<<32)
		le.PutUint64(d[16:], v0>>32|v1&^m32)
		le.PutUint64(d[24:], v2>>32|v3&^m32)
	}
	return i
}

// unsplit8 transposes 8x8 matrices of bytes by swapping ever smaller blocks (Warren, Hacker's Delight, section 7-3), in registers. It
// returns how many values it wrote, a multiple of 8.
func unsplit8(dst, src []byte, n, count int) int {
	le := binary.LittleEndian
	s0, s1, s2, s3 := src[:count], src[n:n+count], src[2*n:2*n+count], src[3*n:3*n+count]
	s4, s5, s6, s7 := src[4*n:4*n+count], src[5*n:5*n+count], src[6*n:6*n+count], src[7*n:7*n+count]
	i := 0
	for ; i+8 <= count; i += 8 {
		a0, a1, a2, a3 := le.Uint64(s0[i:]), le.Uint64(s1[i:]), le.Uint64(s2[i:]), le.Uint64(s3[i:])
		a4, a5, a6, a7 := le.Uint64(s4[i:]), le.Uint64(s5[i:]), le.Uint64(s6[i:]), le.Uint64(s7[i:])
		// Halves: b0..b3 hold values 0-3, b4..b7 values 4-7.
		b0, b4 := a0&m32|a4<<32, a0>>32|a4&^m32
		b1, b5 := a1&m32|a5<<32, a1>>32|a5&^m32
		b2, b6 := a2&m32|a6<<32, a2>>32|a6&^m32
		b3, b7 := a3&m32|a7<<32, a3>>32|a7&^m32
		a0, a2 = b0&m16|b2&m16<<16, b0>>16&m16|b2&^m16
		a1, a3 = b1&m16|b3&m16<<16, b1>>16&m16|b3&^m16
		a4, a6 = b4&m16|b6&m16<<16, b4>>16&m16|b6&^m16
		a5, a7 = b5&m16|b7&m16<<16, b5>>16&m16|b7&^m16
		d := (*[64]byte)(dst[i*8:])
		le.PutUint64(d[0:], a0&m8|a1&m8<<8)
		le.PutUint64(d[8:], a0>>8&m8|a1&^m8)
		le.PutUint64(d[16:], a2&m8|a3&m8<<8)
		le.PutUint64(d[24:], a2>>8&m8|a3&^m8)
		le.PutUint64(d[32:], a4&m8|a5&m8<<8)
		le.PutUint64(d[40:], a4>>8&m8|a5&^m8)
		le.PutUint64(d[48:], a6&m8|a7&m8<<8)
		le.PutUint64(d[56:], a6>>8&m8|a7&^m8)
	}
	return i
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
