package expr

import (
	"slices"
	"strings"

	"github.com/skua-db/skua/vector"
)

// elem is the element type of an argument that is an array.
func elemOf(v *vector.Vector) vector.Type {
	if len(v.Type.Fields) == 0 {
		return unknown
	}
	return v.Type.Fields[0].Type
}

func needComparable(t []vector.Type) (vector.Type, error) {
	for _, x := range t {
		if !comparableType(x) {
			return unknown, mismatch("values of type %s cannot be compared", x)
		}
	}
	return t[0], nil
}

func needOrder(t []vector.Type) (vector.Type, error) {
	if len(t[0].Fields) > 0 && !Orderable(t[0].Fields[0].Type) {
		return unknown, mismatch("values of type %s have no order", t[0].Fields[0].Type)
	}
	return t[0], nil
}

func init() {
	def("array", "() array(unknown)", "the empty array", fn0(func(*evalCall) ([]vector.Value, error) { return []vector.Value{}, nil }))
	def("array array_constructor", "(T...) array(T)", "an array of the arguments", fnN(func(_ *evalCall, a []vector.Value) (vector.Value, error) {
		return slices.Clone(a), nil
	}), notNullResult)
	def("row", "(any...) row", "a row of the arguments", fnN(func(_ *evalCall, a []vector.Value) (vector.Value, error) {
		return slices.Clone(a), nil
	}), notNullResult, returns(func(t []vector.Type) (vector.Type, error) {
		fs := make([]vector.Field, len(t))
		for i := range t {
			fs[i] = vector.Field{Type: t[i], Nullable: true}
		}
		return vector.RowOf(fs...), nil
	}))
	def("subscript", "(array(T), bigint) T", "the element at a position from 1", fn2(func(_ *evalCall, a []vector.Value, i int64) (vector.Value, error) {
		switch {
		case i == 0:
			return nil, badArgument("array subscripts begin at 1")
		case i < 0:
			return nil, badArgument("array subscript %d is negative", i)
		case i > int64(len(a)):
			return nil, badArgument("array subscript %d is past the end, %d", i, len(a))
		}
		return nullable(a[i-1])
	}), mayNull, hidden)
	def("element_at", "(array(T), bigint) T", "the element at a position from 1 or from the end; null where there is none", fn2(func(_ *evalCall, a []vector.Value, i int64) (vector.Value, error) {
		n := int64(len(a))
		switch {
		case i == 0:
			return nil, badArgument("array subscripts begin at 1")
		case i < 0:
			i += n + 1
		}
		if i < 1 || i > n {
			return nil, errNull
		}
		return nullable(a[i-1])
	}), mayNull)
	def("cardinality size array_length", "(array(T)) bigint", "number of elements", listLength)
	def("cardinality size", "(map(K, V)) bigint", "number of entries", listLength)
	def("||", "(array(T), array(T)) array(T)", "concatenation", fn2(func(_ *evalCall, a, b []vector.Value) ([]vector.Value, error) { return slices.Concat(a, b), nil }))
	def("||", "(array(T), T) array(T)", "with an element at the end", fn2(func(_ *evalCall, a []vector.Value, e vector.Value) ([]vector.Value, error) { return append(a, e), nil }))
	def("||", "(T, array(T)) array(T)", "with an element at the beginning", fn2(func(_ *evalCall, e vector.Value, a []vector.Value) ([]vector.Value, error) {
		return append([]vector.Value{e}, a...), nil
	}))
	def("array_append", "(array(T), T) array(T)", "with an element at the end", fnN(func(_ *evalCall, x []vector.Value) (vector.Value, error) {
		if x[0] == nil {
			return nil, nil
		}
		return append(slices.Clone(x[0].([]vector.Value)), x[1]), nil
	}), onNull)
	def("concat array_concat", "(array(T)...) array(T)", "concatenation", fnN(func(_ *evalCall, as []vector.Value) (vector.Value, error) {
		out := []vector.Value{}
		for _, a := range as {
			out = append(out, a.([]vector.Value)...)
		}
		return out, nil
	}))
	def("contains array_contains", "(array(T), T) boolean", "whether it holds an element", fn2(func(x *evalCall, a []vector.Value, e vector.Value) (bool, error) {
		t := elemOf(x.args[0])
		null := false
		for _, y := range a {
			eq, n := equal3(t, y, e)
			if eq && !n {
				return true, nil
			}
			null = null || n
		}
		if null {
			return false, errNull
		}
		return false, nil
	}), mayNull)
	def("array_position", "(array(T), T) bigint", "position of the first such element, 0 for none", fn2(func(x *evalCall, a []vector.Value, e vector.Value) (int64, error) {
		t := elemOf(x.args[0])
		for i, y := range a {
			if eq, n := equal3(t, y, e); eq && !n {
				return int64(i) + 1, nil
			}
		}
		return 0, nil
	}))
	def("array_remove", "(array(T), T) array(T)", "without such elements", fn2(func(x *evalCall, a []vector.Value, e vector.Value) ([]vector.Value, error) {
		t := elemOf(x.args[0])
		out := []vector.Value{}
		for _, y := range a {
			if eq, n := equal3(t, y, e); !eq || n {
				out = append(out, y)
			}
		}
		return out, nil
	}))
	def("array_distinct", "(array(T)) array(T)", "without repetitions", fn1(func(x *evalCall, a []vector.Value) ([]vector.Value, error) {
		return distinct(elemOf(x.args[0]), a), nil
	}), returns(needComparable))
	def("array_intersect", "(array(T), array(T)) array(T)", "distinct elements of both", fn2(func(x *evalCall, a, b []vector.Value) ([]vector.Value, error) {
		t := elemOf(x.args[0])
		s := setOf(t, b)
		return slices.DeleteFunc(distinct(t, a), func(v vector.Value) bool { return !s.has(v) }), nil
	}))
	def("array_except", "(array(T), array(T)) array(T)", "distinct elements of the first only", fn2(func(x *evalCall, a, b []vector.Value) ([]vector.Value, error) {
		t := elemOf(x.args[0])
		s := setOf(t, b)
		return slices.DeleteFunc(distinct(t, a), s.has), nil
	}))
	def("array_union", "(array(T), array(T)) array(T)", "distinct elements of either", fn2(func(x *evalCall, a, b []vector.Value) ([]vector.Value, error) {
		return distinct(elemOf(x.args[0]), slices.Concat(a, b)), nil
	}))
	def("arrays_overlap", "(array(T), array(T)) boolean", "whether they share an element", fn2(func(x *evalCall, a, b []vector.Value) (bool, error) {
		s := setOf(elemOf(x.args[0]), b)
		null := slices.Contains(b, nil)
		for _, v := range a {
			if v == nil {
				null = true
			} else if s.has(v) {
				return true, nil
			}
		}
		if null && len(a) > 0 && len(b) > 0 {
			return false, errNull
		}
		return false, nil
	}), mayNull)
	def("contains_sequence", "(array(T), array(T)) boolean", "whether the second stands in the first", fn2(func(x *evalCall, a, b []vector.Value) (bool, error) {
		t := elemOf(x.args[0])
		for i := 0; i+len(b) <= len(a); i++ {
			if slices.EqualFunc(a[i:i+len(b)], b, func(p, q vector.Value) bool { return equalNullSafe(t, p, q) }) {
				return true, nil
			}
		}
		return false, nil
	}))
	def("array_join array_to_string", "(array(T), varchar) varchar", "texts of the elements with a separator, without nulls", arrayJoin)
	def("array_join array_to_string", "(array(T), varchar, varchar) varchar", "texts of the elements with a separator and a text for nulls", arrayJoin)
	extreme := func(want int) kernel {
		return fn1(func(x *evalCall, a []vector.Value) (vector.Value, error) {
			var best vector.Value
			for _, v := range a {
				if v == nil {
					return nil, errNull
				}
				if isNaN(v) && best != nil {
					continue // as min and max pass over it
				}
				if best == nil || isNaN(best) || CompareValues(elemOf(x.args[0]), v, best)*want > 0 {
					best = v
				}
			}
			return nullable(best)
		})
	}
	element := func(t []vector.Type) (vector.Type, error) {
		if _, err := needOrder(t); err != nil {
			return unknown, err
		}
		if len(t[0].Fields) == 0 {
			return unknown, nil
		}
		return t[0].Fields[0].Type, nil
	}
	def("array_max list_max", "(array(T)) T", "the largest element; null when one is null", extreme(1), mayNull, returns(element))
	def("array_min list_min", "(array(T)) T", "the smallest element; null when one is null", extreme(-1), mayNull, returns(element))
	def("array_first", "(array(T)) T", "the first element", fn1(func(_ *evalCall, a []vector.Value) (vector.Value, error) {
		if len(a) == 0 {
			return nil, errNull
		}
		return nullable(a[0])
	}), mayNull)
	def("array_last", "(array(T)) T", "the last element", fn1(func(_ *evalCall, a []vector.Value) (vector.Value, error) {
		if len(a) == 0 {
			return nil, errNull
		}
		return nullable(a[len(a)-1])
	}), mayNull)
	def("array_sort sort_array", "(array(T)) array(T)", "in order, nulls last", fn1(func(x *evalCall, a []vector.Value) ([]vector.Value, error) {
		t := elemOf(x.args[0])
		slices.SortStableFunc(a, func(p, q vector.Value) int { return CompareValues(t, p, q) })
		return a, nil
	}), returns(needOrder))
	def("reverse array_reverse", "(array(T)) array(T)", "in reverse order", fn1(func(_ *evalCall, a []vector.Value) ([]vector.Value, error) {
		slices.Reverse(a)
		return a, nil
	}))
	def("shuffle", "(array(T)) array(T)", "in some order", fn1(func(_ *evalCall, a []vector.Value) ([]vector.Value, error) { return a, nil }), volatile)
	def("slice array_slice", "(array(T), bigint, bigint) array(T)", "so many elements from a position", fn3(func(_ *evalCall, a []vector.Value, from, n int64) ([]vector.Value, error) {
		if n < 0 {
			return nil, badArgument("slice: the length must not be negative: %d", n)
		}
		if from == 0 {
			return nil, badArgument("array subscripts begin at 1")
		}
		l := int64(len(a))
		if from < 0 {
			from += l + 1
		}
		if from < 1 || from > l {
			return []vector.Value{}, nil
		}
		return a[from-1 : min(l, from-1+min(n, l))], nil
	}))
	def("trim_array", "(array(T), bigint) array(T)", "without so many elements at the end", fn2(func(_ *evalCall, a []vector.Value, n int64) ([]vector.Value, error) {
		if n < 0 || n > int64(len(a)) {
			return nil, badArgument("trim_array: %d elements of %d", n, len(a))
		}
		return a[:int64(len(a))-n], nil
	}))
	def("flatten", "(array(array(T))) array(T)", "the arrays one after the other", fn1(func(_ *evalCall, a []vector.Value) ([]vector.Value, error) {
		out := []vector.Value{}
		for _, e := range a {
			if e != nil {
				out = append(out, e.([]vector.Value)...)
			}
		}
		return out, nil
	}))
	def("zip", "(array(T), array(U)) array(row(T, U))", "pairs of elements", fnN(zip))
	def("zip", "(array(T), array(U), array(V)) array(row(T, U, V))", "triples of elements", fnN(zip))
	def("ngrams", "(array(T), bigint) array(array(T))", "runs of so many elements", fn2(func(_ *evalCall, a []vector.Value, n int64) ([]vector.Value, error) {
		if n < 1 {
			return nil, badArgument("ngrams: the size must be positive")
		}
		if n >= int64(len(a)) {
			return []vector.Value{a}, nil
		}
		out := []vector.Value{}
		for i := 0; i+int(n) <= len(a); i++ {
			out = append(out, a[i:i+int(n)])
		}
		return out, nil
	}))
	def("array_histogram", "(array(T)) map(T, bigint)", "number of each element", fn1(func(x *evalCall, a []vector.Value) ([]vector.Pair, error) {
		t := elemOf(x.args[0])
		out := []vector.Pair{}
		for _, v := range a {
			if v == nil {
				continue
			}
			if i := findKey(t, out, v); i >= 0 {
				out[i].Value = out[i].Value.(int64) + 1
			} else {
				out = append(out, vector.Pair{Key: v, Value: int64(1)})
			}
		}
		return out, nil
	}))
	sequences()
}

