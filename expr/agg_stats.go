package expr

import (
	"math"
	"slices"

	"github.com/skua-db/skua/vector"
)

// moments are count, mean and central power sums, kept by Welford's and Pébay's updates.
type moments struct{ n, mean, m2, m3, m4 float64 }

func (m *moments) add(x float64) {
	n1 := m.n
	m.n++
	d := x - m.mean
	dn := d / m.n
	dn2 := dn * dn
	t := d * dn * n1
	m.mean += dn
	m.m4 += t*dn2*(m.n*m.n-3*m.n+3) + 6*dn2*m.m2 - 4*dn*m.m3
	m.m3 += t*dn*(m.n-2) - 3*dn*m.m2
	m.m2 += t
}

func (m *moments) merge(o *moments) {
	if o.n == 0 {
		return
	}
	if m.n == 0 {
		*m = *o
		return
	}
	n := m.n + o.n
	d := o.mean - m.mean
	d2 := d * d
	m4 := m.m4 + o.m4 + d2*d2*m.n*o.n*(m.n*m.n-m.n*o.n+o.n*o.n)/(n*n*n) + 6*d2*(m.n*m.n*o.m2+o.n*o.n*m.m2)/(n*n) + 4*d*(m.n*o.m3-o.n*m.m3)/n
	m3 := m.m3 + o.m3 + d2*d*m.n*o.n*(m.n-o.n)/(n*n) + 3*d*(m.n*o.m2-o.n*m.m2)/n
	m2 := m.m2 + o.m2 + d2*m.n*o.n/n
	*m = moments{n, (m.n*m.mean + o.n*o.mean) / n, m2, m3, m4}
}

// pairs are the sums of two variables around their means.
type pairs struct{ n, mx, my, xx, yy, xy float64 }

func (p *pairs) add(x, y float64) {
	p.n++
	dx := x - p.mx
	p.mx += dx / p.n
	dy := y - p.my
	p.my += dy / p.n
	p.xx += dx * (x - p.mx)
	p.yy += dy * (y - p.my)
	p.xy += dx * (y - p.my)
}

func (p *pairs) merge(o *pairs) {
	if o.n == 0 {
		return
	}
	if p.n == 0 {
		*p = *o
		return
	}
	n := p.n + o.n
	dx, dy := o.mx-p.mx, o.my-p.my
	f := p.n * o.n / n
	*p = pairs{n, p.mx + dx*o.n/n, p.my + dy*o.n/n, p.xx + o.xx + dx*dx*f, p.yy + o.yy + dy*dy*f, p.xy + o.xy + dx*dy*f}
}

