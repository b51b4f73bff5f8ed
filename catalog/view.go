package catalog

import (
	"encoding/json"

	"github.com/apache/iceberg-go"

	"github.com/skua-db/skua/fault"
)

// View is a view as its metadata describes it (Iceberg View Spec): a query with the names it starts from.
type View struct {
	// Representations are the texts of the current version, in the order of the document.
	Representations []ViewText
	// DefaultCatalog and DefaultNamespace are for names without; empty: those of the view itself.
	DefaultCatalog   string
	DefaultNamespace Namespace
	// Schema is what the query gave when the view was made; nil when the document has none.
	Schema *iceberg.Schema
}

// ViewText is the query of a view in one dialect.
type ViewText struct{ Dialect, SQL string }

// ViewError says that a table that was to be loaded is a view. It carries the view for callers that can run its query; for
// others it is fault.Unsupported.
type ViewError struct{ View *View }

// Error implements error.
func (e *ViewError) Error() string { return "it is a view, not a table" }

// Unwrap gives the kind.
func (e *ViewError) Unwrap() error { return fault.Unsupported }

// viewOf reads a view's metadata document; nil when raw is none.
func viewOf(raw []byte) (*View, error) {
	var doc struct {
		UUID     string            `json:"view-uuid"`
		Format   int               `json:"format-version"`
		Current  int               `json:"current-version-id"`
		Schemas  []json.RawMessage `json:"schemas"`
		Versions []struct {
			ID        int       `json:"version-id"`
			SchemaID  int       `json:"schema-id"`
			Catalog   string    `json:"default-catalog"`
			Namespace Namespace `json:"default-namespace"`
			Texts     []struct {
				Type    string `json:"type"`
				SQL     string `json:"sql"`
				Dialect string `json:"dialect"`
			} `json:"representations"`
		} `json:"versions"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil || doc.UUID == "" {
		return nil, nil
	}
	if doc.Format != 1 {
		return nil, fault.New(fault.Unsupported, "view format version %d is not supported; version 1 is", doc.Format)
	}
	for _, v := range doc.Versions {
		if v.ID != doc.Current {
			continue
		}
		out := &View{DefaultCatalog: v.Catalog, DefaultNamespace: v.Namespace}
		for _, t := range v.Texts {
			if t.Type == "sql" {
				out.Representations = append(out.Representations, ViewText{t.Dialect, t.SQL})
			}
		}
		for _, s := range doc.Schemas {
			var id struct {
				ID int `json:"schema-id"`
			}
			schema := &iceberg.Schema{}
			if json.Unmarshal(s, &id) == nil && id.ID == v.SchemaID && json.Unmarshal(s, schema) == nil {
				out.Schema = schema
			}
		}
		return out, nil
	}
	return nil, fault.New(fault.Corrupt, "the view's current version %d is not in versions", doc.Current)
}
