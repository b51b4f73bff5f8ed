"""adbc_driver_flightsql against a running server."""
import multiprocessing
import os
import threading
import time

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow as pa
import pytest

import cases


def connect(uri=None, password=None, **options):
    return flightsql.connect(uri or cases.URI, autocommit=True, db_kwargs={
        "username": cases.USER, "password": password or cases.PASSWORD, "adbc.flight.sql.client_option.tls_root_certs": cases.CA, **options})


@pytest.fixture(scope="module")
def conn():
    with connect() as c:
        yield c


@pytest.mark.parametrize("case", cases.CASES, ids=lambda c: c["name"])
def test_case(conn, case):
    with conn.cursor() as cur:
        if "error" in case:
            with pytest.raises(Exception) as e:
                cur.execute(case["sql"])
                cur.fetch_arrow_table()
            cases.expect_error(case, e.value)
            return
        for _ in range(2):
            cur.execute(case["sql"], cases.parameters(case) if "params" in case else None)
            cases.expect(case, cur.fetch_arrow_table())


def test_pandas(conn):
    with conn.cursor() as cur:
        cur.execute("SELECT * FROM tpch.nation ORDER BY n_nationkey")
        df = cur.fetch_df()
    assert list(df["n_name"][:2]) == ["ALGERIA", "ARGENTINA"]


def test_objects(conn):
    catalogs = conn.adbc_get_objects(depth="all").read_all().to_pylist()
    assert [c["catalog_name"] for c in catalogs] == ["demo"]
    schemas = {s["db_schema_name"]: s for s in catalogs[0]["catalog_db_schemas"]}
    assert set(schemas) == {"tpch", "samples"}
    nation = [t for t in schemas["tpch"]["db_schema_tables"] if t["table_name"] == "nation"][0]
    assert [c["column_name"] for c in nation["table_columns"]] == ["n_nationkey", "n_name", "n_regionkey", "n_comment"]


def test_table_schema(conn):
    schema = conn.adbc_get_table_schema("orders", catalog_filter="demo", db_schema_filter="tpch")
    assert schema.field("o_totalprice").type == pa.decimal128(15, 2)
    assert not schema.field("o_orderkey").nullable


def test_table_types(conn):
    assert conn.adbc_get_table_types() == ["TABLE"]


def test_info(conn):
    info = conn.adbc_get_info()
    assert info["vendor_name"] == "Skua"


def test_current_catalog(conn):
    assert conn.adbc_current_catalog == "demo"
    with connect() as c:
        c.adbc_current_db_schema = "tpch"
        with c.cursor() as cur:
            cur.execute("SELECT count(*) FROM nation")
            assert cur.fetchone() == (25,)


def test_many_bound_rows(conn):
    """Several bound rows are one result: a batch of lookups."""
    with conn.cursor() as cur:
        cur.adbc_prepare("SELECT n_name FROM tpch.nation WHERE n_nationkey = ?")
        cur._stmt.bind(pa.record_batch({"k": [0, 2, 24]}))
        handle, _ = cur._stmt.execute_query()
        table = pa.RecordBatchReader._import_from_c(handle.address).read_all()
    assert table.column(0).to_pylist() == ["ALGERIA", "BRAZIL", "UNITED STATES"]


def test_surplus_parameters_are_refused(conn):
    with conn.cursor() as cur, pytest.raises(adbc_driver_manager.Error, match="parameters"):
        cur.execute("SELECT n_name FROM tpch.nation WHERE n_nationkey = ?", [1, 2])


def test_partitions(conn):
    with conn.cursor() as cur:
        partitions, schema = cur.adbc_execute_partitions("SELECT n_nationkey FROM tpch.nation")
        assert schema.names == ["n_nationkey"]
        cur.adbc_read_partition(partitions[0])
        assert cur.fetch_arrow_table().num_rows == 25


def test_execute_schema(conn):
    with conn.cursor() as cur:
        assert cur.adbc_execute_schema("SELECT 1 AS a").names == ["a"]


def test_large_result(conn):
    with conn.cursor() as cur:
        cur.execute("SELECT * FROM tpch.lineitem")
        table = cur.fetch_arrow_table()
        cur.execute("SELECT count(*), sum(l_quantity) FROM tpch.lineitem")
        count, quantity = cur.fetchone()
    assert table.num_rows == count
    assert sum(table.column("l_quantity").to_pylist()) == quantity


