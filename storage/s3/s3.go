// Package s3 reads S3 and what speaks its protocol: ranged GETs signed by the AWS SDK's signer, with a key that a provider is
// asked for at each request.
//
// It never writes, and never looks for keys by itself: not in the environment, not in profiles, not at a metadata service.
// A Store and its Objects are safe for concurrent use; a Client is shared by the stores of one catalog.
package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Options says how a store is reached.
type Options struct {
	// Endpoint is the base URL; empty is AWS in Region. A bucket becomes its first path step with PathStyle, else a label
	// before its host.
	Endpoint  string
	PathStyle bool
	// Region signs requests. When empty it is us-east-1 until a bucket tells its own.
	Region string
	// CrossRegion follows a bucket to its region although Region is set.
	CrossRegion bool
	// Keys gives the key for each request.
	Keys credentials.Provider
	// Retries is how often a request is tried again without progress; 0 is 5, below 0 never.
	Retries int
	// MinWait and MaxWait bound the pauses between tries; 0 are 100 ms and 10 s.
	MinWait, MaxWait time.Duration
	// StallTimeout is how long a request may bring no byte; 0 is 30 s.
	StallTimeout time.Duration
	// Now is the clock that signs; nil is time.Now.
	Now func() time.Time
}

// maxConnections bounds the connections to one host, and with them the requests in flight.
const maxConnections = 64

// Client holds the pooled connections of the stores of one catalog.
type Client struct {
	http    *http.Client
	signer  *v4.Signer
	regions sync.Map // bucket at endpoint -> region it told
}

// NewClient makes a client without connections.
func NewClient() *Client {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: Dialer().DialContext, MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections,
		IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true, ForceAttemptHTTP2: false,
	}
	return &Client{
		// A redirect is not followed: it would carry a signed request to a host that nobody chose.
		http:   &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		signer: v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
	}
}

// Dialer connects to everything but link-local addresses, where machines keep their identity documents: no table and no
// catalog server may send a request there.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		host, _, _ = strings.Cut(host, "%")
		if ip := net.ParseIP(host); ip == nil || ip.IsLinkLocalUnicast() || ip.Equal(net.ParseIP("fd00:ec2::254")) {
			return fault.New(fault.Denied, "link-local addresses such as %s are never contacted", host)
		}
		return nil
	}}
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Store reads the buckets that its keys open.
type Store struct {
	c    *Client
	o    Options
	base *url.URL // nil: AWS
}

// New makes a store. An endpoint that is no http or https URL is fault.Invalid.
func New(c *Client, o Options) (*Store, error) {
	s := &Store{c: c, o: o}
	if o.Endpoint != "" {
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return nil, fault.New(fault.Invalid, "s3.endpoint %q is not an http or https URL", o.Endpoint)
		}
		u.Path = strings.TrimSuffix(u.Path, "/")
		s.base = u
	}
	if s.o.Keys == nil {
		s.o.Keys = credentials.None{Reason: "there is no S3 key"}
	}
	if s.o.Retries == 0 {
		s.o.Retries = 5
	}
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&s.o.MinWait, 100 * time.Millisecond}, {&s.o.MaxWait, 10 * time.Second}, {&s.o.StallTimeout, 30 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if s.o.Now == nil {
		s.o.Now = time.Now
	}
	return s, nil
}

// IsPath reports whether path is one of S3: s3, s3a and s3n are one scheme.
func IsPath(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	return ok && (scheme == "s3" || scheme == "s3a" || scheme == "s3n")
}

// Canonical writes the scheme of an S3 path as s3; other paths stay as they are.
func Canonical(path string) string {
	if _, rest, ok := strings.Cut(path, "://"); ok && IsPath(path) {
		return "s3://" + rest
	}
	return path
}

// split gives bucket and key. Keys are taken as they stand: Iceberg writes paths without escapes.
func split(path string) (bucket, key string, err error) {
	rest, ok := strings.CutPrefix(Canonical(path), "s3://")
	if !ok {
		return "", "", fault.New(fault.Unsupported, "path %s is not one of S3", path)
	}
	bucket, key, _ = strings.Cut(rest, "/")
	if bucket == "" || strings.ContainsAny(bucket, "?#@:%\\ ") {
		return "", "", fault.New(fault.Invalid, "path %s names no bucket", path)
	}
	return bucket, key, nil
}

