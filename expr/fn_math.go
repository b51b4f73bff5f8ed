package expr

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

func init() {
	for name, f := range map[string]struct {
		doc string
		f   func(float64) float64
	}{
		"sqrt": {"square root", math.Sqrt}, "cbrt": {"cube root", math.Cbrt}, "exp": {"e to the power", math.Exp}, "ln": {"natural logarithm", math.Log},
		"log2": {"logarithm to base 2", math.Log2}, "log10": {"logarithm to base 10", math.Log10}, "sin": {"sine", math.Sin}, "cos": {"cosine", math.Cos},
		"tan": {"tangent", math.Tan}, "asin": {"arc sine", math.Asin}, "acos": {"arc cosine", math.Acos}, "atan": {"arc tangent", math.Atan},
		"sinh": {"hyperbolic sine", math.Sinh}, "cosh": {"hyperbolic cosine", math.Cosh}, "tanh": {"hyperbolic tangent", math.Tanh},
		"degrees": {"radians in degrees", func(x float64) float64 { return x * 180 / math.Pi }},
		"radians": {"degrees in radians", func(x float64) float64 { return x * math.Pi / 180 }},
	} {
		def(name, "(double) double", f.doc, fn1(func(_ *evalCall, x float64) (float64, error) { return f.f(x), nil }))
	}
	def("atan2", "(double, double) double", "angle of the point (second, first)", fn2(func(_ *evalCall, y, x float64) (float64, error) { return math.Atan2(y, x), nil }))
	def("log", "(double, double) double", "logarithm of the second to the base of the first", fn2(func(_ *evalCall, b, x float64) (float64, error) { return math.Log(x) / math.Log(b), nil }))
	def("power pow", "(double, double) double", "the first to the power of the second", fn2(func(_ *evalCall, a, b float64) (float64, error) { return math.Pow(a, b), nil }))
	def("pi", "() double", "the circle's constant", fn0(func(*evalCall) (float64, error) { return math.Pi, nil }))
	def("e", "() double", "Euler's number", fn0(func(*evalCall) (float64, error) { return math.E, nil }))
	def("nan", "() double", "not a number", fn0(func(*evalCall) (float64, error) { return math.NaN(), nil }))
	def("infinity", "() double", "positive infinity", fn0(func(*evalCall) (float64, error) { return math.Inf(1), nil }))
	def("is_nan", "(double) boolean", "whether it is not a number", fn1(func(_ *evalCall, x float64) (bool, error) { return x != x, nil }))
	def("is_finite", "(double) boolean", "whether it is a finite number", fn1(func(_ *evalCall, x float64) (bool, error) { return x-x == 0, nil }))
	def("is_infinite", "(double) boolean", "whether it is infinite", fn1(func(_ *evalCall, x float64) (bool, error) { return math.IsInf(x, 0), nil }))
	def("random rand", "() double", "a random number from 0 up to 1", fn0(func(*evalCall) (float64, error) { return rand.Float64(), nil }), volatile)
	def("random rand", "(bigint) bigint", "a random number from 0 up to the argument", fn1(func(_ *evalCall, n int64) (int64, error) {
		if n <= 0 {
			return 0, badArgument("random needs a positive bound, not %d", n)
		}
		return rand.Int64N(n), nil
	}), volatile)
	def("random rand", "(bigint, bigint) bigint", "a random number from the first up to the second argument", fn2(func(_ *evalCall, a, b int64) (int64, error) {
		if b <= a || b-a <= 0 {
			return 0, badArgument("random needs an interval, not %d to %d", a, b)
		}
		return a + rand.Int64N(b-a), nil
	}), volatile)
	def("random rand", "(integer) integer", "a random number from 0 up to the argument", fn1(func(_ *evalCall, n int32) (int32, error) {
		if n <= 0 {
			return 0, badArgument("random needs a positive bound, not %d", n)
		}
		return rand.Int32N(n), nil
	}), volatile)
	def("random rand", "(integer, integer) integer", "a random number from the first up to the second argument", fn2(func(_ *evalCall, a, b int32) (int32, error) {
		if b <= a {
			return 0, badArgument("random needs an interval, not %d to %d", a, b)
		}
		return int32(int64(a) + rand.Int64N(int64(b)-int64(a))), nil
	}), volatile)
	for _, k := range []string{"tinyint", "smallint", "integer", "bigint"} {
		lo, _ := integerRange(patternKinds[k])
		def("abs", "("+k+") "+k, "absolute value", fn1(func(_ *evalCall, x int64) (int64, error) {
			if x == lo {
				return 0, overflow("abs(%d) does not fit %s", x, k)
			}
			if x < 0 {
				x = -x
			}
			return x, nil
		}))
		def("sign", "("+k+") "+k, "-1, 0 or 1", fn1(func(_ *evalCall, x int64) (int64, error) {
			switch {
			case x < 0:
				return -1, nil
			case x > 0:
				return 1, nil
			}
			return 0, nil
		}))
		same := fn1(func(_ *evalCall, x int64) (int64, error) { return x, nil })
		def("ceil ceiling floor round truncate", "("+k+") "+k, "the number itself", same)
		def("round", "("+k+", bigint) "+k, "rounded to decimal places, or to powers of ten", fn2(func(_ *evalCall, x, d int64) (int64, error) {
			if d >= 0 {
				return x, nil
			}
			if d < -18 {
				return 0, nil
			}
			p := pow10i64[-d]
			q := divRound64(x, p)
			r := mulI64(q, p)
			_, hi := integerRange(patternKinds[k])
			if !fits64(r) || int64(r.LowBits()) > hi || int64(r.LowBits()) < lo {
				return 0, overflow("round(%d, %d) does not fit %s", x, d, k)
			}
			return q * p, nil
		}))
	}
	floatMath[float64]("double")
	floatMath[float32]("real")
	decimalMath()
	bitwise()
	def("width_bucket", "(double, double, double, bigint) bigint", "number of the bucket among equal ones", fn4(func(_ *evalCall, x, lo, hi float64, n int64) (int64, error) {
		switch {
		case n <= 0:
			return 0, badArgument("width_bucket: the number of buckets must be positive")
		case x != x || lo == hi || lo-lo != 0 || hi-hi != 0:
			return 0, badArgument("width_bucket: the bounds must be finite and different")
		}
		if lo > hi {
			x, lo, hi = -x, -lo, -hi
		}
		switch {
		case x < lo:
			return 0, nil
		case x >= hi:
			return n + 1, nil
		}
		return int64(float64(n)*(x-lo)/(hi-lo)) + 1, nil
	}))
	def("from_base", "(varchar, bigint) bigint", "the number that a text spells in a base", fn2(func(_ *evalCall, s string, b int64) (int64, error) {
		if b < 2 || b > 36 {
			return 0, badArgument("a base is between 2 and 36, not %d", b)
		}
		n, err := strconv.ParseInt(s, int(b), 64)
		if err != nil {
			return 0, badArgument("%q is no number in base %d", s, b)
		}
		return n, nil
	}))
	def("to_base", "(bigint, bigint) varchar", "the text of a number in a base", fn2(func(_ *evalCall, n, b int64) (string, error) {
		if b < 2 || b > 36 {
			return "", badArgument("a base is between 2 and 36, not %d", b)
		}
		return strconv.FormatInt(n, int(b)), nil
	}))
	def("gcd", "(bigint, bigint) bigint", "greatest common divisor", fn2(func(_ *evalCall, a, b int64) (int64, error) {
		for b != 0 {
			a, b = b, a%b
		}
		if a < 0 {
			a = -a
		}
		return a, nil
	}))
	def("cosine_distance", "(array(double), array(double)) double", "1 minus the cosine of the angle", fn2(func(_ *evalCall, a, b []vector.Value) (float64, error) {
		s, err := cosine(a, b)
		return 1 - s, err
	}), mayNull)
	def("cosine_similarity", "(array(double), array(double)) double", "the cosine of the angle", fn2(func(_ *evalCall, a, b []vector.Value) (float64, error) { return cosine(a, b) }), mayNull)
}

