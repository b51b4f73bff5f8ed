package expr

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// The states that json_value_state and json_query_state give, for the ON EMPTY and ON ERROR clauses.
const (
	jsonFound    = 0
	jsonEmpty    = 2
	jsonSeveral  = 3
	jsonNoScalar = 4
	jsonBadPath  = 5
	jsonBadInput = 6
	jsonNoType   = 7
)

// sqlPathFn registers a function of what a path of SQL/JSON finds; it is null for input that is not JSON.
func sqlPathFn[R any](name, ret, doc string, f func(items []any, ok bool) (R, error), opts ...option) {
	sqlPathKernels(name, ret, doc, func(items []any, ok, input bool) (R, error) {
		if !input {
			var none R
			return none, errNull
		}
		return f(items, ok)
	}, append(opts, mayNull)...)
}

// sqlPathKernels registers a function of JSON, as text or as such, and a path; and, hidden, of the values of the path's variables too, as
// a JSON object. input is false for what is not JSON.
func sqlPathKernels[R any](name, ret, doc string, f func(items []any, ok, input bool) (R, error), opts ...option) {
	run := func(cache *pathCache, s, path string, vars jsonObject) (R, error) {
		var none R
		p, err := cache.get(path)
		if err != nil {
			return none, err
		}
		for _, n := range p.names {
			if _, ok := vars.get(n); !ok {
				return none, fault.WithID(fault.Invalid, "INVALID_PATH", "the JSON path %q names $%s, which PASSING does not give; a name that is not quoted there is in capitals", path, n)
			}
		}
		v, err := decodeJSON(s)
		if err != nil {
			return f(nil, false, false)
		}
		items, ok := p.findWith(v, vars)
		return f(items, ok, true)
	}
	for _, t := range []string{"varchar", "json"} {
		defMake(name, "("+t+", varchar) "+ret, doc, func(*binding) (kernel, error) {
			cache := pathCache{sql: true}
			return fn2(func(_ *evalCall, s, path string) (R, error) { return run(&cache, s, path, nil) }), nil
		}, opts...)
		defMake(name, "("+t+", varchar, json) "+ret, doc, func(*binding) (kernel, error) {
			cache := pathCache{sql: true}
			return fn3(func(_ *evalCall, s, path, passed string) (R, error) {
				vars, err := decodeJSON(passed)
				if err != nil {
					return f(nil, false, false)
				}
				o, _ := vars.(jsonObject)
				return run(&cache, s, path, o)
			}), nil
		}, append(opts[:len(opts):len(opts)], hidden)...)
	}
}

