package spill

import (
	"os"

	"github.com/pierrec/lz4/v4"

	"github.com/skua-db/skua/exec/kernel"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/vector"
)

// writeBytes is gathered before it is written.
const writeBytes = 1 << 20

// File holds frames of rows, one after the other.
type File struct {
	a    *Area
	f    *os.File
	buf  []byte
	off  int64 // of the end of buf
	raw  []byte
	comp lz4.Compressor
}

// Frame is where some rows lie in a file.
type Frame struct {
	file   *File
	at     int64
	size   int // bytes in the file
	raw    int // bytes before compression; equal to size when they did not shrink
	Rows   int
	Memory int64 // that the rows took as a store
}

// Size is the number of bytes in the file.
func (f Frame) Size() int64 { return int64(f.size) }

// Append writes the rows of a store.
func (f *File) Append(s *kernel.Store) (Frame, error) {
	f.raw = f.raw[:0]
	for _, c := range s.Cols {
		f.raw = encode(f.raw, c, s.N)
	}
	at := len(f.buf)
	bound := lz4.CompressBlockBound(len(f.raw))
	if cap(f.buf)-at < bound {
		t := make([]byte, at, max(at+bound, writeBytes+writeBytes/4))
		copy(t, f.buf)
		f.buf = t
	}
	n, err := f.comp.CompressBlock(f.raw, f.buf[at:at+bound])
	if err != nil {
		return Frame{}, fault.Wrap(fault.Internal, err, "compression of a temporary file")
	}
	if n == 0 || n >= len(f.raw) {
		n = copy(f.buf[at:at+len(f.raw)], f.raw)
	}
	fr := Frame{file: f, at: f.off, size: n, raw: len(f.raw), Rows: s.N, Memory: s.Bytes()}
	f.buf = f.buf[:at+n]
	f.off += int64(n)
	if len(f.buf) >= writeBytes {
		return fr, f.flush()
	}
	return fr, nil
}

func (f *File) flush() error {
	if len(f.buf) == 0 {
		return nil
	}
	d := f.a.d
	if err := d.take(int64(len(f.buf))); err != nil {
		return err
	}
	if d.BeforeWrite != nil {
		if err := d.BeforeWrite(len(f.buf)); err != nil {
			d.used.Add(-int64(len(f.buf)))
			return d.failed(err)
		}
	}
	at := f.off - int64(len(f.buf))
	if _, err := f.f.WriteAt(f.buf, at); err != nil {
		d.used.Add(-int64(len(f.buf)))
		return d.failed(err)
	}
	f.buf = f.buf[:0]
	return nil
}

// Finish writes what is still in memory; frames can be read from then on.
func (f *File) Finish() error {
	if err := f.flush(); err != nil {
		return err
	}
	f.buf, f.raw = nil, nil
	return nil
}

// Bytes is the length of the file so far.
func (f *File) Bytes() int64 { return f.off }

// Remove deletes the file before its area ends.
func (f *File) Remove() {
	f.a.mu.Lock()
	defer f.a.mu.Unlock()
	if _, ok := f.a.files[f]; ok {
		delete(f.a.files, f)
		f.drop()
	}
}

func (f *File) drop() {
	name := f.f.Name()
	_ = f.f.Close()
	_ = os.Remove(name)
	f.a.d.used.Add(int64(len(f.buf)) - f.off)
	f.buf = nil
}

// Reader reads frames with buffers of its own.
type Reader struct{ in, raw []byte }

// Read gives the rows of a frame as columns of their own.
func (r *Reader) Read(fr Frame, types []vector.Type) ([]*vector.Vector, error) {
	r.in = grown(r.in, fr.size)
	if _, err := fr.file.f.ReadAt(r.in, fr.at); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "temporary file below limits.spill.dir (%s)", fr.file.a.d.dir)
	}
	raw := r.in
	if fr.size != fr.raw {
		r.raw = grown(r.raw, fr.raw)
		n, err := lz4.UncompressBlock(r.in, r.raw)
		if err != nil || n != fr.raw {
			return nil, broken()
		}
		raw = r.raw
	}
	cols := make([]*vector.Vector, len(types))
	d := decoder{raw}
	for k, t := range types {
		v, err := d.vector(t, fr.Rows)
		if err != nil {
			return nil, err
		}
		cols[k] = v
	}
	return cols, nil
}

func broken() error {
	return fault.New(fault.Corrupt, "a temporary file below limits.spill.dir was changed while it was in use")
}

func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
