package rest

import (
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/skua-db/skua/storage/s3"
)

// form is what a property's value looks like.
type form uint8

const (
	text form = iota
	address
	truth
	number
)

// known are the properties that a catalog reads, by Iceberg's names, and ambient-fallback.
var known = map[string]form{
	"type": text, "uri": address, "warehouse": text, "prefix": text,
	"rest.auth.type": text, "token": text, "credential": text, "oauth2-server-uri": address, "scope": text, "audience": text, "resource": text,
	"rest-page-size": number, "namespace-separator": text, "rest.client.max-retries": number,
	"client.region": text, "s3.region": text, "s3.endpoint": address, "s3.path-style-access": truth,
	"s3.access-key-id": text, "s3.secret-access-key": text, "s3.session-token": text,
	"s3.cross-region-access-enabled": truth, "s3.retry.num-retries": number, "s3.retry.min-wait-ms": number, "s3.retry.max-wait-ms": number,
	"client.refresh-credentials-enabled": truth, "ambient-fallback": truth, PassTokenProperty: truth,
	"client.assume-role.arn": text, "client.assume-role.external-id": text, "client.assume-role.region": text, "client.assume-role.session-name": text,
	"client.assume-role.timeout-sec": number, "client.assume-role.web-identity-token-file": text, "sts.endpoint": address,
}

// fromServer are the properties that a server may set. What is missing here and why: uri would send our token elsewhere,
// classes and proxies run what we did not choose, secrets of a catalog hold for all its tables.
var fromServer = map[string]bool{
	"prefix": true, "namespace-separator": true, "rest-page-size": true, "client.region": true, "s3.region": true, "s3.endpoint": true,
	"s3.path-style-access": true, "s3.cross-region-access-enabled": true, "client.refresh-credentials-enabled": true,
}

// Properties lists the names of the known properties in order.
func Properties() []string {
	names := make([]string, 0, len(known))
	for n := range known {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Check tells what is wrong with properties, in the order of their names.
func Check(p map[string]string, fail func(property, reason string)) {
	names := make([]string, 0, len(p))
	for n := range p {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		f, ok := known[n]
		v := p[n]
		switch {
		case strings.HasPrefix(n, "header.") && len(n) > len("header."):
		case !ok:
			fail(n, "is not a property of a rest catalog; there are header.<name>, "+strings.Join(Properties(), ", "))
		case f == truth && v != "true" && v != "false":
			fail(n, strconv.Quote(v)+" is neither true nor false")
		case f == number:
			if i, err := strconv.Atoi(v); err != nil || i < 0 {
				fail(n, strconv.Quote(v)+" is not a whole number from 0")
			}
		case f == address && v != "":
			relative := n == "oauth2-server-uri" && !strings.Contains(v, "://")
			if u, err := url.Parse(v); err != nil || !relative && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
				fail(n, "is not an http or https URL")
			} else if u.User != nil {
				fail(n, "holds a password; use credential or token")
			}
		}
	}
	if p["uri"] == "" {
		fail("uri", "is missing: the URL of the REST catalog, which ends before /v1")
	}
	switch p["rest.auth.type"] {
	case "", "oauth2":
	case "none":
		if p["token"] != "" || p["credential"] != "" {
			fail("rest.auth.type", "is none, and there is a token or credential")
		}
	default:
		fail("rest.auth.type", strconv.Quote(p["rest.auth.type"])+" is not supported; there are none and oauth2")
	}
	if p[PassTokenProperty] == "true" && (p["token"] != "" || p["credential"] != "") {
		fail(PassTokenProperty, "is true, and there is a token or credential: whose is to be shown?")
	}
	if p["token"] != "" && p["credential"] != "" {
		fail("token", "goes not with credential: which of the two should it be?")
	}
	if (p["s3.access-key-id"] == "") != (p["s3.secret-access-key"] == "") {
		fail("s3.access-key-id", "goes together with s3.secret-access-key")
	}
}

// plain drops properties that are null.
func plain(p map[string]*string) map[string]string {
	out := make(map[string]string, len(p))
	for k, v := range p {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

// allowed keeps the properties that a server may set.
func allowed(p map[string]*string) map[string]string {
	out := plain(p)
	for k := range out {
		if !fromServer[k] {
			delete(out, k)
		}
	}
	return out
}

// s3Options says how a table's objects are reached. What the operator wrote goes first, because a server behind another
// network may tell an address that only it can reach; then what the server says of the table, of its keys, of all.
func s3Options(operator map[string]string, l *loaded, s *session) s3.Options {
	sources := []map[string]string{operator, allowed(l.Config)}
	for _, g := range l.Credentials {
		sources = append(sources, allowed(g.Config))
	}
	sources = append(sources, s.properties)
	get := func(names ...string) string {
		for _, source := range sources {
			for _, n := range names {
				if v := source[n]; v != "" {
					return v
				}
			}
		}
		return ""
	}
	return s3.OptionsOf(operator, get)
}
