package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/skua-db/skua/fault"
)

// IssuerOptions describe an identity provider whose JSON Web Tokens are taken as bearer tokens (OpenID Connect, RFC 7519).
type IssuerOptions struct {
	Issuer string
	// Audience: a token must be meant for one of these.
	Audience []string
	// Algorithms that may sign; none stands for RS256 and ES256. Those with shared secrets are never taken.
	Algorithms []string
	// PrincipalClaim names the claim that becomes the principal, RolesClaim the one that lists its roles, with dots between levels.
	PrincipalClaim, RolesClaim string
	Skew                       time.Duration // of clocks
	Client                     *http.Client
	Log                        *zap.Logger
}

// issuer verifies tokens. The provider is asked at the first token, and while it does not answer tokens are refused as such,
// with some time between attempts.
type issuer struct {
	opt    IssuerOptions
	ctx    context.Context // ends with the authenticator
	parser *jwt.Parser

	verified *lru.Cache[[sha256.Size]byte, identity]

	mu    sync.Mutex
	keys  keyfunc.Keyfunc
	tried time.Time
	last  error
}

// identity is what a token says.
type identity struct {
	principal string
	roles     []string
	until     time.Time
}

const (
	verifiedTokens = 4096
	// askAgain is the least time between two attempts to reach a provider, and between two reads of its keys for the sake of a key
	// id that is not known: strangers decide when tokens come.
	askAgain = 10 * time.Second
	// keysEvery is how often keys are read anyway.
	keysEvery       = 15 * time.Minute
	providerTimeout = 10 * time.Second
	providerBytes   = 1 << 20
	maxTokenBytes   = 16 << 10
)

func newIssuer(ctx context.Context, opt IssuerOptions) (*issuer, error) {
	if len(opt.Algorithms) == 0 {
		opt.Algorithms = []string{"RS256", "ES256"}
	}
	for _, a := range opt.Algorithms {
		if m := jwt.GetSigningMethod(a); m == nil || strings.HasPrefix(a, "HS") || a == "none" {
			return nil, fault.New(fault.Invalid, "algorithm %q cannot prove who signed a token; there are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA", a)
		}
	}
	if opt.PrincipalClaim == "" {
		opt.PrincipalClaim = "sub"
	}
	if opt.Client == nil {
		opt.Client = &http.Client{Timeout: providerTimeout}
	}
	if opt.Log == nil {
		opt.Log = zap.NewNop()
	}
	i := &issuer{opt: opt, ctx: ctx, parser: jwt.NewParser(jwt.WithValidMethods(opt.Algorithms), jwt.WithIssuer(opt.Issuer), jwt.WithAudience(opt.Audience...),
		jwt.WithExpirationRequired(), jwt.WithLeeway(opt.Skew))}
	var err error
	i.verified, err = lru.New[[sha256.Size]byte, identity](verifiedTokens)
	return i, err
}

// isJWT tells a JSON Web Token from other bearer tokens by its form.
func isJWT(token string) bool {
	return strings.Count(token, ".") == 2 && strings.HasPrefix(token, "eyJ")
}

// names reports whether a token says that it is of this issuer, without believing it.
func (i *issuer) names(token string) bool {
	claims := jwt.MapClaims{}
	if _, _, err := i.parser.ParseUnverified(token, claims); err != nil {
		return false
	}
	iss, _ := claims.GetIssuer()
	return iss == i.opt.Issuer
}

// known gives who a token is of that was verified before; sum is its hash.
func (i *issuer) known(sum [sha256.Size]byte) (identity, bool) {
	id, ok := i.verified.Get(sum)
	return id, ok && time.Now().Before(id.until)
}

