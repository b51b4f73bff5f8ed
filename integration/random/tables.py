"""The small tables that random queries read: generated from a seed, written as Iceberg and loaded into DuckDB.

tables.py WAREHOUSE
"""
import datetime as dt
import decimal
import pathlib
import random
import shutil
import sys

import pyarrow as pa

# Column names are distinct over all tables, so that references need no qualification.
SCHEMAS = {
    "t1": [("a1", "int"), ("a2", "int"), ("a3", "long"), ("a4", "dec"), ("a5", "str"), ("a6", "date"), ("a7", "bool"), ("a8", "double")],
    "t2": [("b1", "int"), ("b2", "int"), ("b3", "str"), ("b4", "dec"), ("b5", "date"), ("b6", "double")],
    "t3": [("c1", "int"), ("c2", "str"), ("c3", "bool"), ("c4", "long"), ("c5", "ts")],
    "t4": [("d1", "int"), ("d2", "str")],
}
ROWS = {"t1": 60, "t2": 25, "t3": 12, "t4": 0}
ARROW = {"int": pa.int32(), "long": pa.int64(), "dec": pa.decimal128(9, 2), "str": pa.string(), "date": pa.date32(), "bool": pa.bool_(),
         "double": pa.float64(), "ts": pa.timestamp("us")}


def value(r, kind):
    if r.random() < 0.2:
        return None
    return {
        "int": lambda: r.randint(-3, 12),
        "long": lambda: r.choice([0, 1, 7, -1, 10**10, -(10**12), r.randint(-50, 50)]),
        "dec": lambda: decimal.Decimal(r.randint(-2000, 2000)).scaleb(-2),
        "str": lambda: r.choice(["", "a", "b", "ab", "abc", "B", "é", "x_y", "50%", " pad ", "zz"]),
        "date": lambda: dt.date(2024, 1, 1) + dt.timedelta(days=r.randint(-400, 400)),
        "bool": lambda: r.random() < 0.5,
        "double": lambda: r.choice([0.0, 1.5, -2.25, 1e10, r.randint(-100, 100) / 8]),
        "ts": lambda: dt.datetime(2024, 2, 28, 23, 0) + dt.timedelta(minutes=r.randint(-5000, 5000), microseconds=r.choice([0, 0, 500000])),
    }[kind]()


def arrow_tables(seed=1):
    r = random.Random(seed)
    out = {}
    for name, columns in SCHEMAS.items():
        rows = [[value(r, k) for _, k in columns] for _ in range(ROWS[name])]
        out[name] = pa.table([pa.array([row[i] for row in rows], type=ARROW[k]) for i, (_, k) in enumerate(columns)],
                             schema=pa.schema([(n, ARROW[k]) for n, k in columns]))
    return out


def write(warehouse):
    from pyiceberg.catalog.memory import InMemoryCatalog
    warehouse = pathlib.Path(warehouse).resolve()
    shutil.rmtree(warehouse / "rnd", ignore_errors=True)
    catalog = InMemoryCatalog("local", warehouse=str(warehouse))
    catalog.create_namespace("rnd")
    for name, t in arrow_tables().items():
        where = warehouse / "rnd" / name
        where.mkdir(parents=True)
        table = catalog.create_table("rnd." + name, t.schema, location=str(where))
        for at in range(0, t.num_rows, 20):
            table.append(t.slice(at, 20))
        # The layout of a warehouse folder: the newest metadata under the name that a Hadoop catalog gives it.
        metadata = where / "metadata"
        shutil.copy(table.metadata_location.removeprefix("file://"), metadata / "v1.metadata.json")
        for other in metadata.glob("0*.metadata.json"):
            other.unlink()
        (metadata / "version-hint.text").write_text("1")


if __name__ == "__main__":
    write(sys.argv[1])
