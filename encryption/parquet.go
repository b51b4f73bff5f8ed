package encryption

import (
	"crypto/cipher"
	"encoding/binary"
	"math"

	"github.com/skua-db/skua/fault"
)

// ParquetFile opens the modules of one Parquet file that is encrypted under one key (parquet-format Encryption.md,
// algorithm AES_GCM_V1).
type ParquetFile struct {
	aead cipher.AEAD
	aad  []byte // prefix and the file's own bytes
}

// Parquet makes the opener of a file. unique is what the file's crypto metadata says for itself. A prefix that the file stores must
// be the one the table gives.
func (m KeyMetadata) Parquet(unique, storedPrefix []byte) (*ParquetFile, error) {
	if storedPrefix != nil && string(storedPrefix) != string(m.AADPrefix) {
		return nil, fault.New(fault.Corrupt, "the file stores another AAD prefix than its table gives")
	}
	a, err := newGCM(m.Key)
	if err != nil {
		return nil, err
	}
	return &ParquetFile{aead: a, aad: append(append([]byte(nil), m.AADPrefix...), unique...)}, nil
}

// NoOrdinal stands for an ordinal that a module does not have.
const NoOrdinal = -1

// Open decrypts a module: nonce, ciphertext and tag, without the length in front. Ordinals are NoOrdinal where the module has
// none; one that does not fit 16 bits is refused, since it could only be another's.
func (p *ParquetFile) Open(kind byte, rowGroup, column, page int, sealed []byte) ([]byte, error) {
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
	return open(p.aead, make([]byte, 0, max(0, len(sealed)-nonceBytes-tagBytes)), sealed, aad)
}
