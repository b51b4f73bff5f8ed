package server_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/skua-db/skua/access"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/server"
)

// provider is an identity provider: its configuration, its keys, and a count of how often they were read.
type provider struct {
	*httptest.Server
	mu    sync.Mutex
	keys  map[string]crypto.Signer // by key id
	reads int
	away  bool
}

func newProvider(t *testing.T) *provider {
	p := &provider{keys: map[string]crypto.Signer{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	p.rotate(t, "k1")
	return p
}

func (p *provider) rotate(t *testing.T, ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := map[string]crypto.Signer{}
	for _, id := range ids {
		if k, ok := p.keys[id]; ok {
			keys[id] = k
			continue
		}
		var err error
		if id == "ec" {
			keys[id], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		} else {
			keys[id], err = rsa.GenerateKey(rand.Reader, 2048)
		}
		require.NoError(t, err)
	}
	p.keys = keys
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b64 := base64.RawURLEncoding.EncodeToString
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
	case "/keys":
		p.reads++
		list := []map[string]string{}
		for id, k := range p.keys {
			switch k := k.(type) {
			case *rsa.PrivateKey:
				list = append(list, map[string]string{"kty": "RSA", "kid": id, "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
			case *ecdsa.PrivateKey:
				point, err := k.PublicKey.Bytes()
				if err != nil {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
				list = append(list, map[string]string{"kty": "EC", "kid": id, "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": list})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// token signs claims, over good ones, with the key of the id.
func (p *provider) token(t *testing.T, kid string, method jwt.SigningMethod, changes map[string]any) string {
	claims := jwt.MapClaims{"iss": p.URL, "sub": "ann", "aud": []string{"skua", "other"}, "exp": time.Now().Add(time.Minute).Unix(), "realm": map[string]any{"roles": []string{"analysts"}}}
	maps.Copy(claims, changes)
	for k, v := range claims {
		if v == nil {
			delete(claims, k)
		}
	}
	tok := jwt.NewWithClaims(method, claims)
	tok.Header["kid"] = kid
	p.mu.Lock()
	var key any = p.keys[kid]
	p.mu.Unlock()
	switch method.(type) {
	case *jwt.SigningMethodHMAC: // the public key as a shared secret: what the server must not fall for
		der, err := x509.MarshalPKIXPublicKey(key.(crypto.Signer).Public())
		require.NoError(t, err)
		key = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	case *jwt.SigningMethodECDSA, *jwt.SigningMethodRSA:
	default:
		key = jwt.UnsafeAllowNoneSignatureType
	}
	text, err := tok.SignedString(key)
	require.NoError(t, err)
	return text
}

func TestJWT(t *testing.T) {
	p := newProvider(t)
	p.rotate(t, "k1", "ec")
	policy := t.TempDir() + "/policy.yaml"
	require.NoError(t, os.WriteFile(policy, []byte("rules: [{roles: [analysts]}]"), 0o600))
	source, err := access.Open(policy, zap.NewNop())
	require.NoError(t, err)
	st := startWith(t, lake(t), server.AuthOptions{Issuers: []server.IssuerOptions{
		{Issuer: "https://nobody.example", Audience: []string{"skua"}},
		{Issuer: p.URL, Audience: []string{"skua"}, RolesClaim: "realm.roles", Skew: 5 * time.Second},
	}}, nil, func(o *server.Options) {
		o.Catalogs[0], o.Policy = access.Guard(o.Catalogs[0], source), source
	})
	cl := connect(t, st)
	with := func(scheme string) context.Context {
		return metadata.AppendToOutgoingContext(context.Background(), "authorization", scheme)
	}
	who := func(token string) (string, error) {
		rows, err := answer(with("Bearer "+token), cl, "SELECT current_user")
		if err != nil {
			return "", err
		}
		return rows[0], nil
	}
	for name, token := range map[string]string{
		"RS256": p.token(t, "k1", jwt.SigningMethodRS256, nil), "ES256": p.token(t, "ec", jwt.SigningMethodES256, nil),
		"within the skew": p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"exp": time.Now().Add(-2 * time.Second).Unix()}),
		"one audience":    p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"aud": "skua"}),
	} {
		got, err := who(token)
		require.NoError(t, err, name)
		require.Equal(t, "ann|", got, name)
		n, err := count(with("Bearer "+token), cl, "SELECT * FROM tpch.nation")
		require.NoError(t, err, name)
		require.EqualValues(t, 25, n, "by the role in the token")
	}
	n, err := count(with("Bearer "+p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"realm": nil})), cl, "SELECT * FROM tpch.nation")
	require.Equal(t, codes.NotFound, status.Code(err), "without the role: %d rows", n)

	other := newProvider(t)
	stolen := other.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"iss": p.URL})
	good := p.token(t, "k1", jwt.SigningMethodRS256, nil)
	for name, token := range map[string]string{
		"no signature":         p.token(t, "k1", jwt.SigningMethodNone, nil),
		"a public key as HMAC": p.token(t, "k1", jwt.SigningMethodHS256, nil),
		"another's key":        stolen,
		"another algorithm":    p.token(t, "k1", jwt.SigningMethodRS512, nil),
		"an unknown issuer":    p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"iss": "https://evil.example"}),
		"another audience":     p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"aud": "web"}),
		"no audience":          p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"aud": nil}),
		"expired":              p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"no expiry":            p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"exp": nil}),
		"not yet":              p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"no principal":         p.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"sub": nil}),
		"changed":              good[:len(good)-8] + "AAAAAAAA",
		"rubbish":              "eyJ.a.b",
	} {
		_, err := who(token)
		require.Equal(t, codes.Unauthenticated, status.Code(err), "%s: %v", name, err)
		require.NotContains(t, err.Error(), token, name)
	}

	t.Run("as a password", func(t *testing.T) {
		pair := base64.StdEncoding.EncodeToString([]byte("token:" + good))
		rows, err := answer(with("Basic "+pair), cl, "SELECT current_user")
		require.NoError(t, err)
		require.Equal(t, []string{"ann|"}, rows)
	})
	t.Run("rotation", func(t *testing.T) {
		p.mu.Lock()
		reads := p.reads
		p.mu.Unlock()
		p.rotate(t, "k2")
		got, err := who(p.token(t, "k2", jwt.SigningMethodRS256, nil))
		require.NoError(t, err)
		require.Equal(t, "ann|", got)
		// Strangers' key ids do not make the server ask for each.
		for range 50 {
			_, err = who(other.token(t, "k1", jwt.SigningMethodRS256, map[string]any{"iss": p.URL, "jti": time.Now().String()}))
			require.Equal(t, codes.Unauthenticated, status.Code(err))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		require.LessOrEqual(t, p.reads-reads, 2)
	})
}

