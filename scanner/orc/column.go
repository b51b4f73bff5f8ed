package orc

import (
	"math/bits"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// column makes one wanted value (or part of one) out of the file's columns. It is a tree like the wanted type.
//
// In ORC a column has values only where all its parents have one: a batch of n slots comes with a bitmap of the slots that the
// parent has, and presence narrows it to those that the column itself has.
type column struct {
	want vector.Type
	kind columnKind
	node *Node
	acc  *account
	kids []*column

	present *bitRuns // nil: whatever the parent has is there
	leaf    leaf
	lengths *intRuns // of a list or map
	union   *union

	constant *vector.Vector // of a column that the file does not have
	out      vector.Vector
	bits     []uint64 // the present stream's
	own      []uint64 // the same, spread over the parent's slots
	sizes    []int64
	offsets  []int32
	codes    []int32
	masked   vector.Vector
}

type columnKind uint8

const (
	constantColumn columnKind = iota
	leafColumn
	structColumn
	listColumn
	unionColumn
)

// leaf decodes the values of a primitive column. Values are decoded densely first and then spread over the slots.
type leaf interface {
	// begin starts a batch.
	begin()
	// read decodes values [at, at+n) of the batch and keeps those before.
	read(at, n int) error
	// finish spreads m values over n slots and puts them into the column's vector.
	finish(n, m int, valid []uint64) error
	skip(n int64) error
	seek(p *positions) error
	// width is the number of positions that seek consumes.
	width() int
	// places are the streams that seek moves; at is the number of the first position.
	places(at int) []place
}

const (
	// maxElements limits the elements of all lists of a batch.
	maxElements = 1 << 26
	// firstValues is how many values are decoded before it is believed that there are as many as lengths say.
	firstValues = 1 << 16
)

// presence gives the slots that hold a value, nil for all, and their number. stored of the n slots exist in the parent.
func (c *column) presence(n int, parent []uint64, stored int) (valid []uint64, m int, err error) {
	if c.present == nil || stored == 0 {
		return parent, stored, nil
	}
	if err := grow(c.acc, &c.bits, (stored+63)/64, 0, 8); err != nil {
		return nil, 0, err
	}
	set, err := c.present.read(c.bits, stored)
	if err != nil {
		return nil, 0, err
	}
	if set == stored {
		return parent, stored, nil
	}
	if parent == nil {
		return c.bits, set, nil
	}
	if err := grow(c.acc, &c.own, (n+63)/64, 0, 8); err != nil {
		return nil, 0, err
	}
	k := 0
	for w := range c.own {
		word := uint64(0)
		for p := parent[w]; p != 0; p &= p - 1 {
			word |= c.bits[k>>6] >> (uint(k) & 63) & 1 << uint(bits.TrailingZeros64(p))
			k++
		}
		c.own[w] = word
	}
	return c.own, set, nil
}

// read decodes n slots, of which those in parent (nil: all), stored in number, exist.
func (c *column) read(n int, parent []uint64, stored int) error {
	if c.kind == constantColumn {
		return nil
	}
	valid, m, err := c.presence(n, parent, stored)
	if err != nil {
		return err
	}
	kids := c.out.Children[:0]
	c.out = vector.Vector{Type: c.want, Valid: valid}
	switch c.kind {
	case leafColumn:
		c.leaf.begin()
		for done := 0; done < m; {
			k := min(m-done, max(done, firstValues))
			if err := c.leaf.read(done, k); err != nil {
				return err
			}
			done += k
		}
		return c.leaf.finish(n, m, valid)
	case structColumn:
		for _, k := range c.kids {
			if err := k.read(n, valid, m); err != nil {
				return k.wrap(err)
			}
		}
		for _, k := range c.kids {
			v, err := k.within(n, valid)
			if err != nil {
				return err
			}
			kids = append(kids, v)
		}
		c.out.Children = kids
		return nil
	case unionColumn:
		return c.readUnion(n, m, valid, kids)
	}
	total, err := c.readOffsets(n, m, valid)
	if err != nil {
		return err
	}
	c.out.Offsets = c.offsets
	for _, k := range c.kids {
		if err := k.read(total, nil, total); err != nil {
			return k.wrap(err)
		}
		kids = append(kids, k.vector())
	}
	c.out.Children = kids
	return nil
}

func (c *column) readOffsets(n, m int, valid []uint64) (total int, err error) {
	for done := 0; done < m; {
		k := min(m-done, max(done, firstValues))
		if err := grow(c.acc, &c.sizes, done+k, done, 8); err != nil {
			return 0, err
		}
		if err := c.lengths.read(c.sizes[done : done+k]); err != nil {
			return 0, err
		}
		done += k
	}
	if err := grow(c.acc, &c.offsets, n+1, 0, 4); err != nil {
		return 0, err
	}
	at, k := int64(0), 0
	for i := range n {
		c.offsets[i] = int32(at)
		if valid != nil && valid[i>>6]>>(uint(i)&63)&1 == 0 {
			continue
		}
		size := c.sizes[k]
		k++
		if size < 0 {
			return 0, fault.New(fault.Corrupt, "a length of %d elements", size)
		}
		if size > maxElements-at {
			return 0, fault.New(fault.Exhausted, "a batch of %d rows with more than %d elements", n, maxElements)
		}
		at += size
	}
	c.offsets[n] = int32(at)
	return int(at), nil
}

// vector is what the last read made.
func (c *column) vector() *vector.Vector {
	if c.kind == constantColumn {
		return c.constant
	}
	return &c.out
}

// within gives the column as a field of a struct that is null outside valid: a field that the file lacks is its default, but null
// where its struct is.
func (c *column) within(n int, valid []uint64) (*vector.Vector, error) {
	if c.kind != constantColumn || valid == nil || c.constant.IsNull(0) {
		return c.vector(), nil
	}
	if err := grow(c.acc, &c.codes, n, 0, 4); err != nil {
		return nil, err
	}
	clear(c.codes)
	dict := *c.constant
	dict.Form = vector.Flat
	c.masked = vector.Vector{Type: c.want, Form: vector.Dictionary, Codes: c.codes, Dict: &dict, Valid: valid}
	return &c.masked, nil
}

// skip passes over slots that exist in the parent.
func (c *column) skip(stored int64) error {
	if c.kind == constantColumn || stored == 0 {
		return nil
	}
	if c.present != nil {
		var err error
		if stored, err = c.present.skip(stored); err != nil {
			return err
		}
	}
	switch c.kind {
	case leafColumn:
		return c.leaf.skip(stored)
	case unionColumn:
		return c.skipUnion(stored)
	}
	if c.kind == listColumn {
		var err error
		if stored, err = c.lengths.sum(stored, maxRows); err != nil {
			return err
		}
	}
	for _, k := range c.kids {
		if err := k.skip(stored); err != nil {
			return k.wrap(err)
		}
	}
	return nil
}

// width is the number of positions of an entry of the column's row index.
func (c *column) width() int {
	n := 0
	if c.present != nil {
		n += c.present.runs.s.width() + 2
	}
	switch c.kind {
	case leafColumn:
		n += c.leaf.width()
	case listColumn:
		n += c.lengths.width()
	case unionColumn:
		n += c.union.tags.s.width() + 1
	}
	return n
}

// seek moves the column and those below to the start of row group g. indexes has the row index of each column.
func (c *column) seek(indexes map[int]*rowIndex, g int) error {
	if c.kind == constantColumn {
		return nil
	}
	p := positions{indexes[c.node.Column].groups[g].positions}
	if c.present != nil {
		if err := c.present.seek(&p); err != nil {
			return err
		}
	}
	switch c.kind {
	case leafColumn:
		if err := c.leaf.seek(&p); err != nil {
			return err
		}
	case listColumn:
		if err := c.lengths.seek(&p); err != nil {
			return err
		}
	case unionColumn:
		if err := c.union.tags.seek(&p); err != nil {
			return err
		}
	}
	for _, k := range c.kids {
		if err := k.seek(indexes, g); err != nil {
			return k.wrap(err)
		}
	}
	return nil
}

// walk calls f for the column and those below, without constants, until f gives false.
func (c *column) walk(f func(*column) bool) bool {
	if c.kind == constantColumn {
		return true
	}
	if !f(c) {
		return false
	}
	for _, k := range c.kids {
		if !k.walk(f) {
			return false
		}
	}
	return true
}

// wrap names the column that broke, unless one below it has been named.
func (c *column) wrap(err error) error {
	var named *columnError
	if asColumnError(err, &named) || c.node == nil {
		return err
	}
	return &columnError{fault.Wrap(fault.Corrupt, err, "column %s", c.node.Path())}
}
