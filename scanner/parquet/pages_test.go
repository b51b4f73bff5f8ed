package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

func opt32(name string) madeField {
	return madeField{name: name, rep: Optional, physical: Int32, converted: -1}
}

func TestLegacyBitPackedLevels(t *testing.T) {
	// Levels 1 0 1 1 0, most significant bit first.
	f := oneColumn(opt32("c"), 5, madePage{kind: dataPage, values: 5, defEnc: BitPacked, body: append([]byte{0b10110000}, le32(1, 2, 3)...)})
	require.Equal(t, [][]vector.Value{{int32(1), nil, int32(2), int32(3), nil}}, newRead(t, f.bytes(), readOptions{}))
}

func TestRLEBooleansInVersion2Pages(t *testing.T) {
	e := madeField{name: "c", rep: Optional, physical: Boolean, converted: -1}
	f := oneColumn(e, 8, madePage{kind: dataPageV2, values: 8, nulls: 2, rows: 8, enc: RLE, def: []byte{3, 0b11101110}, body: rle([]byte{4 << 1, 1, 2 << 1, 0})})
	require.Equal(t, [][]vector.Value{{nil, true, true, true, nil, true, false, false}}, newRead(t, f.bytes(), readOptions{batch: 3}))
}

func TestDictionaryFallsBackWithinBatch(t *testing.T) {
	e := madeField{name: "c", rep: Optional, physical: ByteArray, converted: 0}
	f := oneColumn(e, 7,
		madePage{kind: dictionaryPage, values: 2, body: lengthPrefixed("a value longer than twelve bytes", "b")},
		madePage{kind: dataPage, values: 3, enc: RLEDictionary, body: append(rle([]byte{3, 0b101}), 1, 3, 0b01)},
		madePage{kind: dataPage, values: 2, body: append(rle([]byte{4, 1}), lengthPrefixed("plain and again more than twelve", "p")...)},
		madePage{kind: dataPage, values: 2, enc: RLEDictionary, body: append(rle([]byte{4, 1}), 1, 4, 0)})
	long := "a value longer than twelve bytes"
	want := [][]vector.Value{{long + "", nil, "b", "plain and again more than twelve", "p", long, long}}
	want[0][0], want[0][2] = "b", long
	for _, batch := range []int{7, 4, 1} {
		require.Equal(t, want, newRead(t, f.bytes(), readOptions{batch: batch}))
	}
}

func TestFixedLengthDelta(t *testing.T) {
	// Prefix lengths 0 2 0, suffix lengths 3 1 3, as deltas in one block each.
	lengths := func(first int64, deltas ...int64) []byte {
		b := []byte{128, 1, 4, byte(len(deltas) + 1)}
		b = binary.AppendVarint(b, first)
		b = binary.AppendVarint(b, -4)
		b = append(b, 8, 0, 0, 0)
		mini := make([]byte, 32)
		for i, d := range deltas {
			mini[i] = byte(d + 4)
		}
		return append(b, mini...)
	}
	body := append(append(lengths(0, 2, -2), lengths(3, -2, 2)...), "abcdxyz"...)
	e := madeField{name: "c", physical: FixedLenByteArray, length: 3, converted: -1}
	f := oneColumn(e, 3, madePage{kind: dataPage, values: 3, enc: DeltaByteArray, body: body})
	require.Equal(t, [][]vector.Value{{"abc", "abd", "xyz"}}, newRead(t, f.bytes(), readOptions{batch: 2}))
}

