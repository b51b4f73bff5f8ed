package expr

import (
	"net/url"
	"strconv"
	"strings"
)

func init() {
	part := func(name, doc string, f func(u *url.URL) (string, bool)) {
		def(name, "(varchar) varchar", doc, fn1(func(_ *evalCall, s string) (string, error) {
			u, err := parseURL(s)
			if err != nil {
				return "", errNull
			}
			x, ok := f(u)
			if !ok {
				return "", errNull
			}
			return x, nil
		}), mayNull)
	}
	part("url_extract_protocol", "the protocol of a URL", func(u *url.URL) (string, bool) { return u.Scheme, true })
	part("url_extract_host", "the host of a URL", func(u *url.URL) (string, bool) { return hostOf(u), true })
	part("url_extract_path", "the path of a URL", func(u *url.URL) (string, bool) { return u.Path, true })
	part("url_extract_query", "the query of a URL", func(u *url.URL) (string, bool) { return unescaped(u.RawQuery), true })
	part("url_extract_fragment", "the fragment of a URL", func(u *url.URL) (string, bool) { return u.Fragment, true })
	def("url_extract_port", "(varchar) bigint", "the port of a URL", fn1(func(_ *evalCall, s string) (int64, error) {
		u, err := parseURL(s)
		if err != nil {
			return 0, errNull
		}
		n, err := strconv.ParseInt(u.Port(), 10, 64)
		if err != nil {
			return 0, errNull
		}
		return n, nil
	}), mayNull)
	def("url_extract_parameter", "(varchar, varchar) varchar", "a parameter of a URL's query", fn2(func(_ *evalCall, s, name string) (string, error) {
		u, err := parseURL(s)
		if err != nil {
			return "", errNull
		}
		for _, kv := range strings.Split(u.RawQuery, "&") {
			k, v, _ := strings.Cut(kv, "=")
			if dk, err := url.QueryUnescape(k); err == nil && dk == name {
				if dv, err := url.QueryUnescape(v); err == nil {
					return dv, nil
				}
			}
		}
		return "", errNull
	}), mayNull)
	def("url_encode", "(varchar) varchar", "escaped for a URL's query", fn1(func(_ *evalCall, s string) (string, error) { return url.QueryEscape(s), nil }))
	def("url_decode", "(varchar) varchar", "unescaped from a URL's query", fn1(func(_ *evalCall, s string) (string, error) {
		x, err := url.QueryUnescape(s)
		if err != nil {
			return "", badArgument("url_decode: %v", err)
		}
		return x, nil
	}))
}

// parseURL reads a URI of RFC 2396, whose characters it does not escape; url.Parse is more lenient.
func parseURL(s string) (*url.URL, error) {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f || strings.IndexByte("<>\"{}|\\^`", c) >= 0 {
			return nil, errNull
		}
	}
	return url.Parse(s)
}

// hostOf keeps the brackets of an IPv6 address.
func hostOf(u *url.URL) string {
	if h := u.Hostname(); !strings.Contains(h, ":") {
		return h
	}
	return "[" + u.Hostname() + "]"
}

func unescaped(s string) string {
	if t, err := url.PathUnescape(s); err == nil {
		return t
	}
	return s
}
