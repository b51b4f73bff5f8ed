package expr

import (
	"slices"

	"github.com/skua-db/skua/vector"
)

// elements are the list elements of the selected rows, in batches that a lambda is run on.
type elements struct {
	kids  []*vector.Vector // element columns: one of an array, key and value of a map
	at    []int32          // position of each element in kids
	rowOf []int32
}

// gatherElements lists the elements of the selected rows that are not null.
func gatherElements(x *evalCall, v *vector.Vector) *elements {
	s := v.Values()
	e := &elements{kids: s.Children}
	for _, i := range rowsOf(x.sel, x.n) {
		if v.IsNull(int(i)) {
			continue
		}
		j := v.Index(int(i))
		for k := s.Offsets[j]; k < s.Offsets[j+1]; k++ {
			e.at = append(e.at, k)
			e.rowOf = append(e.rowOf, int32(i))
		}
	}
	return e
}

// run evaluates a lambda on all elements and gives the results one after the other.
func (e *elements) run(x *evalCall, l *lambdaProgram) ([]vector.Value, error) {
	out := make([]vector.Value, 0, len(e.at))
	for lo := 0; lo < len(e.at); lo += vector.Size {
		hi := min(lo+vector.Size, len(e.at))
		params := make([]*vector.Vector, len(e.kids))
		for k, c := range e.kids {
			params[k] = spread(c, e.at[lo:hi])
		}
		v, err := l.eval(x.b, e.rowOf[lo:hi], params, hi-lo)
		if err != nil {
			return nil, err
		}
		for i := range hi - lo {
			out = append(out, v.Get(i))
		}
	}
	return out, nil
}

// mapped makes a kernel that runs a lambda over the elements of the first argument and folds each row's results.
func mapped(fold func(x *evalCall, list vector.Value, results []vector.Value) (vector.Value, error)) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		v := x.args[0]
		e := gatherElements(x, v)
		rs, err := e.run(x, x.lambdas[1])
		if err != nil {
			return err
		}
		next := 0
		return forRows(x, out, func(i int) (vector.Value, error) {
			list := v.Get(i)
			n := 0
			switch l := list.(type) {
			case []vector.Value:
				n = len(l)
			case []vector.Pair:
				n = len(l)
			}
			r, err := fold(x, list, rs[next:next+n])
			next += n
			if err == nil && r == nil {
				err = errNull
			}
			return r, err
		})
	}
}

func init() {
	def("transform", "(array(T), function(T, U)) array(U)", "the function of each element", mapped(func(_ *evalCall, _ vector.Value, rs []vector.Value) (vector.Value, error) {
		return slices.Clone(rs), nil
	}))
	def("filter", "(array(T), function(T, boolean)) array(T)", "the elements for which it is true", mapped(func(_ *evalCall, l vector.Value, rs []vector.Value) (vector.Value, error) {
		out := []vector.Value{}
		for i, e := range l.([]vector.Value) {
			if rs[i] == true {
				out = append(out, e)
			}
		}
		return out, nil
	}))
	// match folds truth values: decisive ends with an answer, else null where one was null.
	match := func(decisive vector.Value, answer, otherwise bool) kernel {
		return mapped(func(_ *evalCall, _ vector.Value, rs []vector.Value) (vector.Value, error) {
			if slices.Contains(rs, decisive) {
				return answer, nil
			}
			if slices.Contains(rs, nil) {
				return nil, nil
			}
			return otherwise, nil
		})
	}
	def("any_match", "(array(T), function(T, boolean)) boolean", "whether it is true of an element", match(true, true, false), mayNull)
	def("all_match", "(array(T), function(T, boolean)) boolean", "whether it is true of every element", match(false, false, true), mayNull)
	def("none_match", "(array(T), function(T, boolean)) boolean", "whether it is true of no element", match(true, false, true), mayNull)
	def("array_first", "(array(T), function(T, boolean)) T", "the first element for which it is true", mapped(func(_ *evalCall, l vector.Value, rs []vector.Value) (vector.Value, error) {
		for i, e := range l.([]vector.Value) {
			if rs[i] == true {
				return e, nil
			}
		}
		return nil, nil
	}), mayNull)
	def("map_filter", "(map(K, V), function(K, V, boolean)) map(K, V)", "the entries for which it is true", mapped(func(_ *evalCall, l vector.Value, rs []vector.Value) (vector.Value, error) {
		out := []vector.Pair{}
		for i, p := range l.([]vector.Pair) {
			if rs[i] == true {
				out = append(out, p)
			}
		}
		return out, nil
	}))
	def("transform_values", "(map(K, V), function(K, V, U)) map(K, U)", "the values replaced", mapped(func(_ *evalCall, l vector.Value, rs []vector.Value) (vector.Value, error) {
		ps := l.([]vector.Pair)
		for i := range ps {
			ps[i].Value = rs[i]
		}
		return ps, nil
	}))
	def("transform_keys", "(map(K, V), function(K, V, U)) map(U, V)", "the keys replaced", func(x *evalCall, out *vector.Vector) error {
		t := out.Type.Fields[0].Type
		return mapped(func(_ *evalCall, l vector.Value, rs []vector.Value) (vector.Value, error) {
			ps := l.([]vector.Pair)
			for i := range ps {
				ps[i].Key = rs[i]
			}
			return checkedMap(t, ps)
		})(x, out)
	})
	def("array_sort", "(array(T), function(T, T, integer)) array(T)", "in the order of a comparison", arraySortBy)
	def("reduce", "(array(T), S, function(S, T, S), function(S, R)) R", "the elements folded into a state, and the result of it", reduce, onNull)
	def("zip_with", "(array(T), array(U), function(T, U, R)) array(R)", "the function of pairs of elements", zipWith)
	def("map_zip_with", "(map(K, V), map(K, U), function(K, V, U, R)) map(K, R)", "the function of the values of each key", mapZipWith)
}

