package parquet

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/encoding"
	"github.com/skua-db/skua/vector"
)

// leaf reads one column chunk as vectors of the wanted type, one slot an element (see levels). Rows are read and skipped in order.
type leaf struct {
	node   *Node
	want   vector.Type
	src    pageSource
	dec    decoder
	minDef []byte
	// structure is set when the levels of a batch are wanted: for structs and lists above the leaf.
	structure bool

	row  int64 // next row of the row group
	left int64 // entries that the chunk has still to give, without a plan

	// The current page.
	page   *Page
	pageAt int64
	lv     levels
	// reserved is what the pool holds for lv.
	reserved int64
	entry    int // entries consumed
	slot     int // slots consumed
	pageEnd  int64

	dictPage *Page
	taken    int64 // records that the last call of records consumed

	retired []*buffer // what the current batch's vector may point into, released by the next

	// The current batch.
	readAt     int64 // its first row plus one, so that a leaf shared by several columns is read once
	batchSlots int
	out        vector.Vector
	form       formState
	owned      bool // out's values stand in this leaf's own scratch
	valid      []uint64
	hasValid   bool
	defs       []byte // of the batch's entries, when structure is set
	reps       []byte

	bools []bool
	i32   []int32
	i64   []int64
	i128  []vector.Int128
	f32   []float32
	f64   []float64
	views []vector.View
	codes []int32
}

type formState uint8

const (
	formNone formState = iota
	formFlat
	formDict
)

// fail says where a page went wrong.
func (l *leaf) fail(err error) error {
	return fault.Wrap(fault.Corrupt, err, "%s: column %s, page at %d", inFile(l.src.file.Path), l.node.Path(), l.pageAt)
}

// begin starts a batch: what the one before pointed into is given back.
func (l *leaf) begin() {
	for _, b := range l.retired {
		b.release()
	}
	l.retired = l.retired[:0]
	l.src.releaseOld()
	l.form, l.owned, l.hasValid = formNone, false, false
	l.out = vector.Vector{Type: l.want, Bufs: l.out.Bufs[:0]}
	l.defs, l.reps = l.defs[:0], l.reps[:0]
}

func (l *leaf) close() {
	l.begin()
	l.dropPage()
	l.begin()
	if l.dictPage != nil {
		l.dictPage.buf.release()
		l.dictPage = nil
	}
	l.src.close()
	if l.reserved > 0 {
		l.src.opt.Pool.Release(l.reserved)
		l.reserved = 0
	}
}

// dropPage leaves the current page; vectors of this batch may still refer to its bytes.
func (l *leaf) dropPage() {
	if l.page != nil && l.page.buf != nil {
		l.retired = append(l.retired, l.page.buf)
	}
	l.page = nil
}

// nextPage loads the page that holds row target or what follows the current one. Pages that end at or before target are passed
// over without being decompressed where their headers tell their rows.
func (l *leaf) nextPage(ctx context.Context, target int64) error {
	l.dropPage()
	if err := l.readDictionary(ctx); err != nil {
		return err
	}
	p, at, err := l.src.nextData(ctx, func(h *pageHeader, _, end int64) bool {
		if h == nil {
			return end <= target
		}
		rows := int64(h.numValues)
		if l.node.MaxRep > 0 {
			if h.kind != dataPageV2 {
				return false
			}
			rows = int64(h.numRows)
		}
		if int64(h.numValues) > l.left || l.row+rows > target {
			return false
		}
		l.row += rows
		l.left -= int64(h.numValues)
		return true
	})
	l.pageAt = at
	if err != nil {
		return l.fail(err)
	}
	l.page = p
	l.pageEnd = -1
	if l.src.planned {
		pl := l.src.plan[l.src.next-1]
		l.row, l.pageEnd = pl.first, pl.end
		if l.node.MaxRep == 0 && int64(p.header.numValues) != pl.end-pl.first {
			return l.fail(fault.New(fault.Corrupt, "page has %d values, the offset index says %d rows", p.header.numValues, pl.end-pl.first))
		}
	} else {
		if int64(p.header.numValues) > l.left {
			return l.fail(fault.New(fault.Corrupt, "page has %d values, the column chunk only %d more", p.header.numValues, l.left))
		}
		l.left -= int64(p.header.numValues)
	}
	if err := l.reserveLevels(int64(p.header.numValues)); err != nil {
		return err
	}
	rest, err := l.lv.read(l.node, &p.header, p.body, l.minDef)
	if err == nil {
		dictLen := -1
		if l.dec.dict != nil {
			dictLen = l.dec.count
		}
		err = l.dec.vals.reset(p.header.encoding, l.node, rest, l.lv.present, dictLen)
	}
	if err != nil {
		return l.fail(err)
	}
	l.entry, l.slot = 0, 0
	return nil
}

