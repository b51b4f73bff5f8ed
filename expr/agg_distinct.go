package expr

import (
	"hash/maphash"
	"math/bits"
	"sync"

	"github.com/skua-db/skua/vector"
)

// distinctAcc feeds each distinct argument list of a group once. It keeps the lists themselves, so that partial states can be merged.
type distinctAcc struct {
	a     *Aggregate
	acc   Accumulator
	fixed bool // one argument of at most 64 bits
	words wordSet
	texts textSet
	nulls map[uint32]struct{} // groups that have seen the null of a fixed argument

	full []distinctPart
	last distinctPart
	make []*vector.Builder // of last
	held int64
	mu   sync.Mutex

	key  []byte
	live []uint16
	gs   []uint32
}

// distinctPart is up to vector.Size argument lists with their groups.
type distinctPart struct {
	groups []uint32
	args   []*vector.Vector
}

func newDistinct(a *Aggregate, acc Accumulator) Accumulator {
	d := &distinctAcc{a: a, acc: acc}
	if len(a.Args) == 1 {
		switch a.Args[0].Type().Physical() {
		case vector.PBool, vector.PInt32, vector.PInt64, vector.PFloat32, vector.PFloat64:
			d.fixed = a.Args[0].Type().Kind != vector.Null
		}
	}
	return d
}

func (d *distinctAcc) Resize(n int) { d.acc.Resize(n) }

func (d *distinctAcc) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	rows := rowsOf(sel, n)
	d.live, d.gs = grown(d.live, len(rows)), grown(d.gs, len(rows))
	j := 0
	for k, i := range rows {
		g := uint32(0)
		if groups != nil {
			g = groups[k]
		}
		if !d.note(g, args[:len(d.a.Args)], int(i)) {
			continue
		}
		d.live[j], d.gs[j] = i, g
		j++
	}
	if j == 0 {
		return nil
	}
	d.keep(args[:len(d.a.Args)], d.live[:j], d.gs[:j])
	return d.acc.Add(d.gs[:j], args, d.live[:j], n)
}

// note remembers a list of arguments and reports whether it is new.
func (d *distinctAcc) note(g uint32, args []*vector.Vector, i int) bool {
	if !d.fixed {
		d.key = append(d.key[:0], byte(g), byte(g>>8), byte(g>>16), byte(g>>24))
		for _, a := range args {
			d.key = AppendKey(d.key, a, i)
		}
		return d.texts.add(d.key)
	}
	v := args[0]
	if v.IsNull(i) {
		if _, ok := d.nulls[g]; ok {
			return false
		}
		if d.nulls == nil {
			d.nulls = map[uint32]struct{}{}
		}
		d.nulls[g] = struct{}{}
		d.held += 32
		return true
	}
	s, j := v.Values(), v.Index(i)
	var x uint64
	switch {
	case s.I64 != nil:
		x = uint64(s.I64[j])
	case s.I32 != nil:
		x = uint64(s.I32[j])
	case s.F64 != nil:
		x = FloatKey64(s.F64[j])
	case s.F32 != nil:
		x = uint64(FloatKey32(s.F32[j]))
	case s.Bools[j]:
		x = 1
	}
	return d.words.add(g, x)
}

// keep copies new lists of arguments, for Merge.
func (d *distinctAcc) keep(args []*vector.Vector, rows []uint16, gs []uint32) {
	for p, i := range rows {
		if len(d.last.groups) == vector.Size {
			d.seal()
		}
		if d.make == nil {
			d.make = make([]*vector.Builder, len(args))
			for c, a := range d.a.Args {
				d.make[c] = vector.NewBuilder(a.Type())
			}
		}
		d.last.groups = append(d.last.groups, gs[p])
		for c, a := range args {
			d.make[c].AppendFrom(a, int(i))
			d.held += rowSize(a, int(i))
		}
	}
}

// seal ends the part being filled.
func (d *distinctAcc) seal() {
	if len(d.last.groups) == 0 {
		return
	}
	for _, b := range d.make {
		d.last.args = append(d.last.args, b.Finish())
	}
	d.full = append(d.full, d.last)
	d.last, d.make = distinctPart{}, nil
}

// rowSize is the memory that a copied value takes, roughly.
func rowSize(v *vector.Vector, i int) int64 {
	if v.IsNull(i) {
		return 8
	}
	switch v.Type.Physical() {
	case vector.PInt128:
		return 20
	case vector.PView:
		return 20 + int64(len(v.Bytes(i)))
	case vector.PList, vector.PRow:
		return valueBytes(v.Get(i))
	}
	return 12
}

