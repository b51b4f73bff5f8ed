package prune

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/vector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testColumn is a column of the property tests: its type in both worlds and the values that occur.
type testColumn struct {
	name   string
	typ    vector.Type
	ice    iceberg.Type
	values []vector.Value
}

func dayOf(s string) int32 {
	d, err := time.Parse("2006-01-02", s)
	if err != nil {
		panic(err)
	}
	return int32(math.Floor(float64(d.Unix()) / 86400))
}

func micros(s string) int64 {
	d, err := time.Parse("2006-01-02T15:04:05.999999", s)
	if err != nil {
		panic(err)
	}
	return d.UnixMicro()
}

var testColumns = []testColumn{
	{"i", vector.Of(vector.Integer), iceberg.PrimitiveTypes.Int32, []vector.Value{int32(math.MinInt32), int32(-11), int32(-10), int32(-1), int32(0), int32(1), int32(9), int32(10), int32(25), int32(math.MaxInt32)}},
	{"l", vector.Of(vector.BigInt), iceberg.PrimitiveTypes.Int64, []vector.Value{int64(math.MinInt64), int64(-11), int64(-1), int64(0), int64(5), int64(10), int64(1) << 33, int64(math.MaxInt64)}},
	{"f", vector.Of(vector.Real), iceberg.PrimitiveTypes.Float32, []vector.Value{float32(math.Inf(-1)), float32(-1.5), float32(math.Copysign(0, -1)), float32(0), float32(0.1), float32(3), float32(math.NaN())}},
	{"d", vector.Of(vector.Double), iceberg.PrimitiveTypes.Float64, []vector.Value{-1.5, math.Copysign(0, -1), 0.0, 0.1, 4.0, math.Inf(1), math.NaN()}},
	{"s", vector.Of(vector.Varchar), iceberg.PrimitiveTypes.String, []vector.Value{"", "a", "ab", "abc", "abcd", "b", "é", "été", "\U0001F600x", "\U0010FFFF"}},
	{"b", vector.Of(vector.Varbinary), iceberg.PrimitiveTypes.Binary, []vector.Value{"", "\x00", "\x00\x01", "ab", "abc", "\xff\xff", "\xff\xff\xff"}},
	{"dt", vector.Of(vector.Date), iceberg.PrimitiveTypes.Date, []vector.Value{dayOf("1899-12-31"), dayOf("1969-11-30"), dayOf("1969-12-31"), dayOf("1970-01-01"), dayOf("1970-02-01"), dayOf("2024-02-29")}},
	{"ts", vector.Of(vector.Timestamp), iceberg.PrimitiveTypes.Timestamp, []vector.Value{micros("1899-12-31T23:59:59.999999"), micros("1969-12-31T22:59:59.5"), micros("1969-12-31T23:59:59.999999"), int64(0), int64(1), micros("1970-01-01T01:00:00"), micros("2024-02-29T12:00:00")}},
	{"dec", vector.DecimalOf(9, 2), iceberg.DecimalTypeOf(9, 2), []vector.Value{int64(-1230), int64(-5), int64(0), int64(5), int64(1229), int64(1230), int64(999999999)}},
	{"wide", vector.DecimalOf(30, 2), iceberg.DecimalTypeOf(30, 2), []vector.Value{decimal128.FromI64(-1230), decimal128.FromI64(-5), decimal128.FromI64(0), decimal128.FromI64(7), decimal128.New(1, 0)}},
	{"u", vector.Of(vector.UUID), iceberg.PrimitiveTypes.UUID, []vector.Value{"\x00aaaaaaaaaaaaaaa", "\x7faaaaaaaaaaaaaaa", "\x80aaaaaaaaaaaaaaa", "\xffaaaaaaa\x80bbbbbbb", "\xffaaaaaaa\x00bbbbbbb"}},
	{"t", vector.Of(vector.Boolean), iceberg.PrimitiveTypes.Bool, []vector.Value{true, false}},
}

func (c *testColumn) random(r *rand.Rand) vector.Value {
	if r.Intn(7) == 0 {
		return nil
	}
	return c.values[r.Intn(len(c.values))]
}

