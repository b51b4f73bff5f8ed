package scanner

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/orc"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
)

// mostLoneFiles is how many files a pattern may match.
const mostLoneFiles = 100_000

// OpenFiles makes a table of a file of this machine, or of the files that a pattern of path/filepath matches, without Iceberg
// metadata. The columns are those of the first file in the order of names; other files give theirs by name, and null for
// what they lack. A file that is not there is fault.NotFound, a damaged one fault.Corrupt naming it.
func (s *Scanner) OpenFiles(ctx context.Context, pattern string) (*catalog.Table, error) {
	t := &catalog.Table{Name: pattern, MetadataLocation: pattern, Store: storage.Local{}, Loaded: time.Now()}
	var err error
	if t.Metadata, err = table.NewMetadata(iceberg.NewSchema(0), iceberg.UnpartitionedSpec, table.UnsortedSortOrder, pattern, nil); err != nil {
		return nil, err
	}
	paths, err := lonePaths(pattern)
	if err != nil {
		return nil, err
	}
	for i, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.addFile(ctx, t, p, i == 0, len(paths) > 1); err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "file %s", p)
		}
	}
	return t, nil
}

// lonePaths lists the files that a path means. A file whose name holds the signs of a pattern wins over the pattern.
func lonePaths(pattern string) ([]string, error) {
	p, err := storage.LocalPath(pattern)
	if err != nil {
		if errors.Is(err, fault.Unsupported) {
			return nil, err
		}
		if p, err = filepath.Abs(pattern); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "file %s", pattern)
		}
	}
	if _, err := (storage.Local{}).Stat(context.Background(), p); err == nil || !strings.ContainsAny(p, "*?[") {
		return []string{p}, nil
	}
	paths, err := filepath.Glob(p)
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "file pattern %s: %v", pattern, err)
	case len(paths) == 0:
		return nil, fault.New(fault.NotFound, "no file matches %s", pattern)
	case len(paths) > mostLoneFiles:
		return nil, fault.New(fault.Exhausted, "%s matches %d files, more than %d", pattern, len(paths), mostLoneFiles)
	}
	return paths, nil
}

// addFile adds a file; the first one gives the schema.
func (s *Scanner) addFile(ctx context.Context, t *catalog.Table, path string, first, several bool) error {
	o, err := t.Store.Open(ctx, path, -1)
	if err != nil {
		return err
	}
	defer func() { _ = o.Close() }()
	format, err := sniff(ctx, o, path)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, catalog.File{Path: path, Format: format.String(), Size: o.Size()})
	if !first {
		return nil
	}
	tree, err := loneTree(ctx, o, format)
	if err != nil {
		return err
	}
	m := schemaMaker{}
	fields, err := m.fields(tree.kids)
	if err != nil {
		return err
	}
	if several { // another file may lack what this one has
		for i := range fields {
			fields[i].Required = false
		}
	}
	t.Schema = iceberg.NewSchema(0, fields...)
	return nil
}

// sniff tells a file's format by its first and last bytes, or else by its name.
func sniff(ctx context.Context, o storage.Object, path string) (manifest.Format, error) {
	var head, tail [4]byte
	if n := o.Size(); n >= int64(len(head)) {
		ranges := []storage.Range{{Offset: 0, Length: 4}, {Offset: n - 4, Length: 4}}
		if err := o.ReadRanges(ctx, ranges, [][]byte{head[:], tail[:]}); err != nil {
			return 0, err
		}
	}
	switch name := strings.ToLower(path); {
	case string(head[:]) == "PAR1", string(head[:]) == "PARE", string(tail[:]) == "PARE":
		return manifest.Parquet, nil
	case string(head[:]) == "Obj\x01":
		return manifest.Avro, nil
	case bytes.HasPrefix(head[:], []byte("ORC")):
		return manifest.ORC, nil
	case strings.HasSuffix(name, ".parquet"), strings.HasSuffix(name, ".parq"):
		return manifest.Parquet, nil
	case strings.HasSuffix(name, ".avro"):
		return manifest.Avro, nil
	case strings.HasSuffix(name, ".orc"):
		return manifest.ORC, nil
	}
	return 0, fault.New(fault.Corrupt, "it is neither a Parquet, an Avro nor an ORC file")
}

func loneTree(ctx context.Context, o storage.Object, format manifest.Format) (*fileNode, error) {
	switch format {
	case manifest.Parquet:
		f, err := parquet.ReadFooter(ctx, o, "")
		if err != nil {
			return nil, err
		}
		return parquetTree(f.Root), nil
	case manifest.Avro:
		f, err := avro.Open(ctx, o, "")
		if err != nil {
			return nil, err
		}
		return avroTree(f.Root), nil
	case manifest.ORC:
		f, err := orc.ReadFooter(ctx, o, "")
		if err != nil {
			return nil, err
		}
		return orcTree(f.Root), nil
	}
	return nil, fault.New(fault.Unsupported, "data files in %s are not supported", strings.ToUpper(format.String()))
}

// named gives a copy of the root of a lone file whose nodes carry the ids of the fields of the same names; where a name
// occurs several times, the n-th column of the file goes with the n-th field.
func (f *fileNode) named(fields []iceberg.NestedField) *fileNode {
	out := *f
	out.kids = make([]*fileNode, len(f.kids))
	names := uniqueNames(f.kids)
	for i, k := range f.kids {
		at := i // elements, keys and values go by position
		if f.kind == 0 || f.kind == kindRow {
			at = slices.IndexFunc(fields, func(x iceberg.NestedField) bool { return x.Name == names[i] })
		}
		c := *k
		c.id = -1
		if at >= 0 && at < len(fields) {
			c = *k.named(kidFields(fields[at].Type))
			c.id = fields[at].ID
		}
		out.kids[i] = &c
	}
	return &out
}

func kidFields(t iceberg.Type) []iceberg.NestedField {
	switch n := t.(type) {
	case *iceberg.StructType:
		return n.FieldList
	case *iceberg.ListType:
		return []iceberg.NestedField{n.ElementField()}
	case *iceberg.MapType:
		return []iceberg.NestedField{n.KeyField(), n.ValueField()}
	}
	return nil
}

// uniqueNames are the names of nodes, later ones of equal name with a number behind.
func uniqueNames(nodes []*fileNode) []string {
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.name] = true
	}
	used := map[string]bool{}
	out := make([]string, len(nodes))
	for i, n := range nodes {
		name := n.name
		for k := 1; used[name] || k > 1 && seen[name]; k++ {
			name = n.name + "_" + strconv.Itoa(k)
		}
		used[name] = true
		out[i] = name
	}
	return out
}

// loneTasks are the tasks of a table of lone files.
func (sc *scan) loneTasks() []*Task {
	var out []*Task
	for i := range sc.r.Table.Files {
		c := &sc.r.Table.Files[i]
		f := &dataFile{sc: sc, path: c.Path, open: c.Path, size: c.Size, records: -1, firstRowID: -1, spec: sc.specs[0], stats: &manifest.Manifest{}}
		switch c.Format {
		case manifest.Avro.String():
			f.format = manifest.Avro
		case manifest.ORC.String():
			f.format = manifest.ORC
		}
		out = append(out, &Task{Path: c.Path, Rows: -1, Bytes: c.Size, file: f})
	}
	sc.r.Profile.Files.Add(int64(len(out)), int64(len(out)))
	return out
}
