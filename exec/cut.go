package exec

import (
	"context"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/vector"
)

// cut makes emit give at most size rows a call. Flat columns are copied, so that what follows sees chunks that are physically small;
// others, and rows of a selection, are lent as selections of the chunk.
func cut(size int, out emit) emit {
	if size <= 0 || size >= vector.Size {
		return out
	}
	var store *kernel.Store
	return func(ctx context.Context, c *vector.Chunk) error {
		n := c.Rows()
		if n <= size && (c.Sel != nil || c.N <= size) {
			return out(ctx, c)
		}
		flat := c.Sel == nil
		for _, v := range c.Cols {
			flat = flat && v.Form == vector.Flat && v.Type.Kind != vector.Null
		}
		rows := c.Sel
		if rows == nil {
			rows = kernel.Identity(c.N)
		}
		for lo := 0; lo < n; lo += size {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			some := rows[lo:min(lo+size, n)]
			piece := &vector.Chunk{Cols: c.Cols, Sel: some, N: c.N}
			if flat {
				if store == nil {
					types := make([]vector.Type, len(c.Cols))
					for k, v := range c.Cols {
						types[k] = v.Type
					}
					store = kernel.NewStore(types)
				}
				store.Reset()
				store.Append(c.Cols, some, c.N)
				piece = &vector.Chunk{Cols: store.Cols, N: len(some)}
			}
			if err := out(ctx, piece); err != nil {
				return err
			}
		}
		return nil
	}
}