// sqlJSON registers the functions of SQL/JSON: JSON_VALUE, JSON_QUERY, JSON_EXISTS and the constructors. Their clauses are put together
// by the binder from the hidden ones.
func sqlJSON() {
	one := func(items []any, ok bool) (any, int64) {
		switch {
		case !ok:
			return nil, jsonBadPath
		case len(items) == 0:
			return nil, jsonEmpty
		case len(items) > 1:
			return nil, jsonSeveral
		}
		return items[0], jsonFound
	}
	sqlPathFn("json_value", "varchar", "the one scalar at a path as text; null when there is none", func(items []any, ok bool) (string, error) {
		x, state := one(items, ok)
		if n, ok := x.(json.Number); ok && state == jsonFound && strings.ContainsAny(n.String(), ".eE") {
			if f, err := n.Float64(); err == nil {
				return formatFloat(f, 64), nil
			}
		}
		if s, ok := scalarText(x); ok && state == jsonFound {
			return s, nil
		}
		return "", errNull
	})
	sqlPathFn("json_value_item", "json", "the one scalar at a path as JSON", func(items []any, ok bool) (string, error) {
		x, state := one(items, ok)
		if _, ok := scalarText(x); ok && state == jsonFound {
			return jsonText(x), nil
		}
		return "", errNull
	}, hidden)
	sqlPathFn("json_query", "varchar", "the part at a path as JSON text; null when it is not one item", func(items []any, ok bool) (string, error) {
		x, state := one(items, ok)
		if state != jsonFound {
			return "", errNull
		}
		return jsonText(shortNumbers(x)), nil
	})
	sqlPathFn("json_query_wrapped", "varchar", "the parts at a path as a JSON array", func(items []any, ok bool) (string, error) {
		if !ok || len(items) == 0 {
			return "", errNull
		}
		return jsonText(shortNumbers(items)), nil
	}, hidden)
	sqlPathFn("json_query_conditional", "varchar", "the array or object at a path, or else the parts as a JSON array", func(items []any, ok bool) (string, error) {
		if !ok || len(items) == 0 {
			return "", errNull
		}
		if len(items) == 1 {
			switch items[0].(type) {
			case []any, jsonObject:
				return jsonText(shortNumbers(items[0])), nil
			}
		}
		return jsonText(shortNumbers(items)), nil
	}, hidden)
	sqlPathFn("json_exists", "boolean", "whether there is something at a path", func(items []any, ok bool) (bool, error) {
		return ok && len(items) > 0, nil
	})
	states := func(name string, f func(items []any, ok bool) int64) {
		sqlPathKernels(name, "bigint", "what is at a path", func(items []any, ok, input bool) (int64, error) {
			if !input {
				return jsonBadInput, nil
			}
			return f(items, ok), nil
		}, hidden)
	}
	states("json_value_state", func(items []any, ok bool) int64 {
		x, state := one(items, ok)
		if _, ok := scalarText(x); !ok && state == jsonFound && x != nil {
			return jsonNoScalar
		}
		return state
	})
	states("json_query_state", func(items []any, ok bool) int64 {
		_, state := one(items, ok)
		return state
	})
	def("json_fail", "(bigint, varchar) varchar", "the error of a JSON function", fn2(func(_ *evalCall, state int64, name string) (string, error) {
		return "", jsonFailure(state, name)
	}), hidden)
	def("json_unquote", "(varchar) varchar", "the text of a JSON string, other JSON as it is", fn1(func(_ *evalCall, s string) (string, error) {
		if v, err := decodeJSON(s); err == nil {
			if t, ok := v.(string); ok {
				return t, nil
			}
		}
		return s, nil
	}), hidden)
	jsonConstructors()
}

func jsonFailure(state int64, name string) error {
	id := "JSON_VALUE_RESULT_ERROR"
	if name != "json_value" {
		id = "JSON_OUTPUT_CONVERSION_ERROR"
	}
	switch state {
	case jsonEmpty:
		return fault.WithID(fault.Invalid, id, "%s: the path finds nothing", name)
	case jsonSeveral:
		return fault.WithID(fault.Invalid, id, "%s: the path finds several items", name)
	case jsonNoScalar:
		return fault.WithID(fault.Invalid, id, "%s: the path finds an array or object, not a scalar", name)
	case jsonBadInput:
		return fault.WithID(fault.Invalid, "JSON_INPUT_CONVERSION_ERROR", "%s: the input is not JSON", name)
	case jsonBadPath:
		return fault.WithID(fault.Invalid, "PATH_EVALUATION_ERROR", "%s: the input has not the structure of the strict path", name)
	}
	return fault.WithID(fault.Invalid, id, "%s: the item is not of the type that RETURNING names", name)
}

