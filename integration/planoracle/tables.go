package main

import (
	"context"
	"fmt"
	"math"
	"math/rand"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
)

var schema = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "kind", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "at", Type: iceberg.PrimitiveTypes.Timestamp},
	iceberg.NestedField{ID: 4, Name: "n", Type: iceberg.PrimitiveTypes.Int32},
	iceberg.NestedField{ID: 5, Name: "x", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 6, Name: "day", Type: iceberg.PrimitiveTypes.Date},
	iceberg.NestedField{ID: 7, Name: "amount", Type: iceberg.DecimalTypeOf(9, 2)},
)

// made is a table of the suite.
type made struct {
	name  string
	table *table.Table
}

// recipe says how a table is made.
type recipe struct {
	name    string
	version string
	spec    []iceberg.PartitionField
	// evolve changes the spec after some of the data has been written.
	evolve func(*table.UpdateSpec)
	// positions and keys are how many ids are deleted by position files or vectors, and by equality.
	positions, keys int
}

func field(source int, name string, t iceberg.Transform) iceberg.PartitionField {
	return iceberg.PartitionField{SourceIDs: []int{source}, Name: name, Transform: t}
}

var recipes = []recipe{
	{name: "plain", version: "2"},
	{name: "plain_v1", version: "1", spec: []iceberg.PartitionField{field(2, "kind", iceberg.IdentityTransform{})}},
	{name: "identity_nan", version: "2", spec: []iceberg.PartitionField{field(5, "x", iceberg.IdentityTransform{})}, positions: 4},
	{name: "bucket", version: "2", spec: []iceberg.PartitionField{field(1, "b", iceberg.BucketTransform{NumBuckets: 3}), field(2, "k", iceberg.BucketTransform{NumBuckets: 2})}},
	{name: "truncate", version: "2", spec: []iceberg.PartitionField{field(4, "t", iceberg.TruncateTransform{Width: 25}), field(2, "p", iceberg.TruncateTransform{Width: 2})}, keys: 5},
	{name: "amounts", version: "3", spec: []iceberg.PartitionField{field(7, "a", iceberg.TruncateTransform{Width: 5000})}, positions: 3},
	{name: "hour", version: "2", spec: []iceberg.PartitionField{field(3, "h", iceberg.HourTransform{})}},
	{name: "day", version: "3", spec: []iceberg.PartitionField{field(3, "d", iceberg.DayTransform{})}, positions: 5, keys: 2},
	{name: "month", version: "2", spec: []iceberg.PartitionField{field(6, "m", iceberg.MonthTransform{})}},
	{name: "year", version: "2", spec: []iceberg.PartitionField{field(6, "y", iceberg.YearTransform{})}, keys: 4},
	{name: "void", version: "2", spec: []iceberg.PartitionField{field(2, "v", iceberg.VoidTransform{}), field(4, "n", iceberg.IdentityTransform{})}, positions: 3},
	{name: "evolved", version: "2", spec: []iceberg.PartitionField{field(2, "kind", iceberg.IdentityTransform{})}, positions: 4, keys: 3,
		evolve: func(u *table.UpdateSpec) {
			u.RemoveField("kind").AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "ib")
		}},
	{name: "evolved_v1", version: "1", spec: []iceberg.PartitionField{field(3, "d", iceberg.DayTransform{})},
		evolve: func(u *table.UpdateSpec) { u.RemoveField("d").AddField("at", iceberg.MonthTransform{}, "m") }},
	{name: "global_deletes", version: "2", positions: 6, keys: 6},
	{name: "vectors", version: "3", positions: 8},
}

// makeTables writes the tables below dir.
func makeTables(ctx context.Context, dir string, seed int64) ([]made, error) {
	cat, err := hadoop.NewCatalog("lake", dir, nil)
	if err != nil {
		return nil, err
	}
	if err := cat.CreateNamespace(ctx, table.Identifier{"ns"}, nil); err != nil {
		return nil, err
	}
	var out []made
	for _, r := range recipes {
		t, err := r.make(ctx, cat, rand.New(rand.NewSource(seed)))
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", r.name, err)
		}
		out = append(out, made{r.name, t})
	}
	return out, nil
}

