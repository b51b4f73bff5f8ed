package credentials

import (
	"context"
	"sort"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/skua-db/skua/fault"
)

// Grant is what a catalog vends: properties that hold for paths below a prefix (REST specification, StorageCredential).
type Grant struct {
	Prefix string
	Config map[string]string
}

// Fetch asks the catalog for grants anew.
type Fetch func(ctx context.Context) ([]Grant, error)

const (
	// unknownLife is how long a key without a told expiry is used before another is asked for.
	unknownLife = 5 * time.Minute
	// fetchTimeout bounds one refresh, which goes on when the reader that began it leaves.
	fetchTimeout = 30 * time.Second
	// longestBackoff is the longest pause between refreshes that fail.
	longestBackoff = 30 * time.Second
)

// Vended gives the keys that a catalog vended to one principal for one table. All prefixes are kept and the longest that
// covers a path wins. Keys are renewed ahead of their expiry by one fetch at a time; a fetch that fails leaves a key that
// still lives in use.
type Vended struct {
	table string // for messages
	fetch Fetch
	now   func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	grants []grant // longest prefix first
	// retryAt is when the next refresh may be tried after one that failed with failure.
	retryAt time.Time
	failure error
}

type grant struct {
	prefix  string // canonical
	key     S3
	fetched time.Time
	dead    bool // the store said so
}

// NewVended makes a provider for the grants that came with a table, named in messages by its full name. fetch may be nil
// when the catalog gives no others.
func NewVended(table string, grants []Grant, fetch Fetch) *Vended {
	v := &Vended{table: table, fetch: fetch, now: time.Now}
	v.Install(grants)
	return v
}

// Install replaces the grants by newer ones and tells whether it did: grants without a usable key among them are left
// aside, whatever else they hold.
func (v *Vended) Install(grants []Grant) bool {
	now := v.now()
	var usable []grant
	for _, g := range grants {
		if key := FromProperties(g.Config); key.Usable() {
			usable = append(usable, grant{prefix: canonical(g.Prefix), key: key, fetched: now})
		}
	}
	if len(usable) == 0 {
		return false
	}
	sort.SliceStable(usable, func(i, j int) bool { return len(usable[i].prefix) > len(usable[j].prefix) })
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range usable {
		// The same key again is no news: its clock does not start anew, and when the store refused it, it stays refused.
		for _, old := range v.grants {
			if old.key == usable[i].key && old.prefix == usable[i].prefix {
				usable[i].fetched, usable[i].dead = old.fetched, old.dead
			}
		}
	}
	v.grants, v.retryAt, v.failure = usable, time.Time{}, nil
	return true
}

// state says what to do about a key.
type state uint8

const (
	fresh state = iota
	due         // lives, and should be renewed
	over        // must not be used
)

func (g grant) state(now time.Time) state {
	if g.dead {
		return over
	}
	expires := g.key.Expires
	if expires.IsZero() {
		if now.Before(g.fetched.Add(unknownLife)) {
			return fresh
		}
		return due
	}
	// Five minutes or a tenth of the life ahead, whichever is more, but never more than a fifth of a short life: each key
	// is renewed once, and most of it is used.
	life := expires.Sub(g.fetched)
	ahead := min(max(5*time.Minute, life/10), life/5)
	switch {
	case !now.Before(expires):
		return over
	case !now.Before(expires.Add(-ahead)):
		return due
	}
	return fresh
}

func (v *Vended) find(path string) (grant, bool) {
	p := canonical(path)
	for _, g := range v.grants {
		if covers(g.prefix, p) {
			return g, true
		}
	}
	return grant{}, false
}

// Key implements Provider.
func (v *Vended) Key(ctx context.Context, path string) (S3, error) {
	if err := ctx.Err(); err != nil {
		return S3{}, err
	}
	v.mu.Lock()
	g, ok := v.find(path)
	retryAt, failure := v.retryAt, v.failure
	v.mu.Unlock()
	if !ok {
		return S3{}, fault.New(fault.Denied, "table %s: the catalog vended no S3 key that covers %s", v.table, path)
	}
	now := v.now()
	s := g.state(now)
	if s != over {
		if s == due && v.fetch != nil && !now.Before(retryAt) {
			v.begin(ctx, g) // nobody waits for it while the key lives
		}
		return g.key, nil
	}
	err := failure
	if !now.Before(retryAt) {
		err = v.refresh(ctx, g)
	}
	if err != nil && ctx.Err() != nil {
		return S3{}, ctx.Err()
	}
	v.mu.Lock()
	g, ok = v.find(path)
	v.mu.Unlock()
	switch {
	case !ok:
		return S3{}, fault.New(fault.Denied, "table %s: the catalog vended no S3 key that covers %s when it renewed them", v.table, path)
	case g.state(v.now()) != over:
		return g.key, nil
	case err != nil:
		return S3{}, fault.Wrap(fault.Unavailable, err, "table %s: the S3 key has expired and could not be renewed", v.table)
	}
	return S3{}, fault.New(fault.Expired, "table %s: the catalog vends an S3 key that has expired; compare its clock with this machine's", v.table)
}

// refresh fetches grants and waits, one fetch at a time for all readers. Whoever comes with a grant that was replaced in the meantime
// fetches nothing.
func (v *Vended) refresh(ctx context.Context, stale grant) error {
	if v.fetch == nil {
		return fault.New(fault.Expired, "the catalog gives no way to renew it")
	}
	select {
	case r := <-v.begin(ctx, stale):
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts a fetch unless one runs.
func (v *Vended) begin(ctx context.Context, stale grant) <-chan singleflight.Result {
	return v.flight.DoChan("", func() (any, error) {
		v.mu.Lock()
		current := true
		for _, g := range v.grants {
			if g.prefix == stale.prefix {
				current = g.key == stale.key
			}
		}
		v.mu.Unlock()
		if !current {
			return nil, nil
		}
		fctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		grants, err := v.fetch(fctx)
		if err == nil && !v.Install(grants) {
			err = fault.New(fault.Denied, "the catalog answered without a usable S3 key")
		}
		if err != nil {
			v.mu.Lock()
			v.retryAt, v.failure = v.now().Add(backoff(stale, v.now())), err
			v.mu.Unlock()
		}
		return nil, err
	})
}

// backoff is the pause after a refresh that failed: short enough to try again several times while the key lives.
func backoff(g grant, now time.Time) time.Duration {
	if g.key.Expires.IsZero() {
		return longestBackoff
	}
	return min(longestBackoff, max(g.key.Expires.Sub(now)/4, 50*time.Millisecond))
}

// Refused implements Provider.
func (v *Vended) Refused(path string, key S3) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := canonical(path)
	for i, g := range v.grants {
		if covers(g.prefix, p) {
			if g.key == key {
				v.grants[i].dead = true
			}
			return
		}
	}
}
