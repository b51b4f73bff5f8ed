package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

const (
	// partLength is the longest run that one request fetches; longer ranges are fetched in parts side by side.
	partLength = 8 << 20
	// parallelParts bounds the requests of one ReadRanges.
	parallelParts = 8
)

type object struct {
	s                 *Store
	path, bucket, key string
	size              int64
	closed            context.Context // ends with Close
	close             context.CancelFunc
}

// Size implements storage.Object.
func (o *object) Size() int64 { return o.size }

// Close implements storage.Object.
func (o *object) Close() error {
	o.close()
	return nil
}

// ReadRanges implements storage.Object.
func (o *object) ReadRanges(ctx context.Context, ranges []storage.Range, dst [][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	type part struct {
		offset int64
		dst    []byte
	}
	var parts []part
	for i, r := range ranges {
		if r.Offset < 0 || r.Length < 0 || r.Offset > o.size || r.Length > o.size-r.Offset {
			return fault.New(fault.Corrupt, "object %s has %d bytes, bytes %d to %d were asked for", o.path, o.size, r.Offset, r.End())
		}
		for at := int64(0); at < r.Length; at += partLength {
			parts = append(parts, part{r.Offset + at, dst[i][at:min(at+partLength, r.Length)]})
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(o.closed, func() { cancel(fault.New(fault.Canceled, "object %s was closed", o.path)) })
	defer stop()
	var err error
	if len(parts) == 1 {
		err = o.read(ctx, parts[0].offset, parts[0].dst)
	} else {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallelParts)
		for _, p := range parts {
			g.Go(func() error { return o.read(gctx, p.offset, p.dst) })
		}
		err = g.Wait()
	}
	if err != nil && errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		return context.Cause(ctx)
	}
	return err
}

// read fills dst from offset. A body that ends early is resumed where it stopped.
func (o *object) read(ctx context.Context, offset int64, dst []byte) error {
	filled := 0
	return o.s.get(ctx, call{
		path: o.path, bucket: o.bucket, key: o.key,
		byteRange: func() string { return fmt.Sprintf("bytes=%d-%d", offset+int64(filled), offset+int64(len(dst))-1) },
		progress:  func() int64 { return int64(filled) },
		accept: func(r *http.Response) error {
			from := offset + int64(filled)
			first, total, ok := parseContentRange(r.Header.Get("Content-Range"))
			switch {
			case r.StatusCode == http.StatusRequestedRangeNotSatisfiable:
				if !ok {
					total = from
				}
				return fault.New(fault.Corrupt, "object %s has %d bytes, and the table's metadata says %d", o.path, total, o.size)
			case r.StatusCode == http.StatusPartialContent && (!ok || first != from):
				return fault.New(fault.Unavailable, "object %s: the store answers with other bytes than were asked for", o.path)
			case r.StatusCode == http.StatusPartialContent && total != o.size, r.StatusCode == http.StatusOK && r.ContentLength >= 0 && r.ContentLength != o.size:
				if r.StatusCode == http.StatusOK {
					total = r.ContentLength
				}
				return fault.New(fault.Corrupt, "object %s has %d bytes, and the table's metadata says %d", o.path, total, o.size)
			case r.StatusCode == http.StatusOK:
				// The store knows no ranges: what lies before is read past.
				if _, err := io.CopyN(io.Discard, r.Body, from); err != nil {
					return network(err)
				}
			}
			n, err := io.ReadFull(r.Body, dst[filled:])
			filled += n
			if err != nil {
				return network(err)
			}
			return nil
		},
	})
}
