package parquet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	aparquet "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/stretchr/testify/require"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
)

const aadPrefix = "sixteen AAD bytes"

// under opens files by a key, as the scanner does. Pages that nobody authenticates are taken.
func under(key string) Keyring {
	m := encryption.KeyMetadata{Key: encryption.Key(key), AADPrefix: []byte(aadPrefix), Length: -1}
	return func(c FileCrypto) (Modules, error) { return m.Parquet(encryption.ParquetAlgorithm(c)) }
}

// sealedFile writes a file by arrow-go, encrypted, and tells its rows.
func sealedFile(t *testing.T, seed uint64, key string, version aparquet.DataPageVersion, options ...aparquet.EncryptOption) (b []byte, names []string, read func(b []byte, keys Keyring) error) {
	schema := nestedSchema()
	rec := randomRecord(rand.New(rand.NewPCG(seed, 2)), schema, 400, 0.2, 100)
	b = writeArrow(t, rec, append(alwaysDictionary(t, schema), aparquet.WithDataPageVersion(version), aparquet.WithCompression(compress.Codecs.Zstd), aparquet.WithDataPageSize(4000), aparquet.WithBatchSize(64),
		aparquet.WithMaxRowGroupLength(300), aparquet.WithEncryptionProperties(aparquet.NewFileEncryptionProperties(key, options...)))...)
	want := wantRows(rec)
	return b, fieldNames(schema), func(b []byte, keys Keyring) error {
		got, err := readFile(&object{Bytes: b}, readOptions{keys: keys})
		if err == nil {
			requireSame(t, fieldNames(schema), want, got)
		}
		return err
	}
}

// TestEncryptedRoundTrips reads what arrow-go encrypted, by both algorithms, with both kinds of footer.
func TestEncryptedRoundTrips(t *testing.T) {
	seed := uint64(0)
	for _, key := range []string{"0123456789012345", "012345678901234501234567", "01234567890123450123456789012345"} {
		for _, version := range []aparquet.DataPageVersion{aparquet.DataPageV1, aparquet.DataPageV2} {
			for _, alg := range []aparquet.Cipher{aparquet.AesGcm, aparquet.AesCtr} {
				for _, clear := range []bool{false, true}[:2-int(alg)] { // arrow-go names the wrong algorithm in a clear footer over AES-CTR
					for _, stored := range []bool{false, true} {
						seed++
						options := []aparquet.EncryptOption{aparquet.WithAlg(alg), aparquet.WithAadPrefix(aadPrefix)}
						if clear {
							options = append(options, aparquet.WithPlaintextFooter())
						}
						if !stored {
							options = append(options, aparquet.DisableAadPrefixStorage())
						}
						t.Run(fmt.Sprintf("%d bits/v%d/%v/clear footer %v/stored prefix %v", len(key)*8, version, alg, clear, stored), func(t *testing.T) {
							b, _, read := sealedFile(t, seed, key, version, options...)
							magic := magicEncrypted
							if clear {
								magic = magicPlain
							}
							require.Equal(t, magic, string(b[:4]))
							require.NoError(t, read(b, under(key)))
							require.ErrorIs(t, read(b, under("another key of 16")), fault.Corrupt)
							require.ErrorIs(t, read(b, nil), fault.Unsupported, "without a key")
							other := encryption.KeyMetadata{Key: encryption.Key(key), AADPrefix: []byte("another prefix"), Length: -1}
							require.ErrorIs(t, read(b, func(c FileCrypto) (Modules, error) { return other.Parquet(encryption.ParquetAlgorithm(c)) }), fault.Corrupt)
						})
					}
				}
			}
		}
	}
}

// TestSignedFooters changes a footer in clear: nothing of it may be believed that its signature does not cover.
func TestSignedFooters(t *testing.T) {
	const key = "0123456789012345"
	b, _, read := sealedFile(t, 1, key, aparquet.DataPageV1, aparquet.WithAadPrefix(aadPrefix), aparquet.WithPlaintextFooter())
	require.NoError(t, read(b, under(key)))
	footer := len(b) - 8 - int(uint32(b[len(b)-8])|uint32(b[len(b)-7])<<8|uint32(b[len(b)-6])<<16)
	for i := footer; i < len(b); i += 3 {
		c := bytes.Clone(b)
		c[i] ^= 1 << (i % 8)
		require.Error(t, read(c, under(key)), "byte %d of the footer", i-footer)
	}
	plain, _, readPlain := sealedFile(t, 2, key, aparquet.DataPageV1, aparquet.WithAadPrefix(aadPrefix), aparquet.WithPlaintextFooter(),
		aparquet.WithEncryptedColumns(aparquet.ColumnPathToEncryptionPropsMap{"plain": aparquet.NewColumnEncryptionProperties("plain", aparquet.WithKey(key), aparquet.WithKeyID("k"))}))
	require.ErrorIs(t, readPlain(plain, under(key)), fault.Unsupported, "columns with keys of their own, and columns without")
	mixed, _, readMixed := sealedFile(t, 3, key, aparquet.DataPageV1)
	require.ErrorIs(t, readMixed(mixed[:len(mixed)-1], under(key)), fault.Corrupt)
}

// BenchmarkEncrypted reads a column of doubles, plain and encrypted.
func BenchmarkEncrypted(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	fill := func(x array.Builder) { x.(*array.Float64Builder).Append(r.Float64()) }
	const key = "01234567890123450123456789012345"
	for _, sealed := range []bool{false, true} {
		for codec, compression := range map[string]compress.Compression{"none": compress.Codecs.Uncompressed, "snappy": compress.Codecs.Snappy} {
			b.Run(fmt.Sprintf("encrypted %v/%s", sealed, codec), func(b *testing.B) {
				props, keys := []aparquet.WriterProperty{aparquet.WithDictionaryDefault(false), aparquet.WithCompression(compression)}, Keyring(nil)
				if sealed {
					props, keys = append(props, aparquet.WithEncryptionProperties(aparquet.NewFileEncryptionProperties(key, aparquet.WithAadPrefix(aadPrefix)))), under(key)
				}
				scanUnder(b, benchFile(b, arrow.PrimitiveTypes.Float64, false, n, fill, props...), n, keys)
			})
		}
	}
}
