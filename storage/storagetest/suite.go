// Package storagetest is the conformance suite that every store passes.
//
// It is test support only: it is imported by the tests of stores and of decorators, never by the product.
package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Fixture is a store under test with a way to put objects into it.
type Fixture struct {
	Store storage.Store
	// Root is a folder of the store, without a slash at the end, that is empty when the suite begins.
	Root string
	// Put writes an object at Root + "/" + name.
	Put func(t *testing.T, name string, content []byte)
}

// Run runs every case against a fixture that open makes afresh for each.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	cases := []struct {
		name string
		run  func(t *testing.T, f Fixture)
	}{
		{"ranges arrive whole and in their places", rangesArrive},
		{"a size is told without being given", sizeIsTold},
		{"an empty object reads as empty", emptyObject},
		{"a missing object is not found", missing},
		{"a range past the end is corrupt", pastEnd},
		{"a list shows direct children", list},
		{"a cancelled read ends", cancelled},
		{"many readers share an object", shared},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

func read(t *testing.T, o storage.Object, ranges ...storage.Range) [][]byte {
	t.Helper()
	dst := make([][]byte, len(ranges))
	for i, r := range ranges {
		dst[i] = make([]byte, r.Length)
	}
	require.NoError(t, o.ReadRanges(context.Background(), ranges, dst))
	return dst
}

func openObject(t *testing.T, f Fixture, name string, size int64) storage.Object {
	t.Helper()
	o, err := f.Store.Open(context.Background(), f.Root+"/"+name, size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	return o
}

func rangesArrive(t *testing.T, f Fixture) {
	content := pattern(100_000)
	f.Put(t, "a/x.bin", content)
	o := openObject(t, f, "a/x.bin", int64(len(content)))
	// Out of order, touching, overlapping, empty and far apart.
	ranges := []storage.Range{{Offset: 90_000, Length: 10_000}, {Offset: 0, Length: 4}, {Offset: 4, Length: 4}, {Offset: 2, Length: 10}, {Offset: 50, Length: 0}, {Offset: 50_000, Length: 1}}
	for i, got := range read(t, o, ranges...) {
		require.True(t, bytes.Equal(content[ranges[i].Offset:ranges[i].End()], got), "range %d", i)
	}
}

func sizeIsTold(t *testing.T, f Fixture) {
	f.Put(t, "x", pattern(321))
	require.EqualValues(t, 321, openObject(t, f, "x", -1).Size())
	info, err := f.Store.Stat(context.Background(), f.Root+"/x")
	require.NoError(t, err)
	require.EqualValues(t, 321, info.Size)
}

func emptyObject(t *testing.T, f Fixture) {
	f.Put(t, "empty", nil)
	o := openObject(t, f, "empty", -1)
	require.Zero(t, o.Size())
	read(t, o, storage.Range{})
}

func missing(t *testing.T, f Fixture) {
	_, err := f.Store.Stat(context.Background(), f.Root+"/none")
	require.ErrorIs(t, err, fault.NotFound)
	require.ErrorContains(t, err, "none")
	o, err := f.Store.Open(context.Background(), f.Root+"/none", 10)
	if err == nil {
		err = o.ReadRanges(context.Background(), []storage.Range{{Length: 10}}, [][]byte{make([]byte, 10)})
		require.NoError(t, o.Close())
	}
	require.ErrorIs(t, err, fault.NotFound)
}

func pastEnd(t *testing.T, f Fixture) {
	f.Put(t, "short", pattern(10))
	o := openObject(t, f, "short", -1)
	for _, r := range []storage.Range{{Offset: 5, Length: 6}, {Offset: 11, Length: 1}, {Offset: -1, Length: 2}} {
		err := o.ReadRanges(context.Background(), []storage.Range{r}, [][]byte{make([]byte, r.Length)})
		require.ErrorIs(t, err, fault.Corrupt, "%v", r)
		require.ErrorContains(t, err, "short")
	}
}

func list(t *testing.T, f Fixture) {
	for _, n := range []string{"b.txt", "a.txt", "dir/inner.txt", "cat/deep/x.txt"} {
		f.Put(t, n, []byte(n))
	}
	infos, err := f.Store.List(context.Background(), f.Root)
	require.NoError(t, err)
	var got []string
	for _, i := range infos {
		got = append(got, fmt.Sprint(i.Path[len(f.Root):], " ", i.Dir))
	}
	require.Equal(t, []string{"/cat true", "/dir true", "/a.txt false", "/b.txt false"}, got)
}

func cancelled(t *testing.T, f Fixture) {
	f.Put(t, "x", pattern(10))
	o := openObject(t, f, "x", 10)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := o.ReadRanges(ctx, []storage.Range{{Length: 10}}, [][]byte{make([]byte, 10)})
	require.Equal(t, fault.Canceled, fault.KindOf(err))
}

func shared(t *testing.T, f Fixture) {
	content := pattern(64 << 10)
	f.Put(t, "x", content)
	o := openObject(t, f, "x", int64(len(content)))
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				r := storage.Range{Offset: int64((w*977 + i*131) % 60_000), Length: 1000}
				dst := [][]byte{make([]byte, r.Length)}
				if err := o.ReadRanges(context.Background(), []storage.Range{r}, dst); err != nil || !bytes.Equal(dst[0], content[r.Offset:r.End()]) {
					t.Errorf("worker %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
}
