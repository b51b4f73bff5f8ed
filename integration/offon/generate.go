package main

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"unicode/utf8"

	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

// leaf is a column, or a field within structs, that statements ask about.
type leaf struct {
	text   string // as SQL names it
	typ    vector.Type
	column int
	path   []int
	values []vector.Value // of rows of the table
	seen   int
}

// generator makes statements about one table.
type generator struct {
	r      *rand.Rand
	leaves []*leaf
	choice []*leaf // with those of partition columns in it twice
	extra  string  // metadata columns that stand behind *
}

// mostValues is how many values of a column are remembered.
const mostValues = 12

func (g *generator) columns(cols []plan.Column, partitioned map[string]bool) {
	for i, c := range cols {
		before := len(g.leaves)
		g.leaf(quote(c.Name), c.Type, i, nil)
		g.choice = append(g.choice, g.leaves[before:]...)
		if partitioned[c.Name] {
			g.choice = append(g.choice, g.leaves[before:]...)
			g.choice = append(g.choice, g.leaves[before:]...)
		}
	}
	g.extra = `, "_file", "_pos"`
	for _, c := range cols {
		if c.Name == "_file" || c.Name == "_pos" {
			g.extra = ""
		}
	}
}

func (g *generator) leaf(text string, t vector.Type, column int, path []int) {
	g.leaves = append(g.leaves, &leaf{text: text, typ: t, column: column, path: path})
	if t.Kind != vector.Row {
		return
	}
	for i, f := range t.Fields {
		if f.Name != "" {
			g.leaf(text+"."+quote(f.Name), f.Type, column, append(append([]int{}, path...), i))
		}
	}
}

// see remembers values of a row, each with the same chance.
func (g *generator) see(row []vector.Value) {
	for _, l := range g.leaves {
		v := row[l.column]
		for _, i := range l.path {
			fields, ok := v.([]vector.Value)
			if !ok {
				v = nil
				break
			}
			v = fields[i]
		}
		if v == nil || !asked(l.typ) {
			continue
		}
		if s, ok := v.(string); ok {
			v = strings.Clone(s)
		}
		l.seen++
		if len(l.values) < mostValues {
			l.values = append(l.values, v)
		} else if k := g.r.Intn(l.seen); k < mostValues {
			l.values[k] = v
		}
	}
}

// asked reports whether there are literals of a type to compare with.
func asked(t vector.Type) bool {
	switch t.Kind {
	case vector.Boolean, vector.TinyInt, vector.SmallInt, vector.Integer, vector.BigInt, vector.Real, vector.Double, vector.Decimal,
		vector.Varchar, vector.Varbinary, vector.Fixed, vector.UUID, vector.Date, vector.Time, vector.Timestamp, vector.TimestampTZ:
		return true
	}
	return false
}

// statement makes a query.
func (g *generator) statement(from string, rows int64) string {
	if len(g.choice) == 0 {
		return "SELECT count(*) FROM " + from
	}
	switch k := g.r.Intn(16); {
	case k == 0:
		l := g.pick()
		if !asked(l.typ) {
			return "SELECT count(*), count(" + l.text + ") FROM " + from
		}
		return fmt.Sprintf("SELECT count(*), count(%s), min(%s), max(%s) FROM %s", l.text, l.text, l.text, from)
	case k == 1:
		return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", from, g.filter(1))
	case k == 2:
		return fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s WHERE %s LIMIT %d)", from, g.filter(0), 1+g.r.Int63n(rows+2))
	case k == 3:
		if l := g.pick(); g.r.Intn(2) == 0 && asked(l.typ) {
			return fmt.Sprintf("SELECT count(coalesce(CAST(%s AS VARCHAR), '')) FROM (SELECT * FROM %s LIMIT %d)", l.text, from, 1+g.r.Int63n(rows+2))
		}
		return fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d)", from, 1+g.r.Int63n(rows+2))
	case k < 7:
		if l := g.pick(); asked(l.typ) && len(l.values) > 0 {
			return fmt.Sprintf("SELECT *%s FROM %s WHERE %s IN (SELECT v FROM (VALUES (%s), (%s)) AS w(v))", g.extra, from, l.text, g.literal(l), g.literal(l))
		}
	case k == 7:
		return fmt.Sprintf("SELECT 1 FROM %s WHERE %s", from, g.filter(1))
	}
	return fmt.Sprintf("SELECT *%s FROM %s WHERE %s", g.extra, from, g.filter(2))
}

func (g *generator) pick() *leaf { return g.choice[g.r.Intn(len(g.choice))] }

