package parquet

import (
	"context"
	"encoding/binary"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/parquet/thrift"
	"github.com/skua-db/skua/storage"
)

// Modules opens the encrypted modules of one file. Ordinals are NoOrdinal where a module has none.
type Modules interface {
	// Open appends what sealed holds to dst, which needs no more room than sealed has.
	Open(dst []byte, kind byte, rowGroup, column, page int, sealed []byte) ([]byte, error)
	// Verify checks the signature of a footer that is in clear.
	Verify(footer, signature []byte) error
}

// FileCrypto is what a file says of its encryption.
type FileCrypto struct {
	Unique               []byte // the file's own part of the associated data
	StoredPrefix         []byte // AAD prefix; nil when the file does not store it
	UnauthenticatedPages bool   // AES_GCM_CTR_V1
}

// Keyring makes the opener of a file, or refuses it.
type Keyring func(FileCrypto) (Modules, error)

// NoOrdinal stands for an ordinal that a module does not have.
const NoOrdinal = -1

// The kinds of module (parquet-format Encryption.md, AAD suffix).
const (
	footerModule byte = iota
	columnMetadataModule
	dataPageModule
	dictPageModule
	dataHeaderModule
	dictHeaderModule
	columnIndexModule
	offsetIndexModule
	bloomHeaderModule
	bloomBitsModule
)

// moduleLength is the size of the length in front of each module.
const moduleLength = 4

// ReadEncryptedFooter is ReadFooter for a file that is encrypted under keys: its footer, pages and indexes are opened by what keys
// makes. A footer in clear must be signed. A plain file and one with columns that are plain or have keys of their own are refused
// (fault.Corrupt, fault.Unsupported): the first is what a forger would leave.
func ReadEncryptedFooter(ctx context.Context, o storage.Object, path string, keys Keyring) (*Footer, error) {
	f, err := readEncryptedFooter(ctx, o, path, keys)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%s", inFile(path))
	}
	return f, nil
}

func readEncryptedFooter(ctx context.Context, o storage.Object, path string, keys Keyring) (*Footer, error) {
	body, magic, err := readTail(ctx, o)
	if err != nil {
		return nil, err
	}
	if magic != magicEncrypted {
		return readSignedFooter(body, &Footer{Path: path, Size: o.Size()}, keys)
	}
	head := make([]byte, len(magicEncrypted))
	if err := o.ReadRanges(ctx, []storage.Range{{Length: int64(len(head))}}, [][]byte{head}); err != nil {
		return nil, err
	}
	if string(head) != magicEncrypted {
		return nil, fault.New(fault.Corrupt, "the first four bytes are %q, not PARE", head)
	}
	c, n, err := parseFileCrypto(body)
	if err != nil {
		return nil, err
	}
	f := &Footer{Path: path, Size: o.Size()}
	if f.modules, err = keys(c); err != nil {
		return nil, err
	}
	plain, rest, err := f.openModule(nil, body[n:], footerModule, NoOrdinal, NoOrdinal, NoOrdinal)
	if err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "footer")
	}
	if len(rest) > 0 {
		return nil, fault.New(fault.Corrupt, "the encrypted footer has bytes after its end")
	}
	return f, parseFileMetadata(plain, f)
}

// signatureBytes is the size of nonce and tag behind a footer in clear.
const signatureBytes = 28

// readSignedFooter takes a footer in clear, after which its signature stands.
func readSignedFooter(body []byte, f *Footer, keys Keyring) (*Footer, error) {
	c, n, err := parseCrypto(body, 8)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fault.New(fault.Corrupt, "the file has a key and is not encrypted: its footer is in clear and names no encryption algorithm")
	}
	if len(body)-n != signatureBytes {
		return nil, fault.New(fault.Corrupt, "the footer in clear is followed by %d bytes and not by a signature", len(body)-n)
	}
	if f.modules, err = keys(*c); err != nil {
		return nil, err
	}
	if err := f.modules.Verify(body[:n], body[n:]); err != nil {
		return nil, fault.Wrap(fault.Corrupt, err, "footer in clear")
	}
	return f, parseFileMetadata(body[:n], f)
}

