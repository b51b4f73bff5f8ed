package orc

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// StreamKind is what a stream of a stripe holds, numbered as in orc_proto's Stream.Kind.
type streamKind uint8

const (
	streamPresent streamKind = iota
	streamData
	streamLength
	streamDictionary
	streamDictionaryCount
	streamSecondary
	streamRowIndex
	streamBloom
	streamBloomUTF8
)

var streamNames = [...]string{"PRESENT", "DATA", "LENGTH", "DICTIONARY_DATA", "DICTIONARY_COUNT", "SECONDARY", "ROW_INDEX", "BLOOM_FILTER", "BLOOM_FILTER_UTF8"}

func (k streamKind) String() string { return streamNames[k] }

// stream gives the decompressed bytes of one stream of a stripe. A stream that the stripe does not have is empty.
type stream struct {
	kind  streamKind
	codec Codec
	block int // compression block size
	acc   *account
	in    *input

	off, length int64     // in the file
	pos         int64     // in the stream: where the bytes after chunk begin
	segs        []segment // what was fetched beforehand
	raw         []byte
	rawAt       int64  // in the stream: of raw[0]
	win         []byte // what raw is when it was fetched later
	window      int64  // bytes to fetch then

	chunk   []byte // the current decompressed bytes
	at      int    // what of chunk is consumed
	origin  int64  // in the stream: header of the current chunk
	own     []byte // decompressed bytes, reused
	scratch []byte
}

// input is where the streams of a stripe come from during a call.
type input struct {
	ctx context.Context
	obj storage.Object
	z   inflater
	opt *Options
}

func (s *stream) ends() error {
	if s.length == 0 {
		return fault.New(fault.Corrupt, "its %s stream is missing or empty, but values are wanted of it", s.kind)
	}
	return fault.New(fault.Corrupt, "its %s stream of %d bytes ends before its values do", s.kind, s.length)
}

// have makes n bytes at s.pos of the stream stand in raw, n being within the stream, and gives all that follow in raw.
func (s *stream) have(n int64) ([]byte, error) {
	if at := s.pos - s.rawAt; at >= 0 && at+n <= int64(len(s.raw)) {
		return s.raw[at:], nil
	}
	for _, g := range s.segs {
		if at := s.pos - g.at; at >= 0 && at+n <= int64(len(g.b)) {
			s.raw, s.rawAt = g.b, g.at
			return s.raw[at:], nil
		}
	}
	if err := s.in.ctx.Err(); err != nil {
		return nil, err
	}
	want := min(max(n, s.window), s.length-s.pos)
	if err := s.acc.fit(&s.win, int(want)); err != nil {
		return nil, err
	}
	s.raw, s.rawAt = nil, 0
	if err := s.in.obj.ReadRanges(s.in.ctx, []storage.Range{{Offset: s.off + s.pos, Length: want}}, [][]byte{s.win}); err != nil {
		return nil, err
	}
	s.raw, s.rawAt = s.win, s.pos
	if p := s.in.opt.Profile; p != nil {
		p.BytesRead.Add(want)
	}
	return s.raw, nil
}

// fill loads the next chunk; errEnd at the end of the stream.
func (s *stream) fill() error {
	for {
		left := s.length - s.pos
		if left <= 0 {
			return errEnd
		}
		s.origin = s.pos
		if s.codec == None {
			b, err := s.have(1)
			if err != nil {
				return err
			}
			b = b[:min(int64(len(b)), left)]
			s.chunk, s.at = b, 0
			s.pos += int64(len(b))
			return nil
		}
		b, err := s.have(min(chunkHeaderLen, left))
		if err != nil {
			return err
		}
		if len(b) < chunkHeaderLen {
			return fault.New(fault.Corrupt, "its %s stream ends within a compression chunk's header", s.kind)
		}
		h := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
		n := h >> 1
		if n > left-chunkHeaderLen {
			return fault.New(fault.Corrupt, "its %s stream has a compression chunk of %d bytes where %d are left", s.kind, n, left-chunkHeaderLen)
		}
		if b, err = s.have(chunkHeaderLen + n); err != nil {
			return err
		}
		body := b[chunkHeaderLen : chunkHeaderLen+n]
		s.pos += chunkHeaderLen + n
		s.at = 0
		if h&1 != 0 {
			s.chunk = body
		} else {
			if err := s.inflate(body); err != nil {
				return err
			}
		}
		if len(s.chunk) > 0 {
			return nil
		}
	}
}