// filter makes a condition of up to depth levels of AND, OR and NOT.
func (g *generator) filter(depth int) string {
	if depth > 0 {
		switch g.r.Intn(8) {
		case 0, 1:
			return "(" + g.filter(depth-1) + " AND " + g.filter(depth-1) + ")"
		case 2:
			return "(" + g.filter(depth-1) + " OR " + g.filter(depth-1) + ")"
		case 3:
			return "NOT (" + g.filter(depth-1) + ")"
		}
	}
	l := g.pick()
	if !asked(l.typ) || len(l.values) == 0 && g.r.Intn(2) == 0 {
		return l.text + []string{" IS NULL", " IS NOT NULL"}[g.r.Intn(2)]
	}
	if l.typ.Kind == vector.Varchar && g.r.Intn(4) == 0 {
		return l.text + []string{" LIKE ", " NOT LIKE "}[g.r.Intn(2)] + text(g.prefix(l)+"%")
	}
	switch k := g.r.Intn(16); k {
	case 0:
		return l.text + " IS NULL"
	case 1:
		return l.text + " IS NOT NULL"
	case 2, 3:
		return fmt.Sprintf("%s IN (%s, %s)", l.text, g.literal(l), g.literal(l))
	case 4:
		return fmt.Sprintf("%s NOT IN (%s, %s)", l.text, g.literal(l), g.literal(l))
	case 5:
		return fmt.Sprintf("%s IN (%s, NULL)", l.text, g.literal(l))
	case 6:
		return fmt.Sprintf("%s BETWEEN %s AND %s", l.text, g.literal(l), g.literal(l))
	case 7:
		return fmt.Sprintf("%s IS %sDISTINCT FROM %s", l.text, []string{"", "NOT "}[g.r.Intn(2)], g.literal(l))
	case 8:
		switch l.typ.Kind {
		case vector.Timestamp, vector.TimestampTZ, vector.Date:
			return fmt.Sprintf("year(%s) %s year(%s)", l.text, g.operator(), g.literal(l))
		case vector.Integer:
			return fmt.Sprintf("%s %s %d", l.text, g.operator(), int64(math.MinInt32)-1+g.r.Int63n(2)*(1<<32+1))
		}
	case 9, 10, 11:
		return l.text + " = " + g.literal(l)
	}
	if g.r.Intn(8) == 0 {
		return g.literal(l) + " " + g.operator() + " " + l.text
	}
	return l.text + " " + g.operator() + " " + g.literal(l)
}

func (g *generator) operator() string { return []string{"=", "<>", "<", "<=", ">", ">="}[g.r.Intn(6)] }

// prefix cuts a value of a text column, or takes something that may not occur.
func (g *generator) prefix(l *leaf) string {
	if len(l.values) == 0 || g.r.Intn(6) == 0 {
		return []string{"", "a", "\U0010FFFF", "\uD7FF"}[g.r.Intn(4)]
	}
	runes := []rune(l.values[g.r.Intn(len(l.values))].(string))
	return strings.NewReplacer("%", "", "_", "").Replace(string(runes[:g.r.Intn(len(runes)+1)]))
}

func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// literal spells a value of the column, a neighbour of one, or the end of the type's range.
func (g *generator) literal(l *leaf) string {
	v := g.edge(l.typ)
	if len(l.values) > 0 && g.r.Intn(10) != 0 {
		v = l.values[g.r.Intn(len(l.values))]
		if g.r.Intn(3) == 0 {
			v = g.neighbour(v, l.typ)
		}
	}
	if l.typ.Kind == vector.Varbinary || l.typ.Kind == vector.Fixed {
		return fmt.Sprintf("X'%x'", v.(string))
	}
	return "CAST(" + text(expr.FormatValue(v, l.typ)) + " AS " + l.typ.String() + ")"
}

// edge gives a value at an end of a type's range, or one that is special.
func (g *generator) edge(t vector.Type) vector.Value {
	one := func(vs ...vector.Value) vector.Value { return vs[g.r.Intn(len(vs))] }
	switch t.Kind {
	case vector.Boolean:
		return one(true, false)
	case vector.TinyInt, vector.SmallInt:
		return one(int32(0), int32(-1))
	case vector.Integer:
		return one(int32(0), int32(-1), int32(math.MaxInt32), int32(math.MinInt32))
	case vector.Date:
		return one(int32(0), int32(-1), int32(20000), int32(-20000))
	case vector.BigInt:
		return one(int64(0), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt32)+1)
	case vector.Time:
		return one(int64(0), int64(1))
	case vector.Timestamp, vector.TimestampTZ:
		return one(int64(0), int64(-1), int64(1_600_000_000_000_000))
	case vector.Real:
		return one(float32(0), float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1)))
	case vector.Double:
		return one(0.0, math.NaN(), math.Inf(-1), math.Copysign(0, -1))
	case vector.Decimal:
		if t.Physical() == vector.PInt64 {
			return one(int64(0), int64(-1))
		}
		return vector.Int128{}
	case vector.UUID:
		return one(strings.Repeat("\x00", 16), strings.Repeat("\xff", 16), "\x80"+strings.Repeat("\x00", 15))
	case vector.Varbinary:
		return one("", "\xff", "\x00")
	case vector.Fixed:
		return one(strings.Repeat("\x00", t.Precision), strings.Repeat("\xff", t.Precision))
	}
	return one("", "a", "~", "\U0010FFFF")
}

// neighbour gives a value next to v.
func (g *generator) neighbour(v vector.Value, t vector.Type) vector.Value {
	step := int64(g.r.Intn(2)*2 - 1)
	switch x := v.(type) {
	case bool:
		return !x
	case int32:
		return x + int32(step)
	case int64:
		if x == math.MaxInt64 || x == math.MinInt64 {
			return x
		}
		return x + step
	case float32:
		return math.Nextafter32(x, float32(math.Inf(int(step))))
	case float64:
		return math.Nextafter(x, math.Inf(int(step)))
	case string:
		if t.Kind != vector.Varchar {
			b := []byte(x)
			if len(b) > 0 {
				b[len(b)-1] += byte(step)
			}
			return string(b)
		}
		if x == "" {
			return "a"
		}
		if step > 0 {
			return x + "a"
		}
		_, last := utf8.DecodeLastRuneInString(x)
		return x[:len(x)-last]
	}
	return v
}
