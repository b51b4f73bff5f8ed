package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// auth gives the bearer token of each request: none, a fixed one, or one of OAuth2's client credentials flow that is asked
// for anew before it ends. It always asks with the catalog's own credential and never turns one identity into another.
type auth struct {
	c      *client
	fixed  credentials.Secret
	id     string
	secret credentials.Secret
	form   url.Values // scope, audience, resource
	server string
	now    func() time.Time

	busy    chan struct{} // guards what follows, and is held while a token is asked for
	current credentials.Secret
	renewAt time.Time
}

func newAuth(c *client, p map[string]string) *auth {
	a := &auth{c: c, fixed: credentials.NewSecret(p["token"]), now: time.Now, busy: make(chan struct{}, 1), form: url.Values{"scope": {"catalog"}}}
	if cred := p["credential"]; cred != "" {
		id, secret, ok := strings.Cut(cred, ":")
		if !ok {
			id, secret = "", cred
		}
		a.id, a.secret = id, credentials.NewSecret(secret)
	}
	for _, k := range []string{"scope", "audience", "resource"} {
		if v := p[k]; v != "" {
			a.form.Set(k, v)
		}
	}
	a.server = p["oauth2-server-uri"]
	if a.server == "" {
		a.server = "v1/oauth/tokens"
	}
	if !strings.Contains(a.server, "://") {
		a.server = c.base + strings.TrimPrefix(a.server, "/")
	}
	return a
}

func (a *auth) secrets() []credentials.Secret {
	return []credentials.Secret{a.fixed, a.secret}
}

// noun names what is presented, for messages.
func (a *auth) noun() string {
	switch {
	case !a.fixed.Empty():
		return "the token"
	case !a.secret.Empty():
		return "the token that the credential got"
	}
	return "requests without a token; set token or credential"
}

// token gives the token to present; empty when there is none.
func (a *auth) token(ctx context.Context) (credentials.Secret, error) {
	if a.secret.Empty() {
		return a.fixed, ctx.Err()
	}
	select {
	case a.busy <- struct{}{}:
		defer func() { <-a.busy }()
	case <-ctx.Done():
		return credentials.Secret{}, ctx.Err()
	}
	if !a.current.Empty() && a.now().Before(a.renewAt) {
		return a.current, nil
	}
	token, life, err := a.ask(ctx)
	if err != nil {
		return credentials.Secret{}, err
	}
	// A tenth of its life ahead, at most five minutes.
	a.current, a.renewAt = token, a.now().Add(life-min(life/10, 5*time.Minute))
	return token, nil
}

// refused tells that the server did not take a token, and reports whether there can be another.
func (a *auth) refused(token credentials.Secret) bool {
	if a.secret.Empty() {
		return false
	}
	a.busy <- struct{}{}
	if a.current == token {
		a.current = credentials.Secret{}
	}
	<-a.busy
	return true
}

// unknownLife is the life of a token that does not tell its own.
const unknownLife = time.Hour

const maxTokenAnswer = 1 << 20

// ask makes the token request (RFC 6749 section 4.4).
func (a *auth) ask(ctx context.Context) (credentials.Secret, time.Duration, error) {
	none := credentials.Secret{}
	form := url.Values{"grant_type": {"client_credentials"}, "client_secret": {a.secret.Reveal()}}
	if a.id != "" {
		form.Set("client_id", a.id)
	}
	for k, v := range a.form {
		form[k] = v
	}
	host := a.server
	if u, err := url.Parse(a.server); err == nil {
		host = u.Host
	}
	for tries := 0; ; tries++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.server, strings.NewReader(form.Encode()))
		if err != nil {
			return none, 0, fault.New(fault.Invalid, "catalog %s: oauth2-server-uri makes no valid URL", a.c.name)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Accept", "application/json")
		status, body, wait, err := a.c.do(r, maxTokenAnswer)
		if err != nil {
			if ctx.Err() != nil {
				return none, 0, ctx.Err()
			}
			return none, 0, a.c.unreachable(err, host)
		}
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable && wait > 0 {
			if tries < a.c.retries {
				if err := pause(ctx, max(wait, backoff(tries))); err != nil {
					return none, 0, err
				}
				continue
			}
		}
		var t struct {
			Token     string  `json:"access_token"`
			ExpiresIn float64 `json:"expires_in"`
			Error     string  `json:"error"`
		}
		wrong := json.Unmarshal(body, &t)
		said := a.c.clean(t.Error, none)
		switch {
		case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusBadRequest && said != "":
			return none, 0, fault.New(fault.Denied, "catalog %s: the token server at %s refuses the credential (%d %s)", a.c.name, host, status, said)
		case status/100 != 2:
			return none, 0, fault.New(fault.Unavailable, "catalog %s: the token server at %s answers %d", a.c.name, host, status)
		case wrong != nil || t.Token == "":
			return none, 0, fault.New(fault.Corrupt, "catalog %s: the token server at %s answers without a token", a.c.name, host)
		}
		life := unknownLife
		if t.ExpiresIn > 0 && t.ExpiresIn < 1e9 {
			life = time.Duration(t.ExpiresIn * float64(time.Second))
		}
		if exp, ok := expiryOf(t.Token); ok && exp.After(a.now()) {
			life = exp.Sub(a.now())
		}
		return credentials.NewSecret(t.Token), life, nil
	}
}

// expiryOf reads exp of a JSON web token, unverified: only its server needs to believe it.
func expiryOf(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1e11 {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}
