// Package orc reads ORC files: footer, stripe and row group statistics, and the rows of a stripe as vectors of the types a
// table wants.
//
// It is not for writing, knows neither tables nor field-id matching (the scanner resolves a Projection first), and holds no
// keys: of a file with column encryption it reads what the writer left for readers without a key. A Footer is immutable and may be
// shared by any number of goroutines; a StripeReader belongs to one. Whatever the bytes are, a read ends in right rows or in an
// error that names the file; it never panics and never allocates out of proportion to its input. Format:
// https://orc.apache.org/specification/ORCv1/.
package orc

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Footer is the parsed metadata of one file.
type Footer struct {
	Path    string
	Size    int64 // of the file, bytes
	NumRows int64
	Root    *Node
	Nodes   []*Node // by column number, in the order of the file
	Stripes []*Stripe
	// Stride is the number of rows of a row group of the row index; 0 when the file has no index.
	Stride   int64
	KeyValue map[string]string
	// Bytes is the memory the footer holds, without what is read later (see HeldBytes).
	Bytes int64

	codec     Codec
	blockSize int
	version   [2]uint64
	writer    uint64 // which program wrote the file, and the version of its bugs
	writerVer uint64

	mu      sync.Mutex
	footers map[int]*stripeFooter
	indexes map[indexKey]*rowIndex
	held    atomic.Int64
}

// HeldBytes is the memory held now, with the stripe footers and row indexes read so far.
func (f *Footer) HeldBytes() int64 { return f.Bytes + f.held.Load() }

// Stripe is a horizontal part of the file.
type Stripe struct {
	NumRows  int64
	FirstRow int64 // ordinal in the file of its first row
	Offset   int64 // in the file; index, data and footer follow one another
	IndexLen int64
	DataLen  int64
	FootLen  int64

	stats [][]byte // encoded ColumnStatistics, one a column; nil when the file has none
}

// Bytes is the compressed size of the stripe.
func (s *Stripe) Bytes() int64 { return s.IndexLen + s.DataLen + s.FootLen }

const (
	magic = "ORC"
	// footerGuess is how much of a file's end the first read takes: it holds footer and metadata of most files.
	footerGuess = 64 << 10
	// maxTailBytes limits footer and metadata, each, after decompression.
	maxTailBytes = 128 << 20
	// maxBlockBytes limits the compression block size; writers take 256 KiB, and seldom more than some MiB.
	maxBlockBytes = 1 << 26
)

// ReadFooter reads and checks the tail of an object in one or two ranged reads. Errors name path: fault.Corrupt when the file
// contradicts its format, fault.Unsupported when it is of a kind that is not read.
func ReadFooter(ctx context.Context, o storage.Object, path string) (*Footer, error) {
	f := &Footer{Path: path, Size: o.Size(), footers: map[int]*stripeFooter{}, indexes: map[indexKey]*rowIndex{}}
	if err := f.read(ctx, o); err != nil {
		if path == "" { // the caller names it
			return nil, err
		}
		return nil, fault.Wrap(fault.Internal, err, "ORC file %s", path)
	}
	return f, nil
}

// postscript is the uncompressed end of the file.
type postscript struct {
	footerLen, metadataLen, blockSize uint64
	hasMagic                          bool
}

