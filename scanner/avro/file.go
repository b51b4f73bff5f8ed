// Package avro reads Avro object container files into columns: manifest lists, manifests, and data and delete files.
//
// It writes nothing and knows no Iceberg table: the caller says by a Projection which part of the file becomes which
// column. Files are not trusted: every length is held against the bytes that remain, and a file that ends within a block
// or carries a wrong sync marker is fault.Corrupt. A File may be shared; a Reader belongs to one goroutine.
package avro

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/memory"
	"github.com/skua-db/skua/storage"
)

const (
	windowBytes = 1 << 20
	// maxBlockBytes limits a block before and after decompression.
	maxBlockBytes = 256 << 20
	maxMetaBytes  = 64 << 20
)

// File is an opened container file: its header has been read.
type File struct {
	path  string
	o     storage.Object
	codec codec
	sync  [16]byte
	start int64 // of the first block
	first window

	// Root is the writer's schema, a record.
	Root *Node
	// Meta is the header's metadata.
	Meta map[string]string
}

// window is a run of bytes of the file.
type window struct {
	off  int64
	data []byte
}

// Open reads the header of o. path is for messages only; "" when the caller names the file in its own.
func Open(ctx context.Context, o storage.Object, path string) (*File, error) {
	f := &File{path: path, o: o, Meta: map[string]string{}}
	w, err := f.read(ctx, 0, min(windowBytes, o.Size()))
	if err != nil {
		return nil, err
	}
	if len(w.data) < 4 || !bytes.Equal(w.data[:4], []byte("Obj\x01")) {
		return nil, f.corrupt("it is not an Avro file")
	}
	for {
		err := f.header(w.data)
		if err == nil {
			break
		}
		short := errors.Is(err, errShort)
		if !short || int64(len(w.data)) >= min(o.Size(), maxMetaBytes) {
			if short {
				return nil, f.corrupt("its Avro header ends early")
			}
			return nil, err
		}
		if w, err = f.read(ctx, 0, min(int64(len(w.data))*4, o.Size(), maxMetaBytes)); err != nil {
			return nil, err
		}
	}
	f.first = w
	doc, ok := f.Meta["avro.schema"]
	if !ok {
		return nil, f.corrupt("its Avro header has no schema")
	}
	if f.Root, err = parseSchema([]byte(doc)); err != nil {
		return nil, f.corrupt("%v", err)
	}
	if f.codec, err = codecOf(f.Meta["avro.codec"]); err != nil {
		return nil, f.wrap(fault.Unsupported, err)
	}
	return f, nil
}

// errShort says that a decoder needs bytes beyond its input.
var errShort = fault.New(fault.Corrupt, "the data ends early")

func (f *File) corrupt(format string, args ...any) error {
	return f.wrap(fault.Corrupt, fault.New(fault.Corrupt, format, args...))
}

// wrap names the file in an error.
func (f *File) wrap(k fault.Kind, err error) error {
	if f.path == "" {
		return err
	}
	return fault.Wrap(k, err, "file %s", f.path)
}

func (f *File) read(ctx context.Context, off, n int64) (window, error) {
	if n < 0 || off+n > f.o.Size() {
		return window{}, f.corrupt("it has %d bytes and ends before byte %d", f.o.Size(), off+n)
	}
	w := window{off, make([]byte, n)}
	if n == 0 {
		return w, nil
	}
	if err := f.o.ReadRanges(ctx, []storage.Range{{Offset: off, Length: n}}, [][]byte{w.data}); err != nil {
		return window{}, f.wrap(fault.Unavailable, err)
	}
	return w, nil
}

// header parses magic, metadata and sync marker.
func (f *File) header(data []byte) error {
	d := decoder{data: data, pos: 4}
	for {
		n, err := d.blockCount(2)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		for range n {
			k, err := d.bytes()
			if err != nil {
				return err
			}
			v, err := d.bytes()
			if err != nil {
				return err
			}
			f.Meta[string(k)] = string(v)
		}
	}
	if len(data)-d.pos < 16 {
		return errShort
	}
	copy(f.sync[:], data[d.pos:])
	f.start = int64(d.pos) + 16
	return nil
}

// blocks walks the blocks of a file.
type blocks struct {
	f    *File
	pool *memory.Pool
	pos  int64
	win  window
	zs   decompressor
	held int64
}

