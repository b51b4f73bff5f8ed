package config

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/skua-db/skua/catalog/glue"
	"github.com/skua-db/skua/catalog/located"
	"github.com/skua-db/skua/catalog/rest"
	"github.com/skua-db/skua/catalog/sqldb"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/encryption/kms"
)

// KMSTypeProperty is Iceberg's catalog property that names the catalog's own key management service.
const KMSTypeProperty = "encryption.kms-type"

// risks are the words of encryption.accept.
var risks = map[string]func(*encryption.Risks){
	"unauthenticated-pages":       func(r *encryption.Risks) { r.UnauthenticatedPages = true },
	"plain-files":                 func(r *encryption.Risks) { r.PlainFiles = true },
	"plain-snapshots":             func(r *encryption.Risks) { r.PlainSnapshots = true },
	"unauthenticated-list-length": func(r *encryption.Risks) { r.UnauthenticatedListLength = true },
}

// Risks gives the risks that are accepted.
func (e Encryption) Risks() encryption.Risks {
	var r encryption.Risks
	for _, word := range e.Accept {
		if set, ok := risks[word]; ok {
			set(&r)
		}
	}
	return r
}

// Settings describes the key management service of a catalog with the given properties: its own, or the common one. ok is false
// when there is none.
func (k KMS) Settings(catalog map[string]string) (s kms.Settings, ok bool) {
	s.Identities = map[string]kms.Properties{}
	for principal, p := range k.Identities {
		s.Identities[principal] = p
	}
	if kind := catalog[KMSTypeProperty]; kind != "" {
		s.Kind, s.Properties = kind, kms.Properties{}
		for name, value := range catalog {
			if kms.Knows(kind, name) {
				s.Properties[name] = value
			}
		}
		return s, true
	}
	s.Kind, s.Properties = k.Type, maps.Clone(k.Properties)
	if k.KeyFile != "" {
		if s.Properties == nil {
			s.Properties = kms.Properties{}
		}
		s.Properties["key-file"] = k.KeyFile
	}
	return s, k.Type != ""
}

// catalogProperties are the names of the properties that a catalog of the type reads.
func catalogProperties(kind string) []string {
	switch kind {
	case "rest":
		return rest.Properties()
	case "hadoop":
		return append([]string{"type"}, located.PropertyNames()...)
	case "glue":
		return append(append([]string{"type"}, located.PropertyNames()...), glue.Properties...)
	case "sql":
		return append(append([]string{"type"}, located.PropertyNames()...), sqldb.Properties...)
	}
	return nil
}

// OwnProperties are the properties that the catalog itself reads: all but those that are its key management service's alone.
func (c Catalog) OwnProperties() map[string]string {
	kind := c.Properties[KMSTypeProperty]
	known := catalogProperties(c.Type)
	own := map[string]string{}
	for name, value := range c.Properties {
		if name != KMSTypeProperty && (kind == "" || !kms.Knows(kind, name) || slices.Contains(known, name)) {
			own[name] = value
		}
	}
	return own
}

func (e Encryption) check(fail func(key, format string, args ...any)) {
	k := e.KMS
	switch s, ok := k.Settings(nil); {
	case !ok && (k.KeyFile != "" || len(k.Properties) > 0 || len(k.Identities) > 0):
		fail("encryption.kms.type", "is missing; there are %s", strings.Join(kms.Kinds(), ", "))
	case ok:
		if _, err := s.Service(context.Background()); err != nil {
			fail("encryption.kms", "%v", err)
		}
	}
	if k.KeyLife <= 0 || k.Timeout <= 0 || k.Rate <= 0 {
		fail("encryption.kms", "key_life, timeout and rate must be more than nothing")
	}
	for _, word := range e.Accept {
		if _, ok := risks[word]; !ok {
			fail("encryption.accept", "%q is not known; there are %s", word, strings.Join(slices.Sorted(maps.Keys(risks)), ", "))
		}
	}
}
