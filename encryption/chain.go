package encryption

import (
	"context"

	"github.com/skua-db/skua/fault"
)

// KMS unwraps keys that were wrapped under a master key. An error never holds a key.
type KMS interface {
	// Unwrap gives the key that wrapped holds, wrapped under the master key named keyID.
	Unwrap(ctx context.Context, keyID string, wrapped []byte) (Key, error)
}

// WrappedKey is an entry of a table's encryption-keys.
type WrappedKey struct {
	ID          string
	Metadata    []byte // decoded from base64
	EncryptedBy string
	Properties  map[string]string
}

// keyTimestamp is the property of a key encryption key that authenticates what it encrypts.
const keyTimestamp = "KEY_TIMESTAMP"

// Chain resolves the keys of one table. The zero Chain is not usable.
type Chain struct {
	ring    *Keyring
	table   string // names the table among all
	tableID string // the table's encryption.key-id
	keys    map[string]WrappedKey
}

// NewChain makes the chain of a table whose property encryption.key-id is masterKeyID. The table's name sets it apart from every
// other in the keyring, which may be nil: the chain then says so when a key is needed.
func NewChain(ring *Keyring, table, masterKeyID string, keys []WrappedKey) *Chain {
	c := &Chain{ring: ring, table: table, tableID: masterKeyID, keys: map[string]WrappedKey{}}
	for _, k := range keys {
		c.keys[k.ID] = k
	}
	return c
}

// Accepted tells which risks the configuration takes.
func (c *Chain) Accepted() Risks {
	if c.ring == nil {
		return Risks{}
	}
	return c.ring.opt.Accept
}

// ManifestList gives the key metadata of a snapshot's manifest list by the snapshot's key-id. The entry of that name is encrypted
// under a key encryption key, which the master key wraps: no other shape is followed.
func (c *Chain) ManifestList(ctx context.Context, keyID string) (KeyMetadata, error) {
	if c.ring == nil {
		return KeyMetadata{}, fault.New(fault.Unsupported, "the table is encrypted under master key %q and no key management service is configured for its catalog", c.tableID)
	}
	entry, ok := c.keys[keyID]
	if !ok {
		return KeyMetadata{}, fault.New(fault.Corrupt, "the snapshot's key %q is not among the table's encryption keys: it is lost", keyID)
	}
	if entry.EncryptedBy == "" || entry.EncryptedBy == c.tableID {
		return KeyMetadata{}, fault.New(fault.Corrupt, "the snapshot's key %q is not encrypted under a key of the table", keyID)
	}
	kek, ok := c.keys[entry.EncryptedBy]
	switch {
	case !ok:
		return KeyMetadata{}, fault.New(fault.Corrupt, "key %q is encrypted under %q, which is not among the table's encryption keys", keyID, entry.EncryptedBy)
	case kek.EncryptedBy != c.tableID:
		return KeyMetadata{}, fault.New(fault.Corrupt, "key %q is encrypted under %q, the table's master key is %q", kek.ID, kek.EncryptedBy, c.tableID)
	}
	stamp, ok := kek.Properties[keyTimestamp]
	if !ok {
		return KeyMetadata{}, fault.New(fault.Corrupt, "key %q has no %s", kek.ID, keyTimestamp)
	}
	key, err := c.ring.unwrap(ctx, c.table, kek.EncryptedBy, kek.Metadata)
	if err != nil {
		return KeyMetadata{}, fault.Wrap(fault.Corrupt, err, "key %q", kek.ID)
	}
	aead, err := newGCM(key)
	clear(key)
	if err != nil {
		return KeyMetadata{}, fault.Wrap(fault.Corrupt, err, "key %q", kek.ID)
	}
	plain, err := open(aead, nil, entry.Metadata, []byte(stamp))
	if err != nil {
		return KeyMetadata{}, fault.Wrap(fault.Corrupt, err, "key %q", keyID)
	}
	m, err := ParseKeyMetadata(plain)
	return m, fault.Wrap(fault.Corrupt, err, "key %q", keyID)
}
