package expr

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func castableJSON(from vector.Type) (string, bool) {
	switch k := from.Kind; k {
	case vector.Date, vector.Timestamp, vector.TimestampTZ, vector.Varchar, vector.JSON, vector.Null, vector.Variant:
		return "", true
	case vector.Array, vector.Row:
		for _, f := range from.Fields {
			if why, ok := castableJSON(f.Type); !ok {
				return why, false
			}
		}
		return "", true
	case vector.Map:
		kk := from.Fields[0].Type
		if kk.Kind != vector.Varchar && kk.Kind != vector.Boolean && !kk.Numeric() && kk.Kind != vector.Null {
			return "; keys must be text, numbers or booleans", false
		}
		return castableJSON(from.Fields[1].Type)
	default:
		return "", k == vector.Boolean || from.Numeric()
	}
}

func castableFromJSON(to vector.Type) (string, bool) {
	switch k := to.Kind; k {
	case vector.Varchar, vector.JSON, vector.Boolean:
		return "", true
	case vector.Array, vector.Row:
		for _, f := range to.Fields {
			if why, ok := castableFromJSON(f.Type); !ok {
				return why, false
			}
		}
		return "", true
	case vector.Map:
		kk := to.Fields[0].Type
		if kk.Kind != vector.Varchar && kk.Kind != vector.Boolean && !kk.Numeric() {
			return "; keys must be text, numbers or booleans", false
		}
		return castableFromJSON(to.Fields[1].Type)
	default:
		return "", to.Numeric()
	}
}

func toJSON(v vector.Value, t vector.Type, ctx *Context) (vector.Value, error) {
	var b bytes.Buffer
	if err := writeJSON(&b, v, t, ctx); err != nil {
		return nil, err
	}
	return b.String(), nil
}

func writeJSON(b *bytes.Buffer, v vector.Value, t vector.Type, ctx *Context) error {
	if v == nil {
		b.WriteString("null")
		return nil
	}
	switch t.Kind {
	case vector.Boolean, vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt, vector.Decimal:
		b.WriteString(FormatValue(v, t))
	case vector.Real, vector.Double:
		bits := 64
		var f float64
		if x, ok := v.(float32); ok {
			f, bits = float64(x), 32
		} else {
			f = v.(float64)
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			quoteJSON(b, formatFloat(f, bits))
		} else {
			b.WriteString(javaDouble(f, bits))
		}
	case vector.JSON:
		b.WriteString(v.(string))
	case vector.Variant:
		s, err := variantJSON(v)
		if err != nil {
			return err
		}
		b.WriteString(s)
	case vector.Array:
		b.WriteByte('[')
		for i, e := range v.([]vector.Value) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeJSON(b, e, t.Fields[0].Type, ctx); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case vector.Row:
		b.WriteByte('{')
		for i, e := range v.([]vector.Value) {
			if i > 0 {
				b.WriteByte(',')
			}
			quoteJSON(b, t.Fields[i].Name)
			b.WriteByte(':')
			if err := writeJSON(b, e, t.Fields[i].Type, ctx); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case vector.Map:
		// Trino sorts the keys by their text.
		ps := v.([]vector.Pair)
		keys := make([]string, len(ps))
		order := make([]int, len(ps))
		for i, p := range ps {
			order[i] = i
			if f, ok := p.Key.(float64); ok {
				keys[i] = javaDouble(f, 64)
			} else {
				keys[i] = FormatValue(p.Key, t.Fields[0].Type)
			}
		}
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(keys[i], keys[j]) })
		b.WriteByte('{')
		for n, i := range order {
			if n > 0 {
				b.WriteByte(',')
			}
			quoteJSON(b, keys[i])
			b.WriteByte(':')
			if err := writeJSON(b, ps[i].Value, t.Fields[1].Type, ctx); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		quoteJSON(b, formatValue(v, t, ctx.Zone))
	}
	return nil
}

func quoteJSON(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	b.Truncate(b.Len() - 1)
}

// decodeJSON reads one JSON text strictly, numbers kept as written and objects in order.
func decodeJSON(s string) (any, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	v, err := decodeItem(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errNull
	}
	return v, nil
}

// jsonObject keeps the order of its members.
type jsonObject []jsonMember

type jsonMember struct {
	key   string
	value any
}