// reserveLevels accounts for the levels of a page of so many entries: a run of a few bytes can unfold to any number of them. The
// memory is kept for the pages that follow.
func (l *leaf) reserveLevels(entries int64) error {
	need := entries / 8
	switch {
	case l.node.MaxDef == 0:
		return nil
	case l.node.MaxRep > 0:
		need += 2 * entries
	case l.node.MaxDef > 1:
		need += entries
	}
	if pool := l.src.opt.Pool; pool != nil && need > l.reserved {
		if err := pool.Reserve(need - l.reserved); err != nil {
			return err
		}
		l.reserved = need
	}
	return nil
}

// exhausted reports that the current page has nothing left.
func (l *leaf) exhausted() bool { return l.page == nil || l.entry == l.lv.entries }

// read gives rows [first, first+n) of the row group.
func (l *leaf) read(ctx context.Context, first int64, n int) (*vector.Vector, error) {
	l.begin()
	var err error
	if l.node.MaxRep > 0 {
		err = l.readRecords(ctx, first, n)
	} else {
		err = l.readRows(ctx, first, n)
	}
	if err != nil {
		return nil, err
	}
	return &l.out, nil
}

func (l *leaf) readRows(ctx context.Context, first int64, n int) error {
	for done := 0; done < n; {
		if l.exhausted() {
			if err := l.nextPage(ctx, first+int64(done)); err != nil {
				return err
			}
			if l.lv.entries == 0 {
				continue
			}
		}
		if gap := first + int64(done) - l.row; gap > 0 {
			k := int(min(gap, int64(l.lv.entries-l.entry)))
			if err := l.skipSlots(k); err != nil {
				return l.fail(err)
			}
			l.entry += k
			l.row += int64(k)
			continue
		} else if gap < 0 {
			return l.fail(fault.New(fault.Corrupt, "pages begin at row %d, row %d is missing", l.row, first+int64(done)))
		}
		k := min(n-done, l.lv.entries-l.entry)
		if err := l.segment(done, k); err != nil {
			return l.fail(err)
		}
		if l.structure {
			l.copyDefs(k)
		}
		l.entry += k
		l.row += int64(k)
		done += k
	}
	l.finish(n)
	return nil
}

// copyDefs appends the definition levels of the next k entries to the batch's.
func (l *leaf) copyDefs(k int) {
	if l.lv.constant >= 0 {
		at := len(l.defs)
		grow(&l.defs, at+k, at)
		for i := range l.defs[at:] {
			l.defs[at+i] = byte(l.lv.constant)
		}
		return
	}
	if l.node.MaxDef == 1 && l.node.MaxRep == 0 && len(l.lv.valid) > 0 {
		at := len(l.defs)
		grow(&l.defs, at+k, at)
		for i := range k {
			j := l.entry + i
			l.defs[at+i] = byte(l.lv.valid[j>>6] >> (uint(j) & 63) & 1)
		}
		return
	}
	l.defs = append(l.defs, l.lv.defs[l.entry:l.entry+k]...)
}

// presentIn counts the values among the next k slots.
func (l *leaf) presentIn(k int) int {
	switch l.lv.present {
	case l.lv.slots:
		return k
	case 0:
		return 0
	}
	return countBits(l.lv.valid, l.slot, k)
}

// skipSlots passes over k slots of the page.
func (l *leaf) skipSlots(k int) error {
	n := l.presentIn(k)
	l.slot += k
	if l.slot == l.lv.slots {
		return nil // the page is left; its values need not be walked
	}
	return l.dec.vals.skip(n)
}

// readRecords reads whole records of a column in lists: from one repetition level 0 up to the one after.
func (l *leaf) readRecords(ctx context.Context, first int64, n int) error {
	done := 0
	for l.row < first || n > 0 {
		// A record of the version 1 layout may go on in the next page, so the page is needed even when all have begun.
		if l.exhausted() {
			if err := l.nextPage(ctx, first); err != nil {
				return err
			}
			if l.lv.entries > 0 && l.lv.reps[0] != 0 {
				return l.fail(fault.New(fault.Corrupt, "page begins inside a record"))
			}
			continue
		}
		if l.row < first {
			if _, err := l.records(ctx, first-l.row, -1); err != nil {
				return err
			}
			continue
		}
		if l.row > first {
			return l.fail(fault.New(fault.Corrupt, "pages begin at row %d, row %d is missing", l.row, first))
		}
		want := int64(n)
		if l.pageEnd >= 0 {
			if want = min(want, l.pageEnd-l.row); want <= 0 {
				return l.fail(fault.New(fault.Corrupt, "page has rows past %d, where the offset index ends it", l.pageEnd))
			}
		}
		k, err := l.records(ctx, want, done)
		if err != nil {
			return err
		}
		done = k
		first = l.row
		n -= int(l.taken)
	}
	l.finish(done)
	return nil
}

