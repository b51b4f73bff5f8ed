#!/usr/bin/env python3
"""Reads tables with many equality deletes and measures time and memory from outside.

  run.py --warehouse DIR --skua BINARY

The warehouse comes from the Go program beside this file. 50,000 rows with 49,995 deletes give 5. The time of n data files by n delete files
grows with rows and keys and not with their product. Ten million keys give the right rows or an error that names the limit, and the process
never holds more than 256 MB, which is what limits.memory says: it counts
the program and what the collector has not yet freed.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

import adbc_driver_flightsql.dbapi as flightsql

MB = 1_000_000
LIMIT = 256 * MB


class Server:
    def __init__(self, args, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SKUA_", "GOMEMLIMIT", "GOGC"))}
        env.update(settings)
        self.process = subprocess.Popen([args.skua, "serve", "--listen", "127.0.0.1:0", "--catalog", "lake=" + args.warehouse], stderr=subprocess.PIPE, text=True, env=env)
        for line in self.process.stderr:
            found = re.search(r'"address":"([^"]+)"', line)
            if found:
                break
        else:
            sys.exit("the server did not start")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.con = flightsql.connect("grpc://" + found[1], autocommit=True)

    def one(self, sql):
        start = time.perf_counter()
        with self.con.cursor() as cur:
            cur.execute(sql)
            value = cur.fetchone()[0]
        return value, time.perf_counter() - start

    def peak(self):
        """The most memory that the process has held, in bytes, as the kernel counts it."""
        status = pathlib.Path("/proc/%d/status" % self.process.pid).read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024

    def close(self):
        self.con.close()
        self.process.terminate()
        self.process.wait()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--warehouse", required=True)
    p.add_argument("--skua", required=True)
    a = p.parse_args()
    bad = 0

    s = Server(a)
    got, seconds = s.one("SELECT count(*) FROM d.most")
    print("50,000 rows, 49,995 deleted: %d left, %.0f ms" % (got, 1000 * seconds))
    bad += got != 5
    per_row = {}
    for n in (50, 500):
        got, first = s.one("SELECT count(*) FROM d.files%d" % n)
        again = min(s.one("SELECT count(*) FROM d.files%d" % n)[1] for _ in range(3))
        bad += got != n * 900
        per_row[n] = first / (n * 1100)
        print("%d data files x %d delete files: %d left, first %.0f ms (%.2f us a row or key), again %.0f ms" % (n, n, got, 1000 * first, 1e6 * per_row[n], 1000 * again))
    # Ten times the rows and keys, a hundred times the pairs: linear time leaves the time a row as it is; what grows with pairs makes it ten times as long.
    if per_row[500] > 4 * per_row[50]:
        print("the time a row grows with the number of files")
        bad += 1
    s.close()

    s = Server(a, SKUA__LIMITS__MEMORY="256MB")
    idle = s.peak()
    try:
        got, seconds = s.one("SELECT count(*) FROM d.keys")
        outcome = "%d left in %.1f s" % (got, seconds)
        bad += got != 7
    except flightsql.Error as e:
        outcome = "refused: %s" % str(e).splitlines()[0]
        bad += not re.search(r"limits\.(query\.)?memory\)? needs \d+ more bytes, but its limit of \d+ bytes", str(e))
    peak = s.peak()
    print("10,000,000 keys in a process of 256 MB: %s; the process held %d MB at most, %d MB before" % (outcome, peak / MB, idle / MB))
    bad += peak > LIMIT
    got, _ = s.one("SELECT count(*) FROM d.most")
    bad += got != 5
    s.close()
    sys.exit("%d of these are wrong" % bad if bad else 0)


if __name__ == "__main__":
    main()
