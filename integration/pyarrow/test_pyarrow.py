"""Plain pyarrow.flight, which knows no Flight SQL: users send SQL text as a command or as a ticket."""
import pyarrow.flight as flight
import pytest

import cases


@pytest.fixture(scope="module")
def client():
    with flight.connect(cases.URI.replace("grpc://", "grpc+tcp://")) as c:
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


def test_basic_token(client):
    header = client.authenticate_basic_token("anyone", "anything")
    assert header[1].startswith(b"Bearer ")
    options = flight.FlightCallOptions(headers=[header])
    assert client.do_get(flight.Ticket(b"SELECT 1 AS a"), options).read_all().num_rows == 1


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
