package scanner

import (
	"strconv"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/vector"
)

const kindRow = vector.Row

// schemaMaker gives a file's own columns Iceberg types and ids, counted from 1 parents first.
type schemaMaker struct{ last int }

func (m *schemaMaker) id() int {
	m.last++
	return m.last
}

func (m *schemaMaker) fields(nodes []*fileNode) ([]iceberg.NestedField, error) {
	names := uniqueNames(nodes)
	out := make([]iceberg.NestedField, len(nodes))
	for i, n := range nodes {
		out[i] = iceberg.NestedField{ID: m.id(), Name: names[i], Required: n.required()}
		var err error
		if out[i].Type, err = m.typeOf(n); err != nil {
			return nil, fault.Wrap(fault.Unsupported, err, "column %s", n.name)
		}
	}
	return out, nil
}

// required reports whether the file declares that values are there.
func (f *fileNode) required() bool {
	if f.av != nil {
		return !f.av.Nullable() && f.av.Kind != avro.Union
	}
	if f.orc != nil {
		return f.orc.Attributes["iceberg.required"] == "true" && (f.orc.Kind != orc.Union || f.kind == vector.Row)
	}
	return f.pq.Repetition != parquet.Optional
}

func (m *schemaMaker) typeOf(n *fileNode) (iceberg.Type, error) {
	switch n.kind {
	case vector.Row:
		if n.pq != nil && n.pq.Logical.Kind == parquet.Variant {
			return iceberg.VariantType{}, nil
		}
		if n.orc != nil && n.orc.Attributes["iceberg.struct-type"] == "VARIANT" {
			return iceberg.VariantType{}, nil
		}
		fields, err := m.fields(n.kids)
		return &iceberg.StructType{FieldList: fields}, err
	case vector.Array:
		id := m.id()
		e, err := m.typeOf(n.kids[0])
		required := n.kids[0].required() && n.kids[0].pq != n.pq
		return &iceberg.ListType{ElementID: id, Element: e, ElementRequired: required}, err
	case vector.Map:
		kid, vid := m.id(), m.id()
		k, err := m.typeOf(n.kids[0])
		if err != nil {
			return nil, err
		}
		if len(n.kids) < 2 { // keys without values
			return &iceberg.MapType{KeyID: kid, KeyType: k, ValueID: vid, ValueType: iceberg.UnknownType{}}, nil
		}
		v, err := m.typeOf(n.kids[1])
		return &iceberg.MapType{KeyID: kid, KeyType: k, ValueID: vid, ValueType: v, ValueRequired: n.kids[1].required()}, err
	}
	if n.av != nil {
		return avroType(n.av)
	}
	if n.orc != nil {
		return orcType(n.orc)
	}
	return parquetType(n.pq)
}

// orcType is the Iceberg type of an ORC column that is no struct, list or map (Iceberg spec, appendix A "ORC").
func orcType(n *orc.Node) (iceberg.Type, error) {
	micros := n.Attributes["iceberg.timestamp-unit"] == "MICROS"
	switch n.Kind {
	case orc.Union: // its tag: see orcTree
		return iceberg.PrimitiveTypes.Int32, nil
	case orc.Boolean:
		return iceberg.PrimitiveTypes.Bool, nil
	case orc.Byte, orc.Short, orc.Int:
		return iceberg.PrimitiveTypes.Int32, nil
	case orc.Long:
		if n.Attributes["iceberg.long-type"] == "TIME" {
			return iceberg.PrimitiveTypes.Time, nil
		}
		return iceberg.PrimitiveTypes.Int64, nil
	case orc.Float:
		return iceberg.PrimitiveTypes.Float32, nil
	case orc.Double:
		return iceberg.PrimitiveTypes.Float64, nil
	case orc.String, orc.Varchar, orc.Char:
		return iceberg.PrimitiveTypes.String, nil
	case orc.Date:
		return iceberg.PrimitiveTypes.Date, nil
	case orc.Timestamp:
		if micros {
			return iceberg.PrimitiveTypes.Timestamp, nil
		}
		return iceberg.TimestampNsType{}, nil
	case orc.TimestampInstant:
		if micros {
			return iceberg.PrimitiveTypes.TimestampTz, nil
		}
		return iceberg.TimestampTzNsType{}, nil
	case orc.Decimal:
		if n.Precision > 0 {
			return iceberg.DecimalTypeOf(n.Precision, n.Scale), nil
		}
	case orc.Binary:
		switch n.Attributes["iceberg.binary-type"] {
		case "UUID":
			return iceberg.PrimitiveTypes.UUID, nil
		case "FIXED":
			if size, err := strconv.Atoi(n.Attributes["iceberg.length"]); err == nil && size > 0 {
				return iceberg.FixedTypeOf(size), nil
			}
		}
		return iceberg.PrimitiveTypes.Binary, nil
	}
	return nil, fault.New(fault.Unsupported, "ORC %s is not supported", n.Kind)
}

