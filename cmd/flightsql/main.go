// Command skua reads Apache Iceberg tables and answers SQL over Flight SQL.
//
// This package only puts the subcommands together; each has a folder of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/skua-db/skua/cmd/flightsql/configure"
	"github.com/skua-db/skua/cmd/flightsql/demonstrate"
	"github.com/skua-db/skua/cmd/flightsql/inspect"
	"github.com/skua-db/skua/cmd/flightsql/query"
	"github.com/skua-db/skua/cmd/flightsql/serve"
	"github.com/skua-db/skua/cmd/flightsql/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "skua",
		Short:         "Skua reads Apache Iceberg tables and answers SQL over Arrow Flight SQL.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(demonstrate.Command(), serve.Command(), query.Command(), inspect.Command(), configure.Command(), version.Command())
	if err := root.ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("stopped")
		}
		fmt.Fprintln(os.Stderr, "skua:", err)
		stop()
		os.Exit(1)
	}
}
