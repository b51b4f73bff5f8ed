package orc

import (
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage/storagetest"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// object is a file in memory that counts what is read of it.
type object = storagetest.Counted

// wtype is a column to write.
type wtype struct {
	name  string
	kind  Kind
	kids  []*wtype
	prec  int
	scale int
	attrs map[string]string
	dict  bool // strings by dictionary

	col int
}

func field(name string, kind Kind, kids ...*wtype) *wtype {
	return &wtype{name: name, kind: kind, kids: kids}
}

// natural is the type in which the file's own values are read.
func (t *wtype) natural() vector.Type {
	switch t.kind {
	case Boolean:
		return vector.Of(vector.Boolean)
	case Byte, Short, Int:
		return vector.Of(vector.Integer)
	case Long:
		return vector.Of(vector.BigInt)
	case Float:
		return vector.Of(vector.Real)
	case Double:
		return vector.Of(vector.Double)
	case String, Varchar, Char:
		return vector.Of(vector.Varchar)
	case Binary:
		return vector.Of(vector.Varbinary)
	case Date:
		return vector.Of(vector.Date)
	case Timestamp:
		return vector.Type{Kind: vector.Timestamp, Precision: 9}
	case TimestampInstant:
		return vector.Type{Kind: vector.TimestampTZ, Precision: 9}
	case Decimal:
		return vector.DecimalOf(t.prec, t.scale)
	case List:
		return vector.ArrayOf(t.kids[0].natural())
	case Map:
		return vector.MapOf(t.kids[0].natural(), t.kids[1].natural())
	}
	var fs []vector.Field
	if t.kind == Union {
		fs = append(fs, vector.Field{Name: UnionField(0), Type: vector.Of(vector.Integer), Nullable: true})
		for i, k := range t.kids {
			fs = append(fs, vector.Field{Name: UnionField(i + 1), Type: k.natural(), Nullable: true})
		}
		return vector.RowOf(fs...)
	}
	for _, k := range t.kids {
		fs = append(fs, vector.Field{Name: k.name, Type: k.natural(), Nullable: true})
	}
	return vector.RowOf(fs...)
}

// project reads a file's column in its own type.
func project(n *Node, t vector.Type) *Projection {
	p := &Projection{Type: t, Node: n}
	if n.Kind == Union && t.Kind == vector.Row {
		p.Children = append(p.Children, &Projection{Type: t.Fields[0].Type, Node: n})
		for i, f := range t.Fields[1:] {
			p.Children = append(p.Children, project(n.Children[i], f.Type))
		}
		return p
	}
	for i, f := range t.Fields {
		p.Children = append(p.Children, project(n.Children[i], f.Type))
	}
	return p
}

func projections(f *Footer, types []*wtype) []*Projection {
	var out []*Projection
	for i, t := range types {
		out = append(out, project(f.Root.Children[i], t.natural()))
	}
	return out
}

// randomValue makes a value of a column's own type.
func randomValue(r *rand.Rand, t *wtype, nulls float64) vector.Value {
	if r.Float64() < nulls {
		return nil
	}
	wild := r.IntN(30) == 0
	switch t.kind {
	case Boolean:
		return r.IntN(3) > 0
	case Byte:
		return int32(int8(r.IntN(256)))
	case Short:
		return int32(int16(r.IntN(1 << 16)))
	case Int, Date:
		if wild {
			return int32(r.Uint32())
		}
		return int32(r.IntN(100))
	case Long:
		if wild {
			return int64(r.Uint64())
		}
		return int64(r.IntN(1000)) - 500
	case Float:
		return float32(r.IntN(1000)) / 8
	case Double:
		return r.NormFloat64()
	case String, Varchar, Char, Binary:
		if t.dict {
			return strings.Repeat("word", r.IntN(5)) + string(rune('a'+r.IntN(20)))
		}
		return strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(30))
	case Timestamp, TimestampInstant:
		unit := int64(math.Pow10(r.IntN(10)))
		x := r.Int64N(4e18) - 2e18
		if x = x / unit * unit; x < 0 && x > -2e9 {
			x = 0
		}
		return x
	case Decimal:
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+r.IntN(t.prec))), nil)
		x := new(big.Int).Mod(new(big.Int).Mul(new(big.Int).SetUint64(r.Uint64()), new(big.Int).SetUint64(r.Uint64())), most)
		if r.IntN(2) == 0 {
			x.Neg(x)
		}
		if t.prec <= 18 {
			return x.Int64()
		}
		return int128(x)
	case List:
		out := []vector.Value{}
		for range r.IntN(5) {
			out = append(out, randomValue(r, t.kids[0], nulls))
		}
		return out
	case Map:
		out := []vector.Pair{}
		for range r.IntN(4) {
			out = append(out, vector.Pair{Key: randomValue(r, t.kids[0], 0), Value: randomValue(r, t.kids[1], nulls)})
		}
		return out
	}
	out := []vector.Value{}
	if t.kind == Union {
		tag := r.IntN(len(t.kids))
		out = append(out, int32(tag))
		for i, k := range t.kids {
			if i != tag {
				out = append(out, nil)
				continue
			}
			out = append(out, randomValue(r, k, nulls))
		}
		return out
	}
	for _, k := range t.kids {
		out = append(out, randomValue(r, k, nulls))
	}
	return out
}

func randomRows(r *rand.Rand, types []*wtype, n int, nulls float64) [][]vector.Value {
	rows := make([][]vector.Value, n)
	for i := range rows {
		for _, t := range types {
			rows[i] = append(rows[i], randomValue(r, t, nulls))
		}
	}
	return rows
}

// requireKind checks that an error is one that a broken file may cause.
func requireKind(t testing.TB, err error) {
	t.Helper()
	switch k := fault.KindOf(err); {
	case err == nil, k == fault.Corrupt, k == fault.Unsupported, k == fault.Exhausted:
	default:
		t.Fatalf("error of kind %v: %v", k, err)
	}
}

func open(t testing.TB, b []byte) (*object, *Footer) {
	t.Helper()
	o := &object{Bytes: b}
	f, err := ReadFooter(context.Background(), o, "test.orc")
	require.NoError(t, err)
	return o, f
}

func int128(x *big.Int) vector.Int128 {
	var b [16]byte
	new(big.Int).Abs(x).FillBytes(b[:])
	n := decimal128.New(int64(binary.BigEndian.Uint64(b[:8])), binary.BigEndian.Uint64(b[8:]))
	if x.Sign() < 0 {
		n = n.Negate()
	}
	return n
}