// verify gives who a token is of, whose hash is sum. A token that proves nothing is fault.Unauthenticated, a provider that is away fault.Unavailable.
func (i *issuer) verify(ctx context.Context, token string, sum [sha256.Size]byte) (identity, error) {
	keys, err := i.reach()
	if err != nil {
		return identity{}, err
	}
	claims := jwt.MapClaims{}
	if _, err := i.parser.ParseWithClaims(token, claims, keys.KeyfuncCtx(ctx)); err != nil {
		return identity{}, fault.New(fault.Unauthenticated, "the token is not valid: %s", i.reason(err))
	}
	id := identity{}
	if id.principal, _ = claims[i.opt.PrincipalClaim].(string); id.principal == "" {
		return id, fault.New(fault.Unauthenticated, "the token has no claim %q that names its principal", i.opt.PrincipalClaim)
	}
	id.roles = rolesIn(claims, i.opt.RolesClaim)
	until, err := claims.GetExpirationTime()
	if err != nil || until == nil {
		return id, fault.New(fault.Unauthenticated, "the token has no expiry")
	}
	id.until = until.Add(i.opt.Skew)
	i.verified.Add(sum, id)
	return id, nil
}

// reason says what is wrong with a token, without its content.
func (i *issuer) reason(err error) string {
	for _, r := range []struct {
		is   error
		text string
	}{
		{jwt.ErrTokenExpired, "it has expired; log in again"},
		{jwt.ErrTokenNotValidYet, "it is not valid yet; do the clocks agree?"},
		{jwt.ErrTokenInvalidAudience, "it is meant for another audience than " + strings.Join(i.opt.Audience, ", ")},
		{jwt.ErrTokenInvalidIssuer, "it is of another issuer"},
		{jwt.ErrTokenRequiredClaimMissing, "it lacks an expiry or audience"},
		{jwt.ErrTokenUnverifiable, "its key is not among the issuer's"},
		{jwt.ErrTokenSignatureInvalid, "its signature or algorithm is not one that is taken"},
	} {
		if errors.Is(err, r.is) {
			return r.text
		}
	}
	return "its form is wrong"
}

// reach gives the provider's keys, which renew themselves once they were read.
func (i *issuer) reach() (keyfunc.Keyfunc, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	if time.Since(i.tried) < askAgain {
		return nil, i.last
	}
	i.tried = time.Now()
	keys, err := i.discover()
	if err != nil {
		i.last = fault.New(fault.Unavailable, "the identity provider cannot be asked: %v", err)
		i.opt.Log.Warn("identity provider cannot be asked", zap.String("issuer", i.opt.Issuer), zap.Error(err))
		return nil, i.last
	}
	i.keys = keys
	return keys, nil
}

func (i *issuer) discover() (keyfunc.Keyfunc, error) {
	ctx, cancel := context.WithTimeout(i.ctx, providerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(i.opt.Issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return nil, err
	}
	resp, err := i.opt.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var doc struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, providerBytes)).Decode(&doc)
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, fault.New(fault.Unavailable, "its configuration answers status %d", resp.StatusCode)
	case err != nil:
		return nil, fault.New(fault.Unavailable, "its configuration is no JSON document")
	case doc.Issuer != i.opt.Issuer:
		return nil, fault.New(fault.Invalid, "it says that it is %q", doc.Issuer)
	}
	strict := false
	return keyfunc.NewDefaultOverrideCtx(i.ctx, []string{doc.Keys}, keyfunc.Override{
		Client: i.opt.Client, HTTPTimeout: providerTimeout, RefreshInterval: keysEvery, NoErrorReturnFirstHTTPReq: &strict,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(askAgain), 1), RateLimitWaitMax: time.Millisecond,
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(_ context.Context, err error) {
				i.opt.Log.Warn("keys of the identity provider cannot be read again", zap.String("issuer", i.opt.Issuer), zap.Error(err))
			}
		},
	})
}

// rolesIn finds the roles in a claim, a list of texts or a text with blanks between. path may lead into objects.
func rolesIn(claims map[string]any, path string) []string {
	if path == "" {
		return nil
	}
	var at any = claims
	if v, whole := claims[path]; whole { // names of claims may hold dots themselves
		at = v
	} else {
		for _, step := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			if m == nil {
				if c, ok := at.(jwt.MapClaims); ok {
					m = c
				}
			}
			at = m[step]
		}
	}
	switch v := at.(type) {
	case string:
		return strings.Fields(v)
	case []any:
		var roles []string
		for _, r := range v {
			if text, ok := r.(string); ok {
				roles = append(roles, text)
			}
		}
		return roles
	}
	return nil
}
