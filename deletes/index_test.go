package deletes

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func paths(a Applied) []string {
	var out []string
	if a.Vector != nil {
		out = append(out, "dv:"+a.Vector.Path)
	}
	for _, f := range a.Positions {
		out = append(out, f.Path)
	}
	for _, g := range a.Equality {
		out = append(out, fmt.Sprint("eq:", g.IDs, len(g.Files)))
	}
	return out
}

// Spec 0 is partitioned, spec 1 is not.
func index(t *testing.T, files ...*File) *Index {
	x, err := NewIndex(files, func(id int) bool { return id == 1 })
	require.NoError(t, err)
	return x
}

func TestMatching(t *testing.T) {
	data := func(seq int64) DataFile { return DataFile{Path: "/t/a", Seq: seq, SpecID: 0, Partition: "p"} }
	pos := func(seq int64) *File {
		return &File{Kind: PositionFile, Path: "pos", Seq: seq, SpecID: 0, Partition: "p"}
	}
	eq := func(seq int64, spec int, part string) *File {
		return &File{Kind: EqualityFile, Path: "eq", Seq: seq, SpecID: spec, Partition: part, EqualityIDs: []int{3, 1}}
	}
	bounded := func(lo, hi string) *File {
		f := pos(5)
		f.Bounded, f.Lower, f.Upper = true, lo, hi
		return f
	}
	for _, c := range []struct {
		name string
		file *File
		seq  int64
		want []string
	}{
		{"positions of the same commit", pos(5), 5, []string{"pos"}},
		{"older positions", pos(4), 5, nil},
		{"equality of the same commit", eq(5, 0, "p"), 5, nil},
		{"newer equality", eq(6, 0, "p"), 5, []string{"eq:[1 3] 1"}},
		{"equality of another partition", eq(6, 0, "q"), 5, nil},
		{"global equality", eq(6, 1, ""), 5, []string{"eq:[1 3] 1"}},
		{"positions without partition are not global", &File{Kind: PositionFile, Path: "pos", Seq: 6, SpecID: 1}, 5, nil},
		{"bounds around", bounded("/t/A", "/t/b"), 5, []string{"pos"}},
		{"bounds beside", bounded("/t/b", "/t/c"), 5, nil},
		{"bounds cut short", bounded("/t", "/t"), 5, []string{"pos"}},
		{"bounds equal to the path", bounded("/t/a", "/t/a"), 5, []string{"pos"}},
		{"bounds of another file", bounded("/t/ab", "/t/ab"), 5, nil},
		{"vector", &File{Kind: Vector, Path: "v", Seq: 5, SpecID: 0, Partition: "p", Referenced: "/t/a"}, 5, []string{"dv:v"}},
		{"named", &File{Kind: PositionFile, Path: "n", Seq: 5, SpecID: 0, Partition: "p", Referenced: "/t/a"}, 5, []string{"n"}},
		{"another named", &File{Kind: PositionFile, Path: "n", Seq: 5, SpecID: 0, Partition: "p", Referenced: "/t/b"}, 5, nil},
	} {
		a, err := index(t, c.file).For(data(c.seq))
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, paths(a), c.name)
		require.Equal(t, len(c.want) == 0, a.None(), c.name)
	}
}

func TestVectorReplacesPositions(t *testing.T) {
	x := index(t, &File{Kind: PositionFile, Path: "pos", Seq: 9, Partition: "p"},
		&File{Kind: Vector, Path: "v", Seq: 5, Partition: "p", Referenced: "/t/a"})
	a, err := x.For(DataFile{Path: "/t/a", Seq: 5, Partition: "p"})
	require.NoError(t, err)
	require.Equal(t, []string{"dv:v"}, paths(a))
	a, err = x.For(DataFile{Path: "/t/b", Seq: 5, Partition: "p"})
	require.NoError(t, err)
	require.Equal(t, []string{"pos"}, paths(a))
}

func TestContradictions(t *testing.T) {
	d := DataFile{Path: "/t/a", Seq: 5, Partition: "p"}
	for _, f := range []*File{
		{Kind: Vector, Path: "v", Seq: 4, Partition: "p", Referenced: "/t/a"},
		{Kind: Vector, Path: "v", Seq: 5, Partition: "q", Referenced: "/t/a"},
		{Kind: Vector, Path: "v", Seq: 5, SpecID: 2, Partition: "p", Referenced: "/t/a"},
		{Kind: PositionFile, Path: "n", Seq: 4, Partition: "p", Referenced: "/t/a"},
		{Kind: PositionFile, Path: "n", Seq: 5, Partition: "p", Referenced: "hdfs://host/t/a"},
		{Kind: PositionFile, Path: "n", Seq: 5, Partition: "p", Bounded: true, Lower: "s3://b/t/a", Upper: "s3://b/t/a"},
	} {
		_, err := index(t, f).For(d)
		require.ErrorIs(t, err, fault.Corrupt, "%+v", f)
		require.Contains(t, err.Error(), "/t/a")
	}
	v := &File{Kind: Vector, Path: "v", Referenced: "/t/a"}
	_, err := NewIndex([]*File{v, v}, nil)
	require.ErrorIs(t, err, fault.Corrupt)
	_, err = NewIndex([]*File{{Kind: Vector, Path: "v"}}, nil)
	require.ErrorIs(t, err, fault.Corrupt)
	_, err = NewIndex([]*File{{Kind: EqualityFile, Path: "e"}}, nil)
	require.ErrorIs(t, err, fault.Corrupt)
}

func TestPositions(t *testing.T) {
	same := func(p string) string { return p }
	b := NewPositionsBuilder(same)
	p, n := vector.NewBuilder(vector.Of(vector.Varchar)), vector.NewBuilder(vector.Of(vector.BigInt))
	for _, row := range []struct {
		path string
		pos  int64
	}{{"hdfs://h/x", 3}, {"/a", 7}, {"hdfs://h/x", 1}, {"/a", 7}} {
		p.Append(row.path)
		n.Append(row.pos)
	}
	require.NoError(t, b.Add(p.Finish(), n.Finish(), 4))
	ps := b.Finish()
	got, err := ps.For("/a")
	require.NoError(t, err)
	require.Equal(t, []int64{7}, got.Positions())
	got, err = ps.For("hdfs://h/x")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 3}, got.Positions())
	got, err = ps.For("/b")
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = ps.For("/x")
	require.ErrorIs(t, err, fault.Corrupt)
	require.Contains(t, err.Error(), "location_mapping")

	for _, bad := range []vector.Value{nil, int64(-1)} {
		p.Append("/a")
		n.Append(bad)
		require.ErrorIs(t, NewPositionsBuilder(same).Add(p.Finish(), n.Finish(), 1), fault.Corrupt)
	}
}
