package scanner

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/vector"
)

// jsonValue reads a single value in Iceberg's JSON form (spec: JSON single-value serialization) as a value of w's type. x
// is what encoding/json made of it; nil is null.
func jsonValue(w *want, x any) (vector.Value, error) {
	if x == nil {
		return nil, nil
	}
	t := w.typ
	bad := func() error { return fmt.Errorf("%.80v is no value of type %s", x, t) }
	switch t.Kind {
	case vector.Boolean:
		if b, ok := x.(bool); ok {
			return b, nil
		}
	case vector.Integer, vector.BigInt:
		i, ok := jsonInt(x)
		switch {
		case !ok:
		case t.Kind == vector.BigInt:
			return i, nil
		case i == int64(int32(i)):
			return int32(i), nil
		}
	case vector.Real, vector.Double:
		f, ok := jsonFloat(x)
		switch {
		case !ok:
		case t.Kind == vector.Real:
			return float32(f), nil
		default:
			return f, nil
		}
	case vector.Row:
		return jsonRow(w, x)
	case vector.Array:
		items, ok := x.([]any)
		if !ok {
			return nil, bad()
		}
		out := make([]vector.Value, len(items))
		for i, item := range items {
			v, err := jsonValue(w.kids[0], item)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case vector.Map:
		return jsonMap(w, x)
	}
	if s, ok := jsonText(x); ok {
		v, err := textValue(t, s)
		if err != nil {
			return nil, fmt.Errorf("%.80v is no value of type %s: %w", x, t, err)
		}
		return v, nil
	}
	return nil, bad()
}

func jsonInt(x any) (int64, bool) {
	switch n := x.(type) {
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) <= 1<<53 // beyond, digits may be lost
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case iceberg.Int32Literal:
		return int64(n), true
	case iceberg.Int64Literal:
		return int64(n), true
	}
	return 0, false
}

func jsonFloat(x any) (float64, bool) {
	switch n := x.(type) {
	case float64:
		return n, true
	case float32:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case string:
		f, err := strconv.ParseFloat(n, 64)
		return f, err == nil
	}
	i, ok := jsonInt(x)
	return float64(i), ok
}

// jsonText gives the text form of what is written as a string; bytes, as iceberg-go may hold them, become hex.
func jsonText(x any) (string, bool) {
	switch s := x.(type) {
	case string:
		return s, true
	case []byte:
		return hex.EncodeToString(s), true
	case iceberg.BinaryLiteral:
		return hex.EncodeToString(s), true
	case iceberg.FixedLiteral:
		return hex.EncodeToString(s), true
	case json.Number:
		return s.String(), true
	case fmt.Stringer:
		return s.String(), true
	}
	return "", false
}

// jsonRow reads a struct, an object keyed by field id; a field that it leaves out takes its own default.
func jsonRow(w *want, x any) (vector.Value, error) {
	o, ok := x.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%.80v is no value of type %s", x, w.typ)
	}
	out := make([]vector.Value, len(w.kids))
	for i, k := range w.kids {
		out[i] = k.def
		if v, ok := o[strconv.Itoa(k.id)]; ok {
			var err error
			if out[i], err = jsonValue(k, v); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func jsonMap(w *want, x any) (vector.Value, error) {
	o, _ := x.(map[string]any)
	keys, okK := o["keys"].([]any)
	values, okV := o["values"].([]any)
	if !okK || !okV || len(keys) != len(values) {
		return nil, fmt.Errorf("%.80v is no value of type %s", x, w.typ)
	}
	out := make([]vector.Pair, len(keys))
	for i := range keys {
		k, err := jsonValue(w.kids[0], keys[i])
		if err != nil {
			return nil, err
		}
		v, err := jsonValue(w.kids[1], values[i])
		if err != nil {
			return nil, err
		}
		out[i] = vector.Pair{Key: k, Value: v}
	}
	return out, nil
}

// textValue reads the values that JSON writes as strings.
func textValue(t vector.Type, s string) (vector.Value, error) {
	switch t.Kind {
	case vector.Varchar, vector.JSON:
		return s, nil
	case vector.Varbinary, vector.Fixed:
		b, err := hex.DecodeString(s)
		if err == nil && t.Kind == vector.Fixed && len(b) != t.Precision {
			err = fmt.Errorf("it has %d bytes", len(b))
		}
		return string(b), err
	case vector.UUID:
		b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if err == nil && len(b) != 16 {
			err = fmt.Errorf("it has %d bytes", len(b))
		}
		return string(b), err
	case vector.Decimal:
		return decimalText(t, s)
	case vector.Date:
		d, err := dateText(s)
		if err == nil && d != int64(int32(d)) {
			err = fmt.Errorf("it is out of range")
		}
		return int32(d), err
	case vector.Time:
		return timeText(s, 6)
	case vector.Timestamp, vector.TimestampTZ:
		return timestampText(t, s)
	}
	return nil, fmt.Errorf("the type allows no default")
}

// decimalText reads a decimal of exactly the type's scale, in plain or exponent form.
func decimalText(t vector.Type, s string) (vector.Value, error) {
	if strings.ContainsAny(s, "eE") {
		if e, err := strconv.Atoi(s[strings.IndexAny(s, "eE")+1:]); err != nil || e > 100 || e < -100 {
			return nil, fmt.Errorf("its exponent is out of range")
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 100 {
		return nil, fmt.Errorf("it is no decimal")
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)))
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Precision)), nil)
	if !r.IsInt() || r.Num().CmpAbs(limit) >= 0 {
		return nil, fmt.Errorf("it does not fit")
	}
	if t.Physical() == vector.PInt64 {
		return r.Num().Int64(), nil
	}
	return decimal128.FromBigInt(r.Num()), nil
}

