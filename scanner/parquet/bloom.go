package parquet

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// bloomFilter is a split block bloom filter (parquet-format BloomFilter.md).
type bloomFilter struct {
	blocks []byte // 32 bytes each
}

// maxBloomBytes is the largest filter that is read: the 128 MiB that the format allows.
const maxBloomBytes = 128 << 20

var bloomSalt = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// contains tests a hash.
func (b *bloomFilter) contains(h uint64) bool {
	n := uint64(len(b.blocks) / 32)
	block := b.blocks[32*((h>>32)*n>>32):]
	for i, salt := range bloomSalt {
		mask := uint32(1) << (uint32(h) * salt >> 27)
		if binary.LittleEndian.Uint32(block[4*i:])&mask == 0 {
			return false
		}
	}
	return true
}

// bloom loads a chunk's filter; nil when it has none or one of a kind yet unknown.
func (f *Footer) bloom(ctx context.Context, o storage.Object, rg, leaf int) (*bloomFilter, error) {
	c := &f.RowGroups[rg].Columns[leaf]
	if c.BloomOffset == 0 {
		return nil, nil
	}
	size := func(b *bloomFilter) int64 {
		if b == nil {
			return 0
		}
		return int64(len(b.blocks))
	}
	return cached(f, &f.indexes.blooms, chunkKey{rg, leaf}, size, func() (*bloomFilter, error) {
		const headerGuess = 64
		length := c.BloomLength
		if length == 0 {
			length = headerGuess
		}
		length = min(length, f.Size-c.BloomOffset, maxBloomBytes+headerGuess)
		b, err := f.readRange(ctx, o, storage.Range{Offset: c.BloomOffset, Length: length})
		if err != nil {
			return nil, err
		}
		if f.modules != nil {
			return f.encryptedBloom(ctx, o, rg, leaf, b)
		}
		head, bytes, known, err := parseBloomHeader(b)
		if err != nil {
			return nil, f.indexFail(err, "bloom filter", rg, leaf)
		}
		if !known {
			return nil, nil
		}
		if bytes <= 0 || bytes%32 != 0 || bytes > maxBloomBytes || bytes > f.Size-c.BloomOffset-int64(head) {
			return nil, f.indexFail(fault.New(fault.Corrupt, "it claims %d bytes", bytes), "bloom filter", rg, leaf)
		}
		if int64(len(b)-head) < bytes {
			rest, err := f.readRange(ctx, o, storage.Range{Offset: c.BloomOffset + int64(head), Length: bytes})
			if err != nil {
				return nil, err
			}
			return &bloomFilter{rest}, nil
		}
		return &bloomFilter{b[head : int64(head)+bytes]}, nil
	})
}

// parseBloomHeader reads a BloomFilterHeader: its length, that of the filter, and whether its algorithm, hash and compression are
// those of the format's first version.
func parseBloomHeader(b []byte) (head int, bytes int64, known bool, err error) {
	r := thrift.NewReader(b)
	var members [3]int16
	r.Struct(func(id int16, t thrift.Type) {
		switch id {
		case 1:
			bytes = r.Int(t)
		case 2, 3, 4:
			r.Struct(func(m int16, t thrift.Type) {
				members[id-2] = m
				r.Skip(t)
			})
		default:
			r.Skip(t)
		}
	})
	return r.Pos(), bytes, members == [3]int16{1, 1, 1}, r.Err()
}

