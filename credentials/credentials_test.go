package credentials

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/skua-db/skua/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func vend(prefix, id string, expires time.Time) Grant {
	c := map[string]string{accessKeyProperty: id, secretKeyProperty: "very-secret-" + id, tokenProperty: "token-" + id}
	if !expires.IsZero() {
		c[expiryProperty] = strconv.FormatInt(expires.UnixMilli(), 10)
	}
	return Grant{Prefix: prefix, Config: c}
}

// TestChoice says which key reads which path.
func TestChoice(t *testing.T) {
	v := NewVended("c.n.t", []Grant{
		vend("s3://b/wh", "short", time.Time{}),
		vend("s3://b/wh/t/", "long", time.Time{}),
		vend("s3a://other", "other", time.Time{}),
		{Prefix: "s3://b/wh/t/data", Config: map[string]string{"fs.s3a.access.key": "x"}},
	}, nil)
	for path, want := range map[string]string{
		"s3://b/wh/x": "short", "s3a://b/wh/t/data/f": "long", "s3n://b/wh/t": "short", "s3://b/wh": "short",
		"s3://other/x": "other", "s3://b/whx": "", "s3://otherwise/x": "", "s3://c/wh/t/f": "", "gs://b/wh/x": "",
	} {
		key, err := v.Key(context.Background(), path)
		if want == "" {
			require.ErrorIs(t, err, fault.Denied, path)
			require.ErrorContains(t, err, "c.n.t")
			continue
		}
		require.NoError(t, err, path)
		require.Equal(t, want, key.AccessKeyID.Reveal(), path)
	}
	for _, bare := range []string{"s3", "s3://", "s3a", ""} {
		key, err := NewVended("t", []Grant{vend(bare, "all", time.Time{})}, nil).Key(context.Background(), "s3a://any/path")
		require.NoError(t, err, bare)
		require.Equal(t, "all", key.AccessKeyID.Reveal())
	}
}

// clock is a time that the test moves.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_700_000_000, c.nanos.Load()) }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

type server struct {
	clock   *clock
	life    time.Duration
	fetched atomic.Int64
	fail    atomic.Bool
}

func (s *server) grants() []Grant {
	return []Grant{vend("s3://b/", fmt.Sprint("k", s.fetched.Load()), s.clock.now().Add(s.life))}
}

func (s *server) fetch(context.Context) ([]Grant, error) {
	s.fetched.Add(1)
	if s.fail.Load() {
		return nil, errors.New("catalog is down")
	}
	return s.grants(), nil
}

func newServer(life time.Duration) (*server, *Vended) {
	s := &server{clock: &clock{}, life: life}
	v := &Vended{table: "c.n.t", fetch: s.fetch, now: s.clock.now}
	v.Install(s.grants())
	return s, v
}

func TestRefreshAheadOfExpiry(t *testing.T) {
	s, v := newServer(time.Hour)
	ctx := context.Background()
	get := func() string {
		k, err := v.Key(ctx, "s3://b/x")
		require.NoError(t, err)
		return k.AccessKeyID.Reveal()
	}
	require.Equal(t, "k0", get())
	s.clock.advance(53 * time.Minute)
	require.Equal(t, "k0", get())
	s.clock.advance(2 * time.Minute)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if k := get(); k != "k0" && k != "k1" {
				t.Errorf("got %s", k)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return get() == "k1" }, 5*time.Second, time.Millisecond)
	require.EqualValues(t, 1, s.fetched.Load(), "one refresh for all readers")

	s.fail.Store(true)
	s.clock.advance(55 * time.Minute)
	require.Equal(t, "k1", get(), "a key that lives stays in use when the refresh fails")
	failed := func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.failure != nil }
	require.Eventually(t, failed, 5*time.Second, time.Millisecond)
	require.Equal(t, "k1", get())
	require.EqualValues(t, 2, s.fetched.Load(), "and the next try waits")
	s.clock.advance(5 * time.Minute)
	_, err := v.Key(ctx, "s3://b/x")
	require.ErrorContains(t, err, "has expired and could not be renewed: catalog is down")
	s.fail.Store(false)
	s.clock.advance(time.Minute)
	require.Equal(t, "k4", get(), "the catalog is back")
}

