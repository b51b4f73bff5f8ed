// Package seal makes and opens sealed blobs: the handles and tickets that a server hands out and any node with the
// same keys can read back.
//
// It is not for table data. A Sealer is safe for concurrent use.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"

	"github.com/skua-db/skua/fault"
)

const (
	version   = 1
	idBytes   = 4
	headBytes = 1 + idBytes
	nonceSize = 12
)

// Key is a sealing key. The id is public and says which key opens a blob; Secret may have any length above 15 bytes.
type Key struct {
	ID     string
	Secret []byte
}

// Sealer seals with its first key and opens with any of its keys, so that keys can be rotated.
type Sealer struct {
	keys []derived
}

type derived struct {
	tag  [idBytes]byte
	aead cipher.AEAD
}

// New makes a sealer. The first key seals.
func New(keys ...Key) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, fault.New(fault.Invalid, "no key to seal tickets with")
	}
	s := &Sealer{}
	for _, k := range keys {
		if len(k.Secret) < 16 {
			return nil, fault.New(fault.Invalid, "ticket key %q is shorter than 16 bytes", k.ID)
		}
		sum := sha256.Sum256(append([]byte("skua ticket key\x00"), k.Secret...))
		block, err := aes.NewCipher(sum[:])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		id := sha256.Sum256([]byte(k.ID))
		s.keys = append(s.keys, derived{[idBytes]byte(id[:idBytes]), aead})
	}
	return s, nil
}

// Random makes a sealer whose key dies with the process.
func Random() (*Sealer, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	return New(Key{ID: "random", Secret: secret})
}

// Seal encrypts and authenticates plain: version, key tag, nonce, ciphertext and tag.
func (s *Sealer) Seal(plain []byte) []byte {
	k := s.keys[0]
	out := make([]byte, headBytes+nonceSize, headBytes+nonceSize+len(plain)+k.aead.Overhead())
	out[0] = version
	copy(out[1:], k.tag[:])
	if _, err := rand.Read(out[headBytes:]); err != nil {
		panic(err) // crypto/rand does not fail on the platforms that Go supports
	}
	return k.aead.Seal(out, out[headBytes:headBytes+nonceSize], plain, out[:headBytes])
}

// Sealed reports whether blob has the outer form of something Seal made.
func Sealed(blob []byte) bool { return len(blob) >= headBytes+nonceSize+16 && blob[0] == version }

// Open gives back what Seal was given. Anything else is fault.Invalid, without saying which part was wrong; a key that
// has been retired is fault.Expired.
func (s *Sealer) Open(blob []byte) ([]byte, error) {
	if !Sealed(blob) {
		return nil, fault.New(fault.Invalid, "handle is not one of this server's")
	}
	known := false
	for _, k := range s.keys {
		if [idBytes]byte(blob[1:headBytes]) != k.tag {
			continue
		}
		known = true
		if plain, err := k.aead.Open(nil, blob[headBytes:headBytes+nonceSize], blob[headBytes+nonceSize:], blob[:headBytes]); err == nil {
			return plain, nil
		}
	}
	if known {
		return nil, fault.New(fault.Invalid, "handle has been altered or comes from another server")
	}
	return nil, fault.New(fault.Expired, "handle was sealed with a key that is no longer in use; plan again")
}