func cosine(a, b []vector.Value) (float64, error) {
	if len(a) != len(b) {
		return 0, badArgument("the vectors have %d and %d elements", len(a), len(b))
	}
	var dot, x2, y2 float64
	for i := range a {
		x, ok1 := a[i].(float64)
		y, ok2 := b[i].(float64)
		if !ok1 || !ok2 {
			return 0, errNull
		}
		dot, x2, y2 = dot+x*y, x2+x*x, y2+y*y
	}
	if x2 == 0 || y2 == 0 {
		return 0, badArgument("a vector of length 0 has no angle")
	}
	return dot / (math.Sqrt(x2) * math.Sqrt(y2)), nil
}

func floatMath[T float32 | float64](k string) {
	one := "(" + k + ") " + k
	def("abs", one, "absolute value", fn1(func(_ *evalCall, x T) (T, error) { return T(math.Abs(float64(x))), nil }))
	def("ceil ceiling", one, "next integer above", fn1(func(_ *evalCall, x T) (T, error) { return T(math.Ceil(float64(x))), nil }))
	def("floor", one, "next integer below", fn1(func(_ *evalCall, x T) (T, error) { return T(math.Floor(float64(x))), nil }))
	def("truncate trunc", one, "without its fraction", fn1(func(_ *evalCall, x T) (T, error) { return T(math.Trunc(float64(x))), nil }))
	def("round", one, "nearest integer, halves away from zero", fn1(func(_ *evalCall, x T) (T, error) { return T(math.Round(float64(x))), nil }))
	def("sign", one, "-1, 0 or 1; NaN of NaN", fn1(func(_ *evalCall, x T) (T, error) {
		switch {
		case x > 0:
			return 1, nil
		case x < 0:
			return -1, nil
		}
		return x, nil
	}))
	def("round", "("+k+", bigint) "+k, "rounded to decimal places", fn2(func(_ *evalCall, x T, d int64) (T, error) {
		f := float64(x)
		if f-f != 0 || d > 300 {
			return x, nil
		}
		if d < -300 {
			return 0, nil
		}
		p := math.Pow10(int(d))
		if s := f * p; !math.IsInf(s, 0) {
			return T(math.Round(s) / p), nil
		}
		return x, nil
	}))
	def("truncate trunc", "("+k+", bigint) "+k, "cut to decimal places", fn2(func(_ *evalCall, x T, d int64) (T, error) {
		f := float64(x)
		if f-f != 0 || d > 300 || d < -300 {
			return x, nil
		}
		p := math.Pow10(int(d))
		if s := f * p; !math.IsInf(s, 0) {
			return T(math.Trunc(s) / p), nil
		}
		return x, nil
	}))
	def("format_number", "("+k+") varchar", "with a unit for thousands", fn1(func(_ *evalCall, x T) (string, error) { return formatNumber(float64(x)), nil }))
}

