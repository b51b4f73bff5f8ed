#!/usr/bin/env python3
"""Compares Skua with DuckDB, and with itself, on random queries.

run.py --uri grpc://127.0.0.1:31337 --catalog lake [--seed N] [--count N]

Every query is answered by both engines over the same rows (tables.py); the answers must be equal as multisets, numbers to nine digits.
Of every ten queries one is checked against Skua itself instead: the rows where a predicate is true, false and unknown must be all the
rows (ternary-logic partitioning), and as many rows must pass a filter as have a true predicate (which keeps it from the optimizer).
An error of Skua that DuckDB does not have is a difference, but for overflow, which is an error in both at other sizes. The seed of a
query is printed with it: --seed S --count 1 repeats it.
"""
import argparse
import collections
import datetime as dt
import decimal
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import queries  # noqa: E402
import tables  # noqa: E402


def plain(v):
    if v is None or isinstance(v, (bool, str)):
        return v
    if isinstance(v, (int, float, decimal.Decimal)):
        f = float(v)
        return "NaN" if f != f else float("%.9g" % f) + 0.0
    if isinstance(v, dt.datetime):
        return v.isoformat()
    if isinstance(v, dt.date):
        return v.isoformat()
    return str(v)


def bag(rows):
    return collections.Counter(tuple(plain(v) for v in r) for r in rows)


def near(a, b):
    """Equal, or equal but for the last digits of numbers: rounding to nine digits can fall on either side."""
    if a == b:
        return True
    x, y = sorted((a - b).elements(), key=repr), sorted((b - a).elements(), key=repr)
    same = lambda p, q: p == q or isinstance(p, float) and isinstance(q, float) and abs(p - q) <= 1e-7 * max(abs(p), abs(q), 1e-2)  # noqa: E731
    return len(x) == len(y) and all(len(r) == len(s) and all(map(same, r, s)) for r, s in zip(x, y))


class Skua:
    def __init__(self, uri, catalog):
        import adbc_driver_flightsql.dbapi as flight
        self.con = flight.connect(uri, autocommit=True)
        self.con.adbc_current_catalog = catalog
        self.con.adbc_current_db_schema = "rnd"

    def rows(self, text):
        with self.con.cursor() as cur:
            cur.execute(text)
            t = cur.fetch_arrow_table()
            return list(zip(*[c.to_pylist() for c in t.columns])) if t.num_columns else []


def duck():
    import duckdb
    con = duckdb.connect()
    con.execute("SET threads = 1; SET TimeZone = 'UTC'")
    for name, t in tables.arrow_tables().items():
        con.register("arrow_" + name, t)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow_{name}")
    return con


def differential(skua, con, seed):
    """-> None, or what differs; 'refused' when DuckDB does not answer."""
    text = queries.Maker(seed).query()
    try:
        want = con.execute(text).fetchall()
    except Exception as e:  # noqa: BLE001
        return ("refused", text, str(e).split("\n")[0])
    try:
        got = skua.rows(text)
    except Exception as e:  # noqa: BLE001
        why = str(e).split("\n")[0]
        return None if "NUMERIC_VALUE_OUT_OF_RANGE" in why else ("error", text, why)
    a, b = bag(want), bag(got)
    if near(a, b):
        return None
    return ("rows", text, "DuckDB alone %s; Skua alone %s" % (list((a - b).items())[:3], list((b - a).items())[:3]))


def alone(skua, seed):
    whole, parts, (src, p) = queries.Maker(seed).partitioned()
    try:
        a = bag(skua.rows(whole))
        b = sum((bag(skua.rows(t)) for t in parts), collections.Counter())
        if a != b:
            return ("partition", parts[0], "whole alone %s; parts alone %s" % (list((a - b).items())[:3], list((b - a).items())[:3]))
        filtered = skua.rows("SELECT count(*), sum(1) FROM %s WHERE %s" % (src, p))
        counted = skua.rows("SELECT count(CASE WHEN %s THEN 1 END), sum(CASE WHEN %s THEN 1 END) FROM %s" % (p, p, src))
        if filtered != counted:
            return ("filter", parts[0], "filtered %s, counted %s" % (filtered, counted))
    except Exception as e:  # noqa: BLE001
        why = str(e).split("\n")[0]
        return None if "NUMERIC_VALUE_OUT_OF_RANGE" in why else ("error", parts[0], why)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--uri", required=True)
    p.add_argument("--catalog", default="lake")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=1000)
    a = p.parse_args()
    assert near(bag([(1, 2.0)]), bag([(1.0, 2.00000000001)])) and not near(bag([(1,)]), bag([(2,)])) and not near(bag([(None,)]), bag([(None,)] * 2))
    skua, con = Skua(a.uri, a.catalog), duck()
    tally, bad = collections.Counter(), 0
    for seed in range(a.seed, a.seed + a.count):
        found = alone(skua, seed) if seed % 10 == 0 else differential(skua, con, seed)
        tally[found[0] if found else "same"] += 1
        if found and found[0] != "refused":
            bad += 1
            if bad <= 20:
                print("seed %d: %s\n  %s\n  %s" % (seed, found[0], found[1], found[2]), flush=True)
        if found and found[0] == "refused" and tally["refused"] <= 3:
            print("seed %d: DuckDB refuses: %s" % (seed, found[2]), flush=True)
    print("%d queries: %s" % (a.count, dict(tally)))
    if tally["refused"] * 20 > a.count:
        print("DuckDB refused more than one query in twenty: the generator has lost the common ground")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the drivers' threads need no farewell
