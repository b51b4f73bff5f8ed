#!/usr/bin/env python3
"""Runs the same SQL on this server and on DuckDB over the same Iceberg tables, in alternation, and prints the ratios.

  compare.py SUITE --warehouse DIR --skua BINARY [--reps 5] [--only a,b] [--markdown FILE] [--threads 2]

SUITE is tpch (TPC-H's queries as DuckDB ships them; the tables lie in schema --schema) or scan (shapes of scans over
big.orders). For each query: one warm-up of each engine, then A B, B A, ... so that both meet the same neighbours. Only the
ratio of the medians of one run means anything on a shared machine: above 1, this server is faster. Both give Arrow tables: to turn
rows into objects of Python takes longer than many a query, and is no work of either engine. Answers are compared, row by row.
"""
import argparse
import decimal
import importlib
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time

import adbc_driver_flightsql.dbapi as flightsql
import duckdb

SCANS = {
    "count and sum, filtered": "SELECT count(*), sum(amount) FROM big.orders WHERE amount > 50.00",
    "sum of all": "SELECT sum(amount), min(id), max(id) FROM big.orders",
    "three groups": "SELECT status, count(*), sum(amount) FROM big.orders GROUP BY status ORDER BY status",
    "100,003 groups": "SELECT count(*), max(s) FROM (SELECT customer, sum(amount) AS s FROM big.orders GROUP BY customer) t",
    "one key": "SELECT id, customer, amount FROM big.orders WHERE id = 3456789",
    "top ten": "SELECT id, amount FROM big.orders ORDER BY amount DESC, id LIMIT 10",
    "self join": "SELECT count(*) FROM big.orders a JOIN big.orders b ON a.id = b.id WHERE b.customer < 1000",
}


def extension(name):
    module = importlib.import_module("duckdb_extension_" + name)
    return next(pathlib.Path(module.__file__).parent.rglob("*.duckdb_extension"))


def newest_metadata(table):
    hint = (table / "metadata" / "version-hint.text").read_text().strip()
    for name in ("v%s.metadata.json" % hint, "v%s.gz.metadata.json" % hint):
        if (table / "metadata" / name).exists():
            return table / "metadata" / name
    return sorted((table / "metadata").glob("*.metadata.json"))[-1]


class DuckDB:
    def __init__(self, args):
        self.con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for name in ("avro", "httpfs", "parquet", "iceberg", "tpch"):
            try:
                self.con.execute("LOAD '%s'" % extension(name))
            except ImportError:
                pass
        self.con.execute("SET threads=%d" % args.threads)
        self.con.execute("SET enable_progress_bar=false")
        for table in sorted(pathlib.Path(args.warehouse).glob("*/*")):
            if (table / "metadata").is_dir():
                self.con.execute('CREATE SCHEMA IF NOT EXISTS "%s"' % table.parent.name)
                self.con.execute("CREATE VIEW \"%s\".\"%s\" AS SELECT * FROM iceberg_scan('%s')" % (table.parent.name, table.name, newest_metadata(table)))
        if args.suite == "tpch":
            self.con.execute('USE "%s"' % args.schema)

    def run(self, sql):
        return self.con.execute(sql).to_arrow_table()


