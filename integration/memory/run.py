#!/usr/bin/env python3
"""Runs queries that need far more memory than they may have, and measures the server's memory from outside.

  run.py --warehouse DIR --skua BINARY --rows N [--limit 256MB] [--slack 150] [--only a,b] [--markdown FILE]

The table mem.wide comes from generate.py with the same number of rows. Each query must finish with the right answer, or be
refused by an error that names the operator, what it wanted and the setting; the whole process may never hold more than the
limit of a query and the slack (MB); and no temporary file may be left.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import adbc_driver_flightsql.dbapi as flightsql

MB = 1_000_000


def queries(n):
    """Name -> (SQL, its rows). A row of None stands for rows in order that are checked as they come."""
    half, ids = n // 2, n * (n - 1) // 2
    text = 81 * n
    return {
        "join": ("SELECT count(*), sum(length(a.text)), sum(length(b.text)), sum(b.v) FROM mem.wide a JOIN mem.wide b ON a.k = b.k WHERE b.id < %d" % half,
                 [(half, 81 * half, 81 * half, total(half))]),
        "join of one key": ("SELECT count(*), sum(b.id) FROM (SELECT one, id FROM mem.wide WHERE id < 4) a JOIN mem.wide b ON a.one = b.one AND length(b.text) > a.id",
                            [(4 * n, 4 * ids)]),
        "join without keys": ("SELECT count(*), max(length(b.text)) FROM (SELECT id FROM mem.wide WHERE id < 3) a LEFT JOIN (SELECT id, text FROM mem.wide) b ON b.id >= a.id AND length(b.text) > 5",
                              [(3 * n - 3, 81)]),
        "distinct": ("SELECT count(*), sum(v) FROM (SELECT DISTINCT k, v FROM mem.wide) t", [(n, total(n))]),
        "group by": ("SELECT count(*), sum(c), sum(s), max(l) FROM (SELECT k, count(*) AS c, sum(v) AS s, max(v) AS l FROM mem.wide GROUP BY k) t", [(n, n, total(n), 999)]),
        "count distinct": ("SELECT count(DISTINCT k), count(DISTINCT v), sum(v), count(*) FROM mem.wide", [(n, 1000, total(n), n)]),
        "count distinct by group": ("SELECT g, count(DISTINCT k) AS d, count(*) AS c, sum(v) AS s FROM mem.wide GROUP BY g ORDER BY g",
                                    [(g, groups(n, g), groups(n, g), sum_of(n, g)) for g in range(7)]),
        "sort": ("SELECT id, text FROM mem.wide ORDER BY text", None),
        "window, small partitions": ("SELECT count(*), sum(r), sum(length(text)) FROM (SELECT text, row_number() OVER (PARTITION BY id / 10 ORDER BY id) AS r FROM mem.wide) t",
                                     [(n, tens(n), text)]),
        "window, several partitions": ("SELECT count(*), sum(r), sum(c), sum(length(text)) FROM (SELECT text, row_number() OVER (PARTITION BY g ORDER BY id) AS r, count(*) OVER (PARTITION BY g) AS c FROM mem.wide) t",
                                       [(n, sum(triangle(groups(n, g)) for g in range(7)), sum(groups(n, g) ** 2 for g in range(7)), text)]),
        "window, one partition": ("SELECT count(*), sum(r), max(s), sum(length(p)), sum(length(text)) FROM (SELECT text, rank() OVER (ORDER BY id) AS r, "
                                  "sum(one) OVER (ORDER BY id) AS s, lag(text) OVER (ORDER BY id) AS p FROM mem.wide) t",
                                  [(n, triangle(n), n, 81 * (n - 1), text)]),
    }


def total(n):
    whole, rest = divmod(n, 1000)
    return whole * 499_500 + rest * (rest - 1) // 2


def groups(n, g):
    return (n - g + 6) // 7


def sum_of(n, g):
    """The sum of id mod 1000 over the ids below n that are g mod 7."""
    period = 7000
    block = sum(i % 1000 for i in range(g, period, 7))
    whole, rest = divmod(n, period)
    return whole * block + sum(i % 1000 for i in range(g, rest, 7))


def triangle(n):
    return n * (n + 1) // 2


def tens(n):
    whole, rest = divmod(n, 10)
    return whole * 55 + triangle(rest)


def size(text):
    number, unit = re.fullmatch(r"(\d+)([MG]i?B)", text).groups()
    return int(number) * {"MB": MB, "MiB": 1 << 20, "GB": 1000 * MB, "GiB": 1 << 30}[unit]


class Server:
    def __init__(self, args, spill, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SKUA_", "GOMEMLIMIT", "GOGC"))}
        env.update(SKUA__LIMITS__QUERY__MEMORY=args.limit, SKUA__LIMITS__SPILL__DIR=spill, **settings)
        self.process = subprocess.Popen([args.skua, "serve", "--listen", "127.0.0.1:0", "--catalog", "lake=" + args.warehouse], stderr=subprocess.PIPE, text=True, env=env)
        for line in self.process.stderr:
            found = re.search(r'"address":"([^"]+)"', line)
            if found:
                break
        else:
            sys.exit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.con = flightsql.connect("grpc://" + found[1], autocommit=True)

    def peak(self):
        """The most memory that the process has held since reset, in bytes, as the kernel counts it."""
        status = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def reset(self):
        pathlib.Path("/proc/%d/clear_refs" % self.process.pid).write_text("5")

    def close(self):
        self.con.close()
        self.process.terminate()
        self.process.wait()


def in_order(cur, n):
    """Rows of the sort: all of them, by id, which is the order of the text."""
    at = 0
    for batch in cur.fetch_record_batch():
        ids = batch.column(0).to_numpy()
        if not (ids == range(at, at + len(ids))).all():
            sys.exit("the sort's rows are not in order at row %d" % at)
        at += len(ids)
    if at != n:
        sys.exit("the sort gave %d rows of %d" % (at, n))


def left_over(spill):
    return [str(p) for p in pathlib.Path(spill).rglob("query-*")]


def clear_refusal(text):
    return "EXCEEDED_MEMORY_LIMIT" in text and "limits.query.memory" in text and re.search(r"operator \S.* wanted \d+ bytes", text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--warehouse", required=True)
    p.add_argument("--skua", required=True)
    p.add_argument("--rows", type=int, required=True)
    p.add_argument("--limit", default="256MB")
    p.add_argument("--slack", type=int, default=150)
    p.add_argument("--only")
    p.add_argument("--refusals", type=int, default=0, help="how many queries may be refused instead of answered")
    p.add_argument("--markdown")
    args = p.parse_args()
    spill = tempfile.mkdtemp(prefix="skua-memory-")
    bound = size(args.limit) + args.slack * MB
    failed, refused, lines = [], 0, ["| query | seconds | most memory, MB | |", "|---|---|---|---|"]
    server = Server(args, spill)
    try:
        for name, (sql, want) in queries(args.rows).items():
            if args.only and name not in args.only.split(","):
                continue
            server.reset()
            start, verdict = time.time(), "right"
            with server.con.cursor() as cur:
                try:
                    cur.execute(sql)
                    if want is None:
                        in_order(cur, args.rows)
                    else:
                        got = [tuple(int(v) for v in row) for row in cur.fetchall()]
                        if got != want:
                            verdict = "WRONG: %s, not %s" % (got, want)
                            failed.append(name)
                except flightsql.Error as e:
                    verdict = "refused: " + str(e).split("\n")[0][:300]
                    refused += 1
                    if not clear_refusal(str(e)):
                        failed.append(name)
            peak = server.peak()
            if peak > bound:
                verdict += ", TOO MUCH MEMORY"
                failed.append(name)
            if left_over(spill):
                verdict += ", FILES LEFT"
                failed.append(name)
            lines.append("| %s | %.1f | %.0f | %s |" % (name, time.time() - start, peak / MB, verdict))
            print(lines[-1], flush=True)
    finally:
        server.close()
    if refused > args.refusals:
        failed.append("%d refusals" % refused)
    # A disk that is too small: a clear error, nothing left, and the server goes on.
    server = Server(args, spill, SKUA__LIMITS__SPILL__MAX="4MB")
    try:
        for name in ("sort", "join", "group by", "window, one partition"):
            with server.con.cursor() as cur:
                try:
                    cur.execute(queries(args.rows)[name][0])
                    cur.fetchall()
                    failed.append(name + " on a full disk did not fail")
                except flightsql.Error as e:
                    if "limits.spill.max" not in str(e):
                        failed.append("%s on a full disk: %s" % (name, e))
            if left_over(spill):
                failed.append(name + " on a full disk left files")
        with server.con.cursor() as cur:
            cur.execute("SELECT count(*) FROM mem.wide")
            if cur.fetchone() != (args.rows,):
                failed.append("the server after a full disk")
    finally:
        server.close()
    if os.listdir(spill):
        failed.append("left at the end: %s" % os.listdir(spill))
    shutil.rmtree(spill)
    text = "%d rows, limits.query.memory %s, bound %d MB\n\n" % (args.rows, args.limit, bound // MB) + "\n".join(lines) + "\n"
    if args.markdown:
        pathlib.Path(args.markdown).write_text(text)
    if failed:
        sys.exit("failed: " + "; ".join(failed))
    print("all within %d MB" % (bound // MB))


main()
