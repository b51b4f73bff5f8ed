// Package encoding decodes the value and level encodings of Parquet pages (apache/parquet-format Encodings.md) from byte
// slices into slices.
//
// It knows no pages, files or SQL types: errors say what is wrong with the bytes and the caller adds where they lie.
// Decoders belong to one goroutine. No input makes them panic, read past their slice or allocate beyond what the caller asked for.
package encoding

import (
	"encoding/binary"
	"unsafe"
)

//go:generate go run generate.go

// Unpack unpacks len(dst) values of width bits (0 to 32), packed from the least significant bit on, from the start of src.
// len(dst) is a multiple of 8 and src holds at least len(dst)/8*width bytes.
func Unpack(dst []int32, src []byte, width uint) {
	switch width {
	case 0:
		clear(dst)
		return
	case 32:
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 4*len(dst)), src)
		return
	}
	n := unpackWidth(dst, src, width)
	if n == len(dst) {
		return
	}
	// The last groups are unpacked from a copy with room for the loads of whole words.
	var tail [2 * 64]byte
	for n < len(dst) {
		at := n / 8 * int(width)
		copy(tail[:], src[at:min(at+int(width), len(src))])
		unpackWidth(dst[n:n+8], tail[:], width)
		n += 8
	}
}

// unpack64 unpacks len(dst) values of up to 64 bits from src, which holds them all.
func unpack64(dst []int64, src []byte, width uint) {
	if width == 0 {
		clear(dst)
		return
	}
	mask := ^uint64(0) >> (64 - width)
	bit := uint(0)
	i := 0
	if width <= 56 {
		for ; i < len(dst) && int(bit>>3)+8 <= len(src); i++ {
			dst[i] = int64(binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask)
			bit += width
		}
	}
	var pad [24]byte
	for ; i < len(dst); i++ {
		at := int(bit >> 3)
		p := src[at:]
		if len(p) < 16 {
			clear(pad[:])
			copy(pad[:16], p)
			p = pad[:]
		}
		x := binary.LittleEndian.Uint64(p) >> (bit & 7)
		if bit&7 != 0 {
			x |= binary.LittleEndian.Uint64(p[8:]) << (64 - bit&7)
		}
		dst[i] = int64(x & mask)
		bit += width
	}
}