func TestRefusedKey(t *testing.T) {
	s, v := newServer(time.Hour)
	k, err := v.Key(context.Background(), "s3://b/x")
	require.NoError(t, err)
	for range 8 {
		v.Refused("s3://b/x", k)
	}
	next, err := v.Key(context.Background(), "s3://b/x")
	require.NoError(t, err)
	require.NotEqual(t, k, next)
	v.Refused("s3://b/x", k)
	again, err := v.Key(context.Background(), "s3://b/x")
	require.NoError(t, err)
	require.Equal(t, next, again, "news about an old key do not harm the new one")
	require.EqualValues(t, 1, s.fetched.Load())

	v.fetch = func(context.Context) ([]Grant, error) {
		return []Grant{{Prefix: "s3://b/", Config: map[string]string{}}}, nil
	}
	v.Refused("s3://b/x", next)
	_, err = v.Key(context.Background(), "s3://b/x")
	require.ErrorContains(t, err, "without a usable S3 key")
	v.fetch = nil
	s.clock.advance(time.Hour)
	_, err = v.Key(context.Background(), "s3://b/x")
	require.ErrorIs(t, err, fault.Expired)
}

// TestCancelledReader: a reader that leaves gets its own error, and the refresh serves those who stay.
func TestCancelledReader(t *testing.T) {
	s, v := newServer(time.Minute)
	gate := make(chan struct{})
	v.fetch = func(ctx context.Context) ([]Grant, error) {
		<-gate
		return s.fetch(ctx)
	}
	s.clock.advance(2 * time.Minute)
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	go func() { _, err := v.Key(ctx, "s3://b/x"); first <- err }()
	second := make(chan error)
	go func() { _, err := v.Key(context.Background(), "s3://b/x"); second <- err }()
	time.Sleep(10 * time.Millisecond)
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	close(gate)
	require.NoError(t, <-second)
}

// TestNothingPrintsASecret renders keys in every way that occurs and searches the output.
func TestNothingPrintsASecret(t *testing.T) {
	key := FromProperties(vend("s3://b", "AKIDSECRET", time.Unix(1_700_000_000, 0)).Config)
	v := NewVended("c.n.t", []Grant{vend("s3://b", "AKIDSECRET", time.Now().Add(-time.Hour))}, nil)
	static := NewStatic(key)
	type holder struct {
		Key    S3
		Secret Secret
		Ptr    *S3
		Map    map[string]Secret
	}
	h := holder{key, key.SecretAccessKey, &key, map[string]Secret{"a": key.SessionToken}}
	var out strings.Builder
	for _, x := range []any{key, &key, key.SecretAccessKey, h, &h, []S3{key}, static, v, fault.New(fault.Denied, "key %v %s", key, key.SessionToken)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", x)
		}
		b, _ := json.Marshal(x) // what JSON cannot render it does not show
		out.Write(b)
	}
	_, err := v.Key(context.Background(), "s3://b/x")
	require.Error(t, err)
	out.WriteString(err.Error())
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&writer{&out}), zap.DebugLevel))
	log.Info("x", zap.Any("a", key), zap.Object("b", key), zap.Any("c", h), zap.Stringer("d", key), zap.Reflect("e", &h), zap.Any("f", key.SecretAccessKey), zap.Error(err))
	text := out.String()
	require.Contains(t, text, redacted)
	for _, secret := range []string{"AKIDSECRET", "very-secret", "token-AKID", fmt.Sprintf("%x", "very-secret"), fmt.Sprintf("%X", "very-secret")} {
		require.NotContains(t, text, secret)
	}
}

type writer struct{ b *strings.Builder }

func (w *writer) Write(p []byte) (int, error) { return w.b.Write(p) }
