package kms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// vaultServer speaks the transit and approle interfaces of Vault's HTTP API: tokens are checked, and end when told.
type vaultServer struct {
	mu      sync.Mutex
	tokens  map[string]bool // true: may decrypt
	logins  int
	decrypt int
}

func (v *vaultServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	fail := func(status int, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []string{text}})
	}
	var body map[string]string
	if r.Method != http.MethodPut && r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&body) != nil {
		fail(405, "unsupported operation")
		return
	}
	if r.URL.Path == "/v1/auth/approle/login" {
		if body["role_id"] != "reader" || body["secret_id"] != "a secret id" {
			fail(400, "invalid role or secret ID")
			return
		}
		v.logins++
		token := "s." + strings.Repeat("x", v.logins)
		v.tokens[token] = true
		_ = json.NewEncoder(w).Encode(map[string]any{"auth": map[string]any{"client_token": token, "lease_duration": 60}})
		return
	}
	may, known := v.tokens[r.Header.Get("X-Vault-Token")]
	name, isDecrypt := strings.CutPrefix(r.URL.Path, "/v1/transit/decrypt/")
	switch {
	case r.Header.Get("X-Vault-Namespace") != "team":
		fail(403, "no namespace")
	case !known, !may:
		fail(403, "permission denied")
	case !isDecrypt:
		fail(404, "no handler for route")
	case name != "lake":
		fail(400, "encryption key not found")
	case body["ciphertext"] != "vault:v1:d3JhcHBlZA==":
		fail(400, "invalid ciphertext: no prefix")
	default:
		v.decrypt++
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"plaintext": base64.StdEncoding.EncodeToString(dataKey)}})
	}
}

func TestVault(t *testing.T) {
	ctx := context.Background()
	server := &vaultServer{tokens: map[string]bool{"root token": true, "weak token": false}}
	url, ca := serve(t, server)
	open := func(own Properties) func(key, wrapped string) error {
		p := Properties{"vault.url": url, "vault.ca-file": ca, "vault.namespace": "team"}
		for k, v := range own {
			p[k] = v
		}
		c, err := Open(ctx, "vault", p)
		require.NoError(t, err)
		return func(key, wrapped string) error {
			got, err := c.Unwrap(ctx, key, []byte(wrapped))
			if err == nil {
				require.Equal(t, dataKey, got)
			}
			return err
		}
	}
	const good = "vault:v1:d3JhcHBlZA=="
	fixed := open(Properties{"vault.token": "root token"})
	require.NoError(t, fixed("lake", good))
	refused(t, fixed("other", good), fault.NotFound)
	refused(t, fixed("lake", "vault:v1:changed"), fault.Corrupt, "changed")
	refused(t, fixed("../../sys/seal", good), fault.Corrupt)
	refused(t, open(Properties{"vault.token": "weak token"})("lake", good), fault.Denied, "weak token")
	refused(t, open(Properties{"vault.token": "no token"})("lake", good), fault.Denied, "no token")
	refused(t, open(Properties{"vault.role-id": "reader", "vault.secret-id": "wrong"})("lake", good), fault.Corrupt, "wrong")

	role := open(Properties{"vault.role-id": "reader", "vault.secret-id": "a secret id"})
	for range 3 {
		require.NoError(t, role("lake", good))
	}
	require.Equal(t, 1, server.logins)
	server.mu.Lock()
	delete(server.tokens, "s.x") // its lease ends
	server.mu.Unlock()
	require.NoError(t, role("lake", good))
	require.Equal(t, 2, server.logins)
}
