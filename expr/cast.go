package expr

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// castable reports whether CAST is defined for a pair of types, and a hint why not.
func castable(from, to vector.Type) (why string, ok bool) {
	f, t := from.Kind, to.Kind
	if f == vector.Null || from.Equal(to) {
		return "", true
	}
	scalarText := func(k vector.Kind) bool {
		return k >= vector.Boolean && k <= vector.Decimal || k == vector.Date || k == vector.Time || k == vector.Timestamp ||
			k == vector.TimestampTZ || k == vector.UUID
	}
	switch {
	case f == vector.Variant:
		return castableFromVariant(to)
	case t == vector.Variant:
		return castableToVariant(from)
	case t == vector.JSON:
		return castableJSON(from)
	case f == vector.JSON:
		return castableFromJSON(to)
	case to.IsChar():
		return "; char takes text only", f == vector.Varchar
	case from.IsChar() && (t == vector.Varbinary || t == vector.Varchar):
		return "", true
	case t == vector.Varchar:
		return "", scalarText(f) || f == vector.Varchar || f == vector.IntervalDay || f == vector.IntervalYear || f == vector.Variant
	case f == vector.Varchar:
		return "", scalarText(t) || t == vector.Varbinary
	case (f == vector.Boolean || from.Numeric()) && (t == vector.Boolean || to.Numeric()):
		return "", true
	case f == vector.Date:
		return "", t == vector.Timestamp || t == vector.TimestampTZ
	case f == vector.Time:
		return "", t == vector.Time || t == vector.Timestamp || t == vector.TimestampTZ
	case f == vector.Timestamp || f == vector.TimestampTZ:
		return "", t == vector.Date || t == vector.Time || t == vector.Timestamp || t == vector.TimestampTZ
	case f == vector.UUID || f == vector.Fixed:
		if f == vector.Fixed && t == vector.UUID && from.Precision != 16 {
			return "; a uuid has 16 bytes", false
		}
		return "", t == vector.Varbinary || t == vector.UUID || t == vector.Fixed
	case f == vector.Varbinary:
		return "", t == vector.UUID || t == vector.Fixed
	case f == t && (f == vector.Array || f == vector.Map || f == vector.Row):
		if len(from.Fields) != len(to.Fields) {
			return "; the rows have different numbers of fields", false
		}
		for i := range from.Fields {
			if why, ok := castable(from.Fields[i].Type, to.Fields[i].Type); !ok {
				return why, false
			}
		}
		return "", true
	}
	return "", false
}

// castNode converts. Pairs of flat numbers have loops of their own; everything else goes value by value.
type castNode struct {
	arg      node
	from, to vector.Type
	try      bool
	ctx      *Context
	out      result
	live     []uint16
	wrapped  vector.Vector
	bits     vector.Bitmap
	fast     fastCast
}

// fastCast converts the given rows, none of them null; false asks for the slow way, which finds the row that fails.
type fastCast func(src *vector.Vector, rows []uint16, n int, out *vector.Vector) bool

func (c *compiler) cast(e *Cast) (node, error) {
	arg, err := c.compile(e.Arg)
	if err != nil {
		return nil, err
	}
	from := e.Arg.Type()
	if from.Kind == vector.Null {
		return constant(e.To, nil), nil
	}
	if from.Kind == vector.Varchar && e.To.Kind == vector.Varchar && !from.IsChar() && !e.To.IsChar() &&
		(e.To.Precision == 0 || from.Precision > 0 && from.Precision <= e.To.Precision) {
		return arg, nil
	}
	n := &castNode{arg: arg, from: from, to: e.To, try: e.Try, ctx: c.ctx, fast: fastCastOf(from, e.To)}
	if k, ok := arg.(*constNode); ok {
		// A constant is converted once, and its error waits for a row.
		if v, err := n.eval(&batch{n: 1}, nil); err == nil {
			return constant(e.To, v.Get(0)), nil
		}
		_ = k
	}
	return n, nil
}

func (x *castNode) eval(b *batch, sel []uint16) (*vector.Vector, error) {
	arg := x.arg
	v, err := arg.eval(b, sel)
	if err != nil {
		if x.try && dataError(err) {
			return (&tryNode{arg: x.withoutTry(), t: x.to}).eval(b, sel)
		}
		return nil, err
	}
	if v.Form == vector.Dictionary && !nested(x.to) {
		if d := v.Dict.StoredLen(); d > 0 && d <= len(rowsOf(sel, b.n)) {
			if out, err := x.convert(v.Dict, nil, d); err == nil {
				return overCodes(v, out, b.n, sel, &x.wrapped, &x.bits), nil
			}
		}
	}
	return x.convert(v, sel, b.n)
}