func TestCodecs(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 20)
	want := make([]vector.Value, 40)
	for i := range want {
		want[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
	}
	lz4Block := func(b []byte) []byte {
		dst := make([]byte, lz4.CompressBlockBound(len(b)))
		n, err := lz4.CompressBlock(b, dst, nil)
		require.NoError(t, err)
		return dst[:n]
	}
	hadoop := func(b []byte) (out []byte) {
		for _, part := range [][]byte{b[:100], b[100:]} {
			c := lz4Block(part)
			out = binary.BigEndian.AppendUint32(out, uint32(len(part)))
			out = binary.BigEndian.AppendUint32(out, uint32(len(c)))
			out = append(out, c...)
		}
		return out
	}
	for name, c := range map[string]struct {
		codec    Codec
		compress func([]byte) []byte
	}{
		"LZ4 with Hadoop's frames": {LZ4, hadoop},
		"LZ4 as a bare block":      {LZ4, lz4Block},
		"LZ4 as a frame": {LZ4, func(b []byte) []byte {
			var out bytes.Buffer
			w := lz4.NewWriter(&out)
			_, _ = w.Write(b)
			_ = w.Close()
			return out.Bytes()
		}},
		"LZ4_RAW": {LZ4Raw, lz4Block},
		"gzip in two members": {Gzip, func(b []byte) []byte {
			var out bytes.Buffer
			for _, part := range [][]byte{b[:33], b[33:]} {
				w := gzip.NewWriter(&out)
				_, _ = w.Write(part)
				_ = w.Close()
			}
			return out.Bytes()
		}},
		"brotli": {Brotli, func(b []byte) []byte {
			var out bytes.Buffer
			w := brotli.NewWriter(&out)
			_, _ = w.Write(b)
			_ = w.Close()
			return out.Bytes()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := oneColumn(madeField{name: "c", physical: Int64}, 40, madePage{kind: dataPage, values: 40, body: body, crc: -1})
			f.fields[1].converted = -1
			f.cols[0].codec, f.cols[0].compress = c.codec, c.compress
			require.Equal(t, [][]vector.Value{want}, newRead(t, f.bytes(), readOptions{}))
			f.cols[0].pages[0].size = len(body) - 8
			_, err := readFile(&object{Bytes: f.bytes()}, readOptions{})
			require.ErrorIs(t, err, fault.Corrupt, "a size that is too small")
			f.cols[0].pages[0].size = len(body) + 8
			_, err = readFile(&object{Bytes: f.bytes()}, readOptions{})
			require.ErrorIs(t, err, fault.Corrupt, "a size that is too large")
			f.cols[0].compress = func(b []byte) []byte { return append([]byte{7, 200, 9}, c.compress(b)[3:]...) }
			_, err = readFile(&object{Bytes: f.bytes()}, readOptions{})
			require.ErrorIs(t, err, fault.Corrupt, "damaged bytes")
		})
	}
	f := oneColumn(madeField{name: "c", physical: Int64, converted: -1}, 40, madePage{kind: dataPage, values: 40, body: body})
	f.cols[0].codec = LZO
	_, err := readFile(&object{Bytes: f.bytes()}, readOptions{})
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "LZO")
}

func TestEmptyPages(t *testing.T) {
	f := oneColumn(opt32("c"), 3,
		madePage{kind: dataPage, values: 0, body: rle(nil)},
		madePage{kind: dataPageV2, values: 2, nulls: 2, rows: 2, def: []byte{4, 0}},
		madePage{kind: indexPage, body: []byte("ignored")},
		madePage{kind: 77, body: []byte("a type of page yet to come")},
		madePage{kind: dataPageV2, values: 0},
		madePage{kind: dataPage, values: 1, body: append(rle([]byte{2, 1}), le32(9)...)})
	require.Equal(t, [][]vector.Value{{nil, nil, int32(9)}}, newRead(t, f.bytes(), readOptions{}))
	require.Equal(t, [][]vector.Value{{nil, nil, int32(9)}}, newRead(t, f.bytes(), readOptions{batch: 1}))
}

