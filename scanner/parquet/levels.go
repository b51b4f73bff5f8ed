package parquet

import (
	"encoding/binary"
	"math/bits"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/encoding"
)

// maxPageEntries bounds the levels that are unfolded at once: a run of a few bytes can claim any number.
const maxPageEntries = 1 << 27

// levels are the decoded definition and repetition levels of a page. An entry is a pair of levels; a slot is an entry for which the
// column has an element, null or not. Columns outside lists have as many slots as entries and rows.
type levels struct {
	entries int
	slots   int
	present int // slots with a value

	// constant is the definition level of all entries when they are known to be one, else -1; defs is then not filled.
	constant int
	defs     []byte   // of columns with more than one level
	reps     []byte   // of columns in lists
	valid    []uint64 // a bit per slot; not filled when all are present or none
}

// read decodes the levels at the start of a data page and returns the bytes of its values.
func (l *levels) read(n *Node, h *pageHeader, body []byte, minDef []byte) (rest []byte, err error) {
	l.entries, l.constant = int(h.numValues), -1
	if h.kind == dataPageV2 {
		// Levels of version 2 have their lengths in the header.
		rep, def := body[:h.repBytes], body[h.repBytes:h.repBytes+h.defBytes]
		rest = body[h.repBytes+h.defBytes:]
		if n.MaxRep > 0 {
			if err := l.readReps(n, RLE, rep); err != nil {
				return nil, err
			}
		}
		if err := l.readDefs(n, RLE, def); err != nil {
			return nil, err
		}
	} else {
		rest = body
		if n.MaxRep > 0 {
			var part []byte
			if part, rest, err = cutLevels(rest, h.repEncoding, n.MaxRep, l.entries); err != nil {
				return nil, err
			}
			if err := l.readReps(n, h.repEncoding, part); err != nil {
				return nil, err
			}
		}
		var part []byte
		if n.MaxDef > 0 {
			if part, rest, err = cutLevels(rest, h.defEncoding, n.MaxDef, l.entries); err != nil {
				return nil, err
			}
		}
		if err := l.readDefs(n, h.defEncoding, part); err != nil {
			return nil, err
		}
	}
	if n.MaxRep > 0 {
		records, err := l.fillSlots(n, minDef)
		if err != nil {
			return nil, err
		}
		if h.kind == dataPageV2 && records != int(h.numRows) {
			return nil, fault.New(fault.Corrupt, "page header says %d rows, the levels give %d", h.numRows, records)
		}
	}
	if h.kind == dataPageV2 && int(h.numNulls) != l.entries-l.present {
		return nil, fault.New(fault.Corrupt, "page header says %d nulls, the levels give %d", h.numNulls, l.entries-l.present)
	}
	return rest, nil
}

// cutLevels takes the levels of a version 1 page off b.
func cutLevels(b []byte, enc Encoding, max, entries int) (part, rest []byte, err error) {
	size := int64(0)
	switch enc {
	case RLE:
		if len(b) < 4 {
			return nil, nil, fault.New(fault.Corrupt, "page of %d bytes has no levels", len(b))
		}
		size = int64(binary.LittleEndian.Uint32(b))
		b = b[4:]
	case BitPacked:
		size = (int64(entries)*int64(encoding.LevelWidth(max)) + 7) / 8
	default:
		return nil, nil, fault.New(fault.Corrupt, "levels in %s", enc)
	}
	if size > int64(len(b)) {
		return nil, nil, fault.New(fault.Corrupt, "levels of %d bytes, %d remain", size, len(b))
	}
	return b[:size:size], b[size:], nil
}

func (l *levels) readReps(n *Node, enc Encoding, b []byte) error {
	if l.entries > maxPageEntries {
		return fault.New(fault.Corrupt, "page claims %d entries", l.entries)
	}
	grow(&l.reps, l.entries, 0)
	return decodeLevels(l.reps, enc, b, n.MaxRep, "repetition")
}

