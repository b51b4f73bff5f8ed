package orc

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// naturalNode reads a column of any file in its own type.
func naturalNode(n *Node) *Projection {
	t := &wtype{kind: n.Kind, prec: n.Precision, scale: n.Scale}
	p := &Projection{Node: n}
	for _, c := range n.Children {
		k := naturalNode(c)
		p.Children = append(p.Children, k)
	}
	switch n.Kind {
	case List:
		p.Type = vector.ArrayOf(p.Children[0].Type)
	case Map:
		p.Type = vector.MapOf(p.Children[0].Type, p.Children[1].Type)
	case Struct:
		for i, k := range p.Children {
			p.Type.Fields = append(p.Type.Fields, vector.Field{Name: n.Children[i].Name, Type: k.Type})
		}
		p.Type.Kind = vector.Row
	case Union:
		p.Type = vector.RowOf(vector.Field{Name: UnionField(0), Type: vector.Of(vector.Integer)})
		for i, k := range p.Children {
			p.Type.Fields = append(p.Type.Fields, vector.Field{Name: UnionField(i + 1), Type: k.Type})
		}
		p.Children = append([]*Projection{{Type: vector.Of(vector.Integer), Node: n}}, p.Children...)
	default:
		p.Type = t.natural()
	}
	return p
}

// readHostile reads at most a few batches of each stripe of a file that may be anything.
func readHostile(t testing.TB, b []byte) {
	ctx := context.Background()
	o := &object{Bytes: b}
	f, err := ReadFooter(ctx, o, "fuzz")
	if err != nil {
		requireKind(t, err)
		return
	}
	pool := memory.NewPool("fuzz", 256<<20)
	for s := range min(len(f.Stripes), 3) {
		for _, n := range f.Nodes[:min(len(f.Nodes), 64)] {
			if len(n.Children) == 0 && n.Kind != Union && n.Kind != Struct {
				want := naturalNode(n).Type
				f.Bounds(s, n, want)
				_, err := GroupIndex(ctx, o, f, s, n, want)
				requireKind(t, err)
			}
		}
		for _, c := range f.Root.Children {
			for _, ranges := range [][]RowRange{nil, {{First: f.Stripes[s].NumRows / 3, Last: f.Stripes[s].NumRows}}} {
				r, err := OpenStripe(ctx, o, f, s, []*Projection{naturalNode(c)}, ranges, Options{Pool: pool})
				if err != nil {
					requireKind(t, err)
					continue
				}
				for range 6 {
					n, _ := r.NextBatch(300)
					if n == 0 {
						break
					}
					v, err := r.Read(ctx, 0)
					if err != nil {
						requireKind(t, err)
						break
					}
					for k := range n {
						v.Get(k)
					}
				}
				r.Close()
			}
		}
	}
	if pool.Used() != 0 {
		t.Fatalf("%d bytes left reserved", pool.Used())
	}
}

func seedFiles() (files [][]byte) {
	r := rand.New(rand.NewPCG(4, 2))
	for i, c := range []Codec{None, None, Zlib, Snappy, LZ4, Zstd} {
		types := everyType()
		w := newWriter(r, c, types...)
		w.v1 = i == 1
		w.stride = 20
		w.stripe(randomRows(r, types, 50, 0.2))
		w.stripe(randomRows(r, types, 10, 0))
		files = append(files, w.finish())
	}
	return files
}

// TestMutatedFiles is the fuzzer's work in small, so that every test run does some of it.
func TestMutatedFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, file := range seedFiles() {
		for i := range 300 {
			b := bytes.Clone(file)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(b))
				if i%2 == 0 { // the tail is what is read first
					at = len(b) - 1 - r.IntN(min(len(b), 3000))
				}
				b[at] = byte(r.Uint32())
			}
			if i%10 == 0 {
				b = b[:r.IntN(len(b))]
			}
			readHostile(t, b)
		}
	}
}

// FuzzFile changes bytes of whole files: edits hold a position and a value each, so that most of the file stays sound.
func FuzzFile(f *testing.F) {
	files := seedFiles()
	for i := range files {
		f.Add(uint8(i), []byte{0, 0, 9, 200})
		f.Add(uint8(i), []byte{0, 1, 9, 7, 0, 2, 8, 255})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		b := bytes.Clone(files[int(which)%len(files)])
		for len(edits) >= 4 {
			at := int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])
			b[len(b)-1-at%len(b)] = edits[3]
			edits = edits[4:]
		}
		readHostile(t, b)
	})
}

// FuzzFooter reads anything as the footer of an uncompressed file.
func FuzzFooter(f *testing.F) {
	r := rand.New(rand.NewPCG(4, 3))
	types := everyType()
	w := newWriter(r, None, types...)
	w.stripe(randomRows(r, types, 5, 0.2))
	f.Add(w.footer(), bytes.Join(w.stats, nil))
	f.Fuzz(func(t *testing.T, foot, meta []byte) {
		b := append(append(append([]byte(magic), make([]byte, 500)...), meta...), foot...)
		ps := varint(nil, 1, uint64(len(foot)))
		ps = varint(ps, 5, uint64(len(meta)))
		ps = blob(ps, 8000, []byte(magic))
		readHostile(t, append(append(b, ps...), byte(len(ps))))
	})
}