// literal is a value as iceberg-go has it, the oracle for transforms and binary forms.
func literal(c *testColumn, x vector.Value) iceberg.Literal {
	switch v := x.(type) {
	case bool:
		return iceberg.BoolLiteral(v)
	case int32:
		if c.typ.Kind == vector.Date {
			return iceberg.DateLiteral(v)
		}
		return iceberg.Int32Literal(v)
	case int64:
		switch c.typ.Kind {
		case vector.Timestamp:
			return iceberg.TimestampLiteral(v)
		case vector.Decimal:
			return iceberg.DecimalLiteral{Val: decimal128.FromI64(v), Scale: c.typ.Scale}
		}
		return iceberg.Int64Literal(v)
	case vector.Int128:
		return iceberg.DecimalLiteral{Val: v, Scale: c.typ.Scale}
	case float32:
		return iceberg.Float32Literal(v)
	case float64:
		return iceberg.Float64Literal(v)
	case string:
		switch c.typ.Kind {
		case vector.UUID:
			return iceberg.UUIDLiteral(uuid.UUID([]byte(v)))
		case vector.Varbinary:
			return iceberg.BinaryLiteral(v)
		}
		return iceberg.StringLiteral(v)
	}
	panic(fmt.Sprintf("%T", x))
}

func binaryOf(t *testing.T, l iceberg.Literal) []byte {
	b, err := l.MarshalBinary()
	require.NoError(t, err)
	return b
}

// unliteral gives a partition value as a vector of one row, in the type that a manifest would hold.
func unliteral(t *testing.T, l iceberg.Literal) *vector.Vector {
	switch v := l.(type) {
	case iceberg.BoolLiteral:
		return vector.NewConstant(vector.Of(vector.Boolean), bool(v))
	case iceberg.Int32Literal:
		return vector.NewConstant(vector.Of(vector.Integer), int32(v))
	case iceberg.DateLiteral:
		return vector.NewConstant(vector.Of(vector.Date), int32(v))
	case iceberg.Int64Literal:
		return vector.NewConstant(vector.Of(vector.BigInt), int64(v))
	case iceberg.TimestampLiteral:
		return vector.NewConstant(vector.Of(vector.BigInt), int64(v))
	case iceberg.Float32Literal:
		return vector.NewConstant(vector.Of(vector.Real), float32(v))
	case iceberg.Float64Literal:
		return vector.NewConstant(vector.Of(vector.Double), float64(v))
	case iceberg.StringLiteral:
		return vector.NewConstant(vector.Of(vector.Varchar), string(v))
	case iceberg.BinaryLiteral:
		return vector.NewConstant(vector.Of(vector.Varbinary), string(v))
	case iceberg.UUIDLiteral:
		return vector.NewConstant(vector.Of(vector.Varbinary), string(v[:]))
	case iceberg.DecimalLiteral:
		return vector.NewConstant(vector.DecimalOf(38, v.Scale), v.Val)
	}
	t.Fatalf("partition value %T", l)
	return nil
}

type generator struct{ r *rand.Rand }

func (g *generator) column() (int, *expr.Column) {
	i := g.r.Intn(len(testColumns))
	c := &testColumns[i]
	return i, &expr.Column{Index: i, Name: c.name, Typ: c.typ, Null: true}
}

func (g *generator) literalOf(i int) expr.Expr {
	c := &testColumns[i]
	x := c.random(g.r)
	if v, ok := x.(int64); ok && g.r.Intn(3) == 0 && v < math.MaxInt64 {
		x = v + 1
	}
	return &expr.Literal{Value: x, Typ: c.typ}
}

func must(e expr.Expr, err error) expr.Expr {
	if err != nil {
		panic(err)
	}
	return e
}

func (g *generator) predicate(depth int) expr.Expr {
	if depth > 0 {
		switch g.r.Intn(4) {
		case 0:
			return must(expr.NewAnd(g.predicate(depth-1), g.predicate(depth-1)))
		case 1:
			return must(expr.NewOr(g.predicate(depth-1), g.predicate(depth-1)))
		case 2:
			return must(expr.NewNot(g.predicate(depth - 1)))
		}
	}
	i, c := g.column()
	switch g.r.Intn(9) {
	case 0:
		return &expr.IsNull{Arg: c, Negated: g.r.Intn(2) == 0}
	case 1, 2:
		list := []expr.Expr{g.literalOf(i), g.literalOf(i), g.literalOf(i)}[:1+g.r.Intn(3)]
		return must(expr.NewIn(c, list, g.r.Intn(2) == 0))
	case 3:
		if c.Typ.Kind == vector.Varchar {
			patterns := []string{"a%", "ab%", "", "%", "abc", "a_c", "é%", "ab%d", "b"}
			p := &expr.Literal{Value: patterns[g.r.Intn(len(patterns))], Typ: vector.Of(vector.Varchar)}
			return must(expr.NewLike(c, p, nil, g.r.Intn(2) == 0, false))
		}
	case 4:
		if c.Typ.Kind == vector.Timestamp {
			date := must(expr.NewCast(c, vector.Of(vector.Date), false))
			for k := range testColumns {
				if testColumns[k].name == "dt" {
					return must(expr.NewCompare(expr.CompareOp(g.r.Intn(6)), date, g.literalOf(k)))
				}
			}
		}
		if c.Typ.Kind == vector.Integer {
			wide := []vector.Type{vector.Of(vector.BigInt), vector.Of(vector.Double), vector.DecimalOf(20, 3)}[g.r.Intn(3)]
			return must(expr.NewCompare(expr.CompareOp(g.r.Intn(6)), must(expr.NewCast(c, wide, false)), must(expr.NewCast(g.literalOf(0), wide, false))))
		}
	case 5:
		j, other := g.column()
		if j != i && other.Typ.Equal(c.Typ) {
			return must(expr.NewCompare(expr.CompareOp(g.r.Intn(6)), c, other))
		}
	}
	return must(expr.NewCompare(expr.CompareOp(g.r.Intn(8)), c, g.literalOf(i)))
}