// notNullResult marks a constructor: null arguments become null parts.
var notNullResult option = func(f *Function) { f.onNull = true }

func nullable(v vector.Value) (vector.Value, error) {
	if v == nil {
		return nil, errNull
	}
	return v, nil
}

func listLength(x *evalCall, out *vector.Vector) error {
	v := x.args[0]
	s := v.Values()
	for _, i := range rowsOf(x.sel, x.n) {
		j := v.Index(int(i))
		out.I64[i] = int64(s.Offsets[j+1] - s.Offsets[j])
	}
	return nil
}

// valueSet is a set of values by their key encoding.
type valueSet struct {
	t vector.Type
	m map[string]bool
}

func (s *valueSet) key(v vector.Value) string {
	return string(AppendKey(nil, valuesVector(s.t, []vector.Value{v}), 0))
}

func (s *valueSet) has(v vector.Value) bool { return s.m[s.key(v)] }

func setOf(t vector.Type, vs []vector.Value) *valueSet {
	s := &valueSet{t, make(map[string]bool, len(vs))}
	for _, v := range vs {
		s.m[s.key(v)] = true
	}
	return s
}

func distinct(t vector.Type, a []vector.Value) []vector.Value {
	s := setOf(t, nil)
	out := []vector.Value{}
	for _, v := range a {
		if k := s.key(v); !s.m[k] {
			s.m[k] = true
			out = append(out, v)
		}
	}
	return out
}

