package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/fault"
)

// anonymous is the principal of callers that need not say who they are.
const anonymous = "anonymous"

const tokenLife = 12 * time.Hour

// Authenticator knows the users and tokens. It is safe for concurrent use.
type Authenticator struct {
	anonymous bool
	users     map[string]string // name -> bcrypt or argon2id hash
	tokens    map[[sha256.Size]byte]string
	hashing   chan struct{}                         // as many as may be computed at once
	verified  *lru.Cache[[sha256.Size]byte, string] // proven name+password pairs, since clients send them on every call
	guesses   *guesses
	issuers   []*issuer
	subjects  []subject
	end       context.CancelFunc
}

// Close ends what watches identity providers.
func (a *Authenticator) Close() { a.end() }

// AuthOptions configures an Authenticator.
type AuthOptions struct {
	// Anonymous lets callers without credentials in.
	Anonymous bool
	// UsersFile has lines name:hash, the hash by bcrypt or argon2id; empty for none.
	UsersFile string
	// Tokens maps a static bearer token to the name of its principal.
	Tokens map[string]string
	// Issuers are the identity providers whose tokens are taken.
	Issuers []IssuerOptions
	// Certificates say who shows which client certificate; the first rule that fits counts.
	Certificates []CertificateRule
}

const (
	verifiedPairs = 4096
	hashesAtOnce  = 2
)

// NewAuthenticator reads the users file. A line that cannot be understood is fault.Invalid naming file and line.
func NewAuthenticator(opt AuthOptions) (*Authenticator, error) {
	ctx, end := context.WithCancel(context.Background())
	a := &Authenticator{anonymous: opt.Anonymous, users: map[string]string{}, tokens: map[[sha256.Size]byte]string{}, hashing: make(chan struct{}, hashesAtOnce),
		guesses: newGuesses(), end: end}
	for _, r := range opt.Certificates {
		a.subjects = append(a.subjects, newSubject(r))
	}
	for _, o := range opt.Issuers {
		i, err := newIssuer(ctx, o)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "issuer %s", o.Issuer)
		}
		a.issuers = append(a.issuers, i)
	}
	for token, name := range opt.Tokens {
		a.tokens[sha256.Sum256([]byte(token))] = name
	}
	var err error
	if a.verified, err = lru.New[[sha256.Size]byte, string](verifiedPairs); err != nil {
		return nil, err
	}
	if opt.UsersFile == "" {
		return a, nil
	}
	content, err := os.ReadFile(opt.UsersFile)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "users file")
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, hash, ok := strings.Cut(line, ":")
		if !ok || name == "" {
			return nil, fault.New(fault.Invalid, "users file %s line %d is not of the form name:hash", opt.UsersFile, n)
		}
		if err := knownHash(hash); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "users file %s line %d", opt.UsersFile, n)
		}
		if _, twice := a.users[name]; twice {
			return nil, fault.New(fault.Invalid, "users file %s line %d: %s stands twice", opt.UsersFile, n, name)
		}
		a.users[name] = hash
	}
	return a, lines.Err()
}

// checkPassword tells whether the pair is right, in time that does not tell whether the name exists.
func (a *Authenticator) checkPassword(name, password string) bool {
	pair := sha256.Sum256([]byte(name + "\x00" + password))
	if known, ok := a.verified.Get(pair); ok && known == name {
		return true
	}
	hash, exists := a.users[name]
	if !exists {
		for _, other := range a.users {
			hash = other
			break
		}
	}
	// Hashes are slow and large by design: a few at a time, however many guesses come.
	a.hashing <- struct{}{}
	right := checkHash(hash, password)
	<-a.hashing
	if !right || !exists {
		return false
	}
	a.verified.Add(pair, name)
	return true
}

func checkHash(hash, password string) bool {
	if strings.HasPrefix(hash, "$argon2id$") {
		return checkArgon2(hash, password)
	}
	return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
}

