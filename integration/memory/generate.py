"""Writes the table mem.wide for the memory tests: rows of about 110 bytes, all keys different, in no order.

generate.py WAREHOUSE ROWS
"""
import pathlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.memory import InMemoryCatalog

ROWS_A_FILE = 1_000_000
STEP = 7_368_787  # a prime: i * STEP mod rows visits every number once
PAD = "x" * 70

warehouse, rows = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])
table_dir = warehouse / "mem" / "wide"
if table_dir.exists():
    shutil.rmtree(table_dir)
table_dir.mkdir(parents=True)
schema = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("v", pa.int32()), ("g", pa.int32()), ("one", pa.int32()), ("text", pa.string())])
catalog = InMemoryCatalog("local", warehouse=str(warehouse))
catalog.create_namespace("mem")
table = catalog.create_table("mem.wide", schema, location=str(table_dir))
for low in range(0, rows, ROWS_A_FILE):
    i = np.arange(low, min(low + ROWS_A_FILE, rows), dtype=np.int64)
    ids = i * STEP % rows
    text = pc.binary_join_element_wise(pc.utf8_lpad(pc.cast(pa.array(ids), pa.string()), 10, "0"), PAD, "-")
    columns = [ids, ids * 1_000_003 + 7, (ids % 1000).astype(np.int32), (ids % 7).astype(np.int32), np.ones(len(ids), np.int32)]
    table.append(pa.table([pa.array(c) for c in columns] + [text], schema=schema))
# The layout of a warehouse folder: the newest metadata under the name that a Hadoop catalog gives it.
shutil.copy(table.metadata_location.removeprefix("file://"), table_dir / "metadata" / "v1.metadata.json")
for other in (table_dir / "metadata").glob("0*.metadata.json"):
    other.unlink()
(table_dir / "metadata" / "version-hint.text").write_text("1")
