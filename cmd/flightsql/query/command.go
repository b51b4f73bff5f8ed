package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/peterh/liner"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/sql"
)

// PasswordVariable names the environment variable that holds the password, so that it stands in no process list.
const PasswordVariable = "SKUA_PASSWORD"

// TokenVariable names the environment variable that holds the bearer token.
const TokenVariable = "SKUA_TOKEN"

// Command is `skua sql`.
func Command() *cobra.Command {
	t := Target{Password: os.Getenv(PasswordVariable), Token: os.Getenv(TokenVariable)}
	var file, format string
	cmd := &cobra.Command{
		Use:   "sql [statement]",
		Short: "Run SQL against a Flight SQL server or straight on warehouse folders and files",
		Long: `Runs SQL from the argument, from a file (-f) or from standard input; several statements are separated by semicolons.
On a terminal without a statement it prompts. Without --server it reads in this process: the catalogs of --catalog and --config,
and Parquet, Avro and ORC files that FROM names by a text literal, with * and ? for several. Passwords and tokens come from ` + PasswordVariable + ` and ` + TokenVariable + `.`,
		Example: `  skua sql --server grpc://127.0.0.1:7470 "SELECT * FROM tpch.nation"
  skua sql "SELECT count(*) FROM 'trips/*.parquet'"
  skua sql --catalog lake=/data/warehouse --format csv "SELECT * FROM sales.orders" > orders.csv`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.Server != "" && (len(t.Catalogs) > 0 || t.Config != "") {
				return fault.New(fault.Invalid, "say where to run: either --server grpc://host:port, or --catalog name=folder or --config file in this process")
			}
			f := Format(strings.ToLower(format))
			if _, err := newWriter(f, io.Discard); err != nil {
				return err
			}
			text, prompt, err := input(cmd, args, file)
			if err != nil {
				return err
			}
			c, err := Dial(cmd.Context(), t)
			if err != nil {
				return err
			}
			defer c.Close()
			if prompt {
				return converse(cmd.Context(), c, f, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return runAll(cmd.Context(), c, text, f, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&t.Server, "server", "s", "", "server, grpc://host:port or grpc+tls://host:port")
	flags.StringArrayVar(&t.Catalogs, "catalog", nil, "name=folder of a warehouse to read in this process")
	flags.StringVarP(&t.Config, "config", "c", "", "configuration file whose catalogs to read in this process")
	flags.StringVarP(&t.User, "user", "u", "", "user name")
	flags.StringVar(&t.CAFile, "ca-file", "", "PEM file of certificates to trust in place of the system's")
	flags.BoolVar(&t.SkipVerify, "insecure-skip-verify", false, "accept any certificate of the server")
	flags.StringVar(&t.Catalog, "use-catalog", "", "catalog of names without one")
	flags.StringVar(&t.Schema, "use-schema", "", "schema of names without one")
	flags.StringVarP(&file, "file", "f", "", "file with SQL")
	flags.StringVar(&format, "format", string(Table), "table, csv, json or arrow")
	return cmd
}

func input(cmd *cobra.Command, args []string, file string) (text string, prompt bool, err error) {
	switch {
	case len(args) == 1 && file != "":
		return "", false, fault.New(fault.Invalid, "give a statement or a file, not both")
	case len(args) == 1 && args[0] != "-":
		return args[0], false, nil
	case file != "":
		b, err := os.ReadFile(file)
		return string(b), false, err
	}
	if f, ok := cmd.InOrStdin().(*os.File); ok && len(args) == 0 && term.IsTerminal(int(f.Fd())) {
		return "", true, nil
	}
	b, err := io.ReadAll(cmd.InOrStdin())
	return string(b), false, err
}

func runAll(ctx context.Context, c *Client, text string, f Format, out io.Writer) error {
	statements, rest, err := sql.Split(text)
	if err != nil {
		return err
	}
	if rest != "" {
		statements = append(statements, rest)
	}
	if len(statements) == 0 {
		return fault.New(fault.Invalid, "there is no statement to run")
	}
	for _, s := range statements {
		if err := c.Run(ctx, s, f, out); err != nil {
			return err
		}
	}
	return nil
}

const (
	promptFirst = "skua> "
	promptMore  = "   -> "
)

// converse reads statements from a terminal, with history, until the end of input. Ctrl-C stops the statement that runs, not
// the conversation: so it is taken here, and ctx, which it ends too, counts no more.
func converse(ctx context.Context, c *Client, f Format, out, errOut io.Writer) error {
	ctx, end := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer end()
	line := liner.NewLiner()
	defer func() { _ = line.Close() }()
	line.SetCtrlCAborts(true)
	line.SetMultiLineMode(true)
	history := ""
	if dir, err := os.UserConfigDir(); err == nil {
		history = filepath.Join(dir, "skua", "history")
		if h, err := os.Open(history); err == nil {
			_, _ = line.ReadHistory(h)
			_ = h.Close()
		}
	}
	defer saveHistory(line, history)
	fmt.Fprintln(out, "Statements end with a semicolon; \\q or Ctrl-D leaves.")
	pending := ""
	for {
		p := promptFirst
		if pending != "" {
			p = promptMore
		}
		text, err := line.Prompt(p)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, liner.ErrPromptAborted):
			pending = ""
			continue
		case err != nil:
			return err
		}
		if trimmed := strings.TrimSpace(text); pending == "" && (trimmed == `\q` || trimmed == "quit" || trimmed == "exit") {
			return nil
		}
		pending += text + "\n"
		statements, rest, err := sql.Split(pending)
		if err != nil && !strings.HasSuffix(strings.TrimSpace(pending), ";") {
			continue // a string or comment that goes on in the next line
		}
		if err != nil {
			fmt.Fprintln(errOut, err)
			pending = ""
			continue
		}
		if len(statements) > 0 {
			line.AppendHistory(strings.Join(strings.Fields(strings.TrimSuffix(pending, rest)), " "))
		}
		pending = rest
		for _, s := range statements {
			run, done := signal.NotifyContext(ctx, os.Interrupt)
			err := c.Run(run, s, f, out)
			stopped := run.Err() != nil
			done()
			switch {
			case ctx.Err() != nil:
				return err
			case stopped:
				fmt.Fprintln(errOut, "stopped")
			case err != nil:
				fmt.Fprintln(errOut, err)
			}
		}
	}
}

func saveHistory(line *liner.State, path string) {
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err == nil {
		_, _ = line.WriteHistory(f)
		_ = f.Close()
	}
}
