package orc

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// mostBloomHashes bounds how many bits a filter may ask for a value; writers use a dozen at most.
const mostBloomHashes = 64

// BloomGroups tells of each row group of column n in a stripe whether any of values may be in it (ORC specification, "Bloom Filter Index").
// It is nil when the stripe has no such filter, or none that can be asked for the values: those of columns of integers, dates,
// strings and binary. Filters of the old kind, whose hashes hang on the writer's character set and zone, are not asked.
func BloomGroups(ctx context.Context, o storage.Object, f *Footer, stripe int, n *Node, values []vector.Value, want vector.Type) ([]bool, error) {
	if f.Stride <= 0 || n.Repeated || len(values) == 0 {
		return nil, nil
	}
	var hashes []uint64
	for _, v := range values {
		var ok bool
		if hashes, ok = bloomHashes(hashes, n, v, want); !ok {
			return nil, nil
		}
	}
	foot, err := f.stripeFooter(ctx, o, stripe)
	if err != nil {
		return nil, err
	}
	where := foot.streams[streamKey{n.Column, streamBloomUTF8}]
	if where.Length == 0 {
		return nil, nil
	}
	b := make([]byte, where.Length)
	if err := o.ReadRanges(ctx, []storage.Range{where}, [][]byte{b}); err != nil {
		return nil, err
	}
	out, err := bloomGroups(f, b, hashes)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "ORC file %s: stripe %d: bloom filter of column %s", f.Path, stripe, n.Path())
	}
	if int64(len(out)) != (f.Stripes[stripe].NumRows+f.Stride-1)/f.Stride {
		return nil, nil
	}
	return out, nil
}

func bloomGroups(f *Footer, b []byte, hashes []uint64) ([]bool, error) {
	b, err := f.inflate(b)
	if err != nil {
		return nil, err
	}
	var out []bool
	m := message{b: b}
	for m.next() {
		if m.num != 1 {
			continue
		}
		may, err := bloomMayContain(m.data, hashes)
		if err != nil {
			return nil, err
		}
		out = append(out, may)
	}
	return out, m.err
}

// bloomMayContain asks one BloomFilter message. One without bits, or with a count of hashes that no writer uses, rules nothing out.
func bloomMayContain(b []byte, hashes []uint64) (bool, error) {
	var words []byte // little-endian
	k := uint64(0)
	m := message{b: b}
	for m.next() {
		switch {
		case m.num == 1:
			k = m.u
		case m.num == 2 && m.wire == wireFixed64:
			words = binary.LittleEndian.AppendUint64(words, m.u)
		case m.num == 2 || m.num == 3:
			words = m.data
		}
	}
	if m.err != nil {
		return false, m.err
	}
	size := uint64(len(words)) &^ 7 * 8
	if k == 0 || k > mostBloomHashes || size == 0 || size > math.MaxInt32 {
		return true, nil
	}
	for _, h := range hashes {
		lo, hi := int32(uint32(h)), int32(uint32(h>>32))
		all := true
		for i := int32(1); all && i <= int32(k); i++ {
			at := lo + i*hi
			if at < 0 {
				at = ^at
			}
			bit := uint64(at) % size
			all = words[bit/8]>>(bit%8)&1 != 0
		}
		if all {
			return true, nil
		}
	}
	return false, nil
}

// bloomHashes appends the hashes of what equals a value in the file; ok is false when they are not known.
func bloomHashes(dst []uint64, n *Node, v vector.Value, want vector.Type) (_ []uint64, ok bool) {
	switch n.Kind {
	case Byte, Short, Int, Long:
		switch x := v.(type) {
		case int32:
			return append(dst, hashLong(int64(x))), want.Integral()
		case int64:
			return append(dst, hashLong(x)), want.Integral() || want.Kind == vector.Time
		}
	case Date:
		if x, is := v.(int32); is && want.Kind == vector.Date {
			return append(dst, hashLong(int64(x))), true
		}
	case String, Varchar:
		if s, is := v.(string); is && want.Kind == vector.Varchar {
			return append(dst, hashBytes(s)), true
		}
	case Binary:
		if s, is := v.(string); is && want.Kind == vector.Varbinary {
			return append(dst, hashBytes(s)), true
		}
	}
	return dst, false
}

// hashLong is Thomas Wang's hash of 64 bits, whose shifts to the right keep the sign in ORC.
func hashLong(x int64) uint64 {
	x = ^x + x<<21
	x ^= x >> 24
	x += x<<3 + x<<8
	x ^= x >> 14
	x += x<<2 + x<<4
	x ^= x >> 28
	x += x << 31
	return uint64(x)
}

// hashBytes is the 64-bit Murmur3 of ORC: the first half of the 128-bit one's mixing, of eight bytes at a time, with a fixed seed.
func hashBytes(s string) uint64 {
	const c1, c2, seed = 0x87c37b91114253d5, 0x4cf5ad432745937f, 104729
	h := uint64(seed)
	mix := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	b := []byte(s)
	for ; len(b) >= 8; b = b[8:] {
		h ^= mix(binary.LittleEndian.Uint64(b))
		h = bits.RotateLeft64(h, 27)*5 + 0x52dce729
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h ^= mix(binary.LittleEndian.Uint64(tail[:]))
	}
	h ^= uint64(len(s))
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
