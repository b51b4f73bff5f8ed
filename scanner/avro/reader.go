package avro

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// Reader gives the records of a file in batches of columns.
type Reader struct {
	f      *File
	blocks blocks
	root   *op
	cols   []*column
	wanted []*Projection
	fills  []*vector.Vector // constants of columns that the file lacks, nil for the others
	out    []*vector.Vector

	d    decoder
	left int64 // records left in the block
	row  int64 // ordinal of the next record in the file
}

// NewReader prepares to read cols. Blocks are accounted in pool unless it is nil. A column whose stored type cannot
// become the wanted one is fault.Corrupt.
func (f *File) NewReader(cols []*Projection, pool *memory.Pool) (*Reader, error) {
	r := &Reader{f: f, wanted: cols, blocks: blocks{f: f, pool: pool, pos: f.start, win: f.first}}
	c := compiler{f}
	byNode := map[*Node][]*op{}
	r.fills = make([]*vector.Vector, len(cols))
	r.cols = make([]*column, len(cols))
	r.out = make([]*vector.Vector, len(cols))
	for i, p := range cols {
		if p.Node == nil {
			r.fills[i] = vector.NewConstant(p.Type, p.Default)
			continue
		}
		o, col, err := c.compile(p, p.Node.Name)
		if err != nil {
			return nil, err
		}
		o.again = len(byNode[p.Node]) > 0
		byNode[p.Node], r.cols[i] = append(byNode[p.Node], o), col
	}
	r.root = &op{code: opRow, node: f.Root}
	for _, n := range f.Root.Children {
		if ops := byNode[n]; ops != nil {
			r.root.kids = append(r.root.kids, ops...)
		} else {
			r.root.kids = append(r.root.kids, &op{code: opSkip, node: n})
		}
	}
	return r, nil
}

// Next gives up to max records, at most vector.Size: their number, the ordinal in the file of the first, and a vector a
// column. n is 0 at the end. The vectors are valid until the next call.
func (r *Reader) Next(ctx context.Context, max int) (n int, first int64, cols []*vector.Vector, err error) {
	if max <= 0 || max > vector.Size {
		max = vector.Size
	}
	for _, c := range r.cols {
		if c != nil {
			c.reset()
		}
	}
	first = r.row
	bufs := &bufs{arena: -1}
	for n < max {
		if r.left == 0 {
			count, data, err := r.blocks.next(ctx)
			if err != nil {
				return 0, 0, nil, err
			}
			if count == 0 {
				break
			}
			r.left, r.d = count, decoder{data: data}
			bufs.add(data)
		} else if n == 0 {
			bufs.add(r.d.data)
		}
		take := int(min(int64(max-n), r.left))
		for range take {
			start := 0
			for _, k := range r.root.kids {
				if k.again {
					r.d.pos = start
				} else {
					start = r.d.pos
				}
				if err := r.value(k, bufs); err != nil {
					return 0, 0, nil, r.wrap(err, k)
				}
			}
		}
		n += take
		r.left -= int64(take)
		if r.left == 0 && r.d.pos != len(r.d.data) {
			return 0, 0, nil, r.f.corrupt("an Avro block has bytes after its last record")
		}
	}
	r.row += int64(n)
	for i, c := range r.cols {
		if c == nil {
			r.out[i] = r.fills[i]
		} else {
			r.out[i] = c.finish(bufs.list)
		}
	}
	return n, first, r.out, nil
}

func (r *Reader) wrap(err error, k *op) error {
	if errors.Is(err, errShort) {
		return r.f.corrupt("column %s: an Avro block holds fewer records than it says", k.node.Name)
	}
	return r.f.wrap(fault.Corrupt, fault.Wrap(fault.Corrupt, err, "column %s", k.node.Name))
}

// Close gives back what the reader holds. It does not close the file's object.
func (r *Reader) Close() {
	r.blocks.close()
	r.left = 0
}

