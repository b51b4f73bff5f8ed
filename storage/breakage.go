package storage

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/skua-db/skua/fault"
)

// Breakage describes how a store fails in tests. The zero value breaks nothing.
type Breakage struct {
	// Match limits the breakage to paths that contain it.
	Match string
	// FailRead makes the n-th read (1-based, over all matching objects) and later ones fail with Err.
	FailRead int64
	Err      error
	// Delay holds every read back, or until its context ends.
	Delay time.Duration
	// Truncate makes objects shorter by so many bytes than they say.
	Truncate int64
	// FlipAt inverts the byte at this offset (plus one, so that zero flips nothing).
	FlipAt int64

	reads atomic.Int64
}

// Break puts b between s and its reader.
func Break(s Store, b *Breakage) Store {
	if b.Err == nil {
		b.Err = fault.New(fault.Unavailable, "the store broke as it was told to")
	}
	return &decorated{next: s, wrap: func(path string, o Object) Object {
		if !strings.Contains(path, b.Match) {
			return o
		}
		return &broken{Object: o, path: path, b: b}
	}}
}

type broken struct {
	Object
	path string
	b    *Breakage
}

func (o *broken) ReadRanges(ctx context.Context, ranges []Range, dst [][]byte) error {
	if o.b.Delay > 0 {
		t := time.NewTimer(o.b.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if n := o.b.reads.Add(1); o.b.FailRead > 0 && n >= o.b.FailRead {
		return o.b.Err
	}
	for _, r := range ranges {
		if o.b.Truncate > 0 {
			if err := checkRange(o.path, o.Size()-o.b.Truncate, r); err != nil {
				return err
			}
		}
	}
	if err := o.Object.ReadRanges(ctx, ranges, dst); err != nil {
		return err
	}
	for i, r := range ranges {
		if at := o.b.FlipAt - 1; at >= r.Offset && at < r.End() {
			dst[i][at-r.Offset] ^= 0xff
		}
	}
	return nil
}