def test_ingest_is_refused(conn):
    with conn.cursor() as cur, pytest.raises(Exception, match="read-only|[Nn]ot ?[Ii]mplemented"):
        cur.adbc_ingest("t", pa.table({"a": [1]}))


def test_schemas_agree_to_the_bit(conn):
    """GetSchema, FlightInfo and the stream tell one schema, nullability included."""
    sql = "SELECT n_nationkey, n_comment, n_nationkey + 1 AS x FROM tpch.nation"
    with conn.cursor() as cur:
        told = cur.adbc_execute_schema(sql)
        cur.execute(sql)
        streamed = cur.fetch_record_batch().schema
    assert told.equals(streamed, check_metadata=True)
    assert not streamed.field("n_nationkey").nullable
    assert streamed.field("n_comment").nullable


def do_login(conn):
    with pytest.raises(adbc_driver_manager.Error, match="wrong"):
        connect(password="a wrong one").cursor().execute("SELECT 1")


def do_tables(conn):
    table = conn.adbc_get_table_schema("nation", catalog_filter="demo", db_schema_filter="tpch")
    assert table.names == ["n_nationkey", "n_name", "n_regionkey", "n_comment"]
    for depth, level in [("catalogs", 0), ("db_schemas", 1), ("tables", 2), ("all", 3)]:
        [catalog] = conn.adbc_get_objects(depth=depth, catalog_filter="demo").read_all().to_pylist()
        assert catalog["catalog_name"] == "demo"
        if level >= 1:
            schemas = {s["db_schema_name"]: s for s in catalog["catalog_db_schemas"]}
            assert set(schemas) == {"tpch", "samples"}
        if level >= 2:
            tables = {t["table_name"]: t for t in schemas["tpch"]["db_schema_tables"]}
            assert len(tables) == 8
        if level >= 3:
            assert len(tables["nation"]["table_columns"]) == 4


def do_prepare(conn):
    with conn.cursor() as cur:
        for key, name in [(0, "ALGERIA"), (2, "BRAZIL"), (24, "UNITED STATES")]:
            cur.execute("SELECT n_name FROM tpch.nation WHERE n_nationkey = ?", [key])
            assert cur.fetchall() == [(name,)]


def do_bind(conn):
    test_many_bound_rows(conn)


def do_session(conn):
    test_current_catalog(conn)


def do_large(conn):
    test_large_result(conn)


def do_leave(conn):
    for _ in range(20):
        with conn.cursor() as cur:
            cur.execute("SELECT a.l_comment FROM tpch.lineitem a, tpch.lineitem b")
            assert cur.fetchone()


def do_cancel(conn):
    with conn.cursor() as cur:
        cur.execute("SELECT a.l_comment FROM tpch.lineitem a, tpch.lineitem b")
        threading.Timer(0.5, cur.adbc_cancel).start()
        begun = time.monotonic()
        with pytest.raises(Exception, match="(?i)cancel"):
            for _ in cur.fetch_record_batch():
                pass
        assert time.monotonic() - begun < 20


def read_elsewhere(uri, partition, out):
    with connect(uri) as c, c.cursor() as cur:
        cur.adbc_read_partition(partition)
        out.put(cur.fetch_arrow_table().num_rows)


def do_ticket(conn):
    """Another process, and where there is one another server node, reads the partition."""
    with conn.cursor() as cur:
        partitions, _ = cur.adbc_execute_partitions("SELECT n_nationkey FROM tpch.nation")
    ways = multiprocessing.get_context("spawn")
    out = ways.Queue()
    for uri in [cases.URI] + [u for u in [os.environ.get("SKUA_OTHER_URI")] if u]:
        child = ways.Process(target=read_elsewhere, args=(uri, partitions[0], out))
        child.start()
        assert out.get(timeout=60) == 25
        child.join()


def do_upload(conn):
    test_ingest_is_refused(conn)


@pytest.mark.parametrize("what", cases.DOINGS)
def test_do(conn, what):
    globals()["do_" + what](conn)