func (o jsonObject) get(key string) (any, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

const maxJSONDepth = 1000

func decodeItem(d *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, errNull
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		out := []any{}
		for d.More() {
			v, err := decodeItem(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := d.Token()
		return out, err
	case json.Delim('{'):
		out := jsonObject{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeItem(d, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, jsonMember{k.(string), v})
		}
		_, err := d.Token()
		return out, err
	}
	return t, nil
}

func encodeJSON(b *bytes.Buffer, v any) {
	switch x := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(x))
	case json.Number:
		b.WriteString(x.String())
	case string:
		quoteJSON(b, x)
	case []any:
		b.WriteByte('[')
		for i, e := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			encodeJSON(b, e)
		}
		b.WriteByte(']')
	case jsonObject:
		b.WriteByte('{')
		for i, m := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			quoteJSON(b, m.key)
			b.WriteByte(':')
			encodeJSON(b, m.value)
		}
		b.WriteByte('}')
	}
}

func jsonText(v any) string {
	var b bytes.Buffer
	encodeJSON(&b, v)
	return b.String()
}

func fromJSON(s string, to vector.Type, ctx *Context) (vector.Value, error) {
	v, err := decodeJSON(s)
	if err != nil {
		return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast to %s: not JSON", to)
	}
	return jsonItem(v, to, ctx)
}

func jsonItem(v any, to vector.Type, ctx *Context) (vector.Value, error) {
	bad := func() error {
		t := jsonText(v)
		if len(t) > 100 {
			t = t[:100] + "..."
		}
		return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast JSON %s to %s", t, to)
	}
	if to.Kind == vector.JSON {
		return jsonText(v), nil
	}
	if v == nil {
		return nil, nil
	}
	switch to.Kind {
	case vector.Array:
		xs, ok := v.([]any)
		if !ok {
			return nil, bad()
		}
		out := make([]vector.Value, len(xs))
		for i, x := range xs {
			y, err := jsonItem(x, to.Fields[0].Type, ctx)
			if err != nil {
				return nil, err
			}
			out[i] = y
		}
		return out, nil
	case vector.Map:
		o, ok := v.(jsonObject)
		if !ok {
			return nil, bad()
		}
		out := []vector.Pair{}
		for _, m := range o {
			k, err := castValue(m.key, varchar, to.Fields[0].Type, ctx)
			if err != nil {
				return nil, err
			}
			x, err := jsonItem(m.value, to.Fields[1].Type, ctx)
			if err != nil {
				return nil, err
			}
			if findKey(to.Fields[0].Type, out, k) >= 0 {
				return nil, bad()
			}
			out = append(out, vector.Pair{Key: k, Value: x})
		}
		return out, nil
	case vector.Row:
		out := make([]vector.Value, len(to.Fields))
		switch x := v.(type) {
		case []any:
			if len(x) != len(out) {
				return nil, bad()
			}
			for i := range x {
				y, err := jsonItem(x[i], to.Fields[i].Type, ctx)
				if err != nil {
					return nil, err
				}
				out[i] = y
			}
		case jsonObject:
			for i, f := range to.Fields {
				for _, m := range x {
					if m.key == f.Name || strings.EqualFold(m.key, f.Name) {
						y, err := jsonItem(m.value, f.Type, ctx)
						if err != nil {
							return nil, err
						}
						out[i] = y
						break
					}
				}
			}
		default:
			return nil, bad()
		}
		return out, nil
	}
	switch x := v.(type) {
	case string:
		return castValue(x, varchar, to, ctx)
	case bool:
		return castValue(x, boolean, to, ctx)
	case json.Number:
		s := x.String()
		if to.Kind == vector.Varchar {
			if strings.ContainsAny(s, "eE.") {
				f, _ := x.Float64()
				s = formatFloat(f, 64)
				if to.Precision > 0 && len(s) > to.Precision {
					return nil, bad()
				}
				return s, nil
			}
			return castValue(s, varchar, to, ctx)
		}
		if d, p, sc, ok := ParseDecimal(s); ok && p <= maxPrecision && to.Kind != vector.Double && to.Kind != vector.Real {
			t := vector.DecimalOf(p, sc)
			return castValue(asDecimalValue(d, t), t, to, ctx)
		}
		f, err := x.Float64()
		if err != nil {
			return nil, bad()
		}
		return castValue(f, double, to, ctx)
	}
	return nil, bad()
}
