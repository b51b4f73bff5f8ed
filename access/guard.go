package access

import (
	"context"
	"os"

	"go.uber.org/zap"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/reload"
)

// Source is a policy file that may change while the server runs. A file that cannot be read any more leaves the last policy in force.
type Source struct{ file *reload.Value[*Policy] }

// Open reads a policy file.
func Open(path string, log *zap.Logger) (*Source, error) {
	file, err := reload.Open(log, func() (*Policy, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "policy file")
		}
		p, err := Parse(text)
		return p, fault.Wrap(fault.Invalid, err, "policy file %s", path)
	}, path)
	return &Source{file}, err
}

// Policy is the policy in force.
func (s *Source) Policy() *Policy {
	p, _ := s.file.Get()
	return p
}

// Version changes with the policy: what was planned under another one is planned again.
func (s *Source) Version() uint64 {
	_, version := s.file.Get()
	return version
}

// Guard puts the policy in front of a catalog. Who asks is the caller of the context.
func Guard(c catalog.Catalog, s *Source) catalog.Catalog { return &guarded{c, s} }

type guarded struct {
	catalog.Catalog
	policy *Source
}

// Visible implements catalog.Hider.
func (g *guarded) Visible(ctx context.Context) bool {
	return g.policy.Policy().Catalog(credentials.CallerOf(ctx), g.Name())
}

// Namespaces implements catalog.Catalog.
func (g *guarded) Namespaces(ctx context.Context, parent catalog.Namespace) ([]catalog.Namespace, error) {
	p, caller := g.policy.Policy(), credentials.CallerOf(ctx)
	if len(parent) > 0 && !p.Namespace(caller, g.Name(), parent) {
		return nil, g.noNamespace(parent)
	}
	all, err := g.Catalog.Namespaces(ctx, parent)
	if err != nil {
		return nil, err
	}
	seen := all[:0:0]
	for _, ns := range all {
		if p.Namespace(caller, g.Name(), ns) {
			seen = append(seen, ns)
		}
	}
	return seen, nil
}

// Tables implements catalog.Catalog.
func (g *guarded) Tables(ctx context.Context, ns catalog.Namespace) ([]string, error) {
	p, caller := g.policy.Policy(), credentials.CallerOf(ctx)
	if !p.Namespace(caller, g.Name(), ns) {
		return nil, g.noNamespace(ns)
	}
	all, err := g.Catalog.Tables(ctx, ns)
	if err != nil {
		return nil, err
	}
	seen := all[:0:0]
	for _, name := range all {
		if _, ok := p.Table(caller, g.Name(), ns, name); ok {
			seen = append(seen, name)
		}
	}
	return seen, nil
}

func (g *guarded) noNamespace(ns catalog.Namespace) error {
	return fault.New(fault.NotFound, "catalog %s: namespace %q does not exist", g.Name(), ns.String())
}

// Load implements catalog.Catalog.
func (g *guarded) Load(ctx context.Context, ns catalog.Namespace, name string) (*catalog.Table, error) {
	a, ok := g.policy.Policy().Table(credentials.CallerOf(ctx), g.Name(), ns, name)
	if !ok {
		return nil, fault.New(fault.NotFound, "table %s.%s.%s does not exist", g.Name(), ns, name)
	}
	t, err := g.Catalog.Load(ctx, ns, name)
	if err != nil || a == nil {
		return t, err
	}
	c := *t
	c.Access = a
	return &c, nil
}

// Connect proves that the catalog's server, if it has one, lets it in.
func (g *guarded) Connect(ctx context.Context) error {
	if remote, ok := g.Catalog.(interface{ Connect(context.Context) error }); ok {
		return remote.Connect(ctx)
	}
	return nil
}
