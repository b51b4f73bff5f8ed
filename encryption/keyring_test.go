package encryption

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// service is a key management service that counts its calls and answers when told.
type service struct {
	calls atomic.Int32
	gate  chan struct{} // nil: answers at once
	key   Key
}

func (s *service) Unwrap(ctx context.Context, _ string, _ []byte) (Key, error) {
	s.calls.Add(1)
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return append(Key(nil), s.key...), nil
}

func TestKeyringKeepsKeysByPrincipal(t *testing.T) {
	s := &service{key: testKey}
	r := NewKeyring(KeyringOptions{Service: func(_ context.Context, principal string) (KMS, error) {
		if principal == "mallory" {
			return nil, fault.New(fault.Denied, "no right")
		}
		return s, nil
	}})
	defer r.Close()
	ask := func(principal, table string) error {
		key, err := r.unwrap(credentials.WithPrincipal(context.Background(), principal), table, "master", []byte("wrapped"))
		if err == nil {
			require.Equal(t, testKey, key)
			clear(key) // the caller's copy
		}
		return err
	}
	for range 3 {
		require.NoError(t, ask("alice", "t"))
	}
	require.EqualValues(t, 1, s.calls.Load())
	require.ErrorIs(t, ask("mallory", "t"), fault.Denied, "another's key is kept and must not help")
	require.NoError(t, ask("bob", "t"))
	require.NoError(t, ask("alice", "u"))
	require.EqualValues(t, 3, s.calls.Load(), "a call for each principal and table")
}

func TestKeyringAsksOnce(t *testing.T) {
	s := &service{key: testKey, gate: make(chan struct{})}
	r := KeyringOf(s)
	defer r.Close()
	gone, leave := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		_, err := r.unwrap(gone, "t", "master", nil)
		require.ErrorIs(t, err, context.Canceled)
	})
	for range 8 {
		all.Go(func() {
			_, err := r.unwrap(context.Background(), "t", "master", nil)
			require.NoError(t, err)
		})
	}
	require.Eventually(t, func() bool { return s.calls.Load() == 1 }, 10*time.Second, time.Millisecond)
	leave() // whose call it may be: the others still get their answer
	close(s.gate)
	all.Wait()
	require.EqualValues(t, 1, s.calls.Load())
}

func TestKeyringEndsKeys(t *testing.T) {
	s := &service{key: testKey}
	r := NewKeyring(KeyringOptions{Service: func(context.Context, string) (KMS, error) { return s, nil }, Life: 20 * time.Millisecond, Keys: 2})
	_, err := r.unwrap(context.Background(), "t", "master", nil)
	require.NoError(t, err)
	r.mu.Lock()
	require.Len(t, r.kept, 1)
	var held Key
	for _, k := range r.kept {
		held = k.key
	}
	r.mu.Unlock()
	require.Eventually(t, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.kept) == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, make(Key, len(testKey)), held, "zeroed")
	for _, table := range []string{"a", "b", "c", "d"} {
		_, err := r.unwrap(context.Background(), table, "master", nil)
		require.NoError(t, err)
		r.mu.Lock()
		require.LessOrEqual(t, len(r.kept), 2)
		r.mu.Unlock()
	}
	r.Close()
	require.Empty(t, r.kept)
	_, err = r.unwrap(context.Background(), "late", "master", nil)
	require.Error(t, err)
}

func TestKeyringGivesUp(t *testing.T) {
	s := &service{key: testKey, gate: make(chan struct{})}
	r := NewKeyring(KeyringOptions{Service: func(context.Context, string) (KMS, error) { return s, nil }, Timeout: 10 * time.Millisecond})
	defer r.Close()
	_, err := r.unwrap(context.Background(), "t", "master", nil)
	require.ErrorIs(t, err, fault.Unavailable)
	require.ErrorContains(t, err, "did not answer")
	short := KeyringOf(&service{key: testKey[:5]})
	defer short.Close()
	_, err = short.unwrap(context.Background(), "t", "master", nil)
	require.ErrorIs(t, err, fault.Corrupt)
	require.NotContains(t, err.Error(), string(testKey[:5]))
}