// escape writes a key as the signature wants it: each byte but unreserved ones and slashes in hex.
func escape(key string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~/", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

// url makes the address of an object, or of a bucket when key is empty.
func (s *Store) url(bucket, key, query, region string) *url.URL {
	u := url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}
	if s.base != nil {
		u = *s.base
	}
	prefix := u.Path
	// A bucket with dots does not fit under the host's certificate.
	if s.o.PathStyle || strings.Contains(bucket, ".") || net.ParseIP(u.Hostname()) != nil {
		prefix += "/" + bucket
	} else {
		u.Host = bucket + "." + u.Host
	}
	u.Path, u.RawPath, u.RawQuery = prefix+"/"+key, escape(prefix)+"/"+escape(key), query
	return &u
}

func (s *Store) region(bucket string) string {
	if s.o.Region == "" || s.o.CrossRegion {
		if r, ok := s.c.regions.Load(s.o.Endpoint + " " + bucket); ok {
			return r.(string)
		}
	}
	if s.o.Region == "" {
		return "us-east-1"
	}
	return s.o.Region
}

// emptyHash is the SHA-256 of no bytes: requests have no bodies.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// request makes a signed GET.
func (s *Store) request(ctx context.Context, bucket, key, query, byteRange string, k credentials.S3) (*http.Request, error) {
	region := s.region(bucket)
	u := s.url(bucket, key, query, region)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fault.New(fault.Invalid, "path s3://%s/%s makes no valid URL", bucket, key)
	}
	r.URL = u
	if byteRange != "" {
		r.Header.Set("Range", byteRange)
	}
	r.Header.Set("X-Amz-Content-Sha256", emptyHash)
	c := aws.Credentials{AccessKeyID: k.AccessKeyID.Reveal(), SecretAccessKey: k.SecretAccessKey.Reveal(), SessionToken: k.SessionToken.Reveal()}
	if err := s.c.signer.SignHTTP(ctx, c, r, emptyHash, "s3", region, s.o.Now()); err != nil {
		return nil, fault.New(fault.Internal, "a request for s3://%s/%s could not be signed", bucket, key)
	}
	return r, nil
}

// Open implements storage.Store. An object of known size is not touched before its first read.
func (s *Store) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	bucket, key, err := split(path)
	if err == nil && key == "" {
		err = fault.New(fault.Invalid, "path %s names no object", path)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if size < 0 {
		info, err := s.stat(ctx, path, bucket, key)
		if err != nil {
			return nil, err
		}
		size = info.Size
	}
	octx, cancel := context.WithCancel(context.Background())
	return &object{s: s, path: path, bucket: bucket, key: key, size: size, closed: octx, close: cancel}, nil
}

// Stat implements storage.Store. What is no object is a folder when something lies in it.
func (s *Store) Stat(ctx context.Context, path string) (storage.Info, error) {
	bucket, key, err := split(path)
	if err != nil {
		return storage.Info{}, err
	}
	if key != "" {
		info, err := s.stat(ctx, path, bucket, key)
		if !errors.Is(err, fault.NotFound) {
			return info, err
		}
		key = strings.TrimSuffix(key, "/") + "/"
	}
	q := url.Values{"list-type": {"2"}, "prefix": {key}, "max-keys": {"1"}, "encoding-type": {"url"}}
	var l listing
	if err := s.get(ctx, call{path: path, bucket: bucket, query: strings.ReplaceAll(q.Encode(), "+", "%20"), document: &l}); err != nil {
		return storage.Info{}, err
	}
	if len(l.Contents) == 0 {
		return storage.Info{}, fault.New(fault.NotFound, "object %s does not exist", path)
	}
	return storage.Info{Path: path, Dir: true}, nil
}

