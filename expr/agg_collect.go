package expr

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/skua-db/skua/vector"
)

func inOrder(s *aggSig) { s.ordered = true }

// values of a group in the order they came.
type list struct {
	vs   []vector.Value
	some bool
}

// listAcc gathers the values of a group; finish makes the answer of them, which for no value is NULL.
func listAcc(a *Aggregate, takesNull bool, finish func([]vector.Value) vector.Value) *stateAcc[list] {
	return &stateAcc[list]{t: a.Typ, takesNull: takesNull, size: 32,
		add: func(s *list, args []*vector.Vector, i int) (int64, error) {
			v := args[0].Get(i)
			s.vs, s.some = append(s.vs, v), true
			return valueBytes(v), nil
		},
		merge: func(a, b *list) error { a.vs, a.some = append(a.vs, b.vs...), a.some || b.some; return nil },
		result: func(s *list) (vector.Value, error) {
			if !s.some {
				return nil, nil
			}
			return finish(s.vs), nil
		}}
}

func init() {
	defAgg("array_agg list collect_list", "(T) array(T)", "array of the values", func(a *Aggregate, _ *Context) (Accumulator, error) {
		return listAcc(a, true, func(vs []vector.Value) vector.Value { return vs }), nil
	}, inOrder)
	type text struct {
		b    strings.Builder
		sep  string
		some bool
	}
	mkText := func(a *Aggregate, _ *Context) (Accumulator, error) {
		return &stateAcc[*text]{t: varchar, size: 48,
			add: func(s **text, args []*vector.Vector, i int) (int64, error) {
				if *s == nil {
					*s = &text{}
				}
				t := *s
				before := t.b.Len()
				if len(args) > 1 && len(a.Args) > 1 && !args[1].IsNull(i) {
					t.sep = string(args[1].Bytes(i))
				}
				if t.some {
					t.b.WriteString(t.sep)
				}
				t.b.Write(args[0].Bytes(i))
				t.some = true
				return int64(t.b.Len() - before), nil
			},
			merge: func(a, b **text) error {
				switch {
				case *b == nil:
				case *a == nil:
					*a = *b
				default:
					(*a).b.WriteString((*b).sep)
					(*a).b.WriteString((*b).b.String())
				}
				return nil
			},
			result: func(s **text) (vector.Value, error) {
				if *s == nil {
					return nil, nil
				}
				return (*s).b.String(), nil
			}}, nil
	}
	defAgg("listagg string_agg group_concat", "(varchar) varchar", "the texts one after the other", mkText, inOrder)
	defAgg("listagg string_agg group_concat", "(varchar, varchar) varchar", "the texts with a separator", mkText, inOrder)
	mapAggregates()
	byAggregates()
	bitAggregates()
	defAgg("approx_distinct", "(any) bigint", "about how many distinct values", func(a *Aggregate, _ *Context) (Accumulator, error) { return newSketch(a), nil }, func(s *aggSig) { s.notNull = true })
	defAgg("approx_distinct", "(any, double) bigint", "about how many distinct values; the standard error is 2.3 %, whatever is asked for", func(a *Aggregate, _ *Context) (Accumulator, error) { return newSketch(a), nil },
		func(s *aggSig) { s.notNull = true })
	defAgg("set_agg collect_set", "(T) array(T)", "array of the distinct values", func(a *Aggregate, _ *Context) (Accumulator, error) {
		t := a.Args[0].Type()
		return listAcc(a, false, func(vs []vector.Value) vector.Value { return distinct(t, vs) }), nil
	}, inOrder)
}

// entries of a map being built; at finds a key by its encoding.
type entries struct {
	ps []vector.Pair
	at map[string]int
}

func (e *entries) put(t vector.Type, k vector.Value, update func(p *vector.Pair, fresh bool)) {
	if e.at == nil {
		e.at = map[string]int{}
	}
	key := (&valueSet{t: t}).key(k)
	i, ok := e.at[key]
	if !ok {
		i = len(e.ps)
		e.at[key] = i
		e.ps = append(e.ps, vector.Pair{Key: k})
	}
	update(&e.ps[i], !ok)
}

