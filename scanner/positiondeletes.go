package scanner

import (
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/vector"
)

// mostPositionRows is how many rows position_deletes may have: the table is made in memory.
const mostPositionRows = 1 << 20

// positionDeletes makes the table position_deletes: a row a deleted position, of position delete files and deletion vectors.
// The column row, which few writers fill, is always null.
func (in *inspector) positionDeletes(list []manifest.File) error {
	row, err := catalog.FieldsOf(in.sc.r.Table.Metadata.CurrentSchema().Fields())
	if err != nil {
		return err
	}
	in.fields = []vector.Field{{Name: "file_path", Type: tText}, {Name: "pos", Type: tLong}, nullable("row", vector.RowOf(row...))}
	if len(in.partition.kids) > 0 {
		in.fields = append(in.fields, nullable("partition", in.partition.typ))
	}
	in.fields = append(in.fields, nullable("spec_id", tInt), nullable("delete_file_path", tText))
	v3 := in.sc.r.Table.Metadata.Version() >= 3
	if v3 {
		in.fields = append(in.fields, nullable("content_offset", tLong), nullable("content_size_in_bytes", tLong))
	}
	pool := memory.NewPool("position_deletes", 0)
	return in.each(list, func(e *entry) error {
		m, i := e.m, e.i
		if m.Status[i] == manifest.Deleted || m.Content[i] != manifest.PositionDeletes {
			return nil
		}
		d, err := in.sc.deleteFile(e.list, m, i)
		if err != nil {
			return err
		}
		add := func(path string, pos int64) error {
			if len(in.rows) >= mostPositionRows {
				return fault.New(fault.Exhausted, "position_deletes has more than %d rows", mostPositionRows)
			}
			r := []vector.Value{path, pos, nil}
			if len(in.partition.kids) > 0 {
				r = append(r, in.partitionValue(e))
			}
			r = append(r, int32(e.file.spec.ID()), d.Path)
			if v3 {
				r = append(r, unlessNegative(m.ContentOffset.At(i)), unlessNegative(m.ContentSize.At(i)))
			}
			in.rows = append(in.rows, r)
			return nil
		}
		if d.Kind == deletes.Vector {
			ref, ok := m.Referenced(i)
			if !ok {
				return fault.New(fault.Corrupt, "deletion vector in %s names no data file", d.Path)
			}
			b, err := in.sc.vector(in.ctx, d)
			if err != nil {
				return err
			}
			if b.Count() > mostPositionRows {
				return fault.New(fault.Exhausted, "position_deletes has more than %d rows", mostPositionRows)
			}
			for _, pos := range b.Positions() {
				if err := add(ref, pos); err != nil {
					return err
				}
			}
			return nil
		}
		byName := func(tree *fileNode) (*fileNode, error) {
			if tree.hasIDs() {
				return tree, nil
			}
			return tree.mapped(positionNames), nil
		}
		err = in.sc.readDeleteFile(in.ctx, d, byName, positionWants, pool, func(n int, cols []*vector.Vector) error {
			for k := range n {
				path, ok1 := cols[0].Get(k).(string)
				pos, ok2 := cols[1].Get(k).(int64)
				if !ok1 || !ok2 {
					return fault.New(fault.Corrupt, "a row lacks its path or position")
				}
				if err := add(path, pos); err != nil {
					return err
				}
			}
			return nil
		})
		return fault.Wrap(fault.Corrupt, err, "delete file %s", d.Path)
	})
}
