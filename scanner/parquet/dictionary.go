package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// readDictionary loads the chunk's dictionary, once, and converts it to the wanted type. The vector is made anew for each chunk,
// so that consumers may remember what they worked out for it by its address.
func (l *leaf) readDictionary(ctx context.Context) error {
	if l.src.dictRead {
		return nil
	}
	l.pageAt = l.src.where.Offset
	p, err := l.src.dictionary(ctx)
	if err != nil || p == nil {
		if err != nil {
			err = l.fail(err)
		}
		return err
	}
	if p.buf == nil && l.src.window > 0 && l.src.held[l.src.where.Offset] == nil {
		// The page stands in a window that moves on, the dictionary stays.
		c := *p
		c.body = append([]byte(nil), p.body...)
		p = &c
	}
	l.dictPage = p
	if l.dec.dict, err = decodeDictionary(p, l.node, l.want, &l.dec.conv); err != nil {
		return l.fail(err)
	}
	l.dec.count = int(p.header.numValues)
	return nil
}

// decodeDictionary makes the vector of a dictionary page's values. Strings refer to the page's bytes, numbers may.
func decodeDictionary(p *Page, n *Node, want vector.Type, conv *conversion) (*vector.Vector, error) {
	if p.header.encoding != Plain && p.header.encoding != PlainDictionary {
		return nil, fault.New(fault.Corrupt, "dictionary page in %s", p.header.encoding)
	}
	if n.Physical == Boolean {
		return nil, fault.New(fault.Corrupt, "dictionary page of BOOLEAN")
	}
	count := int(p.header.numValues)
	d := decoder{conv: *conv}
	if err := d.vals.reset(Plain, n, p.body, count, -1); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "dictionary")
	}
	return d.all(want, count)
}

// all reads count values into a flat vector without nulls.
func (d *decoder) all(want vector.Type, count int) (*vector.Vector, error) {
	v := &vector.Vector{Type: want}
	var err error
	switch d.conv.layout {
	case vector.PBool:
		v.Bools, err = readBool(d, make([]bool, count))
	case vector.PInt32:
		v.I32, err = readInt32(d, make([]int32, count))
	case vector.PInt64:
		v.I64, err = readInt64(d, make([]int64, count))
	case vector.PInt128:
		v.I128, err = readInt128(d, make([]vector.Int128, count))
	case vector.PFloat32:
		v.F32, err = readFloat32(d, make([]float32, count))
	case vector.PFloat64:
		v.F64, err = readFloat64(d, make([]float64, count))
	case vector.PView:
		v.Views = make([]vector.View, count)
		var b []byte
		if b, _, err = d.readViews(v.Views, 0, nil); err == nil {
			v.Bufs = [][]byte{b}
		}
	}
	return v, err
}
