package plan

import (
	"context"
	"time"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/sql"
	"github.com/skua-db/skua/vector"
)

// Catalogs finds catalogs by name.
type Catalogs interface {
	Names() []string
	Catalog(name string) (catalog.Catalog, bool)
}

// Files reads the schema of a lone file, or of the files that a pattern matches, as a table (catalog.Table.Files).
type Files func(ctx context.Context, path string) (*catalog.Table, error)

// Environment is what names mean for a statement. It is read only while a statement is built.
type Environment struct {
	Catalogs              Catalogs
	Catalog, Schema, User string // session defaults; Schema is the dotted name of a namespace
	Dialect               string // "trino" (default), "spark", "duckdb"
	Zone                  *time.Location
	Now                   time.Time
	// ParamTypes are the types that the client gave its parameters; may be short, and kind Null says nothing.
	ParamTypes []vector.Type
	// Snapshots pins tables, by their full name, to snapshot ids; tables that are not named are read at their current
	// snapshot. It does not touch explicit versions.
	Snapshots map[string]int64
	// MaxRecursion is how many times the step of a recursive query is applied; 0 is DefaultRecursion.
	MaxRecursion int
	// Session lists the session's settings for SHOW SESSION.
	Session map[string]string
	// Stats gives the number of rows of a scan, for join order; nil uses the snapshot's summary.
	Stats func(ctx context.Context, s *Scan) (rows int64, ok bool)
	// Files opens the files that FROM names by text literals; nil refuses them, as a server must: they are read with the
	// rights of the process.
	Files Files
	// MetadataTable reads the metadata tables that need manifests (files, manifests, partitions, ...); nil refuses them.
	MetadataTable func(ctx context.Context, t *catalog.Table, s catalog.Snapshot, name string) ([]Column, [][]vector.Value, error)
}

func (e *Environment) context() *expr.Context {
	zone := e.Zone
	if zone == nil {
		zone = time.UTC
	}
	return &expr.Context{Now: e.Now, Zone: zone, Dialect: e.dialect(), User: e.User, Catalog: e.Catalog, Schema: e.Schema}
}

func (e *Environment) recursion() int {
	if e.MaxRecursion <= 0 {
		return DefaultRecursion
	}
	return min(e.MaxRecursion, MaxRecursion)
}

func (e *Environment) dialect() string {
	if e.Dialect == "" {
		return "trino"
	}
	return e.Dialect
}

// StatementKind says what a statement does.
type StatementKind uint8

// The kinds of statement.
const (
	Query StatementKind = iota
	ExplainQuery
	ExplainAnalyze
	Show
	Use        // Setting names catalog and schema
	SetSession // Setting is the name and the value
)

// Setting is a change of the session that a statement asks for.
type Setting struct {
	Name  string
	Value string
	Reset bool
	// Catalog and Schema are the new defaults of USE.
	Catalog, Schema string
}

// Prepared is a statement ready to run. It is immutable and may be run by many goroutines at once.
type Prepared struct {
	Root       Node
	Columns    []Column
	Params     []vector.Type
	ParamNames []string
	Pinned     map[string]int64 // full table name -> snapshot id actually planned
	Kind       StatementKind
	Setting    *Setting // of Use and SetSession
}

// Build parses, binds and optimises a statement. Errors point at the place in text they are about; those of catalogs
// keep their kind.
func Build(ctx context.Context, text string, env *Environment) (*Prepared, error) {
	p, err := sql.Parse(text)
	if err != nil {
		return nil, err
	}
	return BuildParsed(ctx, p, env)
}

// Explain runs or describes Input: exec runs it when Analyze is set, then gives the lines of Text in the one column "Query Plan".
type Explain struct {
	Input            Node
	Analyze, Verbose bool
	JSON             bool
	// Estimates are the rows that the optimizer expected of operators.
	Estimates map[Node]float64
}

// Text describes the plan, with what the profile has of its run unless that is nil.
func (e *Explain) Text(q *profile.Query) string {
	if e.JSON {
		return formatJSON(e.Input, q, e.Estimates)
	}
	return format(e.Input, q, e.Estimates)
}

// Columns is the one text column "Query Plan".
func (e *Explain) Columns() []Column {
	return []Column{{Name: "Query Plan", Type: vector.Of(vector.Varchar)}}
}

// Inputs is the explained plan.
func (e *Explain) Inputs() []Node { return []Node{e.Input} }

// WithInputs replaces the explained plan.
func (e *Explain) WithInputs(in []Node) Node { c := *e; c.Input = in[0]; return &c }
