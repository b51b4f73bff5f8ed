package s3

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/internal/lakeserver"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(k lakeserver.Key) credentials.S3 {
	return credentials.FromProperties(map[string]string{"s3.access-key-id": k.ID, "s3.secret-access-key": k.Secret, "s3.session-token": k.Token})
}

func start(t *testing.T, change func(*Options)) (*lakeserver.S3, *Store) {
	t.Helper()
	srv := lakeserver.NewS3(t)
	k := srv.AddKey(lakeserver.Key{ID: "AKROOT", Secret: "root-secret", Token: "root-token"})
	c := NewClient()
	t.Cleanup(c.Close)
	o := Options{Endpoint: srv.URL, PathStyle: true, Keys: credentials.NewStatic(key(k)), MinWait: time.Millisecond, MaxWait: 5 * time.Millisecond, StallTimeout: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	s, err := New(c, o)
	require.NoError(t, err)
	return srv, s
}

func TestConformance(t *testing.T) {
	for _, scheme := range []string{"s3", "s3a", "s3n"} {
		storagetest.Run(t, func(t *testing.T) storagetest.Fixture {
			srv, s := start(t, nil)
			return storagetest.Fixture{Store: s, Root: scheme + "://lake/some/folder", Put: func(_ *testing.T, name string, content []byte) {
				srv.Put("lake/some/folder/"+name, content)
			}}
		})
	}
}

// TestCoalescedConformance runs the suite as catalogs use the store.
func TestCoalescedConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storagetest.Fixture {
		srv, s := start(t, nil)
		return storagetest.Fixture{Store: storage.Coalesce(s, 1<<20, 16<<20), Root: "s3://lake/x", Put: func(_ *testing.T, name string, content []byte) {
			srv.Put("lake/x/"+name, content)
		}}
	})
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8 ^ i*31)
	}
	return b
}

func readRange(s *Store, path string, size int64, r storage.Range) ([]byte, error) {
	o, err := s.Open(context.Background(), path, size)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }()
	dst := make([]byte, r.Length)
	return dst, o.ReadRanges(context.Background(), []storage.Range{r}, [][]byte{dst})
}

// TestAwkwardKeys signs keys that a URL has to escape.
func TestAwkwardKeys(t *testing.T) {
	srv, s := start(t, nil)
	for _, k := range []string{"a b/x=1%2F/f+g.parquet", "p=a:b/ü/☃.avro", "q?x#y&z", "dir//double", "tilde~'()*!,;@$", "%41"} {
		srv.Put("lake/"+k, []byte(k))
		got, err := readRange(s, "s3://lake/"+k, int64(len(k)), storage.Range{Length: int64(len(k))})
		require.NoError(t, err, k)
		require.Equal(t, k, string(got))
	}
}

