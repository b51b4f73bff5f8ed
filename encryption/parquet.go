package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/fault"
)

// ParquetAlgorithm is what a Parquet file says of its encryption (parquet-format Encryption.md).
type ParquetAlgorithm struct {
	Unique               []byte // the file's own part of the associated data
	StoredPrefix         []byte // the AAD prefix when the file stores it; nil otherwise
	UnauthenticatedPages bool   // AES_GCM_CTR_V1: pages by AES-CTR, all else by AES-GCM; otherwise AES_GCM_V1
}

// ParquetFile opens the modules of one Parquet file that is encrypted under one key.
type ParquetFile struct {
	aead  cipher.AEAD
	block cipher.Block // for pages by AES-CTR; nil when they are authenticated
	aad   []byte       // prefix and the file's own bytes
}

// Parquet makes the opener of a file. A prefix that the file stores must be the one the table gives, when it gives one.
func (m KeyMetadata) Parquet(f ParquetAlgorithm) (*ParquetFile, error) {
	prefix := m.AADPrefix
	switch {
	case f.StoredPrefix == nil:
	case prefix == nil:
		prefix = f.StoredPrefix
	case string(f.StoredPrefix) != string(prefix):
		return nil, fault.New(fault.Corrupt, "the file stores another AAD prefix than its table gives")
	}
	a, err := newGCM(m.Key)
	if err != nil {
		return nil, err
	}
	p := &ParquetFile{aead: a, aad: append(append([]byte(nil), prefix...), f.Unique...)}
	if f.UnauthenticatedPages {
		if p.block, err = aes.NewCipher(m.Key); err != nil {
			return nil, fault.New(fault.Corrupt, "a key cannot be used")
		}
	}
	return p, nil
}

// NoOrdinal stands for an ordinal that a module does not have.
const NoOrdinal = -1

// The kinds of module that AES_GCM_CTR_V1 does not authenticate, and that of the footer.
const (
	footerKind   byte = 0
	dataPageKind byte = 2
	dictPageKind byte = 3
)

// Open decrypts a module and appends it to dst: nonce, ciphertext and tag, without the length in front. Ordinals are NoOrdinal where the module has
// none; one that does not fit 16 bits is refused, since it could only be another's.
func (p *ParquetFile) Open(dst []byte, kind byte, rowGroup, column, page int, sealed []byte) ([]byte, error) {
	aad := append(append(make([]byte, 0, len(p.aad)+7), p.aad...), kind)
	for _, n := range []int{rowGroup, column, page} {
		if n == NoOrdinal {
			continue
		}
		if n < 0 || n > math.MaxInt16 {
			return nil, fault.New(fault.Corrupt, "ordinal %d of an encrypted module does not fit 16 bits", n)
		}
		aad = binary.LittleEndian.AppendUint16(aad, uint16(n))
	}
	if p.block != nil && (kind == dataPageKind || kind == dictPageKind) {
		return p.openUnauthenticated(dst, sealed)
	}
	return open(p.aead, dst, sealed, aad)
}

// openUnauthenticated decrypts nonce and ciphertext by AES-CTR, whose counter begins at one.
func (p *ParquetFile) openUnauthenticated(dst, sealed []byte) ([]byte, error) {
	if len(sealed) < nonceBytes {
		return nil, fault.New(fault.Corrupt, "%d encrypted bytes are too few for a nonce", len(sealed))
	}
	iv := append(append(make([]byte, 0, aes.BlockSize), sealed[:nonceBytes]...), 0, 0, 0, 1)
	at := len(dst)
	dst = append(dst, sealed[nonceBytes:]...)
	cipher.NewCTR(p.block, iv).XORKeyStream(dst[at:], dst[at:])
	return dst, nil
}

// Verify checks the signature of a footer in clear: nonce and tag of its encryption.
func (p *ParquetFile) Verify(footer, signature []byte) error {
	if len(signature) != nonceBytes+tagBytes {
		return fault.New(fault.Corrupt, "a footer's signature of %d bytes", len(signature))
	}
	aad := append(append(make([]byte, 0, len(p.aad)+1), p.aad...), footerKind)
	sealed := p.aead.Seal(nil, signature[:nonceBytes], footer, aad)
	if subtle.ConstantTimeCompare(sealed[len(footer):], signature[nonceBytes:]) != 1 {
		return errTag()
	}
	return nil
}
