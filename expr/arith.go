package expr

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

func init() {
	for _, k := range []string{"tinyint", "smallint", "integer"} {
		lo, hi := integerRange(patternKinds[k])
		sig := "(" + k + ", " + k + ") " + k
		def("+", sig, "sum", arith32('+', lo, hi, k))
		def("-", sig, "difference", arith32('-', lo, hi, k))
		def("*", sig, "product", arith32('*', lo, hi, k))
		def("/", sig, "quotient, truncated", arith32('/', lo, hi, k))
		def("% mod", sig, "remainder with the sign of the dividend", arith32('%', lo, hi, k))
		def("neg", "("+k+") "+k, "negation", fn1(func(_ *evalCall, a int64) (int64, error) {
			if a == lo {
				return 0, overflow("-(%d) does not fit %s", a, k)
			}
			return -a, nil
		}), hidden)
	}
	def("+", "(bigint, bigint) bigint", "sum", arith64('+'))
	def("-", "(bigint, bigint) bigint", "difference", arith64('-'))
	def("*", "(bigint, bigint) bigint", "product", arith64('*'))
	def("/", "(bigint, bigint) bigint", "quotient, truncated", arith64('/'))
	def("% mod", "(bigint, bigint) bigint", "remainder with the sign of the dividend", arith64('%'))
	def("neg", "(bigint) bigint", "negation", fn1(func(_ *evalCall, a int64) (int64, error) {
		if a == math.MinInt64 {
			return 0, overflow("-(%d) does not fit bigint", a)
		}
		return -a, nil
	}), hidden)
	def("+", "(decimal, decimal) decimal", "sum", nil, returns(decimalSum), made(decimalAdd(false)))
	def("-", "(decimal, decimal) decimal", "difference", nil, returns(decimalSum), made(decimalAdd(true)))
	def("*", "(decimal, decimal) decimal", "product", nil, returns(decimalProduct), made(decimalMul))
	def("/", "(decimal, decimal) decimal", "quotient, rounded half up", nil, returns(decimalQuotient), made(decimalDiv))
	def("% mod", "(decimal, decimal) decimal", "remainder with the sign of the dividend", nil, returns(decimalRemainder), made(decimalMod))
	def("neg", "(decimal) decimal", "negation", fn1(func(_ *evalCall, a vector.Int128) (vector.Int128, error) { return a.Negate(), nil }),
		returns(func(t []vector.Type) (vector.Type, error) { return t[0], nil }), hidden)
	floats[float32]("real")
	floats[float64]("double")
}

// made replaces the kernel's maker.
func made(mk func(*binding) (kernel, error)) option { return func(f *Function) { f.make = mk } }

func floats[T float32 | float64](k string) {
	sig := "(" + k + ", " + k + ") " + k
	for _, op := range []byte{'+', '-', '*', '/', '%'} {
		names, doc := string(op), map[byte]string{'+': "sum", '-': "difference", '*': "product", '/': "quotient", '%': "remainder"}[op]
		if op == '%' {
			names = "% mod"
		}
		def(names, sig, doc, arithFloat[T](op))
	}
	def("neg", "("+k+") "+k, "negation", fn1(func(_ *evalCall, a T) (T, error) { return -a, nil }), hidden)
}

func arithFloat[T float32 | float64](op byte) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b, dst := denseOf[T](x, 0), denseOf[T](x, 1), payload[T](out)
		rows := rowsOf(x.sel, x.n)
		switch op {
		case '+':
			for _, i := range rows {
				dst[i] = a[i] + b[i]
			}
		case '-':
			for _, i := range rows {
				dst[i] = a[i] - b[i]
			}
		case '*':
			for _, i := range rows {
				dst[i] = a[i] * b[i]
			}
		case '/':
			for _, i := range rows {
				dst[i] = a[i] / b[i]
			}
		case '%':
			for _, i := range rows {
				dst[i] = T(math.Mod(float64(a[i]), float64(b[i])))
			}
		}
		return nil
	}
}

