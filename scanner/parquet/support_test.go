package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is a file in memory that counts what is read of it.
type object = storagetest.Counted

// natural projects a file's field as the type it has in the file.
func natural(n *Node, element bool) *Projection {
	p := &Projection{Node: n}
	switch {
	case n.Repetition == Repeated && !element && n.Logical.Kind != List:
		e := natural(n, true)
		p.Type, p.Children = vector.ArrayOf(e.Type), []*Projection{e}
	case n.IsMap():
		k, v := n.KeyValue()
		kp, vp := natural(k, false), &Projection{Type: vector.Of(vector.Null)}
		if v != nil {
			vp = natural(v, false)
		}
		p.Type, p.Children = vector.MapOf(kp.Type, vp.Type), []*Projection{kp, vp}
	case !n.IsLeaf() && n.Logical.Kind == List && n.Element() != nil:
		e := natural(n.Element(), n.Element() == n.Children[0])
		p.Type, p.Children = vector.ArrayOf(e.Type), []*Projection{e}
	case !n.IsLeaf():
		var fs []vector.Field
		for _, c := range n.Children {
			cp := natural(c, false)
			fs = append(fs, vector.Field{Name: c.Name, Type: cp.Type})
			p.Children = append(p.Children, cp)
		}
		p.Type = vector.RowOf(fs...)
	default:
		p.Type = naturalLeaf(n)
	}
	return p
}

func naturalLeaf(n *Node) vector.Type {
	switch l := n.Logical; l.Kind {
	case Decimal:
		return vector.DecimalOf(l.Precision, l.Scale)
	case Date:
		return vector.Of(vector.Date)
	case Time:
		return vector.Of(vector.Time)
	case Timestamp:
		t := vector.Of(vector.Timestamp)
		if l.UTC {
			t.Kind = vector.TimestampTZ
		}
		if l.Unit == Nanos {
			t.Precision = 9
		}
		return t
	case String, Enum, JSON:
		return vector.Of(vector.Varchar)
	case UUID:
		return vector.Of(vector.UUID)
	case Float16:
		return vector.Of(vector.Real)
	case Unknown:
		return vector.Of(vector.Null)
	case Integer:
		if l.Bits == 32 && !l.Signed {
			return vector.Of(vector.BigInt)
		}
	}
	switch n.Physical {
	case Boolean:
		return vector.Of(vector.Boolean)
	case Int32:
		return vector.Of(vector.Integer)
	case Int64:
		return vector.Of(vector.BigInt)
	case Int96:
		return vector.Of(vector.Timestamp)
	case Float:
		return vector.Of(vector.Real)
	case Double:
		return vector.Of(vector.Double)
	case FixedLenByteArray:
		return vector.Type{Kind: vector.Fixed, Precision: n.Length}
	}
	return vector.Of(vector.Varbinary)
}

// readOptions say how a test reads a file.
type readOptions struct {
	batch   int
	ranges  []RowRange // of every row group; nil for all rows
	skip    func(col int, row int64) bool
	opt     Options
	project func(*Footer) []*Projection
	keys    Keyring // of an encrypted file
}

func readAnyFooter(ctx context.Context, o storage.Object, keys Keyring) (*Footer, error) {
	if keys != nil {
		return ReadEncryptedFooter(ctx, o, "test.parquet", keys)
	}
	return ReadFooter(ctx, o, "test.parquet")
}

