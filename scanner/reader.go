package scanner

import (
	"context"
	"math"
	"slices"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/expr"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/profile"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/vector"
)

// source gives batches of a file's rows. Columns are numbered as the reader asked for them.
type source interface {
	// next advances: n rows, the first of which is at an ordinal of the file; 0 at the end.
	next(ctx context.Context) (n int, first int64, err error)
	// read gives a column of the batch. It is valid until the next call of next.
	read(ctx context.Context, col int) (*vector.Vector, error)
	close()
}

// Open begins to read a task. Errors name the file.
func (s *Scanner) Open(ctx context.Context, t *Task, pool *memory.Pool) (ChunkReader, error) {
	if pool == nil {
		pool = memory.NewPool("scan", 0)
	}
	r := &reader{f: t.file, sc: t.file.sc, task: t, pool: pool}
	if err := r.open(ctx); err != nil {
		_ = r.Close()
		return nil, r.wrap(err)
	}
	return r, nil
}

// reader reads one task. A batch goes through: positions, conjuncts that cannot fail, equality deletes, the other conjuncts,
// runtime filters; columns are decoded when first needed.
type reader struct {
	f    *dataFile
	sc   *scan
	task *Task
	pool *memory.Pool
	src  source

	dead    *deletes.Bitmap
	keys    []keySet
	keyCols [][]int // of keys, then of otherKeys: source column of each key
	// otherDead and otherKeys are the deletes of another snapshot, to which the rows that are asked for fell.
	otherDead *deletes.Bitmap
	otherKeys []keySet
	otherSel  []uint16
	scratch   deletes.Scratch
	programs  []*expr.Program
	mark      bool // deleted rows are marked, not dropped

	// columns: what the source is asked for; slots maps a position of the projection to one, -1 for none.
	columns []*projected
	slots   []int
	rowID   int // source columns of the lineage columns, -1
	lastSeq int

	chunk vector.Chunk // all columns of the projection, as far as they are read
	out   vector.Chunk
	first int64
	n     int
	sel   [2][]uint16
	at    int // index in sel of the buffer that is free
	gone  []uint64
	mask  []uint64
	rows  int64 // given so far, for the limit
	done  bool

	considered, kept, removed int64
	stepIn                    []int64
}

func (r *reader) wrap(err error) error {
	if r.sc.r.Table.Files != nil {
		return fault.Wrap(fault.Corrupt, err, "file %s", r.f.path)
	}
	return fault.Wrap(fault.Corrupt, err, "table %s: %s", r.sc.r.Table.FullName(), r.f.name())
}

func (r *reader) open(ctx context.Context) error {
	f, sc := r.f, r.sc
	if err := f.checkKey(); err != nil {
		return err
	}
	r.rowID, r.lastSeq = -1, -1
	r.chunk.Cols = make([]*vector.Vector, len(sc.wants))
	r.out.Cols = make([]*vector.Vector, sc.r.Output)
	r.slots = make([]int, len(sc.wants))
	r.stepIn = make([]int64, len(sc.steps))
	for _, m := range sc.metas {
		r.mark = r.mark || m == idDeleted
	}
	if sc.r.MetadataOnly {
		r.done = true
		return nil
	}
	var err error
	if r.dead, err = f.positions(ctx, r.pool); err != nil {
		return err
	}
	if r.keys, err = f.equality(ctx, r.pool); err != nil {
		return err
	}
	if err := r.openOther(ctx); err != nil {
		return err
	}
	if f.counted() {
		r.src = &countSource{left: f.records}
		for i := range r.slots {
			r.slots[i] = -1
		}
		return nil
	}
	switch f.format {
	case manifest.Parquet:
		err = r.openParquet(ctx)
	case manifest.Avro:
		err = r.openAvro(ctx)
	case manifest.ORC:
		err = r.openORC(ctx)
	default:
		err = fault.New(fault.Corrupt, "its format is %s", f.format)
	}
	if err != nil {
		return err
	}
	for i := range sc.steps {
		p, err := sc.program(i)
		if err != nil {
			return err
		}
		r.programs = append(r.programs, p)
	}
	return nil
}

