package deletes

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Kind says how a delete file deletes.
type Kind uint8

// The kinds of delete file.
const (
	PositionFile Kind = iota
	Vector
	EqualityFile
)

// File is a delete file of a snapshot, as its manifest entry describes it.
type File struct {
	Kind   Kind
	Path   string // as metadata writes it
	Format string
	Size   int64 // of the file, bytes
	Seq    int64 // data sequence number
	SpecID int
	// Partition is the encoded partition tuple; equal tuples of one spec have equal strings.
	Partition string
	Records   int64
	// Referenced is the one data file that a vector or position delete file concerns; empty for any.
	Referenced string
	// Lower and Upper bound the file_path column of a position delete file when Bounded.
	Bounded      bool
	Lower, Upper string
	// Offset and Length locate a vector in its Puffin file; -1 when the entry does not say.
	Offset, Length int64
	EqualityIDs    []int
	// KeyStats are what the entry of an equality delete file says of its key columns, by position in EqualityIDs; empty when it says nothing.
	KeyStats    []KeyStats
	KeyMetadata []byte
}

// KeyStats are statistics of a key column: bounds in Iceberg's binary form, nil for none, and counts, negative when unknown.
type KeyStats struct {
	Lower, Upper        []byte
	Nulls, Values, NaNs int64
}

// DataFile is what matching needs of a data file.
type DataFile struct {
	Path      string
	Seq       int64
	SpecID    int
	Partition string
	// Apart reports whether statistics show that no key of an equality delete file can be in the data file; nil when nothing is known.
	Apart func(*File) bool
}

// mostCompared bounds the equality delete files of a group that are held against one data file: beyond it the group is taken to apply, so
// that planning does not cost data files times delete files.
const mostCompared = 256

// applies reports whether any file of the group may delete rows of d.
func (g *Group) applies(d *DataFile) bool {
	newest := len(g.Files) - 1
	for i := newest; i >= 0 && g.Files[i].Seq > d.Seq; i-- {
		if d.Apart == nil || newest-i >= mostCompared || !d.Apart(g.Files[i]) {
			return true
		}
	}
	return false
}

// Group is all equality delete files of one scope with the same equality ids. Its files share one set of keys.
type Group struct {
	IDs   []int   // ascending
	Files []*File // by ascending sequence number
	// Key tells the group's content apart from any other's, for caches.
	Key string
}

// Applied is what deletes rows of a data file.
type Applied struct {
	Vector    *File
	Positions []*File
	Equality  []*Group
}

// None reports whether nothing applies.
func (a *Applied) None() bool {
	return a.Vector == nil && len(a.Positions) == 0 && len(a.Equality) == 0
}

// Index finds the delete files of a snapshot that apply to a data file.
type Index struct {
	vectors    map[string]*File
	referenced map[string][]*File // position files that name one data file
	// exact holds position files whose path bounds are equal, by that bound; lengths are the bounds' lengths. A bound may be
	// cut short, so all lengths are looked up.
	exact     map[string][]*File
	lengths   []int
	plain     map[string]string // of exact, referenced and vectors: path without scheme to the path
	positions map[scope][]*File
	equality  map[scope][]*Group
	global    []*Group
	files     int
}

type scope struct {
	spec      int
	partition string
}