func decodeLevels(dst []byte, enc Encoding, b []byte, max int, what string) error {
	if enc == BitPacked {
		if !encoding.BitPackedLevels(dst, b, encoding.LevelWidth(max), max) {
			return fault.New(fault.Corrupt, "%s levels are wrong", what)
		}
		return nil
	}
	var h encoding.Hybrid
	if err := h.Reset(b, encoding.LevelWidth(max), 0); err != nil {
		return err
	}
	return fault.Wrap(fault.Corrupt, h.ReadBytes(dst, max), "%s levels", what)
}

func (l *levels) readDefs(n *Node, enc Encoding, b []byte) error {
	l.slots = l.entries
	if n.MaxDef == 0 || l.entries == 0 {
		l.constant, l.present = n.MaxDef, l.entries
		if n.MaxRep > 0 {
			grow(&l.defs, l.entries, 0)
		}
		return nil
	}
	if enc == RLE {
		var h encoding.Hybrid
		if err := h.Reset(b, encoding.LevelWidth(n.MaxDef), uint32(n.MaxDef)+1); err != nil {
			return err
		}
		if v, ok := h.Constant(l.entries); ok && n.MaxRep == 0 {
			l.constant, l.present = int(v), 0
			if int(v) == n.MaxDef {
				l.present = l.entries
			}
			return nil
		}
		if n.MaxDef == 1 && n.MaxRep == 0 {
			if err := l.clearValid(l.entries); err != nil {
				return err
			}
			if err := h.ReadBits(l.valid, l.entries); err != nil {
				return fault.Wrap(fault.Corrupt, err, "definition levels")
			}
			l.present = popcount(l.valid)
			return nil
		}
	}
	if l.entries > maxPageEntries {
		return fault.New(fault.Corrupt, "page claims %d entries", l.entries)
	}
	grow(&l.defs, l.entries, 0)
	if err := decodeLevels(l.defs, enc, b, n.MaxDef, "definition"); err != nil {
		return err
	}
	if n.MaxRep > 0 {
		return nil // fillSlots goes on
	}
	if err := l.clearValid(l.entries); err != nil {
		return err
	}
	for i, d := range l.defs {
		if int(d) == n.MaxDef {
			l.valid[i>>6] |= 1 << (uint(i) & 63)
		}
	}
	l.present = popcount(l.valid)
	return nil
}

func (l *levels) clearValid(n int) error {
	if n > maxPageEntries {
		return fault.New(fault.Corrupt, "page claims %d entries", n)
	}
	grow(&l.valid, (n+63)/64, 0)
	clear(l.valid)
	return nil
}

func popcount(b []uint64) int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// countBits counts the set bits among [from, from+n).
func countBits(b []uint64, from, n int) int {
	c := 0
	for n > 0 {
		s := uint(from) & 63
		w := b[from>>6] >> s
		k := min(n, 64-int(s))
		if k < 64 {
			w &= 1<<uint(k) - 1
		}
		c += bits.OnesCount64(w)
		from, n = from+k, n-k
	}
	return c
}

// fillSlots finds the slots of a column in lists and checks the levels against each other. minDef[r] is the definition level that
// an entry of repetition level r has at least: it continues a list, which so has an element. It
// returns the number of records that begin.
func (l *levels) fillSlots(n *Node, minDef []byte) (records int, err error) {
	if err := l.clearValid(l.entries); err != nil {
		return 0, err
	}
	element, slot := int(minDef[n.MaxRep]), 0
	for i, d := range l.defs {
		r := l.reps[i]
		if d < minDef[r] {
			return 0, fault.New(fault.Corrupt, "entry %d has repetition level %d but definition level %d", i, r, d)
		}
		records += atLeast(0, int(r))
		l.valid[slot>>6] |= uint64(atLeast(int(d), n.MaxDef)) << (uint(slot) & 63)
		slot += atLeast(int(d), element)
	}
	l.slots = slot
	l.present = popcount(l.valid)
	return records, nil
}

// repeatedDefs gives for each repetition level of a leaf the definition level of the repeated ancestor that has it.
func repeatedDefs(leaf *Node) []byte {
	m := make([]byte, leaf.MaxRep+1)
	for n := leaf; n != nil; n = n.Parent {
		if n.Repetition == Repeated {
			m[n.MaxRep] = byte(n.MaxDef)
		}
	}
	return m
}
