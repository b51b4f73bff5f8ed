// Command deletes writes tables with many equality deletes below a warehouse folder:
//
//	most     50,000 rows, of which 49,995 are deleted
//	keys     ten million keys in equality delete files; 7 rows are left
//	files50, files500   as many data files of 1,000 rows and as many delete files, each of which applies to every data file and deletes
//	                    every tenth row of one of them
//
//	go run ./integration/deletes WAREHOUSE
//
// It has one goroutine of its own.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
)

var schema = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true})

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "deletes: name the warehouse folder")
		os.Exit(1)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "deletes:", err)
		os.Exit(1)
	}
}

// step is a commit of the ids from (inclusive) to (exclusive), by step, as rows or as keys of an equality delete file.
type step struct {
	deletes        bool
	from, to, step int64
}

func write(ctx context.Context, dir string) error {
	const million = 1_000_000
	tables := map[string][]step{
		"most": {{from: 0, to: 50_000, step: 1}, {deletes: true, from: 0, to: 49_995, step: 1}},
		"keys": {{from: 0, to: 2000, step: 1}, {from: 10 * million, to: 10*million + 7, step: 1}},
	}
	for i := range int64(10) {
		tables["keys"] = append(tables["keys"], step{deletes: true, from: i * million, to: (i + 1) * million, step: 1})
	}
	for _, n := range []int64{50, 500} {
		const rows = 1000
		name := fmt.Sprintf("files%d", n)
		for i := range n {
			tables[name] = append(tables[name], step{from: i * rows, to: (i + 1) * rows, step: 1})
		}
		for i := range n {
			tables[name] = append(tables[name], step{deletes: true, from: i * rows, to: (i + 1) * rows, step: 10})
		}
	}
	cat, err := hadoop.NewCatalog("lake", dir, nil)
	if err != nil {
		return err
	}
	if err := cat.CreateNamespace(ctx, table.Identifier{"d"}, nil); err != nil {
		return err
	}
	for name, steps := range tables {
		t, err := cat.CreateTable(ctx, table.Identifier{"d", name}, schema)
		if err != nil {
			return err
		}
		for _, s := range steps {
			if t, err = s.commit(ctx, t); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
	}
	return nil
}

func (s step) commit(ctx context.Context, t *table.Table) (*table.Table, error) {
	as, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		return nil, err
	}
	if !s.deletes {
		rec := batch(as, s.from, s.to, s.step)
		defer rec.Release()
		r, err := array.NewRecordReader(as, []arrow.RecordBatch{rec})
		if err != nil {
			return nil, err
		}
		defer r.Release()
		return t.Append(ctx, r, nil)
	}
	as = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.MetadataFrom(map[string]string{"PARQUET:field_id": "1"})}}, nil)
	tx := t.NewTransaction()
	err = tx.CommitEqualityDeletes(ctx, []int{1}, func(yield func(arrow.RecordBatch, error) bool) {
		rec := batch(as, s.from, s.to, s.step)
		defer rec.Release()
		yield(rec, nil)
	}, nil)
	if err != nil {
		return nil, err
	}
	return tx.Commit(ctx)
}

func batch(schema *arrow.Schema, from, to, step int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	col := b.Field(0).(*array.Int64Builder)
	for ; from < to; from += step {
		col.Append(from)
	}
	return b.NewRecordBatch()
}
