package expr

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

var (
	pow10i64  [19]int64
	pow10i128 [39]vector.Int128
	maxDec    vector.Int128 // 10^38
)

func init() {
	p := int64(1)
	for i := range pow10i64 {
		pow10i64[i] = p
		p *= 10
	}
	b := big.NewInt(1)
	for i := range pow10i128 {
		pow10i128[i] = decimal128.FromBigInt(b)
		b = new(big.Int).Mul(b, big.NewInt(10))
	}
	maxDec = pow10i128[38]
}

func int128(x int64) vector.Int128 { return decimal128.FromI64(x) }

func overflow(format string, args ...any) error {
	return fault.WithID(fault.Invalid, "NUMERIC_VALUE_OUT_OF_RANGE", format, args...)
}

func divisionByZero() error {
	return fault.WithID(fault.Invalid, "DIVISION_BY_ZERO", "division by zero")
}

// inDecimal reports whether |x| < 10^p.
func inDecimal(x vector.Int128, p int) bool {
	m := pow10i128[p]
	return x.Cmp(m) < 0 && x.Cmp(m.Negate()) > 0
}

// add128 adds and reports whether the sum stays inside 128 bits.
func add128(a, b vector.Int128) (vector.Int128, bool) {
	lo, c := bits.Add64(a.LowBits(), b.LowBits(), 0)
	h, _ := bits.Add64(uint64(a.HighBits()), uint64(b.HighBits()), c)
	hi := int64(h)
	ok := (a.HighBits()^hi)&(b.HighBits()^hi) >= 0
	return decimal128.New(hi, lo), ok
}

// mulI64 is the exact product of two 64-bit numbers.
func mulI64(a, b int64) vector.Int128 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	hi -= uint64(a>>63)&uint64(b) + uint64(b>>63)&uint64(a)
	return decimal128.New(int64(hi), lo)
}

func fits64(x vector.Int128) bool { return x.HighBits() == int64(x.LowBits())>>63 }

// mul128 multiplies and reports whether the product stays inside 127 bits and a sign.
func mul128(a, b vector.Int128) (vector.Int128, bool) {
	if fits64(a) && fits64(b) {
		return mulI64(int64(a.LowBits()), int64(b.LowBits())), true
	}
	neg := a.Sign() < 0 != (b.Sign() < 0)
	x, y := a.Abs(), b.Abs()
	if x.HighBits() != 0 && y.HighBits() != 0 {
		return vector.Int128{}, false
	}
	if x.HighBits() == 0 {
		x, y = y, x
	}
	// y is below 2^64.
	hi, lo := bits.Mul64(x.LowBits(), y.LowBits())
	hh, hl := bits.Mul64(uint64(x.HighBits()), y.LowBits())
	h, c := bits.Add64(hi, hl, 0)
	if hh != 0 || c != 0 || int64(h) < 0 {
		return vector.Int128{}, false
	}
	r := decimal128.New(int64(h), lo)
	if neg {
		r = r.Negate()
	}
	return r, true
}

// divRound128 divides, rounding half away from zero.
func divRound128(a, b vector.Int128) vector.Int128 {
	if fits64(a) && fits64(b) {
		x, y := int64(a.LowBits()), int64(b.LowBits())
		if x != math.MinInt64 && y != math.MinInt64 {
			return int128(divRound64(x, y))
		}
	}
	return bigDivRound(a.BigInt(), b.BigInt())
}

func bigDivRound(a, b *big.Int) vector.Int128 {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	r.Abs(r).Lsh(r, 1)
	if r.CmpAbs(b) >= 0 {
		if a.Sign() < 0 != (b.Sign() < 0) {
			q.Sub(q, big.NewInt(1))
		} else {
			q.Add(q, big.NewInt(1))
		}
	}
	if q.BitLen() > 127 {
		return maxDec // out of any decimal's range, which the caller checks
	}
	return decimal128.FromBigInt(q)
}

func divRound64(x, y int64) int64 {
	q, r := x/y, x%y
	ar, ay := r, y
	if ar < 0 {
		ar = -ar
	}
	if ay < 0 {
		ay = -ay
	}
	if ar >= ay-ar {
		if (x < 0) != (y < 0) {
			q--
		} else {
			q++
		}
	}
	return q
}

// rescale changes the scale of an unscaled value, rounding half away from zero; false when it does not fit p digits.
func rescale(x vector.Int128, from, to, p int) (vector.Int128, bool) {
	switch {
	case to > from:
		if to-from > 38 {
			return x, x.Sign() == 0
		}
		y, ok := mul128(x, pow10i128[to-from])
		if !ok {
			return x, false
		}
		x = y
	case to < from:
		if from-to > 38 {
			return vector.Int128{}, true
		}
		x = divRound128(x, pow10i128[from-to])
	}
	return x, inDecimal(x, p)
}

// asInt128 widens the unscaled value of any decimal, or an integer.
func asInt128(v vector.Value) vector.Int128 {
	switch x := v.(type) {
	case int32:
		return int128(int64(x))
	case int64:
		return int128(x)
	case vector.Int128:
		return x
	}
	return vector.Int128{}
}

// asDecimalValue narrows an unscaled value to the layout of t.
func asDecimalValue(x vector.Int128, t vector.Type) vector.Value {
	if t.Precision <= vector.MaxShortDecimal {
		return int64(x.LowBits())
	}
	return x
}

// decimalToFloat gives the nearest double.
func decimalToFloat(x vector.Int128, scale int) float64 {
	if fits64(x) {
		v := int64(x.LowBits())
		if v > -1<<53 && v < 1<<53 && scale <= 22 {
			return float64(v) / math.Pow10(scale)
		}
	}
	f, _ := new(big.Rat).SetFrac(x.BigInt(), pow10i128[scale].BigInt()).Float64()
	return f
}
