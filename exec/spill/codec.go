package spill

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/skua-db/skua/vector"
)

// encode appends the first n values of a flat vector: a byte that tells whether a validity bitmap follows, then the values side by side;
// text as lengths, then bytes.
func encode(dst []byte, v *vector.Vector, n int) []byte {
	le := binary.LittleEndian
	if v.Type.Kind == vector.Null {
		return dst
	}
	if v.Valid == nil {
		dst = append(dst, 0)
	} else {
		dst = append(dst, 1)
		for _, w := range v.Valid[:(n+63)/64] {
			dst = le.AppendUint64(dst, w)
		}
	}
	switch v.Type.Physical() {
	case vector.PBool:
		for _, b := range v.Bools[:n] {
			if b {
				dst = append(dst, 1)
			} else {
				dst = append(dst, 0)
			}
		}
	case vector.PInt32:
		for _, x := range v.I32[:n] {
			dst = le.AppendUint32(dst, uint32(x))
		}
	case vector.PInt64:
		for _, x := range v.I64[:n] {
			dst = le.AppendUint64(dst, uint64(x))
		}
	case vector.PInt128:
		for _, x := range v.I128[:n] {
			dst = le.AppendUint64(le.AppendUint64(dst, x.LowBits()), uint64(x.HighBits()))
		}
	case vector.PFloat32:
		for _, x := range v.F32[:n] {
			dst = le.AppendUint32(dst, math.Float32bits(x))
		}
	case vector.PFloat64:
		for _, x := range v.F64[:n] {
			dst = le.AppendUint64(dst, math.Float64bits(x))
		}
	case vector.PView:
		at := len(dst)
		for range n {
			dst = append(dst, 0, 0, 0, 0)
		}
		for i := range n {
			if !v.Valid.Get(i) {
				continue
			}
			p := v.Views[i].Bytes(v.Bufs)
			le.PutUint32(dst[at+4*i:], uint32(len(p)))
			dst = append(dst, p...)
		}
	case vector.PList:
		for _, o := range v.Offsets[1 : n+1] {
			dst = le.AppendUint32(dst, uint32(o))
		}
		for _, c := range v.Children {
			dst = encode(dst, c, int(v.Offsets[n]))
		}
	case vector.PRow:
		for _, c := range v.Children {
			dst = encode(dst, c, n)
		}
	}
	return dst
}

type decoder struct{ b []byte }

func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.b) {
		return nil, broken()
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p, nil
}

func (d *decoder) vector(t vector.Type, n int) (*vector.Vector, error) {
	le := binary.LittleEndian
	v := &vector.Vector{Type: t}
	if t.Kind == vector.Null {
		return v, nil
	}
	flag, err := d.take(1)
	if err != nil {
		return nil, err
	}
	if flag[0] != 0 {
		p, err := d.take((n + 63) / 64 * 8)
		if err != nil {
			return nil, err
		}
		v.Valid = make(vector.Bitmap, (n+63)/64)
		for i := range v.Valid {
			v.Valid[i] = le.Uint64(p[8*i:])
		}
	}
	width := map[vector.Physical]int{vector.PBool: 1, vector.PInt32: 4, vector.PInt64: 8, vector.PInt128: 16, vector.PFloat32: 4, vector.PFloat64: 8,
		vector.PView: 4, vector.PList: 4}[t.Physical()]
	p, err := d.take(n * width)
	if err != nil {
		return nil, err
	}
	switch t.Physical() {
	case vector.PBool:
		v.Bools = make([]bool, n)
		for i, b := range p {
			v.Bools[i] = b != 0
		}
	case vector.PInt32:
		v.I32 = make([]int32, n)
		for i := range v.I32 {
			v.I32[i] = int32(le.Uint32(p[4*i:]))
		}
	case vector.PInt64:
		v.I64 = make([]int64, n)
		for i := range v.I64 {
			v.I64[i] = int64(le.Uint64(p[8*i:]))
		}
	case vector.PInt128:
		v.I128 = make([]vector.Int128, n)
		for i := range v.I128 {
			v.I128[i] = decimal128.New(int64(le.Uint64(p[16*i+8:])), le.Uint64(p[16*i:]))
		}
	case vector.PFloat32:
		v.F32 = make([]float32, n)
		for i := range v.F32 {
			v.F32[i] = math.Float32frombits(le.Uint32(p[4*i:]))
		}
	case vector.PFloat64:
		v.F64 = make([]float64, n)
		for i := range v.F64 {
			v.F64[i] = math.Float64frombits(le.Uint64(p[8*i:]))
		}
	case vector.PView:
		total := 0
		for i := range n {
			total += int(le.Uint32(p[4*i:]))
		}
		text, err := d.take(total)
		if err != nil {
			return nil, err
		}
		v.Bufs = [][]byte{append([]byte(nil), text...)}
		v.Views = make([]vector.View, n)
		at := 0
		for i := range n {
			k := int(le.Uint32(p[4*i:]))
			v.Views[i] = vector.MakeView(v.Bufs, 0, at, k)
			at += k
		}
	case vector.PList:
		v.Offsets = make([]int32, n+1)
		for i := range n {
			v.Offsets[i+1] = int32(le.Uint32(p[4*i:]))
			if v.Offsets[i+1] < v.Offsets[i] {
				return nil, broken()
			}
		}
		for _, f := range t.Fields {
			c, err := d.vector(f.Type, int(v.Offsets[n]))
			if err != nil {
				return nil, err
			}
			v.Children = append(v.Children, c)
		}
	case vector.PRow:
		for _, f := range t.Fields {
			c, err := d.vector(f.Type, n)
			if err != nil {
				return nil, err
			}
			v.Children = append(v.Children, c)
		}
	}
	return v, nil
}
