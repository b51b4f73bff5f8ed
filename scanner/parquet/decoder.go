package parquet

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// decoder turns the values of a page into values of the wanted layout, without nulls in between. Each read function gives
// the next len(dst) values, in dst or where they already stand.
type decoder struct {
	conv  conversion
	vals  values
	dict  *vector.Vector // of the chunk, in the wanted type; nil when there is none
	count int            // values in dict

	i32   []int32
	i64   []int64
	f32   []float32
	views []vector.View
}

// gather reads codes and looks them up in dict.
func gather[T any](d *decoder, dict, dst []T) ([]T, error) {
	grow(&d.i32, len(dst), 0)
	if err := d.vals.codes(d.i32); err != nil {
		return nil, err
	}
	for i, c := range d.i32[:len(dst)] {
		dst[i] = dict[c]
	}
	return dst, nil
}

func readBool(d *decoder, dst []bool) ([]bool, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.Bools, dst)
	}
	return dst, d.vals.readBools(dst, &d.i32)
}

func readInt32(d *decoder, dst []int32) ([]int32, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.I32, dst)
	}
	src, err := readNumbers(&d.vals, dst)
	if err == nil && d.conv.op == opFitU32 {
		for _, x := range src {
			if x < 0 {
				return nil, fault.New(fault.Corrupt, "unsigned value %d does not fit an int", uint32(x))
			}
		}
	}
	return src, err
}

func readFloat32(d *decoder, dst []float32) ([]float32, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.F32, dst)
	}
	if d.conv.op == opHalf {
		b, err := d.vals.readFixed(len(dst))
		if err != nil {
			return nil, err
		}
		for i := range dst {
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return dst, nil
	}
	return readNumbers(&d.vals, dst)
}

func readFloat64(d *decoder, dst []float64) ([]float64, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.F64, dst)
	}
	switch d.conv.op {
	case opDouble:
		grow(&d.f32, len(dst), 0)
		src, err := readNumbers(&d.vals, d.f32)
		if err != nil {
			return nil, err
		}
		for i, x := range src[:len(dst)] {
			dst[i] = float64(x)
		}
		return dst, nil
	case opHalf:
		b, err := d.vals.readFixed(len(dst))
		if err != nil {
			return nil, err
		}
		for i := range dst {
			dst[i] = float64(halfToFloat(binary.LittleEndian.Uint16(b[2*i:])))
		}
		return dst, nil
	}
	return readNumbers(&d.vals, dst)
}

// halfToFloat widens an IEEE 754 binary16.
func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
	case frac == 0:
		return math.Float32frombits(sign)
	}
	f := float32(frac) / (1 << 24)
	if sign != 0 {
		return -f
	}
	return f
}

func readInt64(d *decoder, dst []int64) ([]int64, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.I64, dst)
	}
	c := &d.conv
	var err error
	switch c.op {
	case opSame, opFitU64, opScale, opFloor:
		var src []int64
		if src, err = readNumbers(&d.vals, dst); err == nil {
			dst, err = convert64(c, src, dst)
		}
	case opWiden, opWidenU:
		grow(&d.i32, len(dst), 0)
		var src []int32
		if src, err = readNumbers(&d.vals, d.i32); err == nil {
			err = widen(c, src[:len(dst)], dst)
		}
	case opInt96:
		var b []byte
		if b, err = d.vals.readFixed(len(dst)); err == nil {
			err = int96(c.factor, b, dst)
		}
	case opBigEndian:
		if w := d.vals.width; d.vals.physical == FixedLenByteArray && w <= 8 {
			var b []byte
			if b, err = d.vals.readFixed(len(dst)); err == nil {
				fixedInt64(b, w, dst)
			}
			break
		}
		err = d.eachBytes(len(dst), func(i int, b []byte) bool {
			x, ok := bigEndian128(b)
			dst[i] = int64(x.LowBits())
			return ok && x.HighBits() == dst[i]>>63
		})
	default:
		err = fault.New(fault.Internal, "conversion %d to int64", c.op)
	}
	if err != nil {
		return nil, err
	}
	if c.digits > 0 {
		limit := int64(math.Pow10(c.digits))
		for _, x := range dst {
			if x >= limit || x <= -limit {
				return nil, fault.New(fault.Corrupt, "decimal with more than %d digits", c.digits)
			}
		}
	}
	return dst, nil
}

func convert64(c *conversion, src, dst []int64) ([]int64, error) {
	switch c.op {
	case opFitU64:
		for _, x := range src {
			if x < 0 {
				return nil, fault.New(fault.Corrupt, "unsigned value %d does not fit a long", uint64(x))
			}
		}
	case opScale:
		top := math.MaxInt64 / c.factor
		for i, x := range src {
			if x > top || x < -top {
				return nil, fault.New(fault.Corrupt, "time value %d times %d is out of range", x, c.factor)
			}
			dst[i] = x * c.factor
		}
		return dst, nil
	case opFloor:
		for i, x := range src {
			q := x / c.factor
			if x%c.factor < 0 {
				q--
			}
			dst[i] = q
		}
		return dst, nil
	}
	return src, nil
}