// knownHash refuses a hash that no password could ever fit: a truncated line would lock its user out without a word.
func knownHash(hash string) error {
	if strings.HasPrefix(hash, "$argon2id$") {
		_, err := parseArgon2(hash)
		return err
	}
	if _, err := bcrypt.Cost([]byte(hash)); err != nil || len(hash) != bcryptBytes {
		return fault.New(fault.Invalid, "the hash is neither bcrypt ($2b$...) nor argon2id ($argon2id$...), or it is cut short")
	}
	return nil
}

// bcryptBytes is the length of every bcrypt hash.
const bcryptBytes = 60

type argon2Hash struct {
	memoryKiB, time uint32
	threads         uint8
	salt, sum       []byte
}

// parseArgon2 reads the PHC string form $argon2id$v=19$m=..,t=..,p=..$salt$hash.
func parseArgon2(phc string) (argon2Hash, error) {
	bad := fault.New(fault.Invalid, "the argon2id hash is not of the form $argon2id$v=19$m=..,t=..,p=..$salt$hash, or asks for too much")
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[2] != "v=19" {
		return argon2Hash{}, bad
	}
	limits := map[string]uint64{"m": 1 << 21, "t": 64, "p": 64}
	values := map[string]uint64{}
	for _, kv := range strings.Split(parts[3], ",") {
		k, v, _ := strings.Cut(kv, "=")
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n == 0 || n > limits[k] {
			return argon2Hash{}, bad
		}
		values[k] = n
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	sum, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(values) != len(limits) || len(sum) < 16 || len(sum) > 128 {
		return argon2Hash{}, bad
	}
	return argon2Hash{uint32(values["m"]), uint32(values["t"]), uint8(values["p"]), salt, sum}, nil
}

func checkArgon2(phc, password string) bool {
	h, err := parseArgon2(phc)
	if err != nil {
		return false
	}
	got := argon2.IDKey([]byte(password), h.salt, h.time, h.memoryKiB, h.threads, uint32(len(h.sum)))
	return subtle.ConstantTimeCompare(got, h.sum) == 1
}

// bearer is what a token of ours holds, sealed.
type bearer struct {
	Kind      string `json:"k"`
	Principal string `json:"p"`
	Session   string `json:"s"`
	Expiry    int64  `json:"e"` // Unix seconds
}

// shown is what credentials prove.
type shown struct {
	principal, session string
	roles              []string
	token              credentials.Secret // that of an identity provider, for those who take it in turn
}

const bearerKind = "bearer"

func newBearer(sealer *seal.Sealer, principal string) (token, sessionID string) {
	sessionID = uuid.NewString()
	b, _ := json.Marshal(bearer{bearerKind, principal, sessionID, time.Now().Add(tokenLife).Unix()}) // plain strings always marshal
	return base64.RawURLEncoding.EncodeToString(sealer.Seal(b)), sessionID
}

func openBearer(sealer *seal.Sealer, token string) (bearer, error) {
	var b bearer
	blob, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return b, fault.New(fault.Unauthenticated, "bearer token is not known")
	}
	plain, err := sealer.Open(blob)
	if err != nil || json.Unmarshal(plain, &b) != nil || b.Kind != bearerKind {
		return b, fault.New(fault.Unauthenticated, "bearer token is not known")
	}
	if time.Now().Unix() > b.Expiry {
		return b, fault.New(fault.Unauthenticated, "bearer token has expired; log in again")
	}
	return b, nil
}

