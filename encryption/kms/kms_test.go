package kms

import (
	"context"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dataKey is what the services of these tests hold wrapped.
var dataKey = encryption.Key("a data key of 16")

// serve starts a service that is trusted by the file it gives.
func serve(t *testing.T, h http.Handler) (url, caFile string) {
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return s.URL, caFile
}

// serveClear starts a service without TLS.
func serveClear(t *testing.T, h http.Handler) (url string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return s.URL
}

// refused holds an error against its kind and against telling secrets.
func refused(t *testing.T, err error, kind fault.Kind, secrets ...string) {
	t.Helper()
	require.ErrorIs(t, err, kind)
	for _, s := range append(secrets, string(dataKey), hex.EncodeToString(dataKey)) {
		require.NotContains(t, err.Error(), s)
	}
}

func TestSettings(t *testing.T) {
	ctx := context.Background()
	_, err := Open(ctx, "sesame", nil)
	require.ErrorContains(t, err, "there are aws, azure, gcp, local, vault")
	_, err = Open(ctx, "Vault", Properties{"vault.url": "https://v", "vault.tokne": "x"})
	require.ErrorContains(t, err, "vault.tokne is not known")
	for kind, p := range map[string]Properties{
		"aws":   {"client.region": "us-east-1"},
		"azure": {"azure.keyvault.url": "https://v.vault.azure.net"},
		"gcp":   {},
		"vault": {"vault.url": "https://v"},
		"local": {},
	} {
		_, err := Open(ctx, kind, p)
		refused(t, err, fault.Invalid)
		require.ErrorContains(t, err, "needs", kind)
	}
	for _, p := range []Properties{{"azure.keyvault.url": "http://plain", "azure.keyvault.token": "x"}, {"azure.keyvault.url": "https://v", "azure.keyvault.token": "x", "azure.keyvault.ca-file": "/nowhere"}} {
		_, err = Open(ctx, "azure", p)
		refused(t, err, fault.Invalid)
	}
}

func TestIdentities(t *testing.T) {
	ctx := context.Background()
	keys := func(id string) string {
		path := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(path, []byte(id+" "+hex.EncodeToString(dataKey)), 0o600))
		return path
	}
	s := Settings{Kind: "local", Identities: map[string]Properties{"alice": {"key-file": keys("hers")}, "bob": {"key-file": keys("his")}}}
	service, err := s.Service(ctx)
	require.NoError(t, err)
	alice, err := service(ctx, "alice")
	require.NoError(t, err)
	bob, err := service(ctx, "bob")
	require.NoError(t, err)
	require.NotSame(t, alice, bob)
	for _, name := range []string{"mallory", "", "*"} {
		_, err = service(ctx, name)
		refused(t, err, fault.Denied)
	}
	s.Identities["*"] = Properties{"key-file": keys("all")}
	service, err = s.Service(ctx)
	require.NoError(t, err)
	_, err = service(ctx, "mallory")
	require.NoError(t, err)
	s.Identities["eve"] = Properties{"key-file": "/nowhere"}
	_, err = s.Service(ctx)
	require.ErrorContains(t, err, `identity "eve"`)
}
