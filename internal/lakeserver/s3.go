// Package lakeserver holds a strict S3 store and a strict Iceberg REST catalog that vends keys for it, both in the test's own
// process: signatures are verified by the AWS SDK's signer, sessions expire, prefixes bind, faults come on demand and every
// request is logged.
//
// It is test support only. Servers are safe for concurrent use; knobs are set before requests come, or under Change.
package lakeserver

import (
	"context"
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Key is an access key of the store.
type Key struct {
	ID, Secret, Token string
	Expires           time.Time // zero: never
	Prefixes          []string  // bucket/key beginnings that it may read; nil: all
}

// Fault replaces or spoils an answer.
type Fault struct {
	Status      int // with Code, an error answer instead
	Code        string
	RetryAfter  string
	Region      string        // X-Amz-Bucket-Region
	Truncate    int           // reset the connection after so many bytes of the body
	Delay       time.Duration // before answering
	Hang        bool          // answer nothing until the client leaves
	IgnoreRange bool          // answer the whole object
}

// Request is one line of the store's log.
type Request struct {
	Path, Range, KeyID string
	Status             int
	Bytes              int
	At                 time.Time
	Note               string // why it was refused
}

// S3 is the store.
type S3 struct {
	URL    string
	Region string

	mu      sync.Mutex
	keys    map[string]Key
	objects map[string][]byte // by bucket/key
	dirs    map[string]string // bucket -> folder on disk
	log     []Request
	// fault is asked for each request that would succeed, with its number from 0.
	fault func(n int, r *http.Request) *Fault
	n     int

	connections atomic.Int64
}

// NewS3 starts a store that ends with the test.
func NewS3(t testing.TB) *S3 {
	s := &S3{Region: "us-east-1", keys: map[string]Key{}, objects: map[string][]byte{}, dirs: map[string]string{}}
	h := httptest.NewUnstartedServer(s)
	h.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	h.Start()
	t.Cleanup(h.Close)
	s.URL = h.URL
	return s
}

// Connections is how many connections clients have opened so far.
func (s *S3) Connections() int64 { return s.connections.Load() }

// AddKey lets a key in.
func (s *S3) AddKey(k Key) Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[k.ID] = k
	return k
}

// Put stores an object under bucket/key.
func (s *S3) Put(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = content
}

// Serve makes a folder on disk a bucket.
func (s *S3) Serve(bucket, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs[bucket] = dir
}

// SetFault sets what goes wrong; nil mends all.
func (s *S3) SetFault(f func(n int, r *http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.n = f, 0
}

// Log gives the requests so far and forgets them.
func (s *S3) Log() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

type answer struct {
	status int
	code   string
	header http.Header
	body   []byte
	note   string
}

func refuse(status int, code string) answer {
	return answer{status: status, code: code, note: code, header: http.Header{}}
}

// ServeHTTP implements http.Handler.
func (s *S3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, a := s.answer(r, false)
	var f *Fault
	s.mu.Lock()
	if s.fault != nil && a.code == "" {
		f = s.fault(s.n, r)
		s.n++
	}
	s.mu.Unlock()
	if f != nil && f.Status != 0 {
		a = refuse(f.Status, f.Code)
		if f.RetryAfter != "" {
			a.header.Set("Retry-After", f.RetryAfter)
		}
		if f.Region != "" {
			a.header.Set("X-Amz-Bucket-Region", f.Region)
		}
	}
	if f != nil && f.IgnoreRange {
		_, a = s.answer(r, true)
	}
	if a.code != "" {
		a.body = fmt.Appendf(nil, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>key %s is not what it was</Message></Error>", a.code, id)
	}
	s.mu.Lock()
	s.log = append(s.log, Request{Path: r.URL.Path, Range: r.Header.Get("Range"), KeyID: id, Status: a.status, Bytes: len(a.body), At: time.Now(), Note: a.note})
	s.mu.Unlock()
	if f != nil && f.Hang {
		<-r.Context().Done()
		return
	}
	if f != nil && f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
			return
		}
	}
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if f != nil && f.Truncate > 0 && f.Truncate < len(a.body) {
		_, _ = w.Write(a.body[:f.Truncate])
		_ = http.NewResponseController(w).Flush()
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(-1)
			}
			_ = c.Close()
		}
		return
	}
	_, _ = w.Write(a.body)
}

