package scanner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// positions gives the rows of the file that a vector or position delete files delete; nil for none.
func (f *dataFile) positions(ctx context.Context, pool *memory.Pool) (*deletes.Bitmap, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deadKnown {
		return f.dead, nil
	}
	var sets []*deletes.Bitmap
	if v := f.applied.Vector; v != nil {
		b, err := f.sc.vector(ctx, v)
		if err != nil {
			return nil, err
		}
		sets = append(sets, b)
	}
	for _, d := range f.applied.Positions {
		p, err := f.sc.positions(ctx, d, pool)
		if err != nil {
			return nil, err
		}
		b, err := p.For(f.open)
		if err != nil {
			return nil, err
		}
		if b != nil {
			sets = append(sets, b)
		}
	}
	if len(sets) > 0 {
		f.dead = deletes.Union(sets)
		if len(sets) > 1 {
			if err := f.sc.hold(pool, f.dead.Bytes()); err != nil {
				return nil, fault.Wrap(fault.Exhausted, err, "%s: deleted positions", f.name())
			}
		}
	}
	f.deadKnown = true
	return f.dead, nil
}

const maxVectorBytes = 1<<31 - 1

// vector reads a deletion vector, through the cache.
func (sc *scan) vector(ctx context.Context, d *deletes.File) (*deletes.Bitmap, error) {
	where := fmt.Sprintf("deletion vector at byte %d of %s", d.Offset, d.Path)
	if _, _, err := sc.keyOf(d.KeyMetadata); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "%s", where)
	}
	if d.Offset < 0 || d.Length < 0 {
		return nil, fault.New(fault.Corrupt, "deletion vector in %s: its manifest entry lacks content_offset or content_size_in_bytes", d.Path)
	}
	open := sc.mapPath(d.Path)
	b, err := sc.s.caches.vectors.Get(ctx, vectorKey{sc.key(open, d.Size, d.KeyMetadata), d.Offset, d.Length}, func(ctx context.Context) (*deletes.Bitmap, int64, error) {
		o, err := sc.deleteObject(ctx, open, d)
		if err != nil {
			return nil, 0, err
		}
		defer func() { _ = o.Close() }()
		if d.Length > maxVectorBytes || d.Offset > o.Size() || d.Length > o.Size()-d.Offset {
			return nil, 0, fault.New(fault.Corrupt, "its %d bytes reach past the end of the file, which has %d", d.Length, o.Size())
		}
		blob := make([]byte, d.Length)
		if err := o.ReadRanges(ctx, []storage.Range{{Offset: d.Offset, Length: d.Length}}, [][]byte{blob}); err != nil {
			return nil, 0, err
		}
		b, err := deletes.ParseVector(blob, d.Records)
		if err != nil {
			return nil, 0, err
		}
		return b, b.Bytes(), sc.crossCheck(ctx, o, open, d)
	})
	if err == nil && b.Count() != d.Records {
		err = fault.New(fault.Corrupt, "it holds %d positions, but its entry says %d", b.Count(), d.Records)
	}
	return b, fault.Wrap(fault.Corrupt, err, "%s", where)
}

// crossCheck holds a vector's entry against the Puffin footer, when the file has one that can be read: offsets that were
// mixed up show there only.
func (sc *scan) crossCheck(ctx context.Context, o storage.Object, open string, d *deletes.File) error {
	refs, err := sc.s.caches.puffins.Get(ctx, sc.key(open, d.Size, d.KeyMetadata), func(ctx context.Context) (map[int64]string, int64, error) {
		refs, err := puffinReferences(ctx, o)
		n := int64(0)
		for _, r := range refs {
			n += int64(len(r)) + 64
		}
		return refs, n, err
	})
	if err != nil {
		return err
	}
	if named, ok := refs[d.Offset]; ok && sc.mapPath(named) != d.Referenced {
		return fault.New(fault.Corrupt, "the manifest says that it is for data file %s, the Puffin file that it is for %s", d.Referenced, named)
	}
	return nil
}

