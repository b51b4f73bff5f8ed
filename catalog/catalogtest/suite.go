// Package catalogtest is the conformance suite that every catalog passes, and the maker of small metadata documents
// for it.
//
// It is test support only, never imported by the product.
package catalogtest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
)

// Metadata gives the metadata document of an empty table with columns id (required long) and name (string).
func Metadata(t *testing.T, location string) []byte {
	t.Helper()
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "name", Type: iceberg.PrimitiveTypes.String})
	m, err := table.NewMetadata(schema, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, location, iceberg.Properties{"format-version": "2"})
	require.NoError(t, err)
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return b
}

// Fixture is a catalog that holds the tables sales.orders, sales.eu.customers and empty metadata of both made by Metadata.
type Fixture struct {
	Catalog catalog.Catalog
	// Damage makes the metadata of sales.orders unreadable as JSON.
	Damage func(t *testing.T)
}

// Run runs the suite; open makes a fresh fixture for each case.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	ctx := context.Background()
	t.Run("namespaces are listed level by level", func(t *testing.T) {
		c := open(t).Catalog
		top, err := c.Namespaces(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, []catalog.Namespace{{"sales"}}, top)
		below, err := c.Namespaces(ctx, catalog.Namespace{"sales"})
		require.NoError(t, err)
		require.Equal(t, []catalog.Namespace{{"sales", "eu"}}, below)
		_, err = c.Namespaces(ctx, catalog.Namespace{"nope"})
		require.ErrorIs(t, err, fault.NotFound)
	})
	t.Run("tables are listed", func(t *testing.T) {
		c := open(t).Catalog
		got, err := c.Tables(ctx, catalog.Namespace{"sales"})
		require.NoError(t, err)
		require.Equal(t, []string{"orders"}, got)
		got, err = c.Tables(ctx, catalog.Namespace{"sales", "eu"})
		require.NoError(t, err)
		require.Equal(t, []string{"customers"}, got)
		_, err = c.Tables(ctx, catalog.Namespace{"nope"})
		require.ErrorIs(t, err, fault.NotFound)
	})
	t.Run("a table loads", func(t *testing.T) {
		c := open(t).Catalog
		for _, ns := range []catalog.Namespace{{"sales", "eu"}} {
			tab, err := c.Load(ctx, ns, "customers")
			require.NoError(t, err)
			require.Equal(t, c.Name()+".sales.eu.customers", tab.FullName())
			require.Len(t, tab.Metadata.CurrentSchema().Fields(), 2)
			s, err := tab.Resolve(catalog.Version{})
			require.NoError(t, err)
			require.False(t, s.Present)
		}
	})
	t.Run("a missing table is not found", func(t *testing.T) {
		c := open(t).Catalog
		for _, name := range []string{"none", "", "..", "../sales/orders", "a/b", "eu"} {
			_, err := c.Load(ctx, catalog.Namespace{"sales"}, name)
			require.ErrorIs(t, err, fault.NotFound, "%q", name)
		}
		_, err := c.Load(ctx, catalog.Namespace{"nope"}, "orders")
		require.ErrorIs(t, err, fault.NotFound)
	})
	t.Run("damaged metadata is corrupt and named", func(t *testing.T) {
		f := open(t)
		f.Damage(t)
		_, err := f.Catalog.Load(ctx, catalog.Namespace{"sales"}, "orders")
		require.ErrorIs(t, err, fault.Corrupt)
		require.ErrorContains(t, err, "sales.orders")
		require.ErrorContains(t, err, "metadata.json")
	})
	t.Run("a cancelled load ends", func(t *testing.T) {
		c := open(t).Catalog
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err := c.Load(gone, catalog.Namespace{"sales"}, "orders")
		require.Equal(t, fault.Canceled, fault.KindOf(err))
	})
}