// FuzzIntRuns reads anything as integers.
func FuzzIntRuns(f *testing.F) {
	f.Add(unhex(f, "8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8"), true, false)
	f.Add(unhex(f, "c6090202"), true, true)
	f.Add(unhex(f, "6100070a2710"), false, true)
	f.Fuzz(func(t *testing.T, b []byte, v2, signed bool) {
		dec := intRuns{s: plain(b), v2: v2, signed: signed}
		var got [700]int64
		for i := range 20 {
			if err := dec.read(got[:1+i*37%700]); err != nil {
				requireKind(t, err)
				return
			}
			if err := dec.skip(int64(i)); err != nil {
				requireKind(t, err)
				return
			}
		}
	})
}

// FuzzLZO decompresses anything.
func FuzzLZO(f *testing.F) {
	f.Add(unhex(f, "1561626364220c00110000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dst := make([]byte, 1000)
		if n, err := unlzo(dst, b); err == nil && n > len(dst) {
			t.Fatal(n)
		}
	})
}

// tail makes the end of a file from its parts.
func tail(footer, meta []byte, ps []byte) []byte {
	b := append(append([]byte(magic), meta...), footer...)
	return append(append(b, ps...), byte(len(ps)))
}

// TestRefusals reads files that lie, each in its own way.
func TestRefusals(t *testing.T) {
	types := []byte(nil)
	types = blob(types, 4, varint(nil, 1, uint64(Struct)))
	ps := func(n int, more ...byte) []byte {
		return append(blob(varint(nil, 1, uint64(n)), 8000, []byte(magic)), more...)
	}
	deep := []byte(nil)
	for i := range 600 {
		kind := varint(varint(nil, 1, uint64(List)), 2, uint64(i+1))
		if i == 0 {
			kind = blob(varint(varint(nil, 1, uint64(Struct)), 2, 1), 3, []byte("c"))
		}
		deep = blob(deep, 4, kind)
	}
	deep = blob(deep, 4, varint(nil, 1, uint64(Int)))
	stripe := func(at, index, data, foot, rows uint64) []byte {
		return blob(bytes.Clone(types), 3, varint(varint(varint(varint(varint(nil, 1, at), 2, index), 3, data), 4, foot), 5, rows))
	}
	future := varint(stripe(0, 0, 0, 0, 1), 6, 1)
	sub := func(k Kind, subs ...uint64) []byte {
		b := varint(nil, 1, uint64(k))
		for _, s := range subs {
			b = varint(b, 2, s)
		}
		return b
	}
	for _, c := range []struct {
		name, says string
		b          []byte
	}{
		{"empty", "0 bytes are too few", nil},
		{"short", "too few", []byte("ORC")},
		{"postscript beyond", "postscript of 200 bytes", append([]byte("ORC12345"), 200)},
		{"no magic", "neither its postscript nor its beginning says ORC", append(append([]byte("XYZ"), varint(nil, 1, 1)...), 2)},
		{"other magic", "its magic is", tail(types, nil, blob(varint(nil, 1, uint64(len(types))), 8000, []byte("DWRF")))},
		{"footer beyond", "do not fit", tail(types, nil, ps(1<<40))},
		{"no footer", "the footer has no bytes", tail(nil, nil, ps(0))},
		{"unknown codec", "compression 9", tail(types, nil, ps(len(types), varint(nil, 2, 9)...))},
		{"brotli", "BROTLI", tail(types, nil, ps(len(types), varint(nil, 2, 6)...))},
		{"huge block", "compression block size", tail(types, nil, ps(len(types), varint(varint(nil, 2, 1), 3, 1<<40)...))},
		{"future", "file version 3.0", tail(future, nil, ps(len(future), blob(nil, 4, []byte{3, 0})...))},
		{"no types", "no types", tail(varint(nil, 6, 0), nil, ps(2))},
		{"root", "root is not a struct", tail(blob(nil, 4, sub(Int)), nil, ps(4))},
		{"deep", "nested deeper", tail(deep, nil, ps(len(deep)))},
		{"loop", "out of order", tail(blob(nil, 4, blob(sub(Struct, 0), 3, []byte("c"))), nil, ps(9))},
		{"list of two", "has 2 subtypes", tail(blob(blob(nil, 4, blob(sub(Struct, 1), 3, []byte("c"))), 4, sub(List, 2, 3)), nil, ps(17))},
		{"orphan", "only 1 belong", tail(blob(bytes.Clone(types), 4, sub(Int)), nil, ps(len(types)+4))},
		{"names", "2 fields, but 1 names", tail(blob(nil, 4, blob(sub(Struct, 1, 2), 3, []byte("c"))), nil, ps(11))},
		{"rows", "it counts 5 rows", tail(varint(bytes.Clone(types), 6, 5), nil, ps(len(types)+2))},
		{"stripe beyond", "stripe 0", tail(stripe(3, 1<<62, 1<<62, 1<<62, 0), nil, ps(len(stripe(3, 1<<62, 1<<62, 1<<62, 0))))},
		{"rows overflow", "rows", tail(stripe(0, 0, 0, 0, 1<<63), nil, ps(len(stripe(0, 0, 0, 0, 1<<63))))},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadFooter(context.Background(), &object{Bytes: c.b}, "bad.orc")
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "bad.orc")
			requireKind(t, err)
		})
	}
}

