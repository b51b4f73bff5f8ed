// Package manifest decodes manifest lists and manifests into compact columns, one array a statistic, so that a million
// files are planned by loops over memory rather than by a million objects.
//
// It prunes nothing and interprets no statistic: bounds stay the bytes that the file holds (scanner/prune reads them), and
// what a manifest inherits from its list is applied when asked for, so that a decoded manifest can be shared. Everything
// here is immutable once decoded.
package manifest

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Content says what the files of a manifest, or a file, hold.
type Content uint8

// Contents of manifests.
const (
	Data    Content = 0
	Deletes Content = 1
)

// File is a manifest as its manifest list describes it (spec: Manifest Lists).
type File struct {
	Path string
	// Length in bytes; -1 when unknown, for the inline manifests of a v1 snapshot.
	Length int64
	// SpecID is the partition spec; -1 when only the manifest itself says it.
	SpecID     int
	Content    Content
	Seq        int64
	MinSeq     int64
	SnapshotID int64
	// Counts of entries and rows by status; -1 when the list does not say.
	AddedFiles, ExistingFiles, DeletedFiles int64
	AddedRows, ExistingRows, DeletedRows    int64
	// Partitions summarises the partition fields in the order of the spec; nil when the list does not.
	Partitions  []Summary
	KeyMetadata []byte
	// FirstRowID is the row id of the first row of the first entry without one; -1 for none.
	FirstRowID int64
}

// Summary is what a manifest's files have in common in one partition field. A nil bound is unknown.
type Summary struct {
	ContainsNull bool
	// ContainsNaN is unknown unless NaNKnown.
	ContainsNaN, NaNKnown bool
	Lower, Upper          []byte
}

const maxListBytes = 1 << 30

var (
	summaryType = vector.RowOf(
		field(509, "contains_null", vector.Boolean), field(518, "contains_nan", vector.Boolean),
		field(510, "lower_bound", vector.Varbinary), field(511, "upper_bound", vector.Varbinary))
	listFields = []vector.Field{
		field(500, "manifest_path", vector.Varchar), field(501, "manifest_length", vector.BigInt),
		field(502, "partition_spec_id", vector.Integer), field(517, "content", vector.Integer),
		field(515, "sequence_number", vector.BigInt), field(516, "min_sequence_number", vector.BigInt),
		field(503, "added_snapshot_id", vector.BigInt),
		field(504, "added_files_count", vector.BigInt), field(505, "existing_files_count", vector.BigInt), field(506, "deleted_files_count", vector.BigInt),
		field(512, "added_rows_count", vector.BigInt), field(513, "existing_rows_count", vector.BigInt), field(514, "deleted_rows_count", vector.BigInt),
		{ID: 507, Name: "partitions", Nullable: true, Type: vector.Type{Kind: vector.Array, Fields: []vector.Field{{ID: 508, Name: "element", Type: summaryType}}}},
		field(519, "key_metadata", vector.Varbinary), field(520, "first_row_id", vector.BigInt),
	}
)

func field(id int, name string, k vector.Kind) vector.Field {
	return vector.Field{ID: id, Name: name, Type: vector.Of(k), Nullable: true}
}

// ReadList reads a manifest list. path is the location to open, as the store takes it; size is its length, or -1.
func ReadList(ctx context.Context, s storage.Store, path string, size int64) ([]File, error) {
	o, err := s.Open(ctx, path, size)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "manifest list %s", path)
	}
	defer func() { _ = o.Close() }()
	files, err := decodeList(ctx, o)
	return files, fault.Wrap(fault.Corrupt, err, "manifest list %s", path)
}

func decodeList(ctx context.Context, o storage.Object) ([]File, error) {
	if o.Size() > maxListBytes {
		return nil, fault.New(fault.Exhausted, "it has %d bytes, more than %d", o.Size(), maxListBytes)
	}
	f, err := avro.Open(ctx, o, "")
	if err != nil {
		return nil, err
	}
	cols := avro.Resolve(f.Root, listFields)
	for _, need := range []int{0, 1} {
		if cols[need].Node == nil {
			return nil, fault.New(fault.Corrupt, "it has the wrong schema: it lacks %s", listFields[need].Name)
		}
	}
	r, err := f.NewReader(cols, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []File
	for {
		n, _, v, err := r.Next(ctx, vector.Size)
		if err != nil || n == 0 {
			return out, err
		}
		for i := range n {
			m, err := listRow(v, i)
			if err != nil {
				return nil, err
			}
			out = append(out, m)
		}
	}
}

func listRow(v []*vector.Vector, i int) (File, error) {
	if v[0].IsNull(i) || v[1].IsNull(i) {
		return File{}, fault.New(fault.Corrupt, "an entry has no manifest_path or manifest_length")
	}
	m := File{
		Path: string(v[0].Bytes(i)), Length: long(v[1], i, 0), SpecID: int(integer(v[2], i, 0)), Seq: long(v[4], i, 0), MinSeq: long(v[5], i, 0),
		SnapshotID: long(v[6], i, -1), AddedFiles: long(v[7], i, -1), ExistingFiles: long(v[8], i, -1), DeletedFiles: long(v[9], i, -1),
		AddedRows: long(v[10], i, -1), ExistingRows: long(v[11], i, -1), DeletedRows: long(v[12], i, -1), FirstRowID: long(v[15], i, -1),
	}
	if m.Path == "" {
		return m, fault.New(fault.Corrupt, "an entry has an empty manifest_path")
	}
	if m.Length < 0 {
		return m, fault.New(fault.Corrupt, "manifest %s: manifest_length is negative, %d", m.Path, m.Length)
	}
	switch c := integer(v[3], i, 0); c {
	case 0, 1:
		m.Content = Content(c)
	default:
		return m, fault.New(fault.Corrupt, "manifest %s: content %d is unknown", m.Path, c)
	}
	if !v[14].IsNull(i) {
		m.KeyMetadata = clone(v[14].Bytes(i))
	}
	if p := v[13]; !p.IsNull(i) {
		lo, hi := int(p.Offsets[i]), int(p.Offsets[i+1])
		m.Partitions = make([]Summary, 0, hi-lo)
		rows := p.Children[0]
		for k := lo; k < hi; k++ {
			c := rows.Children
			s := Summary{ContainsNull: c[0].IsNull(k) || c[0].Bools[k]}
			if !c[1].IsNull(k) {
				s.NaNKnown, s.ContainsNaN = true, c[1].Bools[k]
			}
			if !c[2].IsNull(k) {
				s.Lower = clone(c[2].Bytes(k))
			}
			if !c[3].IsNull(k) {
				s.Upper = clone(c[3].Bytes(k))
			}
			m.Partitions = append(m.Partitions, s)
		}
	}
	return m, nil
}

func clone(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

func long(v *vector.Vector, i int, null int64) int64 {
	if v.IsNull(i) {
		return null
	}
	return v.Values().I64[v.Index(i)]
}

func integer(v *vector.Vector, i int, null int32) int32 {
	if v.IsNull(i) {
		return null
	}
	return v.Values().I32[v.Index(i)]
}