// project decides which columns of the file's tree are read.
func (r *reader) project(tree *fileNode) error {
	sc, f := r.sc, r.f
	for i, w := range sc.wants {
		r.slots[i] = -1
		switch sc.metas[i] {
		case 0:
			p, err := project(w, tree, f.constants)
			if err != nil {
				return err
			}
			r.slots[i] = r.ask(p)
		case idRowID:
			r.rowID = r.lineage(tree, idRowID, "_row_id")
		case idLastSeq:
			r.lastSeq = r.lineage(tree, idLastSeq, "_last_updated_sequence_number")
		}
	}
	for _, k := range slices.Concat(r.keys, r.otherKeys) {
		cols := make([]int, len(k.paths))
		for j, p := range k.paths {
			cols[j] = -1
			if len(p.path) == 0 { // share a column of the projection
				for i, w := range sc.wants {
					if sc.metas[i] == 0 && w.id == p.top.id && w.typ.Equal(p.top.typ) {
						cols[j] = r.slots[i]
					}
				}
			}
			if cols[j] < 0 {
				q, err := project(p.top, tree, f.constants)
				if err != nil {
					return err
				}
				cols[j] = r.ask(q)
			}
		}
		r.keyCols = append(r.keyCols, cols)
	}
	return nil
}

func (r *reader) ask(p *projected) int {
	r.columns = append(r.columns, p)
	return len(r.columns) - 1
}

// lineage asks for a row lineage column that the file itself holds.
func (r *reader) lineage(tree *fileNode, id int, name string) int {
	if r.f.firstRowID < 0 || tree.find(id) == nil {
		return -1
	}
	w := &want{id: id, name: name, typ: vector.Of(vector.BigInt)}
	p, err := project(w, tree, func(*want) (vector.Value, bool) { return nil, false })
	if err != nil {
		return -1
	}
	return r.ask(p)
}

// Next implements ChunkReader.
func (r *reader) Next(ctx context.Context) (*vector.Chunk, error) {
	for !r.done {
		n, first, err := r.src.next(ctx)
		if err != nil {
			return nil, r.wrap(err)
		}
		if n == 0 {
			r.done = true
			break
		}
		c, err := r.batch(ctx, n, first)
		if err != nil {
			return nil, r.wrap(err)
		}
		if c == nil {
			continue
		}
		r.rows += int64(c.Rows())
		if l := r.sc.r.Limit; l >= 0 && r.rows >= l {
			r.done = true
		}
		return c, nil
	}
	return nil, nil
}

// batch gives the chunk of a batch; nil when no row of it counts.
func (r *reader) batch(ctx context.Context, n int, first int64) (*vector.Chunk, error) {
	sc := r.sc
	r.n, r.first = n, first
	r.considered += int64(n)
	clear(r.chunk.Cols)
	r.chunk.N = n
	var sel []uint16
	if r.mark {
		r.gone = append(r.gone[:0], make([]uint64, (n+63)/64)...)
		if r.dead != nil {
			r.dead.Mask(first, n, r.gone)
		}
	} else if r.dead != nil {
		r.mask = append(r.mask[:0], make([]uint64, (n+63)/64)...)
		if r.dead.Mask(first, n, r.mask) {
			sel = deletes.Drop(r.mask, n, nil, r.buffer())
			r.removed += int64(n - len(sel))
			if len(sel) == 0 {
				return nil, nil
			}
		}
	}
	sel, err := r.keepOther(ctx, sel, true)
	if err != nil || sel != nil && len(sel) == 0 {
		return nil, err
	}
	if sc.s.opt.Without.LateMaterialization {
		for i, slot := range r.slots {
			if slot >= 0 && sc.metas[i] == 0 {
				if _, err := r.column(ctx, i); err != nil {
					return nil, err
				}
			}
		}
	}
	if r.mark { // conjuncts may ask for the marks
		if sel, err = r.dropKeys(ctx, sel); err != nil {
			return nil, err
		}
	}
	for _, safe := range [2]bool{true, false} {
		if !safe && !r.mark {
			if sel, err = r.dropKeys(ctx, sel); err != nil || sel != nil && len(sel) == 0 {
				return nil, err
			}
			if sel, err = r.keepOther(ctx, sel, false); err != nil || sel != nil && len(sel) == 0 {
				return nil, err
			}
		}
		for i := range sc.steps {
			if sc.steps[i].safe != safe {
				continue
			}
			if sel, err = r.step(ctx, i, sel); err != nil || len(sel) == 0 {
				return nil, err
			}
		}
	}
	if sel, err = r.runtime(ctx, sel); err != nil || sel != nil && len(sel) == 0 {
		return nil, err
	}
	for i := range r.out.Cols {
		if r.out.Cols[i], err = r.column(ctx, i); err != nil {
			return nil, err
		}
	}
	if len(sel) == n {
		sel = nil
	}
	r.out.N, r.out.Sel = n, sel
	r.kept += int64(r.out.Rows())
	return &r.out, nil
}

