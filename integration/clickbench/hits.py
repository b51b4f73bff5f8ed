#!/usr/bin/env python3
"""Forty-three queries of the shapes that a web analytics service asks of one wide table of page views, in Skua and in DuckDB.

hits.py build WAREHOUSE [--rows N]              writes the table web.hits, generated, as Iceberg
hits.py check WAREHOUSE --uri U [--catalog C]   asks both and compares: rows as multisets, numbers to nine digits

The columns and the questions are of our own wording; the shapes are those of the ClickBench suite: counts, filters on a rare value,
distinct counts, groups by few and by many values, text search, top lists, dates cut to minutes, wide sums, long conditions.
Where equal counts make a top list uncertain, its order ends with the key.
"""
import argparse
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "random"))


def batches(rows, size=250_000):
    import numpy as np
    import pyarrow as pa
    for at in range(0, rows, size):
        n = min(size, rows - at)
        r = np.random.default_rng(1000 + at)
        users = r.zipf(1.3, n) % 40_000
        words = np.array(["", "weather", "cheap flights", "news today", "car", "how to cook rice", "google maps", "phone", "музыка", "film 2013"])
        phrase = words[np.where(r.random(n) < 0.8, 0, r.integers(1, len(words), n))]
        number = r.integers(0, 3000, n)
        phrase = np.where((phrase != "") & (number < 900), np.char.add(np.char.add(phrase, " "), number.astype(str)), phrase)
        host = np.array(["example.org", "shop.example", "google.example", "video.example", "blog.example"])[r.integers(0, 5, n)]
        path = r.zipf(1.4, n) % 5000
        url = np.char.add(np.char.add(np.char.add("https://", host), "/p/"), path.astype(str))
        referer = np.where(r.random(n) < 0.4, "", np.char.add("https://www.", np.roll(url, 7).astype(str)))
        stamp = np.datetime64("2013-07-01T00:00:00", "us") + r.integers(0, 31 * 86400, n).astype("timedelta64[s]")
        yield pa.table({
            "view": pa.array(np.arange(at, at + n, dtype=np.int64) * 7_919 + 10**12),
            "seen": pa.array(stamp), "day": pa.array(stamp.astype("datetime64[D]")),
            "visitor": pa.array(users.astype(np.int64) * 1_000_003 + 435_090_932_899), "site": pa.array((r.zipf(1.5, n) % 600).astype(np.int32)),
            "region": pa.array((r.zipf(1.6, n) % 250).astype(np.int32)), "engine": pa.array(np.where(r.random(n) < 0.95, 0, r.integers(1, 20, n)).astype(np.int16).astype(np.int32)),
            "device": pa.array(r.integers(0, 5, n).astype(np.int32)), "model": pa.array(np.array(["", "", "", "iPad", "N900", "X10"])[r.integers(0, 6, n)]),
            "search": pa.array(phrase), "url": pa.array(url), "title": pa.array(np.char.add("Page ", (path % 800).astype(str))), "referer": pa.array(referer),
            "width": pa.array(r.choice(np.array([0, 1024, 1280, 1366, 1920, 2560], dtype=np.int32), n)), "height": pa.array(r.integers(0, 2000, n).astype(np.int32)),
            "ip": pa.array(r.integers(0, 2**31 - 1, n).astype(np.int32) % 60_000), "refresh": pa.array(r.random(n) < 0.1), "counted": pa.array(r.random(n) < 0.05),
            "link": pa.array(r.random(n) < 0.2), "download": pa.array(r.random(n) < 0.03), "source": pa.array(r.integers(-1, 9, n).astype(np.int32)),
            "hash": pa.array(path.astype(np.int64) * 31_415_927),
        })


