// Package inspect is the subcommand that takes stock of a catalog: what its tables consist of, what they use of Iceberg, and
// what makes them dear to read.
//
// It opens no data file and needs no server.
package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/cmd/flightsql/serve"
	"github.com/skua-db/skua/config"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner"
)

// Command is `skua inspect`.
func Command() *cobra.Command {
	var file, format string
	var catalogs []string
	cmd := &cobra.Command{
		Use:   "inspect [namespace or namespace.table]",
		Short: "Take stock of a catalog: files, deletes, features, warnings, cost of planning",
		Example: `  skua inspect --catalog lake=/data/warehouse
  skua inspect --config skua.yaml --format json sales.orders`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "text" && format != "json" {
				return fault.New(fault.Invalid, "format %q is not known; use table, text or json", format)
			}
			c, err := config.Load(file, os.Environ())
			if err != nil {
				return err
			}
			if err := serve.Flags(c, catalogs, ""); err != nil {
				return err
			}
			if len(c.Catalogs) == 0 {
				return fault.New(fault.Invalid, "say what to inspect: --catalog name=folder or --config file")
			}
			opened, err := assemble.Catalogs(cmd.Context(), &c.Config)
			if err != nil {
				return err
			}
			defer func() {
				for _, c := range opened {
					_ = c.Close()
				}
			}()
			only := ""
			if len(args) == 1 {
				only = args[0]
			}
			return run(cmd, opened, only, format)
		},
	}
	cmd.Flags().StringVarP(&file, "config", "c", "", "configuration file (YAML)")
	cmd.Flags().StringArrayVar(&catalogs, "catalog", nil, "name=folder of a warehouse; may be given several times")
	cmd.Flags().StringVar(&format, "format", "table", "table (a line a table), text (all that is known) or json")
	return cmd
}

func run(cmd *cobra.Command, catalogs []catalog.Catalog, only, format string) error {
	s := scanner.New(scanner.Options{Workers: 1})
	all := []*scanner.Inventory{}
	for _, c := range catalogs {
		got, err := inventory(cmd, s, c, only)
		if err != nil {
			return fault.Wrap(fault.Internal, err, "catalog %s", c.Name())
		}
		all = append(all, got...)
	}
	if only != "" && len(all) == 0 {
		return fault.New(fault.NotFound, "there is no table and no namespace %q", only)
	}
	return write(cmd.OutOrStdout(), all, format)
}

func inventory(cmd *cobra.Command, s *scanner.Scanner, c catalog.Catalog, only string) ([]*scanner.Inventory, error) {
	if only == "" {
		return s.TakeInventory(cmd.Context(), c, nil)
	}
	levels := strings.Split(only, ".")
	if n := len(levels) - 1; n > 0 {
		if t, err := c.Load(cmd.Context(), levels[:n], levels[n]); err == nil {
			return []*scanner.Inventory{s.Inventory(cmd.Context(), t)}, nil
		}
	}
	if _, err := c.Tables(cmd.Context(), levels); err != nil {
		return nil, nil // another catalog may have it
	}
	return s.TakeInventory(cmd.Context(), c, levels)
}

func write(w io.Writer, all []*scanner.Inventory, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(all)
	case "text":
		for _, inv := range all {
			if err := inv.WriteText(w); err != nil {
				return err
			}
		}
		return nil
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"table", "version", "files", "formats", "bytes", "rows", "deletes", "specs", "features", "plan", "warnings"})
	for _, inv := range all {
		var files, bytes, deletes int64
		formats := []string{}
		for _, f := range inv.Data {
			files, bytes, formats = files+f.Files, bytes+f.Bytes, append(formats, f.Format)
		}
		kinds := []string{}
		for _, f := range inv.Deletes {
			deletes += f.Files
			kinds = append(kinds, fmt.Sprintf("%d %s", f.Files, f.Kind))
		}
		notes := inv.Warnings
		if inv.Error != "" {
			notes = append([]string{"ERROR " + inv.Error}, notes...)
		}
		t.AppendRow(table.Row{inv.Table, inv.FormatVersion, files, strings.Join(formats, " "), bytes, inv.Rows, strings.Join(kinds, ", "),
			strings.Join(inv.Specs, "\n"), strings.Join(inv.Features, "\n"),
			fmt.Sprintf("%d manifests, %.1f ms", inv.Planning.Manifests+inv.Planning.DeleteManifests, inv.Planning.Milliseconds), strings.Join(notes, "\n")})
	}
	t.Render()
	return nil
}
