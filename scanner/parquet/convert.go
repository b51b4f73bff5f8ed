package parquet

import (
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// op is how a column's physical values become values of the wanted layout.
type op uint8

const (
	opSame        op = iota
	opWiden          // int32 to int64, times factor
	opWidenU         // uint32 to int64
	opFitU32         // uint32 that must fit an int32
	opFitU64         // uint64 that must fit an int64
	opScale          // int64 times factor, checked
	opFloor          // int64 divided by factor, rounded down
	opTo128          // int32 or int64 to Int128
	opDouble         // float to double
	opHalf           // float16 to float or double
	opBigEndian      // big-endian two's complement bytes to int64 or Int128
	opInt96          // Julian day and nanoseconds to a timestamp
	opBytes          // bytes as they are
	opBytesLength    // bytes that must have the wanted length
	opNull           // every value is null, whatever is stored
)

// conversion is the way from a column to a wanted type.
type conversion struct {
	op     op
	factor int64
	length int
	// digits is the wanted decimal precision when the file's own could exceed it; values are then checked.
	digits int
	layout vector.Physical
}

const (
	microsPerDay = 86_400_000_000
	nanosPerDay  = 86_400_000_000_000
)

// newConversion decides how column n gives values of type want (facts of the Iceberg spec, "Parquet" type table and schema
// evolution). What is not a legal reading is fault.Corrupt: the table's metadata and the file contradict each other.
func newConversion(n *Node, want vector.Type) (conversion, error) {
	c := conversion{layout: want.Physical()}
	p, l := n.Physical, n.Logical
	if want.Kind == vector.Null || l.Kind == Unknown {
		c.op = opNull
		return c, nil
	}
	plainInt := l.Kind == None || l.Kind == Integer
	unsigned := l.Kind == Integer && !l.Signed
	switch want.Kind {
	case vector.Boolean:
		if p == Boolean {
			return c, nil
		}
	case vector.TinyInt, vector.SmallInt, vector.Integer, vector.IntervalYear:
		if p == Int32 && plainInt {
			if unsigned {
				c.op = opFitU32
			}
			return c, nil
		}
	case vector.Date:
		if p == Int32 && (l.Kind == Date || l.Kind == None) {
			return c, nil
		}
	case vector.BigInt, vector.IntervalDay:
		switch {
		case p == Int32 && plainInt:
			c.op, c.factor = opWiden, 1
			if unsigned {
				c.op = opWidenU
			}
			return c, nil
		case p == Int64 && plainInt:
			if unsigned {
				c.op = opFitU64
			}
			return c, nil
		}
	case vector.Real:
		if p == Float {
			return c, nil
		}
		if p == FixedLenByteArray && n.Length == 2 && l.Kind == Float16 {
			c.op = opHalf
			return c, nil
		}
	case vector.Double:
		switch {
		case p == Double:
			return c, nil
		case p == Float:
			c.op = opDouble
			return c, nil
		case p == FixedLenByteArray && n.Length == 2 && l.Kind == Float16:
			c.op = opHalf
			return c, nil
		}
	case vector.Decimal:
		return decimalConversion(n, want, c)
	case vector.Time:
		return timeConversion(n, want, c)
	case vector.Timestamp, vector.TimestampTZ:
		return timestampConversion(n, want, c)
	case vector.Varchar, vector.Varbinary, vector.JSON, vector.Geometry, vector.Geography:
		if p == ByteArray && l.Kind != Decimal || p == FixedLenByteArray && want.Kind == vector.Varbinary {
			c.op = opBytes
			return c, nil
		}
	case vector.Fixed, vector.UUID:
		c.length = want.Precision
		if want.Kind == vector.UUID {
			c.length = 16
		}
		if p == FixedLenByteArray {
			if n.Length != c.length {
				return c, fault.New(fault.Corrupt, "column %s has values of %d bytes, the table wants %s", n.Path(), n.Length, want)
			}
			c.op = opBytes
			return c, nil
		}
		if p == ByteArray && l.Kind == None {
			c.op = opBytesLength
			return c, nil
		}
	}
	return c, mismatch(n, want)
}

func mismatch(n *Node, want vector.Type) error {
	return fault.New(fault.Corrupt, "column %s is %s in the file, which cannot be read as %s", n.Path(), n.describe(), want)
}

func decimalConversion(n *Node, want vector.Type, c conversion) (conversion, error) {
	if n.Logical.Kind != Decimal {
		return c, mismatch(n, want)
	}
	if n.Logical.Scale != want.Scale {
		return c, fault.New(fault.Corrupt, "column %s has decimals of scale %d, the table wants %s", n.Path(), n.Logical.Scale, want)
	}
	most := 0 // digits that the file's values can have
	switch n.Physical {
	case Int32:
		most = 10
		if c.layout == vector.PInt64 {
			c.op, c.factor = opWiden, 1
		} else {
			c.op = opTo128
		}
	case Int64:
		most = 19
		if c.layout == vector.PInt128 {
			c.op = opTo128
		}
	case ByteArray, FixedLenByteArray:
		most = 1 << 20
		if n.Physical == FixedLenByteArray {
			most = n.Length * 5 / 2 // at most 2.41 digits a byte
		}
		c.op = opBigEndian
	default:
		return c, mismatch(n, want)
	}
	if want.Precision < most {
		c.digits = want.Precision
	}
	return c, nil
}

func timeConversion(n *Node, want vector.Type, c conversion) (conversion, error) {
	l := n.Logical
	switch {
	case n.Physical == Int64 && l.Kind == None:
		// Written without annotation: the table says what the numbers are.
	case l.Kind != Time:
		return c, mismatch(n, want)
	case n.Physical == Int32 && l.Unit == Millis:
		c.op, c.factor = opWiden, 1000
	case n.Physical == Int64 && l.Unit == Micros:
	case n.Physical == Int64 && l.Unit == Nanos:
		c.op, c.factor = opFloor, 1000
	default:
		return c, mismatch(n, want)
	}
	return c, nil
}

func timestampConversion(n *Node, want vector.Type, c conversion) (conversion, error) {
	l := n.Logical
	nanos := want.Nanos()
	switch {
	case n.Physical == Int96:
		c.op, c.factor = opInt96, 1000
		if nanos {
			c.factor = 1
		}
	case n.Physical == Int32 && l.Kind == Date && want.Kind == vector.Timestamp:
		c.op, c.factor = opWiden, microsPerDay
		if nanos {
			c.factor = nanosPerDay
		}
	case n.Physical == Int64 && l.Kind == None:
		// Written without annotation: the table says what the numbers are, in the unit of its type.
	case n.Physical != Int64 || l.Kind != Timestamp:
		return c, mismatch(n, want)
	case l.Unit == Millis:
		c.op, c.factor = opScale, 1000
		if nanos {
			c.factor = 1_000_000
		}
	case l.Unit == Micros && nanos:
		c.op, c.factor = opScale, 1000
	case l.Unit == Nanos && !nanos:
		c.op, c.factor = opFloor, 1000
	case l.Unit == Micros, l.Unit == Nanos:
	default:
		return c, mismatch(n, want)
	}
	return c, nil
}

var logicalNames = [...]string{None: "", String: "STRING", Enum: "ENUM", JSON: "JSON", BSON: "BSON", List: "LIST", Map: "MAP", MapKeyValue: "MAP_KEY_VALUE",
	Decimal: "DECIMAL", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP", Integer: "INTEGER", Unknown: "UNKNOWN", UUID: "UUID", Float16: "FLOAT16",
	Variant: "VARIANT", Geometry: "GEOMETRY", Geography: "GEOGRAPHY", Interval: "INTERVAL"}

// describe tells the node's types for messages.
func (n *Node) describe() string {
	s := n.Physical.String()
	if name := logicalNames[n.Logical.Kind]; name != "" {
		s += " (" + name + ")"
	}
	return s
}