var arrayJoin = fnN(func(x *evalCall, args []vector.Value) (vector.Value, error) {
	t := elemOf(x.args[0])
	var b strings.Builder
	first := true
	for _, e := range args[0].([]vector.Value) {
		s := ""
		if e == nil {
			if len(args) < 3 {
				continue
			}
			s = args[2].(string)
		} else {
			v, err := castValue(e, t, varchar, x.ctx)
			if err != nil {
				return nil, err
			}
			s = v.(string)
		}
		if !first {
			b.WriteString(args[1].(string))
		}
		first = false
		b.WriteString(s)
	}
	return b.String(), nil
})

func zip(_ *evalCall, args []vector.Value) (vector.Value, error) {
	n := 0
	for _, a := range args {
		n = max(n, len(a.([]vector.Value)))
	}
	out := make([]vector.Value, n)
	for i := range out {
		r := make([]vector.Value, len(args))
		for k, a := range args {
			if l := a.([]vector.Value); i < len(l) {
				r[k] = l[i]
			}
		}
		out[i] = r
	}
	return out, nil
}

const maxSequence = 10000

func sequences() {
	count := func(from, to, step int64) (int64, error) {
		if step == 0 || to > from && step < 0 || to < from && step > 0 {
			return 0, badArgument("sequence: a step of %d does not lead from %d to %d", step, from, to)
		}
		n := (to-from)/step + 1
		if n > maxSequence || to > from && to-from < 0 {
			return 0, badArgument("sequence: more than %d elements", maxSequence)
		}
		return n, nil
	}
	ints := func(from, to, step int64) ([]vector.Value, error) {
		n, err := count(from, to, step)
		if err != nil {
			return nil, err
		}
		out := make([]vector.Value, n)
		for i := range out {
			out[i] = from + int64(i)*step
		}
		return out, nil
	}
	dir := func(from, to int64) int64 {
		if to < from {
			return -1
		}
		return 1
	}
	def("sequence generate_series", "(bigint, bigint) array(bigint)", "the numbers from one to another", fn2(func(_ *evalCall, a, b int64) ([]vector.Value, error) { return ints(a, b, dir(a, b)) }))
	def("sequence generate_series", "(bigint, bigint, bigint) array(bigint)", "the numbers from one to another by a step", fn3(func(_ *evalCall, a, b, s int64) ([]vector.Value, error) { return ints(a, b, s) }))
	days := func(vs []vector.Value, err error) ([]vector.Value, error) {
		for i := range vs {
			vs[i] = int32(vs[i].(int64))
		}
		return vs, err
	}
	def("sequence generate_series", "(date, date) array(date)", "the days from one to another", fn2(func(_ *evalCall, a, b int64) ([]vector.Value, error) { return days(ints(a, b, dir(a, b))) }))
	def("sequence generate_series", "(date, date, interval_day) array(date)", "the days from one to another by a step", fn3(func(_ *evalCall, a, b, s int64) ([]vector.Value, error) {
		if s%86400e6 != 0 {
			return nil, badArgument("sequence: the step of dates must be whole days")
		}
		return days(ints(a, b, s/86400e6))
	}))
	months := func(t vector.Type, ctx *Context, a, b, s int64) ([]vector.Value, error) {
		w, u := wall(t, ctx), unwall(t, ctx)
		if s == 0 || s > 0 && b < a || s < 0 && b > a {
			return nil, badArgument("sequence: the step does not lead from the first to the last")
		}
		d, n := w(a)
		out := []vector.Value{}
		for k := int64(0); ; k++ {
			v, err := u(addMonths(d, k*s), n)
			if err != nil {
				return nil, err
			}
			if s > 0 && v > b || s < 0 && v < b {
				return out, nil
			}
			if len(out) == maxSequence {
				return nil, badArgument("sequence: more than %d elements", maxSequence)
			}
			if t.Kind == vector.Date {
				out = append(out, int32(v))
			} else {
				out = append(out, v)
			}
		}
	}
	for _, t := range []string{"date", "timestamp", "timestamptz"} {
		arr := returns(func(ts []vector.Type) (vector.Type, error) { return vector.ArrayOf(ts[0]), nil })
		defMake("sequence generate_series", "("+t+", "+t+", interval_year) array("+t+")", "moments from one to another by a step of months", func(bd *binding) (kernel, error) {
			ty := bd.args[0].Type()
			return fn3(func(x *evalCall, a, b, s int64) ([]vector.Value, error) { return months(ty, x.ctx, a, b, s) }), nil
		}, arr)
		if t != "date" {
			def("sequence generate_series", "("+t+", "+t+", interval_day) array("+t+")", "moments from one to another by a step", fn3(func(x *evalCall, a, b, s int64) ([]vector.Value, error) {
				return ints(a, b, s*(unitsPerSecond(x.args[0].Type)/1e6))
			}), arr)
		}
	}
}
