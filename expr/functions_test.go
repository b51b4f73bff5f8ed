package expr_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/exec"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/vector"
)

type noCatalogs struct{}

func (noCatalogs) Names() []string                        { return nil }
func (noCatalogs) Catalog(string) (catalog.Catalog, bool) { return nil, false }

// run answers a statement over VALUES with the rows as JSON values and the types of its columns.
func run(t *testing.T, text string, workers int) (rows [][]any, types []string, err error) {
	t.Helper()
	ctx := context.Background()
	p, err := plan.Build(ctx, text, &plan.Environment{Catalogs: noCatalogs{}, Zone: time.UTC, Now: time.Unix(0, 0), User: "u"})
	if err != nil {
		return nil, nil, err
	}
	pool := memory.NewPool("test", 1<<28)
	r, err := exec.Run(ctx, p.Root, &exec.Query{Context: &expr.Context{Zone: time.UTC, User: "u"}, Pool: pool, Workers: workers})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		require.NoError(t, r.Close())
		require.Zero(t, pool.Used())
	}()
	for _, c := range p.Columns {
		types = append(types, textLengths.ReplaceAllString(c.Type.String(), "varchar"))
	}
	for {
		c, err := r.Next(ctx)
		if err != nil || c == nil {
			return rows, types, err
		}
		for k := range c.Rows() {
			i := k
			if c.Sel != nil {
				i = int(c.Sel[k])
			}
			row := make([]any, len(c.Cols))
			for j, v := range c.Cols {
				row[j] = plainJSON(v.Get(i), p.Columns[j].Type)
			}
			rows = append(rows, row)
		}
	}
}

// plainJSON is a value as the oracle's answers have it: numbers, texts of dates and decimals, base 64 of bytes, objects of maps.
func plainJSON(v vector.Value, t vector.Type) any {
	switch x := v.(type) {
	case nil:
		return nil
	case bool:
		return x
	case int32:
		if t.Kind == vector.Integer || t.Kind == vector.SmallInt || t.Kind == vector.TinyInt {
			return float64(x)
		}
	case int64:
		if t.Kind == vector.BigInt {
			return float64(x)
		}
	case float32:
		return plainJSON(float64(x), vector.Of(vector.Double))
	case float64:
		switch {
		case x != x:
			return "NaN"
		case math.IsInf(x, 0):
			return fmt.Sprintf("%sInfinity", map[bool]string{true: "-"}[x < 0])
		}
		return x
	case string:
		if t.Kind == vector.Varbinary {
			return base64.StdEncoding.EncodeToString([]byte(x))
		}
		if t.Kind == vector.Varchar {
			return x
		}
	case []vector.Value:
		out := make([]any, len(x))
		for i, e := range x {
			f := t.Fields[0].Type
			if t.Kind == vector.Row {
				f = t.Fields[i].Type
			}
			out[i] = plainJSON(e, f)
		}
		return out
	case []vector.Pair:
		out := map[string]any{}
		for _, p := range x {
			k, _ := json.Marshal(plainJSON(p.Key, t.Fields[0].Type))
			if f, ok := p.Key.(float64); ok && f == math.Trunc(f) {
				k = fmt.Appendf(nil, "%.1f", f)
			}
			if f, ok := p.Key.(float32); ok && f == float32(math.Trunc(float64(f))) {
				k = fmt.Appendf(nil, "%.1f", f)
			}
			out[string(bytes.Trim(k, `"`))] = plainJSON(p.Value, t.Fields[1].Type)
		}
		return out
	}
	return expr.FormatValue(v, t)
}

// alike reports equality but for the last digits of numbers.
func alike(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && (x == y || math.Abs(x-y) <= 1e-7*max(math.Abs(x), math.Abs(y)))
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, alike)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			w, ok := y[k]
			if !ok || !alike(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}

// byText orders rows that a statement leaves without order.
func byText(a, b []any) int {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Compare(x, y)
}

var fieldTypes = regexp.MustCompile(`row\([^)]*\)`)

// textLengths are left out of the recorded types.
var textLengths = regexp.MustCompile(`varchar\(\d+\)`)

// testdata/functions.jsonl holds statements with the types and rows, or the name of the error, that Trino 483 gave for them.
func TestFunctionsAnswerAsTrino(t *testing.T) {
	for _, workers := range []int{1, 4} {
		answersAsTrino(t, "testdata/functions.jsonl", workers)
	}
}

// testdata/oracle.jsonl is a sample of such statements over every pair of types in casts and operators, every aggregate over every type,
// window frames, nested values, JSON and the forms of queries.
func TestStatementsAnswerAsTrino(t *testing.T) {
	answersAsTrino(t, "testdata/oracle.jsonl", 1)
}

func answersAsTrino(t *testing.T, file string, workers int) {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			SQL   string   `json:"sql"`
			Types []string `json:"types"`
			Rows  [][]any  `json:"rows"`
			Error string   `json:"error"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &c))
		rows, types, err := run(t, c.SQL, workers)
		if c.Error != "" {
			var e *fault.Error
			if !errors.As(err, &e) {
				t.Errorf("%s\n  gives %v, error %v, not error %s", c.SQL, rows, err, c.Error)
			} else if e.ID != c.Error {
				t.Errorf("%s\n  fails with %s (%v), not %s", c.SQL, e.ID, err, c.Error)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s\n  %v", c.SQL, err)
			continue
		}
		if !strings.Contains(c.SQL, "ORDER BY") {
			slices.SortFunc(rows, byText)
			slices.SortFunc(c.Rows, byText)
		}
		if !slices.EqualFunc(rows, c.Rows, func(a, b []any) bool { return alike(any(a), any(b)) }) {
			t.Errorf("%s\n  gives %v,\n  not   %v", c.SQL, rows, c.Rows)
		}
		for i := range types {
			if i < len(c.Types) && types[i] != c.Types[i] && fieldTypes.ReplaceAllString(types[i], "row") != fieldTypes.ReplaceAllString(c.Types[i], "row") {
				t.Errorf("%s\n  column %d is %s, not %s", c.SQL, i+1, types[i], c.Types[i])
			}
		}
	}
	require.NoError(t, lines.Err())
}
