package orc

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// columnError is an error that names its column.
type columnError struct{ error }

func (e *columnError) Unwrap() error { return e.error }

func asColumnError(err error, to **columnError) bool { return errors.As(err, to) }

// part is how many values are converted at once through a buffer on the way.
const part = 512

// spread moves m values at the front of s to the n slots of valid, zero elsewhere.
func spread[T any](s []T, n, m int, valid []uint64) {
	if valid == nil || m == n {
		return
	}
	var zero T
	j := m
	for w := (n+63)/64 - 1; w >= 0; w-- {
		word := valid[w]
		lo := w << 6
		hi := min(n, lo+64)
		if word == 0 {
			clear(s[lo:hi])
			continue
		}
		for i := hi - 1; i >= lo; i-- {
			if word>>(uint(i)&63)&1 != 0 {
				j--
				s[i] = s[j]
			} else {
				s[i] = zero
			}
		}
	}
}

// integers is what gives int64 values: runs of integers or of bytes.
type integers interface {
	read(dst []int64) error
	skip(n int64) error
	seek(p *positions) error
	width() int
	stream() *stream
}

func (r *intRuns) width() int { return r.s.width() + 1 }

func (r *intRuns) stream() *stream { return r.s }

// byteIntegers reads a tinyint column.
type byteIntegers struct {
	byteRuns
	buf [part]byte
}

func (b *byteIntegers) read(dst []int64) error {
	for len(dst) > 0 {
		n := min(len(dst), part)
		if err := b.byteRuns.read(b.buf[:n]); err != nil {
			return err
		}
		for i, x := range b.buf[:n] {
			dst[i] = int64(int8(x))
		}
		dst = dst[n:]
	}
	return nil
}

func (b *byteIntegers) width() int { return b.s.width() + 1 }

func (b *byteIntegers) stream() *stream { return b.s }

// intLeaf gives integers, dates, times and decimals that are stored as integers.
type intLeaf struct {
	integers
	c      *column
	layout vector.Physical
	factor int64 // of dates that are wanted as timestamps
	most   int64 // largest magnitude of a decimal; 0 for no check
	i32    []int32
	i64    []int64
	i128   []vector.Int128
	buf    [part]int64
}

func (l *intLeaf) begin() {}

func (l *intLeaf) read(at, n int) error {
	switch l.layout {
	case vector.PInt64:
		if err := grow(l.c.acc, &l.i64, at+n, at, 8); err != nil {
			return err
		}
		out := l.i64[at:]
		if err := l.integers.read(out); err != nil {
			return err
		}
		if l.factor != 1 {
			for i, x := range out {
				y := x * l.factor
				if x != int64(int32(x)) || y/l.factor != x {
					return fault.New(fault.Corrupt, "value %d is out of range of %s", x, l.c.want)
				}
				out[i] = y
			}
		}
		return l.check(out)
	case vector.PInt128:
		if err := grow(l.c.acc, &l.i128, at+n, at, 16); err != nil {
			return err
		}
	default:
		if err := grow(l.c.acc, &l.i32, at+n, at, 4); err != nil {
			return err
		}
	}
	for n > 0 {
		k := min(n, part)
		buf := l.buf[:k]
		if err := l.integers.read(buf); err != nil {
			return err
		}
		if l.layout == vector.PInt128 {
			if err := l.check(buf); err != nil {
				return err
			}
			for i, x := range buf {
				l.i128[at+i] = decimal128.FromI64(x)
			}
		} else {
			out := l.i32[at : at+k]
			wide := int64(0)
			for i, x := range buf {
				out[i] = int32(x)
				wide |= x ^ int64(int32(x))
			}
			if wide != 0 {
				return fault.New(fault.Corrupt, "a value does not fit %s", l.c.want)
			}
		}
		at, n = at+k, n-k
	}
	return nil
}

func (l *intLeaf) places(at int) []place { return []place{{l.stream(), at}} }

// check holds unscaled decimals against the wanted precision.
func (l *intLeaf) check(xs []int64) error {
	if l.most == 0 {
		return nil
	}
	for _, x := range xs {
		if x > l.most || x < -l.most {
			return fault.New(fault.Corrupt, "unscaled value %d has too many digits for %s", x, l.c.want)
		}
	}
	return nil
}

func (l *intLeaf) finish(n, m int, valid []uint64) error {
	v, a := &l.c.out, l.c.acc
	switch l.layout {
	case vector.PInt64:
		if err := grow(a, &l.i64, n, m, 8); err != nil {
			return err
		}
		spread(l.i64, n, m, valid)
		v.I64 = l.i64
	case vector.PInt128:
		if err := grow(a, &l.i128, n, m, 16); err != nil {
			return err
		}
		spread(l.i128, n, m, valid)
		v.I128 = l.i128
	default:
		if err := grow(a, &l.i32, n, m, 4); err != nil {
			return err
		}
		spread(l.i32, n, m, valid)
		v.I32 = l.i32
	}
	return nil
}

