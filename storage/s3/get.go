package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/fault"
)

// call is one logical request, which may take several.
type call struct {
	path, bucket, key, query string
	// byteRange tells the Range header of the next try; nil for none.
	byteRange func() string
	// accept reads the response of a try; 416 comes here too. An error that is interrupted is tried again.
	accept func(*http.Response) error
	// document, instead of accept, is filled from an XML body.
	document any
	// progress counts what came so far: tries are counted anew whenever it grew. May be nil.
	progress func() int64
}

// interrupted marks an error that another try may mend.
type interrupted struct{ error }

func (i interrupted) Unwrap() error { return i.error }

const maxDocument = 16 << 20 // bytes of an XML answer

// get carries a call through: keys are renewed once when the store calls one expired, what a later try may mend is tried
// again after a pause, all else is an error of its kind.
func (s *Store) get(ctx context.Context, c call) error {
	tries, renewed, moved := 0, false, false
	seen := int64(0)
	for {
		key, err := s.o.Keys.Key(ctx, c.path)
		if err != nil {
			return err
		}
		wait, err := s.try(ctx, c, key)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.progress != nil && c.progress() > seen {
			seen, tries, renewed = c.progress(), 0, false
		}
		var again interrupted
		var stale staleKey
		var elsewhere otherRegion
		switch {
		case errors.As(err, &stale):
			s.o.Keys.Refused(c.path, key)
			if renewed {
				return fault.New(fault.Expired, "object %s: the store says that the key has expired (%s), and so is the one that followed it", c.path, stale.code)
			}
			renewed = true
			continue
		case errors.As(err, &elsewhere):
			if s.o.Region != "" && !s.o.CrossRegion || moved || elsewhere.region == "" {
				return elsewhere.fault(c, s.region(c.bucket))
			}
			moved = true
			s.c.regions.Store(s.o.Endpoint+" "+c.bucket, elsewhere.region)
			continue
		case !errors.As(err, &again):
			return err
		}
		if tries++; tries > s.o.Retries {
			return fault.Wrap(fault.Unavailable, again.error, "object %s: after %d tries", c.path, tries)
		}
		if err := pause(ctx, max(wait, s.backoff(tries))); err != nil {
			return err
		}
	}
}

// backoff doubles from MinWait to MaxWait and spreads over its upper half, lest all readers come back at once.
func (s *Store) backoff(tries int) time.Duration {
	d := min(s.o.MinWait<<min(tries-1, 16), s.o.MaxWait)
	return d/2 + rand.N(d/2+1)
}

func pause(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		d = time.Until(deadline)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watched is a body that must bring bytes within the stall timeout.
type watched struct {
	io.Reader
	t *time.Timer
	d time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.t.Reset(w.d)
	}
	return n, err
}

// try makes one request. wait is how long the store asks to stay away.
func (s *Store) try(ctx context.Context, c call, key credentials.S3) (wait time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(s.o.StallTimeout, cancel)
	defer timer.Stop()
	byteRange := ""
	if c.byteRange != nil {
		byteRange = c.byteRange()
	}
	req, err := s.request(ctx, c.bucket, c.key, c.query, byteRange, key)
	if err != nil {
		return 0, err
	}
	r, err := s.c.http.Do(req)
	if err != nil {
		return 0, network(err)
	}
	defer func() { _ = r.Body.Close() }()
	body := &watched{r.Body, timer, s.o.StallTimeout}
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	switch {
	case r.StatusCode == http.StatusOK || r.StatusCode == http.StatusPartialContent,
		r.StatusCode == http.StatusRequestedRangeNotSatisfiable && c.accept != nil:
		if c.document == nil {
			return 0, c.accept(r)
		}
		raw, err := io.ReadAll(io.LimitReader(r.Body, maxDocument))
		if err != nil {
			return 0, network(err)
		}
		if err := xml.Unmarshal(raw, c.document); err != nil {
			return 0, interrupted{fault.New(fault.Unavailable, "the store's answer is no XML")}
		}
		return 0, nil
	}
	return s.refusal(c, r)
}

