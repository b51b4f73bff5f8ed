package credentials

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/fault"
)

// Provider gives the key for one request. It is asked at each, so that a long scan outlives its first key.
type Provider interface {
	// Key gives a key that reads path. It may wait for a refresh. fault.Denied says that no key covers path, fault.Expired
	// that the one that did is dead and no other was to be had.
	Key(ctx context.Context, path string) (S3, error)
	// Refused tells that the store called key, used for path, expired: Key does not give it again.
	Refused(path string, key S3)
}

// Static gives one key for everything, as the operator configured it.
type Static struct{ key S3 }

// NewStatic makes a provider of one key.
func NewStatic(key S3) *Static { return &Static{key: key} }

// Key implements Provider.
func (s *Static) Key(context.Context, string) (S3, error) { return s.key, nil }

// Refused implements Provider: there is no other key.
func (s *Static) Refused(string, S3) {}

// None gives no key and says why.
type None struct{ Reason string }

// Key implements Provider.
func (n None) Key(_ context.Context, path string) (S3, error) {
	return S3{}, fault.New(fault.Denied, "object %s: %s", path, n.Reason)
}

// Refused implements Provider.
func (None) Refused(string, S3) {}

// Iceberg's names of what makes an S3 key.
const (
	accessKeyProperty = "s3.access-key-id"
	secretKeyProperty = "s3.secret-access-key"
	tokenProperty     = "s3.session-token"
	expiryProperty    = "s3.session-token-expires-at-ms"
)

// FromProperties reads an S3 key from Iceberg's properties; the result is not Usable when they hold none.
func FromProperties(p map[string]string) S3 {
	c := S3{AccessKeyID: NewSecret(p[accessKeyProperty]), SecretAccessKey: NewSecret(p[secretKeyProperty]), SessionToken: NewSecret(p[tokenProperty])}
	if ms, err := strconv.ParseInt(p[expiryProperty], 10, 64); err == nil && ms > 0 {
		c.Expires = time.UnixMilli(ms)
	}
	return c
}

// canonical brings the spellings of S3's scheme together, for comparing paths only.
func canonical(path string) string {
	scheme, rest, ok := strings.Cut(path, ":")
	switch {
	case ok && (scheme == "s3a" || scheme == "s3n"):
		return "s3:" + rest
	case !ok && (path == "s3a" || path == "s3n"):
		return "s3"
	}
	return path
}

// covers reports whether prefix covers path, both canonical. A prefix ends at a path boundary: s3://b/a does not cover
// s3://b/ab. A bare scheme is a legal prefix and covers all its paths.
func covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || prefix == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/' || rest[0] == ':')
}
