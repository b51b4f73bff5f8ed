package storage

import (
	"context"
	"sort"
)

// Coalesce reads neighbouring ranges of an object as one when the gap between them is at most maxGap bytes and the
// whole at most maxLength bytes. It pays where a request costs more than the bytes between: object stores, not local disks.
func Coalesce(s Store, maxGap, maxLength int64) Store {
	return &decorated{next: s, wrap: func(_ string, o Object) Object {
		return &coalesced{Object: o, maxGap: maxGap, maxLength: maxLength}
	}}
}

// decorated passes everything on and wraps the objects.
type decorated struct {
	next Store
	wrap func(path string, o Object) Object
}

func (d *decorated) Open(ctx context.Context, path string, size int64) (Object, error) {
	o, err := d.next.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	return d.wrap(path, o), nil
}

func (d *decorated) Stat(ctx context.Context, path string) (Info, error) {
	return d.next.Stat(ctx, path)
}

func (d *decorated) List(ctx context.Context, dir string) ([]Info, error) {
	return d.next.List(ctx, dir)
}

type coalesced struct {
	Object
	maxGap, maxLength int64
}

func (c *coalesced) ReadRanges(ctx context.Context, ranges []Range, dst [][]byte) error {
	if len(ranges) < 2 {
		return c.Object.ReadRanges(ctx, ranges, dst)
	}
	order := make([]int, len(ranges))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return ranges[order[a]].Offset < ranges[order[b]].Offset })
	var joined []Range
	var bufs [][]byte
	starts := []int{} // positions in order where each joined range begins
	for k, i := range order {
		r := ranges[i]
		if last := len(joined) - 1; last >= 0 && r.Offset-joined[last].End() <= c.maxGap && max(r.End(), joined[last].End())-joined[last].Offset <= c.maxLength {
			joined[last].Length = max(r.End(), joined[last].End()) - joined[last].Offset
			continue
		}
		joined = append(joined, r)
		starts = append(starts, k)
	}
	starts = append(starts, len(order))
	for j, r := range joined {
		if starts[j+1]-starts[j] == 1 {
			bufs = append(bufs, dst[order[starts[j]]])
		} else {
			bufs = append(bufs, make([]byte, r.Length))
		}
	}
	if err := c.Object.ReadRanges(ctx, joined, bufs); err != nil {
		return err
	}
	for j, r := range joined {
		if starts[j+1]-starts[j] == 1 {
			continue
		}
		for _, i := range order[starts[j]:starts[j+1]] {
			copy(dst[i][:ranges[i].Length], bufs[j][ranges[i].Offset-r.Offset:])
		}
	}
	return nil
}
