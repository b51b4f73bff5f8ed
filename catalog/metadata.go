package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/klauspost/compress/gzip"

	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/storage"
)

// MaxMetadataBytes is the largest metadata document that is parsed, after decompression.
const MaxMetadataBytes = 256 << 20

// ReadMetadata reads and parses a metadata file, gzip-compressed or not (told by its first bytes, since both
// name.gz.metadata.json and name.metadata.json.gz occur). Damage is fault.Corrupt naming the file; a format version
// that Skua does not read is fault.Unsupported.
func ReadMetadata(ctx context.Context, s storage.Store, path string, size int64) (table.Metadata, Extra, error) {
	raw, err := storage.ReadAll(ctx, s, path, size, MaxMetadataBytes)
	if err != nil {
		return nil, Extra{}, fault.Wrap(fault.Unavailable, err, "metadata file")
	}
	if raw, err = inflate(raw); err != nil {
		return nil, Extra{}, fault.Wrap(fault.Corrupt, err, "metadata file %s", path)
	}
	m, x, err := ParseMetadata(raw)
	if err != nil {
		return nil, Extra{}, fault.Wrap(fault.Corrupt, err, "metadata file %s", path)
	}
	return m, x, nil
}

func inflate(raw []byte) ([]byte, error) {
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		return raw, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fault.New(fault.Corrupt, "cannot be decompressed: %v", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, MaxMetadataBytes+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.Corrupt, "cannot be decompressed: the compressed data ends too early")
	case err != nil:
		return nil, fault.New(fault.Corrupt, "cannot be decompressed: %v", err)
	case len(out) > MaxMetadataBytes:
		return nil, fault.New(fault.Exhausted, "is larger than the limit of %d bytes once decompressed", int64(MaxMetadataBytes))
	}
	return out, nil
}

// document is the part of the metadata JSON that is checked or kept beside iceberg-go's model.
type document struct {
	FormatVersion     *int              `json:"format-version"`
	CurrentSnapshotID *int64            `json:"current-snapshot-id"`
	CurrentSchemaID   *int              `json:"current-schema-id"`
	Schema            json.RawMessage   `json:"schema"` // v1
	Schemas           []json.RawMessage `json:"schemas"`
	Snapshots         []struct {
		ID           int64    `json:"snapshot-id"`
		ManifestList string   `json:"manifest-list"`
		Manifests    []string `json:"manifests"`
		KeyID        *string  `json:"key-id"`
	} `json:"snapshots"`
	EncryptionKeys []struct {
		ID          string            `json:"key-id"`
		Metadata    []byte            `json:"encrypted-key-metadata"` // base64
		EncryptedBy string            `json:"encrypted-by-id"`
		Properties  map[string]string `json:"properties"`
	} `json:"encryption-keys"`
	Properties map[string]string `json:"properties"`
	Refs       map[string]struct {
		SnapshotID int64 `json:"snapshot-id"`
	} `json:"refs"`

	defaults map[int]json.RawMessage // found by check
}

// ParseMetadata parses a metadata document and checks what the specification lets a reader rely on: a known
// format version, a current schema and snapshot that exist, refs that agree with them, unique field ids and names.
func ParseMetadata(raw []byte) (table.Metadata, Extra, error) {
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, Extra{}, jsonFault(err)
	}
	if v, err := viewOf(raw); v != nil || err != nil {
		if err == nil {
			err = &ViewError{v}
		}
		return nil, Extra{}, err
	}
	if doc.FormatVersion == nil {
		return nil, Extra{}, fault.New(fault.Corrupt, "format-version is missing")
	}
	if v := *doc.FormatVersion; v < 1 || v > 3 {
		return nil, Extra{}, fault.New(fault.Unsupported, "format version %d is not supported; versions 1 to 3 are", v)
	}
	if err := doc.check(); err != nil {
		return nil, Extra{}, err
	}
	m, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, Extra{}, fault.New(fault.Corrupt, "%s", strings.TrimPrefix(err.Error(), "invalid or missing format-version in table metadata: "))
	}
	return m, doc.extra(), nil
}

func jsonFault(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fault.New(fault.Corrupt, "is not valid JSON at byte %d: %v", syntax.Offset, err)
	}
	return fault.New(fault.Corrupt, "is not table metadata: %v", err)
}

func (d *document) check() error {
	if id, ok := d.Properties[EncryptionKeyProperty]; ok && *d.FormatVersion < 3 {
		return fault.New(fault.Corrupt, "the table is encrypted (master key %q), which needs format version 3, and has version %d", id, *d.FormatVersion)
	}
	schemas := d.Schemas
	if len(schemas) == 0 && d.Schema != nil {
		schemas = []json.RawMessage{d.Schema}
	}
	schemaIDs := map[int]bool{}
	d.defaults = map[int]json.RawMessage{}
	for _, raw := range schemas {
		id, err := checkSchema(raw, *d.FormatVersion, d.defaults)
		if err != nil {
			return err
		}
		schemaIDs[id] = true
	}
	if id := d.CurrentSchemaID; id != nil && len(d.Schemas) > 0 && !schemaIDs[*id] {
		return fault.New(fault.Corrupt, "current schema %d is not in schemas", *id)
	}
	ids := map[int64]bool{}
	for _, s := range d.Snapshots {
		ids[s.ID] = true
		if s.ManifestList == "" && len(s.Manifests) == 0 && (*d.FormatVersion > 1 || s.Manifests == nil) {
			return fault.New(fault.Corrupt, "snapshot %d has neither manifest-list nor manifests", s.ID)
		}
	}
	// -1 is how some writers say that there is no current snapshot.
	current := int64(-1)
	if d.CurrentSnapshotID != nil {
		current = *d.CurrentSnapshotID
	}
	if current >= 0 && !ids[current] {
		return fault.New(fault.Corrupt, "current snapshot %d is not in snapshots", current)
	}
	if main, ok := d.Refs[table.MainBranch]; ok && current >= 0 && main.SnapshotID != current {
		return fault.New(fault.Corrupt, "current-snapshot-id is %d, but branch main stands at %d", current, main.SnapshotID)
	}
	return nil
}

// EncryptionKeyProperty is the table property that names the master key: a table that has it is encrypted.
const EncryptionKeyProperty = "encryption.key-id"

// KeysOf makes the key chain of a catalog's table, nil for one that is not encrypted. ring may be nil: the chain then says so when a
// key is needed.
func KeysOf(catalog string, m table.Metadata, x Extra, ring *encryption.Keyring) *encryption.Chain {
	id, ok := m.Properties()[EncryptionKeyProperty]
	if !ok {
		return nil
	}
	return encryption.NewChain(ring, catalog+" "+m.TableUUID().String(), id, x.EncryptionKeys)
}

func (d *document) extra() Extra {
	x := Extra{SnapshotKeyIDs: map[int64]string{}, Manifests: map[int64][]string{}, Defaults: d.defaults}
	for _, s := range d.Snapshots {
		if s.KeyID != nil {
			x.SnapshotKeyIDs[s.ID] = *s.KeyID
		}
		if s.ManifestList == "" {
			x.Manifests[s.ID] = s.Manifests
		}
	}
	for _, k := range d.EncryptionKeys {
		x.EncryptionKeys = append(x.EncryptionKeys, encryption.WrappedKey(k))
	}
	return x
}
