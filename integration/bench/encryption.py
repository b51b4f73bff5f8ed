"""What decryption costs: the same rows encrypted and plain, read in alternation through one server. Prints plain time / encrypted time.

    build/venv/bin/python integration/bench/encryption.py --skua build/skua [--rows 3000000] [--bits 256]
"""
import argparse
import json
import os
import pathlib
import secrets
import statistics
import subprocess
import sys
import tempfile
import time

import adbc_driver_flightsql.dbapi as flightsql
import psutil
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "encryption"))
import lake  # noqa: E402

QUERIES = {
    "sum of one column": "SELECT sum(x) FROM lake.ns.%s",
    "all columns, grouped": "SELECT name, count(*), sum(x), max(id) FROM lake.ns.%s GROUP BY name",
    "2 % filter": "SELECT sum(x) FROM lake.ns.%s WHERE name = 'name 7'",
    "export": "SELECT * FROM lake.ns.%s",
}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--skua", required=True)
    p.add_argument("--rows", type=int, default=3_000_000)
    p.add_argument("--bits", type=int, default=256)
    p.add_argument("--rounds", type=int, default=9)
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        master = secrets.token_bytes(16)

        def wrap(key):
            nonce = os.urandom(12)
            return nonce + AESGCM(master).encrypt(nonce, key, None)

        lake.table(tmp / "w" / "ns" / "sealed", wrap, "master", bits=args.bits, n=args.rows, page=1 << 20)
        lake.table(tmp / "w" / "ns" / "plain", None, "master", n=args.rows, page=1 << 20)
        (tmp / "keys").write_text("master " + master.hex())
        os.chmod(tmp / "keys", 0o600)
        env = {**os.environ, "SKUA__ENCRYPTION__KMS__TYPE": "local", "SKUA__ENCRYPTION__KMS__KEY_FILE": str(tmp / "keys")}
        log = tmp / "log"
        with open(log, "w") as out:
            server = subprocess.Popen([args.skua, "serve", "--listen", "127.0.0.1:0", "--catalog", f"lake={tmp}/w"], stderr=out, env=env)
        try:
            address = None
            while not address:
                time.sleep(0.1)
                for line in log.read_text().splitlines():
                    if line.startswith("{"):
                        address = json.loads(line).get("address") or address
            with flightsql.connect("grpc://" + address, autocommit=True) as c, c.cursor() as cur:
                measure(cur, psutil.Process(server.pid), args)
        finally:
            server.terminate()
            server.wait()


def measure(cur, server, args):
    def once(sql):
        start = time.perf_counter()
        cur.execute(sql)
        cur.fetch_arrow_table()
        return time.perf_counter() - start

    def lookups(table):
        start = time.perf_counter()
        for i in range(50):
            cur.execute(f"SELECT * FROM lake.ns.{table} WHERE id = {i * 7919 % args.rows}")
            cur.fetch_arrow_table()
        return time.perf_counter() - start

    print(f"| {args.rows:,} rows, {args.bits} bits | plain ms | encrypted ms | plain / encrypted | the same of CPU time |\n|---|---|---|---|---|")
    for name, run in [*((n, lambda t, q=q: once(q % t)) for n, q in QUERIES.items()), ("50 lookups by key", lookups)]:
        times, cpu = {"plain": [], "sealed": []}, {"plain": 0.0, "sealed": 0.0}
        for i in range(args.rounds + 1):
            for t in ("plain", "sealed") if i % 2 else ("sealed", "plain"):
                before = sum(server.cpu_times()[:2])
                seconds = run(t)
                if i:
                    times[t].append(seconds)
                    cpu[t] += sum(server.cpu_times()[:2]) - before
        plain, sealed = (statistics.median(times[t]) * 1000 for t in ("plain", "sealed"))
        print(f"| {name} | {plain:.1f} | {sealed:.1f} | {plain / sealed:.2f} | {cpu['plain'] / max(cpu['sealed'], 0.01):.2f} |")


if __name__ == "__main__":
    main()
