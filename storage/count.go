package storage

import (
	"context"
	"sync/atomic"
)

// Counter counts what is read through a store.
type Counter struct {
	Opens, Requests, Bytes atomic.Int64
}

// Count adds every read through the returned store to c.
func Count(s Store, c *Counter) Store {
	return &decorated{next: s, wrap: func(_ string, o Object) Object {
		c.Opens.Add(1)
		return &counted{Object: o, c: c}
	}}
}

type counted struct {
	Object
	c *Counter
}

func (o *counted) ReadRanges(ctx context.Context, ranges []Range, dst [][]byte) error {
	o.c.Requests.Add(int64(len(ranges)))
	for _, r := range ranges {
		o.c.Bytes.Add(r.Length)
	}
	return o.Object.ReadRanges(ctx, ranges, dst)
}
