package rest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// TestCallersTokens: two callers, of whom the server lets one in; what one got serves nobody else.
func TestCallersTokens(t *testing.T) {
	srv, _ := lake(t)
	good, err := open(t, srv).client.auth.token(context.Background()) // a token that the server takes
	require.NoError(t, err)
	c, err := Open(Options{Name: "lake", Properties: map[string]string{"uri": srv.URL, PassTokenProperty: "true", "rest.client.max-retries": "0"}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	as := func(name string, token credentials.Secret) context.Context {
		return credentials.WithCaller(context.Background(), credentials.Caller{Name: name, Token: token})
	}
	alice, bob := as("alice", good), as("bob", credentials.NewSecret("a token that the server does not know"))
	for range 2 {
		tab, err := c.Load(alice, orders, "orders")
		require.NoError(t, err)
		text, err := read(tab, "s3://lake/sales/orders/data/f")
		require.NoError(t, err)
		require.Equal(t, "data", text)
		for _, ctx := range []context.Context{bob, as("alice", credentials.Secret{}), context.Background()} {
			_, err = c.Load(ctx, orders, "orders")
			require.ErrorIs(t, err, fault.Denied)
			require.NotContains(t, err.Error(), "does not know")
			_, err = c.Tables(ctx, orders)
			require.ErrorIs(t, err, fault.Denied)
			_, err = c.Namespaces(ctx, nil)
			require.ErrorIs(t, err, fault.Denied)
		}
	}
	top, err := c.Namespaces(alice, nil)
	require.NoError(t, err)
	require.Equal(t, []catalog.Namespace{{"sales"}}, top)
	_, err = Open(Options{Name: "lake", Properties: map[string]string{"uri": srv.URL, PassTokenProperty: "true", "token": "x"}})
	require.ErrorIs(t, err, fault.Invalid)
}
