// Package credentials says who may read what in an object store: static keys, keys that a catalog vends for a table and
// refreshes while it is read, and the process's own identity where a catalog allows it.
//
// It makes no request itself: whoever vends keys passes a function in. Nothing of it prints a secret. Providers are safe
// for concurrent use.
package credentials

import (
	"fmt"
	"time"
	"unique"

	"go.uber.org/zap/zapcore"
)

// redacted is what every rendering of a secret shows.
const redacted = "«redacted»"

// Secret is a text that no rendering shows: not by fmt in any verb, not in JSON, not in a log. It holds no text itself but a
// handle, because fmt does not call the methods of unexported fields and would show what stands in them. Equal texts make
// equal Secrets; the zero Secret is the empty text.
type Secret struct{ text unique.Handle[string] }

// NewSecret hides a text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{unique.Make(text)}
}

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s == Secret{} }

// Reveal gives the text itself, for the one place that signs or sends it.
func (s Secret) Reveal() string {
	if s.Empty() {
		return ""
	}
	return s.text.Value()
}

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, so that verbs such as %x and %q show nothing either.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// S3 is a key for an S3 store. The zero S3 is no key.
type S3 struct {
	AccessKeyID     Secret
	SecretAccessKey Secret
	SessionToken    Secret // empty for a key of a user
	// Expires is when the store stops accepting the key; zero when that is not known or never.
	Expires time.Time
}

// Usable reports whether a request can be signed with the key.
func (c S3) Usable() bool { return !c.AccessKeyID.Empty() && !c.SecretAccessKey.Empty() }

// String implements fmt.Stringer and says only until when the key lives.
func (c S3) String() string {
	if c.Expires.IsZero() {
		return "S3 key " + redacted
	}
	return "S3 key " + redacted + " until " + c.Expires.UTC().Format(time.RFC3339)
}

// GoString implements fmt.GoStringer.
func (c S3) GoString() string { return c.String() }

// Format implements fmt.Formatter.
func (c S3) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalText implements encoding.TextMarshaler.
func (c S3) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (c S3) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("key", redacted)
	if !c.Expires.IsZero() {
		e.AddTime("expires", c.Expires)
	}
	return nil
}
