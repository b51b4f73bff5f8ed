package avro

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	tavro "github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/storage/storagetest"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testSchema = `{"type":"record","name":"r","fields":[
 {"name":"b","type":"boolean","field-id":1},
 {"name":"i","type":["null","int"],"field-id":2},
 {"name":"l","type":["long","null"],"field-id":3},
 {"name":"f","type":"float","field-id":4},
 {"name":"d","type":["null","double"],"field-id":5},
 {"name":"s","type":["null","string"],"field-id":6},
 {"name":"raw","type":"bytes","field-id":7},
 {"name":"fx","type":{"type":"fixed","name":"fx4","size":4},"field-id":8},
 {"name":"list","type":["null",{"type":"array","items":["null","long"],"element-id":20}],"field-id":9},
 {"name":"m","type":{"type":"map","values":"int","key-id":21,"value-id":22},"field-id":10},
 {"name":"kv","type":{"type":"array","logicalType":"map","items":{"type":"record","name":"e","fields":[
    {"name":"key","type":"int","field-id":23},{"name":"value","type":["null","string"],"field-id":24}]}},"field-id":11},
 {"name":"st","type":["null",{"type":"record","name":"inner","fields":[
    {"name":"x","type":["null","int"],"field-id":25},{"name":"y","type":"string","field-id":26}]}],"field-id":12},
 {"name":"any","type":["null","int","string"],"field-id":13},
 {"name":"day","type":{"type":"int","logicalType":"date"},"field-id":14},
 {"name":"ms","type":{"type":"long","logicalType":"timestamp-millis"},"field-id":15},
 {"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2},"field-id":16},
 {"name":"en","type":{"type":"enum","name":"en","symbols":["RED","A_SYMBOL_OF_SOME_LENGTH"]},"field-id":17}
]}`

func fieldOf(id int, name string, t vector.Type) vector.Field {
	return vector.Field{ID: id, Name: name, Type: t, Nullable: true}
}

var testFields = []vector.Field{
	fieldOf(1, "b", vector.Of(vector.Boolean)), fieldOf(2, "renamed", vector.Of(vector.BigInt)), fieldOf(3, "l", vector.Of(vector.BigInt)),
	fieldOf(4, "f", vector.Of(vector.Double)), fieldOf(5, "d", vector.Of(vector.Double)), fieldOf(6, "s", vector.Of(vector.Varchar)),
	fieldOf(7, "raw", vector.Of(vector.Varbinary)), fieldOf(8, "fx", vector.Type{Kind: vector.Fixed, Precision: 4}),
	fieldOf(9, "list", vector.ArrayOf(vector.Of(vector.BigInt))), fieldOf(10, "m", vector.MapOf(vector.Of(vector.Varchar), vector.Of(vector.Integer))),
	fieldOf(11, "kv", vector.MapOf(vector.Of(vector.Integer), vector.Of(vector.Varchar))),
	fieldOf(12, "st", vector.RowOf(fieldOf(26, "y", vector.Of(vector.Varchar)), fieldOf(99, "new", vector.Of(vector.Integer)), fieldOf(25, "x", vector.Of(vector.Integer)))),
	fieldOf(14, "day", vector.Of(vector.Timestamp)), fieldOf(15, "ms", vector.Of(vector.Timestamp)), fieldOf(16, "dec", vector.DecimalOf(30, 2)),
	fieldOf(17, "en", vector.Of(vector.Varchar)), fieldOf(50, "absent", vector.Of(vector.Integer)),
}

