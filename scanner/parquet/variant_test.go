package parquet

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// bytesColumn is a chunk of optional byte arrays under levels of the given width.
func bytesColumn(defs []int, width int, values ...string) madeColumn {
	p := nestedPage(make([]int, len(defs)), defs, 0, width)
	p.body, p.nulls = lengthPrefixed(values...), len(defs)-len(values)
	return madeColumn{values: int64(len(defs)), pages: []madePage{p}}
}

// shreddedFile has a variant v of (metadata, value, typed_value (a (value, typed_value int8), b (typed_value string))).
func shreddedFile(metadata, value, aValue, aTyped, b madeColumn, rows int64) *madeFile {
	text := func(name string, rep Repetition, conv int) madeField {
		return madeField{name: name, rep: rep, physical: ByteArray, converted: conv}
	}
	v := group("v", Optional, -1, 3)
	v.logical = func(w *thriftWriter) { w.structure(16, func() {}) }
	tiny := int32Field("typed_value", Optional)
	tiny.converted = 15
	return &madeFile{rows: rows, cols: []madeColumn{metadata, value, aValue, aTyped, b}, fields: []madeField{group("schema", Required, -1, 1), v,
		text("metadata", Required, -1), text("value", Optional, -1), group("typed_value", Optional, -1, 2),
		group("a", Required, -1, 2), text("value", Optional, -1), tiny, group("b", Required, -1, 1), text("typed_value", Optional, 0)}}
}

const (
	namesABC = "\x11\x03\x00\x01\x02\x03abc"
	objectC  = "\x02\x01\x02\x00\x02\x0c\x07" // {c: int8 7}
)

func TestShreddedVariants(t *testing.T) {
	long := strings.Repeat("long ", 20)
	rows := func(f *Footer) []*Projection {
		return []*Projection{{Type: vector.Of(vector.Variant), Node: f.Root.Children[0]}}
	}
	f := shreddedFile(
		bytesColumn([]int{1, 0, 1, 1, 1, 1}, 1, namesABC, namesABC, namesABC, namesABC, namesABC),
		bytesColumn([]int{1, 0, 2, 2, 1, 1}, 2, objectC, "\x0c\x2a"),
		bytesColumn([]int{2, 0, 2, 1, 3, 1}, 2, "\x00"),
		madeColumn{values: 6, pages: []madePage{nestedPage(make([]int, 6), []int{3, 0, 3, 1, 2, 1}, 0, 2, 5, -1)}},
		bytesColumn([]int{3, 0, 2, 1, 3, 1}, 2, "x", long), 6)
	got := newRead(t, f.bytes(), readOptions{batch: 4, project: rows})[0]
	value := func(i int) vector.Value { return got[i].([]vector.Value)[1] }
	require.Equal(t, namesABC, got[0].([]vector.Value)[0])
	require.Equal(t, "\x02\x02\x00\x01\x00\x02\x04\x0c\x05\x05x", value(0), "an object of typed fields")
	require.Nil(t, got[1], "SQL null")
	require.Equal(t, "\x02\x02\x00\x02\x00\x02\x04\x0c\xff\x0c\x07", value(2), "typed and other fields, in the order of their names")
	require.Equal(t, "\x0c\x2a", value(3), "a value that is no object")
	require.Equal(t, "\x02\x02\x00\x01\x00\x01\x6a\x00\x40\x64\x00\x00\x00"+long, value(4), "Variant null and a long string")
	require.Equal(t, "\x00", value(5), "neither value nor typed_value")
}

func TestBrokenVariantsAreRefused(t *testing.T) {
	rows := func(f *Footer) []*Projection {
		return []*Projection{{Type: vector.Of(vector.Variant), Node: f.Root.Children[0]}}
	}
	for name, c := range map[string]struct{ metadata, value, a string }{
		"value beside an object that is none": {namesABC, "\x0c\x2a", "\x00"},
		"name that is not in the metadata":    {"\x11\x01\x00\x01z", objectC, "\x00"},
		"metadata cut short":                  {namesABC[:5], objectC, "\x00"},
		"metadata of another version":         {"\x12" + namesABC[1:], objectC, "\x00"},
		"value cut short":                     {namesABC, objectC[:5], "\x00"},
		"bytes after the value":               {namesABC, objectC + "\x00", "\x00"},
		"field cut short":                     {namesABC, objectC, "\x14\x00"},
		"unknown primitive":                   {namesABC, objectC, "\xfc"},
	} {
		f := shreddedFile(bytesColumn([]int{1}, 1, c.metadata), bytesColumn([]int{2}, 2, c.value), bytesColumn([]int{3}, 2, c.a),
			madeColumn{values: 1, pages: []madePage{nestedPage([]int{0}, []int{2}, 0, 2)}}, bytesColumn([]int{2}, 2), 1)
		_, err := readFile(&object{Bytes: f.bytes()}, readOptions{project: rows})
		require.ErrorIs(t, err, fault.Corrupt, name)
		require.ErrorContains(t, err, "test.parquet", name)
	}
}

func FuzzVariant(f *testing.F) {
	f.Add([]byte(namesABC), []byte(objectC), []byte("\x03\x02\x00\x01\x02\x00\x00"))
	f.Fuzz(func(t *testing.T, metadata, value, a []byte) {
		var names variantNames
		_ = names.parse(metadata)
		_, _ = objectFields(value, &names)
		file := shreddedFile(bytesColumn([]int{1}, 1, string(metadata)), bytesColumn([]int{2}, 2, string(value)), bytesColumn([]int{3}, 2, string(a)),
			madeColumn{values: 1, pages: []madePage{nestedPage([]int{0}, []int{2}, 0, 2)}}, bytesColumn([]int{2}, 2), 1)
		ctx := context.Background()
		o := &object{Bytes: file.bytes()}
		foot, err := ReadFooter(ctx, o, "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		ps := []*Projection{{Type: vector.Of(vector.Variant), Node: foot.Root.Children[0]}}
		cols := make([][]vector.Value, 1)
		if err := readGroup(ctx, o, foot, 0, ps, readOptions{}, cols); err != nil {
			requireKind(t, err)
			return
		}
		if out := []byte(cols[0][0].([]vector.Value)[1].(string)); true {
			if size, ok := variantSize(out, 0); !ok || size != len(out) {
				t.Fatalf("assembled %x is no variant", out)
			}
		}
	})
}
