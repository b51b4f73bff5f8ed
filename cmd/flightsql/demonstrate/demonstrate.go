// Package demonstrate is the subcommand that makes the demo lakehouse, serves it and shows how to connect.
//
// It only puts demo and serve together.
package demonstrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/cmd/flightsql/query"
	"github.com/skua-db/skua/cmd/flightsql/serve"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/demo"
)

// demoScale makes about 600,000 line items.
const demoScale = 0.1

const firstQuery = `SELECT l_returnflag, l_linestatus, count(*) AS lines, sum(l_quantity) AS quantity, avg(l_extendedprice) AS avg_price
FROM tpch.lineitem
WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus`

// errEnough ends the command after the first answer, under --once.
var errEnough = errors.New("enough")

// Command is `skua demo`.
func Command() *cobra.Command {
	var dir, listen string
	var once bool
	var scale float64
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Make a small lakehouse on local disk, serve it and show how to connect",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if dir == "" {
				cache, err := os.UserCacheDir()
				if err != nil {
					return err
				}
				dir = filepath.Join(cache, "skua", "demo")
			}
			start := time.Now()
			fmt.Fprintf(out, "Making the demo lakehouse in %s ...\n", dir)
			made, err := demo.Make(cmd.Context(), dir, scale)
			if err != nil {
				return err
			}
			if made {
				fmt.Fprintf(out, "Made in %.1f s.\n", time.Since(start).Seconds())
			} else {
				fmt.Fprintln(out, "It was there already.")
			}
			c, err := config.Load("", nil)
			if err != nil {
				return err
			}
			c.Observability.Log.Level = "warn"
			if err := serve.Flags(c, []string{"demo=" + dir}, listen); err != nil {
				return err
			}
			if err := c.Check(); err != nil {
				return err
			}
			return run(cmd.Context(), c, out, once)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder of the lakehouse (default: in the user's cache folder)")
	cmd.Flags().StringVar(&listen, "listen", "", "host:port of Flight SQL (default 127.0.0.1:7470)")
	cmd.Flags().Float64Var(&scale, "scale", demoScale, "size of the TPC-H tables; 1 is six million line items")
	cmd.Flags().BoolVar(&once, "once", false, "stop after the first answer")
	return cmd
}

func run(ctx context.Context, c *config.Loaded, out io.Writer, once bool) error {
	log, err := assemble.Logger(c.Observability.Log)
	if err != nil {
		return err
	}
	l, err := assemble.Listen(c.Listen.Flight)
	if err != nil {
		return err
	}
	address := l.Addr().String()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve.Run(ctx, &c.Config, l, log) })
	g.Go(func() error {
		if err := greet(ctx, address, out); err != nil {
			return err
		}
		if once {
			return errEnough
		}
		return nil
	})
	if err := g.Wait(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

func greet(ctx context.Context, address string, out io.Writer) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
Skua serves Flight SQL at %[1]s. Connect with

  CLI      skua sql --server grpc://%[1]s "SHOW TABLES FROM demo.samples"
  Python   import adbc_driver_flightsql.dbapi as flightsql
           with flightsql.connect("grpc://%[1]s", autocommit=True) as conn, conn.cursor() as cur:
               cur.execute("SELECT * FROM tpch.nation"); print(cur.fetch_arrow_table().to_pandas())
  JDBC     jdbc:arrow-flight-sql://%[2]s:%[3]s/?useEncryption=false
  DBeaver  driver "Apache Arrow Flight SQL", the JDBC address above, no user name

Catalog demo has the schemas tpch (eight tables) and samples (deletes, evolved columns, partitions, a tag v1, a branch audit, nested types).

A first query:

%[4]s;

`, address, host, port, firstQuery)
	start := time.Now()
	c, err := query.Dial(ctx, query.Target{Server: "grpc://" + address})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Run(ctx, firstQuery, query.Table, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nAnswered in %.0f ms. Stop with Ctrl-C.\n", float64(time.Since(start).Microseconds())/1000)
	return err
}
