// Package thrift decodes the Thrift compact protocol, as far as Parquet metadata uses it, straight from a byte slice.
//
// It is not a Thrift library: there are no transports, no messages, no encoding. A Reader belongs to one goroutine. It never
// panics and never trusts a length: a list or string longer than the bytes that remain, a depth beyond MaxDepth or a varint
// past 64 bits is a fault.Corrupt. Protocol: apache/thrift doc/specs/thrift-compact-protocol.md.
package thrift

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/skua-db/skua/fault"
)

// Type is a compact protocol element type.
type Type uint8

// The element types.
const (
	Stop   Type = 0
	True   Type = 1
	False  Type = 2
	Byte   Type = 3
	I16    Type = 4
	I32    Type = 5
	I64    Type = 6
	Double Type = 7
	Binary Type = 8
	List   Type = 9
	Set    Type = 10
	Map    Type = 11
	Struct Type = 12
	UUID   Type = 13
)

// MaxDepth is how deep structs and lists may nest; Parquet needs less than ten.
const MaxDepth = 32

// Reader decodes a buffer. The first error sticks: later calls return zero values and Err tells it, so that a decoder of a
// struct checks once at its end.
type Reader struct {
	buf   []byte
	pos   int
	depth int
	err   error
}

// NewReader reads buf from its start. Binary values alias buf.
func NewReader(buf []byte) *Reader { return &Reader{buf: buf} }

// Reset starts over on buf.
func (r *Reader) Reset(buf []byte) { *r = Reader{buf: buf} }

// Pos is the number of bytes read.
func (r *Reader) Pos() int { return r.pos }

// Err is the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Short reports whether the error is that the buffer ended; more bytes may help.
func (r *Reader) Short() bool { return errors.Is(r.err, errShort) }

var errShort error = fault.New(fault.Corrupt, "Thrift structure ends early")

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.pos = len(r.buf)
	}
}

// Fail makes err the reader's error unless it has one.
func (r *Reader) Fail(err error) { r.fail(err) }

func (r *Reader) byte() byte {
	if r.pos >= len(r.buf) {
		r.fail(errShort)
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

func (r *Reader) uvarint() uint64 {
	if r.pos < len(r.buf) && r.buf[r.pos] < 0x80 {
		r.pos++
		return uint64(r.buf[r.pos-1])
	}
	v, n := binary.Uvarint(r.buf[r.pos:])
	if n > 0 {
		r.pos += n
		return v
	}
	if n == 0 {
		r.fail(errShort)
	} else {
		r.fail(fault.New(fault.Corrupt, "Thrift varint is longer than 64 bits at byte %d", r.pos))
	}
	return 0
}

// Struct reads a struct: f is called for each field and must consume it, with Skip when it does not know it.
func (r *Reader) Struct(f func(id int16, t Type)) {
	if !r.enter() {
		return
	}
	var last int16
	for r.err == nil {
		h := r.byte()
		t := Type(h & 0x0f)
		if t == Stop {
			break
		}
		if d := h >> 4; d != 0 {
			last += int16(d)
		} else {
			last = int16(r.Int(I16))
		}
		if r.err == nil {
			f(last, t)
		}
	}
	r.depth--
}

func (r *Reader) enter() bool {
	if r.depth >= MaxDepth {
		r.fail(fault.New(fault.Corrupt, "Thrift structure is nested deeper than %d", MaxDepth))
	}
	if r.err != nil {
		return false
	}
	r.depth++
	return true
}

// List reads the header of a list or set of a field of type t: its element type and its length, which is never more than
// the bytes that remain (every element takes at least one).
func (r *Reader) List(t Type) (elem Type, n int) {
	if t != List && t != Set {
		r.mismatch(t, "list")
		return Stop, 0
	}
	h := r.byte()
	size := uint64(h >> 4)
	if size == 15 {
		size = r.uvarint()
	}
	if size > uint64(len(r.buf)-r.pos) {
		r.fail(fault.New(fault.Corrupt, "Thrift list claims %d elements, %d bytes remain", size, len(r.buf)-r.pos))
		return Stop, 0
	}
	return Type(h & 0x0f), int(size)
}

// Each reads a list of field type t, calling f for each element, which f must consume.
func (r *Reader) Each(t Type, f func(i, n int, elem Type)) {
	if !r.enter() {
		return
	}
	elem, n := r.List(t)
	for i := 0; i < n && r.err == nil; i++ {
		f(i, n, elem)
	}
	r.depth--
}

// Int reads an integer of any width; a field declared i64 may come as i32 and the other way round.
func (r *Reader) Int(t Type) int64 {
	switch t {
	case Byte:
		return int64(int8(r.byte()))
	case I16, I32, I64:
		u := r.uvarint()
		return int64(u>>1) ^ -int64(u&1)
	}
	r.mismatch(t, "integer")
	return 0
}

// Int32 reads an integer that must fit 32 bits.
func (r *Reader) Int32(t Type) int32 {
	v := r.Int(t)
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail(fault.New(fault.Corrupt, "Thrift integer %d does not fit 32 bits", v))
		return 0
	}
	return int32(v)
}

// Bool reads a boolean field, whose value is its type. A boolean in a list is a byte: use BoolElem.
func (r *Reader) Bool(t Type) bool {
	if t != True && t != False {
		r.mismatch(t, "boolean")
	}
	return t == True
}

// BoolElem reads a boolean that is an element of a list.
func (r *Reader) BoolElem(t Type) bool {
	if t != True && t != False {
		r.mismatch(t, "boolean")
		return false
	}
	return r.byte() == 1
}

// Double reads a floating-point number.
func (r *Reader) Double(t Type) float64 {
	if t != Double {
		r.mismatch(t, "double")
		return 0
	}
	at := r.pos
	if r.advance(8); r.err != nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(r.buf[at:]))
}

