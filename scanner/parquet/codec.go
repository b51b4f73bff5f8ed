package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/skua-db/skua/fault"
)

// Codec is a compression codec, numbered as in parquet.thrift.
type Codec int8

// The codecs.
const (
	Uncompressed Codec = 0
	Snappy       Codec = 1
	Gzip         Codec = 2
	LZO          Codec = 3
	Brotli       Codec = 4
	LZ4          Codec = 5
	Zstd         Codec = 6
	LZ4Raw       Codec = 7
)

// Encoding is how a page's values are written, numbered as in parquet.thrift.
type Encoding int8

// The encodings.
const (
	Plain                Encoding = 0
	PlainDictionary      Encoding = 2
	RLE                  Encoding = 3
	BitPacked            Encoding = 4
	DeltaBinaryPacked    Encoding = 5
	DeltaLengthByteArray Encoding = 6
	DeltaByteArray       Encoding = 7
	RLEDictionary        Encoding = 8
	ByteStreamSplit      Encoding = 9
)

var codecNames = map[Codec]string{Uncompressed: "UNCOMPRESSED", Snappy: "SNAPPY", Gzip: "GZIP", LZO: "LZO", Brotli: "BROTLI", LZ4: "LZ4", Zstd: "ZSTD", LZ4Raw: "LZ4_RAW"}

// String is the name parquet.thrift gives the codec.
func (c Codec) String() string {
	if s, ok := codecNames[c]; ok {
		return s
	}
	return fmt.Sprintf("codec %d", int8(c))
}

var encodingNames = map[Encoding]string{Plain: "PLAIN", PlainDictionary: "PLAIN_DICTIONARY", RLE: "RLE", BitPacked: "BIT_PACKED", DeltaBinaryPacked: "DELTA_BINARY_PACKED",
	DeltaLengthByteArray: "DELTA_LENGTH_BYTE_ARRAY", DeltaByteArray: "DELTA_BYTE_ARRAY", RLEDictionary: "RLE_DICTIONARY", ByteStreamSplit: "BYTE_STREAM_SPLIT"}

// String is the name parquet.thrift gives the encoding.
func (e Encoding) String() string {
	if s, ok := encodingNames[e]; ok {
		return s
	}
	return fmt.Sprintf("encoding %d", int8(e))
}

// maxRatio is how many bytes one compressed byte can stand for, so that a page's claimed size is believed only as far as
// its codec could have made it. Brotli has no such bound that helps.
var maxRatio = map[Codec]int64{Uncompressed: 1, Snappy: 64, Gzip: 1040, LZ4: 256, LZ4Raw: 256, Zstd: 1 << 16, Brotli: 1 << 20}

// plausibleSize refuses sizes that no honest page has.
func plausibleSize(c Codec, compressed, uncompressed int64) error {
	ratio, ok := maxRatio[c]
	switch {
	case c == LZO:
		return fault.New(fault.Corrupt, "codec LZO is not supported: no Iceberg writer uses it")
	case !ok:
		return fault.New(fault.Corrupt, "unknown codec %d", int8(c))
	case uncompressed > (compressed+16)*ratio:
		return fault.New(fault.Corrupt, "page of %d bytes claims to be %d bytes before %s", compressed, uncompressed, c)
	case c == Uncompressed && uncompressed != compressed:
		return fault.New(fault.Corrupt, "uncompressed page has %d bytes, its header says %d", compressed, uncompressed)
	}
	return nil
}

var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(maxPageBytes))
})

var (
	gzipReaders   sync.Pool
	brotliReaders sync.Pool
)

// decompress fills dst, which has exactly the size the page claims, from src.
func decompress(c Codec, dst, src []byte) error {
	if len(dst) == 0 {
		return nil
	}
	var n int
	var err error
	switch c {
	case Snappy:
		if n, err = snappy.DecodedLen(src); err == nil && n == len(dst) {
			var out []byte
			if out, err = snappy.Decode(dst, src); err == nil && &out[0] != &dst[0] {
				copy(dst, out)
			}
		}
	case Gzip:
		zr, _ := gzipReaders.Get().(*gzip.Reader)
		if zr == nil {
			zr = new(gzip.Reader)
		}
		defer gzipReaders.Put(zr)
		if err = zr.Reset(bytes.NewReader(src)); err == nil {
			n, err = readExactly(zr, dst)
		}
	case Brotli:
		br, _ := brotliReaders.Get().(*brotli.Reader)
		if br == nil {
			br = brotli.NewReader(nil)
		}
		defer brotliReaders.Put(br)
		if err = br.Reset(bytes.NewReader(src)); err == nil {
			n, err = readExactly(br, dst)
		}
	case Zstd:
		var d *zstd.Decoder
		if d, err = zstdDecoder(); err == nil {
			var out []byte
			out, err = d.DecodeAll(src, dst[:0:len(dst)])
			n = len(out)
		}
	case LZ4Raw:
		n, err = lz4.UncompressBlock(src, dst)
	case LZ4:
		if n, err = hadoopLZ4(dst, src); err != nil || n != len(dst) {
			// Arrow C++ up to 0.16 wrote bare blocks or frames under this codec.
			if n, err = lz4.UncompressBlock(src, dst); err != nil || n != len(dst) {
				n, err = readExactly(lz4.NewReader(bytes.NewReader(src)), dst)
			}
		}
	default:
		return fault.New(fault.Unsupported, "codec %s is not supported", c)
	}
	if err != nil {
		return fault.Wrap(fault.Corrupt, err, "%s", c)
	}
	if n != len(dst) {
		return fault.New(fault.Corrupt, "%s gives %d bytes, the page header says %d", c, n, len(dst))
	}
	return nil
}

// readExactly reads dst full and checks that nothing follows.
func readExactly(r io.Reader, dst []byte) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		if err == io.ErrUnexpectedEOF || err == io.EOF {
			return n, nil
		}
		return n, err
	}
	var one [1]byte
	if k, err := io.ReadFull(r, one[:]); k != 0 {
		return n + k, nil
	} else if err != io.EOF {
		return n, err
	}
	return n, nil
}

// hadoopLZ4 decodes Hadoop's framing: big-endian size before and after compression, then the block, repeated.
func hadoopLZ4(dst, src []byte) (int, error) {
	n := 0
	for len(src) > 0 {
		if len(src) < 8 {
			return n, errNotHadoop
		}
		want, size := binary.BigEndian.Uint32(src), binary.BigEndian.Uint32(src[4:])
		src = src[8:]
		if int64(size) > int64(len(src)) || int64(want) > int64(len(dst)-n) {
			return n, errNotHadoop
		}
		k, err := lz4.UncompressBlock(src[:size], dst[n:n+int(want)])
		if err != nil || k != int(want) {
			return n, errNotHadoop
		}
		n += k
		src = src[size:]
	}
	return n, nil
}

var errNotHadoop error = fault.New(fault.Corrupt, "no Hadoop LZ4 frame")