// NewIndex sorts the delete files of a snapshot. unpartitioned tells whether a spec has no fields but void ones: its equality
// deletes are global. Paths that the files name have been mapped like those of data files. Two vectors for one data
// file, and a vector that names none, are fault.Corrupt.
func NewIndex(files []*File, unpartitioned func(specID int) bool) (*Index, error) {
	x := &Index{vectors: map[string]*File{}, referenced: map[string][]*File{}, exact: map[string][]*File{}, plain: map[string]string{},
		positions: map[scope][]*File{}, equality: map[scope][]*Group{}, files: len(files)}
	groups := map[scope]map[string]*Group{}
	for _, f := range files {
		sc := scope{f.SpecID, f.Partition}
		switch f.Kind {
		case Vector:
			if f.Referenced == "" {
				return nil, corrupt("deletion vector at byte %d of %s does not say which data file it is for", f.Offset, f.Path)
			}
			if old := x.vectors[f.Referenced]; old != nil {
				return nil, corrupt("data file %s has two deletion vectors, in %s and %s", f.Referenced, old.Path, f.Path)
			}
			x.vectors[f.Referenced] = f
			x.plain[Plain(f.Referenced)] = f.Referenced
		case PositionFile:
			switch {
			case f.Referenced != "":
				x.referenced[f.Referenced] = append(x.referenced[f.Referenced], f)
				x.plain[Plain(f.Referenced)] = f.Referenced
			case f.Bounded && f.Lower == f.Upper:
				if x.exact[f.Lower] == nil && !slices.Contains(x.lengths, len(f.Lower)) {
					x.lengths = append(x.lengths, len(f.Lower))
				}
				x.exact[f.Lower] = append(x.exact[f.Lower], f)
				x.plain[Plain(f.Lower)] = f.Lower
			default:
				x.positions[sc] = append(x.positions[sc], f)
			}
		case EqualityFile:
			if len(f.EqualityIDs) == 0 {
				return nil, corrupt("equality delete file %s has no equality ids", f.Path)
			}
			if unpartitioned(f.SpecID) {
				sc = scope{spec: -1}
			}
			ids := slices.Clone(f.EqualityIDs)
			slices.Sort(ids)
			ids = slices.Compact(ids)
			var key []byte
			for _, id := range ids {
				key = binary.AppendVarint(key, int64(id))
			}
			if groups[sc] == nil {
				groups[sc] = map[string]*Group{}
			}
			g := groups[sc][string(key)]
			if g == nil {
				g = &Group{IDs: ids}
				groups[sc][string(key)] = g
			}
			g.Files = append(g.Files, f)
		}
	}
	for sc, byIDs := range groups {
		for ids, g := range byIDs {
			sort.SliceStable(g.Files, func(i, j int) bool {
				a, b := g.Files[i], g.Files[j]
				return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.Path, b.Path)) < 0
			})
			g.Key = groupKey(ids, g.Files)
			if sc.spec < 0 {
				x.global = append(x.global, g)
			} else {
				x.equality[sc] = append(x.equality[sc], g)
			}
		}
	}
	return x, nil
}

func groupKey(ids string, files []*File) string {
	var b strings.Builder
	b.WriteString(ids)
	var num [binary.MaxVarintLen64]byte
	for _, f := range files {
		b.WriteByte(0)
		b.Write(num[:binary.PutVarint(num[:], f.Seq)])
		b.Write(num[:binary.PutVarint(num[:], f.Size)])
		b.WriteString(f.Path)
	}
	return b.String()
}

// Len is the number of delete files in the index.
func (x *Index) Len() int { return x.files }

// For finds what applies to a data file (spec: Scan Planning). A vector or position delete file that names the data file
// but has another spec or partition, or is older, is fault.Corrupt, as is one that names the path with another scheme or
// host only.
func (x *Index) For(d DataFile) (Applied, error) {
	var a Applied
	if x.files == 0 {
		return a, nil
	}
	if v := x.vectors[d.Path]; v != nil {
		if err := named(v, d, "deletion vector"); err != nil {
			return a, err
		}
		a.Vector = v
	} else if err := x.findPositions(d, &a); err != nil {
		return a, err
	}
	for _, gs := range [2][]*Group{x.equality[scope{d.SpecID, d.Partition}], x.global} {
		for _, g := range gs {
			if g.applies(&d) {
				a.Equality = append(a.Equality, g)
			}
		}
	}
	return a, nil
}

func named(f *File, d DataFile, what string) error {
	if f.SpecID != d.SpecID || f.Partition != d.Partition {
		return fault.New(fault.Corrupt, "%s %s names data file %s, but their partitions differ (specs %d and %d)", what, f.Path, d.Path, f.SpecID, d.SpecID)
	}
	if f.Seq < d.Seq {
		return fault.New(fault.Corrupt, "%s %s names data file %s, but is older (sequence numbers %d and %d)", what, f.Path, d.Path, f.Seq, d.Seq)
	}
	return nil
}

func (x *Index) findPositions(d DataFile, a *Applied) error {
	found := false
	for _, f := range x.referenced[d.Path] {
		if err := named(f, d, "position delete file"); err != nil {
			return err
		}
		a.Positions = append(a.Positions, f)
		found = true
	}
	sc := scope{d.SpecID, d.Partition}
	take := func(f *File) {
		if f.Seq >= d.Seq && (scope{f.SpecID, f.Partition}) == sc {
			a.Positions = append(a.Positions, f)
		}
	}
	for _, n := range x.lengths {
		if n > len(d.Path) {
			continue
		}
		for _, f := range x.exact[d.Path[:n]] {
			found = found || n == len(d.Path)
			take(f)
		}
	}
	if !found {
		if other, ok := x.plain[Plain(d.Path)]; ok && other != d.Path {
			return differs(d.Path, other)
		}
	}
	plain := Plain(d.Path)
	for _, f := range x.positions[sc] {
		if !f.Bounded || within(d.Path, f.Lower, f.Upper) || within(plain, Plain(f.Lower), Plain(f.Upper)) {
			take(f)
		}
	}
	return nil
}

// within reports whether path lies between bounds that may have been cut short.
func within(path, lower, upper string) bool {
	return lower <= path && (path <= upper || strings.HasPrefix(path, upper))
}
