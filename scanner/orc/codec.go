package orc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/skua-db/skua/fault"
)

// Codec is a file's compression, numbered as in orc_proto's CompressionKind.
type Codec uint8

// The codecs.
const (
	None Codec = iota
	Zlib
	Snappy
	LZO
	LZ4
	Zstd
	Brotli
)

var codecNames = [...]string{"NONE", "ZLIB", "SNAPPY", "LZO", "LZ4", "ZSTD", "BROTLI"}

// String is the name orc_proto gives the codec.
func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// maxRatio is how many bytes one compressed byte can stand for, so that room is made only for what a chunk can hold.
var maxRatio = [...]int{None: 1, Zlib: 1040, Snappy: 64, LZO: 256, LZ4: 256, Zstd: 1 << 16}

const chunkHeaderLen = 3

// chunkHeader reads the header of a compression chunk: three bytes, little-endian, the length of what follows times two, plus one
// when it is stored as it was.
func chunkHeader(b []byte) (n int, original bool, err error) {
	if len(b) < chunkHeaderLen {
		return 0, false, fault.New(fault.Corrupt, "it ends within a compression chunk's header")
	}
	h := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	if h>>1 > len(b)-chunkHeaderLen {
		return 0, false, fault.New(fault.Corrupt, "a compression chunk of %d bytes where %d are left", h>>1, len(b)-chunkHeaderLen)
	}
	return h >> 1, h&1 != 0, nil
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(2*maxBlockBytes))
})

// inflater decompresses chunks. The zero value is ready.
type inflater struct {
	deflate io.ReadCloser
	src     bytes.Reader
	one     [1]byte
}

// append decompresses src, a chunk that holds at most blockSize bytes, to the end of dst.
func (z *inflater) append(dst, src []byte, c Codec, blockSize int) ([]byte, error) {
	room := min(blockSize, (len(src)+16)*maxRatio[c])
	at := len(dst)
	if cap(dst)-at < room {
		grown := make([]byte, at, max(at+room, 2*cap(dst)))
		copy(grown, dst)
		dst = grown
	}
	n, err := z.into(dst[at:at+room], src, c)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "a chunk of %d bytes cannot be decompressed by %s: %s", len(src), c, inflateFault(err))
	}
	return dst[:at+n], nil
}

var errTooLong = errors.New("it expands beyond the block size")

// into decompresses src into dst and gives the number of bytes.
func (z *inflater) into(dst, src []byte, c Codec) (int, error) {
	switch c {
	case Snappy:
		n, err := snappy.DecodedLen(src)
		if err != nil {
			return 0, err
		}
		if n > len(dst) {
			return 0, errTooLong
		}
		out, err := snappy.Decode(dst[:n], src)
		if err == nil && n > 0 && &out[0] != &dst[0] {
			copy(dst, out)
		}
		return n, err
	case Zlib:
		z.src.Reset(src)
		if z.deflate == nil {
			z.deflate = flate.NewReader(&z.src)
		} else if err := z.deflate.(flate.Resetter).Reset(&z.src, nil); err != nil {
			return 0, err
		}
		n, err := io.ReadFull(z.deflate, dst)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			// Either the end of the deflate stream, or of its bytes: asking again tells.
			if _, err = z.deflate.Read(z.one[:]); errors.Is(err, io.EOF) {
				return n, nil
			}
			return n, io.ErrUnexpectedEOF
		}
		if err == nil {
			k, end := io.ReadFull(z.deflate, z.one[:])
			if k > 0 {
				return n, errTooLong
			}
			if !errors.Is(end, io.EOF) {
				err = end
			}
		}
		return n, err
	case Zstd:
		d, err := zstdDecoder()
		if err != nil {
			return 0, err
		}
		out, err := d.DecodeAll(src, dst[:0:len(dst)])
		return len(out), err
	case LZ4:
		return lz4.UncompressBlock(src, dst)
	case LZO:
		return unlzo(dst, src)
	}
	return 0, fault.New(fault.Unsupported, "compression %s is not supported", c)
}

// inflateFault words a decompressor's error for people.
func inflateFault(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "its data ends too early"
	}
	return err.Error()
}
