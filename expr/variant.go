package expr

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/parquet/variant"
	"github.com/google/uuid"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// variantOf takes an engine value of type Variant apart.
func variantOf(v vector.Value) (vector.VariantValue, error) {
	fs, ok := v.([]vector.Value)
	if !ok || len(fs) != 2 {
		return vector.VariantValue{}, internal("variant value of type %T", v)
	}
	meta, _ := fs[0].(string)
	val, _ := fs[1].(string)
	return vector.VariantValue{Metadata: []byte(meta), Value: []byte(val)}, nil
}

func variantJSON(v vector.Value) (string, error) {
	x, err := variantOf(v)
	if err != nil {
		return "", err
	}
	return variantText(x)
}

func variantText(x vector.VariantValue) (string, error) {
	b, err := vector.AppendVariantJSON(nil, x.Metadata, x.Value)
	return string(b), err
}

// castableFromVariant: every value of a variant has a type of its own, so that a cast may fail for some rows only.
func castableFromVariant(to vector.Type) (string, bool) {
	switch to.Kind {
	case vector.Array, vector.Row:
		for _, f := range to.Fields {
			if why, ok := castableFromVariant(f.Type); !ok {
				return why, false
			}
		}
		return "", true
	case vector.Map:
		if to.Fields[0].Type.Kind != vector.Varchar {
			return "; the keys of an object are varchar", false
		}
		return castableFromVariant(to.Fields[1].Type)
	case vector.Geometry, vector.Geography, vector.IntervalDay, vector.IntervalYear:
		return "", false
	}
	return "", true
}

func castableToVariant(from vector.Type) (string, bool) {
	switch from.Kind {
	case vector.Array, vector.Row:
		for _, f := range from.Fields {
			if why, ok := castableToVariant(f.Type); !ok {
				return why, false
			}
		}
		return "", true
	case vector.Map:
		if from.Fields[0].Type.Kind != vector.Varchar {
			return "; the keys of an object are varchar", false
		}
		return castableToVariant(from.Fields[1].Type)
	case vector.Geometry, vector.Geography, vector.IntervalDay, vector.IntervalYear:
		return "", false
	}
	return "", true
}

// fromVariant converts a part of a variant. A variant null becomes NULL, but the JSON null in JSON. Text of a string is the
// string itself; of an object or array it is JSON.
func fromVariant(x vector.VariantValue, to vector.Type, ctx *Context) (vector.Value, error) {
	c := variantCast{ctx: ctx, left: len(x.Value) + 1}
	return c.value(x, to)
}

// variantCast is the cast of one variant. left is how many parts may still be read: each takes a byte of its own, so that a
// value whose parts overlap cannot multiply.
type variantCast struct {
	ctx  *Context
	left int
}

func (c *variantCast) value(x vector.VariantValue, to vector.Type) (vector.Value, error) {
	ctx := c.ctx
	if c.left--; c.left < 0 {
		return nil, fault.New(fault.Corrupt, "variant value: its parts overlap")
	}
	kind := x.Kind()
	bad := func(what string) error {
		return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast a variant that holds %s to %s", what, to)
	}
	switch {
	case to.Kind == vector.Variant:
		return x.Alone()
	case to.Kind == vector.JSON:
		return variantText(x)
	case kind == vector.VariantNull:
		return nil, nil
	}
	switch to.Kind {
	case vector.Array:
		n, err := x.Len()
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, bad("no array")
		}
		out := make([]vector.Value, n)
		for i := range out {
			e, _, err := x.Element(i)
			if err == nil {
				out[i], err = c.value(e, to.Fields[0].Type)
			}
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	case vector.Map, vector.Row:
		if kind != vector.VariantObject {
			return nil, bad("no object")
		}
		if to.Kind == vector.Row {
			out := make([]vector.Value, len(to.Fields))
			for i, f := range to.Fields {
				e, ok, err := x.Field(f.Name)
				if err == nil && ok {
					out[i], err = c.value(e, f.Type)
				}
				if err != nil {
					return nil, err
				}
			}
			return out, nil
		}
		out := []vector.Pair{}
		var first error
		err := x.Fields(func(name string, e vector.VariantValue) bool {
			var v vector.Value
			v, first = c.value(e, to.Fields[1].Type)
			out = append(out, vector.Pair{Key: name, Value: v})
			return first == nil
		})
		if err == nil {
			err = first
		}
		return out, err
	}
	v, from, err := x.Scalar()
	if err != nil {
		return nil, err
	}
	if from.Kind == vector.Variant {
		if to.Kind == vector.Varchar {
			s, err := variantText(x)
			if err != nil {
				return nil, err
			}
			return castValue(s, varchar, to, ctx)
		}
		return nil, bad(map[vector.VariantKind]string{vector.VariantObject: "an object", vector.VariantArray: "an array"}[kind])
	}
	if from.Kind == vector.Decimal {
		// The encoding says no precision: small decimals are kept in an int64.
		n := v.(vector.Int128)
		if to.Kind == vector.Varchar {
			return castValue(n.ToString(int32(from.Scale)), varchar, to, ctx)
		}
	}
	if from.Kind == vector.Varbinary && to.Kind == vector.Varchar {
		s, err := variantText(x)
		if err != nil {
			return nil, err
		}
		return castValue(s[1:len(s)-1], varchar, to, ctx) // hex digits
	}
	if from.Equal(to) {
		return v, nil
	}
	if _, ok := castable(from, to); !ok {
		return nil, bad("a " + from.String())
	}
	return castValue(v, from, to, ctx)
}

