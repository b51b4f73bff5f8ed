package server

import (
	"context"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	arrowmem "github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/vector"
)

// tableType is the one type of table there is.
const tableType = "TABLE"

// metadataBatchRows bounds batches of GetTables; those with schemas end earlier, at batchBytes.
const metadataBatchRows = 500

// loadsAtOnce is how many tables GetTables loads at a time for their schemas.
const loadsAtOnce = 16

// catalogsCommand is CommandGetCatalogs.
type catalogsCommand struct {
	s   *Server
	raw []byte
}

func (c *catalogsCommand) schema(context.Context) (*arrow.Schema, error) {
	return schema_ref.Catalogs, nil
}
func (c *catalogsCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

func (c *catalogsCommand) rows(ctx context.Context, out *rowWriter) error {
	b := array.NewRecordBuilder(memory.Arrow(c.s.opt.Pool), schema_ref.Catalogs)
	defer b.Release()
	names := visible{ctx, c.s}.Names()
	sort.Strings(names)
	b.Field(0).(*array.StringBuilder).AppendValues(names, nil)
	return out.batch(b.NewRecordBatch())
}

// schemasCommand is CommandGetDbSchemas.
type schemasCommand struct {
	s   *Server
	m   *pb.CommandGetDbSchemas
	raw []byte
}

func (c *schemasCommand) schema(context.Context) (*arrow.Schema, error) {
	return schema_ref.DBSchemas, nil
}
func (c *schemasCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

func (c *schemasCommand) rows(ctx context.Context, out *rowWriter) error {
	b := array.NewRecordBuilder(memory.Arrow(c.s.opt.Pool), schema_ref.DBSchemas)
	defer b.Release()
	err := c.s.eachNamespace(ctx, c.m.Catalog, c.m.DbSchemaFilterPattern, func(cat catalog.Catalog, ns catalog.Namespace) error {
		b.Field(0).(*array.StringBuilder).Append(cat.Name())
		b.Field(1).(*array.StringBuilder).Append(ns.String())
		return nil
	})
	if err != nil {
		return err
	}
	return out.batch(b.NewRecordBatch())
}

// eachNamespace visits the namespaces of the catalogs that match, in order of catalog and name. A catalog name of ""
// asks for what has no catalog: nothing. A catalog that is down is logged and passed over: the others still list.
func (s *Server) eachNamespace(ctx context.Context, only *string, pattern *string, visit func(catalog.Catalog, catalog.Namespace) error) error {
	match, err := likePattern(pattern)
	if err != nil {
		return err
	}
	names := visible{ctx, s}.Names()
	sort.Strings(names)
	for _, name := range names {
		if only != nil && *only != name {
			continue
		}
		all, err := s.allNamespaces(ctx, s.catalogs[name], nil)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			s.logFor(ctx).Warn("catalog cannot be listed", zap.String("catalog", name), zap.Error(err))
			continue
		}
		sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
		for _, ns := range all {
			if !match(ns.String()) {
				continue
			}
			if err := visit(s.catalogs[name], ns); err != nil {
				return err
			}
		}
	}
	return nil
}

// allNamespaces lists the namespaces at every level below parent. One below the top that cannot be listed hides no other.
func (s *Server) allNamespaces(ctx context.Context, c catalog.Catalog, parent catalog.Namespace) ([]catalog.Namespace, error) {
	level, err := c.Namespaces(ctx, parent)
	if err != nil {
		return nil, err
	}
	out := level
	for _, ns := range level {
		below, err := s.allNamespaces(ctx, c, ns)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.logFor(ctx).Warn("namespace cannot be listed", zap.String("catalog", c.Name()), zap.Stringer("namespace", ns), zap.Error(err))
			continue
		}
		out = append(out, below...)
	}
	return out, nil
}

