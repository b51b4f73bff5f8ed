package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// samples makes one table for each feature.
func (m *maker) samples(ctx context.Context) error {
	for name, make := range map[string]func(context.Context) error{
		"position_deletes": m.positionDeletes, "deletion_vectors": m.deletionVectors, "equality_deletes": m.equalityDeletes,
		"evolved": m.evolved, "events": m.events, "released": m.released, "nested": m.nested,
	} {
		if err := make(ctx); err != nil {
			return fmt.Errorf("table samples.%s: %w", name, err)
		}
	}
	return nil
}

func accounts(name, formatVersion string) spec {
	return spec{
		namespace: "samples", name: name, rows: 10_000, commits: 2,
		properties: iceberg.Properties{table.PropertyFormatVersion: formatVersion, table.WriteDeleteModeKey: table.WriteModeMergeOnRead},
		columns: []column{
			required("id", long, longs(func(i int) int64 { return int64(i) })),
			required("owner", text, texts(func(i int) string { return fmt.Sprintf("owner-%04d", pick(i, 1, 2000)) })),
			optional("balance", iceberg.DecimalTypeOf(12, 2), orNull(50, cents(func(i int) int64 { return int64(pick(i, 2, 1_000_000)) }))),
		},
	}
}

// positionDeletes has every account from 4,000 to 5,999 deleted by position delete files.
func (m *maker) positionDeletes(ctx context.Context) error {
	return m.deleteRange(ctx, accounts("position_deletes", "2"))
}

// deletionVectors has the same accounts deleted by deletion vectors.
func (m *maker) deletionVectors(ctx context.Context) error {
	return m.deleteRange(ctx, accounts("deletion_vectors", "3"))
}

func (m *maker) deleteRange(ctx context.Context, s spec) error {
	t, err := m.create(ctx, s)
	if err != nil {
		return err
	}
	id := iceberg.Reference("id")
	_, err = t.Delete(ctx, iceberg.NewAnd(iceberg.GreaterThanEqual(id, int64(4000)), iceberg.LessThan(id, int64(6000))), nil)
	return err
}

// equalityDeletes has every account of ten owners deleted by equality, and one of them added again afterwards.
func (m *maker) equalityDeletes(ctx context.Context) error {
	s := accounts("equality_deletes", "2")
	t, err := m.create(ctx, s)
	if err != nil {
		return err
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "owner", Type: arrow.BinaryTypes.String, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": "2"})}}, nil)
	rec := batch(schema, []column{{fill: texts(func(i int) string { return fmt.Sprintf("owner-%04d", i*100) })}}, 0, 10)
	defer rec.Release()
	tx := t.NewTransaction()
	err = tx.CommitEqualityDeletes(ctx, []int{2}, func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }, nil)
	if err != nil {
		return err
	}
	if t, err = tx.Commit(ctx); err != nil {
		return err
	}
	again := s.columns
	again[1].fill = texts(func(int) string { return "owner-0100" })
	_, err = appendRows(ctx, t, again, 20_000, 20_001)
	return err
}

// evolved has rows written under three schemas: a column was renamed, one widened, one dropped, one added with a default.
func (m *maker) evolved(ctx context.Context) error {
	s := spec{
		namespace: "samples", name: "evolved", rows: 1000,
		properties: iceberg.Properties{table.PropertyFormatVersion: "3"},
		columns: []column{
			required("id", integ, ints(func(i int) int { return i })),
			optional("name", text, texts(func(i int) string { return fmt.Sprintf("name %d", i) })),
			optional("legacy", text, texts(func(i int) string { return "old" })),
		},
	}
	t, err := m.create(ctx, s)
	if err != nil {
		return err
	}
	tx := t.NewTransaction()
	err = tx.UpdateSchema(true, false).
		RenameColumn([]string{"name"}, "title").
		DeleteColumn([]string{"legacy"}).
		AddColumn([]string{"grade"}, iceberg.PrimitiveTypes.String, "given to rows that were there before", false, iceberg.StringLiteral("unrated")).
		UpdateColumn([]string{"id"}, table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Valid: true, Val: long}}).
		Commit()
	if err != nil {
		return err
	}
	if t, err = tx.Commit(ctx); err != nil {
		return err
	}
	_, err = appendRows(ctx, t, []column{
		required("id", long, longs(func(i int) int64 { return int64(i) })),
		optional("title", text, texts(func(i int) string { return fmt.Sprintf("title %d", i) })),
		optional("grade", text, orNull(10, texts(oneOf(3, "A", "B", "C")))),
	}, 1000, 2000)
	return err
}

