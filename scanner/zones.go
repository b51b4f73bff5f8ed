package scanner

import (
	"cmp"
	"context"

	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Files of many writers have no page index, so that a lookup would decode the key of a whole row group each time. The second lookup
// that meets such a group learns the bounds of its key, zone by zone, and later ones read the zones that can hold it.

// zoneRows is how many rows a zone has.
const zoneRows = vector.Size

// leastZones is the size of a row group, in zones, below which nothing is learned.
const leastZones = 8

// zoneKey names what is learned of a column of a row group.
type zoneKey struct {
	file        fileKey
	group, leaf int
	want        string // the type of the bounds
}

// zoneBytes is about what the bounds of a zone hold.
const zoneBytes = 160

// zones gives the bounds of the zones of a column, in type want; nil when there are none.
func (f *dataFile) zones(ctx context.Context, o storage.Object, ft *footer, g int, n *fileNode, want vector.Type, pool *memory.Pool) ([]parquet.PageBounds, error) {
	rg := ft.RowGroups[g]
	if !f.sc.lookup || n.pq.MaxRep > 0 || n.pq.MaxDef > 1 || !zoned(want) || rg.NumRows < leastZones*zoneRows {
		return nil, nil
	}
	key := f.zoneKey(g, n, want)
	c := f.sc.s.caches
	if !c.zones.Has(key) && !c.met.again(key) {
		return nil, nil
	}
	return c.zones.Get(ctx, key, func(ctx context.Context) ([]parquet.PageBounds, int64, error) {
		z, err := f.learn(ctx, o, ft, g, n, want, pool)
		return z, int64(len(z)) * zoneBytes, err
	})
}

func (f *dataFile) zoneKey(g int, n *fileNode, want vector.Type) zoneKey {
	return zoneKey{f.sc.key(f.open, f.size, f.key), g, n.pq.Leaf, want.String()}
}

// zonesKnown reports whether the zones of a column were learned before.
func (f *dataFile) zonesKnown(g int, n *fileNode, want vector.Type) bool {
	return f.sc.lookup && !f.sc.s.opt.Without.PageSkipping && f.sc.s.caches.zones.Has(f.zoneKey(g, n, want))
}

// zoned reports whether the bounds of a type are learned.
func zoned(t vector.Type) bool {
	switch t.Kind {
	case vector.BigInt, vector.Integer, vector.Date, vector.Timestamp, vector.TimestampTZ, vector.Varchar:
		return true
	}
	return false
}

// learn decodes the column and keeps the least and the greatest value of each zone.
func (f *dataFile) learn(ctx context.Context, o storage.Object, ft *footer, g int, n *fileNode, want vector.Type, pool *memory.Pool) ([]parquet.PageBounds, error) {
	r, err := parquet.OpenRowGroup(ctx, o, ft.Footer, g, []*parquet.Projection{{Type: want, Node: n.pq}}, nil, f.options(pool))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := make([]parquet.PageBounds, 0, ft.RowGroups[g].NumRows/zoneRows+1)
	at := int64(0)
	for {
		rows, _ := r.NextBatch(zoneRows)
		if rows == 0 {
			return out, nil
		}
		v, err := r.Read(ctx, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, parquet.PageBounds{Rows: parquet.RowRange{First: at, Last: at + int64(rows)}, Bounds: boundsOf(v, rows)})
		at += int64(rows)
	}
}

// boundsOf gives the exact bounds of the first n rows of a vector.
func boundsOf(v *vector.Vector, n int) parquet.Bounds {
	b := parquet.Bounds{NumValues: int64(n), Exact: true}
	some := false
	note := func(lo, hi vector.Value, values int) {
		b.NullCount = int64(n - values)
		if some = values > 0; some {
			b.HasMin, b.HasMax, b.Min, b.Max = true, true, lo, hi
		}
	}
	switch {
	case v.Form == vector.Flat && v.I64 != nil:
		lo, hi, values := extremes(v.I64[:n], v.Valid)
		note(lo, hi, values)
	case v.Form == vector.Flat && v.I32 != nil:
		lo, hi, values := extremes(v.I32[:n], v.Valid)
		note(lo, hi, values)
	default: // texts, dictionaries and constants
		var lo, hi vector.Value
		values := 0
		for i := range n {
			x := v.Get(i)
			if x == nil {
				continue
			}
			if values++; lo == nil || less(x, lo) {
				lo = x
			}
			if hi == nil || less(hi, x) {
				hi = x
			}
		}
		note(lo, hi, values)
	}
	return b
}

func extremes[T int32 | int64](xs []T, valid vector.Bitmap) (lo, hi T, values int) {
	for i, x := range xs {
		if !valid.Get(i) {
			continue
		}
		if values++; values == 1 {
			lo, hi = x, x
			continue
		}
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi, values
}

// less compares two values of one of the types that are zoned.
func less(a, b vector.Value) bool {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return ok && x < y
	case int32:
		y, ok := b.(int32)
		return ok && x < y
	case string:
		y, ok := b.(string)
		return ok && cmp.Less(x, y)
	}
	return false
}