// network classifies an error below HTTP. Its text is made anew, since Go's holds the whole URL.
func network(err error) error {
	var e *fault.Error
	if errors.As(err, &e) {
		return e
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return fault.New(fault.Unavailable, "the store's host %s is not known", dns.Name)
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return interrupted{fault.New(fault.Unavailable, "the store does not answer: %v", op)}
	case errors.Is(err, context.Canceled):
		return interrupted{fault.New(fault.Unavailable, "the store sent nothing for too long")}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return interrupted{fault.New(fault.Unavailable, "the store ended the connection early")}
	case errors.As(err, &op):
		return interrupted{fault.New(fault.Unavailable, "the connection to the store broke: %v", op.Err)}
	}
	text := err.Error()
	if i := strings.LastIndex(text, `": `); i >= 0 {
		text = text[i+3:]
	}
	return interrupted{fault.New(fault.Unavailable, "the store does not answer: %s", text)}
}

type staleKey struct{ code string }

func (s staleKey) Error() string { return s.code }

type otherRegion struct{ region string }

func (o otherRegion) Error() string { return "wrong region" }

func (o otherRegion) fault(c call, asked string) error {
	if o.region == "" {
		return fault.New(fault.Invalid, "object %s: bucket %s is not in region %s; set client.region to the bucket's own", c.path, c.bucket, asked)
	}
	return fault.New(fault.Invalid, "object %s: bucket %s is in region %s, and was asked for in %s; set client.region or s3.cross-region-access-enabled", c.path, c.bucket, o.region, asked)
}

var plainCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)

// refusal turns an answer that is no success into an error of its kind, by S3's code first and the status then.
func (s *Store) refusal(c call, r *http.Response) (time.Duration, error) {
	raw, _ := io.ReadAll(io.LimitReader(r.Body, 64<<10)) // a body that breaks leaves the status
	var f failure
	_ = xml.Unmarshal(raw, &f) // proxies answer in HTML
	said := f.Code
	if !plainCode.MatchString(said) {
		f.Code, said = "", strconv.Itoa(r.StatusCode)
	}
	region := r.Header.Get("X-Amz-Bucket-Region")
	if region == "" {
		region = f.Region
	}
	if !plainRegion.MatchString(region) {
		region = ""
	}
	switch f.Code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "RequestTimeTooSkewed":
		return 0, staleKey{f.Code}
	case "NoSuchBucket":
		return 0, fault.New(fault.NotFound, "object %s: bucket %s does not exist", c.path, c.bucket)
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return 0, otherRegion{region}
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return 0, fault.New(fault.Denied, "object %s: the store does not accept the key (%s)", c.path, f.Code)
	case "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable":
		return retryAfter(r), interrupted{fault.New(fault.Unavailable, "the store says %s", f.Code)}
	}
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return 0, otherRegion{region}
	case http.StatusNotFound:
		return 0, fault.New(fault.NotFound, "object %s does not exist", c.path)
	case http.StatusUnauthorized, http.StatusForbidden:
		return 0, fault.New(fault.Denied, "object %s may not be read with the key that there is (%s)", c.path, said)
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, fault.New(fault.Corrupt, "object %s is shorter than was asked for", c.path)
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(r), interrupted{fault.New(fault.Unavailable, "the store says %s", said)}
	}
	return 0, fault.New(fault.Unavailable, "object %s: the store says %s", c.path, said)
}

var plainRegion = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)

// longestWait bounds a Retry-After that is followed.
const longestWait = time.Minute

func retryAfter(r *http.Response) time.Duration {
	h := r.Header.Get("Retry-After")
	d := time.Duration(0)
	if n, err := strconv.Atoi(h); err == nil && n > 0 {
		d = time.Duration(min(n, 3600)) * time.Second
	} else if t, err := http.ParseTime(h); err == nil {
		d = time.Until(t)
	}
	return max(0, min(d, longestWait))
}
