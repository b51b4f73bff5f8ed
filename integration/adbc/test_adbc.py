"""adbc_driver_flightsql against a running server."""
import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow as pa
import pytest

import cases


@pytest.fixture(scope="module")
def conn():
    with flightsql.connect(cases.URI, autocommit=True) as c:
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
    with flightsql.connect(cases.URI, autocommit=True) as c:
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