// arith32 computes in 64 bits, where nothing overflows, and looks at the range once for the chunk.
func arith32(op byte, lo, hi int64, kind string) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b, dst := denseOf[int32](x, 0), denseOf[int32](x, 1), out.I32
		rows := rowsOf(x.sel, x.n)
		var bad int64
		switch op {
		case '+':
			for _, i := range rows {
				r := int64(a[i]) + int64(b[i])
				bad |= (r - lo) | (hi - r)
				dst[i] = int32(r)
			}
		case '-':
			for _, i := range rows {
				r := int64(a[i]) - int64(b[i])
				bad |= (r - lo) | (hi - r)
				dst[i] = int32(r)
			}
		case '*':
			for _, i := range rows {
				r := int64(a[i]) * int64(b[i])
				bad |= (r - lo) | (hi - r)
				dst[i] = int32(r)
			}
		case '/', '%':
			for _, i := range rows {
				p, q := int64(a[i]), int64(b[i])
				if q == 0 {
					return divisionByZero()
				}
				r := p / q
				if op == '%' {
					r = p % q
				}
				bad |= (r - lo) | (hi - r)
				dst[i] = int32(r)
			}
		}
		if bad < 0 {
			for _, i := range rows {
				p, q := int64(a[i]), int64(b[i])
				var r int64
				switch op {
				case '+':
					r = p + q
				case '-':
					r = p - q
				case '*':
					r = p * q
				case '/':
					r = p / q
				}
				if r < lo || r > hi {
					return overflow("%s overflow: %d %c %d", kind, p, op, q)
				}
			}
		}
		return nil
	}
}

func arith64(op byte) kernel {
	return func(x *evalCall, out *vector.Vector) error {
		a, b, dst := denseOf[int64](x, 0), denseOf[int64](x, 1), out.I64
		rows := rowsOf(x.sel, x.n)
		var bad int64
		switch op {
		case '+':
			for _, i := range rows {
				p, q := a[i], b[i]
				r := p + q
				bad |= (p ^ r) & (q ^ r)
				dst[i] = r
			}
		case '-':
			for _, i := range rows {
				p, q := a[i], b[i]
				r := p - q
				bad |= (p ^ q) & (p ^ r)
				dst[i] = r
			}
		case '*':
			for _, i := range rows {
				r := mulI64(a[i], b[i])
				lo := int64(r.LowBits())
				if r.HighBits() != lo>>63 {
					bad = -1
				}
				dst[i] = lo
			}
		case '/', '%':
			for _, i := range rows {
				p, q := a[i], b[i]
				switch q {
				case 0:
					return divisionByZero()
				case -1:
					// The one quotient that does not fit; Go gives a remainder of 0.
					if p == math.MinInt64 && op == '/' {
						return overflow("bigint overflow: %d / -1", p)
					}
				}
				if op == '/' {
					dst[i] = p / q
				} else {
					dst[i] = p % q
				}
			}
		}
		if bad < 0 {
			for _, i := range rows {
				p, q := a[i], b[i]
				var wrong bool
				switch op {
				case '+':
					r := p + q
					wrong = (p^r)&(q^r) < 0
				case '-':
					r := p - q
					wrong = (p^q)&(p^r) < 0
				case '*':
					wrong = !fits64(mulI64(p, q))
				}
				if wrong {
					return overflow("bigint overflow: %d %c %d", p, op, q)
				}
			}
		}
		return nil
	}
}

// decimalSum keeps the scale and caps the precision: overflow is found at run time.
func decimalSum(t []vector.Type) (vector.Type, error) {
	a, b := t[0], t[1]
	s := max(a.Scale, b.Scale)
	return vector.DecimalOf(min(maxPrecision, max(a.Precision-a.Scale, b.Precision-b.Scale)+s+1), s), nil
}

// capped cuts the scale of a result past 38 digits, but not below 6 digits of a fraction.
func capped(p, s int) vector.Type {
	if p > maxPrecision {
		s = max(maxPrecision-(p-s), min(s, 6))
		p = maxPrecision
	}
	return vector.DecimalOf(p, s)
}

func decimalProduct(t []vector.Type) (vector.Type, error) {
	return capped(t[0].Precision+t[1].Precision, t[0].Scale+t[1].Scale), nil
}

func decimalQuotient(t []vector.Type) (vector.Type, error) {
	a, b := t[0], t[1]
	s := max(6, a.Scale+b.Precision+1)
	return capped(a.Precision-a.Scale+b.Scale+s, s), nil
}

func decimalRemainder(t []vector.Type) (vector.Type, error) {
	a, b := t[0], t[1]
	s := max(a.Scale, b.Scale)
	return vector.DecimalOf(min(maxPrecision, min(a.Precision-a.Scale, b.Precision-b.Scale)+s), s), nil
}