// value reads one value of o's node, appending it to o's column.
func (r *Reader) value(o *op, b *bufs) error {
	d := &r.d
	if o.node.null >= 0 {
		branch, err := d.long()
		if err != nil {
			return err
		}
		if branch < 0 || branch > 1 {
			return fault.New(fault.Corrupt, "union branch %d does not exist", branch)
		}
		if int(branch) == o.node.null {
			if o.col != nil {
				o.col.appendNull()
			}
			return nil
		}
	}
	c := o.col
	switch o.code {
	case opSkip:
		if c != nil {
			c.appendNull()
		}
		return d.skip(o.node)
	case opNull:
		c.appendNull()
	case opBool:
		p, err := d.take(1)
		if err != nil {
			return err
		}
		if p[0] > 1 {
			return fault.New(fault.Corrupt, "a boolean has byte %d", p[0])
		}
		c.v.Bools = append(c.v.Bools, p[0] == 1)
		c.ok()
	case opInt32:
		x, err := d.int()
		if err != nil {
			return err
		}
		c.v.I32 = append(c.v.I32, x)
		c.ok()
	case opInt64, opIntToInt64, opScaleUp, opScaleDown, opIntScaleUp:
		x, err := r.long(o)
		if err != nil {
			return err
		}
		c.v.I64 = append(c.v.I64, x)
		c.ok()
	case opFloat:
		x, err := d.float()
		if err != nil {
			return err
		}
		c.v.F32 = append(c.v.F32, x)
		c.ok()
	case opFloatToDouble:
		x, err := d.float()
		if err != nil {
			return err
		}
		c.v.F64 = append(c.v.F64, float64(x))
		c.ok()
	case opDouble:
		p, err := d.take(8)
		if err != nil {
			return err
		}
		c.v.F64 = append(c.v.F64, math.Float64frombits(le64(p)))
		c.ok()
	case opDecimal:
		return r.decimal(o)
	case opString:
		p, err := d.bytes()
		if err != nil {
			return err
		}
		c.v.Views = append(c.v.Views, vector.MakeView(b.list, b.block, d.pos-len(p), len(p)))
		c.ok()
	case opFixed:
		p, err := d.take(o.node.Size)
		if err != nil {
			return err
		}
		c.v.Views = append(c.v.Views, vector.MakeView(b.list, b.block, d.pos-len(p), len(p)))
		c.ok()
	case opEnum:
		x, err := d.long()
		if err != nil {
			return err
		}
		if x < 0 || x >= int64(len(o.node.Symbols)) {
			return fault.New(fault.Corrupt, "enum symbol %d does not exist", x)
		}
		c.v.Views = append(c.v.Views, b.store([]byte(o.node.Symbols[x])))
		c.ok()
	case opUUIDText:
		p, err := d.bytes()
		if err != nil {
			return err
		}
		u, err := hex.DecodeString(strings.ReplaceAll(string(p), "-", ""))
		if err != nil || len(u) != 16 {
			return fault.New(fault.Corrupt, "a UUID is written %.60q", p)
		}
		c.v.Views = append(c.v.Views, b.store(u))
		c.ok()
	case opRow:
		for _, k := range o.kids {
			if err := r.value(k, b); err != nil {
				return err
			}
		}
		for _, k := range o.absent {
			k.appendFrom(k.fill, 0, b)
		}
		c.ok()
	case opArray, opMap:
		return r.list(o, b)
	case opUnion:
		return r.union(o, b)
	}
	return nil
}

func (r *Reader) long(o *op) (int64, error) {
	var x int64
	var err error
	if o.code == opIntToInt64 || o.code == opIntScaleUp {
		var i int32
		i, err = r.d.int()
		x = int64(i)
	} else {
		x, err = r.d.long()
	}
	if err != nil {
		return 0, err
	}
	switch o.code {
	case opScaleUp, opIntScaleUp:
		y := x * o.scale
		if y/o.scale != x {
			return 0, fault.New(fault.Corrupt, "value %d is out of range as %s", x, o.col.typ)
		}
		return y, nil
	case opScaleDown:
		y := x / o.scale
		if x%o.scale < 0 {
			y--
		}
		return y, nil
	}
	return x, nil
}

