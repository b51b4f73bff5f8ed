package scanner_test

import (
	"context"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	icatalog "github.com/apache/iceberg-go/catalog"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// keyFilter is a runtime filter that lets a range of ids pass.
type keyFilter struct {
	ready  chan struct{}
	lo, hi int64
}

func (f *keyFilter) Column() int            { return 0 }
func (f *keyFilter) Ready() <-chan struct{} { return f.ready }

func (f *keyFilter) MayContain(lo, hi vector.Value) bool {
	return (hi == nil || hi.(int64) >= f.lo) && (lo == nil || lo.(int64) <= f.hi)
}

func (f *keyFilter) Select(v *vector.Vector, n int, sel, dst []uint16) []uint16 {
	dst = dst[:0]
	for i := range n {
		if x, ok := v.Get(i).(int64); ok && x >= f.lo && x <= f.hi {
			dst = append(dst, uint16(i))
		}
	}
	return dst
}

func TestRuntimeFilter(t *testing.T) {
	l := newLake(t)
	r := rand.New(rand.NewSource(16))
	tbl := l.create("t", eventSchema)
	for i := range 4 {
		tbl = l.append(tbl, events(r, i*100, (i+1)*100))
	}
	f := &keyFilter{ready: make(chan struct{}), lo: 150, hi: 160}
	req := l.request(tbl)
	req.Runtime = []scanner.RuntimeFilter{f}
	require.Len(t, l.must(req), 400, "a filter that is not ready holds nothing up")
	close(f.ready)
	req = l.request(tbl)
	req.Runtime = []scanner.RuntimeFilter{f}
	require.Len(t, l.must(req), 11)
	what, n := req.Profile.Removals()
	require.Equal(t, "file", what[0].Level)
	require.EqualValues(t, 3, n[0])
	require.EqualValues(t, 1, req.Profile.RowGroups.Considered.Load())
}

// A table that was moved is read by mapping its old location, deletes included, for they name data files by the old paths.
func TestLocationMapping(t *testing.T) {
	l := newLake(t)
	tbl := l.create("t", eventSchema, icatalog.WithProperties(iceberg.Properties{"format-version": "2", "write.delete.mode": "merge-on-read"}))
	tbl = l.append(tbl, events(rand.New(rand.NewSource(17)), 0, 50))
	tbl, err := tbl.Delete(context.Background(), iceberg.LiteralPredicate(iceberg.OpLT, iceberg.Reference("id"), iceberg.NewLiteral(int64(10))), nil)
	require.NoError(t, err)
	root := strings.TrimPrefix(tbl.Location(), "file://")
	moved := filepath.Join(t.TempDir(), "moved")
	rename(t, root, moved)
	_, err = l.rows(l.request(tbl), 1)
	require.ErrorIs(t, err, fault.NotFound)
	req := l.request(tbl)
	req.Table.Locations = catalog.NewLocationMapping(map[string]string{tbl.Location(): moved, root: moved})
	require.Len(t, l.must(req), 40)
}

// A v1 snapshot may list its manifests itself, without a manifest list (spec: Snapshots, manifests).
func TestInlineManifests(t *testing.T) {
	tbl := planTable(t, 3, 4)
	s := scanner.New(scanner.Options{})
	list := tbl.Metadata.CurrentSnapshot().ManifestList
	m := *tbl
	var err error
	m.Metadata, err = withoutList(tbl)
	require.NoError(t, err)
	m.Extra.Manifests = map[int64][]string{1: {filepath.Join(filepath.Dir(list), "m0.avro"), filepath.Join(filepath.Dir(list), "m1.avro")}}
	require.Equal(t, 8, countTasks(t, s, planRequest(&m, nil)))
	require.Equal(t, 1, countTasks(t, s, planRequest(&m, planFilters()["id"])))
}

// Reads are refused outside what the store allows, whatever file of the table names the place.
func TestConfinedStore(t *testing.T) {
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), events(rand.New(rand.NewSource(18)), 0, 5))
	l.store = storage.Confine(storage.Local{}, "/nowhere")
	_, err := l.rows(l.request(tbl), 1)
	require.ErrorIs(t, err, fault.Denied)
}

// A stream that is closed early gives back what it holds, and a cancelled context ends a read.
func TestStopEarly(t *testing.T) {
	l := newLake(t)
	tbl := l.append(l.create("t", eventSchema), events(rand.New(rand.NewSource(19)), 0, 50))
	q := l.pool.Child("query", 0)
	ctx, cancel := context.WithCancel(context.Background())
	s, err := l.scan.Plan(ctx, l.request(tbl))
	require.NoError(t, err)
	task, err := s.Next(ctx)
	require.NoError(t, err)
	rd, err := l.scan.Open(ctx, task, q)
	require.NoError(t, err)
	cancel()
	_, err = rd.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, rd.Close())
	require.NoError(t, rd.Close())
	s.Close()
	s.Close()
	task, err = s.Next(context.Background())
	require.NoError(t, err)
	require.Nil(t, task)
	require.Zero(t, q.Used())
}

// Manifests read ahead are read once, whoever asks first, and closing the stream ends what is under way.
func TestReadAhead(t *testing.T) {
	tbl := planTable(t, 30, 10)
	counter := &storage.Counter{}
	tbl.Store = storage.Count(tbl.Store, counter)
	s := scanner.New(scanner.Options{Workers: 2})
	require.Equal(t, 300, countTasks(t, s, planRequest(tbl, nil)))
	require.EqualValues(t, 31, counter.Opens.Load())

	s = scanner.New(scanner.Options{Workers: 2})
	st, err := s.Plan(context.Background(), planRequest(tbl, nil))
	require.NoError(t, err)
	_, err = st.Next(context.Background())
	require.NoError(t, err)
	st.Close()
}
