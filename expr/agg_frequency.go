package expr

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// counted is a value of a frequent-values summary with its count; age tells which of equals is the oldest.
type counted struct {
	v     vector.Value
	count int64
	age   int64
	at    int // position in the heap
}

// frequent is a Space-Saving summary (Metwally et al. 2005): at most capacity values are counted, and a new one takes the place
// and the count of the rarest. A count is never too low, and exact while there are no more values than the capacity.
type frequent struct {
	buckets, capacity int64
	clock             int64
	rarest            []*counted
	of                map[vector.Value]*counted
}

func (f *frequent) Len() int { return len(f.rarest) }
func (f *frequent) Less(i, j int) bool {
	a, b := f.rarest[i], f.rarest[j]
	return a.count < b.count || a.count == b.count && a.age < b.age
}
func (f *frequent) Swap(i, j int) {
	f.rarest[i], f.rarest[j] = f.rarest[j], f.rarest[i]
	f.rarest[i].at, f.rarest[j].at = i, j
}
func (f *frequent) Push(x any) {
	c := x.(*counted)
	c.at = len(f.rarest)
	f.rarest = append(f.rarest, c)
}
func (f *frequent) Pop() any {
	c := f.rarest[len(f.rarest)-1]
	f.rarest = f.rarest[:len(f.rarest)-1]
	return c
}

// note counts a value and gives the memory it took.
func (f *frequent) note(v vector.Value, n int64) int64 {
	if f.of == nil {
		f.of = map[vector.Value]*counted{}
	}
	f.clock++
	if c := f.of[v]; c != nil {
		c.count, c.age = c.count+n, f.clock
		heap.Fix(f, c.at)
		return 0
	}
	if int64(len(f.rarest)) < f.capacity {
		c := &counted{v: v, count: n, age: f.clock}
		f.of[v] = c
		heap.Push(f, c)
		return 96 + valueBytes(v)
	}
	c := f.rarest[0]
	delete(f.of, c.v)
	grown := valueBytes(v) - valueBytes(c.v)
	c.v, c.count, c.age = v, c.count+n, f.clock
	f.of[v] = c
	heap.Fix(f, 0)
	return grown
}

func init() {
	mk := func(a *Aggregate, _ *Context) (Accumulator, error) {
		return &stateAcc[frequent]{t: a.Typ, size: 64,
			add: func(s *frequent, args []*vector.Vector, i int) (int64, error) {
				if args[1].IsNull(i) || args[2].IsNull(i) {
					return 0, nil
				}
				if s.capacity == 0 {
					s.buckets, s.capacity = args[0].Get(i).(int64), args[2].Get(i).(int64)
					if s.buckets < 2 {
						return 0, badArgument("%s: the number of values must be greater than one, not %d", a.Fn.Name, s.buckets)
					}
					if s.capacity < 1 {
						return 0, badArgument("%s: the capacity must be positive, not %d", a.Fn.Name, s.capacity)
					}
				}
				return s.note(args[1].Get(i), 1), nil
			},
			merge: func(a, b *frequent) error {
				if b.capacity == 0 {
					return nil
				}
				a.buckets, a.capacity = b.buckets, b.capacity
				for _, c := range b.rarest {
					a.note(c.v, c.count)
				}
				return nil
			},
			result: func(s *frequent) (vector.Value, error) {
				if len(s.rarest) == 0 {
					return nil, nil
				}
				top := slices.Clone(s.rarest)
				slices.SortFunc(top, func(x, y *counted) int {
					return cmp.Or(cmp.Compare(y.count, x.count), cmp.Compare(x.age, y.age))
				})
				out := []vector.Pair{}
				for _, c := range top[:min(int64(len(top)), s.buckets)] {
					out = append(out, vector.Pair{Key: c.v, Value: c.count})
				}
				return out, nil
			}}, nil
	}
	doc := "the most frequent values, so many, with their counts; exact while there are no more values than the last argument"
	defAgg("approx_most_frequent", "(bigint, bigint, bigint) map(bigint, bigint)", doc, mk)
	defAgg("approx_most_frequent", "(bigint, varchar, bigint) map(varchar, bigint)", doc, mk)
	defAgg("checksum", "(any) varbinary", "a checksum of all values that does not depend on their order", newChecksum, func(s *aggSig) {
		s.check = func(args []Expr) error {
			if _, ok := hasher(args[0].Type()); !ok {
				return fault.WithID(fault.Unsupported, "NOT_SUPPORTED", "checksum of values of type %s is not supported", args[0].Type())
			}
			return nil
		}
	})
}

