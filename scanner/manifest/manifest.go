package manifest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner/avro"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// Status of an entry.
type Status = uint8

// The statuses.
const (
	Existing Status = 0
	Added    Status = 1
	Deleted  Status = 2
)

// Contents of files.
const (
	DataFile        uint8 = 0
	PositionDeletes uint8 = 1 // position delete files and deletion vectors
	EqualityDeletes uint8 = 2
)

// Format is a file format.
type Format uint8

// The formats.
const (
	Parquet Format = iota
	Avro
	ORC
	Puffin
)

var formatNames = [...]string{"parquet", "avro", "orc", "puffin"}

// String is the name that manifests use, in lower case.
func (f Format) String() string { return formatNames[f] }

// Manifest holds the entries of a manifest in columns. -1 stands for null in all Longs.
type Manifest struct {
	Path string
	// N is the number of entries, deleted ones too.
	N       int
	Status  []uint8
	Content []uint8
	Formats []Format
	// Partition has a vector for each field of the partition tuple, in the file's own types.
	Partition []PartitionColumn
	Records   Longs
	Sizes     Longs
	Snapshots Longs
	// SpecID and Unpartitioned are what the manifest's own header says; SpecID -1 and SpecKnown false when it does not.
	SpecID        int
	SpecKnown     bool
	Unpartitioned bool

	seqs, fileSeqs Longs
	firstRowIDs    Longs
	rowOffsets     Longs // rows of earlier live entries that take their row ids from the list
	paths          Bytes
	prefix         string // of all paths
	// Stats by field id, in order of first appearance.
	Stats         []*Stats
	byID          map[int]*Stats
	SplitOffsets  Lists
	EqualityIDs   Lists
	SortOrders    Longs
	referenced    Bytes
	KeyMetadata   Bytes
	ContentOffset Longs
	ContentSize   Longs
	// Bytes is about how much memory the manifest takes.
	Bytes int64
}

// PartitionColumn is one field of the partition tuples.
type PartitionColumn struct {
	ID     int // partition field id; -1 when the file gives none
	Name   string
	Values *vector.Vector
}

// Stats are the statistics of a column by its field id.
type Stats struct {
	ID                  int
	Values, Nulls, NaNs Longs
	Lower, Upper        Bytes
}

// Column gives the statistics of a field id; nil when no entry has any.
func (m *Manifest) Column(id int) *Stats { return m.byID[id] }

// FilePath is the path of entry i as the manifest writes it.
func (m *Manifest) FilePath(i int) string {
	b, _ := m.paths.At(i)
	return m.prefix + string(b)
}

// Referenced is the data file that a delete file names; ok is false when it names none.
func (m *Manifest) Referenced(i int) (path string, ok bool) {
	b, ok := m.referenced.At(i)
	return string(b), ok
}

// Seq is the data sequence number of entry i, in a manifest that its list describes as f (spec: Sequence Number
// Inheritance). An entry that should have one and does not is fault.Corrupt.
func (m *Manifest) Seq(i int, f *File) (int64, error) {
	if s := m.seqs.At(i); s >= 0 {
		return s, nil
	}
	if m.Status[i] == Added || f.Seq == 0 {
		return f.Seq, nil
	}
	return 0, fault.New(fault.Corrupt, "manifest %s: entry %d (%s) exists already and has no sequence number", m.Path, i, m.FilePath(i))
}

// FileSeq is the file sequence number, inherited like Seq; -1 when there is none.
func (m *Manifest) FileSeq(i int, f *File) int64 {
	if s := m.fileSeqs.At(i); s >= 0 {
		return s
	}
	if m.Status[i] == Added || f.Seq == 0 {
		return f.Seq
	}
	return -1
}

// FirstRowID is the row id of the first row of data file i; -1 when its rows have no ids (spec: First Row ID Assignment).
func (m *Manifest) FirstRowID(i int, f *File) int64 {
	if f.FirstRowID < 0 {
		return -1
	}
	if id := m.firstRowIDs.At(i); id >= 0 {
		return id
	}
	return f.FirstRowID + m.rowOffsets.At(i)
}

const maxManifestBytes = 2 << 30

