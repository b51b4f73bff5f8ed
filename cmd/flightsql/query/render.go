package query

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/skua-db/skua/vector"
)

// Text renders a value for people: NULL for null, strings bare, nested values as JSON.
func Text(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	return string(appendText(nil, a, i))
}

// appendText renders a value that is not null.
func appendText(b []byte, a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.String:
		return append(b, a.Value(i)...)
	case *array.Boolean:
		return strconv.AppendBool(b, a.Value(i))
	case *array.Int8:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int16:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int32:
		return strconv.AppendInt(b, int64(a.Value(i)), 10)
	case *array.Int64:
		return strconv.AppendInt(b, a.Value(i), 10)
	case *array.Float32:
		return appendFloat(b, float64(a.Value(i)), 32)
	case *array.Float64:
		return appendFloat(b, a.Value(i), 64)
	case *array.Decimal128:
		return append(b, a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)...)
	case *array.Date32:
		return a.Value(i).ToTime().AppendFormat(b, "2006-01-02")
	case *array.Time64:
		return time.UnixMicro(int64(a.Value(i))).UTC().AppendFormat(b, "15:04:05.999999")
	case *array.Timestamp:
		return appendTimestamp(b, a, i, ' ')
	case *array.Duration:
		return appendDays(b, int64(a.Value(i)))
	case *array.MonthInterval:
		return appendMonths(b, int64(a.Value(i)))
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() == "arrow.uuid" {
			h := hex.EncodeToString(a.Storage().(*array.FixedSizeBinary).Value(i))
			return fmt.Appendf(b, "%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
		}
		if text, ok := variantJSON(b, a, i); ok {
			return text
		}
		return appendText(b, a.Storage(), i)
	case *array.Struct, array.ListLike:
		return appendJSON(b, a, i, false)
	case interface{ Value(int) []byte }:
		return hex.AppendEncode(b, a.Value(i))
	}
	return append(b, a.ValueStr(i)...)
}

// variantJSON renders a variant that came as Arrow's extension of that name.
func variantJSON(b []byte, a array.ExtensionArray, i int) ([]byte, bool) {
	s, ok := a.Storage().(*array.Struct)
	if !ok || !extensions.IsVariantExtensionName(a.ExtensionType().ExtensionName()) || s.NumField() != 2 {
		return b, false
	}
	m, ok1 := s.Field(0).(*array.Binary)
	v, ok2 := s.Field(1).(*array.Binary)
	if !ok1 || !ok2 {
		return b, false
	}
	out, err := vector.AppendVariantJSON(b, m.Value(i), v.Value(i))
	return out, err == nil
}

// appendJSON renders a value as JSON. Decimals keep all their digits and so are strings; binary is hexadecimal, a map an object.
// isJSON says that text is JSON, which stands as it is.
func appendJSON(b []byte, a arrow.Array, i int, isJSON bool) []byte {
	if a.IsNull(i) {
		return append(b, "null"...)
	}
	switch a := a.(type) {
	case *array.String:
		text := a.Value(i)
		if isJSON && json.Valid([]byte(text)) {
			if !strings.ContainsAny(text, "\r\n") {
				return append(b, text...)
			}
			line := bytes.NewBuffer(b)
			if json.Compact(line, []byte(text)) == nil { // a row is a line
				return line.Bytes()
			}
		}
	case array.ExtensionArray:
		if text, ok := variantJSON(b, a, i); ok {
			return text
		}
	case *array.Boolean, *array.Int8, *array.Int16, *array.Int32, *array.Int64:
		return appendText(b, a, i)
	case *array.Float32:
		if f := float64(a.Value(i)); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return appendFloat(b, f, 32)
		}
	case *array.Float64:
		if f := a.Value(i); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return appendFloat(b, f, 64)
		}
	case *array.Timestamp:
		b = appendTimestamp(append(b, '"'), a, i, 'T')
		return append(b, '"')
	case *array.Struct:
		b = append(b, '{')
		for k, f := range a.DataType().(*arrow.StructType).Fields() {
			if k > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, f.Name), ':')
			b = appendJSON(b, a.Field(k), i, vector.IsJSON(f))
		}
		return append(b, '}')
	case *array.Map:
		b = append(b, '{')
		from, to := a.ValueOffsets(i)
		for k := from; k < to; k++ {
			if k > from {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, Text(a.Keys(), int(k))), ':')
			b = appendJSON(b, a.Items(), int(k), vector.IsJSON(a.DataType().(*arrow.MapType).ItemField()))
		}
		return append(b, '}')
	case array.ListLike:
		b = append(b, '[')
		from, to := a.ValueOffsets(i)
		list, _ := a.DataType().(arrow.ListLikeType)
		for k := from; k < to; k++ {
			if k > from {
				b = append(b, ',')
			}
			b = appendJSON(b, a.ListValues(), int(k), list != nil && vector.IsJSON(list.ElemField()))
		}
		return append(b, ']')
	}
	return appendQuoted(b, string(appendText(nil, a, i)))
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case f != 0 && (math.Abs(f) >= 1e15 || math.Abs(f) < 1e-6):
		return strconv.AppendFloat(b, f, 'e', -1, bits)
	}
	return strconv.AppendFloat(b, f, 'f', -1, bits)
}

func appendTimestamp(b []byte, a *array.Timestamp, i int, between byte) []byte {
	t := a.DataType().(*arrow.TimestampType)
	layout := "2006-01-02" + string(between) + "15:04:05.999999999"
	b = a.Value(i).ToTime(t.Unit).UTC().AppendFormat(b, layout)
	switch {
	case t.TimeZone != "" && between == 'T':
		b = append(b, 'Z')
	case t.TimeZone != "":
		b = append(b, " UTC"...)
	}
	return b
}

// appendDays writes an interval of microseconds as days and a time of day.
func appendDays(b []byte, micros int64) []byte {
	u := uint64(micros)
	if micros < 0 {
		b = append(b, '-')
		u = -u
	}
	const second = 1_000_000
	return fmt.Appendf(b, "%d %02d:%02d:%02d.%03d", u/(86400*second), u/(3600*second)%24, u/(60*second)%60, u/second%60, u%second/1000)
}

// appendMonths writes an interval of months as years and months.
func appendMonths(b []byte, months int64) []byte {
	if months < 0 {
		b = append(b, '-')
		months = -months
	}
	return fmt.Appendf(b, "%d-%d", months/12, months%12)
}

// appendQuoted writes a JSON string without the escapes that HTML would need.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\u%04x`, r)
		default: // bytes that are not UTF-8 have become U+FFFD
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