// buffer gives room for a selection that does not hold the current one.
func (r *reader) buffer() []uint16 {
	r.at ^= 1
	if r.sel[r.at] == nil {
		r.sel[r.at] = make([]uint16, 0, vector.Size)
	}
	return r.sel[r.at][:0]
}

func (r *reader) rowsOf(sel []uint16) int {
	if sel == nil {
		return r.n
	}
	return len(sel)
}

// step applies conjunct i of the filter.
func (r *reader) step(ctx context.Context, i int, sel []uint16) ([]uint16, error) {
	for _, c := range r.sc.steps[i].cols {
		if _, err := r.column(ctx, c); err != nil {
			return nil, err
		}
	}
	before := r.rowsOf(sel)
	out, err := r.programs[i].Filter(&r.chunk, sel, r.buffer())
	if err != nil {
		return nil, err
	}
	r.stepIn[i] += int64(before - len(out))
	if out == nil {
		out = []uint16{}
	}
	return out, nil
}

// dropKeys applies equality deletes.
func (r *reader) dropKeys(ctx context.Context, sel []uint16) ([]uint16, error) {
	for k, set := range r.keys {
		cols, err := r.keyColumns(ctx, k, &set)
		if err != nil {
			return nil, err
		}
		before := r.rowsOf(sel)
		out := set.keys.Select(cols, r.n, sel, r.buffer(), r.f.seq, &r.scratch)
		if r.mark {
			r.markGone(sel, out)
			continue
		}
		r.removed += int64(before - len(out))
		if sel = out; len(sel) == 0 {
			return []uint16{}, nil
		}
	}
	return sel, nil
}

// keyColumns gives the columns of the k-th set of keys for the current batch.
func (r *reader) keyColumns(ctx context.Context, k int, set *keySet) ([]*vector.Vector, error) {
	cols := make([]*vector.Vector, len(set.paths))
	for j, c := range r.keyCols[k] {
		v, err := r.src.read(ctx, c)
		if err != nil {
			return nil, err
		}
		cols[j] = leafVector(v, set.paths[j].path, r.n)
	}
	return cols, nil
}

// markGone sets the marks of rows in all (nil: every row) that kept lacks.
func (r *reader) markGone(all, kept []uint16) {
	k := 0
	for i := range r.rowsOf(all) {
		row := uint16(i)
		if all != nil {
			row = all[i]
		}
		if k < len(kept) && kept[k] == row {
			k++
			continue
		}
		r.gone[row>>6] |= 1 << (row & 63)
	}
}

// runtime applies the runtime filters that have their values.
func (r *reader) runtime(ctx context.Context, sel []uint16) ([]uint16, error) {
	if r.sc.s.opt.Without.RuntimeFilters {
		return sel, nil
	}
	for _, f := range r.sc.r.Runtime {
		select {
		case <-f.Ready():
		default:
			continue
		}
		v, err := r.column(ctx, f.Column())
		if err != nil {
			return nil, err
		}
		before := r.rowsOf(sel)
		sel = f.Select(v, r.n, sel, r.buffer())
		if dropped := before - len(sel); dropped > 0 {
			r.sc.r.Profile.Removed(profile.Removal{Level: "row", Means: "runtime filter", Predicate: r.sc.wants[f.Column()].name}, int64(dropped))
		}
		if len(sel) == 0 {
			return []uint16{}, nil
		}
	}
	return sel, nil
}

