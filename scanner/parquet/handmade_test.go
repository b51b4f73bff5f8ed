package parquet

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// thriftWriter writes the compact protocol, as far as hand-made files need it.
type thriftWriter struct {
	b    []byte
	last []int16
}

func (w *thriftWriter) begin() { w.last = append(w.last, 0) }
func (w *thriftWriter) end() {
	w.b = append(w.b, 0)
	w.last = w.last[:len(w.last)-1]
}

func (w *thriftWriter) field(id int16, t byte) {
	top := len(w.last) - 1
	if d := id - w.last[top]; d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|t)
	} else {
		w.b = append(w.b, t)
		w.b = binary.AppendVarint(w.b, int64(id))
	}
	w.last[top] = id
}

func (w *thriftWriter) i32(id int16, v int64) { w.field(id, 5); w.b = binary.AppendVarint(w.b, v) }
func (w *thriftWriter) i64(id int16, v int64) { w.field(id, 6); w.b = binary.AppendVarint(w.b, v) }
func (w *thriftWriter) double(id int16, v float64) {
	w.field(id, 7)
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
}

func (w *thriftWriter) bool(id int16, v bool) {
	if v {
		w.field(id, 1)
	} else {
		w.field(id, 2)
	}
}

func (w *thriftWriter) bytes(id int16, v []byte) {
	w.field(id, 8)
	w.raw(v)
}

func (w *thriftWriter) raw(v []byte) {
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *thriftWriter) list(id int16, t byte, n int) {
	w.field(id, 9)
	if n < 15 {
		w.b = append(w.b, byte(n)<<4|t)
		return
	}
	w.b = append(w.b, 0xf0|t)
	w.b = binary.AppendUvarint(w.b, uint64(n))
}

func (w *thriftWriter) structure(id int16, f func()) {
	w.field(id, 12)
	w.begin()
	f()
	w.end()
}

// field is a schema element of a hand-made file.
type madeField struct {
	name      string
	rep       Repetition
	physical  Physical // -1: group
	length    int
	children  int
	converted int // -1: none
	scale     int
	precision int
	logical   func(w *thriftWriter) // writes the union member
}

// madePage is a page of a hand-made file.
type madePage struct {
	kind     int32
	values   int
	nulls    int // v2
	rows     int // v2
	enc      Encoding
	repEnc   Encoding // v1; RLE when 0 and levels are RLE
	defEnc   Encoding
	rep, def []byte // v2 levels
	body     []byte // v1: levels and values; v2: values
	plain    bool   // v2: is_compressed false
	crc      int64  // 0: none; -1: right; else that
	size     int    // claimed uncompressed size when not 0
}

// madeColumn is a chunk of a hand-made file: the pages in order and, optionally, statistics.
type madeColumn struct {
	pages  []madePage
	values int64
	codec  Codec
	path   []string
	stats  func(w *thriftWriter)
	geo    func(w *thriftWriter) // the members of GeospatialStatistics
	crypto bool
	// compress turns a page's bytes into what the codec gives.
	compress func([]byte) []byte
}

// madeFile puts a file of one row group together.
type madeFile struct {
	fields  []madeField // root first
	cols    []madeColumn
	rows    int64
	orders  bool
	created string
	cipher  bool
}

func rle(v []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(v))), v...)
}

func (p *madePage) encode(c *madeColumn) []byte {
	data := p.body
	levels := append(append([]byte(nil), p.rep...), p.def...)
	un := len(levels) + len(p.body)
	if c.compress != nil && !p.plain {
		data = c.compress(p.body)
	}
	data = append(levels, data...)
	if p.size != 0 {
		un = p.size
	}
	w := &thriftWriter{}
	w.begin()
	w.i32(1, int64(p.kind))
	w.i32(2, int64(un))
	w.i32(3, int64(len(data)))
	switch p.crc {
	case 0:
	case -1:
		w.i32(4, int64(int32(crc32.ChecksumIEEE(data))))
	default:
		w.i32(4, p.crc)
	}
	enc := func(e Encoding) int64 {
		if e == 0 {
			return int64(RLE)
		}
		return int64(e)
	}
	switch p.kind {
	case dataPage:
		w.structure(5, func() {
			w.i32(1, int64(p.values))
			w.i32(2, int64(p.enc))
			w.i32(3, enc(p.defEnc))
			w.i32(4, enc(p.repEnc))
		})
	case dictionaryPage:
		w.structure(7, func() {
			w.i32(1, int64(p.values))
			w.i32(2, int64(p.enc))
		})
	case dataPageV2:
		w.structure(8, func() {
			w.i32(1, int64(p.values))
			w.i32(2, int64(p.nulls))
			w.i32(3, int64(p.rows))
			w.i32(4, int64(p.enc))
			w.i32(5, int64(len(p.def)))
			w.i32(6, int64(len(p.rep)))
			w.bool(7, !p.plain)
		})
	}
	w.end()
	return append(w.b, data...)
}