func (x *castNode) withoutTry() node {
	return &castNode{arg: x.arg, from: x.from, to: x.to, ctx: x.ctx, fast: x.fast}
}

func (x *castNode) convert(v *vector.Vector, sel []uint16, n int) (*vector.Vector, error) {
	out := x.out.reset(x.to, n)
	if nested(x.to) {
		return x.convertNested(v, sel, n)
	}
	rows := rowsOf(sel, n)
	if andValid(out, &x.out.valid, n, v) {
		x.live = grown(x.live, n)
		rows = selectBitmap(out.Valid, rows, x.live)
	}
	if x.fast != nil && x.fast(v, rows, n, out) {
		return out, nil
	}
	for _, i := range rows {
		y, err := castValue(v.Get(int(i)), x.from, x.to, x.ctx)
		if err != nil {
			if x.try && dataError(err) {
				out.SetNull(int(i), n)
				continue
			}
			return nil, err
		}
		if y == nil {
			out.SetNull(int(i), n)
			continue
		}
		setValue(out, int(i), y)
	}
	x.out.keep()
	return out, nil
}

func (x *castNode) convertNested(v *vector.Vector, sel []uint16, n int) (*vector.Vector, error) {
	b := vector.NewBuilder(x.to)
	next := 0
	for i := range n {
		if sel != nil && (next >= len(sel) || int(sel[next]) != i) {
			b.AppendNull()
			continue
		}
		next++
		if v.IsNull(i) {
			b.AppendNull()
			continue
		}
		y, err := castValue(v.Get(i), x.from, x.to, x.ctx)
		if err != nil {
			if x.try && dataError(err) {
				b.AppendNull()
				continue
			}
			return nil, err
		}
		b.Append(y)
	}
	return b.Finish(), nil
}

// setValue stores a value that is not null and not nested.
func setValue(v *vector.Vector, i int, x vector.Value) {
	switch y := x.(type) {
	case bool:
		v.Bools[i] = y
	case int32:
		v.I32[i] = y
	case int64:
		v.I64[i] = y
	case vector.Int128:
		v.I128[i] = y
	case float32:
		v.F32[i] = y
	case float64:
		v.F64[i] = y
	case string:
		putBytes(v, i, []byte(y))
	}
}

func fastCastOf(from, to vector.Type) fastCast {
	f, t := from.Kind, to.Kind
	switch {
	case from.Integral() && from.Physical() == vector.PInt32:
		switch {
		case t == vector.BigInt:
			return convertLoop(func(x int32) int64 { return int64(x) })
		case t == vector.Double:
			return convertLoop(func(x int32) float64 { return float64(x) })
		case to.Integral() && t >= f:
			return convertLoop(func(x int32) int32 { return x })
		case t == vector.Decimal && to.Precision-to.Scale >= integerDigits(f):
			if to.Precision <= vector.MaxShortDecimal {
				m := pow10i64[to.Scale]
				return convertLoop(func(x int32) int64 { return int64(x) * m })
			}
			if to.Scale <= 18 {
				m := pow10i64[to.Scale]
				return convertLoop(func(x int32) vector.Int128 { return mulI64(int64(x), m) })
			}
		}
	case f == vector.BigInt:
		switch {
		case t == vector.Double:
			return convertLoop(func(x int64) float64 { return float64(x) })
		case t == vector.Decimal && to.Precision-to.Scale >= 19 && to.Scale <= 18:
			m := pow10i64[to.Scale]
			return convertLoop(func(x int64) vector.Int128 { return mulI64(x, m) })
		}
	case f == vector.Real && t == vector.Double:
		return convertLoop(func(x float32) float64 { return float64(x) })
	case f == vector.Decimal && t == vector.Double && from.Precision <= 15:
		m := math.Pow10(from.Scale)
		return convertLoop(func(x int64) float64 { return float64(x) / m })
	case f == vector.Decimal && t == vector.Decimal && to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale:
		d := to.Scale - from.Scale
		switch {
		case to.Precision <= vector.MaxShortDecimal:
			m := pow10i64[d]
			return convertLoop(func(x int64) int64 { return x * m })
		case from.Precision <= vector.MaxShortDecimal && d <= 18:
			m := pow10i64[d]
			return convertLoop(func(x int64) vector.Int128 { return mulI64(x, m) })
		case d == 0:
			return convertLoop(func(x vector.Int128) vector.Int128 { return x })
		}
	case f == vector.Date && t == vector.Timestamp && !to.Nanos():
		return convertLoop(func(x int32) int64 { return int64(x) * 86400e6 })
	case f == vector.Timestamp && t == vector.Date:
		per := unitsPerDay(from)
		return convertLoop(func(x int64) int32 { return int32(floorDiv(x, per)) })
	case f == vector.Timestamp && t == vector.Timestamp && from.Nanos() == to.Nanos() && to.Precision >= from.Precision:
		return convertLoop(func(x int64) int64 { return x })
	}
	return nil
}

