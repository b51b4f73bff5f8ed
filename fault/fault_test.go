package fault

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var rewrite = flag.Bool("rewrite", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKinds(t *testing.T) {
	err := Wrap(Unavailable, WithID(NotFound, "TABLE_NOT_FOUND", "table %s does not exist", "a.b.c").At(2, 7), "catalog %s", "a")
	require.ErrorIs(t, err, NotFound)
	require.NotErrorIs(t, err, Unavailable)
	require.Equal(t, "TABLE_NOT_FOUND: line 2:7: catalog a: table a.b.c does not exist", err.Error())
	require.Equal(t, Canceled, KindOf(fmt.Errorf("reading: %w", context.Canceled)))
	require.Equal(t, Timeout, KindOf(context.DeadlineExceeded))
	require.Equal(t, Internal, KindOf(errors.New("x")))
	require.Equal(t, Corrupt, KindOf(Wrap(Corrupt, errors.New("short"), "file x")))
	require.Equal(t, Canceled, KindOf(Wrap(Corrupt, context.Canceled, "file x")), "a cancelled read is no damage")
	require.NoError(t, Wrap(Corrupt, nil, "file x"))
	cause := errors.New("cause")
	require.ErrorIs(t, New(Corrupt, "file x: %w", cause), cause)
}

// TestDocs keeps docs/ERRORS.md in step with the table; -rewrite writes it.
func TestDocs(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Errors\n\nEach error has a kind. Its message begins with a stable id: the kind's, or a more precise one such as\n`COLUMN_NOT_FOUND` or `DIVISION_BY_ZERO` (Trino's names where one exists). This table is generated.\n\n| kind's id | gRPC code | HTTP | what to do |\n|---|---|---|---|\n")
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "| %s | %s | %d | %s |\n", k.Error(), k.Code(), k.HTTP(), k.Remedy())
	}
	const file = "../docs/ERRORS.md"
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(have), "run go test ./fault -rewrite")
}

func TestGuard(t *testing.T) {
	err := Guard(func() error { var none []int; _ = none[len(os.Args)]; return nil })
	require.ErrorIs(t, err, Internal)
	require.ErrorContains(t, err, "index out of range")
	require.ErrorContains(t, errors.Unwrap(err), "fault_test.go", "the cause has the stack, for the log")
	require.NoError(t, Guard(func() error { return nil }))
}