type slice []Domain

func (s slice) Domain(i int) *Domain { return &s[i] }

// truths counts the rows for which e is true.
func truths(t *testing.T, e expr.Expr, rows [][]vector.Value) int {
	c := &vector.Chunk{N: len(rows)}
	for k, col := range testColumns {
		b := vector.NewBuilder(col.typ)
		for _, row := range rows {
			b.Append(row[k])
		}
		c.Cols = append(c.Cols, b.Finish())
	}
	p, err := expr.Compile(e, &expr.Context{Zone: time.UTC})
	require.NoError(t, err, e)
	sel, err := p.Filter(c, nil, nil)
	require.NoError(t, err, e)
	return len(sel)
}

func resolve(position int, path []int) (Column, bool) {
	return Column{ID: position + 1, Type: testColumns[position].typ, Position: position, Path: path}, true
}

func cmp(c *testColumn, a, b vector.Value) int {
	x, _ := datumOf(c.typ, a)
	y, _ := datumOf(c.typ, b)
	return compare(classOf(c.typ), &x, &y, false)
}

func isNaN(x vector.Value) bool {
	switch f := x.(type) {
	case float32:
		return f != f
	case float64:
		return f != f
	}
	return false
}

// statistics narrows a domain as file statistics of the rows would, some of them left out or cut short.
func statistics(t *testing.T, r *rand.Rand, d *Domain, c *testColumn, k int, rows [][]vector.Value) {
	var lo, hi vector.Value
	nulls, nans := int64(0), int64(0)
	for _, row := range rows {
		switch x := row[k]; {
		case x == nil:
			nulls++
		case isNaN(x):
			nans++
		default:
			if lo == nil || cmp(c, x, lo) < 0 {
				lo = x
			}
			if hi == nil || cmp(c, x, hi) > 0 {
				hi = x
			}
		}
	}
	if lo != nil && r.Intn(5) > 0 {
		b := binaryOf(t, literal(c, lo))
		if (c.typ.Kind == vector.Varchar || c.typ.Kind == vector.Varbinary) && r.Intn(2) == 0 {
			b = b[:min(len(b), 2)]
		}
		d.Lower(c.typ, b)
	}
	if hi != nil && r.Intn(5) > 0 {
		d.Upper(c.typ, binaryOf(t, literal(c, hi)))
	}
	if r.Intn(3) > 0 {
		values := int64(len(rows))
		if r.Intn(3) == 0 {
			values = -1
		}
		d.Counts(nulls, values, -1)
	}
	if r.Intn(2) == 0 {
		d.Counts(-1, -1, nans)
	}
}

func TestBoundsNeverLoseARow(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	g := generator{r}
	pruned := 0
	for range 30_000 {
		e := g.predicate(r.Intn(3))
		f := Compile(e, resolve, &expr.Context{Zone: time.UTC})
		var rows [][]vector.Value
		for range 1 + r.Intn(3) {
			row := make([]vector.Value, len(testColumns))
			for k := range testColumns {
				row[k] = testColumns[k].random(r)
			}
			rows = append(rows, row)
		}
		src := make(slice, len(f.Columns()))
		for i, c := range f.Columns() {
			src[i] = Any(c.Type)
			statistics(t, r, &src[i], &testColumns[c.Position], c.Position, rows)
		}
		if f.Excludes(src) >= 0 {
			pruned++
			require.Zero(t, truths(t, e, rows), "%s\n%v", e, rows)
		}
	}
	require.Greater(t, pruned, 5000)
}

