package orc

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

// message walks the fields of an encoded protobuf message. After next gave false, err tells whether the message ended or is broken.
// Fields alias the message's bytes, so nothing is allocated by a length that the message only claims.
type message struct {
	b   []byte
	err error

	num  uint64 // field number
	wire uint8
	u    uint64 // value of a varint or fixed field
	data []byte // value of a length-delimited field
}

const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var errProto = fault.New(fault.Corrupt, "a protobuf message is broken")

// next moves to the next field.
func (m *message) next() bool {
	if len(m.b) == 0 || m.err != nil {
		return false
	}
	tag, ok := m.varint()
	m.num, m.wire, m.u, m.data = tag>>3, uint8(tag&7), 0, nil
	if !ok || m.num == 0 {
		return m.fail()
	}
	switch m.wire {
	case wireVarint:
		if m.u, ok = m.varint(); !ok {
			return m.fail()
		}
	case wireFixed64:
		if len(m.b) < 8 {
			return m.fail()
		}
		m.u, m.b = binary.LittleEndian.Uint64(m.b), m.b[8:]
	case wireFixed32:
		if len(m.b) < 4 {
			return m.fail()
		}
		m.u, m.b = uint64(binary.LittleEndian.Uint32(m.b)), m.b[4:]
	case wireBytes:
		n, ok := m.varint()
		if !ok || n > uint64(len(m.b)) {
			return m.fail()
		}
		m.data, m.b = m.b[:n:n], m.b[n:]
	default:
		return m.fail()
	}
	return true
}

func (m *message) fail() bool {
	m.err = errProto
	return false
}

func (m *message) varint() (uint64, bool) {
	u, n := binary.Uvarint(m.b)
	if n <= 0 {
		return 0, false
	}
	m.b = m.b[n:]
	return u, true
}

// zigzag undoes the encoding of sint32 and sint64.
func zigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// uints appends the values of a repeated integer field, packed or not. Each takes a byte of the message at least.
func (m *message) uints(dst []uint64) []uint64 {
	if m.wire != wireBytes {
		return append(dst, m.u)
	}
	p := message{b: m.data}
	for len(p.b) > 0 {
		u, ok := p.varint()
		if !ok {
			m.fail()
			return dst
		}
		dst = append(dst, u)
	}
	return dst
}
