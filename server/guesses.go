package server

import (
	"context"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// guesses delays those who guess passwords: each wrong one doubles the time until the next is looked at, by name and by address.
// Both count, so that one address cannot try many names nor many addresses one name; a right one forgets what was counted.
type guesses struct {
	mu     sync.Mutex
	counts *simplelru.LRU[string, guessed]
}

type guessed struct {
	wrong int
	next  time.Time // when the next is looked at
}

const (
	rememberedGuesses = 1 << 14
	freeGuesses       = 3 // a person mistypes
	firstDelay        = 250 * time.Millisecond
	longestDelay      = 8 * time.Second
	forgetAfter       = 15 * time.Minute
)

func newGuesses() *guesses {
	counts, err := simplelru.NewLRU[string, guessed](rememberedGuesses, nil)
	if err != nil {
		panic(err) // the size is ours
	}
	return &guesses{counts: counts}
}

func guessKeys(name, address string) [2]string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return [2]string{"name " + name, "address " + host}
}

// wait holds a password back as long as the wrong ones before it deserve.
func (g *guesses) wait(ctx context.Context, name, address string) error {
	g.mu.Lock()
	var until time.Time
	for _, k := range guessKeys(name, address) {
		if c, ok := g.counts.Get(k); ok && c.next.After(until) {
			until = c.next
		}
	}
	g.mu.Unlock()
	d := time.Until(until)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *guesses) wrong(name, address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range guessKeys(name, address) {
		c, _ := g.counts.Get(k)
		if time.Since(c.next) > forgetAfter {
			c.wrong = 0
		}
		c.wrong++
		c.next = time.Now()
		if over := c.wrong - freeGuesses; over > 0 {
			c.next = c.next.Add(min(firstDelay<<min(over-1, 16), longestDelay))
		}
		g.counts.Add(k, c)
	}
}

func (g *guesses) right(name, address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, k := range guessKeys(name, address) {
		g.counts.Remove(k)
	}
}

// CertificateRule names the principal of a verified client certificate.
type CertificateRule struct {
	// Subject is matched against the certificate's subject (RFC 2253, "CN=etl,O=Example") and its subject alternative names; * stands
	// for anything.
	Subject string
	// Principal is the name; $CN in it stands for the subject's common name.
	Principal string
}

// subject is a CertificateRule ready to match, for it is asked at every call.
type subject struct {
	pattern   *regexp.Regexp
	principal string
}

func newSubject(r CertificateRule) subject {
	parts := strings.Split(r.Subject, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return subject{regexp.MustCompile(`\A` + strings.Join(parts, ".*") + `\z`), r.Principal} // quoted, it always compiles
}

// certified gives the principal of the certificate that the caller's connection was opened with.
func (a *Authenticator) certified(ctx context.Context) (string, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return "", false
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return "", false
	}
	leaf := info.State.VerifiedChains[0][0]
	names := append([]string{leaf.Subject.String()}, leaf.DNSNames...)
	names = append(names, leaf.EmailAddresses...)
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	for _, s := range a.subjects {
		if slices.ContainsFunc(names, s.pattern.MatchString) {
			name := strings.ReplaceAll(s.principal, "$CN", leaf.Subject.CommonName)
			return name, name != ""
		}
	}
	return "", false
}
