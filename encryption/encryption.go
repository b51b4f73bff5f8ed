// Package encryption reads what Iceberg's table encryption protects: it unwraps the chain of keys that begins at a key
// management service, opens AGS1 streams with random access, and opens the modules of encrypted Parquet files.
//
// It is the only package that imports ciphers, writes nothing, and knows no manifest and no page. Keys appear in no error and
// in no text form. Every type is safe for concurrent use. Formats: Iceberg spec (Encryption), gcm-stream-spec,
// apache/parquet-format Encryption.md.
package encryption

import (
	"crypto/aes"
	"crypto/cipher"

	"github.com/skua-db/skua/fault"
)

// Key is an AES key of 16, 24 or 32 bytes. Its text form tells nothing.
type Key []byte

// String hides the key.
func (Key) String() string { return "«redacted»" }

// GoString hides the key.
func (Key) GoString() string { return "«redacted»" }

// MarshalText hides the key from every encoder.
func (Key) MarshalText() ([]byte, error) { return []byte("«redacted»"), nil }

const (
	nonceBytes = 12
	tagBytes   = 16
)

func newGCM(k Key) (cipher.AEAD, error) {
	switch len(k) {
	case 16, 24, 32:
	default:
		return nil, fault.New(fault.Corrupt, "a key of %d bytes is none of AES", len(k))
	}
	block, err := aes.NewCipher(k)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "a key cannot be used")
	}
	return cipher.NewGCM(block)
}

// errTag is the one answer to a wrong key, a wrong place and an altered byte: which of them it was is not told apart.
func errTag() error {
	return fault.WithID(fault.Corrupt, "AUTHENTICATION_FAILED", "authentication failed: the key is wrong or the data was altered")
}

// open decrypts nonce, ciphertext and tag into dst.
func open(a cipher.AEAD, dst, sealed, aad []byte) ([]byte, error) {
	if len(sealed) < nonceBytes+tagBytes {
		return nil, fault.New(fault.Corrupt, "%d encrypted bytes are too few for nonce and tag", len(sealed))
	}
	out, err := a.Open(dst, sealed[:nonceBytes], sealed[nonceBytes:], aad)
	if err != nil {
		return nil, errTag()
	}
	return out, nil
}
