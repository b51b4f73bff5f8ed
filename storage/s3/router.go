package s3

import (
	"context"
	"strings"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Ranges of an object that lie so near are fetched as one.
const (
	maxGap    = 1 << 20
	maxLength = 16 << 20
)

// router sends each path to the store of its scheme, confined to where the table may read.
type router struct {
	objects, local storage.Store
}

// Route makes the store of a table whose files may lie in S3 and on this machine. It confines S3 to inside and this machine's files
// to what the operator allows: a server's word opens no file here.
func Route(objects storage.Store, inside, operator []string) storage.Store {
	var remote, local []string
	for _, p := range inside {
		if IsPath(p) {
			remote = append(remote, Canonical(p))
		}
	}
	for _, p := range operator {
		if !strings.Contains(p, "://") || strings.HasPrefix(p, "file:") {
			local = append(local, p)
		}
	}
	return &router{storage.Confine(storage.Coalesce(objects, maxGap, maxLength), remote...), storage.Confine(storage.Local{}, local...)}
}

func (r *router) of(path string) (storage.Store, string, error) {
	if IsPath(path) {
		return r.objects, Canonical(path), nil
	}
	if scheme, _, ok := strings.Cut(path, "://"); ok && !strings.EqualFold(scheme, "file") {
		return nil, "", fault.New(fault.Unsupported, "path %s: scheme %s is not supported; s3, s3a, s3n and file are", path, scheme)
	}
	return r.local, path, nil
}

// Open implements storage.Store.
func (r *router) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	s, p, err := r.of(path)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, p, size)
}

// Stat implements storage.Store.
func (r *router) Stat(ctx context.Context, path string) (storage.Info, error) {
	s, p, err := r.of(path)
	if err != nil {
		return storage.Info{}, err
	}
	return s.Stat(ctx, p)
}

// List implements storage.Store.
func (r *router) List(ctx context.Context, dir string) ([]storage.Info, error) {
	s, p, err := r.of(dir)
	if err != nil {
		return nil, err
	}
	return s.List(ctx, p)
}
