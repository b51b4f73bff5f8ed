// Package reload keeps what was made of files that may change while the server runs: a policy, a certificate.
//
// It watches nothing in the background: whoever asks looks at the files, at most once a second. A Value is safe for concurrent use.
package reload

import (
	"os"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Value is what read last made of some files.
type Value[T any] struct {
	paths []string
	read  func() (T, error)
	log   *zap.Logger

	mu      sync.Mutex
	looked  time.Time
	stamps  []stamp
	value   T
	version uint64
}

type stamp struct {
	changed time.Time
	size    int64
}

// lookEvery is how often the files are looked at.
const lookEvery = time.Second

// Open reads the files for the first time. Later on, files that cannot be used leave the last value in force, and the log says so.
func Open[T any](log *zap.Logger, read func() (T, error), paths ...string) (*Value[T], error) {
	v := &Value[T]{paths: paths, read: read, log: log, stamps: make([]stamp, len(paths))}
	return v, v.again(v.stampsNow())
}

// stampsNow tells when the files changed; one that is not there has the zero stamp.
func (v *Value[T]) stampsNow() []stamp {
	out := make([]stamp, len(v.paths))
	for i, p := range v.paths {
		if info, err := os.Stat(p); err == nil {
			out[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return out
}

func (v *Value[T]) again(now []stamp) error {
	copy(v.stamps, now)
	made, err := v.read()
	if err != nil {
		return err
	}
	v.value = made
	v.version++
	return nil
}

// Get gives the value in force, and a number that changes with it.
func (v *Value[T]) Get() (T, uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); now.Sub(v.looked) >= lookEvery {
		v.looked = now
		v.look()
	}
	return v.value, v.version
}

// Look looks at the files whenever they were last looked at.
func (v *Value[T]) Look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.look()
}

func (v *Value[T]) look() {
	now, changed := v.stampsNow(), false
	for i, s := range now {
		changed = changed || s != v.stamps[i]
	}
	if !changed {
		return
	}
	names := zap.String("files", strings.Join(v.paths, ", "))
	if err := v.again(now); err != nil {
		v.log.Error("what changed cannot be used; the last version stays in force", names, zap.Error(err))
		return
	}
	v.log.Info("read again", names)
}
