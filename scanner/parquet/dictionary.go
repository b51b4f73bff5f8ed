package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// readDictionary loads the chunk's dictionary, once, and converts it to the wanted type. The vector is never changed or
// used again for another chunk, so that consumers may remember what they worked out for it by its address.
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
		p = &Page{header: p.header, body: append([]byte(nil), p.body...), size: p.size}
	}
	l.dictPage = p
	l.dec.count = int(p.header.numValues)
	if v := p.decoded.Load(); v != nil && v.Type.Equal(l.want) {
		l.dec.dict = v
		return nil
	}
	if l.dec.dict, err = decodeDictionary(p, l.node, l.want, &l.dec.conv); err != nil {
		return l.fail(err)
	}
	if l.src.opt.PageCache != nil {
		p.decoded.Store(l.dec.dict)
	}
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

// fullyDictionary reports whether every data page of the chunk is certainly dictionary-encoded.
func (c *ColumnChunk) fullyDictionary() bool {
	if len(c.EncodingStats) > 0 {
		seen := false
		for _, s := range c.EncodingStats {
			if s.PageType != dataPage && s.PageType != dataPageV2 || s.Count == 0 {
				continue
			}
			if s.Encoding != PlainDictionary && s.Encoding != RLEDictionary {
				return false
			}
			seen = true
		}
		return seen
	}
	// Writers of version 1 pages list PLAIN only when a data page fell back to it; those of version 2 always list it.
	seen := false
	for _, e := range c.Encodings {
		switch e {
		case PlainDictionary:
			seen = true
		case RLE, BitPacked:
		default:
			return false
		}
	}
	return seen
}

// DictionaryMayContain reports whether one of values, of type want, may stand in the leaf's chunk of a row group, by its dictionary.
// It is true unless every page of the chunk is dictionary-encoded. A nil value stands nowhere.
func DictionaryMayContain(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, values []vector.Value, want vector.Type, opt Options) (bool, error) {
	c, n := &f.RowGroups[rg].Columns[leaf], f.Leaves[leaf]
	conv, err := newConversion(n, want)
	if err != nil || conv.op == opNull || !c.fullyDictionary() || c.NumValues == 0 {
		return true, nil
	}
	s := pageSource{file: f, obj: o, opt: &opt, chunk: c, where: f.chunkRange(c), rowGroup: f.RowGroups[rg].ordinal, column: leaf}
	defer s.close()
	s.window = 1 << 20
	if d := c.DataOffset - s.where.Offset; d > 0 && d <= s.where.Length {
		s.window = d
	}
	s.held = map[int64]*Page{}
	s.hit(s.where.Offset)
	p, err := s.dictionary(ctx)
	if err != nil {
		return true, f.indexFail(err, "dictionary", rg, leaf)
	}
	if p == nil {
		return true, nil
	}
	defer p.buf.release()
	dict, err := decodeDictionary(p, n, want, &conv)
	if err != nil {
		return true, f.indexFail(err, "dictionary", rg, leaf)
	}
	return holdsAny(dict, int(p.header.numValues), values), nil
}

// holdsAny reports whether one of values is among the n of a flat vector.
func holdsAny(v *vector.Vector, n int, values []vector.Value) bool {
	wanted := make(map[vector.Value]struct{}, len(values))
	for _, x := range values {
		if x != nil {
			wanted[x] = struct{}{}
		}
	}
	if v.Type.Physical() == vector.PView {
		texts := make(map[string]struct{}, len(wanted))
		for x := range wanted {
			if s, ok := x.(string); ok {
				texts[s] = struct{}{}
			}
		}
		for i := range n {
			if _, ok := texts[string(v.Views[i].Bytes(v.Bufs))]; ok {
				return true
			}
		}
		return false
	}
	for i := range n {
		if _, ok := wanted[v.Get(i)]; ok {
			return true
		}
	}
	return false
}