func mapAggregates() {
	first := func(v vector.Value) func(p *vector.Pair, fresh bool) {
		return func(p *vector.Pair, fresh bool) {
			if fresh {
				p.Value = v
			}
		}
	}
	mk := func(kt func(a *Aggregate) vector.Type, add func(s *entries, t vector.Type, args []*vector.Vector, i int) (int64, error), join func(p *vector.Pair, v vector.Value, fresh bool)) func(*Aggregate, *Context) (Accumulator, error) {
		return func(a *Aggregate, _ *Context) (Accumulator, error) {
			t := kt(a)
			return &stateAcc[entries]{t: a.Typ, size: 40,
				add: func(s *entries, args []*vector.Vector, i int) (int64, error) { return add(s, t, args, i) },
				merge: func(a, b *entries) error {
					for _, p := range b.ps {
						a.put(t, p.Key, func(q *vector.Pair, fresh bool) { join(q, p.Value, fresh) })
					}
					return nil
				},
				result: func(s *entries) (vector.Value, error) {
					if s.at == nil {
						return nil, nil
					}
					return s.ps, nil
				}}, nil
		}
	}
	arg0 := func(a *Aggregate) vector.Type { return a.Args[0].Type() }
	keep := func(p *vector.Pair, v vector.Value, fresh bool) {
		if fresh {
			p.Value = v
		}
	}
	count := func(p *vector.Pair, v vector.Value, fresh bool) {
		if fresh {
			p.Value = int64(0)
		}
		p.Value = p.Value.(int64) + v.(int64)
	}
	collect := func(p *vector.Pair, v vector.Value, fresh bool) {
		if fresh {
			p.Value = []vector.Value{}
		}
		p.Value = append(p.Value.([]vector.Value), v.([]vector.Value)...)
	}
	defAgg("map_agg", "(K, V) map(K, V)", "a map of keys and values", mk(arg0, func(s *entries, t vector.Type, args []*vector.Vector, i int) (int64, error) {
		k, v := args[0].Get(i), args[1].Get(i)
		s.put(t, k, first(v))
		return valueBytes(k)*2 + valueBytes(v), nil
	}, keep), inOrder)
	defAgg("multimap_agg", "(K, V) map(K, array(V))", "a map of keys and all their values", mk(arg0, func(s *entries, t vector.Type, args []*vector.Vector, i int) (int64, error) {
		k, v := args[0].Get(i), args[1].Get(i)
		s.put(t, k, func(p *vector.Pair, fresh bool) { collect(p, []vector.Value{v}, fresh) })
		return valueBytes(k)*2 + valueBytes(v), nil
	}, collect), inOrder)
	defAgg("histogram", "(K) map(K, bigint)", "number of each value", mk(arg0, func(s *entries, t vector.Type, args []*vector.Vector, i int) (int64, error) {
		k := args[0].Get(i)
		s.put(t, k, func(p *vector.Pair, fresh bool) { count(p, int64(1), fresh) })
		return valueBytes(k), nil
	}, count))
	defAgg("map_union", "(map(K, V)) map(K, V)", "the entries of all maps", mk(func(a *Aggregate) vector.Type { return a.Args[0].Type().Fields[0].Type },
		func(s *entries, t vector.Type, args []*vector.Vector, i int) (int64, error) {
			n := int64(0)
			if s.at == nil {
				s.at = map[string]int{}
			}
			for _, p := range args[0].Get(i).([]vector.Pair) {
				s.put(t, p.Key, first(p.Value))
				n += valueBytes(p.Key)*2 + valueBytes(p.Value)
			}
			return n, nil
		}, keep), inOrder)
}

// ranked is a value with what it is ranked by.
type ranked struct{ v, by vector.Value }

type bests struct {
	top []ranked
	n   int64
}

// byAggregates registers min_by and max_by, and min and max of several values.
func byAggregates() {
	for name, want := range map[string]int{"min": -1, "max": 1} {
		mk := func(by int, count int) func(a *Aggregate, _ *Context) (Accumulator, error) {
			return func(a *Aggregate, _ *Context) (Accumulator, error) {
				t := a.Args[by].Type()
				better := func(x, y vector.Value) bool {
					nx, ny := isNaN(x), isNaN(y)
					if nx || ny {
						return ny && !nx
					}
					return CompareValues(t, x, y)*want > 0
				}
				insert := func(s *bests, r ranked, limit int64) {
					at := len(s.top)
					for at > 0 && better(r.by, s.top[at-1].by) {
						at--
					}
					if int64(at) >= limit {
						return
					}
					s.top = slices.Insert(s.top, at, r)
					if int64(len(s.top)) > limit {
						s.top = s.top[:limit]
					}
				}
				return &stateAcc[bests]{t: a.Typ, takesNull: true, size: 40,
					add: func(s *bests, args []*vector.Vector, i int) (int64, error) {
						if args[by].IsNull(i) {
							return 0, nil
						}
						limit := int64(1)
						if count >= 0 {
							if args[count].IsNull(i) {
								return 0, badArgument("%s: the number of values must not be null", a.Fn.Name)
							}
							if limit = args[count].I64[args[count].Index(i)]; limit < 1 || limit > 10000 {
								return 0, badArgument("%s: the number of values must be between 1 and 10000, not %d", a.Fn.Name, limit)
							}
						}
						s.n = limit
						r := ranked{by: args[by].Get(i)}
						if int64(len(s.top)) == limit && !better(r.by, s.top[limit-1].by) {
							return 0, nil
						}
						r.v = args[0].Get(i)
						insert(s, r, limit)
						return valueBytes(r.v), nil
					},
					merge: func(a, b *bests) error {
						a.n = max(a.n, b.n)
						for _, r := range b.top {
							insert(a, r, a.n)
						}
						return nil
					},
					result: func(s *bests) (vector.Value, error) {
						if len(s.top) == 0 {
							return nil, nil
						}
						if count < 0 {
							return s.top[0].v, nil
						}
						out := make([]vector.Value, len(s.top))
						for i, r := range s.top {
							out[i] = r.v
						}
						return out, nil
					}}, nil
			}
		}
		extreme := map[int]string{-1: "smallest", 1: "largest"}[want]
		defAgg(name+"_by", "(T, U) T", "the value of the row with the "+extreme+" second argument", mk(1, -1))
		defAgg(name+"_by", "(T, U, bigint) array(T)", "the values of the rows with the "+extreme+" second arguments", mk(1, 2))
		defAgg(name, "(T, bigint) array(T)", "the "+extreme+" values", mk(0, 1))
	}
}

