package plan

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// memory is a catalog of tables without files.
type memory struct {
	name   string
	tables map[string]map[string]*catalog.Table // namespace -> name
	loads  []string
	quiet  bool // do not record loads: several goroutines use the catalog
}

func (m *memory) Name() string { return m.name }
func (m *memory) Close() error { return nil }
func (m *memory) Namespaces(_ context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	seen := map[string]bool{}
	var out []catalog.Namespace
	for ns := range m.tables {
		l := strings.Split(ns, ".")
		if len(l) > len(parent) && slices.Equal(l[:len(parent)], parent) {
			n := catalog.Namespace(l[:len(parent)+1])
			if !seen[n.String()] {
				seen[n.String()] = true
				out = append(out, n)
			}
		}
	}
	slices.SortFunc(out, func(a, b catalog.Namespace) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

func (m *memory) Tables(_ context.Context, ns catalog.Namespace) ([]string, error) {
	t, ok := m.tables[ns.String()]
	if !ok {
		return nil, fault.New(fault.NotFound, "no schema %s", ns)
	}
	var out []string
	for n := range t {
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

func (m *memory) Load(_ context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	t := m.tables[ns.String()][name]
	if t == nil {
		return nil, fault.New(fault.NotFound, "no table %s.%s", ns, name)
	}
	if !m.quiet {
		m.loads = append(m.loads, ns.String()+"."+name)
	}
	return t, nil
}

type catalogs map[string]catalog.Catalog

func (c catalogs) Names() []string {
	var n []string
	for k := range c {
		n = append(n, k)
	}
	slices.Sort(n)
	return n
}
func (c catalogs) Catalog(n string) (catalog.Catalog, bool) { x, ok := c[n]; return x, ok }

// icebergType reads the few types that the test schemas need.
func icebergType(t testing.TB, s string, id *int) iceberg.Type {
	if inner, ok := strings.CutPrefix(s, "row("); ok {
		st := &iceberg.StructType{}
		for _, f := range splitTop(strings.TrimSuffix(inner, ")")) {
			n, ft, _ := strings.Cut(strings.TrimSpace(f), " ")
			*id++
			fid := *id
			st.FieldList = append(st.FieldList, iceberg.NestedField{ID: fid, Name: n, Type: icebergType(t, ft, id)})
		}
		return st
	}
	if inner, ok := strings.CutPrefix(s, "array("); ok {
		*id++
		fid := *id
		return &iceberg.ListType{ElementID: fid, Element: icebergType(t, strings.TrimSuffix(inner, ")"), id)}
	}
	var p, sc int
	if n, _ := fmt.Sscanf(s, "decimal(%d,%d)", &p, &sc); n == 2 {
		return iceberg.DecimalTypeOf(p, sc)
	}
	switch s {
	case "int":
		return iceberg.PrimitiveTypes.Int32
	case "long":
		return iceberg.PrimitiveTypes.Int64
	case "double":
		return iceberg.PrimitiveTypes.Float64
	case "string":
		return iceberg.PrimitiveTypes.String
	case "date":
		return iceberg.PrimitiveTypes.Date
	case "boolean":
		return iceberg.PrimitiveTypes.Bool
	case "timestamp":
		return iceberg.PrimitiveTypes.Timestamp
	}
	t.Fatalf("type %q", s)
	return nil
}

func splitTop(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

// makeTable makes a table with one snapshot of so many rows. A column is "name type", required with a "!" behind.
func makeTable(t testing.TB, cat, ns, name string, rows int, columns string) *catalog.Table {
	id := 0
	var fields []iceberg.NestedField
	for _, c := range splitTop(columns) {
		c, required := strings.CutSuffix(strings.TrimSpace(c), "!")
		n, typ, _ := strings.Cut(c, " ")
		id++
		f := iceberg.NestedField{ID: id, Name: n, Required: required}
		f.Type = icebergType(t, typ, &id)
		fields = append(fields, f)
	}
	b, err := table.NewMetadataBuilder(2)
	require.NoError(t, err)
	require.NoError(t, b.AddSchema(iceberg.NewSchema(0, fields...)))
	require.NoError(t, b.SetCurrentSchemaID(-1))
	require.NoError(t, b.AddPartitionSpec(iceberg.UnpartitionedSpec, true))
	require.NoError(t, b.SetDefaultSpecID(-1))
	order := table.UnsortedSortOrder
	require.NoError(t, b.AddSortOrder(&order))
	require.NoError(t, b.SetDefaultSortOrderID(-1))
	require.NoError(t, b.SetLoc("file:///lake/"+ns+"/"+name))
	m, err := b.Build()
	require.NoError(t, err)
	b, err = table.MetadataBuilderFromBase(m, "")
	require.NoError(t, err)
	schema := 0
	require.NoError(t, b.AddSnapshot(&table.Snapshot{SnapshotID: 1, SequenceNumber: 1, TimestampMs: time.Now().UnixMilli(), ManifestList: "m.avro", SchemaID: &schema,
		Summary: &table.Summary{Operation: table.OpAppend, Properties: iceberg.Properties{"total-records": fmt.Sprint(rows)}}}))
	require.NoError(t, b.SetSnapshotRef(table.MainBranch, 1, table.BranchRef))
	m, err = b.Build()
	require.NoError(t, err)
	return &catalog.Table{Catalog: cat, Namespace: strings.Split(ns, "."), Name: name, Metadata: m, MetadataLocation: "v1.metadata.json"}
}

func testEnvironment(t testing.TB) (*Environment, *memory) {
	m := &memory{name: "lake", tables: map[string]map[string]*catalog.Table{}}
	data, err := os.ReadFile("testdata/tables.txt")
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		head, cols, _ := strings.Cut(line, ": ")
		var ns, name string
		var rows int
		_, err := fmt.Sscan(head, &ns, &name, &rows)
		require.NoError(t, err, line)
		if m.tables[ns] == nil {
			m.tables[ns] = map[string]*catalog.Table{}
		}
		m.tables[ns][name] = makeTable(t, "lake", ns, name, rows, cols)
	}
	return &Environment{Catalogs: catalogs{"lake": m}, Catalog: "lake", Schema: "tpch", User: "ada", Now: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)}, m
}

// TestGolden compares plans and errors with testdata/*.txt: statements, each followed after "---" by its plan or error, apart by "===".
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			env, _ := testEnvironment(t)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			var out []string
			for _, c := range strings.Split(strings.TrimSpace(string(data)), "\n===\n") {
				text, want, _ := strings.Cut(c, "\n---\n")
				got := outcome(env, text)
				if !*rewrite {
					require.Equal(t, want, got, text)
				}
				out = append(out, text+"\n---\n"+got)
			}
			if *rewrite {
				require.NoError(t, os.WriteFile(path, []byte(strings.Join(out, "\n===\n")+"\n"), 0o644))
			}
		})
	}
}

var commitTime = regexp.MustCompile(`\(\d{4}-[^)]*Z\)`)

func outcome(env *Environment, text string) string {
	p, err := Build(context.Background(), text, env)
	if err != nil {
		return commitTime.ReplaceAllString(err.Error(), "(time)") // the metadata builder commits now
	}
	if p.Root == nil {
		return fmt.Sprintf("%+v", *p.Setting)
	}
	var cols []string
	for _, c := range p.Columns {
		s := c.Name + " " + c.Type.String()
		if !c.Nullable {
			s += " not null"
		}
		cols = append(cols, s)
	}
	s := "(" + strings.Join(cols, ", ") + ")\n" + Format(p.Root, nil)
	for i, t := range p.Params {
		s += fmt.Sprintf("parameter %d: %s\n", i+1, t)
	}
	return strings.TrimRight(s, "\n")
}
