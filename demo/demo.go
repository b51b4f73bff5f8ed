// Package demo makes a small lakehouse on local disk to try the server on: TPC-H-shaped tables and one table for each
// feature that Iceberg readers stumble over.
//
// It is for trying and for tests, not for benchmarks, and it is the only code of Skua that writes tables, by way of
// iceberg-go. Make may be called by one process at a time.
package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icecatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/hadoop"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"

	"github.com/skua-db/skua/fault"
)

// formatOfDemo changes whenever the tables change, so that an older demo is made anew.
const formatOfDemo = "1"

// marker is the file that says that a demo was made to its end.
const marker = ".skua-demo"

// Make makes the lakehouse in dir unless it is there already, and tells whether it did. A folder that holds something
// else is left alone and is fault.Invalid.
func Make(ctx context.Context, dir string, scale float64) (made bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	want := fmt.Sprintf("%s %g", formatOfDemo, scale)
	have, err := os.ReadFile(filepath.Join(dir, marker))
	switch {
	case err == nil && string(have) == want:
		return false, nil
	case err == nil:
		if err := os.RemoveAll(dir); err != nil {
			return false, err
		}
	default:
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return false, fault.New(fault.Invalid, "%s is not empty and is no finished demo; remove it or choose another folder", dir)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	// A demo that was not made to its end is recognised by this content and made anew.
	if err := os.WriteFile(filepath.Join(dir, marker), []byte("unfinished"), 0o644); err != nil {
		return false, err
	}
	cat, err := hadoop.NewCatalog("demo", dir, iceberg.Properties{})
	if err != nil {
		return false, err
	}
	m := &maker{cat: cat, scale: scale}
	for _, ns := range []string{"tpch", "samples"} {
		if err := cat.CreateNamespace(ctx, table.Identifier{ns}, nil); err != nil {
			return false, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, make := range []func(context.Context) error{m.tpch, m.samples} {
		g.Go(func() error { return make(gctx) })
	}
	if err := g.Wait(); err != nil {
		return false, fmt.Errorf("making the demo lakehouse: %w", err)
	}
	return true, os.WriteFile(filepath.Join(dir, marker), []byte(want), 0o644)
}

type maker struct {
	cat   *hadoop.Catalog
	scale float64
}

// column is a column of a table to make, with how its values come about: fill appends the value of row i.
type column struct {
	field iceberg.NestedField
	fill  func(b array.Builder, i int)
}

func required(name string, t iceberg.Type, fill func(b array.Builder, i int)) column {
	return column{iceberg.NestedField{Name: name, Type: t, Required: true}, fill}
}

func optional(name string, t iceberg.Type, fill func(b array.Builder, i int)) column {
	return column{iceberg.NestedField{Name: name, Type: t}, fill}
}

// spec describes a table to make.
type spec struct {
	namespace, name string
	columns         []column
	rows            int
	partition       func(s *iceberg.Schema) (iceberg.PartitionSpec, error)
	properties      iceberg.Properties
	// commits splits the rows over so many snapshots.
	commits int
}

func (m *maker) create(ctx context.Context, s spec) (*table.Table, error) {
	fields := make([]iceberg.NestedField, len(s.columns))
	for i, c := range s.columns {
		fields[i] = c.field
		fields[i].ID = i + 1
	}
	schema := iceberg.NewSchema(0, fields...)
	opts := []icecatalog.CreateTableOpt{icecatalog.WithProperties(s.properties)}
	if s.partition != nil {
		p, err := s.partition(schema)
		if err != nil {
			return nil, err
		}
		opts = append(opts, icecatalog.WithPartitionSpec(&p))
	}
	t, err := m.cat.CreateTable(ctx, table.Identifier{s.namespace, s.name}, schema, opts...)
	if err != nil {
		return nil, err
	}
	commits := max(1, s.commits)
	for c := range commits {
		if t, err = appendRows(ctx, t, s.columns, s.rows*c/commits, s.rows*(c+1)/commits); err != nil {
			return nil, err
		}
	}
	return t, nil
}

const batchRows = 64 << 10

// appendRows writes rows from (inclusive) to (exclusive) as one snapshot.
func appendRows(ctx context.Context, t *table.Table, columns []column, from, to int) (*table.Table, error) {
	schema, err := table.SchemaToArrowSchema(t.Schema(), nil, false, false)
	if err != nil {
		return nil, err
	}
	r := &generated{schema: schema, columns: columns, at: from, to: to}
	r.refs = 1
	return t.Append(ctx, r, nil)
}

// generated is a stream of record batches made from columns.
type generated struct {
	schema  *arrow.Schema
	columns []column
	at, to  int
	current arrow.RecordBatch
	refs    int64
}

func (g *generated) Retain()                        { g.refs++ }
func (g *generated) Schema() *arrow.Schema          { return g.schema }
func (g *generated) RecordBatch() arrow.RecordBatch { return g.current }
func (g *generated) Record() arrow.RecordBatch      { return g.current }
func (g *generated) Err() error                     { return nil }

func (g *generated) Release() {
	if g.refs--; g.refs == 0 && g.current != nil {
		g.current.Release()
		g.current = nil
	}
}

func (g *generated) Next() bool {
	if g.current != nil {
		g.current.Release()
		g.current = nil
	}
	if g.at >= g.to {
		return false
	}
	end := min(g.to, g.at+batchRows)
	g.current = batch(g.schema, g.columns, g.at, end)
	g.at = end
	return true
}

func batch(schema *arrow.Schema, columns []column, from, to int) arrow.RecordBatch {
	b := array.NewRecordBuilder(allocator, schema)
	defer b.Release()
	for k, c := range columns {
		f := b.Field(k)
		f.Reserve(to - from)
		for i := from; i < to; i++ {
			c.fill(f, i)
		}
	}
	return b.NewRecordBatch()
}

// day counts days since 1970.
func day(year int, month time.Month, d int) int {
	return int(time.Date(year, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}
