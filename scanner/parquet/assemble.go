package parquet

import (
	"math"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// assemble makes c's vector from the leaves' batches (Dremel: Melnik et al., "Interactive Analysis of Web-Scale Datasets", VLDB
// 2010, record assembly, done a level at a time over whole batches). slots is how many values c has, -1 when the caller cannot know;
// it returns the number, -1 when c cannot know either.
func (c *column) assemble(slots int) (*vector.Vector, int, error) {
	switch c.kind {
	case constantColumn:
		return c.constant, slots, nil
	case leafColumn:
		n := c.leaf.batchSlots
		if slots >= 0 && n != slots {
			return nil, 0, c.leaf.fail(fault.New(fault.Corrupt, "%d values where its neighbours have %d", n, slots))
		}
		return &c.leaf.out, n, nil
	case structColumn:
		return c.assembleStruct(slots)
	case variantColumn:
		return c.assembleVariant(slots)
	}
	return c.assembleList(slots)
}

func (c *column) assembleStruct(slots int) (*vector.Vector, int, error) {
	nulls := false
	if c.leaf != nil {
		n, has := c.structValid()
		if slots >= 0 && n != slots {
			return nil, 0, c.leaf.fail(fault.New(fault.Corrupt, "%d values where its neighbours have %d", n, slots))
		}
		slots, nulls = n, has && c.def > c.present
	}
	kids := c.out.Children[:0]
	c.out = vector.Vector{Type: c.want}
	for _, k := range c.kids {
		if k.kind == constantColumn {
			continue
		}
		_, n, err := k.assemble(slots)
		if err != nil {
			return nil, 0, err
		}
		if slots < 0 {
			slots = n
		}
	}
	if nulls {
		c.out.Valid = c.valid
	}
	for _, k := range c.kids {
		v := k.vector()
		if k.kind == constantColumn && nulls && !v.IsNull(0) {
			// A field that the file lacks is its default, but null where its struct is.
			v = k.mask(c.valid, slots)
		}
		kids = append(kids, v)
	}
	c.out.Children = kids
	return &c.out, slots, nil
}

// vector is what the last assemble made.
func (c *column) vector() *vector.Vector {
	switch c.kind {
	case constantColumn:
		return c.constant
	case leafColumn:
		return &c.leaf.out
	}
	return &c.out
}

// mask makes a constant null where valid has no bit.
func (c *column) mask(valid []uint64, n int) *vector.Vector {
	grow(&c.codes, n, 0)
	clear(c.codes)
	dict := *c.constant
	dict.Form = vector.Flat
	c.masked = vector.Vector{Type: c.want, Form: vector.Dictionary, Codes: c.codes, Dict: &dict, Valid: valid}
	return &c.masked
}

// structValid finds the struct's slots in its leaf's levels and fills c.valid; has tells whether one is null.
func (c *column) structValid() (slots int, has bool) {
	l := c.leaf
	defs, reps := l.defs, l.reps
	grow(&c.valid, (len(defs)+63)/64, 0)
	clear(c.valid)
	def := byte(c.def)
	if l.node.MaxRep == 0 {
		for i, d := range defs {
			if d >= def {
				c.valid[i>>6] |= 1 << (uint(i) & 63)
			} else {
				has = true
			}
		}
		return len(defs), has
	}
	nulls := 0
	for i, d := range defs {
		d := int(d)
		slot := atLeast(c.rep, int(reps[i])) & atLeast(d, c.present)
		ok := slot & atLeast(d, c.def)
		c.valid[slots>>6] |= uint64(ok) << (uint(slots) & 63)
		nulls += slot - ok
		slots += slot
	}
	c.valid = c.valid[:(slots+63)/64]
	return slots, nulls > 0
}

func (c *column) assembleList(slots int) (*vector.Vector, int, error) {
	l := c.leaf
	if len(l.defs) >= math.MaxInt32 {
		return nil, 0, l.fail(fault.New(fault.Exhausted, "a batch of %d elements", len(l.defs)))
	}
	n, elements, has := c.listOffsets()
	if slots >= 0 && n != slots {
		return nil, 0, l.fail(fault.New(fault.Corrupt, "%d lists where its neighbours have %d", n, slots))
	}
	for _, o := range c.others {
		if !c.sameLists(o) {
			return nil, 0, o.fail(fault.New(fault.Corrupt, "lists differ from those of column %s", l.node.Path()))
		}
	}
	kids := c.out.Children[:0]
	c.out = vector.Vector{Type: c.want, Offsets: c.offsets}
	if has {
		c.out.Valid = c.valid
	}
	for _, k := range c.kids {
		v, _, err := k.assemble(elements)
		if err != nil {
			return nil, 0, err
		}
		kids = append(kids, v)
	}
	c.out.Children = kids
	return &c.out, n, nil
}

// atLeast is 1 when a >= b, else 0, without a branch: levels come in no order that could be predicted.
func atLeast(a, b int) int { return 1 + (a-b)>>63 }

// listOffsets fills c.offsets and c.valid from the leaf's levels: how many lists there are, how many elements, and whether one is null.
func (c *column) listOffsets() (lists, elements int, null bool) {
	l := c.leaf
	grow(&c.offsets, len(l.defs)+1, 0)
	grow(&c.valid, (len(l.defs)+63)/64, 0)
	clear(c.valid)
	nulls := 0
	reps, offsets, valid := l.reps[:len(l.defs)], c.offsets, c.valid
	for i, d := range l.defs {
		d, r := int(d), int(reps[i])
		slot := atLeast(c.rep, r) & atLeast(d, c.present)
		ok := slot & atLeast(d, c.def)
		offsets[lists] = int32(elements)
		valid[lists>>6] |= uint64(ok) << (uint(lists) & 63)
		nulls += slot - ok
		lists += slot
		elements += atLeast(c.rep+1, r) & atLeast(d, c.elementDef)
	}
	c.offsets[lists] = int32(elements)
	c.offsets = c.offsets[:lists+1]
	c.valid = c.valid[:(lists+63)/64]
	return lists, elements, nulls > 0
}

// sameLists checks that another leaf below the list has the same lists: files whose columns disagree must not give rows.
func (c *column) sameLists(l *leaf) bool {
	lists, elements := 0, int32(0)
	differ := int32(0)
	for i, d := range l.defs {
		d, r := int(d), int(l.reps[i])
		slot := atLeast(c.rep, r) & atLeast(d, c.present)
		if lists >= len(c.offsets) {
			return false
		}
		differ |= (c.offsets[lists] - elements) & -int32(slot)
		lists += slot
		elements += int32(atLeast(c.rep+1, r) & atLeast(d, c.elementDef))
	}
	return differ == 0 && lists == len(c.offsets)-1 && c.offsets[lists] == elements
}
