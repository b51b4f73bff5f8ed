package vector

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind names a SQL type without its parameters.
type Kind uint8

// The SQL types. Physical says how each is laid out in a Vector.
const (
	Null         Kind = iota // the type of a bare NULL; every row is null
	Boolean                  // Bools
	TinyInt                  // I32
	SmallInt                 // I32
	Integer                  // I32
	BigInt                   // I64
	Real                     // F32
	Double                   // F64
	Decimal                  // I64 up to 18 digits, I128 above; unscaled
	Varchar                  // Views, UTF-8; char(n) is one whose CRS is CharPadding, its values padded with blanks to n characters
	Varbinary                // Views
	Fixed                    // Views; Precision is the length in bytes
	UUID                     // Views of 16 bytes, big-endian
	Date                     // I32, days since 1970-01-01
	Time                     // I64, microseconds since midnight
	Timestamp                // I64, since 1970-01-01 00:00:00 without zone; µs, ns when Precision > 6
	TimestampTZ              // I64, an instant; units as Timestamp
	IntervalYear             // I32, months
	IntervalDay              // I64, microseconds
	Array                    // Offsets into Children[0]
	Map                      // Offsets into Children[0] (keys) and Children[1] (values)
	Row                      // Children, one a field
	Variant                  // Row of two binaries: Children[0] metadata, Children[1] value
	JSON                     // Views, JSON text
	Geometry                 // Views, WKB
	Geography                // Views, WKB
)

// Physical is the layout of a vector's values.
type Physical uint8

// The physical layouts.
const (
	PNone Physical = iota // type Null: no values at all
	PBool
	PInt32
	PInt64
	PInt128
	PFloat32
	PFloat64
	PView // strings and bytes
	PList // arrays and maps
	PRow
)

// Type is a SQL type with its parameters.
type Type struct {
	Kind      Kind
	Precision int // decimal digits; fractional digits of time and timestamp (0..9); length of Fixed; max length of varchar(n), 0 when unbounded
	Scale     int // decimal
	// Fields: of a Row its fields; of an Array one ("element"); of a Map two ("key", "value").
	Fields []Field
	// CRS is the coordinate reference system of Geometry and Geography; Edges the algorithm of Geography.
	CRS, Edges string
}

// Field is a named part of a nested type.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	// ID is the Iceberg field id, 0 when the field is not a table's.
	ID int
}

// MaxShortDecimal is the largest precision whose unscaled value is held in an int64.
const MaxShortDecimal = 18

// Physical tells the layout of t's values.
func (t Type) Physical() Physical {
	switch t.Kind {
	case Null:
		return PNone
	case Boolean:
		return PBool
	case TinyInt, SmallInt, Integer, Date, IntervalYear:
		return PInt32
	case BigInt, Time, Timestamp, TimestampTZ, IntervalDay:
		return PInt64
	case Decimal:
		if t.Precision <= MaxShortDecimal {
			return PInt64
		}
		return PInt128
	case Real:
		return PFloat32
	case Double:
		return PFloat64
	case Varchar, Varbinary, Fixed, UUID, JSON, Geometry, Geography:
		return PView
	case Array, Map:
		return PList
	case Row, Variant:
		return PRow
	}
	panic(fmt.Sprintf("vector: kind %d has no layout", t.Kind))
}

// Nanos reports whether a time or timestamp counts nanoseconds rather than microseconds.
func (t Type) Nanos() bool {
	return (t.Kind == Timestamp || t.Kind == TimestampTZ) && t.Precision > 6
}

// Of makes a type without parameters; time and timestamps get microseconds.
func Of(k Kind) Type {
	switch k {
	case Time, Timestamp, TimestampTZ:
		return Type{Kind: k, Precision: 6}
	case Variant:
		return Type{Kind: k, Fields: variantFields}
	}
	return Type{Kind: k}
}

var variantFields = []Field{{Name: "metadata", Type: Type{Kind: Varbinary}}, {Name: "value", Type: Type{Kind: Varbinary}}}

