"""Encrypted Iceberg tables around Parquet files that pyarrow encrypts.

Only the AGS1 streams and the key chain are made here, after Iceberg's spec; the manifests are PyIceberg's, the Parquet modules
pyarrow's, the wrapping a key management service's.
"""
import base64
import datetime
import json
import os
import pathlib
import struct
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest, write_manifest_list
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "x", DoubleType()))
BLOCK = 1 << 20
MANIFEST_FIELDS = [f.name for f in MANIFEST_LIST_FILE_SCHEMAS[2].fields]


def rows(n):
    """The rows of every table: id, name and x."""
    return pa.table(
        {"id": range(n), "name": [None if i % 7 == 0 else f"name {i % 50}" for i in range(n)], "x": [i / 4 for i in range(n)]},
        schema=pa.schema([
            pa.field(f.name, t, metadata={b"PARQUET:field_id": str(f.field_id).encode()})
            for f, t in zip(SCHEMA.fields, (pa.int64(), pa.string(), pa.float64()))
        ]),
    )


def key_metadata(key, aad, length=None):
    """StandardKeyMetadata: a version byte and an Avro datum."""

    def varint(n):
        n, out = n << 1, b""
        while n > 0x7F:
            out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
        return out + bytes([n])

    head = b"\x01" + varint(len(key)) + key + varint(1) + varint(len(aad)) + aad
    return head + (varint(0) if length is None else varint(1) + varint(length))


def ags1(plain, key, aad):
    """An AGS1 stream."""
    out = b"AGS1" + struct.pack("<I", BLOCK)
    for i in range(max(1, -(-len(plain) // BLOCK))):
        nonce = os.urandom(12)
        out += nonce + AESGCM(key).encrypt(nonce, plain[i * BLOCK : (i + 1) * BLOCK], aad + struct.pack("<I", i))
    return out


def key_chain(wrap, master, kek, sealed):
    """The encryption-keys of a table whose one manifest list has the key metadata sealed."""
    stamp, nonce = "1781172301703", os.urandom(12)
    b64 = lambda b: base64.b64encode(b).decode()  # noqa: E731
    return {"encryption-keys": [
        {"key-id": "kek", "encrypted-by-id": master, "encrypted-key-metadata": b64(wrap(kek)), "properties": {"KEY_TIMESTAMP": stamp}},
        {"key-id": "list", "encrypted-by-id": "kek", "encrypted-key-metadata": b64(nonce + AESGCM(kek).encrypt(nonce, sealed, stamp.encode()))},
    ]}


def table(folder, wrap, master, bits=128, version="1.0", n=20_000, page=8192, **encryption):
    """Makes a table below folder whose key encryption key is wrapped by wrap(key) under master; with None for wrap the same table
    without encryption. Gives the secrets in it."""
    plain_table = wrap is None
    folder = pathlib.Path(folder)
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    secrets, io = [], PyArrowFileIO()

    def secret(size=16):
        secrets.append(os.urandom(size))
        return secrets[-1]

    key, aad = secret(bits // 8), os.urandom(16)
    data = folder / "data" / "1.parquet"
    pq.write_table(rows(n), data, data_page_version=version, row_group_size=n // 2, data_page_size=page, write_page_index=True,
                   encryption_properties=None if plain_table else
                   pe.create_encryption_properties(key, aad_prefix=aad, store_aad_prefix=False, **encryption))

    def seal(plain_path, path):
        if plain_table:
            os.rename(plain_path, path)
            return None, path.stat().st_size
        key, aad = secret(bits // 8), os.urandom(16)
        sealed = ags1(pathlib.Path(plain_path).read_bytes(), key, aad)
        os.remove(plain_path)
        path.write_bytes(sealed)
        return key_metadata(key, aad, len(sealed)), len(sealed)

    snapshot, plain = 1, str(folder / "plain")
    with write_manifest(2, UNPARTITIONED_PARTITION_SPEC, SCHEMA, io.new_output(plain), snapshot, "null") as w:
        w.add_entry(ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, sequence_number=None, file_sequence_number=None,
            data_file=DataFile.from_args(
                content=DataFileContent.DATA, file_path=str(data), file_format=FileFormat.PARQUET, partition=Record(), record_count=n,
                file_size_in_bytes=data.stat().st_size, key_metadata=None if plain_table else key_metadata(key, aad), column_sizes={}, value_counts={},
                null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={}, split_offsets=None, equality_ids=None, sort_order_id=None)))
    manifest = w.to_manifest_file()
    path = folder / "metadata" / "m1.avro"
    sealed, length = seal(plain, path)
    for name, value in {"manifest_path": str(path), "manifest_length": length, "key_metadata": sealed}.items():
        manifest[MANIFEST_FIELDS.index(name)] = value
    with write_manifest_list(2, io.new_output(plain), snapshot, None, 1, "null") as w:
        w.add_manifests([manifest])
    path = folder / "metadata" / "snap-1.avro"
    sealed, _ = seal(plain, path)

    chain = {} if plain_table else key_chain(wrap, master, secret(), sealed)
    now = int(datetime.datetime.now().timestamp() * 1000)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps({
        "format-version": 3, "table-uuid": str(uuid.uuid4()), "location": str(folder), "last-sequence-number": 1, "last-updated-ms": now,
        "last-column-id": 3, "current-schema-id": 0, "schemas": [json.loads(SCHEMA.model_dump_json())], "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}], "next-row-id": n, "properties": {} if plain_table else {"encryption.key-id": master}, "current-snapshot-id": snapshot,
        "snapshots": [{"snapshot-id": snapshot, "sequence-number": 1, "timestamp-ms": now, "manifest-list": str(path), "schema-id": 0,
                       "summary": {"operation": "append"}, "first-row-id": 0, "added-rows": n, **({} if plain_table else {"key-id": "list"})}],
        "refs": {"main": {"snapshot-id": snapshot, "type": "branch"}}, "snapshot-log": [], "metadata-log": [], "statistics": [],
        **chain,
    }))
    (folder / "metadata" / "version-hint.text").write_text("1")
    return secrets