// jsonConstructors registers JSON_ARRAY and JSON_OBJECT, each with nulls and without.
func jsonConstructors() {
	array := func(name string, nulls bool, opts ...option) {
		defMake(name, "(any...) varchar", "a JSON array of the arguments, without nulls", func(b *binding) (kernel, error) {
			types := argTypes(b)
			return fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
				var out bytes.Buffer
				out.WriteByte('[')
				for i, a := range args {
					if a == nil && !nulls {
						continue
					}
					if out.Len() > 1 {
						out.WriteByte(',')
					}
					if err := writeJSON(&out, a, types[i], x.ctx); err != nil {
						return nil, err
					}
				}
				out.WriteByte(']')
				return out.String(), nil
			}), nil
		}, append(opts, notNullResult, optionally)...)
	}
	array("json_array", false)
	array("json_array_nulls", true, hidden)
	object := func(name string, nulls, unique bool, opts ...option) {
		defMake(name, "(any...) varchar", "a JSON object of keys and values in turn", func(b *binding) (kernel, error) {
			types := argTypes(b)
			if len(types)%2 != 0 {
				return nil, mismatch("json_object needs a value for each key")
			}
			return fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
				var out bytes.Buffer
				out.WriteByte('{')
				for i := 0; i < len(args); i += 2 {
					k, ok := args[i].(string)
					if !ok {
						return nil, badArgument("a key of json_object must be text and not null")
					}
					for j := 0; unique && j < i; j += 2 {
						if args[j] == args[i] {
							return nil, badArgument("json_object has the key %q twice", k)
						}
					}
					if args[i+1] == nil && !nulls {
						continue
					}
					if out.Len() > 1 {
						out.WriteByte(',')
					}
					quoteJSON(&out, k)
					out.WriteByte(':')
					if err := writeJSON(&out, args[i+1], types[i+1], x.ctx); err != nil {
						return nil, err
					}
				}
				out.WriteByte('}')
				return out.String(), nil
			}), nil
		}, append(opts, notNullResult, optionally)...)
	}
	object("json_object", true, false)
	object("json_object_absent", false, false, hidden)
	object("json_object_unique", true, true, hidden)
	object("json_object_absent_unique", false, true, hidden)
}

// normalJSON is a value as json_parse keeps it, so that equal values are equal texts: members in the order of their keys, the last
// of those with the same key, and numbers as Java's BigDecimal prints them.
func normalJSON(v any) any {
	switch x := v.(type) {
	case json.Number:
		return json.Number(javaNumber(x.String()))
	case []any:
		for i := range x {
			x[i] = normalJSON(x[i])
		}
	case jsonObject:
		slices.SortStableFunc(x, func(a, b jsonMember) int { return strings.Compare(a.key, b.key) })
		out := x[:0]
		for i := range x {
			if i+1 < len(x) && x[i+1].key == x[i].key {
				continue
			}
			out = append(out, jsonMember{x[i].key, normalJSON(x[i].value)})
		}
		return out
	}
	return v
}

// javaNumber writes a JSON number in the canonical text of a BigDecimal: plain while the exponent is small, or like 1E+3.
func javaNumber(s string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "-", rest
	}
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n > 1<<20 || n < -1<<20 {
			return sign + s
		}
		mantissa, exp = s[:i], n
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+frac, "0")
	scale := len(frac) - exp
	if digits == "" {
		digits, sign = "0", ""
	}
	adjusted := len(digits) - 1 - scale
	if scale >= 0 && adjusted >= -6 {
		if scale == 0 {
			return sign + digits
		}
		if len(digits) <= scale {
			digits = strings.Repeat("0", scale-len(digits)+1) + digits
		}
		return sign + digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	if len(digits) > 1 {
		digits = digits[:1] + "." + digits[1:]
	}
	e := strconv.Itoa(adjusted)
	if adjusted > 0 {
		e = "+" + e
	}
	return sign + digits + "E" + e
}

// shortNumbers writes numbers with a fraction as doubles print them, as the functions that copy parts of JSON do. What a double would
// round stays as it is.
func shortNumbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		s := x.String()
		if !strings.ContainsAny(s, ".eE") {
			return v
		}
		f, err := x.Float64()
		if err != nil {
			return v
		}
		short := javaDouble(f, 64)
		a, ok1 := new(big.Rat).SetString(s)
		b, ok2 := new(big.Rat).SetString(short)
		if !ok1 || !ok2 || a.Cmp(b) != 0 {
			return v
		}
		return json.Number(short)
	case []any:
		for i := range x {
			x[i] = shortNumbers(x[i])
		}
	case jsonObject:
		for i := range x {
			x[i].value = shortNumbers(x[i].value)
		}
	}
	return v
}