// variantStep is a step of a path: a name, or an index from 0.
type variantStep struct {
	name  string
	index int // -1 with a name
}

// parseVariantPath reads paths such as $.a.b[0], $['a b'], a.b: names and indexes only.
func parseVariantPath(s string) ([]variantStep, error) {
	bad := func() error {
		return fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "variant path %q: use $, .name, ['name'] and [index]", s)
	}
	rest := strings.TrimPrefix(s, "$")
	if rest == s && s != "" && s[0] != '.' && s[0] != '[' {
		rest = "." + s
	}
	steps := []variantStep{}
	for rest != "" {
		switch {
		case rest[0] == '.':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, bad()
			}
			steps = append(steps, variantStep{rest[:end], -1})
			rest = rest[end:]
		case len(rest) > 2 && (rest[1] == '\'' || rest[1] == '"'):
			quote := rest[1]
			var name strings.Builder
			i := 2
			for ; i < len(rest); i++ {
				if rest[i] == quote {
					if i+1 < len(rest) && rest[i+1] == quote {
						i++
					} else {
						break
					}
				}
				name.WriteByte(rest[i])
			}
			if i+1 >= len(rest) || rest[i+1] != ']' {
				return nil, bad()
			}
			steps = append(steps, variantStep{name.String(), -1})
			rest = rest[i+2:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if end < 0 {
				return nil, bad()
			}
			n, err := strconv.Atoi(rest[1:end])
			if err != nil || n < 0 {
				return nil, bad()
			}
			steps = append(steps, variantStep{"", n})
			rest = rest[end+1:]
		default:
			return nil, bad()
		}
	}
	return steps, nil
}

// at follows a path; ok is false when it leads nowhere.
func variantAt(x vector.VariantValue, steps []variantStep) (_ vector.VariantValue, ok bool, err error) {
	for _, s := range steps {
		if s.index >= 0 {
			x, ok, err = x.Element(s.index)
		} else {
			x, ok, err = x.Field(s.name)
		}
		if !ok || err != nil {
			return x, false, err
		}
	}
	return x, true, nil
}

// toVariant encodes an engine value.
func toVariant(v vector.Value, t vector.Type, ctx *Context) (vector.Value, error) {
	var b variant.Builder
	b.SetAllowDuplicates(true) // the last one counts
	var err error
	if t.Kind == vector.JSON {
		var x any
		if x, err = decodeJSON(v.(string)); err != nil {
			return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast to variant: not JSON")
		}
		err = appendJSONVariant(&b, x)
	} else {
		err = appendVariant(&b, v, t)
	}
	if err != nil {
		return nil, err
	}
	return builtVariant(&b)
}

func builtVariant(b *variant.Builder) (vector.Value, error) {
	x, err := b.Build()
	if err != nil {
		return nil, fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot make a variant: %v", err)
	}
	return []vector.Value{string(x.Metadata().Bytes()), string(x.Bytes())}, nil
}

