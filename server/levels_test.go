package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/server"
)

// A value nested as deep as Arrow goes is sent, and one level more is refused by name rather than broken off in the writer.
func TestDeeplyNested(t *testing.T) {
	st := start(t, server.AuthOptions{Anonymous: true})
	cl := connect(t, st)
	ctx := context.Background()
	arrays := func(n int, of string) string {
		return "SELECT " + strings.Repeat("ARRAY[", n) + of + strings.Repeat("]", n) + " AS a"
	}
	for _, c := range []struct {
		sql   string
		depth int
	}{
		{arrays(63, "1"), 63},
		{arrays(64, "1"), 64},
		{arrays(61, "map(ARRAY['k'], ARRAY[1])"), 63},
		{arrays(62, "map(ARRAY['k'], ARRAY[1])"), 64},
		{arrays(62, "row(1)"), 63},
		{arrays(63, "row(1)"), 64},
	} {
		n, err := count(ctx, cl, c.sql)
		if c.depth <= 63 {
			require.NoError(t, err)
			require.Equal(t, int64(1), n)
			continue
		}
		require.Equal(t, codes.Unimplemented, status.Code(err))
		require.ErrorContains(t, err, fmt.Sprintf("column \"a\" is nested %d levels deep", c.depth))
	}
	settled(t, st)
}
