// Package serve is the subcommand that runs the server.
//
// It only turns flags into a configuration and a configuration into a running server.
package serve

import (
	"context"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/fault"
)

// Command is `skua serve`.
func Command() *cobra.Command {
	var file, listen string
	var selfSigned bool
	var catalogs []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve catalogs over Flight SQL",
		Example: `  skua serve --catalog lake=/data/warehouse
  skua serve --config skua.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			if err := Flags(c, catalogs, listen); err != nil {
				return err
			}
			if selfSigned {
				c.TLS.SelfSigned = true
				c.Origins["tls.self_signed"] = "--self-signed"
			}
			if err := c.Check(); err != nil {
				return err
			}
			log, err := assemble.Logger(c.Observability.Log)
			if err != nil {
				return err
			}
			for _, w := range c.Warnings {
				log.Warn(w)
			}
			l, err := assemble.Listen(c.Listen.Flight)
			if err != nil {
				return err
			}
			return Run(cmd.Context(), &c.Config, l, log)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	cmd.Flags().StringVar(&listen, "listen", "", "host:port of Flight SQL (listen.flight)")
	cmd.Flags().BoolVar(&selfSigned, "self-signed", false, "TLS with a certificate that is made at this start (tls.self_signed)")
	cmd.Flags().StringArrayVar(&catalogs, "catalog", nil, "name=folder of a warehouse, name=file.metadata.json, or name=URL?warehouse=... of a REST catalog; may be given several times")
	return cmd
}

// Flags puts the flags over the configuration. Catalogs given by flag need no login as long as nothing says otherwise
// and the port is on loopback: that is what trying a server out takes.
func Flags(c *config.Loaded, catalogs []string, listen string) error {
	if listen != "" {
		c.Listen.Flight = listen
		c.Origins["listen.flight"] = "--listen"
	}
	given := map[string]bool{}
	for _, spec := range catalogs {
		name, location, ok := strings.Cut(spec, "=")
		if !ok || name == "" || location == "" {
			return fault.New(fault.Invalid, "--catalog %q is not of the form name=folder", spec)
		}
		if given[name] {
			return fault.New(fault.Invalid, "--catalog %s is given twice", name)
		}
		given[name] = true
		if !strings.Contains(location, ":") { // a path of this machine, which may be relative to where the command runs
			abs, err := filepath.Abs(location)
			if err != nil {
				return fault.Wrap(fault.Invalid, err, "--catalog %s", name)
			}
			location = abs
		}
		if c.Catalogs == nil {
			c.Catalogs = map[string]config.Catalog{}
		}
		c.Catalogs[name] = CatalogAt(location)
	}
	if len(catalogs) > 0 && c.Auth.UsersFile == "" && len(c.Auth.Tokens) == 0 && c.Origins["auth.anonymous"] == "default" {
		if host, _, err := net.SplitHostPort(c.Listen.Flight); err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback()) {
			c.Auth.Anonymous = true
		}
	}
	return nil
}

// CatalogAt describes the catalog at a location: an http or https URL is that of a REST catalog, its query holds properties; a
// metadata file is registered as default.<folder of the table>; all else is a warehouse.
func CatalogAt(location string) config.Catalog {
	if strings.HasPrefix(location, "http://") || strings.HasPrefix(location, "https://") {
		base, query, _ := strings.Cut(location, "?")
		p := map[string]string{"uri": base}
		if q, err := url.ParseQuery(query); err == nil {
			for k := range q {
				p[k] = q.Get(k)
			}
		}
		return config.Catalog{Type: "rest", Properties: p}
	}
	if strings.HasSuffix(location, ".metadata.json") || strings.HasSuffix(location, ".metadata.json.gz") {
		table := path.Base(path.Dir(path.Dir(location)))
		return config.Catalog{Type: "registered", Tables: map[string]string{"default." + table: location}}
	}
	return config.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": location}}
}

// Run serves on l until ctx ends, then lets running calls finish.
func Run(ctx context.Context, c *config.Config, l net.Listener, log *zap.Logger) error {
	stack, err := assemble.Build(ctx, c, log)
	if err != nil {
		_ = l.Close()
		return err
	}
	defer stack.Close()
	log.Info("serving Flight SQL", zap.String("address", l.Addr().String()), zap.Strings("catalogs", c.CatalogNames()),
		zap.Bool("tls", c.TLS.CertFile != "" || c.TLS.SelfSigned), zap.Int64("memory_bytes", stack.Pool.Limit()))
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return stack.Server.Serve(l) })
	g.Go(func() error {
		<-ctx.Done()
		log.Info("stopping")
		stack.Server.Stop()
		return nil
	})
	return g.Wait()
}
