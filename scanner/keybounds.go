package scanner

import (
	"slices"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/prune"
)

// keyStats reads what entry i of a manifest says of the key columns of an equality delete file; nil when it says nothing.
func keyStats(m *manifest.Manifest, i int, ids []int) []deletes.KeyStats {
	if !slices.ContainsFunc(ids, func(id int) bool { return m.Column(id) != nil }) {
		return nil
	}
	out := make([]deletes.KeyStats, len(ids))
	for k, id := range ids {
		out[k] = deletes.KeyStats{Nulls: -1, Values: -1, NaNs: -1}
		if st := m.Column(id); st != nil {
			lower, _ := st.Lower.At(i)
			upper, _ := st.Upper.At(i)
			out[k] = deletes.KeyStats{Lower: lower, Upper: upper, Nulls: st.Nulls.At(i), Values: st.Values.At(i), NaNs: st.NaNs.At(i)}
		}
	}
	return out
}

// keyColumn is a key column of a data file with what its statistics allow.
type keyColumn struct {
	id     int
	path   keyPath
	known  bool // the column is in the schema, and there are statistics
	domain prune.Domain
}

// apart makes the function that tells, of an equality delete file, whether none of its keys can be in f: then some key column of both has no
// value, null or NaN in common. It is nil when that is not asked for.
func (f *dataFile) apart() func(*deletes.File) bool {
	if f.sc.s.opt.Without.KeyBounds || f.stats == nil {
		return nil
	}
	var columns []keyColumn
	return func(d *deletes.File) bool {
		for k := range d.KeyStats {
			id := d.EqualityIDs[k]
			at := slices.IndexFunc(columns, func(c keyColumn) bool { return c.id == id })
			if at < 0 {
				at = len(columns)
				columns = append(columns, f.keyColumn(id))
			}
			c := &columns[at]
			if !c.known {
				continue
			}
			keys := prune.Any(c.path.leaf.typ)
			s := &d.KeyStats[k]
			c.path.narrow(&keys, s)
			if !prune.Meet(&keys, &c.domain) {
				return true
			}
		}
		return false
	}
}

func (f *dataFile) keyColumn(id int) keyColumn {
	c := keyColumn{id: id}
	st := f.stats.Column(id)
	if st == nil {
		return c
	}
	var err error
	if c.path, err = f.sc.cachedKeyPath(id); err != nil {
		return c // reading the delete file will tell
	}
	c.known = true
	c.domain = prune.Any(c.path.leaf.typ)
	lower, _ := st.Lower.At(f.row)
	upper, _ := st.Upper.At(f.row)
	c.path.narrow(&c.domain, &deletes.KeyStats{Lower: lower, Upper: upper, Nulls: st.Nulls.At(f.row), Values: st.Values.At(f.row), NaNs: st.NaNs.At(f.row)})
	if !c.domain.MayHaveValues() && (c.path.top.def != nil || c.path.leaf.def != nil) {
		c.known = false // a file that lacks the column has its default in each row, whatever a writer counted
	}
	return c
}

// narrow limits a domain to statistics of a key column.
func (p *keyPath) narrow(d *prune.Domain, s *deletes.KeyStats) {
	if s.Lower != nil {
		d.Lower(p.leaf.typ, s.Lower)
	}
	if s.Upper != nil {
		d.Upper(p.leaf.typ, s.Upper)
	}
	d.Counts(s.Nulls, s.Values, s.NaNs)
	if len(p.path) > 0 {
		d.AllowNull() // writers differ in counting rows whose parent is null
	}
}

// cachedKeyPath is keyPath, found once a scan.
func (sc *scan) cachedKeyPath(id int) (keyPath, error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if p, ok := sc.keyCols[id]; ok {
		return p, nil
	}
	p, err := sc.keyPath(id)
	if err == nil {
		if sc.keyCols == nil {
			sc.keyCols = map[int]keyPath{}
		}
		sc.keyCols[id] = p
	}
	return p, err
}
