// Package configure is the subcommand that checks, shows and documents configuration.
//
// It starts nothing.
package configure

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/config"
)

// Command is `skua config`.
func Command() *cobra.Command {
	var file string
	cmd := &cobra.Command{Use: "config", Short: "Check, show or document the configuration"}
	cmd.PersistentFlags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	load := func() (*config.Loaded, error) { return config.Load(file, os.Environ()) }

	var connect bool
	check := &cobra.Command{
		Use: "check", Short: "Prove the configuration without starting", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load()
			if err == nil {
				err = c.Check()
			}
			if err == nil {
				err = assemble.Prove(cmd.Context(), &c.Config, connect)
			}
			if err != nil {
				return err
			}
			for _, w := range c.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "the configuration is right")
			return err
		},
	}
	check.Flags().BoolVar(&connect, "connect", false, "also ask the servers of catalogs to let this one in")
	var origin bool
	show := &cobra.Command{
		Use: "show", Short: "Print every setting with its value, secrets redacted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load()
			if err != nil {
				return err
			}
			return c.Show(cmd.OutOrStdout(), origin)
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "print where each value comes from")
	docs := &cobra.Command{
		Use: "docs", Short: "Explain every setting", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return config.Docs(cmd.OutOrStdout()) },
	}
	cmd.AddCommand(check, show, docs)
	return cmd
}
