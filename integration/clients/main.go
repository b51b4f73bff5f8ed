// Command clients makes docs/CLIENTS.md from what each client wrote about the common list of cases, or checks that it is what they say.
//
//	go run ./integration/clients [--write] FOLDER
//
// FOLDER has a file of JSON for each client: its name, its version, and of each case "yes", "no" or why it does not have it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const page, list = "docs/CLIENTS.md", "integration/cases.json"

// clients are the files that there must be, in the order of the page.
var clients = []string{"adbc", "pyarrow", "jdbc-15.0.2", "jdbc-18.0.0", "jdbc-18.3.0", "goclient", "databasesql"}

type result struct {
	Client, Version string
	Cases           map[string]string
}

func main() {
	write := flag.Bool("write", false, "write the page")
	flag.Parse()
	if err := run(*write, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(write bool, folder string) error {
	var cases []struct{ Name string }
	if err := read(list, &cases); err != nil {
		return err
	}
	results := make([]result, len(clients))
	for i, c := range clients {
		if err := read(filepath.Join(folder, c+".json"), &results[i]); err != nil {
			return err
		}
	}
	var b strings.Builder
	b.WriteString("# Clients\n\nEach client runs the same list of cases against a server with TLS and a login. This page is made from the results of `integration/run clients`,\n" +
		"which fails when it says otherwise.\n\n| | client | version |\n|---|---|---|\n")
	var failed []string
	for i, r := range results {
		fmt.Fprintf(&b, "| %c | %s | %s |\n", 'A'+i, r.Client, r.Version)
	}
	b.WriteString("\n| case |")
	for i := range results {
		fmt.Fprintf(&b, " %c |", 'A'+i)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(results)) + "\n")
	common := map[string]bool{}
	for _, c := range cases {
		common[c.Name] = true
		fmt.Fprintf(&b, "| %s |", c.Name)
		for _, r := range results {
			outcome := r.Cases[c.Name]
			if outcome == "" {
				outcome = "no call"
			}
			if outcome == "no" {
				failed = append(failed, r.Client+": "+c.Name)
			}
			fmt.Fprintf(&b, " %s |", outcome)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n\"no call\": the client has nothing to ask it with. Beside the list, as many checks of its own passed:\n\n")
	for _, r := range results {
		own := 0
		for _, name := range slices.Sorted(maps.Keys(r.Cases)) {
			switch {
			case common[name]:
			case r.Cases[name] == "yes":
				own++
			default:
				failed = append(failed, r.Client+": "+name)
			}
		}
		if own > 0 {
			fmt.Fprintf(&b, "- %s: %d\n", r.Client, own)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these fail:\n%s", strings.Join(failed, "\n"))
	}
	if write {
		return os.WriteFile(page, []byte(b.String()), 0o644) //nolint:gosec // documentation is for everybody
	}
	have, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if string(have) != b.String() {
		return errors.New(page + " says otherwise than the results; write it anew with --write")
	}
	fmt.Printf("clients: %s is what %d clients say of %d cases\n", page, len(results), len(cases))
	return nil
}

func read(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
