package encryption

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"strings"

	"github.com/skua-db/skua/fault"
)

// LocalKMS holds master keys in memory, for tests and small deployments. A wrapped key is nonce, ciphertext and tag of AES-GCM
// under the master key without associated data.
type LocalKMS struct {
	keys map[string]Key
}

// NewLocalKMS makes a service of the given master keys.
func NewLocalKMS(keys map[string]Key) (*LocalKMS, error) {
	for id, k := range keys {
		if _, err := newGCM(k); err != nil {
			return nil, fault.New(fault.Invalid, "master key %q has %d bytes, not 16, 24 or 32", id, len(k))
		}
	}
	return &LocalKMS{keys: keys}, nil
}

// ReadKeyFile reads master keys from a file of lines "id hex". Blank lines and lines that begin with # count nothing. A file that
// others than its owner can read is refused: it holds keys to every table.
func ReadKeyFile(path string) (*LocalKMS, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "key file")
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Invalid, "key file %s can be read by others than its owner (mode %04o); make it 0600", path, st.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "key file")
	}
	keys := map[string]Key{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, text, ok := strings.Cut(line, " ")
		key, err := hex.DecodeString(strings.TrimSpace(text))
		if !ok || err != nil {
			return nil, fault.New(fault.Invalid, "key file %s line %d is not of the form: id, blank, key in hex", path, n)
		}
		if _, twice := keys[id]; twice {
			return nil, fault.New(fault.Invalid, "key file %s line %d: key %q stands twice", path, n, id)
		}
		keys[id] = key
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.Invalid, "key file %s has a line that is too long", path)
	}
	return NewLocalKMS(keys)
}

// Unwrap implements KMS.
func (l *LocalKMS) Unwrap(_ context.Context, keyID string, wrapped []byte) (Key, error) {
	master, ok := l.keys[keyID]
	if !ok {
		return nil, fault.New(fault.NotFound, "master key %q is not known to the key management service", keyID)
	}
	aead, err := newGCM(master)
	if err != nil {
		return nil, err
	}
	key, err := open(aead, nil, wrapped, nil)
	return key, fault.Wrap(fault.Corrupt, err, "unwrapping under master key %q", keyID)
}