// TestFaults reads an object through what stores do wrong.
func TestFaults(t *testing.T) {
	once := func(f lakeserver.Fault) func(int, *http.Request) *lakeserver.Fault {
		return func(n int, _ *http.Request) *lakeserver.Fault {
			if n == 0 {
				return &f
			}
			return nil
		}
	}
	always := func(f lakeserver.Fault) func(int, *http.Request) *lakeserver.Fault {
		return func(int, *http.Request) *lakeserver.Fault { return &f }
	}
	cases := []struct {
		name     string
		fault    func(int, *http.Request) *lakeserver.Fault
		requests int
		kind     error
		text     string
	}{
		{"slow down", once(lakeserver.Fault{Status: 503, Code: "SlowDown"}), 2, nil, ""},
		{"too many requests", once(lakeserver.Fault{Status: 429, Code: "TooManyRequests"}), 2, nil, ""},
		{"internal error", once(lakeserver.Fault{Status: 500, Code: "InternalError"}), 2, nil, ""},
		{"the store's own timeout", once(lakeserver.Fault{Status: 400, Code: "RequestTimeout"}), 2, nil, ""},
		{"an expired key", once(lakeserver.Fault{Status: 400, Code: "ExpiredToken"}), 2, nil, ""},
		{"a reset in the middle", once(lakeserver.Fault{Truncate: 70_000}), 2, nil, ""},
		{"resets all the way", always(lakeserver.Fault{Truncate: 30_000}), 4, nil, ""},
		{"a range ignored", always(lakeserver.Fault{IgnoreRange: true}), 1, nil, ""},
		{"silence", once(lakeserver.Fault{Hang: true}), 2, nil, ""},
		{"always busy", always(lakeserver.Fault{Status: 503, Code: "SlowDown"}), 4, fault.Unavailable, "after 4 tries: the store says SlowDown"},
		{"always expired", always(lakeserver.Fault{Status: 400, Code: "ExpiredToken"}), 2, fault.Expired, "has expired (ExpiredToken)"},
		{"denied", always(lakeserver.Fault{Status: 403, Code: "AccessDenied"}), 1, fault.Denied, "may not be read with the key that there is (AccessDenied)"},
		{"no bucket", always(lakeserver.Fault{Status: 404, Code: "NoSuchBucket"}), 1, fault.NotFound, "bucket lake does not exist"},
		{"another region", always(lakeserver.Fault{Status: 301, Code: "PermanentRedirect", Region: "eu-west-1"}), 1, fault.Invalid, "bucket lake is in region eu-west-1, and was asked for in us-east-1; set client.region"},
		{"a proxy's page", always(lakeserver.Fault{Status: 418, Code: "<b>"}), 1, fault.Unavailable, "the store says 418"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv, s := start(t, func(o *Options) { o.Retries, o.Region, o.StallTimeout = 3, "us-east-1", 300*time.Millisecond })
			body := content(100_000)
			srv.Put("lake/t/f", body)
			srv.SetFault(c.fault)
			got, err := readRange(s, "s3a://lake/t/f", 100_000, storage.Range{Offset: 10, Length: 99_980})
			if c.kind != nil {
				require.ErrorIs(t, err, c.kind)
				require.ErrorContains(t, err, c.text)
				require.ErrorContains(t, err, "s3a://lake/t/f")
				for _, secret := range []string{"AKROOT", "root-secret", "root-token"} {
					require.NotContains(t, err.Error(), secret)
				}
			} else {
				require.NoError(t, err)
				require.True(t, bytes.Equal(body[10:99_990], got))
			}
			require.Len(t, srv.Log(), c.requests)
		})
	}
}

func TestResumeAsksForTheRest(t *testing.T) {
	srv, s := start(t, nil)
	body := content(100_000)
	srv.Put("lake/f", body)
	srv.SetFault(func(n int, _ *http.Request) *lakeserver.Fault {
		if n == 0 {
			return &lakeserver.Fault{Truncate: 64 << 10}
		}
		return nil
	})
	got, err := readRange(s, "s3://lake/f", 100_000, storage.Range{Length: 100_000})
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	log := srv.Log()
	require.Len(t, log, 2)
	require.NotEqual(t, "bytes=0-99999", log[1].Range, "what came is not fetched again")
}

