package catalog

import (
	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// TypeOf maps an Iceberg type to the engine's type; nested fields keep their names and field ids. A type that Skua
// does not know is fault.Unsupported.
func TypeOf(t iceberg.Type) (vector.Type, error) {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return vector.Of(vector.Boolean), nil
	case iceberg.Int32Type:
		return vector.Of(vector.Integer), nil
	case iceberg.Int64Type:
		return vector.Of(vector.BigInt), nil
	case iceberg.Float32Type:
		return vector.Of(vector.Real), nil
	case iceberg.Float64Type:
		return vector.Of(vector.Double), nil
	case iceberg.DecimalType:
		return vector.DecimalOf(t.Precision(), t.Scale()), nil
	case iceberg.DateType:
		return vector.Of(vector.Date), nil
	case iceberg.TimeType:
		return vector.Of(vector.Time), nil
	case iceberg.TimestampType:
		return vector.Of(vector.Timestamp), nil
	case iceberg.TimestampTzType:
		return vector.Of(vector.TimestampTZ), nil
	case iceberg.TimestampNsType:
		return vector.Type{Kind: vector.Timestamp, Precision: 9}, nil
	case iceberg.TimestampTzNsType:
		return vector.Type{Kind: vector.TimestampTZ, Precision: 9}, nil
	case iceberg.StringType:
		return vector.Of(vector.Varchar), nil
	case iceberg.UUIDType:
		return vector.Of(vector.UUID), nil
	case iceberg.FixedType:
		return vector.Type{Kind: vector.Fixed, Precision: t.Len()}, nil
	case iceberg.BinaryType:
		return vector.Of(vector.Varbinary), nil
	case iceberg.UnknownType:
		return vector.Of(vector.Null), nil
	case iceberg.VariantType:
		return vector.Of(vector.Variant), nil
	case iceberg.GeometryType:
		return vector.Type{Kind: vector.Geometry, CRS: t.CRS()}, nil
	case iceberg.GeographyType:
		return vector.Type{Kind: vector.Geography, CRS: t.CRS(), Edges: t.Algorithm()}, nil
	case *iceberg.StructType:
		fields, err := FieldsOf(t.FieldList)
		return vector.Type{Kind: vector.Row, Fields: fields}, err
	case *iceberg.ListType:
		e, err := TypeOf(t.Element)
		return vector.Type{Kind: vector.Array, Fields: []vector.Field{
			{Name: "element", Type: e, Nullable: !t.ElementRequired, ID: t.ElementID},
		}}, err
	case *iceberg.MapType:
		k, err := TypeOf(t.KeyType)
		if err != nil {
			return vector.Type{}, err
		}
		v, err := TypeOf(t.ValueType)
		return vector.Type{Kind: vector.Map, Fields: []vector.Field{
			{Name: "key", Type: k, ID: t.KeyID}, {Name: "value", Type: v, Nullable: !t.ValueRequired, ID: t.ValueID},
		}}, err
	}
	return vector.Type{}, fault.New(fault.Unsupported, "Iceberg type %s is not known", t)
}

// FieldsOf maps the fields of a schema or struct in order.
func FieldsOf(fields []iceberg.NestedField) ([]vector.Field, error) {
	out := make([]vector.Field, len(fields))
	for i, f := range fields {
		t, err := TypeOf(f.Type)
		if err != nil {
			return nil, fault.Wrap(fault.Unsupported, err, "column %s", f.Name)
		}
		out[i] = vector.Field{Name: f.Name, Type: t, Nullable: !f.Required, ID: f.ID}
	}
	return out, nil
}
