package scanner

import (
	"context"

	"github.com/skua-db/skua/deletes"
	"github.com/skua-db/skua/encryption"
	"github.com/skua-db/skua/fault"
	"github.com/skua-db/skua/scanner/manifest"
	"github.com/skua-db/skua/scanner/parquet"
	"github.com/skua-db/skua/storage"
)

// keyOf parses the key metadata of a file. In an encrypted table every file has some, and in another one none has: what
// contradicts that is refused, for it is what a forger would leave, unless the configuration accepts plain files.
func (sc *scan) keyOf(metadata []byte) (m encryption.KeyMetadata, encrypted bool, err error) {
	keys := sc.r.Table.Keys
	switch {
	case metadata == nil && (keys == nil || keys.Accepted().PlainFiles):
		return m, false, nil
	case metadata == nil:
		return m, false, fault.New(fault.Corrupt, "it has no key metadata, but its table is encrypted")
	case keys == nil:
		return m, false, fault.New(fault.Corrupt, "it has key metadata, but its table names no key (encryption.key-id)")
	}
	m, err = encryption.ParseKeyMetadata(metadata)
	return m, true, err
}

// decrypted opens an encrypted stream of the given stored length.
func (sc *scan) decrypted(ctx context.Context, path string, size int64, metadata []byte) (storage.Object, error) {
	m, _, err := sc.keyOf(metadata)
	if err != nil {
		return nil, err
	}
	o, err := sc.r.Table.Store.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	s, err := encryption.OpenStream(ctx, o, m, size)
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	return s, nil
}

// storeOf gives the store that a manifest list or manifest is read through: the table's, or one that decrypts.
func (sc *scan) storeOf(m encryption.KeyMetadata, encrypted bool) storage.Store {
	if !encrypted {
		return sc.r.Table.Store
	}
	return decrypting{sc.r.Table.Store, m, sc.r.Table.Keys.Accepted().UnauthenticatedListLength}
}

// sealedUnder gives the key of a manifest list for the name of what the caches hold of it.
func sealedUnder(m encryption.KeyMetadata, encrypted bool) []byte {
	if !encrypted {
		return nil
	}
	return append(append([]byte(nil), m.Key...), m.AADPrefix...)
}

// decrypting opens streams under one key. Sizes are lengths as stored. Only a manifest list may have a length that nobody vouches for:
// all else is named by an authenticated parent.
type decrypting struct {
	storage.Store
	key       encryption.KeyMetadata
	anyLength bool
}

func (d decrypting) Open(ctx context.Context, path string, size int64) (storage.Object, error) {
	o, err := d.Store.Open(ctx, path, size)
	if err != nil {
		return nil, err
	}
	if d.anyLength && size < 0 && d.key.Length < 0 {
		size = o.Size()
	}
	s, err := encryption.OpenStream(ctx, o, d.key, size)
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	return s, nil
}

// listKey gives the key of a snapshot's manifest list.
func (sc *scan) listKey(ctx context.Context, snapshotID int64) (m encryption.KeyMetadata, encrypted bool, err error) {
	t := sc.r.Table
	id, named := t.Extra.SnapshotKeyIDs[snapshotID]
	switch {
	case t.Keys == nil && !named:
		return m, false, nil
	case t.Keys == nil:
		return m, false, fault.New(fault.Corrupt, "snapshot %d names an encryption key, but the table names none (encryption.key-id)", snapshotID)
	case !named && t.Keys.Accepted().PlainSnapshots:
		return m, false, nil
	case !named:
		return m, false, fault.New(fault.Corrupt, "snapshot %d of an encrypted table has no key-id", snapshotID)
	}
	m, err = t.Keys.ManifestList(ctx, id)
	return m, true, fault.Wrap(fault.Corrupt, err, "snapshot %d", snapshotID)
}

// readFooter reads a Parquet footer, by its key when it has one.
func (sc *scan) readFooter(ctx context.Context, o storage.Object, name string, metadata []byte) (*parquet.Footer, error) {
	m, encrypted, err := sc.keyOf(metadata)
	if err != nil {
		return nil, err
	}
	if !encrypted {
		return parquet.ReadFooter(ctx, o, name)
	}
	return parquet.ReadEncryptedFooter(ctx, o, name, func(f parquet.FileCrypto) (parquet.Modules, error) {
		if f.UnauthenticatedPages && !sc.r.Table.Keys.Accepted().UnauthenticatedPages {
			return nil, fault.New(fault.Unsupported, "its pages are encrypted without authentication (AES_GCM_CTR_V1), so that nobody would see them altered; encryption.accept: [unauthenticated-pages] takes that risk")
		}
		return m.Parquet(encryption.ParquetAlgorithm(f))
	})
}

// checkKey refuses a data file whose key says what its table does not, before anything is told of its rows.
func (f *dataFile) checkKey() error {
	_, encrypted, err := f.sc.keyOf(f.key)
	if err == nil && encrypted && f.format == manifest.ORC {
		return fault.New(fault.Corrupt, "it is an ORC file with key metadata, and ORC has no encryption that Iceberg uses")
	}
	return err
}

// deleteObject opens a delete file or the Puffin file of a vector. Parquet files decrypt their modules themselves.
func (sc *scan) deleteObject(ctx context.Context, open string, d *deletes.File) (storage.Object, error) {
	if d.KeyMetadata == nil || d.Format == "parquet" {
		return sc.object(ctx, open, d.Size)
	}
	return sc.decrypted(ctx, open, d.Size, d.KeyMetadata)
}