func TestRetryAfter(t *testing.T) {
	srv, s := start(t, nil)
	srv.Put("lake/f", []byte("x"))
	srv.SetFault(func(n int, _ *http.Request) *lakeserver.Fault {
		if n == 0 {
			return &lakeserver.Fault{Status: 429, Code: "TooManyRequests", RetryAfter: "1"}
		}
		return nil
	})
	began := time.Now()
	_, err := readRange(s, "s3://lake/f", 1, storage.Range{Length: 1})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	// A deadline ends the wait.
	srv.SetFault(func(int, *http.Request) *lakeserver.Fault {
		return &lakeserver.Fault{Status: 503, Code: "SlowDown", RetryAfter: "3600"}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Stat(ctx, "s3://lake/f")
	require.Equal(t, fault.Timeout, fault.KindOf(err))
}

func TestSizes(t *testing.T) {
	srv, s := start(t, nil)
	srv.Put("lake/f", content(100))
	for _, size := range []int64{50, 200} {
		_, err := readRange(s, "s3://lake/f", size, storage.Range{Offset: size - 10, Length: 10})
		require.ErrorIs(t, err, fault.Corrupt)
		require.ErrorContains(t, err, fmt.Sprintf("has 100 bytes, and the table's metadata says %d", size))
	}
	big := content(3*partLength + 5)
	srv.Put("lake/big", big)
	got, err := readRange(s, "s3://lake/big", int64(len(big)), storage.Range{Length: int64(len(big))})
	require.NoError(t, err)
	require.True(t, bytes.Equal(big, got), "parts are joined")
}

func TestRegions(t *testing.T) {
	srv, s := start(t, nil)
	srv.Region = "eu-central-1"
	srv.Put("lake/f", []byte("x"))
	for range 3 {
		_, err := readRange(s, "s3://lake/f", 1, storage.Range{Length: 1})
		require.NoError(t, err)
	}
	require.Len(t, srv.Log(), 4, "the region is learned once")
	_, pinned := start(t, func(o *Options) { o.Endpoint, o.Region = srv.URL, "us-east-1" })
	_, err := readRange(pinned, "s3://lake/f", 1, storage.Range{Length: 1})
	require.ErrorContains(t, err, "in region eu-central-1")
	_, follows := start(t, func(o *Options) { o.Endpoint, o.Region, o.CrossRegion = srv.URL, "us-east-1", true })
	_, err = readRange(follows, "s3://lake/f", 1, storage.Range{Length: 1})
	require.NoError(t, err)
}

// rotating gives a new key whenever one is refused.
type rotating struct {
	srv     *lakeserver.S3
	n       atomic.Int64
	current atomic.Pointer[credentials.S3]
}

func (r *rotating) next() {
	k := key(r.srv.AddKey(lakeserver.Key{ID: fmt.Sprint("AK", r.n.Add(1)), Secret: "s", Token: "t", Expires: time.Now().Add(40 * time.Millisecond)}))
	r.current.Store(&k)
}
func (r *rotating) Key(context.Context, string) (credentials.S3, error) {
	return *r.current.Load(), nil
}
func (r *rotating) Refused(_ string, k credentials.S3) {
	if k == *r.current.Load() {
		r.next()
	}
}

// TestKeysDieUnderARead: a long read goes on with the next key where it stopped.
func TestKeysDieUnderARead(t *testing.T) {
	r := &rotating{}
	srv, s := start(t, func(o *Options) { o.Keys = r })
	r.srv = srv
	r.next()
	body := content(400_000)
	srv.Put("lake/f", body)
	srv.SetFault(func(int, *http.Request) *lakeserver.Fault {
		return &lakeserver.Fault{Truncate: 20_000, Delay: 10 * time.Millisecond}
	})
	got, err := readRange(s, "s3://lake/f", 400_000, storage.Range{Length: 400_000})
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	require.Greater(t, r.n.Load(), int64(2))
}

func TestNothingIsAmbient(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKROOT")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "root-secret")
	t.Setenv("AWS_SESSION_TOKEN", "root-token")
	srv, s := start(t, func(o *Options) { o.Keys = nil })
	srv.Put("lake/f", []byte("x"))
	_, err := readRange(s, "s3://lake/f", 1, storage.Range{Length: 1})
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "there is no S3 key")
	require.Empty(t, srv.Log())
}

func TestRefusedEndpointsAndPaths(t *testing.T) {
	for _, e := range []string{"minio:9000", "ftp://x", "http://user:pw@x", "http://"} {
		_, err := New(NewClient(), Options{Endpoint: e})
		require.ErrorIs(t, err, fault.Invalid, e)
	}
	_, s := start(t, func(o *Options) { o.Endpoint = "http://169.254.169.254" })
	_, err := readRange(s, "s3://lake/f", 1, storage.Range{Length: 1})
	require.ErrorIs(t, err, fault.Denied)
	require.ErrorContains(t, err, "link-local")
	for _, p := range []string{"/x", "gs://b/x", "s3://", "s3:///x", "s3://b", "s3://a@b/x", "s3://host:80/x"} {
		_, err := s.Open(context.Background(), p, 1)
		require.Error(t, err, p)
	}
	_, gone := start(t, func(o *Options) { o.Endpoint, o.Retries = "http://127.0.0.1:1", 1 })
	_, err = readRange(gone, "s3://lake/f", 1, storage.Range{Length: 1})
	require.ErrorIs(t, err, fault.Unavailable)
	require.ErrorContains(t, err, "does not answer")
}

func TestURLs(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Region: "eu-west-1"}, "https://lake.s3.eu-west-1.amazonaws.com/a%20b"},
		{Options{Region: "eu-west-1", PathStyle: true}, "https://s3.eu-west-1.amazonaws.com/lake/a%20b"},
		{Options{Endpoint: "https://minio.example:9000/"}, "https://lake.minio.example:9000/a%20b"},
		{Options{Endpoint: "http://10.0.0.1:9000/root", PathStyle: true}, "http://10.0.0.1:9000/root/lake/a%20b"},
		{Options{Endpoint: "http://10.0.0.1:9000"}, "http://10.0.0.1:9000/lake/a%20b"},
	} {
		s, err := New(NewClient(), c.o)
		require.NoError(t, err)
		require.Equal(t, c.want, s.url("lake", "a b", "", s.region("lake")).String())
	}
}