// checksumPrime multiplies each hash, and stands for a null.
const checksumPrime = 0x9E3779B185EBCA87

type sum64 struct {
	sum  uint64
	some bool
}

func newChecksum(a *Aggregate, _ *Context) (Accumulator, error) {
	hash, ok := hasher(a.Args[0].Type())
	if !ok {
		return nil, internal("no hash of type %s", a.Args[0].Type())
	}
	return &stateAcc[sum64]{t: a.Typ, takesNull: true,
		add: func(s *sum64, args []*vector.Vector, i int) (int64, error) {
			h := uint64(1)
			if !args[0].IsNull(i) {
				h = hash(args[0], i)
			}
			s.sum, s.some = s.sum+h*checksumPrime, true
			return 0, nil
		},
		merge: func(a, b *sum64) error { a.sum, a.some = a.sum+b.sum, a.some || b.some; return nil },
		result: func(s *sum64) (vector.Value, error) {
			if !s.some {
				return nil, nil
			}
			return string(binary.LittleEndian.AppendUint64(nil, s.sum)), nil
		}}, nil
}

// hasher gives the xxHash64 of values of a type as they lie in 64 bits, or of their bytes.
func hasher(t vector.Type) (func(v *vector.Vector, i int) uint64, bool) {
	word := func(x uint64) uint64 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x)
		return xxhash.Sum64(b[:])
	}
	switch t.Kind {
	case vector.Null:
		return func(*vector.Vector, int) uint64 { return 1 }, true
	case vector.Boolean:
		return func(v *vector.Vector, i int) uint64 {
			if v.Values().Bools[v.Index(i)] {
				return word(1)
			}
			return word(0)
		}, true
	case vector.Varchar, vector.Varbinary:
		return func(v *vector.Vector, i int) uint64 { return xxhash.Sum64(v.Bytes(i)) }, true
	case vector.Double:
		return func(v *vector.Vector, i int) uint64 {
			f := v.Values().F64[v.Index(i)]
			switch {
			case f == 0:
				f = 0
			case f != f:
				return word(0x7ff8000000000000)
			}
			return word(math.Float64bits(f))
		}, true
	case vector.Real:
		return func(v *vector.Vector, i int) uint64 {
			f := v.Values().F32[v.Index(i)]
			switch {
			case f == 0:
				f = 0
			case f != f:
				return word(0x7fc00000)
			}
			return word(uint64(int64(int32(math.Float32bits(f)))))
		}, true
	case vector.IntervalDay:
		return func(v *vector.Vector, i int) uint64 { return word(uint64(v.Values().I64[v.Index(i)] / 1000)) }, true
	case vector.Time:
		// Picoseconds; the vector has microseconds.
		return func(v *vector.Vector, i int) uint64 { return word(uint64(v.Values().I64[v.Index(i)] * 1_000_000)) }, t.Precision <= 6
	case vector.TimestampTZ:
		return func(v *vector.Vector, i int) uint64 { return word(uint64(v.Values().I64[v.Index(i)] / 1000)) }, t.Precision <= 3
	case vector.IntervalYear:
	case vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt, vector.Date:
	case vector.Decimal:
		if t.Physical() != vector.PInt64 {
			return nil, false
		}
	case vector.Timestamp:
		if t.Precision > 6 {
			return nil, false
		}
	default:
		return nil, false
	}
	return func(v *vector.Vector, i int) uint64 {
		s, j := v.Values(), v.Index(i)
		if s.I64 != nil {
			return word(uint64(s.I64[j]))
		}
		return word(uint64(int64(s.I32[j])))
	}, true
}