func convertLoop[A, B any](f func(A) B) fastCast {
	return func(src *vector.Vector, rows []uint16, n int, out *vector.Vector) bool {
		c, dst := colOf[A](src), payload[B](out)
		if src.Form == vector.Flat && len(rows) == n {
			for i, x := range c.v[:n] {
				dst[i] = f(x)
			}
			return true
		}
		for _, i := range rows {
			dst[i] = f(c.at(int(i)))
		}
		return true
	}
}

// castValue converts one value, not null at the top. Errors have ids INVALID_CAST_ARGUMENT or NUMERIC_VALUE_OUT_OF_RANGE.
func castValue(v vector.Value, from, to vector.Type, ctx *Context) (vector.Value, error) {
	if v == nil {
		return nil, nil
	}
	if from.Kind == vector.JSON && to.Kind != vector.JSON {
		return fromJSON(v.(string), to, ctx)
	}
	switch {
	case from.Kind == vector.Variant && to.Kind != vector.Variant:
		x, err := variantOf(v)
		if err != nil {
			return nil, err
		}
		return fromVariant(x, to, ctx)
	case to.Kind == vector.Variant && from.Kind != vector.Variant:
		return toVariant(v, from, ctx)
	}
	if from.IsChar() {
		if to.Kind == vector.Varbinary {
			return v, nil
		}
		v = strings.TrimRight(v.(string), " ")
	}
	switch to.Kind {
	case vector.JSON:
		if from.Kind == vector.JSON {
			return v, nil
		}
		return toJSON(v, from, ctx)
	case vector.Varchar:
		s := formatValue(v, from, ctx.Zone)
		if to.IsChar() {
			return padChar(s, to.Precision), nil
		}
		if to.Precision > 0 && utf8.RuneCountInString(s) > to.Precision {
			if from.Kind != vector.Varchar {
				return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "value %s does not fit %s", s, to)
			}
			s = string([]rune(s)[:to.Precision])
		}
		return s, nil
	case vector.Boolean:
		return toBoolean(v, from)
	case vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt:
		return toInteger(v, from, to)
	case vector.Real, vector.Double:
		f, err := toFloat(v, from, to)
		if err != nil {
			return nil, err
		}
		if to.Kind == vector.Real {
			return float32(f), nil
		}
		return f, nil
	case vector.Decimal:
		return toDecimal(v, from, to)
	case vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ:
		return toTemporal(v, from, to, ctx)
	case vector.UUID:
		if from.Kind == vector.Varchar {
			u, ok := parseUUID(v.(string))
			if !ok {
				return nil, badCast(v, from, to)
			}
			return u, nil
		}
		if len(v.(string)) != 16 {
			return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "a uuid has 16 bytes, not %d", len(v.(string)))
		}
		return v, nil
	case vector.Fixed:
		if len(v.(string)) != to.Precision {
			return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "%s cannot hold %d bytes", to, len(v.(string)))
		}
		return v, nil
	case vector.Varbinary, vector.Variant, vector.Geometry, vector.Geography:
		return v, nil
	case vector.Array, vector.Row:
		xs := v.([]vector.Value)
		out := make([]vector.Value, len(xs))
		for i, x := range xs {
			y, err := castValue(x, elemType(from, i), elemType(to, i), ctx)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	case vector.Map:
		ps := v.([]vector.Pair)
		out := make([]vector.Pair, len(ps))
		for i, p := range ps {
			k, err := castValue(p.Key, from.Fields[0].Type, to.Fields[0].Type, ctx)
			if err != nil {
				return nil, err
			}
			x, err := castValue(p.Value, from.Fields[1].Type, to.Fields[1].Type, ctx)
			if err != nil {
				return nil, err
			}
			if findKey(to.Fields[0].Type, out[:i], k) >= 0 {
				return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "duplicate map keys after the cast to %s", to)
			}
			out[i] = vector.Pair{Key: k, Value: x}
		}
		return out, nil
	}
	return v, nil
}