func (r *recipe) make(ctx context.Context, cat *hadoop.Catalog, rnd *rand.Rand) (*table.Table, error) {
	const firstFieldID, commits, rows = 1000, 6, 40
	fields := append([]iceberg.PartitionField(nil), r.spec...)
	for i := range fields {
		fields[i].FieldID = firstFieldID + i
	}
	spec := iceberg.NewPartitionSpec(fields...)
	t, err := cat.CreateTable(ctx, table.Identifier{"ns", r.name}, schema, icatalog.WithPartitionSpec(&spec), icatalog.WithProperties(iceberg.Properties{
		"format-version": r.version, "write.delete.mode": "merge-on-read"}))
	if err != nil {
		return nil, err
	}
	for i := range commits {
		if i == commits/2 && r.evolve != nil {
			tx := t.NewTransaction()
			u := tx.UpdateSpec(true)
			r.evolve(u)
			if err := u.Commit(); err != nil {
				return nil, err
			}
			if t, err = tx.Commit(ctx); err != nil {
				return nil, err
			}
		}
		if t, err = appendRows(ctx, t, rnd, int64(i*rows), int64((i+1)*rows)); err != nil {
			return nil, err
		}
		if i == commits/2 || i == commits-1 {
			if t, err = r.delete(ctx, t, rnd, int64(i*rows)); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// delete removes some of the rows below an id.
func (r *recipe) delete(ctx context.Context, t *table.Table, rnd *rand.Rand, below int64) (_ *table.Table, err error) {
	for range r.positions {
		if t, err = t.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), rnd.Int63n(below)), nil); err != nil {
			return nil, err
		}
	}
	for range r.keys {
		key := rnd.Int63n(below)
		tx := t.NewTransaction()
		err := tx.CommitEqualityDeletes(ctx, []int{1}, func(yield func(arrow.RecordBatch, error) bool) {
			rec := records(rnd, key, key+1)
			defer rec.Release()
			yield(rec, nil)
		}, nil)
		if err != nil {
			return nil, err
		}
		if t, err = tx.Commit(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func appendRows(ctx context.Context, t *table.Table, rnd *rand.Rand, from, to int64) (*table.Table, error) {
	rec := records(rnd, from, to)
	defer rec.Release()
	r, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return t.Append(ctx, r, nil)
}

// kinds has no empty text: iceberg-go leaves out the bound of a manifest's partitions that is one, which Java takes to mean that all
// are null, so that it loses rows.
var kinds = []string{"open", "close", "click", "a kind with a long name", "ö"}

// firstDay and days bound the dates of rows: they lie on both sides of 1970.
const firstDay, days = -40, 80

// records makes rows of the ids from to to; the other columns repeat, and run with the ids, so that bounds and partitions tell files apart.
func records(rnd *rand.Rand, from, to int64) arrow.RecordBatch {
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		panic(err) // the schema is constant
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	const nullOneIn, microsADay = 8, 86_400_000_000
	for id := from; id < to; id++ {
		null := func() bool { return rnd.Intn(nullOneIn) == 0 }
		b.Field(0).(*array.Int64Builder).Append(id)
		day := firstDay + int(id)/4 + rnd.Intn(20)
		for i, add := range []func(array.Builder){
			func(b array.Builder) { b.(*array.StringBuilder).Append(kinds[rnd.Intn(len(kinds))]) },
			func(b array.Builder) {
				b.(*array.TimestampBuilder).Append(arrow.Timestamp(int64(day)*microsADay + rnd.Int63n(4)*microsADay/4))
			},
			func(b array.Builder) { b.(*array.Int32Builder).Append(int32(id) + int32(rnd.Intn(40)) - 100) },
			func(b array.Builder) {
				b.(*array.Float64Builder).Append([]float64{math.NaN(), 1.5, -2.25, 0, 1e9}[rnd.Intn(5)])
			},
			func(b array.Builder) { b.(*array.Date32Builder).Append(arrow.Date32(day)) },
			func(b array.Builder) {
				b.(*array.Decimal128Builder).Append(decimal128.FromI64(int64(rnd.Intn(20000)) - 10000))
			},
		} {
			if null() {
				b.Field(i + 1).AppendNull()
			} else {
				add(b.Field(i + 1))
			}
		}
	}
	return b.NewRecordBatch()
}
