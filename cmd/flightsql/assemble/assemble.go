// Package assemble builds a server and all it stands on from a configuration, in one visible order.
//
// It holds no logic of its own. What it returns is safe for concurrent use once assembled.
package assemble

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/skua-db/skua/access"
	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/catalog/glue"
	"github.com/skua-db/skua/catalog/hadoop"
	"github.com/skua-db/skua/catalog/located"
	"github.com/skua-db/skua/catalog/registered"
	"github.com/skua-db/skua/catalog/rest"
	"github.com/skua-db/skua/catalog/sqldb"
	"github.com/skua-db/skua/cmd/flightsql/version"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/credentials"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/encryption/seal"
	"github.com/skua-db/skua/exec/spill"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/server"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/storage/s3"
)

// Stack is a server with what it stands on.
type Stack struct {
	Server *server.Server
	Pool   *memory.Pool
	close  []func()
}

// Close stops the server, then frees what it used, last made first.
func (s *Stack) Close() {
	s.Server.Close()
	for i := len(s.close) - 1; i >= 0; i-- {
		s.close[i]()
	}
}

// Option changes what Build assembles beyond the configuration.
type Option func(*server.Options)

// LoneFiles lets statements read files by name. It is for a server inside the process of the person who asks, never for one
// with a port.
func LoneFiles(o *server.Options) { o.Files = o.Scanner.OpenFiles }

// Build assembles a server. A catalog that cannot be opened is an error: it would only fail later, and quieter.
func Build(ctx context.Context, c *config.Config, log *zap.Logger, options ...Option) (*Stack, error) {
	total := c.Limits.Memory.Of(config.MachineMemory())
	promised, most := memory.Split(total)
	pool := memory.NewPool("limits.memory", promised)
	s := &Stack{Pool: pool}
	budget := cache.NewBudget(pool, c.Caches.Memory.Of(promised))
	s.close = append(s.close, budget.Close)
	disk := spill.Open(c.Limits.Spill.Dir, c.Limits.Spill.Max.Bytes)
	s.close = append(s.close, func() { _ = disk.Close() })
	scan := scanner.New(scanner.Options{Budget: budget, Workers: c.QueryWorkers()})
	catalogs, err := Catalogs(ctx, c)
	if err != nil {
		return nil, err
	}
	var policy *access.Source
	if c.Auth.PolicyFile != "" {
		if policy, err = access.Open(c.Auth.PolicyFile, log); err != nil {
			return nil, err
		}
		for i := range catalogs {
			catalogs[i] = access.Guard(catalogs[i], policy)
		}
	}
	auth, err := authenticator(c, log)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, auth.Close)
	sealer, err := sealer(c)
	if err != nil {
		return nil, err
	}
	transport, err := transport(c.TLS, log)
	if err != nil {
		return nil, err
	}
	audit, closeAudit, err := auditLog(c.Observability.Audit)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, closeAudit)
	opt := server.Options{
		Catalogs: catalogs, DefaultCatalog: c.Default.Catalog, DefaultSchema: c.Default.Schema,
		Scanner: scan, Pool: pool, Budget: budget, Workers: c.QueryWorkers(), ChunkRows: c.Limits.ChunkRows, QueryMemory: c.Limits.Query.Memory.Of(promised),
		QueryTime: c.Limits.Query.Time, Spill: disk,
		Concurrency: c.Limits.Concurrency.Queries, QueueTime: c.Limits.Concurrency.Wait, Queue: c.Limits.Concurrency.Queue, Lookups: c.Limits.Concurrency.Lookups,
		PrincipalConcurrency: c.Limits.Principal.Queries, PrincipalQueue: c.Limits.Principal.Queue,
		Results:     server.ResultLimits{Rows: int64(c.Limits.Query.Rows), Bytes: c.Limits.Query.Result.Bytes, Scan: c.Limits.Query.Scan.Bytes},
		Connections: c.Limits.Connections.Max, ConnectionAge: c.Limits.Connections.Age, ConnectionIdle: c.Limits.Connections.Idle,
		Drain: server.Drain(c.Drain), Statements: statements(c.Observability.Statements), Audit: audit,
		Auth: auth, Sealer: sealer, TLS: transport, Version: version.String(), Log: log,
	}
	if policy != nil {
		opt.Policy = policy
	}
	for _, set := range options {
		set(&opt)
	}
	if s.Server, err = server.New(opt); err != nil {
		return nil, err
	}
	s.close = append(s.close, memory.Govern(pool, promised, c.Limits.Query.Memory.Of(promised), most))
	return s, nil
}