func (f *madeFile) bytes() []byte {
	out := []byte(magicPlain)
	type place struct{ start, data, dict, size int64 }
	var places []place
	for i := range f.cols {
		c := &f.cols[i]
		p := place{start: int64(len(out)), data: -1}
		for k := range c.pages {
			if c.pages[k].kind == dictionaryPage {
				p.dict = int64(len(out))
			} else if p.data < 0 {
				p.data = int64(len(out))
			}
			out = append(out, c.pages[k].encode(c)...)
		}
		p.size = int64(len(out)) - p.start
		places = append(places, p)
	}
	w := &thriftWriter{}
	w.begin()
	w.i32(1, 1)
	w.list(2, 12, len(f.fields))
	leaf := 0
	for i, e := range f.fields {
		w.begin()
		if e.physical >= 0 {
			w.i32(1, int64(e.physical))
			if e.length > 0 {
				w.i32(2, int64(e.length))
			}
		}
		if i > 0 {
			w.i32(3, int64(e.rep))
		}
		w.bytes(4, []byte(e.name))
		if e.physical < 0 {
			w.i32(5, int64(e.children))
		}
		if e.converted >= 0 {
			w.i32(6, int64(e.converted))
			w.i32(7, int64(e.scale))
			w.i32(8, int64(e.precision))
		}
		if e.logical != nil {
			w.structure(10, func() { e.logical(w) })
		}
		w.end()
	}
	w.i64(3, f.rows)
	w.list(4, 12, 1)
	w.begin()
	w.list(1, 12, len(f.cols))
	for i := range f.cols {
		c := &f.cols[i]
		for f.fields[leaf].physical < 0 {
			leaf++
		}
		p := places[i]
		w.begin()
		w.i64(2, p.start)
		w.structure(3, func() {
			w.i32(1, int64(f.fields[leaf].physical))
			w.list(2, 5, 1)
			w.b = binary.AppendVarint(w.b, int64(Plain))
			w.list(3, 8, len(c.path))
			for _, s := range c.path {
				w.raw([]byte(s))
			}
			w.i32(4, int64(c.codec))
			w.i64(5, c.values)
			w.i64(6, p.size)
			w.i64(7, p.size)
			w.i64(9, p.data)
			if p.dict > 0 {
				w.i64(11, p.dict)
			}
			if c.stats != nil {
				w.structure(12, func() { c.stats(w) })
			}
			if c.geo != nil {
				w.structure(17, func() { c.geo(w) })
			}
		})
		if c.crypto {
			w.structure(8, func() { w.structure(1, func() {}) })
		}
		w.end()
		leaf++
	}
	w.i64(2, int64(len(out)))
	w.i64(3, f.rows)
	w.end()
	if f.created != "" {
		w.bytes(6, []byte(f.created))
	}
	if f.orders {
		w.list(7, 12, len(f.cols))
		for range f.cols {
			w.begin()
			w.structure(1, func() {})
			w.end()
		}
	}
	if f.cipher {
		w.structure(8, func() { w.structure(1, func() {}) })
	}
	w.end()
	out = append(out, w.b...)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(w.b)))
	return append(out, magicPlain...)
}

// oneColumn is a file of a single column of one page or more.
func oneColumn(e madeField, rows int64, pages ...madePage) *madeFile {
	e.converted = max(e.converted, -1)
	return &madeFile{
		fields: []madeField{{name: "schema", physical: -1, children: 1, converted: -1}, e},
		cols:   []madeColumn{{pages: pages, values: rows}},
		rows:   rows, orders: true,
	}
}

func le32(vs ...int32) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func le64(vs ...int64) (b []byte) {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func lengthPrefixed(vs ...string) (b []byte) {
	for _, v := range vs {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}