func decimalAdd(subtract bool) func(b *binding) (kernel, error) {
	return func(bd *binding) (kernel, error) {
		at, bt, ret := bd.args[0].Type(), bd.args[1].Type(), bd.ret
		fa, fb := ret.Scale-at.Scale, ret.Scale-bt.Scale
		if ret.Precision <= vector.MaxShortDecimal {
			ma, mb := pow10i64[fa], pow10i64[fb]
			if subtract {
				mb = -mb
			}
			return func(x *evalCall, out *vector.Vector) error {
				a, b, dst := denseOf[int64](x, 0), denseOf[int64](x, 1), out.I64
				for _, i := range rowsOf(x.sel, x.n) {
					dst[i] = a[i]*ma + b[i]*mb
				}
				return nil
			}, nil
		}
		return fn2(func(_ *evalCall, a, b vector.Int128) (vector.Int128, error) {
			p, ok1 := mul128(a, pow10i128[fa])
			q, ok2 := mul128(b, pow10i128[fb])
			if subtract {
				q = q.Negate()
			}
			r, ok3 := add128(p, q)
			if !ok1 || !ok2 || !ok3 || !inDecimal(r, ret.Precision) {
				return r, overflow("decimal overflow: %s", ret)
			}
			return r, nil
		}), nil
	}
}

func decimalMul(bd *binding) (kernel, error) {
	at, bt, ret := bd.args[0].Type(), bd.args[1].Type(), bd.ret
	cut := at.Scale + bt.Scale - ret.Scale
	short := at.Precision <= vector.MaxShortDecimal && bt.Precision <= vector.MaxShortDecimal
	switch {
	case ret.Precision <= vector.MaxShortDecimal && cut == 0:
		return func(x *evalCall, out *vector.Vector) error {
			a, b, dst := denseOf[int64](x, 0), denseOf[int64](x, 1), out.I64
			for _, i := range rowsOf(x.sel, x.n) {
				dst[i] = a[i] * b[i]
			}
			return nil
		}, nil
	case short && cut == 0:
		return func(x *evalCall, out *vector.Vector) error {
			a, b, dst := denseOf[int64](x, 0), denseOf[int64](x, 1), out.I128
			for _, i := range rowsOf(x.sel, x.n) {
				dst[i] = mulI64(a[i], b[i])
			}
			return nil
		}, nil
	}
	return func(x *evalCall, out *vector.Vector) error {
		a, b := denseInt128(x, 0), denseInt128(x, 1)
		for _, i := range rowsOf(x.sel, x.n) {
			r, ok := mul128(a[i], b[i])
			switch {
			case !ok:
				p := new(big.Int).Mul(a[i].BigInt(), b[i].BigInt())
				r = bigDivRound(p, pow10i128[cut].BigInt())
			case cut > 0:
				r = divRound128(r, pow10i128[cut])
			}
			if !fits64(r) && !inDecimal(r, ret.Precision) {
				return overflow("decimal overflow: %s", ret)
			}
			out.I128[i] = r
		}
		return nil
	}, nil
}

func decimalDiv(bd *binding) (kernel, error) {
	at, bt, ret := bd.args[0].Type(), bd.args[1].Type(), bd.ret
	up := ret.Scale - at.Scale + bt.Scale
	return fn2(func(_ *evalCall, a, b vector.Int128) (vector.Int128, error) {
		if b.Sign() == 0 {
			return b, divisionByZero()
		}
		var r vector.Int128
		if up >= 0 && up <= 38 {
			if n, ok := mul128(a, pow10i128[up]); ok {
				r = divRound128(n, b)
				if !inDecimal(r, ret.Precision) {
					return r, overflow("decimal overflow: %s", ret)
				}
				return r, nil
			}
		}
		p, q := a.BigInt(), b.BigInt()
		if up >= 0 {
			p = new(big.Int).Mul(p, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(up)), nil))
		} else {
			q = new(big.Int).Mul(q, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-up)), nil))
		}
		r = bigDivRound(p, q)
		if !inDecimal(r, ret.Precision) {
			return r, overflow("decimal overflow: %s", ret)
		}
		return r, nil
	}), nil
}

func decimalMod(bd *binding) (kernel, error) {
	at, bt, ret := bd.args[0].Type(), bd.args[1].Type(), bd.ret
	fa, fb := pow10i128[ret.Scale-at.Scale].BigInt(), pow10i128[ret.Scale-bt.Scale].BigInt()
	same := ret.Scale == at.Scale && ret.Scale == bt.Scale
	return fn2(func(_ *evalCall, a, b vector.Int128) (vector.Int128, error) {
		if b.Sign() == 0 {
			return b, divisionByZero()
		}
		if same && fits64(a) && fits64(b) && int64(b.LowBits()) != -1 {
			return int128(int64(a.LowBits()) % int64(b.LowBits())), nil
		}
		p, q := new(big.Int).Mul(a.BigInt(), fa), new(big.Int).Mul(b.BigInt(), fb)
		return decimal128.FromBigInt(p.Rem(p, q)), nil
	}), nil
}