// TestPagesOfNullsOnly puts them between others, in one batch: they have no bits of their own.
func TestPagesOfNullsOnly(t *testing.T) {
	mixed := func(vs ...int32) madePage {
		return madePage{kind: dataPage, values: 8, body: append(rle([]byte{3, 0b01101101}), le32(vs...)...)}
	}
	null := func(n int) madePage { return madePage{kind: dataPage, values: n, body: rle([]byte{byte(n << 1), 0})} }
	all := madePage{kind: dataPage, values: 3, body: append(rle([]byte{6, 1}), le32(30, 31, 32)...)}
	f := oneColumn(opt32("c"), 8+60+8+5+3+40+8, mixed(1, 2, 3, 4, 5), null(60), mixed(6, 7, 8, 9, 10), null(5), all, null(40), mixed(11, 12, 13, 14, 15))
	var want []vector.Value
	m := func(x int32) { want = append(want, x, nil, x+1, x+2, nil, x+3, x+4, nil) }
	m(1)
	want = append(want, make([]vector.Value, 60)...)
	m(6)
	want = append(want, make([]vector.Value, 5)...)
	want = append(want, int32(30), int32(31), int32(32))
	want = append(want, make([]vector.Value, 40)...)
	m(11)
	for _, batch := range []int{200, 1, 7, 66} {
		require.Equal(t, [][]vector.Value{want}, newRead(t, f.bytes(), readOptions{batch: batch}))
		wide := newRead(t, f.bytes(), readOptions{batch: batch, project: as(vector.Of(vector.BigInt))})[0]
		for i, v := range want {
			if v == nil {
				require.Nil(t, wide[i])
			} else {
				require.EqualValues(t, v, wide[i])
			}
		}
	}
}