func (s *stream) inflate(body []byte) error {
	room := min(s.block, (len(body)+16)*maxRatio[s.codec])
	if err := s.acc.fit(&s.own, room); err != nil {
		return err
	}
	n, err := s.in.z.into(s.own, body, s.codec)
	if err != nil {
		return fault.New(fault.Corrupt, "its %s stream has a chunk of %d bytes that cannot be decompressed by %s: %s", s.kind, len(body), s.codec, inflateFault(err))
	}
	s.chunk = s.own[:n]
	return nil
}

// errEnd says that a stream has no more bytes.
var errEnd = fault.New(fault.Corrupt, "the stream ends")

// refill is fill for a reader that needs more: the end is a fault that names the stream.
func (s *stream) refill() error {
	err := s.fill()
	if errors.Is(err, errEnd) {
		return s.ends()
	}
	return err
}

func (s *stream) byte() (byte, error) {
	for s.at >= len(s.chunk) {
		if err := s.refill(); err != nil {
			return 0, err
		}
	}
	b := s.chunk[s.at]
	s.at++
	return b, nil
}

// take gives the next n bytes, valid until the next call. n must be small: it is copied when it spans chunks.
func (s *stream) take(n int) ([]byte, error) {
	if n <= len(s.chunk)-s.at {
		b := s.chunk[s.at : s.at+n]
		s.at += n
		return b, nil
	}
	if cap(s.scratch) < n {
		s.scratch = make([]byte, max(n, 64))
	}
	b := s.scratch[:n]
	return b, s.read(b)
}

// read fills dst.
func (s *stream) read(dst []byte) error {
	for len(dst) > 0 {
		if s.at >= len(s.chunk) {
			if err := s.refill(); err != nil {
				return err
			}
		}
		n := copy(dst, s.chunk[s.at:])
		s.at += n
		dst = dst[n:]
	}
	return nil
}

func (s *stream) skip(n int64) error {
	for n > 0 {
		if s.at >= len(s.chunk) {
			if s.codec == None {
				// Nothing needs to be looked at to know where it ends.
				if n > s.length-s.pos {
					return s.ends()
				}
				s.pos, s.chunk, s.at = s.pos+n, nil, 0
				return nil
			}
			if err := s.refill(); err != nil {
				return err
			}
		}
		k := min(n, int64(len(s.chunk)-s.at))
		s.at += int(k)
		n -= k
	}
	return nil
}

// varint reads a base-128 number of up to 64 bits.
func (s *stream) varint() (uint64, error) {
	if rest := s.chunk[s.at:]; len(rest) >= binary.MaxVarintLen64 {
		if rest[0] < 0x80 {
			s.at++
			return uint64(rest[0]), nil
		}
		if u, n := binary.Uvarint(rest); n > 0 {
			s.at += n
			return u, nil
		}
	}
	var u uint64
	for shift := uint(0); shift < 70; shift += 7 {
		b, err := s.byte()
		if err != nil {
			return 0, err
		}
		u |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return u, nil
		}
	}
	return 0, fault.New(fault.Corrupt, "its %s stream has an integer of more than ten bytes", s.kind)
}

// positions is what is left of a row group's entry in the row index: where each stream of a column begins, in the streams' order.
type positions struct {
	p []uint64
}

func (p *positions) next() uint64 {
	if len(p.p) == 0 {
		return 0
	}
	u := p.p[0]
	p.p = p.p[1:]
	return u
}

// width is the number of positions that say where in the stream: a chunk and an offset in what it decompresses to, or an offset.
func (s *stream) width() int {
	if s.codec == None {
		return 1
	}
	return 2
}

// seek moves to a place that the row index gives.
func (s *stream) seek(p *positions) error {
	at := p.next()
	if s.codec == None {
		if at > uint64(s.length) {
			return s.outside(at)
		}
		s.pos, s.chunk, s.at = int64(at), nil, 0
		return nil
	}
	within := p.next()
	if at > uint64(s.length) {
		return s.outside(at)
	}
	if s.origin != int64(at) || len(s.chunk) == 0 {
		s.pos, s.chunk, s.at = int64(at), nil, 0
		if within == 0 {
			return nil
		}
		if err := s.refill(); err != nil {
			return err
		}
	}
	if within > uint64(len(s.chunk)) {
		return s.outside(at)
	}
	s.at = int(within)
	return nil
}

func (s *stream) outside(at uint64) error {
	return fault.New(fault.Corrupt, "the row index points to byte %d of its %s stream, which is outside", at, s.kind)
}