// boolLeaf gives booleans.
type boolLeaf struct {
	bitRuns
	c   *column
	out []bool
	buf [part / 64]uint64
}

func (l *boolLeaf) begin() {}

func (l *boolLeaf) read(at, n int) error {
	if err := grow(l.c.acc, &l.out, at+n, at, 1); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, part)
		if _, err := l.bitRuns.read(l.buf[:], k); err != nil {
			return err
		}
		out := l.out[at : at+k]
		for i := range out {
			out[i] = l.buf[i>>6]>>(uint(i)&63)&1 != 0
		}
		at, n = at+k, n-k
	}
	return nil
}

func (l *boolLeaf) finish(n, m int, valid []uint64) error {
	if err := grow(l.c.acc, &l.out, n, m, 1); err != nil {
		return err
	}
	spread(l.out, n, m, valid)
	l.c.out.Bools = l.out
	return nil
}

func (l *boolLeaf) skip(n int64) error {
	_, err := l.bitRuns.skip(n)
	return err
}

func (l *boolLeaf) width() int { return l.runs.s.width() + 2 }

func (l *boolLeaf) places(at int) []place { return []place{{l.runs.s, at}} }

// floatLeaf gives floating-point numbers: little-endian, one after the other.
type floatLeaf struct {
	s      *stream
	c      *column
	stored int // bytes of a value
	layout vector.Physical
	f32    []float32
	f64    []float64
}

func (l *floatLeaf) begin() {}