var transforms = []iceberg.Transform{
	iceberg.IdentityTransform{}, iceberg.BucketTransform{NumBuckets: 4}, iceberg.BucketTransform{NumBuckets: 16},
	iceberg.TruncateTransform{Width: 10}, iceberg.TruncateTransform{Width: 2}, iceberg.TruncateTransform{Width: 3},
	iceberg.YearTransform{}, iceberg.MonthTransform{}, iceberg.DayTransform{}, iceberg.HourTransform{}, iceberg.VoidTransform{},
	iceberg.UnknownTransform{},
}

// partitionValue transforms a value; legacy rounds years, months and hours before 1970 towards zero as old writers did.
func partitionValue(tr iceberg.Transform, c *testColumn, x vector.Value, legacy bool) (iceberg.Literal, bool) {
	if x == nil {
		return nil, true
	}
	// iceberg-go does not wrap as Java does.
	if tt, ok := tr.(iceberg.TruncateTransform); ok {
		switch v := x.(type) {
		case int32:
			w := int32(tt.Width)
			return iceberg.Int32Literal(v - (v%w+w)%w), true
		case int64:
			if c.typ.Kind == vector.BigInt {
				w := int64(tt.Width)
				return iceberg.Int64Literal(v - (v%w+w)%w), true
			}
		}
	}
	out := tr.Apply(iceberg.Optional[iceberg.Literal]{Val: literal(c, x), Valid: true})
	if !out.Valid {
		return nil, false
	}
	if legacy {
		if v, ok := out.Val.(iceberg.Int32Literal); ok && v < 0 {
			return v + 1, true
		}
	}
	return out.Val, true
}

func TestPartitionsNeverLoseARow(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	g := generator{r}
	pruned := map[string]int{}
	for range 60_000 {
		e := g.predicate(r.Intn(2))
		f := Compile(e, resolve, &expr.Context{Zone: time.UTC})
		if len(f.Columns()) == 0 {
			continue
		}
		k := f.Columns()[r.Intn(len(f.Columns()))].Position
		c := &testColumns[k]
		tr := transforms[r.Intn(len(transforms))]
		if !tr.CanTransform(c.ice) {
			continue
		}
		legacy := false
		switch tr.(type) {
		case iceberg.YearTransform, iceberg.MonthTransform, iceberg.HourTransform:
			legacy = r.Intn(3) == 0
		}
		spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{k + 1}, FieldID: 1000, Name: "p", Transform: tr})
		row := make([]vector.Value, len(testColumns))
		for j := range testColumns {
			row[j] = testColumns[j].random(r)
		}
		value, ok := partitionValue(tr, c, row[k], legacy)
		if !ok {
			continue // void and unknown
		}
		p := f.NewPartition(spec)
		src := make(slice, len(f.Columns()))
		reset := func() {
			for i, c := range f.Columns() {
				src[i] = Any(c.Type)
			}
		}
		check := func(what string) {
			if f.Excludes(src) >= 0 {
				pruned[fmt.Sprintf("%s %s", tr, what)]++
				require.Zero(t, truths(t, e, [][]vector.Value{row}), "%s of %s = %v by %s (%s)\n%v", tr, c.name, value, e, what, row)
			}
		}
		reset()
		p.Tuple(src, func(int) (*vector.Vector, int) {
			if value == nil {
				return vector.NewConstant(vector.Of(vector.Integer), nil), 0
			}
			return unliteral(t, value), 0
		})
		check("tuple")

		// A manifest with this row's partition and others.
		s := Summary{ContainsNull: value == nil}
		var lo, hi iceberg.Literal
		for n := range 1 + r.Intn(3) {
			v := value
			if n > 0 {
				if v, ok = partitionValue(tr, c, c.random(r), legacy); !ok {
					continue
				}
			}
			if v == nil {
				s.ContainsNull = true
				continue
			}
			if x := unliteral(t, v).Get(0); isNaN(x) {
				continue
			}
			if lo == nil || literalLess(t, v, lo) {
				lo = v
			}
			if hi == nil || literalLess(t, hi, v) {
				hi = v
			}
		}
		if value != nil && isNaN(unliteral(t, value).Get(0)) {
			continue // NaN stands in no summary bound
		}
		if lo != nil {
			s.Lower, s.Upper = binaryOf(t, lo), binaryOf(t, hi)
		}
		reset()
		p.Summaries(src, func(int) (Summary, bool) { return s, true })
		check("summary")
	}
	for _, tr := range transforms[:10] {
		require.Greater(t, pruned[fmt.Sprintf("%s tuple", tr)], 20, tr)
		if _, bucket := tr.(iceberg.BucketTransform); !bucket {
			require.Greater(t, pruned[fmt.Sprintf("%s summary", tr)], 10, tr)
		}
	}
}