func formatNumber(f float64) string {
	unit := ""
	for _, u := range []string{"K", "M", "B", "T", "Q"} {
		if math.Abs(f) < 1000 {
			break
		}
		f /= 1000
		unit = u
	}
	return fmt.Sprintf("%.3g%s", f, unit)
}

func decimalMath() {
	whole := returns(func(t []vector.Type) (vector.Type, error) {
		p := t[0].Precision - t[0].Scale + min(t[0].Scale, 1)
		return vector.DecimalOf(min(maxPrecision, max(p, 1)), 0), nil
	})
	cut := returns(func(t []vector.Type) (vector.Type, error) {
		return vector.DecimalOf(max(t[0].Precision-t[0].Scale, 1), 0), nil
	})
	same := returns(func(t []vector.Type) (vector.Type, error) { return t[0], nil })
	def("abs", "(decimal) decimal", "absolute value", fn1(func(_ *evalCall, x vector.Int128) (vector.Int128, error) { return x.Abs(), nil }), same)
	def("sign", "(decimal) decimal", "-1, 0 or 1", fn1(func(_ *evalCall, x vector.Int128) (vector.Int128, error) { return int128(int64(x.Sign())), nil }),
		returns(func([]vector.Type) (vector.Type, error) { return vector.DecimalOf(1, 0), nil }))
	// toward: 0 half away from zero, 1 up, -1 down, 2 towards zero.
	to := func(toward int) func(*binding) (kernel, error) {
		return func(b *binding) (kernel, error) {
			s := b.args[0].Type().Scale
			return fn1(func(_ *evalCall, x vector.Int128) (vector.Int128, error) { return roundDecimal(x, s, toward), nil }), nil
		}
	}
	def("round", "(decimal) decimal", "nearest integer, halves away from zero", nil, whole, made(to(0)))
	def("ceil ceiling", "(decimal) decimal", "next integer above", nil, whole, made(to(1)))
	def("floor", "(decimal) decimal", "next integer below", nil, whole, made(to(-1)))
	def("truncate trunc", "(decimal) decimal", "without its fraction", nil, cut, made(to(2)))
	places := func(toward int) func(*binding) (kernel, error) {
		return func(b *binding) (kernel, error) {
			s, ret := b.args[0].Type().Scale, b.ret
			return fn2(func(_ *evalCall, x vector.Int128, d int64) (vector.Int128, error) {
				k := int64(s) - d
				if k <= 0 {
					return x, nil
				}
				if k > 38 {
					return vector.Int128{}, nil
				}
				r, ok := mul128(roundDecimal(x, int(k), toward), pow10i128[k])
				if !ok || !inDecimal(r, ret.Precision) {
					return r, overflow("decimal overflow in round")
				}
				return r, nil
			}), nil
		}
	}
	def("round", "(decimal, bigint) decimal", "rounded to decimal places", nil, made(places(0)),
		returns(func(t []vector.Type) (vector.Type, error) {
			return vector.DecimalOf(min(maxPrecision, t[0].Precision+1), t[0].Scale), nil
		}))
	def("truncate trunc", "(decimal, bigint) decimal", "cut to decimal places", nil, made(places(2)), same)
}