// DecimalOf makes decimal(precision, scale).
func DecimalOf(precision, scale int) Type {
	return Type{Kind: Decimal, Precision: precision, Scale: scale}
}

// ArrayOf makes array(e).
func ArrayOf(e Type) Type {
	return Type{Kind: Array, Fields: []Field{{Name: "element", Type: e, Nullable: true}}}
}

// MapOf makes map(k, v).
func MapOf(k, v Type) Type {
	return Type{Kind: Map, Fields: []Field{{Name: "key", Type: k}, {Name: "value", Type: v, Nullable: true}}}
}

// RowOf makes row(fields).
func RowOf(fields ...Field) Type { return Type{Kind: Row, Fields: fields} }

// CharPadding marks a Varchar as char(n).
const CharPadding = "char"

// CharOf makes char(n), whose values have n characters, blanks at the end.
func CharOf(n int) Type { return Type{Kind: Varchar, Precision: n, CRS: CharPadding} }

// IsChar reports whether t is char(n).
func (t Type) IsChar() bool { return t.Kind == Varchar && t.CRS == CharPadding }

// Equal compares types, nested ones with the names of their fields; field ids and nullability do not count.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || len(t.Fields) != len(u.Fields) {
		return false
	}
	switch t.Kind {
	case Decimal:
		return t.Precision == u.Precision && t.Scale == u.Scale
	case Varchar:
		return t.Precision == u.Precision && t.CRS == u.CRS
	case Fixed, Time, Timestamp, TimestampTZ:
		return t.Precision == u.Precision
	case Geometry, Geography:
		return t.CRS == u.CRS && t.Edges == u.Edges
	}
	for i := range t.Fields {
		if (t.Kind == Row && t.Fields[i].Name != u.Fields[i].Name) || !t.Fields[i].Type.Equal(u.Fields[i].Type) {
			return false
		}
	}
	return true
}

// Numeric reports whether t is an integer, decimal or floating-point type.
func (t Type) Numeric() bool { return t.Kind >= TinyInt && t.Kind <= Decimal }

// Integral reports whether t is an integer type.
func (t Type) Integral() bool { return t.Kind >= TinyInt && t.Kind <= BigInt }

var kindNames = map[Kind]string{
	Null: "unknown", Boolean: "boolean", TinyInt: "tinyint", SmallInt: "smallint", Integer: "integer", BigInt: "bigint",
	Real: "real", Double: "double", Varchar: "varchar", Varbinary: "varbinary", UUID: "uuid", Date: "date",
	IntervalYear: "interval year to month", IntervalDay: "interval day to second", Variant: "variant", JSON: "json",
	Geometry: "geometry", Geography: "geography",
}

// String writes t as SQL spells it.
func (t Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.Precision, t.Scale)
	case Fixed:
		return fmt.Sprintf("fixed(%d)", t.Precision)
	case Varchar:
		if t.IsChar() {
			return "char(" + strconv.Itoa(t.Precision) + ")"
		}
		if t.Precision > 0 {
			return "varchar(" + strconv.Itoa(t.Precision) + ")"
		}
	case Time:
		return fmt.Sprintf("time(%d)", t.Precision)
	case Timestamp:
		return fmt.Sprintf("timestamp(%d)", t.Precision)
	case TimestampTZ:
		return fmt.Sprintf("timestamp(%d) with time zone", t.Precision)
	case Array:
		return "array(" + t.Fields[0].Type.String() + ")"
	case Map:
		return "map(" + t.Fields[0].Type.String() + ", " + t.Fields[1].Type.String() + ")"
	case Row:
		var b strings.Builder
		b.WriteString("row(")
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			if f.Name != "" {
				b.WriteString(quoteName(f.Name))
				b.WriteByte(' ')
			}
			b.WriteString(f.Type.String())
		}
		return b.String() + ")"
	}
	return kindNames[t.Kind]
}

func quoteName(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9' || i == 0) {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
	}
	return s
}