// column gives a column of the projection for the current batch.
func (r *reader) column(ctx context.Context, i int) (*vector.Vector, error) {
	if v := r.chunk.Cols[i]; v != nil {
		return v, nil
	}
	var v *vector.Vector
	var err error
	if r.sc.metas[i] != 0 {
		v, err = r.metadata(ctx, i)
	} else {
		v, err = r.src.read(ctx, r.slots[i])
	}
	r.chunk.Cols[i] = v
	return v, err
}

// metadata makes a metadata column.
func (r *reader) metadata(ctx context.Context, i int) (*vector.Vector, error) {
	w, f := r.sc.wants[i], r.f
	switch r.sc.metas[i] {
	case idFile:
		return vector.NewConstant(w.typ, f.path), nil
	case idSpecID:
		return vector.NewConstant(w.typ, int32(f.spec.ID())), nil
	case idPartition:
		return vector.NewConstant(w.typ, f.partitionRow(w)), nil
	case idPos:
		return r.sequence(w.typ, r.first), nil
	case idDeleted:
		v := vector.New(w.typ, r.n)
		for k := range r.n {
			v.Bools[k] = r.gone[k>>6]&(1<<(uint(k)&63)) != 0
		}
		return v, nil
	case idRowID:
		if f.firstRowID < 0 {
			return vector.NewConstant(w.typ, nil), nil
		}
		if f.firstRowID > math.MaxInt64-r.first-int64(r.n) {
			return nil, fault.New(fault.Corrupt, "its first row id %d is out of range", f.firstRowID)
		}
		return r.overlay(ctx, r.rowID, r.sequence(w.typ, f.firstRowID+r.first))
	}
	if f.firstRowID < 0 {
		return vector.NewConstant(w.typ, nil), nil
	}
	seq := vector.New(w.typ, r.n)
	for k := range seq.I64 {
		seq.I64[k] = f.seq
	}
	return r.overlay(ctx, r.lastSeq, seq)
}

func (r *reader) sequence(t vector.Type, from int64) *vector.Vector {
	v := vector.New(t, r.n)
	for k := range v.I64 {
		v.I64[k] = from + int64(k)
	}
	return v
}

// overlay puts the values that the file holds, where they are not null, over those that follow from the entry (spec: Row
// Lineage).
func (r *reader) overlay(ctx context.Context, col int, v *vector.Vector) (*vector.Vector, error) {
	if col < 0 {
		return v, nil
	}
	own, err := r.src.read(ctx, col)
	if err != nil {
		return nil, err
	}
	for k := range v.I64 {
		if !own.IsNull(k) {
			v.I64[k] = own.Values().I64[own.Index(k)]
		}
	}
	return v, nil
}

// Close implements ChunkReader.
func (r *reader) Close() error {
	if r.src != nil {
		r.src.close()
		r.src = nil
	}
	r.done = true
	for i, p := range r.programs {
		r.sc.putProgram(i, p)
	}
	r.programs = nil
	p := r.sc.r.Profile
	p.Rows.Add(r.considered, r.kept)
	p.RowsDeleted.Add(r.removed)
	for i, n := range r.stepIn {
		p.Removed(profile.Removal{Level: "row", Means: "filter", Predicate: r.sc.steps[i].text}, n)
	}
	r.considered, r.kept, r.removed, r.stepIn = 0, 0, 0, nil
	return nil
}

// countSource gives rows without columns.
type countSource struct{ at, left int64 }

func (s *countSource) next(ctx context.Context) (int, int64, error) {
	n := min(s.left, vector.Size)
	first := s.at
	s.at, s.left = s.at+n, s.left-n
	return int(n), first, ctx.Err()
}

func (s *countSource) read(context.Context, int) (*vector.Vector, error) {
	return nil, fault.New(fault.Internal, "a column is read where rows are only counted")
}

func (s *countSource) close() {}

// options are those of Parquet reads of this scan.
func (f *dataFile) options(pool *memory.Pool) parquet.Options {
	return parquet.Options{CheckCRC: !f.sc.s.opt.SkipCRC, Pool: pool, Profile: f.sc.r.Profile}
}
