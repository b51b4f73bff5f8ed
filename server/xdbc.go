package server

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
)

// xdbcType is a row of the type information that ODBC and some JDBC tools ask for.
type xdbcType struct {
	name           string
	code           pb.XdbcDataType
	size           int32 // digits, characters of the text form, or bytes; 0: not limited
	prefix, suffix string
	params         []string
	caseSensitive  bool
	minScale       int32
	maxScale       int32 // negative: the type has no scale
	radix          int32 // 0: not a number
	subcode        pb.XdbcDatetimeSubcode
}

var xdbcTypes = []xdbcType{
	{name: "boolean", code: pb.XdbcDataType_XDBC_BIT, size: 1, maxScale: -1},
	{name: "tinyint", code: pb.XdbcDataType_XDBC_TINYINT, size: 3, radix: 10},
	{name: "bigint", code: pb.XdbcDataType_XDBC_BIGINT, size: 19, radix: 10},
	{name: "varbinary", code: pb.XdbcDataType_XDBC_VARBINARY, prefix: "X'", suffix: "'", maxScale: -1},
	{name: "uuid", code: pb.XdbcDataType_XDBC_BINARY, size: 16, prefix: "UUID '", suffix: "'", maxScale: -1},
	{name: "decimal", code: pb.XdbcDataType_XDBC_DECIMAL, size: 38, params: []string{"precision", "scale"}, maxScale: 38, radix: 10},
	{name: "integer", code: pb.XdbcDataType_XDBC_INTEGER, size: 10, radix: 10},
	{name: "smallint", code: pb.XdbcDataType_XDBC_SMALLINT, size: 5, radix: 10},
	{name: "real", code: pb.XdbcDataType_XDBC_REAL, size: 24, maxScale: -1, radix: 2},
	{name: "double", code: pb.XdbcDataType_XDBC_DOUBLE, size: 53, maxScale: -1, radix: 2},
	{name: "varchar", code: pb.XdbcDataType_XDBC_VARCHAR, prefix: "'", suffix: "'", params: []string{"length"}, caseSensitive: true, maxScale: -1},
	{name: "date", code: pb.XdbcDataType_XDBC_DATE, size: 10, prefix: "DATE '", suffix: "'", maxScale: -1, subcode: pb.XdbcDatetimeSubcode_XDBC_SUBCODE_DATE},
	{name: "time", code: pb.XdbcDataType_XDBC_TIME, size: 15, prefix: "TIME '", suffix: "'", params: []string{"precision"}, maxScale: 6, subcode: pb.XdbcDatetimeSubcode_XDBC_SUBCODE_TIME},
	{name: "timestamp", code: pb.XdbcDataType_XDBC_TIMESTAMP, size: 29, prefix: "TIMESTAMP '", suffix: "'", params: []string{"precision"}, maxScale: 9, subcode: pb.XdbcDatetimeSubcode_XDBC_SUBCODE_TIMESTAMP},
	{name: "timestamp with time zone", code: pb.XdbcDataType_XDBC_TIMESTAMP, size: 35, prefix: "TIMESTAMP '", suffix: "'", params: []string{"precision"}, maxScale: 9, subcode: pb.XdbcDatetimeSubcode_XDBC_SUBCODE_TIMESTAMP_WITH_TIMEZONE},
}

// xdbcTypesCommand is CommandGetXdbcTypeInfo.
type xdbcTypesCommand struct {
	m   *pb.CommandGetXdbcTypeInfo
	raw []byte
}

func (c *xdbcTypesCommand) schema(context.Context) (*arrow.Schema, error) {
	return schema_ref.XdbcTypeInfo, nil
}
func (c *xdbcTypesCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

func (c *xdbcTypesCommand) rows(_ context.Context, out *rowWriter) error {
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, schema_ref.XdbcTypeInfo)
	defer b.Release()
	for _, t := range xdbcTypes {
		if c.m.DataType != nil && pb.XdbcDataType(c.m.GetDataType()) != t.code {
			continue
		}
		t.append(b)
	}
	return out.batch(b.NewRecordBatch())
}

func (t *xdbcType) append(b *array.RecordBuilder) {
	text := func(i int, s string) {
		if s == "" {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.StringBuilder).Append(s)
	}
	number := func(i int, n int32, known bool) {
		if !known {
			b.Field(i).AppendNull()
			return
		}
		b.Field(i).(*array.Int32Builder).Append(n)
	}
	flag := func(i int, v bool) { b.Field(i).(*array.BooleanBuilder).Append(v) }
	text(0, t.name)
	number(1, int32(t.code), true)
	number(2, t.size, t.size > 0)
	text(3, t.prefix)
	text(4, t.suffix)
	if len(t.params) == 0 {
		b.Field(5).AppendNull()
	} else {
		l := b.Field(5).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).AppendValues(t.params, nil)
	}
	number(6, int32(pb.Nullable_NULLABILITY_NULLABLE), true)
	flag(7, t.caseSensitive)
	number(8, int32(pb.Searchable_SEARCHABLE_FULL), true)
	if t.radix > 0 {
		flag(9, false)
	} else {
		b.Field(9).AppendNull()
	}
	flag(10, t.name == "decimal")
	flag(11, false)
	text(12, t.name)
	number(13, t.minScale, t.maxScale >= 0)
	number(14, t.maxScale, t.maxScale >= 0)
	sqlType := t.code
	if t.subcode != pb.XdbcDatetimeSubcode_XDBC_SUBCODE_UNKNOWN {
		sqlType = pb.XdbcDataType_XDBC_DATETIME
	}
	number(15, int32(sqlType), true)
	number(16, int32(t.subcode), t.subcode != pb.XdbcDatetimeSubcode_XDBC_SUBCODE_UNKNOWN)
	number(17, t.radix, t.radix > 0)
	number(18, 0, false)
}