func init() {
	moment := func(names, doc string, least float64, f func(m *moments) float64) {
		mk := func(*Aggregate, *Context) (Accumulator, error) {
			return &stateAcc[moments]{t: double, size: 40,
				add:   func(s *moments, a []*vector.Vector, i int) (int64, error) { s.add(number(a[0], i)); return 0, nil },
				merge: func(a, b *moments) error { a.merge(b); return nil },
				result: func(s *moments) (vector.Value, error) {
					if s.n < least {
						return nil, nil
					}
					return f(s), nil
				}}, nil
		}
		defAgg(names, "(bigint) double", doc, mk)
		defAgg(names, "(double) double", doc, mk)
	}
	moment("stddev stddev_samp", "standard deviation of a sample", 2, func(m *moments) float64 { return math.Sqrt(m.m2 / (m.n - 1)) })
	moment("stddev_pop", "standard deviation of a population", 1, func(m *moments) float64 { return math.Sqrt(m.m2 / m.n) })
	moment("variance var_samp", "variance of a sample", 2, func(m *moments) float64 { return m.m2 / (m.n - 1) })
	moment("var_pop", "variance of a population", 1, func(m *moments) float64 { return m.m2 / m.n })
	moment("skewness", "skewness", 3, func(m *moments) float64 { return math.Sqrt(m.n) * m.m3 / math.Pow(m.m2, 1.5) })
	moment("kurtosis", "excess kurtosis", 4, func(m *moments) float64 {
		n := m.n
		return (n - 1) / ((n - 2) * (n - 3)) * (n*(n+1)*m.m4/(m.m2*m.m2) - 3*(n-1))
	})
	pairOf := func(name, doc string, t vector.Type, least float64, f func(p *pairs) (float64, bool)) {
		defAgg(name, "("+t.String()+", "+t.String()+") "+t.String(), doc, func(*Aggregate, *Context) (Accumulator, error) {
			return &stateAcc[pairs]{t: t, size: 48,
				// The first argument is the dependent variable y.
				add: func(s *pairs, a []*vector.Vector, i int) (int64, error) {
					if !a[1].IsNull(i) {
						s.add(number(a[1], i), number(a[0], i))
					}
					return 0, nil
				},
				merge: func(a, b *pairs) error { a.merge(b); return nil },
				result: func(s *pairs) (vector.Value, error) {
					if s.n < least {
						return nil, nil
					}
					r, ok := f(s)
					switch {
					case !ok:
						return nil, nil
					case t.Kind == vector.Real:
						return float32(r), nil
					}
					return r, nil
				}}, nil
		})
	}
	// Those of Trino give a real for reals, and for integers and decimals, which are nearer to real than to double.
	pair := func(name, doc string, least float64, f func(p *pairs) (float64, bool)) {
		switch name {
		case "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept":
			pairOf(name, doc, real32, least, f)
		}
		pairOf(name, doc, double, least, f)
	}
	always := func(x float64) (float64, bool) { return x, true }
	pair("covar_pop", "covariance of a population", 1, func(p *pairs) (float64, bool) { return always(p.xy / p.n) })
	pair("covar_samp", "covariance of a sample", 2, func(p *pairs) (float64, bool) { return always(p.xy / (p.n - 1)) })
	pair("corr", "correlation", 2, func(p *pairs) (float64, bool) { r := p.xy / math.Sqrt(p.xx*p.yy); return r, r == r })
	pair("regr_slope", "slope of the line through the points", 2, func(p *pairs) (float64, bool) { r := p.xy / p.xx; return r, p.xx != 0 })
	pair("regr_intercept", "intercept of the line through the points", 2, func(p *pairs) (float64, bool) { return p.my - p.xy/p.xx*p.mx, p.xx != 0 })
	pair("regr_count", "number of points", 0, func(p *pairs) (float64, bool) { return always(p.n) })
	pair("regr_avgx", "mean of the independent variable", 1, func(p *pairs) (float64, bool) { return always(p.mx) })
	pair("regr_avgy", "mean of the dependent variable", 1, func(p *pairs) (float64, bool) { return always(p.my) })
	pair("regr_sxx", "sum of squares of the independent variable", 1, func(p *pairs) (float64, bool) { return always(p.xx) })
	pair("regr_syy", "sum of squares of the dependent variable", 1, func(p *pairs) (float64, bool) { return always(p.yy) })
	pair("regr_sxy", "sum of products", 1, func(p *pairs) (float64, bool) { return always(p.xy) })
	pair("regr_r2", "square of the correlation", 1, func(p *pairs) (float64, bool) {
		if p.xx == 0 {
			return 0, false
		}
		if p.yy == 0 {
			return 1, true
		}
		return p.xy * p.xy / (p.xx * p.yy), true
	})
	type logs struct {
		n   int64
		sum float64
	}
	for _, t := range []vector.Type{bigint, real32, double} {
		ret := t
		if t.Kind == vector.BigInt {
			ret = double
		}
		defAgg("geometric_mean", "("+t.String()+") "+ret.String(), "geometric mean", func(*Aggregate, *Context) (Accumulator, error) {
			return &stateAcc[logs]{t: ret,
				add: func(s *logs, a []*vector.Vector, i int) (int64, error) {
					s.n++
					s.sum += math.Log(number(a[0], i))
					return 0, nil
				},
				merge: func(a, b *logs) error { a.n += b.n; a.sum += b.sum; return nil },
				result: func(s *logs) (vector.Value, error) {
					if s.n == 0 {
						return nil, nil
					}
					r := math.Exp(s.sum / float64(s.n))
					if ret.Kind == vector.Real {
						return float32(r), nil
					}
					return r, nil
				}}, nil
		})
	}
	percentiles()
}

