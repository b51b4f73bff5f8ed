package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage/s3"
)

// maxAnswer is the longest answer that is read: a table's metadata with room for what stands around it.
const maxAnswer = catalog.MaxMetadataBytes + 1<<20

// client speaks HTTP with the server.
type client struct {
	name    string // of the catalog
	base    string // URL that ends in a slash
	host    string
	headers http.Header
	http    *http.Client
	auth    *auth
	retries int
	// secrets are cut out of what the server says before it is repeated.
	secrets []credentials.Secret
}

func newClient(name string, p map[string]string) *client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: s3.Dialer().DialContext, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 64,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute,
	}
	c := &client{
		name: name, base: strings.TrimSuffix(p["uri"], "/") + "/", headers: http.Header{}, retries: 5,
		// A redirect is not followed: it would carry the token to a host that nobody chose.
		http: &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	c.base = strings.TrimSuffix(c.base, "v1/") // people copy it with or without
	if u, err := url.Parse(c.base); err == nil {
		c.host = u.Host
	}
	for k, v := range p {
		if h, ok := strings.CutPrefix(k, "header."); ok {
			c.headers.Set(h, v)
			c.secrets = append(c.secrets, credentials.NewSecret(v))
		}
	}
	if n, err := strconv.Atoi(p["rest.client.max-retries"]); err == nil {
		c.retries = n
	}
	c.auth = newAuth(c, p)
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get fetches a path below the base and reads its JSON into out. what names the thing for messages.
func (c *client) get(ctx context.Context, path string, q url.Values, h http.Header, what string, out any) error {
	renewed := false
	for tries := 0; ; tries++ {
		token, err := c.auth.token(ctx)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
		if err != nil {
			return fault.New(fault.Invalid, "catalog %s: %s makes no valid URL", c.name, what)
		}
		r.URL.RawQuery = q.Encode()
		for _, set := range []http.Header{c.headers, h} {
			for k, v := range set {
				r.Header[k] = v
			}
		}
		r.Header.Set("Accept", "application/json")
		if !token.Empty() {
			r.Header.Set("Authorization", "Bearer "+token.Reveal())
		}
		status, body, wait, err := c.do(r, maxAnswer)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !transient(err):
			return c.unreachable(err, c.host)
		case err == nil && status/100 == 2:
			if err := json.Unmarshal(body, out); err != nil {
				return fault.New(fault.Corrupt, "catalog %s: the answer to %s is not what the REST specification says: %v", c.name, what, err)
			}
			return nil
		case err == nil && (status == http.StatusUnauthorized || status == 419) && !renewed && c.auth.refused(token):
			renewed = true
			continue
		case err == nil && !retriable(status):
			return c.refusal(status, body, what, token)
		case tries >= c.retries && err != nil:
			return c.unreachable(err, c.host)
		case tries >= c.retries:
			return c.refusal(status, body, what, token)
		}
		if err := pause(ctx, max(wait, backoff(tries))); err != nil {
			return err
		}
	}
}

func retriable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// backoff doubles from 100 ms to 5 s.
func backoff(tries int) time.Duration {
	d := min(100*time.Millisecond<<min(tries, 10), 5*time.Second)
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do makes one request and reads the answer.
func (c *client) do(r *http.Request, limit int64) (status int, body []byte, wait time.Duration, err error) {
	res, err := c.http.Do(r)
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return 0, nil, 0, err
	}
	if int64(len(body)) > limit {
		return 0, nil, 0, fault.New(fault.Exhausted, "catalog %s: an answer is longer than %d bytes", c.name, limit)
	}
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		wait = time.Duration(min(n, 60)) * time.Second
	} else if t, err := http.ParseTime(res.Header.Get("Retry-After")); err == nil {
		wait = max(0, min(time.Until(t), time.Minute))
	}
	return res.StatusCode, body, wait, nil
}

// transient reports whether an error below HTTP may pass: a connection that broke, not a host that is not there.
func transient(err error) bool {
	var f *fault.Error
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &f), errors.As(err, &dns):
		return false
	case errors.As(err, &op):
		return op.Op == "read" || op.Op == "write"
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// unreachable says in one sentence why no answer came.
func (c *client) unreachable(err error, host string) error {
	var f *fault.Error
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &f):
		return fault.Wrap(f.Kind, f, "catalog %s", c.name)
	case errors.As(err, &dns):
		return fault.New(fault.Unavailable, "catalog %s: the host %s is not known", c.name, dns.Name)
	case errors.As(err, &op):
		return fault.New(fault.Unavailable, "catalog %s: the server at %s does not answer: %v", c.name, host, op.Err)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the URL around it may hold what was asked for
	}
	return fault.New(fault.Unavailable, "catalog %s: the server at %s does not answer: %v", c.name, host, err)
}

// refusal turns an answer that is no success into an error of its kind.
func (c *client) refusal(status int, body []byte, what string, token credentials.Secret) error {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &e) // proxies answer in HTML
	said := strconv.Itoa(status)
	if t := c.clean(e.Error.Type, token); t != "" {
		said += " " + t
	}
	if m := c.clean(e.Error.Message, token); m != "" {
		said += ", " + m
	}
	switch {
	case status == http.StatusUnauthorized || status == 419:
		return fault.New(fault.Denied, "catalog %s: the server at %s does not accept %s (%d)", c.name, c.host, c.auth.noun(), status)
	case status == http.StatusForbidden:
		return fault.New(fault.Denied, "catalog %s: the server at %s does not let this catalog's identity read %s (%s)", c.name, c.host, what, said)
	case status == http.StatusNotFound:
		return fault.New(fault.NotFound, "catalog %s: the server at %s has not found %s (%s)", c.name, c.host, what, said)
	case status == http.StatusNotAcceptable, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return fault.New(fault.Unsupported, "catalog %s: the server at %s does not serve %s (%s)", c.name, c.host, what, said)
	case status == http.StatusBadRequest:
		return fault.New(fault.Invalid, "catalog %s: the server at %s does not understand the request for %s (%s)", c.name, c.host, what, said)
	case status/100 == 3:
		return fault.New(fault.Unavailable, "catalog %s: the server at %s redirects (%d), which is not followed; set uri to where it leads", c.name, c.host, status)
	}
	return fault.New(fault.Unavailable, "catalog %s: the server at %s failed at %s (%s)", c.name, c.host, what, said)
}

const maxSaid = 200 // characters of a server's message that are repeated

// clean prepares a server's words for a message: one line, short, without our secrets.
func (c *client) clean(text string, token credentials.Secret) string {
	for _, s := range append(append([]credentials.Secret{token}, c.secrets...), c.auth.secrets()...) {
		if !s.Empty() {
			text = strings.ReplaceAll(text, s.Reveal(), "«redacted»")
		}
	}
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))), " ")
	if r := []rune(text); len(r) > maxSaid {
		text = string(r[:maxSaid]) + "..."
	}
	return text
}
