package plan

import (
	"math"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go/table"

	"github.com/skua-db/skua/expr"
)

// maxAncestors bounds how far back statistics are looked for: they age with every snapshot.
const maxAncestors = 100

// distinctValues is the number of distinct values of a scan's column by the table's statistics files (Iceberg spec: Table Statistics; Puffin
// spec: apache-datasketches-theta-v1, whose property ndv is the sketch's estimate). Those of the snapshot count, else those of the
// nearest snapshot before it.
func (o *optimizer) distinctValues(s *scanRel, id int) (float64, bool) {
	i := slices.Index(s.cols, id)
	if i < 0 || s.table.Metadata == nil || !s.snap.Present || s.change != nil {
		return 0, false
	}
	field := int32(s.fields[i].ID)
	files := map[int64]table.StatisticsFile{}
	for f := range s.table.Metadata.Statistics() {
		files[f.SnapshotID] = f
	}
	if len(files) == 0 {
		return 0, false
	}
	at := s.snap.ID
	for range maxAncestors {
		for _, b := range files[at].BlobMetadata {
			if b.Type != table.BlobTypeApacheDatasketchesThetaV1 || len(b.Fields) != 1 || b.Fields[0] != field {
				continue
			}
			if n, err := strconv.ParseFloat(b.Properties["ndv"], 64); err == nil && n >= 0 && !math.IsInf(n, 0) {
				return max(min(n, o.tableRows(s)), 1), true
			}
		}
		snap := s.table.Metadata.SnapshotByID(at)
		if snap == nil || snap.ParentSnapshotID == nil {
			break
		}
		at = *snap.ParentSnapshotID
	}
	return 0, false
}

// values is the number of distinct values of column id of a tree, where statistics tell it, and whether the column is a key of its table.
func (o *optimizer) values(r rel, id int) (n float64, key, ok bool) {
	switch x := r.(type) {
	case *scanRel:
		n, ok = o.distinctValues(x, id)
		return n, ok && n >= 0.9*o.tableRows(x), ok // a sketch errs by a few percent
	case *projectRel:
		for i, c := range x.cols {
			if col, is := x.list[i].(*expr.Column); is && c == id {
				return o.values(x.in, col.Index)
			}
		}
		return 0, false, false
	case *aggRel:
		for i, c := range x.keyCols {
			if col, is := x.keys[i].(*expr.Column); is && c == id {
				return o.values(x.in, col.Index)
			}
		}
		return 0, false, false
	case *joinRel:
		if slices.Contains(x.l.out(), id) {
			return o.values(x.l, id)
		}
		return o.values(x.r, id)
	case *filterRel, *sortRel, *limitRel, *windowRel:
		return o.values(r.kids()[0], id)
	}
	return 0, false, false
}

// keyDomain collects what is known of the values that joined columns draw on.
type keyDomain struct {
	least float64 // rows of the smallest table
	most  float64 // greatest number of distinct values that statistics tell
	key   float64 // distinct values of a column that is a key
	blind bool    // there is a column without statistics
}

func (o *optimizer) widen(d *keyDomain, r rel, id int) {
	if rows := o.base(r, id); d.least == 0 || rows < d.least {
		d.least = rows
	}
	n, key, ok := o.values(r, id)
	d.blind = d.blind || !ok
	d.most = max(d.most, n)
	if key {
		d.key = max(d.key, n)
	}
}

// size is the number of values: the greatest of the columns' where all are known, else that of a key, else the rows of the smallest table, as a
// foreign key has no more values than the table it refers to has rows.
func (d *keyDomain) size() float64 {
	switch {
	case !d.blind:
		return d.most
	case d.key > 0:
		return d.key
	}
	return d.least
}

// equalityShare is the share of a scan's rows that an equality with a constant keeps, where statistics tell it.
func (o *optimizer) equalityShare(s *scanRel, c *expr.Compare) (float64, bool) {
	for _, pair := range [][2]expr.Expr{{c.L, c.R}, {c.R, c.L}} {
		if col, ok := pair[0].(*expr.Column); ok && len(expr.Columns(pair[1])) == 0 {
			if n, ok := o.distinctValues(s, col.Index); ok {
				return 1 / n, true
			}
		}
	}
	return 0, false
}
