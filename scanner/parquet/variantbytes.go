package parquet

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

// variantNames is the dictionary of a variant's metadata (VariantEncoding.md, "Metadata encoding").
type variantNames struct {
	raw   string
	names []string
	ids   map[string]int
}

// parse reads metadata; the last one is kept, for most rows share it.
func (m *variantNames) parse(b []byte) error {
	if m.ids != nil && m.raw == string(b) {
		return nil
	}
	bad := fault.New(fault.Corrupt, "variant metadata of %d bytes is broken", len(b))
	if len(b) < 2 || b[0]&0x0f != 1 {
		return bad
	}
	width := int(b[0]>>6) + 1
	if len(b) < 1+width {
		return bad
	}
	n := readUint(b[1:], width)
	offsets := b[1+width:]
	if n < 0 || (n+1)*width > len(offsets) || n > len(offsets) {
		return bad
	}
	text := offsets[(n+1)*width:]
	m.raw, m.names, m.ids = string(b), m.names[:0], make(map[string]int, n)
	for i := range n {
		lo, hi := readUint(offsets[i*width:], width), readUint(offsets[(i+1)*width:], width)
		if lo < 0 || hi < lo || hi > len(text) {
			m.ids = nil
			return bad
		}
		name := string(text[lo:hi])
		m.names = append(m.names, name)
		m.ids[name] = i
	}
	return nil
}

func (m *variantNames) id(name string) (int, bool) {
	id, ok := m.ids[name]
	return id, ok
}

// readUint reads a little-endian number of 1 to 4 bytes, which b holds.
func readUint(b []byte, width int) int {
	x := 0
	for i := range width {
		x |= int(b[i]) << (8 * i)
	}
	return x
}

func appendUint(dst []byte, x, width int) []byte {
	for range width {
		dst = append(dst, byte(x))
		x >>= 8
	}
	return dst
}

func appendCount(dst []byte, n int, large bool) []byte {
	if large {
		return binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	return append(dst, byte(n))
}

// byteWidth is how many bytes x takes.
func byteWidth(x int) int {
	w := 1
	for x >>= 8; x > 0; x >>= 8 {
		w++
	}
	return w
}

// container reads the head of an object or array: its ids (of an object), offsets and values, each within b.
func container(b []byte) (n, idWidth, width int, ids, offsets, values []byte, ok bool) {
	h := b[0] >> 2
	width = int(h&3) + 1
	large := h>>2&1 == 1
	if b[0]&3 == 2 {
		idWidth = int(h>>2&3) + 1
		large = h>>4&1 == 1
	}
	at := 2
	if large {
		at = 5
	}
	if len(b) < at {
		return
	}
	n = readUint(b[1:], at-1)
	if n > len(b) || at+n*idWidth+(n+1)*width > len(b) {
		return
	}
	ids = b[at : at+n*idWidth]
	offsets = b[at+n*idWidth : at+n*idWidth+(n+1)*width]
	values = b[at+n*idWidth+(n+1)*width:]
	size := readUint(offsets[n*width:], width)
	if size > len(values) {
		return
	}
	return n, idWidth, width, ids, offsets, values[:size], true
}

// primitiveSizes are the bytes after the head of each primitive type; -1 for a length and bytes.
var primitiveSizes = [...]int{0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, -1, -1, 8, 8, 8, 16}

// variantSize gives the bytes that the value at the start of b takes and checks that all it holds lies within them.
func variantSize(b []byte, depth int) (size int, ok bool) {
	if len(b) == 0 || depth > maxSchemaDepth {
		return 0, false
	}
	switch b[0] & 3 {
	case 1:
		size = 1 + int(b[0]>>2)
	case 0:
		id := int(b[0] >> 2)
		if id >= len(primitiveSizes) {
			return 0, false
		}
		size = 1 + primitiveSizes[id]
		if primitiveSizes[id] < 0 {
			if len(b) < 5 {
				return 0, false
			}
			size = 5 + int(binary.LittleEndian.Uint32(b[1:]))
		}
	default:
		n, _, width, _, offsets, values, ok := container(b)
		if !ok {
			return 0, false
		}
		room := len(values) // each byte belongs to one value, so that nesting cannot multiply work
		for i := range n {
			at := readUint(offsets[i*width:], width)
			if at >= len(values) {
				return 0, false
			}
			s, ok := variantSize(values[at:], depth+1)
			if room -= s; !ok || room < 0 {
				return 0, false
			}
		}
		size = sizeOfContainer(b, len(values))
	}
	return size, size <= len(b)
}

// sizeOfContainer is the whole size of an object or array whose values take so many bytes.
func sizeOfContainer(b []byte, values int) int {
	n, idWidth, width, _, _, _, _ := container(b)
	at := 2
	if b[0]&3 == 2 && b[0]>>6&1 == 1 || b[0]&3 == 3 && b[0]>>4&1 == 1 {
		at = 5
	}
	return at + n*idWidth + (n+1)*width + values
}

// objectFields lists the fields of an object; ok is false when b is none.
func objectFields(b []byte, names *variantNames) (fields []variantField, ok bool) {
	if len(b) == 0 || b[0]&3 != 2 {
		return nil, false
	}
	n, idWidth, width, ids, offsets, values, ok := container(b)
	if !ok {
		return nil, false
	}
	for i := range n {
		id, at := readUint(ids[i*idWidth:], idWidth), readUint(offsets[i*width:], width)
		if id >= len(names.names) || at >= len(values) {
			return nil, false
		}
		size, ok := variantSize(values[at:], 0)
		if !ok {
			return nil, false
		}
		fields = append(fields, variantField{names.names[id], id, values[at : at+size]})
	}
	return fields, true
}