// parseFileCrypto parses the FileCryptoMetaData that stands before an encrypted footer, of n bytes.
func parseFileCrypto(b []byte) (c FileCrypto, n int, err error) {
	found, n, err := parseCrypto(b, 1)
	if err == nil && found == nil {
		err = fault.New(fault.Corrupt, "crypto metadata names no encryption algorithm")
	}
	if err != nil {
		return c, 0, err
	}
	return *found, n, nil
}

// parseCrypto finds the EncryptionAlgorithm in a structure, as the field of the given number, and tells the structure's length.
func parseCrypto(b []byte, field int16) (c *FileCrypto, n int, err error) {
	algorithm := int16(0)
	r := thrift.NewReader(b)
	r.Struct(func(id int16, t thrift.Type) {
		if id != field {
			r.Skip(t)
			return
		}
		c = &FileCrypto{}
		r.Struct(func(id int16, t thrift.Type) {
			algorithm = id
			r.Struct(func(id int16, t thrift.Type) {
				switch id {
				case 1:
					c.StoredPrefix = notNil(append([]byte(nil), r.Binary(t)...))
				case 2:
					c.Unique = append([]byte(nil), r.Binary(t)...)
				default:
					r.Skip(t)
				}
			})
		})
	})
	switch {
	case r.Err() != nil:
		return nil, 0, fault.Wrap(fault.Corrupt, r.Err(), "crypto metadata")
	case c == nil:
		return nil, r.Pos(), nil
	case algorithm != 1 && algorithm != 2:
		return nil, 0, fault.New(fault.Unsupported, "its encryption algorithm is not known")
	}
	c.UnauthenticatedPages = algorithm == 2
	return c, r.Pos(), nil
}

// openColumnMetadata replaces what a footer in clear tells of a column by what is encrypted beside it: the former lacks the
// bounds of values.
func (f *Footer) openColumnMetadata(c *ColumnChunk, rowGroup, column int) error {
	if c.columnKey {
		return fault.New(fault.Unsupported, "it has a key of its own, and Iceberg gives one key a file")
	}
	if f.modules == nil {
		return nil
	}
	if !c.cryptoMetadata {
		return fault.New(fault.Unsupported, "it is not encrypted, in a file that is: nobody would see it altered")
	}
	if c.sealedMetadata == nil {
		return nil
	}
	plain, _, err := f.openModule(nil, c.sealedMetadata, columnMetadataModule, rowGroup, column, NoOrdinal)
	if err != nil {
		return fault.Wrap(fault.Corrupt, err, "column metadata")
	}
	full := newColumnChunk()
	full.OffsetIndex, full.ColumnIndex, full.cryptoMetadata = c.OffsetIndex, c.ColumnIndex, true
	r := thrift.NewReader(plain)
	parseColumnMetadata(r, &full)
	if err := r.Err(); err != nil {
		return fault.Wrap(fault.Corrupt, err, "column metadata")
	}
	*c = full
	return nil
}

// openModule opens the module at the start of b, appends it to dst and gives what follows it.
func (f *Footer) openModule(dst, b []byte, kind byte, rowGroup, column, page int) (plain, rest []byte, err error) {
	if len(b) < moduleLength {
		return nil, nil, fault.New(fault.Corrupt, "an encrypted module ends before its length")
	}
	n := int64(binary.LittleEndian.Uint32(b))
	b = b[moduleLength:]
	if n > int64(len(b)) {
		return nil, nil, fault.New(fault.Corrupt, "an encrypted module of %d bytes has %d", n, len(b))
	}
	plain, err = f.modules.Open(dst, kind, rowGroup, column, page, b[:n])
	return plain, b[n:], err
}

// openWhole opens bytes that are one module, or gives them back in a plain file.
func (f *Footer) openWhole(b []byte, kind byte, rowGroup, column int) ([]byte, error) {
	if f.modules == nil {
		return b, nil
	}
	plain, _, err := f.openModule(nil, b, kind, rowGroup, column, NoOrdinal)
	return plain, err
}