// Prove opens what Build would open and leaves it again: the users file, the certificate and the warehouses of the catalogs. With
// connect it also asks the servers of catalogs to let it in. All that is wrong is told at once.
func Prove(ctx context.Context, c *config.Config, connect bool) error {
	catalogs, err := Catalogs(ctx, c)
	all := []error{err}
	for _, cat := range catalogs {
		if remote, ok := cat.(interface{ Connect(context.Context) error }); ok && connect {
			all = append(all, remote.Connect(ctx))
		}
		all = append(all, cat.Close())
	}
	auth, noAuth := authenticator(c, zap.NewNop())
	if noAuth == nil {
		auth.Close()
	}
	_, noSealer := sealer(c)
	_, noTransport := transport(c.TLS, zap.NewNop())
	var lines []string
	for _, err := range append(all, noAuth, noSealer, noTransport) {
		if err != nil {
			lines = append(lines, err.Error())
		}
	}
	if len(lines) > 0 {
		return errors.New(strings.Join(lines, "\n"))
	}
	return nil
}

// Catalogs opens the catalogs of a configuration, in the order of their names.
func Catalogs(ctx context.Context, c *config.Config) ([]catalog.Catalog, error) {
	var out []catalog.Catalog
	var common *encryption.Keyring // of all catalogs without a key management service of their own
	for _, name := range c.CatalogNames() {
		cc := c.Catalogs[name]
		mapping := catalog.NewLocationMapping(cc.LocationMapping)
		prefixes := append([]string(nil), cc.AllowedPrefixes...)
		for _, to := range cc.LocationMapping {
			prefixes = append(prefixes, to)
		}
		var cat catalog.Catalog
		keys := common
		var err error
		if keys == nil || cc.Properties[config.KMSTypeProperty] != "" {
			if keys, err = keyring(ctx, c.Encryption, cc.Properties); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "catalog %s", name)
			}
		}
		if cc.Properties[config.KMSTypeProperty] == "" {
			common = keys
		}
		properties := cc.OwnProperties()
		switch cc.Type {
		case "hadoop":
			var files storage.Store = storage.Local{}
			if s3.IsPath(properties["warehouse"]) {
				files, err = located.Files(located.Options{Name: name, Properties: properties, Prefixes: prefixes, Ambient: credentials.NewAmbient()})
			}
			if err == nil {
				cat, err = hadoop.New(ctx, hadoop.Options{
					Name: name, Warehouse: properties["warehouse"], Store: files, Prefixes: prefixes, Locations: mapping, Keys: keys,
				})
			}
		case "glue", "sql":
			ambient := credentials.NewAmbient()
			var index located.Index
			if cc.Type == "glue" {
				index, err = glue.Open(properties, ambient)
			} else {
				index, err = sqldb.Open(name, properties)
			}
			if err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "catalog %s", name)
			}
			cat, err = located.New(located.Options{Name: name, Properties: properties, Prefixes: prefixes, Locations: mapping, Keys: keys, Ambient: ambient}, index)
		case "registered":
			cat, err = registered.New(registered.Options{
				Name: name, Tables: cc.Tables, Store: storage.Local{}, Prefixes: prefixes, Locations: mapping, Keys: keys,
			})
		case "rest":
			cat, err = rest.Open(rest.Options{
				Name: name, Properties: properties, Prefixes: prefixes, Locations: mapping, Keys: keys, Ambient: credentials.NewAmbient(),
			})
		default:
			err = fault.New(fault.Invalid, "catalog %s: type %q is not known", name, cc.Type)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, cat)
	}
	return out, nil
}