// next gives the records of the next block: their number and bytes, which stay valid for good. count is 0 at the end.
func (b *blocks) next(ctx context.Context) (count int64, data []byte, err error) {
	for {
		size := b.f.o.Size()
		if b.pos == size {
			return 0, nil, nil
		}
		head, err := b.at(ctx, b.pos, min(20, size-b.pos))
		if err != nil {
			return 0, nil, err
		}
		d := decoder{data: head}
		count, err := d.long()
		if err == nil && count < 0 {
			return 0, nil, b.f.corrupt("the Avro block at byte %d has a negative count of records, %d", b.pos, count)
		}
		var length int64
		if err == nil {
			length, err = d.long()
		}
		if err != nil {
			return 0, nil, b.f.corrupt("it ends within the Avro block at byte %d", b.pos)
		}
		if length < 0 {
			return 0, nil, b.f.corrupt("the Avro block at byte %d has a negative size, %d", b.pos, length)
		}
		at := b.pos + int64(d.pos)
		if length == 0 && at == size && b.f.Root.min > 0 {
			return 0, nil, nil // a block that a writer began and never filled; no record fits in no bytes
		}
		if length > size-at-16 {
			return 0, nil, b.f.corrupt("it ends within the Avro block at byte %d, which says it has %d bytes", b.pos, length)
		}
		if length > maxBlockBytes {
			return 0, nil, b.f.corrupt("the Avro block at byte %d has %d bytes, more than %d", b.pos, length, maxBlockBytes)
		}
		raw, err := b.at(ctx, at, length+16)
		if err != nil {
			return 0, nil, err
		}
		if !bytes.Equal(raw[length:], b.f.sync[:]) {
			return 0, nil, b.f.corrupt("the sync marker after the Avro block at byte %d is wrong", b.pos)
		}
		data, err := b.zs.decompress(b.f.codec, raw[:length:length])
		if err != nil {
			return 0, nil, b.f.corrupt("the Avro block at byte %d cannot be decompressed: %s", b.pos, decompressFault(err))
		}
		start := b.pos
		b.pos = at + length + 16
		least := b.f.Root.min
		if least > 0 && count > int64(len(data))/least || least == 0 && count > 1<<20 {
			return 0, nil, b.f.corrupt("the Avro block at byte %d holds fewer records than the %d that it says", start, count)
		}
		if count == 0 {
			if len(data) > 0 {
				return 0, nil, b.f.corrupt("the Avro block at byte %d has bytes after its last record", start)
			}
			continue
		}
		return count, data, b.account(int64(len(data)) + int64(len(b.win.data)))
	}
}

// account holds what one window and one block take reserved.
func (b *blocks) account(n int64) error {
	if b.pool == nil || n <= b.held {
		return nil
	}
	if err := b.pool.Reserve(n - b.held); err != nil {
		return b.f.wrap(fault.Exhausted, err)
	}
	b.held = n
	return nil
}

func (b *blocks) close() {
	if b.pool != nil {
		b.pool.Release(b.held)
	}
	b.held = 0
	b.zs.close()
}

// at gives n bytes at an offset of the file, reading on when the window does not have them.
func (b *blocks) at(ctx context.Context, off, n int64) ([]byte, error) {
	if off < b.win.off || off+n > b.win.off+int64(len(b.win.data)) {
		w, err := b.f.read(ctx, off, min(max(n, windowBytes), b.f.o.Size()-off))
		if err != nil {
			return nil, err
		}
		b.win = w
	}
	at := off - b.win.off
	if at+n > int64(len(b.win.data)) {
		return nil, b.f.corrupt("it ends before byte %d", off+n)
	}
	return b.win.data[at : at+n : at+n], nil
}

// decoder reads Avro's binary primitives.
type decoder struct {
	data []byte
	pos  int
}

func (d *decoder) long() (int64, error) {
	p := d.pos
	if p < len(d.data) && d.data[p] < 0x80 {
		d.pos++
		u := uint64(d.data[p])
		return int64(u>>1) ^ -int64(u&1), nil
	}
	u, n := binary.Uvarint(d.data[p:])
	if n == 0 {
		return 0, errShort
	}
	if n < 0 {
		return 0, errVarint
	}
	d.pos += n
	return int64(u>>1) ^ -int64(u&1), nil
}

var errVarint = fault.New(fault.Corrupt, "an integer has too many bytes")

func (d *decoder) int() (int32, error) {
	x, err := d.long()
	if err == nil && (x < -1<<31 || x >= 1<<31) {
		return 0, fault.New(fault.Corrupt, "value %d does not fit an Avro int", x)
	}
	return int32(x), err
}

func (d *decoder) take(n int) ([]byte, error) {
	if n > len(d.data)-d.pos {
		return nil, errShort
	}
	b := d.data[d.pos : d.pos+n : d.pos+n]
	d.pos += n
	return b, nil
}

func (d *decoder) bytes() ([]byte, error) {
	n, err := d.long()
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fault.New(fault.Corrupt, "a length is negative, %d", n)
	}
	if n > int64(len(d.data)-d.pos) {
		return nil, errShort
	}
	return d.take(int(n))
}

// blockCount reads the item count of a block of an array or map, skipping the byte size that follows a negative one.
// least is the smallest size of an item in bytes.
func (d *decoder) blockCount(least int64) (int64, error) {
	n, err := d.long()
	if err != nil {
		return 0, err
	}
	if n < 0 {
		if n = -n; n < 0 {
			return 0, fault.New(fault.Corrupt, "an item count is out of range")
		}
		if _, err := d.long(); err != nil {
			return 0, err
		}
	}
	rest := int64(len(d.data) - d.pos)
	if least > 0 && n > rest/least || least == 0 && n > 1<<16 {
		return 0, errShort
	}
	return n, nil
}