// sample keeps all values of a group, to be ranked at the end.
type sample struct {
	values  []vector.Value
	weights []float64 // nil: all 1
	share   vector.Value
}

// percentiles registers the ranked aggregates. The approximate ones are exact: they keep the values, which are reserved like any
// other state.
func percentiles() {
	mk := func(weighted, interpolate bool) func(a *Aggregate, _ *Context) (Accumulator, error) {
		return func(a *Aggregate, _ *Context) (Accumulator, error) {
			t := a.Args[0].Type()
			approximate := a.Fn.Name == "approx_percentile"
			at := 1
			if weighted {
				at = 2
			}
			pick := func(s *sample, p float64) (vector.Value, error) {
				if !(p >= 0 && p <= 1) {
					return nil, badArgument("a percentile must be between 0 and 1, not %v", p)
				}
				if interpolate {
					x := p * float64(len(s.values)-1)
					lo := math.Floor(x)
					a, b := s.values[int(lo)].(float64), s.values[int(math.Ceil(x))].(float64)
					return a + (b-a)*(x-lo), nil
				}
				if s.weights == nil {
					if approximate {
						// As a t-digest answers: the value at the rank below, counted from 0.
						return s.values[min(int(p*float64(len(s.values))), len(s.values)-1)], nil
					}
					k := int(math.Ceil(p*float64(len(s.values)))) - 1
					return s.values[max(k, 0)], nil
				}
				total := 0.0
				for _, w := range s.weights {
					total += w
				}
				sum := 0.0
				for i, w := range s.weights {
					if sum += w; sum >= p*total {
						return s.values[i], nil
					}
				}
				return s.values[len(s.values)-1], nil
			}
			return &stateAcc[sample]{t: a.Typ, size: 64,
				add: func(s *sample, args []*vector.Vector, i int) (int64, error) {
					if weighted {
						if args[1].IsNull(i) {
							return 0, nil
						}
						w := number(args[1], i)
						if w <= 0 {
							return 0, badArgument("the weight of a percentile must be positive, not %v", w)
						}
						s.weights = append(s.weights, w)
					}
					s.values = append(s.values, args[0].Get(i))
					if s.share == nil {
						s.share = args[at].Get(i)
					}
					return 40, nil
				},
				merge: func(a, b *sample) error {
					a.values, a.weights = append(a.values, b.values...), append(a.weights, b.weights...)
					if a.share == nil {
						a.share = b.share
					}
					return nil
				},
				result: func(s *sample) (vector.Value, error) {
					if len(s.values) == 0 || s.share == nil {
						return nil, nil
					}
					order := make([]int, len(s.values))
					for i := range order {
						order[i] = i
					}
					slices.SortStableFunc(order, func(i, j int) int { return CompareValues(t, s.values[i], s.values[j]) })
					r := &sample{values: make([]vector.Value, len(order))}
					for k, i := range order {
						r.values[k] = s.values[i]
						if s.weights != nil {
							r.weights = append(r.weights, s.weights[i])
						}
					}
					switch p := s.share.(type) {
					case float64:
						return pick(r, p)
					case []vector.Value:
						out := make([]vector.Value, len(p))
						for k, q := range p {
							f, ok := q.(float64)
							if !ok {
								return nil, badArgument("a percentile must not be null")
							}
							v, err := pick(r, f)
							if err != nil {
								return nil, err
							}
							out[k] = v
						}
						return out, nil
					}
					return nil, nil
				}}, nil
		}
	}
	accuracy := func(s *aggSig) {
		s.check = func(args []Expr) error {
			if l, ok := args[3].(*Literal); ok {
				if f, ok := l.Value.(float64); ok && !(f > 0 && f < 1) {
					return badArgument("approx_percentile: the accuracy must be between 0 and 1, not %v", f)
				}
			}
			return nil
		}
	}
	for _, k := range []string{"bigint", "real", "double"} {
		defAgg("approx_percentile", "("+k+", double, double, double) "+k, "the value at a share of the weighted order, whatever accuracy is asked for", mk(true, false), accuracy)
		defAgg("approx_percentile", "("+k+", double) "+k, "the value at a share of the order", mk(false, false))
		defAgg("approx_percentile", "("+k+", array(double)) array("+k+")", "the values at shares of the order", mk(false, false))
		defAgg("approx_percentile", "("+k+", double, double) "+k, "the value at a share of the weighted order", mk(true, false))
		defAgg("approx_percentile", "("+k+", double, array(double)) array("+k+")", "the values at shares of the weighted order", mk(true, false))
	}
	defAgg("percentile_cont quantile_cont", "(double, double) double", "the value at a share of the order, interpolated", mk(false, true))
	defAgg("percentile_disc quantile_disc", "(T, double) T", "the value at a share of the order", mk(false, false))
	defAgg("median", "(double) double", "the middle value, interpolated", func(a *Aggregate, ctx *Context) (Accumulator, error) {
		acc, err := mk(false, true)(&Aggregate{Fn: a.Fn, Args: []Expr{a.Args[0], &Literal{Value: 0.5, Typ: double}}, Typ: double}, ctx)
		return &halved{acc}, err
	})
}