func (f *Footer) read(ctx context.Context, o storage.Object) error {
	if f.Size < int64(len(magic))+2 {
		return fault.New(fault.Corrupt, "%d bytes are too few for an ORC file", f.Size)
	}
	tail := make([]byte, min(f.Size, footerGuess))
	ranges, dst := []storage.Range{{Offset: f.Size - int64(len(tail)), Length: int64(len(tail))}}, [][]byte{tail}
	var head [len(magic)]byte
	if err := o.ReadRanges(ctx, ranges, dst); err != nil {
		return err
	}
	psLen := int(tail[len(tail)-1])
	if psLen == 0 || psLen+1 > len(tail) {
		return fault.New(fault.Corrupt, "postscript of %d bytes in a file of %d", psLen, f.Size)
	}
	ps, err := f.parsePostscript(tail[len(tail)-1-psLen : len(tail)-1])
	if err != nil {
		return fault.Wrap(fault.Corrupt, err, "postscript")
	}
	if !ps.hasMagic {
		// Writers before Hive 0.12 left the magic out of the postscript, but every file begins with it.
		if err := o.ReadRanges(ctx, []storage.Range{{Length: int64(len(head))}}, [][]byte{head[:]}); err != nil {
			return err
		}
		if string(head[:]) != magic {
			return fault.New(fault.Corrupt, "it is not an ORC file: neither its postscript nor its beginning says ORC")
		}
	}
	room := uint64(f.Size) - uint64(psLen) - 1
	if ps.footerLen > room || ps.metadataLen > room-ps.footerLen {
		return fault.New(fault.Corrupt, "footer of %d and metadata of %d bytes do not fit a file of %d bytes", ps.footerLen, ps.metadataLen, f.Size)
	}
	// need counts from the start of the metadata to the end of the file.
	need := int64(ps.footerLen+ps.metadataLen) + int64(psLen) + 1
	if need > int64(len(tail)) {
		whole := make([]byte, need)
		rest := need - int64(len(tail))
		copy(whole[rest:], tail)
		if err := o.ReadRanges(ctx, []storage.Range{{Offset: f.Size - need, Length: rest}}, [][]byte{whole[:rest]}); err != nil {
			return err
		}
		tail = whole
	}
	tail = tail[int64(len(tail))-need:]
	metadata, foot := tail[:ps.metadataLen], tail[ps.metadataLen:ps.metadataLen+ps.footerLen]
	footBytes, err := f.inflate(foot)
	if err == nil {
		err = f.parseFooter(footBytes, f.Size-need)
	}
	if err != nil {
		return fault.Wrap(fault.Corrupt, err, "footer")
	}
	stats, err := f.inflate(metadata)
	if err == nil {
		err = f.parseMetadata(stats)
	}
	if err != nil { // it serves pruning only: without it every stripe is read, and right
		stats = nil
		for _, s := range f.Stripes {
			s.stats = nil
		}
	}
	f.Bytes += int64(len(footBytes)+len(stats)) + int64(len(f.Nodes))*200
	return nil
}

// inflate decompresses a section of the tail into bytes of its own.
func (f *Footer) inflate(b []byte) ([]byte, error) {
	if f.codec == None {
		return bytes.Clone(b), nil
	}
	var z inflater
	var out []byte
	for len(b) > 0 {
		n, original, err := chunkHeader(b)
		if err != nil {
			return nil, err
		}
		body := b[chunkHeaderLen : chunkHeaderLen+n]
		b = b[chunkHeaderLen+n:]
		if original {
			out = append(out, body...)
		} else if out, err = z.append(out, body, f.codec, f.blockSize); err != nil {
			return nil, err
		}
		if len(out) > maxTailBytes {
			return nil, fault.New(fault.Exhausted, "it expands beyond %d bytes", maxTailBytes)
		}
	}
	return out, nil
}

func (f *Footer) parsePostscript(b []byte) (ps postscript, err error) {
	m := message{b: b}
	var version []uint64
	codec := uint64(0)
	for m.next() {
		switch m.num {
		case 1:
			ps.footerLen = m.u
		case 2:
			codec = m.u
		case 3:
			ps.blockSize = m.u
		case 4:
			version = m.uints(version)
		case 5:
			ps.metadataLen = m.u
		case 6:
			f.writerVer = m.u
		case 8000:
			if string(m.data) != magic {
				return ps, fault.New(fault.Corrupt, "its magic is %.8q, not ORC", m.data)
			}
			ps.hasMagic = true
		}
	}
	if m.err != nil {
		return ps, m.err
	}
	if len(version) == 2 {
		f.version = [2]uint64{version[0], version[1]}
	} else if len(version) != 0 {
		return ps, fault.New(fault.Corrupt, "its version is not two numbers; DWRF, a relative of ORC, is not read")
	}
	if ps.footerLen == 0 {
		return ps, fault.New(fault.Corrupt, "the footer has no bytes")
	}
	if codec > uint64(Brotli) {
		return ps, fault.New(fault.Unsupported, "compression %d is not known", codec)
	}
	f.codec = Codec(codec)
	if f.codec == Brotli {
		return ps, fault.New(fault.Unsupported, "compression %s is not supported", f.codec)
	}
	if f.codec != None {
		if ps.blockSize == 0 {
			ps.blockSize = 256 << 10
		}
		if ps.blockSize > maxBlockBytes {
			return ps, fault.New(fault.Corrupt, "a compression block size of %d bytes, above %d", ps.blockSize, maxBlockBytes)
		}
		f.blockSize = int(ps.blockSize)
	}
	return ps, nil
}