// stat reads one byte of an object: unlike a HEAD, that is answered with a reason when it is refused.
func (s *Store) stat(ctx context.Context, path, bucket, key string) (storage.Info, error) {
	info := storage.Info{Path: path, Size: -1}
	err := s.get(ctx, call{path: path, bucket: bucket, key: key, byteRange: func() string { return "bytes=0-0" }, accept: func(r *http.Response) error {
		if t, err := http.ParseTime(r.Header.Get("Last-Modified")); err == nil {
			info.Modified = t
		}
		switch r.StatusCode {
		case http.StatusOK:
			info.Size = r.ContentLength
		case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
			if _, total, ok := parseContentRange(r.Header.Get("Content-Range")); ok {
				info.Size = total
			} else if r.StatusCode == http.StatusRequestedRangeNotSatisfiable {
				info.Size = 0 // the only size in which byte 0 is past the end
			}
		}
		if info.Size < 0 {
			return fault.New(fault.Unavailable, "object %s: the store tells no size", path)
		}
		return nil
	}})
	return info, err
}

// listing is the part of ListObjectsV2's answer that is read.
type listing struct {
	Truncated bool   `xml:"IsTruncated"`
	Next      string `xml:"NextContinuationToken"`
	Contents  []struct {
		Key      string    `xml:"Key"`
		Size     int64     `xml:"Size"`
		Modified time.Time `xml:"LastModified"`
	} `xml:"Contents"`
	Folders []struct {
		Prefix string `xml:"Prefix"`
	} `xml:"CommonPrefixes"`
}

// maxListing bounds the children of one folder that are listed, in pages of a thousand.
const maxListingPages = 1000

// List implements storage.Store. A folder exists when something lies in it.
func (s *Store) List(ctx context.Context, dir string) ([]storage.Info, error) {
	dir = strings.TrimSuffix(dir, "/")
	bucket, prefix, err := split(dir)
	if err != nil {
		return nil, err
	}
	if prefix != "" {
		prefix += "/"
	}
	var out []storage.Info
	token := ""
	for page := 0; ; page++ {
		if page == maxListingPages {
			return nil, fault.New(fault.Exhausted, "folder %s holds too many objects to list", dir)
		}
		// url.Values.Encode writes a blank as +, which signatures want as %20.
		q := url.Values{"list-type": {"2"}, "delimiter": {"/"}, "prefix": {prefix}, "encoding-type": {"url"}}
		if token != "" {
			q.Set("continuation-token", token)
		}
		var l listing
		err := s.get(ctx, call{path: dir, bucket: bucket, query: strings.ReplaceAll(q.Encode(), "+", "%20"), document: &l})
		if err != nil {
			return nil, err
		}
		decode := func(k string) string {
			if d, err := url.QueryUnescape(k); err == nil {
				return d
			}
			return k
		}
		for _, f := range l.Folders {
			name := strings.TrimSuffix(strings.TrimPrefix(decode(f.Prefix), prefix), "/")
			if name != "" {
				out = append(out, storage.Info{Path: dir + "/" + name, Dir: true})
			}
		}
		for _, c := range l.Contents {
			if name := strings.TrimPrefix(decode(c.Key), prefix); name != "" {
				out = append(out, storage.Info{Path: dir + "/" + name, Size: c.Size, Modified: c.Modified})
			}
		}
		if token = l.Next; !l.Truncated || token == "" {
			break
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.NotFound, "folder %s does not exist", dir)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Dir != out[j].Dir {
			return out[i].Dir
		}
		return out[i].Path < out[j].Path
	})
	return out, nil
}

// parseContentRange reads "bytes 0-9/100" and "bytes */100".
func parseContentRange(h string) (first, total int64, ok bool) {
	h, ok = strings.CutPrefix(h, "bytes ")
	if !ok {
		return 0, 0, false
	}
	span, size, _ := strings.Cut(h, "/")
	total, err := strconv.ParseInt(size, 10, 64)
	if err != nil || total < 0 {
		return 0, 0, false
	}
	if span == "*" {
		return -1, total, true
	}
	from, _, _ := strings.Cut(span, "-")
	first, err = strconv.ParseInt(from, 10, 64)
	return first, total, err == nil && first >= 0
}

// failure is S3's error document. Its message is not read: it may repeat what was signed.
type failure struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Region  string   `xml:"Region"`
}