func (l *floatLeaf) read(at, n int) error {
	a := l.c.acc
	if l.layout == vector.PFloat32 {
		if err := grow(a, &l.f32, at+n, at, 4); err != nil {
			return err
		}
	} else if err := grow(a, &l.f64, at+n, at, 8); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, max(1, (len(l.s.chunk)-l.s.at)/l.stored))
		b, err := l.s.take(k * l.stored)
		if err != nil {
			return err
		}
		switch {
		case l.layout == vector.PFloat32:
			for i := range l.f32[at : at+k] {
				l.f32[at+i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			}
		case l.stored == 4:
			for i := range l.f64[at : at+k] {
				l.f64[at+i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
			}
		default:
			for i := range l.f64[at : at+k] {
				l.f64[at+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
		at, n = at+k, n-k
	}
	return nil
}

func (l *floatLeaf) finish(n, m int, valid []uint64) error {
	v, a := &l.c.out, l.c.acc
	if l.layout == vector.PFloat32 {
		if err := grow(a, &l.f32, n, m, 4); err != nil {
			return err
		}
		spread(l.f32, n, m, valid)
		v.F32 = l.f32
		return nil
	}
	if err := grow(a, &l.f64, n, m, 8); err != nil {
		return err
	}
	spread(l.f64, n, m, valid)
	v.F64 = l.f64
	return nil
}

func (l *floatLeaf) skip(n int64) error {
	if n > l.s.length*math.MaxUint16 { // no stream has as many values, and the product must not overflow
		return l.s.ends()
	}
	return l.s.skip(n * int64(l.stored))
}

func (l *floatLeaf) seek(p *positions) error { return l.s.seek(p) }

func (l *floatLeaf) width() int { return l.s.width() }

func (l *floatLeaf) places(at int) []place { return []place{{l.s, at}} }

// decimalLeaf gives decimals: unbounded base-128 numbers, and the scale of each.
type decimalLeaf struct {
	s      *stream
	scales intRuns
	c      *column
	layout vector.Physical
	scale  int64
	limit  vector.Int128 // 10 to the wanted precision
	i64    []int64
	i128   []vector.Int128
	vals   [part]vector.Int128
	exps   [part]int64
}

func (l *decimalLeaf) begin() {}

func (l *decimalLeaf) read(at, n int) error {
	a := l.c.acc
	if l.layout == vector.PInt64 {
		if err := grow(a, &l.i64, at+n, at, 8); err != nil {
			return err
		}
	} else if err := grow(a, &l.i128, at+n, at, 16); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, part)
		for i := range l.vals[:k] {
			if err := l.varint(&l.vals[i]); err != nil {
				return err
			}
		}
		if err := l.scales.read(l.exps[:k]); err != nil {
			return err
		}
		for i, exp := range l.exps[:k] {
			x := l.vals[i]
			if d := l.scale - exp; l.layout == vector.PInt64 && d >= 0 && d <= vector.MaxShortDecimal && x.HighBits() == int64(x.LowBits())>>63 {
				if y, ok := l.short(int64(x.LowBits()), d); ok {
					l.i64[at+i] = y
					continue
				}
			}
			if exp != l.scale {
				var ok bool
				if x, ok = rescale(x, l.scale-exp); !ok {
					return fault.New(fault.Corrupt, "a decimal of scale %d does not fit %s", exp, l.c.want)
				}
			}
			if abs := x.Abs(); abs.Sign() < 0 || abs.Cmp(l.limit) >= 0 {
				return fault.New(fault.Corrupt, "unscaled value %s has too many digits for %s", x.ToString(0), l.c.want)
			}
			if l.layout == vector.PInt64 {
				l.i64[at+i] = int64(x.LowBits())
			} else {
				l.i128[at+i] = x
			}
		}
		at, n = at+k, n-k
	}
	return nil
}

// short multiplies by ten to the power of d what stays within the wanted precision.
func (l *decimalLeaf) short(x, d int64) (int64, bool) {
	sign := x >> 63
	hi, lo := bits.Mul64(uint64((x^sign)-sign), powers[d])
	return (int64(lo) ^ sign) - sign, hi == 0 && lo < l.limit.LowBits()
}

// powers of ten.
var powers = func() (p [vector.MaxShortDecimal + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// rescale multiplies by ten to the power of d, or divides and rounds half away from zero, as Hive's decimals do.
func rescale(x vector.Int128, d int64) (vector.Int128, bool) {
	if x.Sign() == 0 {
		return x, true
	}
	if d > 38 || d < -38 {
		return x, false
	}
	if d < 0 {
		ten := decimal128.GetScaleMultiplier(int(-d))
		q, r := x.Div(ten)
		if r = r.Abs(); r.Cmp(ten.Sub(r)) >= 0 {
			q = q.Add(decimal128.FromI64(int64(x.Sign())))
		}
		return q, true
	}
	ten := decimal128.GetScaleMultiplier(int(d))
	abs := x.Abs()
	if abs.HighBits() == 0 && ten.HighBits() == 0 {
		hi, lo := bits.Mul64(abs.LowBits(), ten.LowBits())
		if hi > math.MaxInt64 {
			return x, false
		}
		y := decimal128.New(int64(hi), lo)
		if x.Sign() < 0 {
			y = y.Negate()
		}
		return y, true
	}
	if q, _ := decimal128.GetMaxValue(38).Div(ten); abs.Sign() < 0 || abs.Greater(q) {
		return x, false
	}
	return x.Mul(ten), true
}

// varint reads a zigzag base-128 number of at most 128 bits.
func (l *decimalLeaf) varint(to *vector.Int128) error {
	if rest := l.s.chunk[l.s.at:]; len(rest) >= binary.MaxVarintLen64 {
		if u, n := binary.Uvarint(rest); n > 0 {
			l.s.at += n
			*to = decimal128.FromI64(zigzag(u))
			return nil
		}
	}
	var lo, hi uint64
	for shift := uint(0); shift < 133; shift += 7 {
		var b byte
		if s := l.s; s.at < len(s.chunk) {
			b = s.chunk[s.at]
			s.at++
		} else {
			var err error
			if b, err = s.byte(); err != nil {
				return err
			}
		}
		v := uint64(b & 0x7f)
		if shift < 64 {
			lo |= v << shift
			hi |= v >> (64 - shift)
		} else {
			if shift == 126 && v > 3 {
				break
			}
			hi |= v << (shift - 64)
		}
		if b < 0x80 {
			neg := -(lo & 1)
			lo, hi = (lo>>1|hi<<63)^neg, hi>>1^neg
			*to = decimal128.New(int64(hi), lo)
			return nil
		}
	}
	return fault.New(fault.Corrupt, "a decimal has more than 128 bits")
}

func (l *decimalLeaf) finish(n, m int, valid []uint64) error {
	v, a := &l.c.out, l.c.acc
	if l.layout == vector.PInt64 {
		if err := grow(a, &l.i64, n, m, 8); err != nil {
			return err
		}
		spread(l.i64, n, m, valid)
		v.I64 = l.i64
		return nil
	}
	if err := grow(a, &l.i128, n, m, 16); err != nil {
		return err
	}
	spread(l.i128, n, m, valid)
	v.I128 = l.i128
	return nil
}

func (l *decimalLeaf) skip(n int64) error {
	for i := n; i > 0; {
		for l.s.at >= len(l.s.chunk) {
			if err := l.s.refill(); err != nil {
				return err
			}
		}
		rest := l.s.chunk[l.s.at:]
		used := len(rest)
		for k, b := range rest {
			if b < 0x80 {
				if i--; i == 0 {
					used = k + 1
					break
				}
			}
		}
		l.s.at += used
	}
	return l.scales.skip(n)
}

func (l *decimalLeaf) seek(p *positions) error {
	if err := l.s.seek(p); err != nil {
		return err
	}
	return l.scales.seek(p)
}

func (l *decimalLeaf) width() int { return l.s.width() + l.scales.width() }

func (l *decimalLeaf) places(at int) []place {
	return []place{{l.s, at}, {l.scales.s, at + l.s.width()}}
}
