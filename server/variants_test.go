package server_test

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/skua-db/skua/server"
	"github.com/skua-db/skua/vector"
)

const someVariants = `SELECT CAST(MAP(ARRAY['a'], ARRAY[x]) AS variant) v, ARRAY[NULL, CAST(x AS variant)] w FROM (VALUES 7, NULL) t(x)
 UNION ALL SELECT NULL, NULL`

// TestVariantsOnTheWire: variants are JSON text unless the session asks for Arrow's own extension, and the schema is the same
// wherever it is told.
func TestVariantsOnTheWire(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ask := func(ctx context.Context) (*arrow.Schema, arrow.RecordBatch) {
		info, err := cl.Execute(ctx, someVariants)
		require.NoError(t, err)
		schema, err := flight.DeserializeSchema(info.Schema, memory.DefaultAllocator)
		require.NoError(t, err)
		prep, err := cl.Prepare(ctx, someVariants)
		require.NoError(t, err)
		require.True(t, schema.Equal(prep.DatasetSchema()), "%s\n%s", schema, prep.DatasetSchema())
		require.NoError(t, prep.Close(ctx))
		r, err := cl.DoGet(ctx, info.Endpoint[0].Ticket)
		require.NoError(t, err)
		defer r.Release()
		require.True(t, r.Next())
		rec := r.RecordBatch()
		rec.Retain()
		require.True(t, schema.Equal(rec.Schema()))
		require.False(t, r.Next())
		return schema, rec
	}
	schema, rec := ask(context.Background())
	require.Equal(t, arrow.BinaryTypes.String, schema.Field(0).Type)
	require.True(t, vector.IsJSON(schema.Field(0)))
	require.Equal(t, `{"a":7}`, rec.Column(0).(*array.String).Value(0))
	rec.Release()

	ctx := metadata.AppendToOutgoingContext(context.Background(), "variants", "arrow")
	schema, rec = ask(ctx)
	defer rec.Release()
	require.Equal(t, "arrow.parquet.variant", schema.Field(0).Type.(arrow.ExtensionType).ExtensionName())
	v := rec.Column(0).(*extensions.VariantArray)
	require.Equal(t, []bool{false, false, true}, []bool{v.IsNull(0), v.IsNull(1), v.IsNull(2)})
	for i, want := range []string{`{"a":7}`, `{"a":null}`} {
		x, err := v.Value(i)
		require.NoError(t, err)
		text, err := x.MarshalJSON()
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
	}
	w := rec.Column(1).(*array.List).ListValues().(*extensions.VariantArray)
	require.Equal(t, 4, w.Len())
	require.True(t, w.IsNull(0))
	x, err := w.Value(1)
	require.NoError(t, err)
	require.EqualValues(t, 7, x.Value())

	_, err = texts(context.Background(), cl, "SET SESSION variants = 'xml'")
	require.ErrorContains(t, err, "variants is json or arrow")
	said, err := texts(context.Background(), cl, "SET SESSION variants = 'arrow'")
	require.NoError(t, err)
	require.Equal(t, []string{"variants arrow"}, said)
}