// parquetType is the Iceberg type of a Parquet column by its annotation. INT96, which carries none, is a timestamp without zone
// of microseconds, so that its whole range of days is read.
func parquetType(n *parquet.Node) (iceberg.Type, error) {
	p, l := n.Physical, n.Logical
	switch l.Kind {
	case parquet.Unknown:
		return iceberg.UnknownType{}, nil
	case parquet.Decimal:
		if l.Precision < 1 || l.Precision > 38 || l.Scale < 0 || l.Scale > l.Precision {
			return nil, fault.New(fault.Unsupported, "decimal(%d,%d) is not supported; precisions of 1 to 38 are", l.Precision, l.Scale)
		}
		return iceberg.DecimalTypeOf(l.Precision, l.Scale), nil
	case parquet.Date:
		if p == parquet.Int32 {
			return iceberg.PrimitiveTypes.Date, nil
		}
	case parquet.Time:
		return iceberg.PrimitiveTypes.Time, nil
	case parquet.Timestamp:
		switch {
		case p != parquet.Int64:
		case l.Unit == parquet.Nanos && l.UTC:
			return iceberg.TimestampTzNsType{}, nil
		case l.Unit == parquet.Nanos:
			return iceberg.TimestampNsType{}, nil
		case l.UTC:
			return iceberg.PrimitiveTypes.TimestampTz, nil
		default:
			return iceberg.PrimitiveTypes.Timestamp, nil
		}
	case parquet.Integer:
		if p == parquet.Int32 && !l.Signed && l.Bits == 32 {
			return iceberg.PrimitiveTypes.Int64, nil
		}
	case parquet.String, parquet.Enum, parquet.JSON:
		if p == parquet.ByteArray {
			return iceberg.PrimitiveTypes.String, nil
		}
	case parquet.UUID:
		if p == parquet.FixedLenByteArray && n.Length == 16 {
			return iceberg.PrimitiveTypes.UUID, nil
		}
	case parquet.Float16:
		if p == parquet.FixedLenByteArray && n.Length == 2 {
			return iceberg.PrimitiveTypes.Float32, nil
		}
	case parquet.Geometry:
		crs := l.CRS
		if crs == "" {
			crs = defaultCRS
		}
		if t, err := iceberg.GeometryTypeOf(crs); err == nil && p == parquet.ByteArray {
			return t, nil
		}
	case parquet.Geography:
		crs := l.CRS
		if crs == "" {
			crs = defaultCRS
		}
		if t, err := iceberg.GeographyTypeOf(crs, edges(l.Edges)); err == nil && p == parquet.ByteArray {
			return t, nil
		}
	}
	switch p {
	case parquet.Boolean:
		return iceberg.PrimitiveTypes.Bool, nil
	case parquet.Int32:
		return iceberg.PrimitiveTypes.Int32, nil
	case parquet.Int64:
		return iceberg.PrimitiveTypes.Int64, nil
	case parquet.Int96:
		return iceberg.PrimitiveTypes.Timestamp, nil
	case parquet.Float:
		return iceberg.PrimitiveTypes.Float32, nil
	case parquet.Double:
		return iceberg.PrimitiveTypes.Float64, nil
	case parquet.FixedLenByteArray:
		return iceberg.FixedTypeOf(n.Length), nil
	}
	return iceberg.PrimitiveTypes.Binary, nil
}

// defaultCRS is that of geometries which name none (Parquet's Geospatial.md).
const defaultCRS = "OGC:CRS84"

// edges names the interpolation of geography edges, numbered as in parquet.thrift.
func edges(n int32) string {
	names := [...]string{"spherical", "vincenty", "thomas", "andoyer", "karney"}
	if n >= 0 && int(n) < len(names) {
		return names[n]
	}
	return names[0]
}

// avroType is the Iceberg type of an Avro field that is no record, array or map.
func avroType(n *avro.Node) (iceberg.Type, error) {
	switch n.Kind {
	case avro.Null:
		return iceberg.UnknownType{}, nil
	case avro.Boolean:
		return iceberg.PrimitiveTypes.Bool, nil
	case avro.Int:
		switch n.Logical {
		case "date":
			return iceberg.PrimitiveTypes.Date, nil
		case "time-millis":
			return iceberg.PrimitiveTypes.Time, nil
		}
		return iceberg.PrimitiveTypes.Int32, nil
	case avro.Long:
		switch n.Logical {
		case "time-micros":
			return iceberg.PrimitiveTypes.Time, nil
		case "timestamp-millis", "timestamp-micros":
			if n.Local {
				return iceberg.PrimitiveTypes.Timestamp, nil
			}
			return iceberg.PrimitiveTypes.TimestampTz, nil
		case "local-timestamp-millis", "local-timestamp-micros":
			return iceberg.PrimitiveTypes.Timestamp, nil
		case "timestamp-nanos":
			if n.Local {
				return iceberg.TimestampNsType{}, nil
			}
			return iceberg.TimestampTzNsType{}, nil
		case "local-timestamp-nanos":
			return iceberg.TimestampNsType{}, nil
		}
		return iceberg.PrimitiveTypes.Int64, nil
	case avro.Float:
		return iceberg.PrimitiveTypes.Float32, nil
	case avro.Double:
		return iceberg.PrimitiveTypes.Float64, nil
	case avro.String:
		if n.Logical == "uuid" {
			return iceberg.PrimitiveTypes.UUID, nil
		}
		return iceberg.PrimitiveTypes.String, nil
	case avro.Enum:
		return iceberg.PrimitiveTypes.String, nil
	case avro.Bytes, avro.Fixed:
		switch {
		case n.Logical == "decimal" && n.Precision >= 1 && n.Precision <= 38 && n.Scale >= 0 && n.Scale <= n.Precision:
			return iceberg.DecimalTypeOf(n.Precision, n.Scale), nil
		case n.Logical == "decimal":
			return nil, fault.New(fault.Unsupported, "decimal(%d,%d) is not supported; precisions of 1 to 38 are", n.Precision, n.Scale)
		case n.Kind == avro.Bytes:
			return iceberg.PrimitiveTypes.Binary, nil
		case n.Logical == "uuid" && n.Size == 16:
			return iceberg.PrimitiveTypes.UUID, nil
		case n.Size == 0:
			return iceberg.PrimitiveTypes.Binary, nil
		}
		return iceberg.FixedTypeOf(n.Size), nil
	}
	return iceberg.VariantType{}, nil // a union of several types
}
