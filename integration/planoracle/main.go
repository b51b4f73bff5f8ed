// Command planoracle compares the files that Skua plans with those that Iceberg's reference implementation plans, for generated filters over
// generated tables: several partition specs and changed ones, null and NaN partitions, and deletes of all kinds. Where Skua plans
// fewer files, a scan that prunes nothing proves that no row of the missing ones matches. It must not plan more, but for rows that may be NaN,
// which is where SQL and Iceberg differ: there the other planner must plan the file too when it is told that x is NaN.
//
//	go run ./integration/planoracle [--filters N] [--seed N] -- java -cp ... skua.PlanOracle
//
// The tests of this package compare with iceberg-go in the same way. A run has one goroutine and a process of Java.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"strings"

	"github.com/apache/iceberg-go/table"
)

func main() {
	filters := flag.Int("filters", 150, "filters a table")
	seed := flag.Int64("seed", 20261130, "seed of tables and filters")
	flag.Parse()
	if err := run(context.Background(), *filters, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "planoracle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, filters int, seed int64, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("name the command that plans")
	}
	dir, err := os.MkdirTemp("", "planoracle")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tables, err := makeTables(ctx, dir, seed)
	if err != nil {
		return err
	}
	java, err := start(command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, java.close()) }()
	var sum tally
	for _, t := range tables {
		one, err := compare(ctx, t, java, rand.New(rand.NewSource(seed)), filters)
		if err != nil {
			return fmt.Errorf("table %s, seed %d: %w", t.name, seed, err)
		}
		fmt.Printf("%-14s %v\n", t.name, one)
		sum.add(one)
	}
	fmt.Printf("planoracle: %d tables, %v\n", len(tables), sum)
	if sum.pruned == 0 || sum.deletes == 0 || sum.failed > sum.filters/10 {
		return errors.New("nothing was pruned, no delete file applied, or many filters failed: the comparison shows little")
	}
	return nil
}

// errFails says that the other planner failed at a filter that is right.
var errFails = errors.New("the other planner fails")

// planner gives the data files that an implementation plans for a filter, each with the delete files that apply to it.
type planner interface {
	plan(ctx context.Context, t *table.Table, f *filter) (map[string][]string, error)
}

// process is a planner that answers lines.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(command []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...)} //nolint:gosec // the caller says what to run
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	const longest = 16 << 20
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, longest)
	return p, p.cmd.Start()
}

func (p *process) close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

func (p *process) plan(_ context.Context, t *table.Table, f *filter) (map[string][]string, error) {
	condition := f.condition
	switch {
	case f.json != nil:
		condition = f.json
	case condition == nil:
		condition = true
	}
	ask, err := json.Marshal(map[string]any{"metadata": t.MetadataLocation(), "filter": condition})
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(ask, '\n')); err != nil {
		return nil, err
	}
	if !p.out.Scan() {
		return nil, errors.Join(errors.New("no answer"), p.out.Err())
	}
	var answer struct {
		Files map[string][]string
		Error string
	}
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		return nil, err
	}
	if strings.Contains(answer.Error, "NullPointerException") {
		return nil, errFails // a set of texts is asked for the null partition
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Files, nil
}
