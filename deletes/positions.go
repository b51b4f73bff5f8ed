package deletes

import (
	"strings"
	"unsafe"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// Positions are the rows that one position delete file deletes, by data file.
type Positions struct {
	byPath  map[string]*Bitmap
	byPlain map[string]string // path without scheme and authority to the path as written
	bytes   int64
}

// For gives the positions deleted in the data file path; nil for none. A file that is named with another scheme or host
// only is an error: nobody can tell whether it is the same.
func (p *Positions) For(path string) (*Bitmap, error) {
	if b := p.byPath[path]; b != nil {
		return b, nil
	}
	if other, ok := p.byPlain[Plain(path)]; ok {
		return nil, differs(path, other)
	}
	return nil, nil
}

func differs(data, named string) error {
	return fault.New(fault.Corrupt, "data file %s is named %s by a position delete file; if both are one file, say so with location_mapping", data, named)
}

// Bytes is about how much memory the positions take.
func (p *Positions) Bytes() int64 { return p.bytes }

// Plain is a path without scheme and authority.
func Plain(path string) string {
	if i := strings.Index(path, "://"); i > 0 {
		if j := strings.IndexByte(path[i+3:], '/'); j >= 0 {
			return path[i+3+j:]
		}
		return ""
	}
	if i := strings.IndexByte(path, ':'); i > 1 && !strings.Contains(path[:i], "/") {
		return path[i+1:]
	}
	return path
}

// PositionsBuilder collects the rows of a position delete file.
type PositionsBuilder struct {
	mapPath func(string) string
	byPath  map[string]*[]int64
	last    string
	list    *[]int64
}

// NewPositionsBuilder makes a builder; mapPath is applied to each path that the file names.
func NewPositionsBuilder(mapPath func(string) string) *PositionsBuilder {
	return &PositionsBuilder{mapPath: mapPath, byPath: map[string]*[]int64{}}
}

// Add takes n rows. A null path, a null position and a negative one are errors: to pass over them would bring rows back.
func (b *PositionsBuilder) Add(paths, positions *vector.Vector, n int) error {
	for i := range n {
		if paths.IsNull(i) || positions.IsNull(i) {
			return corrupt("a row of a position delete file has a null file_path or pos")
		}
		pos := positions.Values().I64[positions.Index(i)]
		if pos < 0 {
			return corrupt("a row of a position delete file has position %d", pos)
		}
		p := paths.Bytes(i)
		if b.list == nil || unsafe.String(unsafe.SliceData(p), len(p)) != b.last {
			b.last = string(p)
			if b.list = b.byPath[b.last]; b.list == nil {
				b.list = new([]int64)
				b.byPath[b.last] = b.list
			}
		}
		*b.list = append(*b.list, pos)
	}
	return nil
}

// Held is about how many bytes the builder holds.
func (b *PositionsBuilder) Held() int64 {
	n := int64(0)
	for p, l := range b.byPath {
		n += int64(len(p)) + int64(cap(*l))*8 + 64
	}
	return n
}

// Finish makes the Positions.
func (b *PositionsBuilder) Finish() *Positions {
	p := &Positions{byPath: map[string]*Bitmap{}, byPlain: map[string]string{}, bytes: 200}
	for path, l := range b.byPath {
		set := FromPositions(*l)
		mapped := b.mapPath(path)
		if old := p.byPath[mapped]; old != nil {
			set = Union([]*Bitmap{old, set})
		}
		p.byPath[mapped] = set
		p.byPlain[Plain(mapped)] = mapped
		p.bytes += set.Bytes() + 2*int64(len(path)) + 128
	}
	return p
}
