package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/cache"
	"github.com/skua-db/skua/catalog"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner"
	"github.com/skua-db/skua/storage"
)

// tally counts what comparisons saw.
type tally struct {
	filters, files, pruned int // files that both plan, files that theirs prunes
	more                   int // files that only ours prunes, each proved to hold no row that matches
	deletes                int // delete files that both attach
	fewer                  int // those that only theirs attaches, each proved to delete no row of its data file
	dropped                int // those that only ours attaches, which theirs attaches too when there is no filter
	nan                    int // files that only ours plans, each proved needed: theirs plans it too when x is said to be NaN
	failed                 int // filters beside them that the other planner cannot evaluate, for a fault of its own
}

func (t *tally) add(o tally) {
	t.filters, t.files, t.pruned, t.more = t.filters+o.filters, t.files+o.files, t.pruned+o.pruned, t.more+o.more
	t.deletes, t.fewer, t.dropped, t.nan, t.failed = t.deletes+o.deletes, t.fewer+o.fewer, t.dropped+o.dropped, t.nan+o.nan, t.failed+o.failed
}

func (t tally) String() string {
	return fmt.Sprintf("%d filters: %d files planned by both, %d by neither, %d by theirs only and proved needless, %d by ours only and proved needed, since theirs plans it too for x being NaN; %d delete files attached by both, %d by theirs only and proved needless, %d by theirs only without the filter; %d more filters fail there",
		t.filters, t.files, t.pruned, t.more, t.nan, t.deletes, t.fewer, t.dropped, t.failed)
}

// compare plans filters over a table by Skua and by another.
func compare(ctx context.Context, t made, other planner, r *rand.Rand, filters int) (tally, error) {
	s := &subject{table: t.table, pool: memory.NewPool("planoracle", 0)}
	s.budget = cache.NewBudget(s.pool, 64<<20)
	defer s.budget.Close()
	s.pruning = scanner.New(scanner.Options{Budget: s.budget})
	s.plain = scanner.New(scanner.Options{Budget: s.budget, Without: scanner.Everything})
	everything, err := s.plan(ctx, nil)
	if err != nil {
		return tally{}, err
	}
	if s.unfiltered, err = other.plan(ctx, t.table, &filter{ice: iceberg.AlwaysTrue{}}); err != nil {
		return tally{}, err
	}
	if s.ids, err = idsOf(ctx, t.table); err != nil {
		return tally{}, err
	}
	var sum tally
	for range filters {
		f, err := newFilter(r, 2)
		if err != nil {
			return sum, err
		}
		if err := s.one(ctx, f, other, len(everything), &sum); err != nil {
			return sum, fmt.Errorf("%v: %w", f, err)
		}
	}
	if n := s.pool.Used() - s.budget.Used(); n != 0 {
		return sum, fmt.Errorf("%d bytes stay reserved", n)
	}
	return sum, nil
}

// floats is the position of the column that may be NaN. In SQL a comparison with NaN is not true, and its negation is; in Iceberg NaN is the
// greatest value. The writer counts no NaN, so that a file may have some for all that is known.
const floats = 4

// subject is a table under comparison.
type subject struct {
	table          *table.Table
	pool           *memory.Pool
	budget         *cache.Budget
	pruning, plain *scanner.Scanner
	ids            map[string]ids      // by file
	unfiltered     map[string][]string // what the other planner plans without a filter
}

func (s *subject) one(ctx context.Context, f *filter, other planner, all int, sum *tally) error {
	sum.filters++
	ours, err := s.plan(ctx, f.ours)
	if err != nil {
		return err
	}
	theirs, err := other.plan(ctx, s.table, f)
	if errors.Is(err, errFails) {
		sum.filters--
		sum.failed++
		return nil
	}
	if err != nil {
		return fmt.Errorf("the other planner: %w", err)
	}
	var matching map[string]bool // read when needed
	var asNaN map[string][]string
	for path := range ours {
		if _, ok := theirs[path]; ok {
			continue
		}
		if asNaN == nil && slices.Contains(expr.Columns(f.ours), floats) {
			// What their planner plans for rows whose x is NaN: no count says that the file has none.
			if asNaN, err = other.plan(ctx, s.table, &filter{ice: f.nan.ice, condition: f.nan.json}); errors.Is(err, errFails) {
				sum.filters--
				sum.failed++
				return nil
			} else if err != nil {
				return fmt.Errorf("the other planner, x being NaN: %w", err)
			}
		}
		if _, ok := asNaN[path]; !ok {
			return fmt.Errorf("only ours plans %s, and no row of x = NaN could match", path)
		}
		sum.nan++
	}
	sum.pruned += all - len(theirs)
	for path, theirDeletes := range theirs {
		ourDeletes, ok := ours[path]
		if !ok {
			if matching == nil {
				if matching, err = s.matching(ctx, f.ours); err != nil {
					return err
				}
			}
			if matching[path] {
				return fmt.Errorf("ours does not plan %s, of which rows match", path)
			}
			sum.more++
			continue
		}
		sum.files++
		for _, d := range ourDeletes {
			switch {
			case slices.Contains(theirDeletes, d):
				sum.deletes++
			case slices.Contains(s.unfiltered[path], d):
				sum.dropped++ // it applies, but their planner took its partition, or its rows, for none that match
			default:
				return fmt.Errorf("only ours attaches %s to %s", d, path)
			}
		}
		for _, d := range theirDeletes {
			if slices.Contains(ourDeletes, d) {
				continue
			}
			if err := s.needless(d, path); err != nil {
				return fmt.Errorf("ours does not attach %s to %s: %w", d, path, err)
			}
			sum.fewer++
		}
	}
	return nil
}

