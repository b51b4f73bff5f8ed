package scanner

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/vector"
)

func TestDefaults(t *testing.T) {
	p := iceberg.PrimitiveTypes
	for _, c := range []struct {
		typ  iceberg.Type
		json string
		want vector.Value // nil: refused
	}{
		{p.Bool, `true`, true},
		{p.Int32, `-7`, int32(-7)},
		{p.Int32, `2147483648`, nil},
		{p.Int64, `9223372036854775807`, int64(math.MaxInt64)},
		{p.Int64, `1.5`, nil},
		{p.Float32, `1.5`, float32(1.5)},
		{p.Float64, `"NaN"`, math.NaN()},
		{iceberg.DecimalTypeOf(9, 2), `"14.20"`, int64(1420)},
		{iceberg.DecimalTypeOf(9, 2), `"14.205"`, nil},
		{iceberg.DecimalTypeOf(38, 0), `"99999999999999999999999999999999999999"`, decimal128.GetMaxValue(38)},
		{iceberg.DecimalTypeOf(9, 2), `"1E1000000000"`, nil},
		{p.Date, `"2017-11-16"`, int32(17486)},
		{p.Date, `"-0001-01-01"`, int32(-719893)},
		{p.Date, `17486`, nil},
		{p.Time, `"22:31:08.123456"`, int64(81068123456)},
		{p.Timestamp, `"1969-12-31T23:59:59.999999"`, int64(-1)},
		{p.TimestampTz, `"1970-01-01T00:00:00.000001+00:00"`, int64(1)},
		{p.TimestampTz, `"1970-01-01T00:00:00.000001"`, nil},
		{p.TimestampNs, `"1970-01-01T00:00:00.000000001"`, int64(1)},
		{p.String, `"x"`, "x"},
		{p.UUID, `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, "\xf7\x9c\x3e\x09\x67\x7c\x4b\xbd\xa4\x79\x3f\x34\x9c\xb7\x85\xe7"},
		{iceberg.FixedTypeOf(2), `"00ff"`, "\x00\xff"},
		{iceberg.FixedTypeOf(3), `"00ff"`, nil},
		{p.Binary, `"0g"`, nil},
		{p.String, `{}`, nil},
	} {
		w, err := wantOf(iceberg.NestedField{ID: 5, Name: "c", Type: c.typ}, map[int]json.RawMessage{5: json.RawMessage(c.json)})
		if c.want == nil {
			require.Error(t, err, "%s %s", c.typ, c.json)
			continue
		}
		require.NoError(t, err, "%s %s", c.typ, c.json)
		if f, ok := c.want.(float64); ok && f != f {
			require.True(t, math.IsNaN(w.def.(float64)))
			continue
		}
		require.Equal(t, c.want, w.def, "%s %s", c.typ, c.json)
	}
	// A struct's {} takes its fields' own defaults.
	s := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 6, Name: "a", Type: p.Int32}, {ID: 7, Name: "b", Type: p.String}}}
	w, err := wantOf(iceberg.NestedField{ID: 5, Name: "s", Type: s}, map[int]json.RawMessage{5: json.RawMessage(`{}`), 6: json.RawMessage(`9`)})
	require.NoError(t, err)
	require.Equal(t, []vector.Value{int32(9), nil}, w.def)
}
