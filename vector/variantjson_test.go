package vector

import (
	"encoding/json"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// built makes a variant with arrow-go's builder.
func built(t testing.TB, fill func(b *variant.Builder) error) variant.Value {
	t.Helper()
	var b variant.Builder
	require.NoError(t, fill(&b))
	v, err := b.Build()
	require.NoError(t, err)
	return v
}

func TestVariantJSON(t *testing.T) {
	cases := []struct {
		want string
		fill func(b *variant.Builder) error
	}{
		{"null", func(b *variant.Builder) error { return b.AppendNull() }},
		{"true", func(b *variant.Builder) error { return b.AppendBool(true) }},
		{"-7", func(b *variant.Builder) error { return b.AppendInt(-7) }},
		{"9223372036854775807", func(b *variant.Builder) error { return b.AppendInt(1<<63 - 1) }},
		{"1.5", func(b *variant.Builder) error { return b.AppendFloat64(1.5) }},
		{`"a \"quoted\" ü"`, func(b *variant.Builder) error { return b.AppendString(`a "quoted" ü`) }},
		{`"cafe"`, func(b *variant.Builder) error { return b.AppendBinary([]byte{0xca, 0xfe}) }},
		{`"1969-12-31"`, func(b *variant.Builder) error { return b.AppendDate(arrow.Date32(-1)) }},
		{`"1970-01-01T00:00:00.000001Z"`, func(b *variant.Builder) error { return b.AppendTimestamp(1, true, true) }},
		{`"1970-01-01T00:00:00.000001"`, func(b *variant.Builder) error { return b.AppendTimestamp(1, true, false) }},
		{`[1,[],"x",null]`, func(b *variant.Builder) error { return b.Append([]any{int64(1), []any{}, "x", nil}) }},
		{`{"a":1,"b":{"c":[true]}}`, func(b *variant.Builder) error {
			return b.Append(map[string]any{"a": int64(1), "b": map[string]any{"c": []any{true}}})
		}},
	}
	for _, c := range cases {
		v := built(t, c.fill)
		got, err := AppendVariantJSON(nil, v.Metadata().Bytes(), v.Bytes())
		require.NoError(t, err, c.want)
		require.Equal(t, c.want, string(got))
	}
}

func FuzzVariantJSON(f *testing.F) {
	v := built(f, func(b *variant.Builder) error {
		return b.Append(map[string]any{"a": []any{int64(1), "x", 2.5}, "b": nil})
	})
	f.Add(v.Metadata().Bytes(), v.Bytes())
	f.Add([]byte{1, 0, 0}, []byte{0x02, 0xff})
	f.Fuzz(func(t *testing.T, metadata, value []byte) {
		text, err := AppendVariantJSON(nil, metadata, value)
		if err != nil {
			require.ErrorIs(t, err, fault.Corrupt)
			return
		}
		require.True(t, json.Valid(text), "%s", text)
	})
}
