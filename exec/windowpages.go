package exec

import (
	"math/bits"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/vector"
)

// pages is a table about the rows of one window partition that is read at any row: in memory a store, on disk frames of equally many
// rows, of which the ones used last are kept. Reading from disk that fails gives zeros and sets err, which is looked at once a chunk.
type pages struct {
	types []vector.Type
	keep  int // pages kept
	n     int
	store *kernel.Store // all rows; on disk those of the page being filled

	file   *spill.File
	frames []spill.Frame
	shift  uint // a page has 1<<shift rows
	kept   []keptPage
	rd     spill.Reader
	err    error
}

type keptPage struct {
	page int
	cols []*vector.Vector
}

// windowPageBytes is about what a page takes in memory.
const windowPageBytes = 256 << 10

func newPages(types []vector.Type, keep int) *pages {
	return &pages{types: types, keep: keep, store: kernel.NewStore(types)}
}

// reset makes the table empty and in memory again.
func (p *pages) reset() {
	if p.file != nil {
		p.file.Remove()
	}
	p.store.Reset()
	p.n, p.file, p.frames, p.kept = 0, nil, nil, nil
}

// bytes is the memory held.
func (p *pages) bytes() int64 {
	if p.file == nil {
		return p.store.Bytes()
	}
	largest := int64(windowPageBytes)
	for _, f := range p.frames[:min(len(p.frames), 1)] {
		largest = f.Memory
	}
	return p.store.Bytes() + largest*int64(p.keep)
}

// append adds rows of cols.
func (p *pages) append(mem *account, cols []*vector.Vector, rows []uint16, n int) error {
	p.n += len(rows)
	if p.file == nil {
		p.store.Append(cols, rows, n)
		return nil
	}
	for len(rows) > 0 {
		k := min(len(rows), 1<<p.shift-p.store.N)
		p.store.Append(cols, rows[:k], n)
		rows = rows[k:]
		if p.store.N == 1<<p.shift {
			if err := p.write(mem); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *pages) write(mem *account) error {
	f, err := p.file.Append(p.store)
	if err != nil {
		return err
	}
	mem.op.SpilledBytes.Add(f.Size())
	p.frames = append(p.frames, f)
	p.store.Reset()
	return nil
}

// toDisk moves what is there to a file, which later rows go to as well.
func (p *pages) toDisk(r *run, mem *account) error {
	f, err := r.area.File()
	if err != nil {
		return err
	}
	all := p.store
	rows := int64(vector.Size)
	if all.N > 0 {
		rows = min(rows, windowPageBytes*int64(all.N)/max(all.Bytes(), 1))
	}
	p.shift = uint(bits.Len64(uint64(max(rows, 1))) - 1)
	p.file, p.store, p.n = f, kernel.NewStore(p.types), 0
	for lo := 0; lo < all.N; lo += vector.Size {
		c := sliced(all.Cols, lo, min(lo+vector.Size, all.N))
		if err := p.append(mem, c.Cols, kernel.Identity(c.N), c.N); err != nil {
			return err
		}
	}
	return nil
}

// finish ends appending.
func (p *pages) finish(mem *account) error {
	if p.file == nil {
		return nil
	}
	if p.store.N > 0 {
		if err := p.write(mem); err != nil {
			return err
		}
	}
	return p.file.Finish()
}

// at gives a vector that has column k of row i, and the row's place there.
func (p *pages) at(k, i int) (*vector.Vector, int) {
	if p.file == nil {
		return p.store.Cols[k], i
	}
	return p.page(i >> p.shift)[k], i & (1<<p.shift - 1)
}

func (p *pages) page(no int) []*vector.Vector {
	for at, x := range p.kept {
		if x.page == no {
			if at > 0 { // the one used last comes first
				copy(p.kept[1:at+1], p.kept[:at])
				p.kept[0] = x
			}
			return x.cols
		}
	}
	cols, err := p.rd.Read(p.frames[no], p.types)
	if err != nil {
		p.err = err
		cols = cols[:0]
		for _, t := range p.types {
			cols = append(cols, vector.New(t, 1<<p.shift))
		}
	}
	if len(p.kept) < p.keep {
		p.kept = append(p.kept, keptPage{})
	}
	copy(p.kept[1:], p.kept)
	p.kept[0] = keptPage{no, cols}
	return cols
}

// block is the number of rows that blocks of block begin at multiples of.
func (p *pages) block() int {
	if p.file == nil {
		return vector.Size
	}
	return 1 << p.shift
}

// blockOf gives column k of the block that row i is in, the block's first row and its number of rows.
func (p *pages) blockOf(k, i int) (v *vector.Vector, base, n int) {
	base = i &^ (p.block() - 1)
	n = min(p.block(), p.n-base)
	if p.file == nil {
		return kernel.Slice(p.store.Cols[k], base, base+n), base, n
	}
	v, _ = p.at(k, base)
	return v, base, n
}
