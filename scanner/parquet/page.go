package parquet

import (
	"hash/crc32"
	"sync/atomic"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
	"github.com/skua-db/skua/vector"
)

// maxPageBytes is the largest page that is read, before or after decompression.
const maxPageBytes = 1 << 30

// The page types of parquet.thrift.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// pageHeader is a PageHeader with the fields of its data or dictionary page.
type pageHeader struct {
	kind         int32
	compressed   int32 // bytes after the header
	uncompressed int32
	crc          uint32
	hasCRC       bool

	numValues    int32
	encoding     Encoding
	defEncoding  Encoding
	repEncoding  Encoding
	numNulls     int32 // v2
	numRows      int32 // v2
	defBytes     int32 // v2
	repBytes     int32 // v2
	isCompressed bool
	size         int // bytes of the header itself
}

// parsePageHeader reads a header at the start of b. short is set when b ended within it.
func parsePageHeader(b []byte) (h pageHeader, short bool, err error) {
	h.isCompressed = true
	h.defEncoding, h.repEncoding = RLE, RLE
	var body int16
	r := thrift.NewReader(b)
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			h.kind = r.Int32(t)
		case 2:
			h.uncompressed = r.Int32(t)
		case 3:
			h.compressed = r.Int32(t)
		case 4:
			h.crc, h.hasCRC = uint32(r.Int32(t)), true
		case 5:
			body = id
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					h.numValues = r.Int32(t)
				case 2:
					h.encoding = parseEncoding(r, t)
				case 3:
					h.defEncoding = parseEncoding(r, t)
				case 4:
					h.repEncoding = parseEncoding(r, t)
				default:
					r.Skip(t)
				}
			})
		case 7:
			body = id
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					h.numValues = r.Int32(t)
				case 2:
					h.encoding = parseEncoding(r, t)
				default:
					r.Skip(t)
				}
			})
		case 8:
			body = id
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					h.numValues = r.Int32(t)
				case 2:
					h.numNulls = r.Int32(t)
				case 3:
					h.numRows = r.Int32(t)
				case 4:
					h.encoding = parseEncoding(r, t)
				case 5:
					h.defBytes = r.Int32(t)
				case 6:
					h.repBytes = r.Int32(t)
				case 7:
					h.isCompressed = r.Bool(t)
				default:
					r.Skip(t)
				}
			})
		default:
			r.Skip(t)
		}
	})
	if err := r.Err(); err != nil {
		return h, r.Short(), err
	}
	h.size = r.Pos()
	switch {
	case h.compressed < 0 || h.uncompressed < 0 || h.numValues < 0 || h.compressed > maxPageBytes || h.uncompressed > maxPageBytes:
		return h, false, fault.New(fault.Corrupt, "page header claims %d bytes (%d before compression), %d values", h.compressed, h.uncompressed, h.numValues)
	case h.kind == dataPage && body != 5, h.kind == dictionaryPage && body != 7, h.kind == dataPageV2 && body != 8:
		return h, false, fault.New(fault.Corrupt, "page of type %d without the header of that type", h.kind)
	case h.kind == dataPageV2 && (h.defBytes < 0 || h.repBytes < 0 || int64(h.defBytes)+int64(h.repBytes) > int64(min(h.compressed, h.uncompressed))):
		return h, false, fault.New(fault.Corrupt, "page of %d bytes claims levels of %d and %d bytes", h.compressed, h.repBytes, h.defBytes)
	case h.kind == dataPageV2 && (h.numNulls < 0 || h.numNulls > h.numValues || h.numRows < 0 || h.numRows > h.numValues):
		return h, false, fault.New(fault.Corrupt, "page of %d values claims %d nulls and %d rows", h.numValues, h.numNulls, h.numRows)
	}
	return h, false, nil
}

// Page is a decompressed page with its header, immutable: what a PageCache keeps.
type Page struct {
	header pageHeader
	body   []byte  // levels, then values
	size   int64   // bytes in the file, header included
	buf    *buffer // owner of body when it is pooled
	// decoded keeps the vector of a cached dictionary page.
	decoded atomic.Pointer[vector.Vector]
}

// Bytes is the memory the page holds, with the vector that a dictionary becomes.
func (p *Page) Bytes() int64 {
	n := int64(cap(p.body)) + 256
	if p.header.kind == dictionaryPage {
		n += 16 * int64(p.header.numValues)
	}
	return n
}

// inflate checks and decompresses a page's bytes. keep makes a body of the page's own, for caches; otherwise it is a
// pooled buffer or, uncompressed, raw itself.
func inflate(h *pageHeader, codec Codec, raw []byte, opt *Options, keep bool) (*Page, error) {
	if opt.CheckCRC && h.hasCRC && crc32.ChecksumIEEE(raw) != h.crc {
		return nil, fault.New(fault.Corrupt, "checksum is %08x, the page header says %08x", crc32.ChecksumIEEE(raw), h.crc)
	}
	p := &Page{header: *h, size: int64(h.size) + int64(len(raw))}
	levels := 0
	if h.kind == dataPageV2 {
		levels = int(h.defBytes) + int(h.repBytes)
		if !h.isCompressed {
			codec = Uncompressed
		}
	}
	want := int(h.uncompressed)
	if want > levels || codec == Uncompressed {
		if err := plausibleSize(codec, int64(len(raw)-levels), int64(want-levels)); err != nil {
			return nil, err
		}
	}
	if codec == Uncompressed {
		p.body = raw
		if keep {
			p.body = append(make([]byte, 0, len(raw)+bufferSlack), raw...)
		}
		return p, nil
	}
	if keep {
		p.body = make([]byte, want, want+bufferSlack)
	} else {
		buf, err := newBuffer(opt.Pool, want)
		if err != nil {
			return nil, err
		}
		p.buf, p.body = buf, buf.b
	}
	copy(p.body[:levels], raw)
	if err := decompress(codec, p.body[levels:], raw[levels:]); err != nil {
		p.buf.release()
		return nil, err
	}
	if opt.Profile != nil {
		opt.Profile.BytesDecompressed.Add(int64(want))
	}
	return p, nil
}
