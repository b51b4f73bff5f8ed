package orc

import (
	"strconv"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// UnionField names field i of the row that a union is read as: the number of the member that holds the value, then the members, of which
// all but that one are null. Trino reads unions so.
func UnionField(i int) string {
	if i == 0 {
		return "tag"
	}
	return "field" + strconv.Itoa(i-1)
}

// union reads a union as a row. A batch's tags say which rows each member has values for.
type union struct {
	tags    byteRuns
	buf     []byte
	masks   [][]uint64 // by kid of the column
	members []int      // by kid of the column: the member's number
	at      []int      // by kid of the column: its place in the row
	tagAt   int        // place of the tag in the row; -1 when it is not wanted
	tag     vector.Vector
	counts  []int64
}

func (b *builder) unionColumn(c *column, p *Projection) error {
	n, t := p.Node, p.Type
	if t.Kind != vector.Row || len(p.Children) != len(t.Fields) {
		return mismatch(n, t)
	}
	c.kind = unionColumn
	u := &union{tags: byteRuns{s: b.stream(n, streamData)}, tagAt: -1, counts: make([]int64, len(n.Children))}
	c.union = u
	for i, q := range p.Children {
		if q.Node == n {
			if q.Type.Kind != vector.Integer {
				return mismatch(n, q.Type)
			}
			u.tagAt = i
			continue
		}
		member := -1
		for k, m := range n.Children {
			if m == q.Node {
				member = k
			}
		}
		if member < 0 {
			return fault.New(fault.Internal, "projection of %s takes a field that it does not have", n.Path())
		}
		k, err := b.column(q)
		if err != nil {
			return err
		}
		c.kids = append(c.kids, k)
		u.members, u.at, u.masks = append(u.members, member), append(u.at, i), append(u.masks, nil)
	}
	return nil
}

// readUnion reads m values that stand in the slots of valid (nil: all n).
func (c *column) readUnion(n, m int, valid []uint64, kids []*vector.Vector) error {
	u := c.union
	for done := 0; done < m; {
		k := min(m-done, max(done, firstValues))
		if err := grow(c.acc, &u.buf, done+k, done, 1); err != nil {
			return err
		}
		if err := u.tags.read(u.buf[done : done+k]); err != nil {
			return err
		}
		done += k
	}
	for _, x := range u.buf[:m] {
		if int(x) >= len(u.counts) {
			return fault.New(fault.Corrupt, "a union's tag is %d, of %d members", x, len(u.counts))
		}
	}
	for range c.want.Fields {
		kids = append(kids, nil)
	}
	slot := func(f func(i int, tag byte)) {
		k := 0
		for i := range n {
			if valid == nil || valid[i>>6]>>(uint(i)&63)&1 != 0 {
				f(i, u.buf[k])
				k++
			}
		}
	}
	if u.tagAt >= 0 {
		if err := grow(c.acc, &u.tag.I32, n, 0, 4); err != nil {
			return err
		}
		clear(u.tag.I32)
		slot(func(i int, tag byte) { u.tag.I32[i] = int32(tag) })
		u.tag.Type, u.tag.Valid = vector.Of(vector.Integer), valid
		kids[u.tagAt] = &u.tag
	}
	for k, kid := range c.kids {
		if err := grow(c.acc, &u.masks[k], (n+63)/64, 0, 8); err != nil {
			return err
		}
		mask, count := u.masks[k], 0
		clear(mask)
		slot(func(i int, tag byte) {
			if int(tag) == u.members[k] {
				mask[i>>6] |= 1 << (uint(i) & 63)
				count++
			}
		})
		if err := kid.read(n, mask, count); err != nil {
			return kid.wrap(err)
		}
		kids[u.at[k]] = kid.vector()
	}
	c.out.Children = kids
	return nil
}

// skipUnion passes over values, of each member those whose tags name it.
func (c *column) skipUnion(stored int64) error {
	u := c.union
	clear(u.counts)
	var buf [1024]byte
	for stored > 0 {
		k := min(stored, int64(len(buf)))
		if err := u.tags.read(buf[:k]); err != nil {
			return err
		}
		for _, x := range buf[:k] {
			if int(x) >= len(u.counts) {
				return fault.New(fault.Corrupt, "a union's tag is %d, of %d members", x, len(u.counts))
			}
			u.counts[x]++
		}
		stored -= k
	}
	for i, k := range c.kids {
		if err := k.skip(u.counts[u.members[i]]); err != nil {
			return k.wrap(err)
		}
	}
	return nil
}
