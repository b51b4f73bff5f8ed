// Package storage turns a path into bytes. It defines the object interface that
// every store fills, and holds the stores and the decorators that count,
// coalesce, confine and break reads.
//
// It knows no file format and no table. A Store and an Object are safe for
// concurrent use; the caller owns every buffer it passes in.
package storage

import (
	"context"
	"time"

	"github.com/skua-db/skua/fault"
)

// Range is a run of bytes in an object.
type Range struct {
	Offset, Length int64
}

// End is the offset after the last byte.
func (r Range) End() int64 { return r.Offset + r.Length }

// Object is one immutable object that can be read in ranges.
type Object interface {
	// Size is the object's length in bytes, as known from Iceberg metadata or the store.
	Size() int64
	// ReadRanges fills dst[i], which has ranges[i].Length bytes, for each range. Neighbouring ranges may be
	// read together. It returns when all are filled or with the first error: fault.Corrupt when the object is
	// shorter than a range needs, fault.NotFound, fault.Denied, fault.Unavailable. ctx cancels it.
	ReadRanges(ctx context.Context, ranges []Range, dst [][]byte) error
	// Close releases what the object holds open. Reads in progress end with an error.
	Close() error
}

// Info describes an object in a listing.
type Info struct {
	Path     string
	Size     int64 // bytes
	Modified time.Time
	Dir      bool
}

// Store opens objects by full path (with or without a scheme).
type Store interface {
	// Open prepares an object for reading. size is its length in bytes, or -1 when unknown; a known size saves a
	// request. The object need not be touched before the first read, so a missing one may be told only then.
	Open(ctx context.Context, path string, size int64) (Object, error)
	// List returns the direct children of a folder, folders first, each sorted by name.
	List(ctx context.Context, dir string) ([]Info, error)
	// Stat tells size and time of one object, or fault.NotFound.
	Stat(ctx context.Context, path string) (Info, error)
}

// ReadAll reads a whole object of at most maxBytes; a longer one is fault.Exhausted.
func ReadAll(ctx context.Context, s Store, path string, size, maxBytes int64) ([]byte, error) {
	o, err := s.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }()
	if o.Size() > maxBytes {
		return nil, fault.New(fault.Exhausted, "object %s has %d bytes, more than the %d that may be read at once", path, o.Size(), maxBytes)
	}
	b := make([]byte, o.Size())
	if err := o.ReadRanges(ctx, []Range{{0, o.Size()}}, [][]byte{b}); err != nil {
		return nil, err
	}
	return b, nil
}
