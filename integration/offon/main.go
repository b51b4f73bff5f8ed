// Command offon runs generated queries over every table of warehouse folders with each technique that only makes scans cheaper
// switched off in turn, with all of them off, and with all of them on, and compares the rows: pruning by partitions, bounds, dictionaries
// and bloom filters, runtime filters, page skipping, late materialization, answers from record counts, and the caches.
//
//	go run ./integration/offon --lake DIR [--keys FILE] [--seed N] [--filters N] [--only catalog.schema.table]
//
// Each folder below DIR is the warehouse of a catalog of that name. The run is a function of the tables and the seed; a difference is
// told with the command that shows it again. Tables are shared out among workers, each of which runs its queries one after the other.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/cmd/flightsql/assemble"
	"github.com/skua-db/skua/config"
)

func main() {
	s := &suite{start: time.Now()}
	flag.StringVar(&s.lake, "lake", "", "folder of warehouses")
	keys := flag.String("keys", "", "key file of encrypted tables")
	flag.Int64Var(&s.seed, "seed", 20261130, "seed of the queries")
	flag.IntVar(&s.filters, "filters", 24, "queries a table")
	flag.StringVar(&s.only, "only", "", "one table, as catalog.schema.table")
	leastTables := flag.Int("min-tables", 1, "how many tables must be compared")
	leastKept := flag.Int64("min-found", 1, "how many queries must find some rows but not all, and how many must be narrowed by pruning")
	flag.Parse()
	if err := s.run(context.Background(), *keys); err != nil {
		fmt.Fprintln(os.Stderr, "offon:", err)
		os.Exit(1)
	}
	fmt.Println(s.summary())
	bad := len(s.differences) > 0
	if s.only == "" {
		bad = bad || s.tables < *leastTables || s.selective < *leastKept || s.narrowed < *leastKept
	}
	if bad {
		os.Exit(1)
	}
}

// suite is a run over all tables, and what came of it.
type suite struct {
	lake, only string
	seed       int64
	filters    int
	start      time.Time
	catalogs   catalogs
	variants   []variant

	mu          sync.Mutex
	tables      int
	damaged     int      // tables whose full scan fails, as it must
	refused     int      // tables that cannot be loaded
	queries     int64    // distinct statements
	runs        int64    // scans of them
	selective   int64    // queries that found rows, and not all
	narrowed    int64    // queries of which pruning removed something
	unbound     int64    // statements that do not apply to their table
	differences []string // in words, with the way to see them again
}

func (s *suite) summary() string {
	return fmt.Sprintf("offon: %d tables (and %d that are refused, %d that are damaged), %d queries run %d times by %d scanners; %d found some rows and not all, %d were narrowed by pruning, %d did not bind; %d differences; %v",
		s.tables, s.refused, s.damaged, s.queries, s.runs, len(s.variants), s.selective, s.narrowed, s.unbound, len(s.differences), time.Since(s.start).Round(time.Second))
}

func (s *suite) run(ctx context.Context, keys string) error {
	dirs, err := filepath.Glob(filepath.Join(s.lake, "*"))
	if err != nil {
		return err
	}
	c := &config.Config{Catalogs: map[string]config.Catalog{}}
	if keys != "" {
		c.Encryption.KMS.Type, c.Encryption.KMS.KeyFile = "local", keys
	}
	type name struct {
		cat   string
		ns    catalog.Namespace
		table string
	}
	var names []name
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			continue
		}
		c.Catalogs[filepath.Base(dir)] = config.Catalog{Type: "hadoop", Properties: map[string]string{"warehouse": dir}}
	}
	all, err := assemble.Catalogs(ctx, c)
	if err != nil {
		return err
	}
	s.catalogs = catalogs{}
	for _, cat := range all {
		s.catalogs[cat.Name()] = cat
		spaces, err := cat.Namespaces(ctx, nil)
		if err != nil {
			return err
		}
		for _, ns := range spaces {
			tables, err := cat.Tables(ctx, ns)
			if err != nil {
				return err
			}
			for _, t := range tables {
				names = append(names, name{cat.Name(), ns, t})
			}
		}
	}
	s.variants = newVariants()
	defer closeVariants(s.variants)
	work := make(chan name)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for n := range work {
				t := &tableRun{s: s, catalog: n.cat, ns: n.ns, name: n.table}
				if s.only == "" || s.only == t.fullName() {
					t.run(ctx)
				}
			}
		})
	}
	for _, n := range names {
		work <- n
	}
	close(work)
	wg.Wait()
	return nil
}

// differ records a difference.
func (s *suite) differ(t *tableRun, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 40
	text := fmt.Sprintf(format, args...)
	s.differences = append(s.differences, text)
	if len(s.differences) <= most {
		fmt.Fprintf(os.Stderr, "%s: %s\n  again: go run ./integration/offon --lake %s --seed %d --filters %d --only '%s'\n", t.fullName(), text, s.lake, s.seed, s.filters, t.fullName())
	}
}

// catalogs finds catalogs for statements.
type catalogs map[string]catalog.Catalog

// Names implements plan.Catalogs.
func (c catalogs) Names() []string {
	var out []string
	for name := range c {
		out = append(out, name)
	}
	return out
}

// Catalog implements plan.Catalogs.
func (c catalogs) Catalog(name string) (catalog.Catalog, bool) {
	cat, ok := c[name]
	return cat, ok
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
