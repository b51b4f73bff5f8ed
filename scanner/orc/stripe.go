package orc

import (
	"context"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
	"github.com/skua-db/skua/vector"
)

// stripeFooter tells where the streams of a stripe are and how its columns are encoded.
type stripeFooter struct {
	streams   map[streamKey]storage.Range // in the file
	encodings []encoding                  // one a column
	zone      string
}

type streamKey struct {
	column int
	kind   streamKind
}

type encoding struct {
	kind     uint64
	dictSize uint64
}

// The encodings of a column.
const (
	encDirect uint64 = iota
	encDictionary
	encDirectV2
	encDictionaryV2
)

// stripeFooter reads the footer of a stripe, once.
func (f *Footer) stripeFooter(ctx context.Context, o storage.Object, stripe int) (*stripeFooter, error) {
	f.mu.Lock()
	s := f.footers[stripe]
	f.mu.Unlock()
	if s != nil {
		return s, nil
	}
	t := f.Stripes[stripe]
	raw := make([]byte, t.FootLen)
	if err := o.ReadRanges(ctx, []storage.Range{{Offset: t.Offset + t.IndexLen + t.DataLen, Length: t.FootLen}}, [][]byte{raw}); err != nil {
		return nil, err
	}
	b, err := f.inflate(raw)
	if err == nil {
		s, err = f.parseStripeFooter(b, t)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "stripe footer")
	}
	f.mu.Lock()
	f.footers[stripe] = s
	f.mu.Unlock()
	f.held.Add(int64(64*len(s.streams) + 16*len(s.encodings)))
	return s, nil
}

func (f *Footer) parseStripeFooter(b []byte, t *Stripe) (*stripeFooter, error) {
	s := &stripeFooter{streams: map[streamKey]storage.Range{}}
	m := message{b: b}
	at, end := t.Offset, t.Offset+t.IndexLen+t.DataLen
	for m.next() {
		switch m.num {
		case 1:
			p := message{b: m.data}
			var kind, column, length uint64
			for p.next() {
				switch p.num {
				case 1:
					kind = p.u
				case 2:
					column = p.u
				case 3:
					length = p.u
				}
			}
			if p.err != nil {
				return nil, p.err
			}
			if length > uint64(end-at) {
				return nil, fault.New(fault.Corrupt, "a stream of column %d has %d bytes where %d are left", column, length, end-at)
			}
			if kind < uint64(len(streamNames)) {
				k := streamKey{int(column), streamKind(kind)}
				if column >= uint64(len(f.Nodes)) {
					return nil, fault.New(fault.Corrupt, "a stream of column %d, of which there are %d", column, len(f.Nodes))
				}
				if _, ok := s.streams[k]; ok {
					return nil, fault.New(fault.Corrupt, "column %s has two %s streams", f.Nodes[column].Path(), k.kind)
				}
				s.streams[k] = storage.Range{Offset: at, Length: int64(length)}
			}
			at += int64(length)
		case 2:
			p := message{b: m.data}
			var e encoding
			for p.next() {
				switch p.num {
				case 1:
					e.kind = p.u
				case 2:
					e.dictSize = p.u
				}
			}
			if p.err != nil {
				return nil, p.err
			}
			s.encodings = append(s.encodings, e)
		case 3:
			s.zone = string(m.data)
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	if len(s.encodings) != len(f.Nodes) {
		return nil, fault.New(fault.Corrupt, "it has the encodings of %d columns, the file has %d", len(s.encodings), len(f.Nodes))
	}
	return s, nil
}

// StripeReader reads the columns of one stripe in batches. Columns that are not read for a batch are skipped; with a row index,
// whole row groups of them are neither decompressed nor decoded. It belongs to one goroutine.
type StripeReader struct {
	file   *Footer
	stripe *Stripe
	number int
	in     input
	acc    account
	cols   []*topColumn
	groups [2]fetchGroup // what is fetched at once: columns wanted for every row, and deferred ones

	ranges []RowRange
	at     int   // index into ranges
	next   int64 // next row of the stripe
	first  int64 // the current batch
	n      int
	batch  int
	closed bool
}

// topColumn is a wanted column with its place in the stripe.
type topColumn struct {
	*column
	group   int
	streams []*stream
	row     int64 // the next that is decoded
	batch   int   // the batch that column holds
	err     error
	// indexes has the row index of each node, once it was asked for; unindexed is set when that cannot be used.
	indexes   map[int]*rowIndex
	unindexed bool
}

// fetchGroup is a set of columns that are fetched together.
type fetchGroup struct {
	cols    []*topColumn
	fetched bool
}

const defaultReadAhead = 64 << 20

// OpenStripe prepares the columns of one stripe. ranges nil means all rows; otherwise they are ascending, disjoint row ranges of
// the stripe. Errors are fault.Corrupt when a column cannot be read as the type wanted.
func OpenStripe(ctx context.Context, o storage.Object, f *Footer, stripe int, cols []*Projection, ranges []RowRange, opt Options) (*StripeReader, error) {
	if stripe < 0 || stripe >= len(f.Stripes) {
		return nil, fault.New(fault.Internal, "ORC file %s has no stripe %d", f.Path, stripe)
	}
	r := &StripeReader{file: f, stripe: f.Stripes[stripe], number: stripe, ranges: ranges}
	r.acc.pool = opt.Pool
	if opt.ReadAheadBytes <= 0 {
		opt.ReadAheadBytes = defaultReadAhead
	}
	r.in = input{ctx: ctx, obj: o, opt: &opt}
	if ranges == nil {
		r.ranges = []RowRange{{First: 0, Last: r.stripe.NumRows}}
	}
	last := int64(0)
	for _, x := range r.ranges {
		if x.First < last || x.Last < x.First || x.Last > r.stripe.NumRows {
			return nil, fault.New(fault.Internal, "row range [%d, %d) of a stripe of %d rows", x.First, x.Last, r.stripe.NumRows)
		}
		last = x.Last
	}
	foot, err := f.stripeFooter(ctx, o, stripe)
	if err != nil {
		return nil, r.wrap(err)
	}
	for i, p := range cols {
		b := builder{file: f, foot: foot, in: &r.in, acc: &r.acc}
		c, err := b.column(p)
		if err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "ORC file %s", f.Path)
		}
		t := &topColumn{column: c, streams: b.streams}
		if opt.Deferred != nil && i < len(opt.Deferred) && opt.Deferred[i] {
			t.group = 1
		}
		g := &r.groups[t.group]
		g.cols = append(g.cols, t)
		r.cols = append(r.cols, t)
	}
	return r, nil
}

