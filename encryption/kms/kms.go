// Package kms holds the clients of key management services: AWS KMS, Google Cloud KMS, Azure Key Vault, the transit engine of
// Vault and OpenBao, and a key file.
//
// It unwraps and never wraps, keeps no unwrapped key (encryption.Keyring does), and calls no address that a table names: the
// configuration says where a service is. Errors tell apart what the service refused (fault.Denied), does not know
// (fault.NotFound), could not open (fault.Corrupt) and could not answer (fault.Unavailable), and hold no key, wrapped or not.
// Clients are safe for concurrent use.
package kms

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

// Properties configure a client, by the names that docs/encryption.md lists; where Iceberg has a name, it is Iceberg's.
type Properties map[string]string

// Provider is one kind of service.
type Provider struct {
	// Open opens the client, without connecting. What is wrong with the properties is fault.Invalid.
	Open func(ctx context.Context, p Properties) (encryption.KMS, error)
	// Properties are the names of those that Open reads. Others are refused: a misspelt one would leave a default in force.
	Properties []string
}

var providers = map[string]Provider{"aws": awsProvider, "azure": azureProvider, "gcp": gcpProvider, "local": localProvider, "vault": vaultProvider}

// Register adds a kind of service under a name in lower case. It is called before anything is opened.
func Register(kind string, p Provider) { providers[kind] = p }

// Knows reports whether the client of a kind reads the property of the name.
func Knows(kind, property string) bool {
	return slices.Contains(providers[strings.ToLower(kind)].Properties, property)
}

// Kinds lists the known kinds.
func Kinds() []string { return slices.Sorted(maps.Keys(providers)) }

// Open opens the client of a service. Kinds are taken in any case, as Iceberg's encryption.kms-type is.
func Open(ctx context.Context, kind string, p Properties) (encryption.KMS, error) {
	kind = strings.ToLower(kind)
	provider, ok := providers[kind]
	if !ok {
		return nil, fault.New(fault.Invalid, "key management service %q is not known; there are %s", kind, strings.Join(Kinds(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		if !Knows(kind, name) {
			return nil, fault.New(fault.Invalid, "key management service %s: %s is not known; there are %s", kind, name, strings.Join(provider.Properties, ", "))
		}
	}
	return provider.Open(ctx, p)
}

// anyone is the identity of principals that have none of their own.
const anyone = "*"

// Settings describe a service and who uses it under which identity.
type Settings struct {
	Kind       string
	Properties Properties
	// Identities give a principal properties of its own, over the others: a role, a token, a key file. When there are any, a
	// principal without one is refused, unless there is one of the name "*".
	Identities map[string]Properties
}

// Service is the function that a keyring asks for the client of a principal. Every client is opened at once, so that what is
// wrong is told at the start.
func (s Settings) Service(ctx context.Context) (func(context.Context, string) (encryption.KMS, error), error) {
	if len(s.Identities) == 0 {
		shared, err := Open(ctx, s.Kind, s.Properties)
		if err != nil {
			return nil, err
		}
		return func(context.Context, string) (encryption.KMS, error) { return shared, nil }, nil
	}
	clients := map[string]encryption.KMS{}
	for name, own := range s.Identities {
		p := maps.Clone(s.Properties)
		if p == nil {
			p = Properties{}
		}
		maps.Copy(p, own)
		c, err := Open(ctx, s.Kind, p)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "identity %q", name)
		}
		clients[name] = c
	}
	return func(_ context.Context, principal string) (encryption.KMS, error) {
		if c, ok := clients[principal]; ok && principal != anyone {
			return c, nil
		}
		if c, ok := clients[anyone]; ok {
			return c, nil
		}
		return nil, fault.New(fault.Denied, "principal %q has no identity at the key management service", principal)
	}, nil
}

// one gives the property of the name, or an error that it is missing.
func (p Properties) one(kind, name string) (string, error) {
	if p[name] == "" {
		return "", fault.New(fault.Invalid, "key management service %s needs %s", kind, name)
	}
	return p[name], nil
}

func (p Properties) ambient() bool { return strings.EqualFold(p["ambient-fallback"], "true") }

// failure makes an error of ours from the HTTP status of a service's answer, 0 when there was none. text is the service's own
// reason, which holds no key.
func failure(kind, keyID string, status int, text string) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fault.New(fault.Denied, "%s does not let the principal unwrap keys under master key %q: %s", kind, keyID, text)
	case http.StatusNotFound:
		return fault.New(fault.NotFound, "%s does not know master key %q: %s", kind, keyID, text)
	case http.StatusBadRequest:
		return fault.New(fault.Corrupt, "%s cannot unwrap a key under master key %q: %s", kind, keyID, text)
	}
	return fault.New(fault.Unavailable, "%s does not answer for master key %q: %s", kind, keyID, text)
}
