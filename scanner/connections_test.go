package scanner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/internal/lakeserver"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/s3"
)

// TestManySmallFilesOverFewConnections reads a table of as many manifests as data files from an object store: the connections do not grow with
// the files.
func TestManySmallFilesOverFewConnections(t *testing.T) {
	const files, rows, most = 150, 20, 64
	l := newLake(t)
	tbl := l.create("t", longsSchema)
	for i := range int64(files) {
		tbl = appendLongs(t, tbl, i*rows, (i+1)*rows)
	}
	dir := strings.TrimPrefix(tbl.Location(), "file://")
	srv := lakeserver.NewS3(t)
	srv.Serve("lake", dir)
	k := srv.AddKey(lakeserver.Key{ID: "AK", Secret: "secret"})
	client := s3.NewClient()
	t.Cleanup(client.Close)
	store, err := s3.New(client, s3.Options{Endpoint: srv.URL, PathStyle: true, Keys: credentials.NewStatic(credentials.FromProperties(map[string]string{"s3.access-key-id": k.ID, "s3.secret-access-key": k.Secret}))})
	require.NoError(t, err)
	l.store = storage.Coalesce(store, 1<<20, 16<<20)
	r := l.request(tbl)
	r.Table.Locations = catalog.NewLocationMapping(map[string]string{tbl.Location(): "s3://lake", dir: "s3://lake"})
	got, err := l.rows(r, 4)
	require.NoError(t, err)
	require.Len(t, got, files*rows)
	requests := len(srv.Log())
	t.Logf("%d requests over %d connections", requests, srv.Connections())
	require.GreaterOrEqual(t, requests, 2*files)
	require.LessOrEqual(t, srv.Connections(), int64(most))
	require.Less(t, srv.Connections(), int64(requests/5))
}
