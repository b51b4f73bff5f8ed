package expr

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/skua-db/skua/vector"
)

// histogramSlack is how many values a histogram takes in before it joins buckets again.
const histogramSlack = 100

// bucket is a mean and the weight that lies there.
type bucket struct{ value, weight float64 }

// buckets is a histogram that joins the two neighbours that lose least (Ben-Haim and Tom-Tov 2010), its buckets not of equal width.
type buckets struct {
	limit int
	bs    []bucket
}

func (h *buckets) add(b bucket) (grown int64) {
	if len(h.bs) >= h.limit+histogramSlack {
		h.shrink()
	}
	before := cap(h.bs)
	h.bs = append(h.bs, b)
	return int64(cap(h.bs)-before) * 16
}

// shrink sorts the buckets, joins equal ones and then the cheapest neighbours until no more than limit remain.
func (h *buckets) shrink() {
	if len(h.bs) == 0 {
		return
	}
	slices.SortStableFunc(h.bs, func(a, b bucket) int { return cmp.Compare(a.value, b.value) })
	n := 0
	for _, b := range h.bs[1:] {
		if h.bs[n].value == b.value {
			h.bs[n].weight += b.weight
			continue
		}
		n++
		h.bs[n] = b
	}
	h.bs = h.bs[:n+1]
	if len(h.bs) <= h.limit {
		return
	}
	q := &joinQueue{}
	var last *joinable
	for i, b := range h.bs {
		e := &joinable{bucket: b, id: i, left: last}
		if last != nil {
			last.right = e
		}
		last = e
	}
	first := last
	for e := last; e != nil; e = e.left {
		first = e
		if e.right != nil {
			q.push(e)
		}
	}
	for left := len(h.bs); left > h.limit; {
		e := heap.Pop(q).(queued)
		if e.turn != e.of.turn {
			continue
		}
		a, b := e.of, e.of.right
		w := a.weight + b.weight
		a.bucket = bucket{(a.value*a.weight + b.value*b.weight) / w, w}
		a.turn++
		b.turn++
		a.right = b.right
		if a.right != nil {
			a.right.left = a
			q.push(a)
		}
		if a.left != nil {
			a.left.turn++
			q.push(a.left)
		}
		left--
	}
	h.bs = h.bs[:0]
	for e := first; e != nil; e = e.right {
		h.bs = append(h.bs, e.bucket)
	}
}

// joinable is a bucket in a list, with the turn in which it was last changed.
type joinable struct {
	bucket
	id, turn    int
	left, right *joinable
}

// queued is an offer to join a bucket with its right neighbour; it is void when the turn of the bucket has passed.
type queued struct {
	of   *joinable
	turn int
	loss float64
}

type joinQueue []queued

func (q *joinQueue) Len() int { return len(*q) }
func (q *joinQueue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	return a.loss < b.loss || a.loss == b.loss && a.of.id < b.of.id
}
func (q *joinQueue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }
func (q *joinQueue) Push(x any)    { *q = append(*q, x.(queued)) }
func (q *joinQueue) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

// push offers to join e with its right neighbour at the loss of squared distance.
func (q *joinQueue) push(e *joinable) {
	a, b := e.bucket, e.right.bucket
	w, d := a.weight+b.weight, a.value-b.value
	heap.Push(q, queued{e, e.turn, w * (d * d) * (a.weight * b.weight / (w * w))})
}

func init() {
	mk := func(a *Aggregate, _ *Context) (Accumulator, error) {
		small := a.Typ.Fields[0].Type.Kind == vector.Real
		of := func(f float64) vector.Value {
			if small {
				return float32(f)
			}
			return f
		}
		return &stateAcc[buckets]{t: a.Typ, size: 32,
			add: func(s *buckets, args []*vector.Vector, i int) (int64, error) {
				if args[1].IsNull(i) || len(a.Args) > 2 && args[2].IsNull(i) {
					return 0, nil
				}
				if s.limit == 0 {
					n := args[0].Get(i).(int64)
					if n < 2 || n > 1_000_000 {
						return 0, badArgument("numeric_histogram: the number of buckets must be greater than one and at most 1000000, not %d", n)
					}
					s.limit = int(n)
				}
				w := 1.0
				if len(a.Args) > 2 {
					w = number(args[2], i)
				}
				return s.add(bucket{number(args[1], i), w}), nil
			},
			merge: func(a, b *buckets) error {
				a.limit = max(a.limit, b.limit)
				for _, x := range b.bs {
					a.add(x)
				}
				return nil
			},
			result: func(s *buckets) (vector.Value, error) {
				if len(s.bs) == 0 {
					return nil, nil
				}
				s.shrink()
				out := make([]vector.Pair, len(s.bs))
				for i, b := range s.bs {
					out[i] = vector.Pair{Key: of(b.value), Value: of(b.weight)}
				}
				return out, nil
			}}, nil
	}
	// The overloads of real come first: integers go to real, as the oracle has it.
	for _, k := range []string{"real", "double"} {
		ret := " map(" + k + ", " + k + ")"
		defAgg("numeric_histogram", "(bigint, "+k+")"+ret, "the centres and weights of so many buckets", mk)
		defAgg("numeric_histogram", "(bigint, "+k+", double)"+ret, "the centres and weights of so many buckets of weighted values", mk)
	}
}