class Skua:
    def __init__(self, args):
        self.process = subprocess.Popen([args.skua, "serve", "--listen", "127.0.0.1:0", "--catalog", "lake=" + args.warehouse], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.search(r'"address":"([^"]+)"', line)
            if found:
                break
        else:
            sys.exit("the server did not start")
        self.con = flightsql.connect("grpc://" + found[1], autocommit=True)
        if args.suite == "tpch":
            self.con.adbc_current_db_schema = args.schema
        self.cursor = self.con.cursor()  # kept: the driver collects its garbage, for milliseconds, when one is closed

    def run(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

    def close(self):
        self.cursor.close()
        self.con.close()
        self.process.terminate()
        self.process.wait()


def close(x, y):
    """Equal values: a decimal against a double (DuckDB's avg of decimals) agrees to half a unit of the decimal's last digit."""
    numbers = (float, decimal.Decimal, int)
    if isinstance(x, numbers) and isinstance(y, numbers) and not isinstance(x, bool) and not isinstance(y, bool):
        places = [-v.as_tuple().exponent for v in (x, y) if isinstance(v, decimal.Decimal)]
        slack = 0.501 * 10 ** -min(places) if len(places) == 1 or len(places) == 2 and places[0] != places[1] else 0
        return abs(float(x) - float(y)) <= max(slack, 1e-9 * max(abs(float(x)), abs(float(y))))
    return str(x) == str(y)


def key(row):
    return tuple("%.6g" % v if isinstance(v, (float, decimal.Decimal)) else str(v) for v in row)


def same(a, b, ordered):
    if not ordered:
        a, b = sorted(a, key=key), sorted(b, key=key)
    return len(a) == len(b) and all(len(r) == len(s) and all(close(x, y) for x, y in zip(r, s)) for r, s in zip(a, b))


def timed(engine, sql):
    start = time.perf_counter()
    engine.run(sql)
    return time.perf_counter() - start


def rows(table):
    return list(zip(*(c.to_pylist() for c in table.columns)))


def compare(args, a, b, name, sql):
    rec = {"query": name}
    try:
        first, second = rows(a.run(sql)), rows(b.run(sql))
    except Exception as e:  # noqa: BLE001
        return {**rec, "error": str(e).split("\n")[0][:160]}
    ordered = "order by" in sql.lower()
    rec["answers"] = "same" if same(first, second, ordered) else "DIFFERENT"
    times = {"a": [], "b": []}
    for rep in range(args.reps):
        for who in ("ab" if rep % 2 == 0 else "ba"):
            times[who].append(timed(a if who == "a" else b, sql))
    rec["duckdb"], rec["skua"] = (statistics.median(times[k]) for k in "ab")
    rec["ratio"] = rec["duckdb"] / rec["skua"]
    return rec


def markdown(args, recs):
    load = open("/proc/loadavg").read().split()[0]
    lines = ["DuckDB %s and Skua, %d threads each, %d alternating runs, medians; load average at the end %s." % (duckdb.__version__, args.threads, args.reps, load), "",
             "| query | DuckDB ms | Skua ms | ratio | answers |", "|---|---|---|---|---|"]
    for r in recs:
        if "error" in r:
            lines.append("| %s | | | | %s |" % (r["query"], r["error"].replace("|", "/")))
        else:
            lines.append("| %s | %.1f | %.1f | %.2f | %s |" % (r["query"], r["duckdb"] * 1e3, r["skua"] * 1e3, r["ratio"], r["answers"]))
    ratios = [r["ratio"] for r in recs if "ratio" in r]
    if ratios:
        lines += ["", "Geometric mean of the ratios: %.2f (worst %.2f, above 1 in %d of %d)." % (
            math.exp(sum(map(math.log, ratios)) / len(ratios)), min(ratios), sum(r > 1 for r in ratios), len(recs))]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", choices=["tpch", "scan"])
    p.add_argument("--warehouse", required=True)
    p.add_argument("--skua", required=True)
    p.add_argument("--schema", default="tpch_sf0_1")
    p.add_argument("--reps", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only")
    p.add_argument("--json")
    p.add_argument("--markdown")
    args = p.parse_args()
    a, b = DuckDB(args), Skua(args)
    try:
        queries = SCANS if args.suite == "scan" else {
            "q%d" % n: q.strip().rstrip(";") for n, q in a.con.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()}
        if args.only:
            queries = {k: v for k, v in queries.items() if k in args.only.split(",")}
        recs = []
        for name, sql in queries.items():
            recs.append(compare(args, a, b, name, sql))
            print(recs[-1], flush=True)
    finally:
        b.close()
    text = markdown(args, recs)
    print(text)
    if args.markdown:
        pathlib.Path(args.markdown).write_text(text)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(recs, indent=1))
    if any(r.get("answers") == "DIFFERENT" for r in recs):
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