func (d *distinctAcc) Merge(src Accumulator, to []uint32) error {
	// Arguments seen on both sides must count once: src's lists are fed again, its states are not used.
	s := src.(*distinctAcc)
	s.mu.Lock() // several may merge different groups of s at once
	s.seal()
	s.mu.Unlock()
	for _, part := range s.full {
		gs, rows := make([]uint32, 0, len(part.groups)), make([]uint16, 0, len(part.groups))
		for i, g := range part.groups {
			if to[g] != NoGroup {
				gs, rows = append(gs, to[g]), append(rows, uint16(i))
			}
		}
		if len(rows) == 0 {
			continue
		}
		cols := part.args
		// With DISTINCT the sort keys are arguments, as the binder has checked; any other key cannot decide.
		for _, k := range d.a.OrderBy {
			at := 0
			for c, a := range d.a.Args {
				if Equal(a, k.Expr) {
					at = c
				}
			}
			cols = append(cols[:len(cols):len(cols)], cols[at])
		}
		if err := d.Add(gs, cols, rows, len(part.groups)); err != nil {
			return err
		}
	}
	return nil
}

func (d *distinctAcc) Result(lo, hi int) (*vector.Vector, error) { return d.acc.Result(lo, hi) }

func (d *distinctAcc) Bytes() int64 {
	return d.held + int64(16*len(d.words.slots)+8*len(d.texts.slots)+8*cap(d.texts.ends)+8*cap(d.texts.tags)+cap(d.texts.text)) + d.acc.Bytes()
}

// wordSet is a set of pairs of a group and a number.
type wordSet struct {
	slots []wordSlot
	n     int
}

type wordSlot struct {
	word  uint64
	group uint32 // and 1; 0 is an empty slot
}

func (s *wordSet) place(g uint32, x uint64) int {
	hi, lo := bits.Mul64(x^0x9E3779B97F4A7C15, uint64(g)<<1^0xD6E8FEB86659FD93)
	i := int((hi ^ lo) * 0x9E3779B97F4A7C15 >> 32 & uint64(len(s.slots)-1))
	for s.slots[i].group != 0 && (s.slots[i].group != g || s.slots[i].word != x) {
		i = (i + 1) & (len(s.slots) - 1)
	}
	return i
}

// add reports whether the pair is new.
func (s *wordSet) add(g uint32, x uint64) bool {
	if 2*(s.n+1) > len(s.slots) {
		old := s.slots
		s.slots = make([]wordSlot, max(64, 2*len(old)))
		for _, o := range old {
			if o.group != 0 {
				s.slots[s.place(o.group, o.word)] = o
			}
		}
	}
	i := s.place(g+1, x)
	if s.slots[i].group != 0 {
		return false
	}
	s.slots[i] = wordSlot{x, g + 1}
	s.n++
	return true
}

// textSet is a set of byte strings, kept in one buffer.
type textSet struct {
	slots []textSlot
	ends  []int // of each string in text
	tags  []uint64
	text  []byte
}

type textSlot struct {
	tag uint32
	id  uint32 // and 1; 0 is an empty slot
}

var textSeed = maphash.MakeSeed()

// add reports whether the string is new.
func (s *textSet) add(key []byte) bool {
	h := maphash.Bytes(textSeed, key)
	if 2*(len(s.ends)+1) > len(s.slots) {
		s.slots = make([]textSlot, max(64, 2*len(s.slots)))
		for id, t := range s.tags {
			i := s.start(t)
			for s.slots[i].id != 0 {
				i = (i + 1) & (len(s.slots) - 1)
			}
			s.slots[i] = textSlot{uint32(t), uint32(id + 1)}
		}
	}
	i := s.start(h)
	for s.slots[i].id != 0 {
		if s.slots[i].tag == uint32(h) && string(s.at(s.slots[i].id-1)) == string(key) {
			return false
		}
		i = (i + 1) & (len(s.slots) - 1)
	}
	s.text = append(s.text, key...)
	s.ends = append(s.ends, len(s.text))
	s.tags = append(s.tags, h)
	s.slots[i] = textSlot{uint32(h), uint32(len(s.ends))}
	return true
}

func (s *textSet) start(h uint64) int { return int(h >> 32 & uint64(len(s.slots)-1)) }

func (s *textSet) at(id uint32) []byte {
	lo := 0
	if id > 0 {
		lo = s.ends[id-1]
	}
	return s.text[lo:s.ends[id]]
}