func (r *Reader) decimal(o *op) error {
	var p []byte
	var err error
	if o.node.Kind == Fixed {
		p, err = r.d.take(o.node.Size)
	} else {
		p, err = r.d.bytes()
	}
	if err != nil {
		return err
	}
	x, ok := Int128(p)
	c := o.col
	if c.typ.Physical() == vector.PInt128 {
		c.v.I128 = append(c.v.I128, x)
	} else {
		ok = ok && x.HighBits() == int64(x.LowBits())>>63
		c.v.I64 = append(c.v.I64, int64(x.LowBits()))
	}
	if !ok {
		return fault.New(fault.Corrupt, "a decimal does not fit %s", c.typ)
	}
	c.ok()
	return nil
}

// Int128 reads a big-endian two's complement number of any length; ok is false when it does not fit. No bytes are zero.
func Int128(p []byte) (x vector.Int128, ok bool) {
	if len(p) == 0 {
		return x, true
	}
	sign := byte(0)
	if p[0]&0x80 != 0 {
		sign = 0xff
	}
	for len(p) > 16 {
		if p[0] != sign || p[1]&0x80 != sign&0x80 {
			return x, false
		}
		p = p[1:]
	}
	var b [16]byte
	for i := range b {
		b[i] = sign
	}
	copy(b[16-len(p):], p)
	var hi, lo uint64
	for i := range 8 {
		hi, lo = hi<<8|uint64(b[i]), lo<<8|uint64(b[8+i])
	}
	return decimal128.New(int64(hi), lo), true
}

func (r *Reader) list(o *op, b *bufs) error {
	d, c := &r.d, o.col
	var least int64
	for _, k := range o.kids {
		least += k.node.min
	}
	for {
		n, err := d.blockCount(least)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		for range n {
			for _, k := range o.kids {
				if err := r.value(k, b); err != nil {
					return err
				}
			}
		}
	}
	if c.kids[0].n > math.MaxInt32 {
		return fault.New(fault.Corrupt, "a batch holds too many list items")
	}
	c.v.Offsets = append(c.v.Offsets, int32(c.kids[0].n))
	c.ok()
	return nil
}

func (d *decoder) float() (float32, error) {
	p, err := d.take(4)
	if err != nil {
		return 0, err
	}
	return math.Float32frombits(uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16 | uint32(p[3])<<24), nil
}

func le64(p []byte) uint64 {
	_ = p[7]
	return uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
		uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
}

// skip passes over one value; the union around it has been read.
func (d *decoder) skip(n *Node) error {
	var err error
	switch n.Kind {
	case Null:
	case Boolean:
		_, err = d.take(1)
	case Int, Long, Enum:
		_, err = d.long()
	case Float:
		_, err = d.take(4)
	case Double:
		_, err = d.take(8)
	case Bytes, String:
		_, err = d.bytes()
	case Fixed:
		_, err = d.take(n.Size)
	case Record:
		for _, c := range n.Children {
			if err = d.skipNullable(c); err != nil {
				return err
			}
		}
	case Array, Map:
		return d.skipItems(n)
	case Union:
		branch, err := d.long()
		if err != nil {
			return err
		}
		if branch < 0 || branch >= int64(len(n.Children)) {
			return fault.New(fault.Corrupt, "union branch %d does not exist", branch)
		}
		return d.skip(n.Children[branch])
	}
	return err
}

func (d *decoder) skipNullable(n *Node) error {
	if n.null >= 0 {
		branch, err := d.long()
		if err != nil {
			return err
		}
		if branch < 0 || branch > 1 {
			return fault.New(fault.Corrupt, "union branch %d does not exist", branch)
		}
		if int(branch) == n.null {
			return nil
		}
	}
	return d.skip(n)
}

func (d *decoder) skipItems(n *Node) error {
	var least int64
	for _, c := range n.Children {
		least += c.min
	}
	for {
		count, err := d.long()
		if err != nil {
			return err
		}
		if count == 0 {
			return nil
		}
		if count < 0 {
			size, err := d.long()
			if err != nil {
				return err
			}
			if size < 0 || size > int64(len(d.data)-d.pos) {
				return errShort
			}
			d.pos += int(size)
			continue
		}
		if least == 0 {
			continue // items without bytes
		}
		if rest := int64(len(d.data) - d.pos); count > rest/least {
			return errShort
		}
		for range count {
			for _, c := range n.Children {
				if err := d.skipNullable(c); err != nil {
					return err
				}
			}
		}
	}
}
