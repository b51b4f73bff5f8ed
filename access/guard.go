package access

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// Source is a policy file that may change while the server runs. A file that cannot be read any more leaves the last policy in force.
type Source struct {
	path string
	log  *zap.Logger

	current atomic.Pointer[Policy]
	version atomic.Uint64

	mu     sync.Mutex
	looked time.Time
	stamp  stamp
}

type stamp struct {
	changed time.Time
	size    int64
}

// lookEvery is how often the file is looked at.
const lookEvery = time.Second

// Open reads a policy file.
func Open(path string, log *zap.Logger) (*Source, error) {
	s := &Source{path: path, log: log}
	if err := s.read(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Source) read() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "policy file")
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "policy file")
	}
	p, err := Parse(text)
	s.stamp = stamp{info.ModTime(), info.Size()}
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "policy file %s", s.path)
	}
	s.current.Store(p)
	s.version.Add(1)
	return nil
}

// Policy is the policy in force.
func (s *Source) Policy() *Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= lookEvery {
		s.looked = now
		if info, err := os.Stat(s.path); err == nil && (stamp{info.ModTime(), info.Size()}) != s.stamp {
			if err := s.read(); err != nil {
				s.log.Error("the changed policy cannot be used; the last one stays in force", zap.Error(err))
			} else {
				s.log.Info("policy read again", zap.String("file", s.path))
			}
		}
	}
	return s.current.Load()
}

// Version changes with the policy: what was planned under another one is planned again.
func (s *Source) Version() uint64 {
	s.Policy()
	return s.version.Load()
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
