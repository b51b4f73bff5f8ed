package storagetest

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Bytes is an object in memory.
type Bytes []byte

var _ storage.Object = Bytes(nil)

// Size is that of storage.Object.
func (b Bytes) Size() int64 { return int64(len(b)) }

// Close is that of storage.Object.
func (b Bytes) Close() error { return nil }

// ReadRanges is that of storage.Object; a range that leaves the object is Corrupt, as of a store.
func (b Bytes) ReadRanges(ctx context.Context, ranges []storage.Range, dst [][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, r := range ranges {
		if r.Offset < 0 || r.Length < 0 || r.End() > int64(len(b)) || int64(len(dst[i])) != r.Length {
			return fault.New(fault.Corrupt, "range [%d, +%d) of %d bytes", r.Offset, r.Length, len(b))
		}
		copy(dst[i], b[r.Offset:r.End()])
	}
	return nil
}

// Counted is an object in memory that counts the bytes read of it.
type Counted struct {
	Bytes
	Read int64
}

// ReadRanges is that of Bytes.
func (o *Counted) ReadRanges(ctx context.Context, ranges []storage.Range, dst [][]byte) error {
	for _, r := range ranges {
		o.Read += r.Length
	}
	return o.Bytes.ReadRanges(ctx, ranges, dst)
}