// TestBadPages holds pages that contradict themselves: each must be refused, naming file, column and place.
func TestBadPages(t *testing.T) {
	req := madeField{name: "c", physical: Int32, converted: -1}
	text := madeField{name: "c", physical: ByteArray, converted: -1}
	dict := madePage{kind: dictionaryPage, values: 2, body: le32(1, 2)}
	page := func(p madePage) madePage { p.kind = dataPage; return p }
	for name, c := range map[string]struct {
		field madeField
		rows  int64
		pages []madePage
	}{
		"short values":                     {req, 3, []madePage{page(madePage{values: 3, body: le32(1, 2)})}},
		"fewer values than rows":           {req, 3, []madePage{page(madePage{values: 2, body: le32(1, 2)})}},
		"more values than rows":            {req, 3, []madePage{page(madePage{values: 4, body: le32(1, 2, 3, 4)})}},
		"no pages but a dictionary":        {req, 3, []madePage{dict}},
		"dictionary after data":            {req, 3, []madePage{page(madePage{values: 2, body: le32(1, 2)}), dict, page(madePage{values: 1, body: le32(1)})}},
		"code without dictionary":          {req, 3, []madePage{page(madePage{values: 3, enc: RLEDictionary, body: []byte{1, 6, 0}})}},
		"code past the dictionary":         {req, 3, []madePage{dict, page(madePage{values: 3, enc: RLEDictionary, body: []byte{2, 6, 2}})}},
		"packed code past the dictionary":  {req, 3, []madePage{dict, page(madePage{values: 3, enc: RLEDictionary, body: []byte{2, 3, 0b110100, 0}})}},
		"dictionary bit width of 254":      {req, 3, []madePage{dict, page(madePage{values: 3, enc: RLEDictionary, body: []byte{254, 6, 0}})}},
		"codes end early":                  {req, 3, []madePage{dict, page(madePage{values: 3, enc: RLEDictionary, body: []byte{1, 4, 0}})}},
		"dictionary longer than its page":  {req, 3, []madePage{{kind: dictionaryPage, values: 1 << 30, body: le32(1, 2)}, page(madePage{values: 3, enc: RLEDictionary, body: []byte{1, 6, 0}})}},
		"levels longer than the page":      {opt32("c"), 3, []madePage{page(madePage{values: 3, body: []byte{200, 0, 0, 0, 6, 1}})}},
		"levels end early":                 {opt32("c"), 3, []madePage{page(madePage{values: 3, body: append(rle([]byte{4, 1}), le32(1, 2, 3)...)})}},
		"level above its maximum":          {opt32("c"), 3, []madePage{page(madePage{values: 3, body: append(rle([]byte{6, 2}), le32(1, 2, 3)...)})}},
		"null count of version 2":          {opt32("c"), 3, []madePage{{kind: dataPageV2, values: 3, nulls: 2, rows: 3, def: []byte{4, 1, 2, 0}, body: le32(1, 2)}}},
		"string past the page":             {text, 2, []madePage{page(madePage{values: 2, body: append(lengthPrefixed("a"), 255, 255, 255, 255)})}},
		"string without length":            {text, 2, []madePage{page(madePage{values: 2, body: append(lengthPrefixed("abcdefgh"), 1)})}},
		"encoding of another type":         {text, 2, []madePage{page(madePage{values: 2, enc: DeltaBinaryPacked, body: le32(1, 2, 3)})}},
		"unknown encoding":                 {req, 2, []madePage{page(madePage{values: 2, enc: 42, body: le32(1, 2, 3)})}},
		"split streams of the wrong size":  {req, 2, []madePage{page(madePage{values: 2, enc: ByteStreamSplit, body: le32(1, 2, 3)})}},
		"delta claims more values":         {req, 2, []madePage{page(madePage{values: 2, enc: DeltaBinaryPacked, body: []byte{128, 1, 4, 200, 1, 0}})}},
		"uncompressed sizes differ":        {req, 2, []madePage{page(madePage{values: 2, body: le32(1, 2), size: 12})}},
		"wrong checksum":                   {req, 2, []madePage{page(madePage{values: 2, body: le32(1, 2), crc: 12345})}},
		"lengths that do not fill a delta": {text, 2, []madePage{page(madePage{values: 2, enc: DeltaLengthByteArray, body: []byte{128, 1, 4, 1, 2, 'a'}})}},
		"endless empty runs":               {opt32("c"), 2, []madePage{page(madePage{values: 2, body: rle(make([]byte, 100))})}},
	} {
		t.Run(name, func(t *testing.T) {
			f := oneColumn(c.field, c.rows, c.pages...)
			for _, batch := range []int{100, 1} {
				_, err := readFile(&object{Bytes: f.bytes()}, readOptions{batch: batch, opt: Options{CheckCRC: true}})
				if name == "unknown encoding" {
					require.ErrorIs(t, err, fault.Unsupported)
				} else {
					require.ErrorIs(t, err, fault.Corrupt)
				}
				require.ErrorContains(t, err, "test.parquet")
				require.ErrorContains(t, err, "column c")
			}
		})
	}
}

func TestDecompressionBombsAreNotBelieved(t *testing.T) {
	f := oneColumn(madeField{name: "c", physical: Int64, converted: -1}, 1<<20, madePage{kind: dataPage, values: 1 << 20, size: 1 << 29, body: []byte("tiny")})
	f.cols[0].codec, f.cols[0].compress = Snappy, func(b []byte) []byte { return b }
	_, err := readFile(&object{Bytes: f.bytes()}, readOptions{})
	require.ErrorIs(t, err, fault.Corrupt)
	require.ErrorContains(t, err, "claims")
}

