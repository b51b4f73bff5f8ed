package scanner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
)

// Inventory is what a table consists of, as its metadata and manifests tell it: no data file is opened.
type Inventory struct {
	Table         string `json:"table"`
	Location      string `json:"location,omitempty"`
	FormatVersion int    `json:"format_version,omitempty"`
	UUID          string `json:"uuid,omitempty"`
	Columns       int    `json:"columns"`
	Schemas       int    `json:"schemas"`
	// Specs are the partition specs by id, the one for new files marked with a star.
	Specs        []string   `json:"partition_specs,omitempty"`
	Snapshots    int        `json:"snapshots"`
	Branches     []string   `json:"branches,omitempty"`
	Tags         []string   `json:"tags,omitempty"`
	Current      int64      `json:"current_snapshot,omitempty"`
	LastUpdated  *time.Time `json:"last_updated,omitempty"`
	Encrypted    bool       `json:"encrypted"`
	Data         []Files    `json:"data_files"`   // by format
	Deletes      []Files    `json:"delete_files"` // by kind and format
	Rows         int64      `json:"rows"`         // in data files, before deletes
	DeletedRows  int64      `json:"deleted_rows"` // by position files and deletion vectors
	EqualityRows int64      `json:"equality_delete_rows"`
	Features     []string   `json:"features,omitempty"`
	Planning     Planning   `json:"planning"`
	Warnings     []string   `json:"warnings,omitempty"`
	// Error says why the table could not be read; the rest is then what was known before.
	Error string `json:"error,omitempty"`
}

