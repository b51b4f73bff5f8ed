package vector

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// Wire says how types that Arrow has several forms of go over the wire. The zero Wire is what every client reads.
type Wire struct {
	// Variants sends variants as Arrow's canonical extension arrow.parquet.variant, a struct of the binaries metadata and value,
	// in place of JSON text.
	Variants bool
}

// jsonMark is the metadata of fields whose text is JSON, so that a client can tell it from other text.
const jsonMark = "skua.json"

// IsJSON reports whether the text of a field on the wire is JSON: that of a variant or of a value of type json.
func IsJSON(f arrow.Field) bool { return f.Metadata.FindKey(jsonMark) >= 0 }

// ArrowType gives the type in which t goes over the wire to any client.
func ArrowType(t Type) arrow.DataType { return Wire{}.Type(t) }

// ArrowSchema gives the wire schema of some columns for any client.
func ArrowSchema(columns []Field) *arrow.Schema { return Wire{}.Schema(columns) }

// ArrowField gives the wire form of a named column for any client.
func ArrowField(f Field) arrow.Field { return Wire{}.Field(f) }

// Type gives the type in which t goes over the wire (DESIGN section 6): plain layouts only, since JDBC decodes
// neither dictionaries nor views. Times and timestamps are microseconds, or nanoseconds when t's precision asks for them.
func (w Wire) Type(t Type) arrow.DataType {
	if t.Kind == Variant && w.Variants {
		return extensions.NewDefaultVariantType()
	}
	switch t.Kind {
	case Null, Varchar, JSON, Variant:
		return arrow.BinaryTypes.String
	case Boolean:
		return arrow.FixedWidthTypes.Boolean
	case TinyInt:
		return arrow.PrimitiveTypes.Int8
	case SmallInt:
		return arrow.PrimitiveTypes.Int16
	case Integer:
		return arrow.PrimitiveTypes.Int32
	case BigInt:
		return arrow.PrimitiveTypes.Int64
	case Real:
		return arrow.PrimitiveTypes.Float32
	case Double:
		return arrow.PrimitiveTypes.Float64
	case Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case Varbinary, Geometry, Geography:
		return arrow.BinaryTypes.Binary
	case Fixed:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Precision}
	case UUID:
		return extensions.NewUUIDType()
	case Date:
		return arrow.FixedWidthTypes.Date32
	case Time:
		return arrow.FixedWidthTypes.Time64us
	case Timestamp, TimestampTZ:
		ts := &arrow.TimestampType{Unit: arrow.Microsecond}
		if t.Nanos() {
			ts.Unit = arrow.Nanosecond
		}
		if t.Kind == TimestampTZ {
			ts.TimeZone = "UTC"
		}
		return ts
	case IntervalYear:
		return arrow.FixedWidthTypes.MonthInterval
	case IntervalDay:
		return arrow.FixedWidthTypes.Duration_us
	case Array:
		return arrow.ListOfField(w.Field(t.Fields[0]))
	case Map:
		key := w.Field(t.Fields[0])
		key.Nullable = false // Arrow's maps have no null keys, whatever the key's type
		return arrow.MapOfFields(key, w.Field(t.Fields[1]))
	case Row:
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			if f.Name == "" { // an anonymous field, of ROW(1, 2); Arrow's structs want names that differ
				f.Name = fmt.Sprint("field", i)
			}
			fields[i] = w.Field(f)
		}
		return arrow.StructOf(fields...)
	}
	panic(fmt.Sprintf("vector: type %s has no wire form", t))
}

// Field gives the wire form of a named column. Geometry columns carry their coordinate reference system
// in the metadata of the geoarrow.wkb extension; JSON text is marked as such.
func (w Wire) Field(f Field) arrow.Field {
	out := arrow.Field{Name: f.Name, Type: w.Type(f.Type), Nullable: f.Nullable || f.Type.Kind == Null}
	if f.Type.Kind == JSON || f.Type.Kind == Variant && !w.Variants {
		out.Metadata = arrow.MetadataFrom(map[string]string{jsonMark: f.Type.String()})
	}
	if f.Type.Kind == Geometry || f.Type.Kind == Geography {
		meta := map[string]string{"crs": f.Type.CRS}
		if f.Type.Kind == Geography {
			meta["edges"] = f.Type.Edges
			if meta["edges"] == "" {
				meta["edges"] = "spherical"
			}
		}
		text, _ := json.Marshal(meta) // a map of strings always marshals
		out.Metadata = arrow.MetadataFrom(map[string]string{
			"ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": string(text),
		})
	}
	return out
}

// Schema gives the wire schema of some columns.
func (w Wire) Schema(columns []Field) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = w.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

// FromArrow gives the type of values that arrive as dt, such as bound parameters. The second result is false for types
// that Skua has no counterpart of.
func FromArrow(dt arrow.DataType) (Type, bool) {
	switch dt := dt.(type) {
	case *arrow.NullType:
		return Of(Null), true
	case *arrow.BooleanType:
		return Of(Boolean), true
	case *arrow.Int8Type:
		return Of(TinyInt), true
	case *arrow.Int16Type, *arrow.Uint8Type:
		return Of(SmallInt), true
	case *arrow.Int32Type, *arrow.Uint16Type:
		return Of(Integer), true
	case *arrow.Int64Type, *arrow.Uint32Type:
		return Of(BigInt), true
	case *arrow.Uint64Type:
		return DecimalOf(20, 0), true
	case *arrow.Float32Type, *arrow.Float16Type:
		return Of(Real), true
	case *arrow.Float64Type:
		return Of(Double), true
	case *arrow.Decimal128Type:
		return DecimalOf(int(dt.Precision), int(dt.Scale)), dt.Precision <= 38 && dt.Scale >= 0
	case *arrow.Decimal32Type:
		return DecimalOf(int(dt.Precision), int(dt.Scale)), dt.Scale >= 0
	case *arrow.Decimal64Type:
		return DecimalOf(int(dt.Precision), int(dt.Scale)), dt.Scale >= 0
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return Of(Varchar), true
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return Of(Varbinary), true
	case *arrow.FixedSizeBinaryType:
		return Of(Varbinary), true
	case *arrow.Date32Type, *arrow.Date64Type:
		return Of(Date), true
	case *arrow.Time32Type, *arrow.Time64Type:
		return Of(Time), true
	case *arrow.TimestampType:
		t := Type{Kind: Timestamp, Precision: 6}
		if dt.Unit == arrow.Nanosecond {
			t.Precision = 9
		}
		if dt.TimeZone != "" {
			t.Kind = TimestampTZ
		}
		return t, true
	case *arrow.DurationType:
		return Of(IntervalDay), true
	case *arrow.MonthIntervalType:
		return Of(IntervalYear), true
	case *arrow.DictionaryType:
		return FromArrow(dt.ValueType)
	case arrow.ExtensionType:
		if dt.ExtensionName() == "arrow.uuid" {
			return Of(UUID), true
		}
		return FromArrow(dt.StorageType())
	case *arrow.MapType:
		k, ok := FromArrow(dt.KeyType())
		v, ok2 := FromArrow(dt.ItemType())
		return MapOf(k, v), ok && ok2
	case arrow.ListLikeType:
		e, ok := FromArrow(dt.Elem())
		return ArrayOf(e), ok
	case *arrow.StructType:
		fields := make([]Field, dt.NumFields())
		for i, f := range dt.Fields() {
			t, ok := FromArrow(f.Type)
			if !ok {
				return Type{}, false
			}
			fields[i] = Field{Name: f.Name, Type: t, Nullable: f.Nullable}
		}
		return RowOf(fields...), true
	}
	return Type{}, false
}