// padChar cuts a text to n characters, or fills it up with blanks.
func padChar(s string, n int) string {
	k := utf8.RuneCountInString(s)
	if k > n {
		return string([]rune(s)[:n])
	}
	return s + strings.Repeat(" ", n-k)
}

func toBoolean(v vector.Value, from vector.Type) (vector.Value, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case int32:
		return x != 0, nil
	case int64:
		return x != 0, nil
	case vector.Int128:
		return x.Sign() != 0, nil
	case float32:
		return x != 0, nil
	case float64:
		return x != 0, nil
	case string:
		switch x {
		case "t", "T", "1", "true", "TRUE", "True":
			return true, nil
		case "f", "F", "0", "false", "FALSE", "False":
			return false, nil
		}
		switch len(x) {
		case 4, 5:
			if b, err := strconv.ParseBool(string(lowerASCII(x))); err == nil {
				return b, nil
			}
		}
	}
	return nil, badCast(v, from, boolean)
}

func lowerASCII(s string) []byte {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 32
		}
	}
	return b
}

func integerRange(k vector.Kind) (lo, hi int64) {
	switch k {
	case vector.TinyInt:
		return math.MinInt8, math.MaxInt8
	case vector.SmallInt:
		return math.MinInt16, math.MaxInt16
	case vector.Integer:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func toInteger(v vector.Value, from, to vector.Type) (vector.Value, error) {
	var n int64
	ok := true
	switch x := v.(type) {
	case bool:
		if x {
			n = 1
		}
	case int32:
		n = int64(x)
	case int64:
		if n = x; from.Kind == vector.Decimal {
			n = divRound64(x, pow10i64[from.Scale])
		}
	case vector.Int128:
		var r vector.Int128
		if r, ok = rescale(x, from.Scale, 0, maxPrecision); ok {
			ok = fits64(r)
			n = int64(r.LowBits())
		}
	case float32:
		return floatToInteger(float64(x), from, to)
	case float64:
		return floatToInteger(x, from, to)
	case string:
		bits := 64
		switch to.Kind {
		case vector.TinyInt:
			bits = 8
		case vector.SmallInt:
			bits = 16
		case vector.Integer:
			bits = 32
		}
		if n, ok = parseInteger(x, bits); !ok {
			return nil, badCast(v, from, to)
		}
	}
	lo, hi := integerRange(to.Kind)
	if !ok || n < lo || n > hi {
		return nil, overflow("%s does not fit %s", FormatValue(v, from), to)
	}
	if to.Kind == vector.BigInt {
		return n, nil
	}
	return int32(n), nil
}

func floatToInteger(f float64, from, to vector.Type) (vector.Value, error) {
	if math.IsNaN(f) {
		return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast NaN to %s", to)
	}
	r := math.Round(f)
	lo, hi := integerRange(to.Kind)
	if r < float64(lo) || r > float64(hi) || to.Kind == vector.BigInt && r >= 1<<63 {
		return nil, overflow("%s does not fit %s", formatFloat(f, 64), to)
	}
	if to.Kind == vector.BigInt {
		return int64(r), nil
	}
	return int32(r), nil
}

func toFloat(v vector.Value, from, to vector.Type) (float64, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case int32:
		return float64(x), nil
	case int64:
		if from.Kind == vector.Decimal {
			return decimalToFloat(int128(x), from.Scale), nil
		}
		if to.Kind == vector.Real {
			return float64(float32(x)), nil
		}
		return float64(x), nil
	case vector.Int128:
		return decimalToFloat(x, from.Scale), nil
	case float32:
		return float64(x), nil
	case float64:
		return x, nil
	case string:
		bits := 64
		if to.Kind == vector.Real {
			bits = 32
		}
		if f, ok := parseDouble(x, bits); ok {
			return f, nil
		}
	}
	return 0, badCast(v, from, to)
}

func toDecimal(v vector.Value, from, to vector.Type) (vector.Value, error) {
	var x vector.Int128
	scale := 0
	switch y := v.(type) {
	case bool:
		if y {
			x = int128(1)
		}
	case float32, float64:
		f, bits := 0.0, 64
		if g, ok := y.(float32); ok {
			f, bits = float64(g), 32
		} else {
			f = y.(float64)
		}
		switch {
		case math.IsNaN(f):
			return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast NaN to %s", to)
		case math.IsInf(f, 0) || math.Abs(f) >= 1e39:
			return nil, overflow("%s does not fit %s", formatFloat(f, bits), to)
		}
		r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, bits))
		r.Mul(r, new(big.Rat).SetInt(pow10i128[to.Scale].BigInt()))
		x, scale = bigDivRound(r.Num(), r.Denom()), to.Scale
	case string:
		d, _, s, ok := ParseDecimal(y)
		if !ok {
			if b, s2, big := bigDecimal(y); big {
				d, s, ok = b, s2, true
			}
		}
		if !ok {
			return nil, badCast(v, from, to)
		}
		x, scale = d, s
	default:
		x, scale = asInt128(v), 0
		if from.Kind == vector.Decimal {
			scale = from.Scale
		}
	}
	r, ok := rescale(x, scale, to.Scale, to.Precision)
	if !ok {
		if from.Kind == vector.Varchar {
			return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "'%s' does not fit %s", v, to)
		}
		return nil, overflow("%s does not fit %s", FormatValue(v, from), to)
	}
	return asDecimalValue(r, to), nil
}

