package storage

import (
	"context"
	"slices"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Confine lets reads through only below the given prefixes, so that a table's metadata cannot name a file that the
// table has no business with. A path with a parent step (..) or a nested scheme is refused whatever its prefix, and so is one
// that a symbolic link leads outside of all prefixes: who may write into a warehouse need not be who may read the machine.
func Confine(s Store, prefixes ...string) Store {
	c := &confined{next: s}
	for _, p := range prefixes {
		c.prefixes = append(c.prefixes, canonical(p))
	}
	return c
}

type confined struct {
	next     Store
	prefixes []string
}

// linked is a store whose paths may be symbolic links.
type linked interface {
	// resolve gives the path that links lead to.
	resolve(path string) (string, error)
}

// canonical brings spellings of one local path together: file:///x, file:/x and /x.
func canonical(path string) string {
	if p, err := LocalPath(path); err == nil {
		path = p
	}
	for strings.Contains(path, "//") && strings.HasPrefix(path, "/") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return strings.TrimSuffix(path, "/")
}

func (c *confined) check(path string) error {
	if path == "" {
		return fault.New(fault.Corrupt, "path is empty")
	}
	p := canonical(path)
	if !strings.HasPrefix(p, "/") && !strings.Contains(p, "://") {
		return fault.New(fault.Corrupt, "path %q is not absolute", path)
	}
	for _, step := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '\\' }) {
		if step == ".." {
			return c.outside(path)
		}
	}
	if !slices.ContainsFunc(c.prefixes, func(prefix string) bool { return below(p, prefix) }) {
		return c.outside(path)
	}
	return c.follow(path, p)
}

// below reports whether p is prefix or lies in it.
func below(p, prefix string) bool {
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// follow holds the place that links lead to against the prefixes, which may be links themselves.
func (c *confined) follow(path, p string) error {
	l, ok := c.next.(linked)
	if !ok {
		return nil
	}
	target, err := l.resolve(path)
	if err != nil || target == p {
		return nil // what cannot be followed cannot be opened either, which tells why
	}
	for _, prefix := range c.prefixes {
		if real, err := l.resolve(prefix); err == nil && below(target, real) {
			return nil
		}
	}
	return fault.New(fault.Denied, "path %s is a symbolic link, or lies behind one, that leads outside the locations that its table may read; allowed_prefixes of the catalog widen them", path)
}

func (c *confined) outside(path string) error {
	// Which locations those are is the operator's business: the message goes to whoever reads the table.
	return fault.New(fault.Denied, "path %s lies outside the locations that its table may read; allowed_prefixes or location_mapping of the catalog widen them", path)
}

func (c *confined) Open(ctx context.Context, path string, size int64) (Object, error) {
	if err := c.check(path); err != nil {
		return nil, err
	}
	return c.next.Open(ctx, path, size)
}

func (c *confined) Stat(ctx context.Context, path string) (Info, error) {
	if err := c.check(path); err != nil {
		return Info{}, err
	}
	return c.next.Stat(ctx, path)
}

func (c *confined) List(ctx context.Context, dir string) ([]Info, error) {
	if err := c.check(dir); err != nil {
		return nil, err
	}
	return c.next.List(ctx, dir)
}