// dateText reads [+-]y-mm-dd as days since 1970-01-01.
func dateText(s string) (int64, error) {
	sign := int64(1)
	text := strings.TrimPrefix(s, "+")
	if strings.HasPrefix(text, "-") {
		sign, text = -1, text[1:]
	}
	p := strings.Split(text, "-")
	if len(p) != 3 {
		return 0, fmt.Errorf("%q is no date", s)
	}
	y, err1 := strconv.ParseInt(p[0], 10, 32)
	m, err2 := strconv.ParseInt(p[1], 10, 8)
	d, err3 := strconv.ParseInt(p[2], 10, 8)
	if err1 != nil || err2 != nil || err3 != nil || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, fmt.Errorf("%q is no date", s)
	}
	return vector.CivilDays(sign*y, int(m), int(d)), nil
}

// timeText reads hh:mm[:ss[.fraction]] in units of the given number of digits.
func timeText(s string, digits int) (int64, error) {
	hms, frac, _ := strings.Cut(s, ".")
	p := strings.Split(hms, ":")
	if len(p) < 2 || len(p) > 3 || len(frac) > digits {
		return 0, fmt.Errorf("%q is no time", s)
	}
	total := int64(0)
	for i, most := range []int64{23, 59, 59} {
		n := int64(0)
		if i < len(p) {
			var err error
			if n, err = strconv.ParseInt(p[i], 10, 8); err != nil || n < 0 || n > most {
				return 0, fmt.Errorf("%q is no time", s)
			}
		}
		total = total*60 + n
	}
	f, err := strconv.ParseUint("0"+frac+strings.Repeat("0", digits-len(frac)), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%q is no time", s)
	}
	for range digits {
		total *= 10
	}
	return total + int64(f), nil
}

func timestampText(t vector.Type, s string) (vector.Value, error) {
	day, clock, ok := strings.Cut(s, "T")
	if !ok {
		return nil, fmt.Errorf("%q is no timestamp", s)
	}
	if t.Kind == vector.TimestampTZ {
		rest, ok := strings.CutSuffix(clock, "+00:00")
		if !ok {
			rest, ok = strings.CutSuffix(clock, "Z")
		}
		if !ok {
			return nil, fmt.Errorf("%q has no offset +00:00", s)
		}
		clock = rest
	}
	digits, perDay := 6, int64(86_400_000_000)
	if t.Nanos() {
		digits, perDay = 9, perDay*1000
	}
	d, err := dateText(day)
	if err != nil {
		return nil, err
	}
	c, err := timeText(clock, digits)
	if err != nil {
		return nil, err
	}
	total := d*perDay + c
	if d != 0 && (d*perDay)/perDay != d || (total < d*perDay) {
		return nil, fmt.Errorf("%q is out of range", s)
	}
	return total, nil
}
