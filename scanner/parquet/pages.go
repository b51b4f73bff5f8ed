package parquet

import (
	"context"
	"sort"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// segment is a fetched run of the file's bytes.
type segment struct {
	at  int64
	buf *buffer
}

// plannedPage is a data page that the offset index names and the row ranges want.
type plannedPage struct {
	at, size   int64 // in the file, header included
	first, end int64 // rows of the row group
	ordinal    int   // among the data pages of its chunk
}

// pageSource gives the pages of one column chunk in order: from the whole chunk, in windows, or from the pages that an
// offset index and row ranges leave.
type pageSource struct {
	file  *Footer
	obj   storage.Object
	opt   *Options
	chunk *ColumnChunk
	where storage.Range

	segs []segment
	old  []*buffer // segments that pages of the current batch may still point into
	held map[int64]*Page
	at   int64 // where the next page begins
	// window is how much is fetched at once when at leaves the segments; 0 when everything was fetched before.
	window int64

	planned   bool
	plan      []plannedPage
	next      int   // index into plan
	firstData int64 // where the first data page begins, by the offset index

	dictRead bool

	// Of encrypted files: where the chunk stands, and the next data page in it.
	rowGroup, column, ordinal int
}

// fetchPlan lists the bytes this source wants read at once and, in the same order, takes them back through accept. Pages in the
// page cache are left out.
func (s *pageSource) fetchPlan() []storage.Range {
	s.held = map[int64]*Page{}
	if !s.planned {
		at := s.where.Offset
		for at < s.where.End() {
			p := s.hit(at)
			if p == nil {
				break
			}
			at += p.size
		}
		if at >= s.where.End() {
			return nil
		}
		return []storage.Range{{Offset: at, Length: s.where.End() - at}}
	}
	var rs []storage.Range
	add := func(at, size int64) {
		if size <= 0 || s.hit(at) != nil {
			return
		}
		if k := len(rs) - 1; k >= 0 && rs[k].End() == at {
			rs[k].Length += size
			return
		}
		rs = append(rs, storage.Range{Offset: at, Length: size})
	}
	if len(s.plan) > 0 {
		add(s.where.Offset, s.dictBytes())
	}
	for _, p := range s.plan {
		add(p.at, p.size)
	}
	return rs
}

// hit looks the page at a place up in the page cache and holds it for the reader's life.
func (s *pageSource) hit(at int64) *Page {
	if s.opt.PageCache == nil {
		return nil
	}
	p, ok := s.opt.PageCache.Get(PageKey{s.file.Path, at})
	if s.opt.Profile != nil {
		if ok {
			s.opt.Profile.CacheHits.Add(1)
		} else {
			s.opt.Profile.CacheMisses.Add(1)
		}
	}
	if !ok || p.size <= 0 || p.size > s.where.End()-at {
		return nil
	}
	s.held[at] = p
	return p
}

// dictBytes is how many bytes stand before the first data page of a planned source: its dictionary page, or none.
func (s *pageSource) dictBytes() int64 {
	return s.firstData - s.where.Offset
}

// locate finds the fetched bytes from at on; nil when at is not fetched.
func (s *pageSource) locate(at int64) []byte {
	i := sort.Search(len(s.segs), func(i int) bool { return s.segs[i].at > at }) - 1
	if i < 0 {
		return nil
	}
	g := s.segs[i]
	if at-g.at >= int64(len(g.buf.b)) {
		return nil
	}
	return g.buf.b[at-g.at:]
}

// bytes gives at least n bytes from at on, fetching the next window when need be; fewer only where the chunk ends.
func (s *pageSource) bytes(ctx context.Context, at, n int64) ([]byte, error) {
	b := s.locate(at)
	n = min(n, s.where.End()-at)
	if int64(len(b)) >= n || s.window == 0 {
		return b, nil
	}
	size := min(max(s.window, n), s.where.End()-at)
	buf, err := newBuffer(s.opt.Pool, int(size))
	if err != nil {
		return nil, err
	}
	if err := s.obj.ReadRanges(ctx, []storage.Range{{Offset: at, Length: size}}, [][]byte{buf.b}); err != nil {
		buf.release()
		return nil, err
	}
	if s.opt.Profile != nil {
		s.opt.Profile.BytesRead.Add(size)
	}
	for _, g := range s.segs {
		s.old = append(s.old, g.buf)
	}
	s.segs = append(s.segs[:0], segment{at, buf})
	return buf.b, nil
}

// releaseOld gives back windows that no vector points into any more.
func (s *pageSource) releaseOld() {
	for _, b := range s.old {
		b.release()
	}
	s.old = s.old[:0]
}

func (s *pageSource) close() {
	s.releaseOld()
	for _, g := range s.segs {
		g.buf.release()
	}
	s.segs, s.held = nil, nil
}

// header reads the header of the page at s.at, from the cache when it is there.
func (s *pageSource) header(ctx context.Context) (h pageHeader, cached *Page, err error) {
	if p := s.held[s.at]; p != nil {
		return p.header, p, nil
	}
	if s.file.modules != nil {
		if h, err = s.encryptedHeader(ctx); err != nil {
			return h, nil, err
		}
		return h, nil, s.fits(&h)
	}
	for want := int64(4 << 10); ; want *= 8 {
		b, err := s.bytes(ctx, s.at, want)
		if err != nil {
			return h, nil, err
		}
		h, short, err := parsePageHeader(b)
		if err == nil {
			return h, nil, s.fits(&h)
		}
		if !short || s.window == 0 || want >= s.where.End()-s.at {
			return h, nil, fault.Wrap(fault.Corrupt, err, "page header")
		}
	}
}

// fits refuses a page that does not end within its chunk.
func (s *pageSource) fits(h *pageHeader) error {
	if int64(h.size)+int64(h.compressed) > s.where.End()-s.at {
		return fault.New(fault.Corrupt, "page of %d bytes reaches past the end of its column chunk, %d bytes away", h.compressed, s.where.End()-s.at)
	}
	return nil
}

// load gives the page at s.at, whose header is h, decompressed, and steps behind it.
func (s *pageSource) load(ctx context.Context, h *pageHeader, cached *Page) (*Page, error) {
	at := s.at
	if cached != nil {
		s.at += cached.size
		return cached, nil
	}
	total := int64(h.size) + int64(h.compressed)
	b, err := s.bytes(ctx, at, total)
	if err != nil {
		return nil, err
	}
	if int64(len(b)) < total {
		return nil, fault.New(fault.Corrupt, "page of %d bytes has %d", total, len(b))
	}
	s.at += total
	keep := s.opt.PageCache != nil
	body := b[h.size:total:total]
	var opened *buffer
	if s.file.modules != nil {
		if opened, err = s.openPage(h, body); err != nil {
			return nil, fault.Wrap(fault.Corrupt, err, "page")
		}
		body = opened.b
	}
	p, err := inflate(h, s.chunk.Codec, body, s.opt, keep)
	if err == nil && p.buf == nil && !keep {
		p.buf, opened = opened, nil // the page is what was decrypted
	}
	opened.release()
	if err != nil {
		return nil, err
	}
	p.size = total // as stored, where decryption has changed the header
	if keep {
		s.opt.PageCache.Put(PageKey{s.file.Path, at}, p)
	}
	return p, nil
}

// dictionary loads the chunk's dictionary page if one stands at the start. It must be called before the first nextData.
func (s *pageSource) dictionary(ctx context.Context) (*Page, error) {
	if s.dictRead {
		return nil, nil
	}
	s.dictRead = true
	s.at = s.where.Offset
	if s.planned && (len(s.plan) == 0 || s.dictBytes() == 0) || s.where.Length == 0 {
		return nil, nil
	}
	h, cached, err := s.header(ctx)
	if err != nil {
		return nil, err
	}
	if h.kind != dictionaryPage {
		return nil, nil
	}
	return s.load(ctx, &h, cached)
}

// nextData moves to the next data page and gives its header, without decompressing it. skipRows is asked with the rows the page
// holds, which is -1 when only its levels tell; when it says true the page is passed over. It returns the page loaded. at is
// where the page begins.
func (s *pageSource) nextData(ctx context.Context, skip func(h *pageHeader, first, end int64) bool) (p *Page, at int64, err error) {
	for {
		if s.planned {
			if s.next >= len(s.plan) {
				return nil, s.at, fault.New(fault.Corrupt, "column chunk has no page for the wanted rows")
			}
			pl := s.plan[s.next]
			s.at, s.ordinal = pl.at, pl.ordinal
			if skip(nil, pl.first, pl.end) {
				s.next++
				continue
			}
			s.next++
		} else if s.at >= s.where.End() {
			return nil, s.at, fault.New(fault.Corrupt, "column chunk ends with values missing")
		}
		h, cached, err := s.header(ctx)
		if err != nil {
			return nil, s.at, err
		}
		if h.kind != dataPage && h.kind != dataPageV2 {
			if s.planned || h.kind == dictionaryPage {
				return nil, s.at, fault.New(fault.Corrupt, "page of type %d where a data page belongs", h.kind)
			}
			s.at += s.total(&h, cached) // index pages and types yet to come hold no values
			continue
		}
		if !s.planned {
			if skip(&h, -1, -1) {
				s.at += s.total(&h, cached)
				s.ordinal++
				s.countPage(false)
				continue
			}
			s.countPage(true)
		}
		at := s.at
		p, err := s.load(ctx, &h, cached)
		s.ordinal++
		return p, at, err
	}
}

func (s *pageSource) total(h *pageHeader, cached *Page) int64 {
	if cached != nil {
		return cached.size
	}
	return int64(h.size) + int64(h.compressed)
}

func (s *pageSource) countPage(kept bool) {
	if s.opt.Profile == nil {
		return
	}
	if kept {
		s.opt.Profile.Pages.Add(1, 1)
	} else {
		s.opt.Profile.Pages.Add(1, 0)
	}
}
