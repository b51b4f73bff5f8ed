"""Plain pyarrow.flight, which knows no Flight SQL: users send SQL text as a command or as a ticket."""
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pytest

import cases


class Authorized:
    """A client whose calls carry the token of a login."""

    def __init__(self):
        self.client = flight.connect(cases.URI, tls_root_certs=cases.CA)
        self.options = flight.FlightCallOptions(headers=[self.client.authenticate_basic_token(cases.USER, cases.PASSWORD)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def __getattr__(self, name):
        call = getattr(self.client, name)
        return lambda *args: call(*args, options=self.options)


@pytest.fixture(scope="module")
def client():
    with Authorized() as c:
        yield c


@pytest.mark.parametrize("case", [c for c in cases.CASES if "params" not in c], ids=lambda c: c["name"])
def test_case(client, case):
    def read():
        info = client.get_flight_info(flight.FlightDescriptor.for_command(case["sql"].encode()))
        assert len(info.endpoints) == 1 and not info.endpoints[0].locations
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert table.schema.equals(info.schema, check_metadata=True)
        return table
    if "error" in case:
        with pytest.raises(Exception) as e:
            read()
        cases.expect_error(case, e.value)
    else:
        cases.expect(case, read())


def test_sql_as_ticket(client):
    table = client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM tpch.nation")).read_all()
    assert table.to_pylist() == [{"n": 25}]


def test_ticket_is_good_twice(client):
    info = client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT n_nationkey FROM tpch.nation"))
    first, second = (client.do_get(info.endpoints[0].ticket).read_all() for _ in range(2))
    assert first.num_rows == second.num_rows == 25


def test_get_schema(client):
    result = client.get_schema(flight.FlightDescriptor.for_command(b"SELECT 1 AS a, 'x' AS b"))
    assert result.schema.names == ["a", "b"]


def test_forged_ticket_is_refused(client):
    with pytest.raises(Exception, match="plan again"):
        client.do_get(flight.Ticket(b"\x01" + bytes(range(128, 200)))).read_all()


def test_cancel_mid_stream(client):
    reader = client.do_get(flight.Ticket(b"SELECT * FROM tpch.lineitem"))
    reader.read_chunk()
    reader.cancel()


def test_path_descriptor_is_refused(client):
    with pytest.raises(Exception, match="path"):
        client.get_flight_info(flight.FlightDescriptor.for_path("x"))


def test_actions(client):
    names = {a.type for a in client.list_actions()}
    assert {"CreatePreparedStatement", "ClosePreparedStatement", "CancelFlightInfo", "SetSessionOptions"} <= names


ENDLESS = flight.Ticket(b"SELECT a.l_comment FROM tpch.lineitem a, tpch.lineitem b")


def do_login(client):
    with flight.connect(cases.URI, tls_root_certs=cases.CA) as c:
        with pytest.raises(flight.FlightUnauthenticatedError, match="wrong"):
            c.authenticate_basic_token(cases.USER, "a wrong one")
        with pytest.raises(flight.FlightUnauthenticatedError, match="user name"):
            c.do_get(flight.Ticket(b"SELECT 1")).read_all()


def do_large(client):
    table = client.do_get(flight.Ticket(b"SELECT * FROM tpch.lineitem")).read_all()
    [count] = client.do_get(flight.Ticket(b"SELECT count(*) AS n FROM tpch.lineitem")).read_all().to_pylist()
    assert table.num_rows == count["n"]


def do_leave(client):
    for _ in range(20):
        reader = client.do_get(ENDLESS)
        reader.read_chunk()
        reader.cancel()


def do_cancel(client):
    reader = client.do_get(ENDLESS)
    threading.Timer(0.5, reader.cancel).start()
    with pytest.raises(Exception, match="(?i)cancel"):
        for _ in reader:
            pass


def do_ticket(client):
    info = client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT n_nationkey FROM tpch.nation"))
    with Authorized() as other:
        assert other.do_get(info.endpoints[0].ticket).read_all().num_rows == 25


def do_upload(client):
    with pytest.raises(Exception, match="command|read-only"):
        writer, _ = client.do_put(flight.FlightDescriptor.for_command(b"t"), pa.schema([("a", pa.int64())]))
        writer.write_table(pa.table({"a": [1]}))
        writer.close()


@pytest.mark.parametrize("what", [w for w in cases.DOINGS if "do_" + w in globals()])
def test_do(client, what):
    globals()["do_" + what](client)
