package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/skua-db/skua/fault"
)

// Local reads the machine's own file system. It takes plain absolute paths and file: URIs with one or three slashes.
type Local struct{}

// LocalPath strips the scheme of a file: URI. It fails with fault.Unsupported for another scheme and with
// fault.Invalid for a relative path or a URI that names another host.
func LocalPath(path string) (string, error) {
	scheme, rest, ok := strings.Cut(path, ":")
	if ok && !strings.ContainsAny(scheme, "/.") && len(scheme) > 1 {
		if !strings.EqualFold(scheme, "file") {
			return "", fault.New(fault.Unsupported, "path %s: scheme %s is not on this machine's file system", path, scheme)
		}
		if after, hasHost := strings.CutPrefix(rest, "//"); hasHost {
			host, tail, _ := strings.Cut(after, "/")
			if host != "" && !strings.EqualFold(host, "localhost") {
				return "", fault.New(fault.Invalid, "path %s names host %s", path, host)
			}
			rest = "/" + tail
		}
		// A file URI may carry percent escapes, but writers also put raw paths behind "file:"; the raw name wins when it exists.
		if strings.Contains(rest, "%") {
			if _, err := os.Lstat(rest); err != nil {
				if plain, err := url.PathUnescape(rest); err == nil {
					rest = plain
				}
			}
		}
		path = rest
	}
	if !strings.HasPrefix(path, "/") {
		return "", fault.New(fault.Invalid, "path %q is not absolute", path)
	}
	return path, nil
}

// Open implements Store. The size asked for is not trusted: the object tells the file's own.
func (Local) Open(ctx context.Context, path string, size int64) (Object, error) {
	p, err := LocalPath(path)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, localError(err, path)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fault.New(fault.Invalid, "path %s is a folder", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, localError(err, path)
	}
	return &localObject{path: path, f: f, size: st.Size()}, nil
}

// resolve implements linked.
func (Local) resolve(path string) (string, error) {
	p, err := LocalPath(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(p)
}

// Stat implements Store.
func (Local) Stat(_ context.Context, path string) (Info, error) {
	p, err := LocalPath(path)
	if err != nil {
		return Info{}, err
	}
	st, err := os.Stat(p)
	if err != nil {
		return Info{}, localError(err, path)
	}
	return Info{Path: path, Size: st.Size(), Modified: st.ModTime(), Dir: st.IsDir()}, nil
}

// List implements Store.
func (Local) List(ctx context.Context, dir string) ([]Info, error) {
	p, err := LocalPath(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return nil, localError(err, dir)
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		st, err := os.Stat(filepath.Join(p, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since, or a dangling link
		}
		if err != nil && e.Type()&fs.ModeSymlink != 0 {
			continue // a link that leads round in circles, or where this process may not go
		}
		if err != nil {
			return nil, localError(err, dir)
		}
		if st.IsDir() && e.Type()&fs.ModeSymlink != 0 && leadsUp(p, e.Name()) {
			continue
		}
		infos = append(infos, Info{Path: strings.TrimSuffix(dir, "/") + "/" + e.Name(), Size: st.Size(), Modified: st.ModTime(), Dir: st.IsDir()})
	}
	sort.SliceStable(infos, func(i, j int) bool { return infos[i].Dir && !infos[j].Dir })
	return infos, nil
}

// leadsUp reports whether the link called name in dir leads to dir or to a folder above it: following it would never end.
func leadsUp(dir, name string) bool {
	here, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return true
	}
	there, err := filepath.EvalSymlinks(filepath.Join(dir, name))
	return err != nil || here == there || strings.HasPrefix(here, strings.TrimSuffix(there, "/")+"/")
}

type localObject struct {
	path string
	f    *os.File
	size int64
}

func (o *localObject) Size() int64  { return o.size }
func (o *localObject) Close() error { return o.f.Close() }

func (o *localObject) ReadRanges(ctx context.Context, ranges []Range, dst [][]byte) error {
	for i, r := range ranges {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := checkRange(o.path, o.size, r); err != nil {
			return err
		}
		if _, err := o.f.ReadAt(dst[i][:r.Length], r.Offset); err != nil {
			if errors.Is(err, io.EOF) {
				return fault.New(fault.Corrupt, "object %s ended before byte %d", o.path, r.End())
			}
			return localError(err, o.path)
		}
	}
	return nil
}

// checkRange refuses a range that does not lie in an object of size bytes.
func checkRange(path string, size int64, r Range) error {
	if r.Offset < 0 || r.Length < 0 || r.Offset > size || r.Length > size-r.Offset {
		return fault.New(fault.Corrupt, "object %s has %d bytes, bytes %d to %d were asked for", path, size, r.Offset, r.End())
	}
	return nil
}

func localError(err error, path string) error {
	var e *fault.Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.NotFound, "object %s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return fault.New(fault.Denied, "object %s may not be read by this process", path)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.Wrap(fault.Unavailable, err, "object %s", path)
}