// records consumes up to want records that begin in the current page, each with its continuation in pages that follow. With
// done < 0 they are skipped, otherwise their slots are appended after the done slots so far, and the new number is returned. taken is
// set to the records consumed.
func (l *leaf) records(ctx context.Context, want int64, done int) (int, error) {
	l.taken = 0
	for {
		start, slots := l.entry, 0
		element := int(l.minDef[l.node.MaxRep])
		taken, i := l.taken, start
		defs := l.lv.defs[:l.lv.entries]
		for ; i < len(defs); i++ {
			first := int64(atLeast(0, int(l.lv.reps[i])))
			if taken+first > want {
				break
			}
			taken += first
			slots += atLeast(int(defs[i]), element)
		}
		l.taken = taken
		var err error
		if done < 0 {
			err = l.skipSlots(slots)
		} else {
			if l.structure {
				l.defs = append(l.defs, l.lv.defs[start:i]...)
				l.reps = append(l.reps, l.lv.reps[start:i]...)
			}
			err = l.segment(done, slots)
			done += slots
		}
		if err != nil {
			return 0, l.fail(err)
		}
		l.entry = i
		if i < l.lv.entries || l.lastPage() {
			l.row += l.taken
			return done, nil
		}
		// The page is at its end; the record goes on if the next page does not begin with a new one.
		row := l.row
		if err := l.nextPage(ctx, -1); err != nil {
			return 0, err
		}
		for l.lv.entries == 0 && !l.lastPage() {
			if err := l.nextPage(ctx, -1); err != nil {
				return 0, err
			}
		}
		l.row = row
		if l.lv.entries == 0 || l.lv.reps[0] == 0 {
			l.row += l.taken
			return done, nil
		}
	}
}

// lastPage reports that no page continues the current one: none is left, or pages begin at records (the offset index and version 2
// pages promise it).
func (l *leaf) lastPage() bool {
	return l.src.planned || l.page != nil && l.page.header.kind == dataPageV2 || l.left == 0
}

// segment decodes the next k slots of the page behind the done slots of the batch.
func (l *leaf) segment(done, k int) error {
	if k == 0 {
		return nil
	}
	n := l.presentIn(k)
	from := l.slot
	if n < k {
		l.markNulls(done, k, n, from)
	} else if l.hasValid {
		l.extendValid(done, k)
		encoding.SetBits(l.valid, done, k)
	}
	l.slot += k
	if n == 0 && l.form == formNone && done == 0 {
		// Decided once values come, if they do.
		return nil
	}
	dict := l.dec.vals.enc == RLEDictionary && n > 0
	if l.form == formNone {
		l.form = formFlat
		if l.dictForm() && dict {
			l.form = formDict
		}
	}
	if l.form == formDict {
		if dict || n == 0 {
			return place(l, &l.out.Codes, &l.codes, done, k, n, from, readCodes)
		}
		l.flatten(done)
	}
	switch l.dec.conv.layout {
	case vector.PBool:
		return place(l, &l.out.Bools, &l.bools, done, k, n, from, readBool)
	case vector.PInt32:
		return place(l, &l.out.I32, &l.i32, done, k, n, from, readInt32)
	case vector.PInt64:
		return place(l, &l.out.I64, &l.i64, done, k, n, from, readInt64)
	case vector.PInt128:
		return place(l, &l.out.I128, &l.i128, done, k, n, from, readInt128)
	case vector.PFloat32:
		return place(l, &l.out.F32, &l.f32, done, k, n, from, readFloat32)
	case vector.PFloat64:
		return place(l, &l.out.F64, &l.f64, done, k, n, from, readFloat64)
	case vector.PView:
		return l.placeViews(done, k, n, from, dict)
	}
	return nil // type Null: nothing is kept
}

func readCodes(d *decoder, dst []int32) ([]int32, error) { return dst, d.vals.codes(dst) }

// dictForm reports whether dictionary pages are handed on as codes: where looking a value up costs more than a code.
func (l *leaf) dictForm() bool {
	return l.dec.conv.layout == vector.PView || l.dec.conv.layout == vector.PInt128
}

