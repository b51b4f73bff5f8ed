package expr

import (
	"encoding/json"
	"strings"

	"github.com/skua-db/skua/vector"
)

// pathCache compiles the paths that a program meets; nearly always one.
type pathCache struct {
	last string
	p    *jsonPath
	sql  bool // paths are of SQL/JSON
}

func (c *pathCache) get(s string) (*jsonPath, error) {
	if c.p != nil && c.last == s {
		return c.p, nil
	}
	parse := parseJSONPath
	if c.sql {
		parse = parseSQLPath
	}
	p, err := parse(s)
	if err == nil {
		c.last, c.p = strings.Clone(s), p
	}
	return p, err
}

// jsonPathFn registers a function of JSON text and a path, for both varchar and json.
func jsonPathFn[R any](name, ret, doc string, f func(v any, p *jsonPath) (R, error), opts ...option) {
	for _, t := range []string{"varchar", "json"} {
		defMake(name, "("+t+", varchar) "+ret, doc, func(*binding) (kernel, error) {
			var cache pathCache
			return fn2(func(_ *evalCall, s, path string) (R, error) {
				var none R
				p, err := cache.get(path)
				if err != nil {
					return none, err
				}
				v, err := decodeJSON(s)
				if err != nil {
					return none, errNull
				}
				return f(v, p)
			}), nil
		}, append(opts, mayNull)...)
	}
}

// scalarText is the text of a JSON scalar; ok is false for arrays, objects and null.
func scalarText(v any) (string, bool) {
	switch x := v.(type) {
	case bool:
		if x {
			return "true", true
		}
		return "false", true
	case json.Number:
		return x.String(), true
	case string:
		return x, true
	case pathDecimal:
		return string(x), true
	}
	return "", false
}

func init() {
	first := func(v any, p *jsonPath) (any, bool) {
		items, ok := p.find(v)
		if !ok || len(items) == 0 {
			return nil, false
		}
		return items[0], true
	}
	jsonPathFn("json_extract", "json", "the part at a path", func(v any, p *jsonPath) (string, error) {
		// Hive's paths do not unwrap arrays.
		p.strict = true
		if len(p.steps) > 0 && hasMany(p) {
			items, ok := p.find(v)
			if !ok || len(items) == 0 {
				return "", errNull
			}
			if len(items) == 1 {
				return jsonText(items[0]), nil
			}
			return jsonText(items), nil
		}
		x, ok := first(v, p)
		if !ok {
			return "", errNull
		}
		return jsonText(shortNumbers(x)), nil
	})
	jsonPathFn("json_extract_scalar", "varchar", "the scalar at a path as text", func(v any, p *jsonPath) (string, error) {
		p.strict = true
		x, ok := first(v, p)
		if ok {
			if s, ok := scalarText(x); ok {
				return s, nil
			}
		}
		return "", errNull
	})
	sqlJSON()
	jsonPathFn("json_size", "bigint", "number of elements or members at a path; 0 of a scalar", func(v any, p *jsonPath) (int64, error) {
		x, ok := first(v, p)
		if !ok {
			return 0, errNull
		}
		switch y := x.(type) {
		case []any:
			return int64(len(y)), nil
		case jsonObject:
			return int64(len(y)), nil
		}
		return 0, nil
	})
	def("json_parse", "(varchar) json", "the text as JSON", fn1(func(_ *evalCall, s string) (string, error) {
		v, err := decodeJSON(s)
		if err != nil {
			if len(s) > 100 {
				s = s[:100] + "..."
			}
			return "", badArgument("%q is not JSON", s)
		}
		return jsonText(normalJSON(v)), nil
	}))
	def("json_format", "(json) varchar", "JSON as text", fn1(func(_ *evalCall, s string) (string, error) { return s, nil }))
	for _, t := range []string{"varchar", "json"} {
		def("json_array_length", "("+t+") bigint", "number of elements; null of anything else", fn1(func(_ *evalCall, s string) (int64, error) {
			v, err := decodeJSON(s)
			a, ok := v.([]any)
			if err != nil || !ok {
				return 0, errNull
			}
			return int64(len(a)), nil
		}), mayNull)
		def("json_array_get", "("+t+", bigint) json", "the element at a position from 0 or from the end", fn2(func(_ *evalCall, s string, i int64) (string, error) {
			v, err := decodeJSON(s)
			a, ok := v.([]any)
			if i < 0 {
				i += int64(len(a))
			}
			if err != nil || !ok || i < 0 || i >= int64(len(a)) {
				return "", errNull
			}
			if x, ok := a[i].(string); ok {
				return x, nil
			}
			return jsonText(a[i]), nil
		}), mayNull)
		def("is_json_scalar", "("+t+") boolean", "whether it is a JSON scalar", fn1(func(_ *evalCall, s string) (bool, error) {
			v, err := decodeJSON(s)
			if err != nil {
				return false, badArgument("not JSON: %q", s)
			}
			_, ok := scalarText(v)
			return ok || v == nil, nil
		}))
		for _, e := range []string{"varchar", "bigint", "double", "boolean"} {
			defMake("json_array_contains", "("+t+", "+e+") boolean", "whether an array has an element", func(b *binding) (kernel, error) {
				et := b.args[1].Type()
				return fn2(func(x *evalCall, s string, want vector.Value) (bool, error) {
					v, err := decodeJSON(s)
					a, ok := v.([]any)
					if err != nil || !ok {
						return false, errNull
					}
					for _, y := range a {
						_, isText := y.(string)
						_, isBool := y.(bool)
						if isText != (et.Kind == vector.Varchar) || isBool != (et.Kind == vector.Boolean) {
							continue
						}
						if z, err := jsonItem(y, et, x.ctx); err == nil && z != nil && CompareValues(et, z, want) == 0 {
							return true, nil
						}
					}
					return false, nil
				}), nil
			}, mayNull)
		}
	}
}

func argTypes(b *binding) []vector.Type {
	ts := make([]vector.Type, len(b.args))
	for i, a := range b.args {
		ts[i] = a.Type()
	}
	return ts
}

// hasMany reports whether a path can name several items.
func hasMany(p *jsonPath) bool {
	for _, s := range p.steps {
		if s.kind == 'I' || s.kind == 'M' || s.kind == 'd' {
			return true
		}
	}
	return false
}
