// Package query is the subcommand that runs SQL against any Flight SQL server, or straight on a warehouse folder by way
// of a server of its own inside the process.
//
// A Client is for one statement at a time.
package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/cmd/flightsql/serve"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/fault"
)

// Target says where to send SQL.
type Target struct {
	// Server is grpc://host:port, grpc+tls://host:port or flightsql://host:port; empty to read catalogs and lone files in this
	// process.
	Server string
	// Config is the configuration file whose catalogs this process reads.
	Config string
	// Catalogs are name=folder specifications, as `skua serve --catalog` takes them.
	Catalogs       []string
	User, Password string
	Token          string
	// CAFile is a PEM file of certificates to trust in place of the system's; empty for none.
	CAFile string
	// SkipVerify accepts any certificate.
	SkipVerify bool
	// Catalog and Schema set where the session begins.
	Catalog, Schema string
}

// Client is a connection.
type Client struct {
	flight *flightsql.Client
	header metadata.MD
	close  []func()
}

// Dial connects and logs in.
func Dial(ctx context.Context, t Target) (*Client, error) {
	c := &Client{header: metadata.MD{}}
	var options []grpc.DialOption
	var address string
	if t.Server == "" {
		l, err := c.inProcess(ctx, t)
		if err != nil {
			return nil, err
		}
		address = "passthrough:///in-process"
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	} else {
		u, err := url.Parse(t.Server)
		if err != nil || u.Host == "" {
			return nil, fault.New(fault.Invalid, "%q is not of the form grpc://host:port", t.Server)
		}
		address = u.Host
		switch u.Scheme {
		case "grpc", "grpc+tcp":
			options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
		case "grpc+tls", "flightsql":
			roots, err := trusted(t.CAFile)
			if err != nil {
				return nil, err
			}
			options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: t.SkipVerify, //nolint:gosec // asked for by flag
			})))
		default:
			return nil, fault.New(fault.Invalid, "%q: use grpc:// or grpc+tls://", t.Server)
		}
	}
	fl, err := flightsql.NewClientCtx(ctx, address, nil, nil, options...)
	if err != nil {
		c.Close()
		return nil, err
	}
	c.flight = fl
	c.close = append(c.close, func() { _ = fl.Close() })
	if err := c.login(ctx, t); err != nil {
		c.Close()
		return nil, plain(err)
	}
	for k, v := range map[string]string{"catalog": t.Catalog, "schema": t.Schema} {
		if v != "" {
			c.header.Set(k, v)
		}
	}
	return c, nil
}

// trusted reads the certificates to trust; nil for the system's.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "--ca-file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fault.New(fault.Invalid, "--ca-file %s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// memoryPipe is the size of the connection inside the process, in bytes.
const memoryPipe = 4 << 20

func (c *Client) inProcess(ctx context.Context, t Target) (*bufconn.Listener, error) {
	cfg, err := config.Load(t.Config, nil)
	if err != nil {
		return nil, err
	}
	if err := serve.Flags(cfg, t.Catalogs, ""); err != nil {
		return nil, err
	}
	// The server is reached by this process alone: whoever runs it may read what it may read.
	cfg.Auth = config.Auth{Anonymous: true}
	cfg.Listen = config.Listen{Flight: "127.0.0.1:0"}
	cfg.TLS.CertFile, cfg.TLS.KeyFile = "", ""
	if len(cfg.Catalogs) > 0 { // without any there are the lone files
		if err := cfg.Check(); err != nil {
			return nil, err
		}
	}
	// What the server would write to its log about a fault of its own goes to the one who sees the fault.
	log, err := assemble.Logger(config.Log{Level: "error", Format: "text"})
	if err != nil {
		return nil, err
	}
	stack, err := assemble.Build(ctx, &cfg.Config, log, assemble.LoneFiles)
	if err != nil {
		return nil, err
	}
	l := bufconn.Listen(memoryPipe)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = stack.Server.Serve(l)
	}()
	c.close = append(c.close, func() {
		stack.Close()
		<-done
	})
	return l, nil
}

func (c *Client) login(ctx context.Context, t Target) error {
	switch {
	case t.Token != "":
		c.header.Set("authorization", "Bearer "+t.Token)
	case t.User != "":
		authed, err := c.flight.Client.AuthenticateBasicToken(ctx, t.User, t.Password)
		if err != nil {
			return err
		}
		md, _ := metadata.FromOutgoingContext(authed)
		c.header.Set("authorization", md.Get("authorization")...)
	}
	return nil
}

// Close ends the connection.
func (c *Client) Close() {
	for i := len(c.close) - 1; i >= 0; i-- {
		c.close[i]()
	}
	c.close = nil
}

// Query runs a statement and gives each batch of its answer to visit; the first call tells the schema with a nil batch.
func (c *Client) Query(ctx context.Context, sql string, visit func(*arrow.Schema, arrow.RecordBatch) error) error {
	ctx = metadata.NewOutgoingContext(ctx, c.header)
	info, err := c.flight.Execute(ctx, sql)
	if err != nil {
		return plain(err)
	}
	schema, err := flight.DeserializeSchema(info.GetSchema(), allocator)
	if err != nil {
		return err
	}
	if err := visit(schema, nil); err != nil {
		return err
	}
	for _, e := range info.GetEndpoint() {
		r, err := c.flight.DoGet(ctx, e.GetTicket())
		if err != nil {
			return plain(err)
		}
		for r.Next() {
			if err := visit(schema, r.RecordBatch()); err != nil {
				r.Release()
				return err
			}
		}
		err = r.Err()
		r.Release()
		if err != nil {
			return plain(err)
		}
	}
	return nil
}

// serverError is an error as the server told it, without the client library's wrapping.
type serverError string

func (e serverError) Error() string { return string(e) }

func plain(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	text := strings.TrimSpace(s.Message())
	if strings.HasPrefix(text, "name resolver error") {
		return serverError("cannot connect: the server's host name is not known")
	}
	if s.Code() != codes.Unavailable || !strings.HasPrefix(text, "connection error: ") {
		return serverError(text)
	}
	// The transport's own words have grown around what matters.
	switch _, why, _ := strings.Cut(text, "transport: "); {
	case strings.Contains(why, "does not look like a TLS handshake"), strings.Contains(why, "protocol version not supported"):
		return serverError("the server speaks plaintext; use grpc:// in place of grpc+tls://")
	case strings.Contains(why, "x509"):
		why = strings.TrimPrefix(strings.ReplaceAll(strings.Trim(why, `"`), `\"`, `"`), "authentication handshake failed: ")
		return serverError("the server's certificate is not trusted: " + why + "; --ca-file names certificates to trust")
	default:
		why = strings.TrimPrefix(strings.Trim(why, `"`), "Error while dialing: ")
		return serverError("cannot connect: " + why)
	}
}
