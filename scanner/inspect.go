package scanner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/vector"
)

// MetadataTable gives the columns and rows of a metadata table that is made from manifests: files, data_files, delete_files,
// entries, manifests, partitions, and with all_ before it files, data_files, delete_files, entries and manifests of every
// snapshot; and position_deletes. Names and types of columns are those of Iceberg Java. Another name is fault.NotFound.
func (s *Scanner) MetadataTable(ctx context.Context, t *catalog.Table, snap catalog.Snapshot, name string) ([]vector.Field, [][]vector.Value, error) {
	r := &Request{Table: t, Snapshot: snap, Projection: iceberg.NewSchema(0), Limit: -1, Profile: &profile.Scan{}}
	sc, err := newScan(s, r)
	if err != nil {
		return nil, nil, err
	}
	in := &inspector{sc: sc, ctx: ctx}
	if in.metrics, err = metrics(t.Metadata.CurrentSchema()); err != nil {
		return nil, nil, err
	}
	if in.partition, err = sc.unifiedPartition(); err != nil {
		return nil, nil, err
	}
	base, all := strings.CutPrefix(name, "all_")
	if base == "manifests" {
		err = in.manifests(all)
		return in.fields, in.rows, err
	}
	list, err := in.list(all)
	if err != nil {
		return nil, nil, err
	}
	switch base {
	case "files":
		err = in.files(list, func(uint8) bool { return true })
	case "data_files":
		err = in.files(list, func(c uint8) bool { return c == manifest.DataFile })
	case "delete_files":
		err = in.files(list, func(c uint8) bool { return c != manifest.DataFile })
	case "entries":
		err = in.entries(list)
	case "position_deletes":
		if !all {
			err = in.positionDeletes(list)
			break
		}
		fallthrough
	case "partitions":
		if !all {
			err = in.partitions(list)
			break
		}
		fallthrough
	default:
		return nil, nil, fault.New(fault.NotFound, "metadata table %s does not exist", name)
	}
	return in.fields, in.rows, err
}

// inspector collects the rows of a metadata table.
type inspector struct {
	sc        *scan
	ctx       context.Context
	partition *want // of all specs; without kids when the table was never partitioned
	metrics   []metric
	fields    []vector.Field
	rows      [][]vector.Value
}

// unifiedPartition is the struct of all partition fields that the table ever had, by field id.
func (sc *scan) unifiedPartition() (*want, error) {
	w := &want{name: "partition", typ: vector.Type{Kind: vector.Row}}
	void := map[int]bool{}
	for _, ps := range sc.r.Table.Metadata.PartitionSpecs() {
		for _, f := range ps.Fields() {
			t, isVoid := sc.partitionType(f)
			at := slices.IndexFunc(w.kids, func(k *want) bool { return k.id == f.FieldID })
			if at < 0 {
				w.kids = append(w.kids, &want{id: f.FieldID, name: f.Name, typ: t})
				void[f.FieldID] = isVoid
			} else if void[f.FieldID] && !isVoid {
				w.kids[at].typ, w.kids[at].name, void[f.FieldID] = t, f.Name, false
			}
		}
	}
	slices.SortFunc(w.kids, func(a, b *want) int { return a.id - b.id })
	for _, k := range w.kids {
		w.typ.Fields = append(w.typ.Fields, vector.Field{Name: k.name, Type: k.typ, Nullable: true, ID: k.id})
	}
	return w, nil
}

// partitionType is the type of a partition field's values; text when its source or transform is not known.
func (sc *scan) partitionType(f iceberg.PartitionField) (t vector.Type, void bool) {
	switch f.Transform.(type) {
	case iceberg.BucketTransform, iceberg.YearTransform, iceberg.MonthTransform, iceberg.HourTransform:
		return vector.Of(vector.Integer), false
	case iceberg.DayTransform:
		return vector.Of(vector.Date), false
	}
	_, void = f.Transform.(iceberg.VoidTransform)
	if len(f.SourceIDs) == 1 {
		schemas := append([]*iceberg.Schema{sc.r.Table.Metadata.CurrentSchema()}, sc.r.Table.Metadata.Schemas()...)
		for _, s := range schemas {
			if col, ok := s.FindFieldByID(f.SourceIDs[0]); ok {
				if t, err := catalog.TypeOf(col.Type); err == nil {
					return t, void
				}
			}
		}
	}
	return vector.Of(vector.Varchar), void
}

