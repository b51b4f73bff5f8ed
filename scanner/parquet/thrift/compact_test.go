package thrift

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFieldsOfEveryType(t *testing.T) {
	// 1: i32 -3, 2: binary "ab", 3: true, 20 (long form): list of two i64, 21: double, 22: map, 23: set of booleans.
	b := []byte{0x15, 5, 0x18, 2, 'a', 'b', 0x11, 0x09, 40, 0x26, 2, 4, 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x1b, 1, 0x58, 2, 1, 'x', 0x1a, 0x21, 1, 2, 0}
	r := NewReader(b)
	seen := map[int16]bool{}
	r.Struct(func(id int16, typ Type) {
		seen[id] = true
		switch id {
		case 1:
			require.EqualValues(t, -3, r.Int32(typ))
		case 2:
			require.Equal(t, "ab", r.String(typ))
		case 3:
			require.True(t, r.Bool(typ))
		case 20:
			var v []int64
			r.Each(typ, func(_, n int, e Type) {
				require.Equal(t, 2, n)
				v = append(v, r.Int(e))
			})
			require.Equal(t, []int64{1, 2}, v)
		default:
			r.Skip(typ)
		}
	})
	require.NoError(t, r.Err())
	require.Equal(t, len(b), r.Pos())
	require.Len(t, seen, 7)
}

func TestHostileInput(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": {}, "field without value": {0x15}, "binary past the end": {0x18, 100, 'a'}, "list past the end": {0x19, 0xf5, 0xff, 0xff, 0xff, 0x0f},
		"varint without end": {0x15, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, "unknown type": {0x1e, 0}, "map past the end": {0x1b, 0xff, 0x7f, 0x55},
	} {
		r := NewReader(b)
		r.Struct(func(_ int16, typ Type) { r.Skip(typ) })
		require.ErrorIs(t, r.Err(), fault.Corrupt, name)
	}
	deep := make([]byte, 0, 200)
	for range 100 {
		deep = append(deep, 0x1c)
	}
	r := NewReader(deep)
	r.Struct(func(_ int16, typ Type) { r.Skip(typ) })
	require.ErrorContains(t, r.Err(), "nested deeper")
	r.Reset([]byte{0x15, 2, 0})
	r.Struct(func(_ int16, typ Type) { r.Binary(typ) })
	require.ErrorContains(t, r.Err(), "binary")
}

func FuzzSkip(f *testing.F) {
	f.Add([]byte{0x15, 5, 0x18, 2, 'a', 'b', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		r.Struct(func(_ int16, typ Type) { r.Skip(typ) })
		if r.Err() != nil && fault.KindOf(r.Err()) != fault.Corrupt {
			t.Fatal(r.Err())
		}
	})
}
