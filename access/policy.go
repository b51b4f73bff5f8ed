// Package access decides what a principal may see: which catalogs, namespaces and tables exist for it, which columns of them, which
// rows, and what stands in place of values.
//
// It is the one hook for queries and metadata alike, a catalog.Catalog in front of another, so that what SELECT would refuse
// no listing shows. It evaluates nothing: filters and masks are SQL, which the planner binds to the table before anything of the
// statement sees its rows. A Source is safe for concurrent use.
package access

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
)

// Policy is a policy file: roles, and rules of which the first that matches a caller and a table decides. What no rule matches is
// not there for the caller.
type Policy struct {
	roles map[string][]string // by principal
	rules []rule
}

type rule struct {
	roles, principals         []*regexp.Regexp // empty: everybody
	catalog, namespace, table *regexp.Regexp
	namespacePrefix           string // what the namespace's pattern begins with, before its first star, in lower case
	// stars: the namespace's pattern has one; below: it ends with one, and all tables are meant; everything: it is nothing else.
	stars, below, everything bool
	deny                     bool
	access                   *catalog.Access // nil: all of the table
}

type document struct {
	Roles map[string][]string `yaml:"roles"`
	Rules []struct {
		Roles      []string          `yaml:"roles"`
		Principals []string          `yaml:"principals"`
		Catalog    string            `yaml:"catalog"`
		Namespace  string            `yaml:"namespace"`
		Table      string            `yaml:"table"`
		Deny       bool              `yaml:"deny"`
		Columns    []string          `yaml:"columns"`
		Hide       []string          `yaml:"hide"`
		Filter     string            `yaml:"filter"`
		Masks      map[string]string `yaml:"masks"`
	} `yaml:"rules"`
}

// Parse reads a policy. What it does not understand is fault.Invalid: a rule that is passed over could let somebody in.
func Parse(text []byte) (*Policy, error) {
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "policy: %v", err)
	}
	p := &Policy{roles: map[string][]string{}}
	for role, members := range d.Roles {
		for _, m := range members {
			p.roles[m] = append(p.roles[m], role)
		}
	}
	for i, r := range d.Rules {
		namespace, allTables := orStar(r.Namespace), orStar(r.Table) == "*"
		prefix, _, stars := strings.Cut(namespace, "*")
		out := rule{
			catalog: glob(r.Catalog), namespace: glob(namespace), table: glob(r.Table), deny: r.Deny, namespacePrefix: strings.ToLower(prefix),
			stars: stars, below: allTables && strings.HasSuffix(namespace, "*"), everything: allTables && namespace == "*",
		}
		for _, x := range r.Roles {
			out.roles = append(out.roles, glob(x))
		}
		for _, x := range r.Principals {
			out.principals = append(out.principals, glob(x))
		}
		wrong := func(format string, args ...any) error {
			return fault.Wrap(fault.Invalid, fault.New(fault.Invalid, format, args...), "policy: rule %d", i+1)
		}
		if len(r.Columns) > 0 || len(r.Hide) > 0 || r.Filter != "" || len(r.Masks) > 0 {
			out.access = &catalog.Access{Columns: r.Columns, Hidden: r.Hide, Filter: r.Filter, Masks: r.Masks}
		}
		switch {
		case r.Deny && out.access != nil:
			return nil, wrong("it denies, and says what may be seen")
		case len(r.Columns) > 0 && len(r.Hide) > 0:
			return nil, wrong("columns and hide exclude each other")
		}
		if r.Filter != "" {
			if _, err := sql.ParseExpr(r.Filter); err != nil {
				return nil, wrong("filter: %v", err)
			}
		}
		for column, mask := range r.Masks {
			if _, err := sql.ParseExpr(mask); err != nil {
				return nil, wrong("mask of %s: %v", column, err)
			}
		}
		p.rules = append(p.rules, out)
	}
	return p, nil
}

func orStar(pattern string) string {
	if pattern == "" {
		return "*"
	}
	return pattern
}

// glob compiles a pattern in which * stands for anything; an empty one matches all. Case counts not, as it does not in names.
func glob(pattern string) *regexp.Regexp {
	parts := strings.Split(orStar(pattern), "*")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`(?is)\A` + strings.Join(parts, ".*") + `\z`)
}

func matchesAny(patterns []*regexp.Regexp, names ...string) bool {
	return slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return slices.ContainsFunc(names, p.MatchString) })
}

// concerns reports whether the rule is about the caller.
func (r *rule) concerns(p *Policy, c credentials.Caller) bool {
	if len(r.roles) == 0 && len(r.principals) == 0 {
		return true
	}
	return matchesAny(r.principals, c.Name) || matchesAny(r.roles, p.roles[c.Name]...) || matchesAny(r.roles, c.Roles...)
}

// Table tells what the caller may see of a table: ok is false when it is not there for it, and the access nil when all of it is.
func (p *Policy) Table(c credentials.Caller, cat string, ns catalog.Namespace, name string) (a *catalog.Access, ok bool) {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.concerns(p, c) || !r.catalog.MatchString(cat) || !r.namespace.MatchString(ns.String()) || !r.table.MatchString(name) {
			continue
		}
		return r.access, !r.deny
	}
	return nil, false
}

// Namespace reports whether anything in or below a namespace may be there for the caller.
func (p *Policy) Namespace(c credentials.Caller, cat string, ns catalog.Namespace) bool {
	name := strings.ToLower(ns.String())
	for i := range p.rules {
		r := &p.rules[i]
		if !r.concerns(p, c) || !r.catalog.MatchString(cat) {
			continue
		}
		switch {
		case r.deny:
			if r.below && r.namespace.MatchString(name) {
				return false // all of it, and all below
			}
		case r.namespace.MatchString(name), strings.HasPrefix(r.namespacePrefix, name+"."), r.stars && strings.HasPrefix(name+".", r.namespacePrefix):
			return true
		}
	}
	return false
}

// Catalog reports whether anything in a catalog may be there for the caller.
func (p *Policy) Catalog(c credentials.Caller, cat string) bool {
	for i := range p.rules {
		r := &p.rules[i]
		if !r.concerns(p, c) || !r.catalog.MatchString(cat) {
			continue
		}
		if !r.deny {
			return true
		}
		if r.everything {
			return false
		}
	}
	return false
}