// record makes row i for the writer, and the values that testFields give for it.
func record(r *rand.Rand, i int) (map[string]any, []vector.Value) {
	text := func() string {
		return []string{"", "short", "a text that is longer than twelve bytes", fmt.Sprint("row ", i)}[r.Intn(4)]
	}
	none := func() bool { return r.Intn(4) == 0 }
	in := map[string]any{}
	var out []vector.Value
	put := func(name string, x any, v vector.Value) {
		in[name] = x
		out = append(out, v)
	}
	put("b", i%2 == 0, i%2 == 0)
	if none() {
		put("i", nil, nil)
	} else {
		put("i", int32(i-50), int64(i-50))
	}
	if none() {
		put("l", nil, nil)
	} else {
		put("l", int64(i)<<40, int64(i)<<40)
	}
	put("f", float32(i)/4, float64(i)/4)
	put("d", math.Inf(1), math.Inf(1))
	s := text()
	if none() {
		put("s", nil, nil)
	} else {
		put("s", s, s)
	}
	s = text()
	put("raw", []byte(s), s)
	put("fx", [4]byte{1, 2, 3, byte(i)}, string([]byte{1, 2, 3, byte(i)}))
	if none() {
		put("list", nil, nil)
	} else {
		list, want := []any{}, []vector.Value{}
		for k := range r.Intn(4) {
			if none() {
				list, want = append(list, nil), append(want, nil)
			} else {
				list, want = append(list, int64(k)), append(want, int64(k))
			}
		}
		put("list", list, want)
	}
	put("m", map[string]any{"key": int32(i)}, []vector.Pair{{Key: "key", Value: int32(i)}})
	kv, pairs := []any{}, []vector.Pair{}
	for k := range r.Intn(3) {
		if none() {
			kv, pairs = append(kv, map[string]any{"key": int32(k), "value": nil}), append(pairs, vector.Pair{Key: int32(k)})
		} else {
			kv, pairs = append(kv, map[string]any{"key": int32(k), "value": s}), append(pairs, vector.Pair{Key: int32(k), Value: s})
		}
	}
	put("kv", kv, pairs)
	if none() {
		put("st", nil, nil)
	} else {
		put("st", map[string]any{"x": int32(i), "y": s}, []vector.Value{s, int32(77), int32(i)})
	}
	in["any"] = []any{nil, int32(5), "text"}[r.Intn(3)]
	put("day", int32(i-3), int64(i-3)*86_400_000_000)
	put("ms", int64(i-5)*1001, int64(i-5)*1001_000)
	d := big128(int64(i*100 - 7000))
	put("dec", d.raw, d.value)
	put("en", []string{"RED", "A_SYMBOL_OF_SOME_LENGTH"}[i%2], []string{"RED", "A_SYMBOL_OF_SOME_LENGTH"}[i%2])
	out = append(out, int32(42))
	return in, out
}

type decimalPair struct {
	raw   []byte
	value vector.Int128
}

func big128(x int64) decimalPair {
	raw := binary.BigEndian.AppendUint64(nil, uint64(x))
	v, _ := Int128(raw)
	return decimalPair{raw, v}
}