// bigDecimal reads a number of more than 38 digits whose fraction can be rounded away.
func bigDecimal(s string) (vector.Int128, int, bool) {
	if len(s) > 200 {
		return vector.Int128{}, 0, false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && c != '.' && (i > 0 || c != '-' && c != '+') {
			return vector.Int128{}, 0, false
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return vector.Int128{}, 0, false
	}
	for scale := 38; scale >= 0; scale-- {
		t := new(big.Rat).Mul(r, new(big.Rat).SetInt(pow10i128[scale].BigInt()))
		if x := bigDivRound(t.Num(), t.Denom()); inDecimal(x, 38) {
			return x, scale, true
		}
	}
	return decimal128.Num{}, 0, false
}

func toTemporal(v vector.Value, from, to vector.Type, ctx *Context) (vector.Value, error) {
	var days, nanos int64 // wall clock
	session := ctx.Zone
	switch from.Kind {
	case vector.Varchar:
		s := v.(string)
		if to.Kind == vector.Date {
			d, ok := parseDate(s)
			if !ok {
				return nil, badCast(v, from, to)
			}
			return d, nil
		}
		if to.Kind == vector.Time {
			p := &timeText{s, true}
			n, _ := p.clock()
			if !p.ok || p.s != "" {
				return nil, badCast(v, from, to)
			}
			return roundNanos(n, min(to.Precision, 6)) / 1000 % 86400e6, nil
		}
		d, n, _, zone, ok := parseTimestamp(s)
		if !ok {
			return nil, badCast(v, from, to)
		}
		days, nanos = d, n
		if zone != "" && to.Kind == vector.TimestampTZ {
			z, err := LoadZone(zone)
			if err != nil {
				return nil, badCast(v, from, to)
			}
			session = z
			to.CRS = ""
		}
	case vector.Date:
		days = int64(v.(int32))
	case vector.Time:
		if to.Kind == vector.Time {
			return roundNanos(v.(int64)*1000, min(to.Precision, 6)) / 1000 % 86400e6, nil
		}
		days, nanos = floorDiv(ctx.Now.Unix(), 86400), v.(int64)*1000
	default:
		x := v.(int64)
		if from.Kind == vector.TimestampTZ {
			if to.Kind == vector.TimestampTZ {
				return changeUnits(x, from, to)
			}
			x += offsetAt(x, from, zoneOf(from, ctx.Zone))
		}
		per := unitsPerDay(from)
		days, nanos = floorDiv(x, per), floorMod(x, per)*(1e9/unitsPerSecond(from))
	}
	switch to.Kind {
	case vector.Date:
		return int32(days), nil
	case vector.Time:
		return roundNanos(nanos, min(to.Precision, 6)) / 1000 % 86400e6, nil
	}
	x, ok := fromClock(days, nanos, to)
	if !ok {
		return nil, overflow("%s does not fit %s", FormatValue(v, from), to)
	}
	if to.Kind == vector.TimestampTZ {
		if x, ok = instant(x, to, zoneOf(to, session)); !ok && from.Kind == vector.Varchar {
			return nil, badCast(v, from, to)
		}
	}
	return x, nil
}

func changeUnits(x int64, from, to vector.Type) (vector.Value, error) {
	per := unitsPerDay(from)
	r, ok := fromClock(floorDiv(x, per), floorMod(x, per)*(1e9/unitsPerSecond(from)), to)
	if !ok {
		return nil, overflow("%s does not fit %s", FormatValue(x, from), to)
	}
	return r, nil
}