func TestInt96CoversTheWholeRange(t *testing.T) {
	stamp := func(day int32, nanos int64) []byte { return append(le64(nanos), le32(day)...) }
	var body []byte
	body = append(body, stamp(2440588, 0)...)
	body = append(body, stamp(2440587, 86_399_999_999_999)...)
	body = append(body, stamp(2440588, 1999)...)
	body = append(body, stamp(2440588-700_000, 1)...) // about the year 53
	body = append(body, stamp(2440588+2_900_000, 0)...)
	body = append(body, stamp(2440588, -1)...)
	e := madeField{name: "c", physical: Int96, converted: -1}
	f := oneColumn(e, 6, madePage{kind: dataPage, values: 6, body: body})
	require.Equal(t, [][]vector.Value{{int64(0), int64(-1), int64(1), int64(-700_000 * microsPerDay), int64(2_900_000 * microsPerDay), int64(-1)}}, newRead(t, f.bytes(), readOptions{}))
	far := oneColumn(e, 1, madePage{kind: dataPage, values: 1, body: stamp(math.MaxInt32, 0)})
	_, err := readFile(&object{Bytes: far.bytes()}, readOptions{})
	require.ErrorIs(t, err, fault.Corrupt)

	// A column of nanoseconds keeps them all, and refuses what they cannot reach rather than wrap.
	dst := make([]int64, 2)
	require.NoError(t, int96(1, append(stamp(2440588, 1999), stamp(2440587, 86_399_999_999_999)...), dst))
	require.Equal(t, []int64{1999, -1}, dst)
	require.ErrorIs(t, int96(1, stamp(2440588+200_000, 0), dst[:1]), fault.Corrupt)
}

func TestEncryptedFilesAreRefused(t *testing.T) {
	plain := oneColumn(opt32("c"), 1, madePage{kind: dataPage, values: 1, body: append(rle([]byte{2, 1}), le32(9)...)})
	algorithm, column := *plain, *plain
	algorithm.cipher = true
	column.cols = []madeColumn{plain.cols[0]}
	column.cols[0].crypto = true
	footer := plain.bytes()
	copy(footer[len(footer)-4:], magicEncrypted)
	for name, b := range map[string][]byte{"footer": footer, "algorithm": algorithm.bytes(), "column": column.bytes()} {
		_, err := ReadFooter(context.Background(), &object{Bytes: b}, "secret.parquet")
		require.ErrorIs(t, err, fault.Unsupported, name)
		require.ErrorContains(t, err, "encrypted")
		require.ErrorContains(t, err, "secret.parquet")
	}
}

func TestFootersThatContradictThemselves(t *testing.T) {
	fresh := func() *madeFile {
		return oneColumn(opt32("c"), 1, madePage{kind: dataPage, values: 1, body: append(rle([]byte{2, 1}), le32(9)...)})
	}
	for name, spoil := range map[string]func(f *madeFile){
		"values and rows":         func(f *madeFile) { f.cols[0].values = 7 },
		"negative rows":           func(f *madeFile) { f.rows, f.cols[0].values = -1, -1 },
		"path of another column":  func(f *madeFile) { f.cols[0].path = []string{"d"} },
		"group without children":  func(f *madeFile) { f.fields[0].children = 2 },
		"more elements than used": func(f *madeFile) { f.fields[0].children = 0 },
		"repetition":              func(f *madeFile) { f.fields[1].rep = 7 },
		"physical type":           func(f *madeFile) { f.fields[1].physical = 9 },
		"fixed without length":    func(f *madeFile) { f.fields[1].physical = FixedLenByteArray },
		"column missing":          func(f *madeFile) { f.fields = append(f.fields, opt32("d")); f.fields[0].children = 2 },
	} {
		f := fresh()
		spoil(f)
		_, err := ReadFooter(context.Background(), &object{Bytes: f.bytes()}, "bad.parquet")
		require.ErrorIs(t, err, fault.Corrupt, name)
		require.ErrorContains(t, err, "bad.parquet", name)
	}
	good := fresh().bytes()
	for name, b := range map[string][]byte{
		"too short": good[:11], "no magic": append(good[:len(good)-4:len(good)-4], "PAR0"...),
		"length beyond the file": append(append(good[:len(good)-8:len(good)-8], 255, 255, 255, 0), magicPlain...), "length of zero": append(append(good[:len(good)-8:len(good)-8], 0, 0, 0, 0), magicPlain...),
	} {
		_, err := ReadFooter(context.Background(), &object{Bytes: b}, "bad.parquet")
		require.ErrorIs(t, err, fault.Corrupt, name)
	}
}