// readFile reads a whole file; skipped rows are missing from the columns.
func readFile(o storage.Object, ro readOptions) (cols [][]vector.Value, err error) {
	ctx := context.Background()
	f, err := readAnyFooter(ctx, o, ro.keys)
	if err != nil {
		return nil, err
	}
	var ps []*Projection
	if ro.project != nil {
		ps = ro.project(f)
	} else {
		for _, c := range f.Root.Children {
			ps = append(ps, natural(c, false))
		}
	}
	cols = make([][]vector.Value, len(ps))
	for rg := range f.RowGroups {
		if err := readGroup(ctx, o, f, rg, ps, ro, cols); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

func readGroup(ctx context.Context, o storage.Object, f *Footer, rg int, ps []*Projection, ro readOptions, cols [][]vector.Value) error {
	if ro.batch == 0 {
		ro.batch = vector.Size
	}
	r, err := OpenRowGroup(ctx, o, f, rg, ps, ro.ranges, ro.opt)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		n, first := r.NextBatch(ro.batch)
		if n == 0 {
			return nil
		}
		for i := range ps {
			if ro.skip != nil && ro.skip(i, first) {
				if err := r.Skip(ctx, i); err != nil {
					return err
				}
				continue
			}
			v, err := r.Read(ctx, i)
			if err != nil {
				return err
			}
			for k := range n {
				cols[i] = append(cols[i], v.Get(k))
			}
		}
	}
}

// newRead reads with a pool that must be empty afterwards.
func newRead(t testing.TB, b []byte, ro readOptions) [][]vector.Value {
	t.Helper()
	pool := memory.NewPool("test", 0)
	ro.opt.Pool, ro.opt.CheckCRC, ro.opt.Profile = pool, true, &profile.Scan{}
	cols, err := readFile(&object{Bytes: b}, ro)
	require.NoError(t, err)
	require.Zero(t, pool.Used(), "memory left reserved")
	return cols
}

// writeArrow makes a file of one record.
func writeArrow(t testing.TB, rec arrow.RecordBatch, props ...aparquet.WriterProperty) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, aparquet.NewWriterProperties(props...), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	require.NoError(t, err)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// randomRecord fills n rows of a schema. nulls is the share of nulls; distinct bounds the number of different values.
func randomRecord(r *rand.Rand, schema *arrow.Schema, n int, nulls float64, distinct int) arrow.RecordBatch {
	b := array.NewRecordBuilder(arrowmemory.DefaultAllocator, schema)
	defer b.Release()
	for i, f := range schema.Fields() {
		for range n {
			appendRandom(r, b.Field(i), f.Nullable, nulls, distinct)
		}
	}
	return b.NewRecordBatch()
}

func appendRandom(r *rand.Rand, b array.Builder, nullable bool, nulls float64, distinct int) {
	if nullable && r.Float64() < nulls {
		b.AppendNull()
		return
	}
	x := r.Int64N(int64(distinct))
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(x%3 == 0)
	case *array.Int8Builder:
		b.Append(int8(x))
	case *array.Uint8Builder:
		b.Append(uint8(x))
	case *array.Int16Builder:
		b.Append(int16(x))
	case *array.Int32Builder:
		b.Append(int32(x*2654435761) - 7)
	case *array.Uint32Builder:
		b.Append(uint32(x * 2654435761))
	case *array.Int64Builder:
		b.Append(x*0x9e3779b97f4a7c - 99)
	case *array.Float32Builder:
		b.Append(float32(x)/8 - 3)
	case *array.Float64Builder:
		b.Append(float64(x)/7 - 3)
	case *array.StringBuilder:
		b.Append(randomText(x))
	case *array.BinaryBuilder:
		b.Append([]byte(randomText(x)))
	case *array.FixedSizeBinaryBuilder:
		w := b.Type().(*arrow.FixedSizeBinaryType).ByteWidth
		b.Append([]byte(fmt.Sprintf("%0*d", w, x%10000))[:w])
	case *array.Date32Builder:
		b.Append(arrow.Date32(x - 400))
	case *array.Time32Builder:
		b.Append(arrow.Time32(x))
	case *array.Time64Builder:
		b.Append(arrow.Time64(x * 1001))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(x*1_000_003 - 5))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(x - 100))
	case *array.StructBuilder:
		b.Append(true)
		st := b.Type().(*arrow.StructType)
		for i := range b.NumField() {
			appendRandom(r, b.FieldBuilder(i), st.Field(i).Nullable, nulls, distinct)
		}
	case *array.MapBuilder:
		b.Append(true)
		for range r.IntN(4) {
			appendRandom(r, b.KeyBuilder(), false, nulls, distinct)
			appendRandom(r, b.ItemBuilder(), true, nulls, distinct)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(5) {
			appendRandom(r, b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField().Nullable, nulls, distinct)
		}
	default:
		panic(fmt.Sprintf("no random value for %T", b))
	}
}

// randomText gives strings around the length that a view holds by itself, and longer ones.
func randomText(x int64) string {
	s := fmt.Sprintf("value-%d-with a tail that is quite long", x)
	return s[:min(len(s), int(x%41))]
}

// wantRows lists a record's columns as values.
func wantRows(rec arrow.RecordBatch) [][]vector.Value {
	cols := make([][]vector.Value, rec.NumCols())
	for i := range cols {
		for k := range int(rec.NumRows()) {
			cols[i] = append(cols[i], vector.ArrowValue(rec.Column(i), k))
		}
	}
	return cols
}

// requireSame compares column by column, naming the first row that differs.
func requireSame(t testing.TB, names []string, want, got [][]vector.Value) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, len(want[i]), len(got[i]), "rows of %s", names[i])
		for k := range want[i] {
			if !sameValue(want[i][k], got[i][k]) {
				require.Equal(t, want[i][k], got[i][k], "column %s, row %d", names[i], k)
			}
		}
	}
}

func fieldNames(s *arrow.Schema) (names []string) {
	for _, f := range s.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// sameValue compares values exactly, nested ones by content.
func sameValue(a, b vector.Value) bool {
	switch x := a.(type) {
	case []vector.Value:
		y, ok := b.([]vector.Value)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameValue(x[i], y[i]) {
				return false
			}
		}
		return true
	case []vector.Pair:
		y, ok := b.([]vector.Pair)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameValue(x[i].Key, y[i].Key) || !sameValue(x[i].Value, y[i].Value) {
				return false
			}
		}
		return true
	case float32:
		y, ok := b.(float32)
		return ok && math.Float32bits(x) == math.Float32bits(y)
	case float64:
		y, ok := b.(float64)
		return ok && math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

// alwaysDictionary keeps arrow-go from judging a column's dictionary too dear.
func alwaysDictionary(t testing.TB, schema *arrow.Schema) (props []aparquet.WriterProperty) {
	t.Helper()
	b := writeArrow(t, randomRecord(rand.New(rand.NewPCG(1, 1)), schema, 1, 0, 2))
	f, err := ReadFooter(context.Background(), &object{Bytes: b}, "t")
	require.NoError(t, err)
	for _, l := range f.Leaves {
		props = append(props, aparquet.WithDictionaryCostFallbackFor(l.Path(), false))
	}
	return props
}