var positionWants = []*want{
	{id: idDeletePath, name: "file_path", typ: vector.Of(vector.Varchar), required: true},
	{id: idDeletePos, name: "pos", typ: vector.Of(vector.BigInt), required: true},
}

// positions reads a position delete file, through the cache.
func (sc *scan) positions(ctx context.Context, d *deletes.File, pool *memory.Pool) (*deletes.Positions, error) {
	p, err := sc.s.caches.positions.Get(ctx, sc.key(sc.mapPath(d.Path), d.Size, d.KeyMetadata), func(ctx context.Context) (*deletes.Positions, int64, error) {
		sc.r.Profile.DeleteFiles.Kept.Add(1)
		b := deletes.NewPositionsBuilder(sc.mapPath)
		held := int64(0)
		defer func() { pool.Release(held) }()
		byName := func(tree *fileNode) (*fileNode, error) {
			if tree.hasIDs() {
				return tree, nil
			}
			return tree.mapped(positionNames), nil
		}
		err := sc.readDeleteFile(ctx, d, byName, positionWants, pool, func(n int, cols []*vector.Vector) error {
			if err := b.Add(cols[0], cols[1], n); err != nil {
				return err
			}
			if now := b.Held(); now > held {
				if err := pool.Reserve(now - held); err != nil {
					return err
				}
				held = now
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		p := b.Finish()
		return p, p.Bytes(), nil
	})
	return p, fault.Wrap(fault.Corrupt, err, "delete file %s", d.Path)
}

// keySet is the keys of one group of equality delete files and how a data file's rows are looked up in it.
type schema = *iceberg.Schema

type keySet struct {
	keys  *deletes.Keys
	paths []keyPath
}

// keyPath locates a key column: a top-level field, and the positions of the fields within.
type keyPath struct {
	top  *want
	path []int
	leaf *want
}

// equality gives the key sets that apply to the file.
func (f *dataFile) equality(ctx context.Context, pool *memory.Pool) ([]keySet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keysKnown {
		return f.keys, nil
	}
	var sets []keySet
	for _, g := range f.applied.Equality {
		ks, err := f.sc.keySet(ctx, g, pool)
		if err != nil {
			return nil, err
		}
		sets = append(sets, ks)
	}
	f.keys, f.keysKnown = sets, true
	return sets, nil
}

// keySet reads all delete files of a group into one set, through the cache.
func (sc *scan) keySet(ctx context.Context, g *deletes.Group, pool *memory.Pool) (keySet, error) {
	var ks keySet
	var types []vector.Type
	var id strings.Builder
	for _, field := range g.IDs {
		p, err := sc.keyPath(field)
		if err != nil {
			return ks, fault.Wrap(fault.Corrupt, err, "delete file %s", g.Files[0].Path)
		}
		ks.paths = append(ks.paths, p)
		types = append(types, p.leaf.typ)
		fmt.Fprintf(&id, "%s=%v;", p.leaf.typ, p.leaf.def)
	}
	id.WriteString(sc.r.Table.Catalog + ";")
	id.WriteString(sc.r.Table.Metadata.TableUUID().String())
	id.WriteString(g.Key)
	for _, f := range g.Files {
		if f.KeyMetadata != nil {
			fmt.Fprintf(&id, ";%x", sha256.Sum256(f.KeyMetadata))
		}
	}
	var err error
	ks.keys, err = sc.s.caches.keys.Get(ctx, id.String(), func(ctx context.Context) (*deletes.Keys, int64, error) {
		keys := deletes.NewKeys(types, pool)
		defer keys.Release()
		for _, d := range g.Files {
			sc.r.Profile.DeleteFiles.Kept.Add(1)
			if err := sc.readKeys(ctx, d, ks.paths, keys, pool); err != nil {
				return nil, 0, fault.Wrap(fault.Corrupt, err, "delete file %s", d.Path)
			}
		}
		return keys, keys.Bytes(), nil
	})
	if err != nil {
		return ks, err
	}
	return ks, fault.Wrap(fault.Exhausted, sc.hold(pool, ks.keys.Bytes()), "equality delete keys")
}

func (sc *scan) readKeys(ctx context.Context, d *deletes.File, paths []keyPath, keys *deletes.Keys, pool *memory.Pool) error {
	wants := make([]*want, len(paths))
	for i, p := range paths {
		wants[i] = p.top
	}
	withIDs := func(tree *fileNode) (*fileNode, error) { return sc.withIDs(tree, d.Path) }
	leaves := make([]*vector.Vector, len(paths))
	return sc.readDeleteFile(ctx, d, withIDs, wants, pool, func(n int, cols []*vector.Vector) error {
		for i, p := range paths {
			leaves[i] = leafVector(cols[i], p.path, n)
		}
		return keys.Add(leaves, n, nil, d.Seq)
	})
}

// keyPath finds the field of an equality id in the newest schema that has it, and makes the want of it alone.
func (sc *scan) keyPath(id int) (keyPath, error) {
	m := sc.r.Table.Metadata
	schemas := slices.Clone(m.Schemas())
	slices.SortStableFunc(schemas, func(a, b schema) int { return b.ID - a.ID })
	schemas = append([]schema{m.CurrentSchema()}, schemas...)
	for _, s := range schemas {
		for _, f := range s.Fields() {
			w, err := wantOf(f, sc.r.Table.Extra.Defaults)
			if err != nil {
				return keyPath{}, err
			}
			if p, ok := findKey(w, id); ok {
				return p, nil
			}
		}
	}
	return keyPath{}, fault.New(fault.Corrupt, "equality id %d is in no schema of the table", id)
}

// findKey looks for a primitive field within structs and cuts w down to it.
func findKey(w *want, id int) (keyPath, bool) {
	if w.id == id {
		c := *w
		c.required = false // of a dropped column later files have none
		return keyPath{top: &c, leaf: &c}, len(w.kids) == 0
	}
	if w.typ.Kind != vector.Row {
		return keyPath{}, false
	}
	for i, k := range w.kids {
		p, ok := findKey(k, id)
		if !ok {
			continue
		}
		top := *w
		top.required = false
		top.kids = []*want{p.top}
		top.typ.Fields = []vector.Field{w.typ.Fields[i]}
		top.typ.Fields[0].Type = p.top.typ
		if row, ok := w.def.([]vector.Value); ok {
			top.def = []vector.Value{row[i]}
		}
		return keyPath{top: &top, path: append([]int{0}, p.path...), leaf: p.leaf}, true
	}
	return keyPath{}, false
}

// leafVector takes a field within structs out of a column of n rows; null structs give nulls.
func leafVector(v *vector.Vector, path []int, n int) *vector.Vector {
	for _, i := range path {
		if v.Form != vector.Flat {
			b := vector.NewBuilder(v.Type)
			for r := range n {
				b.AppendFrom(v, r)
			}
			v = b.Finish()
		}
		parent := v.Valid
		v = v.Children[i]
		if parent == nil || v.Type.Kind == vector.Null {
			continue
		}
		out := *v
		if v.Form == vector.Constant {
			b := vector.NewBuilder(v.Type)
			for r := range n {
				b.AppendFrom(v, r)
			}
			out = *b.Finish()
		}
		valid := slices.Clone(parent)
		for w := range valid {
			if out.Valid != nil && w < len(out.Valid) {
				valid[w] &= out.Valid[w]
			}
		}
		out.Valid = valid
		v = &out
	}
	return v
}

// readDeleteFile reads wanted columns of all rows of a delete file. withIDs gives its schema field ids where it has none.
func (sc *scan) readDeleteFile(ctx context.Context, d *deletes.File, withIDs func(*fileNode) (*fileNode, error), wants []*want,
	pool *memory.Pool, take func(n int, cols []*vector.Vector) error) error {
	if _, encrypted, err := sc.keyOf(d.KeyMetadata); err != nil || encrypted && d.Format == "orc" {
		return cmp.Or(err, error(fault.New(fault.Corrupt, "it is an ORC file with key metadata, and ORC has no encryption that Iceberg uses")))
	}
	o, err := sc.deleteObject(ctx, sc.mapPath(d.Path), d)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	none := func(*want) (vector.Value, bool) { return nil, false }
	project := func(tree *fileNode) ([]*projected, error) {
		tree, err := withIDs(tree)
		if err != nil {
			return nil, err
		}
		out := make([]*projected, len(wants))
		for i, w := range wants {
			if out[i], err = project(w, tree, none); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	switch d.Format {
	case "parquet":
		f, err := sc.readFooter(ctx, o, d.Path, d.KeyMetadata)
		if err != nil {
			return err
		}
		cols, err := project(parquetTree(f.Root))
		if err != nil {
			return err
		}
		ps := make([]*parquet.Projection, len(cols))
		for i, c := range cols {
			ps[i] = c.parquet()
		}
		opt := parquet.Options{CheckCRC: !sc.s.opt.SkipCRC, Pool: pool, Profile: sc.r.Profile}
		return readGroups(ctx, len(f.RowGroups), len(cols), take, func(g int) (groupReader, error) {
			return parquet.OpenRowGroup(ctx, o, f, g, ps, nil, opt)
		})
	case "orc":
		f, err := orc.ReadFooter(ctx, o, d.Path)
		if err != nil {
			return err
		}
		cols, err := project(orcTree(f.Root))
		if err != nil {
			return err
		}
		ps := make([]*orc.Projection, len(cols))
		for i, c := range cols {
			ps[i] = c.orc()
		}
		return readGroups(ctx, len(f.Stripes), len(cols), take, func(g int) (groupReader, error) {
			return orc.OpenStripe(ctx, o, f, g, ps, nil, orc.Options{Pool: pool, Profile: sc.r.Profile})
		})
	case "avro":
		f, err := avro.Open(ctx, o, "")
		if err != nil {
			return err
		}
		cols, err := project(avroTree(f.Root))
		if err != nil {
			return err
		}
		ps := make([]*avro.Projection, len(cols))
		for i, c := range cols {
			ps[i] = c.avro()
		}
		r, err := f.NewReader(ps, pool)
		if err != nil {
			return err
		}
		defer r.Close()
		for {
			n, _, vs, err := r.Next(ctx, vector.Size)
			if err != nil || n == 0 {
				return err
			}
			if err := take(n, vs); err != nil {
				return err
			}
		}
	}
	return fault.New(fault.Corrupt, "its format is %s", d.Format)
}

// readGroups gives all rows of a file's groups, batch by batch.
func readGroups(ctx context.Context, groups, columns int, take func(n int, cols []*vector.Vector) error, open func(g int) (groupReader, error)) error {
	vs := make([]*vector.Vector, columns)
	group := func(g int) error {
		r, err := open(g)
		if err != nil {
			return err
		}
		defer r.Close()
		for {
			n, _ := r.NextBatch(vector.Size)
			if n == 0 {
				return nil
			}
			for i := range vs {
				if vs[i], err = r.Read(ctx, i); err != nil {
					return err
				}
			}
			if err := take(n, vs); err != nil {
				return err
			}
		}
	}
	for g := range groups {
		if err := group(g); err != nil {
			return err
		}
	}
	return nil
}

// positionNames numbers the columns of position delete files that carry no field ids.
var positionNames = func() []iceberg.MappedField {
	path, pos := idDeletePath, idDeletePos
	return []iceberg.MappedField{{Names: []string{"file_path"}, FieldID: &path}, {Names: []string{"pos"}, FieldID: &pos}}
}()
