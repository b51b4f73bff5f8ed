package catalog

import (
	"sort"
	"strings"
)

// LocationMapping rewrites path prefixes of table metadata (another mount, host or bucket) to the prefixes under
// which this server reads the same files. The longest matching prefix wins. The zero value maps every path to itself.
type LocationMapping struct {
	rules []mappingRule // longest From first
}

type mappingRule struct{ from, to string }

// NewLocationMapping makes a mapping from prefixes (keys) to prefixes (values).
func NewLocationMapping(prefixes map[string]string) LocationMapping {
	var m LocationMapping
	for from, to := range prefixes {
		m.rules = append(m.rules, mappingRule{strings.TrimSuffix(from, "/"), strings.TrimSuffix(to, "/")})
	}
	sort.Slice(m.rules, func(i, j int) bool {
		if a, b := len(m.rules[i].from), len(m.rules[j].from); a != b {
			return a > b
		}
		return m.rules[i].from < m.rules[j].from
	})
	return m
}

// Map gives the path to read for a path that metadata names. A prefix matches only at a path boundary.
func (m LocationMapping) Map(path string) string {
	for _, r := range m.rules {
		if rest, ok := strings.CutPrefix(path, r.from); ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(r.from, ":")) {
			return r.to + rest
		}
	}
	return path
}

// Empty reports whether the mapping maps every path to itself.
func (m LocationMapping) Empty() bool { return len(m.rules) == 0 }

// MapPrefix maps the beginning of paths, such as a bound that a writer cut short. ok is false when the paths that begin so may
// map by different rules, because a rule's prefix goes further than this one.
func (m LocationMapping) MapPrefix(prefix string) (mapped string, ok bool) {
	for _, r := range m.rules {
		if strings.HasPrefix(r.from, prefix) {
			return "", false
		}
	}
	return m.Map(prefix), true
}