// TestNoMemoryForClaims reads files whose few bytes claim a great deal, and measures.
func TestNoMemoryForClaims(t *testing.T) {
	ctx := context.Background()
	c := field("c", List, field("", String))
	for _, col := range []int{1, 2} { // elements of a list, bytes of a string
		w := newWriter(rand.New(rand.NewPCG(1, 1)), None, c)
		w.v1 = true
		w.stripe([][]vector.Value{{[]vector.Value{strings.Repeat("a", 1<<22), "b"}}})
		b := w.finish()
		o, f := open(t, b)
		foot, err := f.stripeFooter(ctx, o, 0)
		require.NoError(t, err)
		where := foot.streams[streamKey{col, streamLength}]
		lie := binary.AppendUvarint([]byte{0xff}, 1<<25)[:5]
		if col == 1 { // its stream is short: what follows it is given up
			foot.streams[streamKey{col, streamLength}] = storage.Range{Offset: where.Offset, Length: 5}
		}
		copy(b[where.Offset:], lie)
		r, err := OpenStripe(ctx, o, f, 0, projections(f, []*wtype{c}), nil, Options{ReadAheadBytes: 1})
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r.NextBatch(1)
		_, err = r.Read(ctx, 0)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, fault.Corrupt)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(48<<20), "of a file of %d bytes", len(b))
		r.Close()
	}
}

// TestCorruptData names file, stripe and column.
func TestCorruptData(t *testing.T) {
	c := field("outer", Struct, &wtype{name: "inner", kind: String, dict: true})
	w := newWriter(rand.New(rand.NewPCG(1, 1)), None, c)
	w.stripe([][]vector.Value{{[]vector.Value{"x"}}})
	b := w.finish()
	o, f := open(t, b)
	foot, err := f.stripeFooter(context.Background(), o, 0)
	require.NoError(t, err)
	where := foot.streams[streamKey{2, streamData}]
	b[where.Offset+where.Length-1] ^= 0x80 // another entry than the only one
	r, err := OpenStripe(context.Background(), o, f, 0, projections(f, []*wtype{c}), nil, Options{})
	require.NoError(t, err)
	defer r.Close()
	r.NextBatch(1)
	_, err = r.Read(context.Background(), 0)
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "ORC file test.orc: stripe 0: column outer.inner: entry")
	_, again := r.Read(context.Background(), 0)
	require.Equal(t, err, again, "a column that broke stays broken")
}

// TestBrokenMetadata reads a file without its statistics when those are damaged.
func TestBrokenMetadata(t *testing.T) {
	types := everyType()
	r := rand.New(rand.NewPCG(1, 1))
	w := newWriter(r, None, types...)
	rows := randomRows(r, types, 50, 0.1)
	w.stripe(rows)
	w.stats[0] = []byte{0x0a, 0xff, 0x01}
	b := w.finish()
	require.Equal(t, rows, readAll(t, b, types, 20, Options{}))
	_, f := open(t, b)
	require.False(t, f.Bounds(0, f.Root.Children[3], vector.Of(vector.Integer)).HasMin)
}

// TestCanceled stops at a context's end.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	types := []*wtype{field("c", Int)}
	r := rand.New(rand.NewPCG(1, 1))
	w := newWriter(r, None, types...)
	w.stripe(randomRows(r, types, 10, 0))
	o, f := open(t, w.finish())
	sr, err := OpenStripe(ctx, o, f, 0, projections(f, types), nil, Options{})
	require.NoError(t, err)
	defer sr.Close()
	sr.NextBatch(5)
	cancel()
	_, err = sr.Read(ctx, 0)
	require.ErrorIs(t, err, fault.Canceled)
}

// TestPoolRefuses gives an error that names the pool, and nothing stays reserved.
func TestPoolRefuses(t *testing.T) {
	types := everyType()
	r := rand.New(rand.NewPCG(1, 1))
	w := newWriter(r, Zlib, types...)
	w.stripe(randomRows(r, types, 500, 0.1))
	o, f := open(t, w.finish())
	for limit := int64(1); limit < 1<<20; limit *= 3 {
		pool := memory.NewPool("tiny", limit)
		sr, err := OpenStripe(context.Background(), o, f, 0, projections(f, types), nil, Options{Pool: pool})
		require.NoError(t, err)
		for n, _ := sr.NextBatch(100); n > 0; n, _ = sr.NextBatch(100) {
			for i := range types {
				if _, err := sr.Read(context.Background(), i); err != nil {
					require.ErrorIs(t, err, fault.Exhausted)
				}
			}
		}
		sr.Close()
		require.Zero(t, pool.Used())
	}
}
