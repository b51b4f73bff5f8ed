package sql

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// FuzzParse checks that no text panics the parser, that every refusal has a kind, and that what parses survives printing.
func FuzzParse(f *testing.F) {
	for _, s := range good {
		f.Add(s)
	}
	for _, s := range []string{"", "select", "select (", "select 'a", "/*", "U&'\\00", "x'0", "select 1 a.b", "select {a:1}", "((((", "select a[", "insert into t values (1)", "set time zone A"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported) {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		out := Print(p.Statement)
		if len(out) > MaxBytes {
			return
		}
		q, err := Parse(out)
		require.NoError(t, err, "printed: %s", out)
		strip(reflect.ValueOf(p.Statement))
		strip(reflect.ValueOf(q.Statement))
		require.Equal(t, p.Statement, q.Statement, "printed: %s", out)
	})
}
