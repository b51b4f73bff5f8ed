package sql

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestErrors compares the sentences of testdata/errors.txt: statements, each followed by the error it must give after "---",
// apart by "===".
func TestErrors(t *testing.T) {
	const path = "testdata/errors.txt"
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var out []string
	for _, c := range strings.Split(strings.TrimSpace(string(data)), "\n===\n") {
		text, want, _ := strings.Cut(c, "\n---\n")
		_, err := Parse(text)
		require.Error(t, err, text)
		if !*rewrite {
			require.Equal(t, want, err.Error(), text)
		}
		out = append(out, text+"\n---\n"+err.Error())
	}
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(out, "\n===\n")+"\n"), 0o644))
	}
}

func TestLimits(t *testing.T) {
	for name, text := range map[string]string{
		"parentheses": "select " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000),
		"minus":       "select " + strings.Repeat("- ", 100000) + "1",
		"not":         "select " + strings.Repeat("not ", 100000) + "1",
		"plus":        "select 1" + strings.Repeat(" + 1", 100000),
		"union":       "select 1" + strings.Repeat(" union select 1", 10000),
		"joins":       "select 1 from a" + strings.Repeat(", a", 10000),
		"types":       "select cast(1 as " + strings.Repeat("array(", 10000) + "int)",
		"subqueries":  strings.Repeat("select (", 10000),
		"cases":       strings.Repeat("select case when ", 1) + strings.Repeat("case when ", 10000),
		"brackets":    "select a" + strings.Repeat("[1]", 10000),
		"type arrays": "select cast(a as int" + strings.Repeat("[]", 10000) + ")",
		"long":        strings.Repeat(" ", MaxBytes+1),
	} {
		_, err := Parse(text)
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 1024, name)
	}
	_, err := Parse("select * from t where " + strings.Repeat("a = 1 or ", 50000) + "b = 2")
	require.NoError(t, err, "long chains of OR are flat")
}

func BenchmarkParsePoint(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("SELECT id, name, amount FROM lake.sales.orders WHERE id = ? AND region = 'north' LIMIT 10"); err != nil {
			b.Fatal(err)
		}
	}
}
