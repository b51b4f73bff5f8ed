// Package deletes knows which rows of a data file are dead: position delete files, deletion vectors and equality
// deletes, and which of them apply to which data file (spec: Scan Planning; Row-level Deletes).
//
// It opens no file: the scanner reads delete files and hands their rows over. Bitmaps, key sets and an Index are immutable
// once built and may be shared; builders belong to one goroutine.
package deletes

import (
	"math/bits"
	"slices"
	"sort"
)

// Bitmap is a set of row positions in one data file, in containers of 65,536 positions.
type Bitmap struct {
	keys       []uint64 // position >> 16, ascending
	containers []container
	count      int64
}

// container holds the low 16 bits: up to arrayMax as a sorted array, more as 1,024 words.
type container struct {
	array []uint16
	words []uint64
}

const (
	arrayMax       = 4096
	containerWords = 1024
)

// Count is the number of positions in the set.
func (b *Bitmap) Count() int64 { return b.count }

// Bytes is about how much memory the set takes.
func (b *Bitmap) Bytes() int64 {
	n := int64(len(b.keys)) * 56
	for _, c := range b.containers {
		n += int64(len(c.array))*2 + int64(len(c.words))*8
	}
	return n + 64
}

// Contains reports whether pos is in the set.
func (b *Bitmap) Contains(pos int64) bool {
	i := b.find(uint64(pos) >> 16)
	if i == len(b.keys) || b.keys[i] != uint64(pos)>>16 {
		return false
	}
	c, low := &b.containers[i], uint16(pos)
	if c.words != nil {
		return c.words[low>>6]&(1<<(low&63)) != 0
	}
	k := searchLow(c.array, low)
	return k < len(c.array) && c.array[k] == low
}

func (b *Bitmap) find(key uint64) int {
	return sort.Search(len(b.keys), func(i int) bool { return b.keys[i] >= key })
}

func searchLow(a []uint16, low uint16) int {
	lo, hi := 0, len(a)
	for lo < hi {
		if m := (lo + hi) / 2; a[m] < low {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// Mask sets in mask, which has a bit for each of the n rows from position first on, the bits of rows in the set. It
// reports whether it set any.
func (b *Bitmap) Mask(first int64, n int, mask []uint64) bool {
	any := false
	for i := b.find(uint64(first) >> 16); i < len(b.keys); i++ {
		base := int64(b.keys[i] << 16)
		if base >= first+int64(n) {
			break
		}
		c := &b.containers[i]
		lo, hi := max(first-base, 0), min(first+int64(n)-base, 1<<16) // low bits that count
		shift := base - first                                         // low + shift is the row
		if c.words == nil {
			for k := searchLow(c.array, uint16(lo)); k < len(c.array) && int64(c.array[k]) < hi; k++ {
				row := int64(c.array[k]) + shift
				mask[row>>6] |= 1 << (uint(row) & 63)
				any = true
			}
			continue
		}
		for w := lo >> 6; w<<6 < hi; w++ {
			word := c.words[w]
			if w == lo>>6 {
				word &= ^uint64(0) << (uint(lo) & 63)
			}
			if end := hi - w<<6; end < 64 {
				word &= 1<<uint(end) - 1
			}
			if word == 0 {
				continue
			}
			any = true
			if at := w<<6 + shift; at < 0 {
				mask[0] |= word >> uint(-at)
			} else {
				mask[at>>6] |= word << (uint(at) & 63)
				if high := word >> (64 - uint(at)&63); at&63 != 0 && high != 0 {
					mask[at>>6+1] |= high
				}
			}
		}
	}
	return any
}

// Drop keeps the rows of sel (nil: 0..n-1) whose bit in mask is clear, writing into dst.
func Drop(mask []uint64, n int, sel, dst []uint16) []uint16 {
	if cap(dst) < n {
		dst = make([]uint16, n)
	}
	dst = dst[:n]
	k := 0
	if sel != nil {
		for _, r := range sel {
			dst[k] = r
			if mask[r>>6]&(1<<(r&63)) == 0 {
				k++
			}
		}
		return dst[:k]
	}
	for w := 0; w<<6 < n; w++ {
		word := ^mask[w]
		if end := n - w<<6; end < 64 {
			word &= 1<<uint(end) - 1
		} else if word == ^uint64(0) {
			for i := range dst[k : k+64] {
				dst[k+i] = uint16(w<<6 + i)
			}
			k += 64
			continue
		}
		for ; word != 0; word &= word - 1 {
			dst[k] = uint16(w<<6 + bits.TrailingZeros64(word))
			k++
		}
	}
	return dst[:k]
}

// FromPositions makes a set of positions, which must not be negative, in any order and with repeats. It may reorder
// positions.
func FromPositions(positions []int64) *Bitmap {
	if !slices.IsSorted(positions) {
		slices.Sort(positions)
	}
	b := &Bitmap{}
	var low []uint16
	for i := 0; i < len(positions); {
		key := uint64(positions[i]) >> 16
		low = low[:0]
		for ; i < len(positions) && uint64(positions[i])>>16 == key; i++ {
			if l := uint16(positions[i]); len(low) == 0 || low[len(low)-1] != l {
				low = append(low, l)
			}
		}
		b.push(key, packLow(low))
	}
	return b
}

// packLow makes a container of ascending distinct values, which it copies.
func packLow(low []uint16) container {
	if len(low) <= arrayMax {
		return container{array: append([]uint16(nil), low...)}
	}
	c := container{words: make([]uint64, containerWords)}
	for _, l := range low {
		c.words[l>>6] |= 1 << (l & 63)
	}
	return c
}

func (c *container) count() int64 {
	if c.words == nil {
		return int64(len(c.array))
	}
	n := 0
	for _, w := range c.words {
		n += bits.OnesCount64(w)
	}
	return int64(n)
}

// push appends a container whose key is above all others.
func (b *Bitmap) push(key uint64, c container) {
	b.keys = append(b.keys, key)
	b.containers = append(b.containers, c)
	b.count += c.count()
}

// Union makes the set of all positions in any of sets.
func Union(sets []*Bitmap) *Bitmap {
	if len(sets) == 1 {
		return sets[0]
	}
	byKey := map[uint64][]*container{}
	var keys []uint64
	for _, s := range sets {
		for i, k := range s.keys {
			if byKey[k] == nil {
				keys = append(keys, k)
			}
			byKey[k] = append(byKey[k], &s.containers[i])
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	out := &Bitmap{}
	for _, k := range keys {
		cs := byKey[k]
		if len(cs) == 1 {
			out.push(k, *cs[0])
			continue
		}
		words := make([]uint64, containerWords)
		for _, c := range cs {
			for i, w := range c.words {
				words[i] |= w
			}
			for _, l := range c.array {
				words[l>>6] |= 1 << (l & 63)
			}
		}
		c := container{words: words}
		if n := c.count(); n <= arrayMax {
			low := make([]uint16, 0, n)
			for i, w := range words {
				for ; w != 0; w &= w - 1 {
					low = append(low, uint16(i<<6+bits.TrailingZeros64(w)))
				}
			}
			c = container{array: low}
		}
		out.push(k, c)
	}
	return out
}

// Positions lists the set, for tests and small sets.
func (b *Bitmap) Positions() []int64 {
	var out []int64
	for i, k := range b.keys {
		base := int64(k << 16)
		for _, l := range b.containers[i].array {
			out = append(out, base+int64(l))
		}
		for j, w := range b.containers[i].words {
			for ; w != 0; w &= w - 1 {
				out = append(out, base+int64(j<<6+bits.TrailingZeros64(w)))
			}
		}
	}
	return out
}
