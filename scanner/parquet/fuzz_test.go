package parquet

import (
	"context"
	"math/rand/v2"
	"testing"

	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// readHostile reads at most a few batches of each row group of a file that may be anything.
func readHostile(t *testing.T, b []byte) {
	ctx := context.Background()
	o := &object{Bytes: b}
	f, err := ReadFooter(ctx, o, "fuzz")
	if err != nil {
		requireKind(t, err)
		return
	}
	pool := memory.NewPool("fuzz", 512<<20)
	var ps []*Projection
	for _, c := range f.Root.Children {
		ps = append(ps, natural(c, false))
	}
	for rg := range min(len(f.RowGroups), 4) {
		for i, l := range f.Leaves {
			want := naturalLeaf(l)
			b := f.Bounds(rg, i, want)
			_, err := PageIndex(ctx, o, f, rg, i, want)
			requireKind(t, err)
			_, err = BloomMayContain(ctx, o, f, rg, i, []vector.Value{b.Min, b.Max}, want)
			requireKind(t, err)
			_, err = DictionaryMayContain(ctx, o, f, rg, i, []vector.Value{b.Min, b.Max}, want, Options{Pool: pool})
			requireKind(t, err)
		}
		for _, ranges := range [][]RowRange{nil, {{f.RowGroups[rg].NumRows / 3, f.RowGroups[rg].NumRows}}} {
			r, err := OpenRowGroup(ctx, o, f, rg, ps, ranges, Options{Pool: pool})
			if err != nil {
				requireKind(t, err)
				continue
			}
			for batch := range 8 {
				n, _ := r.NextBatch(700)
				if n == 0 {
					break
				}
				for i := range ps {
					if (batch+i)%3 == 2 {
						continue
					}
					v, err := r.Read(ctx, i)
					if err != nil {
						requireKind(t, err)
						continue
					}
					for k := range n {
						v.Get(k)
					}
				}
			}
			r.Close()
		}
	}
	if pool.Used() != 0 {
		t.Fatalf("%d bytes left reserved", pool.Used())
	}
}

// requireKind checks that an error is one that a broken file may cause.
func requireKind(t *testing.T, err error) {
	t.Helper()
	switch k := fault.KindOf(err); {
	case err == nil, k == fault.Corrupt, k == fault.Unsupported, k == fault.Exhausted:
	default:
		t.Fatalf("error of kind %v: %v", k, err)
	}
}

func seedFiles(t testing.TB) (files [][]byte) {
	r := rand.New(rand.NewPCG(4, 2))
	for i, s := range []aparquet.DataPageVersion{aparquet.DataPageV1, aparquet.DataPageV2} {
		for _, c := range []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy} {
			props := []aparquet.WriterProperty{aparquet.WithDataPageVersion(s), aparquet.WithCompression(c), aparquet.WithDataPageSize(200), aparquet.WithBatchSize(16),
				aparquet.WithDictionaryDefault(i == 0), aparquet.WithPageIndexEnabled(true), aparquet.WithBloomFilterEnabled(true), aparquet.WithMaxBloomFilterBytes(64)}
			files = append(files, writeArrow(t, randomRecord(r, nestedSchema(), 60, 0.2, 20), props...), writeArrow(t, randomRecord(r, flatSchema(), 60, 0.2, 20), props...))
		}
	}
	return files
}

// FuzzFile changes bytes of whole files: edits hold a position and a value each, so that most of the file stays sound.
func FuzzFile(f *testing.F) {
	files := seedFiles(f)
	f.Add(uint8(0), []byte{})
	for i := range files {
		f.Add(uint8(i), []byte{0, 0, 9, 200})
		f.Add(uint8(i), []byte{0, 1, 9, 7, 0, 2, 8, 255})
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		b := append([]byte(nil), files[int(which)%len(files)]...)
		for len(edits) >= 4 {
			at := int(edits[0])<<16 | int(edits[1])<<8 | int(edits[2])
			b[at%len(b)] = edits[3]
			edits = edits[4:]
		}
		readHostile(t, b)
	})
}

// TestMutatedFiles is the fuzzer's work in small, so that every test run does some of it.
func TestMutatedFiles(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, file := range seedFiles(t) {
		for range 400 {
			b := append([]byte(nil), file...)
			for range 1 + r.IntN(4) {
				at := r.IntN(len(b))
				switch r.IntN(3) {
				case 0:
					b[at] = byte(r.Uint32())
				case 1:
					b[at] ^= 1 << r.IntN(8)
				default:
					b[at] += byte(r.IntN(3)) - 1
				}
			}
			readHostile(t, b)
		}
		for range 20 {
			readHostile(t, file[:r.IntN(len(file))])
		}
	}
}

func FuzzFooter(f *testing.F) {
	for _, b := range seedFiles(f) {
		n := len(b) - 8
		length := int(b[n]) | int(b[n+1])<<8 | int(b[n+2])<<16
		f.Add(b[n-length : n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		requireKind(t, parseFileMetadata(b, &Footer{Path: "fuzz", Size: 1 << 20}))
	})
}

func FuzzPageHeader(f *testing.F) {
	p := madePage{kind: dataPage, values: 3, body: le32(1, 2, 3)}
	f.Add(p.encode(&madeColumn{}))
	p.kind = dataPageV2
	f.Add(p.encode(&madeColumn{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, err := parsePageHeader(b)
		requireKind(t, err)
	})
}

func FuzzIndexes(f *testing.F) {
	for _, b := range seedFiles(f) {
		foot, err := ReadFooter(context.Background(), &object{Bytes: b}, "seed")
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range foot.RowGroups[0].Columns[:3] {
			for _, r := range []storage.Range{c.OffsetIndex, c.ColumnIndex, {Offset: c.BloomOffset, Length: 64}} {
				f.Add(b[r.Offset:r.End()])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := parseOffsetIndex(b, storage.Range{Offset: 4, Length: 1 << 20}, 1000)
		requireKind(t, err)
		_, err = parseColumnIndex(b)
		requireKind(t, err)
		_, _, _, err = parseBloomHeader(b)
		requireKind(t, err)
	})
}

// FuzzPage decodes the body of one data page in each encoding, for each physical type and shape of levels.
func FuzzPage(f *testing.F) {
	for enc := range 10 {
		for phys := range 8 {
			f.Add(uint8(enc), uint8(phys), uint8(enc+phys), uint16(20), append(append(rle([]byte{40, 1}), le64(1, 2, 3, 4)...), lengthPrefixed("a", "bc", "a longer string than fits")...))
		}
	}
	f.Fuzz(func(t *testing.T, enc, phys, shape uint8, values uint16, body []byte) {
		e := madeField{name: "c", rep: Repetition(shape % 3), physical: Physical(phys % 8), length: 1 + int(shape)/16, converted: -1}
		page := madePage{kind: dataPage, values: int(values), enc: Encoding(enc % 10), body: body, defEnc: Encoding(3 + shape/3%2), repEnc: Encoding(3 + shape/6%2)}
		if shape&128 != 0 {
			page.kind, page.rows = dataPageV2, int(values)
			cut := min(len(body), int(shape)/16)
			page.def, page.body = body[:cut], body[cut:]
		}
		dict := madePage{kind: dictionaryPage, values: 2, body: append(le64(1, 2, 3, 4, 5, 6, 7, 8), le64(9, 10, 11, 12)...)}
		file := oneColumn(e, int64(values), dict, page)
		if e.rep == Repeated {
			file.rows = min(int64(values), 5)
		}
		readHostile(t, file.bytes())
	})
}