// verify checks who signed the request and gives the key.
func (s *S3) verify(r *http.Request) (Key, *answer) {
	no := func(status int, code string) (Key, *answer) { a := refuse(status, code); return Key{}, &a }
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return no(403, "AccessDenied")
	}
	fields := map[string]string{}
	for _, f := range strings.Split(auth, ", ") {
		k, v, _ := strings.Cut(f, "=")
		fields[k] = v
	}
	scope := strings.Split(fields["Credential"], "/")
	if len(scope) != 5 {
		return no(400, "AuthorizationHeaderMalformed")
	}
	s.mu.Lock()
	k, known := s.keys[scope[0]]
	s.mu.Unlock()
	if !known {
		return no(403, "InvalidAccessKeyId")
	}
	if r.Header.Get("X-Amz-Security-Token") != k.Token {
		return Key{ID: k.ID}, &[]answer{refuse(400, "InvalidToken")}[0]
	}
	if scope[2] != s.Region {
		a := refuse(400, "AuthorizationHeaderMalformed")
		a.header.Set("X-Amz-Bucket-Region", s.Region)
		return k, &a
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > 15*time.Minute {
		return k, &[]answer{refuse(403, "RequestTimeTooSkewed")}[0]
	}
	again, err := http.NewRequestWithContext(context.Background(), r.Method, "http://"+r.Host+r.RequestURI, nil)
	if err != nil {
		return no(400, "InvalidURI")
	}
	for _, h := range strings.Split(fields["SignedHeaders"], ";") {
		if v := r.Header.Values(h); h != "host" && len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(h)] = v
		}
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	err = signer.SignHTTP(context.Background(), aws.Credentials{AccessKeyID: k.ID, SecretAccessKey: k.Secret, SessionToken: k.Token},
		again, r.Header.Get("X-Amz-Content-Sha256"), scope[3], scope[2], at)
	if err != nil || again.Header.Get("Authorization") != r.Header.Get("Authorization") {
		return k, &[]answer{refuse(403, "SignatureDoesNotMatch")}[0]
	}
	if !k.Expires.IsZero() && time.Now().After(k.Expires) {
		return k, &[]answer{refuse(400, "ExpiredToken")}[0]
	}
	return k, nil
}

func (k Key) reads(path string) bool {
	if k.Prefixes == nil {
		return true
	}
	for _, p := range k.Prefixes {
		if rest, ok := strings.CutPrefix(path, p); ok && (rest == "" || strings.HasSuffix(p, "/") || rest[0] == '/') {
			return true
		}
	}
	return false
}

func (s *S3) answer(r *http.Request, whole bool) (string, answer) {
	k, no := s.verify(r)
	if no != nil {
		return k.ID, *no
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.URL.Query().Get("list-type") == "2" && key == "" {
		return k.ID, s.list(k, bucket, r.URL.Query())
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return k.ID, refuse(405, "MethodNotAllowed")
	}
	if !k.reads(bucket + "/" + key) {
		return k.ID, refuse(403, "AccessDenied")
	}
	body, ok := s.object(bucket, key)
	if !ok {
		return k.ID, refuse(404, "NoSuchKey")
	}
	a := answer{status: 200, body: body, header: http.Header{"Last-Modified": {time.Now().UTC().Format(http.TimeFormat)}}}
	if h := r.Header.Get("Range"); h != "" && !whole {
		var first, last int
		if n, err := fmt.Sscanf(h, "bytes=%d-%d", &first, &last); n != 2 || err != nil {
			return k.ID, refuse(400, "InvalidArgument")
		}
		if first >= len(body) {
			a := refuse(416, "InvalidRange")
			a.header.Set("Content-Range", fmt.Sprintf("bytes */%d", len(body)))
			return k.ID, a
		}
		last = min(last, len(body)-1)
		a.status, a.body = 206, body[first:last+1]
		a.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(body)))
	}
	return k.ID, a
}

func (s *S3) object(bucket, key string) ([]byte, bool) {
	s.mu.Lock()
	b, ok := s.objects[bucket+"/"+key]
	dir := s.dirs[bucket]
	s.mu.Unlock()
	if ok || dir == "" || strings.Contains(key, "..") {
		return b, ok
	}
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key)))
	return b, err == nil
}

// pageLength is how many entries a listing has, small so that paging happens.
const pageLength = 3

func (s *S3) list(k Key, bucket string, q url.Values) answer {
	prefix := q.Get("prefix")
	if !k.reads(bucket + "/" + prefix) {
		return refuse(403, "AccessDenied")
	}
	s.mu.Lock()
	sizes := map[string]int{}
	for p, b := range s.objects {
		rest, ok := strings.CutPrefix(p, bucket+"/"+prefix)
		if !ok {
			continue
		}
		if folder, _, deeper := strings.Cut(rest, "/"); deeper {
			sizes[folder+"/"] = -1
		} else {
			sizes[rest] = len(b)
		}
	}
	s.mu.Unlock()
	var names []string
	for n := range sizes {
		if n > q.Get("continuation-token") {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	type content struct {
		Key          string
		Size         int
		LastModified string
	}
	type folder struct{ Prefix string }
	out := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
		CommonPrefixes        []folder
	}{}
	if len(names) > pageLength {
		names = names[:pageLength]
		out.IsTruncated, out.NextContinuationToken = true, names[pageLength-1]
	}
	for _, n := range names {
		if sizes[n] < 0 {
			out.CommonPrefixes = append(out.CommonPrefixes, folder{url.QueryEscape(prefix + n)})
		} else {
			out.Contents = append(out.Contents, content{url.QueryEscape(prefix + n), sizes[n], time.Now().UTC().Format(time.RFC3339)})
		}
	}
	body, err := xml.Marshal(out)
	if err != nil {
		return refuse(500, "InternalError")
	}
	return answer{status: 200, body: body, header: http.Header{}}
}
