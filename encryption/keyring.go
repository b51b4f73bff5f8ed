package encryption

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// Keyring unwraps keys and keeps them for a while, one by one for each principal and table: what one principal may unwrap says
// nothing about another. Equal calls at one time are one call. Keys are zeroed when their time is over.
type Keyring struct {
	opt  KeyringOptions
	ctx  context.Context // ends with Close
	end  context.CancelFunc
	rate *rate.Limiter

	calls singleflight.Group
	mu    sync.Mutex
	kept  map[keptID]*keptKey
}

// KeyringOptions describes a Keyring. Zero values stand for the defaults in brackets.
type KeyringOptions struct {
	// Service gives the key management service as the named principal may use it; fault.Denied when it may not at all.
	Service func(ctx context.Context, principal string) (KMS, error)
	// Life is how long an unwrapped key is kept, and so how long a right that is withdrawn goes on to hold [15 minutes].
	Life time.Duration
	// Timeout bounds one call of the service [10 seconds].
	Timeout time.Duration
	// Rate is the most calls a second [100].
	Rate float64
	// Accept lists the risks that tables read through this keyring may bring.
	Accept Risks
	// Keys is the most keys that are kept [10,000]; of more, any goes.
	Keys int
}

// Risks are weaknesses of encrypted tables that are refused unless they are accepted.
type Risks struct {
	UnauthenticatedPages      bool // Parquet pages by AES_GCM_CTR_V1: nobody would see them altered
	PlainFiles                bool // files without a key
	PlainSnapshots            bool // snapshots without a key
	UnauthenticatedListLength bool // manifest lists that could have been cut at the end of a block
}

type keptID struct {
	principal, table, master string
	wrapped                  [sha256.Size]byte
}

type keptKey struct {
	key   Key
	timer *time.Timer
}

// NewKeyring makes a keyring. Close ends it.
func NewKeyring(opt KeyringOptions) *Keyring {
	if opt.Life == 0 {
		opt.Life = 15 * time.Minute
	}
	if opt.Timeout == 0 {
		opt.Timeout = 10 * time.Second
	}
	if opt.Rate == 0 {
		opt.Rate = 100
	}
	if opt.Keys == 0 {
		opt.Keys = 10_000
	}
	r := &Keyring{opt: opt, kept: map[keptID]*keptKey{}, rate: rate.NewLimiter(rate.Limit(opt.Rate), max(1, int(opt.Rate)))}
	r.ctx, r.end = context.WithCancel(context.Background())
	return r
}

// KeyringOf makes a keyring of one service that every principal may use.
func KeyringOf(kms KMS) *Keyring {
	return NewKeyring(KeyringOptions{Service: func(context.Context, string) (KMS, error) { return kms, nil }})
}

// Close ends running calls and zeroes every key.
func (r *Keyring) Close() {
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.kept {
		r.drop(id)
	}
}

// unwrap gives the key that wrapped holds to the principal of ctx. The caller owns the bytes.
func (r *Keyring) unwrap(ctx context.Context, table, master string, wrapped []byte) (Key, error) {
	id := keptID{credentials.Principal(ctx), table, master, sha256.Sum256(wrapped)}
	if key, ok := r.find(id); ok {
		return key, nil
	}
	// The call goes on when the caller leaves: others may wait for it.
	answer := r.calls.DoChan(fmt.Sprintf("%q %q %q %x", id.principal, table, master, id.wrapped), func() (any, error) {
		if _, ok := r.find(id); ok {
			return nil, nil
		}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.opt.Timeout)
		defer cancel()
		defer context.AfterFunc(r.ctx, cancel)()
		key, err := r.call(call, id, wrapped)
		if err != nil {
			return nil, err
		}
		r.keep(id, key)
		return nil, nil
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case done := <-answer:
		if done.Err != nil {
			return nil, done.Err
		}
	}
	if key, ok := r.find(id); ok {
		return key, nil
	}
	return nil, fault.New(fault.Unavailable, "the key under master key %q was given up before it was used", master)
}

func (r *Keyring) call(ctx context.Context, id keptID, wrapped []byte) (Key, error) {
	if err := r.rate.Wait(ctx); err != nil {
		return nil, fault.WithID(fault.Unavailable, "KMS_BUSY", "the key management service is asked as often as it may be")
	}
	service, err := r.opt.Service(ctx, id.principal)
	if err != nil {
		return nil, err
	}
	key, err := service.Unwrap(ctx, id.master, wrapped)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fault.New(fault.Unavailable, "the key management service did not answer for master key %q within %s", id.master, r.opt.Timeout)
	default:
		return nil, err
	}
	if _, err := newGCM(key); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "unwrapping under master key %q", id.master)
	}
	return key, nil
}

func (r *Keyring) find(id keptID) (Key, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.kept[id]
	if !ok {
		return nil, false
	}
	return append(Key(nil), k.key...), true
}

func (r *Keyring) keep(id keptID, key Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		clear(key)
		return
	}
	for other := range r.kept {
		if len(r.kept) < r.opt.Keys {
			break
		}
		r.drop(other)
	}
	kept := &keptKey{key: key}
	kept.timer = time.AfterFunc(r.opt.Life, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.kept[id] == kept {
			r.drop(id)
		}
	})
	r.kept[id] = kept
}

// drop zeroes a key; r.mu is held.
func (r *Keyring) drop(id keptID) {
	k := r.kept[id]
	k.timer.Stop()
	clear(k.key)
	delete(r.kept, id)
}