func roundDecimal(x vector.Int128, digits, toward int) vector.Int128 {
	if digits == 0 {
		return x
	}
	p := pow10i128[digits]
	if toward == 0 {
		return divRound128(x, p)
	}
	q, r := new(big.Int).QuoRem(x.BigInt(), p.BigInt(), new(big.Int))
	switch {
	case toward == 1 && r.Sign() > 0:
		q.Add(q, big.NewInt(1))
	case toward == -1 && r.Sign() < 0:
		q.Sub(q, big.NewInt(1))
	}
	return decimal128.FromBigInt(q)
}

func bitwise() {
	two := func(names, doc string, f func(a, b int64) int64) {
		def(names, "(bigint, bigint) bigint", doc, fn2(func(_ *evalCall, a, b int64) (int64, error) { return f(a, b), nil }))
	}
	two("bitwise_and", "bits set in both", func(a, b int64) int64 { return a & b })
	two("bitwise_or", "bits set in either", func(a, b int64) int64 { return a | b })
	two("bitwise_xor", "bits set in one only", func(a, b int64) int64 { return a ^ b })
	// A shift stays within the bits of its first argument.
	for i, k := range []string{"bigint", "integer", "smallint", "tinyint"} {
		bits := uint(64) >> i
		shift := func(name, doc string, f func(a int64, by uint64) int64) {
			def(name, "("+k+", bigint) "+k, doc, fn2(func(_ *evalCall, a, b int64) (int64, error) {
				return f(a, uint64(b)) << (64 - bits) >> (64 - bits), nil
			}))
		}
		shift("bitwise_left_shift", "bits moved up", func(a int64, by uint64) int64 { return a << min(by, 64) })
		shift("bitwise_right_shift", "bits moved down, zeros moved in", func(a int64, by uint64) int64 {
			return int64(uint64(a) << (64 - bits) >> (64 - bits) >> min(by, 64))
		})
		shift("bitwise_right_shift_arithmetic", "bits moved down, the sign moved in", func(a int64, by uint64) int64 { return a >> min(by, 63) })
	}
	def("bitwise_not", "(bigint) bigint", "bits inverted", fn1(func(_ *evalCall, a int64) (int64, error) { return ^a, nil }))
	def("bit_count", "(bigint, bigint) bigint", "set bits in a two's complement of so many bits", fn2(func(_ *evalCall, a, n int64) (int64, error) {
		if n < 2 || n > 64 {
			return 0, badArgument("bit_count: bits must be between 2 and 64, not %d", n)
		}
		if n < 64 {
			if a < -(1<<(n-1)) || a >= 1<<(n-1) {
				return 0, badArgument("bit_count: %d does not fit %d bits", a, n)
			}
			a &= 1<<n - 1
		}
		c := int64(0)
		for x := uint64(a); x != 0; x &= x - 1 {
			c++
		}
		return c, nil
	}))
}
