package plan

import (
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

func fold(s string) string { return strings.ToLower(s) }

// typeNames are the type names without parameters, of all engines.
var typeNames = map[string]vector.Kind{
	"boolean": vector.Boolean, "bool": vector.Boolean, "tinyint": vector.TinyInt, "byte": vector.TinyInt, "int1": vector.TinyInt, "smallint": vector.SmallInt, "short": vector.SmallInt,
	"int2": vector.SmallInt, "integer": vector.Integer, "int": vector.Integer, "int4": vector.Integer, "signed": vector.Integer, "bigint": vector.BigInt, "long": vector.BigInt, "int8": vector.BigInt,
	"real": vector.Real, "float": vector.Real, "float4": vector.Real, "double": vector.Double, "float8": vector.Double,
	"varchar": vector.Varchar, "string": vector.Varchar, "text": vector.Varchar, "bpchar": vector.Varchar, "nvarchar": vector.Varchar,
	"varbinary": vector.Varbinary, "binary": vector.Varbinary, "bytea": vector.Varbinary, "blob": vector.Varbinary, "bytes": vector.Varbinary,
	"uuid": vector.UUID, "date": vector.Date, "interval year to month": vector.IntervalYear, "interval day to second": vector.IntervalDay,
	"variant": vector.Variant, "json": vector.JSON, "geometry": vector.Geometry, "geography": vector.Geography, "unknown": vector.Null, "void": vector.Null,
}

// maxChar is the largest length of char, as in Trino.
const maxChar = 65536

// typeOf gives the engine's type for a written one.
func (b *binder) typeOf(t *sql.Type) (vector.Type, error) {
	bad := func(format string, args ...any) (vector.Type, error) {
		return vector.Type{}, b.errorf(t.Pos, fault.Invalid, "INVALID_TYPE", format, args...)
	}
	param := func(n, def int) int {
		if n < len(t.Params) {
			return t.Params[n]
		}
		return def
	}
	switch t.Name {
	case "decimal", "numeric", "dec":
		p, s := 38, 0
		if b.env.dialect() == "duckdb" && len(t.Params) == 0 {
			p, s = 18, 3
		}
		if b.env.dialect() == "spark" && len(t.Params) == 0 {
			p = 10
		}
		p, s = param(0, p), param(1, s)
		if p < 1 || p > 38 || s > p {
			return bad("decimal(%d,%d): the precision must be 1 to 38 and the scale no more than it", p, s)
		}
		return vector.DecimalOf(p, s), nil
	case "char", "character":
		if b.env.dialect() == "duckdb" { // another name of varchar there
			return vector.Of(vector.Varchar), nil
		}
		n := param(0, 1)
		if n > maxChar {
			return bad("%s(%d): the length must be at most %d", t.Name, n, maxChar)
		}
		return vector.CharOf(n), nil
	case "fixed":
		n := param(0, 0)
		if n < 1 {
			return bad("fixed needs a length, as in fixed(16)")
		}
		return vector.Type{Kind: vector.Fixed, Precision: n}, nil
	case "time", "timestamp", "timestamp with time zone", "timestamptz", "timestamp_ltz", "timestamp_ntz", "datetime", "timestamp_ns", "timestamptz_ns", "timestamp_us", "timestamp_ms", "timestamp_s":
		p := param(0, 6)
		if p > 12 {
			return bad("%s(%d): the precision must be 0 to 12", t.Name, p)
		}
		if most := digitsOfSecond(t.Name); p > most {
			return vector.Type{}, b.unsupported(t.Pos, "%s(%d) is not supported: values have at most %d digits of a second", t.Name, p, most)
		}
		k := vector.Timestamp
		switch t.Name {
		case "time":
			k = vector.Time
		case "timestamp with time zone", "timestamptz", "timestamp_ltz":
			k = vector.TimestampTZ
		case "timestamptz_ns":
			k, p = vector.TimestampTZ, 9
		case "timestamp_ns":
			p = 9
		case "timestamp_ms":
			p = 3
		case "timestamp_s":
			p = 0
		case "timestamp":
			if b.env.dialect() == "spark" && len(t.Params) == 0 {
				k = vector.TimestampTZ
			}
		}
		return vector.Type{Kind: k, Precision: p}, nil
	case "array":
		e, err := b.typeOf(t.Elems[0])
		return vector.ArrayOf(e), err
	case "map":
		k, err := b.typeOf(t.Elems[0])
		if err != nil {
			return k, err
		}
		v, err := b.typeOf(t.Elems[1])
		return vector.MapOf(k, v), err
	case "row":
		r := vector.Type{Kind: vector.Row}
		for i, e := range t.Elems {
			ft, err := b.typeOf(e)
			if err != nil {
				return r, err
			}
			r.Fields = append(r.Fields, vector.Field{Name: t.Fields[i].Name, Type: ft, Nullable: true})
		}
		return r, nil
	}
	k, ok := typeNames[t.Name]
	if !ok {
		names := []string{"decimal", "time", "timestamp", "array", "map", "row"}
		for n := range typeNames {
			names = append(names, n)
		}
		hint := ""
		if n := sql.Nearest(t.Name, names); n != "" {
			hint = "; did you mean " + n + "?"
		}
		return vector.Type{}, b.errorf(t.Pos, fault.Invalid, "TYPE_NOT_FOUND", "there is no type %q%s", t.Name, hint)
	}
	out := vector.Of(k)
	if k == vector.Varchar && len(t.Params) > 0 {
		if t.Params[0] < 1 {
			return vector.Type{}, b.errorf(t.Pos, fault.Invalid, "INVALID_CAST_ARGUMENT", "%s(%d): the length must be at least 1", t.Name, t.Params[0])
		}
		out.Precision = t.Params[0]
	} else if len(t.Params) > 0 && k != vector.Varbinary && k != vector.Integer && k != vector.Real && k != vector.Double {
		return bad("%s takes no parameter", t.Name)
	}
	return out, nil
}

// numberLiteral makes a constant of a number as written: an integer as small as integer or bigint, a decimal with its digits, a double.
func numberLiteral(kind sql.NumberKind, s string) (expr.Expr, error) {
	s = strings.ReplaceAll(s, "_", "")
	switch kind {
	case sql.Int:
		n, ok := new(big.Int).SetString(s, 0)
		if len(s) > 1 && strings.TrimLeft(strings.TrimPrefix(s, "-"), "0123456789") == "" { // a leading zero is not octal
			n, ok = new(big.Int).SetString(s, 10)
		}
		switch {
		case ok && !n.IsInt64() && len(new(big.Int).Abs(n).Text(10)) <= 38:
			return decimalLiteral(n.Text(10)) // as DuckDB and Spark take it; Trino refuses
		case !ok || !n.IsInt64():
			return nil, fault.WithID(fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", "%s has more than 38 digits", s)
		case n.Int64() == int64(int32(n.Int64())):
			return &expr.Literal{Value: int32(n.Int64()), Typ: vector.Of(vector.Integer)}, nil
		}
		return &expr.Literal{Value: n.Int64(), Typ: vector.Of(vector.BigInt)}, nil
	case sql.Decimal:
		return decimalLiteral(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fault.WithID(fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", "%s is out of range for double", s)
	}
	return &expr.Literal{Value: f, Typ: vector.Of(vector.Double)}, nil
}

// decimalLiteral types a decimal by the digits that are written, leading zeros aside.
func decimalLiteral(s string) (expr.Expr, error) {
	digits := strings.TrimLeft(strings.TrimSpace(s), "+-")
	whole, frac, _ := strings.Cut(digits, ".")
	whole = strings.TrimLeft(whole, "0")
	p := max(len(whole)+len(frac), 1)
	if p > 38 {
		return nil, fault.WithID(fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", "decimal %s has more than 38 digits", s)
	}
	e, err := expr.NewCast(text(s), vector.DecimalOf(p, len(frac)), false)
	if err != nil {
		return nil, err
	}
	v, err := expr.EvalConst(e, &expr.Context{})
	if err != nil {
		return nil, err
	}
	return &expr.Literal{Value: v, Typ: e.Type()}, nil
}

// zoned matches a timestamp with a zone behind it; the second group is the fraction.
var zoned = regexp.MustCompile(`^\s*[+-]?\d+-\d+-\d+(?:[T ]\s*\d+:\d+(?::\d+(?:\.(\d+))?)?)?\s*(\S.*)?$`)

// typedLiteral binds TYPE 'text'; the text is converted here, so that a bad one is told with its place.
func (b *binder) typedLiteral(e *sql.Typed) (expr.Expr, error) {
	t, err := b.typeOf(e.Type)
	if err != nil {
		return nil, err
	}
	bad := func(err error) error {
		why := err.Error()
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			why = f.Text
		}
		return b.errorf(e.Pos, fault.Invalid, "INVALID_LITERAL", "%s is not a %s: %s", sql.QuoteText(e.Value), t, why)
	}
	ctx := b.env.context()
	switch {
	case e.Type.Name == "timestamp" || t.Kind == vector.TimestampTZ:
		if m := zoned.FindStringSubmatch(e.Value); m != nil {
			if m[2] != "" {
				t.Kind = vector.TimestampTZ
			} else if e.Type.Name == "timestamp" && b.env.dialect() != "spark" {
				t.Kind = vector.Timestamp
			}
			if len(e.Type.Params) == 0 { // as many digits as are written
				if t.Precision = len(m[1]); t.Precision > 9 {
					return nil, b.unsupported(e.Pos, "a timestamp with %d digits of a second is not supported: at most 9", t.Precision)
				}
			}
		}
	case t.Kind == vector.Time && len(e.Type.Params) == 0:
		_, frac, _ := strings.Cut(strings.TrimSpace(e.Value), ".")
		if t.Precision = len(frac); t.Precision > 6 {
			return nil, b.unsupported(e.Pos, "a time with %d digits of a second is not supported: at most 6", t.Precision)
		}
	case t.Kind == vector.Decimal && len(e.Type.Params) == 0:
		v, err := decimalLiteral(e.Value)
		if err != nil {
			return nil, bad(err)
		}
		return v, nil
	case t.IsChar() && len(e.Type.Params) == 0: // as long as what is written
		t.Precision = utf8.RuneCountInString(e.Value)
	case t.Kind == vector.JSON:
		v, err := expr.NewCall("json_parse", []expr.Expr{text(e.Value)})
		if err != nil {
			return nil, err
		}
		if _, err := expr.EvalConst(v, ctx); err != nil {
			return nil, bad(err)
		}
		return v, nil
	}
	c, err := expr.NewCast(text(e.Value), t, false)
	if err != nil {
		return nil, err
	}
	v, err := expr.EvalConst(c, ctx)
	if err != nil {
		return nil, bad(err)
	}
	return &expr.Literal{Value: v, Typ: c.Type()}, nil
}

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// intervalMicros is the length of a unit of a day-time interval; months of a year-month one are negative.
var intervalMicros = map[string]int64{
	"YEAR": -12, "QUARTER": -3, "MONTH": -1, "WEEK": 7 * microsPerDay, "DAY": microsPerDay, "HOUR": 3600 * microsPerSecond, "MINUTE": 60 * microsPerSecond,
	"SECOND": microsPerSecond, "MILLISECOND": 1000, "MICROSECOND": 1,
}

var intervalFields = regexp.MustCompile(`[+-]?\d+(?:\.\d+)?|[A-Za-z]+`)

// interval binds an interval: text with one unit, a range of units, units inside the text, or a unit times an expression.
func (x *exprBinder) interval(e *sql.Interval) (expr.Expr, error) {
	bad := func() (expr.Expr, error) {
		return nil, x.b.errorf(e.Pos, fault.Invalid, "INVALID_LITERAL", "%s is not an interval %s", sql.QuoteText(e.Value), strings.TrimSpace(e.From+" "+e.To))
	}
	if e.Amount != nil {
		v, err := x.bind(e.Amount)
		if err != nil {
			return nil, err
		}
		size := max(intervalMicros[e.From], -intervalMicros[e.From])
		if e.Negative {
			size = -size
		}
		l, err := intervalLiteral(e.From, size)
		if err != nil {
			return nil, err
		}
		return expr.NewCall("*", []expr.Expr{l, v})
	}
	s := strings.TrimSpace(e.Value)
	sign := int64(1)
	if e.Negative {
		sign = -1
	}
	if strings.HasPrefix(s, "-") {
		sign, s = -sign, strings.TrimSpace(s[1:])
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	if e.From == "" {
		return x.freeInterval(e, sign, s)
	}
	if e.To == "" {
		n, err := parseAmount(s, intervalMicros[e.From])
		if err != nil {
			return bad()
		}
		return intervalLiteral(e.From, sign*n)
	}
	// A range: '1-2' YEAR TO MONTH, '1 02:03:04.5' DAY TO SECOND and parts of it.
	units := []string{"YEAR", "MONTH"}
	parts := strings.Split(s, "-")
	if e.From != "YEAR" {
		units = []string{"DAY", "HOUR", "MINUTE", "SECOND"}
		parts = strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ':' })
	}
	from := -1
	for i, u := range units {
		if u == e.From {
			from = i
		}
	}
	if from < 0 || from+len(parts) > len(units) || units[from+len(parts)-1] != e.To {
		return bad()
	}
	var total int64
	for i, p := range parts {
		n, err := parseAmount(p, intervalMicros[units[from+i]])
		if err != nil {
			return bad()
		}
		total += n
	}
	return intervalLiteral(e.From, sign*total)
}

// freeInterval reads '1 day 2 hours' of other engines.
func (x *exprBinder) freeInterval(e *sql.Interval, sign int64, s string) (expr.Expr, error) {
	words := intervalFields.FindAllString(s, -1)
	var months, micros int64
	for i := 0; i+1 < len(words); i += 2 {
		unit := strings.TrimSuffix(strings.ToUpper(words[i+1]), "S")
		size, ok := intervalMicros[unit]
		n, err := parseAmount(words[i], size)
		if !ok || err != nil {
			words = nil
			break
		}
		if size < 0 {
			months += n
		} else {
			micros += n
		}
	}
	if len(words) == 0 || len(words)%2 != 0 || months != 0 && micros != 0 {
		return nil, x.b.errorf(e.Pos, fault.Invalid, "INVALID_LITERAL", "%s is not an interval; write INTERVAL '1' DAY", sql.QuoteText(e.Value))
	}
	if months != 0 {
		return intervalLiteral("MONTH", sign*months)
	}
	return intervalLiteral("DAY", sign*micros)
}

// parseAmount reads a number and multiplies it with the size of its unit; months come negative and are given positive.
func parseAmount(s string, size int64) (int64, error) {
	if size < 0 {
		size = -size
	}
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, err
	}
	v := new(big.Int).Mul(big.NewInt(n), big.NewInt(size))
	if frac != "" {
		f, err := strconv.ParseUint(frac, 10, 32)
		if err != nil {
			return 0, err
		}
		part := new(big.Int).Mul(new(big.Int).SetUint64(f), big.NewInt(size))
		part.Quo(part, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(frac))), nil))
		if strings.HasPrefix(whole, "-") {
			part.Neg(part)
		}
		v.Add(v, part)
	}
	if !v.IsInt64() {
		return 0, strconv.ErrRange
	}
	return v.Int64(), nil
}

// intervalLiteral makes an interval of n months or microseconds, whichever the unit counts in.
func intervalLiteral(unit string, n int64) (expr.Expr, error) {
	if intervalMicros[unit] > 0 {
		return &expr.Literal{Value: n, Typ: vector.Of(vector.IntervalDay)}, nil
	}
	if n != int64(int32(n)) {
		return nil, fault.WithID(fault.Invalid, "INVALID_LITERAL", "an interval of %d months is out of range", n)
	}
	return &expr.Literal{Value: int32(n), Typ: vector.Of(vector.IntervalYear)}, nil
}

// digitsOfSecond is the finest precision of a type of times.
func digitsOfSecond(name string) int {
	if name == "time" {
		return 6
	}
	return 9
}