// Read decodes a manifest. path is the location as the store takes it, size its trusted length or -1. pool, unless nil,
// accounts for the bytes while they are decoded.
func Read(ctx context.Context, s storage.Store, path string, size int64, pool *memory.Pool) (*Manifest, error) {
	o, err := s.Open(ctx, path, size)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "manifest %s", path)
	}
	defer func() { _ = o.Close() }()
	// An object that decrypts has held the stored length against size itself.
	if stored, ok := o.(interface{ StoredSize() int64 }); size >= 0 && o.Size() != size && (!ok || stored.StoredSize() != size) {
		return nil, fault.New(fault.Corrupt, "manifest %s has %d bytes, but its manifest list says %d", path, o.Size(), size)
	}
	if o.Size() > maxManifestBytes {
		return nil, fault.New(fault.Exhausted, "manifest %s has %d bytes, more than %d", path, o.Size(), int64(maxManifestBytes))
	}
	m, err := decode(ctx, o, path, pool)
	return m, fault.Wrap(fault.Corrupt, err, "manifest %s", path)
}

func mapType(keyID, valueID int, value vector.Kind) vector.Type {
	return vector.Type{Kind: vector.Map, Fields: []vector.Field{field(keyID, "key", vector.Integer), field(valueID, "value", value)}}
}

func listType(id int, element vector.Kind) vector.Type {
	return vector.Type{Kind: vector.Array, Fields: []vector.Field{field(id, "element", element)}}
}

// entryFields and fileFields are the columns that are read, by position.
var (
	entryFields = []vector.Field{
		field(0, "status", vector.Integer), field(1, "snapshot_id", vector.BigInt), field(3, "sequence_number", vector.BigInt),
		field(4, "file_sequence_number", vector.BigInt),
	}
	fileFields = []vector.Field{
		field(134, "content", vector.Integer), field(100, "file_path", vector.Varchar), field(101, "file_format", vector.Varchar),
		field(103, "record_count", vector.BigInt), field(104, "file_size_in_bytes", vector.BigInt),
		{ID: 109, Name: "value_counts", Type: mapType(119, 120, vector.BigInt)},
		{ID: 110, Name: "null_value_counts", Type: mapType(121, 122, vector.BigInt)},
		{ID: 137, Name: "nan_value_counts", Type: mapType(138, 139, vector.BigInt)},
		{ID: 125, Name: "lower_bounds", Type: mapType(126, 127, vector.Varbinary)},
		{ID: 128, Name: "upper_bounds", Type: mapType(129, 130, vector.Varbinary)},
		field(131, "key_metadata", vector.Varbinary),
		{ID: 132, Name: "split_offsets", Type: listType(133, vector.BigInt)},
		// The specification says int; PyIceberg writes long.
		{ID: 135, Name: "equality_ids", Type: listType(136, vector.BigInt)},
		field(140, "sort_order_id", vector.Integer), field(142, "first_row_id", vector.BigInt),
		field(143, "referenced_data_file", vector.Varchar), field(144, "content_offset", vector.BigInt),
		field(145, "content_size_in_bytes", vector.BigInt),
	}
)

func decode(ctx context.Context, o storage.Object, path string, pool *memory.Pool) (*Manifest, error) {
	f, err := avro.Open(ctx, o, "")
	if err != nil {
		return nil, err
	}
	b := &builder{m: &Manifest{Path: path, SpecID: -1, byID: map[int]*Stats{}}}
	b.header(f.Meta)
	cols := avro.Resolve(f.Root, entryFields)
	if cols[0].Node == nil {
		return nil, fault.New(fault.Corrupt, "it has the wrong schema: it lacks status")
	}
	file, err := b.fileProjection(f.Root)
	if err != nil {
		return nil, err
	}
	r, err := f.NewReader(append(cols, file), pool)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		n, _, v, err := r.Next(ctx, vector.Size)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return b.finish(), nil
		}
		if err := b.batch(n, v); err != nil {
			return nil, err
		}
	}
}