SUMS = ", ".join("sum(width + %d)" % i for i in range(90))
QUERIES = [
    "SELECT count(*) FROM hits",
    "SELECT count(*) FROM hits WHERE engine <> 0",
    "SELECT sum(engine), count(*), avg(CAST(width AS double)) FROM hits",
    "SELECT avg(CAST(visitor AS double)) FROM hits",
    "SELECT count(DISTINCT visitor) FROM hits",
    "SELECT count(DISTINCT search) FROM hits",
    "SELECT min(day), max(day) FROM hits",
    "SELECT engine, count(*) AS n FROM hits WHERE engine <> 0 GROUP BY engine ORDER BY n DESC, engine",
    "SELECT region, count(DISTINCT visitor) AS u FROM hits GROUP BY region ORDER BY u DESC, region LIMIT 10",
    "SELECT region, sum(engine), count(*) AS n, avg(CAST(width AS double)), count(DISTINCT visitor) FROM hits GROUP BY region ORDER BY n DESC, region LIMIT 10",
    "SELECT model, count(DISTINCT visitor) AS u FROM hits WHERE model <> '' GROUP BY model ORDER BY u DESC, model LIMIT 10",
    "SELECT device, model, count(DISTINCT visitor) AS u FROM hits WHERE model <> '' GROUP BY device, model ORDER BY u DESC, device, model LIMIT 10",
    "SELECT search, count(*) AS n FROM hits WHERE search <> '' GROUP BY search ORDER BY n DESC, search LIMIT 10",
    "SELECT search, count(DISTINCT visitor) AS u FROM hits WHERE search <> '' GROUP BY search ORDER BY u DESC, search LIMIT 10",
    "SELECT engine, search, count(*) AS n FROM hits WHERE search <> '' GROUP BY engine, search ORDER BY n DESC, engine, search LIMIT 10",
    "SELECT visitor, count(*) AS n FROM hits GROUP BY visitor ORDER BY n DESC, visitor LIMIT 10",
    "SELECT visitor, search, count(*) AS n FROM hits GROUP BY visitor, search ORDER BY n DESC, visitor, search LIMIT 10",
    "SELECT count(*) FROM (SELECT visitor, search, count(*) FROM hits GROUP BY visitor, search LIMIT 10) t",
    "SELECT visitor, extract(MINUTE FROM seen) AS m, search, count(*) AS n FROM hits GROUP BY visitor, extract(MINUTE FROM seen), search ORDER BY n DESC, visitor, m, search LIMIT 10",
    "SELECT visitor FROM hits WHERE visitor = 435090932899 + 7 * 1000003",
    "SELECT count(*) FROM hits WHERE url LIKE '%google%'",
    "SELECT search, min(url), count(*) AS n FROM hits WHERE url LIKE '%google%' AND search <> '' GROUP BY search ORDER BY n DESC, search LIMIT 10",
    "SELECT search, min(url), min(title), count(*) AS n, count(DISTINCT visitor) FROM hits WHERE title LIKE '%7%' AND url NOT LIKE '%.google.%' AND search <> '' GROUP BY search ORDER BY n DESC, search LIMIT 10",
    "SELECT * FROM hits WHERE url LIKE '%google%' ORDER BY seen, view LIMIT 10",
    "SELECT search FROM hits WHERE search <> '' ORDER BY seen, search LIMIT 10",
    "SELECT search FROM hits WHERE search <> '' ORDER BY search LIMIT 10",
    "SELECT search FROM hits WHERE search <> '' ORDER BY seen, search, view LIMIT 10",
    "SELECT site, avg(CAST(length(url) AS double)) AS l, count(*) AS n FROM hits WHERE url <> '' GROUP BY site HAVING count(*) > 500 ORDER BY l DESC, site LIMIT 25",
    "SELECT regexp_replace(referer, '^https?://(?:www\\.)?([^/]+)/.*$', '%s') AS k, avg(CAST(length(referer) AS double)) AS l, count(*) AS n, min(referer) FROM hits WHERE referer <> '' GROUP BY 1 HAVING count(*) > 500 ORDER BY l DESC, k LIMIT 25",
    "SELECT %s FROM hits" % SUMS,
    "SELECT engine, ip, count(*) AS n, sum(CASE WHEN refresh THEN 1 ELSE 0 END), avg(CAST(width AS double)) FROM hits WHERE search <> '' GROUP BY engine, ip ORDER BY n DESC, engine, ip LIMIT 10",
    "SELECT view, ip, count(*) AS n, sum(CASE WHEN refresh THEN 1 ELSE 0 END), avg(CAST(width AS double)) FROM hits WHERE search <> '' GROUP BY view, ip ORDER BY n DESC, view, ip LIMIT 10",
    "SELECT view, ip, count(*) AS n, sum(CASE WHEN refresh THEN 1 ELSE 0 END), avg(CAST(width AS double)) FROM hits GROUP BY view, ip ORDER BY n DESC, view, ip LIMIT 10",
    "SELECT url, count(*) AS n FROM hits GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "SELECT 1, url, count(*) AS n FROM hits GROUP BY 1, url ORDER BY n DESC, url LIMIT 10",
    "SELECT ip, ip - 1, ip - 2, ip - 3, count(*) AS n FROM hits GROUP BY ip, ip - 1, ip - 2, ip - 3 ORDER BY n DESC, ip LIMIT 10",
    "SELECT url, count(*) AS n FROM hits WHERE site = 3 AND day >= DATE '2013-07-01' AND day <= DATE '2013-07-31' AND NOT counted AND NOT refresh AND url <> '' GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "SELECT title, count(*) AS n FROM hits WHERE site = 3 AND day BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND NOT counted AND NOT refresh AND title <> '' GROUP BY title ORDER BY n DESC, title LIMIT 10",
    "SELECT url, count(*) AS n FROM hits WHERE site = 3 AND day >= DATE '2013-07-01' AND NOT refresh AND link AND NOT download GROUP BY url ORDER BY n DESC, url LIMIT 10 OFFSET 20",
    "SELECT source, engine, CASE WHEN engine = 0 AND source = 0 THEN referer ELSE '' END AS src, url AS dst, count(*) AS n FROM hits WHERE site = 3 AND NOT refresh GROUP BY source, engine, CASE WHEN engine = 0 AND source = 0 THEN referer ELSE '' END, url ORDER BY n DESC, source, engine, src, dst LIMIT 10 OFFSET 100",
    "SELECT hash, day, count(*) AS n FROM hits WHERE site = 3 AND NOT refresh AND source IN (-1, 6) GROUP BY hash, day ORDER BY n DESC, hash, day LIMIT 10 OFFSET 10",
    "SELECT width, height, count(*) AS n FROM hits WHERE site = 3 AND NOT refresh AND NOT counted AND hash < 31415927000 GROUP BY width, height ORDER BY n DESC, width, height LIMIT 10 OFFSET 100",
    "SELECT date_trunc('minute', seen) AS m, count(*) AS n FROM hits WHERE site = 3 AND day BETWEEN DATE '2013-07-14' AND DATE '2013-07-15' AND NOT refresh AND NOT counted GROUP BY date_trunc('minute', seen) ORDER BY m LIMIT 10 OFFSET 100",
]


