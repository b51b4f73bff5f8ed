package avro

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/skua-db/skua/fault"
)

type codec uint8

const (
	codecNull codec = iota
	codecDeflate
	codecSnappy
	codecZstd
	codecBzip2
)

func codecOf(name string) (codec, error) {
	switch name {
	case "", "null":
		return codecNull, nil
	case "deflate":
		return codecDeflate, nil
	case "snappy":
		return codecSnappy, nil
	case "zstandard":
		return codecZstd, nil
	case "bzip2":
		return codecBzip2, nil
	case "xz":
		return 0, fault.New(fault.Unsupported, "Avro codec xz is not supported")
	}
	return 0, fault.New(fault.Corrupt, "Avro codec %.40q is unknown", name)
}

// decompressor holds the state of codecs between blocks. The zero value is ready.
type decompressor struct {
	zstd    *zstd.Decoder
	deflate io.ReadCloser
}

// decompress gives the content of a block in a slice of its own; that of the null codec is the block itself.
func (z *decompressor) decompress(c codec, b []byte) ([]byte, error) {
	switch c {
	case codecNull:
		return b, nil
	case codecSnappy:
		if len(b) < 4 {
			return nil, fmt.Errorf("too short for snappy and its checksum")
		}
		body := b[:len(b)-4]
		n, err := snappy.DecodedLen(body)
		if err != nil {
			return nil, err
		}
		if n > maxBlockBytes || n > 64*len(body)+64 {
			return nil, fmt.Errorf("it says it expands to %d bytes", n)
		}
		out, err := snappy.Decode(make([]byte, n), body)
		if err != nil {
			return nil, err
		}
		if want := binary.BigEndian.Uint32(b[len(b)-4:]); crc32.ChecksumIEEE(out) != want {
			return nil, fmt.Errorf("its checksum is wrong")
		}
		return out, nil
	case codecZstd:
		// A stream, for a frame's declared size is not to be trusted with an allocation.
		if z.zstd == nil {
			d, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlockBytes))
			if err != nil {
				return nil, err
			}
			z.zstd = d
		} else if err := z.zstd.Reset(bytes.NewReader(b)); err != nil {
			return nil, err
		}
		return readLimited(z.zstd, 4*len(b))
	case codecDeflate:
		if z.deflate == nil {
			z.deflate = flate.NewReader(bytes.NewReader(b))
		} else if err := z.deflate.(flate.Resetter).Reset(bytes.NewReader(b), nil); err != nil {
			return nil, err
		}
		return readLimited(z.deflate, 4*len(b))
	}
	return readLimited(bzip2.NewReader(bytes.NewReader(b)), 4*len(b))
}

func (z *decompressor) close() {
	if z.zstd != nil {
		z.zstd.Close()
		z.zstd = nil
	}
}

// readLimited reads r to its end, at most maxBlockBytes, beginning with a buffer of about guess bytes.
func readLimited(r io.Reader, guess int) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, min(guess, 8<<20)+512))
	n, err := out.ReadFrom(io.LimitReader(r, maxBlockBytes+1))
	if err != nil {
		return nil, err
	}
	if n > maxBlockBytes {
		return nil, fmt.Errorf("it expands beyond %d bytes", maxBlockBytes)
	}
	return out.Bytes(), nil
}

// decompressFault words a decompressor's error for people.
func decompressFault(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "its data ends too early"
	}
	return err.Error()
}
