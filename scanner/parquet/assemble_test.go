package parquet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func group(name string, rep Repetition, converted, children int) madeField {
	return madeField{name: name, rep: rep, physical: -1, converted: converted, children: children}
}

func int32Field(name string, rep Repetition) madeField {
	return madeField{name: name, rep: rep, physical: Int32, converted: -1}
}

// nestedPage is a version 2 page with levels of the given widths, one packed run each.
func nestedPage(reps, defs []int, repWidth, defWidth int, values ...int32) madePage {
	p := madePage{kind: dataPageV2, values: len(defs), enc: Plain, body: le32(values...)}
	p.nulls = len(defs) - len(values)
	for _, r := range reps {
		if r == 0 {
			p.rows++
		}
	}
	p.rep, p.def = packLevels(reps, repWidth), packLevels(defs, defWidth)
	return p
}

func packLevels(v []int, width int) []byte {
	if width == 0 {
		return nil
	}
	groups := (len(v) + 7) / 8
	b := make([]byte, 1+groups*width)
	b[0] = byte(groups<<1 | 1)
	for i, x := range v {
		for k := range width {
			if x>>k&1 == 1 {
				at := i*width + k
				b[1+at/8] |= 1 << (at % 8)
			}
		}
	}
	return b
}

func ints(vs ...any) []vector.Value {
	out := []vector.Value{}
	for _, v := range vs {
		if n, ok := v.(int); ok {
			v = int32(n)
		}
		out = append(out, v)
	}
	return out
}

// TestListShapes reads the two-level and three-level lists of LogicalTypes.md, "Backward-compatibility rules".
func TestListShapes(t *testing.T) {
	row := func(vs ...any) vector.Value { return ints(vs...) }
	type shape struct {
		fields []madeField
		pages  []madePage
		want   []vector.Value
	}
	root := func(fs ...madeField) []madeField { return append([]madeField{group("schema", Required, -1, 1)}, fs...) }
	for name, c := range map[string]shape{
		"three levels": {root(group("l", Optional, 3, 1), group("list", Repeated, -1, 1), int32Field("element", Optional)),
			[]madePage{nestedPage([]int{0, 1, 0, 0}, []int{3, 2, 1, 0}, 1, 2, 5)}, ints(ints(5, nil), ints(), nil)},
		"any names": {root(group("l", Optional, 3, 1), group("bag", Repeated, -1, 1), int32Field("array_element", Optional)),
			[]madePage{nestedPage([]int{0, 1, 0, 0}, []int{3, 2, 1, 0}, 1, 2, 5)}, ints(ints(5, nil), ints(), nil)},
		"required list of required": {root(group("l", Required, 3, 1), group("list", Repeated, -1, 1), int32Field("element", Required)),
			[]madePage{nestedPage([]int{0, 1, 0}, []int{1, 1, 0}, 1, 1, 5, 6)}, ints(ints(5, 6), ints())},
		"two levels, primitive": {root(group("l", Optional, 3, 1), int32Field("array", Repeated)),
			[]madePage{nestedPage([]int{0, 1, 0, 0}, []int{2, 2, 1, 0}, 1, 2, 5, 6)}, ints(ints(5, 6), ints(), nil)},
		"two levels, group of one named array": {root(group("l", Optional, 3, 1), group("array", Repeated, -1, 1), int32Field("x", Required)),
			[]madePage{nestedPage([]int{0, 1, 0, 0}, []int{2, 2, 1, 0}, 1, 2, 5, 6)}, ints(ints(row(5), row(6)), ints(), nil)},
		"two levels, group of one named after the list": {root(group("l", Optional, 3, 1), group("l_tuple", Repeated, -1, 1), int32Field("x", Optional)),
			[]madePage{nestedPage([]int{0, 1, 0, 0}, []int{3, 2, 1, 0}, 1, 2, 5)}, ints(ints(row(5), row(nil)), ints(), nil)},
		"two levels, list of lists": {root(group("l", Optional, 3, 1), group("array", Repeated, 3, 1), int32Field("array", Repeated)),
			[]madePage{nestedPage([]int{0, 2, 1, 1, 0, 0}, []int{3, 3, 2, 3, 1, 0}, 2, 2, 1, 2, 3)}, ints(ints(ints(1, 2), ints(), ints(3)), ints(), nil)},
		"group of one that is repeated": {root(group("l", Optional, 3, 1), group("element", Repeated, -1, 1), int32Field("items", Repeated)),
			[]madePage{nestedPage([]int{0, 2, 1, 0}, []int{3, 3, 2, 0}, 2, 2, 1, 2)}, ints(ints(row(ints(1, 2)), row(ints())), nil)},
		"repeated field": {root(int32Field("l", Repeated)),
			[]madePage{nestedPage([]int{0, 1, 0}, []int{1, 1, 0}, 1, 1, 5, 6)}, ints(ints(5, 6), ints())},
		"repeated group": {root(group("l", Repeated, -1, 1), int32Field("x", Optional)),
			[]madePage{nestedPage([]int{0, 1, 0}, []int{2, 1, 0}, 1, 2, 5)}, ints(ints(row(5), row(nil)), ints())},
	} {
		t.Run(name, func(t *testing.T) {
			f := &madeFile{fields: c.fields, cols: []madeColumn{{pages: c.pages, values: int64(c.pages[0].values)}}, rows: int64(len(c.want))}
			for _, batch := range []int{100, 1, 2} {
				require.Equal(t, [][]vector.Value{c.want}, newRead(t, f.bytes(), readOptions{batch: batch}))
			}
		})
	}
}