type bitState struct {
	v    int64
	some bool
}

func bitAggregates() {
	for name, f := range map[string]func(a, b int64) int64{
		"bitwise_and_agg": func(a, b int64) int64 { return a & b },
		"bitwise_or_agg":  func(a, b int64) int64 { return a | b },
		"bitwise_xor_agg": func(a, b int64) int64 { return a ^ b },
	} {
		fold := func(s *bitState, x int64) {
			if s.some {
				x = f(s.v, x)
			}
			s.v, s.some = x, true
		}
		defAgg(name, "(bigint) bigint", "the bits of all values combined", func(*Aggregate, *Context) (Accumulator, error) {
			return &stateAcc[bitState]{t: bigint,
				add: func(s *bitState, a []*vector.Vector, i int) (int64, error) {
					fold(s, a[0].Values().I64[a[0].Index(i)])
					return 0, nil
				},
				merge: func(a, b *bitState) error {
					if b.some {
						fold(a, b.v)
					}
					return nil
				},
				result: func(s *bitState) (vector.Value, error) {
					if !s.some {
						return nil, nil
					}
					return s.v, nil
				}}, nil
		})
	}
}

// sketch is a HyperLogLog of 2,048 registers (Flajolet et al. 2007); up to 256 values it counts hashes exactly.
type sketch struct {
	exact map[uint64]struct{}
	regs  []uint8
}

const (
	sketchBits  = 11
	sketchExact = 256
)

func (s *sketch) add(h uint64) (grown int64) {
	if s.regs == nil {
		if s.exact == nil {
			s.exact = map[uint64]struct{}{}
		}
		if _, ok := s.exact[h]; ok {
			return 0
		}
		s.exact[h] = struct{}{}
		if len(s.exact) <= sketchExact {
			return 24
		}
		s.regs = make([]uint8, 1<<sketchBits)
		for x := range s.exact {
			s.note(x)
		}
		s.exact = nil
		return 0
	}
	s.note(h)
	return 0
}

func (s *sketch) note(h uint64) {
	i := h >> (64 - sketchBits)
	r := uint8(bits.LeadingZeros64(h<<sketchBits|1<<(sketchBits-1))) + 1
	if r > s.regs[i] {
		s.regs[i] = r
	}
}

func (s *sketch) estimate() int64 {
	if s.regs == nil {
		return int64(len(s.exact))
	}
	m := float64(len(s.regs))
	sum, zeros := 0.0, 0.0
	for _, r := range s.regs {
		sum += 1 / float64(uint64(1)<<r)
		if r == 0 {
			zeros++
		}
	}
	e := 0.7213 / (1 + 1.079/m) * m * m / sum
	if e <= 2.5*m && zeros > 0 {
		e = m * math.Log(m/zeros)
	}
	return int64(math.Round(e))
}

func newSketch(a *Aggregate) Accumulator {
	var key []byte
	return &stateAcc[sketch]{t: a.Typ, size: 32,
		add: func(s *sketch, args []*vector.Vector, i int) (int64, error) {
			key = AppendKey(key[:0], args[0], i)
			return s.add(xxhash.Sum64(key)), nil
		},
		merge: func(a, b *sketch) error {
			for h := range b.exact {
				a.add(h)
			}
			if b.regs != nil {
				if a.regs == nil {
					regs := slices.Clone(b.regs)
					old := a.exact
					a.exact, a.regs = nil, regs
					for h := range old {
						a.note(h)
					}
					return nil
				}
				for i, r := range b.regs {
					a.regs[i] = max(a.regs[i], r)
				}
			}
			return nil
		},
		result: func(s *sketch) (vector.Value, error) { return s.estimate(), nil }}
}