// halved feeds a percentile that has its share from no argument.
type halved struct{ Accumulator }

var halfVector = vector.NewConstant(double, 0.5)

func (h *halved) Add(groups []uint32, args []*vector.Vector, sel []uint16, n int) error {
	return h.Accumulator.Add(groups, []*vector.Vector{args[0], halfVector}, sel, n)
}

func (h *halved) Merge(src Accumulator, to []uint32) error {
	return h.Accumulator.Merge(src.(*halved).Accumulator, to)
}

// intervalAggregates registers the sum of months and the means of intervals.
func intervalAggregates() {
	type total struct{ sum, n int64 }
	mk := func(mean bool) func(a *Aggregate, _ *Context) (Accumulator, error) {
		return func(a *Aggregate, _ *Context) (Accumulator, error) {
			months := a.Typ.Kind == vector.IntervalYear
			return &stateAcc[total]{t: a.Typ,
				add: func(s *total, args []*vector.Vector, i int) (int64, error) {
					v, j := args[0].Values(), args[0].Index(i)
					x := int64(0)
					if months {
						x = int64(v.I32[j])
					} else {
						x = v.I64[j]
					}
					sum := s.sum + x
					if (sum > s.sum) != (x > 0) && x != 0 {
						return 0, overflow("the sum of intervals is out of range")
					}
					s.sum, s.n = sum, s.n+1
					return 0, nil
				},
				merge: func(a, b *total) error {
					sum := a.sum + b.sum
					if (sum > a.sum) != (b.sum > 0) && b.sum != 0 {
						return overflow("the sum of intervals is out of range")
					}
					a.sum, a.n = sum, a.n+b.n
					return nil
				},
				result: func(s *total) (vector.Value, error) {
					if s.n == 0 {
						return nil, nil
					}
					r := s.sum
					if mean {
						// Means are whole months or milliseconds, halves up.
						unit := 1000.0
						if months {
							unit = 1
						}
						r = int64(math.Floor(float64(s.sum)/float64(s.n)/unit+0.5) * unit)
					}
					if !months {
						return r, nil
					}
					if r != int64(int32(r)) {
						return nil, overflow("the sum of intervals is out of range")
					}
					return int32(r), nil
				}}, nil
		}
	}
	defAgg("sum", "(interval_year) interval_year", "sum", mk(false))
	defAgg("avg", "(interval_year) interval_year", "arithmetic mean, to the month", mk(true))
	defAgg("avg", "(interval_day) interval_day", "arithmetic mean, to the millisecond", mk(true))
}