func widen(c *conversion, src []int32, dst []int64) error {
	switch {
	case c.op == opWidenU:
		for i, x := range src {
			dst[i] = int64(uint32(x))
		}
	case c.factor == 1:
		for i, x := range src {
			dst[i] = int64(x)
		}
	default:
		top := math.MaxInt64 / c.factor
		for i, x := range src {
			if int64(x) > top || int64(x) < -top {
				return fault.New(fault.Corrupt, "day or time value %d is out of range", x)
			}
			dst[i] = int64(x) * c.factor
		}
	}
	return nil
}

// int96 reads Impala timestamps: nanoseconds of the day, then the Julian day, little-endian. nanos is the unit wanted; the result is
// rounded down and covers the whole range of an int64.
func int96(nanos int64, b []byte, dst []int64) error {
	const julianEpoch = 2_440_588
	perDay := int64(nanosPerDay) / nanos
	for i := range dst {
		p := b[12*i : 12*i+12]
		ofDay, day := int64(binary.LittleEndian.Uint64(p)), int64(int32(binary.LittleEndian.Uint32(p[8:])))-julianEpoch
		q := ofDay / nanos
		if ofDay%nanos < 0 {
			q--
		}
		hi, lo := bits.Mul64(uint64(abs(day)), uint64(perDay))
		x := int64(lo)
		if day < 0 {
			x = -x
		}
		sum := x + q
		if hi != 0 || lo > math.MaxInt64 || (x > 0) == (q > 0) && (sum > 0) != (x > 0) && x != 0 {
			return fault.New(fault.Corrupt, "INT96 timestamp of day %d is out of range", day)
		}
		dst[i] = sum
	}
	return nil
}

func abs(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}

// bigEndian128 reads a two's complement number of any length; ok is false when it needs more than 128 bits.
func bigEndian128(b []byte) (x vector.Int128, ok bool) {
	if len(b) == 0 {
		return x, false
	}
	neg := b[0]&0x80 != 0
	for len(b) > 16 {
		if neg && b[0] != 0xff || !neg && b[0] != 0 || neg != (b[1]&0x80 != 0) {
			return x, false
		}
		b = b[1:]
	}
	var hi, lo uint64
	if neg {
		hi, lo = ^uint64(0), ^uint64(0)
	}
	for _, c := range b {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(c)
	}
	return decimal128.New(int64(hi), lo), true
}

// fixedInt64 reads big-endian numbers of width bytes, at most 8: a word that ends where the number ends, without what stands before it.
func fixedInt64(b []byte, width int, dst []int64) {
	shift := uint(64 - 8*width)
	for i := range dst {
		end := i*width + width
		if end < 8 {
			x, _ := bigEndian128(b[end-width : end])
			dst[i] = int64(x.LowBits())
			continue
		}
		dst[i] = int64(binary.BigEndian.Uint64(b[end-8:])<<shift) >> shift
	}
}

// fixedInt128 is fixedInt64 for widths of 9 to 16.
func fixedInt128(b []byte, width int, dst []vector.Int128) {
	shift := uint(128 - 8*width)
	for i := range dst {
		end := i*width + width
		if end < 16 {
			dst[i], _ = bigEndian128(b[end-width : end])
			continue
		}
		p := b[end-16 : end]
		dst[i] = decimal128.New(int64(binary.BigEndian.Uint64(p)<<shift)>>shift, binary.BigEndian.Uint64(p[8:]))
	}
}

// eachBytes calls f for the next n values of a byte-array or fixed column; false from f means that the value does not fit.
func (d *decoder) eachBytes(n int, f func(i int, b []byte) bool) error {
	bad := func() error { return fault.New(fault.Corrupt, "decimal does not fit the wanted type") }
	if d.vals.physical == FixedLenByteArray {
		b, err := d.vals.readFixed(n)
		if err != nil {
			return err
		}
		w := d.vals.width
		for i := range n {
			if !f(i, b[i*w:i*w+w]) {
				return bad()
			}
		}
		return nil
	}
	grow(&d.views, n, 0)
	b, arena, err := d.vals.readViews(d.views, 0, nil)
	if err != nil {
		return err
	}
	defer arena.release()
	bufs := [][]byte{b}
	for i := range n {
		if !f(i, d.views[i].Bytes(bufs)) {
			return bad()
		}
	}
	return nil
}

