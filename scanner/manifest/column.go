package manifest

import (
	"bytes"
	"math"
)

// Longs is a column of integers, stored as one number, 32-bit or 64-bit ones.
type Longs struct {
	same int64
	i32  []int32
	i64  []int64
}

// At gives entry i.
func (c *Longs) At(i int) int64 {
	switch {
	case c.i32 != nil:
		return int64(c.i32[i])
	case c.i64 != nil:
		return c.i64[i]
	}
	return c.same
}

func (c *Longs) size() int64 { return int64(len(c.i32))*4 + int64(len(c.i64))*8 }

// packLongs chooses the smallest form for xs, of n entries; what lies beyond the end of xs is -1.
func packLongs(xs []int64, n int) Longs {
	if len(xs) == 0 {
		return Longs{same: -1}
	}
	for len(xs) < n {
		xs = append(xs, -1)
	}
	same, small := true, true
	for _, x := range xs {
		same = same && x == xs[0]
		small = small && x == int64(int32(x))
	}
	switch {
	case same:
		return Longs{same: xs[0]}
	case small:
		c := Longs{i32: make([]int32, n)}
		for i, x := range xs {
			c.i32[i] = int32(x)
		}
		return c
	}
	return Longs{i64: append(make([]int64, 0, n), xs...)}
}

// Bytes is a column of byte strings, some absent.
type Bytes struct {
	data    []byte
	width   int      // when positive, all present values have this length and entry i stands at i*width
	ends    []uint32 // otherwise entry i is data[ends[i]:ends[i+1]]
	present []uint64 // nil: all or, when there is no data at all, none
	none    bool
	codes   []uint8 // when set, entry i is value codes[i] of a dictionary that width or ends describe
}

// At gives entry i; ok is false when it is absent.
func (c *Bytes) At(i int) (b []byte, ok bool) {
	if c.none || c.present != nil && c.present[i>>6]&(1<<(uint(i)&63)) == 0 {
		return nil, false
	}
	if c.codes != nil {
		i = int(c.codes[i])
	}
	if c.width > 0 {
		return c.data[i*c.width : (i+1)*c.width : (i+1)*c.width], true
	}
	return c.data[c.ends[i]:c.ends[i+1]:c.ends[i+1]], true
}

// Any reports whether any entry is present.
func (c *Bytes) Any() bool { return !c.none }

func (c *Bytes) size() int64 {
	return int64(len(c.data)) + int64(len(c.ends))*4 + int64(len(c.present))*8 + int64(len(c.codes))
}

// bytesBuilder collects a Bytes column.
type bytesBuilder struct {
	data    []byte
	ends    []uint32
	present []uint64
	rows    int
	width   int // common length so far, -1 when lengths differ
	seen    bool
	absent  bool
	full    bool // something was left out beyond 4 GiB
}

func (b *bytesBuilder) pad(row int) {
	for b.rows < row {
		b.add(nil, false)
	}
}

func (b *bytesBuilder) add(p []byte, ok bool) {
	if b.ends == nil {
		b.ends = append(b.ends, 0)
	}
	if len(b.data)+len(p) > math.MaxUint32 {
		p, ok, b.full = nil, false, true
	}
	if b.rows>>6 >= len(b.present) {
		b.present = append(b.present, 0)
	}
	if ok {
		if !b.seen {
			b.seen, b.width = true, len(p)
		} else if len(p) != b.width {
			b.width = -1
		}
		b.present[b.rows>>6] |= 1 << (uint(b.rows) & 63)
		b.data = append(b.data, p...)
	} else {
		b.absent = true
	}
	b.ends = append(b.ends, uint32(len(b.data)))
	b.rows++
}

func (b *bytesBuilder) finish(n int) Bytes {
	if b.rows == 0 {
		return Bytes{none: true}
	}
	b.pad(n)
	c := Bytes{none: true}
	for _, w := range b.present {
		c.none = c.none && w == 0
	}
	if c.none {
		return c
	}
	if b.absent {
		c.present = append([]uint64(nil), b.present...)
	}
	if b.dictionary(&c, n) {
		return c
	}
	if b.width > 0 && b.width <= 16 {
		c.width = b.width
		if !b.absent {
			c.data = bytes.Clone(b.data)
			return c
		}
		c.data = make([]byte, n*b.width)
		for i := range n {
			copy(c.data[i*b.width:], b.data[b.ends[i]:b.ends[i+1]])
		}
		return c
	}
	c.data, c.ends = bytes.Clone(b.data), append([]uint32(nil), b.ends...)
	return c
}

// dictionary stores few distinct values once, if there are few: bounds of low-cardinality columns repeat from file to file.
func (b *bytesBuilder) dictionary(c *Bytes, n int) bool {
	const sample, most = 256, 256
	codes := make([]uint8, 0, n)
	byValue := map[string]int{}
	d := bytesBuilder{}
	for i := range n {
		if b.present[i>>6]&(1<<(uint(i)&63)) == 0 {
			codes = append(codes, 0)
			continue
		}
		v := b.data[b.ends[i]:b.ends[i+1]]
		k, ok := byValue[string(v)]
		if !ok {
			if k = len(byValue); k == most || i < sample && k > sample/4 {
				return false
			}
			byValue[string(v)] = k
			d.add(v, true)
		}
		codes = append(codes, uint8(k))
	}
	c.codes = codes
	if d.width > 0 {
		c.width, c.data = d.width, bytes.Clone(d.data)
	} else {
		c.data, c.ends = bytes.Clone(d.data), append([]uint32(nil), d.ends...)
	}
	return true
}

// Lists is a column of lists of integers.
type Lists struct {
	ends  []uint32 // nil: every entry is all of items
	items []int64
}

// At gives entry i; nil when it is absent or empty.
func (c *Lists) At(i int) []int64 {
	if c.ends == nil {
		return c.items
	}
	return c.items[c.ends[i]:c.ends[i+1]:c.ends[i+1]]
}

func (c *Lists) size() int64 { return int64(len(c.ends))*4 + int64(len(c.items))*8 }

func packLists(ends []uint32, items []int64) Lists {
	n := len(ends) - 1
	if n < 1 || len(items) == 0 {
		return Lists{}
	}
	width := int(ends[1])
	for i := range n {
		if int(ends[i+1]-ends[i]) != width {
			return Lists{ends: append([]uint32(nil), ends...), items: append([]int64(nil), items...)}
		}
		for k := range width {
			if items[int(ends[i])+k] != items[k] {
				return Lists{ends: append([]uint32(nil), ends...), items: append([]int64(nil), items...)}
			}
		}
	}
	return Lists{items: append([]int64(nil), items[:width]...)}
}