def build(warehouse, rows):
    import numpy as np  # noqa: F401
    from pyiceberg.catalog.memory import InMemoryCatalog
    where = warehouse / "web" / "hits"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    catalog = InMemoryCatalog("local", warehouse=str(warehouse))
    catalog.create_namespace("web")
    table = None
    for t in batches(rows):
        table = table or catalog.create_table("web.hits", t.schema, location=str(where))
        table.append(t)
    # The layout of a warehouse folder: the newest metadata under the name that a Hadoop catalog gives it.
    metadata = where / "metadata"
    shutil.copy(table.metadata_location.removeprefix("file://"), metadata / "v1.metadata.json")
    for other in metadata.glob("0*.metadata.json"):
        other.unlink()
    (metadata / "version-hint.text").write_text("1")


def check(warehouse, uri, catalog):
    import duckdb
    import run
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'; CREATE VIEW hits AS SELECT * FROM read_parquet('%s/web/hits/data/**/*.parquet')" % warehouse)
    skua = run.Skua(uri, catalog)
    skua.con.adbc_current_db_schema = "web"
    assert len(QUERIES) == 43
    bad = 0
    for i, q in enumerate(QUERIES, 1):
        want = con.execute(q.replace("%s", "\\1") if "regexp" in q else q).fetchall()
        try:
            got = skua.rows(q.replace("%s", "$1") if "regexp" in q else q)
        except Exception as e:  # noqa: BLE001
            bad += 1
            print("query %d: %s" % (i, str(e).split("\n")[0]))
            continue
        if not want:
            bad += 1
            print("query %d finds no row: it proves nothing" % i)
        if not run.near(run.bag(want), run.bag(got)):
            bad += 1
            print("query %d: want %s, got %s" % (i, want[:3], got[:3]))
    print("%d of %d queries equal DuckDB's" % (len(QUERIES) - bad, len(QUERIES)))
    return 1 if bad else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["build", "check"])
    p.add_argument("warehouse", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--uri")
    p.add_argument("--catalog", default="lake")
    a = p.parse_args()
    if a.what == "build":
        build(a.warehouse, a.rows)
        return 0
    return check(a.warehouse, a.uri, a.catalog)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the drivers' threads need no farewell