func literalLess(t *testing.T, a, b iceberg.Literal) bool {
	x, y := unliteral(t, a), unliteral(t, b)
	dx, _ := datumOf(x.Type, x.Get(0))
	dy, _ := datumOf(y.Type, y.Get(0))
	return compare(classOf(x.Type), &dx, &dy, false) < 0
}

func TestBucketHashes(t *testing.T) {
	for _, c := range []struct {
		typ  vector.Type
		v    vector.Value
		want int32
	}{
		{vector.Of(vector.Integer), int32(34), 2017239379},
		{vector.Of(vector.BigInt), int64(34), 2017239379},
		{vector.Of(vector.Date), dayOf("2017-11-16"), -653330422},
		{vector.Of(vector.Time), int64(81068000000), -662762989},
		{vector.Of(vector.Timestamp), micros("2017-11-16T22:31:08"), -2047944441},
		{vector.Type{Kind: vector.Timestamp, Precision: 9}, micros("2017-11-16T22:31:08")*1000 + 1001, -1207196810},
		{vector.DecimalOf(4, 2), int64(1420), -500754589},
		{vector.DecimalOf(20, 2), decimal128.FromI64(1420), -500754589},
		{vector.Of(vector.Varchar), "iceberg", 1210000089},
		{vector.Of(vector.Varbinary), "\x00\x01\x02\x03", -188683207},
	} {
		d := Any(c.typ)
		x, ok := datumOf(c.typ, c.v)
		require.True(t, ok)
		h, ok := d.hash(&x)
		require.True(t, ok)
		require.Equal(t, c.want, int32(h), c.typ)
	}
}

// What should be pruned is pruned: soundness alone would be had by keeping everything.
func TestPrunes(t *testing.T) {
	col := func(name string) expr.Expr {
		for i, c := range testColumns {
			if c.name == name {
				return &expr.Column{Index: i, Name: name, Typ: c.typ, Null: true}
			}
		}
		panic(name)
	}
	lit := func(t vector.Type, x vector.Value) expr.Expr { return &expr.Literal{Value: x, Typ: t} }
	day := func(s string) expr.Expr { return lit(vector.Of(vector.Date), dayOf(s)) }
	ts := micros("2024-02-29T12:00:00")
	for _, c := range []struct {
		name  string
		e     expr.Expr
		lo    vector.Value
		hi    vector.Value
		nulls int64
		want  bool // excluded
	}{
		{"point above", must(expr.NewCompare(expr.Eq, col("l"), lit(vector.Of(vector.BigInt), int64(11)))), int64(1), int64(10), -1, true},
		{"point within", must(expr.NewCompare(expr.Eq, col("l"), lit(vector.Of(vector.BigInt), int64(5)))), int64(1), int64(10), -1, false},
		{"not equal to all", must(expr.NewCompare(expr.Ne, col("l"), lit(vector.Of(vector.BigInt), int64(5)))), int64(5), int64(5), -1, true},
		{"in none", must(expr.NewIn(col("l"), []expr.Expr{lit(vector.Of(vector.BigInt), int64(0)), lit(vector.Of(vector.BigInt), int64(20))}, false)), int64(1), int64(10), -1, true},
		{"is null without nulls", &expr.IsNull{Arg: col("l")}, nil, nil, 0, true},
		{"not null of nulls", &expr.IsNull{Arg: col("l"), Negated: true}, nil, nil, 9, true},
		{"date of timestamp", must(expr.NewCompare(expr.Eq, must(expr.NewCast(col("ts"), vector.Of(vector.Date), false)), day("2024-03-01"))), ts, ts, -1, true},
		{"date of timestamp within", must(expr.NewCompare(expr.Eq, must(expr.NewCast(col("ts"), vector.Of(vector.Date), false)), day("2024-02-29"))), ts, ts, -1, false},
		{"prefix", must(expr.NewLike(col("s"), lit(vector.Of(vector.Varchar), "b%"), nil, false, false)), "abc", "azz", -1, true},
		{"negated prefix", must(expr.NewLike(col("s"), lit(vector.Of(vector.Varchar), "a%"), nil, true, false)), "abc", "azz", -1, true},
	} {
		f := Compile(c.e, resolve, &expr.Context{Zone: time.UTC})
		require.Len(t, f.Columns(), 1, c.name)
		typ := f.Columns()[0].Type
		d := Any(typ)
		d.Limit(typ, c.lo, c.hi, c.nulls, 9, false)
		require.Equal(t, c.want, f.Excludes(slice{d}) >= 0, c.name)
	}
}
