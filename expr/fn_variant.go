package expr

import (
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// variantPaths keeps the path that a program met last; nearly always it is one.
type variantPaths struct {
	last  string
	steps []variantStep
	known bool
}

func (c *variantPaths) get(s string) ([]variantStep, error) {
	if c.known && c.last == s {
		return c.steps, nil
	}
	steps, err := parseVariantPath(s)
	if err == nil {
		c.last, c.steps, c.known = strings.Clone(s), steps, true
	}
	return steps, err
}

// variantPathFn registers a function of the part of a variant at a path; a path that leads nowhere gives NULL.
func variantPathFn(names, ret, doc string, f func(x vector.VariantValue) (vector.Value, error)) {
	defMake(names, "(variant, varchar) "+ret, doc, func(*binding) (kernel, error) {
		var cache variantPaths
		return fnN(func(_ *evalCall, args []vector.Value) (vector.Value, error) {
			x, err := variantOf(args[0])
			if err != nil {
				return nil, err
			}
			steps, err := cache.get(args[1].(string))
			if err != nil {
				return nil, err
			}
			x, ok, err := variantAt(x, steps)
			if err != nil || !ok {
				return nil, err
			}
			return f(x)
		}), nil
	}, mayNull)
}

func variantFn(names, ret, doc string, f func(x vector.VariantValue) (vector.Value, error), opts ...option) {
	def(names, "(variant) "+ret, doc, fnN(func(_ *evalCall, args []vector.Value) (vector.Value, error) {
		x, err := variantOf(args[0])
		if err != nil {
			return nil, err
		}
		return f(x)
	}), opts...)
}

// variantType names the type of a variant's value.
func variantType(x vector.VariantValue) (vector.Value, error) {
	switch x.Kind() {
	case vector.VariantNull:
		return "null", nil
	case vector.VariantObject:
		return "object", nil
	case vector.VariantArray:
		return "array", nil
	}
	_, t, err := x.Scalar()
	if t.Kind == vector.Decimal {
		return "decimal", err
	}
	return t.String(), err
}

func init() {
	variantPathFn("variant_get try_variant_get", "variant", "the part of a variant at a path; with a third argument, the name of a type, cast to it",
		func(x vector.VariantValue) (vector.Value, error) { return x.Alone() })
	variantPathFn("json_extract", "json", "the part of a variant at a path, as JSON",
		func(x vector.VariantValue) (vector.Value, error) { return variantText(x) })
	variantPathFn("json_extract_scalar", "varchar", "the scalar of a variant at a path, as text",
		func(x vector.VariantValue) (vector.Value, error) {
			switch x.Kind() {
			case vector.VariantScalar:
				return fromVariant(x, varchar, &Context{})
			}
			return nil, nil
		})
	variantFn("variant_to_json to_json", "json", "a variant as JSON", func(x vector.VariantValue) (vector.Value, error) { return variantText(x) })
	variantFn("variant_typeof", "varchar", "the type of a variant's value: null, object, array, or that of the scalar", variantType)
	variantFn("is_variant_null", "boolean", "whether a variant holds the variant null, which is not SQL NULL",
		func(x vector.VariantValue) (vector.Value, error) { return x.Kind() == vector.VariantNull, nil })
	variantFn("variant_is_null", "boolean", "whether a variant holds the variant null, which is not SQL NULL",
		func(x vector.VariantValue) (vector.Value, error) { return x.Kind() == vector.VariantNull, nil })
	variantFn("variant_length", "bigint", "the number of elements of an array or fields of an object; NULL of others",
		func(x vector.VariantValue) (vector.Value, error) {
			if x.Kind() == vector.VariantObject {
				n := int64(0)
				err := x.Fields(func(string, vector.VariantValue) bool { n++; return true })
				return n, err
			}
			n, err := x.Len()
			if err != nil || n < 0 {
				return nil, err
			}
			return int64(n), nil
		}, mayNull)
	variantFn("variant_keys", "array(varchar)", "the names of an object's fields; NULL of others",
		func(x vector.VariantValue) (vector.Value, error) {
			if x.Kind() != vector.VariantObject {
				return nil, nil
			}
			out := []vector.Value{}
			err := x.Fields(func(name string, _ vector.VariantValue) bool { out = append(out, name); return true })
			return out, err
		}, mayNull)
	parse := func(try bool) kernel {
		return fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
			v, err := toVariant(args[0], vector.Of(vector.JSON), x.ctx)
			if err != nil && try {
				return nil, nil
			}
			if err != nil {
				return nil, fault.WithID(fault.Invalid, "INVALID_FUNCTION_ARGUMENT", "parse_json: the text is not JSON")
			}
			return v, nil
		})
	}
	def("parse_json", "(varchar) variant", "the variant of a JSON text", parse(false))
	def("try_parse_json", "(varchar) variant", "the variant of a JSON text, NULL where it is none", parse(true), mayNull)
}