// list gives the manifests of the snapshot, or of all snapshots without repeats.
func (in *inspector) list(all bool) ([]manifest.File, error) {
	if !all {
		if !in.sc.r.Snapshot.Present {
			return nil, nil
		}
		return in.sc.manifests(in.ctx)
	}
	seen := map[string]bool{}
	var out []manifest.File
	err := in.everySnapshot(func(_ int64, f *manifest.File) {
		if !seen[f.Path] {
			seen[f.Path] = true
			out = append(out, *f)
		}
	})
	return out, err
}

func (in *inspector) everySnapshot(take func(id int64, f *manifest.File)) error {
	for _, s := range in.sc.r.Table.Metadata.Snapshots() {
		r := *in.sc.r
		r.Snapshot.ID, r.Snapshot.Present = s.SnapshotID, true
		one := &scan{s: in.sc.s, r: &r}
		list, err := one.manifests(in.ctx)
		if err != nil {
			return err
		}
		for i := range list {
			take(s.SnapshotID, &list[i])
		}
	}
	return nil
}

// each visits the entries of manifests, deleted ones too.
func (in *inspector) each(list []manifest.File, visit func(e *entry) error) error {
	for i := range list {
		f := &list[i]
		m, err := in.sc.manifest(in.ctx, f)
		if err != nil {
			return err
		}
		sp, err := in.sc.specOf(f, m)
		if err != nil {
			return err
		}
		e := &entry{in: in, list: f, m: m, file: &dataFile{sc: in.sc, spec: sp, tuple: in.sc.partitionColumns(m, sp)}}
		for e.i = range m.N {
			e.file.row = e.i
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry is a manifest entry under inspection.
type entry struct {
	in    *inspector
	sizes [][]vector.Pair // of the manifest's entries; nil until asked for

	list *manifest.File
	m    *manifest.Manifest
	i    int
	file *dataFile
}

func nullable(name string, t vector.Type) vector.Field {
	return vector.Field{Name: name, Type: t, Nullable: true}
}

var (
	tInt, tLong, tText, tBytes = vector.Of(vector.Integer), vector.Of(vector.BigInt), vector.Of(vector.Varchar), vector.Of(vector.Varbinary)
	tInstant                   = vector.Of(vector.TimestampTZ)
)

// fileFields are the columns of the files tables.
func (in *inspector) fileFields() []vector.Field {
	fields := []vector.Field{nullable("content", tInt), nullable("file_path", tText), nullable("file_format", tText), nullable("spec_id", tInt)}
	if len(in.partition.kids) > 0 {
		fields = append(fields, nullable("partition", in.partition.typ))
	}
	counts, bounds := vector.MapOf(tInt, tLong), vector.MapOf(tInt, tBytes)
	return append(fields, nullable("record_count", tLong), nullable("file_size_in_bytes", tLong), nullable("column_sizes", counts), nullable("value_counts", counts),
		nullable("null_value_counts", counts), nullable("nan_value_counts", counts), nullable("lower_bounds", bounds), nullable("upper_bounds", bounds),
		nullable("key_metadata", tBytes), nullable("split_offsets", vector.ArrayOf(tLong)), nullable("equality_ids", vector.ArrayOf(tInt)),
		nullable("sort_order_id", tInt), nullable("first_row_id", tLong), nullable("referenced_data_file", tText), nullable("content_offset", tLong),
		nullable("content_size_in_bytes", tLong))
}

// partitionValue is the partition of an entry in the table's unified type.
func (in *inspector) partitionValue(e *entry) vector.Value {
	row, _ := e.file.partitionRow(in.partition).([]vector.Value)
	for k, field := range in.partition.kids {
		if row[k] != nil || field.typ.Kind != vector.Varchar {
			continue
		}
		for i, pf := range e.file.spec.fields { // a value of unknown type, as text
			if v := e.file.tuple[i]; pf.FieldID == field.id && v != nil && !v.IsNull(e.i) {
				row[k] = fmt.Sprint(v.Get(e.i))
			}
		}
	}
	if row == nil {
		return nil
	}
	return row
}

// columnSizes gives the sizes of the entry's columns.
func (e *entry) columnSizes() ([]vector.Pair, error) {
	if e.sizes == nil {
		all, err := e.in.sizesOf(e.list)
		if err != nil {
			return nil, err
		}
		if len(all) != e.m.N {
			return nil, fault.New(fault.Corrupt, "manifest %s has %d entries, read again %d", e.list.Path, e.m.N, len(all))
		}
		e.sizes = all
	}
	return e.sizes[e.i], nil
}

func (in *inspector) fileRow(e *entry, sizes []vector.Pair) []vector.Value {
	m, i := e.m, e.i
	row := []vector.Value{int32(m.Content[i]), m.FilePath(i), strings.ToUpper(m.Formats[i].String()), int32(e.file.spec.ID())}
	if len(in.partition.kids) > 0 {
		row = append(row, in.partitionValue(e))
	}
	counts := func(pick func(*manifest.Stats) int64) vector.Value {
		out := []vector.Pair{}
		for _, s := range m.Stats {
			if n := pick(s); n >= 0 {
				out = append(out, vector.Pair{Key: int32(s.ID), Value: n})
			}
		}
		return sortedPairs(out)
	}
	bounds := func(pick func(*manifest.Stats) ([]byte, bool)) vector.Value {
		out := []vector.Pair{}
		for _, s := range m.Stats {
			if b, ok := pick(s); ok {
				out = append(out, vector.Pair{Key: int32(s.ID), Value: string(b)})
			}
		}
		return sortedPairs(out)
	}
	var columnSizes vector.Value
	if sizes != nil {
		columnSizes = sizes
	}
	row = append(row, m.Records.At(i), m.Sizes.At(i), columnSizes,
		counts(func(s *manifest.Stats) int64 { return s.Values.At(i) }), counts(func(s *manifest.Stats) int64 { return s.Nulls.At(i) }),
		counts(func(s *manifest.Stats) int64 { return s.NaNs.At(i) }),
		bounds(func(s *manifest.Stats) ([]byte, bool) { return s.Lower.At(i) }), bounds(func(s *manifest.Stats) ([]byte, bool) { return s.Upper.At(i) }))
	var key, ref vector.Value // key_metadata holds the file's key in clear: who may read rows is not given what opens files
	if p, ok := m.Referenced(i); ok {
		ref = p
	}
	var splits, ids vector.Value
	if xs := m.SplitOffsets.At(i); xs != nil {
		list := make([]vector.Value, len(xs))
		for k, x := range xs {
			list[k] = x
		}
		splits = list
	}
	if xs := m.EqualityIDs.At(i); len(xs) > 0 {
		list := make([]vector.Value, len(xs))
		for k, x := range xs {
			list[k] = int32(x)
		}
		ids = list
	}
	var first vector.Value
	if m.Content[i] == manifest.DataFile {
		first = unlessNegative(m.FirstRowID(i, e.list))
	}
	var order vector.Value
	if o := m.SortOrders.At(i); o >= 0 {
		order = int32(o)
	}
	return append(row, key, splits, ids, order, first, ref, unlessNegative(m.ContentOffset.At(i)), unlessNegative(m.ContentSize.At(i)))
}

func sortedPairs(ps []vector.Pair) vector.Value {
	if len(ps) == 0 {
		return nil
	}
	slices.SortFunc(ps, func(a, b vector.Pair) int { return int(a.Key.(int32)) - int(b.Key.(int32)) })
	return ps
}

func unlessNegative(x int64) vector.Value {
	if x < 0 {
		return nil
	}
	return x
}

func (in *inspector) files(list []manifest.File, wanted func(content uint8) bool) error {
	in.fields = append(in.fileFields(), nullable("readable_metrics", metricsType(in.metrics)))
	return in.each(list, func(e *entry) error {
		if e.m.Status[e.i] == manifest.Deleted || !wanted(e.m.Content[e.i]) {
			return nil
		}
		sizes, err := e.columnSizes()
		if err == nil {
			in.rows = append(in.rows, append(in.fileRow(e, sizes), metricsValue(in.metrics, e.m, e.i, sizes)))
		}
		return err
	})
}

func (in *inspector) entries(list []manifest.File) error {
	in.fields = []vector.Field{nullable("status", tInt), nullable("snapshot_id", tLong), nullable("sequence_number", tLong),
		nullable("file_sequence_number", tLong), nullable("data_file", vector.RowOf(in.fileFields()...)), nullable("readable_metrics", metricsType(in.metrics))}
	return in.each(list, func(e *entry) error {
		id := e.m.Snapshots.At(e.i)
		if id < 0 {
			id = e.list.SnapshotID
		}
		var seq vector.Value
		if n, err := e.m.Seq(e.i, e.list); err == nil {
			seq = n
		} else if e.m.Status[e.i] != manifest.Deleted {
			return err
		}
		sizes, err := e.columnSizes()
		if err != nil {
			return err
		}
		in.rows = append(in.rows, []vector.Value{int32(e.m.Status[e.i]), unlessNegative(id), seq, unlessNegative(e.m.FileSeq(e.i, e.list)),
			in.fileRow(e, sizes), metricsValue(in.metrics, e.m, e.i, sizes)})
		return nil
	})
}

func (in *inspector) manifests(all bool) error {
	summary := vector.RowOf(nullable("contains_null", vector.Of(vector.Boolean)), nullable("contains_nan", vector.Of(vector.Boolean)),
		nullable("lower_bound", tText), nullable("upper_bound", tText))
	in.fields = []vector.Field{nullable("content", tInt), nullable("path", tText), nullable("length", tLong), nullable("partition_spec_id", tInt),
		nullable("added_snapshot_id", tLong), nullable("added_data_files_count", tInt), nullable("existing_data_files_count", tInt),
		nullable("deleted_data_files_count", tInt), nullable("added_delete_files_count", tInt), nullable("existing_delete_files_count", tInt),
		nullable("deleted_delete_files_count", tInt), nullable("partition_summaries", vector.ArrayOf(summary))}
	if all {
		in.fields = append(in.fields, nullable("reference_snapshot_id", tLong))
		return in.everySnapshot(func(id int64, f *manifest.File) { in.rows = append(in.rows, append(in.manifestRow(f), id)) })
	}
	list, err := in.list(false)
	for i := range list {
		in.rows = append(in.rows, in.manifestRow(&list[i]))
	}
	return err
}

func (in *inspector) manifestRow(f *manifest.File) []vector.Value {
	count := func(c manifest.Content, n int64) vector.Value {
		switch {
		case c != f.Content:
			return int32(0)
		case n < 0:
			return nil
		}
		return int32(n)
	}
	var summaries vector.Value
	if f.Partitions != nil {
		list := make([]vector.Value, len(f.Partitions))
		for i := range f.Partitions {
			p := &f.Partitions[i]
			var nan vector.Value
			if p.NaNKnown {
				nan = p.ContainsNaN
			}
			list[i] = []vector.Value{p.ContainsNull, nan, in.boundText(f.SpecID, i, p.Lower), in.boundText(f.SpecID, i, p.Upper)}
		}
		summaries = list
	}
	return []vector.Value{int32(f.Content), f.Path, unlessNegative(f.Length), int32(max(f.SpecID, 0)), unlessNegative(f.SnapshotID),
		count(manifest.Data, f.AddedFiles), count(manifest.Data, f.ExistingFiles), count(manifest.Data, f.DeletedFiles),
		count(manifest.Deletes, f.AddedFiles), count(manifest.Deletes, f.ExistingFiles), count(manifest.Deletes, f.DeletedFiles), summaries}
}

// boundText renders a bound of a partition summary.
func (in *inspector) boundText(specID, i int, b []byte) vector.Value {
	sp := in.sc.specs[specID]
	if b == nil || sp == nil || i >= len(sp.fields) {
		return nil
	}
	typ, _ := in.sc.partitionType(sp.fields[i])
	if typ.Kind == vector.Varchar {
		return string(b)
	}
	it, ok := icebergType(typ)
	if !ok {
		return fmt.Sprintf("%x", b)
	}
	l, err := iceberg.LiteralFromBytes(it, b)
	if err != nil {
		return fmt.Sprintf("%x", b)
	}
	return l.String()
}

// icebergType names the primitive types that literals are rendered for.
func icebergType(t vector.Type) (iceberg.Type, bool) {
	switch t.Kind {
	case vector.Boolean:
		return iceberg.PrimitiveTypes.Bool, true
	case vector.Integer:
		return iceberg.PrimitiveTypes.Int32, true
	case vector.BigInt:
		return iceberg.PrimitiveTypes.Int64, true
	case vector.Real:
		return iceberg.PrimitiveTypes.Float32, true
	case vector.Double:
		return iceberg.PrimitiveTypes.Float64, true
	case vector.Date:
		return iceberg.PrimitiveTypes.Date, true
	case vector.Time:
		return iceberg.PrimitiveTypes.Time, true
	case vector.Timestamp, vector.TimestampTZ:
		return iceberg.PrimitiveTypes.Timestamp, !t.Nanos()
	case vector.UUID:
		return iceberg.PrimitiveTypes.UUID, true
	case vector.Decimal:
		return iceberg.DecimalTypeOf(t.Precision, t.Scale), true
	}
	return nil, false
}

// partitions sums up the live files of each partition.
func (in *inspector) partitions(list []manifest.File) error {
	type sums struct {
		value                                          vector.Value
		spec                                           int32
		records, bytes, posRecords, eqRecords, updated int64
		files, posFiles, eqFiles                       int32
		snapshot                                       int64
	}
	byKey := map[string]*sums{}
	var order []*sums
	err := in.each(list, func(e *entry) error {
		m, i := e.m, e.i
		if m.Status[i] == manifest.Deleted {
			return nil
		}
		key := fmt.Sprint(e.file.spec.ID(), ";", tupleKey(m, e.file.tuple, i))
		s := byKey[key]
		if s == nil {
			s = &sums{value: in.partitionValue(e), spec: int32(e.file.spec.ID()), snapshot: -1}
			byKey[key] = s
			order = append(order, s)
		}
		switch m.Content[i] {
		case manifest.DataFile:
			s.records += max(m.Records.At(i), 0)
			s.files++
			s.bytes += max(m.Sizes.At(i), 0)
		case manifest.PositionDeletes:
			s.posRecords += max(m.Records.At(i), 0)
			s.posFiles++
		default:
			s.eqRecords += max(m.Records.At(i), 0)
			s.eqFiles++
		}
		id := m.Snapshots.At(i)
		if id < 0 {
			id = e.list.SnapshotID
		}
		if snap := in.sc.r.Table.Metadata.SnapshotByID(id); snap != nil && (s.snapshot < 0 || snap.TimestampMs > s.updated) {
			s.snapshot, s.updated = id, snap.TimestampMs
		}
		return nil
	})
	if len(in.partition.kids) > 0 {
		in.fields = []vector.Field{nullable("partition", in.partition.typ)}
	}
	in.fields = append(in.fields, nullable("spec_id", tInt), nullable("record_count", tLong), nullable("file_count", tInt),
		nullable("total_data_file_size_in_bytes", tLong), nullable("position_delete_record_count", tLong), nullable("position_delete_file_count", tInt),
		nullable("equality_delete_record_count", tLong), nullable("equality_delete_file_count", tInt), nullable("last_updated_at", tInstant),
		nullable("last_updated_snapshot_id", tLong))
	for _, s := range order {
		var row []vector.Value
		if len(in.partition.kids) > 0 {
			row = append(row, s.value)
		}
		var at vector.Value
		if s.snapshot >= 0 {
			at = time.UnixMilli(s.updated).UnixMicro()
		}
		in.rows = append(in.rows, append(row, s.spec, s.records, s.files, s.bytes, s.posRecords, s.posFiles, s.eqRecords, s.eqFiles, at, unlessNegative(s.snapshot)))
	}
	return err
}
