package kms

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/fault"
)

// azureServer speaks unwrapKey of Key Vault and the token endpoint of its authority. A request without a token is challenged.
type azureServer struct {
	url string
	key *rsa.PrivateKey
}

func (a *azureServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	fail := func(status int, code string) {
		answer(status, map[string]any{"error": map[string]any{"code": code, "message": code}})
	}
	switch r.URL.Path {
	case "/tenant/v2.0/.well-known/openid-configuration":
		answer(200, map[string]any{"issuer": a.url + "/tenant/v2.0", "token_endpoint": a.url + "/tenant/oauth2/v2.0/token", "authorization_endpoint": a.url + "/tenant/oauth2/v2.0/authorize"})
		return
	case "/tenant/oauth2/v2.0/token":
		if r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("client_id") != "reader" || r.PostFormValue("client_secret") != "a client secret" {
			answer(401, map[string]any{"error": "invalid_client", "error_description": "AADSTS7000215"})
			return
		}
		answer(200, map[string]any{"token_type": "Bearer", "expires_in": 3600, "access_token": "good"})
		return
	}
	switch r.Header.Get("Authorization") {
	case "":
		w.Header().Set("WWW-Authenticate", `Bearer authorization="`+a.url+`/tenant", resource="https://vault.azure.net"`)
		fail(401, "Unauthorized")
		return
	case "Bearer good":
	default:
		fail(403, "Forbidden")
		return
	}
	var body struct{ Alg, Value string }
	err := json.NewDecoder(r.Body).Decode(&body)
	wrapped, _ := base64.RawURLEncoding.DecodeString(body.Value)
	switch {
	case r.Method != http.MethodPost || r.URL.Query().Get("api-version") == "" || err != nil:
		fail(400, "BadParameter")
	case r.URL.Path != "/keys/lake/7/unwrapkey":
		fail(404, "KeyNotFound")
	case body.Alg != "RSA-OAEP-256":
		fail(400, "BadParameter")
	default:
		plain, err := rsa.DecryptOAEP(sha256.New(), nil, a.key, wrapped, nil)
		if err != nil {
			fail(400, "BadParameter")
			return
		}
		answer(200, map[string]any{"kid": a.url + "/keys/lake/7", "value": base64.RawURLEncoding.EncodeToString(plain)})
	}
}

func TestAzure(t *testing.T) {
	ctx := context.Background()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	wrapped, err := rsa.EncryptOAEP(sha256.New(), rand.Reader, &private.PublicKey, dataKey, nil)
	require.NoError(t, err)
	server := &azureServer{key: private}
	url, ca := serve(t, server)
	server.url = url
	open := func(own Properties) func(key string, wrapped []byte) error {
		p := Properties{"azure.keyvault.url": url, "azure.keyvault.ca-file": ca, "azure.keyvault.verify-challenge": "false"}
		for k, v := range own {
			p[k] = v
		}
		c, err := Open(ctx, "azure", p)
		require.NoError(t, err)
		return func(key string, wrapped []byte) error {
			got, err := c.Unwrap(ctx, key, wrapped)
			if err == nil {
				require.Equal(t, dataKey, got)
			}
			return err
		}
	}
	good := open(Properties{"azure.keyvault.token": "good"})
	require.NoError(t, good(url+"/keys/lake/7", wrapped))
	refused(t, good(url+"/keys/lake/7", append([]byte{wrapped[0] ^ 1}, wrapped[1:]...)), fault.Corrupt)
	refused(t, good(url+"/keys/other/7", wrapped), fault.NotFound)
	refused(t, good(url+"/secrets/lake/7", wrapped), fault.Corrupt)
	refused(t, good("https://evil.example/keys/lake/7", wrapped), fault.Denied)
	refused(t, open(Properties{"azure.keyvault.token": "weak"})(url+"/keys/lake/7", wrapped), fault.Denied, "weak")
	login := Properties{"azure.tenant-id": "tenant", "azure.client-id": "reader", "azure.client-secret": "a client secret", "azure.authority-host": url + "/"}
	require.NoError(t, open(login)(url+"/keys/lake/7", wrapped))
	login["azure.client-secret"] = "a wrong secret"
	refused(t, open(login)(url+"/keys/lake/7", wrapped), fault.Denied, "a wrong secret")
}
