package sql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	cases := []struct {
		script     string
		statements []string
		rest       string
	}{
		{"", nil, ""},
		{"SELECT 1", nil, "SELECT 1"},
		{"SELECT 1;", []string{"SELECT 1"}, ""},
		{" SELECT ';' ; -- a; comment\n SELECT \"a;b\" /* ; */;\n;; SELECT 3", []string{"SELECT ';'", "-- a; comment\n SELECT \"a;b\" /* ; */"}, "SELECT 3"},
		{"SELECT 1; -- done", []string{"SELECT 1"}, ""},
	}
	for _, c := range cases {
		statements, rest, err := Split(c.script)
		require.NoError(t, err)
		require.Equal(t, c.statements, statements, c.script)
		require.Equal(t, c.rest, rest, c.script)
	}
	_, _, err := Split("SELECT 'open")
	require.Error(t, err)
}