// likePattern compiles a pattern with % and _; a backslash escapes. nil matches everything.
func likePattern(p *string) (func(string) bool, error) {
	if p == nil {
		return func(string) bool { return true }, nil
	}
	var re strings.Builder
	re.WriteString(`(?s)\A`)
	escaped := false
	for _, r := range *p {
		switch {
		case escaped:
			re.WriteString(regexp.QuoteMeta(string(r)))
			escaped = false
		case r == '\\':
			escaped = true
		case r == '%':
			re.WriteString(".*")
		case r == '_':
			re.WriteString(".")
		default:
			re.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	if escaped {
		re.WriteString(`\\`)
	}
	re.WriteString(`\z`)
	compiled, err := regexp.Compile(re.String())
	if err != nil {
		return nil, fault.New(fault.Invalid, "filter pattern %q is not valid", *p)
	}
	return compiled.MatchString, nil
}

// tablesCommand is CommandGetTables.
type tablesCommand struct {
	s   *Server
	m   *pb.CommandGetTables
	raw []byte
}

func (c *tablesCommand) schema(context.Context) (*arrow.Schema, error) {
	if c.m.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema, nil
	}
	return schema_ref.Tables, nil
}
func (c *tablesCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

type tableName struct {
	cat    catalog.Catalog
	ns     catalog.Namespace
	name   string
	schema []byte
}

func (c *tablesCommand) rows(ctx context.Context, out *rowWriter) error {
	tables, err := c.match(ctx)
	if err != nil {
		return err
	}
	schema, _ := c.schema(ctx)
	b := array.NewRecordBuilder(memory.Arrow(c.s.opt.Pool), schema)
	defer b.Release()
	for at := 0; at < len(tables) || at == 0; at += metadataBatchRows {
		part := tables[at:min(at+metadataBatchRows, len(tables))]
		if c.m.GetIncludeSchema() {
			if err := c.load(ctx, part); err != nil {
				return err
			}
		}
		bytes := 0
		for _, t := range part {
			if bytes += len(t.schema); bytes > batchBytes && bytes > len(t.schema) {
				if err := out.batch(b.NewRecordBatch()); err != nil {
					return err
				}
				bytes = len(t.schema)
			}
			b.Field(0).(*array.StringBuilder).Append(t.cat.Name())
			b.Field(1).(*array.StringBuilder).Append(t.ns.String())
			b.Field(2).(*array.StringBuilder).Append(t.name)
			b.Field(3).(*array.StringBuilder).Append(tableType)
			if c.m.GetIncludeSchema() {
				b.Field(4).(*array.BinaryBuilder).Append(t.schema)
			}
		}
		if err := out.batch(b.NewRecordBatch()); err != nil {
			return err
		}
	}
	return nil
}

func (c *tablesCommand) match(ctx context.Context) ([]*tableName, error) {
	wanted := len(c.m.GetTableTypes()) == 0
	for _, t := range c.m.GetTableTypes() {
		wanted = wanted || t == tableType
	}
	match, err := likePattern(c.m.TableNameFilterPattern)
	if err != nil || !wanted {
		return nil, err
	}
	var tables []*tableName
	err = c.s.eachNamespace(ctx, c.m.Catalog, c.m.DbSchemaFilterPattern, func(cat catalog.Catalog, ns catalog.Namespace) error {
		names, err := cat.Tables(ctx, ns)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if fault.KindOf(err) != fault.NotFound { // else it was dropped while we look
				c.s.logFor(ctx).Warn("tables cannot be listed", zap.String("catalog", cat.Name()), zap.Stringer("namespace", ns), zap.Error(err))
			}
			return nil
		}
		for _, n := range names {
			if match(n) {
				tables = append(tables, &tableName{cat: cat, ns: ns, name: n})
			}
		}
		return nil
	})
	return tables, err
}

// load fills in the schemas. A table that cannot be loaded is listed without columns, so that one damaged table does
// not hide the others from a tool; selecting from it tells what is wrong.
func (c *tablesCommand) load(ctx context.Context, tables []*tableName) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loadsAtOnce)
	for _, t := range tables {
		g.Go(func() error {
			err := fault.Guard(func() (err error) {
				tab, err := t.cat.Load(ctx, t.ns, t.name)
				if err == nil {
					t.schema, err = c.s.schemaOf(tab)
				}
				return err
			})
			if err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				c.s.logFor(ctx).Warn("table listed without columns", zap.String("table", t.cat.Name()+"."+t.ns.String()+"."+t.name), zap.Error(err))
				t.schema = flight.SerializeSchema(arrow.NewSchema(nil, nil), arrowmem.DefaultAllocator)
			}
			return nil
		})
	}
	return g.Wait()
}

// schemaKey names a schema that was told: that of one load of a metadata file. The catalog is asked each time which file that is, so
// nobody is told an older one.
type schemaKey struct {
	table, metadata string
	loaded          int64
	access          string // the columns that a policy leaves
}

