package orc

import (
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// maxTextBytes limits the bytes of a batch or dictionary of strings.
const maxTextBytes = 1<<31 - 1

// appendBytes moves n bytes of s to the end of *to, which grows no faster than the bytes arrive.
func appendBytes(a *account, s *stream, to *[]byte, n int64) error {
	if n > maxTextBytes-int64(len(*to)) {
		return fault.New(fault.Exhausted, "more than %d bytes of strings at once", maxTextBytes)
	}
	for n > 0 {
		at := len(*to)
		k := min(n, int64(max(at, firstValues)))
		if err := grow(a, to, at+int(k), at, 1); err != nil {
			*to = (*to)[:at]
			return err
		}
		if err := s.read((*to)[at:]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// textLeaf gives strings and bytes that are stored one after the other, their lengths apart.
type textLeaf struct {
	s       *stream
	lengths intRuns
	c       *column
	fixed   int64 // every value's length; -1 for any
	arena   []byte
	views   []vector.View
	buf     [part]int64
}

func (l *textLeaf) begin() { l.arena = l.arena[:0] }

func (l *textLeaf) read(at, n int) error {
	if err := grow(l.c.acc, &l.views, at+n, at, 16); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, part)
		if err := l.lengths.read(l.buf[:k]); err != nil {
			return err
		}
		total, err := l.total(l.buf[:k])
		if err != nil {
			return err
		}
		off := len(l.arena)
		if err := appendBytes(l.c.acc, l.s, &l.arena, total); err != nil {
			return err
		}
		for i, size := range l.buf[:k] {
			l.views[at+i] = vector.LoadView(l.arena, 0, off, int(size))
			off += int(size)
		}
		at, n = at+k, n-k
	}
	return nil
}

func (l *textLeaf) total(sizes []int64) (total int64, err error) {
	for _, x := range sizes {
		if x < 0 || x > maxTextBytes {
			return 0, fault.New(fault.Corrupt, "its LENGTH stream has a length of %d", x)
		}
		if l.fixed >= 0 && x != l.fixed {
			return 0, fault.New(fault.Corrupt, "a value of %d bytes where %s has %d", x, l.c.want, l.fixed)
		}
		total += x
	}
	return total, nil
}

func (l *textLeaf) finish(n, m int, valid []uint64) error {
	if err := grow(l.c.acc, &l.views, n, m, 16); err != nil {
		return err
	}
	spread(l.views, n, m, valid)
	v := &l.c.out
	v.Views, v.Bufs = l.views, [][]byte{l.arena}
	return nil
}

func (l *textLeaf) skip(n int64) error {
	total, err := l.lengths.sum(n, maxRows)
	if err != nil {
		return err
	}
	return l.s.skip(total)
}

func (l *textLeaf) seek(p *positions) error {
	if err := l.s.seek(p); err != nil {
		return err
	}
	return l.lengths.seek(p)
}

func (l *textLeaf) width() int { return l.s.width() + l.lengths.width() }

func (l *textLeaf) places(at int) []place {
	return []place{{l.s, at}, {l.lengths.s, at + l.s.width()}}
}

// dictLeaf gives strings that are stored as numbers of a dictionary.
type dictLeaf struct {
	data    intRuns
	lengths intRuns
	bytes   *stream
	size    uint64 // entries, as the stripe footer says
	c       *column
	dict    *vector.Vector
	views   []vector.View
	arena   []byte
	codes   []int32
	buf     [part]int64
}

// load reads the dictionary.
func (l *dictLeaf) load() error {
	a := l.c.acc
	if l.size > maxTextBytes {
		return fault.New(fault.Corrupt, "a dictionary of %d entries", l.size)
	}
	for done := 0; done < int(l.size); {
		k := min(int(l.size)-done, part)
		if err := l.lengths.read(l.buf[:k]); err != nil {
			return err
		}
		total := int64(0)
		for _, x := range l.buf[:k] {
			if x < 0 || x > maxTextBytes {
				return fault.New(fault.Corrupt, "its LENGTH stream has a length of %d", x)
			}
			total += x
		}
		off := len(l.arena)
		if err := appendBytes(a, l.bytes, &l.arena, total); err != nil {
			return err
		}
		if err := grow(a, &l.views, done+k, done, 16); err != nil {
			return err
		}
		for i, size := range l.buf[:k] {
			l.views[done+i] = vector.LoadView(l.arena, 0, off, int(size))
			off += int(size)
		}
		done += k
	}
	if l.size == 0 {
		l.views = []vector.View{{}} // codes of null rows must point somewhere
	}
	l.dict = &vector.Vector{Type: l.c.want, Views: l.views, Bufs: [][]byte{l.arena}}
	return nil
}

func (l *dictLeaf) begin() {}

func (l *dictLeaf) read(at, n int) error {
	if l.dict == nil {
		if err := l.load(); err != nil {
			return err
		}
	}
	if err := grow(l.c.acc, &l.codes, at+n, at, 4); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, part)
		if err := l.data.read(l.buf[:k]); err != nil {
			return err
		}
		out := l.codes[at : at+k]
		for i, x := range l.buf[:k] {
			if uint64(x) >= l.size {
				return fault.New(fault.Corrupt, "entry %d of a dictionary of %d", x, l.size)
			}
			out[i] = int32(x)
		}
		at, n = at+k, n-k
	}
	return nil
}

func (l *dictLeaf) finish(n, m int, valid []uint64) error {
	if l.dict == nil {
		if err := l.load(); err != nil {
			return err
		}
	}
	if err := grow(l.c.acc, &l.codes, n, m, 4); err != nil {
		return err
	}
	spread(l.codes, n, m, valid)
	v := &l.c.out
	v.Form, v.Codes, v.Dict = vector.Dictionary, l.codes, l.dict
	return nil
}

func (l *dictLeaf) skip(n int64) error { return l.data.skip(n) }

func (l *dictLeaf) seek(p *positions) error { return l.data.seek(p) }

func (l *dictLeaf) width() int { return l.data.width() }

func (l *dictLeaf) places(at int) []place { return []place{{l.data.s, at}} }