func appendVariant(b *variant.Builder, v vector.Value, t vector.Type) error {
	if v == nil {
		return b.AppendNull()
	}
	switch t.Kind {
	case vector.Boolean:
		return b.AppendBool(v.(bool))
	case vector.TinyInt, vector.SmallInt, vector.Integer:
		return b.AppendInt(int64(v.(int32)))
	case vector.BigInt:
		return b.AppendInt(v.(int64))
	case vector.Real:
		return b.AppendFloat32(v.(float32))
	case vector.Double:
		return b.AppendFloat64(v.(float64))
	case vector.Decimal:
		if x, ok := v.(int64); ok {
			return b.AppendDecimal8(uint8(t.Scale), decimal.Decimal64(x))
		}
		return b.AppendDecimal16(uint8(t.Scale), v.(vector.Int128))
	case vector.Varchar:
		return b.AppendString(v.(string))
	case vector.Varbinary, vector.Fixed:
		return b.AppendBinary([]byte(v.(string)))
	case vector.UUID:
		u, err := uuid.FromBytes([]byte(v.(string)))
		if err != nil {
			return internal("uuid of %d bytes", len(v.(string)))
		}
		return b.AppendUUID(u)
	case vector.Date:
		return b.AppendDate(arrow.Date32(v.(int32)))
	case vector.Time:
		return b.AppendTimeMicro(arrow.Time64(v.(int64)))
	case vector.Timestamp, vector.TimestampTZ:
		return b.AppendTimestamp(arrow.Timestamp(v.(int64)), !t.Nanos(), t.Kind == vector.TimestampTZ)
	case vector.JSON:
		x, err := decodeJSON(v.(string))
		if err != nil {
			return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "cannot cast to variant: not JSON")
		}
		return appendJSONVariant(b, x)
	case vector.Array:
		start, offsets := b.Offset(), []int{}
		for _, e := range v.([]vector.Value) {
			offsets = append(offsets, b.NextElement(start))
			if err := appendVariant(b, e, t.Fields[0].Type); err != nil {
				return err
			}
		}
		return b.FinishArray(start, offsets)
	case vector.Row:
		start, fields := b.Offset(), []variant.FieldEntry{}
		for i, e := range v.([]vector.Value) {
			name := t.Fields[i].Name
			if name == "" {
				name = "field" + strconv.Itoa(i)
			}
			fields = append(fields, b.NextField(start, name))
			if err := appendVariant(b, e, t.Fields[i].Type); err != nil {
				return err
			}
		}
		return b.FinishObject(start, fields)
	case vector.Map:
		start, fields := b.Offset(), []variant.FieldEntry{}
		for _, p := range v.([]vector.Pair) {
			fields = append(fields, b.NextField(start, p.Key.(string)))
			if err := appendVariant(b, p.Value, t.Fields[1].Type); err != nil {
				return err
			}
		}
		return b.FinishObject(start, fields)
	}
	return fault.WithID(fault.Invalid, "TYPE_MISMATCH", "%s has no counterpart in a variant", t)
}

// appendJSONVariant writes a decoded JSON document. Numbers become integers where they are, then decimals of up to 38 digits, then
// doubles.
func appendJSONVariant(b *variant.Builder, v any) error {
	switch x := v.(type) {
	case nil:
		return b.AppendNull()
	case bool:
		return b.AppendBool(x)
	case string:
		return b.AppendString(x)
	case []any:
		start, offsets := b.Offset(), []int{}
		for _, e := range x {
			offsets = append(offsets, b.NextElement(start))
			if err := appendJSONVariant(b, e); err != nil {
				return err
			}
		}
		return b.FinishArray(start, offsets)
	case jsonObject:
		start, fields := b.Offset(), []variant.FieldEntry{}
		for _, m := range x {
			fields = append(fields, b.NextField(start, m.key))
			if err := appendJSONVariant(b, m.value); err != nil {
				return err
			}
		}
		return b.FinishObject(start, fields)
	}
	text, ok := scalarText(v)
	if !ok {
		return internal("JSON value of type %T", v)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return b.AppendInt(n)
	}
	if !strings.ContainsAny(text, "eE") {
		if d, p, s, ok := ParseDecimal(text); ok && p <= maxPrecision {
			return b.AppendDecimal16(uint8(s), d)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fault.WithID(fault.Invalid, "INVALID_CAST_ARGUMENT", "number %.40s is out of range", text)
	}
	return b.AppendFloat64(f)
}