// schemaOf gives a table's schema as GetTables tells it, serialised.
func (s *Server) schemaOf(t *catalog.Table) ([]byte, error) {
	key := schemaKey{table: t.FullName(), metadata: t.MetadataLocation, loaded: t.Loaded.UnixNano()}
	if t.Access != nil {
		key.access = fmt.Sprintf("%q %q", t.Access.Columns, t.Access.Hidden)
	}
	keep := s.schemas != nil && t.MetadataLocation != ""
	if keep {
		if b, ok := s.schemas.Lookup(key); ok {
			return b, nil
		}
	}
	schema, err := tableSchema(t)
	if err != nil {
		return nil, err
	}
	b := flight.SerializeSchema(schema, arrowmem.DefaultAllocator)
	if keep {
		s.schemas.Put(key, b, int64(len(b)+len(key.table)+len(key.metadata)+len(key.access))+schemaKeyBytes)
	}
	return b, nil
}

// schemaKeyBytes is what an entry takes beside its texts.
const schemaKeyBytes = 200

// tableSchema is a table's schema as GetTables tells it, with the metadata that JDBC's getColumns reads.
func tableSchema(t *catalog.Table) (*arrow.Schema, error) {
	columns := t.Fields(t.Metadata.CurrentSchema())
	fields, err := catalog.FieldsOf(columns)
	if err != nil {
		return nil, err
	}
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		out[i] = vector.ArrowField(f)
		out[i].Metadata = columnMetadata(t, f, columns[i], out[i].Metadata)
	}
	return arrow.NewSchema(out, nil), nil
}

func columnMetadata(t *catalog.Table, f vector.Field, col iceberg.NestedField, more arrow.Metadata) arrow.Metadata {
	b := flightsql.NewColumnMetadataBuilder()
	b.CatalogName(t.Catalog)
	b.SchemaName(t.Namespace.String())
	b.TableName(t.Name)
	b.TypeName(f.Type.String())
	b.IsReadOnly(true)
	b.IsSearchable(true)
	b.IsAutoIncrement(false)
	b.IsCaseSensitive(f.Type.Kind == vector.Varchar)
	if p, ok := precisionOf(f.Type); ok {
		b.Precision(p)
	}
	if f.Type.Kind == vector.Decimal {
		b.Scale(int32(f.Type.Scale))
	}
	if col.Doc != "" {
		b.Remarks(col.Doc)
	}
	m := b.Build().Data.ToMap()
	for k, v := range more.ToMap() {
		m[k] = v
	}
	return arrow.MetadataFrom(m)
}

// precisionOf gives a type's precision in JDBC's sense: decimal digits of numbers, characters of the text form of
// times.
func precisionOf(t vector.Type) (int32, bool) {
	switch t.Kind {
	case vector.Decimal:
		return int32(t.Precision), true
	case vector.Integer:
		return 10, true
	case vector.BigInt:
		return 19, true
	case vector.Real:
		return 7, true
	case vector.Double:
		return 15, true
	case vector.Date:
		return 10, true
	case vector.Time:
		return 15, true
	case vector.Timestamp, vector.TimestampTZ:
		return int32(20 + t.Precision), true
	}
	return 0, false
}

// tableTypesCommand is CommandGetTableTypes.
type tableTypesCommand struct{ raw []byte }

func (c tableTypesCommand) schema(context.Context) (*arrow.Schema, error) {
	return schema_ref.TableTypes, nil
}
func (c tableTypesCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }

func (c tableTypesCommand) rows(_ context.Context, out *rowWriter) error {
	b := array.NewRecordBuilder(arrowmem.DefaultAllocator, schema_ref.TableTypes)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(tableType)
	return out.batch(b.NewRecordBatch())
}

// keysCommand is any of the commands about keys: Iceberg tables have none that are enforced, so the answers are empty.
type keysCommand struct {
	m   any
	raw []byte
}

func (c *keysCommand) schema(context.Context) (*arrow.Schema, error) {
	switch c.m.(type) {
	case *pb.CommandGetPrimaryKeys:
		return schema_ref.PrimaryKeys, nil
	case *pb.CommandGetExportedKeys:
		return schema_ref.ExportedKeys, nil
	case *pb.CommandGetImportedKeys:
		return schema_ref.ImportedKeys, nil
	}
	return schema_ref.CrossReference, nil
}
func (c *keysCommand) ticket(context.Context) ([]byte, error) { return c.raw, nil }
func (c *keysCommand) rows(context.Context, *rowWriter) error { return nil }
