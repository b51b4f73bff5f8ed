package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand"
	"strconv"
	"strings"
	"time"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/exec"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/plan"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/vector"
)

// variant is a scanner that does without something.
type variant struct {
	name   string
	scan   *scanner.Scanner
	pool   *memory.Pool
	budget *cache.Budget
	runs   int // the second run asks the caches that the first filled
}

// newVariants makes the scanners; the first does without everything and is the oracle.
func newVariants() []variant {
	const (
		processBytes = 1 << 30
		cacheBytes   = 64 << 20
		splitBytes   = 4 << 10 // so that small files are shared out too
	)
	var out []variant
	add := func(name string, w scanner.Without, cached int64, runs int) {
		pool := memory.NewPool(name, processBytes)
		budget := cache.NewBudget(pool, cached)
		out = append(out, variant{name, scanner.New(scanner.Options{Budget: budget, Workers: 2, SplitBytes: splitBytes, Without: w}), pool, budget, runs})
	}
	add("nothing", scanner.Everything, 1, 1)
	add("everything", scanner.Without{}, cacheBytes, 2)
	add("no partitions", scanner.Without{Partitions: true}, cacheBytes, 1)
	add("no bounds", scanner.Without{Bounds: true}, cacheBytes, 1)
	add("no dictionaries or bloom filters", scanner.Without{Indexes: true}, cacheBytes, 1)
	add("no runtime filters", scanner.Without{RuntimeFilters: true}, cacheBytes, 1)
	add("no page skipping", scanner.Without{PageSkipping: true}, cacheBytes, 1)
	add("no late materialization", scanner.Without{LateMaterialization: true}, cacheBytes, 1)
	add("no bounds of keys", scanner.Without{KeyBounds: true}, cacheBytes, 1)
	add("no counts", scanner.Without{Counts: true}, cacheBytes, 1)
	add("no caches", scanner.Without{}, 1, 1)
	return out
}

func closeVariants(vs []variant) {
	for _, v := range vs {
		v.budget.Close()
	}
}

// outcome is what a query gave, in a form that does not depend on the order of rows.
type outcome struct {
	rows   int64
	sum    uint64
	pruned bool
	err    error
}

func (o outcome) String() string {
	if o.err != nil {
		return "error: " + o.err.Error()
	}
	return fmt.Sprintf("%d rows, sum %016x", o.rows, o.sum)
}

var rowSeed = maphash.MakeSeed()

// queryTime bounds a query; none of these tables needs a second.
const queryTime = 60 * time.Second

// query runs a prepared statement with a variant. see, if not nil, is shown every row.
func (v *variant) query(ctx context.Context, root plan.Node, env *plan.Environment, see func([]vector.Value)) (out outcome) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	pool := v.pool.Child("query", 0)
	prof := profile.New("", "")
	res, err := exec.Run(ctx, root, &exec.Query{Context: &expr.Context{Now: env.Now, Zone: env.Zone}, Pool: pool, Scanner: v.scan, Profile: prof, Workers: 2})
	if err != nil {
		return outcome{err: err}
	}
	defer func() {
		if err := res.Close(); out.err == nil {
			out.err = err
		}
		if n := pool.Used(); out.err == nil && n != 0 {
			out.err = fmt.Errorf("%d bytes stay reserved", n)
		}
		out.pruned = pruned(prof)
	}()
	var text []byte
	for {
		c, err := res.Next(ctx)
		if c == nil || err != nil {
			out.err = err
			return out
		}
		out.rows += int64(c.Rows())
		row := make([]vector.Value, len(c.Cols))
		for i := range c.Rows() {
			at := i
			if c.Sel != nil {
				at = int(c.Sel[i])
			}
			text = text[:0]
			for k, col := range c.Cols {
				row[k] = col.Get(at)
				text = fmt.Appendf(text, "%v\x00", row[k])
			}
			out.sum += maphash.Bytes(rowSeed, text)
			if see != nil {
				see(row)
			}
		}
	}
}

// pruned reports whether pruning removed anything.
func pruned(p *profile.Query) bool {
	for _, s := range p.Scans() {
		if what, _ := s.Removals(); len(what) > 0 {
			return true
		}
	}
	return false
}

// tableRun is the suite over one table.
type tableRun struct {
	s       *suite
	catalog string
	ns      catalog.Namespace
	name    string

	env     *plan.Environment
	gen     *generator
	damaged bool
	all     int64 // rows of a full scan
}

func (t *tableRun) fullName() string { return t.catalog + "." + t.ns.String() + "." + t.name }

// from spells the table for a statement.
func (t *tableRun) from() string {
	return quote(t.catalog) + "." + quote(t.ns.String()) + "." + quote(t.name)
}