// TestRecordsSplitOverPages has version 1 pages that begin inside a record, as old writers made them.
func TestRecordsSplitOverPages(t *testing.T) {
	page := func(reps, defs []int, values ...int32) madePage {
		body := append(rle(packLevels(reps, 1)), rle(packLevels(defs, 2))...)
		return madePage{kind: dataPage, values: len(reps), body: append(body, le32(values...)...)}
	}
	f := &madeFile{
		fields: []madeField{group("schema", Required, -1, 1), group("l", Optional, 3, 1), group("list", Repeated, -1, 1), int32Field("element", Optional)},
		cols: []madeColumn{{values: 9, pages: []madePage{
			page([]int{0, 1}, []int{3, 3}, 1, 2), page([]int{1, 1}, []int{2, 3}, 4), page([]int{1}, []int{3}, 5), page([]int{0, 0, 1}, []int{0, 3, 3}, 6, 7), page([]int{0}, []int{1}),
		}}},
		rows: 4,
	}
	want := [][]vector.Value{ints(ints(1, 2, nil, 4, 5), nil, ints(6, 7), ints())}
	for _, batch := range []int{10, 1, 2, 3} {
		require.Equal(t, want, newRead(t, f.bytes(), readOptions{batch: batch}))
	}
	got := newRead(t, f.bytes(), readOptions{batch: 1, skip: func(_ int, row int64) bool { return row < 2 }})
	require.Equal(t, want[0][2:], got[0])
}

// structFile has a column s of (a optional, b required, l list), rows {1 2 [3]}, null, {null 4 []}.
func structFile() *madeFile {
	return &madeFile{
		fields: []madeField{group("schema", Required, -1, 1), group("s", Optional, -1, 3), int32Field("a", Optional), int32Field("b", Required),
			group("l", Optional, 3, 1), group("list", Repeated, -1, 1), int32Field("element", Required)},
		cols: []madeColumn{
			{values: 3, pages: []madePage{nestedPage([]int{0, 0, 0}, []int{2, 0, 1}, 0, 2, 1)}},
			{values: 3, pages: []madePage{nestedPage([]int{0, 0, 0}, []int{1, 0, 1}, 0, 1, 2, 4)}},
			{values: 3, pages: []madePage{nestedPage([]int{0, 0, 0}, []int{3, 0, 2}, 1, 2, 3)}},
		},
		rows: 3,
	}
}

func TestStructs(t *testing.T) {
	b := structFile().bytes()
	require.Equal(t, [][]vector.Value{{ints(1, 2, ints(3)), nil, ints(nil, 4, ints())}}, newRead(t, b, readOptions{}))

	// Only fields that the file does not have: the struct's nulls come from one it has.
	got := newRead(t, b, readOptions{project: func(f *Footer) []*Projection {
		return []*Projection{{Node: f.Root.Children[0], Type: vector.RowOf(vector.Field{Name: "x", Type: vector.Of(vector.Integer)}, vector.Field{Name: "y", Type: vector.Of(vector.Varchar)}),
			Children: []*Projection{{Type: vector.Of(vector.Integer)}, {Type: vector.Of(vector.Varchar), Default: "default"}}}}
	}})
	require.Equal(t, [][]vector.Value{{ints(nil, "default"), nil, ints(nil, "default")}}, got)

	// A field by itself, out of the struct: null where the struct is, required or not.
	got = newRead(t, b, readOptions{project: func(f *Footer) []*Projection {
		s := f.Root.Children[0]
		return []*Projection{{Node: s.Child("b"), Type: vector.Of(vector.BigInt)}, natural(s.Child("l"), false)}
	}})
	require.Equal(t, [][]vector.Value{{int64(2), nil, int64(4)}, {ints(3), nil, ints()}}, got)
}

