// Package spill keeps rows on disk that memory does not hold: a Disk for the process, an Area for each query, Files of
// compressed frames.
//
// It decides nothing about when to spill, and its files are no format: only the process that wrote one reads it. A Disk and an Area may
// be used by many goroutines, a File by one writer and, once it is finished, by many readers.
package spill

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/skua-db/skua/fault"
)

const prefix = "skua-spill-"

// Disk is a folder that this process owns below a directory of temporary files, and a quota for what is in it.
type Disk struct {
	dir  string
	max  int64 // 0: no quota
	used atomic.Int64

	// BeforeWrite, when set, is asked before bytes are written and may refuse them. Tests make full disks with it.
	BeforeWrite func(bytes int) error

	mu    sync.Mutex
	own   string // the folder; empty until the first file is made
	lock  *os.File
	areas int
}

// Open prepares spilling below dir (empty: the system's directory for temporary files) of at most maxBytes at once (0: no
// quota). Folders that processes left there which have died are removed. Nothing is created before the first file.
func Open(dir string, maxBytes int64) *Disk {
	if dir == "" {
		dir = os.TempDir()
	}
	sweep(dir)
	return &Disk{dir: dir, max: maxBytes}
}

// Used is the number of bytes on disk now.
func (d *Disk) Used() int64 { return d.used.Load() }

// Close removes the folder. No Area may be in use.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.own == "" {
		return nil
	}
	err := os.RemoveAll(d.own)
	_ = d.lock.Close()
	d.own = ""
	return err
}

// sweep removes the folders whose lock nobody holds.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
		if err != nil {
			continue // being made, or not ours
		}
		if tryLock(f) {
			_ = os.RemoveAll(path)
		}
		_ = f.Close()
	}
}

// folder makes this process's folder.
func (d *Disk) folder() (string, error) {
	if d.own != "" {
		return d.own, nil
	}
	own, err := os.MkdirTemp(d.dir, prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", d.failed(err)
	}
	f, err := os.OpenFile(filepath.Join(own, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		_ = os.RemoveAll(own)
		return "", d.failed(err)
	}
	tryLock(f)
	d.own, d.lock = own, f
	return own, nil
}

func (d *Disk) failed(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.WithID(fault.Exhausted, "SPILL_DISK_FULL", "the disk of limits.spill.dir (%s) is full after %d bytes of temporary files: make room there, or raise limits.query.memory so that less is written", d.dir, d.used.Load())
	}
	return fault.Wrap(fault.Unavailable, err, "temporary file below limits.spill.dir (%s)", d.dir)
}

// take counts n bytes against the quota.
func (d *Disk) take(n int64) error {
	if now := d.used.Add(n); d.max > 0 && now > d.max {
		d.used.Add(-n)
		return fault.WithID(fault.Exhausted, "SPILL_LIMIT", "temporary files would grow to %d bytes, but limits.spill.max is %d: raise it, or raise limits.query.memory so that less is written", now, d.max)
	}
	return nil
}

// Area is the folder of one query; it is made with its first file.
type Area struct {
	d   *Disk
	mu  sync.Mutex
	dir string
	n   int

	files map[*File]struct{}
}

// Area starts the temporary files of a query.
func (d *Disk) Area() *Area { return &Area{d: d, files: map[*File]struct{}{}} }

// Close closes and removes every file. Nobody may be reading or writing.
func (a *Area) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.files {
		f.drop()
	}
	a.files = map[*File]struct{}{}
	if a.dir != "" {
		_ = os.RemoveAll(a.dir)
		a.dir = ""
	}
}

// File makes an empty file.
func (a *Area) File() (*File, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == "" {
		a.d.mu.Lock()
		own, err := a.d.folder()
		a.d.areas++
		dir := filepath.Join(own, "query-"+strconv.Itoa(a.d.areas))
		a.d.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, a.d.failed(err)
		}
		a.dir = dir
	}
	a.n++
	f, err := os.OpenFile(filepath.Join(a.dir, strconv.Itoa(a.n)), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, a.d.failed(err)
	}
	out := &File{a: a, f: f}
	a.files[out] = struct{}{}
	return out, nil
}