func (r *StripeReader) wrap(err error) error {
	return fault.Wrap(fault.Internal, err, "ORC file %s: stripe %d", r.file.Path, r.number)
}

// NextBatch moves to the next batch: n contiguous rows, at most limit; firstRow is the ordinal of its first row within the file. n
// is 0 at the end.
func (r *StripeReader) NextBatch(limit int) (n int, firstRow int64) {
	r.batch++
	for r.at < len(r.ranges) {
		x := r.ranges[r.at]
		r.next = max(r.next, x.First)
		if r.next < x.Last {
			r.first = r.next
			r.n = int(min(int64(limit), x.Last-r.next))
			r.next += int64(r.n)
			return r.n, r.stripe.FirstRow + r.first
		}
		r.at++
	}
	r.n = 0
	return 0, 0
}

// Read decodes column col for the whole current batch. The vector is valid until the next NextBatch; reading a column again gives
// the same vector.
func (r *StripeReader) Read(ctx context.Context, col int) (*vector.Vector, error) {
	if r.n == 0 || r.closed {
		return nil, fault.New(fault.Internal, "ORC file %s: read outside a batch", r.file.Path)
	}
	t := r.cols[col]
	if t.kind == constantColumn {
		return t.constant, nil
	}
	if t.err == nil && t.batch != r.batch {
		r.in.ctx = ctx
		t.err = r.advance(ctx, t)
		t.batch = r.batch
	}
	if t.err != nil {
		return nil, t.err
	}
	return t.vector(), nil
}

func (r *StripeReader) advance(ctx context.Context, t *topColumn) error {
	if g := &r.groups[t.group]; !g.fetched {
		if err := r.fetch(ctx, g); err != nil {
			return r.wrap(err)
		}
	}
	err := r.skipTo(ctx, t)
	if err == nil {
		err = t.read(r.n, nil, r.n)
	}
	t.row = r.first + int64(r.n)
	if err != nil {
		return r.wrap(t.wrap(err))
	}
	return nil
}

// seekRows is the number of rows that it takes to make a row index worth reading.
const seekRows = 4096

// skipTo moves a column to the first row of the batch.
func (r *StripeReader) skipTo(ctx context.Context, t *topColumn) error {
	if stride := r.file.Stride; stride > 0 && !t.unindexed {
		g := r.first / stride
		if g*stride-t.row >= seekRows || t.indexes != nil && g*stride > t.row {
			if err := r.loadIndexes(ctx, t); err != nil {
				return err
			}
			if !t.unindexed {
				if err := t.seek(t.indexes, int(g)); err != nil {
					return err
				}
				t.row = g * stride
			}
		}
	}
	return t.skip(r.first - t.row)
}

// loadIndexes reads the row indexes of a column. They are not used when they do not have the shape that its streams ask for:
// writers differ in whether they count a present stream that was dropped.
func (r *StripeReader) loadIndexes(ctx context.Context, t *topColumn) error {
	if t.indexes != nil {
		return nil
	}
	t.indexes = map[int]*rowIndex{}
	groups := int((r.stripe.NumRows + r.file.Stride - 1) / r.file.Stride)
	var err error
	t.unindexed = !t.walk(func(c *column) bool {
		var x *rowIndex
		if x, err = r.file.rowIndex(ctx, r.in.obj, r.number, c.node); err != nil || x == nil || len(x.groups) != groups {
			return false
		}
		t.indexes[c.node.Column] = x
		width := c.width()
		for _, g := range x.groups {
			if len(g.positions) != width {
				return false
			}
		}
		return true
	})
	return err
}

// Skip says that column col is not needed for the current batch. A column that is not read is skipped anyway: the rows are passed
// over when it is next read, many batches at once.
func (r *StripeReader) Skip(context.Context, int) error { return nil }

// Close gives all memory back. Vectors of the last batch are no longer valid.
func (r *StripeReader) Close() {
	if !r.closed {
		r.closed = true
		r.acc.close()
		r.cols = nil
	}
}