// builder collects the columns of a Manifest.
type builder struct {
	m                                       *Manifest
	partition                               int // position of the partition struct in the data file's children, -1
	partitions                              []*vector.Builder
	snapshots, seqs, fileSeqs               []int64
	records, sizes, firstRowIDs, rowOffsets []int64
	sortOrders, offsets, offsetSizes        []int64
	splitEnds, eqEnds                       []uint32
	splits, eqs                             []int64
	paths, referenced, keys                 bytesBuilder
	rows                                    int64 // of entries so far that take their ids from the list
	stats                                   map[int]*statsBuilder
	order                                   []*statsBuilder
	maps                                    [5][]*statsBuilder // guess of the columns of a map's entries, by position
}

type statsBuilder struct {
	id           int
	counts       [3][]int64
	lower, upper bytesBuilder
}

func (b *builder) header(meta map[string]string) {
	if id, err := strconv.Atoi(meta["partition-spec-id"]); err == nil {
		b.m.SpecID = id
	}
	var fields []struct {
		Transform string `json:"transform"`
	}
	if doc, ok := meta["partition-spec"]; ok && json.Unmarshal([]byte(doc), &fields) == nil {
		b.m.SpecKnown, b.m.Unpartitioned = true, true
		for _, f := range fields {
			if f.Transform != "void" {
				b.m.Unpartitioned = false
			}
		}
	}
}

func (b *builder) fileProjection(root *avro.Node) (*avro.Projection, error) {
	var node *avro.Node
	for _, c := range root.Children {
		if c.ID == 2 || c.ID < 0 && c.Name == "data_file" {
			node = c
		}
	}
	if node == nil || node.Kind != avro.Record {
		return nil, fault.New(fault.Corrupt, "it has the wrong schema: it lacks data_file")
	}
	children := avro.Resolve(node, fileFields)
	for _, need := range []int{1, 2, 3, 4} {
		if children[need].Node == nil {
			return nil, fault.New(fault.Corrupt, "it has the wrong schema: it lacks %s", fileFields[need].Name)
		}
	}
	fields := append([]vector.Field(nil), fileFields...)
	b.partition = -1
	for _, c := range node.Children {
		if (c.ID == 102 || c.ID < 0 && c.Name == "partition") && c.Kind == avro.Record {
			b.partition = len(fields)
			p := &avro.Projection{Node: c, Type: vector.Type{Kind: vector.Row}}
			for _, pf := range c.Children {
				t, ok := pf.Natural()
				if !ok {
					return nil, fault.New(fault.Corrupt, "partition field %s is an Avro %s", pf.Name, pf.Kind)
				}
				p.Type.Fields = append(p.Type.Fields, vector.Field{Name: pf.Name, ID: pf.ID, Type: t, Nullable: true})
				p.Children = append(p.Children, &avro.Projection{Type: t, Node: pf})
				b.m.Partition = append(b.m.Partition, PartitionColumn{ID: pf.ID, Name: pf.Name})
				b.partitions = append(b.partitions, vector.NewBuilder(t))
			}
			fields, children = append(fields, vector.Field{ID: 102, Name: "partition", Type: p.Type}), append(children, p)
			break
		}
	}
	b.stats = map[int]*statsBuilder{}
	b.splitEnds, b.eqEnds = []uint32{0}, []uint32{0}
	return &avro.Projection{Type: vector.RowOf(fields...), Node: node, Children: children}, nil
}

