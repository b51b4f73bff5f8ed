package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/storage"
)

// maxLearnedBytes is the longest chunk that is read for the places of its pages.
const maxLearnedBytes = 64 << 20

// LearnOffsets finds where the pages of flat columns of a row group lie, for files without an offset index, and keeps it beside the
// footer, as an offset index would be. It reads each chunk whole, once; pool accounts for it. What it does not understand it
// leaves to the reader, who tells what is wrong.
func (f *Footer) LearnOffsets(ctx context.Context, o storage.Object, rg int, cols []*Projection, pool *memory.Pool) error {
	if f.modules != nil {
		return nil // a header is known by its place among the chunk's pages only
	}
	for _, p := range cols {
		if p.Node == nil {
			continue
		}
		if err := f.learnNode(ctx, o, rg, p.Node, pool); err != nil {
			return err
		}
	}
	return nil
}

func (f *Footer) learnNode(ctx context.Context, o storage.Object, rg int, n *Node, pool *memory.Pool) error {
	for _, k := range n.Children {
		if err := f.learnNode(ctx, o, rg, k, pool); err != nil {
			return err
		}
	}
	if n.Leaf < 0 || n.MaxRep > 0 {
		return nil
	}
	c := &f.RowGroups[rg].Columns[n.Leaf]
	at := f.chunkRange(c)
	if c.OffsetIndex.Length != 0 || at.Length > maxLearnedBytes {
		return nil
	}
	_, err := cached(f, &f.indexes.offsets, chunkKey{rg, n.Leaf}, func(p []pageLocation) int64 { return int64(len(p)) * 24 }, func() ([]pageLocation, error) {
		buf, err := newBuffer(pool, int(at.Length))
		if err != nil {
			return nil, err
		}
		defer buf.release()
		if err := o.ReadRanges(ctx, []storage.Range{at}, [][]byte{buf.b}); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%s", inFile(f.Path))
		}
		return walkPages(buf.b, at.Offset, f.RowGroups[rg].NumRows), nil
	})
	return err
}

// walkPages gives the places of the data pages of a flat chunk whose bytes begin at offset; nil when they do not add up to rows.
func walkPages(b []byte, offset, rows int64) (ps []pageLocation) {
	row := int64(0)
	for at := 0; at < len(b) && row < rows; {
		h, _, err := parsePageHeader(b[at:])
		if err != nil || h.size <= 0 || h.compressed < 0 || int(h.compressed) > len(b)-at-h.size {
			return nil
		}
		size := h.size + int(h.compressed)
		if h.kind == dataPage || h.kind == dataPageV2 {
			if h.numValues < 0 || int64(h.numValues) > rows-row {
				return nil
			}
			ps = append(ps, pageLocation{offset + int64(at), int64(size), row})
			row += int64(h.numValues)
		}
		at += size
	}
	if row != rows {
		return nil
	}
	return ps
}