// Files are files of one kind.
type Files struct {
	Kind  string `json:"kind,omitempty"` // of deletes: position, equality, vector
	Files int64  `json:"files"`
	// Format is parquet, avro, orc or puffin.
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"rows"`
}

// Planning is what it costs to plan a scan of the whole table.
type Planning struct {
	Manifests       int   `json:"manifests"`
	DeleteManifests int   `json:"delete_manifests"`
	ManifestBytes   int64 `json:"manifest_bytes"`
	// Entries counts the entries read, those of deleted files too.
	Entries int64 `json:"entries"`
	// Milliseconds is what reading and decoding all of it took.
	Milliseconds float64 `json:"milliseconds"`
}

// From these sizes on an inventory warns.
const (
	smallFileBytes     = 16 << 20
	fewFiles           = 16 // so many small files cost nothing
	smallManifestBytes = 1 << 20
	fewManifests       = 32
	debtShare          = 0.1 // of rows deleted but still stored
	equalityFilesDebt  = 50
)

// Inventory takes stock of a table's current snapshot. What cannot be read is told in Inventory.Error.
func (s *Scanner) Inventory(ctx context.Context, t *catalog.Table) *Inventory {
	m := t.Metadata
	inv := &Inventory{Table: t.FullName(), Location: m.Location(), FormatVersion: m.Version(), UUID: m.TableUUID().String(),
		Data: []Files{}, Deletes: []Files{}, Columns: len(m.CurrentSchema().Fields()), Schemas: len(m.Schemas()), Snapshots: len(m.Snapshots())}
	if ms := m.LastUpdatedMillis(); ms > 0 {
		at := time.UnixMilli(ms).UTC()
		inv.LastUpdated = &at
	}
	for _, sp := range m.PartitionSpecs() {
		text := specText(sp, m)
		if sp.ID() == m.DefaultPartitionSpec() {
			text += " *"
		}
		inv.Specs = append(inv.Specs, text)
	}
	for name, r := range m.Refs() {
		if r.SnapshotRefType == table.TagRef {
			inv.Tags = append(inv.Tags, name)
		} else {
			inv.Branches = append(inv.Branches, name)
		}
	}
	slices.Sort(inv.Tags)
	slices.Sort(inv.Branches)
	inv.Encrypted = len(t.Extra.SnapshotKeyIDs) > 0 || m.Properties()["encryption.key-id"] != ""
	if cur := m.CurrentSnapshot(); cur != nil {
		inv.Current = cur.SnapshotID
		if err := inv.count(ctx, s, t, cur.SnapshotID); err != nil {
			inv.Error = err.Error()
		}
	}
	inv.Features = features(t, inv)
	inv.warn()
	return inv
}

// specText writes a partition spec with the names of its columns.
func specText(sp iceberg.PartitionSpec, m table.Metadata) string {
	var parts []string
	for _, f := range sp.Fields() {
		col := "dropped column"
		for _, s := range append([]*iceberg.Schema{m.CurrentSchema()}, m.Schemas()...) {
			if len(f.SourceIDs) == 1 {
				if name, ok := s.FindColumnName(f.SourceIDs[0]); ok {
					col = name
					break
				}
			}
		}
		if _, ok := f.Transform.(iceberg.IdentityTransform); ok {
			parts = append(parts, col)
		} else {
			parts = append(parts, fmt.Sprintf("%s(%s)", f.Transform, col))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%d: unpartitioned", sp.ID())
	}
	return fmt.Sprintf("%d: %s", sp.ID(), strings.Join(parts, ", "))
}

// count reads the manifests.
func (inv *Inventory) count(ctx context.Context, s *Scanner, t *catalog.Table, snapshot int64) error {
	start := time.Now()
	r := &Request{Table: t, Snapshot: catalog.Snapshot{ID: snapshot, Present: true}, Projection: iceberg.NewSchema(0), Limit: -1, Profile: &profile.Scan{}}
	sc, err := newScan(s, r)
	if err != nil {
		return err
	}
	list, err := sc.manifests(ctx)
	if err != nil {
		return err
	}
	files := map[Files]*Files{} // by kind and format
	in := &inspector{sc: sc, ctx: ctx}
	for i := range list {
		f := &list[i]
		inv.Planning.ManifestBytes += max(f.Length, 0)
		if f.Content == manifest.Deletes {
			inv.Planning.DeleteManifests++
		} else {
			inv.Planning.Manifests++
		}
		inv.Encrypted = inv.Encrypted || f.KeyMetadata != nil
	}
	err = in.each(list, func(e *entry) error {
		m, i := e.m, e.i
		inv.Planning.Entries++
		if m.Status[i] == manifest.Deleted {
			return nil
		}
		key := Files{Format: m.Formats[i].String()}
		rows := max(m.Records.At(i), 0)
		switch {
		case m.Content[i] == manifest.DataFile:
			inv.Rows += rows
		case m.Content[i] == manifest.EqualityDeletes:
			key.Kind = "equality"
			inv.EqualityRows += rows
		case m.Formats[i] == manifest.Puffin:
			key.Kind = "vector"
			inv.DeletedRows += rows
		default:
			key.Kind = "position"
			inv.DeletedRows += rows
		}
		n := files[key]
		if n == nil {
			n = &Files{Kind: key.Kind, Format: key.Format}
			files[key] = n
		}
		n.Files++
		n.Rows += rows
		size := max(m.Sizes.At(i), 0)
		if key.Kind == "vector" { // several share a file
			size = max(m.ContentSize.At(i), 0)
		}
		n.Bytes += size
		return nil
	})
	keys := slices.Collect(maps.Keys(files))
	sort.Slice(keys, func(i, j int) bool { return keys[i].Kind+keys[i].Format < keys[j].Kind+keys[j].Format })
	for _, k := range keys {
		if k.Kind == "" {
			inv.Data = append(inv.Data, *files[k])
		} else {
			inv.Deletes = append(inv.Deletes, *files[k])
		}
	}
	inv.Planning.Milliseconds = float64(time.Since(start).Microseconds()) / 1000
	return err
}

// features names what of the specification a table makes use of, beyond what every table has.
func features(t *catalog.Table, inv *Inventory) []string {
	m := t.Metadata
	set := map[string]bool{}
	for _, s := range m.Schemas() {
		var walk func(f iceberg.NestedField)
		walk = func(f iceberg.NestedField) {
			switch x := f.Type.(type) {
			case iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType, iceberg.UnknownType, iceberg.TimestampNsType,
				iceberg.TimestampTzNsType, iceberg.TimeType, iceberg.UUIDType:
				set["type "+x.Type()] = true
			case iceberg.FixedType:
				set["type fixed"] = true
			}
			if f.InitialDefault != nil {
				set["initial defaults"] = true
			}
			for _, k := range kidFields(f.Type) {
				walk(k)
			}
		}
		for _, f := range s.Fields() {
			walk(f)
		}
		set["identifier fields"] = set["identifier fields"] || len(s.IdentifierFieldIDs) > 0
	}
	specs := m.PartitionSpecs()
	for _, sp := range specs {
		for _, f := range sp.Fields() {
			switch f.Transform.(type) {
			case iceberg.IdentityTransform, iceberg.BucketTransform, iceberg.TruncateTransform, iceberg.YearTransform, iceberg.MonthTransform,
				iceberg.DayTransform, iceberg.HourTransform:
			case iceberg.VoidTransform:
				set["void transform"] = true
			default:
				set["unknown transform"] = true
			}
			set["partitioning"] = true
		}
	}
	set["schema evolution"] = len(m.Schemas()) > 1
	set["partition evolution"] = len(specs) > 1
	set["branches"] = len(inv.Branches) > 1
	set["tags"] = len(inv.Tags) > 0
	set["encryption"] = inv.Encrypted
	set["name mapping"] = len(m.NameMapping()) > 0
	set["row lineage"] = m.Version() >= 3
	set["sort order"] = m.DefaultSortOrder() > 0
	set["snapshots without a manifest list"] = len(t.Extra.Manifests) > 0
	for range m.Statistics() {
		set["statistics files"] = true
	}
	for _, f := range inv.Data {
		set[strings.ToUpper(f.Format)+" data files"] = f.Format != manifest.Parquet.String()
	}
	for _, f := range inv.Deletes {
		switch f.Kind {
		case "vector":
			set["deletion vectors"] = true
		default:
			set[f.Kind+" deletes"] = true
		}
	}
	var out []string
	for name, used := range set {
		if used {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// warn adds what costs every reader and could be mended by the table's owner.
func (inv *Inventory) warn() {
	warn := func(format string, args ...any) { inv.Warnings = append(inv.Warnings, fmt.Sprintf(format, args...)) }
	var files, bytes int64
	for _, f := range inv.Data {
		files, bytes = files+f.Files, bytes+f.Bytes
	}
	if files > fewFiles && bytes/files < smallFileBytes {
		warn("small files: %d data files of %s on average; compaction would make scans cheaper", files, byteText(bytes/files))
	}
	if inv.Rows > 0 && float64(inv.DeletedRows) > debtShare*float64(inv.Rows) {
		warn("delete debt: %d of %d stored rows are deleted (%d %%)", inv.DeletedRows, inv.Rows, inv.DeletedRows*100/inv.Rows)
	}
	for _, f := range inv.Deletes {
		if f.Kind == "equality" && f.Files >= equalityFilesDebt {
			warn("delete debt: %d equality delete files, which every scan of their partitions loads", f.Files)
		}
		if f.Kind == "position" && inv.FormatVersion >= 3 {
			warn("%d position delete files from before the upgrade to version 3; rewriting them as deletion vectors would make them cheaper", f.Files)
		}
	}
	if n := inv.Planning.Manifests + inv.Planning.DeleteManifests; n > fewManifests && inv.Planning.ManifestBytes/int64(n) < smallManifestBytes {
		warn("small manifests: %d of %s on average; rewriting manifests would make planning cheaper", n, byteText(inv.Planning.ManifestBytes/int64(n)))
	}
}

func byteText(n int64) string {
	const kib = 1 << 10
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	x, u := float64(n), 0
	for x >= kib && u < len(units)-1 {
		x, u = x/kib, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[u])
}

// TakeInventory takes stock of the tables of a catalog below a namespace (nil: all). A table that cannot be loaded is listed
// with its error.
func (s *Scanner) TakeInventory(ctx context.Context, c catalog.Catalog, ns catalog.Namespace) ([]*Inventory, error) {
	var out []*Inventory
	var walk func(ns catalog.Namespace) error
	walk = func(ns catalog.Namespace) error {
		if len(ns) > 0 {
			names, err := c.Tables(ctx, ns)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := ctx.Err(); err != nil {
					return err
				}
				t, err := c.Load(ctx, ns, name)
				if err != nil {
					out = append(out, &Inventory{Table: c.Name() + "." + ns.String() + "." + name, Error: err.Error()})
					continue
				}
				out = append(out, s.Inventory(ctx, t))
			}
		}
		below, err := c.Namespaces(ctx, ns)
		if err != nil && !(len(ns) > 0 && errors.Is(err, fault.NotFound)) {
			return err
		}
		for _, b := range below {
			if err := walk(b); err != nil {
				return err
			}
		}
		return nil
	}
	return out, walk(ns)
}

// WriteText writes an inventory for people.
func (inv *Inventory) WriteText(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s\n", inv.Table)
	if inv.Error != "" {
		line("ERROR", "%s", inv.Error)
	}
	if inv.FormatVersion > 0 {
		line("format", "version %d, %d columns, %d schemas, %d snapshots", inv.FormatVersion, inv.Columns, inv.Schemas, inv.Snapshots)
		line("partitions", "%s", strings.Join(inv.Specs, "; "))
		for _, f := range inv.Data {
			line("data", "%d %s files, %s, %d rows", f.Files, f.Format, byteText(f.Bytes), f.Rows)
		}
		for _, f := range inv.Deletes {
			line("deletes", "%d %s deletes in %s, %s, %d rows", f.Files, f.Kind, f.Format, byteText(f.Bytes), f.Rows)
		}
		p := inv.Planning
		line("planning", "%d manifests and %d delete manifests, %s, %d entries, %.1f ms", p.Manifests, p.DeleteManifests, byteText(p.ManifestBytes), p.Entries, p.Milliseconds)
	}
	if len(inv.Branches) > 0 || len(inv.Tags) > 0 {
		line("refs", "branches %s; tags %s", strings.Join(inv.Branches, ", "), strings.Join(inv.Tags, ", "))
	}
	if inv.Encrypted {
		line("encryption", "yes")
	}
	if len(inv.Features) > 0 {
		line("features", "%s", strings.Join(inv.Features, ", "))
	}
	for _, x := range inv.Warnings {
		line("warning", "%s", x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