func (s *subject) request(filter expr.Expr) *scanner.Request {
	snap := s.table.CurrentSnapshot()
	return &scanner.Request{
		Table:    &catalog.Table{Catalog: "lake", Namespace: catalog.Namespace{"ns"}, Name: "t", Metadata: s.table.Metadata(), Store: storage.Local{}},
		Snapshot: catalog.Snapshot{ID: snap.SnapshotID, Present: true, Schema: s.table.Schema()}, Projection: s.table.Schema(),
		Output: s.table.Schema().NumFields(), Limit: -1, Profile: &profile.Scan{}, Context: &expr.Context{Zone: time.UTC}, Filter: filter,
	}
}

// plan gives the files that Skua plans, with their deletes.
func (s *subject) plan(ctx context.Context, filter expr.Expr) (map[string][]string, error) {
	req := s.request(filter)
	req.MetadataOnly = true
	stream, err := s.pruning.Plan(ctx, req)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	out := map[string][]string{}
	for {
		task, err := stream.Next(ctx)
		if task == nil || err != nil {
			return out, err
		}
		out[task.Path] = task.Deletes()
	}
}

// pathColumn is the reserved field id of _file.
const pathColumn = 2147483646

// matching gives the data files with rows that match, by a scan that prunes nothing.
func (s *subject) matching(ctx context.Context, filter expr.Expr) (map[string]bool, error) {
	req := s.request(filter)
	req.Projection = iceberg.NewSchema(0, append(slices.Clone(s.table.Schema().Fields()), iceberg.NestedField{ID: pathColumn, Name: "_file", Type: iceberg.PrimitiveTypes.String, Required: true})...)
	req.Output = req.Projection.NumFields()
	out := map[string]bool{}
	err := s.read(ctx, req, func(path string) { out[path] = true })
	return out, err
}

// read shows the value of the last column, a text, of each row.
func (s *subject) read(ctx context.Context, req *scanner.Request, see func(string)) error {
	stream, err := s.plain.Plan(ctx, req)
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		task, err := stream.Next(ctx)
		if task == nil || err != nil {
			return err
		}
		rd, err := s.plain.Open(ctx, task, s.pool.Child("task", 0))
		if err != nil {
			return err
		}
		for {
			c, err := rd.Next(ctx)
			if c == nil || err != nil {
				if err = errors.Join(err, rd.Close()); err != nil {
					return err
				}
				break
			}
			for i := range c.Rows() {
				at := i
				if c.Sel != nil {
					at = int(c.Sel[i])
				}
				see(c.Cols[req.Output-1].Get(at).(string))
			}
		}
	}
}

// needless proves that a delete file that is not attached deletes nothing of a data file: the least and greatest of the ids that it
// names do not lie in those of the data file.
func (s *subject) needless(deletes, data string) error {
	if s.ids[deletes].apart(s.ids[data]) {
		return nil
	}
	return errors.New("and nothing shows that it deletes none of its rows")
}

// ids are what a manifest says of the ids in a data file, or in an equality delete file.
type ids struct {
	keys, known bool
	least, most int64
}

// apart reports whether one is an equality delete file whose keys all lie outside the other's ids.
func (a ids) apart(b ids) bool {
	return a.keys && a.known && b.known && (a.most < b.least || a.least > b.most)
}

// idsOf reads the manifests of a table with iceberg-go.
func idsOf(ctx context.Context, t *table.Table) (map[string]ids, error) {
	fs, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	manifests, err := t.CurrentSnapshot().Manifests(fs)
	if err != nil {
		return nil, err
	}
	out := map[string]ids{}
	for _, m := range manifests {
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			f := e.DataFile()
			lo, hi := f.LowerBoundValues()[1], f.UpperBoundValues()[1]
			i := ids{keys: f.ContentType() == iceberg.EntryContentEqDeletes, known: len(lo) == 8 && len(hi) == 8}
			if i.known {
				i.least, i.most = int64(binary.LittleEndian.Uint64(lo)), int64(binary.LittleEndian.Uint64(hi))
			}
			out[f.FilePath()] = i
		}
	}
	return out, nil
}