func (b *builder) batch(n int, v []*vector.Vector) error {
	m := b.m
	file := v[4]
	c := file.Children
	for i := range n {
		row := m.N
		if v[0].IsNull(i) || file.IsNull(i) || c[1].IsNull(i) || c[2].IsNull(i) || c[3].IsNull(i) || c[4].IsNull(i) {
			return fault.New(fault.Corrupt, "entry %d lacks a required value", row)
		}
		status, content := integer(v[0], i, 0), integer(c[0], i, 0)
		if status < 0 || status > 2 {
			return fault.New(fault.Corrupt, "entry %d has status %d, which is unknown", row, status)
		}
		if content < 0 || content > 2 {
			return fault.New(fault.Corrupt, "entry %d has content %d, which is unknown", row, content)
		}
		path := c[1].Bytes(i)
		if len(path) == 0 {
			return fault.New(fault.Corrupt, "entry %d has an empty file path", row)
		}
		format, err := formatOf(c[2].Bytes(i))
		if err != nil {
			return fault.Wrap(fault.Corrupt, err, "file %s", path)
		}
		if b.paths.full || b.referenced.full || b.keys.full {
			return fault.New(fault.Unsupported, "its file paths take more than 4 GiB")
		}
		m.Status = append(m.Status, uint8(status))
		m.Content = append(m.Content, uint8(content))
		m.Formats = append(m.Formats, format)
		b.paths.add(path, true)
		records, first := long(c[3], i, 0), long(c[14], i, -1)
		b.records = append(b.records, records)
		b.sizes = append(b.sizes, long(c[4], i, 0))
		b.snapshots = append(b.snapshots, long(v[1], i, -1))
		b.seqs = append(b.seqs, long(v[2], i, -1))
		b.fileSeqs = append(b.fileSeqs, long(v[3], i, -1))
		b.sortOrders = append(b.sortOrders, int64(integer(c[13], i, -1)))
		b.firstRowIDs = append(b.firstRowIDs, first)
		b.rowOffsets = append(b.rowOffsets, b.rows)
		if first < 0 && status != int32(Deleted) && content == 0 {
			b.rows += max(records, 0)
		}
		b.offsets = append(b.offsets, long(c[16], i, -1))
		b.offsetSizes = append(b.offsetSizes, long(c[17], i, -1))
		b.optional(&b.keys, c[10], i)
		b.optional(&b.referenced, c[15], i)
		if s := c[11]; !s.IsNull(i) {
			for k := s.Offsets[i]; k < s.Offsets[i+1]; k++ {
				b.splits = append(b.splits, long(s.Children[0], int(k), 0))
			}
		}
		b.splitEnds = append(b.splitEnds, uint32(len(b.splits)))
		if s := c[12]; !s.IsNull(i) {
			for k := s.Offsets[i]; k < s.Offsets[i+1]; k++ {
				b.eqs = append(b.eqs, long(s.Children[0], int(k), 0))
			}
		}
		b.eqEnds = append(b.eqEnds, uint32(len(b.eqs)))
		for k := range 5 {
			b.statistics(k, c[5+k], i, row)
		}
		m.N++
	}
	if b.partition >= 0 {
		p := c[b.partition]
		for k, pb := range b.partitions {
			for i := range n {
				if p.IsNull(i) {
					pb.AppendNull()
				} else {
					pb.AppendFrom(p.Children[k], i)
				}
			}
		}
	}
	return nil
}

func (b *builder) optional(col *bytesBuilder, v *vector.Vector, i int) {
	if v.IsNull(i) {
		if col.rows > 0 {
			col.pad(b.m.N)
			col.add(nil, false)
		}
		return
	}
	col.pad(b.m.N)
	col.add(v.Bytes(i), true)
}

// statistics takes entry i of one of the maps: value, null and NaN counts, lower and upper bounds.
func (b *builder) statistics(which int, v *vector.Vector, i, row int) {
	if v.IsNull(i) {
		return
	}
	ids, values := v.Children[0], v.Children[1]
	lo, hi := int(v.Offsets[i]), int(v.Offsets[i+1])
	guess := b.maps[which]
	for k := lo; k < hi; k++ {
		if ids.IsNull(k) || values.IsNull(k) {
			continue
		}
		id := int(ids.Values().I32[ids.Index(k)])
		var s *statsBuilder
		if at := k - lo; at < len(guess) && guess[at].id == id {
			s = guess[at]
		} else {
			if s = b.stats[id]; s == nil {
				s = &statsBuilder{id: id}
				b.stats[id] = s
				b.order = append(b.order, s)
			}
			if at == len(guess) {
				guess = append(guess, s)
				b.maps[which] = guess
			}
		}
		switch which {
		case 3:
			if s.lower.rows <= row {
				s.lower.pad(row)
				s.lower.add(values.Bytes(k), true)
			}
		case 4:
			if s.upper.rows <= row {
				s.upper.pad(row)
				s.upper.add(values.Bytes(k), true)
			}
		default:
			for len(s.counts[which]) < row {
				s.counts[which] = append(s.counts[which], -1)
			}
			if len(s.counts[which]) == row {
				s.counts[which] = append(s.counts[which], values.Values().I64[values.Index(k)])
			}
		}
	}
}

