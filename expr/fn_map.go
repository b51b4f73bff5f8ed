package expr

import (
	"slices"

	"github.com/skua-db/skua/vector"
)

func keyType(v *vector.Vector) vector.Type {
	if len(v.Type.Fields) < 2 {
		return unknown
	}
	return v.Type.Fields[0].Type
}

func init() {
	def("map", "() map(unknown, unknown)", "the empty map", fn0(func(*evalCall) ([]vector.Pair, error) { return []vector.Pair{}, nil }))
	def("map", "(array(K), array(V)) map(K, V)", "a map of keys and values", fn2(func(x *evalCall, ks, vs []vector.Value) ([]vector.Pair, error) {
		if len(ks) != len(vs) {
			return nil, badArgument("map: %d keys and %d values", len(ks), len(vs))
		}
		ps := make([]vector.Pair, len(ks))
		for i := range ks {
			ps[i] = vector.Pair{Key: ks[i], Value: vs[i]}
		}
		return checkedMap(elemOf(x.args[0]), ps)
	}))
	def("map_from_entries", "(array(row(K, V))) map(K, V)", "a map of entries", fn1(func(x *evalCall, es []vector.Value) ([]vector.Pair, error) {
		ps := make([]vector.Pair, len(es))
		for i, e := range es {
			r, ok := e.([]vector.Value)
			if !ok {
				return nil, badArgument("map_from_entries: an entry is null")
			}
			ps[i] = vector.Pair{Key: r[0], Value: r[1]}
		}
		return checkedMap(elemOf(x.args[0]).Fields[0].Type, ps)
	}))
	def("multimap_from_entries", "(array(row(K, V))) map(K, array(V))", "a map of all values of each key", fn1(func(x *evalCall, es []vector.Value) ([]vector.Pair, error) {
		t := elemOf(x.args[0]).Fields[0].Type
		out := []vector.Pair{}
		for _, e := range es {
			r, ok := e.([]vector.Value)
			if !ok || r[0] == nil {
				return nil, badArgument("multimap_from_entries: an entry or a key is null")
			}
			if i := findKey(t, out, r[0]); i >= 0 {
				out[i].Value = append(out[i].Value.([]vector.Value), r[1])
			} else {
				out = append(out, vector.Pair{Key: r[0], Value: []vector.Value{r[1]}})
			}
		}
		return out, nil
	}))
	def("map_entries", "(map(K, V)) array(row(K, V))", "the entries", fn1(func(_ *evalCall, ps []vector.Pair) ([]vector.Value, error) {
		out := make([]vector.Value, len(ps))
		for i, p := range ps {
			out[i] = []vector.Value{p.Key, p.Value}
		}
		return out, nil
	}))
	def("map_keys", "(map(K, V)) array(K)", "the keys", fn1(func(_ *evalCall, ps []vector.Pair) ([]vector.Value, error) {
		out := make([]vector.Value, len(ps))
		for i, p := range ps {
			out[i] = p.Key
		}
		return out, nil
	}))
	def("map_values", "(map(K, V)) array(V)", "the values", fn1(func(_ *evalCall, ps []vector.Pair) ([]vector.Value, error) {
		out := make([]vector.Value, len(ps))
		for i, p := range ps {
			out[i] = p.Value
		}
		return out, nil
	}))
	def("subscript", "(map(K, V), K) V", "the value of a key", fn2(func(x *evalCall, ps []vector.Pair, k vector.Value) (vector.Value, error) {
		t := keyType(x.args[0])
		i := findKey(t, ps, k)
		if i < 0 {
			return nil, badArgument("the map has no key %s", FormatValue(k, t))
		}
		return nullable(ps[i].Value)
	}), mayNull, hidden)
	def("element_at", "(map(K, V), K) V", "the value of a key; null where there is none", fn2(func(x *evalCall, ps []vector.Pair, k vector.Value) (vector.Value, error) {
		i := findKey(keyType(x.args[0]), ps, k)
		if i < 0 {
			return nil, errNull
		}
		return nullable(ps[i].Value)
	}), mayNull)
	def("map_concat", "(map(K, V)...) map(K, V)", "the entries of all, later ones first", fnN(func(x *evalCall, ms []vector.Value) (vector.Value, error) {
		t := keyType(x.args[0])
		out := []vector.Pair{}
		for _, m := range ms {
			for _, p := range m.([]vector.Pair) {
				if i := findKey(t, out, p.Key); i >= 0 {
					out[i].Value = p.Value
				} else {
					out = append(out, p)
				}
			}
		}
		return out, nil
	}))
}

// checkedMap refuses null and repeated keys.
func checkedMap(t vector.Type, ps []vector.Pair) ([]vector.Pair, error) {
	s := setOf(t, nil)
	for _, p := range ps {
		if p.Key == nil {
			return nil, badArgument("a key of a map is null")
		}
		k := s.key(p.Key)
		if s.m[k] {
			return nil, badArgument("duplicate key %s of a map", FormatValue(p.Key, t))
		}
		s.m[k] = true
	}
	return slices.Clip(ps), nil
}