// Binary reads bytes or text; the result aliases the buffer.
func (r *Reader) Binary(t Type) []byte {
	if t != Binary {
		r.mismatch(t, "binary")
		return nil
	}
	n := r.uvarint()
	if n > uint64(len(r.buf)-r.pos) {
		if r.err == nil {
			r.fail(errShort)
		}
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n) : r.pos+int(n)]
	r.pos += int(n)
	return b
}

// String reads text as a copy.
func (r *Reader) String(t Type) string { return string(r.Binary(t)) }

func (r *Reader) mismatch(t Type, want string) {
	r.fail(fault.New(fault.Corrupt, "Thrift field of type %d where a %s belongs, at byte %d", t, want, r.pos))
}

// Skip passes over a field of type t.
func (r *Reader) Skip(t Type) {
	switch t {
	case True, False:
	default:
		r.skipElem(t)
	}
}

// skipElem passes over a value outside a field header, where booleans take a byte.
func (r *Reader) skipElem(t Type) {
	switch t {
	case True, False, Byte:
		r.byte()
	case I16, I32, I64:
		r.uvarint()
	case Double:
		r.advance(8)
	case UUID:
		r.advance(16)
	case Binary:
		r.Binary(t)
	case List, Set:
		r.Each(t, func(_, _ int, e Type) { r.skipElem(e) })
	case Map:
		r.skipMap()
	case Struct:
		r.Struct(func(_ int16, t Type) { r.Skip(t) })
	default:
		r.fail(fault.New(fault.Corrupt, "Thrift type %d is unknown, at byte %d", t, r.pos))
	}
}

func (r *Reader) skipMap() {
	if !r.enter() {
		return
	}
	n := r.uvarint()
	if n > uint64(len(r.buf)-r.pos) {
		r.fail(fault.New(fault.Corrupt, "Thrift map claims %d entries, %d bytes remain", n, len(r.buf)-r.pos))
	}
	if n > 0 && r.err == nil {
		kv := r.byte()
		for i := uint64(0); i < n && r.err == nil; i++ {
			r.skipElem(Type(kv >> 4))
			r.skipElem(Type(kv & 0x0f))
		}
	}
	r.depth--
}

func (r *Reader) advance(n int) {
	if n > len(r.buf)-r.pos {
		r.fail(errShort)
		return
	}
	r.pos += n
}