func (t *tableRun) run(ctx context.Context) {
	r := rand.New(rand.NewSource(t.s.seed ^ int64(maphashOf(t.fullName()))))
	tab, err := t.s.catalogs[t.catalog].Load(ctx, t.ns, t.name)
	if err != nil {
		t.s.mu.Lock()
		t.s.refused++
		t.s.mu.Unlock()
		return
	}
	const assumedRows = 1 << 20 // so that joins hand over their filters however small the table
	t.env = &plan.Environment{Catalogs: t.s.catalogs, Zone: time.UTC, Now: t.s.start,
		Stats: func(context.Context, *plan.Scan) (int64, bool) { return assumedRows, true }}
	t.gen = &generator{r: r}
	oracle := &t.s.variants[0]
	root, err := plan.Build(ctx, "SELECT * FROM "+t.from(), t.env)
	if err != nil {
		t.s.mu.Lock()
		t.s.refused++
		t.s.mu.Unlock()
		return
	}
	t.gen.columns(root.Columns, partitionSources(tab))
	full := oracle.query(ctx, root.Root, t.env, t.gen.see)
	t.damaged, t.all = full.err != nil, full.rows
	t.s.mu.Lock()
	if t.damaged {
		t.s.damaged++
	} else {
		t.s.tables++
	}
	t.s.mu.Unlock()
	// Large tables get fewer queries.
	n := t.s.filters
	const manyRows, manyFiles = 20_000, 200
	if t.all > manyRows || summary(tab, "total-data-files") > manyFiles {
		n = (n + 5) / 6
	}
	if summary(tab, "total-delete-files") > manyFiles {
		n = 1
	}
	from := []string{t.from()}
	for _, snap := range tab.Metadata.Snapshots() {
		if cur := tab.Metadata.CurrentSnapshot(); cur == nil || cur.SnapshotID != snap.SnapshotID {
			from = append(from, fmt.Sprintf("%s FOR VERSION AS OF %d", t.from(), snap.SnapshotID))
		}
	}
	for i := range n + 1 {
		source := from[0]
		if len(from) > 1 && r.Intn(4) == 0 {
			source = from[1+r.Intn(len(from)-1)]
		}
		if i == 0 {
			t.compare(ctx, "SELECT count(*) FROM "+source, 0)
			continue
		}
		t.compare(ctx, t.gen.statement(source, t.all), t.all)
	}
}

// compare runs a statement by every variant. all is how many rows the table has, where the statement gives rows of it.
func (t *tableRun) compare(ctx context.Context, text string, all int64) {
	p, err := plan.Build(ctx, text, t.env)
	t.s.mu.Lock()
	if err != nil {
		t.s.unbound++
		t.s.mu.Unlock()
		return
	}
	t.s.queries++
	t.s.mu.Unlock()
	var want outcome
	runs, narrowed := int64(0), false
	for i := range t.s.variants {
		v := &t.s.variants[i]
		for range v.runs {
			got := v.query(ctx, p.Root, t.env, nil)
			runs++
			narrowed = narrowed || got.pruned
			if i == 0 {
				want = got
				continue
			}
			switch {
			case want.err == nil && got.err == nil && want.rows == got.rows && want.sum == got.sum:
			case want.err != nil && got.err != nil:
			case (want.err != nil || got.err != nil) && t.damaged: // what is damaged was not needed, or not yet
			default:
				t.s.differ(t, "scanner with %q gives %v, without anything %v\n  %s", v.name, got, want, text)
			}
		}
	}
	t.s.mu.Lock()
	t.s.runs += runs
	if want.err == nil && want.rows > 0 && want.rows < all && strings.HasPrefix(text, "SELECT *") {
		t.s.selective++
	}
	if narrowed {
		t.s.narrowed++
	}
	t.s.mu.Unlock()
}

// summary is a number in the summary of the current snapshot; 0 when it is not told.
func summary(tab *catalog.Table, key string) int {
	cur := tab.Metadata.CurrentSnapshot()
	if cur == nil || cur.Summary == nil {
		return 0
	}
	n, _ := strconv.Atoi(cur.Summary.Properties[key])
	return n
}

// partitionSources are the names of top-level columns that the table is or was partitioned by.
func partitionSources(tab *catalog.Table) map[string]bool {
	out := map[string]bool{}
	for _, spec := range tab.Metadata.PartitionSpecs() {
		for _, f := range spec.Fields() {
			for _, id := range f.SourceIDs {
				if name, ok := tab.Metadata.CurrentSchema().FindColumnName(id); ok {
					out[name] = true
				}
			}
		}
	}
	return out
}

// maphashOf is a hash of a name that is the same in every run (FNV-1a).
func maphashOf(s string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * prime
	}
	return h
}