func TestProviderAway(t *testing.T) {
	p := newProvider(t)
	p.away = true
	st := start(t, server.AuthOptions{Issuers: []server.IssuerOptions{{Issuer: p.URL, Audience: []string{"skua"}}}, Tokens: map[string]string{"a token of sixteen or more": "etl"}})
	cl := connect(t, st)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+p.token(t, "k1", jwt.SigningMethodRS256, nil))
	_, err := count(ctx, cl, "SELECT 1")
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	_, err = count(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer a token of sixteen or more"), cl, "SELECT 1")
	require.NoError(t, err, "others still come in")
	for _, alg := range []string{"none", "HS256", "RS257"} {
		_, err = server.NewAuthenticator(server.AuthOptions{Issuers: []server.IssuerOptions{{Issuer: p.URL, Algorithms: []string{alg}}}})
		require.ErrorIs(t, err, fault.Invalid)
	}
}

// TestGuessing: wrong passwords make the next ones wait, and a right one ends that.
func TestGuessing(t *testing.T) {
	users := t.TempDir() + "/users"
	require.NoError(t, os.WriteFile(users, []byte("ann:"+bcryptHash(t, "secret word")+"\n"), 0o600))
	cl := connect(t, start(t, server.AuthOptions{UsersFile: users}))
	login := func(password string) time.Duration {
		start := time.Now()
		_, err := cl.Client.AuthenticateBasicToken(context.Background(), "ann", password)
		require.Equal(t, password == "secret word", err == nil, "%v", err)
		return time.Since(start)
	}
	for range 5 {
		login("a guess")
	}
	require.GreaterOrEqual(t, login("secret word"), 400*time.Millisecond, "after two guesses too many")
	login("secret word")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for ctx.Err() == nil {
		_, _ = cl.Client.AuthenticateBasicToken(ctx, "ann", "a guess")
	}
	require.Equal(t, context.DeadlineExceeded, ctx.Err(), "a caller that leaves does not wait")
}