func readInt128(d *decoder, dst []vector.Int128) ([]vector.Int128, error) {
	if d.vals.enc == RLEDictionary {
		return gather(d, d.dict.I128, dst)
	}
	switch {
	case d.conv.op == opTo128 && d.vals.physical == Int32:
		grow(&d.i32, len(dst), 0)
		src, err := readNumbers(&d.vals, d.i32)
		if err != nil {
			return nil, err
		}
		for i, x := range src {
			dst[i] = decimal128.FromI64(int64(x))
		}
	case d.conv.op == opTo128:
		grow(&d.i64, len(dst), 0)
		src, err := readNumbers(&d.vals, d.i64)
		if err != nil {
			return nil, err
		}
		for i, x := range src {
			dst[i] = decimal128.FromI64(x)
		}
	case d.vals.physical == FixedLenByteArray && d.vals.width > 8 && d.vals.width <= 16:
		b, err := d.vals.readFixed(len(dst))
		if err != nil {
			return nil, err
		}
		fixedInt128(b, d.vals.width, dst)
	default:
		err := d.eachBytes(len(dst), func(i int, b []byte) (ok bool) {
			dst[i], ok = bigEndian128(b)
			return ok
		})
		if err != nil {
			return nil, err
		}
	}
	if d.conv.digits > 0 {
		for _, x := range dst {
			if !x.FitsInPrecision(int32(d.conv.digits)) {
				return nil, fault.New(fault.Corrupt, "decimal with more than %d digits", d.conv.digits)
			}
		}
	}
	return dst, nil
}

// readViews fills dst with string or binary values that refer to buffer number buf of their vector, and returns that buffer; owner,
// when not nil, is to be released once the values are no longer used.
func (d *decoder) readViews(dst []vector.View, buf int, pool *memory.Pool) (b []byte, owner *buffer, err error) {
	if d.vals.physical == FixedLenByteArray {
		n := len(dst)
		if b, err = d.vals.readFixed(n); err != nil || n == 0 {
			return nil, nil, err
		}
		if d.vals.enc != Plain {
			if owner, err = newBuffer(pool, len(b)); err != nil {
				return nil, nil, err
			}
			copy(owner.b, b)
			b = owner.b
		}
		w := d.vals.width
		for i := range dst {
			dst[i] = vector.LoadView(b, buf, i*w, w)
		}
		return b, owner, nil
	}
	if b, owner, err = d.vals.readViews(dst, buf, pool); err != nil {
		return nil, nil, err
	}
	if d.conv.op == opBytesLength {
		for i := range dst {
			if int(dst[i].Len) != d.conv.length {
				owner.release()
				return nil, nil, fault.New(fault.Corrupt, "value of %d bytes where %d are wanted", dst[i].Len, d.conv.length)
			}
		}
	}
	return b, owner, nil
}

// same reports whether two slices begin at the same place.
func same[T any](a, b []T) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }

// bitsAt gives the 64 bits of valid from bit at on; bits past the end are clear.
func bitsAt(valid []uint64, at int) uint64 {
	i, s := at>>6, uint(at)&63
	w := valid[i] >> s
	if s != 0 && i+1 < len(valid) {
		w |= valid[i+1] << (64 - s)
	}
	return w
}

// spread moves the values of src to the positions of dst whose bit is set, from bit from of valid on. src may be the start
// of dst. Positions without a bit get any value of src, or zero: they are safe to look up in a dictionary.
func spread[T any](dst, src []T, valid []uint64, from int) {
	if len(src) == 0 {
		clear(dst) // of a page of nulls only the bits were not made
		return
	}
	if same(dst, src) {
		// From the end, a block at a time: values only ever move up.
		j := len(src)
		for i := (len(dst) - 1) &^ 63; i >= 0; i -= 64 {
			d := dst[i:min(i+64, len(dst))]
			w := bitsAt(valid, from+i)
			if n := uint(len(d)); n < 64 {
				w &= 1<<n - 1
			}
			c := bits.OnesCount64(w)
			j -= c
			switch c {
			case 0:
				clear(d)
			case 64:
				copy(d, dst[j:j+64])
			default:
				s := dst[j : j+c]
				k, last := c, c-1
				for b := len(d) - 1; b >= 0; b-- {
					k -= int(w >> (uint(b) & 63) & 1)
					d[b] = s[min(k, last)]
				}
			}
		}
		return
	}
	j := 0
	for i := 0; i < len(dst); i += 64 {
		d := dst[i:min(i+64, len(dst))]
		w := bitsAt(valid, from+i)
		if n := uint(len(d)); n < 64 {
			w &= 1<<n - 1
		}
		c := bits.OnesCount64(w)
		s := src[j : j+c]
		switch c {
		case 0:
			clear(d)
		case 64:
			copy(d, s)
		default:
			k, last := 0, c-1
			for b := range d {
				d[b] = s[min(k, last)]
				k += int(w & 1)
				w >>= 1
			}
		}
		j += c
	}
}
