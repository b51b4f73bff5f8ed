// Package parquet reads Parquet files: footer, statistics, page indexes and bloom filters, and the rows of a row group as
// vectors of the types a table wants.
//
// It is not for writing, knows neither tables nor field-id matching (the scanner resolves a Projection first), and no
// ciphers: the modules of encrypted files are opened by what the caller gives. A Footer is immutable and may be shared by any number of goroutines; a RowGroupReader
// belongs to one. Whatever the bytes are, a read ends in right rows or in an error that names the file; it never panics and
// never allocates out of proportion to its input. Format: apache/parquet-format README.md, Encodings.md, parquet.thrift.
package parquet

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// Footer is the parsed metadata of one file.
type Footer struct {
	Path      string
	Size      int64 // of the file, bytes
	NumRows   int64
	Root      *Node
	Leaves    []*Node // the columns with values, in file order
	RowGroups []*RowGroup
	CreatedBy string
	KeyValue  map[string]string
	// Bytes is the memory the footer holds, without indexes read later (see HeldBytes).
	Bytes int64

	modules     Modules // of an encrypted file
	shortChunks bool    // see chunkRange
	indexes     indexCache
	indexBytes  atomic.Int64
}

// HeldBytes is the memory held now, with the page indexes and bloom filters read so far.
func (f *Footer) HeldBytes() int64 { return f.Bytes + f.indexBytes.Load() }

// RowGroup is a horizontal part of the file.
type RowGroup struct {
	NumRows  int64
	FirstRow int64         // ordinal in the file of its first row
	Offset   int64         // file offset of its first page, for split assignment
	Bytes    int64         // uncompressed size of all columns
	Columns  []ColumnChunk // one a leaf
	ordinal  int           // as encrypted modules count row groups
}

// ColumnChunk is a leaf column in a row group.
type ColumnChunk struct {
	Codec            Codec
	NumValues        int64 // nulls and empty lists included
	CompressedSize   int64 // page headers included
	UncompressedSize int64
	DataOffset       int64
	DictOffset       int64 // 0 when there is none
	Encodings        []Encoding
	EncodingStats    []EncodingStat
	BloomOffset      int64 // 0 when there is none
	BloomLength      int64 // 0 when unknown
	Box              *Box  // of geometries; nil when unknown
	OffsetIndex      storage.Range
	ColumnIndex      storage.Range

	stats          statistics
	physical       Physical
	path           [][]byte // only while the footer is checked
	hasMetadata    bool
	cryptoMetadata bool
	columnKey      bool
	sealedMetadata []byte // only while the footer is checked
}

// EncodingStat counts the pages of one type and encoding.
type EncodingStat struct {
	PageType int32
	Encoding Encoding
	Count    int32
}

// statistics are the raw bounds of a chunk or page; slices alias the footer.
type statistics struct {
	oldMin, oldMax     []byte
	min, max           []byte
	nullCount          int64 // -1 unknown
	minExact, maxExact int8  // 1 yes, 0 no, -1 not said
	nanCount           int64 // -1 unknown
	typeOrder          bool  // the column's order is defined
	totalOrder         bool  // floats follow the IEEE 754 total order, so that their bounds leave NaN out
}

// Range is where the chunk's pages lie, dictionary included.
func (c *ColumnChunk) Range() storage.Range {
	start := c.DataOffset
	if c.DictOffset > 0 && c.DictOffset < start {
		start = c.DictOffset
	}
	return storage.Range{Offset: start, Length: c.CompressedSize}
}

// footerGuess is how much of a file's end the first read takes: it holds the whole footer of most files.
const footerGuess = 64 << 10

const (
	magicPlain     = "PAR1"
	magicEncrypted = "PARE"
)

// ReadFooter reads and checks the footer of an object in one or two ranged reads. Errors name path: fault.Corrupt when the
// file contradicts its format, fault.Unsupported when it is encrypted.
func ReadFooter(ctx context.Context, o storage.Object, path string) (*Footer, error) {
	f, err := readFooter(ctx, o, path)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%s", inFile(path))
	}
	return f, nil
}

func readFooter(ctx context.Context, o storage.Object, path string) (*Footer, error) {
	body, magic, err := readTail(ctx, o)
	if err != nil {
		return nil, err
	}
	if magic == magicEncrypted {
		return nil, encrypted("its footer is encrypted (magic PARE)")
	}
	f := &Footer{Path: path, Size: o.Size()}
	if err := parseFileMetadata(body, f); err != nil {
		return nil, err
	}
	return f, nil
}

// readTail reads what stands before the length and magic at the end of a file.
func readTail(ctx context.Context, o storage.Object) (body []byte, magic string, err error) {
	size := o.Size()
	if size < 12 {
		return nil, "", fault.New(fault.Corrupt, "%d bytes are too few for a Parquet file", size)
	}
	tail := make([]byte, min(size, footerGuess))
	if err := o.ReadRanges(ctx, []storage.Range{{Offset: size - int64(len(tail)), Length: int64(len(tail))}}, [][]byte{tail}); err != nil {
		return nil, "", err
	}
	magic = string(tail[len(tail)-4:])
	if magic != magicPlain && magic != magicEncrypted {
		return nil, "", fault.New(fault.Corrupt, "the last four bytes are %q, not PAR1", magic)
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-8:]))
	if length > size-12 || length == 0 {
		return nil, "", fault.New(fault.Corrupt, "footer length %d does not fit a file of %d bytes", length, size)
	}
	if length+8 <= int64(len(tail)) {
		// Copied so that a cached footer does not hold the whole guess.
		return append([]byte(nil), tail[int64(len(tail))-8-length:len(tail)-8]...), magic, nil
	}
	body = make([]byte, length)
	have := int64(len(tail)) - 8
	copy(body[length-have:], tail[:have])
	rest := length - have
	if err := o.ReadRanges(ctx, []storage.Range{{Offset: size - 8 - length, Length: rest}}, [][]byte{body[:rest]}); err != nil {
		return nil, "", err
	}
	return body, magic, nil
}

// encrypted is the refusal of an encrypted file: reading on would give wrong rows or none.
func encrypted(why string) error {
	return fault.WithID(fault.Unsupported, "ENCRYPTED_FILE", "the file is encrypted and no key was given: %s", why)
}

// inFile says for a message which file it is about, unless the caller does.
func inFile(path string) string {
	if path == "" {
		return "Parquet"
	}
	return "Parquet file " + path
}
