package manifest

import (
	"context"
	"slices"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// ReadColumnSizes reads the column_sizes of every entry of a manifest, by ascending field id and nil where an entry has none.
// Planning has no use for them, so that Read leaves them out.
func ReadColumnSizes(ctx context.Context, s storage.Store, path string, size int64) ([][]vector.Pair, error) {
	o, err := s.Open(ctx, path, size)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "manifest %s", path)
	}
	defer func() { _ = o.Close() }()
	out, err := columnSizes(ctx, o)
	return out, fault.Wrap(fault.Corrupt, err, "manifest %s", path)
}

func columnSizes(ctx context.Context, o storage.Object) ([][]vector.Pair, error) {
	f, err := avro.Open(ctx, o, "")
	if err != nil {
		return nil, err
	}
	var node *avro.Node
	for _, c := range f.Root.Children {
		if c.ID == 2 || c.ID < 0 && c.Name == "data_file" {
			node = c
		}
	}
	if node == nil || node.Kind != avro.Record {
		return nil, fault.New(fault.Corrupt, "it has the wrong schema: it lacks data_file")
	}
	fields := []vector.Field{{ID: 108, Name: "column_sizes", Type: mapType(117, 118, vector.BigInt), Nullable: true}}
	p := &avro.Projection{Type: vector.RowOf(fields...), Node: node, Children: avro.Resolve(node, fields)}
	r, err := f.NewReader([]*avro.Projection{p}, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out [][]vector.Pair
	for {
		n, _, v, err := r.Next(ctx, vector.Size)
		if err != nil || n == 0 {
			return out, err
		}
		for i := range n {
			var pairs []vector.Pair
			if row, ok := v[0].Get(i).([]vector.Value); ok {
				if all, ok := row[0].([]vector.Pair); ok {
					for _, p := range all {
						if _, ok := p.Key.(int32); ok && p.Value != nil {
							pairs = append(pairs, p)
						}
					}
				}
			}
			slices.SortStableFunc(pairs, func(a, b vector.Pair) int { return int(a.Key.(int32)) - int(b.Key.(int32)) })
			out = append(out, pairs)
		}
	}
}
