package encryption

import (
	"encoding/binary"

	"github.com/skua-db/skua/fault"
)

// KeyMetadata is what a manifest list says of a manifest, and a manifest of a data or delete file, so that a reader can open
// it (Iceberg's StandardKeyMetadata).
type KeyMetadata struct {
	Key       Key
	AADPrefix []byte
	// Length is the length of the file as stored, which truncation cannot change because it comes from an authenticated parent; -1
	// when it is not said.
	Length int64
}

// keyMetadataVersion is the one version of the format there is.
const keyMetadataVersion = 1

// ParseKeyMetadata reads a version byte and an Avro datum of key, AAD prefix and length, to the last byte. Anything else
// is fault.Corrupt.
func ParseKeyMetadata(b []byte) (KeyMetadata, error) {
	m := KeyMetadata{Length: -1}
	if len(b) == 0 {
		return m, fault.New(fault.Corrupt, "key metadata is empty")
	}
	if b[0] != keyMetadataVersion {
		return m, fault.New(fault.Corrupt, "key metadata of version %d is not known; there is version %d", b[0], keyMetadataVersion)
	}
	r := datum{b: b[1:]}
	m.Key = r.bytes()
	if r.branch() {
		m.AADPrefix = r.bytes()
	}
	if r.branch() {
		m.Length = r.long()
		if m.Length < 0 {
			r.bad = true
		}
	}
	switch {
	case r.bad:
		return KeyMetadata{}, fault.New(fault.Corrupt, "key metadata ends early or holds no such value")
	case len(r.b) > 0:
		return KeyMetadata{}, fault.New(fault.Corrupt, "key metadata has bytes after its end")
	}
	if _, err := newGCM(m.Key); err != nil {
		return KeyMetadata{}, fault.Wrap(fault.Corrupt, err, "key metadata")
	}
	return m, nil
}

// datum reads a few Avro values.
type datum struct {
	b   []byte
	bad bool
}

func (r *datum) long() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *datum) bytes() []byte {
	n := r.long()
	if r.bad || n < 0 || n > int64(len(r.b)) {
		r.bad = true
		return nil
	}
	v := append([]byte(nil), r.b[:n]...)
	r.b = r.b[n:]
	return v
}

// branch reads the branch of a union with null in front: whether a value follows.
func (r *datum) branch() bool {
	n := r.long()
	if n != 0 && n != 1 {
		r.bad = true
	}
	return !r.bad && n == 1
}