// one runs a lambda once, for one row.
func one(x *evalCall, l *lambdaProgram, i int, types []vector.Type, args ...vector.Value) (vector.Value, error) {
	params := make([]*vector.Vector, len(args))
	for k, a := range args {
		params[k] = vector.NewConstant(types[k], a)
	}
	v, err := l.eval(x.b, []int32{int32(i)}, params, 1)
	if err != nil {
		return nil, err
	}
	return v.Get(0), nil
}

func arraySortBy(x *evalCall, out *vector.Vector) error {
	t := elemOf(x.args[0])
	return forRows(x, out, func(i int) (vector.Value, error) {
		a := x.args[0].Get(i).([]vector.Value)
		var failed error
		slices.SortStableFunc(a, func(p, q vector.Value) int {
			if failed != nil {
				return 0
			}
			r, err := one(x, x.lambdas[1], i, []vector.Type{t, t}, p, q)
			c, ok := r.(int32)
			if err != nil {
				failed = err
			} else if !ok {
				failed = badArgument("array_sort: the comparison gives null")
			}
			return int(c)
		})
		return a, failed
	})
}

// reduce folds the rows' lists step by step, all rows at once: step k takes the k-th element of every row that has one.
func reduce(x *evalCall, out *vector.Vector) error {
	v, st := x.args[0], x.args[1].Type
	states := make(map[int]vector.Value)
	var rows []int
	for _, i := range rowsOf(x.sel, x.n) {
		if !v.IsNull(int(i)) {
			rows = append(rows, int(i))
			states[int(i)] = x.args[1].Get(int(i))
		}
	}
	s := v.Values()
	live := slices.Clone(rows)
	for step := int32(0); len(live) > 0; step++ {
		var at, rowOf []int32
		sb := vector.NewBuilder(st)
		next := live[:0]
		for _, i := range live {
			j := v.Index(i)
			if s.Offsets[j]+step < s.Offsets[j+1] {
				at = append(at, s.Offsets[j]+step)
				rowOf = append(rowOf, int32(i))
				sb.Append(states[i])
				next = append(next, i)
			}
		}
		live = next
		if len(live) == 0 {
			break
		}
		r, err := x.lambdas[2].eval(x.b, rowOf, []*vector.Vector{sb.Finish(), spread(s.Children[0], at)}, len(at))
		if err != nil {
			return err
		}
		for k, i := range live {
			states[i] = r.Get(k)
		}
	}
	return forRows(x, out, func(i int) (vector.Value, error) {
		if v.IsNull(i) {
			return nil, errNull
		}
		r, err := one(x, x.lambdas[3], i, []vector.Type{st}, states[i])
		if err == nil && r == nil {
			err = errNull
		}
		return r, err
	})
}

func zipWith(x *evalCall, out *vector.Vector) error {
	ts := []vector.Type{elemOf(x.args[0]), elemOf(x.args[1])}
	return forRows(x, out, func(i int) (vector.Value, error) {
		a, b := x.args[0].Get(i).([]vector.Value), x.args[1].Get(i).([]vector.Value)
		n := max(len(a), len(b))
		p, q := vector.NewBuilder(ts[0]), vector.NewBuilder(ts[1])
		rowOf := make([]int32, n)
		for k := range n {
			rowOf[k] = int32(i)
			if k < len(a) {
				p.Append(a[k])
			} else {
				p.AppendNull()
			}
			if k < len(b) {
				q.Append(b[k])
			} else {
				q.AppendNull()
			}
		}
		return runLists(x, x.lambdas[2], rowOf, []*vector.Vector{p.Finish(), q.Finish()}, n)
	})
}

// runLists evaluates a lambda on parameter columns of any length.
func runLists(x *evalCall, l *lambdaProgram, rowOf []int32, params []*vector.Vector, n int) ([]vector.Value, error) {
	e := &elements{kids: params, rowOf: rowOf}
	for k := range n {
		e.at = append(e.at, int32(k))
	}
	return e.run(x, l)
}

func mapZipWith(x *evalCall, out *vector.Vector) error {
	kt := keyType(x.args[0])
	vt, ut := x.args[0].Type.Fields[1].Type, x.args[1].Type.Fields[1].Type
	return forRows(x, out, func(i int) (vector.Value, error) {
		a, b := x.args[0].Get(i).([]vector.Pair), x.args[1].Get(i).([]vector.Pair)
		ks, p, q := vector.NewBuilder(kt), vector.NewBuilder(vt), vector.NewBuilder(ut)
		var keys []vector.Value
		add := func(k, v, u vector.Value) {
			keys = append(keys, k)
			ks.Append(k)
			p.Append(v)
			q.Append(u)
		}
		for _, e := range a {
			var u vector.Value
			if j := findKey(kt, b, e.Key); j >= 0 {
				u = b[j].Value
			}
			add(e.Key, e.Value, u)
		}
		for _, e := range b {
			if findKey(kt, a, e.Key) < 0 {
				add(e.Key, nil, e.Value)
			}
		}
		rowOf := make([]int32, len(keys))
		for k := range rowOf {
			rowOf[k] = int32(i)
		}
		rs, err := runLists(x, x.lambdas[2], rowOf, []*vector.Vector{ks.Finish(), p.Finish(), q.Finish()}, len(keys))
		if err != nil {
			return nil, err
		}
		out := make([]vector.Pair, len(keys))
		for k := range keys {
			out[k] = vector.Pair{Key: keys[k], Value: rs[k]}
		}
		return out, nil
	})
}