// BloomMayContain reports whether one of values, of type want, may stand in the leaf's chunk of a row group. It is true when the
// chunk has no filter, or when a value's stored form cannot be told. A nil value stands nowhere.
func BloomMayContain(ctx context.Context, o storage.Object, f *Footer, rg, leaf int, values []vector.Value, want vector.Type) (bool, error) {
	n := f.Leaves[leaf]
	conv, err := newConversion(n, want)
	if err != nil || conv.op == opNull {
		return true, nil
	}
	b, err := f.bloom(ctx, o, rg, leaf)
	if err != nil || b == nil {
		return true, err
	}
	var scratch [32]byte
	for _, v := range values {
		if v == nil {
			continue
		}
		forms, known := storedForms(n, &conv, v, scratch[:0])
		if !known {
			return true, nil
		}
		for _, p := range forms {
			if b.contains(xxhash.Sum64(p)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// storedForms gives the plain encodings under which v can stand in column n: none when it cannot, two for a floating-point zero. known
// is false when that cannot be told.
func storedForms(n *Node, c *conversion, v vector.Value, buf []byte) (forms [][]byte, known bool) {
	one := func(b []byte) ([][]byte, bool) { return [][]byte{b}, true }
	u32 := func(x uint32) ([][]byte, bool) { return one(binary.LittleEndian.AppendUint32(buf, x)) }
	u64 := func(x uint64) ([][]byte, bool) { return one(binary.LittleEndian.AppendUint64(buf, x)) }
	switch n.Physical {
	case Int32:
		switch x := v.(type) {
		case int32:
			if c.op == opSame || c.op == opFitU32 {
				return u32(uint32(x))
			}
		case int64:
			switch {
			case c.op == opWidenU:
				if x < 0 || x > math.MaxUint32 {
					return nil, true
				}
				return u32(uint32(x))
			case c.op == opWiden && x%c.factor != 0, c.op == opWiden && (x/c.factor < math.MinInt32 || x/c.factor > math.MaxInt32):
				return nil, true
			case c.op == opWiden:
				return u32(uint32(x / c.factor))
			}
		case vector.Int128:
			lo := int64(x.LowBits())
			if x.HighBits() != lo>>63 || lo < math.MinInt32 || lo > math.MaxInt32 {
				return nil, true
			}
			return u32(uint32(lo))
		}
	case Int64:
		switch x := v.(type) {
		case int64:
			switch {
			case c.op == opScale && x%c.factor != 0:
				return nil, true
			case c.op == opScale:
				return u64(uint64(x / c.factor))
			case c.op == opSame, c.op == opFitU64:
				return u64(uint64(x))
			}
		case vector.Int128:
			if x.HighBits() != int64(x.LowBits())>>63 {
				return nil, true
			}
			return u64(x.LowBits())
		}
	case Float:
		x := asFloat(v)
		switch {
		case x == 0:
			return [][]byte{{0, 0, 0, 0}, {0, 0, 0, 0x80}}, true
		case math.IsNaN(x):
			return nil, false
		case float64(float32(x)) != x:
			return nil, true
		}
		return u32(math.Float32bits(float32(x)))
	case Double:
		x := asFloat(v)
		switch {
		case x == 0:
			return [][]byte{make([]byte, 8), {0, 0, 0, 0, 0, 0, 0, 0x80}}, true
		case math.IsNaN(x):
			return nil, false
		}
		return u64(math.Float64bits(x))
	case ByteArray, FixedLenByteArray:
		switch x := v.(type) {
		case string:
			if c.op == opBytes || c.op == opBytesLength {
				return one([]byte(x))
			}
		case int64:
			if n.Physical == FixedLenByteArray && c.op == opBigEndian {
				return fixedDecimal(uint64(x>>63), uint64(x), n.Length)
			}
		case vector.Int128:
			if n.Physical == FixedLenByteArray && c.op == opBigEndian {
				return fixedDecimal(uint64(x.HighBits()), x.LowBits(), n.Length)
			}
		}
	}
	return nil, false
}

// fixedDecimal is the big-endian two's complement of a decimal in length bytes; no form when it does not fit.
func fixedDecimal(hi, lo uint64, length int) ([][]byte, bool) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	sign := byte(int64(hi) >> 63)
	if length >= 16 {
		out := make([]byte, length)
		for i := range length - 16 {
			out[i] = sign
		}
		copy(out[length-16:], b[:])
		return [][]byte{out}, true
	}
	for _, x := range b[:16-length] {
		if x != sign {
			return nil, true
		}
	}
	if b[16-length]>>7 != sign&1 {
		return nil, true
	}
	return [][]byte{b[16-length:]}, true
}
