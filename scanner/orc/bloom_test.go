package orc

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

// filteredFile is a file that ORC's C++ writer made of the rows (3, apple, 0.5), (1<<40, pear tree, -0.0), (-7, , 1e9) with bloom filters
// on them.
const filteredFile = "T1JDEQAACgYSBAgDUAA4AAAotS/9YEJFlQAAWAq+jAEIChq4jAEAAQA0xg68PwAACh0KAwAAABIWCAMSEAgNEICAgICAQBj4/////z9QABABACi1L/1gQkX1" +
	"AwByxAsTwCWtAab/N9b/r/pVWhntXBopU6vwykvtvOOls9op66yW3krrKKRWBkAgSoaACB8QAE0KF2FDcaoKR/RjehVOXmEhFWMojKXCAioMonCDil8Uxlzh" +
	"ABUe+McCKsZS+MIfJyl8U1yk4ptiJfn4W8Uz/PhbxagqjFM8Uy9BAAAKHgoFAAAAAAASFQgDIg8KABIJcGVhciB0cmVlGBxQADgBACi1L/1gQkWVBAAyhAsU" +
	"sCVpDIclAQIwhuFNHpf+0rDlTaZXd7Nz6pQ6lDuOOiqgUOrK1VUhCBCDigERHwBoQYWBgAqnCH78BVRoElSRYDoovzsq0wGq5glU7S6o2j1QtT2gWhZQDYK0" +
	"7QBVww78bRWozR6ozRXwN2CgNoigagpANSegNhagGjPgbylAbRSkjQvwNyag2hNQ24ACc1MAAAonCgIAABIhCAMaGwkAAAAAAAAAgBEAAAAAZc3NQRkAAEAA" +
	"Zc3NQVAAKQAAegIAAAAAAAYCAAAAAAAAAAAAAA0JAABGAlkAHQAAYXBwbGVwZWFyIHRyZWUxAAAAAAAAAADgPwAAAAAAAACAAAAAAGXNzUHGAAAotS/9IHvV" +
	"AgCCxREYsCcdrJAkiSfBChCBwYYv9v2SpWnsLaUMCcSBBMjUUidbecjUcgQnx83cbOUBXq7yDCeLW+FWipdbc4SXWd7g5JZnnMzyAgYAQa2VG2e2ANCB5kLC" +
	"JAO1AAAKWAoECANQAAoWCAMSEAgNEICAgICAQBj4/////z9QAAoVCAMiDwoAEglwZWFyIHRyZWUYHFAACiEIAxobCQAAAAAAAACAEQAAAABlzc1BGQAAQABl" +
	"zc1BUABKAQAotS/9IK/lBADECAgDEPUEGgsIAxDFAxhKIGYoAyIXCAwSAwECAxoCaWQaAXMaAWQgACgAMAAiCAgEBwYwAzoECANQADoWCAMSEAgNEICAgICA" +
	"QBj4/////z9QADoVCAMiDwoAEglwZWFyIHRyZWUYHFAAOiEIAxobCQCAEQAAAABlzc1BGQAAQFAAQJBOSAFiBTIuMi4yBQAsQj1uABgMFPEWpQwIqAEQBRiA" +
	"gAQiAgAMKF0wBoL0AwNPUkMY"

// TestBloomFiltersOfAnotherWriter: the values of a file are in its filters, others are not.
func TestBloomFiltersOfAnotherWriter(t *testing.T) {
	b, err := base64.StdEncoding.DecodeString(filteredFile)
	require.NoError(t, err)
	o, f := open(t, b)
	ask := func(column string, typ vector.Type, values ...vector.Value) []bool {
		may, err := BloomGroups(context.Background(), o, f, 0, f.Root.Child(column), values, typ)
		require.NoError(t, err)
		return may
	}
	yes, no := []bool{true}, []bool{false}
	bigint, double, text := vector.Of(vector.BigInt), vector.Of(vector.Double), vector.Of(vector.Varchar)
	for _, v := range []int64{3, 1 << 40, -7} {
		require.Equal(t, yes, ask("id", bigint, v))
	}
	for _, v := range []string{"apple", "pear tree", ""} {
		require.Equal(t, yes, ask("s", text, v))
	}
	require.Equal(t, no, ask("id", bigint, int64(4), int64(-8)))
	require.Equal(t, no, ask("s", text, "apples", "pear"))
	require.Equal(t, yes, ask("s", text, "apples", "pear tree"))
	require.Nil(t, ask("d", double, 0.25), "what cannot be asked rules nothing out")
}

func TestBloomFiltersThatTellNothing(t *testing.T) {
	word := func(num uint64, bits uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, num<<3|wireFixed64), bits)
	}
	for name, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"nothing":         {nil, true},
		"no bits":         {varint(nil, 1, 3), true},
		"no hashes":       {word(2, 0), true},
		"many hashes":     {append(varint(nil, 1, 1<<40), word(2, 0)...), true},
		"one word, empty": {append(varint(nil, 1, 3), word(2, 0)...), false},
		"one word, full":  {append(varint(nil, 1, 3), word(2, ^uint64(0))...), true},
	} {
		may, err := bloomMayContain(c.b, []uint64{hashLong(5)})
		require.NoError(t, err, name)
		require.Equal(t, c.want, may, name)
	}
	_, err := bloomMayContain([]byte{0x12, 0x7f}, []uint64{1})
	require.Error(t, err)
}

func FuzzBloomFilter(f *testing.F) {
	f.Add([]byte{0x08, 3, 0x1a, 8, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{0x08, 3, 0x11, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := bloomMayContain(b, []uint64{hashLong(5), hashBytes("text")})
		requireKind(t, err)
	})
}
