package plan

import "context"

// optimizer rewrites logical plans. The passes run in the order of the list below, each over the whole statement: the main plan, the
// scalar subqueries and the spools.
type optimizer struct {
	ctx    context.Context
	env    *Environment
	cols   *columns
	spools int
	rows   map[string]float64 // of tables, asked once
	est    map[rel]float64    // estimates by node, which are immutable
	filter int                // last id of a runtime filter
}

// pass is one rewriting of a tree.
type pass struct {
	name string
	run  func(*optimizer, rel) (rel, error)
}

// passes in order. Golden tests name them.
var passes = []pass{
	{"decorrelate", (*optimizer).decorrelate},
	{"fold", (*optimizer).foldConstants},
	{"push-filters", (*optimizer).pushFilters},
	{"order-joins", (*optimizer).orderJoins},
	{"push-filters-again", (*optimizer).pushFilters},
	{"merge-projects", (*optimizer).mergeProjects},
	{"limits", (*optimizer).pushLimits},
}

// run applies the passes to a tree and the spools in it.
func (o *optimizer) run(r rel, until string) (rel, error) {
	for _, p := range passes {
		var err error
		if r, err = p.run(o, r); err != nil {
			return nil, err
		}
		if p.name == until {
			break
		}
	}
	return r, nil
}

// spoolsOf lists the spools that a tree uses, those it uses through others too, innermost first.
func spoolsOf(rs ...rel) []*spool {
	var out []*spool
	seen := map[*spool]bool{}
	var walk func(rel)
	walk = func(r rel) {
		for _, k := range r.kids() {
			walk(k)
		}
		if s, ok := r.(*spoolRel); ok && !seen[s.sp] {
			seen[s.sp] = true
			walk(s.sp.in)
			out = append(out, s.sp)
		}
	}
	for _, r := range rs {
		walk(r)
	}
	return out
}