// identify finds who calls and their session. Basic and Bearer are taken on every call, Handshake or not: JDBC shakes
// hands with either, ADBC sends Basic each time.
func (s *Server) identify(ctx context.Context, method string, setHeader func(metadata.MD) error) (context.Context, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	c := caller{}
	var who shown
	var err error
	sessionID := cookieSession(md)
	scheme, secret, _ := strings.Cut(strings.TrimSpace(first(md, "authorization")), " ")
	switch {
	case scheme == "":
		if name, ok := s.opt.Auth.certified(ctx); ok {
			who.principal = name
			break
		}
		if !s.opt.Auth.anonymous {
			return ctx, fault.New(fault.Unauthenticated, "this server needs a user name and password, or a bearer token")
		}
		who.principal = anonymous
	case strings.EqualFold(scheme, "basic"):
		who, err = s.basic(ctx, secret)
	case strings.EqualFold(scheme, "bearer"):
		who, err = s.bearer(ctx, strings.TrimSpace(secret))
	default:
		err = fault.New(fault.Unauthenticated, "authorization scheme %q is not known; use Basic or Bearer", scheme)
	}
	if err != nil {
		return ctx, err
	}
	c.principal = who.principal
	if who.session != "" {
		sessionID = who.session
	}
	if strings.HasSuffix(method, "/Handshake") {
		token, id := newBearer(s.opt.Sealer, c.principal)
		if !who.token.Empty() { // its expiry and roles are its provider's
			token, id = who.token.Reveal(), who.session
		}
		sessionID = id
		if err := setHeader(metadata.Pairs("authorization", "Bearer "+token)); err != nil {
			return ctx, err
		}
	}
	if sessionID == "" {
		sessionID = peerSession + peerAddress(ctx)
	}
	c.session = s.sessions.get(c.principal, sessionID)
	return credentials.WithCaller(context.WithValue(ctx, callerKey{}, c), credentials.Caller{Name: c.principal, Roles: who.roles, Token: who.token}), nil
}

// basic checks name and password. The user name "token" carries a bearer token in the password box, for tools
// that have two boxes and no third.
func (s *Server) basic(ctx context.Context, pair string) (shown, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(pair))
	if err != nil {
		if raw, err = base64.RawStdEncoding.DecodeString(strings.TrimSpace(pair)); err != nil {
			return shown{}, fault.New(fault.Unauthenticated, "the Basic credentials are not valid base64")
		}
	}
	name, password, _ := strings.Cut(string(raw), ":")
	if name == "token" {
		return s.bearer(ctx, password)
	}
	if err := s.opt.Auth.guesses.wait(ctx, name, peerAddress(ctx)); err != nil {
		return shown{}, err
	}
	if s.opt.Auth.checkPassword(name, password) {
		s.opt.Auth.guesses.right(name, peerAddress(ctx))
		return shown{principal: name}, nil
	}
	if s.opt.Auth.anonymous && len(s.opt.Auth.users) == 0 {
		return shown{principal: anonymous}, nil // a demo server takes whatever a tool insists on sending
	}
	s.opt.Auth.guesses.wrong(name, peerAddress(ctx))
	return shown{}, fault.New(fault.Unauthenticated, "user name or password is wrong")
}

func (s *Server) bearer(ctx context.Context, token string) (shown, error) {
	sum := sha256.Sum256([]byte(token))
	if name, ok := s.opt.Auth.tokens[sum]; ok {
		return shown{principal: name}, nil
	}
	if isJWT(token) && len(s.opt.Auth.issuers) > 0 {
		if len(token) > maxTokenBytes {
			return shown{}, fault.New(fault.Unauthenticated, "the token has %d bytes, more than %d", len(token), maxTokenBytes)
		}
		for _, i := range s.opt.Auth.issuers {
			id, known := i.known(sum)
			var err error
			switch {
			case known:
			case i.names(token):
				id, err = i.verify(ctx, token, sum)
			default:
				continue
			}
			return shown{id.principal, "jwt-" + hex.EncodeToString(sum[:16]), id.roles, credentials.NewSecret(token)}, err
		}
		return shown{}, fault.New(fault.Unauthenticated, "the token is of an issuer that this server does not know")
	}
	b, err := openBearer(s.opt.Sealer, token)
	return shown{principal: b.Principal, session: b.Session}, err
}

// Handshake answers with a token in the response header, which the interceptor has set.
func (s *Server) Handshake(stream flight.FlightService_HandshakeServer) error {
	return stream.SendHeader(nil)
}

func first(md metadata.MD, key string) string {
	if v := md.Get(key); len(v) > 0 {
		return v[0]
	}
	return ""
}

func peerAddress(ctx context.Context) string {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ""
	}
	if a, ok := p.Addr.(*net.TCPAddr); ok {
		return a.String()
	}
	return p.Addr.String()
}
