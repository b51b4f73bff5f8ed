// Command supported makes docs/SUPPORTED.md from the results of a run of all tests, or checks that it is what they say.
//
//	go run ./integration/supported [--write] GO_RESULTS CASES...
//
// GO_RESULTS is what "go test -json ./..." printed, each of CASES what the runner of the conformance cases wrote. It has one goroutine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/skua-db/skua/internal/supported"
)

const page, module = "docs/SUPPORTED.md", "github.com/skua-db/skua"

func main() {
	write := flag.Bool("write", false, "write the page")
	flag.Parse()
	if err := run(*write, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "supported:", err)
		os.Exit(1)
	}
}

func run(write bool, files []string) error {
	const least = 2
	if len(files) < least {
		return errors.New("name the results of the Go tests and of the cases")
	}
	r := supported.Results{}
	for i, file := range files {
		err := read(file, func(in io.Reader) error {
			if i == 0 {
				return r.ReadGo(in, module)
			}
			return r.ReadCases(in)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	want := supported.Document(r)
	if write {
		return os.WriteFile(page, []byte(want), 0o644) //nolint:gosec // documentation is for everybody
	}
	have, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if string(have) == want {
		fmt.Printf("supported: %s is what %d tests and tables say\n", page, len(r))
		return nil
	}
	lines := map[string]bool{}
	for _, l := range strings.Split(string(have), "\n") {
		lines[l] = true
	}
	for _, l := range strings.Split(want, "\n") {
		if !lines[l] {
			fmt.Println(l)
		}
	}
	return fmt.Errorf("%s says otherwise than the results: fix what fails, then write the page anew with --write", page)
}

func read(file string, parse func(io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(parse(f), f.Close())
}