// encryptedHeader reads the header of the page at s.at, a module of its own before the page's. A chunk may begin with a dictionary
// page or not, and only the tag tells which.
func (s *pageSource) encryptedHeader(ctx context.Context) (h pageHeader, err error) {
	b, err := s.bytes(ctx, s.at, moduleLength)
	if err != nil {
		return h, err
	}
	if len(b) < moduleLength {
		return h, fault.New(fault.Corrupt, "column chunk ends within a page header")
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > maxEncryptedHeader {
		return h, fault.New(fault.Corrupt, "page header of %d encrypted bytes", n)
	}
	if b, err = s.bytes(ctx, s.at, moduleLength+n); err != nil {
		return h, err
	}
	var plain []byte
	if s.at == s.where.Offset && (s.chunk.DictOffset > 0 || !s.planned) {
		plain, _, err = s.file.openModule(nil, b, dictHeaderModule, s.rowGroup, s.column, NoOrdinal)
	}
	if plain == nil {
		plain, _, err = s.file.openModule(nil, b, dataHeaderModule, s.rowGroup, s.column, s.ordinal)
	}
	if err != nil {
		return h, fault.Wrap(fault.Corrupt, err, "page header")
	}
	if h, _, err = parsePageHeader(plain); err != nil {
		return h, fault.Wrap(fault.Corrupt, err, "page header")
	}
	h.size = moduleLength + int(n)
	return h, nil
}

// maxEncryptedHeader is the longest page header, statistics included, that is opened.
const maxEncryptedHeader = 16 << 20

// openPage decrypts the body of a page into a buffer, which the caller releases, and mends its header to speak of what came out. The
// checksum, which is of the encrypted bytes, says nothing that the tag does not. Writers differ in data pages of version 2:
// parquet-java leaves the levels in front in clear, Arrow encrypts all; the length in front of the module tells which.
func (s *pageSource) openPage(h *pageHeader, body []byte) (*buffer, error) {
	h.hasCRC = false
	kind, ordinal := dataPageModule, s.ordinal
	if h.kind == dictionaryPage {
		kind, ordinal = dictPageModule, NoOrdinal
	}
	clear := 0
	if h.kind == dataPageV2 {
		if n := int(h.defBytes) + int(h.repBytes); n > 0 && !isModule(body) && n <= len(body) && isModule(body[n:]) {
			clear = n
		}
	}
	buf, err := newBuffer(s.opt.Pool, len(body))
	if err != nil {
		return nil, err
	}
	copy(buf.b, body[:clear])
	plain, rest, err := s.file.openModule(buf.b[:clear], body[clear:], kind, s.rowGroup, s.column, ordinal)
	if err == nil && len(rest) > 0 {
		err = fault.New(fault.Corrupt, "encrypted page has bytes after its end")
	}
	if err != nil {
		buf.release()
		return nil, err
	}
	buf.b = plain
	h.compressed = int32(len(plain))
	return buf, nil
}

// isModule reports whether b is as long as the length in front of it says.
func isModule(b []byte) bool {
	return len(b) >= moduleLength && int64(binary.LittleEndian.Uint32(b)) == int64(len(b)-moduleLength)
}

// encryptedBloom opens a bloom filter: a module with its header, then one with its bits. b is what was read of the two.
func (f *Footer) encryptedBloom(ctx context.Context, o storage.Object, rg, leaf int, b []byte) (*bloomFilter, error) {
	c, g := &f.RowGroups[rg].Columns[leaf], f.RowGroups[rg]
	fail := func(err error) (*bloomFilter, error) { return nil, f.indexFail(err, "bloom filter", rg, leaf) }
	head, rest, err := f.openModule(nil, b, bloomHeaderModule, g.ordinal, leaf, NoOrdinal)
	if err != nil {
		return fail(err)
	}
	_, bytes, known, err := parseBloomHeader(head)
	if err != nil {
		return fail(err)
	}
	if !known {
		return nil, nil
	}
	at := c.BloomOffset + int64(len(b)-len(rest))
	const overhead = moduleLength + 28 // nonce and tag
	if bytes <= 0 || bytes%32 != 0 || bytes > maxBloomBytes || bytes+overhead > f.Size-at {
		return fail(fault.New(fault.Corrupt, "it claims %d bytes", bytes))
	}
	if int64(len(rest)) < bytes+overhead {
		if rest, err = f.readRange(ctx, o, storage.Range{Offset: at, Length: bytes + overhead}); err != nil {
			return nil, err
		}
	}
	bits, _, err := f.openModule(nil, rest, bloomBitsModule, g.ordinal, leaf, NoOrdinal)
	if err != nil {
		return fail(err)
	}
	if int64(len(bits)) != bytes {
		return fail(fault.New(fault.Corrupt, "it claims %d bytes and has %d", bytes, len(bits)))
	}
	return &bloomFilter{bits}, nil
}