// keyring opens the key management service of a catalog with the given properties; nil when there is none.
func keyring(ctx context.Context, e config.Encryption, properties map[string]string) (*encryption.Keyring, error) {
	settings, ok := e.KMS.Settings(properties)
	if !ok {
		return nil, nil
	}
	service, err := settings.Service(ctx)
	if err != nil {
		return nil, err
	}
	return encryption.NewKeyring(encryption.KeyringOptions{
		Service: service, Accept: e.Risks(), Life: e.KMS.KeyLife, Timeout: e.KMS.Timeout, Rate: float64(e.KMS.Rate),
	}), nil
}

func authenticator(c *config.Config, log *zap.Logger) (*server.Authenticator, error) {
	opt := server.AuthOptions{Anonymous: c.Auth.Anonymous, UsersFile: c.Auth.UsersFile, Tokens: map[string]string{}}
	for _, s := range c.Auth.Subjects {
		opt.Certificates = append(opt.Certificates, server.CertificateRule(s))
	}
	for _, o := range c.Auth.OIDC {
		client, err := trusting(o.CAFile)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "issuer %s", o.Issuer)
		}
		opt.Issuers = append(opt.Issuers, server.IssuerOptions{Issuer: o.Issuer, Audience: o.Audience, Algorithms: o.Algorithms,
			PrincipalClaim: o.PrincipalClaim, RolesClaim: o.RolesClaim, Skew: o.ClockSkew, Client: client, Log: log})
	}
	for _, t := range c.Auth.Tokens {
		opt.Tokens[t.Secret] = t.Name
	}
	return server.NewAuthenticator(opt)
}

func sealer(c *config.Config) (*seal.Sealer, error) {
	if len(c.Auth.TicketKeys) == 0 {
		return seal.Random()
	}
	keys := make([]seal.Key, len(c.Auth.TicketKeys))
	for i, k := range c.Auth.TicketKeys {
		keys[i] = seal.Key{ID: k.ID, Secret: []byte(k.Secret)}
	}
	return seal.New(keys...)
}

func statements(c config.Statements) server.StatementLog {
	l := server.StatementLog{All: c.Log == "all", Text: c.Text}
	if c.Log != "none" {
		l.Slow = c.Slow
	}
	return l
}

// auditLog opens the audit log; nil when there is none.
func auditLog(c config.Audit) (log *zap.Logger, end func(), err error) {
	if c.File == "" {
		return nil, func() {}, nil
	}
	f, err := os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, err, "observability.audit.file")
	}
	ec := zap.NewProductionEncoderConfig()
	ec.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	ec.LevelKey = ""
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(ec), zapcore.Lock(f), zapcore.InfoLevel)), func() { _ = f.Close() }, nil
}

// Logger makes the log that the configuration describes, on standard error.
func Logger(l config.Log) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(l.Level)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "observability.log.level")
	}
	human := l.Format == "text" || l.Format == "auto" && term.IsTerminal(int(os.Stderr.Fd()))
	var encoder zapcore.Encoder
	if human {
		ec := zap.NewDevelopmentEncoderConfig()
		ec.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoder = zapcore.NewConsoleEncoder(ec)
	} else {
		encoder = zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), level)), nil
}

// Listen opens the Flight port.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		if strings.Contains(err.Error(), "address already in use") {
			return nil, fault.New(fault.Unavailable, "%s is in use by another process; choose another with --listen", address)
		}
		return nil, fault.Wrap(fault.Unavailable, err, "listen.flight")
	}
	return l, nil
}