// events is partitioned by day, later by month and a bucket of the user.
func (m *maker) events(ctx context.Context) error {
	begin := int64(day(2026, time.January, 1)) * 86_400_000_000
	columns := []column{
		required("event_time", stamp, stamps(func(i int) int64 { return begin + int64(i)*1_300_000_000 })),
		required("user_id", long, longs(func(i int) int64 { return int64(pick(i, 1, 500)) })),
		required("kind", text, texts(oneOf(2, "view", "click", "buy", "leave"))),
		optional("amount", double, orNull(4, doubles(func(i int) float64 { return float64(pick(i, 3, 10_000)) / 100 }))),
	}
	t, err := m.create(ctx, spec{
		namespace: "samples", name: "events", rows: 2000, columns: columns,
		properties: iceberg.Properties{table.PropertyFormatVersion: "2"},
		partition: func(s *iceberg.Schema) (iceberg.PartitionSpec, error) {
			return iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "event_day", Transform: iceberg.DayTransform{}}), nil
		},
	})
	if err != nil {
		return err
	}
	tx := t.NewTransaction()
	err = tx.UpdateSpec(true).RemoveField("event_day").
		AddField("event_time", iceberg.MonthTransform{}, "event_month").
		AddField("user_id", iceberg.BucketTransform{NumBuckets: 4}, "user_bucket").Commit()
	if err != nil {
		return err
	}
	if t, err = tx.Commit(ctx); err != nil {
		return err
	}
	_, err = appendRows(ctx, t, columns, 2000, 6000)
	return err
}

// released has a tag at its first snapshot and a branch with rows of its own.
func (m *maker) released(ctx context.Context) error {
	columns := []column{
		required("id", long, longs(func(i int) int64 { return int64(i) })),
		required("note", text, texts(sentence(1))),
	}
	t, err := m.create(ctx, spec{namespace: "samples", name: "released", rows: 100, columns: columns,
		properties: iceberg.Properties{table.PropertyFormatVersion: "2"}})
	if err != nil {
		return err
	}
	first := t.CurrentSnapshot().SnapshotID
	ident := table.Identifier{"samples", "released"}
	_, _, err = m.cat.CommitTable(ctx, ident, nil, []table.Update{
		table.NewSetSnapshotRefUpdate("v1", first, table.TagRef, 0, 0, 0),
		table.NewSetSnapshotRefUpdate("audit", first, table.BranchRef, 0, 0, 0),
	})
	if err != nil {
		return err
	}
	if t, err = m.cat.LoadTable(ctx, ident); err != nil {
		return err
	}
	if t, err = appendRows(ctx, t, columns, 100, 250); err != nil {
		return err
	}
	schema, err := table.SchemaToArrowSchema(t.Schema(), nil, false, false)
	if err != nil {
		return err
	}
	tx, err := t.NewTransactionOnBranchWithError("audit")
	if err != nil {
		return err
	}
	if err := tx.Append(ctx, &generated{schema: schema, columns: columns, at: 1000, to: 1010, refs: 1}, nil); err != nil {
		return err
	}
	_, err = tx.Commit(ctx)
	return err
}

// nested has a struct, a list of structs and a map.
func (m *maker) nested(ctx context.Context) error {
	address := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 20, Name: "street", Type: text}, {ID: 21, Name: "zip", Type: text},
	}}
	item := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 22, Name: "sku", Type: text, Required: true}, {ID: 23, Name: "count", Type: integ},
	}}
	_, err := m.create(ctx, spec{
		namespace: "samples", name: "nested", rows: 1000,
		properties: iceberg.Properties{table.PropertyFormatVersion: "2"},
		columns: []column{
			required("id", long, longs(func(i int) int64 { return int64(i) })),
			optional("address", address, orNull(20, func(b array.Builder, i int) {
				s := b.(*array.StructBuilder)
				s.Append(true)
				texts(func(i int) string { return fmt.Sprintf("%d Main Street", i) })(s.FieldBuilder(0), i)
				orNull(7, texts(func(i int) string { return fmt.Sprintf("%05d", pick(i, 1, 99_999)) }))(s.FieldBuilder(1), i)
			})),
			optional("items", &iceberg.ListType{ElementID: 24, Element: item}, orNull(25, func(b array.Builder, i int) {
				l := b.(*array.ListBuilder)
				l.Append(true)
				for k := range pick(i, 2, 4) {
					s := l.ValueBuilder().(*array.StructBuilder)
					s.Append(true)
					texts(func(i int) string { return fmt.Sprintf("sku-%d", pick(i, 3+k, 100)) })(s.FieldBuilder(0), i)
					ints(func(i int) int { return 1 + pick(i, 9+k, 5) })(s.FieldBuilder(1), i)
				}
			})),
			optional("labels", &iceberg.MapType{KeyID: 25, KeyType: text, ValueID: 26, ValueType: text}, func(b array.Builder, i int) {
				m := b.(*array.MapBuilder)
				m.Append(true)
				for k := range pick(i, 15, 3) {
					texts(func(int) string { return fmt.Sprintf("key%d", k) })(m.KeyBuilder(), i)
					texts(oneOf(16, "red", "green", "blue"))(m.ItemBuilder(), i)
				}
			}),
		},
	})
	return err
}
