package expr

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/google/uuid"
	"github.com/twmb/murmur3"
)

// The digests here identify data; nothing is kept secret with them.
func init() {
	digest := func(name, doc string, f func(b []byte) []byte) {
		def(name, "(varbinary) varbinary", doc, fn1(func(_ *evalCall, b []byte) ([]byte, error) { return f(b), nil }))
	}
	digest("md5", "MD5 digest", func(b []byte) []byte { s := md5.Sum(b); return s[:] })
	digest("sha1", "SHA-1 digest", func(b []byte) []byte { s := sha1.Sum(b); return s[:] })
	digest("sha256", "SHA-256 digest", func(b []byte) []byte { s := sha256.Sum256(b); return s[:] })
	digest("sha512", "SHA-512 digest", func(b []byte) []byte { s := sha512.Sum512(b); return s[:] })
	digest("xxhash64", "xxHash64", func(b []byte) []byte { return binary.BigEndian.AppendUint64(nil, xxhash.Sum64(b)) })
	digest("murmur3", "Murmur3 of 128 bits", func(b []byte) []byte {
		h1, h2 := murmur3.Sum128(b)
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h1), h2)
	})
	hmacOf := func(name, doc string, f func() hash.Hash) {
		def(name, "(varbinary, varbinary) varbinary", doc, fn2(func(_ *evalCall, b, key []byte) ([]byte, error) {
			if len(key) == 0 {
				return nil, badArgument("%s: the key is empty", name)
			}
			h := hmac.New(f, key)
			h.Write(b)
			return h.Sum(nil), nil
		}))
	}
	hmacOf("hmac_md5", "HMAC with MD5 of bytes with a key", md5.New)
	hmacOf("hmac_sha1", "HMAC with SHA-1 of bytes with a key", sha1.New)
	hmacOf("hmac_sha256", "HMAC with SHA-256 of bytes with a key", sha256.New)
	hmacOf("hmac_sha512", "HMAC with SHA-512 of bytes with a key", sha512.New)
	def("crc32", "(varbinary) bigint", "CRC-32", fn1(func(_ *evalCall, b []byte) (int64, error) { return int64(crc32.ChecksumIEEE(b)), nil }))
	def("to_utf8 encode", "(varchar) varbinary", "the UTF-8 bytes", fn1(func(_ *evalCall, b []byte) ([]byte, error) { return b, nil }))
	def("from_utf8 decode", "(varbinary) varchar", "the text of UTF-8 bytes, with U+FFFD for what is none", fn1(func(_ *evalCall, b []byte) (string, error) {
		return strings.ToValidUTF8(string(b), "\uFFFD"), nil
	}))
	def("from_utf8", "(varbinary, varchar) varchar", "the text of UTF-8 bytes, with a replacement for what is none", fn2(func(_ *evalCall, b []byte, r string) (string, error) {
		return strings.ToValidUTF8(string(b), r), nil
	}))
	def("from_utf8", "(varbinary, bigint) varchar", "the text of UTF-8 bytes, with a replacement by its code point", fn2(func(_ *evalCall, b []byte, r int64) (string, error) {
		if r < 0 || r > unicode.MaxRune || !utf8.ValidRune(rune(r)) {
			return "", badArgument("from_utf8: %d is not a code point", r)
		}
		return strings.ToValidUTF8(string(b), string(rune(r))), nil
	}))
	text := func(name, doc string, to func(b []byte) string, from func(s string) ([]byte, error)) {
		def("to_"+name, "(varbinary) varchar", "text in "+doc, fn1(func(_ *evalCall, b []byte) (string, error) { return to(b), nil }))
		decode := fn1(func(_ *evalCall, s string) ([]byte, error) {
			b, err := from(s)
			if err != nil {
				return nil, badArgument("from_%s: %q is not %s", name, s, doc)
			}
			return b, nil
		})
		def("from_"+name, "(varchar) varbinary", "bytes from "+doc, decode)
		def("from_"+name, "(varbinary) varbinary", "bytes from "+doc, decode)
	}
	text("hex", "hexadecimal", func(b []byte) string { return strings.ToUpper(hex.EncodeToString(b)) }, hex.DecodeString)
	text("base64", "base 64", base64.StdEncoding.EncodeToString, func(s string) ([]byte, error) {
		if !strings.HasSuffix(s, "=") && len(s)%4 != 0 {
			return base64.RawStdEncoding.DecodeString(s)
		}
		return base64.StdEncoding.DecodeString(s)
	})
	text("base64url", "base 64 for URLs", base64.URLEncoding.EncodeToString, func(s string) ([]byte, error) {
		return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	})
	text("base32", "base 32", base32.StdEncoding.EncodeToString, base32.StdEncoding.DecodeString)
	def("to_big_endian_64", "(bigint) varbinary", "eight bytes, the highest first", fn1(func(_ *evalCall, n int64) ([]byte, error) { return binary.BigEndian.AppendUint64(nil, uint64(n)), nil }))
	def("to_big_endian_32", "(integer) varbinary", "four bytes, the highest first", fn1(func(_ *evalCall, n int32) ([]byte, error) { return binary.BigEndian.AppendUint32(nil, uint32(n)), nil }))
	def("to_ieee754_64", "(double) varbinary", "the bytes of a double, the highest first", fn1(func(_ *evalCall, f float64) ([]byte, error) {
		return binary.BigEndian.AppendUint64(nil, math.Float64bits(f)), nil
	}))
	def("to_ieee754_32", "(real) varbinary", "the bytes of a real, the highest first", fn1(func(_ *evalCall, f float32) ([]byte, error) {
		return binary.BigEndian.AppendUint32(nil, math.Float32bits(f)), nil
	}))
	sized := func(b []byte, n int) error {
		if len(b) != n {
			return badArgument("%d bytes are needed, not %d", n, len(b))
		}
		return nil
	}
	def("from_big_endian_64", "(varbinary) bigint", "the number of eight bytes", fn1(func(_ *evalCall, b []byte) (int64, error) {
		if err := sized(b, 8); err != nil {
			return 0, err
		}
		return int64(binary.BigEndian.Uint64(b)), nil
	}))
	def("from_big_endian_32", "(varbinary) integer", "the number of four bytes", fn1(func(_ *evalCall, b []byte) (int32, error) {
		if err := sized(b, 4); err != nil {
			return 0, err
		}
		return int32(binary.BigEndian.Uint32(b)), nil
	}))
	def("from_ieee754_64", "(varbinary) double", "the double of eight bytes", fn1(func(_ *evalCall, b []byte) (float64, error) {
		if err := sized(b, 8); err != nil {
			return 0, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	}))
	def("from_ieee754_32", "(varbinary) real", "the real of four bytes", fn1(func(_ *evalCall, b []byte) (float32, error) {
		if err := sized(b, 4); err != nil {
			return 0, err
		}
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	}))
	def("uuid gen_random_uuid", "() uuid", "a random UUID", fn0(func(*evalCall) ([]byte, error) { u := uuid.New(); return u[:], nil }), volatile)
}
