package parquet

import (
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
)

func parseSchemaElement(r *thrift.Reader, _ thrift.Type, e *schemaElement) {
	e.ID, e.Physical = -1, -1
	converted, logical := int32(-1), Logical{}
	var scale, precision int32
	named := false
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			e.Physical, e.hasType = Physical(min(max(r.Int(t), -1), 100)), true
		case 2:
			e.Length = int(r.Int32(t))
		case 3:
			e.Repetition, e.hasRep = Repetition(min(max(r.Int(t), -1), 100)), true
		case 4:
			e.Name, named = r.String(t), true
		case 5:
			e.numChildren = r.Int32(t)
		case 6:
			converted = r.Int32(t)
		case 7:
			scale = r.Int32(t)
		case 8:
			precision = r.Int32(t)
		case 9:
			e.ID = int(r.Int32(t))
		case 10:
			logical = parseLogicalType(r)
		default:
			r.Skip(t)
		}
	})
	if !named {
		r.Fail(fault.New(fault.Corrupt, "schema element without a name"))
	}
	if logical.Kind == None && converted >= 0 {
		logical = convertedType(converted, precision, scale)
	}
	e.Logical = logical
}

// convertedType maps the older annotation to a logical type (LogicalTypes.md, "Compatibility"). Converted times and timestamps
// are adjusted to UTC.
func convertedType(c, precision, scale int32) Logical {
	switch c {
	case 0:
		return Logical{Kind: String}
	case 1:
		return Logical{Kind: Map}
	case 2:
		return Logical{Kind: MapKeyValue}
	case 3:
		return Logical{Kind: List}
	case 4:
		return Logical{Kind: Enum}
	case 5:
		return Logical{Kind: Decimal, Precision: int(precision), Scale: int(scale)}
	case 6:
		return Logical{Kind: Date}
	case 7:
		return Logical{Kind: Time, Unit: Millis, UTC: true}
	case 8:
		return Logical{Kind: Time, Unit: Micros, UTC: true}
	case 9:
		return Logical{Kind: Timestamp, Unit: Millis, UTC: true}
	case 10:
		return Logical{Kind: Timestamp, Unit: Micros, UTC: true}
	case 11, 12, 13, 14:
		return Logical{Kind: Integer, Bits: 8 << (c - 11)}
	case 15, 16, 17, 18:
		return Logical{Kind: Integer, Bits: 8 << (c - 15), Signed: true}
	case 19:
		return Logical{Kind: JSON}
	case 20:
		return Logical{Kind: BSON}
	case 21:
		return Logical{Kind: Interval}
	}
	return Logical{}
}

// simpleLogical holds the members of the LogicalType union that carry nothing.
var simpleLogical = map[int16]LogicalKind{1: String, 2: Map, 3: List, 4: Enum, 6: Date, 11: Unknown, 12: JSON, 13: BSON, 14: UUID, 15: Float16}

func parseLogicalType(r *thrift.Reader) Logical {
	var l Logical
	r.Struct(func(id int16, t thrift.Type) {
		if k, ok := simpleLogical[id]; ok {
			l.Kind = k
			r.Skip(t)
			return
		}
		switch id {
		case 5:
			l.Kind = Decimal
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.Scale = int(r.Int32(t))
				case 2:
					l.Precision = int(r.Int32(t))
				default:
					r.Skip(t)
				}
			})
		case 7, 8:
			l.Kind = Time
			if id == 8 {
				l.Kind = Timestamp
			}
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.UTC = r.Bool(t)
				case 2:
					r.Struct(func(id int16, t thrift.Type) {
						if id >= 1 && id <= 3 {
							l.Unit = Unit(id)
						}
						r.Skip(t)
					})
				default:
					r.Skip(t)
				}
			})
		case 10:
			l.Kind = Integer
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					l.Bits = int(r.Int(t))
				case 2:
					l.Signed = r.Bool(t)
				default:
					r.Skip(t)
				}
			})
		case 16:
			l.Kind = Variant
			r.Skip(t)
		case 17, 18:
			l.Kind = Geometry
			if id == 18 {
				l.Kind = Geography
			}
			r.Struct(func(fid int16, t thrift.Type) {
				switch {
				case fid == 1:
					l.CRS = r.String(t)
				case fid == 2 && id == 18:
					l.Edges = r.Int32(t)
				default:
					r.Skip(t)
				}
			})
		default:
			r.Skip(t)
		}
	})
	return l
}