// place puts n values into slots [done, done+k) of out, spread by the page's valid bits from bit from on.
func place[T any](l *leaf, out, scratch *[]T, done, k, n, from int, read func(*decoder, []T) ([]T, error)) error {
	if done > 0 && !l.owned {
		// The batch began as a window into a page, or with nulls only.
		grow(scratch, done+k, 0)
		clear((*scratch)[copy(*scratch, *out):done])
	} else {
		grow(scratch, done+k, done)
	}
	dst := (*scratch)[done : done+n : done+k]
	src := dst
	if n > 0 {
		var err error
		if src, err = read(&l.dec, dst); err != nil {
			return err
		}
	}
	if n == k && done == 0 && !same(src, dst) {
		*out = src
		return nil
	}
	switch {
	case n < k:
		spread((*scratch)[done:done+k], src, l.lv.valid, from)
	case !same(src, dst):
		copy(dst, src)
	}
	l.owned = true
	*out = *scratch
	return nil
}

// placeViews is place for strings, whose buffers go along.
func (l *leaf) placeViews(done, k, n, from int, dict bool) error {
	grow(&l.views, done+k, done)
	if !l.owned {
		clear(l.views[:done])
	}
	l.owned = true
	dst := l.views[done : done+n : done+k]
	if dict {
		base := len(l.out.Bufs)
		l.out.Bufs = append(l.out.Bufs, l.dec.dict.Bufs...)
		if _, err := gather(&l.dec, l.dec.dict.Views, dst); err != nil {
			return err
		}
		if base > 0 {
			for i := range dst {
				dst[i] = dst[i].Rebase(base)
			}
		}
	} else if n > 0 {
		b, owner, err := l.dec.readViews(dst, len(l.out.Bufs), l.src.opt.Pool)
		if err != nil {
			return err
		}
		l.out.Bufs = append(l.out.Bufs, b)
		if owner != nil {
			l.retired = append(l.retired, owner)
		}
	}
	if n < k {
		spread(l.views[done:done+k], dst, l.lv.valid, from)
	}
	l.out.Views = l.views
	return nil
}

// flatten turns the codes of the batch so far into values: the chunk's later pages are not dictionary-encoded.
func (l *leaf) flatten(done int) {
	codes := l.out.Codes
	l.out.Codes, l.form, l.owned = nil, formFlat, true
	if l.dec.conv.layout == vector.PInt128 {
		grow(&l.i128, done, 0)
		for i, c := range codes[:done] {
			l.i128[i] = l.dec.dict.I128[c]
		}
		l.out.I128 = l.i128
		return
	}
	grow(&l.views, done, 0)
	l.out.Bufs = append(l.out.Bufs[:0], l.dec.dict.Bufs...)
	for i, c := range codes[:done] {
		l.views[i] = l.dec.dict.Views[c]
	}
	l.out.Views = l.views
}

// markNulls sets the valid bits of slots [done, done+k), n of which are present.
func (l *leaf) markNulls(done, k, n, from int) {
	if !l.hasValid {
		grow(&l.valid, (done+k+63)/64, 0)
		clear(l.valid)
		encoding.SetBits(l.valid, 0, done)
		l.hasValid = true
	} else {
		l.extendValid(done, k)
	}
	if n > 0 {
		encoding.CopyBits(l.valid, done, l.lv.valid, from, k)
	}
}

// extendValid makes room for the bits of slots [done, done+k), clear.
func (l *leaf) extendValid(done, k int) {
	had := (done + 63) / 64
	grow(&l.valid, (done+k+63)/64, had)
	clear(l.valid[had:])
}

// finish completes the vector of n slots.
func (l *leaf) finish(n int) {
	l.batchSlots = n
	if l.hasValid {
		l.out.Valid = l.valid
	}
	switch {
	case l.want.Kind == vector.Null || l.dec.conv.op == opNull:
		l.out = *nullVector(l.want)
	case l.form == formNone && n > 0 && l.dec.conv.layout != vector.PNone:
		// Not one value is present.
		l.out = *nullVector(l.want)
	case l.form == formDict:
		l.out.Form, l.out.Dict = vector.Dictionary, l.dec.dict
	}
}

// nullVector is a constant null of a type.
func nullVector(t vector.Type) *vector.Vector {
	v := vector.New(t, 1)
	v.Form = vector.Constant
	if t.Kind != vector.Null {
		v.Valid = vector.NewBitmap(1, false)
	}
	return v
}