func write(t testing.TB, schema string, rows []map[string]any, opts ...ocf.WriterOpt) storagetest.Bytes {
	s, err := tavro.Parse(schema)
	require.NoError(t, err)
	var buf bytes.Buffer
	w, err := ocf.NewWriter(&buf, s, append(opts, ocf.WithBlockCount(100))...)
	require.NoError(t, err)
	for _, r := range rows {
		require.NoError(t, w.Encode(r))
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

func testProjection(f *File) []*Projection {
	cols := Resolve(f.Root, testFields)
	if len(cols[11].Children) == 3 {
		cols[11].Children[1].Default = int32(77)
	}
	cols[len(cols)-1].Default = int32(42)
	return cols
}

func readAll(t testing.TB, o storagetest.Bytes, batch int) [][]vector.Value {
	pool := memory.NewPool("q", 0)
	defer func() { require.Zero(t, pool.Used()) }()
	f, err := Open(context.Background(), o, "file")
	require.NoError(t, err)
	r, err := f.NewReader(testProjection(f), pool)
	require.NoError(t, err)
	defer r.Close()
	var out [][]vector.Value
	for {
		n, first, cols, err := r.Next(context.Background(), batch)
		require.NoError(t, err)
		if n == 0 {
			return out
		}
		require.EqualValues(t, len(out), first)
		for i := range n {
			row := make([]vector.Value, len(cols))
			for c, v := range cols {
				row[c] = v.Get(i)
			}
			out = append(out, row)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewSource(6))
	var rows []map[string]any
	var want [][]vector.Value
	for i := range 1234 {
		in, out := record(r, i)
		rows, want = append(rows, in), append(want, out)
	}
	zstd, err := ocf.ZstdCodec(nil, nil)
	require.NoError(t, err)
	for name, codec := range map[string]ocf.Codec{"null": nil, "deflate": ocf.DeflateCodec(-1), "snappy": ocf.SnappyCodec(), "zstandard": zstd} {
		var opts []ocf.WriterOpt
		if codec != nil {
			opts = append(opts, ocf.WithCodec(codec))
		}
		o := write(t, testSchema, rows, opts...)
		for _, batch := range []int{1, 7, 100, vector.Size} {
			got := readAll(t, o, batch)
			require.Len(t, got, len(want), name)
			for i := range want {
				require.Equal(t, want[i], got[i], "%s row %d", name, i)
			}
		}
	}
}

// small is a file with one block of three rows.
func small(t testing.TB) storagetest.Bytes {
	r := rand.New(rand.NewSource(7))
	var rows []map[string]any
	for i := range 3 {
		in, _ := record(r, i)
		rows = append(rows, in)
	}
	return write(t, testSchema, rows)
}

// drain reads a file to its end or first error.
func drain(o storagetest.Bytes) error {
	f, err := Open(context.Background(), o, "a-file")
	if err != nil {
		return err
	}
	r, err := f.NewReader(testProjection(f), nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		n, _, _, err := r.Next(context.Background(), 0)
		if n == 0 || err != nil {
			return err
		}
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	o := small(t)
	f, err := Open(context.Background(), o, "")
	require.NoError(t, err)
	require.NoError(t, drain(o))
	for n := range o {
		if int64(n) == f.start {
			continue // a file of no blocks; its trusted length tells
		}
		err := drain(o[:n])
		require.ErrorIs(t, err, fault.Corrupt, "cut at %d", n)
		require.Contains(t, err.Error(), "a-file")
	}
}

func TestHostileFiles(t *testing.T) {
	o := small(t)
	f, err := Open(context.Background(), o, "")
	require.NoError(t, err)
	head := o[:f.start]
	sync := f.sync[:]
	block := func(count, size int64, data []byte, mark []byte) storagetest.Bytes {
		b := bytes.Clone(head)
		b = binary.AppendVarint(b, count)
		b = binary.AppendVarint(b, size)
		return append(append(b, data...), mark...)
	}
	for name, o := range map[string]storagetest.Bytes{
		"negative count": block(-3, 0, nil, sync),
		"negative size":  block(3, -1, nil, sync),
		"huge count":     block(1<<50, 10, make([]byte, 10), sync),
		"huge size":      block(1, 1<<50, make([]byte, 10), sync),
		"sync":           block(0, 0, nil, make([]byte, 16)),
		"left over":      block(0, 3, make([]byte, 3), sync),
		"magic":          storagetest.Bytes("Obj\x02aaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		"empty":          nil,
	} {
		require.ErrorIs(t, drain(o), fault.Corrupt, name)
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	for _, s := range []string{
		`{"type":"record","name":"r"}`, `{"type":"recorD","name":"r","fields":[]}`, `{`, `[]`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":["null","r"]}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":["null",["null","int"]]}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"fixed","name":"f","size":-1}}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":"missing"}]}`,
		`{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"bytes","logicalType":"decimal"}}]}`,
	} {
		_, err := parseSchema([]byte(s))
		require.Error(t, err, s)
	}
	deep := ""
	for range 1000 {
		deep += `{"type":"array","items":`
	}
	_, err := parseSchema([]byte(deep + `"int"`))
	require.Error(t, err)
	// Each name doubles what it expands to.
	bomb := `{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"record","name":"t0","fields":[{"name":"a","type":"int"}]}}`
	for i := range 60 {
		bomb += fmt.Sprintf(`,{"name":"x%d","type":{"type":"record","name":"t%d","fields":[{"name":"a","type":"t%d"},{"name":"b","type":"t%d"}]}}`, i, i+1, i, i)
	}
	_, err = parseSchema([]byte(bomb + `]}`))
	require.Error(t, err)
}

func TestTypesThatDoNotFit(t *testing.T) {
	f, err := Open(context.Background(), small(t), "a-file")
	require.NoError(t, err)
	for _, w := range []vector.Field{
		fieldOf(6, "s", vector.Of(vector.BigInt)), fieldOf(3, "l", vector.Of(vector.Integer)), fieldOf(5, "d", vector.Of(vector.Real)),
		fieldOf(8, "fx", vector.Type{Kind: vector.Fixed, Precision: 5}), fieldOf(9, "list", vector.Of(vector.Integer)),
		fieldOf(12, "st", vector.ArrayOf(vector.Of(vector.Integer))), fieldOf(16, "dec", vector.DecimalOf(9, 3)),
		fieldOf(13, "any", vector.Of(vector.Integer)), fieldOf(14, "day", vector.Of(vector.TimestampTZ)),
	} {
		_, err := f.NewReader(Resolve(f.Root, []vector.Field{w}), nil)
		require.ErrorIs(t, err, fault.Corrupt, w.Name)
		require.Contains(t, err.Error(), w.Name)
	}
}

func FuzzFile(f *testing.F) {
	o := small(f)
	f.Add([]byte(o))
	f.Add([]byte(write(f, testSchema, nil, ocf.WithCodec(ocf.SnappyCodec()))))
	f.Add([]byte(o[:len(o)-7]))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := drain(b); err != nil && fault.KindOf(err) != fault.Corrupt && fault.KindOf(err) != fault.Unsupported {
			t.Fatal(err)
		}
	})
}

// FuzzBlock puts arbitrary bytes into a block behind a good header.
func FuzzBlock(f *testing.F) {
	o := small(f)
	file, err := Open(context.Background(), o, "")
	require.NoError(f, err)
	f.Add(int64(3), []byte(o[file.start+3:len(o)-16]))
	f.Fuzz(func(t *testing.T, count int64, data []byte) {
		b := bytes.Clone(o[:file.start])
		b = binary.AppendVarint(b, count)
		b = binary.AppendVarint(b, int64(len(data)))
		b = append(append(b, data...), file.sync[:]...)
		if err := drain(b); err != nil && fault.KindOf(err) != fault.Corrupt {
			t.Fatal(err)
		}
	})
}