func formatOf(name []byte) (Format, error) {
	for i, n := range formatNames {
		if strings.EqualFold(n, string(name)) {
			return Format(i), nil
		}
	}
	return 0, fault.New(fault.Unsupported, "file format %.40q is unknown", name)
}

func (b *builder) finish() *Manifest {
	m, n := b.m, b.m.N
	m.Records, m.Sizes, m.Snapshots = packLongs(b.records, n), packLongs(b.sizes, n), packLongs(b.snapshots, n)
	m.seqs, m.fileSeqs = packLongs(b.seqs, n), packLongs(b.fileSeqs, n)
	m.firstRowIDs, m.rowOffsets = packLongs(b.firstRowIDs, n), packLongs(b.rowOffsets, n)
	m.SortOrders = packLongs(b.sortOrders, n)
	m.ContentOffset, m.ContentSize = packLongs(b.offsets, n), packLongs(b.offsetSizes, n)
	m.SplitOffsets, m.EqualityIDs = packLists(b.splitEnds, b.splits), packLists(b.eqEnds, b.eqs)
	m.KeyMetadata, m.referenced = b.keys.finish(n), b.referenced.finish(n)
	m.prefix = b.cutPrefix()
	m.paths = b.paths.finish(n)
	for k, pb := range b.partitions {
		m.Partition[k].Values = pb.Finish()
		m.Bytes += vectorBytes(m.Partition[k].Values)
	}
	for _, s := range b.order {
		st := &Stats{ID: s.id, Values: packLongs(s.counts[0], n), Nulls: packLongs(s.counts[1], n), NaNs: packLongs(s.counts[2], n),
			Lower: s.lower.finish(n), Upper: s.upper.finish(n)}
		st.Values = asRecords(st.Values, &m.Records, n)
		m.Stats = append(m.Stats, st)
		m.byID[s.id] = st
		m.Bytes += st.Nulls.size() + st.NaNs.size() + st.Lower.size() + st.Upper.size() + 300
		if st.Values.i32 == nil || m.Records.i32 == nil || n == 0 || &st.Values.i32[0] != &m.Records.i32[0] {
			m.Bytes += st.Values.size()
		}
	}
	for _, c := range []*Longs{&m.Records, &m.Sizes, &m.Snapshots, &m.seqs, &m.fileSeqs, &m.firstRowIDs, &m.rowOffsets, &m.SortOrders, &m.ContentOffset, &m.ContentSize} {
		m.Bytes += c.size()
	}
	m.Bytes += m.paths.size() + m.referenced.size() + m.KeyMetadata.size() + m.SplitOffsets.size() + m.EqualityIDs.size() + int64(3*n) + int64(len(m.Path)) + 600
	return m
}

// asRecords lets value counts that equal the record counts, as those of every top-level column do, share their array.
func asRecords(c Longs, records *Longs, n int) Longs {
	if c.i32 == nil || records.i32 == nil {
		return c
	}
	for i := range n {
		if c.i32[i] != records.i32[i] {
			return c
		}
	}
	return *records
}

// cutPrefix takes what all paths begin with off them.
func (b *builder) cutPrefix() string {
	p := &b.paths
	if p.rows < 2 {
		return ""
	}
	common := p.data[:p.ends[1]]
	for i := 1; i < p.rows && len(common) > 0; i++ {
		path := p.data[p.ends[i]:p.ends[i+1]]
		k := 0
		for k < len(common) && k < len(path) && common[k] == path[k] {
			k++
		}
		common = common[:k]
	}
	cut := bytesBuilder{}
	prefix := string(common)
	for i := range p.rows {
		cut.add(p.data[int(p.ends[i])+len(prefix):p.ends[i+1]], true)
	}
	*p = cut
	return prefix
}

func vectorBytes(v *vector.Vector) int64 {
	n := int64(len(v.Valid)*8 + len(v.Bools) + len(v.I32)*4 + len(v.I64)*8 + len(v.I128)*16 + len(v.F32)*4 + len(v.F64)*8 + len(v.Views)*16)
	for _, b := range v.Bufs {
		n += int64(cap(b))
	}
	return n
}
