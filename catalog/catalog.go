// Package catalog turns a name into a table: its metadata, the snapshot that a reference means and the store
// that holds its files.
//
// It is not for reading manifests or data (scanner does) and never writes. Catalogs and tables are safe for
// concurrent use; a Table is immutable.
package catalog

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/storage"
)

// Catalog is what every kind of catalog fills. Implementations pass the suite in catalogtest.
type Catalog interface {
	// Name is the name under which the server knows the catalog.
	Name() string
	// Namespaces lists the namespaces directly below parent (nil: the top), each as its full path. A parent that
	// does not exist is fault.NotFound.
	Namespaces(ctx context.Context, parent Namespace) ([]Namespace, error)
	// Tables lists the names of the tables in ns, sorted. A namespace that does not exist is fault.NotFound.
	Tables(ctx context.Context, ns Namespace) ([]string, error)
	// Load reads a table's current metadata. A missing table is fault.NotFound, damaged metadata fault.Corrupt.
	Load(ctx context.Context, ns Namespace, name string) (*Table, error)
	// Close ends background work.
	Close() error
}

// Namespace is the path of a namespace, outermost first.
type Namespace []string

// String joins the levels with dots, the form in which SQL shows a namespace as one schema name.
func (n Namespace) String() string { return strings.Join(n, ".") }

// Table is one table as loaded: pinned metadata, from which any snapshot of it can be read.
type Table struct {
	Catalog   string
	Namespace Namespace
	Name      string
	// MetadataLocation is the path of the metadata file that was loaded.
	MetadataLocation string
	Metadata         table.Metadata
	// Store reads the table's files, after location mapping and confined to the prefixes the table may read.
	Store storage.Store
	// Locations maps paths as the metadata writes them to the paths that Store opens.
	Locations LocationMapping
	// Keys unwraps the keys of an encrypted table; nil when the table is not encrypted.
	Keys *encryption.Chain
	// Access is what whoever loaded the table may see of it; nil is all.
	Access *Access
	// Extra holds what the metadata document says and iceberg-go's model drops.
	Extra Extra
	// Loaded is when the metadata was read.
	Loaded time.Time
	// Files, when not nil, are the data files of a table that is nothing else: lone files read without Iceberg metadata. They
	// hold no snapshot; Metadata is then that of an empty unpartitioned table, and Schema the schema that the first file
	// has. Columns of the files are found by their names.
	Files  []File
	Schema *iceberg.Schema
}

// File is a lone data file.
type File struct {
	Path   string
	Format string // parquet, avro or orc
	Size   int64  // bytes
}

// Extra holds fields of the metadata JSON that iceberg-go does not keep.
type Extra struct {
	// SnapshotKeyIDs maps a snapshot id to its encryption key id (spec: Snapshots, key-id).
	SnapshotKeyIDs map[int64]string
	// EncryptionKeys are the table's wrapped keys.
	EncryptionKeys []encryption.WrappedKey
	// Manifests maps a v1 snapshot without a manifest list to its inline manifest paths.
	Manifests map[int64][]string
	// Defaults maps a field id to its initial-default as the document writes it: the model's numbers are floating point,
	// which large bigint defaults do not fit. A default never changes, so that all schemas agree.
	Defaults map[int]json.RawMessage
}

// FullName is catalog.namespace.table, for messages; of lone files their path.
func (t *Table) FullName() string {
	if t.Files != nil {
		return t.Name
	}
	return t.Catalog + "." + t.Namespace.String() + "." + t.Name
}

// Version names a state of a table in time. The zero Version is the current state of the main branch.
type Version struct {
	Kind VersionKind
	Ref  string    // ByRef
	ID   int64     // ByID
	Time time.Time // ByTime
}

// VersionKind says which field of a Version counts.
type VersionKind uint8

// The kinds of version.
const (
	Current VersionKind = iota
	ByRef               // a branch or tag
	ByID                // a snapshot id
	ByTime              // the snapshot that was current at a time
)

// Snapshot is a resolved version: a snapshot, absent in a table without one, and the schema to read it with.
type Snapshot struct {
	// ID is the snapshot's id; valid only when Present.
	ID      int64
	Present bool
	// Schema is the table's current schema for the main branch and other branches, the snapshot's own for a tag, an id or
	// a time.
	Schema *iceberg.Schema
}
