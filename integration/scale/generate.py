"""Writes the table big.orders: five million rows with amount = (i mod 100) + 1 as DECIMAL(10,2), in four files.

generate.py WAREHOUSE
"""
import pathlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog.memory import InMemoryCatalog

ROWS, FILES = 5_000_000, 4

warehouse = pathlib.Path(sys.argv[1]).resolve()
table_dir = warehouse / "big" / "orders"
if table_dir.exists():
    shutil.rmtree(table_dir)
table_dir.mkdir(parents=True)
schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("customer", pa.int32()), pa.field("amount", pa.decimal128(10, 2)), pa.field("status", pa.string())])
catalog = InMemoryCatalog("local", warehouse=str(warehouse))
catalog.create_namespace("big")
table = catalog.create_table("big.orders", schema, location=str(table_dir))
for part in range(FILES):
    i = np.arange(part * ROWS // FILES, (part + 1) * ROWS // FILES, dtype=np.int64)
    amount = pc.cast(pa.array(i % 100 + 1), pa.decimal128(19, 0)).cast(pa.decimal128(10, 2))
    status = pa.array(np.array(["new", "paid", "sent"])[i % 3])
    table.append(pa.table([pa.array(i), pa.array((i * 7919 % 100_003).astype(np.int32)), amount, status], schema=schema))
# The layout of a warehouse folder: the newest metadata under the name that a Hadoop catalog gives it.
shutil.copy(table.metadata_location.removeprefix("file://"), table_dir / "metadata" / "v1.metadata.json")
for other in (table_dir / "metadata").glob("0*.metadata.json"):
    other.unlink()
(table_dir / "metadata" / "version-hint.text").write_text("1")
