"""Answers over five million rows are exact."""
import decimal

import adbc_driver_flightsql.dbapi as flightsql
import pytest

import cases


@pytest.fixture(scope="module")
def cur():
    with flightsql.connect(cases.URI, autocommit=True) as conn, conn.cursor() as c:
        yield c


def test_filtered_sum(cur):
    cur.execute("SELECT COUNT(*), SUM(amount) FROM big.orders WHERE amount > 50.00")
    assert cur.fetchone() == (2_500_000, decimal.Decimal("188750000.00"))


def test_grouping(cur):
    cur.execute("SELECT status, count(*), sum(amount) FROM big.orders GROUP BY status ORDER BY status")
    rows = cur.fetchall()
    assert [r[1] for r in rows] == [1_666_667, 1_666_667, 1_666_666]
    assert sum(r[2] for r in rows) == decimal.Decimal("252500000.00")


def test_distinct(cur):
    cur.execute("SELECT count(DISTINCT customer), min(id), max(id) FROM big.orders")
    assert cur.fetchone() == (100_003, 0, 4_999_999)


def test_export(cur):
    cur.execute("SELECT id, amount FROM big.orders")
    rows, total = 0, 0
    for batch in cur.fetch_record_batch():
        assert batch.nbytes < 4 << 20
        rows += batch.num_rows
        total += sum(batch.column(0).to_numpy())
    assert rows == 5_000_000
    assert total == 5_000_000 * 4_999_999 // 2