// TestDefaultsUnderNullStructs looks at the child vector itself: consumers may take a field out of a struct without the struct.
func TestDefaultsUnderNullStructs(t *testing.T) {
	ctx := t.Context()
	o := &object{Bytes: structFile().bytes()}
	f, err := ReadFooter(ctx, o, "t")
	require.NoError(t, err)
	p := &Projection{Node: f.Root.Children[0], Type: vector.RowOf(vector.Field{Name: "y", Type: vector.Of(vector.Integer)}), Children: []*Projection{{Type: vector.Of(vector.Integer), Default: int32(5)}}}
	r, err := OpenRowGroup(ctx, o, f, 0, []*Projection{p}, nil, Options{})
	require.NoError(t, err)
	defer r.Close()
	r.NextBatch(10)
	v, err := r.Read(ctx, 0)
	require.NoError(t, err)
	require.Equal(t, int32(5), v.Children[0].Get(0))
	require.Nil(t, v.Children[0].Get(1))
	require.Equal(t, int32(5), v.Children[0].Get(2))
}

func TestMaps(t *testing.T) {
	kv := func(fields []madeField, want []vector.Value) {
		f := &madeFile{fields: fields, rows: 3, cols: []madeColumn{
			{values: 4, pages: []madePage{nestedPage([]int{0, 1, 0, 0}, []int{2, 2, 1, 0}, 1, 2, 1, 2)}},
			{values: 4, pages: []madePage{nestedPage([]int{0, 1, 0, 0}, []int{3, 2, 1, 0}, 1, 2, 9)}},
		}}
		require.Equal(t, [][]vector.Value{want}, newRead(t, f.bytes(), readOptions{}))
	}
	want := []vector.Value{[]vector.Pair{{Key: int32(1), Value: int32(9)}, {Key: int32(2)}}, []vector.Pair{}, nil}
	for _, outer := range []int{1, 2} {
		kv([]madeField{group("schema", Required, -1, 1), group("m", Optional, outer, 1), group("map", Repeated, 3-outer, 2), int32Field("key", Required), int32Field("value", Optional)}, want)
		kv([]madeField{group("schema", Required, -1, 1), group("m", Optional, outer, 1), group("entries", Repeated, -1, 2), int32Field("k", Required), int32Field("v", Optional)}, want)
	}
	// A map of keys only.
	f := &madeFile{fields: []madeField{group("schema", Required, -1, 1), group("m", Optional, 1, 1), group("map", Repeated, -1, 1), int32Field("key", Required)}, rows: 3,
		cols: []madeColumn{{values: 4, pages: []madePage{nestedPage([]int{0, 1, 0, 0}, []int{2, 2, 1, 0}, 1, 2, 1, 2)}}}}
	require.Equal(t, [][]vector.Value{{[]vector.Pair{{Key: int32(1)}, {Key: int32(2)}}, []vector.Pair{}, nil}}, newRead(t, f.bytes(), readOptions{}))
}

// TestColumnsOfOneListMustAgree has keys and values, or struct fields, with different lists: no rows may come of it.
func TestColumnsOfOneListMustAgree(t *testing.T) {
	fields := []madeField{group("schema", Required, -1, 1), group("m", Optional, 1, 1), group("map", Repeated, -1, 2), int32Field("key", Required), int32Field("value", Optional)}
	keys := nestedPage([]int{0, 1, 0, 0}, []int{2, 2, 1, 0}, 1, 2, 1, 2)
	for name, values := range map[string]madePage{
		"as many elements in other lists": nestedPage([]int{0, 0, 1, 0}, []int{1, 3, 3, 0}, 1, 2, 8, 9),
		"more elements":                   nestedPage([]int{0, 1, 1, 0, 0}, []int{3, 3, 2, 1, 0}, 1, 2, 8, 9),
		"levels that cannot be":           nestedPage([]int{0, 1, 0, 0}, []int{3, 1, 1, 0}, 1, 2, 9),
		"a record continued at the start": nestedPage([]int{1, 1, 0, 0}, []int{3, 2, 1, 0}, 1, 2, 9),
	} {
		if name == "a record continued at the start" {
			values.rows = 2
		}
		f := &madeFile{fields: fields, rows: 3, cols: []madeColumn{{values: 4, pages: []madePage{keys}}, {values: int64(values.values), pages: []madePage{values}}}}
		_, err := readFile(&object{Bytes: f.bytes()}, readOptions{})
		require.ErrorIs(t, err, fault.Corrupt, name)
	}
}