// unstableV2 is the minor version of files written for tests of the next format, with decimals of up to 18 digits as integers.
const unstableV2 = 9999

// parseFooter fills f from the footer message. end is where the stripes must have ended.
func (f *Footer) parseFooter(b []byte, end int64) error {
	m := message{b: b}
	var types [][]byte
	rows, stride := uint64(0), uint64(0)
	for m.next() {
		switch m.num {
		case 3:
			s, err := parseStripe(m.data, end)
			if err != nil {
				return fault.Wrap(fault.Corrupt, err, "stripe %d", len(f.Stripes))
			}
			s.FirstRow = 0
			if n := len(f.Stripes); n > 0 {
				s.FirstRow = f.Stripes[n-1].FirstRow + f.Stripes[n-1].NumRows
			}
			if s.FirstRow > maxRows {
				return fault.New(fault.Corrupt, "more than %d rows", int64(maxRows))
			}
			f.Stripes = append(f.Stripes, s)
		case 4:
			types = append(types, m.data)
		case 5:
			name, value := pair(m.data)
			if f.KeyValue == nil {
				f.KeyValue = map[string]string{}
			}
			f.KeyValue[name] = value
		case 6:
			rows = m.u
		case 8:
			stride = m.u
		case 9:
			f.writer = m.u
		}
	}
	if m.err != nil {
		return m.err
	}
	if n := len(f.Stripes); n > 0 {
		f.NumRows = f.Stripes[n-1].FirstRow + f.Stripes[n-1].NumRows
	}
	if rows != uint64(f.NumRows) {
		return fault.New(fault.Corrupt, "it counts %d rows, but its stripes have %d", rows, f.NumRows)
	}
	if f.NumRows > 0 && (f.version[0] > 1 || f.version[0] == 1 && f.version[1] != unstableV2) {
		return fault.New(fault.Unsupported, "file version %d.%d is not known", f.version[0], f.version[1])
	}
	if stride <= maxRows {
		f.Stride = int64(stride)
	}
	return f.parseTypes(types)
}

// maxRows bounds row counts so that sums of two do not overflow.
const maxRows = 1 << 60

func parseStripe(b []byte, end int64) (*Stripe, error) {
	m := message{b: b}
	s := &Stripe{}
	var at, index, data, foot, rows uint64
	for m.next() {
		switch m.num {
		case 1:
			at = m.u
		case 2:
			index = m.u
		case 3:
			data = m.u
		case 4:
			foot = m.u
		case 5:
			rows = m.u
		}
	}
	if m.err != nil {
		return nil, m.err
	}
	room := uint64(end)
	for _, n := range [...]uint64{at, index, data, foot} {
		if n > room {
			return nil, fault.New(fault.Corrupt, "offset %d, index %d, data %d and footer %d bytes reach past byte %d, where the stripes end", at, index, data, foot, end)
		}
		room -= n
	}
	if rows > maxRows {
		return nil, fault.New(fault.Corrupt, "%d rows", rows)
	}
	s.Offset, s.IndexLen, s.DataLen, s.FootLen, s.NumRows = int64(at), int64(index), int64(data), int64(foot), int64(rows)
	return s, nil
}

// pair reads a message of a name (1) and a value (2).
func pair(b []byte) (name, value string) {
	m := message{b: b}
	for m.next() {
		switch m.num {
		case 1:
			name = string(m.data)
		case 2:
			value = string(m.data)
		}
	}
	return name, value
}

// parseMetadata keeps the statistics of each stripe, undecoded. Statistics of another number of stripes say nothing.
func (f *Footer) parseMetadata(b []byte) error {
	m := message{b: b}
	var stats [][][]byte
	for m.next() {
		if m.num != 1 {
			continue
		}
		var columns [][]byte
		s := message{b: m.data}
		for s.next() {
			if s.num == 1 {
				columns = append(columns, s.data)
			}
		}
		if s.err != nil {
			return s.err
		}
		stats = append(stats, columns)
	}
	if m.err != nil {
		return m.err
	}
	if len(stats) != len(f.Stripes) {
		return nil
	}
	for i, s := range f.Stripes {
		if len(stats[i]) == len(f.Nodes) {
			s.stats = stats[i]
			f.Bytes += 24 * int64(len(stats[i]))
		}
	}
	return nil
}
