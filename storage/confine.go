package storage

import (
	"context"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Confine lets reads through only below the given prefixes, so that a table's metadata cannot name a file that the
// table has no business with. A path with a parent step (..) or a nested scheme is refused whatever its prefix.
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
	for _, prefix := range c.prefixes {
		if rest, ok := strings.CutPrefix(p, prefix); ok && (rest == "" || rest[0] == '/') {
			return nil
		}
	}
	return c.outside(path)
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
